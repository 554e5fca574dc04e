"""Orders for every dag: heuristics whose profile the bounds then judge.

Each gives the nonsinks of a dag in an order that is legal with all sinks last.

**Local search.** Tasks are moved as long as that increases the area. The area is largest when the steps at which tasks become
eligible have the least sum, so a move is judged by that sum alone, which it changes only between the old and the new place
of the moved tasks (`kernels.improving`). Nothing is random: the result depends on the order and the work only.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import Module
from eligo.deciding.effort import IMPROVED_AT_ONCE, MOST_FOR_MOVES, MOST_STARTS, REACHES
from eligo.deciding.work import Work, cumulative
from eligo.kernels import improving
from eligo.rows import Ints
from eligo.theory.eligibility import dual_schedule
from eligo.theory.profiles import Profile

#: the worth of a child that still misses 1, 2, 3 or 4 parents
RELEASES = np.array([0.0, 1.0, 1 / 4, 1 / 16, 1 / 64])
NO_RELEASES = np.zeros(1)
MANY_GROUPS = 200  # groups of waiting tasks, from which on groups inside others are not counted


def list_order(dag: Dag, static: NDArray[np.float64], gain: NDArray[np.float64] = NO_RELEASES) -> Ints:
    """A schedule that takes the eligible task of the largest score: *static* plus gain[k] per child that misses k parents.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> vee.named(list_order(vee, np.zeros(5), RELEASES))
    ('b', 'a', 'x', 'y', 'z')
    """
    n, m = len(dag), len(gain)
    missing = dag.indegree.copy()
    worth = np.append(gain, 0.0)[np.minimum(missing, m)]
    score = static + np.bincount(dag.tails, worth[dag.child], minlength=n)
    places = n + n * (m * (m - 1) // 2)
    order = np.empty(n, np.int32)
    rows = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent)
    scratch = (np.zeros(n, np.int32), np.empty(places), np.empty(places, np.int32))
    improving.list_order(*rows, missing, score, gain, *scratch, order)
    return order


def nonsinks_of(dag: Dag, order: Ints) -> Ints:
    """The nonsinks of a schedule, in its order: the part that affects the profile."""
    return order[dag.outdegree[order] > 0]


def first_come_order(dag: Dag) -> Ints:
    """First come, first served: tasks in the order in which they become eligible."""
    return dag.order


def critical_path_order(dag: Dag) -> Ints:
    """The task with the longest remaining path first."""
    return list_order(dag, dag.height.astype(np.float64))


def outdegree_order(dag: Dag) -> Ints:
    """The comparison paper's GREEDY: the task with the most children first."""
    return list_order(dag, dag.outdegree.astype(np.float64))


def release_order(dag: Dag, modules: Sequence[Module] = ()) -> Ints:
    """Module after module; inside, the task that releases most now or soon, then the longest remaining path."""
    tie = dag.height / (1e3 * (dag.depth + 1))
    rank = np.zeros(len(dag))
    for i, module in enumerate(modules):
        rank[module.tasks] = i
    rank[dag.outdegree == 0] = len(modules)
    ceiling = float(dag.outdegree.max(initial=0)) + 2
    return list_order(dag, tie - rank * ceiling, RELEASES)


def move_order(dag: Dag, modules: Sequence[Module] = ()) -> Ints:
    """Module after module; inside, move by move: the parents that a set of waiting tasks still misses, cheapest first.

    A move executes all missing parents of some waiting task, and is worth the tasks that miss no others; the best one
    renders most per execution. Every schedule can be made of such moves without loss.
    """
    rank = {int(v): i for i, module in enumerate(modules) for v in module.tasks}
    return _Moves(dag, rank).play()


class _Moves:
    """The state of play move by move: for each waiting task the set of parents it misses."""

    def __init__(self, dag: Dag, rank: dict[int, int]) -> None:
        self.dag, self.rank = dag, rank
        self.height = dag.height.tolist()
        ptr, rows = dag.parent_ptr.tolist(), dag.parent.tolist()
        self.missing = {v: frozenset(rows[ptr[v] : ptr[v + 1]]) for v in range(len(dag)) if ptr[v] < ptr[v + 1]}
        self.waiting: dict[frozenset[int], int] = {}
        for parents in self.missing.values():
            self.waiting[parents] = self.waiting.get(parents, 0) + 1
        self.ready = {v for v in range(len(dag)) if ptr[v] == ptr[v + 1]}
        self.children = [dag.child[a:b].tolist() for a, b in zip(dag.child_ptr, dag.child_ptr[1:], strict=False)]
        self.order: list[int] = []
        self.small, self.worths = True, dict[frozenset[int], tuple[float, ...]]()

    def play(self) -> Ints:
        while move := self._best():
            for u in sorted(move, key=lambda v: (-self.height[v], v)):
                self._execute(u)
        rest = sorted(self.ready)
        return np.array(self.order + rest, np.int32)

    def _best(self) -> frozenset[int] | None:
        if self.small != (len(self.waiting) < MANY_GROUPS):
            self.small = not self.small
            self.worths.clear()
        return max((s for s in self.waiting if s <= self.ready), key=self._worth, default=None)

    def _worth(self, move: frozenset[int]) -> tuple[float, ...]:
        if move not in self.worths:
            inside = self.waiting.items() if len(move) > 1 and self.small else ()
            gain = self.waiting[move] + sum(count for s, count in inside if s < move)
            rank, height = max(self.rank.get(u, 0) for u in move), max(self.height[u] for u in move)
            self.worths[move] = -rank, gain / len(move), -len(move), height, -min(move)
        return self.worths[move]

    def _execute(self, u: int) -> None:
        self.order.append(u)
        self.ready.discard(u)
        for w in self.children[u]:
            before = self.missing[w]
            after = before - {u}
            self.missing[w] = after
            self._move_count(before, -1)
            if after:
                self._move_count(after, 1)
            else:
                self.ready.add(w)

    def _move_count(self, parents: frozenset[int], by: int) -> None:
        for move in [move for move in self.worths if parents <= move]:
            del self.worths[move]
        self.waiting[parents] = self.waiting.get(parents, 0) + by
        if not self.waiting[parents]:
            del self.waiting[parents]


def candidate_orders(
    dag: Dag, modules: Sequence[Module], dual_modules: Sequence[Module], hurried: bool = False
) -> Iterator[tuple[str, Ints]]:
    """The schedule of every heuristic with its name, including reversed schedules of the dual."""
    if modules:
        yield "modules, most releases first", release_order(dag, modules)
    yield "most releases first", release_order(dag)
    yield "first come, first served", first_come_order(dag)
    yield "longest remaining path", critical_path_order(dag)
    yield "most children first", outdegree_order(dag)
    turned = dag.dual()
    yield "the dual's modules, reversed", dual_schedule(turned, release_order(turned, dual_modules))
    if len(dag) <= MOST_FOR_MOVES and not hurried:
        yield "modules, move by move", move_order(dag, modules)
        yield "the dual's moves, reversed", dual_schedule(turned, move_order(turned, dual_modules))


def heuristics(
    dag: Dag, hurried: bool, modules: Sequence[Module] = (), dual_modules: Sequence[Module] = ()
) -> list[tuple[str, Ints]]:
    """The nonsinks in the order of each heuristic, or if *hurried* of each fast one, with its name."""
    return [(name, nonsinks_of(dag, order)) for name, order in candidate_orders(dag, modules, dual_modules, hurried)]


# Local search


IMPROVED = ", improved"
STEP = 3  # units of work for each task or arc that a walk along the order visits


def improve_order(dag: Dag, nonsinks: Ints, work: Work, reach: int = REACHES[0]) -> Ints:
    """An order of the nonsinks with at least as large an area; no task is moved past more than *reach* others at once.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> vee.named(improve_order(vee, vee.indices(["a", "b"]), Work()))
    ('b', 'a')
    """
    order = nonsinks.astype(np.int32)
    if work.over():
        return order
    place, last = np.full((2, len(dag)), -1, np.int32)
    place[order] = np.arange(len(order))
    np.maximum.at(last, dag.child, place[dag.tails])
    arrays = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, order, place, last)
    line, done = improving.Lineup(reach, *(array.data for array in arrays)), False
    while not done and not work.over():
        before = line.work
        done = line.improve(before + int(min(work.remaining, IMPROVED_AT_ONCE) / STEP) + 1)
        work.spend(STEP * (line.work - before))
    return order


def improve_best(dag: Dag, orders: Iterable[tuple[str, Ints]], work: Work) -> tuple[str, Ints]:
    """The order of largest area that improving the best few of *orders* gives, and its name.

    At first each gets the same work, because a worse order may improve to a better one; the best then gets the rest.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> name, order = improve_best(vee, [("as it came", vee.indices(["a", "b"]))], Work())
    >>> name, vee.named(order)
    ('as it came, improved', ('b', 'a'))
    """
    by_area = sorted((_Candidate(name, order, _area(dag, order)) for name, order in orders), key=lambda one: -one.area)
    best, share = by_area[0], work.remaining / (2 * MOST_STARTS)
    for name, order, _ in by_area[:MOST_STARTS] if not work.over() else ():
        best = _better(dag, best, name, improve_order(dag, order, work.part(share)))
    for reach in REACHES if not work.over() else ():
        best = _better(dag, best, best.name, improve_order(dag, best.order, work, reach))
    return best.name, best.order


class _Candidate(NamedTuple):
    """An order of the nonsinks, with its name and area."""

    name: str
    order: Ints
    area: int


def _better(dag: Dag, best: _Candidate, name: str, order: Ints) -> _Candidate:
    """The better of two candidates, the second of them improved from the order *name*."""
    area = _area(dag, order)
    return best if area <= best.area else _Candidate(f"{name.removesuffix(IMPROVED)}{IMPROVED}", order, area)


def _area(dag: Dag, order: Ints) -> int:
    return int(cumulative(dag, order).sum())


def merge_orders(orders: Sequence[Ints], profiles: Sequence[Profile]) -> Ints:
    """The orders of unconnected parts, merged into one of largest area that keeps each; *profiles* are those of the parts.

    >>> merge_orders([np.array([3, 5]), np.array([4])], [np.array([0, 0, 1]), np.array([0, 2])]).tolist()
    [4, 3, 5]
    """
    strings = [string for part in zip(orders, profiles, strict=True) for string in _strings(*part)]
    strings.sort(key=lambda string: -string[0])
    return np.concatenate([tasks for _, tasks in strings]).astype(np.int32)


def _strings(order: Ints, profile: Profile) -> list[tuple[float, Ints]]:
    """An order cut into stretches of falling rate, tasks rendered per step, each with its rate."""
    ends, rendered = [0], profile.tolist()
    for t in range(1, len(rendered)):
        while len(ends) > 1 and _rate(rendered, ends[-2], ends[-1]) <= _rate(rendered, ends[-1], t):
            ends.pop()
        ends.append(t)
    return [(_rate(rendered, a, b), order[a:b]) for a, b in pairwise(ends)]


def _rate(rendered: Sequence[int], begin: int, end: int) -> float:
    return (rendered[end] - rendered[begin]) / (end - begin)
