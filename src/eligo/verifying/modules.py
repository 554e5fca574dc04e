"""What a proof by modules rests on, recomputed: exact maxima by elimination, swaps arc by arc.

Everything here is about one dag without shortcuts. Only the innermost loops, `kernels.tables`, are the planner's as well.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.kernels import tables

Profile = NDArray[np.int64]
Key = tuple[Any, ...]

WIDEST, MOST_ROWS, MOST_CELLS = 62, 40_000_000, 1_000_000_000  # of one table: bits of states, rows and values
MOST_KEPT = 50_000_000  # values of tables that are kept, lest they are needed again
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
    """Rows of states of some tasks, these in the order in which they are to be eliminated."""

    tasks: tuple[int, ...]
    rows: _Rows

    @property
    def size(self) -> tuple[int, int]:
        """By which of several tables the smaller ones are joined first; equal ones come one after another."""
        return len(self.rows.values), self.rows.number


class _Joins:
    """Joins tables of states (0 not eligible, 1 eligible, 2 executed); what is equal is joined once."""

    def __init__(self, dag: Dag, place: Mapping[int, int], ranks: Mapping[int, tuple[int, int]]) -> None:
        self.place, self.ranks = place, ranks
        self.children = [set(dag.children_of(v).tolist()) for v in range(len(dag))]
        self.lowest = (dag.indegree == 0).astype(int).tolist()
        self.counts = (3 - (dag.indegree == 0).astype(int) - (dag.outdegree == 0)).tolist()
        self.turned = bool((dag.indegree > 0).sum() < (dag.outdegree > 0).sum())
        few = len(dag) < 1 << 15
        self.kind, self.never = np.dtype(np.int16 if few else np.int32), -(1 << 15) if few else -(1 << 30)
        self.known: dict[Key, _Rows] = {}
        self.kept = self.made = 0
        self.start = _Table((), self._start())

    def _start(self) -> _Rows:
        return _Rows(0, np.zeros(1, np.int64), np.zeros(1, np.int32), np.arange(2), np.zeros(1, self.kind))

    def times(self, one: _Table, two: _Table, more: Sequence[int] = (), without: bool = False) -> _Table:
        """Every two rows that agree on common tasks, for all states of *more*, values convolved; the best over the first."""
        if len(one.rows.values) * len(two.rows.codes) > len(two.rows.values) * len(one.rows.codes):
            one, two = two, one
        tasks = tuple(sorted({*one.tasks, *two.tasks, *more}, key=self.place.__getitem__))
        key = (one.rows.number, two.rows.number, *self._layout(one, two, tasks), without)
        rows = self.known.get(key)
        if rows is None:
            rows = self._joined(one.rows, two.rows, *key[2:])
            if self.kept + len(rows.values) <= MOST_KEPT:
                self.kept += len(rows.values)
                self.known[key] = rows
        return _Table(tasks[1:] if without else tasks, rows)

    def _layout(self, one: _Table, two: _Table, tasks: Sequence[int]) -> tuple[Key, Key]:
        """For each task, the last first, its states, where they stand in the numbers, and up to which rule it is bound."""
        at_one, at_two, at = (self._places(own) for own in (one.tasks, two.tasks, tasks))
        levels, rules = [], []
        for i, v in enumerate(backward := tasks[::-1]):
            rules += [rule for j, u in enumerate(backward[:i]) for rule in self._rules(v, u, j)]
            levels.append((self.lowest[v], self.counts[v], at_one.get(v, -1), at_two.get(v, -1), at[v], len(rules)))
        return tuple(levels) or ((0, 1, -1, -1, 0, 0),), tuple(rules)

    def _places(self, tasks: Sequence[int]) -> dict[int, int]:
        bits = np.cumsum([0, *(1 + (self.counts[v] > 2) for v in tasks)]).tolist()
        if bits[-1] > WIDEST:
            raise OverflowError(TOO_LARGE)
        return dict(zip(tasks, bits, strict=False))

    def _rules(self, v: int, u: int, level: int) -> list[tuple[int, int]]:
        """What the state of u, chosen at an earlier level, asks of v: 0 a parent, 1 a child, 2 not lower, 3 not higher."""
        rules = [(level, 0)] if v in self.children[u] else [(level, 1)] if u in self.children[v] else []
        (group, rank), (other, other_rank) = self.ranks.get(v, (-1, 0)), self.ranks.get(u, (-1, 0))
        return rules + ([(level, 2 if other_rank < rank else 3)] if group == other >= 0 else [])

    def _counted(self, states: NDArray[np.int64], without: bool) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Along what the rows go, and what is best in them, as the states of a task add to both.

        Executed tasks, and rendered ones; turned, rendered tasks, and nonsinks that are not executed.
        """
        rendered, executed = (states > 0) & (states[0] == 0) & without, (states == 2) & without
        waiting = (states != 2) & (states[-1] == 2) & without
        along, best = (rendered, waiting) if self.turned else (executed, rendered)
        return along.astype(np.int32), best.astype(np.int32)

    def _joined(self, one: _Rows, two: _Rows, levels: Key, rules: Key, without: bool) -> _Rows:
        bound = min(len(r.codes) * prod(x[1] for x in levels if x[c] < 0) for r, c in ((one, 2), (two, 3)))
        size = min(bound, MOST_ROWS + 1)
        begins, left, right = (np.empty(size + 1, np.int32) for _ in range(3))
        digits, codes, found = np.empty(size, np.int8), np.empty(size, np.int64), np.empty(2, np.int64)
        lowest, count = levels[-1][:2]
        dropped, stack = (1 + (count > 2)) * without, np.empty((len(levels), 7), np.int64)
        spec = np.array(levels, np.int64), np.array(rules, np.int64).reshape(-1, 2), dropped
        tables.match_rows(one.codes, two.codes, *spec, MOST_ROWS, stack, begins, left, right, digits, codes, found)
        if found[0] > MOST_ROWS:
            raise OverflowError(TOO_LARGE)
        steps, gains = self._counted(np.arange(lowest, lowest + count), without)
        groups = int(found[1])
        first, ptr = np.empty(groups, np.int32), np.empty(groups + 1, np.int64)
        which = begins[: groups + 1], left, right, digits, steps
        tables.measure_rows(*which, one.first, one.ptr, two.first, two.ptr, first, ptr, found)
        if ptr[-1] > MOST_CELLS:
            raise OverflowError(TOO_LARGE)
        values, self.made = np.empty(int(ptr[-1]), self.kind), self.made + 1
        mine, theirs = (one.first, one.ptr, one.values), (two.first, two.ptr, two.values)
        tables.join_rows(*which, gains, *mine, *theirs, first, ptr, self.never, values)
        return _Rows(self.made, codes[:groups].copy(), first, ptr, values)


def exact_maxima(dag: Dag, order: Sequence[str], alike: Sequence[Mapping[str, Any]]) -> Profile:
    """M(t), by eliminating the tasks in this order: a task counts as eligible only if its parents are executed.

    A nonsource counts once it is eligible; a nonsink that is executed takes a step. Where there are fewer nonsources, the
    rows go along what is rendered: M(t) is the most for which all but t of the nonsinks can wait.
    """
    ranks = {dag.index[name]: (g, i) for g, entry in enumerate(alike) for i, name in enumerate(entry["tasks"])}
    place = {dag.index[name]: i for i, name in enumerate(order)}
    joins = _Joins(dag, place, ranks)
    homes: dict[int, list[_Table]] = defaultdict(list)
    for v, i in place.items():
        one, two = _two_left(joins, homes.pop(v, []))
        near = [u for u in (*dag.children_of(v).tolist(), *dag.parents_of(v).tolist()) if place[u] > i]
        table = joins.times(one, two, (v, *near), without=True)
        homes[table.tasks[0] if table.tasks else -1].append(table)
    one, two = _two_left(joins, homes.pop(-1, []))
    result: Profile = joins.times(one, two).rows.values.astype(np.int64)
    return _by_steps(result, np.count_nonzero(dag.outdegree)) if joins.turned else result


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
