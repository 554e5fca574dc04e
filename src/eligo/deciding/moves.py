"""Canonical moves: schedules move by move, guided by the maxima they must attain.

A *move* executes exactly the tasks that some waiting task still misses, all of them eligible. Up to a profile that is nowhere
worse every schedule is a sequence of moves: between two rises of the profile nothing becomes eligible, so the steps that
complete one task of the next rise can come first. If the profile must equal a given maximal one, the next move is forced in
size and gain: as many steps as there are to the next rise, and as many tasks rendered as it is high.

`guided_order` plays forced moves alone: it finds an order of a given profile in linear time if its first choices lead to one.

Of several moves with the forced size and gain, any may be made: the one with the longest remaining path, so that long chains
begin early, or the one that became possible last, so that started branches are finished. `preferred_order` gives the order
that a user prefers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from random import Random

import numpy as np

from eligo.dag import Dag
from eligo.deciding.effort import FIRST_WIDTH, MOST_CHECKED, MOST_PREFERRED, WIDER
from eligo.deciding.positions import NONE_MARKED, Marked, Pairs, Play
from eligo.deciding.work import Work, cumulative
from eligo.errors import InputError
from eligo.rows import Ints
from eligo.theory.profiles import Profile

PREFERENCES = ("path", "finish")


def forced_steps(target: Profile) -> list[tuple[int, int]]:
    """For each rise of a profile, the number of steps that lead to it, and its height.

    >>> import numpy as np
    >>> forced_steps(np.array([0, 0, 2, 3]))
    [(2, 2), (1, 1)]
    """
    values = target.tolist()
    rises = [t for t in range(1, len(values)) if values[t] > values[t - 1]]
    return [(b - a, values[b] - values[b - 1]) for a, b in zip([0, *rises], rises, strict=False)]


@dataclass(frozen=True)
class Search:
    """The result of a search: an order that attains the target, or that none does (`refuted`), or neither.

    `stuck` holds the tasks executed in a position that attained the target for as many steps as any other.
    """

    order: Ints | None
    refuted: bool = False
    stuck: Ints | None = None


def frontier(dag: Dag, target: Profile, width: int, work: Work | None = None, swaps: Sequence[Pairs] = ()) -> Search:
    """Search positions that attain the target, rise by rise, at most *width* at a time; if none is omitted, it can refute.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> frontier(g3, np.array([0, 3, 4, 5, 6]), 10).refuted
    True
    """
    work = work or Work()
    play, layer, complete = Play(dag, swaps), np.zeros(1, np.int32), True
    for forced in forced_steps(target):
        before = len(play)
        complete &= play.expand(layer, work, width=width, forced=forced)
        if len(play) == before:
            return Search(None, complete and checkable(play), play.executed(int(layer[0])))
        layer = np.arange(before, len(play), dtype=np.int32)
    return Search(play.order(int(layer[0])))


@dataclass(frozen=True)
class AreaSearch:
    """The order of largest cumulative area found by a search, and whether every larger area is excluded."""

    order: Ints | None
    area: int
    proved: bool


def largest_area(  # noqa: PLR0913, PLR0917
    dag: Dag,
    target: Profile,
    incumbent: int,
    width: int,
    work: Work | None = None,
    swaps: Sequence[Pairs] = (),
    marked: Marked = NONE_MARKED,
) -> AreaSearch:
    """Search for the largest area, step by step over positions, of which the *width* best after each step are kept.

    A position is dropped if it cannot beat *incumbent*, even if the profile equals the target from there on, or attains the
    bound by marked tasks. If no other position was dropped, the result is proved. Returns no order if the incumbent was not
    beaten.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> largest_area(g3, np.array([0, 3, 4, 5, 6]), 0, 10).area
    17
    """
    work = work or Work()
    play, complete = Play(dag, swaps, target, marked), True
    for t in range(len(target) - 1):
        layer = play.after(t)
        complete &= len(layer) <= width
        complete &= play.expand(layer[:width], work, beat=incumbent)
    final, complete = play.after(len(target) - 1), complete and checkable(play)
    return (
        AreaSearch(play.order(final[0]), play.area(final[0]), complete)
        if len(final)
        else AreaSearch(None, incumbent, complete)
    )


def checkable(play: Play) -> bool:
    """Whether the checker, which examines all these positions again, will need only reasonable time."""
    return len(play) * play.breadth <= MOST_CHECKED


def widening(work: Work) -> Iterator[int]:
    """Searches of increasing width, as long as the remaining budget suffices for twice the last width.

    >>> work = Work(1000)
    >>> [(width, work.spend(width))[0] for width in widening(work)]
    [30, 300, 600]
    """
    width, more = FIRST_WIDTH, WIDER
    while more > 1 and not work.over():
        spent = work.spent
        yield width
        more = int(min(WIDER, work.remaining // max(1, work.spent - spent)))
        width *= more


# Play by forced moves


def guided_order(dag: Dag, target: Profile, longest_path: bool = False) -> list[int] | None:
    """An order by forced moves, of several the newest; None if at some rise no move has the forced size and gain.

    With *longest_path*, of several the one with the longest path below it.

    Waiting tasks are grouped by what they miss, identified by the exclusive or of random numbers, and groups by size and
    count, so that the whole play takes linear time. A group is checked before it is played, so a collision does no harm.

    >>> import numpy as np
    >>> guided_order(Dag.from_arrays(5, [0, 1, 2], [3, 3, 4]), np.array([0, 1, 1, 2]))
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
    """Waiting tasks grouped by the parents they miss; groups whose missing parents are all eligible, by size and count."""

    def __init__(self, dag: Dag) -> None:
        self.order: list[int] = []
        ptr, rows, back, parent = (x.tolist() for x in (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent))
        self.children = [rows[a:b] for a, b in pairwise(ptr)]
        self.parents = [parent[a:b] for a, b in pairwise(back)]
        draw = Random(0).getrandbits  # noqa: S311 - no secret
        self.sign = [draw(63) for _ in range(len(dag))]
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
        """The missing parents of the newest playable group of this size and count."""
        key = next(reversed(self.playable.get((size, gain), {})), None)
        return None if key is None else self._missing_parents(key)

    def _missing_parents(self, key: int) -> list[int]:
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
        """Note that task v is eligible: each of its children has one parent less that is not."""
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
    """The same groups, with heaps that give, of each size and count, the playable group with the longest path below.

    A group enters a heap with the height and the first number of all the parents of one of its tasks, which those still
    missing cannot surpass; the values of these are computed only when the group comes to the top.
    """

    def __init__(self, dag: Dag) -> None:
        self.height = dag.height.tolist()
        self.heaps: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
        self.ranks: dict[int, tuple[int, int]] = {}
        self.entered = 0
        super().__init__(dag)

    def best(self, size: int, gain: int) -> list[int] | None:
        """The missing parents of the group with the longest path below it, those with the longest paths first."""
        heap, playable = self.heaps.get((size, gain), []), self.playable.get((size, gain), {})
        while heap:
            height, first, entered, key = heap[0]
            move = self._missing_parents(key) if key in playable else None
            if move is None:
                heappop(heap)
            elif (height, first) != (rank := self._rank(move)):
                heapreplace(heap, (*rank, entered, key))
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


def preferred_order(dag: Dag, nonsinks: Ints, preference: str) -> Ints:
    """The nonsinks in another order of the same profile, or in this one if play finds none.

    >>> two = Dag.from_arcs([("a", "x"), ("b", "y"), ("y", "z")], tasks=["a", "b", "x", "y", "z"])
    >>> two.named(preferred_order(two, two.indices(["a", "b", "y"]), "path"))
    ('b', 'a', 'y')
    >>> two.named(preferred_order(two, two.indices(["a", "b", "y"]), "finish"))
    ('b', 'y', 'a')
    """
    if preference not in PREFERENCES:
        raise InputError(f"unknown preference {preference!r} (choose from {', '.join(PREFERENCES)})")
    if not len(nonsinks) or len(dag) > MOST_PREFERRED:
        return nonsinks
    order = guided_order(dag, cumulative(dag, nonsinks), longest_path=preference == "path")
    return nonsinks if order is None or len(order) < len(nonsinks) else np.array(order, np.int32)
