"""Series-parallel dags: the largest area and the least concave bound in O(n log² n), without any search.

A dag is *series-parallel* if it is a single task, or two such dags side by side, or two such dags of which every sink of
the first precedes every source of the second. Without shortcuts that is so exactly when all its blocks are complete
bipartite and the multidigraph with the blocks as nodes and the tasks as arcs, from the block that renders a task to the
block that it is a source of, shrinks to one arc under two rules: arcs side by side become one; a block with one arc in and
one arc out goes, and its two arcs become one [1]_.

The area is largest when the steps at which tasks are rendered have the least sum: total weighted completion time on one
machine, where executing takes a unit of time and rendering is worth a unit of weight. On series-parallel orders it is
minimised by *strings* of jobs, sorted by worth per time, that grow where a composition in series would put a lower ratio
before a higher one [2]_. Executing the sources of a complete bipartite block renders all sinks with the last source and
none before, so the strings are made of whole blocks. Strings of equal ratio together are the modules of
`deciding.bounds`, because Sidney's decomposition is the concave hull of M(t); the worth that proves it flows along the tree.

.. [1] Valdes, Tarjan, Lawler (1982), SIAM J. Comput. 11, 298-313.
.. [2] Lawler (1978), Ann. Discrete Math. 2, 75-90.
"""

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import Module, Shares
from eligo.rows import Ints, places
from eligo.theory.blocks import Blocks, decompose

Wide = NDArray[np.int64]
BESIDE = -1


def series_parallel(dag: Dag) -> "Tree | None":
    """The composition of a dag without shortcuts in series and in parallel, or None if it is not series-parallel.

    >>> forkjoin = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    >>> series_parallel(forkjoin).order.tolist()
    [0, 1, 2]
    >>> series_parallel(Dag.from_arcs([("a", "c"), ("a", "d"), ("b", "d")])) is None
    True

    Notes: an order of tasks is series-parallel exactly when no four of them relate as in the second example.
    """
    blocks = decompose(dag)
    complete = _lengths(blocks.source_rows) * _lengths(blocks.sink_rows) == blocks.arc_counts
    if not complete.all():
        return None
    count = len(blocks)
    reduction = _Reduction(
        np.where(blocks.sink_of < 0, count, blocks.sink_of).tolist(),
        np.where(blocks.source_of < 0, count + 1, blocks.source_of).tolist(),
        count,
    )
    reduction.run()
    if len(reduction.meets) < len(dag) - 1:
        return None
    return Tree(blocks, reduction.first, reduction.second, reduction.meets)


def largest_area_order(dag: Dag) -> Ints | None:
    """The nonsinks of a series-parallel dag without shortcuts in an order of largest area; None for any other dag.

    >>> largest_area_order(Dag.from_arcs([("a", "b"), ("x", "y"), ("y", "1"), ("y", "2"), ("y", "3")])).tolist()
    [2, 3, 0]
    """
    tree = series_parallel(dag)
    return None if tree is None else tree.order


@dataclass(frozen=True, eq=False)
class Tree:
    """The composition of a series-parallel dag of n tasks: parts 0..n-1 are its tasks, part n + i is the i-th composition.

    The i-th composition puts part `first[i]` before part `second[i]`, meeting in block `meets[i]`, or beside it if that is
    BESIDE.
    """

    blocks: Blocks
    first: list[int]
    second: list[int]
    meets: list[int]

    @cached_property
    def strings(self) -> list[list[int]]:
        """The blocks in an order of largest area, cut into strings of falling ratio: tasks rendered per task executed."""
        return _Strings(self.blocks).assemble(self)

    @cached_property
    def order(self) -> Ints:
        """The nonsinks in an order of largest area."""
        sequence = list(chain.from_iterable(self.strings))
        place = places(len(sequence), sequence)
        nonsinks = np.flatnonzero(self.blocks.source_of >= 0)
        key = place[self.blocks.source_of[nonsinks]]
        return nonsinks[np.argsort(key, kind="stable")].astype(np.int32)

    @cached_property
    def shares(self) -> Shares:
        """The least concave bound, which `deciding.bounds.best_shares` finds by minimum cuts, with a flow that proves it.

        >>> tree = series_parallel(Dag.from_arcs([("a", "b"), ("x", "y"), ("y", "1"), ("y", "2"), ("y", "3")]))
        >>> [(m.tasks.tolist(), m.p, m.q) for m in tree.shares.modules], tree.shares.flow.tolist()
        ([([2, 3], 2, 1), ([0], 1, 1)], [1, 2, 1, 1, 1])
        """
        modules, module_of = _modules(self)
        p, q = np.array([(m.p, m.q) for m in modules], np.int64).reshape(-1, 2).T[:, module_of]
        surplus = q * _lengths(self.blocks.sink_rows) - p * _lengths(self.blocks.source_rows)
        return Shares(modules, _arc_flow(self.blocks, p, q, _outflow(self, surplus)))


class _Reduction:
    """A multidigraph that shrinks: its nodes are blocks, and one each for the beginning and the end; its arcs are parts."""

    def __init__(self, tails: list[int], heads: list[int], count: int) -> None:
        self.tails, self.heads, self.count = tails, heads, count
        self.first: list[int] = []
        self.second: list[int] = []
        self.meets: list[int] = []
        self.between: dict[int, int] = {}  # the part from a node to another, by tail * (count + 2) + head
        for part in range(len(tails)):
            self._insert(part)
        # of the parts that enter and that leave each node, their sum and number: a single part is its own sum
        self.entering, self.enters = [0] * (count + 2), [0] * (count + 2)
        self.leaving, self.leaves = [0] * (count + 2), [0] * (count + 2)
        for part in self.between.values():
            tail, head = tails[part], heads[part]
            self.leaves[tail] += 1
            self.leaving[tail] += part
            self.enters[head] += 1
            self.entering[head] += part

    def run(self) -> None:
        """Remove blocks with one part in and one out until there are none."""
        ready = [block for block in range(self.count) if self._simple(block)]
        while ready:
            block = ready.pop()
            above, below = self.entering[block], self.leaving[block]
            tail, head = self.tails[above], self.heads[below]
            del self.between[self._pair(above)], self.between[self._pair(below)]
            part = self._compose(above, below, block)
            beside = self._insert(part)
            if beside is None:
                self.leaving[tail] += part - above
                self.entering[head] += part - below
                continue
            self.leaving[tail] += part + 1 - above - beside  # part + 1: the two side by side
            self.entering[head] += part + 1 - below - beside
            self.leaves[tail] -= 1
            self.enters[head] -= 1
            ready += [node for node in (head, tail) if self._simple(node)]

    def _simple(self, node: int) -> bool:
        return self.enters[node] == 1 and self.leaves[node] == 1

    def _pair(self, part: int) -> int:
        return self.tails[part] * (self.count + 2) + self.heads[part]

    def _insert(self, part: int) -> int | None:
        """Put a part between its ends, beside an earlier part if there is one; returns that part."""
        pair = self._pair(part)
        beside = self.between.get(pair)
        self.between[pair] = part if beside is None else self._compose(beside, part, BESIDE)
        return beside

    def _compose(self, first: int, second: int, meets: int) -> int:
        self.first.append(first)
        self.second.append(second)
        self.meets.append(meets)
        self.tails.append(self.tails[first])
        self.heads.append(self.heads[second])
        return len(self.tails) - 1


#: two heaps of strings, the lowest ratio first and the highest first; strings absorbed since are still in them
_Pool = tuple[list[int], list[int]]


class _Strings:
    """Strings under construction, each identified by the block where it was last joined.

    Ratios are compared as whole numbers: two different fractions with denominators up to n differ by at least 1 / n². In a
    heap, ratio and block are one number, ratio * count + block, which takes half the time of a pair.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.renders = _lengths(blocks.sink_rows).tolist()
        self.runs = _lengths(blocks.source_rows).tolist()
        self.unit, self.count = len(blocks.dag) ** 2, len(blocks)
        self.head, self.tail = list(range(len(blocks))), list(range(len(blocks)))
        self.following = [-1] * len(blocks)
        self.absorbed = [False] * len(blocks)

    def assemble(self, tree: Tree) -> list[list[int]]:
        """The strings of the whole dag, sorted by falling ratio."""
        n = len(tree.blocks.dag)
        pools: list[_Pool | None] = [None] * n  # a task by itself has no string
        for first, second, meets in zip(tree.first, tree.second, tree.meets, strict=True):
            above, below = pools[first], pools[second]
            pools[first] = pools[second] = None
            ratio = None if meets == BESIDE else self._grow(meets, above, below)
            pool = self._unite(above, below)
            if ratio is not None:
                pool = pool or ([], [])
                heappush(pool[0], ratio * self.count + meets)
                heappush(pool[1], -ratio * self.count + meets)
            pools.append(pool)
        final = pools[-1] if pools else None
        strings = [entry % self.count for entry in sorted(final[1])] if final else []
        return [self._members(string) for string in strings if not self.absorbed[string]]

    def _grow(self, block: int, above: _Pool | None, below: _Pool | None) -> int:
        """Join the string of a block with those before it of no higher and after it of no lower ratio; returns its ratio."""
        while True:
            ratio: int = self.renders[block] * self.unit // self.runs[block]
            lowest = self._top(above[0]) if above else None
            if lowest is not None and lowest // self.count <= ratio:
                self._join(lowest % self.count, block, block)
                continue
            highest = self._top(below[1]) if below else None
            if highest is not None and highest // self.count <= -ratio:
                self._join(block, highest % self.count, block)
                continue
            return ratio

    def _top(self, heap: list[int]) -> int | None:
        while heap and self.absorbed[heap[0] % self.count]:
            heappop(heap)
        return heap[0] if heap else None

    def _join(self, before: int, after: int, into: int) -> None:
        self.following[self.tail[before]] = self.head[after]
        self.renders[into], self.runs[into] = (
            self.renders[before] + self.renders[after],
            self.runs[before] + self.runs[after],
        )
        self.head[into], self.tail[into] = self.head[before], self.tail[after]
        self.absorbed[after if into == before else before] = True

    def _unite(self, one: _Pool | None, other: _Pool | None) -> _Pool | None:
        """The union of both pools, made by inserting the smaller into the larger."""
        if one is None or other is None:
            return one or other
        small, large = (one, other) if len(one[0]) < len(other[0]) else (other, one)
        for entry in small[0]:
            if not self.absorbed[string := entry % self.count]:
                heappush(large[0], entry)
                heappush(large[1], 2 * string - entry)
        return large

    def _members(self, string: int) -> list[int]:
        members = [self.head[string]]
        while members[-1] != self.tail[string]:
            members.append(self.following[members[-1]])
        return members


def _modules(tree: Tree) -> tuple[list[Module], NDArray[np.intp]]:
    """The modules, each the strings of one ratio, and the module of every block, which has its sources and its sinks."""
    blocks, sizes = tree.blocks, [len(string) for string in tree.strings]
    string_of = np.empty(len(blocks), np.intp)
    string_of[list(chain.from_iterable(tree.strings))] = np.repeat(np.arange(len(sizes)), sizes)
    p, q = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    np.add.at(p, string_of, _lengths(blocks.sink_rows))
    np.add.at(q, string_of, _lengths(blocks.source_rows))
    common = np.gcd(p, q)
    p, q = p // common, q // common
    fresh = (np.diff(p, prepend=0) != 0) | (np.diff(q, prepend=0) != 0)
    module_of = (np.cumsum(fresh) - 1)[string_of]
    tasks, renders = (_split_by_module(of, module_of, int(fresh.sum())) for of in (blocks.source_of, blocks.sink_of))
    modules = [Module(*m) for m in zip(tasks, renders, p[fresh].tolist(), q[fresh].tolist(), strict=True)]
    return modules, module_of


def _split_by_module(block_of: Ints, module_of: NDArray[np.intp], count: int) -> list[Ints]:
    """The tasks that have a block, ascending, split by its module."""
    tasks = np.flatnonzero(block_of >= 0).astype(np.int32)
    modules = module_of[block_of[tasks]]
    ends = np.cumsum(np.bincount(modules, minlength=count))
    return np.split(tasks[np.argsort(modules, kind="stable")], ends[:-1]) if count else []


def _outflow(tree: Tree, surplus: Wide) -> Wide:
    """The worth that each task passes on to its parents, so that every block gives away what it gets.

    A block has a surplus of worth that its sinks hand over and its sources do not keep, or a lack of it. What enters a part
    from below leaves it above together with the part's own surplus, and must be at least what the part lacks anywhere in it.
    These amounts are added up from the tasks to the whole dag, and then distributed from the whole dag to the tasks. Nothing
    goes from one module to another, as required: worth only flows to earlier modules, nothing enters the last one, and each
    module as a whole has no surplus.
    """
    own, n = surplus.tolist(), len(tree.blocks.dag)
    gain, least = [0] * n, [0] * n
    for a, b, meets in zip(tree.first, tree.second, tree.meets, strict=True):
        rise = 0 if meets == BESIDE else own[meets]
        gain.append(gain[a] + gain[b] + rise)
        least.append(least[a] + least[b] if meets == BESIDE else max(least[b], least[a] - gain[b] - rise))
    enters = [0] * len(gain)
    for i in range(len(tree.meets) - 1, -1, -1):
        a, b, meets, amount = tree.first[i], tree.second[i], tree.meets[i], enters[n + i]
        if meets == BESIDE:
            enters[a], enters[b] = amount - least[b], least[b]
        else:
            enters[a], enters[b] = amount + gain[b] + own[meets], amount
    return np.array(enters[:n], np.int64)


def _arc_flow(blocks: Blocks, p: Wide, q: Wide, passed: Wide) -> Wide:
    """The worth along every arc: in each block what its sinks hand over fills its sources one after another.

    A sink hands over q and what it passes on, a source takes p and what it passes on. Laid end to end both make the same
    length; every piece between two marks belongs to one sink and one source.
    """
    (sink_ptr, sinks), (_, sources) = blocks.sink_rows, blocks.source_rows
    block = np.concatenate([blocks.sink_of[sinks], blocks.source_of[sources]])
    handed = _running_sums(q[blocks.sink_of[sinks]] + passed[sinks], blocks.sink_rows)
    taken = _running_sums(p[blocks.source_of[sources]] + passed[sources], blocks.source_rows)
    marks = np.concatenate([handed, taken])
    along = np.lexsort((marks, block))
    ends_sink = (along < len(sinks)).astype(np.int64)
    sink = np.cumsum(ends_sink) - ends_sink
    source = np.arange(len(along)) - sink
    block, marks = block[along], marks[along]
    length = np.diff(marks, prepend=0)
    begins = np.diff(block, prepend=-1) > 0
    length[begins] = marks[begins]
    piece = np.flatnonzero(length)
    flow = np.zeros(blocks.dag.arc_count, np.int64)
    within = sink[piece] - sink_ptr[block[piece]]  # complete: a source's children are all sinks of its block
    flow[blocks.dag.child_ptr[sources[source[piece]]] + within] = length[piece]
    return flow


def _running_sums(amounts: Wide, rows: tuple[Ints, Ints]) -> Wide:
    """Running sums within each row; if the sum over all rows overflows, the differences are still right."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(amounts)])
    begins = np.repeat(total[rows[0][:-1]], np.diff(rows[0]))
    sums: Wide = total[1:] - begins
    return sums


def _lengths(rows: tuple[Ints, Ints]) -> Wide:
    return np.diff(rows[0]).astype(np.int64)
