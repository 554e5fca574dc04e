"""Exact M(t) of dags of small width, by dynamic programming over a tree decomposition.

A task has up to two *roles*: to be executed, if it is a nonsink, and to be rendered, if it is a nonsource. A role is played
or not. That a task is rendered implies that its parents are executed; that it is executed implies that it is rendered. The
value of an assignment is the number of tasks rendered, and T the number of those executed; M(t) is the largest value with
T = t. (That a task *may* be counted as not rendered though its parents are executed changes no maximum.)

Roles are eliminated one by one. Eliminating one joins all tables that mention it, adding values and convolving along T, and
keeps for each combination of its neighbours the best. What this costs depends on the number of neighbours, so the order
repeatedly takes the role with the fewest. That the two roles of a task are apart keeps tables small: one is often
gone before the other has many neighbours. Of tasks that are interchangeable only combinations that never rise along a fixed
order are kept: see `symmetry`. All joins are planned before the first is done, so that a dag that would take too much is
given up at once.

If fewer tasks are rendered than executed, a table is shorter the other way round: T is then the number of tasks rendered,
the value that of tasks not executed, and M(t) the largest T for which at least k - t of the k nonsinks can wait.

**Joins** of tables of states are planned before any value is computed, so their work and memory are known first. Two tables
are joined by all combinations of rows that agree on the roles both have; values are added along T, the number of executed
tasks, or of rendered ones. A join may drop a role: of rows that agree on all others the best remains, and the full join is
never written out. Joins of equal tables in the same way are done once, because workflows repeat themselves.

A plan gives everything but the values: which rows there are, and for which T a row can have a value.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.effort import FEW_STATES, LARGEST_BAG, MOST_STATES, TABLE_BYTES
from eligo.deciding.symmetry import Alike, Twins
from eligo.deciding.work import Work
from eligo.kernels import tables
from eligo.rows import Ints
from eligo.theory.profiles import Profile

# Joins of tables


Longs = NDArray[np.int64]
Cells = NDArray[np.signedinteger[Any]]
Cell = type[np.int16] | type[np.int32]

# units of work: to look a join up, to plan it, for each planned row; to do it, for each row, shorter value and sum
LOOK, PLANNED_JOIN, PLANNED_ROW = 20_000, 60_000, 60
JOIN, ROW, ENTRY, SUM = 40_000, 60, 4, 1 / 8
# bytes: of a row, of two rows that match and of a group of them; of a row during planning; of a plan and of a task in it
ROW_BYTES, MATCH_BYTES, GROUP_BYTES, PLANNED_BYTES = 20, 9, 12, 41
PLAN_BYTES, TASK_BYTES = 2_000, 300
MOST_BITS = 62  # of a code
MOST_ROWS = 1 << 30
FEW_ROWS = 1_000  # a join with at most this many rows is always kept to be used again
KEPT = 1 / 4  # of the memory may be taken by joins that are kept
NOT_LOWER, NOT_HIGHER = range(2)  # a role's state is not lower, or not higher, than one that is chosen later
NO_ROLE = ((1, -1, -1, 0, 0),)
NOTHING, EXECUTED, RENDERED = range(3)  # the kind of role that a join drops
NONE, NO_CODES = np.zeros(0, np.int32), np.zeros(0, np.int64)
NEVER = {np.int16: -(1 << 15), np.int32: -(1 << 30)}  # no value
PLANNING = 1 / 4  # of the work may be spent on planning


class TooWideError(Exception):
    """The tables would be too large, or the work is over."""


@dataclass(eq=False, slots=True)
class Rows:
    """The rows of a table: for each the code of its states, the least T with a value, and where its values begin."""

    number: int
    codes: Longs
    first: Ints
    ptr: Longs
    count: int
    cells: int
    #: how many joins still use them
    uses: int = 0
    #: whether the codes stay in memory, for later joins that are equal
    kept: bool = True
    values: Cells = field(default_factory=lambda: NONE)

    def forget(self) -> None:
        """Release the memory."""
        self.values = NONE
        if not self.kept:
            self.codes, self.ptr, self.first = NO_CODES, NO_CODES, NONE


class StateTable(NamedTuple):
    """Rows of states of some roles, which are listed from the lowest digit on."""

    scope: tuple[int, ...]
    rows: Rows


class JoinShape(NamedTuple):
    """How two tables are joined, in the form of `kernels.tables.match_rows`, and the kind of role that is dropped, if any."""

    one: int
    two: int
    levels: tuple[tuple[int, ...], ...]
    rules: tuple[tuple[int, ...], ...]
    drops: int


class Matches(NamedTuple):
    """The pairs of rows that are joined, group by group, and the codes of the groups."""

    begins: Ints
    left: Ints
    right: Ints
    digits: NDArray[np.int8]
    codes: Longs


class Join(NamedTuple):
    """A planned join: two tables, the shape, the resulting rows, and the cost."""

    one: Rows
    two: Rows
    shape: JoinShape
    out: Rows
    matches: int
    cost: float


@dataclass(frozen=True, eq=False)
class Frame:
    """The roles of a dag of *tasks* tasks: the place of each in the order, the roles it implies, its rank in a set."""

    tasks: int
    place: Sequence[int]
    implied: Sequence[set[int]]
    ranks: dict[int, tuple[int, int]]

    def shape(self, one: StateTable, two: StateTable, scope: Sequence[int], drops: bool) -> JoinShape:
        """The shape of a join of two tables to one of this scope."""
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
        """Pairs of levels whose first may not be higher than the second: implied roles, and sets that are kept sorted."""
        roles = level.keys()
        for u, i in level.items():
            yield from ((i, j) for j in sorted(level[w] for w in self.implied[u] & roles))
        ranked = sorted((*self.ranks[v], i) for v, i in level.items() if v in self.ranks) if self.ranks else []
        for (group, _, i), (other, _, j) in pairwise(ranked):
            if group == other:
                yield j, i


@dataclass(eq=False)
class Planner:
    """Plans joins without computing values; raises `TooWideError` if they would need too much work or memory.

    T counts executed tasks and values rendered ones; or, if *turned*, T the rendered ones and values those that wait.
    """

    frame: Frame
    work: Work
    room: float
    cell: Cell
    turned: bool = False
    joins: list[Join] = field(default_factory=list)
    by_shape: dict[JoinShape, Rows] = field(default_factory=dict)
    cost: float = 0
    #: bytes that stay in use, and bytes in use now
    keeping: int = 0
    holding: int = 0

    def __post_init__(self) -> None:
        self.cell_bytes = np.dtype(self.cell).itemsize
        self.planning = self.work.part(self.work.remaining * PLANNING)
        self.unit = StateTable((), Rows(0, np.zeros(1, np.int64), np.zeros(1, np.int32), np.arange(2), 1, 1))

    def joined(self, waiting: Sequence[StateTable], v: int | None = None, near: Iterable[int] = ()) -> StateTable:
        """All these tables joined, the smallest first; with *v*, its neighbours are added and v itself is dropped."""
        heap = [(t.rows.cells, t.rows.number, i, t) for i, t in enumerate(waiting)]
        heapify(heap)
        numbers = count(len(heap))
        while len(heap) > 2 or (v is None and len(heap) > 1):
            one, two = heappop(heap)[-1], heappop(heap)[-1]
            table = self._join(one, two, {*one.scope, *two.scope}, False)
            heappush(heap, (table.rows.cells, table.rows.number, next(numbers), table))
        remaining = [table for *_, table in sorted(heap, key=lambda entry: entry[:3])]
        one, two = [self.unit, self.unit, *remaining][-2:]
        return two if v is None else self._join(one, two, {*one.scope, *two.scope, v, *near}, True)

    def _join(self, one: StateTable, two: StateTable, tasks: set[int], drops: bool) -> StateTable:
        if one.rows.cells * two.rows.count > two.rows.cells * one.rows.count:
            one, two = two, one  # the one with the shorter rows first
        scope = sorted(tasks, key=self.frame.place.__getitem__)
        shape = self.frame.shape(one, two, scope, drops)
        self.work.spend(LOOK)
        rows = self.by_shape.get(shape)
        if rows is None:
            rows = self._plan(one.rows, two.rows, shape)
            self._keep(shape, rows)
        return StateTable(tuple(scope[1:] if drops else scope), rows)

    def _plan(self, one: Rows, two: Rows, shape: JoinShape) -> Rows:
        matches = self._matches(one, two, shape)
        steps, _ = self.own(shape)
        first, ptr = np.empty(len(matches.codes), np.int32), np.empty(len(matches.codes) + 1, np.int64)
        counts = np.empty(2, np.int64)
        tables.measure_rows(*matches[:4], steps, one.first, one.ptr, two.first, two.ptr, first, ptr, counts)
        rows = Rows(len(self.joins) + 1, matches.codes, first, ptr, len(first), int(ptr[-1]))
        cost = JOIN + ROW * len(matches.left) + ENTRY * int(counts[0]) + SUM * int(counts[1])
        self.joins.append(Join(one, two, shape, rows, len(matches.left), cost))
        self.cost += cost
        if self.cost > self.work.remaining or self.planning.over():
            raise TooWideError("there is more work in it than may be done")
        if rows.cells * self.cell_bytes > self.room:
            raise TooWideError(f"a table would have {rows.cells:,} cells")
        for used in (one, two):
            used.uses += 1
            self.holding -= 0 if used.kept else ROW_BYTES * used.count
            used.forget()
        return rows

    def _keep(self, shape: JoinShape, rows: Rows) -> None:
        """Keep a join to be used again, if it is small or there is room for it."""
        size, plan = ROW_BYTES * rows.count, PLAN_BYTES + TASK_BYTES * len(shape.levels)
        rows.kept = rows.count <= FEW_ROWS or self.keeping + size <= self.room * KEPT
        self.keeping += plan + (size if rows.kept else 0)
        self.holding += plan + size
        if rows.kept:
            self.by_shape[shape] = rows

    def _matches(self, one: Rows, two: Rows, shape: JoinShape) -> Matches:
        """The rows that are joined. The arrays are made for the most there can be; unused pages of them take no memory."""
        room = max(0, self.room - self.holding)
        most = int(min(room / PLANNED_BYTES, self.planning.remaining / PLANNED_ROW, MOST_ROWS))
        bound = min(most + 1, _most_rows(one, shape, 1), _most_rows(two, shape, 2))
        matches = _room_for(bound, bound)
        rows, groups = _match(one, two, shape, most, matches)
        self.planning.spend(PLANNED_JOIN + PLANNED_ROW * rows)
        if rows > most:
            raise TooWideError(f"a table would have more than {most:,} rows")
        begins, left, right, digits, codes = matches
        return Matches(begins[: groups + 1], left[:rows], right[:rows], digits[:rows], codes[:groups].copy())

    def own(self, shape: JoinShape) -> tuple[Ints, Ints]:
        """What each state of the dropped role adds to T, and what to the values."""
        step, gain = (RENDERED, EXECUTED) if self.turned else (EXECUTED, RENDERED)
        played = (1, 0) if self.turned else (0, 1)  # if T counts rendered tasks, values count waiting ones
        steps, gains = (0, int(shape.drops == step)), tuple(int(shape.drops == gain) * one for one in played)
        return np.array(steps, np.int32), np.array(gains, np.int32)

    def check(self) -> None:
        """Raise `TooWideError` if the joins would take more memory than allowed."""
        if self.peak() > self.room:
            raise TooWideError(f"the tables would take {self.peak():,} bytes")

    def peak(self) -> int:
        """The peak memory of the joins, in bytes."""
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
    """A bound of the rows of a join: each row of one table with each combination of states of the roles not in it."""
    return rows.count * math.prod(level[0] for level in shape.levels if level[column] < 0)


def _bytes(rows: Rows, cell: int) -> int:
    """The bytes that rows take while they are in use, beyond those that are kept all the time."""
    return rows.cells * cell + (0 if rows.kept else ROW_BYTES * rows.count)


def _room_for(rows: int, groups: int) -> Matches:
    begins, left, right = (np.empty(size, np.int32) for size in (groups + 1, rows, rows))
    return Matches(begins, left, right, np.empty(rows, np.int8), np.empty(groups, np.int64))


def _match(one: Rows, two: Rows, shape: JoinShape, most: int, out: Matches) -> tuple[int, int]:
    """Fill *out* with the rows that are joined, if there are at most *most*; returns the numbers of rows and groups."""
    levels = np.array(shape.levels, np.int64)
    rules = np.array(shape.rules, np.int64).reshape(-1, 2)
    stack, counts = np.empty((len(levels), 6), np.int64), np.empty(2, np.int64)
    tables.match_rows(one.codes, two.codes, levels, rules, shape.drops != NOTHING, most, stack, *out, counts)
    return int(counts[0]), int(counts[1])


def perform(planner: Planner, last: Rows, work: Work) -> Cells:
    """Do the planned joins and return the values of *last*; the memory of the others is released after their last use."""
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


# Elimination


__all__ = ["Elimination", "TooWideError", "eliminate", "exact_maxima", "roles_of"]

ROLE, NEIGHBOUR = 5_000, 150  # units of work to eliminate a role, and for each two neighbours of it
SYMMETRY = 1 / 4  # of the work may be spent on the search for symmetry
MOST_SMALL = (1 << 15) - 1  # values that numbers of 16 bits hold
FEW = math.log2(FEW_STATES)


class Elimination(NamedTuple):
    """An order in which to eliminate the roles, its large bags, the largest first, and the sets that are kept sorted.

    Of n tasks, number v as a role is to be executed for task v, and n + v to be rendered.
    """

    order: list[int]
    bags: list[list[int]]
    alike: list[Alike]


def eliminate(dag: Dag, work: Work | None = None, kept: Sequence[int] = ()) -> Elimination:
    """A good order by the greedy rule, with the interchangeable tasks of its large bags.

    The roles of the tasks *kept* to be executed are not eliminated; no symmetry is used with them.

    >>> chain = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d")])
    >>> eliminate(chain).order
    [0, 5, 1, 6, 2, 7]
    """
    work = work or Work()
    greedy = _Greedy(dag, work, kept)
    greedy.run()
    bags = [] if kept else greedy.bags
    return Elimination(greedy.in_depth(), bags, _alike(dag, bags, work.part(work.remaining * SYMMETRY)) if bags else [])


def roles_of(dag: Dag) -> list[int]:
    """The roles of all tasks: first to be executed, then to be rendered.

    >>> roles_of(Dag.from_arcs([("a", "b"), ("b", "c")]))
    [0, 1, 4, 5]
    """
    return [*np.flatnonzero(dag.outdegree > 0).tolist(), *(len(dag) + np.flatnonzero(dag.indegree > 0)).tolist()]


def _alike(dag: Dag, bags: list[list[int]], work: Work) -> list[Alike]:
    """The interchangeable tasks of these bags. Raises `TooWideError` if a bag is too large even with all that look alike."""
    twins = Twins(dag, work)
    tasks = [[v % len(dag) for v in bag] for bag in bags]
    for own in tasks:
        looks = twins.classes(set(own))
        roles = [max(own.count(v) for v in c) for c in looks]
        states = math.prod(math.comb(len(c) + many, many) for c, many in zip(looks, roles, strict=True))
        if states > MOST_STATES:
            raise TooWideError(f"a bag has {states:.3g} combinations of states")
    for own in tasks:
        if not work.over():
            twins.look(sorted(set(own)))
    return twins.sets


class _Greedy:
    """Repeatedly eliminates the role with the fewest neighbours, except roles that are kept."""

    def __init__(self, dag: Dag, work: Work, kept: Sequence[int]) -> None:
        self.work, self.kept = work, frozenset(kept)
        _, self.near = _neighbours(dag)
        #: the eliminated roles, each with its neighbours at that time
        self.around: dict[int, set[int]] = {}

    def run(self) -> None:
        """Eliminate all roles."""
        near = self.near
        heap = [(len(own), v) for v, own in enumerate(near) if own and v not in self.kept]
        heapify(heap)
        while heap:
            degree, v = heappop(heap)
            if v in self.around or degree > len(near[v]):
                continue
            if degree < len(near[v]):
                heappush(heap, (len(near[v]), v))
                continue
            self.work.spend(ROLE + NEIGHBOUR * len(near[v]) ** 2)
            if len(near[v]) > LARGEST_BAG or self.work.over():
                raise TooWideError(f"a bag has {len(near[v]) + 1} roles")
            for u in self._take_out(v):  # a role with more neighbours now is popped too soon, and pushed again
                if u not in self.kept:
                    heappush(heap, (len(near[u]), u))

    def _take_out(self, v: int) -> list[int]:
        """Eliminate v, connecting its neighbours with one another; returns those that now have fewer."""
        around, fewer = self.near[v], list[int]()
        self.around[v] = around
        for u in around:
            own = self.near[u]
            before = len(own)
            own |= around
            own -= {u, v}
            if len(own) < before:
                fewer.append(u)
        return fewer

    @property
    def bags(self) -> list[list[int]]:
        """The bags with many combinations, the largest first."""
        large = [(-len(around), v) for v, around in self.around.items() if len(around) + 1 > FEW]
        return [[v, *sorted(self.around[v])] for _, v in sorted(large)]

    def in_depth(self) -> list[int]:
        """The roles in an order with the same bags, each right after those that lead to it: few tables then exist at once."""
        place = {v: i for i, v in enumerate(self.around)}
        below: dict[int, list[int]] = defaultdict(list)
        most: dict[int, int] = {}
        roots = []
        for v, around in self.around.items():
            most[v] = max([len(around), *(most[u] for u in below[v])])
            later = around - self.kept
            if later:
                below[min(later, key=place.__getitem__)].append(v)
            else:
                roots.append(v)
        order: list[int] = []
        stack = roots
        while stack:
            v = stack.pop()
            order.append(v)
            stack += sorted(below[v], key=lambda u: (-most[u], place[u]))
        return order[::-1]


def _neighbours(dag: Dag) -> tuple[list[set[int]], list[set[int]]]:
    """For each role, the roles that it implies, and its neighbours: these and the roles that imply it."""
    n = len(dag)
    implied, near = ([set[int]() for _ in range(2 * n)] for _ in range(2))
    inner = np.flatnonzero((dag.indegree > 0) & (dag.outdegree > 0))
    roles, others = np.concatenate([n + dag.child, inner]), np.concatenate([dag.tails, n + inner])
    for role, other in zip(roles.tolist(), others.tolist(), strict=True):
        implied[role].add(other)
        near[role].add(other)
        near[other].add(role)
    return implied, near


def exact_maxima(dag: Dag, work: Work | None = None, plan: Elimination | None = None) -> Profile:
    """M(0..k) of a dag without shortcuts, exactly. Raises `TooWideError` if the work or the memory does not suffice.

    >>> exact_maxima(Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])).tolist()
    [0, 3, 4, 5, 6]
    """
    work = work or Work(memory=TABLE_BYTES)
    plan = eliminate(dag, work) if plan is None else plan
    planner, total = plan_joins(dag, plan, work)
    best: Profile = perform(planner, total.rows, work).astype(np.int64)
    return _turn_round(best) if planner.turned else best


def _turn_round(waiting: Profile) -> Profile:
    """M(0..k) from the most of the k tasks that can wait when 0, 1, ... tasks are rendered, which never rises."""
    least = waiting[0] - waiting
    return np.searchsorted(least, np.arange(waiting[0] + 1), side="right").astype(np.int64) - 1


def plan_joins(dag: Dag, plan: Elimination, work: Work) -> tuple[Planner, StateTable]:
    """A planner with all joins, and the table that the last of them gives. Raises `TooWideError` if they are too large.

    Roles that are not in the elimination order stay, in ascending order.
    """
    n, place = len(dag), [0] * (2 * len(dag))
    kept_roles = sorted(set(roles_of(dag)) - set(plan.order))
    for i, v in enumerate([*plan.order, *kept_roles]):
        place[v] = i
    implied, near = _neighbours(dag)
    ranks = {v: (group, i) for group, (members, _) in enumerate(plan.alike) for i, v in enumerate(members)}
    ranks |= {n + v: (len(plan.alike) + group, i) for v, (group, i) in ranks.items()}
    executed, rendered = int((dag.outdegree > 0).sum()), int((dag.indegree > 0).sum())
    cell, turned = _cell(max(executed, rendered)), rendered < executed and not kept_roles
    planner = Planner(Frame(n, place, implied, ranks), work, work.memory, cell, turned)
    waiting: dict[int, list[StateTable]] = defaultdict(list)
    for i, v in enumerate(plan.order):
        table = planner.joined(waiting.pop(v, []), v, (u for u in near[v] if place[u] > i))
        waiting[table.scope[0] if table.scope else -1].append(table)
    total = planner.joined([table for tables in waiting.values() for table in tables])
    planner.check()
    return planner, total


def _cell(most: int) -> Cell:
    """The smallest integer type that holds values up to *most*, and a negative one that stays negative with any added."""
    return np.int16 if most <= MOST_SMALL else np.int32
