"""Modules: a dag is divided at the corners of the concave hull of M, and each module is decided separately.

At a strict corner t of the hull of M the best set of size t is unique, so every IC-optimal schedule passes through it, and
some schedule of largest area does. The modules between corners are the densest closed sets of `bounds`. With Mmod(t)
the maximum over sets that agree with the corners, found for each module separately:

* the dag admits exactly when every module admits with respect to Mmod and Mmod = M everywhere;
* a module that does not admit, or one t with M(t) > Mmod(t), proves that the dag does not;
* no schedule has a larger area than the sum of Mmod.

**Pieces** of a module are the differences between closed sets in it that are as dense as the module, one inside another.
Let f(S) be what a closed set S renders and p / q the share of the module, so that h(S) = q f(S) - p |S| is nowhere above 0.
A set is *tight* if h is 0. For a tight set A and any schedule, execute first its tasks in A, then the others, each in its
order. Rendering is supermodular: h(S & A) + h(S | A) >= h(S) + h(A) = h(S) for every S that the schedule passes through,
and as neither of the two on the left is above 0, each is at least h(S). So no step renders less than before, and some
schedule of largest area passes through A; and through every set of a chain of tight ones. The largest area of a module is
therefore that of its pieces, one after the other. (An order that is best at every step need not pass through tight sets:
they are not unique.)

The flow of worth shows which sets are tight: all worth of a tight set stays in it, and none comes from outside. So they are
the sets that nothing leads out of, if each nonsource leads to its parents, the execution of a task to its rendering, and
each receiver of worth to the giver.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.deciding.bounds import Module, Shares, best_shares, probe_bound, probes_proof
from eligo.deciding.effort import (
    CLOSED_SET,
    FIRST_LOOK,
    ITEMS_IN_A_HURRY,
    MOST_FOR_AREA,
    MOST_PIECES,
    SET,
    Effort,
    Stuck,
)
from eligo.deciding.elimination import Elimination, TooWideError, eliminate, exact_maxima
from eligo.deciding.marks import closest
from eligo.deciding.moves import Search, frontier, guided_order, largest_area, widening
from eligo.deciding.orders import heuristics, improve_best, nonsinks_of, release_order
from eligo.deciding.positions import NONE_MARKED, Marked, Pairs, units_of
from eligo.deciding.seriesparallel import largest_area_order
from eligo.deciding.symmetry import settled_order, swaps
from eligo.deciding.work import BOUNDED, IMPOSSIBLE, OPTIMAL, Work, cumulative
from eligo.kernels import graph
from eligo.rows import Ints, gather_rows, places, rows
from eligo.theory.profiles import Profile
from eligo.theory.subsets import MOST_ITEMS_FOR_AREA, Subsets

# Pieces


LOOK = 300  # units of work for each arc along which worth may flow


def pieces(dag: Dag, work: Work) -> list[Module]:
    """The pieces of a dag that is a single module, in an order in which they can be executed; an empty list for other dags.

    >>> two = Dag.from_arcs([("a", "x"), ("b", "x"), ("b", "y"), ("c", "z"), ("d", "z"), ("c", "w"), ("d", "w")])
    >>> [two.named(piece.tasks) for piece in pieces(two, Work())]
    [('b',), ('a',), ('c', 'd')]
    """
    shares = best_shares(dag, work)
    if len(shares.modules) != 1:
        return []
    work.spend(LOOK * dag.arc_count)
    (module,), label = shares.modules, _labels(dag, shares)
    executed, rendered = (_group(*each) for each in ((module.tasks, label), (module.renders, label[len(dag) :])))
    none = np.empty(0, np.int32)
    return [Module(tasks, rendered.get(piece, none), module.p, module.q) for piece, tasks in executed.items()]


def _group(tasks: Ints, label: Ints) -> dict[int, Ints]:
    """The tasks of each label, ascending; labels ascend as well."""
    ascending = np.sort(tasks)
    by_label = ascending[np.argsort(label[ascending], kind="stable")]
    begins = np.flatnonzero(np.diff(label[by_label], prepend=-1))
    return dict(zip(label[by_label[begins]].tolist(), np.split(by_label, begins[1:]), strict=True))


def _labels(dag: Dag, shares: Shares) -> Ints:
    """For each role, v to be executed and n + v to be rendered, the number of its strong component.

    A component has a smaller number than those that lead to it.
    """
    n, (module,) = len(dag), shares.modules
    inner = np.flatnonzero((dag.indegree > 0) & (dag.outdegree > 0)).astype(np.int32)
    handed = np.zeros(n, np.int64)
    np.add.at(handed, dag.child, shares.flow)
    passing, flowing = inner[handed[inner] > module.q], shares.flow > 0
    tails = np.concatenate([n + dag.child, dag.tails[flowing], inner, n + passing]).astype(np.int32)
    heads = np.concatenate([dag.tails, n + dag.child[flowing], n + inner, passing]).astype(np.int32)
    ptr, child, *_ = rows(2 * n, tails, heads)
    index, label, *scratch = np.zeros((5, 2 * n), np.int32)
    graph.strong_components(ptr, child, index, label, *scratch)
    return label


# Modules


def module_dag(dag: Dag, module: Module) -> Dag:
    """A module as a dag of its own: its tasks, numbered first, and what they render once earlier modules are executed."""
    place = places(len(dag), module.tasks)
    others = module.renders[place[module.renders] < 0]
    place[others] = len(module.tasks) + np.arange(len(others))
    rendered = np.zeros(len(dag), np.bool_)
    rendered[module.renders] = True
    heads, degree = gather_rows(dag.child_ptr, dag.child, module.tasks)
    tails = np.repeat(module.tasks, degree)
    inside = rendered[heads]
    members = np.concatenate([module.tasks, others])
    return Dag.from_checked(len(members), place[tails[inside]], place[heads[inside]], lambda: dag.named(members))


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution of a module: Mmod (`exact`) or a bound of it, an order, its verdict, and a bound of the area."""

    order: Ints
    maxima: Profile
    exact: bool
    verdict: str
    area_bound: int
    proof: dict[str, Any]


def solve_modules(dag: Dag, modules: Sequence[Module], effort: Effort) -> list[Solved]:
    """Decide modules: easy ones first, then those with the most to gain, each with its share of the work.

    Once a module is proved to have no best order, the others are searched for orders of large area only.
    """
    parts = {i: module_dag(dag, module) for i, module in enumerate(modules)}
    solved = _solve_parts(parts, {i: module.ceiling for i, module in enumerate(modules)}, effort)
    return [solved[i] for i in range(len(modules))]


def _solve_parts(parts: Mapping[int, Dag], ceilings: Mapping[int, Profile], effort: Effort) -> dict[int, Solved]:
    """Decide dags, each under its ceiling."""
    hurried = effort.work.over()
    solved = {i: one for i, dag in parts.items() if (one := _at_once(dag, ceilings[i], effort.work)) is not None}
    rough = {i: _rough_order(dag, effort, hurried) for i, dag in parts.items() if i not in solved}
    worth = {i: int((ceilings[i] - cumulative(parts[i], order)).sum()) for i, order in rough.items()}
    decided = any(one.verdict == IMPOSSIBLE for one in solved.values())
    total, tried = sum(int(ceiling.sum()) for ceiling in ceilings.values()), dict[int, float]()
    for i in sorted(worth, key=lambda i: (-worth[i], i)):
        effort.work.tell(f"a part of {len(ceilings[i]) - 1:,} tasks", 1 - sum(worth.values()) / max(1, total))
        mean = sum(worth.values()) / len(worth)
        part = effort.work.part(effort.work.remaining * (worth[i] + mean) / (2 * sum(worth.values()) or 1))
        own = replace(effort, work=part, search=0 if decided else effort.search)
        tried[i] = min(part.remaining, effort.maxima)
        solved[i] = _solve_one(parts[i], ceilings[i], rough[i], own)
        decided = decided or solved[i].verdict == IMPOSSIBLE
        del worth[i]
    for i in sorted(rough, key=lambda i: (len(parts[i]), i)):  # those whose share was too small
        if not solved[i].exact and min(effort.work.remaining, effort.maxima) > tried[i] and not effort.work.over():
            solved[i] = _solve_one(parts[i], ceilings[i], solved[i].order, effort)
    return solved


def _rough_order(dag: Dag, effort: Effort, hurried: bool) -> Ints:
    """The order of largest area among the heuristics, improved with half of the work; the rest is for later modules."""
    return improve_best(dag, heuristics(dag, hurried), effort.improving.part(effort.improving.remaining / 2))[1]


def few_sets(dag: Dag, work: Work) -> Subsets | None:
    """All sets of the items of a dag, if they are few or half of the remaining work suffices; else None."""
    most = 0 if work.over() else math.log2(1 + work.remaining / (2 * (SET + CLOSED_SET)))
    subsets = Subsets.of(dag, int(min(max(ITEMS_IN_A_HURRY, most), MOST_ITEMS_FOR_AREA)))
    if subsets is not None:
        work.spend(SET * (1 << len(subsets)) + CLOSED_SET * len(subsets.closed))
    return subsets


def _at_once(dag: Dag, ceiling: Profile, work: Work) -> Solved | None:
    """The solution of a module whose simplest order attains the ceiling, or that is small enough to enumerate; else None."""
    greedy = nonsinks_of(dag, release_order(dag))
    if np.array_equal(cumulative(dag, greedy), ceiling):
        return Solved(greedy, ceiling, True, OPTIMAL, int(ceiling.sum()), {"rule": "bound"})
    subsets = few_sets(dag, work)
    return None if subsets is None else _enumerate(dag, subsets)


def _solve_one(dag: Dag, ceiling: Profile, order: Ints, effort: Effort) -> Solved:
    """Decide a module by elimination and a search by moves, unless it is too wide."""
    maxima, how = maxima_within(dag, effort)
    if maxima is None:
        return _solve_roughly(dag, ceiling, order, effort)
    return _search(dag, maxima, order, effort, {"rule": "elimination", **how})


def _solve_roughly(dag: Dag, ceiling: Profile, order: Ints, effort: Effort) -> Solved:
    """Bound a module whose maxima are out of reach: by probes, and by the largest area if it is series-parallel."""
    bound, probes = probe_bound(dag, ceiling, effort.work.part(effort.probes))
    proof: dict[str, Any] = {"rule": "bound"} | ({"probes": probes_proof(dag, probes)} if probes else {})
    largest = largest_area_order(dag)
    order = order if largest is None else largest
    area = int(cumulative(dag, order).sum())
    proof |= {} if largest is None else {"area": area}
    area_bound = int(bound.sum()) if largest is None else area
    solved = Solved(order, bound, False, _verdict(dag, order, bound), area_bound, proof)
    parts = pieces(dag, effort.work) if area < area_bound and not effort.work.over() else []
    return _by_pieces(dag, parts, solved, effort) if len(parts) > 1 else solved


def maxima_within(dag: Dag, effort: Effort) -> tuple[Profile | None, dict[str, Any]]:
    """M(t) and its proof by elimination; None and an empty proof if that takes too much work."""
    work = effort.work.part(effort.maxima)
    if work.over():
        return None, {}
    try:
        plan = eliminate(dag, work)
        return exact_maxima(dag, work, plan), _elimination_proof(dag, plan)
    except TooWideError:
        return None, {}


def _elimination_proof(dag: Dag, plan: Elimination) -> dict[str, Any]:
    """The proof by elimination: tasks with two roles are in the order twice, rendered first unless in `executed_first`."""
    alike = [{"tasks": dag.named(a.members), "swaps": [_moves_of(dag, image) for image in a.swaps]} for a in plan.alike]
    tasks, rendered = np.array(plan.order, np.int64) % len(dag), set(plan.order)
    inner = [v for v in plan.order if v < len(dag) and len(dag) + v in rendered]
    place = {v: i for i, v in enumerate(plan.order)}
    before = [v for v in inner if place[v] < place[len(dag) + v]]
    return {"elimination": {"order": dag.named(tasks), "executed_first": dag.named(before), "alike": alike}}


def _moves_of(dag: Dag, image: Ints) -> list[tuple[str, str]]:
    """The tasks that a map moves, each with its image."""
    moved = np.flatnonzero(image != np.arange(len(dag)))
    return list(zip(dag.named(moved), dag.named(image[moved]), strict=True))


def _enumerate(dag: Dag, subsets: Subsets) -> Solved:
    best, optimal = subsets.best_order()
    order, verdict = np.array(best, np.int32), OPTIMAL if optimal else IMPOSSIBLE
    return Solved(order, subsets.maxima, True, verdict, int(cumulative(dag, order).sum()), {"rule": "exact"})


def _verdict(dag: Dag, order: Ints, bound: Profile) -> str:
    return OPTIMAL if np.array_equal(cumulative(dag, order), bound) else BOUNDED


def _search(dag: Dag, maxima: Profile, order: Ints, effort: Effort, proof: dict[str, Any]) -> Solved:
    """Search for an order that attains the maxima; if there is none, for one of largest area."""
    optimal_order = guided_order(dag, maxima)
    if optimal_order is not None:
        return Solved(np.array(optimal_order, np.int32), maxima, True, OPTIMAL, int(maxima.sum()), proof)
    alike, search, most, parts = swaps(dag, effort.work), Search(None), int(maxima.sum()), list[Module]()
    close = most
    order, proved = _largest(dag, maxima, order, effort.work.part(effort.area * FIRST_LOOK), alike)
    if not proved and cumulative(dag, order).sum() < most:
        search = _attain(dag, maxima, effort, alike)
        if search.order is not None:
            return Solved(search.order, maxima, True, OPTIMAL, most, proof)
        if search.refuted and search.stuck is not None:
            effort.stuck[dag.tasks] = Stuck(maxima, search.stuck)
        parts = pieces(dag, effort.work)
        if len(parts) <= 1:
            order, proved, close, marks_proof = _search_with_marks(dag, maxima, order, effort, alike)
            proof |= marks_proof
    area = int(cumulative(dag, order).sum())
    if area == most:
        return Solved(order, maxima, True, OPTIMAL, most, proof)
    refuted = search.refuted or proved or close < most
    proof |= ({"refuted": True} if refuted else {}) | ({"area": area} if proved else {})
    proof |= {"swaps": [[dag.named(pair) for pair in pairs] for pairs in alike]} if refuted and alike else {}
    solved = Solved(order, maxima, True, IMPOSSIBLE if refuted else BOUNDED, area if proved else close, proof)
    return _by_pieces(dag, parts, solved, effort) if len(parts) > 1 else solved


def _by_pieces(dag: Dag, parts: list[Module], module: Solved, effort: Effort) -> Solved:
    """The same solution, improved by the largest areas of the module's pieces; equal pieces are solved once."""
    parts = [_settle(dag, part, effort.work) for part in parts]
    dags, first = [module_dag(dag, part) for part in parts], dict[tuple[int, bytes, bytes], int]()
    like = [first.setdefault((len(d), d.tails.tobytes(), d.child.tobytes()), i) for i, d in enumerate(dags)]
    if len(first) > MOST_PIECES:
        return module
    ceilings = {i: parts[i].ceiling for i in first.values()}
    pooled = replace(effort, search=0, area=effort.area * len(parts) / len(first))
    solved = _solve_parts({i: dags[i] for i in ceilings}, ceilings, pooled)
    order = np.concatenate([part.tasks[solved[i].order] for part, i in zip(parts, like, strict=True)])
    before = np.cumsum([0, *(len(part.renders) for part in parts)]).tolist()
    most = sum(solved[i].area_bound + base * len(solved[i].order) for i, base in zip(like, before, strict=False))
    own, area = (int(cumulative(dag, one).sum()) for one in (module.order, order))
    module = replace(module, order=order) if area > own else module
    if most >= module.area_bound:
        return module
    impossible = module.verdict == IMPOSSIBLE or (module.exact and most < module.maxima.sum())
    proofs = [
        {"order": dag.named(part.tasks[solved[i].order]), **_rename(solved[i].proof, dags[i], own)}
        for part, own, i in zip(parts, dags, like, strict=True)
    ]
    proof = module.proof | {"pieces": proofs} | ({"refuted": True} if impossible and module.exact else {})
    return replace(module, area_bound=most, proof=proof, verdict=IMPOSSIBLE if impossible else module.verdict)


def _settle(dag: Dag, part: Module, work: Work) -> Module:
    """A module numbered so that isomorphic modules mostly become equal."""
    own = module_dag(dag, part)
    place = places(len(dag), dag.indices(own.tasks))
    sequence = places(len(own), settled_order(own, work))
    tasks, renders = (each[np.argsort(sequence[place[each]])] for each in (part.tasks, part.renders))
    return replace(part, tasks=tasks, renders=renders)


def _rename(proof: dict[str, Any], dag: Dag, other: Dag) -> dict[str, Any]:
    """A proof for a dag with the names of another that has the same arcs, and without the claim "refuted"."""
    names = dict(zip(dag.tasks, other.tasks, strict=True))

    def rename(value: Any) -> Any:
        match value:
            case str():
                return names[value]
            case dict():
                return {key: inner if key == "rule" else rename(inner) for key, inner in value.items()}
            case list() | tuple():
                return [rename(inner) for inner in value]
        return value

    return {key: value for key, value in rename(proof).items() if key != "refuted"}


def _attain(dag: Dag, maxima: Profile, effort: Effort, alike: Sequence[Pairs]) -> Search:
    """Search for an order that attains the maxima, or a proof that there is none, by wider and wider searches."""
    work, search = effort.work.part(effort.search), Search(None)
    for width in widening(work):
        work.tell(f"best orders of a part of {len(maxima) - 1:,} tasks, {width:,} at a time")
        search = frontier(dag, maxima, width, work, alike)
        if search.order is not None or search.refuted:
            break
    return search


def _search_with_marks(
    dag: Dag, maxima: Profile, order: Ints, effort: Effort, alike: Sequence[Pairs]
) -> tuple[Ints, bool, int, dict[str, Any]]:
    """An order of largest area, whether that is proved, and the bound of the area by marked tasks with its proof."""
    most, area, work, marks = int(maxima.sum()), effort.work.part(effort.area), effort.work.part(effort.marks), None
    if not work.over():
        work.tell(f"the most informative tasks of a part of {len(maxima) - 1:,}")
        marks = closest(dag, int(cumulative(dag, order).sum()), work)
    if marks is None or marks[0].to_come[0, 0] >= most:
        return *_largest(dag, maxima, order, area, alike), most, {}
    marked, plan = marks
    order, proved = _largest(dag, maxima, order, area, alike, marked)
    return order, proved, int(marked.to_come[0, 0]), {"marked": _proof_of_marks(dag, marked, plan)}


def _proof_of_marks(dag: Dag, marked: Marked, plan: Elimination) -> dict[str, Any]:
    """The proof of a bound by marked tasks: these tasks, and the elimination of the others."""
    how = _elimination_proof(dag, plan)["elimination"]
    tasks = dag.named(np.array(marked.tasks, np.int32))
    return {"tasks": tasks, "order": how["order"], "executed_first": how["executed_first"]}


def _largest(  # noqa: PLR0913, PLR0917
    dag: Dag, maxima: Profile, order: Ints, work: Work, alike: Sequence[Pairs], marked: Marked = NONE_MARKED
) -> tuple[Ints, bool]:
    """An order improved by wider and wider searches, and whether its area is proved to be the largest."""
    largest = largest_area_order(dag)
    if largest is not None:
        return largest, True
    for width in widening(work) if len(units_of(dag)) <= MOST_FOR_AREA else ():
        work.tell(f"orders with the largest average of a part of {len(maxima) - 1:,} tasks, {width:,} at a time")
        search = largest_area(dag, maxima, int(cumulative(dag, order).sum()), width, work, alike, marked)
        order = order if search.order is None else search.order
        if search.proved:
            return order, True
    return order, False
