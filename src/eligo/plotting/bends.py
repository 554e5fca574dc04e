"""Arcs that jump levels: each gets a bend on every level between, so that drawings need arcs between neighbours only.

Long arcs of one task share their bends, so that they make one trunk and not a hedge.
"""

from dataclasses import dataclass
from functools import cached_property
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
