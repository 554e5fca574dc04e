"""One block: recognised, or solved exactly, or bounded.

The named families are recognised by counting, all blocks at once; each has its optimal order and closed-form profile.
Any other block is solved by the first method that fits: subset sums over its sources or, through duality, its sinks; for
trees the dynamic program and, if planar, the recursive Sweep order. All other blocks are bounded and not ordered.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.kernels import graph, walks
from eligo.rows import Ints
from eligo.theory.blocks import Blocks
from eligo.theory.eligibility import dual_schedule
from eligo.theory.priority import Kind, precedes
from eligo.theory.profiles import Profile, Side, dual_maxima, hull_sides
from eligo.theory.subsets import MOST_ITEMS, MOST_ITEMS_FOR_AREA, Subsets
from eligo.theory.trees import even_tree, planar_order, tree_maxima

LARGEST_TREE = 3_000  # sources: the tree's tables take quadratic time
MOST_SETS = 1 << 25  # of items, in all blocks of a dag: about a second
ALWAYS_ITEMS = 14  # up to this many items are enumerated however many blocks there are
MOST_SHAPES = 10_000  # solutions that are remembered for later blocks of the same shape
WORTH = 1 << 32  # of a nonsource, in whole parts: shares are rounded up to whole parts, so that every sum is exact

WALK = {"W": 1, "C": 1, "N": 2, "M": 3, "Q": 4}


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of one block.

    `maxima` is M(t), or an upper bound of it if not `exact`. `order` attains it at every step, as positions among the block's
    sources; None if that is impossible (`admits` is False) or no such order was found (`admits` is None).
    """

    kind: Kind | None
    maxima: Profile
    order: tuple[int, ...] | None
    method: str
    exact: bool = True
    admits: bool | None = True
    #: the number of sets that were compared, and whether it is a bound only because too few might be compared
    sets: int = 0
    scant: bool = False

    @property
    def item(self) -> Kind | Profile:
        """The form of the block that priorities compare: its kind if it has one, else its maxima."""
        return self.kind or self.maxima

    @cached_property
    def follows_itself(self) -> bool:
        """Whether the block ▷ a copy of itself."""
        return precedes(self.item, self.item)

    @cached_property
    def sides(self) -> list[Side]:
        """The sides of the concave hull of the maxima."""
        return hull_sides(self.maxima)

    @property
    def name(self) -> str:
        """The name of the kind, such as W(3,2), or a description."""
        return str(self.kind) if self.kind else f"a block of {len(self.maxima) - 1} sources"


def recognise(blocks: Blocks) -> list[tuple[Kind, Ints]]:
    """The named blocks, grouped: each kind with the numbers of its blocks.

    Connected bipartite blocks are distinguished by their numbers of sources, sinks and arcs and by the extreme degrees.
    """
    s, k, m = np.diff(blocks.source_rows[0]), np.diff(blocks.sink_rows[0]), blocks.arc_counts
    low, high = _extremes(blocks.dag.outdegree, blocks.source_of, len(blocks))
    least, most = _extremes(blocks.dag.indegree, blocks.sink_of, len(blocks))
    dag, named = blocks.dag, blocks.bipartite
    d, e = high.astype(np.int64), most.astype(np.int64)
    is_n = named & (s == k) & (m == 2 * s - 1) & (high <= 2) & (most <= 2)
    is_w = named & ~is_n & (low == d) & (d >= 2) & (m == s * d) & (k == s * (d - 1) + 1) & (most <= 2)
    is_m = named & ~is_n & (least == e) & (e >= 2) & (m == k * e) & (s == k * (e - 1) + 1) & (high <= 2)
    _keep_paths(is_w, s, dag.child_ptr, dag.indegree[dag.child], blocks.source_rows)
    _keep_paths(is_m, k, dag.parent_ptr, dag.outdegree[dag.parent], blocks.sink_rows)
    is_c = named & (s == k) & (m == 2 * s) & (low == 2) & (high == 2) & (most == 2) & (s > 1)
    is_q = named & (s == k) & (m == s.astype(np.int64) * k) & (s > 2)
    zero = np.zeros_like(d)
    shapes = (("N", is_n, s, zero), ("W", is_w, s, d), ("M", is_m, k, e), ("C", is_c, s, zero), ("Q", is_q, s, zero))
    return [group for letter, mask, size, degree in shapes for group in _by_size(letter, mask, size, degree)]


def _by_size(
    letter: str, mask: NDArray[np.bool_], size: Ints, degree: NDArray[np.int64]
) -> Iterator[tuple[Kind, Ints]]:
    members = np.flatnonzero(mask).astype(np.int32)
    if not len(members):
        return
    keys = size[members].astype(np.int64) << 32 | degree[members]
    order = np.argsort(keys, kind="stable") if np.ptp(keys) else np.arange(len(keys))
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    for group in np.split(members[order], cuts):
        yield Kind(letter, int(size[group[0]]), int(degree[group[0]])), group


def _extremes(degree: Ints, owner: Ints, count: int) -> tuple[Ints, Ints]:
    low, high = np.full(count, np.iinfo(np.int32).max, np.int32), np.zeros(count, np.int32)
    graph.extremes(owner, degree, low, high)
    return low, high


def _keep_paths(mask: NDArray[np.bool_], size: Ints, ptr: Ints, degrees: Ints, rows: tuple[Ints, Ints]) -> None:
    """Drop from the mask the blocks in which a task shares neighbours with three others or more: stars, not paths.

    *degrees* holds the degree of every neighbour, row by row; a star has at least four tasks on a side.
    """
    if not (mask & (size > 3)).any():
        return
    shared = np.concatenate([[0], np.cumsum(degrees > 1)])
    of_task = shared[ptr[1:]] - shared[ptr[:-1]]
    block_ptr, tasks = rows
    mask &= np.maximum.reduceat(of_task[tasks], block_ptr[:-1]) <= 2


@dataclass(frozen=True, eq=False)
class Solutions:
    """The solutions of all blocks: `types` lists the different ones, `type_of[b]` is the one of block b."""

    blocks: Blocks
    types: list[Solution]
    type_of: Ints
    #: compressed rows like `blocks.source_rows`, each block's sources in the order of its solution, if it has one
    ordered: Ints

    @cached_property
    def all_admit(self) -> bool:
        """Whether every block has an order that attains its maxima."""
        return all(solution.order is not None or solution.kind is not None for solution in self.types)

    def __getitem__(self, block: int) -> Solution:
        return self.types[int(self.type_of[block])]


def solve_blocks(
    blocks: Blocks, most_sets: int = MOST_SETS, solved: MutableMapping[object, Any] | None = None
) -> Solutions:
    """Solve every block; equal blocks, and those *solved* before, are not solved again.

    Each block may compare half of the sets that remain of *most_sets*.
    """
    solved = {} if solved is None else solved
    ptr, sources = blocks.source_rows
    ordered, letter = sources.copy(), np.zeros(len(blocks), np.int32)
    types: list[Solution] = []
    type_of = np.full(len(blocks), -1, np.int32)
    for kind, members in recognise(blocks):
        type_of[members], letter[members] = len(types), WALK[kind.letter]
        types.append(Solution(kind, kind.profile, None, "end to end"))
    dag = blocks.dag
    rows = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent)
    walks.end_to_end(letter, ptr, sources, *blocks.sink_rows, *rows, np.zeros(len(dag), np.int32), ordered)
    type_by_shape: dict[bytes, int] = {}
    room = most_sets
    unnamed = np.flatnonzero(type_of < 0).tolist()
    for b, shape in zip(unnamed, blocks.shapes(unnamed), strict=True):
        if shape not in type_by_shape:
            type_by_shape[shape] = len(types)
            items = max(ALWAYS_ITEMS, min(MOST_ITEMS, room.bit_length() - 2))
            types.append(solved.get((shape, items)) or solve_one(blocks.block_dag(b), items))
            if len(solved) < MOST_SHAPES:
                solved[shape, items] = types[-1]
            room = max(0, room - types[-1].sets)
        type_of[b] = type_by_shape[shape]
        order = types[type_of[b]].order
        if order is not None:
            ordered[ptr[b] : ptr[b + 1]] = blocks.sources(b)[list(order)]
    return Solutions(blocks, types, type_of, ordered)


def solve_one(block: Dag, items: int = MOST_ITEMS) -> Solution:
    """Solve a block that has no name: its sources, or for a general block its nonsinks, are numbered first.

    If it has at most *items* items, all sets of them are compared.

    >>> solve_one(Dag.from_arrays(7, [0, 0, 0, 1, 1, 2], [3, 4, 5, 5, 6, 6])).maxima.tolist()
    [0, 2, 3, 4]
    """
    bipartite = block.depth <= 2
    most = MOST_ITEMS if bipartite else MOST_ITEMS_FOR_AREA
    subsets = Subsets.of(block, min(items, most))
    if subsets is not None:
        order = subsets.optimal_order()
        solution = Solution(None, subsets.maxima, _tuple(order), "subsets", admits=order is not None)
        return replace(solution, sets=1 << len(subsets))
    if bipartite:
        sources = int((block.outdegree > 0).sum())
        tree = block.arc_count == len(block) - 1
        if tree and (even := even_tree(block)) is not None:
            return Solution(None, even[0], tuple(even[1]), "even tree")
        if tree and sources <= LARGEST_TREE:
            return _solve_tree(block)
        dual = Subsets.of(block.dual(), min(items, MOST_ITEMS))
        if dual is not None:
            return _from_dual(block, dual)
    scant = items < most and any(Subsets.of(b, most) for b in ((block, block.dual()) if bipartite else (block,)))
    return Solution(None, _ceiling(block), None, "too large to solve", exact=False, admits=None, scant=scant)


def _tuple(order: list[int] | None) -> tuple[int, ...] | None:
    return None if order is None else tuple(order)


def _solve_tree(tree: Dag) -> Solution:
    maxima, order = tree_maxima(tree), planar_order(tree)
    attained = order is not None and _attains(tree, order, maxima)
    return Solution(None, maxima, _tuple(order) if attained else None, "tree", admits=True if attained else None)


def _attains(block: Dag, order: list[int], maxima: Profile) -> bool:
    from eligo.theory.eligibility import eligible_counts

    counts = eligible_counts(block, _with_sinks(block, order))[: len(maxima)]
    return bool((counts + np.arange(len(counts)) - counts[0] == maxima).all())


def _with_sinks(block: Dag, order: list[int]) -> Ints:
    return np.concatenate([order, np.flatnonzero(block.outdegree == 0)]).astype(np.int32)


def _from_dual(block: Dag, dual: Subsets) -> Solution:
    sources = int((block.outdegree > 0).sum())
    backwards = dual.optimal_order()
    order = None
    if backwards is not None:
        turned = block.dual()
        order = dual_schedule(turned, _with_sinks(turned, backwards))[:sources].tolist()
    solution = Solution(
        None, dual_maxima(dual.maxima, sources), _tuple(order), "dual subsets", admits=order is not None
    )
    return replace(solution, sets=1 << len(dual))


def _ceiling(block: Dag) -> Profile:
    """An upper bound of M(t): each nonsource is shared equally among its parents, and the largest shares are added up."""
    share = np.zeros(len(block), np.int64)
    np.add.at(
        share, block.parent, np.repeat(-(-WORTH // np.maximum(block.indegree, 1, dtype=np.int64)), block.indegree)
    )
    executing = np.sort(share[block.outdegree > 0])[::-1]
    sums: Profile = np.concatenate([[0], np.cumsum(executing)]) // WORTH
    return np.minimum(sums, int((block.indegree > 0).sum()))
