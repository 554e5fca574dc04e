"""Canonical moves: schedules move by move, guided by the maxima they must attain.

A *move* executes exactly the tasks that some waiting task still misses, all of them eligible. Up to a profile that is nowhere
worse every schedule is a sequence of moves: between two rises of the profile nothing becomes eligible, so the steps that
complete one task of the next rise can come first. When the profile must equal a given maximal one, the next move is forced in
size and gain: as many steps as there are to the next rise, and as many tasks rendered as it is high.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import pairwise

import numpy as np

from eligo.dag import Dag
from eligo.deciding.work import Work
from eligo.theory.profiles import Profile

Waiting = dict[
    int, tuple[int, int]
]  # what is missed, as a bit mask -> how many miss just that, and which tasks those are

POSITION = 10  # units of work for each task where a position is looked at


@dataclass(frozen=True, slots=True)
class Position:
    """A state of play: bit masks of executed and eligible tasks, what the others miss, and the moves that led here."""

    executed: int
    ready: int
    rendered: int
    waiting: Waiting
    #: the last move and the position before it
    last: int = 0
    before: "Position | None" = None

    @classmethod
    def start(cls, dag: Dag) -> "Position":
        """Nothing executed."""
        ptr, parent, working = dag.parent_ptr.tolist(), dag.parent.tolist(), (dag.outdegree > 0).tolist()
        ready, waiting = 0, dict[int, tuple[int, int]]()
        for v in range(len(dag)):
            needs = sum(1 << u for u in parent[ptr[v] : ptr[v + 1]])
            if needs:
                count, opens = waiting.get(needs, (0, 0))
                waiting[needs] = count + 1, opens | working[v] << v
            else:
                ready |= working[v] << v
        return cls(0, ready, 0, waiting)

    def after(self, move: int) -> "Position":
        """The position once all tasks of the move are executed; what it touches becomes the newest."""
        rendered, ready = self.rendered, self.ready & ~move
        waiting = self.waiting.copy()
        for missed in [m for m in waiting if m & move]:
            count, opens = waiting.pop(missed)
            left = missed & ~move
            if left:
                more, others = waiting.pop(left, (0, 0))
                waiting[left] = more + count, others | opens
            else:
                rendered += count
                ready |= opens
        return Position(self.executed | move, ready, rendered, waiting, move, self)

    def playable(self, size: int = 0, gain: int = 0) -> Iterator[tuple[int, int]]:
        """The moves that can be made now, with how many tasks miss just that, the newest first; only of a size and gain.

        Of moves that touch nothing else, opening no task and sharing none with another, equal ones are interchangeable,
        and one of them stands for all.
        """
        blocked, waiting = ~self.ready, self.waiting.items()
        fitting = [m for m, (count, _) in waiting if count == gain] if gain else self.waiting
        moves = [m for m in fitting if not m & blocked and (not size or m.bit_count() == size)]
        shared = self._shared() if len(moves) > 1 else 0
        alike: set[tuple[int, int]] = set()
        for move in reversed(moves):
            count, opens = self.waiting[move]
            kind = move.bit_count(), count
            if opens or move & shared or kind not in alike:
                yield move, count
                if not opens and not move & shared:
                    alike.add(kind)

    def _shared(self) -> int:
        """The tasks that more than one group of waiting tasks misses."""
        once = twice = 0
        for missed in self.waiting:
            twice |= once & missed
            once |= missed
        return twice

    def order(self) -> list[int]:
        """All tasks executed so far, move by move."""
        moves = []
        at: Position | None = self
        while at is not None and at.last:
            moves.append(at.last)
            at = at.before
        return [v for move in reversed(moves) for v in members(move)]


def members(mask: int) -> Iterator[int]:
    """The numbers of the bits of a mask, ascending."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def forced_steps(target: Profile) -> list[tuple[int, int]]:
    """For each rise of a profile, how many steps lead to it and how high it is.

    >>> import numpy as np
    >>> forced_steps(np.array([0, 0, 2, 3]))
    [(2, 2), (1, 1)]
    """
    values = target.tolist()
    rises = [t for t in range(1, len(values)) if values[t] > values[t - 1]]
    return [(b - a, values[b] - values[b - 1]) for a, b in zip([0, *rises], rises, strict=False)]


@dataclass(frozen=True)
class Search:
    """An order that attains the target (`order`), or the proof that none does (`refuted`), or neither.

    `stuck` is a position that attains it as far as any that was seen.
    """

    order: list[int] | None
    refuted: bool = False
    stuck: Position | None = None


def guided(dag: Dag, target: Profile, longest_path: bool = False) -> list[int] | None:
    """Play forced moves, of several the one that became possible last; None where none has the forced size and gain.

    With *longest_path*, of several the one with the longest path below it.

    Waiting tasks are grouped by what they miss, told by the exclusive or of random numbers, and groups by size and count,
    so that the whole play takes linear time. A group is looked at before it is played, so no chance can mislead.

    >>> import numpy as np
    >>> guided(Dag.from_arrays(5, [0, 1, 2], [3, 3, 4]), np.array([0, 1, 1, 2]))
    [2, 0, 1]
    """
    play = _DeepGroups(dag) if longest_path else _Groups(dag)
    for size, gain in forced_steps(target):
        move = play.best(size, gain)
        if move is None:
            return None
        for u in move:
            play.execute(u)
    return play.order


class _Groups:
    """Waiting tasks in groups that miss the same parents; those whose missing parents are all eligible, by size and count."""

    def __init__(self, dag: Dag) -> None:
        self.order: list[int] = []
        ptr, rows, back, parent = (x.tolist() for x in (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent))
        self.children = [rows[a:b] for a, b in pairwise(ptr)]
        self.parents = [parent[a:b] for a, b in pairwise(back)]
        self.sign = np.random.default_rng(0).integers(1, 1 << 63, len(dag)).tolist()
        self.missing = [len(row) for row in self.parents]
        self.unready = list(self.missing)
        self.done = [False] * len(dag)
        self.key = [0] * len(dag)
        self.groups: dict[int, dict[int, None]] = {}
        self.playable: dict[tuple[int, int], dict[int, None]] = {}
        for v, row in enumerate(self.parents):
            for u in row:
                self.key[v] ^= self.sign[u]
            if row:
                self.groups.setdefault(self.key[v], {})[v] = None
        for v, row in enumerate(self.parents):
            if not row:
                self._ready(v)

    def best(self, size: int, gain: int) -> list[int] | None:
        """The missing parents of the newest playable group of that size and count."""
        key = next(reversed(self.playable.get((size, gain), {})), None)
        return None if key is None else self._missed(key)

    def _missed(self, key: int) -> list[int]:
        waiting = next(iter(self.groups[key]))
        return [u for u in self.parents[waiting] if not self.done[u]]

    def execute(self, u: int) -> None:
        self.order.append(u)
        self.done[u] = True
        for w in self.children[u]:
            self._leave(w)
            self.key[w] ^= self.sign[u]
            self.missing[w] -= 1
            if self.missing[w]:
                self._join(w)
            else:
                self._ready(w)

    def _ready(self, v: int) -> None:
        """Task v is eligible: its children have one parent less that is not."""
        for w in self.children[v]:
            self._leave(w)
            self.unready[w] -= 1
            self._join(w)

    def _leave(self, w: int) -> None:
        key = self.key[w]
        members = self.groups[key]
        self._unlist(key, w, len(members))
        del members[w]
        if members:
            self._list(key, next(iter(members)), len(members))
        else:
            del self.groups[key]

    def _join(self, w: int) -> None:
        key = self.key[w]
        members = self.groups.setdefault(key, {})
        if members:
            self._unlist(key, w, len(members))
        members[w] = None
        self._list(key, w, len(members))

    def _list(self, key: int, w: int, members: int) -> None:
        if not self.unready[w]:
            self.playable.setdefault((self.missing[w], members), {})[key] = None

    def _unlist(self, key: int, w: int, members: int) -> None:
        self.playable.get((self.missing[w], members), {}).pop(key, None)


class _DeepGroups(_Groups):
    """Of the playable groups of a size and count, that below which the longest path hangs, told by heaps.

    A group enters with the height and the first number of all the parents of one of its tasks, which those still missing
    cannot surpass; what they really have is looked up only when the group comes to the top.
    """

    def __init__(self, dag: Dag) -> None:
        self.height = dag.height.tolist()
        self.heaps: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
        self.ranks: dict[int, tuple[int, int]] = {}
        self.entered = 0
        super().__init__(dag)

    def best(self, size: int, gain: int) -> list[int] | None:
        """Those of the deepest group; the tasks themselves likewise, the deepest first."""
        heap, playable = self.heaps.get((size, gain), []), self.playable.get((size, gain), {})
        while heap:
            height, first, entered, key = heap[0]
            move = self._missed(key) if key in playable else None
            if move is None:
                heappop(heap)
            elif (height, first) != (found := self._rank(move)):
                heapreplace(heap, (*found, entered, key))
            else:
                return sorted(move, key=lambda u: -self.height[u])
        return None

    def _rank(self, tasks: list[int]) -> tuple[int, int]:
        return -max(self.height[u] for u in tasks), min(tasks)

    def _list(self, key: int, w: int, members: int) -> None:
        super()._list(key, w, members)
        if not self.unready[w]:
            heap = self.heaps.setdefault((self.missing[w], members), [])
            rank = self.ranks.get(w) or self.ranks.setdefault(w, self._rank(self.parents[w]))
            self.entered += 1
            heappush(heap, (*rank, self.entered, key))


def frontier(dag: Dag, target: Profile, width: int, work: Work | None = None) -> Search:
    """All positions that attain the target, rise by rise, at most *width* of them: finds an order or, untruncated, refutes.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> frontier(g3, np.array([0, 3, 4, 5, 6]), 10).refuted
    True
    """
    work = work or Work()
    layer = {0: Position.start(dag)}
    whole = True
    for size, gain in forced_steps(target):
        following: dict[int, Position] = {}
        for position in layer.values():
            for move, _ in position.playable(size, gain):
                if position.executed | move not in following:
                    work.spend(POSITION * len(dag))
                    if len(following) == width or work.over():
                        whole = False
                        break
                    following[position.executed | move] = position.after(move)
        if not following:
            return Search(None, whole, next(iter(layer.values())))
        layer = following
    return Search(next(iter(layer.values())).order())


@dataclass(frozen=True)
class AreaSearch:
    """The order of largest cumulative area that was found, and whether every other was excluded."""

    order: list[int] | None
    area: int
    proved: bool


def largest_area(dag: Dag, target: Profile, incumbent: int, width: int, work: Work | None = None) -> AreaSearch:
    """The largest area, step by step over positions, of which the *width* best after each step are kept.

    A position that cannot beat *incumbent*, even if the profile were the target from there on, is dropped; where nothing
    else was dropped, the result is proved. Returns no order where the incumbent was not beaten.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> largest_area(g3, np.array([0, 3, 4, 5, 6]), 0, 10).area
    17
    """
    work = work or Work()
    rest = (int(target.sum()) - target.cumsum()).tolist()  # what the target still adds after each step
    layers: list[dict[int, _Entry]] = [{} for _ in target]
    layers[0] = {0: (0, 0, Position.start(dag), 0)}
    whole = True
    for t, layer in enumerate(layers[:-1]):
        best = sorted(layer.values(), key=lambda entry: (-entry[0], -entry[1]))
        whole &= len(best) <= width
        layer.clear()
        for area, _, before, last in best[:width]:
            work.spend(POSITION * len(dag))
            if work.over():
                return AreaSearch(None, incumbent, False)
            position = before.after(last) if last else before
            for move, gain in minimal_moves(position):
                end = t + move.bit_count()
                reached = area + position.rendered * (end - t) + gain
                executed = position.executed | move
                known = layers[end].get(executed)
                if reached + rest[end] > incumbent and (known is None or known[0] < reached):
                    layers[end][executed] = reached, position.rendered + gain, position, move
    if not layers[-1]:
        return AreaSearch(None, incumbent, whole)
    area, _, before, last = next(iter(layers[-1].values()))
    return AreaSearch(before.after(last).order(), area, whole)


#: area so far, rendered so far, the position before and the last move: positions are made only where they are looked at
_Entry = tuple[int, int, Position, int]


def minimal_moves(position: Position) -> list[tuple[int, int]]:
    """The playable moves that have no smaller one inside, each with what it renders."""
    moves = sorted(position.playable(), key=lambda move: move[0].bit_count())
    minimal: list[tuple[int, int]] = []
    for move, count in moves:
        if not any(smaller & ~move == 0 for smaller, _ in minimal):
            minimal.append((move, count))
    return minimal
