"""The largest area of any order, and whether an order attains given maxima, as the checker computes them.

Series-parallel dags are computed directly; other dags by exhaustive searches over positions.

A *move* executes exactly the missing parents of some waiting task, all eligible. Up to a profile that is nowhere worse every
order is a sequence of moves: between two rises of the profile nothing becomes eligible, so the steps that complete one task
of the next rise can come first. Only moves with no smaller one inside are needed; others may be tried, as smaller ones lead
to the same positions with no smaller profile.

Tasks with equal parents and equal children are missed by the same waiting tasks, and eligible at the same time: a move has
all of them or none, so that they are one *unit*. An automorphism of the dag takes units to units.

A position is the set of executed units, a row of truth values; many are examined together. If tasks can change places in
pairs without changing the dag, one of two positions that differ by that stands for both. A search that would be too long
raises `OverflowError`: nothing is ever concluded from a part of the positions.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag

Numbers = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint8]
Profile = NDArray[np.int64]
Swaps = Sequence[Sequence[Sequence[str]]]  # pairs of names, for each way to exchange tasks

AT_ONCE = 1 << 24  # positions times groups times tasks, examined together: as many truth values may be needed
MOST_CELLS = 2_000_000_000  # positions times arcs and tasks, in all: about a minute


class Marks(NamedTuple):
    """Tasks, and for each set of them, by bits, the largest sum that can follow each step at which the set is executed."""

    tasks: Sequence[int]
    to_come: Profile


class _Positions(NamedTuple):
    """For each move: the number of the position before it, the position after it, and how many tasks it has and renders."""

    origin: Numbers
    after: Bits
    size: Numbers
    gain: Numbers


class _Sight(NamedTuple):
    """For each position and group of waiting tasks: the number of missing parents, and whether all of them are eligible."""

    rows: Flags
    missing: Numbers
    playable: Flags


class _Game:
    """A dag's nonsources in groups of equal parents, its nonsinks in units, and the groups that need each unit."""

    def __init__(self, dag: Dag, swaps: Swaps) -> None:
        self.place, self.weight, self.swaps = _align(*_units(dag), [_by_number(dag, swap) for swap in swaps])
        place = self.place
        groups: dict[tuple[int, ...], list[int]] = {}
        for v in np.flatnonzero(dag.indegree).tolist():
            parents = np.unique(place[dag.parents_of(v)]).tolist()
            groups.setdefault(tuple(parents), []).append(v)
        self.k, self.budget = len(self.weight), MOST_CELLS
        self.count = np.array([len(members) for members in groups.values()], np.int64)
        self.span = np.array([len(parents) for parents in groups], np.int64)
        self.needs = np.array([u for parents in groups for u in parents], np.int64)
        self.begin = np.cumsum(self.span) - self.span
        self.size = self._over_groups(np.ones((1, self.k), np.bool_))[0]
        group = np.repeat(np.arange(len(groups)), self.span)
        self.users = group[np.argsort(self.needs, kind="stable")]
        self.user_begin = np.searchsorted(np.sort(self.needs), np.arange(self.k))
        homes = [(place[v], i) for i, members in enumerate(groups.values()) for v in members if place[v] >= 0]
        self.inner, self.home = np.array(homes, np.int64).reshape(-1, 2).T
        self.opens = np.bincount(self.home, minlength=len(groups)) > 0

    def start(self) -> Bits:
        """The one position with nothing executed."""
        return np.packbits(np.zeros((1, self.k), np.bool_), axis=1)

    def sights(self, positions: Bits) -> Iterator[tuple[slice, _Sight]]:
        """The positions, some at a time, with the state of all groups in them."""
        many = max(1, AT_ONCE // (len(self.size) * self.k))
        for first in range(0, len(positions), many):
            chosen = slice(first, first + many)
            rows = np.unpackbits(positions[chosen], axis=1, count=self.k).view(np.bool_)
            missing = self.size - self._over_groups(rows)
            open_ = np.ones_like(rows)
            open_[:, self.inner] = missing[:, self.home] == 0
            yield chosen, _Sight(rows, missing, (missing > 0) & (self._over_groups(open_) == self.size))

    def moves(self, sight: _Sight, wanted: Flags) -> _Positions:
        """The playable moves of these groups; of equal moves from one position that affect no other group, only one."""
        origin, group = np.nonzero(sight.playable & wanted)
        rows, spans = sight.rows[origin], self.span[group]
        within = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
        rows[np.repeat(np.arange(len(origin)), spans), self.needs[np.repeat(self.begin[group], spans) + within]] = True
        after = np.packbits(rows, axis=1)
        keys = np.hstack([origin.astype("<u4").reshape(-1, 1).view(np.uint8), after])
        first, which = _distinct(keys)
        gain, groups = np.bincount(which, self.count[group]).astype(np.int64), np.bincount(which)
        size = sight.missing[origin, group][first]
        opening = np.bincount(which, self.opens[group]) > 0
        alone = ~opening & (self._touches(sight)[origin, group][first] == groups * size)
        origin, after = origin[first], after[first]
        chosen = ~alone
        chosen[_first_alike(np.flatnonzero(alone), origin, size, gain)] = True
        return _Positions(origin[chosen], self._sort(after[chosen]), size[chosen], gain[chosen])

    def _sort(self, positions: Bits) -> Bits:
        """Each position or an image of it by swaps: of the first two tasks that differ in a swap, the first is executed."""
        rows, changed = np.unpackbits(positions, axis=1, count=self.k), len(positions) > 0
        while changed:
            changed = False
            for one, other in (swap.T for swap in self.swaps if len(swap)):
                ahead = rows[:, one].astype(np.int8) - rows[:, other]
                first = ahead[np.arange(len(rows)), (ahead != 0).argmax(axis=1)]
                behind = np.flatnonzero(first < 0)
                changed = changed or len(behind) > 0
                rows[np.ix_(behind, np.append(one, other))] = rows[np.ix_(behind, np.append(other, one))]
        return np.packbits(rows, axis=1)

    def marked(self, positions: Bits, tasks: Sequence[int]) -> Numbers:
        """The set of these tasks that is executed in each position, as bits."""
        rows = np.unpackbits(positions, axis=1, count=self.k)[:, self.place[list(tasks)]]
        return rows.astype(np.int64) @ (1 << np.arange(len(tasks)))

    def spend(self, positions: int) -> None:
        """Spend budget on positions. Raises `OverflowError` if there are too many."""
        self.budget -= positions * (len(self.needs) + self.k)
        if self.budget < 0:
            raise OverflowError("too many positions to try")

    def _over_groups(self, rows: NDArray[Any]) -> Numbers:
        """For each group, the sum over the tasks of the units that it needs."""
        return np.add.reduceat(rows[:, self.needs] * self.weight[self.needs], self.begin, axis=1, dtype=np.int32)

    def _touches(self, sight: _Sight) -> Numbers:
        """For each group, how often waiting groups miss a task that it misses: its own size if no other group does."""
        missed = np.add.reduceat((sight.missing > 0)[:, self.users], self.user_begin, axis=1, dtype=np.int32)
        return self._over_groups(np.where(sight.rows, 0, missed))


def _units(dag: Dag) -> tuple[Numbers, Numbers]:
    """The unit of each nonsink, -1 for a sink, and the number of tasks of each unit."""
    units: dict[tuple[tuple[int, ...], ...], int] = {}
    place = np.full(len(dag), -1, np.int64)
    for v in np.flatnonzero(dag.outdegree).tolist():
        around = tuple(tuple(sorted(row.tolist())) for row in (dag.parents_of(v), dag.children_of(v)))
        place[v] = units.setdefault(around, len(units))
    return place, np.bincount(place[place >= 0], minlength=len(units)).astype(np.int32)


def _by_number(dag: Dag, swap: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    return [(dag.index[a], dag.index[b]) for a, b in swap]


def _align(
    place: Numbers, weight: Numbers, swaps: Sequence[Sequence[tuple[int, int]]]
) -> tuple[Numbers, Numbers, list[Numbers]]:
    """The units renumbered, so that branches that are exchanged have the same sequence, with their pairs.

    Otherwise sorting by swaps would not unite many of the positions that differ by swaps alone.
    """
    both = [place[np.array(swap, np.int64).reshape(-1, 2)] for swap in swaps]
    number, pairs = dict[int, int](), [swap[(swap >= 0).all(axis=1)].tolist() for swap in both]
    for swap in pairs:
        turned = [(b, a) if b in number and a not in number else (a, b) for a, b in swap]
        turned.sort(key=lambda pair: number.get(pair[0], len(weight)))
        for unit in (*(a for a, _ in turned), *(b for _, b in turned)):
            number.setdefault(unit, len(number))
    for unit in range(len(weight)):
        number.setdefault(unit, len(number))
    new = np.array([number[unit] for unit in range(len(weight))] + [-1], np.int64)  # the last is that of sinks
    exchanged = [{(min(a, b), max(a, b)) for a, b in new[swap].tolist() if a != b} for swap in pairs if swap]
    return new[place], weight[np.argsort(new[:-1])], [np.array(sorted(swap)) for swap in exchanged if swap]


def _distinct(rows: Bits) -> tuple[Numbers, Numbers]:
    """The first place of each distinct row, and the number of the distinct row that each row equals."""
    _, first, which = np.unique(
        np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    return first, which


def _first_alike(among: Numbers, *keys: Numbers) -> Numbers:
    """The first of these for each combination of keys."""
    return among[np.unique(np.stack([key[among] for key in keys]), axis=1, return_index=True)[1]]


def attains_maxima(dag: Dag, maxima: Profile, swaps: Swaps = ()) -> bool:
    """Whether some order's cumulative profile equals the maxima, by all positions that attain them from rise to rise.

    The next move has as many steps as there are to the next rise, and renders as many tasks as the rise is high: if there
    were a smaller one inside, or it rendered more, the maxima would not be the largest.
    """
    game = _Game(dag, swaps)
    layer, rises = game.start(), np.flatnonzero(np.diff(maxima)) + 1
    for before, t in pairwise([0, *rises.tolist()]):
        reached = [layer[:0]]
        for _, sight in game.sights(layer):
            moves = game.moves(sight, sight.missing == t - before)
            reached.append(moves.after[moves.gain == maxima[t] - maxima[before]])
            game.spend(len(reached[-1]))
        layer = np.concatenate(reached)
        layer = layer[_distinct(layer)[0]]
    return len(layer) > 0


def largest_area(dag: Dag, maxima: Profile, incumbent: int, swaps: Swaps = (), marks: Marks | None = None) -> int:
    """The largest sum of a cumulative profile if it is above the incumbent, else the incumbent.

    A position is dropped if the maxima from there on, or the bound by marked tasks, do not lead above the incumbent.
    """
    game = _Game(dag, swaps)
    most = int(maxima.sum()) - np.cumsum(maxima)  # after each step
    tasks, most_to_come = marks or Marks((), most[None])
    layers: list[list[tuple[Bits, Numbers]]] = [[] for _ in maxima]
    layers[0].append((game.start(), np.zeros(1, np.int64)))
    for t in range(len(maxima) - 1):
        positions, areas = _best(layers[t])
        layers[t] = []
        for chosen, sight in game.sights(positions):
            area, rendered = areas[chosen], (sight.missing == 0) @ game.count
            end = np.minimum(t + sight.missing, len(maxima) - 1)
            ceiling = area[:, None] + rendered[:, None] * (sight.missing - 1) + (maxima + most)[end]
            moves = game.moves(sight, ceiling > incumbent)
            reached = area[moves.origin] + rendered[moves.origin] * moves.size + moves.gain
            to_come = most_to_come[game.marked(moves.after, tasks), t + moves.size]
            end = np.where(reached + to_come > incumbent, t + moves.size, -1)
            game.spend(int(np.count_nonzero(end >= 0)))
            for step in np.unique(end[end >= 0]).tolist():
                layers[step].append((moves.after[end == step], reached[end == step]))
    return max((int(areas.max()) for _, areas in layers[-1]), default=incumbent)


def _best(reached: list[tuple[Bits, Numbers]]) -> tuple[Bits, Numbers]:
    """Each position once, with its largest area."""
    if not reached:
        return np.zeros((0, 1), np.uint8), np.zeros(0, np.int64)
    positions, areas = (np.concatenate(part) for part in zip(*reached, strict=True))
    falling = np.argsort(-areas, kind="stable")
    first = falling[_distinct(positions[falling])[0]]
    return positions[first], areas[first]


# Series-parallel dags


# Tasks with equal parents enter one node together, tasks with equal children leave one; a task leads from the node of its
# parents to the node of its children. Two ways beside each other become one; a node with one way in and one way out goes.
String = tuple[int, int, int]  # tasks rendered, tasks executed, and the sum of the profile meanwhile
Ways = dict[int, list[String]]


def series_parallel_area(dag: Dag) -> int | None:
    """The largest sum of a cumulative profile of a dag without shortcuts; None if it is not series-parallel."""
    nodes = _nodes(dag)
    if nodes is None:
        return None
    begins, ends, blocks = nodes
    out: list[Ways] = [{} for _ in range(len(blocks) + 2)]
    into: list[Ways] = [{} for _ in range(len(blocks) + 2)]
    for tail, head in zip(begins, ends, strict=True):
        out[tail][head] = into[head][tail] = []
    ready = [node for node in range(len(blocks)) if len(into[node]) == len(out[node]) == 1]
    passed = 0
    while ready:
        node, passed = ready.pop(), passed + 1
        (tail, before), (head, after) = into[node].popitem(), out[node].popitem()
        del out[tail][node], into[head][node]
        strings = _falling([*before, blocks[node], *after])
        if head in out[tail]:
            strings = sorted(strings + out[tail][head], key=lambda s: Fraction(s[0], s[1]), reverse=True)
            ready += [
                end
                for end, in_, out_ in ((tail, into[tail], out[tail]), (head, into[head], out[head]))
                if len(in_) == len(out_) == 1
            ]
        out[tail][head] = into[head][tail] = strings
    if passed < len(blocks):
        return None
    return reduce(_join, next(iter(out[-2].values()), []), (0, 0, 0))[2]


def _nodes(dag: Dag) -> tuple[list[int], list[int], list[String]] | None:
    """The nodes that each task leads from and to, and the string of each node; None if a block is not complete."""
    kids = [tuple(dag.child[a:b].tolist()) for a, b in zip(dag.child_ptr, dag.child_ptr[1:], strict=False)]
    folk = [tuple(dag.parent[a:b].tolist()) for a, b in zip(dag.parent_ptr, dag.parent_ptr[1:], strict=False)]
    number = {children: i for i, children in enumerate(dict.fromkeys(c for c in kids if c))}
    if any(folk[v] != folk[children[0]] for children in number for v in children):
        return None
    ends = [number.get(children, len(number) + 1) for children in kids]
    begins = [ends[parents[0]] if parents else len(number) for parents in folk]
    return begins, ends, [(len(children), len(folk[children[0]]), len(children)) for children in number]


def _join(one: String, other: String) -> String:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2] + one[0] * other[1]


def _falling(strings: list[String]) -> list[String]:
    """The strings with neighbours joined until the tasks rendered per task executed fall from string to string."""
    falling: list[String] = []
    for string in strings:
        grown = string
        while falling and falling[-1][0] * grown[1] <= grown[0] * falling[-1][1]:
            grown = _join(falling.pop(), grown)
        falling.append(grown)
    return falling
