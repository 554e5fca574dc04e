"""The layout of a dag: nodes merged until a drawing can be read, in rows by level, with few crossings and straight arcs.

The most similar nodes are merged first. Twins have the same kind, parents and children; a run is a chain of one kind. Both
are merged round by round while the drawing is too large. If that is not enough, runs of one family (for example all W(s,d))
are halved in length; then the nodes of one kind on a level, or of one family, become one; at last whole levels are joined.

The layered drawing of Sugiyama, Tagawa and Toda [1]_: an arc that jumps levels gets a bend on each level between, so that
only neighbours are connected; sweeps down and up sort every row by the barycentres of its neighbours; then each row is
placed as near to its neighbours as the widths allow, which is an isotonic regression. Long arcs of one task share their
bends, so that they make one trunk and not a hedge.

.. [1] Sugiyama, Tagawa, Toda (1981), IEEE Trans. Syst. Man Cybern. 11, 109-125.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.rows import Ints, distinct, places

# Merging nodes


MIXED = -1


@dataclass(frozen=True)
class Limits:
    """What a drawing can show legibly: nodes side by side, nodes one below the other, nodes, arcs."""

    width: int
    depth: int
    nodes: int
    arcs: int

    def too_wide(self, dag: Dag) -> bool:
        """Whether nodes of the same level must be merged."""
        widest = int(dag.level_sizes.max(initial=0))
        return widest > self.width or len(dag) > self.nodes or dag.arc_count > self.arcs

    def too_deep(self, dag: Dag) -> bool:
        """Whether nodes of different levels must be merged."""
        return dag.depth > self.depth

    def exceeded(self, dag: Dag) -> bool:
        """Whether a drawing of every node would be illegible."""
        return self.too_wide(dag) or self.too_deep(dag)


@dataclass(frozen=True, eq=False)
class Groups:
    """A dag whose nodes are groups of another's: `of[v]` is the group of node v, `kind` and `family` those of its nodes.

    Kinds and families are numbers; MIXED if a group has several.
    """

    dag: Dag
    of: Ints
    kind: Ints
    family: Ints

    @cached_property
    def members(self) -> list[Ints]:
        """The nodes of each group."""
        order = np.argsort(self.of, kind="stable").astype(np.int32)
        cuts = np.cumsum(np.bincount(self.of, minlength=len(self.dag)))[:-1]
        return np.split(order, cuts) if len(self.dag) else []

    def merged(self, label: Ints) -> "Groups":
        """The groups after merging those with equal labels, numbered by their first members."""
        _, first, which = np.unique(label, return_index=True, return_inverse=True)
        label = places(len(first), np.argsort(first))[which]
        tails, heads = label[self.dag.tails], label[self.dag.child]
        crossing = tails != heads
        small = Dag.from_arrays(len(first), tails[crossing], heads[crossing])
        return Groups(small, label[self.of], _common_value(self.kind, label), _common_value(self.family, label))


def numbered(values: Iterable[str]) -> tuple[list[str], Ints]:
    """The distinct values in the order of appearance, and the place of each value among them."""
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int32)
    return list(numbers), places


def group_nodes(dag: Dag, kind: Ints, family: Ints, limits: Limits) -> Groups:
    """The dag's nodes in groups, few enough to draw; each node alone if all can be drawn.

    >>> chain = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d"), ("c", "e"), ("c", "f")])
    >>> same = np.zeros(6, np.int32)
    >>> group_nodes(chain, same, same, Limits(2, 9, 9, 9)).of.tolist()
    [0, 1, 2, 3, 3, 3]
    """
    groups = Groups(dag, np.arange(len(dag), dtype=np.int32), kind, family)
    for trouble, merge in (
        (limits.exceeded, _alike),
        (limits.too_deep, _half_runs),
        (limits.too_wide, lambda g: _level_and(g, g.kind)),
        (limits.too_wide, lambda g: _level_and(g, g.family)),
        (limits.too_deep, _half_runs),
        (limits.too_deep, lambda g: g.dag.level // 2),
    ):
        groups = _merge_while(groups, trouble, merge)
    return groups


def _merge_while(groups: Groups, trouble: Callable[[Dag], bool], merge: Callable[[Groups], Ints]) -> Groups:
    while trouble(groups.dag):
        smaller = groups.merged(merge(groups))
        if len(smaller.dag) == len(groups.dag):
            break
        groups = smaller
    return groups


def _alike(groups: Groups) -> Ints:
    """Labels that merge twins; if there are none, runs of one kind."""
    dag = groups.dag
    ends = zip(dag.parent_ptr[:-1], dag.parent_ptr[1:], dag.child_ptr[:-1], dag.child_ptr[1:], strict=True)
    rows = ((dag.parent[a:b].tobytes(), dag.child[c:d].tobytes()) for a, b, c, d in ends)
    representatives: dict[tuple[int, tuple[bytes, bytes]], int] = {}
    keys = zip(groups.kind.tolist(), rows, strict=True)
    label = np.array([representatives.setdefault(key, v) for v, key in enumerate(keys)], np.int32)
    return label if len(representatives) < len(dag) else _runs(dag, groups.kind, np.zeros(len(dag), np.int32))


def _half_runs(groups: Groups) -> Ints:
    """Labels that merge every two neighbours in runs of one family."""
    return _runs(groups.dag, groups.family, groups.dag.level // 2)


def _runs(dag: Dag, kind: Ints, band: Ints) -> Ints:
    """Labels that merge each node with its only parent, whose only child it is, if both have the same kind and band."""
    label = np.arange(len(dag), dtype=np.int32)
    only = np.flatnonzero(dag.indegree == 1)
    parent = dag.parent[dag.parent_ptr[only]]
    joined = (dag.outdegree[parent] == 1) & (kind[parent] == kind[only]) & (band[parent] == band[only])
    up = dict(zip(only[joined].tolist(), parent[joined].tolist(), strict=True))
    for v in dag.order.tolist():
        if v in up:
            label[v] = label[up[v]]
    return label


def _level_and(groups: Groups, kind: Ints) -> Ints:
    return (groups.dag.level * (int(kind.max(initial=0)) + 2) + kind + 1).astype(np.int32)


def _common_value(values: Ints, label: Ints) -> Ints:
    """The common value of each group's members, or MIXED."""
    low = np.full(int(label.max(initial=-1)) + 1, np.iinfo(np.int32).max, np.int32)
    high = np.full(len(low), MIXED, np.int32)
    np.minimum.at(low, label, values)
    np.maximum.at(high, label, values)
    return np.where(low == high, low, MIXED).astype(np.int32)


# Rows with few crossings


Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Step = tuple[int, Integers, Integers]

LIGHT = 0.05  # the pull of a light arc; that of the others is 1


@dataclass(frozen=True, eq=False)
class Net:
    """Tasks and bends with the segments between neighbouring levels; `stops` lists each arc's nodes, level by level."""

    level: Integers
    rank: Integers  # the initial order within a row
    group: Integers  # the connected part that it belongs to; parts are drawn side by side
    heft: Floats  # how strongly it attracts its neighbours
    stops: Integers
    ptr: Integers

    @cached_property
    def gaps(self) -> list[tuple[Integers, Integers]]:
        """For each level but the last, the segments (upper node, lower node) below it."""
        inner = np.ones(max(len(self.stops) - 1, 0), np.bool_)
        inner[self.ptr[1:-1] - 1] = False
        nodes = len(self.level)
        upper, lower = divmod(distinct(self.stops[:-1][inner] * nodes + self.stops[1:][inner]), nodes)
        above = self.level[upper]
        return [(upper[above == k], lower[above == k]) for k in range(int(self.level.max(initial=0)))]

    @cached_property
    def passes(self) -> tuple[list[Step], list[Step]]:
        """One pass down and one up: each level, with its ends of the segments and their ends on the previous level."""
        down = [(k + 1, lower, upper) for k, (upper, lower) in enumerate(self.gaps)]
        return down, [(k, upper, lower) for k, (upper, lower) in enumerate(self.gaps)][::-1]


def with_bends(dag: Dag, rank: Integers, light: NDArray[np.bool_]) -> Net:
    """The dag's tasks, numbered as they are, then the bends; arcs marked *light* share none with the others."""
    n, depth, tails, heads = len(dag), max(dag.depth, 1), dag.tails, dag.child
    span = (dag.level[heads] - dag.level[tails]).astype(np.int64)
    far = span > 1
    from_tail = np.bincount(tails[far], minlength=n)[tails] >= np.bincount(heads[far], minlength=n)[heads]
    trunk = np.where(from_tail, tails, n + heads) + 2 * n * light.astype(np.int64)
    arc = np.repeat(np.arange(len(span)), span - 1)
    at = dag.level[tails[arc]] + 1 + np.arange(len(arc)) - (np.cumsum(span - 1) - span + 1)[arc]
    keys, which = np.unique(trunk[arc] * depth + at, return_inverse=True)
    ptr = np.concatenate([[0], np.cumsum(span + 1)])
    stops = np.full(ptr[-1], -1, np.int64)
    stops[ptr[:-1]], stops[ptr[1:] - 1] = tails, heads
    stops[stops < 0] = n + which
    owner = np.concatenate([np.arange(n), keys // depth % max(n, 1)])
    part = dag.component_labels()
    group = np.full(n, rank.max(initial=0))
    np.minimum.at(group, part, rank)
    level = np.concatenate([dag.level, keys % depth]).astype(np.int32)
    heft = np.where(np.concatenate([np.zeros(n), keys // depth]) >= 2 * n, LIGHT, 1.0)
    return Net(level, rank[owner], group[part][owner], heft, stops.astype(np.int32), ptr.astype(np.int32))


SORTING, SETTLING = 12, 6  # passes down and up to sort the rows, and to place them
GAP, BEND = 10.0, 2.0  # the room between neighbours in a row, and the width of a bend
LEAST_DROP, MOST_DROP = 24.0, 84.0  # between rows, more where arcs go far to the side


@dataclass(frozen=True, eq=False)
class Layout:
    """The centre (x, y) of every task, y falling from level to level, and for each arc the (x, y) of its bends."""

    x: Floats
    y: Floats
    bends: list[Floats]
    #: how many pairs of arcs cross, counted between neighbouring rows
    crossings: int


def layered(
    dag: Dag,
    widths: Floats | None = None,
    heights: Floats | None = None,
    rank: Integers | None = None,
    light: NDArray[np.bool_] | None = None,
) -> Layout:
    """A layered layout of a dag whose tasks have these widths and heights.

    Rows start in the order of *rank*, so that lower ranks tend to the left; arcs marked *light* hardly attract their ends
    and share no bends with the others.

    >>> drawn = layered(Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]))
    >>> bool(drawn.x[1] < drawn.x[0] == drawn.x[3] < drawn.x[2]), drawn.crossings
    (True, 0)
    """
    n = len(dag)
    light = np.zeros(dag.arc_count, np.bool_) if light is None else light
    net = with_bends(dag, np.arange(n) if rank is None else rank, light)
    width = np.full(len(net.level), BEND)
    width[:n] = 10.0 if widths is None else widths
    rows, crossings = _sort_rows(net)
    x = _place_nodes(net, rows, width)
    y = _heights(net, x, np.full(n, 10.0) if heights is None else heights)[net.level]
    points = np.column_stack([x, y])
    bends = [points[net.stops[a + 1 : b - 1]] for a, b in pairwise(net.ptr.tolist())]
    return Layout(x[:n], y[:n], bends, crossings)


def _sort_rows(net: Net) -> tuple[list[Integers], int]:
    """The nodes of each level from left to right, after the pass with the fewest crossings."""
    place = np.lexsort((net.rank, net.group, net.level)).argsort().astype(np.float64)
    best, fewest = place.copy(), count_crossings(net.gaps, place)
    rows: list[Integers] = [np.flatnonzero(net.level == k) for k in range(len(net.gaps) + 1)]
    unchanged = 0
    for steps in net.passes * SORTING:
        before = place.copy()
        for k, mine, theirs in steps:
            order = np.lexsort((place[rows[k]], _means(net, place, mine, theirs)[rows[k]], net.group[rows[k]]))
            place[rows[k][order]] = np.sort(place[rows[k]])
        crossings = count_crossings(net.gaps, place)
        if crossings < fewest:
            best, fewest = place.copy(), crossings
        unchanged = unchanged + 1 if np.array_equal(place, before) else 0
        if unchanged == len(net.passes):
            break
    return [row[np.argsort(best[row])] for row in rows], fewest


def _means(net: Net, values: Floats, mine: Integers, theirs: Integers) -> Floats:
    """The mean value of each node's neighbours, weighted by their heft; its own value if it has none."""
    weight = np.bincount(mine, net.heft[theirs], minlength=len(values))
    total = np.bincount(mine, (net.heft * values)[theirs], minlength=len(values))
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), values)


def count_crossings(gaps: list[tuple[Integers, Integers]], place: Floats) -> int:
    """The number of pairs of segments that cross if nodes are in the order of *place*."""
    total = 0
    for upper, lower in gaps:
        ups, up = np.unique(place[upper], return_inverse=True)
        downs, down = np.unique(place[lower], return_inverse=True)
        table = np.zeros((len(ups) + 1, len(downs) + 1), np.int64)
        table[up + 1, down + 1] = 1
        before = table.cumsum(0).cumsum(1)  # segments that start no further right and end no further right
        total += int((before[up, -1] - before[up, down + 1]).sum())
    return total


def _place_nodes(net: Net, rows: list[Integers], width: Floats) -> Floats:
    """The x of every node: rows move towards the row above or below, the last time outward from the widest."""
    x = np.zeros(len(net.level))
    rooms = [(width[row[1:]] + width[row[:-1]]) / 2 + GAP for row in rows]
    for row, room in zip(rows, rooms, strict=True):
        x[row] = np.concatenate([[0.0], np.cumsum(room)])[: len(row)] - room.sum() / 2
    widest, (down, up) = int(np.argmax([room.sum() for room in rooms])), net.passes
    outward = [step for step in down if step[0] > widest] + [step for step in up if step[0] < widest]
    for k, mine, theirs in (down + up) * SETTLING + outward:
        weight = np.bincount(mine, net.heft[theirs], minlength=len(x))[rows[k]] * net.heft[rows[k]] + 0.01
        x[rows[k]] = _spread(_means(net, x, mine, theirs)[rows[k]], weight, rooms[k])
    return x - (x - width / 2).min() if len(x) else x


def _spread(wanted: Floats, weight: Floats, room: Floats) -> Floats:
    """The places nearest to the wanted ones, in least squares, that keep the order and the room between neighbours."""
    offset = np.concatenate([[0.0], np.cumsum(room)])[: len(wanted)]
    pools: list[tuple[float, float, int]] = []  # mean, weight, size: pool adjacent violators
    for value, heavy in zip((wanted - offset).tolist(), weight.tolist(), strict=True):
        pool = (value, heavy, 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, mass, size = pools.pop()
            both = mass + pool[1]
            pool = ((mean * mass + pool[0] * pool[1]) / both, both, size + pool[2])
        pools.append(pool)
    means, _, sizes = zip(*pools, strict=True) if pools else ((), (), ())
    return offset + np.repeat(np.array(means, np.float64), sizes)


def _heights(net: Net, x: Floats, heights: Floats) -> Floats:
    """The y of each level."""
    tall = np.zeros(int(net.level.max(initial=0)) + 1)
    np.maximum.at(tall, net.level[: len(heights)], heights)
    aside = [float(np.abs(x[a] - x[b]).max(initial=0.0)) for a, b in net.gaps]
    drop = np.clip(0.18 * np.array(aside), LEAST_DROP, MOST_DROP)
    return -np.concatenate([[0.0], np.cumsum(drop + (tall[1:] + tall[:-1]) / 2)])
