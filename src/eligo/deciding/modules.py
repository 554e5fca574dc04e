"""Modules: the decision taken apart at the corners of the concave hull.

At a strict corner t of the hull of M the best set of size t is unique, so every IC-optimal schedule passes through it, and
some schedule of largest area does. The modules between corners are the densest closed sets of `theory.bounds`. With Mmod(t)
the maximum over sets that agree with the corners, found for each module by itself:

* the dag admits exactly when every module admits with respect to Mmod and Mmod = M everywhere;
* a module that does not admit, or one t with M(t) > Mmod(t), proves that the dag does not;
* no schedule has a larger area than the sum of Mmod.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.deciding.bounds import Module
from eligo.deciding.effort import Effort, Stuck
from eligo.deciding.elimination import Elimination, TooWideError, eliminate, exact_maxima
from eligo.deciding.improving import best_improved
from eligo.deciding.limits import ITEMS_IN_A_HURRY, MOST_FOR_AREA
from eligo.deciding.moves import frontier, guided, largest_area
from eligo.deciding.orders import heuristics, nonsinks_of, release_order
from eligo.deciding.outcomes import BOUNDED, IMPOSSIBLE, OPTIMAL, cumulative
from eligo.deciding.probing import probed, probes_proof
from eligo.deciding.seriesparallel import largest_area_order
from eligo.rows import Ints, gathered, places
from eligo.theory.profiles import Profile
from eligo.theory.subsets import MOST_ITEMS_FOR_AREA, Subsets


def module_dag(dag: Dag, module: Module) -> Dag:
    """A module as a dag by itself: its tasks, numbered first, and what they render; the earlier modules are executed."""
    place = places(len(dag), module.tasks)
    others = module.renders[place[module.renders] < 0]
    place[others] = len(module.tasks) + np.arange(len(others))
    rendered = np.zeros(len(dag), np.bool_)
    rendered[module.renders] = True
    heads, degree = gathered(dag.child_ptr, dag.child, module.tasks)
    tails = np.repeat(module.tasks, degree)
    inside = rendered[heads]
    members = np.concatenate([module.tasks, others])
    return Dag.from_checked(len(members), place[tails[inside]], place[heads[inside]], lambda: dag.named(members))


@dataclass(frozen=True, eq=False)
class Solved:
    """A module by itself: Mmod (`exact`) or a bound of it, an order, whether that attains it, and the best area."""

    order: Ints
    maxima: Profile
    exact: bool
    verdict: str
    area_bound: int
    proof: dict[str, Any]


def solve_modules(dags: Sequence[Dag], ceilings: Sequence[Profile], effort: Effort) -> list[Solved]:
    """Decide modules: every one with a share of the work, so that none starves the others, then those that need more."""
    share = effort.work.left / (2 * max(1, len(dags)))
    few = replace(effort, widths=effort.widths[:1], area_widths=effort.area_widths[:1])
    solved = [
        solve_module(dag, ceiling, replace(few, work=effort.work.part(share)))
        for dag, ceiling in zip(dags, ceilings, strict=True)
    ]
    lost = {i: s.area_bound - int(cumulative(dags[i], s.order).sum()) for i, s in enumerate(solved)}
    for i in sorted(lost, key=lambda i: -lost[i]):
        if (lost[i] or solved[i].verdict == BOUNDED) and not effort.work.over():
            again = solve_module(dags[i], ceilings[i], effort, solved[i].order)
            solved[i] = min(again, solved[i], key=lambda s: (s.area_bound, s.verdict == BOUNDED))
    return solved


def solve_module(dag: Dag, ceiling: Profile, effort: Effort, known: Ints | None = None) -> Solved:
    """Decide a module: by enumeration where it is small, else by elimination and the search for moves.

    *known* is the best order that was found before, if any was.
    """
    hurried = effort.work.over()
    greedy = nonsinks_of(dag, release_order(dag))
    if np.array_equal(cumulative(dag, greedy), ceiling):
        return Solved(greedy, ceiling, True, OPTIMAL, int(ceiling.sum()), {"rule": "bound"})
    subsets = Subsets.of(dag, min(ITEMS_IN_A_HURRY, MOST_ITEMS_FOR_AREA) if hurried else MOST_ITEMS_FOR_AREA)
    if subsets is not None:
        return _enumerated(dag, subsets)
    maxima, how = maxima_within(dag, effort)
    if maxima is None:
        return _unsolved(dag, ceiling, effort, known)
    return _searched(dag, maxima, effort, known, {"rule": "elimination", **how})


def _unsolved(dag: Dag, ceiling: Profile, effort: Effort, known: Ints | None) -> Solved:
    """A module whose maxima are out of reach: probes lower the ceiling, and series-parallel ones have a largest area."""
    bound, probes = probed(dag, ceiling, effort.work.part(effort.probes))
    proof: dict[str, Any] = {"rule": "bound"} | ({"probes": probes_proof(dag, probes)} if probes else {})
    largest = largest_area_order(dag)
    order = _best_found(dag, effort, known) if largest is None else largest
    area = int(cumulative(dag, order).sum())
    proof |= {} if largest is None else {"area": area}
    area_bound = int(bound.sum()) if largest is None else area
    return Solved(order, bound, False, _verdict(dag, order, bound), area_bound, proof)


def maxima_within(dag: Dag, effort: Effort) -> tuple[Profile | None, dict[str, Any]]:
    """M(t) where not too much work is in it, and how: the order of elimination and the interchangeable tasks."""
    work = effort.work.part(effort.maxima)
    if work.over():
        return None, {}
    try:
        plan = eliminate(dag, work)
        return exact_maxima(dag, work, plan), _how(dag, plan)
    except TooWideError:
        return None, {}


def _how(dag: Dag, plan: Elimination) -> dict[str, Any]:
    alike = [{"tasks": dag.named(a.members), "swaps": [_moved(dag, image) for image in a.swaps]} for a in plan.alike]
    return {"elimination": {"order": dag.named(plan.order), "alike": alike}}


def _moved(dag: Dag, image: Ints) -> list[tuple[str, str]]:
    """The tasks that a map moves, each with where it goes."""
    moved = np.flatnonzero(image != np.arange(len(dag)))
    return list(zip(dag.named(moved), dag.named(image[moved]), strict=True))


def _enumerated(dag: Dag, subsets: Subsets) -> Solved:
    found, optimal = subsets.best_order()
    order, verdict = np.array(found, np.int32), OPTIMAL if optimal else IMPOSSIBLE
    return Solved(order, subsets.maxima, True, verdict, int(cumulative(dag, order).sum()), {"rule": "exact"})


def _verdict(dag: Dag, order: Ints, bound: Profile) -> str:
    return OPTIMAL if np.array_equal(cumulative(dag, order), bound) else BOUNDED


def _searched(dag: Dag, maxima: Profile, effort: Effort, known: Ints | None, proof: dict[str, Any]) -> Solved:
    """Look for an order that attains the maxima; where there is none, for one of largest area."""
    found = guided(dag, maxima)
    if found is not None:
        return Solved(np.array(found, np.int32), maxima, True, OPTIMAL, int(maxima.sum()), proof)
    verdict, work = BOUNDED, effort.work.part(effort.search)
    for width in effort.widths:
        search = frontier(dag, maxima, width, work)
        if search.order is not None:
            return Solved(np.array(search.order, np.int32), maxima, True, OPTIMAL, int(maxima.sum()), proof)
        if search.refuted:
            verdict, proof = IMPOSSIBLE, proof | {"refuted": True}
            if search.stuck is not None:
                effort.stuck[dag.tasks] = Stuck(maxima, search.stuck.executed, search.stuck.rendered)
            break
    order, proved = _largest(dag, maxima, _best_found(dag, effort, known), effort)
    area = int(cumulative(dag, order).sum())
    bound = area if proved else int(maxima.sum())
    return Solved(order, maxima, True, verdict, bound, proof | ({"area": area} if proved else {}))


def _best_found(dag: Dag, effort: Effort, known: Ints | None) -> Ints:
    """The order of largest area among the heuristics, improved; half of the work is left to the modules that follow."""
    if known is not None:
        return known
    return best_improved(dag, heuristics(dag, effort.work.over()), effort.improving.part(effort.improving.left / 2))[1]


def _largest(dag: Dag, maxima: Profile, order: Ints, effort: Effort) -> tuple[Ints, bool]:
    """Improve an order by wider and wider searches until nothing better is left or the work is over."""
    largest = largest_area_order(dag)
    if largest is not None:
        return largest, True
    work = effort.work.part(effort.area)
    for width in effort.area_widths if len(maxima) <= MOST_FOR_AREA else ():
        found = largest_area(dag, maxima, int(cumulative(dag, order).sum()), width, work)
        order = order if found.order is None else np.array(found.order, np.int32)
        if found.proved:
            return order, True
    return order, False
