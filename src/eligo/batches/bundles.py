"""Components put together: what k requests render in several of them, and who gets how many.

Of named blocks W, N and M nothing need be computed: sorted by priority ▷, W by falling degree, then N, then M by rising
degree, each precedes the next, and then running them one after another is best for every k. Copies of one cycle, or of one
clique, precede each other too. The rest goes through the knapsack.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from eligo.batches.components import Shape
from eligo.batches.knapsack import Knapsack, Ranged
from eligo.batches.solving import BatchSolution
from eligo.rows import Ints
from eligo.theory.priority import Kind
from eligo.theory.profiles import Profile


class Bundle(Protocol):
    """Several components as one: `table` says how many sinks k requests render, `deal` which tasks do it."""

    @property
    def table(self) -> Profile:
        """The most that 0, 1, ... requests render, up to the limit or until all sources are executed."""
        ...

    def deal(self, size: int) -> Iterator[Ints]:
        """The tasks to execute, that many in all."""
        ...


class ChainBundle:
    """Components that are best run one after another: those of named shapes, each of which precedes the next.

    >>> from eligo.batches.components import Component
    >>> m, w = Kind("M", 1, 2), Kind("W", 1, 3)
    >>> members = Component(m, np.array([5, 6]), 1), Component(w, np.array([7]), 1)
    >>> both = ChainBundle([Shape(m, {0: members[0]}), Shape(w, {1: members[1]})], limit=3)
    >>> both.table.tolist(), [tasks.tolist() for tasks in both.deal(2)]
    ([0, 3, 3, 4], [[7], [5]])
    """

    def __init__(self, shapes: Iterable[Shape], limit: int) -> None:
        self.shapes, self.limit = sorted(shapes, key=lambda shape: _place(shape.kind)), limit

    @cached_property
    def table(self) -> Profile:
        """The profiles one after another."""
        gains: list[Profile] = []
        left = self.limit
        for shape in self.shapes:
            assert shape.kind is not None  # noqa: S101 - chains are made of named shapes
            copies = min(len(shape.members), -(-left // shape.sources))
            gains.append(np.tile(np.diff(shape.kind.profile[: left + 1]), copies)[:left])
            left -= len(gains[-1])
            if not left:
                break
        return np.concatenate([[0], np.cumsum(np.concatenate(gains))]) if gains else np.zeros(1, np.int64)

    def deal(self, size: int) -> Iterator[Ints]:
        """The first sources in the order of the chain."""
        for shape in self.shapes:
            for sources in shape.first(-(-size // shape.sources)):
                yield sources[:size]
                size -= min(size, len(sources))
            if not size:
                return


class Copies:
    """Components of one shape that has been solved, shared out by the knapsack."""

    def __init__(self, shape: Shape, solution: BatchSolution, limit: int) -> None:
        self.shape, self.solution = shape, solution
        copies = min(len(shape.members), limit)
        self.knapsack = Knapsack([Ranged(0, solution.table)] * copies, limit)

    @property
    def table(self) -> Profile:
        """What the knapsack found."""
        return self.knapsack.best.values

    def deal(self, size: int) -> Iterator[Ints]:
        """The best sources of each copy, as many as it got."""
        parts = sorted(filter(None, self.knapsack.split(size)), reverse=True)
        for part, sources in zip(parts, self.shape.first(len(parts)), strict=True):
            yield sources[self.solution.choose(part)]


def chains(shapes: Iterable[Shape], limit: int) -> Iterator[ChainBundle]:
    """The named shapes as few chains: all W, N and M are one, every cycle and every clique one."""
    linear = []
    for shape in shapes:
        if shape.kind is not None and shape.kind.letter in "WNM":
            linear.append(shape)
        elif shape.kind is not None:
            yield ChainBundle([shape], limit)
    if linear:
        yield ChainBundle(linear, limit)


def _place(kind: Kind | None) -> tuple[int, int, int]:
    """Where a named block stands in the chain."""
    assert kind is not None  # noqa: S101 - chains are made of named shapes
    match kind.letter:
        case "W":
            return (0, -kind.d, kind.s)
        case "M":
            return (2, kind.d, -kind.s)
        case _:
            return (1, 0, kind.s)
