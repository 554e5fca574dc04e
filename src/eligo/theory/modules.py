"""Modules: the decision taken apart at the corners of the concave hull.

At a strict corner t of the hull of M the best set of size t is unique, so every IC-optimal schedule passes through it, and
some schedule of largest area does. The modules between corners are the densest closed sets of `theory.bounds`. With Mmod(t)
the maximum over sets that agree with the corners, found for each module by itself:

* the dag admits exactly when every module admits with respect to Mmod and Mmod = M everywhere;
* a module that does not admit, or one t with M(t) > Mmod(t), proves that the dag does not;
* no schedule has a larger area than the sum of Mmod.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints
from eligo.theory.bounds import Module
from eligo.theory.elimination import MOST_STATES, TooWideError, elimination_order, exact_maxima
from eligo.theory.moves import frontier, largest_area
from eligo.theory.orders import candidate_orders, nonsinks_of
from eligo.theory.outcomes import BOUNDED, IMPOSSIBLE, OPTIMAL, cumulative
from eligo.theory.profiles import Profile
from eligo.theory.subsets import MOST_ITEMS_FOR_AREA, Subsets


def module_dag(dag: Dag, module: Module) -> Dag:
    """A module as a dag by itself: its tasks, numbered first, and what they render; the earlier modules are executed."""
    place = np.full(len(dag), -1, np.int32)
    place[module.tasks] = np.arange(len(module.tasks))
    others = module.renders[place[module.renders] < 0]
    place[others] = len(module.tasks) + np.arange(len(others))
    rendered = np.zeros(len(dag), np.bool_)
    rendered[module.renders] = True
    ptr = dag.child_ptr
    heads = np.concatenate([dag.child[ptr[u] : ptr[u + 1]] for u in module.tasks.tolist()])
    tails = np.repeat(module.tasks, dag.outdegree[module.tasks])
    inside = rendered[heads]
    members = np.concatenate([module.tasks, others])
    return Dag.from_checked(len(members), place[tails[inside]], place[heads[inside]], lambda: dag.named(members))


@dataclass(frozen=True)
class Effort:
    """How long to look: seconds for one exact dynamic program, one search for an optimal order, one for a largest area."""

    maxima: float
    search: float
    area: float
    widths: tuple[int, ...] = (1, 30, 3_000)
    area_widths: tuple[int, ...] = (30, 30_000)


EFFORTS = {
    "quick": Effort(0.0, 0.0, 0.0),
    "normal": Effort(6.0, 5.0, 3.0),
    "thorough": Effort(120.0, 120.0, 120.0, (1, 30, 3_000, 300_000), (30, 3_000, 1_000_000)),
}


@dataclass(frozen=True, eq=False)
class Solved:
    """A module by itself: Mmod (`exact`) or a bound of it, an order, whether that attains it, and the best area."""

    order: Ints
    maxima: Profile
    exact: bool
    verdict: str
    area_bound: int
    proof: dict[str, Any]


def solve_module(dag: Dag, ceiling: Profile, effort: Effort) -> Solved:
    """Decide a module: by enumeration where it is small, else by elimination and the search for moves."""
    subsets = Subsets.of(dag, MOST_ITEMS_FOR_AREA)
    if subsets is not None:
        return _enumerated(dag, subsets)
    sequence, widest = elimination_order(dag)
    try:
        if widest > MOST_STATES or not effort.maxima:
            raise TooWideError
        maxima = exact_maxima(dag, effort.maxima, sequence)
    except TooWideError:
        order = best_heuristic(dag)
        return Solved(order, ceiling, False, _verdict(dag, order, ceiling), int(ceiling.sum()), {"rule": "bound"})
    proof = {"rule": "elimination", "elimination": dag.named(sequence)}
    return _searched(dag, maxima, effort, proof)


def _enumerated(dag: Dag, subsets: Subsets) -> Solved:
    found = subsets.optimal_order()
    order = np.array(subsets.largest_area_order() if found is None else found, np.int32)
    verdict = OPTIMAL if found is not None else IMPOSSIBLE
    return Solved(order, subsets.maxima, True, verdict, int(cumulative(dag, order).sum()), {"rule": "exact"})


def _verdict(dag: Dag, order: Ints, bound: Profile) -> str:
    return OPTIMAL if np.array_equal(cumulative(dag, order), bound) else BOUNDED


def best_heuristic(dag: Dag) -> Ints:
    """The order of largest area among the heuristics."""
    orders = (nonsinks_of(dag, order) for _, order in candidate_orders(dag, (), ()))
    return max(orders, key=lambda order: int(cumulative(dag, order).sum()))


def _searched(dag: Dag, maxima: Profile, effort: Effort, proof: dict[str, Any]) -> Solved:
    """Look for an order that attains the maxima; where there is none, for one of largest area."""
    deadline = time.monotonic() + effort.search
    verdict = BOUNDED
    for width in effort.widths:
        search = frontier(dag, maxima, width, deadline)
        if search.order is not None:
            return Solved(np.array(search.order, np.int32), maxima, True, OPTIMAL, int(maxima.sum()), proof)
        if search.refuted:
            verdict = IMPOSSIBLE
            break
    order, proved = _largest(dag, maxima, best_heuristic(dag), effort)
    area = int(cumulative(dag, order).sum())
    bound = area if proved else int(maxima.sum())
    return Solved(order, maxima, True, verdict, bound, proof | ({"area": area} if proved else {}))


def _largest(dag: Dag, maxima: Profile, order: Ints, effort: Effort) -> tuple[Ints, bool]:
    """Improve an order by wider and wider searches until nothing better is left or time is up."""
    deadline = time.monotonic() + effort.area
    for width in effort.area_widths:
        found = largest_area(dag, maxima, int(cumulative(dag, order).sum()), width, deadline)
        order = order if found.order is None else np.array(found.order, np.int32)
        if found.proved:
            return order, True
    return order, False
