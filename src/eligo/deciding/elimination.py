"""Exact M(t) of dags of small width, by dynamic programming over a tree decomposition.

A task has up to two *roles*: to be executed, if it is a nonsink, and to be rendered, if it is a nonsource. A role is played
or not. That a task is rendered implies that its parents are executed; that it is executed implies that it is rendered. The
value of an assignment is the number of tasks rendered, and T the number of those executed; M(t) is the largest value with
T = t. (That a task *may* be counted as not rendered though its parents are executed changes no maximum.)

Roles are eliminated one by one. Eliminating one joins all tables that mention it, adding values and convolving along T, and
keeps for each combination of its neighbours the best. What this costs depends on the number of neighbours, so the order
takes, again and again, the role with the fewest. That the two roles of a task are apart keeps tables small: one is often
gone before the other has many neighbours. Of tasks that are interchangeable only combinations that never rise along a fixed
order are kept: see `symmetry`. All joins are planned before the first is done, so that what would take too much is given up
at once: see `joining`.

Where fewer tasks are rendered than executed, a table is shorter the other way round: T is then the number of tasks rendered,
the value that of tasks not executed, and M(t) the largest T for which at least k - t of the k nonsinks can wait.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.deciding.joining import Cell, Frame, Planner, StateTable, TooWideError, perform
from eligo.deciding.limits import FEW_STATES, LARGEST_BAG, MOST_STATES, TABLE_BYTES
from eligo.deciding.symmetry import Alike, Twins
from eligo.deciding.work import Work
from eligo.theory.profiles import Profile

__all__ = ["Elimination", "TooWideError", "eliminate", "exact_maxima", "roles_of"]

TAKEN, NEIGHBOUR = 5_000, 150  # units of work for a role to be eliminated, and for each two neighbours of it
SYMMETRY = 1 / 4  # of the work may go into looking for it
MOST_SMALL = (1 << 15) - 1  # values that numbers of 16 bits hold
FEW = math.log2(FEW_STATES)


class Elimination(NamedTuple):
    """An order in which to eliminate the roles, the tasks of its large bags, the largest first, and sets to be kept sorted.

    Of n tasks, number v as a role is to be executed for task v, and n + v to be rendered.
    """

    order: list[int]
    bags: list[list[int]]
    alike: list[Alike]


def eliminate(dag: Dag, work: Work | None = None, kept: Sequence[int] = ()) -> Elimination:
    """A good order, by the greedy rule; where it has large bags, with what is interchangeable in them.

    That the tasks *kept* are executed is not eliminated, and nothing is interchangeable with them there.

    >>> chain = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d")])
    >>> eliminate(chain).order
    [0, 5, 1, 6, 2, 7]
    """
    work = work or Work()
    greedy = _Greedy(dag, work, kept)
    greedy.run()
    bags = [] if kept else greedy.bags
    return Elimination(greedy.in_depth(), bags, _alike(dag, bags, work.part(work.left * SYMMETRY)) if bags else [])


def roles_of(dag: Dag) -> list[int]:
    """The roles of all tasks: those who are executed, then those who are rendered.

    >>> roles_of(Dag.from_arcs([("a", "b"), ("b", "c")]))
    [0, 1, 4, 5]
    """
    return [*np.flatnonzero(dag.outdegree > 0).tolist(), *(len(dag) + np.flatnonzero(dag.indegree > 0)).tolist()]


def _alike(dag: Dag, bags: list[list[int]], work: Work) -> list[Alike]:
    """What is interchangeable in these bags; raises `TooWideError` where one is too large even if all that looks alike is."""
    twins = Twins(dag, work)
    tasks = [[v % len(dag) for v in bag] for bag in bags]
    for own in tasks:
        looks = twins.classes(set(own))
        roles = [max(own.count(v) for v in c) for c in looks]
        states = math.prod(math.comb(len(c) + many, many) for c, many in zip(looks, roles, strict=True))
        if states > MOST_STATES:
            raise TooWideError(f"a bag has {states:.3g} combinations of states")
    for own in tasks:
        if not work.over():
            twins.look(sorted(set(own)))
    return twins.found


class _Greedy:
    """Again and again the role with the fewest neighbours, but for those that are kept."""

    def __init__(self, dag: Dag, work: Work, kept: Sequence[int]) -> None:
        self.work, self.kept = work, frozenset(kept)
        _, self.near = _neighbours(dag)
        #: what is eliminated, with its neighbours at that time
        self.around: dict[int, set[int]] = {}

    def run(self) -> None:
        """Eliminate all roles."""
        near = self.near
        heap = [(len(own), v) for v, own in enumerate(near) if own and v not in self.kept]
        heapify(heap)
        while heap:
            known, v = heappop(heap)
            if v in self.around or known > len(near[v]):
                continue
            if known < len(near[v]):
                heappush(heap, (len(near[v]), v))
                continue
            self.work.spend(TAKEN + NEIGHBOUR * len(near[v]) ** 2)
            if len(near[v]) > LARGEST_BAG or self.work.over():
                raise TooWideError(f"a bag has {len(near[v]) + 1} roles")
            for u in self._take_out(v):  # whoever has more now is met too soon, and put back
                if u not in self.kept:
                    heappush(heap, (len(near[u]), u))

    def _take_out(self, v: int) -> list[int]:
        """Take v out and make its neighbours neighbours of one another; returns those that have fewer now."""
        around, fewer = self.near[v], list[int]()
        self.around[v] = around
        for u in around:
            own = self.near[u]
            before = len(own)
            own |= around
            own -= {u, v}
            if len(own) < before:
                fewer.append(u)
        return fewer

    @property
    def bags(self) -> list[list[int]]:
        """The bags with many combinations, the largest first."""
        large = [(-len(around), v) for v, around in self.around.items() if len(around) + 1 > FEW]
        return [[v, *sorted(self.around[v])] for _, v in sorted(large)]

    def in_depth(self) -> list[int]:
        """The same bags in another order: each role right after all that lead to it, so that few tables wait at a time."""
        place = {v: i for i, v in enumerate(self.around)}
        below: dict[int, list[int]] = defaultdict(list)
        most: dict[int, int] = {}
        roots = []
        for v, around in self.around.items():
            most[v] = max([len(around), *(most[u] for u in below[v])])
            later = around - self.kept
            if later:
                below[min(later, key=place.__getitem__)].append(v)
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
    """The roles that each role implies, and these with those that imply it."""
    n = len(dag)
    implied, near = ([set[int]() for _ in range(2 * n)] for _ in range(2))
    inner = np.flatnonzero((dag.indegree > 0) & (dag.outdegree > 0))
    roles, others = np.concatenate([n + dag.child, inner]), np.concatenate([dag.tails, n + inner])
    for role, other in zip(roles.tolist(), others.tolist(), strict=True):
        implied[role].add(other)
        near[role].add(other)
        near[other].add(role)
    return implied, near


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
    """All joins, planned, and what the last of them gives: raises `TooWideError` where there is too much in them.

    Roles that are not in the order stay, in ascending order.
    """
    n, place = len(dag), [0] * (2 * len(dag))
    kept = sorted(set(roles_of(dag)) - set(plan.order))
    for i, v in enumerate([*plan.order, *kept]):
        place[v] = i
    implied, near = _neighbours(dag)
    ranks = {v: (group, i) for group, (members, _) in enumerate(plan.alike) for i, v in enumerate(members)}
    ranks |= {n + v: (len(plan.alike) + group, i) for v, (group, i) in ranks.items()}
    executed, rendered = int((dag.outdegree > 0).sum()), int((dag.indegree > 0).sum())
    cell, turned = _cell(max(executed, rendered)), rendered < executed and not kept
    planner = Planner(Frame(n, place, implied, ranks), work, work.memory, cell, turned)
    waiting: dict[int, list[StateTable]] = defaultdict(list)
    for i, v in enumerate(plan.order):
        table = planner.joined(waiting.pop(v, []), v, (u for u in near[v] if place[u] > i))
        waiting[table.scope[0] if table.scope else -1].append(table)
    total = planner.joined([table for tables in waiting.values() for table in tables])
    planner.check()
    return planner, total


def _cell(most: int) -> Cell:
    """The smallest numbers that hold values so large, and a negative one that stays so with all values added to it."""
    return np.int16 if most <= MOST_SMALL else np.int32
