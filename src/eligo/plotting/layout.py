"""Where to draw the tasks of a dag: in rows by level, with few crossings and straight ways.

The layered drawing of Sugiyama, Tagawa and Toda [1]_: an arc that jumps levels gets a bend on each level between, so that
only neighbours are connected; sweeps down and up sort every row by the barycentres of its neighbours; then each row is
placed as near to its neighbours as the widths allow, which is an isotonic regression. Long arcs of one task share their
bends, so that they make one trunk and not a hedge.

.. [1] Sugiyama, Tagawa, Toda (1981), IEEE Trans. Syst. Man Cybern. 11, 109-125.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag

Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Step = tuple[int, Ints, Ints]

LIGHT = 0.05  # the pull of a light arc; that of the others is 1


@dataclass(frozen=True, eq=False)
class Net:
    """Tasks and bends with the segments between neighbouring levels; `stops` lists each arc's nodes, row by row."""

    level: Ints
    rank: Ints  # where a node would like to be in its row, before anything else is known
    group: Ints  # the connected part it belongs to; parts stand side by side
    heft: Floats  # how much its neighbours are drawn to it
    stops: Ints
    ptr: Ints

    @cached_property
    def gaps(self) -> list[tuple[Ints, Ints]]:
        """For each level but the last, the segments (upper node, lower node) below it."""
        inner = np.ones(max(len(self.stops) - 1, 0), np.bool_)
        inner[self.ptr[1:-1] - 1] = False
        pairs = np.unique(np.column_stack([self.stops[:-1], self.stops[1:]])[inner], axis=0)
        above = self.level[pairs[:, 0]]
        return [(pairs[above == k, 0], pairs[above == k, 1]) for k in range(int(self.level.max(initial=0)))]

    @cached_property
    def passes(self) -> tuple[list[Step], list[Step]]:
        """One pass down and one up: each level with its ends of the segments and those of the level just passed."""
        down = [(k + 1, lower, upper) for k, (upper, lower) in enumerate(self.gaps)]
        return down, [(k, upper, lower) for k, (upper, lower) in enumerate(self.gaps)][::-1]


def with_bends(dag: Dag, rank: Ints, light: NDArray[np.bool_]) -> Net:
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
    rank: Ints | None = None,
    light: NDArray[np.bool_] | None = None,
) -> Layout:
    """A layered layout of a dag whose tasks have these widths and heights.

    Rows begin in the order of *rank*, so that the lower stand to the left where nothing speaks against it; arcs marked
    *light* hardly pull at their ends and share no bends with the others.

    >>> drawn = layered(Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]))
    >>> bool(drawn.x[1] < drawn.x[0] == drawn.x[3] < drawn.x[2]), drawn.crossings
    (True, 0)
    """
    n = len(dag)
    light = np.zeros(dag.arc_count, np.bool_) if light is None else light
    net = with_bends(dag, np.arange(n) if rank is None else rank, light)
    width = np.full(len(net.level), BEND)
    width[:n] = 10.0 if widths is None else widths
    rows, crossings = _ordered(net)
    x = _placed(net, rows, width)
    y = _heights(net, x, np.full(n, 10.0) if heights is None else heights)[net.level]
    places = np.column_stack([x, y])
    bends = [places[net.stops[a + 1 : b - 1]] for a, b in pairwise(net.ptr.tolist())]
    return Layout(x[:n], y[:n], bends, crossings)


def _ordered(net: Net) -> tuple[list[Ints], int]:
    """The nodes of each level from left to right, after the pass with the fewest crossings."""
    place = np.lexsort((net.rank, net.group, net.level)).argsort().astype(np.float64)
    best, fewest = place.copy(), count_crossings(net.gaps, place)
    rows: list[Ints] = [np.flatnonzero(net.level == k) for k in range(len(net.gaps) + 1)]
    for steps in net.passes * SORTING:
        for k, mine, theirs in steps:
            order = np.lexsort((place[rows[k]], _means(net, place, mine, theirs)[rows[k]], net.group[rows[k]]))
            place[rows[k][order]] = np.sort(place[rows[k]])
        crossings = count_crossings(net.gaps, place)
        if crossings < fewest:
            best, fewest = place.copy(), crossings
    return [row[np.argsort(best[row])] for row in rows], fewest


def _means(net: Net, values: Floats, mine: Ints, theirs: Ints) -> Floats:
    """The mean value of each node's neighbours, by their heft; its own where it has none."""
    weight = np.bincount(mine, net.heft[theirs], minlength=len(values))
    total = np.bincount(mine, (net.heft * values)[theirs], minlength=len(values))
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), values)


def count_crossings(gaps: list[tuple[Ints, Ints]], place: Floats) -> int:
    """How many pairs of segments cross when nodes stand in the order of *place*."""
    total = 0
    for upper, lower in gaps:
        ups, up = np.unique(place[upper], return_inverse=True)
        downs, down = np.unique(place[lower], return_inverse=True)
        table = np.zeros((len(ups) + 1, len(downs) + 1), np.int64)
        table[up + 1, down + 1] = 1
        before = table.cumsum(0).cumsum(1)  # segments that start no further right and end no further right
        total += int((before[up, -1] - before[up, down + 1]).sum())
    return total


def _placed(net: Net, rows: list[Ints], width: Floats) -> Floats:
    """The x of every node: each row is drawn to the row above or below, the last time outward from the widest."""
    x = np.zeros(len(net.level))
    rooms = [(width[row[1:]] + width[row[:-1]]) / 2 + GAP for row in rows]
    for row, room in zip(rows, rooms, strict=True):
        x[row] = np.concatenate([[0.0], np.cumsum(room)])[: len(row)] - room.sum() / 2
    widest, (down, up) = int(np.argmax([room.sum() for room in rooms])), net.passes
    outward = [step for step in down if step[0] > widest] + [step for step in up if step[0] < widest]
    for k, mine, theirs in (down + up) * SETTLING + outward:
        weight = np.bincount(mine, net.heft[theirs], minlength=len(x))[rows[k]] * net.heft[rows[k]] + 0.01
        x[rows[k]] = _spread_out(_means(net, x, mine, theirs)[rows[k]], weight, rooms[k])
    return x - (x - width / 2).min() if len(x) else x


def _spread_out(wanted: Floats, weight: Floats, room: Floats) -> Floats:
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
