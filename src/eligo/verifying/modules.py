"""What a proof by modules rests on, recomputed: exact maxima by elimination, swaps arc by arc.

Everything here is about one dag without shortcuts. Only the innermost loops, `kernels.tables`, are the planner's as well. A
nonsink has the role (v, 1), to be executed, and a nonsource (v, 0), to be rendered; a role is played (1) or not (0).

**Marked tasks** tell how much area can still come: see `deciding.modules`. An order passes through sets whose marked tasks
grow, by one or none a step. With M(t, Q), the most that t tasks render of which just Q are marked, no order's sum from a
step on is above the largest sum of M(t, Q_t) over Q_t that grow like that.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.kernels import tables
from eligo.verifying.documents import require
from eligo.verifying.positions import Marks

Profile = NDArray[np.int64]
Key = tuple[Any, ...]
Role = tuple[int, int]

WIDEST, MOST_ROWS, MOST_CELLS = 62, 40_000_000, 1_000_000_000  # of one table: roles, rows and values
MOST_KEPT = 50_000_000  # values of tables that are kept, lest they are needed again
NONE = -(1 << 40)  # no set of tasks: whatever is added to it stays below all areas
TOO_LARGE = "the tables of the proof are too large to check"


def swaps_hold(dag: Dag, alike: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the tasks of each set can be swapped, neighbour by neighbour, with all the others of it left in place.

    A swap that moves a task of an earlier set is not allowed; every arc must go to an arc.
    """
    index, arcs = dag.index, set(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))
    fixed: set[int] = set()
    for entry in alike:
        members = [index.get(name, -1) for name in entry["tasks"]]
        if len(entry["swaps"]) != len(members) - 1 or len(set(members)) < len(members) or -1 in members:
            return False
        for a, b, pairs in zip(members, members[1:], entry["swaps"], strict=False):
            image = {index.get(u, -1): index.get(v, -1) for u, v in pairs}
            bijective = image.keys() == set(image.values()) and -1 not in image and len(image) == len(pairs)
            moves_two = image.get(a) == b and image.get(b) == a and not image.keys() & (fixed | set(members) - {a, b})
            if not bijective or not moves_two or any((image.get(u, u), image.get(v, v)) not in arcs for u, v in arcs):
                return False
        fixed |= set(members)
    return True


def exchange_holds(dag: Dag, pairs: Sequence[Sequence[str]]) -> bool:
    """Whether the dag stays the same when the tasks of each pair change places."""
    index, image = dag.index, np.arange(len(dag))
    if any(name not in index for pair in pairs for name in pair) or len({v for p in pairs for v in p}) < 2 * len(pairs):
        return False
    one, other = (np.array([index[pair[side]] for pair in pairs], np.int64) for side in (0, 1))
    image[one], image[other] = other, one
    codes = dag.tails.astype(np.int64) * len(dag) + dag.child
    return np.array_equal(np.sort(codes), np.sort(image[dag.tails] * len(dag) + image[dag.child]))


class _Rows(NamedTuple):
    """Combinations of states, as numbers in increasing order, and the best values of each for T = first, first + 1, ..."""

    number: int
    codes: NDArray[np.int64]
    first: NDArray[np.int32]
    ptr: NDArray[np.int64]
    values: NDArray[np.signedinteger[Any]]


class _Table(NamedTuple):
    """Rows of states of some roles, these in the order in which they are to be eliminated."""

    roles: tuple[Role, ...]
    rows: _Rows

    @property
    def size(self) -> tuple[int, int]:
        """By which of several tables the smaller ones are joined first; equal ones come one after another."""
        return len(self.rows.values), self.rows.number


class _Joins:
    """Joins tables of states; what is equal is joined once."""

    def __init__(
        self, dag: Dag, place: Mapping[Role, int], ranks: Mapping[int, tuple[int, int]], marked: bool = False
    ) -> None:
        self.place, self.ranks = place, ranks
        self.parents = [set(dag.parents_of(v).tolist()) for v in range(len(dag))]
        self.turned = not marked and bool((dag.indegree > 0).sum() < (dag.outdegree > 0).sum())
        few = len(dag) < 1 << 15
        self.kind, self.never = np.dtype(np.int16 if few else np.int32), -(1 << 15) if few else -(1 << 30)
        self.known: dict[Key, _Rows] = {}
        self.kept = self.made = 0
        self.start = _Table((), self._start())

    def _start(self) -> _Rows:
        return _Rows(0, np.zeros(1, np.int64), np.zeros(1, np.int32), np.arange(2), np.zeros(1, self.kind))

    def times(self, one: _Table, two: _Table, more: Sequence[Role] = (), without: bool = False) -> _Table:
        """Every two rows that agree on common roles, for all states of *more*, values convolved; the best over the first."""
        if len(one.rows.values) * len(two.rows.codes) > len(two.rows.values) * len(one.rows.codes):
            one, two = two, one
        roles = tuple(sorted({*one.roles, *two.roles, *more}, key=self.place.__getitem__))
        key = (one.rows.number, two.rows.number, *self._layout(one, two, roles), roles[0][1] if without else None)
        rows = self.known.get(key)
        if rows is None:
            rows = self._joined(one.rows, two.rows, *key[2:])
            if self.kept + len(rows.values) <= MOST_KEPT:
                self.kept += len(rows.values)
                self.known[key] = rows
        return _Table(roles[1:] if without else roles, rows)

    def _layout(self, one: _Table, two: _Table, roles: Sequence[Role]) -> tuple[Key, Key]:
        """For each role, the last first, where it stands in the numbers, and up to which rule it is bound."""
        if len(roles) > WIDEST:
            raise OverflowError(TOO_LARGE)
        at_one, at_two, at = ({role: i for i, role in enumerate(own)} for own in (one.roles, two.roles, roles))
        levels, rules = [], []
        for i, v in enumerate(backward := roles[::-1]):
            rules += [(j, rule) for j, u in enumerate(backward[:i]) for rule in self._rules(v, u)]
            levels.append((2, at_one.get(v, -1), at_two.get(v, -1), at[v], len(rules)))
        return tuple(levels) or ((1, -1, -1, 0, 0),), tuple(rules)

    def _rules(self, v: Role, u: Role) -> list[int]:
        """What u, whose state is chosen before, may not be: 0 lower than v, 1 higher."""
        rules = [rule for rule, low, high in ((0, v, u), (1, u, v)) if self._implies(low, high)]
        (group, rank), (other, other_rank) = self.ranks.get(v[0], (-1, 0)), self.ranks.get(u[0], (-1, 0))
        return rules + ([int(other_rank > rank)] if group == other >= 0 and v[1] == u[1] else [])

    def _implies(self, low: Role, high: Role) -> bool:
        """Whether the one role is played only with the other: rendered after all parents, executed when rendered."""
        (v, executed), (u, other) = low, high
        return v == u if executed else bool(other) and u in self.parents[v]

    def _counted(self, dropped: int | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """What the states 0 and 1 of a role that is dropped add to where in a row one is, and to the value there.

        Executed tasks, and rendered ones; turned, rendered tasks, and nonsinks that are not executed.
        """
        executed, rendered = dropped == 1, dropped == 0
        if self.turned:
            return np.array([0, rendered], np.int32), np.array([executed, 0], np.int32)
        return np.array([0, executed], np.int32), np.array([0, rendered], np.int32)

    def _joined(self, one: _Rows, two: _Rows, levels: Key, rules: Key, dropped: int | None) -> _Rows:
        bound = min(len(r.codes) * prod(x[0] for x in levels if x[c] < 0) for r, c in ((one, 1), (two, 2)))
        size = min(bound, MOST_ROWS + 1)
        begins, left, right = (np.empty(size + 1, np.int32) for _ in range(3))
        digits, codes, counts = np.empty(size, np.int8), np.empty(size, np.int64), np.empty(2, np.int64)
        stack = np.empty((len(levels), 6), np.int64)
        spec = np.array(levels, np.int64), np.array(rules, np.int64).reshape(-1, 2), dropped is not None
        tables.match_rows(one.codes, two.codes, *spec, MOST_ROWS, stack, begins, left, right, digits, codes, counts)
        if counts[0] > MOST_ROWS:
            raise OverflowError(TOO_LARGE)
        steps, gains = self._counted(dropped)
        groups = int(counts[1])
        first, ptr = np.empty(groups, np.int32), np.empty(groups + 1, np.int64)
        which = begins[: groups + 1], left, right, digits, steps
        tables.measure_rows(*which, one.first, one.ptr, two.first, two.ptr, first, ptr, counts)
        if ptr[-1] > MOST_CELLS:
            raise OverflowError(TOO_LARGE)
        values, self.made = np.empty(int(ptr[-1]), self.kind), self.made + 1
        mine, theirs = (one.first, one.ptr, one.values), (two.first, two.ptr, two.values)
        tables.join_rows(*which, gains, *mine, *theirs, first, ptr, self.never, values)
        return _Rows(self.made, codes[:groups].copy(), first, ptr, values)


def all_roles(dag: Dag) -> list[Role]:
    """The roles of all tasks, sorted."""
    degrees = zip(dag.indegree.tolist(), dag.outdegree.tolist(), strict=True)
    return [(v, role) for v, degree in enumerate(degrees) for role in (0, 1) if degree[role]]


def roles(dag: Dag, names: Sequence[str], executed_first: Sequence[str] | None) -> list[Role]:
    """The roles that a list of names stands for, if it does: a task with two is named twice, for the one and then the other.

    It is rendered first, but for those named besides. Where there is nothing besides, a name stands for all its roles.
    """
    own: dict[str, list[Role]] = defaultdict(list)
    for v, role in all_roles(dag):
        own[dag.tasks[v]].append((v, role))
    if executed_first is None:
        return [role for name in names for role in own[name]]
    for name in executed_first:
        own[name] = own[name][::-1]
    if sum(len(own[name]) > 1 for name in set(executed_first)) < len(executed_first):
        return []
    queues: dict[str, Iterable[Role]] = {name: iter(both) for name, both in own.items()}
    return [role for name in names for role in islice(queues.get(name, ()), 1)]


def exact_maxima(dag: Dag, order: Sequence[Role], alike: Sequence[Mapping[str, Any]]) -> Profile:
    """M(t), by eliminating the roles in this order: a task is rendered only if its parents are executed, and executed after.

    What is rendered counts; what is executed takes a step. Where there are fewer nonsources, the rows go along what is
    rendered: M(t) is the most for which all but t of the nonsinks can wait.
    """
    joins, table = _last_table(dag, order, (), alike)
    result: Profile = table.rows.values.astype(np.int64)
    return _by_steps(result, int(np.count_nonzero(dag.outdegree))) if joins.turned else result


def maxima_by_marks(dag: Dag, order: Sequence[Role], marked: Sequence[int]) -> NDArray[np.int64]:
    """The most that t tasks render of which just some of the marked are executed: a row for each set of these, by bits."""
    rows = _last_table(dag, order, [(v, 1) for v in marked], ())[1].rows
    table = np.full((1 << len(marked), int(np.count_nonzero(dag.outdegree)) + 1), NONE)
    for code, first, begin, end in zip(rows.codes.tolist(), rows.first.tolist(), rows.ptr, rows.ptr[1:], strict=False):
        own, step = rows.values[begin:end], first + code.bit_count()
        table[code, step : step + len(own)] = np.where(own < 0, NONE, own)
    return table


def _last_table(
    dag: Dag, order: Sequence[Role], kept: Sequence[Role], alike: Sequence[Mapping[str, Any]]
) -> tuple[_Joins, _Table]:
    """What is left when all roles but those kept are eliminated."""
    ranks = {dag.index[name]: (g, i) for g, entry in enumerate(alike) for i, name in enumerate(entry["tasks"])}
    place = {role: i for i, role in enumerate([*order, *kept])}
    joins = _Joins(dag, place, ranks, bool(kept))
    homes: dict[Role | None, list[_Table]] = defaultdict(list)
    for i, role in enumerate(order):
        one, two = _two_left(joins, homes.pop(role, []))
        near = [other for other in _around(dag, *role) if place.get(other, -1) > i]
        table = joins.times(one, two, (role, *near), without=True)
        homes[table.roles[0] if table.roles else None].append(table)
    one, two = _two_left(joins, [table for tables in homes.values() for table in tables])
    return joins, joins.times(one, two)


def _around(dag: Dag, v: int, executed: int) -> list[Role]:
    """What a role implies or is implied by: the other role of the task, and children rendered or parents executed."""
    others = dag.children_of(v) if executed else dag.parents_of(v)
    return [(v, 1 - executed), *((u, 1 - executed) for u in others.tolist())]


def _by_steps(waiting: Profile, tasks: int) -> Profile:
    """The most that is rendered when all but t of the tasks wait, from how many can wait at most for what is rendered."""
    least = np.minimum.accumulate((tasks - waiting)[::-1])[::-1]
    return np.searchsorted(least, np.arange(tasks + 1), side="right").astype(np.int64) - 1


def _two_left(joins: _Joins, waiting: list[_Table]) -> list[_Table]:
    """Two tables in place of several: again and again the two smallest are joined."""
    waiting = sorted(waiting, key=lambda t: t.size)
    while len(waiting) > 2:
        one, two, *waiting = waiting
        insort(waiting, joins.times(one, two), key=lambda t: t.size)
    return [joins.start] * (2 - len(waiting)) + waiting


# Marked tasks


MOST_ENTRIES = 100_000_000  # of a table


def marks_of(dag: Dag, how: Mapping[str, Any] | None) -> Marks | None:
    """The marked tasks of a proof, if it has some, and what can still come for each set of them after each step."""
    if how is None:
        return None
    tasks, nonsinks = sorted({dag.index.get(name, -1) for name in how["tasks"]}), np.flatnonzero(dag.outdegree)
    require(len(tasks) == len(how["tasks"]) > 0 and np.isin(tasks, nonsinks).all(), "no tasks to mark")
    if (len(nonsinks) + 1) << len(tasks) > MOST_ENTRIES:
        raise OverflowError("too many sets of marked tasks")
    order = roles(dag, how["order"], how["executed_first"])
    marked = [(v, 1) for v in tasks]
    require(sorted([*order, *marked]) == all_roles(dag), "not every unmarked task is eliminated once")
    maxima = maxima_by_marks(dag, order, tasks)
    return Marks(tasks, _suffix_maxima(maxima))


def _suffix_maxima(maxima: Profile) -> Profile:
    """For every set and step the largest sum behind it, from the last step on."""
    to_come, sets = np.zeros_like(maxima), np.arange(len(maxima))
    for t in range(maxima.shape[1] - 1, 0, -1):
        behind = maxima[:, t] + to_come[:, t]
        grown = [behind[sets | 1 << i] for i in range(len(maxima).bit_length() - 1)]
        to_come[:, t - 1] = np.maximum(np.max([behind, *grown], axis=0), NONE)
    return to_come
