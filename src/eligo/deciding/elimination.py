"""Exact M(t) of dags of small width, by dynamic programming over a tree decomposition.

A task is in state 0 (not eligible), 1 (eligible) or 2 (executed); a source is never in state 0, a sink never in state 2. An
arc u -> v allows state(v) >= 1 only if u is executed. The value of an assignment is the number of nonsources in state 1 or 2,
and T the number of executed nonsinks; M(t) is the largest value with T = t. (That a task *may* be counted as not eligible
though its parents are executed changes no maximum.)

Tasks are eliminated one by one. Eliminating one joins all tables that mention it, adding values and convolving along T, and
keeps for each combination of its neighbours' states the best. What this costs depends on the number of neighbours, so the
order takes, again and again, the task whose neighbours have the fewest combinations of states. Of tasks that are
interchangeable only combinations that never rise along a fixed order are kept: see `theory.symmetry`.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.limits import FEW_STATES, LARGEST_BAG, MOST_ENTRIES, MOST_STATES
from eligo.deciding.symmetry import Alike, interchangeable
from eligo.deciding.work import Work
from eligo.kernels import tables
from eligo.theory.profiles import Profile

NEVER = -(1 << 20)  # no assignment has these states and this T
# what a neighbour of a task to be eliminated, a row of a join and a cell of it cost, in units of work
NEIGHBOUR, ROW, CELL = 100, 100, 1
WIDEST_SCOPE = 39  # tasks in a table: three states each fit one 64-bit number


class TooWideError(Exception):
    """The tables would be too large, or the work is over."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """For each row, the states of the tasks in scope, the largest value for T = 0, 1, ... of what was eliminated."""

    scope: tuple[int, ...]
    states: NDArray[np.int8]
    values: NDArray[np.int32]


class Elimination(NamedTuple):
    """An order in which to eliminate the tasks, its largest bag, and sets of interchangeable tasks to be kept sorted."""

    order: list[int]
    bag: list[int]
    alike: list[Alike]

    def states(self, dag: Dag) -> float:
        """How many combinations of states the largest bag has at most."""
        kinds = _all_states(dag)
        combinations, seen = 1.0, set[int]()
        for members, _ in self.alike:
            inside = [v for v in members if v in self.bag]
            if inside:
                combinations *= math.comb(len(inside) + len(kinds[inside[0]]) - 1, len(kinds[inside[0]]) - 1)
                seen.update(inside)
        return combinations * math.prod(float(len(kinds[v])) for v in self.bag if v not in seen)


def eliminate(dag: Dag, work: Work | None = None) -> Elimination:
    """A good order, by the greedy rule; where its largest bag is large, with what is interchangeable in it.

    >>> chain = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d")])
    >>> eliminate(chain).order, eliminate(chain).states(chain)
    ([0, 3, 1, 2], 9.0)
    """
    work = work or Work()
    order, bag = _greedy_order(dag, work)
    found = Elimination(order, bag, [])
    if found.states(dag) <= FEW_STATES:
        return found
    return found._replace(alike=interchangeable(dag, bag, work))


def _greedy_order(dag: Dag, work: Work) -> tuple[list[int], list[int]]:
    """Again and again the task whose bag has the fewest combinations of states, and the largest bag met."""
    near: list[set[int]] = [set() for _ in range(len(dag))]
    for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True):
        near[u].add(v)
        near[v].add(u)
    weight = [math.log(len(states)) for states in _all_states(dag)]
    cost = [weight[v] + sum(weight[u] for u in near[v]) for v in range(len(dag))]
    heap = [(c, v) for v, c in enumerate(cost) if near[v]]  # isolated tasks change nothing
    heapify(heap)
    order: list[int] = []
    done = [False] * len(dag)
    widest, bag = 0.0, list[int]()
    while heap:
        known, v = heappop(heap)
        if done[v] or known > cost[v] + 1e-9:
            continue
        if known < cost[v] - 1e-9:
            heappush(heap, (cost[v], v))
            continue
        work.spend(NEIGHBOUR * len(near[v]) ** 2)
        if len(near[v]) > LARGEST_BAG or work.over():
            raise TooWideError(f"a bag has {len(near[v]) + 1} tasks")
        done[v] = True
        order.append(v)
        if known > widest + 1e-9:
            widest, bag = known, [v, *near[v]]
        for u in _connect(v, near, cost, weight):
            heappush(heap, (cost[u], u))
    return order, bag


def _connect(v: int, near: list[set[int]], cost: list[float], weight: list[float]) -> set[int]:
    """Take v out and make its neighbours neighbours of one another; returns them."""
    around = near[v]
    for u in around:
        near[u].discard(v)
        cost[u] -= weight[v]
        fresh = around - near[u] - {u}
        near[u] |= fresh
        cost[u] += sum(weight[w] for w in fresh)
    near[v] = set()
    return around


def _all_states(dag: Dag) -> list[tuple[int, ...]]:
    sources, sinks = (dag.indegree == 0).tolist(), (dag.outdegree == 0).tolist()
    kinds = {(True, True): (1,), (True, False): (1, 2), (False, False): (0, 1, 2), (False, True): (0, 1)}
    return [kinds[source, sink] for source, sink in zip(sources, sinks, strict=True)]


def exact_maxima(dag: Dag, work: Work | None = None, plan: Elimination | None = None) -> Profile:
    """M(0..k), exactly; raises `TooWideError` where the tables grow too large or the work is over. Needs a skeleton.

    >>> exact_maxima(Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])).tolist()
    [0, 3, 4, 5, 6]
    """
    work = work or Work()
    plan = eliminate(dag, work) if plan is None else plan
    if plan.states(dag) > MOST_STATES:
        raise TooWideError(f"the largest bag has {plan.states(dag):.3g} combinations of states")
    return _Elimination(dag, plan, work).maxima()


class _Elimination:
    def __init__(self, dag: Dag, plan: Elimination, work: Work) -> None:
        self.dag, self.order, self.work = dag, plan.order, work
        self.place = [0] * len(dag)
        for i, v in enumerate(plan.order):
            self.place[v] = i
        self.rank = {v: (group, i) for group, (members, _) in enumerate(plan.alike) for i, v in enumerate(members)}
        self.states = _all_states(dag)

    def maxima(self) -> Profile:
        buckets: dict[int, list[Entries]] = defaultdict(list)
        total = Entries((), np.zeros((1, 0), np.int8), np.zeros((1, 1), np.int32))
        for v in self.order:
            table = self._eliminated(v, buckets.pop(v, []))
            if table.scope:
                buckets[table.scope[0]].append(table)
            else:
                total = self._joined(total, table)
        best: Profile = total.values[0].astype(np.int64)
        return best

    def _eliminated(self, v: int, waiting: list[Entries]) -> Entries:
        """Join everything that mentions v, and keep the best over its states."""
        current = self._own(v)
        for arc in self._arc_tables(v):
            current = self._joined(current, arc)
        for table in sorted(waiting, key=lambda t: t.values.shape[1]):
            current = self._joined(current, table)
        return _best_over_first(current)

    def _own(self, v: int) -> Entries:
        states = np.array(self.states[v], np.int8).reshape(-1, 1)
        worth = (states[:, 0] >= 1) & (self.dag.indegree[v] > 0)
        if not self.dag.outdegree[v]:
            return Entries((v,), states, worth.astype(np.int32).reshape(-1, 1))
        values = np.full((len(states), 2), NEVER, np.int32)
        values[np.arange(len(states)), (states[:, 0] == 2).astype(np.intp)] = worth
        return Entries((v,), states, values)

    def _arc_tables(self, v: int) -> Iterator[Entries]:
        """The arcs between v and those not yet eliminated, as tables of the allowed pairs."""
        dag = self.dag
        for w in dag.children_of(v).tolist():
            if self.place[w] > self.place[v]:
                yield self._pairs((v, w), [(a, b) for a in self.states[v] for b in self.states[w] if b == 0 or a == 2])
        for u in dag.parents_of(v).tolist():
            if self.place[u] > self.place[v]:
                yield self._pairs((v, u), [(b, a) for a in self.states[u] for b in self.states[v] if b == 0 or a == 2])

    def _pairs(self, scope: tuple[int, int], allowed: list[tuple[int, int]]) -> Entries:
        return Entries(scope, np.array(allowed, np.int8).reshape(-1, 2), np.zeros((len(allowed), 1), np.int32))

    def _joined(self, one: Entries, two: Entries) -> Entries:
        """All pairs of rows that agree on the tasks both mention, values added along T."""
        left, right = _matches(one, two)
        scope = tuple(sorted({*one.scope, *two.scope}, key=self.place.__getitem__))
        columns = [
            one.states[left, one.scope.index(v)] if v in one.scope else two.states[right, two.scope.index(v)]
            for v in scope
        ]
        states = np.stack(columns, axis=1) if columns else np.zeros((len(left), 0), np.int8)
        kept = self._sorted_rows(scope, states)
        if kept is not None:
            left, right, states = left[kept], right[kept], states[kept]
        length = one.values.shape[1] + two.values.shape[1] - 1
        if len(scope) > WIDEST_SCOPE:
            raise TooWideError(f"{len(scope)} tasks are in one table")
        if len(left) * length > MOST_ENTRIES:
            raise TooWideError(f"a table would have {len(left) * length:,} cells")
        self.work.spend(ROW * len(left) + CELL * len(left) * one.values.shape[1] * two.values.shape[1])
        if self.work.over():
            raise TooWideError("the work is over")
        return Entries(scope, states, _joined_values(one.values, two.values, left, right))

    def _sorted_rows(self, scope: tuple[int, ...], states: NDArray[np.int8]) -> NDArray[np.bool_] | None:
        """The rows in which the states of interchangeable tasks never rise; None where no two are in scope."""
        ranked = sorted((*self.rank[v], column) for column, v in enumerate(scope) if v in self.rank)
        kept: NDArray[np.bool_] | None = None
        for (group, _, a), (other, _, b) in pairwise(ranked):
            if group == other:
                falling = states[:, a] >= states[:, b]
                kept = falling if kept is None else kept & falling
        return kept


def _matches(one: Entries, two: Entries) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    shared = [v for v in one.scope if v in two.scope]
    keys = [_codes(table.states[:, [table.scope.index(v) for v in shared]]) for table in (one, two)]
    order = np.argsort(keys[1], kind="stable")
    ranked = keys[1][order]
    begin, end = np.searchsorted(ranked, keys[0], "left"), np.searchsorted(ranked, keys[0], "right")
    counts = end - begin
    left = np.repeat(np.arange(len(keys[0])), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return left, order[np.repeat(begin, counts) + within]


def _codes(states: NDArray[np.int8]) -> NDArray[np.int64]:
    """Each row of states as one number."""
    return states.astype(np.int64) @ (3 ** np.arange(states.shape[1], dtype=np.int64))


def _joined_values(
    one: NDArray[np.int32], two: NDArray[np.int32], left: NDArray[np.intp], right: NDArray[np.intp]
) -> NDArray[np.int32]:
    """The max-plus convolutions of the matching rows."""
    if one.shape[1] > two.shape[1]:
        one, two, left, right = two, one, right, left
    out = np.empty((len(left), one.shape[1] + two.shape[1] - 1), np.int32)
    tables.join_rows(one, two, left.astype(np.int32), right.astype(np.int32), NEVER, out)
    return out


def _best_over_first(table: Entries) -> Entries:
    """Forget the first task in scope: of rows that agree on the others, the best for each T."""
    states = table.states[:, 1:]
    codes = _codes(states)
    order = np.argsort(codes, kind="stable").astype(np.int32)
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    begins = np.append(firsts, len(order)).astype(np.int32)
    values = np.empty((len(firsts), table.values.shape[1]), np.int32)
    tables.best_rows(table.values, order, begins, values)
    return Entries(table.scope[1:], states[order[firsts]], values)
