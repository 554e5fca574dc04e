"""The connected components of a bipartite residual, told apart by shape: named blocks by counting, others by their arcs.

Components of one shape are kept together and solved once, so a state with a hundred thousand small components costs no more
than its few shapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

import numpy as np

from eligo.batches.limits import LARGEST_TREE
from eligo.batches.solving import BatchSolution, solve
from eligo.dag import Dag
from eligo.deciding.clock import Clock
from eligo.kernels import walks
from eligo.rows import Ints, gathered
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.priority import Kind
from eligo.theory.solutions import WALK, recognise

ARC_BYTES = 8  # two numbers an arc

#: a named family, or the numbers of sources and sinks and the arcs
ShapeKey = Kind | tuple[int, int, bytes]


class Component(NamedTuple):
    """A component: its shape, its sources in the order of the shape's numbers, and the longest path that begins in it."""

    key: ShapeKey
    sources: Ints
    height: int


@dataclass(eq=False)
class Shape:
    """The components of one shape, each under its number, and how they are best executed."""

    key: ShapeKey
    members: dict[int, Component] = field(default_factory=dict)
    _solution: BatchSolution | None = None

    @property
    def kind(self) -> Kind | None:
        """The named family that it is of, if any."""
        return self.key if isinstance(self.key, Kind) else None

    @property
    def sources(self) -> int:
        """How many sources each member has."""
        return len(next(iter(self.members.values())).sources)

    @property
    def sinks(self) -> int:
        """How many sinks each member has."""
        return int(self.key.profile[-1]) if isinstance(self.key, Kind) else self.key[1]

    @property
    def is_tree(self) -> bool:
        """Whether it has no more arcs than hold it together."""
        return not isinstance(self.key, Kind) and len(self.key[2]) == ARC_BYTES * (self.key[0] + self.key[1] - 1)

    def first(self, count: int) -> list[Ints]:
        """The sources of that many members: those in which the longest paths begin, the oldest among equals."""
        if count >= len(self.members):
            return [member.sources for member in self.members.values()]
        return [member.sources for member in nsmallest(count, self.members.values(), key=_lowness)]

    def dag(self) -> Dag:
        """One member as a dag by itself, its sources numbered first."""
        assert not isinstance(self.key, Kind)  # noqa: S101 - named families need no dag
        sources, sinks, arcs = self.key
        tails, heads = np.frombuffer(arcs, np.int32).reshape(2, -1)
        return Dag.from_checked(sources + sinks, tails, heads + np.int32(sources), None)

    def solution(self, limit: int, clock: Clock) -> BatchSolution | None:
        """The best batches of up to *limit* sources; None where that takes too long."""
        size = min(limit, self.sources)
        if self._solution is None or not self._solution.reaches(size):
            large = self.is_tree and self.sources * size > LARGEST_TREE
            self._solution = None if large else solve(self.dag(), size, clock)
        return self._solution


def _lowness(component: Component) -> int:
    return -component.height


def components(residual: Dag, sources: Ints, height: Ints) -> Iterator[Component]:
    """The components of a bipartite dag without isolated tasks; *sources* are the tasks that its sources stand for.

    >>> three = Dag.from_arrays(6, [0, 1, 2, 2], [3, 3, 4, 5])
    >>> [(str(c.key), c.sources.tolist()) for c in components(three, np.array([7, 8, 9]), np.array([1, 1, 1]))]
    [('M(1,2)', [7, 8]), ('W(1,2)', [9])]
    """
    blocks = decompose(residual)
    ptr, own = blocks.source_rows
    ordered, letter = own.copy(), np.zeros(len(blocks), np.int32)
    kinds: dict[int, Kind] = {}
    for kind, members in recognise(blocks):
        letter[members] = WALK[kind.letter]
        kinds.update(dict.fromkeys(members.tolist(), kind))
    rows = (residual.child_ptr, residual.child, residual.parent_ptr, residual.parent)
    walks.end_to_end(letter, ptr, own, *blocks.sink_rows, *rows, np.zeros(len(residual), np.int32), ordered)
    tasks, begins = sources[ordered], ptr.tolist()
    heights = np.maximum.reduceat(height[ordered], ptr[:-1]).tolist()
    shapes = _Arcs(blocks) if len(kinds) < len(blocks) else None
    for b in range(len(blocks)):
        key = kinds[b] if shapes is None or b in kinds else shapes.key(b)
        yield Component(key, tasks[begins[b] : begins[b + 1]], heights[b])


class _Arcs:
    """The arcs of every block, with its sources and its sinks numbered from 0 each."""

    def __init__(self, blocks: Blocks) -> None:
        residual = blocks.dag
        source_ptr, sources = blocks.source_rows
        sink_ptr, _ = blocks.sink_rows
        place = np.empty(len(residual), np.int32)
        for ptr, tasks in (blocks.source_rows, blocks.sink_rows):
            place[tasks] = np.arange(len(tasks)) - np.repeat(ptr[:-1], np.diff(ptr))
        children, degree = gathered(residual.child_ptr, residual.child, sources)
        self.tails, self.heads = np.repeat(place[sources], degree), place[children]
        self.ptr = np.concatenate([[0], np.cumsum(blocks.arc_counts)]).tolist()
        self.sizes = np.stack([np.diff(source_ptr), np.diff(sink_ptr)], axis=1).tolist()

    def key(self, block: int) -> ShapeKey:
        """The shape of an unnamed block."""
        span = slice(self.ptr[block], self.ptr[block + 1])
        sources, sinks = self.sizes[block]
        return sources, sinks, self.tails[span].tobytes() + self.heads[span].tobytes()
