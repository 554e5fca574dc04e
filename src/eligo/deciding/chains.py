"""A ▷-linear segment while it is executed out of order: only the blocks that were touched are solved again.

What is left of a block falls into blocks of its own, its *pieces*. The segment stays ▷-linear exactly when all types of
blocks and pieces that are there are solved and comparable, those that are there more than once precede themselves, and no
arc of the super-dag leads from a type to one that precedes it alone. Each of that is kept up to date by itself: because ▷ is
transitive, a new type is compared with few of the others, and only arcs of pieces are looked at.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.rows import Ints, gathered
from eligo.theory.blocks import decompose
from eligo.theory.composition import linearise
from eligo.theory.priority import Kind, precedes
from eligo.theory.profiles import Profile
from eligo.theory.series import segment_dag
from eligo.theory.solutions import Solution, solve_blocks


class Piece(NamedTuple):
    """A block of what is left of a block: its type, its sources in their order, and how far down its block lies."""

    type: int
    tasks: Ints
    depth: int


class Types:
    """The types of blocks that are there, in the order of ▷ as far as they are comparable."""

    def __init__(self) -> None:
        self.solutions: list[Solution] = []
        self.counts: list[int] = []
        self._sums: list[int] = []
        self._known: dict[Kind | bytes, int] = {}
        self._before: dict[tuple[int, int], bool] = {}
        #: the types that are there and comparable, each ▷ the next
        self.chain: list[int] = []
        self._astray: set[int] = set()  # that are there, but not in the chain

    def number(self, solution: Solution) -> int:
        """The number of a type, a new one where it was never seen."""
        key = solution.maxima.tobytes() + bytes([_is_solved(solution)]) if solution.kind is None else solution.kind
        if key not in self._known:
            self._known[key] = len(self.solutions)
            self.solutions.append(solution)
            self.counts.append(0)
            self._sums.append(int(solution.maxima.sum()))
        return self._known[key]

    def begin(self, counts: dict[int, int], linear: bool) -> None:
        """So many of each type are there, and in a chain as listed where they are *linear*."""
        for t, count in counts.items():
            self.counts[t] = count
        self.chain, self._astray = (list(counts), set()) if linear else ([], set(counts))

    def before(self, a: int, b: int) -> bool:
        """Whether type a ▷ type b."""
        if (a, b) not in self._before:
            self._before[a, b] = precedes(*(_item(self.solutions[t]) for t in (a, b)))
        return self._before[a, b]

    def add(self, t: int, times: int = 1) -> None:
        """So many more of a type are there, or fewer."""
        was = self.counts[t]
        self.counts[t] += times
        if not was:
            self._astray.add(t)
        elif not self.counts[t]:
            self._astray.discard(t)
            if t in self.chain:
                self.chain.remove(t)

    def linear(self) -> bool:
        """Whether all types that are there are in one chain."""
        for t in sorted(self._astray):
            if _is_solved(self.solutions[t]) and self._inserted(t):
                self._astray.remove(t)
        return not self._astray and all(self.before(t, t) for t in self.chain if self.counts[t] > 1)

    def _inserted(self, t: int) -> bool:
        """Whether a type found its place: behind all that precede it, if it precedes the next."""
        low, high = 0, len(self.chain)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.before(self.chain[middle], t) else (low, middle)
        if low < len(self.chain) and not self.before(t, self.chain[low]):
            return False
        self.chain.insert(low, t)
        return True

    def area(self) -> int:
        """The sum of the cumulative profile of all that is there, one after another."""
        total = base = 0
        for t in self.chain:
            count, maxima = self.counts[t], self.solutions[t].maxima
            steps, renders = len(maxima) - 1, int(maxima[-1])
            total += count * (base * steps + self._sums[t]) + renders * steps * (count * (count - 1) // 2)
            base += count * renders
        return total


class Chain:
    """A segment whose blocks are, or were, a ▷-linear composition; tasks are those of *dag*, its nonsinks first."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.blocks = decompose(dag)
        self._solutions = solutions = solve_blocks(self.blocks)
        line = linearise(solutions, np.zeros(len(self.blocks), np.int32), 1)
        self._sequence = line.sequence
        height = self.blocks.superdag.height
        self._depth = height.max(initial=0) - height
        self.types = Types()
        renamed = np.array([self.types.number(solution) for solution in solutions.types], np.int32)
        self._type_of = renamed[solutions.type_of]
        self._type = np.append(self._type_of, np.int32(-1))[self.blocks.source_of]  # of the block of each source
        chained = self._type_of[line.sequence]
        which, first, counts = np.unique(chained, return_index=True, return_counts=True)
        last = len(chained) - np.unique(chained[::-1], return_index=True)[1]
        #: of the types of the first chain, between which of its places they lie
        self._span = dict(zip(which.tolist(), zip(first.tolist(), last.tolist(), strict=True), strict=True))
        by_place = np.argsort(first)
        self.types.begin(dict(zip(which[by_place].tolist(), counts[by_place].tolist(), strict=True)), line.linear.all())
        self._whole = dict(zip(which.tolist(), counts.tolist(), strict=True))  # blocks of each type never touched
        self._pieces: dict[int, list[Piece]] = {}
        self._executed = np.zeros(len(dag), np.bool_)
        self._changed: set[int] = set()
        self._suspects: set[int] = set()
        self._begin = 0  # blocks of the first chain before this one were touched

    def execute(self, tasks: Ints) -> None:
        """These nonsinks are executed."""
        self._executed[tasks] = True
        self._changed.update(self.blocks.source_of[tasks].tolist())

    def linear(self) -> bool:
        """Whether what is left is a ▷-linear composition."""
        if self._changed:
            self._cut_up(self._changed)
            self._suspects |= self._changed
            self._changed = set()
        self._suspects = {b for b in self._suspects if self._pieces.get(b)}
        if self._suspects and not self._inverted(self._left(self._suspects)):
            self._suspects = set()
        return not self._suspects and self.types.linear()

    def _left(self, blocks: set[int]) -> Ints:
        """The sources of some blocks that are not executed."""
        sources = np.concatenate([np.empty(0, np.int32), *(self.blocks.sources(b) for b in sorted(blocks))])
        return np.sort(sources[~self._executed[sources]]).astype(np.int32)

    def _cut_up(self, changed: set[int]) -> None:
        """Solve what is left of these blocks."""
        for b in changed:
            old = self._pieces.get(b)
            self._whole[int(self._type_of[b])] -= old is None
            for t in [int(self._type_of[b])] if old is None else [piece.type for piece in old]:
                self.types.add(t, -1)
            self._pieces[b] = []
        left = self._left(changed)
        if not len(left):
            return
        found = solve_blocks(decompose(segment_dag(self.dag, left)))
        kinds = [self.types.number(solution) for solution in found.types]
        ptr = found.blocks.source_rows[0]
        for piece in found.blocks.superdag.order.tolist():
            tasks, t = left[found.ordered[ptr[piece] : ptr[piece + 1]]], kinds[found.type_of[piece]]
            b = int(self.blocks.source_of[tasks[0]])
            self.types.add(t)
            self._type[tasks] = t
            self._pieces[b].append(Piece(t, tasks, int(self._depth[b])))

    def _inverted(self, left: Ints) -> bool:
        """Whether an arc of the super-dag to or from blocks with these sources leads to a type that must come before."""
        children, degree = gathered(self.dag.child_ptr, self.dag.child, left)
        parents, above = gathered(self.dag.parent_ptr, self.dag.parent, left)
        tails = np.concatenate([np.repeat(left, degree), parents])
        heads = np.concatenate([children, np.repeat(left, above)])
        real = (self._type[heads] >= 0) & ~self._executed[tails]
        pairs = np.unique(self._type[tails[real]].astype(np.int64) << 32 | self._type[heads[real]])
        return any(p != q and not self.types.before(p, q) for p, q in zip(pairs >> 32, pairs & 0xFFFFFFFF, strict=True))

    # The order, once it is known to be linear

    def rows(self) -> Iterator[Ints]:
        """The tasks that are left, block after block."""
        while self._begin < len(self._sequence) and int(self._sequence[self._begin]) in self._pieces:
            self._begin += 1
        at = self._begin
        for spot, piece in self._placed():
            yield from self._run(at, spot)
            at = max(at, spot)
            yield piece.tasks
        yield from self._run(at, len(self._sequence))

    def first(self, count: int) -> list[int]:
        """The first so many tasks that are left."""
        return list(islice((v for row in self.rows() for v in row.tolist()), count))

    def _run(self, begin: int, end: int) -> Iterator[Ints]:
        ptr = self.blocks.source_rows[0]
        for b in self._sequence[begin:end].tolist():
            if b not in self._pieces:
                yield self._solutions.ordered[ptr[b] : ptr[b + 1]]

    def _placed(self) -> list[tuple[int, Piece]]:
        """All pieces in the order of the chain, each with how many blocks of the first chain may come before it."""
        rank, ranks, bounds = -1, {}, list[tuple[int, int]]()
        for i, t in enumerate(self.types.chain):
            if not i or not self.types.before(t, self.types.chain[i - 1]):
                rank += 1
                behind = bounds[-1][1] if bounds else 0
                bounds.append((behind, behind))
            ranks[t] = rank
            if self._untouched(t):  # these are of one rank in the first chain too, the longest remaining path first
                begin, end = self._span[t]
                low, high = bounds[-1]
                bounds[-1] = (begin if low == high else min(low, begin), max(high, end))
        pieces = [piece for b in sorted(self._pieces) for piece in self._pieces[b]]
        pieces.sort(key=lambda piece: (ranks[piece.type], piece.depth))
        return [(self._spot(piece.depth, *bounds[ranks[piece.type]]), piece) for piece in pieces]

    def _untouched(self, t: int) -> bool:
        """Whether a whole block of a type is left."""
        return t in self._span and self._whole[t] > 0

    def _spot(self, depth: int, low: int, high: int) -> int:
        """Behind how many of the first chain's blocks, from one place to another, something of some depth comes."""
        while low < high:
            middle = (low + high) // 2
            above = self._depth[self._sequence[middle]] < depth
            low, high = (middle + 1, high) if above else (low, middle)
        return low


def _is_solved(solution: Solution) -> bool:
    return solution.kind is not None or solution.order is not None


def _item(solution: Solution) -> Kind | Profile:
    return solution.maxima if solution.kind is None else solution.kind
