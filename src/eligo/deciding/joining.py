"""Joins of tables of states, planned before any value is computed: what work and how much memory they take is known first.

Two tables are joined by all combinations of rows that agree on the roles both have; values are added along T, the number of
executed tasks, or of rendered ones. A join may drop a role: of rows that agree on all others the best remains, and the join
is never written out. Joins of equal tables in the same way are one, which is done once: workflows repeat themselves.

What is planned is known exactly but for the values: which rows there are, and for which T a row can have a value.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.deciding.work import Work
from eligo.kernels import tables
from eligo.rows import Ints

Longs = NDArray[np.int64]
Cells = NDArray[np.signedinteger[Any]]
Cell = type[np.int16] | type[np.int32]

# what a join costs to be planned, and each of its rows; then to be done, each of its rows, values of the shorter and sums
LOOK, PLANNED_JOIN, PLANNED_ROW = 20_000, 60_000, 60
JOIN, ROW, ENTRY, SUM = 40_000, 60, 4, 1 / 8
# bytes: of a row, of two rows that match and of a group of them; of a row while it is planned; of a plan and a task in it
ROW_BYTES, MATCH_BYTES, GROUP_BYTES, PLANNED_BYTES = 20, 9, 12, 41
PLAN_BYTES, TASK_BYTES = 2_000, 300
MOST_BITS = 62  # of a code
MOST_ROWS = 1 << 30
FEW_ROWS = 1_000  # a join of so few is always kept to be used again
KEPT = 1 / 4  # of the room may be taken by what is kept
NOT_LOWER, NOT_HIGHER = range(2)  # what a role may not be than one whose state is chosen later
NO_ROLE = ((1, -1, -1, 0, 0),)
NOTHING, EXECUTED, RENDERED = range(3)  # what is dropped by a join
NONE, NO_CODES = np.zeros(0, np.int32), np.zeros(0, np.int64)
NEVER = {np.int16: -(1 << 15), np.int32: -(1 << 30)}  # no value
PLANNING = 1 / 4  # of the work may go into plans


class TooWideError(Exception):
    """The tables would be too large, or the work is over."""


@dataclass(eq=False, slots=True)
class Rows:
    """The rows of a table: codes of states, from which T on there can be values, and where these begin."""

    number: int
    codes: Longs
    first: Ints
    ptr: Longs
    count: int
    cells: int
    #: joins to be done with them
    uses: int = 0
    #: whether the codes stay in memory, so that an equal join need not be done again
    kept: bool = True
    values: Cells = field(default_factory=lambda: NONE)

    def forget(self) -> None:
        """Give back the memory."""
        self.values = NONE
        if not self.kept:
            self.codes, self.ptr, self.first = NO_CODES, NO_CODES, NONE


class StateTable(NamedTuple):
    """Rows of states of some roles, these from the lowest digit on."""

    scope: tuple[int, ...]
    rows: Rows


class JoinShape(NamedTuple):
    """How two tables are joined, as `kernels.tables.match_rows` wants it, and what the lowest digit is, if it is dropped."""

    one: int
    two: int
    levels: tuple[tuple[int, ...], ...]
    rules: tuple[tuple[int, ...], ...]
    drops: int


class Matches(NamedTuple):
    """Which rows are joined, group by group, and the codes of the groups."""

    begins: Ints
    left: Ints
    right: Ints
    digits: NDArray[np.int8]
    codes: Longs


class Join(NamedTuple):
    """Two tables to be joined, how, and what comes of it."""

    one: Rows
    two: Rows
    shape: JoinShape
    out: Rows
    matches: int
    cost: float


@dataclass(frozen=True, eq=False)
class Frame:
    """What there is to be joined, of so many tasks: each role's place in the order, what it implies, its rank in a set."""

    tasks: int
    place: Sequence[int]
    implied: Sequence[set[int]]
    ranks: dict[int, tuple[int, int]]

    def shape(self, one: StateTable, two: StateTable, scope: Sequence[int], drops: bool) -> JoinShape:
        """How two tables are joined to one of this scope."""
        if len(scope) > MOST_BITS:
            raise TooWideError(f"{len(scope)} roles are in one table")
        at_one, at_two = ({v: i for i, v in enumerate(table.scope)} for table in (one, two))
        level = {v: i for i, v in enumerate(reversed(scope))}
        rules: list[list[tuple[int, int]]] = [[] for _ in scope]
        for low, high in self._rules(level):
            rules[max(low, high)].append((high, NOT_LOWER) if high < low else (low, NOT_HIGHER))
        levels, end = [], 0
        for v, i in level.items():
            end += len(rules[i])
            levels.append((2, at_one.get(v, -1), at_two.get(v, -1), len(scope) - 1 - i, end))
        flat, dropped = tuple(rule for own in rules for rule in own), self._kind(scope[0]) if drops else NOTHING
        return JoinShape(one.rows.number, two.rows.number, tuple(levels) or NO_ROLE, flat, dropped)

    def _kind(self, role: int) -> int:
        return EXECUTED if role < self.tasks else RENDERED

    def _rules(self, level: dict[int, int]) -> Iterator[tuple[int, int]]:
        """Levels of which the first may not be higher than the second: what is implied, and what is kept sorted."""
        roles = level.keys()
        for u, i in level.items():
            yield from ((i, j) for j in sorted(level[w] for w in self.implied[u] & roles))
        ranked = sorted((*self.ranks[v], i) for v, i in level.items() if v in self.ranks) if self.ranks else []
        for (group, _, i), (other, _, j) in pairwise(ranked):
            if group == other:
                yield j, i


@dataclass(eq=False)
class Planner:
    """Plans joins, without any value; raises `TooWideError` where more work or memory would be needed than there is.

    T counts executed tasks and values rendered ones; or, *turned*, T the rendered ones and values those that wait.
    """

    frame: Frame
    work: Work
    room: float
    cell: Cell
    turned: bool = False
    joins: list[Join] = field(default_factory=list)
    known: dict[JoinShape, Rows] = field(default_factory=dict)
    cost: float = 0
    #: bytes that stay in use, and those in use now
    keeping: int = 0
    holding: int = 0

    def __post_init__(self) -> None:
        self.cell_bytes = np.dtype(self.cell).itemsize
        self.planning = self.work.part(self.work.left * PLANNING)
        self.unit = StateTable((), Rows(0, np.zeros(1, np.int64), np.zeros(1, np.int32), np.arange(2), 1, 1))

    def joined(self, waiting: Sequence[StateTable], v: int | None = None, near: Iterable[int] = ()) -> StateTable:
        """All these tables joined, the smallest first; with v also its neighbours, and without v itself."""
        heap = [(t.rows.cells, t.rows.number, i, t) for i, t in enumerate(waiting)]
        heapify(heap)
        numbers = count(len(heap))
        while len(heap) > 2 or (v is None and len(heap) > 1):
            one, two = heappop(heap)[-1], heappop(heap)[-1]
            table = self._join(one, two, {*one.scope, *two.scope}, False)
            heappush(heap, (table.rows.cells, table.rows.number, next(numbers), table))
        found = [table for *_, table in sorted(heap, key=lambda entry: entry[:3])]
        one, two = [self.unit, self.unit, *found][-2:]
        return two if v is None else self._join(one, two, {*one.scope, *two.scope, v, *near}, True)

    def _join(self, one: StateTable, two: StateTable, tasks: set[int], drops: bool) -> StateTable:
        if one.rows.cells * two.rows.count > two.rows.cells * one.rows.count:
            one, two = two, one  # the one with the shorter rows first
        scope = sorted(tasks, key=self.frame.place.__getitem__)
        shape = self.frame.shape(one, two, scope, drops)
        self.work.spend(LOOK)
        rows = self.known.get(shape)
        if rows is None:
            rows = self._planned(one.rows, two.rows, shape)
            self._keep(shape, rows)
        return StateTable(tuple(scope[1:] if drops else scope), rows)

    def _planned(self, one: Rows, two: Rows, shape: JoinShape) -> Rows:
        matches = self._matches(one, two, shape)
        steps, _ = self.own(shape)
        first, ptr = np.empty(len(matches.codes), np.int32), np.empty(len(matches.codes) + 1, np.int64)
        found = np.empty(2, np.int64)
        tables.measure_rows(*matches[:4], steps, one.first, one.ptr, two.first, two.ptr, first, ptr, found)
        rows = Rows(len(self.joins) + 1, matches.codes, first, ptr, len(first), int(ptr[-1]))
        cost = JOIN + ROW * len(matches.left) + ENTRY * int(found[0]) + SUM * int(found[1])
        self.joins.append(Join(one, two, shape, rows, len(matches.left), cost))
        self.cost += cost
        if self.cost > self.work.left or self.planning.over():
            raise TooWideError("there is more work in it than may be done")
        if rows.cells * self.cell_bytes > self.room:
            raise TooWideError(f"a table would have {rows.cells:,} cells")
        for used in (one, two):
            used.uses += 1
            self.holding -= 0 if used.kept else ROW_BYTES * used.count
            used.forget()
        return rows

    def _keep(self, shape: JoinShape, rows: Rows) -> None:
        """Keep a join to be used again, where it is small or there is room for it."""
        size, plan = ROW_BYTES * rows.count, PLAN_BYTES + TASK_BYTES * len(shape.levels)
        rows.kept = rows.count <= FEW_ROWS or self.keeping + size <= self.room * KEPT
        self.keeping += plan + (size if rows.kept else 0)
        self.holding += plan + size
        if rows.kept:
            self.known[shape] = rows

    def _matches(self, one: Rows, two: Rows, shape: JoinShape) -> Matches:
        """The rows that are joined; room is made for the most there can be, and taken only where there are some."""
        room = max(0, self.room - self.holding)
        most = int(min(room / PLANNED_BYTES, self.planning.left / PLANNED_ROW, MOST_ROWS))
        bound = min(most + 1, _most_rows(one, shape, 1), _most_rows(two, shape, 2))
        matches = _room_for(bound, bound)
        rows, groups = _match(one, two, shape, most, matches)
        self.planning.spend(PLANNED_JOIN + PLANNED_ROW * rows)
        if rows > most:
            raise TooWideError(f"a table would have more than {most:,} rows")
        begins, left, right, digits, codes = matches
        return Matches(begins[: groups + 1], left[:rows], right[:rows], digits[:rows], codes[:groups].copy())

    def own(self, shape: JoinShape) -> tuple[Ints, Ints]:
        """What each state of the role that is dropped adds to T, and what to the values."""
        step, gain = (RENDERED, EXECUTED) if self.turned else (EXECUTED, RENDERED)
        played = (1, 0) if self.turned else (0, 1)  # those who wait are counted where T is what is rendered
        steps, gains = (0, int(shape.drops == step)), tuple(int(shape.drops == gain) * one for one in played)
        return np.array(steps, np.int32), np.array(gains, np.int32)

    def check(self) -> None:
        """Raise `TooWideError` where the joins, when they are done, take more memory than there is room."""
        if self.peak() > self.room:
            raise TooWideError(f"the tables would take {self.peak():,} bytes")

    def peak(self) -> int:
        """The most bytes that are in use at a time when the joins are done."""
        uses = {join.out.number: join.out.uses for join in self.joins}
        alive = most = self.keeping
        for join in self.joins:
            alive += _bytes(join.out, self.cell_bytes)
            most = max(most, alive + MATCH_BYTES * join.matches + GROUP_BYTES * join.out.count)
            for used in (join.one, join.two):
                if used.number:
                    uses[used.number] -= 1
                    alive -= 0 if uses[used.number] else _bytes(used, self.cell_bytes)
        return most


def _most_rows(rows: Rows, shape: JoinShape, column: int) -> int:
    """How many rows a join has at most: each of one table with each combination of states of the roles not in it."""
    return rows.count * math.prod(level[0] for level in shape.levels if level[column] < 0)


def _bytes(rows: Rows, cell: int) -> int:
    """What rows take in memory while they are in use, beyond what is kept all the time."""
    return rows.cells * cell + (0 if rows.kept else ROW_BYTES * rows.count)


def _room_for(rows: int, groups: int) -> Matches:
    begins, left, right = (np.empty(size, np.int32) for size in (groups + 1, rows, rows))
    return Matches(begins, left, right, np.empty(rows, np.int8), np.empty(groups, np.int64))


def _match(one: Rows, two: Rows, shape: JoinShape, most: int, out: Matches) -> tuple[int, int]:
    """How many rows are joined, and groups of them; where there is room for them, which."""
    levels = np.array(shape.levels, np.int64)
    rules = np.array(shape.rules, np.int64).reshape(-1, 2)
    stack, found = np.empty((len(levels), 6), np.int64), np.empty(2, np.int64)
    tables.match_rows(one.codes, two.codes, levels, rules, shape.drops != NOTHING, most, stack, *out, found)
    return int(found[0]), int(found[1])


def perform(planner: Planner, last: Rows, work: Work) -> Cells:
    """Do the joins as they were planned, and return the values of the last; the others are given back once they are used."""
    planner.unit.rows.values = np.zeros(1, planner.cell)
    last.uses += 1
    planner.unit.rows.uses += 1
    for join in planner.joins:
        work.spend(join.cost)
        if work.stopped():
            raise TooWideError("the work is over")
        _perform(join, planner)
        for used in (join.one, join.two):
            used.uses -= 1
            if not used.uses:
                used.forget()
    return last.values


def _perform(join: Join, planner: Planner) -> None:
    one, two, out = join.one, join.two, join.out
    matches = _room_for(join.matches, out.count)
    _match(one, two, join.shape, join.matches, matches)
    steps, gains = planner.own(join.shape)
    if not out.kept:
        out.codes, out.first, out.ptr = matches.codes, np.empty(out.count, np.int32), np.empty(out.count + 1, np.int64)
        shape = (one.first, one.ptr, two.first, two.ptr, out.first, out.ptr)
        tables.measure_rows(*matches[:4], steps, *shape, np.empty(2, np.int64))
    out.values = np.empty(out.cells, planner.cell)
    tables.join_rows(
        *matches[:4], steps, gains, one.first, one.ptr, one.values, two.first, two.ptr, two.values,
        out.first, out.ptr, NEVER[planner.cell], out.values,
    )  # fmt: skip
