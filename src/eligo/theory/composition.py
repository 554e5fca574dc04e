"""Compositions whose blocks or units run one after another: ▷-linear compositions, and the extended regimen.

A composition is *▷-linear* if its blocks can run one after another, each ▷ the next [1]_, Theorem 2.1. Each segment of the
dag is tried by itself. Blocks of equal profile are one type; because ▷ is transitive, sorting the types decides whether all
are comparable, and the super-dag must not require another order. Then the blocks' own schedules, concatenated, are
IC-optimal, and the concatenated profiles are maximal.

**The extended regimen** uses sums of blocks as building blocks [2]_, section 4.2. Remove from the super-dag, repeatedly, (a)
a source ▷ every other source that is there once it is gone; if there is none, (b) all sources together, if their sum can be
swept and each ▷ every source that appears. The blocks removed at a time are a *unit*; run unit after unit, the blocks of one
interleaved by Sweep, the schedule is IC-optimal: a sum ▷ what each summand ▷ (Theorem 4.1, Corollary 4.1). Composition is
associative ([3]_, Lemma 2.1), so the order in which a dag was composed does not matter.

.. [1] Malewicz, Rosenberg, Yurkewych (2006), IEEE Trans. Comput. 55, 757-768.
.. [2] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
.. [3] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.rows import Ints, distinct
from eligo.theory.priority import precedes, sorted_chain
from eligo.theory.solutions import Solution, Solutions
from eligo.theory.sweep import Interleaving, sweep


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The blocks in the order of their schedule, segment by segment, and which segments are ▷-linear."""

    #: block numbers; within a segment that is not linear, merely topological
    sequence: Ints
    #: for each segment, whether its part is a ▷-linear composition
    linear: NDArray[np.bool_]


def linearise(solutions: Solutions, segment_of: Ints, segment_count: int) -> Linearisation:
    """The blocks, ▷-linearised in every segment that allows it; `segment_of` gives the segment of each block."""
    types = solutions.types
    rank, linear = _ranks(types, solutions.type_of, segment_of, segment_count)
    superdag = solutions.blocks.superdag
    tails = superdag.tails
    inverted = (segment_of[tails] == segment_of[superdag.child]) & (rank[tails] > rank[superdag.child])
    linear[segment_of[tails[inverted]]] = False
    rank[~linear[segment_of]] = 0
    depth = (
        superdag.height.max(initial=0) - superdag.height
    )  # longest remaining path first, compatible with the super-dag
    wide, tall = int(rank.max(initial=0)) + 1, int(depth.max(initial=0)) + 1
    key = (segment_of.astype(np.int64) * wide + rank) * tall + depth
    return Linearisation(np.argsort(key, kind="stable").astype(np.int32), linear)


def _ranks(
    types: Sequence[Solution], type_of: Ints, segment_of: Ints, segment_count: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rank of each block's type in its segment's chain, and whether that chain exists."""
    k = len(types)
    keys, inverse, counts = np.unique(
        segment_of.astype(np.int64) * k + type_of, return_inverse=True, return_counts=True
    )
    where, which = keys // max(k, 1), keys % max(k, 1)
    linear = np.ones(segment_count, np.bool_)
    solved = np.array([t.kind is not None or t.order is not None for t in types], np.bool_)
    linear[where[~solved[which]]] = False
    for t in distinct(which[(counts > 1) & solved[which]]).tolist():
        if not types[t].follows_itself:  # two of this type cannot follow one another
            linear[where[(which == t) & (counts > 1)]] = False
    ranks = np.zeros(len(keys), np.int64)

    @cache
    def chain_ranks(members: tuple[int, ...]) -> tuple[int, ...] | None:
        return _chain_ranks([types[m] for m in members])

    begins = np.flatnonzero(np.diff(where, prepend=-1))
    ends = np.append(begins, len(keys))[1:]
    for a, b in np.column_stack([begins, ends])[(ends - begins > 1) & linear[where[begins]]].tolist():
        member_ranks = chain_ranks(tuple(which[a:b].tolist()))
        linear[where[a]] = member_ranks is not None
        ranks[a:b] = member_ranks or 0
    return ranks[inverse], linear


def _chain_ranks(types: Sequence[Solution]) -> tuple[int, ...] | None:
    """Each type's place in a ▷-chain, equal for two that may go in either order; None if some are incomparable."""
    items = [t.item for t in types]
    chain = sorted_chain(items)
    if chain is None:
        return None
    ranks, rank = [0] * len(items), 0
    for before, after in itertools.pairwise(chain):
        rank += not precedes(items[after], items[before])
        ranks[after] = rank
    return tuple(ranks)


def concatenated_order(solutions: Solutions, sequence: Ints) -> Ints:
    """The blocks' own schedules one after another: every nonsink once."""
    ptr = solutions.blocks.source_rows[0]
    sizes = np.diff(ptr)[sequence]
    ends = np.cumsum(sizes)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
    order: Ints = solutions.ordered[np.repeat(ptr[sequence], sizes) + within]
    return order


# The extended regimen


MOST_BLOCKS = 1_000
LONGEST_SUM = 4_000

Unit = tuple[tuple[int, ...], Interleaving | None]


def extended_chain(solutions: Solutions) -> list[Unit] | None:
    """The units in order, each with its blocks and their interleaving; None if the regimen gets stuck."""
    if not solutions.all_admit or len(solutions.blocks) > MOST_BLOCKS:
        return None
    types, type_of = solutions.types, solutions.type_of.tolist()

    @cache
    def before(a: int, b: int) -> bool:
        return precedes(*(t.maxima if t.kind is None else t.kind for t in (types[a], types[b])))

    units: list[Unit] = []
    remaining = _Remaining(solutions.blocks.superdag)
    while remaining.sources:
        chosen = _single(remaining, type_of, before)
        if chosen is not None:
            units.append(((chosen,), None))
            remaining.remove([chosen])
            continue
        together = tuple(sorted(remaining.sources))
        mixed = _sweep_within(solutions, together)
        remaining.remove(together)
        if mixed is None or not all(before(type_of[a], type_of[b]) for a in together for b in remaining.sources):
            return None
        units.append((together, mixed))
    return units


class _Remaining:
    """The remaining super-dag, and its sources."""

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


def _single(remaining: _Remaining, type_of: list[int], before: Callable[[int, int], bool]) -> int | None:
    """The source that is ▷ all other sources, and all that it uncovers; of several, the one with the longest path below."""
    for block in sorted(remaining.sources, key=lambda b: (-remaining.height[b], b)):
        others = remaining.sources - {block}
        if all(before(type_of[block], type_of[other]) for other in [*others, *remaining.opened_by(block)]):
            return block
    return None


def _sweep_within(solutions: Solutions, blocks: tuple[int, ...]) -> Interleaving | None:
    profiles = [solutions[block].maxima for block in blocks]
    if sum(map(len, profiles)) > LONGEST_SUM:
        return None
    return sweep(profiles)


def units_order(solutions: Solutions, units: list[Unit]) -> Ints:
    """The nonsinks, unit by unit."""
    ptr = solutions.blocks.source_rows[0]
    pieces = []
    for blocks, mixed in units:
        rows = [solutions.ordered[ptr[b] : ptr[b + 1]] for b in blocks]
        if mixed is None:
            pieces.append(rows[0])
            continue
        pieces.append(np.array(mixed.merged([row.tolist() for row in rows]), np.int32))
    return np.concatenate([np.empty(0, np.int32), *pieces])
