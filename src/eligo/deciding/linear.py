"""A ▷-linear segment while it is executed out of order: only the blocks that were touched are solved again.

What is left of a block falls into blocks of its own, its *pieces*. The segment stays ▷-linear exactly when all types of
blocks and pieces that are there are solved and comparable, those that are there more than once precede themselves, and no
arc of the super-dag leads from a type to one that precedes it alone. Each of that is kept up to date by itself: because ▷ is
transitive, a new type is compared with few of the others, and only arcs of pieces are looked at.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eligo.rows import Ints, distinct, gathered
from eligo.theory.blocks import decompose
from eligo.theory.priority import Kind, precedes
from eligo.theory.series import segment_dag
from eligo.theory.solutions import Solution, Solutions, solve_blocks

A_FEW = 256  # blocks that are looked up at once


class BlockPiece(NamedTuple):
    """A block of what is left of a block: its type, its sources in their order, and which block that was."""

    type: int
    tasks: Ints
    block: int


class Types:
    """The types of blocks that are there, in the order of ▷ as far as they are comparable."""

    def __init__(self, solutions: Sequence[Solution]) -> None:
        self.solutions: list[Solution] = []
        self.counts: list[int] = []
        self._known: dict[Kind | bytes, int] = {}
        for solution in solutions:
            self._enter(solution)
        self._before: dict[tuple[int, int], bool] = {}
        #: the types that are there and comparable, each ▷ the next
        self.chain: list[int] = []
        self._astray: set[int] = set()  # that are there, but not in the chain

    def number(self, solution: Solution) -> int:
        """The number of a type, a new one where it was never seen."""
        known = self._known.get(_key(solution))
        return self._enter(solution) if known is None else known

    def _enter(self, solution: Solution) -> int:
        self.solutions.append(solution)
        self.counts.append(0)
        self._known.setdefault(_key(solution), len(self.solutions) - 1)
        return len(self.solutions) - 1

    def begin(self, counts: dict[int, int]) -> None:
        """So many of each type are there, in a chain as listed."""
        for t, count in counts.items():
            self.counts[t] = count
        self.chain = list(counts)

    def before(self, a: int, b: int) -> bool:
        """Whether type a ▷ type b."""
        if (a, b) not in self._before:
            self._before[a, b] = precedes(self.solutions[a].item, self.solutions[b].item)
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

    def alike(self, t: int) -> range:
        """The places in the chain of the types that may change places with this one."""
        chain, first = self.chain, self.chain.index(t)
        last = first
        while first and self.before(chain[first], chain[first - 1]):
            first -= 1
        while last + 1 < len(chain) and self.before(chain[last + 1], chain[last]):
            last += 1
        return range(first, last + 1)

    def area(self) -> int:
        """The sum of the cumulative profile of all that is there, one after another."""
        total = base = 0
        for t in self.chain:
            count, maxima = self.counts[t], self.solutions[t].maxima
            steps, renders = len(maxima) - 1, int(maxima[-1])
            total += count * (base * steps + int(maxima.sum())) + renders * steps * (count * (count - 1) // 2)
            base += count * renders
        return total


class Ground:
    """The blocks of a dag without shortcuts, solved, in chains by segments: what all chains of a dag stand on.

    *label* gives the segment of every nonsink, and *order* has them as planned: where a segment is ▷-linear, block by block.
    """

    def __init__(self, solutions: Solutions, label: Ints, order: Ints) -> None:
        self.solutions, self.blocks, self.label = solutions, solutions.blocks, label
        self.dag = self.blocks.dag
        ptr, sources = self.blocks.source_rows
        self._segment_of = label[sources[ptr[:-1]]]
        runs = self.blocks.source_of[order]
        self._sequence = runs[np.flatnonzero(np.diff(runs, prepend=-1))]
        height = self.blocks.superdag.height
        self.depth = height.max(initial=0) - height
        #: the type of the block, or later of the piece, of which each task is a source
        self.type = np.append(self.solutions.type_of, np.int32(-1))[self.blocks.source_of]
        #: and which block, or later which piece: pieces are numbered behind the blocks
        self.unit = self.blocks.source_of.copy()
        self.executed = np.zeros(len(self.dag), np.bool_)

    def sequence(self, segment: int) -> Ints:
        """The blocks of a ▷-linear segment in order."""
        begin, end = np.searchsorted(self._segment_of[self._sequence], [segment, segment + 1])
        return self._sequence[begin:end]


class LinearSegment:
    """A segment whose blocks were a ▷-linear composition before anything was executed."""

    def __init__(self, ground: Ground, segment: int) -> None:
        self.ground, self.segment, self.blocks = ground, segment, ground.blocks
        self._sequence = ground.sequence(segment)
        self._type_of = ground.solutions.type_of
        self.types = Types(ground.solutions.types)
        chained = self._type_of[self._sequence]
        which, first, counts = np.unique(chained, return_index=True, return_counts=True)
        last = len(chained) - np.unique(chained[::-1], return_index=True)[1]
        #: of the types of the first chain, between which of its places they lie
        self._span = dict(zip(which.tolist(), zip(first.tolist(), last.tolist(), strict=True), strict=True))
        self._whole = dict(zip(which.tolist(), counts.tolist(), strict=True))  # blocks of each type never touched
        self.types.begin({t: self._whole[t] for t in which[np.argsort(first)].tolist()})
        self._pieces: dict[int, BlockPiece] = {}
        self._broken: set[int] = set()  # blocks that were touched
        self._changed: set[int] = set()  # units with tasks that were executed since
        self._suspects: set[int] = set()  # units whose arcs must be looked at
        self._units = len(self.blocks)
        self._begin = 0  # blocks of the first chain before this one were touched

    def execute(self, tasks: Ints) -> None:
        """These nonsinks of the segment are executed."""
        self.ground.executed[tasks] = True
        self._changed.update(self.ground.unit[tasks].tolist())

    def linear(self) -> bool:
        """Whether what is left is a ▷-linear composition."""
        if self._changed:
            self._changed |= self._tied(self._changed)
            self._suspects = self._suspects - self._changed | self._cut_up(self._changed)
            self._changed = set()
        if self._suspects and not self._inverted(self._left(self._suspects)):
            self._suspects = set()
        return not self._suspects and self.types.linear()

    def _tied(self, units: set[int]) -> set[int]:
        """The pieces of blocks that are not bipartite go together: some of them may come before others."""
        tied = {self._pieces[u].block for u in units if u in self._pieces}
        tied = {b for b in tied if not self.blocks.bipartite[b]}
        return {u for u, piece in self._pieces.items() if piece.block in tied} if tied else set()

    def _left(self, units: set[int]) -> Ints:
        """The sources of some units that are not executed, ascending."""
        sources = [self._pieces[u].tasks if u in self._pieces else self.blocks.sources(u) for u in sorted(units)]
        together = np.concatenate([np.empty(0, np.int32), *sources])
        return np.sort(together[~self.ground.executed[together]])

    def _cut_up(self, changed: set[int]) -> set[int]:
        """Solve what is left of these units; returns the pieces that they fall into."""
        left = self._left(changed)
        for u in changed:
            self._remove(u)
        if not len(left):
            return set()
        found = solve_blocks(decompose(segment_dag(self.ground.dag, left)))
        kinds = [self.types.number(solution) for solution in found.types]
        ptr, begin = found.blocks.source_rows[0], self._units
        for piece in found.blocks.superdag.order.tolist():
            tasks = left[found.ordered[ptr[piece] : ptr[piece + 1]]]
            self._add(tasks, kinds[found.type_of[piece]])
        return set(range(begin, self._units))

    def _remove(self, unit: int) -> None:
        piece = self._pieces.pop(unit, None)
        if piece is None:
            self._broken.add(unit)
            self._whole[int(self._type_of[unit])] -= 1
        self.types.add(int(self._type_of[unit]) if piece is None else piece.type, -1)

    def _add(self, tasks: Ints, t: int) -> None:
        self.types.add(t)
        self.ground.type[tasks], self.ground.unit[tasks] = t, self._units
        self._pieces[self._units] = BlockPiece(t, tasks, int(self.blocks.source_of[tasks[0]]))
        self._units += 1

    def _inverted(self, left: Ints) -> bool:
        """Whether an arc of the super-dag to or from units with these sources leads to a type that must come before."""
        dag, kind, label = self.ground.dag, self.ground.type, self.ground.label
        children, degree = gathered(dag.child_ptr, dag.child, left)
        parents, above = gathered(dag.parent_ptr, dag.parent, left)
        tails = np.concatenate([np.repeat(left, degree), parents])
        heads = np.concatenate([children, np.repeat(left, above)])
        inside = (label[heads] == label[left[0]]) & (label[tails] == label[left[0]]) & ~self.ground.executed[tails]
        pairs = distinct(kind[tails[inside]].astype(np.int64) << 32 | kind[heads[inside]])
        ends = zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True)
        return any(p != q and not self.types.before(p, q) for p, q in ends)

    # The order, once it is known to be linear

    def rows(self) -> Iterator[Ints]:
        """The tasks that are left, block after block."""
        while self._begin < len(self._sequence) and int(self._sequence[self._begin]) in self._broken:
            self._begin += 1
        at = self._begin
        for spot, piece in self._placed():
            yield from self._run(at, spot)
            at = max(at, spot)
            yield piece.tasks
        yield from self._run(at, len(self._sequence))

    def _run(self, begin: int, end: int) -> Iterator[Ints]:
        ptr = self.blocks.source_rows[0]
        for at in range(begin, end, A_FEW):
            for b in self._sequence[at : min(end, at + A_FEW)].tolist():
                if b not in self._broken:
                    yield self.ground.solutions.ordered[ptr[b] : ptr[b + 1]]

    def _placed(self) -> list[tuple[int, BlockPiece]]:
        """All pieces in the order of the chain, each with how many blocks of the first chain may come before it."""
        ranks = {t: self.types.alike(t) for t in {piece.type for piece in self._pieces.values()}}
        bounds = {rank: self._bounds(rank) for rank in set(ranks.values())}
        pieces = list(self._pieces.values())
        pieces.sort(key=lambda piece: (ranks[piece.type].start, self.ground.depth[piece.block]))
        depth = self.ground.depth
        return [(self._spot(int(depth[piece.block]), *bounds[ranks[piece.type]]), piece) for piece in pieces]

    def _bounds(self, rank: range) -> tuple[int, int]:
        """Between which places of the first chain blocks of these types lie: there the longest remaining path is first."""
        spans = self._spans(rank)
        if spans:
            return min(begin for begin, _ in spans), max(end for _, end in spans)
        before = rank.start - 1
        while before >= 0 and not self._spans(range(before, before + 1)):
            before -= 1
        behind = max(end for _, end in self._spans(self.types.alike(self.types.chain[before]))) if before >= 0 else 0
        return behind, behind

    def _spans(self, rank: range) -> list[tuple[int, int]]:
        """Where in the first chain the types at these places lie of which a whole block is left."""
        return [self._span[t] for t in map(self.types.chain.__getitem__, rank) if self._whole.get(t, 0) > 0]

    def _spot(self, depth: int, low: int, high: int) -> int:
        """Behind how many of the first chain's blocks, from one place to another, something of some depth comes."""
        while low < high:
            middle = (low + high) // 2
            above = self.ground.depth[self._sequence[middle]] < depth
            low, high = (middle + 1, high) if above else (low, middle)
        return low


def _is_solved(solution: Solution) -> bool:
    return solution.kind is not None or solution.order is not None


def _key(solution: Solution) -> Kind | bytes:
    return solution.maxima.tobytes() + bytes([_is_solved(solution)]) if solution.kind is None else solution.kind
