"""▷-chains for fat tasks: which blocks may be taken from a chain, and chains from which any fat task may be taken.

A chain is the subject of Theorem 1 of [1]_: the blocks of a dag, each ▷ the next, in an order that the super-dag allows. If
whole blocks are taken, an ancestor-closed set of them, the others are still such a chain (Lemma 2). If the beginning of the
first block of a chain is taken, the rest of its schedule is still best (Theorem 4). So a chain is kept as long as every block
is complete, or gone, or the first remaining one and started in its own order.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints, pointers
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.composition import concatenated_order, linearise
from eligo.theory.priority import Kind
from eligo.theory.skeleton import segments, skeleton
from eligo.theory.solutions import Solutions, recognise, solve_blocks, solve_one

# Chains

MANY_BLOCKS = 10  # blocks without a name, from which on the largest is solved before the others


@dataclass(frozen=True, eq=False)
class Chain:
    """The blocks of a dag in the order of a ▷-chain; `tasks` maps its tasks to those of a larger dag."""

    solutions: Solutions
    #: block numbers of the decomposition, first to last
    sequence: Ints
    tasks: Ints

    def __len__(self) -> int:
        return len(self.sequence)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The blocks' names, first to last."""
        names = [solution.name for solution in self.solutions.types]
        return tuple(names[t] for t in self.solutions.type_of[self.sequence].tolist())

    @cached_property
    def order(self) -> Ints:
        """An IC-optimal schedule: the blocks' sources, block after block, and then the sinks."""
        dag = self.solutions.blocks.dag
        nonsinks = concatenated_order(self.solutions, self.sequence)
        order: Ints = self.tasks[np.concatenate([nonsinks, np.flatnonzero(dag.outdegree == 0)])]
        return order

    @cached_property
    def begin(self) -> list[int]:
        """The places in `order` at which the blocks begin, and the end of the last one."""
        ptr = self.solutions.blocks.source_rows[0]
        begin: list[int] = pointers(np.diff(ptr)[self.sequence]).tolist()
        return begin

    def members(self, place: int) -> list[int]:
        """The sources of a block, in the order of its schedule."""
        members: list[int] = self.order[self.begin[place] : self.begin[place + 1]].tolist()
        return members

    @cached_property
    def places(self) -> Mapping[int, int]:
        """For every nonsink, the place of its block in the chain."""
        owner = [place for place, (a, b) in enumerate(pairwise(self.begin)) for _ in range(a, b)]
        return dict(zip(self.order[: len(owner)].tolist(), owner, strict=True))


def chain_of(dag: Dag, tasks: Ints | None = None) -> Chain | None:
    """The dag as a ▷-chain of blocks, or None if it is not one.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> chain_of(mesh).kinds
    ('W(1,2)', 'W(2,2)')
    """
    bare = skeleton(dag)
    blocks = decompose(bare)
    if _is_hopeless(blocks):
        return None
    solutions = solve_blocks(blocks)
    label = segments(bare)
    ptr, sources = solutions.blocks.source_rows
    line = linearise(solutions, label[sources[ptr[:-1]]], int(label.max(initial=-1)) + 1)
    if not line.linear.all():
        return None
    return Chain(solutions, line.sequence, np.arange(len(dag), dtype=np.int32) if tasks is None else tasks)


def _is_hopeless(blocks: Blocks) -> bool:
    """Whether the largest of many blocks without a name has no best order: then the others need not be solved."""
    unnamed = np.ones(len(blocks), np.bool_)
    for _, members in recognise(blocks):
        unnamed[members] = False
    if unnamed.sum() < MANY_BLOCKS:
        return False
    largest = int(np.argmax(np.where(unnamed, np.diff(blocks.source_rows[0]), 0)))
    return solve_one(blocks.block_dag(largest)).order is None


def chain_text(kinds: Iterable[str], most: int = 12) -> str:
    """A chain as text, with equal neighbours counted.

    >>> chain_text(["W(1,2)", "W(1,2)", "W(2,2)"])
    '2 W(1,2) ▷ W(2,2)'
    """
    runs = [(kind, sum(1 for _ in group)) for kind, group in groupby(kinds)]
    terms = [f"{count} {kind}" if count > 1 else kind for kind, count in runs]
    return " ▷ ".join(terms if len(terms) <= most else [*terms[: most - 2], "...", terms[-1]])


# Donors


#: whether what remains of a block at its first and at its last source is a W-dag, as it is everywhere between; else an N-dag
CUT = {"W": (True, True), "N": (True, False), "M": (False, False)}


def is_straight(chain: Chain) -> bool:
    """Whether any fat task leaves a ▷-chain, so that the remaining dag has an IC-optimal schedule: a proved condition.

    It replaces the conditions of Theorems 6 and 7, which are false as printed. docs/understand/clusters.md has the proof.

    >>> from eligo import families
    >>> is_straight(chain_of(families.out_mesh(5))), is_straight(chain_of(families.in_mesh(5)))
    (True, True)
    >>> is_straight(chain_of(families.butterfly(2)))
    False
    """
    solutions = chain.solutions
    blocks, kinds = solutions.blocks, [solutions[b].kind for b in range(len(solutions.blocks))]
    ptr, sources = blocks.source_rows
    stretch = segments(blocks.dag)[sources[ptr[:-1]]].tolist()
    together: dict[int, set[Kind | None]] = {}
    for b, kind in enumerate(kinds):
        together.setdefault(stretch[b], set()).add(kind)
    if not all(map(_has_comparable_pieces, together.values())):
        return False
    mergers = _Mergers.of(solutions, [kind for kind in kinds if kind is not None])
    pairs = zip(blocks.superdag.tails.tolist(), blocks.superdag.child.tolist(), strict=True)
    return all(mergers.are_straight(*pair) for pair in pairs if stretch[pair[0]] == stretch[pair[1]])


def _has_comparable_pieces(kinds: Collection[Kind | None]) -> bool:
    """Whether of any two pieces that may remain of such blocks one ▷ the other."""
    named = [kind for kind in kinds if kind is not None]
    letters = Counter(kind.letter for kind in named)
    wide = any(kind.letter == "M" and kind.s > 1 and kind.d > 2 for kind in named)
    if wide or letters["Q"] or len(named) < len(kinds):
        return False
    return not letters["C"] or (letters["C"] == 1 and letters.keys() <= {"C", "W", "Q"})


@dataclass(frozen=True, eq=False)
class _Mergers:
    """For every task that is a sink of a block, the places of its first and its last parent in that block's schedule."""

    solutions: Solutions
    kinds: list[Kind]
    low: Ints
    high: Ints

    @classmethod
    def of(cls, solutions: Solutions, kinds: list[Kind]) -> "_Mergers":
        """Those of these blocks."""
        dag, ptr = solutions.blocks.dag, solutions.blocks.source_rows[0]
        place = np.zeros(len(dag), np.int64)
        place[solutions.ordered] = np.arange(ptr[-1]) - np.repeat(ptr[:-1], np.diff(ptr))
        low, high = np.full(len(dag), len(dag)), np.full(len(dag), -1)
        np.minimum.at(low, dag.child, place[dag.tails])
        np.maximum.at(high, dag.child, place[dag.tails])
        return cls(solutions, kinds, low, high)

    def are_straight(self, above: int, below: int) -> bool:
        """Whether no piece of the lower block can be below a piece of the upper one without following it in priority."""
        upper, lower = self.kinds[above], self.kinds[below]
        ptr = self.solutions.blocks.source_rows[0]
        sources = self.solutions.ordered[ptr[below] : ptr[below + 1]]
        size, count = len(sources), int(ptr[above + 1] - ptr[above])
        single = size == 1 or (lower.letter == "M" and lower.s == 1 and upper.letter != "M")
        if single or (upper.letter == "W" and upper.d > max(2, lower.d)):
            return True
        merged = np.flatnonzero(self.solutions.blocks.sink_of[sources] == above)
        low, high = self.low[sources[merged]], self.high[sources[merged]]
        first, last = int(merged[0]), int(merged[-1])
        if last - first + 1 > len(merged) or (lower.letter == "M" and max(upper.d, lower.d) > 2):
            return False
        if "C" in (upper.letter, lower.letter):
            return upper == lower and len(merged) == size and _is_turned(np.where(high - low == 1, low, high), size)
        wants = (first > 0 or CUT[lower.letter][0], last < size - 1 or CUT[lower.letter][1])
        begins, ends = CUT[upper.letter]
        return _keeps_step(low, high, count, wants, (begins, ends)) or _keeps_step(
            count - 1 - high, count - 1 - low, count, wants, (ends, begins)
        )


def _keeps_step(low: Ints, high: Ints, count: int, wants: tuple[bool, bool], cut: tuple[bool, bool]) -> bool:
    """Whether the parents move on by at most one place at a time, and begin and finish with the upper block if need be."""
    steps = np.concatenate([np.diff(low), np.diff(high)])
    begins = not wants[0] or (cut[0] and high[0] == 0)
    ends = not wants[1] or (cut[1] and low[-1] == count - 1)
    return bool(((steps == 0) | (steps == 1)).all() and begins and ends)


def _is_turned(place: Ints, size: int) -> bool:
    """Whether a cycle lies on a cycle of the same size without a twist."""
    steps = np.diff(place, append=place[:1]) % size
    return bool((steps == 1).all() or (steps == size - 1).all()) or size == 2
