"""Exact M(t) of dags of small width, by dynamic programming over a tree decomposition.

A task is in state 0 (not eligible), 1 (eligible) or 2 (executed); a source is never in state 0, a sink never in state 2. An
arc u -> v allows state(v) >= 1 only if u is executed. The value of an assignment is the number of nonsources in state 1 or 2,
and T the number of executed nonsinks; M(t) is the largest value with T = t. (That a task *may* be counted as not eligible
though its parents are executed changes no maximum.)

Tasks are eliminated one by one. Eliminating one joins all tables that mention it, adding values and convolving along T, and
keeps for each combination of its neighbours' states the best. What this costs depends on the number of neighbours, so the
order takes, again and again, the task whose neighbours have the fewest combinations of states. Of tasks that are
interchangeable only combinations that never rise along a fixed order are kept: see `symmetry`. All joins are planned before
the first is done, so that what would take too much is given up at once: see `joining`.

Where fewer tasks are rendered than executed, a table is shorter the other way round: T is then the number of nonsources in
state 1 or 2, the value that of nonsinks not in state 2, and M(t) the largest T for which at least k - t of the k nonsinks
can wait.
"""

import math
from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.deciding.joining import Cell, Frame, Planner, StateRange, StateTable, TooWideError, perform
from eligo.deciding.limits import FEW_STATES, LARGEST_BAG, MOST_STATES, TABLE_BYTES
from eligo.deciding.symmetry import Alike, Twins
from eligo.deciding.work import Work
from eligo.theory.profiles import Profile

__all__ = ["Elimination", "TooWideError", "eliminate", "exact_maxima"]

NEIGHBOUR = 100  # units of work for each two neighbours of a task to be eliminated
WEIGHTS = {1: 0, 2: 1_000_000, 3: 1_584_963}  # of a task by the number of its states: logarithms, as whole numbers
SYMMETRY = 1 / 4  # of the work may go into looking for it
MOST_SMALL = (1 << 15) - 1  # values that numbers of 16 bits hold
FEW = WEIGHTS[2] * math.log2(FEW_STATES)


class Elimination(NamedTuple):
    """An order in which to eliminate the tasks, its large bags, the largest first, and sets of tasks to be kept sorted."""

    order: list[int]
    bags: list[list[int]]
    alike: list[Alike]


def eliminate(dag: Dag, work: Work | None = None) -> Elimination:
    """A good order, by the greedy rule; where it has large bags, with what is interchangeable in them.

    >>> chain = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d")])
    >>> eliminate(chain).order
    [0, 1, 3, 2]
    """
    work = work or Work()
    greedy = _Greedy(dag, work)
    greedy.run()
    bags = greedy.bags
    return Elimination(greedy.in_depth(), bags, _alike(dag, bags, work.part(work.left * SYMMETRY)) if bags else [])


def _alike(dag: Dag, bags: list[list[int]], work: Work) -> list[Alike]:
    """What is interchangeable in these bags; raises `TooWideError` where one is too large even if all that looks alike is."""
    twins, kinds = Twins(dag, work), _kinds(dag)
    for bag in bags:
        looks = twins.classes(bag)
        states = math.prod(math.comb(len(c) + kinds[c[0]].states - 1, len(c)) for c in looks)
        if states > MOST_STATES:
            raise TooWideError(f"a bag has {states:.3g} combinations of states")
    for bag in bags:
        if not work.over():
            twins.look(bag)
    return twins.found


class _Greedy:
    """Again and again the task whose bag has the fewest combinations of states."""

    def __init__(self, dag: Dag, work: Work) -> None:
        self.work = work
        _, self.near = _neighbours(dag)
        self.weight = [WEIGHTS[kind.states] for kind in _kinds(dag)]
        self.cost = [self.weight[v] + sum(self.weight[u] for u in self.near[v]) for v in range(len(dag))]
        #: what is eliminated, with its neighbours at that time
        self.around: dict[int, set[int]] = {}

    def run(self) -> None:
        """Eliminate all tasks; isolated ones change nothing."""
        cost, near = self.cost, self.near
        heap = [(c, v) for v, c in enumerate(cost) if near[v]]
        heapify(heap)
        while heap:
            known, v = heappop(heap)
            if v in self.around or known > cost[v]:
                continue
            if known < cost[v]:
                heappush(heap, (cost[v], v))
                continue
            self.work.spend(NEIGHBOUR * len(near[v]) ** 2)
            if len(near[v]) > LARGEST_BAG or self.work.over():
                raise TooWideError(f"a bag has {len(near[v]) + 1} tasks")
            for u in self._take_out(v):
                heappush(heap, (cost[u], u))

    def _take_out(self, v: int) -> set[int]:
        """Take v out and make its neighbours neighbours of one another; returns them."""
        around = self.around[v] = self.near[v]
        for u in around:
            own = self.near[u]
            own.discard(v)
            fresh = around - own - {u}
            own |= fresh
            self.cost[u] += sum(self.weight[w] for w in fresh) - self.weight[v]
        return around

    @property
    def bags(self) -> list[list[int]]:
        """The bags with many combinations of states, the largest first."""
        large = [(-self.cost[v], v) for v in self.around if self.cost[v] > FEW]
        return [[v, *sorted(self.around[v])] for _, v in sorted(large)]

    def in_depth(self) -> list[int]:
        """The same bags in another order: each task right after all that lead to it, so that few tables wait at a time."""
        place = {v: i for i, v in enumerate(self.around)}
        below: dict[int, list[int]] = defaultdict(list)
        most: dict[int, int] = {}
        roots = []
        for v, around in self.around.items():
            most[v] = max([self.cost[v], *(most[u] for u in below[v])])
            if around:
                below[min(around, key=place.__getitem__)].append(v)
            else:
                roots.append(v)
        order: list[int] = []
        stack = roots
        while stack:
            v = stack.pop()
            order.append(v)
            stack += sorted(below[v], key=lambda u: (-most[u], place[u]))
        return order[::-1]


def _neighbours(dag: Dag) -> tuple[list[set[int]], list[set[int]]]:
    """Each task's children, and its children and parents."""
    children, near = ([set[int]() for _ in range(len(dag))] for _ in range(2))
    for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True):
        children[u].add(v)
        near[u].add(v)
        near[v].add(u)
    return children, near


def _kinds(dag: Dag) -> list[StateRange]:
    sources, sinks = (dag.indegree == 0).tolist(), (dag.outdegree == 0).tolist()
    return [StateRange(int(source), 3 - source - sink) for source, sink in zip(sources, sinks, strict=True)]


def exact_maxima(dag: Dag, work: Work | None = None, plan: Elimination | None = None) -> Profile:
    """M(0..k), exactly; raises `TooWideError` where there is not the work or the memory for it. Needs a skeleton.

    >>> exact_maxima(Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])).tolist()
    [0, 3, 4, 5, 6]
    """
    work = work or Work(memory=TABLE_BYTES)
    plan = eliminate(dag, work) if plan is None else plan
    planner, total = planned(dag, plan, work)
    best: Profile = perform(planner, total.rows, work).astype(np.int64)
    return _turned(best) if planner.turned else best


def _turned(waiting: Profile) -> Profile:
    """M(0..k) from how many of the k tasks can wait at most when 0, 1, ... are rendered, which never rises."""
    least = waiting[0] - waiting
    return np.searchsorted(least, np.arange(waiting[0] + 1), side="right").astype(np.int64) - 1


def planned(dag: Dag, plan: Elimination, work: Work) -> tuple[Planner, StateTable]:
    """All joins, planned, and what the last of them gives: raises `TooWideError` where there is too much in them."""
    place = [0] * len(dag)
    for i, v in enumerate(plan.order):
        place[v] = i
    children, near = _neighbours(dag)
    ranks = {v: (group, i) for group, (members, _) in enumerate(plan.alike) for i, v in enumerate(members)}
    executed, rendered = int((dag.outdegree > 0).sum()), int((dag.indegree > 0).sum())
    cell, turned = _cell(max(executed, rendered)), rendered < executed
    planner = Planner(Frame(_kinds(dag), place, children, ranks), work, work.memory, cell, turned)
    waiting: dict[int, list[StateTable]] = defaultdict(list)
    for i, v in enumerate(plan.order):
        table = planner.joined(waiting.pop(v, []), v, (u for u in near[v] if place[u] > i))
        waiting[table.scope[0] if table.scope else -1].append(table)
    total = planner.joined(waiting.pop(-1, []))
    planner.check()
    return planner, total


def _cell(most: int) -> Cell:
    """The smallest numbers that hold values so large, and a negative one that stays so with all values added to it."""
    return np.int16 if most <= MOST_SMALL else np.int32
