"""The planner: plan(dag) -> Plan.

skeleton -> segments -> blocks -> one block at a time -> ▷-linear composition; segments that are not linear: the extended
regimen, enumeration, sums, and last the heuristics judged by the bounds.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from eligo.border import dag_of
from eligo.dag import Dag
from eligo.deciding.conflicts import Conflict, conflict_of
from eligo.deciding.effort import Stuck, check_effort, new_effort
from eligo.deciding.moves import preferred_order
from eligo.deciding.solver import solve_numbered
from eligo.deciding.work import BOUNDED, IMPOSSIBLE, OPTIMAL, Clock, Outlook
from eligo.names import Name
from eligo.rows import Ints
from eligo.theory.eligibility import Counts, eligible_counts
from eligo.theory.profiles import Profile
from eligo.theory.skeleton import skeleton

#: the verdicts as they are displayed; a workflow without a single best order is not defective
VERDICTS = {OPTIMAL: "optimal", IMPOSSIBLE: "no single order is best", BOUNDED: "not decided"}
#: the same as clauses
VERDICT_CLAUSES = {
    OPTIMAL: "one order is best at every step",
    IMPOSSIBLE: "no order is best at every step",
    BOUNDED: "undecided whether one order is best at every step",
}


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule with its verdict and proof.

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
    #: whether the time limit ended the search
    cut: bool = False
    #: the search state of parts without a best order, for `conflict`
    stuck: Mapping[tuple[str, ...], Stuck] = field(default_factory=dict)

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
        """E(0..n): the number of tasks eligible after each step."""
        return tuple(self.counts.tolist())

    @cached_property
    def upper_bound(self) -> tuple[int, ...]:
        """U(0..n): an upper bound on the tasks that any schedule can have eligible after each step."""
        return tuple(self.ceiling.tolist())

    @property
    def area(self) -> int:
        """The sum of E(t)."""
        return int(self.counts.sum())

    @property
    def average(self) -> float:
        """The mean number of ready tasks while tasks remain."""
        return self.area / max(1, len(self))

    @cached_property
    def first_come(self) -> tuple[int, ...]:
        """E(0..n) under first come, first served, which is the dag's own order."""
        return tuple(eligible_counts(self.dag, self.dag.order).tolist())

    @property
    def gain(self) -> float:
        """The relative gain in ready tasks over first come, first served."""
        return self.area / max(1, sum(self.first_come)) - 1 if len(self) else 0.0

    @property
    def tight_steps(self) -> int:
        """The number of steps after which the number of eligible tasks is proved to be the largest possible."""
        return int((self.counts == self.ceiling)[1:].sum())

    @cached_property
    def conflict(self) -> Conflict | None:
        """If the verdict is "impossible", two steps that no order can both make optimal; computed on access."""
        if self.verdict != IMPOSSIBLE:
            return None
        labelled = self.dag.labelled()
        return conflict_of(skeleton(labelled), self.proof, labelled.named(self.sequence), self.stuck)

    def document(self) -> dict[str, Any]:
        """The plan as a dict for JSON, with tasks by their labels; `eligo.verify` checks it."""
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


def sentence(plan: Plan, name: str = "") -> str:
    """The verdict in a sentence without theory; *name* is the name of the plan's order if others are shown too."""
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
    """The gain of the plan in a sentence.

    >>> gain_sentence(plan(Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])))
    'On average 2.20 tasks are ready, 10 % more than first come, first served.'
    """
    return f"On average {plan.average:,.2f} tasks are ready, {gain_words(plan.area, sum(plan.first_come))}."


def gain_words(area: int, usual: int) -> str:
    """The gain of an order over first come, first served, whose area is *usual*, in words.

    >>> gain_words(11, 9), gain_words(9, 9)
    ('22 % more than first come, first served', 'as many as under first come, first served')
    """
    if area == usual:
        return "as many as under first come, first served"
    share = abs(area / max(1, usual) - 1)
    amount = f"{share:.0%}".replace("%", " %") if share >= 0.01 else "less than 1 %"
    return f"{amount} {'more' if area > usual else 'fewer'} than first come, first served"


def percent(part: int, total: int) -> str:
    """The share in per cent, rounded down, so that only the whole is 100 %.

    >>> percent(99_997, 100_000), percent(3, 3), percent(0, 0)
    ('99.99 %', '100 %', '100 %')
    """
    if part == total:
        return "100 %"
    hundredths = part * 10_000 // total
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def plan(
    flow: object,
    effort: str = "normal",
    prefer: str = "path",
    clock: Clock | None = None,
    watch: Callable[[Outlook], None] | None = None,
) -> Plan:
    """Plan the order of the tasks of a workflow, with its quality and proof.

    *flow* is anything that `as_workflow` takes: a Workflow, a Dag, a file's path, a graph of networkx, rustworkx or Dask.
    *effort* is "quick", "normal" (seconds) or "thorough" (minutes): a budget in steps, so that the same workflow gets the
    same plan on every machine. Among orders of the same profile, *prefer* chooses: "path", the longest remaining path first,
    or "finish", branches that were started first. A *clock* ends the search with the best plan so far, when its time is up or
    it is stopped; *watch* receives the progress.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> best = plan(mesh)
    >>> best.order, best.profile, best.verdict
    (('a', 'b', 'c', 'd', 'e', 'f'), (1, 2, 2, 3, 2, 1, 0), 'optimal')
    """
    begin = time.perf_counter()
    dag = dag_of(flow)
    labelled = dag.labelled()  # proofs contain text
    bare = skeleton(labelled)
    check_effort(effort)
    spent = new_effort(effort, clock or Clock(), watch)
    outcome, blocks = solve_numbered(bare, spent)
    nonsinks, proof = preferred_order(bare, outcome.order, prefer), outcome.proof
    if not np.array_equal(nonsinks, outcome.order):
        proof = {"order": bare.named(outcome.order), **proof}  # the order that the proof is about
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
        shortcuts=dag.arc_count - bare.arc_count,
        blocks=blocks,
        seconds=time.perf_counter() - begin,
        stuck=spent.stuck,
        cut=spent.work.cut or spent.improving.cut,
    )


@dataclass(frozen=True, eq=False)
class Judgement:
    """The quality of an order: `verdict` is "optimal", "not optimal" or "undecided" (see `first_gap`)."""

    verdict: str
    profile: tuple[int, ...]
    upper_bound: tuple[int, ...]
    area: int
    area_bound: int
    #: the first step after which more tasks are, or may be, eligible in another order
    first_gap: int | None


def judge(flow: object, order: Sequence[Name]) -> Judgement:
    """Compare an order with the best plan and its bound; raises `ScheduleError` if it is not a schedule.

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
    """A bound on eligible tasks from one on rendered tasks: sources - t + bound(t), and n - t once all nonsinks are done."""
    n, k = len(dag), len(bound) - 1
    padded = np.full(n + 1, bound[-1], np.int64)
    padded[: k + 1] = bound
    return int((dag.indegree == 0).sum()) - np.arange(n + 1) + padded
