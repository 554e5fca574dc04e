"""Play by forced moves: an order of a given profile, in linear time, where the first choices lead to one."""

from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from random import Random

from eligo.dag import Dag
from eligo.deciding.moves import forced_steps
from eligo.theory.profiles import Profile


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
