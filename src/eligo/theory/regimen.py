"""The extended regimen: sums of blocks as building blocks [1]_, section 4.2.

Remove from the super-dag, again and again, (a) a source ▷ every other source that is there once it is gone; where there is
none, (b) all sources together, if their sum can be swept and each ▷ every source that appears. What is removed at a time is
a *unit*; run unit after unit, the blocks of one interleaved by Sweep, the schedule is IC-optimal.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints
from eligo.theory.priority import precedes
from eligo.theory.solutions import Solutions
from eligo.theory.sweep import Interleaving, sweep

MOST_BLOCKS = 1_000
LONGEST_SUM = 4_000

Unit = tuple[tuple[int, ...], Interleaving | None]


def extended_chain(solutions: Solutions) -> list[Unit] | None:
    """The units in their order, each its blocks and how they are interleaved; None where the regimen gets stuck."""
    if not solutions.all_admit or len(solutions.blocks) > MOST_BLOCKS:
        return None
    types, type_of = solutions.types, solutions.type_of.tolist()

    @cache
    def before(a: int, b: int) -> bool:
        return precedes(*(t.maxima if t.kind is None else t.kind for t in (types[a], types[b])))

    units: list[Unit] = []
    remaining = _Left(solutions.blocks.superdag)
    while remaining.sources:
        chosen = _single(remaining, type_of, before)
        if chosen is not None:
            units.append(((chosen,), None))
            remaining.remove([chosen])
            continue
        together = tuple(sorted(remaining.sources))
        mixed = _swept(solutions, together)
        remaining.remove(together)
        if mixed is None or not all(before(type_of[a], type_of[b]) for a in together for b in remaining.sources):
            return None
        units.append((together, mixed))
    return units


class _Left:
    """What is left of a super-dag, and its sources."""

    def __init__(self, superdag: Dag) -> None:
        ptr, child = superdag.child_ptr.tolist(), superdag.child.tolist()
        self.children = [child[a:b] for a, b in itertools.pairwise(ptr)]
        self.missing = superdag.indegree.tolist()
        self.height = superdag.height.tolist()
        self.sources = {b for b, missing in enumerate(self.missing) if not missing}

    def opened_by(self, block: int) -> list[int]:
        return [c for c in self.children[block] if self.missing[c] == 1]

    def remove(self, blocks: tuple[int, ...] | list[int]) -> None:
        for block in blocks:
            self.sources.remove(block)
            for c in self.children[block]:
                self.missing[c] -= 1
                if not self.missing[c]:
                    self.sources.add(c)


def _single(remaining: _Left, type_of: list[int], before: Callable[[int, int], bool]) -> int | None:
    """A source ▷ all others that are sources once it is gone, the one with the longest path below it."""
    for block in sorted(remaining.sources, key=lambda b: (-remaining.height[b], b)):
        others = remaining.sources - {block}
        if all(before(type_of[block], type_of[other]) for other in [*others, *remaining.opened_by(block)]):
            return block
    return None


def _swept(solutions: Solutions, blocks: tuple[int, ...]) -> Interleaving | None:
    profiles = [solutions[block].maxima for block in blocks]
    if sum(map(len, profiles)) > LONGEST_SUM:
        return None
    return sweep(profiles)


def units_order(solutions: Solutions, units: list[Unit]) -> Ints:
    """The nonsinks unit by unit."""
    ptr = solutions.blocks.source_rows[0]
    pieces = []
    for blocks, mixed in units:
        rows = [solutions.ordered[ptr[b] : ptr[b + 1]] for b in blocks]
        if mixed is None:
            pieces.append(rows[0])
            continue
        pieces.append(np.array(mixed.merged([row.tolist() for row in rows]), np.int32))
    return np.concatenate([np.empty(0, np.int32), *pieces])
