"""What a proof by modules rests on, recomputed: exact maxima by elimination, swaps arc by arc.

Everything here is about one dag without shortcuts whose first k tasks are its nonsinks.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag

Profile = NDArray[np.int64]
States = NDArray[np.int8]
Values = NDArray[np.int32]

NEVER = -(1 << 29)  # even twice it is a number of 32 bits
WIDEST, MOST_ROWS, MOST_CELLS = 39, 3_000_000, 200_000_000  # of one table: 3 to the power of 39 is a number of 64 bits
CACHED = 1 << 15
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


class _Table:
    """Rows of states (0 not eligible, 1 eligible, 2 executed) of some tasks, and each row's best values for T = 0, 1, ..."""

    def __init__(self, tasks: list[int], states: States, values: Values) -> None:
        self.tasks, self.states, self.values = tasks, states, values

    def times(self, other: "_Table", ranks: Mapping[int, tuple[int, int]]) -> "_Table":
        """Every two rows that agree on common tasks, their values convolved; sets that may be sorted are kept sorted."""
        common = [v for v in self.tasks if v in other.tasks]
        fresh = [v for v in other.tasks if v not in self.tasks]
        left, right = _matching(self._codes(common), other._codes(common))
        tasks = self.tasks + fresh
        states = np.hstack([self.states[left], other._columns(fresh)[right]])
        keep = np.ones(len(left), np.bool_)
        ranked = sorted((*ranks[v], c) for c, v in enumerate(tasks) if v in ranks)
        for (one, _, a), (two, _, b) in pairwise(ranked):
            keep &= (one != two) | (states[:, a] >= states[:, b])
        if len(tasks) > WIDEST or keep.sum() * (self.values.shape[1] + other.values.shape[1]) > MOST_CELLS:
            raise OverflowError(TOO_LARGE)
        return _Table(tasks, states[keep], _convolved(self.values, left[keep], other.values, right[keep]))

    def without(self, v: int) -> "_Table":
        """The best over the states of one task."""
        own, others = self._columns([v])[:, 0], [t for t in self.tasks if t != v]
        _, first, group = np.unique(self._codes(others), return_index=True, return_inverse=True)
        values, rest = self.values[first], np.ones(len(own), np.bool_)
        rest[first] = False
        for state in range(3):  # no two rows of a state are in one group
            rows = np.flatnonzero(rest & (own == state))
            values[group[rows]] = np.maximum(values[group[rows]], self.values[rows])
        return _Table(others, self._columns(others)[first], values)

    def _columns(self, tasks: list[int]) -> States:
        return self.states[:, [self.tasks.index(v) for v in tasks]]

    def _codes(self, tasks: list[int]) -> NDArray[np.int64]:
        """Each row's states of these tasks as one number."""
        return self._columns(tasks).astype(np.int64) @ 3 ** np.arange(len(tasks))


def _matching(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every two places with the same number."""
    order = np.argsort(theirs, kind="stable")
    begin, end = (np.searchsorted(theirs[order], mine, side) for side in ("left", "right"))
    counts = end - begin
    if (total := int(counts.sum())) > MOST_ROWS:
        raise OverflowError(TOO_LARGE)
    left = np.repeat(np.arange(len(mine)), counts)
    return left, order[np.arange(total) + np.repeat(end - np.cumsum(counts), counts)]


def _convolved(one: Values, left: NDArray[np.intp], two: Values, right: NDArray[np.intp]) -> Values:
    """The max-plus convolution of each row of the one with a row of the other; a few rows at a time stay in the cache."""
    if one.shape[1] > two.shape[1]:
        one, left, two, right = two, right, one, left
    best = np.full((len(left), one.shape[1] + two.shape[1] - 1), NEVER, np.int32)
    few = max(1, CACHED // best.shape[1])
    for a in range(0, len(left), few):
        short, long = one[left[a : a + few]], two[right[a : a + few]]
        for i in range(short.shape[1]):
            window = best[a : a + few, i : i + long.shape[1]]
            np.maximum(window, short[:, i : i + 1] + long, out=window)
    return best


def exact_maxima(dag: Dag, order: Sequence[str], alike: Sequence[Mapping[str, Any]]) -> Profile:
    """M(t), by eliminating the tasks in this order: a task counts as eligible only if its parents are executed."""
    ranks = {dag.index[name]: (g, i) for g, entry in enumerate(alike) for i, name in enumerate(entry["tasks"])}
    waiting = [_own(dag, v) for v in range(len(dag))]
    waiting += [_arc(dag, u, v) for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)]
    homes: list[list[_Table]] = [[] for _ in range(len(dag))]
    place = {dag.index[name]: i for i, name in enumerate(order)}
    for table in waiting:
        homes[min(place[v] for v in table.tasks)].append(table)
    total = _Table([], np.zeros((1, 0), np.int8), np.zeros((1, 1), np.int32))
    for i, name in enumerate(order):
        v = dag.index[name]
        first, *rest = sorted(homes[i], key=lambda t: (t.values.shape[1], len(t.values)))
        for table in rest:
            first = first.times(table, ranks)
        first = first.without(v)
        if first.tasks:
            homes[min(place[t] for t in first.tasks)].append(first)
        else:
            total = total.times(first, ranks)
    result: Profile = total.values[0].astype(np.int64)
    return result


def _states(dag: Dag, v: int) -> list[int]:
    return list(range(int(dag.indegree[v] == 0), 3 - int(dag.outdegree[v] == 0)))


def _own(dag: Dag, v: int) -> _Table:
    """A nonsource counts once eligible; a nonsink that is executed takes a step."""
    states = _states(dag, v)
    values = np.full((len(states), 1 + int(dag.outdegree[v] > 0)), NEVER, np.int32)
    for row, state in enumerate(states):
        values[row, int(state == 2)] = int(state > 0 and dag.indegree[v] > 0)
    return _Table([v], np.array(states, np.int8).reshape(-1, 1), values)


def _arc(dag: Dag, u: int, v: int) -> _Table:
    pairs = [(a, b) for a in _states(dag, u) for b in _states(dag, v) if b == 0 or a == 2]
    return _Table([u, v], np.array(pairs, np.int8), np.zeros((len(pairs), 1), np.int32))
