"""The parts of a proof by modules, recomputed: exact maxima by elimination, swaps arc by arc.

Everything here is about one dag without shortcuts. A nonsink has the role (v, 1), to be executed, and a nonsource (v, 0),
to be rendered; a role is played (1) or not (0).

**Marked tasks** bound the area still to come: see `deciding.modules`. An order passes through sets whose marked tasks grow,
by at most one a step. With M(t, Q), the most that t tasks render of which exactly Q are marked, no order's sum from a step on
is above the largest sum of M(t, Q_t) over Q_t that grow like that.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.verifying import tables
from eligo.verifying.documents import require
from eligo.verifying.positions import Marks

Profile = NDArray[np.int64]
Key = tuple[Any, ...]
Role = tuple[int, int]

WIDEST, MOST_ROWS, MOST_CELLS = 62, 40_000_000, 1_000_000_000  # of one table: roles, rows and values
MOST_KEPT = 50_000_000  # values of tables that are kept to be used again
NONE = -(1 << 40)  # stands for sets that do not exist: with anything added to it, it stays below all areas
TOO_LARGE = "the tables of the proof are too large to check"


def swaps_hold(dag: Dag, alike: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the tasks of each set can be swapped, neighbour by neighbour, while all others of the set stay in place.

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
    """Whether the dag stays the same if the tasks of each pair change places."""
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
    first: int
    values: tables.Cells


class _Table(NamedTuple):
    """Rows of states of some roles, which are in the order of elimination."""

    roles: tuple[Role, ...]
    rows: _Rows

    @property
    def size(self) -> tuple[int, int]:
        """The sort key by which smaller tables are joined first; equal tables are next to each other."""
        return self.rows.values.size, self.rows.number


class _Joins:
    """Joins tables of states; equal joins are done once."""

    def __init__(
        self, dag: Dag, place: Mapping[Role, int], ranks: Mapping[int, tuple[int, int]], marked: bool = False
    ) -> None:
        self.place, self.ranks = place, ranks
        self.parents = [set(dag.parents_of(v).tolist()) for v in range(len(dag))]
        self.turned = not marked and bool((dag.indegree > 0).sum() < (dag.outdegree > 0).sum())
        self.kind = np.dtype(np.int16 if len(dag) < 1 << 14 else np.int32)
        self.by_key: dict[Key, _Rows] = {}
        self.kept = self.count = 0
        self.start = _Table((), self._start())

    def _start(self) -> _Rows:
        return _Rows(0, np.zeros(1, np.int64), 0, np.zeros((1, 1), self.kind))

    def times(self, one: _Table, two: _Table, more: Sequence[Role] = (), without: bool = False) -> _Table:
        """The join of two tables, with all states of *more*, values convolved; if *without*, the best over the first role."""
        if one.rows.values.shape[1] > two.rows.values.shape[1]:
            one, two = two, one
        roles = tuple(sorted({*one.roles, *two.roles, *more}, key=self.place.__getitem__))
        key = (one.rows.number, two.rows.number, *self._layout(one, two, roles), roles[0][1] if without else None)
        rows = self.by_key.get(key)
        if rows is None:
            rows = self._join(one.rows, two.rows, *key[2:])
            if self.kept + rows.values.size <= MOST_KEPT:
                self.kept += rows.values.size
                self.by_key[key] = rows
        return _Table(roles[1:] if without else roles, rows)

    def _layout(self, one: _Table, two: _Table, roles: Sequence[Role]) -> tuple[Key, Key]:
        """For each role, the last first, its places in the codes and the end of its rules; and the rules."""
        if len(roles) > WIDEST:
            raise OverflowError(TOO_LARGE)
        at_one, at_two, at = ({role: i for i, role in enumerate(own)} for own in (one.roles, two.roles, roles))
        levels, rules = [], []
        for i, v in enumerate(backward := roles[::-1]):
            rules += [(j, rule) for j, u in enumerate(backward[:i]) for rule in self._rules(v, u)]
            levels.append((2, at_one.get(v, -1), at_two.get(v, -1), at[v], len(rules)))
        return tuple(levels) or ((1, -1, -1, 0, 0),), tuple(rules)

    def _rules(self, v: Role, u: Role) -> list[int]:
        """The rules for u, whose state is chosen before: 0, it must not be lower than v; 1, not higher."""
        rules = [rule for rule, low, high in ((0, v, u), (1, u, v)) if self._implies(low, high)]
        (group, rank), (other, other_rank) = self.ranks.get(v[0], (-1, 0)), self.ranks.get(u[0], (-1, 0))
        return rules + ([int(other_rank > rank)] if group == other >= 0 and v[1] == u[1] else [])

    def _implies(self, low: Role, high: Role) -> bool:
        """Whether the one role is played only with the other: rendered after all parents, executed after being rendered."""
        (v, executed), (u, other) = low, high
        return v == u if executed else bool(other) and u in self.parents[v]

    def _effects(self, dropped: int | None) -> tables.Effects:
        """What the state 1 of a dropped role adds to the place in a row, and its states 0 and 1 to the value there.

        Places count executed tasks and values rendered ones; if turned, rendered tasks and nonsinks that are not executed.
        """
        executed, rendered = int(dropped == 1), int(dropped == 0)
        return (rendered, executed, 0) if self.turned else (executed, 0, rendered)

    def _join(self, one: _Rows, two: _Rows, levels: Key, rules: Key, dropped: int | None) -> _Rows:
        matches = tables.match_rows(one.codes, two.codes, levels, rules, MOST_ROWS)
        if matches is None:
            raise OverflowError(TOO_LARGE)
        groups, codes = matches.grouped(dropped is not None)
        if len(codes) * (one.values.shape[1] + two.values.shape[1]) > MOST_CELLS:
            raise OverflowError(TOO_LARGE)
        values = tables.join_rows(matches, groups, (one.values, two.values), self._effects(dropped))
        used = np.flatnonzero((values >= 0).any(axis=0))
        begin, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
        self.count += 1
        return _Rows(self.count, codes, one.first + two.first + begin, values[:, begin:end])


def all_roles(dag: Dag) -> list[Role]:
    """The roles of all tasks, sorted."""
    degrees = zip(dag.indegree.tolist(), dag.outdegree.tolist(), strict=True)
    return [(v, role) for v, degree in enumerate(degrees) for role in (0, 1) if degree[role]]


def roles(dag: Dag, names: Sequence[str], executed_first: Sequence[str] | None) -> list[Role]:
    """The roles that a list of names stands for; a task with two roles is named twice. Empty if the names are wrong.

    Such a task is rendered first, unless it is in *executed_first*. If that is None, a name stands for all its roles.
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

    Rendered tasks are counted, and executed tasks are the steps. If there are fewer nonsources than nonsinks, rows go along
    the rendered tasks: M(t) is the largest number of these for which all but t of the nonsinks can wait.
    """
    joins, table = _last_table(dag, order, (), alike)
    result: Profile = table.rows.values[0].astype(np.int64)
    return _by_steps(result, int(np.count_nonzero(dag.outdegree))) if joins.turned else result


def maxima_by_marks(dag: Dag, order: Sequence[Role], marked: Sequence[int]) -> NDArray[np.int64]:
    """The most that t tasks render of which exactly a set of marked tasks is executed: a row for each set, by bits."""
    rows = _last_table(dag, order, [(v, 1) for v in marked], ())[1].rows
    table = np.full((1 << len(marked), int(np.count_nonzero(dag.outdegree)) + 1), NONE)
    for code, own in zip(rows.codes.tolist(), rows.values, strict=True):
        there = np.flatnonzero(own >= 0)
        table[code, rows.first + code.bit_count() + there] = own[there]
    return table


def _last_table(
    dag: Dag, order: Sequence[Role], kept: Sequence[Role], alike: Sequence[Mapping[str, Any]]
) -> tuple[_Joins, _Table]:
    """The table that remains after all roles except those kept are eliminated, and its joins."""
    ranks = {dag.index[name]: (g, i) for g, entry in enumerate(alike) for i, name in enumerate(entry["tasks"])}
    place = {role: i for i, role in enumerate([*order, *kept])}
    joins = _Joins(dag, place, ranks, bool(kept))
    homes: dict[Role | None, list[_Table]] = defaultdict(list)
    for i, role in enumerate(order):
        one, two = _down_to_two(joins, homes.pop(role, []))
        near = [other for other in _around(dag, *role) if place.get(other, -1) > i]
        table = joins.times(one, two, (role, *near), without=True)
        homes[table.roles[0] if table.roles else None].append(table)
    one, two = _down_to_two(joins, [table for tables in homes.values() for table in tables])
    return joins, joins.times(one, two)


def _around(dag: Dag, v: int, executed: int) -> list[Role]:
    """The roles that imply a role or are implied by it: the task's other one, and children rendered or parents executed."""
    others = dag.children_of(v) if executed else dag.parents_of(v)
    return [(v, 1 - executed), *((u, 1 - executed) for u in others.tolist())]


def _by_steps(waiting: Profile, tasks: int) -> Profile:
    """M(t), the most rendered tasks for which all but t tasks can wait; *waiting* gives by their number how many can."""
    least = np.minimum.accumulate((tasks - waiting)[::-1])[::-1]
    return np.searchsorted(least, np.arange(tasks + 1), side="right").astype(np.int64) - 1


def _down_to_two(joins: _Joins, waiting: list[_Table]) -> list[_Table]:
    """Two tables in place of several, by repeatedly joining the two smallest."""
    waiting = sorted(waiting, key=lambda t: t.size)
    while len(waiting) > 2:
        one, two, *waiting = waiting
        insort(waiting, joins.times(one, two), key=lambda t: t.size)
    return [joins.start] * (2 - len(waiting)) + waiting


# Marked tasks


MOST_ENTRIES = 100_000_000  # of a table


def marks_of(dag: Dag, how: Mapping[str, Any] | None) -> Marks | None:
    """The marked tasks of a proof, with the most area to come for each set of them after each step; None if it has none."""
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
    """For every set and step, the largest sum over the steps that follow."""
    to_come, sets = np.zeros_like(maxima), np.arange(len(maxima))
    for t in range(maxima.shape[1] - 1, 0, -1):
        behind = maxima[:, t] + to_come[:, t]
        grown = [behind[sets | 1 << i] for i in range(len(maxima).bit_length() - 1)]
        to_come[:, t - 1] = np.maximum(np.max([behind, *grown], axis=0), NONE)
    return to_come
