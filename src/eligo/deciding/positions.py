"""Positions of play, in tables: the executed tasks, the last move and the position before it, and the area.

Positions that some automorphism makes equal count as one: what can be swapped is kept sorted. Tasks with the same parents
and the same children are missed by the same groups, so that every move executes all of them or none: they are one *unit*.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.work import Work
from eligo.kernels import lender, positions
from eligo.rows import Ints, distinct
from eligo.theory.profiles import Profile

WORD, RESIDUES = 63, 67  # bits used in a word; a number modulo which all powers of two up to 2 ** 65 differ
AT_ONCE = 10_000  # positions between two checks of the clock
UNBEATEN, ANY = -1, (0, 0)
ENTRY = 60  # bytes of a position besides its words: columns, its place in the table, and copies when these grow

Wide = NDArray[np.int64]
Pairs = Sequence[tuple[int, int]]


def units_of(dag: Dag) -> list[list[int]]:
    """The nonsinks grouped by equal parents and equal children, sorted by the first of each group.

    >>> units_of(Dag.from_arcs([("a", "x"), ("b", "x"), ("c", "x"), ("b", "y")]))
    [[0, 3], [2]]
    """
    units: dict[tuple[bytes, bytes], list[int]] = {}
    for v in np.flatnonzero(dag.outdegree > 0).tolist():
        units.setdefault((dag.parents_of(v).tobytes(), dag.children_of(v).tobytes()), []).append(v)
    return list(units.values())


class Marked(NamedTuple):
    """Marked tasks, and the most area still to come: a row for each set of them that may be executed, a column for each step.

    Bit i of a row's number stands for the i-th of the tasks.
    """

    tasks: Sequence[int]
    to_come: NDArray[np.int64]


NONE_MARKED = Marked((), np.zeros((1, 1), np.int64))


class Play:
    """All positions reached so far; in the first of them nothing is executed.

    *swaps* are automorphisms that exchange the tasks of each pair; *target* is a profile that no order surpasses; *marked*
    gives a closer bound of the area to come.

    >>> play = Play(Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")]))
    >>> play.expand(play.after(0), Work()), len(play)
    (True, 3)
    """

    def __init__(
        self, dag: Dag, swaps: Sequence[Pairs] = (), target: Profile | None = None, marked: Marked = NONE_MARKED
    ) -> None:
        self.tasks, self._lend = np.flatnonzero(dag.outdegree > 0).astype(np.int32), lender()
        self._gather_units(dag)
        self._gather_groups(dag)
        self._gather_swaps(swaps)
        self._marks, self._to_come = self._place[list(marked.tasks)], np.ascontiguousarray(marked.to_come).ravel()
        steps = len(self.tasks) + 1
        self._rest = np.zeros(steps, np.int64) if target is None else target.sum() - target.cumsum()
        self._state = np.array([1, 0, UNBEATEN, 0, 0, 0, 0], np.int64)
        self._masks = np.zeros(0, np.int64)
        self._area = np.zeros(0, np.int64)
        #: of each position: its rendered tasks, its step, the position before it, and the group by which it was reached
        self._columns = np.zeros((0, 4), np.int32)
        self._grow(math.inf)
        self._by_step: dict[int, list[NDArray[np.int64]]] = defaultdict(list)
        self._filed = 0

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def breadth(self) -> int:
        """The work to examine a position: its units, and those that each waiting task needs."""
        return self._arcs + len(self._units)

    def after(self, step: int) -> Ints:
        """The positions after a number of steps, sorted by largest area, then by most rendered tasks."""
        fresh = self._columns[self._filed : len(self), 1]
        for other in distinct(fresh).tolist():
            self._by_step[other].append(self._filed + np.flatnonzero(fresh == other))
        self._filed = len(self)
        reached = np.concatenate(self._by_step[step]) if step in self._by_step else np.zeros(0, np.int64)
        return reached[np.lexsort((-self._columns[reached, 0], -self._area[reached]))].astype(np.int32)

    def area(self, at: int) -> int:
        """The sum of the cumulative profile so far."""
        return int(self._area[at])

    def rendered(self, at: int) -> int:
        """How many tasks are rendered."""
        return int(self._columns[at, 0])

    def executed(self, at: int) -> Ints:
        """The tasks that are executed."""
        return self._tasks_of(self._bits(self._row(at)))

    def order(self, at: int) -> Ints:
        """The tasks in an order that leads to a position, or to one that equals it up to swaps."""
        path = [at]
        while path[-1]:
            path.append(int(self._columns[path[-1], 2]))
        order, image = [self.tasks[:0]], np.arange(len(self._units))
        for position in path[-2::-1]:
            before, group = self._columns[position, 2:].tolist()
            move = self._need[group * self._words : (group + 1) * self._words] & ~self._row(before)
            order.append(self._tasks_of(np.sort(image[self._bits(move)])))
            image = image[self._origins(move | self._row(before))]
        return np.concatenate(order)

    def expand(
        self, chosen: Ints, work: Work, beat: int = UNBEATEN, width: int = 1 << 31, forced: tuple[int, int] = ANY
    ) -> bool:
        """Play all moves from the chosen positions; returns whether none was left out.

        Positions that cannot have an area above *beat* are dropped; moves must have the *forced* size and gain; at
        most *width* positions are added.
        """
        self._state[2:] = beat, *forced, width, 0
        done = 0
        while done < len(chosen):
            if work.over() or not self._grow(work.memory):
                return False
            self._state[1] = budget = int(min(work.remaining, 1 << 60))
            done = self._expand(chosen, done, min(len(chosen), done + AT_ONCE))
            work.spend(budget - int(self._state[1]))
        return not self._state[6]

    def _expand(self, chosen: Ints, first: int, last: int) -> int:
        tables = (
            self._weights, self._need, self._opens, self._sources, self._opening, self._count, self._pair_ptr,
            self._pair_a, self._pair_b, self._rest, self._marks, self._to_come, self._masks, self._area, self._columns,
            self._table, self._missed, self._seen, self._lowest, self._state,
        )  # fmt: skip
        return positions.expand(self._lend(chosen), first, last, self._words, *map(self._lend, tables))

    def _grow(self, memory: float) -> bool:
        """Make room for the moves of at least one more position; returns whether the memory allows it."""
        if len(self) + len(self._count) + 1 <= len(self._area):
            return True
        room = max(4 * len(self._count) + 64, 2 * len(self._area))
        if len(self._area) and room * (8 * self._words + ENTRY) > memory:
            return False
        more = room - len(self._area)
        self._masks = np.concatenate([self._masks, np.zeros(more * self._words, np.int64)])
        self._area = np.concatenate([self._area, np.zeros(more, np.int64)])
        self._columns = np.concatenate([self._columns, np.zeros((more, 4), np.int32)])
        self._table = np.full(1 << (2 * room).bit_length(), -1, np.int32)
        positions.enter_all(self._words, len(self), self._lend(self._masks), self._lend(self._table))
        return True

    def _gather_units(self, dag: Dag) -> None:
        """Fill in the units, the number of tasks of each, and the unit of each nonsink."""
        self._units = units_of(dag)
        self._words, self._place = -(-len(self._units) // WORD), np.full(len(dag), -1, np.int32)
        self._weights = np.zeros(self._words * RESIDUES, np.int32)
        for i, members in enumerate(self._units):
            self._place[members] = i
            self._weights[i // WORD * RESIDUES + (1 << i % WORD) % RESIDUES] = len(members)

    def _tasks_of(self, units: NDArray[np.intp]) -> Ints:
        return np.array([v for unit in units.tolist() for v in self._units[unit]], np.int32)

    def _gather_groups(self, dag: Dag) -> None:
        """Group nonsources by equal parents: the units each group needs, those it opens, and its size."""
        groups: dict[bytes, list[int]] = {}
        for v in np.flatnonzero(dag.indegree > 0).tolist():
            groups.setdefault(dag.parents_of(v).tobytes(), []).append(v)
        members = list(groups.values())
        needs = [set(self._place[dag.parents_of(one[0])].tolist()) for one in members]
        self._need = self._rows(needs)
        self._arcs = sum(len(own) * len(one) for own, one in zip(needs, members, strict=True))
        opened = [[int(p) for p in self._place[one] if p >= 0] for one in members]
        self._opens = self._rows(opened)
        self._opening = np.array([len(one) > 0 for one in opened], np.int32)
        self._count = np.array([len(one) for one in members], np.int32)
        self._sources = self._rows([self._place[self.tasks[dag.indegree[self.tasks] == 0]].tolist()])
        self._missed = np.zeros((len(members) + 3) * self._words, np.int64)
        self._seen = np.zeros((5, len(members)), np.int32)
        self._lowest = np.zeros(self._words * RESIDUES, np.int32)

    def _gather_swaps(self, swaps: Sequence[Pairs]) -> None:
        """Turn swaps of tasks into swaps of units: an automorphism takes whole units to one another."""
        both = [[sorted(self._place[list(pair)].tolist()) for pair in pairs] for pairs in swaps]
        inner = [sorted({(a, b) for a, b in pairs if a != b}) for pairs in both]
        inner = [pairs for pairs in inner if pairs]
        self._pair_ptr = np.cumsum([0, *map(len, inner)]).astype(np.int32)
        flat = np.array([pair for pairs in inner for pair in pairs], np.int32).reshape(-1, 2)
        self._pair_a, self._pair_b = (np.ascontiguousarray(flat[:, side]) for side in (0, 1))

    def _rows(self, sets: Sequence[Iterable[int]]) -> Wide:
        rows = np.zeros((len(sets), self._words), np.int64)
        for row, one in zip(rows, sets, strict=True):
            for v in one:
                row[v // WORD] |= np.int64(1 << v % WORD)
        return rows.ravel()

    def _row(self, at: int) -> Wide:
        return self._masks[at * self._words : (at + 1) * self._words]

    def _bits(self, row: Wide) -> NDArray[np.intp]:
        words, shifts = np.divmod(np.arange(len(self._units)), WORD)
        return np.flatnonzero(row[words] >> shifts & 1)

    def _origins(self, row: Wide) -> NDArray[np.intp]:
        """The unit that each place of a row comes from, once the row is sorted as the kernel's `settle` does."""
        state = np.zeros(len(self._units), np.int64)
        state[self._bits(row)] = 1
        origin, changed = np.arange(len(state)), True
        while changed:
            changed = False
            for begin, end in zip(self._pair_ptr[:-1], self._pair_ptr[1:], strict=True):
                a, b = self._pair_a[begin:end], self._pair_b[begin:end]
                differs = np.flatnonzero(state[a] != state[b])
                if len(differs) and state[a[differs[0]]] < state[b[differs[0]]]:
                    changed = True
                    for column in (state, origin):
                        column[a], column[b] = column[b], column[a]
        return origin
