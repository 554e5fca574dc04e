"""What a proof by modules rests on, recomputed: exact maxima by elimination, swaps arc by arc, searches over moves.

Everything here is about one dag without shortcuts whose first k tasks are its nonsinks.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag

Profile = NDArray[np.int64]
NEVER = -(1 << 30)
MOST_POSITIONS = 100_000


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


class _Table:
    """Rows of states (0 not eligible, 1 eligible, 2 executed) of some tasks, and each row's best values for T = 0, 1, ..."""

    def __init__(self, tasks: list[int], states: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        self.tasks, self.states, self.values = tasks, states, values

    def times(self, other: "_Table", ranks: Mapping[int, tuple[int, int]]) -> "_Table":
        """Every two rows that agree on common tasks, their values convolved; sets that may be sorted are kept sorted."""
        common = [v for v in self.tasks if v in other.tasks]
        fresh = [v for v in other.tasks if v not in self.tasks]
        mine, theirs = (
            t.states[:, [t.tasks.index(v) for v in common]] @ 3 ** np.arange(len(common)) for t in (self, other)
        )
        pairs = (
            [np.flatnonzero(theirs == code) for code in mine.tolist()] if len(mine) < 64 else _matching(mine, theirs)
        )
        left = np.repeat(np.arange(len(mine)), [len(p) for p in pairs])
        right = np.concatenate([np.empty(0, np.int64), *pairs]).astype(np.int64)
        if len(common) + len(fresh) > 39 or len(left) > 3_000_000:
            raise OverflowError("the tables of the proof are too large to check")
        new = other.states[:, [other.tasks.index(v) for v in fresh]][right]
        tasks, states = self.tasks + fresh, np.hstack([self.states[left], new])
        ranked = sorted((*ranks[v], c) for c, v in enumerate(tasks) if v in ranks)
        keep = np.ones(len(left), np.bool_)
        for (one, _, a), (two, _, b) in pairwise(ranked):
            keep &= (one != two) | (states[:, a] >= states[:, b])
        return _Table(tasks, states[keep], _convolved(self.values[left[keep]], other.values[right[keep]]))

    def without(self, v: int) -> "_Table":
        """The best over the states of one task."""
        column = self.tasks.index(v)
        states = np.delete(self.states, column, axis=1)
        codes = states @ 3 ** np.arange(states.shape[1]) if states.shape[1] else np.zeros(len(states), np.int64)
        kept, group = np.unique(codes, return_inverse=True)
        values = np.full((len(kept), self.values.shape[1]), NEVER)
        for state in range(3):
            rows = np.flatnonzero(self.states[:, column] == state)
            values[group[rows]] = np.maximum(values[group[rows]], self.values[rows])
        first = np.zeros(len(kept), np.int64)
        first[group] = np.arange(len(group))
        return _Table([t for t in self.tasks if t != v], states[first], values)


def _matching(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    order = np.argsort(theirs, kind="stable")
    begin, end = (np.searchsorted(theirs[order], mine, side) for side in ("left", "right"))
    return [order[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]


def _convolved(one: NDArray[np.int64], two: NDArray[np.int64]) -> NDArray[np.int64]:
    short, long = sorted((one, two), key=lambda values: values.shape[1])
    best = np.full((len(one), one.shape[1] + two.shape[1] - 1), NEVER)
    for i in range(short.shape[1]):
        window = best[:, i : i + long.shape[1]]
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
    total = _Table([], np.zeros((1, 0), np.int64), np.zeros((1, 1), np.int64))
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
    result: Profile = total.values[0]
    return result


def _states(dag: Dag, v: int) -> list[int]:
    return list(range(int(dag.indegree[v] == 0), 3 - int(dag.outdegree[v] == 0)))


def _own(dag: Dag, v: int) -> _Table:
    """A nonsource counts once eligible; a nonsink that is executed takes a step."""
    states = _states(dag, v)
    values = np.full((len(states), 1 + int(dag.outdegree[v] > 0)), NEVER)
    for row, state in enumerate(states):
        values[row, int(state == 2)] = int(state > 0 and dag.indegree[v] > 0)
    return _Table([v], np.array(states).reshape(-1, 1), values)


def _arc(dag: Dag, u: int, v: int) -> _Table:
    pairs = [(a, b) for a in _states(dag, u) for b in _states(dag, v) if b == 0 or a == 2]
    return _Table([u, v], np.array(pairs), np.zeros((len(pairs), 1), np.int64))


class _Play:
    """A position: which tasks are executed and eligible (bit masks), what is rendered, and what groups of others miss."""

    def __init__(self, executed: int, ready: int, rendered: int, groups: dict[int, tuple[int, int]]) -> None:
        self.executed, self.ready, self.rendered, self.groups = executed, ready, rendered, groups

    @classmethod
    def begin(cls, dag: Dag) -> "_Play":
        groups: dict[int, tuple[int, int]] = {}
        working = sum(1 << v for v in range(len(dag)) if dag.outdegree[v])
        for v in range(len(dag)):
            needs = sum(1 << u for u in dag.parent[dag.parent_ptr[v] : dag.parent_ptr[v + 1]].tolist())
            count, opens = groups.get(needs, (0, 0))
            groups[needs] = count + 1, opens | 1 << v & working
        return cls(0, groups.pop(0, (0, 0))[1], 0, groups)

    def moves(self) -> Iterator[tuple[int, int]]:
        """What some group misses, all eligible, with nothing smaller inside; of equal ones that touch nothing else, one."""
        once = twice = 0
        for group in self.groups:
            once, twice = once | group, twice | (once & group)
        seen: set[tuple[int, int]] = set()
        smaller: list[int] = []
        for move in sorted((g for g in self.groups if not g & ~self.ready), key=lambda g: (g.bit_count(), g)):
            count, opens = self.groups[move]
            apart = not opens and not move & twice
            if (apart and (move.bit_count(), count) in seen) or any(not s & ~move for s in smaller):
                continue
            seen |= {(move.bit_count(), count)} if apart else set()
            smaller.append(move)
            yield move, count

    def after(self, move: int) -> "_Play":
        ready, rendered, groups = self.ready & ~move, self.rendered, dict[int, tuple[int, int]]()
        for group, (count, opens) in self.groups.items():
            left = group & ~move
            if left:
                known, others = groups.get(left, (0, 0))
                groups[left] = known + count, others | opens
            else:
                ready, rendered = ready | opens, rendered + count
        return _Play(self.executed | move, ready, rendered, groups)


def largest_area(dag: Dag, maxima: Profile, incumbent: int) -> int | None:
    """The largest sum of a cumulative profile above the incumbent, else the incumbent; None where there is too much to try.

    Up to a profile that is nowhere worse every schedule is a sequence of moves.
    """
    rest = (int(maxima.sum()) - np.cumsum(maxima)).tolist()
    layers: list[dict[int, tuple[int, _Play]]] = [{} for _ in maxima]
    layers[0][0] = 0, _Play.begin(dag)
    seen = 0
    for t in range(len(maxima) - 1):
        for area, play in layers[t].values():
            seen += 1
            if seen > MOST_POSITIONS:
                return None
            for move, gain in play.moves():
                end = t + move.bit_count()
                reached, key = area + play.rendered * (end - t) + gain, play.executed | move
                known = layers[end].get(key)
                if reached + rest[end] > incumbent and (known is None or known[0] < reached):
                    layers[end][key] = reached, play.after(move)
        layers[t] = {}
    return max((area for area, _ in layers[-1].values()), default=incumbent)
