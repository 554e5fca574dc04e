"""Orders for every dag: heuristics whose profile the bounds then judge.

Each returns the nonsinks of a dag in an order that is legal with all sinks last.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import Module
from eligo.deciding.limits import MOST_FOR_MOVES
from eligo.deciding.outcomes import cumulative
from eligo.kernels import lists
from eligo.rows import Ints
from eligo.theory.duality import dual_schedule

#: the worth of a child that still misses 1, 2, 3 or 4 parents
RELEASES = np.array([0.0, 1.0, 1 / 4, 1 / 16, 1 / 64])
NO_RELEASES = np.zeros(1)
MANY_GROUPS = 200  # groups of waiting tasks from which on those inside others are not looked for


def list_order(dag: Dag, static: NDArray[np.float64], gain: NDArray[np.float64] = NO_RELEASES) -> Ints:
    """Always the eligible task of the largest score: *static* and, for each child that misses k parents, gain[k].

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
    lists.list_order(*rows, missing, score, gain, *scratch, order)
    return order


def nonsinks_of(dag: Dag, order: Ints) -> Ints:
    """The part of a schedule that matters: its nonsinks, in order."""
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

    A move executes all missing parents of some waiting task, and is worth the tasks that miss nobody else; the best one
    renders most per execution. Every schedule can be made of such moves without loss.
    """
    rank = {int(v): i for i, module in enumerate(modules) for v in module.tasks}
    return _Moves(dag, rank).played()


class _Moves:
    """The state of move by move play: for each waiting task the parents it misses, as a set."""

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
        self.small, self.known = True, dict[frozenset[int], tuple[float, ...]]()

    def played(self) -> Ints:
        while move := self._best():
            for u in sorted(move, key=lambda v: (-self.height[v], v)):
                self._execute(u)
        rest = sorted(self.ready)
        return np.array(self.order + rest, np.int32)

    def _best(self) -> frozenset[int] | None:
        if self.small != (len(self.waiting) < MANY_GROUPS):
            self.small = not self.small
            self.known.clear()
        return max((s for s in self.waiting if s <= self.ready), key=self._worth, default=None)

    def _worth(self, move: frozenset[int]) -> tuple[float, ...]:
        if move not in self.known:
            inside = self.waiting.items() if len(move) > 1 and self.small else ()
            gain = self.waiting[move] + sum(count for s, count in inside if s < move)
            rank, height = max(self.rank.get(u, 0) for u in move), max(self.height[u] for u in move)
            self.known[move] = -rank, gain / len(move), -len(move), height, -min(move)
        return self.known[move]

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
        for move in [move for move in self.known if parents <= move]:
            del self.known[move]
        self.waiting[parents] = self.waiting.get(parents, 0) + by
        if not self.waiting[parents]:
            del self.waiting[parents]


def candidate_orders(
    dag: Dag, modules: Sequence[Module], dual_modules: Sequence[Module], hurried: bool = False
) -> Iterator[tuple[str, Ints]]:
    """Every heuristic's schedule with its name, the dual's turned around included."""
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
    """The nonsinks in the order of each heuristic, or of each fast one, with its name."""
    return [(name, nonsinks_of(dag, order)) for name, order in candidate_orders(dag, modules, dual_modules, hurried)]


def best_heuristic(dag: Dag, hurried: bool) -> Ints:
    """The nonsinks in the order of largest area among the heuristics, or among the fast ones; nothing is bounded.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> vee.named(best_heuristic(vee, hurried=True))
    ('b', 'a')
    """
    orders = (order for _, order in heuristics(dag, hurried))
    return max(orders, key=lambda order: int(cumulative(dag, order).sum()))
