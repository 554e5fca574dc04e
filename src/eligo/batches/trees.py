"""Components that are trees: the best choice of every size, by dynamic programming over the tree.

Rooted at a source. For each source u two functions of the number of executed sources in u's subtree: the most sinks that
can be rendered there with u idle, and with u executed. For a shared sink v below u, whose other parents are the roots of
subtrees, *any* is the best of those subtrees together and *all* the best with all their roots executed; then

    idle(u) = sum of any(v),    executed(u) = 1 more source + sum of max(any(v), all(v) + 1) + private sinks of u,

sums being max-plus. The case of [1]_, section 5, in which some root of v must stay idle, is not needed: dropping the demand
changes no maximum. With tables no longer than the subtrees, all of it takes O(s^2) for s sources.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
"""

from dataclasses import dataclass

import numpy as np

from eligo.batches.knapsack import Knapsack, Ranged
from eligo.dag import Dag
from eligo.theory.profiles import Profile


@dataclass(slots=True)
class _Sink:
    """A shared sink: the sources below it, and the knapsacks over their subtrees."""

    below: list[int]
    any: Knapsack
    all: Knapsack


@dataclass(slots=True)
class _Source:
    """A source: the shared sinks below it, its two tables, and the knapsacks that they came from."""

    below: list[int]
    idle: Ranged
    executed: Ranged
    idle_split: Knapsack
    executed_split: Knapsack

    def best(self) -> Ranged:
        """The better of the two for every number of executed sources: `executed` reaches one further."""
        return _larger(self.idle, self.executed)


class TreeBatches:
    """The best batch of every size up to *limit* in a bipartite tree whose sources are numbered first.

    >>> path = TreeBatches(Dag.from_arrays(5, [0, 0, 1, 1], [2, 3, 3, 4]), limit=2)
    >>> path.table.tolist(), path.choose(2)
    ([0, 1, 3], [0, 1])
    """

    def __init__(self, tree: Dag, limit: int) -> None:
        self.tree, self.limit = tree, limit
        self._ptr, self._rows = _neighbours(tree)
        degree = np.diff(tree.parent_ptr)
        private = np.bincount(tree.tails, degree[tree.child] == 1, minlength=len(tree)).astype(np.int64)
        self._private: list[int] = private.tolist()
        self._leaf: list[bool] = (degree == 1).tolist()
        self._sources: dict[int, _Source] = {}
        self._sinks: dict[int, _Sink] = {}
        outdegree = tree.outdegree.tolist()
        for v, above in reversed(self._preorder()):
            if outdegree[v]:
                self._add_source(v, above)
            else:
                self._add_sink(v, above)

    @property
    def table(self) -> Profile:
        """The most sinks that 0, 1, ... executed sources can render."""
        return self._sources[0].best().values

    def choose(self, size: int) -> list[int]:
        """Sources that render the most, that many, ascending."""
        chosen: list[int] = []
        stack = [(0, size)]
        while stack:
            u, k = stack.pop()
            source = self._sources[u]
            if _at(source.executed, k) >= _at(source.idle, k):
                stack += self._below_executed(u, k, chosen)
            else:
                for v, part in zip(source.below, source.idle_split.split(k), strict=True):
                    sink = self._sinks[v]
                    stack += zip(sink.below, sink.any.split(part), strict=True)
        return sorted(chosen)

    def _below_executed(self, u: int, k: int, chosen: list[int]) -> list[tuple[int, int]]:
        """Execute u, and with it all parents of the sinks below that are to be rendered; what is left for the subtrees."""
        rest: list[tuple[int, int]] = []
        todo = [(u, k)]
        while todo:
            w, total = todo.pop()
            chosen.append(w)
            source = self._sources[w]
            for v, part in zip(source.below, source.executed_split.split(total - 1), strict=True):
                sink = self._sinks[v]
                if _at(sink.all.best, part) + 1 >= _at(sink.any.best, part):
                    todo += zip(sink.below, sink.all.split(part), strict=True)
                else:
                    rest += zip(sink.below, sink.any.split(part), strict=True)
        return rest

    def _add_source(self, u: int, above: int) -> None:
        below = [v for v in self._row(u) if v != above and not self._leaf[v]]
        sinks = [self._sinks[v] for v in below]
        idle = Knapsack([sink.any.best for sink in sinks], self.limit)
        gains = [_larger(sink.any.best, _raised(sink.all.best)) for sink in sinks]
        executed = Knapsack(gains, self.limit - 1)
        table = executed.best.values + self._private[u] if self._private[u] or not sinks else executed.best.values
        self._sources[u] = _Source(below, idle.best, Ranged(1, table), idle, executed)

    def _add_sink(self, v: int, above: int) -> None:
        below = [u for u in self._row(v) if u != above]
        if below:
            roots = [self._sources[u] for u in below]
            either = Knapsack([root.best() for root in roots], self.limit)
            self._sinks[v] = _Sink(below, either, Knapsack([root.executed for root in roots], self.limit))

    def _row(self, v: int) -> list[int]:
        return self._rows[self._ptr[v] : self._ptr[v + 1]]

    def _preorder(self) -> list[tuple[int, int]]:
        order, stack = [], [(0, -1)]
        while stack:
            v, above = stack.pop()
            order.append((v, above))
            stack += ((w, v) for w in self._row(v) if w != above)
        return order


def _neighbours(tree: Dag) -> tuple[list[int], list[int]]:
    """The rows of the tree without directions: a task has either children or parents."""
    return (tree.child_ptr + tree.parent_ptr).tolist(), np.concatenate([tree.child, tree.parent]).tolist()


def _at(function: Ranged, k: int) -> int:
    """The value at k, or less than every value where there is none."""
    inside = function.low <= k <= function.high
    return int(function.values[k - function.low]) if inside else np.iinfo(np.int64).min


def _raised(function: Ranged) -> Ranged:
    return Ranged(function.low, function.values + 1)


def _larger(first: Ranged, second: Ranged) -> Ranged:
    """The larger of two functions of which the second begins and ends later, where defined at all."""
    both = np.full(max(first.high, second.high) - first.low + 1, np.iinfo(np.int64).min, np.int64)
    both[: len(first.values)] = first.values
    if len(second.values):
        window = both[second.low - first.low :][: len(second.values)]
        np.maximum(window, second.values, out=window)
    return Ranged(first.low, both)
