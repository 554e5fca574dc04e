"""The solution of one component within limits: for every number of executed sources, the most sinks and their sources.

Trees are solved by dynamic programming; other components with few different sources, or few different sinks, by sums over
all sets of them. All others are left to the solvers for one size.

**Limits.** A clock alone bounds a batch only loosely, because a solver that has started on a component finishes it. For
callers that must answer quickly, such as a server, `BRIEF` also bounds the components that a solver may start on.

**The knapsack.** For every total, it is distributed among functions so that the sum of their values is largest: max-plus.
This is the procedure BBDP of [1]_, Lemma 4.1, with its bookkeeping. The functions are joined two by two, as in a tournament,
so that the work is bounded by the square of the summed ranges however many functions there are; neighbouring equal functions
are joined once. The shares are computed from the stored tables afterwards, so no back-pointers are kept.

**Trees.** The best choice of every size, by dynamic programming over the tree, rooted at a source. For each source u two
functions of the number of executed sources in u's subtree: the most sinks that can be rendered there with u idle, and with
u executed. For a shared sink v below u, whose other parents are the roots of subtrees, *any* is the best of those subtrees
together and *all* the best with all their roots executed; then

    idle(u) = sum of any(v),    executed(u) = 1 more source + sum of max(any(v), all(v) + 1) + private sinks of u,

where sums are max-plus. The case of [1]_, section 5, in which some root of v must stay idle, is not needed: dropping this
requirement changes no maximum. With tables no longer than the subtrees, everything takes O(s^2) for s sources.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.deciding.work import Clock
from eligo.errors import InputError
from eligo.theory.profiles import Profile, convolve
from eligo.theory.subsets import Subsets

# Limits


@dataclass(frozen=True)
class Limits:
    """The largest components that each solver accepts. The defaults were measured with benchmarks/batches.py."""

    #: the most different sources or sinks of which all sets are enumerated
    items: int = 20
    #: the same once time is up
    items_late: int = 14
    #: the largest tree, in tasks
    tree_tasks: float = math.inf
    #: the same once time is up
    tree_tasks_late: float = math.inf
    #: the largest tree, in sources times requests: the default takes about a second and 160 MB
    tree_cells: int = 10_000_000
    #: arcs for which minimum cuts are computed: the default takes about half a second
    cut_arcs: int = 100_000
    #: arcs for which a batch is improved by exchanges
    exchange_arcs: float = math.inf
    #: arcs for the search over sinks and the integer program
    program_arcs: int = 50_000
    #: whether the integer program is solved at all: its solver ends late, by up to 0.1 s
    integer_program: bool = True


FULL = Limits()
#: each step takes a few milliseconds at most
BRIEF = Limits(
    items=12, items_late=0, tree_tasks=150, tree_tasks_late=0, cut_arcs=5_000, exchange_arcs=5_000,
    program_arcs=5_000, integer_program=False,
)  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """The limits of one batch, and its clock."""

    clock: Clock
    limits: Limits = FULL

    @property
    def items(self) -> int:
        """The most sources or sinks whose sets are enumerated now."""
        return self.limits.items_late if self.clock.over() else self.limits.items

    def allows_tree(self, tasks: int, sources: int, size: int) -> bool:
        """Whether a tree may be solved now for batches of up to *size* sources."""
        most = self.limits.tree_tasks_late if self.clock.over() else self.limits.tree_tasks
        return tasks <= most and sources * size <= self.limits.tree_cells


# The knapsack


LIMITLESS = 1 << 62


class Ranged(NamedTuple):
    """A function on the whole numbers low, low + 1, ... as its values there. Without values it is defined nowhere."""

    low: int
    values: Profile

    @property
    def high(self) -> int:
        """The largest number for which it is defined; below `low` if there is none."""
        return self.low + len(self.values) - 1


NOTHING = Ranged(0, np.zeros(1, np.int64))


class Knapsack:
    """The largest sum of f_1(r_1) + ... + f_k(r_k) for every total r = r_1 + ... + r_k up to *limit*, each r_i in its range.

    >>> pair = Knapsack([Ranged(0, np.array([0, 4, 6])), Ranged(1, np.array([3, -5]))])
    >>> pair.best.low, pair.best.values.tolist()
    (1, [3, 7, 9, 1])
    >>> pair.split(3)
    [2, 1]

    Notes: O(N^2) for ranges of summed length N, and O(k + N * limit) if *limit* is less.
    """

    def __init__(self, functions: Sequence[Ranged], limit: int = LIMITLESS) -> None:
        self._count = len(functions)
        self._rounds = [[_truncate(f, limit) for f in functions or [NOTHING]]]
        while len(self._rounds[-1]) > 1:
            self._rounds.append(list(_join_pairs(self._rounds[-1], limit)))
        self.best = self._rounds[-1][0]

    def split(self, total: int) -> list[int]:
        """The share of each function in a total with the largest sum; among equal sums the first functions get less."""
        if not self.best.low <= total <= self.best.high:
            raise InputError(
                f"cannot distribute {total} tasks: the number must be from {self.best.low} to {self.best.high}"
            )
        parts = [total]
        for functions in reversed(self._rounds[:-1]):
            pairs = zip_longest(functions[::2], functions[1::2])
            parts = [share for pair, part in zip(pairs, parts, strict=True) for share in _shares(*pair, part)]
        return parts[: self._count]


def max_plus(first: Ranged, second: Ranged, limit: int = LIMITLESS) -> Ranged:
    """For every total up to *limit*, the largest sum of the two; defined nowhere if one of them is.

    >>> max_plus(Ranged(0, np.array([0, 0, 2])), Ranged(0, np.array([0, 1]))).values.tolist()
    [0, 1, 2, 3]
    """
    low = first.low + second.low
    return Ranged(low, convolve(first.values, second.values, limit - low + 1))


def _truncate(function: Ranged, limit: int) -> Ranged:
    length = max(limit - function.low + 1, 0)
    return function if length >= len(function.values) else Ranged(function.low, function.values[:length])


def _join_pairs(functions: list[Ranged], limit: int) -> Iterator[Ranged]:
    """The functions joined in pairs of neighbours; of equal pairs in a row only the first is computed."""
    before: tuple[int, int] | None = None
    for a, b in zip_longest(functions[::2], functions[1::2]):
        if b is None:
            yield a
            return
        pair = id(a.values), id(b.values)
        if pair != before:
            both, before = max_plus(a, b, limit), pair
        yield both


def _shares(first: Ranged, second: Ranged | None, total: int) -> tuple[int, ...]:
    """The shares of two functions in their total: the first gets as little as the best sum allows."""
    if second is None:
        return (total,)
    least, most = max(first.low, total - second.high), min(first.high, total - second.low)
    if least == most:
        return least, total - least
    mine = first.values[least - first.low : most - first.low + 1]
    other = second.values[total - most - second.low : total - least - second.low + 1]
    share = least + int(np.argmax(mine + other[::-1]))
    return share, total - share


# Trees


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
        """The larger of the two tables for every number of executed sources; `executed` has one number more."""
        return _larger(self.idle, self.executed)


class TreeBatches:
    """The best batch of every size up to *limit* in a bipartite tree whose sources are numbered first.

    >>> path = TreeBatches(Dag.from_arrays(5, [0, 0, 1, 1], [2, 3, 3, 4]), limit=2)
    >>> path.table.tolist(), path.choose(2)
    ([0, 1, 3], [0, 1])
    """

    def __init__(self, tree: Dag, limit: int) -> None:
        self.limit = limit
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
        """The *size* sources that render the most, ascending."""
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
        """Execute u and all parents of the sinks below to be rendered; returns the other subtrees with their shares."""
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
        gains = [_larger(sink.any.best, _plus_one(sink.all.best)) for sink in sinks]
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
    """The rows of the undirected tree: a task has either children or parents."""
    return (tree.child_ptr + tree.parent_ptr).tolist(), np.concatenate([tree.child, tree.parent]).tolist()


def _at(function: Ranged, k: int) -> int:
    """The value at k, or less than every value if there is none."""
    inside = function.low <= k <= function.high
    return int(function.values[k - function.low]) if inside else np.iinfo(np.int64).min


def _plus_one(function: Ranged) -> Ranged:
    return Ranged(function.low, function.values + 1)


def _larger(first: Ranged, second: Ranged) -> Ranged:
    """The larger of two functions; the second begins and ends later, if it is defined at all."""
    both = np.full(max(first.high, second.high) - first.low + 1, np.iinfo(np.int64).min, np.int64)
    both[: len(first.values)] = first.values
    if len(second.values):
        window = both[second.low - first.low :][: len(second.values)]
        np.maximum(window, second.values, out=window)
    return Ranged(first.low, both)


# Any component


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The best batches of a component: `table` gives the sinks that k sources can render, `choose` the sources that do."""

    table: Profile
    choose: Callable[[int], list[int]]
    method: str

    def reaches(self, size: int) -> bool:
        """Whether batches of this size are in the table."""
        return size < len(self.table)


def solve(component: Dag, limit: int, budget: Budget) -> BatchSolution | None:
    """The best batches of up to *limit* sources of a connected bipartite dag, or None if it is too large for that.

    >>> from eligo.deciding.work import Clock
    >>> solved = solve(Dag.from_arrays(5, [0, 0, 1, 1, 2], [3, 4, 3, 4, 4]), 3, Budget(Clock()))
    >>> solved.table.tolist(), solved.choose(2), solved.method
    ([0, 0, 1, 2], [0, 1], 'subsets')
    """
    sources = int((component.outdegree > 0).sum())
    if component.arc_count == len(component) - 1:
        tree = TreeBatches(component, min(limit, sources))
        return BatchSolution(tree.table, tree.choose, "tree")
    most = budget.items
    return _by_sources(component, sources, most) or _by_sinks(component, sources, most)


def _by_sources(component: Dag, sources: int, most: int) -> BatchSolution | None:
    """The best batches by all sets of sources, twins counted once; None if there are too many."""
    subsets = Subsets.of(component, most)
    if subsets is None:
        return None
    return BatchSolution(subsets.maxima, lambda k: fill_up(subsets.best_set(k), k, sources), "subsets")


def _by_sinks(component: Dag, sources: int, most: int) -> BatchSolution | None:
    """The best batches by all sets of sinks, twins counted once: a source is spared if all its children are."""
    subsets = Subsets.of(component.dual(), most)
    if subsets is None:
        return None
    needed, rendered = sources - subsets.rendered, len(component) - sources - subsets.weight
    best = np.zeros(sources + 1, np.int64)
    np.maximum.at(best, needed, rendered)
    table = np.maximum.accumulate(best)

    def choose(k: int) -> list[int]:
        spared = int(np.flatnonzero((needed <= k) & (rendered == table[k]))[0])
        wanted = np.ones(len(component), np.bool_)
        wanted[[v for i, twins in enumerate(subsets.twins) if spared >> i & 1 for v in twins]] = False
        return fill_up(np.unique(component.tails[wanted[component.child]]).tolist(), k, sources)

    return BatchSolution(table, choose, "subsets")


def fill_up(chosen: list[int], size: int, sources: int) -> list[int]:
    """The chosen sources and the first others up to *size*, ascending."""
    if len(chosen) >= size:
        return sorted(chosen)
    free = np.ones(sources, np.bool_)
    free[chosen] = False
    return sorted(chosen + np.flatnonzero(free)[: size - len(chosen)].tolist())
