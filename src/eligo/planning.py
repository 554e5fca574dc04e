"""The planner: plan(dag) -> Plan.

skeleton -> segments -> blocks -> one block at a time -> ▷-linear composition; what is not linear, segment by segment: the
extended regimen, enumeration, sums, and last the heuristics judged by the bounds.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints
from eligo.theory.blocks import decompose
from eligo.theory.bounds import Shares, best_shares, block_bound
from eligo.theory.canonical import canonical_order
from eligo.theory.composition import concatenated_order, linearise
from eligo.theory.eligibility import Counts, eligible_counts
from eligo.theory.orders import candidate_orders, nonsinks_of
from eligo.theory.outcomes import BOUNDED, IMPOSSIBLE, OPTIMAL, Outcome, cumulative, worst
from eligo.theory.profiles import Profile, convolved
from eligo.theory.regimen import extended_chain, units_order
from eligo.theory.series import segments
from eligo.theory.skeleton import skeleton
from eligo.theory.solutions import Solutions, solve_blocks
from eligo.theory.subsets import MOST_ITEMS_FOR_AREA, Subsets
from eligo.theory.sweep import sweep
from eligo.workflow import Workflow, dag_of

SHARES_SECONDS = 5.0
MOST_SUMMANDS = 200
LARGE = 20_000  # tasks: from here on numbering level by level pays
LARGEST_DUAL = 20_000  # tasks: beyond, the dual's modules are not worth their cuts


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
    eligible: Counts
    ceiling: Counts
    verdict: str
    method: str
    area_bound: int
    proof: dict[str, Any]
    shortcuts: int
    blocks: int
    seconds: float

    def __str__(self) -> str:
        return sentence(self)

    def __repr__(self) -> str:
        return f"Plan({self.tasks} tasks, {self.verdict}, area {self.area} of at most {self.area_bound})"

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The schedule: every task once, each after its parents."""
        return self.dag.named(self.sequence)

    @cached_property
    def profile(self) -> tuple[int, ...]:
        """E(0..n): how many tasks are eligible after each step."""
        return tuple(self.eligible.tolist())

    @cached_property
    def upper_bound(self) -> tuple[int, ...]:
        """U(0..n): at least the most tasks that any schedule can have eligible after each step."""
        return tuple(self.ceiling.tolist())

    @property
    def area(self) -> int:
        """The sum of E(t)."""
        return int(self.eligible.sum())

    @property
    def tasks(self) -> int:
        """How many tasks were planned."""
        return len(self.dag)

    @property
    def arcs(self) -> int:
        """How many arcs they have."""
        return self.dag.arc_count

    @property
    def fingerprint(self) -> str:
        """Of the dag that was planned, so that a plan is not taken for another's."""
        return self.dag.fingerprint()

    @property
    def tight_steps(self) -> int:
        """After how many steps, 0 included, the number of eligible tasks is proved to be the largest possible."""
        return int((self.eligible == self.ceiling).sum())

    def document(self) -> dict[str, Any]:
        """The plan as plain data, fit for JSON; `eligo.verify` checks it."""
        return {key: getattr(self, key) for key in DOCUMENT}


DOCUMENT = (
    "tasks", "arcs", "shortcuts", "blocks", "verdict", "method", "order", "profile", "upper_bound", "area", "area_bound",
    "seconds", "fingerprint", "proof",
)  # fmt: skip


def sentence(plan: Plan) -> str:
    """The verdict for someone who never heard of the theory."""
    tenths = math.ceil(1000 * (plan.area_bound - plan.area) / max(1, plan.area_bound))
    average = f"this one is within {tenths / 10:g} % of the largest possible average"
    if plan.area == plan.area_bound:
        average = "this one has the largest possible average"
    match plan.verdict:
        case "optimal":
            return "No order can have more tasks ready at any moment."
        case "impossible":
            return f"No single order is best at every moment; {average}."
        case _:
            return f"Whether one order is best at every moment is not decided; {average}."


def plan(flow: Dag | Workflow) -> Plan:
    """An order in which to hand out the tasks of a workflow, how good it is, and why.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> best = plan(mesh)
    >>> best.order, best.profile, best.verdict
    (('a', 'b', 'c', 'd', 'e', 'f'), (1, 2, 2, 3, 2, 1, 0), 'optimal')
    """
    begin = time.perf_counter()
    dag = dag_of(flow)
    bare = skeleton(dag)
    outcome, blocks = _solve_numbered(bare)
    sinks = np.flatnonzero(dag.outdegree == 0)
    sequence = np.concatenate([outcome.order, sinks]).astype(np.int32)
    ceiling = _eligible_bound(dag, outcome.bound)
    slack = int(outcome.bound.sum()) - outcome.area_bound
    return Plan(
        dag=dag,
        sequence=sequence,
        eligible=eligible_counts(dag, sequence),
        ceiling=ceiling,
        verdict=outcome.verdict,
        method=outcome.method,
        area_bound=int(ceiling.sum()) - slack,
        proof=outcome.proof,
        shortcuts=dag.arc_count - bare.arc_count,
        blocks=blocks,
        seconds=time.perf_counter() - begin,
    )


def _solve_numbered(bare: Dag) -> tuple[Outcome, int]:
    """Solve a dag; a large one is first numbered level by level, which the memory likes better."""
    if len(bare) < LARGE:
        return solve(bare)
    outcome, blocks = solve(bare.renumbered(bare.order))
    return replace(outcome, order=bare.order[outcome.order]), blocks


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


def judge(flow: Dag | Workflow, order: Sequence[str]) -> Judgement:
    """Compare an order with the best plan and its bound; raises where it is no schedule.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> (found := judge(vee, ["a", "b", "x", "y", "z"])).verdict, found.first_gap
    ('not optimal', 1)
    """
    own = tuple(eligible_counts(dag_of(flow), order).tolist())
    best = plan(flow)
    gap = next((t for t, (e, u) in enumerate(zip(own, best.upper_bound, strict=True)) if e < u), None)
    verdict = "optimal" if gap is None else "undecided" if best.verdict == BOUNDED else "not optimal"
    return Judgement(verdict, own, best.upper_bound, sum(own), best.area_bound, gap)


def _eligible_bound(dag: Dag, bound: Profile) -> Profile:
    """From the most rendered to the most eligible: sources - t + bound(t), and n - t once all nonsinks are done."""
    n, k = len(dag), len(bound) - 1
    whole = np.full(n + 1, bound[-1], np.int64)
    whole[: k + 1] = bound
    return int((dag.indegree == 0).sum()) - np.arange(n + 1) + whole


def solve(dag: Dag) -> tuple[Outcome, int]:
    """Any dag without shortcuts, and how many blocks it has: ▷-linear segments at once, the others one by one."""
    blocks = decompose(dag)
    solutions = solve_blocks(blocks)
    label = segments(dag)
    count = int(label.max(initial=-1)) + 1
    ptr, sources = blocks.source_rows
    line = linearise(solutions, label[sources[ptr[:-1]]], count)
    order = concatenated_order(solutions, line.sequence)
    if line.linear.all():
        return Outcome(order, cumulative(dag, order), OPTIMAL, "▷-linear composition", {"rule": "chain"}), len(blocks)
    if count == 1:
        return _solve_segment(dag, solutions), len(blocks)
    return _solve_segments(dag, order, label, np.flatnonzero(~line.linear)), len(blocks)


def _solve_segments(dag: Dag, order: Ints, label: Ints, hard: np.ndarray) -> Outcome:
    """Solve the segments that are not linear, each as a dag by itself, and put them back."""
    order = order.copy()
    where = label[order]
    outcomes = []
    for segment in hard.tolist():
        begin, end = np.searchsorted(where, [segment, segment + 1]).tolist()
        tasks = np.sort(order[begin:end])
        part = _segment_dag(dag, tasks)
        outcome = _solve_segment(part, solve_blocks(decompose(part)))
        order[begin:end] = tasks[outcome.order]
        outcomes.append((begin, end, outcome))
    bound = cumulative(dag, order)
    slack, proofs = 0, []
    for begin, end, outcome in outcomes:
        bound[begin : end + 1] = bound[begin] + outcome.bound
        slack += int(outcome.bound.sum()) - outcome.area_bound
        proofs.append({"first": begin, "last": end, **outcome.proof})
    verdict = worst({outcome.verdict for _, _, outcome in outcomes})
    method = "; ".join(dict.fromkeys(outcome.method for _, _, outcome in outcomes))
    proof = {"rule": "chain", "segments": proofs}
    return Outcome(order, bound, verdict, f"segments in series: {method}", proof, int(bound.sum()) - slack)


def _segment_dag(dag: Dag, tasks: Ints) -> Dag:
    """The tasks of a segment, numbered first, with their children as sinks."""
    place = np.full(len(dag), -1, np.int32)
    place[tasks] = np.arange(len(tasks))
    heads = np.concatenate([dag.child[dag.child_ptr[u] : dag.child_ptr[u + 1]] for u in tasks.tolist()])
    outside = np.unique(heads[place[heads] < 0])
    place[outside] = len(tasks) + np.arange(len(outside))
    tails = np.repeat(place[tasks], dag.outdegree[tasks])
    members = np.concatenate([tasks, outside])
    return Dag.from_checked(len(members), tails, place[heads], lambda: dag.named(members))


def _solve_segment(dag: Dag, solutions: Solutions) -> Outcome:
    """A segment whose blocks are not ▷-linear."""
    units = extended_chain(solutions)
    if units is not None:
        order = units_order(solutions, units)
        sizes = [sum(len(solutions[b].maxima) - 1 for b in blocks) for blocks, _ in units]
        return Outcome(order, cumulative(dag, order), OPTIMAL, "sweep", {"rule": "units", "units": sizes})
    sequence = canonical_order(dag)
    outcome = _solve_undecided(dag.renumbered(sequence), block_bound(solutions))
    return replace(outcome, order=sequence[outcome.order])


def _solve_undecided(dag: Dag, blocks: Profile) -> Outcome:
    subsets = Subsets.of(dag, MOST_ITEMS_FOR_AREA)
    if subsets is not None:
        return _enumerated(dag, subsets)
    labels = dag.component_labels()
    parts = [np.flatnonzero(labels == root).astype(np.int32) for root in np.unique(labels[dag.outdegree > 0])]
    if 1 < len(parts) <= MOST_SUMMANDS:
        return _solve_sum(dag, parts, blocks)
    return _bounded(dag, blocks)


def _enumerated(dag: Dag, subsets: Subsets) -> Outcome:
    optimal = subsets.optimal_order()
    order = np.array(subsets.largest_area_order() if optimal is None else optimal, np.int32)
    verdict = IMPOSSIBLE if optimal is None else OPTIMAL
    proof = {"rule": "exact"} if optimal is not None else {"rule": "exact", "conflict": subsets.conflict()}
    area = int(cumulative(dag, order).sum())
    return Outcome(order, subsets.maxima, verdict, "enumeration", proof, area)


def _solve_sum(dag: Dag, parts: list[Ints], blocks: Profile) -> Outcome:
    """A sum admits exactly when its summands do and Sweep can interleave them."""
    outcomes = [solve(dag.induced(part))[0] for part in parts]
    verdict = worst({outcome.verdict for outcome in outcomes})
    orders = [part[outcome.order] for part, outcome in zip(parts, outcomes, strict=True)]
    proof = {
        "rule": "sum",
        "parts": [{"order": dag.named(r), **o.proof} for r, o in zip(orders, outcomes, strict=True)],
    }
    if verdict == OPTIMAL:
        mixed = sweep([outcome.bound for outcome in outcomes])
        if mixed is not None:
            turns = [iter(order.tolist()) for order in orders]
            order = np.array([next(turns[turn]) for turn in mixed.turns.tolist()], np.int32)
            return Outcome(order, mixed.profile, OPTIMAL, "sweep of a sum", proof)
        verdict = IMPOSSIBLE
    bound = np.zeros(1, np.int64)
    for outcome in outcomes:
        bound = convolved(bound, outcome.bound)
    rough = _bounded(dag, blocks)
    return Outcome(
        rough.order, np.minimum(bound, rough.bound), verdict, "sum", proof | {"shares": rough.proof["shares"]}
    )


def _bounded(dag: Dag, blocks: Profile) -> Outcome:
    """The best of the heuristics, judged by the bounds: shares, and that of the blocks."""
    shares = best_shares(dag, SHARES_SECONDS)
    bound = np.minimum(shares.bound, blocks)
    dual = best_shares(dag.dual(), SHARES_SECONDS).modules if len(dag) <= LARGEST_DUAL else []
    candidates = ((name, nonsinks_of(dag, order)) for name, order in candidate_orders(dag, shares.modules, dual))
    scored = [(int((profile := cumulative(dag, order)).sum()), name, order, profile) for name, order in candidates]
    _, name, order, profile = max(scored, key=lambda item: item[0])
    verdict = OPTIMAL if np.array_equal(profile, bound) else BOUNDED
    proof = {"rule": "bound", "shares": _shares_proof(dag, shares), "blocks": bool((blocks < shares.bound).any())}
    return Outcome(order, bound, verdict, name, proof)


def _shares_proof(dag: Dag, shares: Shares) -> dict[str, Any]:
    used = np.flatnonzero(shares.flow)
    parents, children = dag.named(dag.tails[used]), dag.named(dag.child[used])
    return {
        "modules": [
            {"tasks": dag.named(m.tasks), "renders": dag.named(m.renders), "p": m.p, "q": m.q} for m in shares.modules
        ],
        "flow": list(zip(children, parents, shares.flow[used].tolist(), strict=True)),
    }
