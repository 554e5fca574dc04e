"""The planner: plan(dag) -> Plan.

skeleton -> segments -> blocks -> one block at a time -> ▷-linear composition; what is not linear, segment by segment: the
extended regimen, enumeration, sums, and last the heuristics judged by the bounds.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from eligo.border import dag_of
from eligo.dag import Dag
from eligo.deciding.clock import Clock
from eligo.deciding.conflicts import Conflict, conflict_of
from eligo.deciding.effort import Stuck, begun, check_effort
from eligo.deciding.outcomes import BOUNDED, IMPOSSIBLE, OPTIMAL
from eligo.deciding.preferences import preferred
from eligo.deciding.regrowing import Trail, decide_grown
from eligo.deciding.residuals import Decided, Rest
from eligo.deciding.solving import solve_numbered
from eligo.deciding.work import Outlook
from eligo.errors import InputError
from eligo.names import Name
from eligo.rows import Ints
from eligo.theory.blocks import decompose
from eligo.theory.eligibility import Counts, eligible_counts
from eligo.theory.profiles import Profile
from eligo.theory.skeleton import skeleton

#: the verdicts as people are told them; nothing is wrong with a workflow that has no single best order
VERDICTS = {OPTIMAL: "optimal", IMPOSSIBLE: "no single order is best", BOUNDED: "not decided"}


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule with its verdict and what proves it.

    `verdict` is "optimal" (no schedule has more tasks eligible after any step), "impossible" (proved that no schedule is
    best after every step) or "bounded" (not decided); `area_bound` is at least every schedule's area.
    """

    dag: Dag
    #: the schedule, as task numbers
    sequence: Ints
    #: E(0..n) and U(0..n), as arrays
    counts: Counts
    ceiling: Counts
    verdict: str
    method: str
    area_bound: int
    proof: dict[str, Any]
    shortcuts: int
    blocks: int
    seconds: float
    #: whether the clock ended the search
    cut: bool = False
    #: where the search got stuck in parts that have no best order, for `conflict`
    stuck: Mapping[tuple[str, ...], Stuck] = field(default_factory=dict)
    #: what was decided, for `after`
    decided: Decided | None = None

    def __str__(self) -> str:
        return sentence(self)

    def __repr__(self) -> str:
        return f"Plan({len(self)} tasks, {self.verdict}, area {self.area} of at most {self.area_bound})"

    def __len__(self) -> int:
        return len(self.dag)

    @cached_property
    def order(self) -> tuple[Name, ...]:
        """The schedule: every task once, each after its parents."""
        return self.dag.named(self.sequence)

    @cached_property
    def profile(self) -> tuple[int, ...]:
        """E(0..n): how many tasks are eligible after each step."""
        return tuple(self.counts.tolist())

    @cached_property
    def upper_bound(self) -> tuple[int, ...]:
        """U(0..n): at least the most tasks that any schedule can have eligible after each step."""
        return tuple(self.ceiling.tolist())

    @property
    def area(self) -> int:
        """The sum of E(t)."""
        return int(self.counts.sum())

    @property
    def average(self) -> float:
        """How many tasks are ready on average, while there is something to execute."""
        return self.area / max(1, len(self))

    @cached_property
    def first_come(self) -> tuple[int, ...]:
        """E(0..n) under first come, first served: that is how a dag's own order is made."""
        return tuple(eligible_counts(self.dag, self.dag.order).tolist())

    @property
    def gain(self) -> float:
        """By which share more tasks are ready on average than under first come, first served."""
        return self.area / max(1, sum(self.first_come)) - 1 if len(self) else 0.0

    @property
    def tight_steps(self) -> int:
        """After how many of the n steps the number of eligible tasks is proved to be the largest possible."""
        return int((self.counts == self.ceiling)[1:].sum())

    @cached_property
    def conflict(self) -> Conflict | None:
        """Where the verdict is "impossible", two steps that no order makes the best of together: looked for when asked."""
        if self.verdict != IMPOSSIBLE:
            return None
        told = self.dag.labelled()
        return conflict_of(skeleton(told), self.proof, told.named(self.sequence), self.stuck)

    def after(self, execution: "Run") -> "PlanLeft":
        """The plan of what an execution of this workflow has left, which takes over what its completions did not touch.

        >>> from eligo.execution import Execution
        >>> two = Dag.from_arcs([("a", "x"), ("a", "y"), ("b", "z")])
        >>> run, best = Execution(two), plan(two)
        >>> _ = run.execute("b")
        >>> left = best.after(run)
        >>> left.verdict, left.next(2), left.profile
        ('optimal', ('a', 'x'), (2, 3, 2, 1, 0))

        Asked for the same execution again, or by `left.after`, it goes on from where it was. In order, a completion costs
        next to nothing; out of order, what the touched blocks or the segment in progress take to be decided again. Where
        tasks were added to the execution, they are in it, and segments to which nothing was added are taken over.
        """
        if execution not in self._followed:
            if self.decided is None:
                raise InputError("this plan does not say how it was made, so that nothing of it can be taken over")
            self._followed[execution] = PlanLeft(self, Trail.begun(self.dag), Rest(self.decided), 0)
        self._followed[execution] = self._followed[execution].after(execution)
        return self._followed[execution]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_followed"}

    @cached_property
    def _followed(self) -> "WeakKeyDictionary[Run, PlanLeft]":
        return WeakKeyDictionary()

    def document(self) -> dict[str, Any]:
        """The plan as plain data, fit for JSON, in which tasks are told by their labels; `eligo.verify` checks it."""
        return {
            "tasks": len(self),
            "arcs": self.dag.arc_count,
            "shortcuts": self.shortcuts,
            "blocks": self.blocks,
            "verdict": self.verdict,
            "method": self.method,
            "order": self.dag.labelled().named(self.sequence),
            "profile": self.profile,
            "upper_bound": self.upper_bound,
            "area": self.area,
            "area_bound": self.area_bound,
            "seconds": self.seconds,
            "cut_short": self.cut,
            "fingerprint": self.dag.fingerprint(),
            "proof": self.proof,
        }


class Run(Protocol):
    """An execution, as far as a plan follows it."""

    @property
    def dag(self) -> Dag:
        """The dag that is executed."""

    def done_since(self, seen: int) -> Sequence[int]:
        """The tasks that were done behind the first *seen* of them."""


class PlanLeft:
    """The plan of what an execution has left, as of one moment; see `Plan.after`.

    `verdict`, `area`, `area_bound` and `next` are known without looking at the whole; `plan`, and whatever needs all of it,
    is made when asked for. The numbers of tasks are those of `dag`, which has the tasks that are not executed.
    """

    def __init__(self, whole: Plan, trail: Trail, rest: Rest, done: int) -> None:
        self._whole, self._trail, self._shared, self._done = whole, trail, rest, done

    def __repr__(self) -> str:
        return f"PlanLeft({len(self)} of {len(self._trail.dag)} tasks, {self.verdict})"

    def __len__(self) -> int:
        return len(self._whole) - self._done

    def after(self, execution: Run) -> "PlanLeft":
        """The plan of what the same execution has left later on, with what was added to it."""
        trail, rest, same = self._trail, self._rest, self._trail.is_of(execution.dag)
        last = trail.numbers[rest.done[-1:]].tolist() if rest.done else trail.last
        seen = np.array(execution.done_since(trail.done + self._done - len(last)), np.int32)
        fresh = trail.places(seen[len(last) :])
        if seen[: len(last)].tolist() != last or rest.executed[fresh].any():
            raise InputError("this is not the execution that was followed so far")
        if not same:
            return self._grown(execution)
        if not len(fresh):
            return self
        rest.execute(fresh)
        return PlanLeft(self._whole, trail._replace(dag=execution.dag), rest, self._done + len(fresh))

    def _grown(self, execution: Run) -> "PlanLeft":
        """The plan of what is left after tasks were added: what that did not touch is as it was."""
        begin, rest = time.perf_counter(), self._rest
        trail = Trail.begun(execution.dag, execution.done_since(0))
        dag = trail.dag.induced(trail.numbers) if trail.done else trail.dag
        decided, spent = decide_grown(rest, *trail.places_of(self._trail), dag)
        made = _made(dag, decided, {**self._whole.stuck, **rest.stuck, **spent.stuck}, begin)
        made = replace(made, cut=spent.work.cut or spent.improving.cut)
        return PlanLeft(made, trail, Rest(decided), 0)

    @property
    def _rest(self) -> Rest:
        """What is left now; where others have gone on from here, it is found again from the beginning."""
        if len(self._shared.done) != self._done:
            seen = np.array(self._shared.done[: self._done], np.int32)
            self._shared = Rest(self._shared.decided)
            self._shared.execute(seen)
        return self._shared

    @property
    def verdict(self) -> str:
        """See `Plan`: "optimal", "impossible" or "bounded"."""
        return self._rest.verdict

    @property
    def area(self) -> int:
        """The sum of E(t)."""
        return self._rest.area

    @property
    def area_bound(self) -> int:
        """At least every schedule's area."""
        return self._rest.area_bound

    def next(self, count: int) -> tuple[Name, ...]:
        """The next so many tasks; what is out with somebody is among them."""
        return self._whole.dag.named(self._rest.next(count))

    @cached_property
    def plan(self) -> Plan:
        """The same as a plan of its own, of `dag`: what can be proved of that dag by itself."""
        begin, rest = time.perf_counter(), self._rest
        left, bare, outcome, sequence = rest.whole()
        decided = rest.decided._replace(bare=bare, outcome=outcome, sequence=sequence, composed=None)
        stuck = {**self._whole.stuck, **rest.stuck}
        return _made(self._whole.dag.induced(left), decided, stuck, begin)

    @property
    def dag(self) -> Dag:
        """The tasks that are not executed, and the arcs between them."""
        return self.plan.dag

    @property
    def order(self) -> tuple[Name, ...]:
        """The schedule: every task that is left once, each after its parents."""
        return self.plan.order

    @property
    def profile(self) -> tuple[int, ...]:
        """E(0..n) of the order."""
        return self.plan.profile

    @property
    def upper_bound(self) -> tuple[int, ...]:
        """U(0..n)."""
        return self.plan.upper_bound

    def document(self) -> dict[str, Any]:
        """The plan as plain data; `eligo.verify` checks it against `dag`."""
        return self.plan.document()


def sentence(plan: Plan, name: str = "") -> str:
    """The verdict for someone who never heard of the theory; *name* is the plan's where other orders stand beside it."""
    tenths = math.ceil(1000 * (plan.area_bound - plan.area) / max(1, plan.area_bound))
    this = name or "this one"
    average = f"{this} is within {tenths / 10:g} % of the largest possible average"
    if plan.area == plan.area_bound:
        average = f"{this} has the largest{'' if name else ' possible'} average"
    match plan.verdict:
        case "optimal":
            return f"No order can have more tasks ready at any moment{name and ' than '}{name}."
        case "impossible":
            return f"No single order is best at every moment; {average}."
        case _:
            return f"Whether one order is best at every moment is not decided; {average}."


def gain_sentence(plan: Plan) -> str:
    """What the plan gains, for the same reader.

    >>> gain_sentence(plan(Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])))
    'On average 2.20 tasks are ready, 10 % more than first come, first served.'
    """
    return f"On average {plan.average:,.2f} tasks are ready, {gained(plan.area, sum(plan.first_come))}."


def gained(area: int, usual: int) -> str:
    """What an order gains on first come, first served, of which *usual* is the area.

    >>> gained(11, 9), gained(9, 9)
    ('22 % more than first come, first served', 'as many as under first come, first served')
    """
    if area == usual:
        return "as many as under first come, first served"
    share = abs(area / max(1, usual) - 1)
    amount = f"{share:.0%}".replace("%", " %") if share >= 0.01 else "less than 1 %"
    return f"{amount} {'more' if area > usual else 'fewer'} than first come, first served"


def percent(part: int, whole: int) -> str:
    """The share in words, never rounded up: 100 % is said of nothing but the whole.

    >>> percent(99_997, 100_000), percent(3, 3), percent(0, 0)
    ('99.99 %', '100 %', '100 %')
    """
    if part == whole:
        return "100 %"
    hundredths = part * 10_000 // whole
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def plan(
    flow: object,
    effort: str = "normal",
    prefer: str = "path",
    clock: Clock | None = None,
    watch: Callable[[Outlook], None] | None = None,
) -> Plan:
    """An order in which to hand out the tasks of a workflow, how good it is, and why.

    *flow* is anything that `as_workflow` takes: a Workflow, a Dag, a file's path, a graph of networkx, rustworkx or Dask.
    *effort* is "quick", "normal" (seconds) or "thorough" (minutes): work that is counted, so that the same workflow gets the
    same plan on every machine. Among orders of the same profile, *prefer* chooses: "path", the longest remaining path first,
    or "finish", branches that were begun first. A *clock* ends the search with the best found so far, when its time is up or
    somebody stops it; *watch* is told how it goes on.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> best = plan(mesh)
    >>> best.order, best.profile, best.verdict
    (('a', 'b', 'c', 'd', 'e', 'f'), (1, 2, 2, 3, 2, 1, 0), 'optimal')
    """
    begin = time.perf_counter()
    dag = dag_of(flow)
    told = dag.labelled()  # a proof is text
    bare = skeleton(told)
    check_effort(effort)
    spent = begun(effort, clock or Clock(), watch)
    outcome, composed = solve_numbered(bare, spent)
    sequence = preferred(bare, outcome.order, prefer)
    decided = Decided(bare, outcome, sequence, effort, prefer, spent.solved or {}, composed)
    return replace(_made(dag, decided, spent.stuck, begin), cut=spent.work.cut or spent.improving.cut)


def _made(dag: Dag, decided: Decided, stuck: Mapping[tuple[str, ...], Stuck], begin: float) -> Plan:
    """The plan of a dag that was decided."""
    outcome, nonsinks = decided.outcome, decided.sequence
    proof = outcome.proof
    if not np.array_equal(nonsinks, outcome.order):
        proof = {"order": decided.bare.named(outcome.order), **proof}  # what the proof speaks of
    sequence = np.concatenate([nonsinks, np.flatnonzero(dag.outdegree == 0)]).astype(np.int32)
    ceiling = _eligible_bound(dag, outcome.bound)
    slack = int(outcome.bound.sum()) - outcome.area_bound
    return Plan(
        dag=dag,
        sequence=sequence,
        counts=eligible_counts(dag, sequence),
        ceiling=ceiling,
        verdict=outcome.verdict,
        method=outcome.method,
        area_bound=int(ceiling.sum()) - slack,
        proof=proof,
        shortcuts=dag.arc_count - decided.bare.arc_count,
        blocks=len(decided.composed or decompose(decided.bare)),
        seconds=time.perf_counter() - begin,
        stuck=stuck,
        decided=decided,
    )


@dataclass(frozen=True, eq=False)
class Judgement:
    """How good somebody's order is: `verdict` is "optimal", "not optimal" or "undecided" (see `first_gap`)."""

    verdict: str
    profile: tuple[int, ...]
    upper_bound: tuple[int, ...]
    area: int
    area_bound: int
    #: the first step after which more tasks could be, or are not proved impossible to be, eligible
    first_gap: int | None


def judge(flow: object, order: Sequence[Name]) -> Judgement:
    """Compare an order with the best plan and its bound; raises where it is no schedule.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> (found := judge(vee, ["a", "b", "x", "y", "z"])).verdict, found.first_gap
    ('not optimal', 1)
    """
    dag = dag_of(flow)
    own = tuple(eligible_counts(dag, order).tolist())
    best = plan(dag)
    gap = next((t for t, (e, u) in enumerate(zip(own, best.upper_bound, strict=True)) if e < u), None)
    verdict = "optimal" if gap is None else "undecided" if best.verdict == BOUNDED else "not optimal"
    return Judgement(verdict, own, best.upper_bound, sum(own), best.area_bound, gap)


def _eligible_bound(dag: Dag, bound: Profile) -> Profile:
    """From the most rendered to the most eligible: sources - t + bound(t), and n - t once all nonsinks are done."""
    n, k = len(dag), len(bound) - 1
    whole = np.full(n + 1, bound[-1], np.int64)
    whole[: k + 1] = bound
    return int((dag.indegree == 0).sum()) - np.arange(n + 1) + whole
