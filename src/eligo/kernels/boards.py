"""A dag being executed under a policy: the random draws, and the ready tasks in the order of the policy.

A seed gives the same draws on every machine, compiled or not: they are 64-bit integers (splitmix64 [1]_), an exponential
draw only compares them (von Neumann's method [2]_: no logarithm, which libraries round differently), and no product of
two floats is added to a third, which some processors do in one rounding and some in two.

.. [1] Steele, Lea, Flood (2014): Fast splittable pseudorandom number generators. OOPSLA.
.. [2] von Neumann (1951): Various techniques used in connection with random digits. NBS Applied Math Series 12.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Admits = Callable[[int], bool] | None
    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]

MASK = 0xFFFFFFFFFFFFFFFF
STEP = 0x9E3779B97F4A7C15
MIX_ONE = 0xBF58476D1CE4E5B9
MIX_TWO = 0x94D049BB133111EB
UNIT = 1.0 / 9007199254740992.0  # 2 to the power of -53

RANK, FIRST, LAST = 0, 1, 2  # how ties between equal scores are broken; any other number: at random
WAITING, READY, OUT, DONE = 0, 1, 2, 3  # the states of a task


class Draws:
    """A stream of random numbers."""

    def __init__(self, state: int) -> None:
        self.state = state

    def draw(self) -> int:
        """64 random bits."""
        self.state = (self.state + STEP) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * MIX_ONE) & MASK
        z = ((z ^ (z >> 27)) * MIX_TWO) & MASK
        return z ^ (z >> 31)

    def fraction(self) -> float:
        """A random number from 0 up to 1, one of 2 ** 53."""
        return (self.draw() >> 11) * UNIT

    def below(self, n: int) -> int:
        """A random integer from 0 to n - 1, for n far below 2 ** 32."""
        return ((self.draw() >> 32) * n) >> 32

    def exponential(self) -> float:
        """An exponential number of mean 1: a first draw counts if the falling run from it has odd length."""
        total = 0.0
        while True:
            first = self.draw()
            last = first
            odd = True
            u = self.draw()
            while u < last:
                last = u
                odd = not odd
                u = self.draw()
            if odd:
                return total + (first >> 11) * UNIT
            total += 1.0

    def branch(self, number: int) -> int:
        """The state of another stream, one for each number; this stream does not advance."""
        other = Draws(self.state ^ (number * MIX_ONE & MASK))
        return other.draw()


class Heap:
    """A heap of some of the numbers 0..n-1, the largest key on top; among equal keys, the smaller tie, then number."""

    def __init__(self, n: int) -> None:
        self.size = 0
        self.capacity = n
        self.items = array("i", bytes(4 * n))
        self.place = array("i", [-1]) * n
        self.key = array("d", bytes(8 * n))
        self.tie = array("q", bytes(8 * n))

    def clear(self) -> None:
        """Remove all numbers."""
        for i in range(self.size):
            self.place[self.items[i]] = -1
        self.size = 0

    def top(self) -> int:
        """The first number, or -1."""
        return self.items[0] if self.size > 0 else -1

    def put(self, v: int, key: float, tie: int) -> None:
        """Add v, or change its key if it is in the heap."""
        i = self.place[v]
        if i < 0:
            i = self.size
            self.size += 1
        self.key[v] = key
        self.tie[v] = tie
        self.rise(v, i)
        self.sink(v, self.place[v])

    def remove(self, v: int) -> None:
        """Remove v, if it is in the heap."""
        i = self.place[v]
        if i < 0:
            return
        self.place[v] = -1
        self.size -= 1
        if i < self.size:
            w = self.items[self.size]
            self.rise(w, i)
            self.sink(w, self.place[w])

    def before(self, v: int, w: int) -> bool:
        """Whether v comes before w."""
        if self.key[v] != self.key[w]:
            return self.key[v] > self.key[w]
        if self.tie[v] != self.tie[w]:
            return self.tie[v] < self.tie[w]
        return v < w

    def rise(self, v: int, i: int) -> None:
        """Move v to place i or above."""
        while i > 0:
            w = self.items[(i - 1) >> 1]
            if self.before(w, v):
                break
            self.items[i] = w
            self.place[w] = i
            i = (i - 1) >> 1
        self.items[i] = v
        self.place[v] = i

    def sink(self, v: int, i: int) -> None:
        """Move v to place i or below."""
        while True:
            j = 2 * i + 1
            if j >= self.size:
                break
            if j + 1 < self.size and self.before(self.items[j + 1], self.items[j]):
                j += 1
            w = self.items[j]
            if self.before(v, w):
                break
            self.items[i] = w
            self.place[w] = i
            i = j
        self.items[i] = v
        self.place[v] = i


class Board:
    """A dag during its execution under a policy: the ready tasks by score, kept up to date move by move.

    A task's score is its static part plus sqrt(square * the sum over its children c in reach of phi[awaited(c)] times
    static(c) / static(v)), where awaited(c) counts the parents of c that are not handed out yet; c is in reach once all of
    these are ready. *lead*, larger for a class that goes first, is added if it has an entry for each task. Rows of children
    and *sources* are sorted by *rank*, the order in which tasks that become ready together arrive. *ties* orders equal
    scores: by rank, the first arrived, the last arrived, or at random. With FIRST and LAST, equal ranks arrive in random
    order.
    """

    def __init__(
        self,
        child_ptr: Ints,
        child: Ints,
        parent_ptr: Ints,
        parent: Ints,
        sources: Ints,
        score: Floats,
        phi: Floats,
        square: float,
        ties: int,
        rank: Ints,
        lead: Floats,
        both_ends: bool,
    ) -> None:
        n = rank.shape[0]
        self.child_ptr = child_ptr
        self.child = child
        self.parent_ptr = parent_ptr
        self.parent = parent
        self.sources = sources
        self.score = score
        self.phi = phi
        self.square = square
        self.ties = ties
        self.rank = rank
        self.lead = lead
        self.leading = lead.shape[0] > 0
        self.both_ends = both_ends
        self.n = n
        self.draws = Draws(0)
        self.best = Heap(n)
        self.worst = Heap(n)
        self.state = array("i", bytes(4 * n))
        self.missing = array("i", bytes(4 * n))
        self.awaited = array("i", bytes(4 * n))
        self.far = array("i", bytes(4 * n))  # the number of awaited parents that are not ready
        self.moved = array("i", bytes(4 * n))  # the ready tasks whose scores changed in one move
        self.moving = array("B", bytes(n))
        self.gain = array("d", bytes(8 * n))
        self.tie = array("q", bytes(8 * n))
        self.late = array("i", bytes(4 * n))  # whether a task is not for clients that get the lowest score
        self.worst_late = Heap(n)
        self.group = array("i", bytes(4 * n))
        self.opened = Heap(0)  # during a choice, tasks that wait only for tasks of the same client; made when needed
        self.taken = array("i")  # the number of missing parents of each task that this client gets
        self.arrived = 0
        self.done = 0

    def reset(self, seed: int) -> None:
        """Start again, with the sources ready."""
        count = self.empty(seed)
        self.arrive_some(0, count, count)

    def empty(self, seed: int) -> int:
        """Start again with nothing ready; returns the number of sources, which are in *group* for `arrive_some`."""
        self.draws.state = seed
        self.best.clear()
        self.worst.clear()
        self.worst_late.clear()
        self.arrived = 0
        self.done = 0
        for v in range(self.n):
            self.state[v] = WAITING
            self.missing[v] = self.parent_ptr[v + 1] - self.parent_ptr[v]
            self.awaited[v] = self.missing[v]
            self.far[v] = self.missing[v]
            self.gain[v] = 0.0
        for i in range(self.sources.shape[0]):
            self.group[i] = self.sources[i]
        count: int = self.sources.shape[0]
        self.shuffle(count)
        return count

    def take(self, v: int) -> None:
        """Hand out a task: a ready one, or one that is held for the client that has all its missing parents."""
        waiting = 1 if self.state[v] == WAITING else 0
        self.state[v] = OUT
        self.hide(v)
        self.turn(v, -waiting, -1)

    def choose(
        self, most: int, modest: bool, room: float, seconds: Floats, codes: memoryview, admits: Admits
    ) -> list[int]:
        """Take tasks for one client: the best of the ready tasks and of those that wait only for tasks it gets as well.

        It takes at most *most*, and after the first only tasks that fit in *room*, if *seconds* are given. *codes* are 0 for
        waiting tasks; tasks that the client does not *admit* are passed over. A *modest* client gets the worst tasks.
        """
        chosen: list[int] = []
        passed: list[int] = []
        opening = most > 1 and not modest
        if opening and self.opened.capacity < self.n:
            self.opened = Heap(self.n)
            self.taken = array("i", bytes(4 * self.n))
        try:
            while len(chosen) < most:
                v = self.first(modest, passed, admits)
                if opening:
                    v = self.sooner(v)
                if v < 0:
                    break
                if seconds.shape[0] > 0:
                    if len(chosen) > 0 and seconds[v] > room:
                        break
                    room -= seconds[v]
                self.take(v)
                chosen.append(v)
                if opening:
                    self.open_below(v, codes, admits)
        finally:
            for v in passed:
                self.place(v)
            if opening:
                self.close_below(chosen)
        return chosen

    def first(self, modest: bool, passed: list[int], admits: Admits) -> int:
        """The first ready task that a client admits, or -1; those before it are hidden and added to *passed*."""
        heap = self.worst if modest else self.best
        if admits is None:
            return heap.top()
        while heap.size > 0 and not admits(heap.top()):
            passed.append(heap.top())
            self.hide(heap.top())
        return heap.top()

    def sooner(self, v: int) -> int:
        """The best opened task, or the ready task v if that comes before it."""
        w = self.opened.top()
        if w < 0 or v < 0:
            return max(v, w)
        key = self.worth(v)
        if key != self.opened.key[w]:
            return v if key > self.opened.key[w] else w
        if self.rank[v] != self.rank[w]:
            return v if self.rank[v] < self.rank[w] else w
        return min(v, w)

    def open_below(self, v: int, codes: memoryview, admits: Admits) -> None:
        """Add task v to the client's tasks, and open children that now wait only for these."""
        self.opened.remove(v)
        for i in range(self.child_ptr[v], self.child_ptr[v + 1]):
            w = self.child[i]
            self.taken[w] += 1
            if self.taken[w] == self.missing[w] and codes[w] == 0 and (admits is None or admits(w)):
                self.opened.put(w, self.worth(w), self.rank[w])

    def close_below(self, chosen: list[int]) -> None:
        """Clear the opened tasks after a choice."""
        self.opened.clear()
        for v in chosen:
            for i in range(self.child_ptr[v], self.child_ptr[v + 1]):
                self.taken[self.child[i]] = 0

    def hide(self, v: int) -> None:
        """Pass over a ready task until it is placed again."""
        self.best.remove(v)
        if self.both_ends:
            self.worst.remove(v)
            self.worst_late.remove(v)

    def lose(self, v: int) -> None:
        """Note that a task that is out will not be done; it is not ready before it arrives."""
        self.state[v] = WAITING
        self.turn(v, 1, 1)

    def finish(self, v: int) -> int:
        """Finish a task that is out; returns the number of tasks that became ready, listed in *group* as they arrived."""
        self.state[v] = DONE
        self.done += 1
        count = 0
        for i in range(self.child_ptr[v], self.child_ptr[v + 1]):
            w = self.child[i]
            self.missing[w] -= 1
            if self.missing[w] == 0 and self.state[w] == WAITING:
                self.group[count] = w
                count += 1
        self.shuffle(count)
        self.arrive_some(0, count, count)
        return count

    def give_back(self, v: int) -> None:
        """Take back an unfinished or failed task: it is ready if its parents are executed."""
        if self.state[v] == OUT:
            self.lose(v)
        if self.missing[v] == 0:
            self.arrive(v)

    def execute(self, v: int) -> None:
        """Finish a task, including one that was given up meanwhile."""
        if self.state[v] != OUT:
            self.take(v)
        self.finish(v)

    def is_queue(self) -> bool:
        """Whether, of tasks of equal scores, the first to arrive comes first."""
        return self.ties == FIRST

    def is_done(self, v: int) -> bool:
        """Whether a task is executed."""
        return self.state[v] == DONE

    def arrive_some(self, begin: int, end: int, count: int) -> None:
        """Make tasks *begin* to *end* of the first *count* in *group* ready, in the order of their arrival."""
        for i in range(begin, end):
            self.arrive(self.group[count - 1 - i if self.ties == LAST else i])

    def shuffle(self, count: int) -> None:
        """Shuffle the tasks of equal rank in *group*, if the order of arrival counts."""
        if self.ties != FIRST and self.ties != LAST:
            return
        begin = 0
        for i in range(1, count):
            if self.rank[self.group[i]] != self.rank[self.group[begin]]:
                begin = i
            else:
                j = begin + self.draws.below(i - begin + 1)
                w = self.group[i]
                self.group[i] = self.group[j]
                self.group[j] = w

    def arrive(self, v: int) -> None:
        """Make one task ready."""
        self.turn(v, -1, 0)
        self.state[v] = READY
        self.arrived += 1
        if self.ties == RANK:
            self.tie[v] = self.rank[v]
        elif self.ties == FIRST:
            self.tie[v] = self.arrived
        elif self.ties == LAST:
            self.tie[v] = -self.arrived
        else:
            self.tie[v] = self.draws.draw() >> 2
        self.place(v)

    def worth(self, v: int) -> float:
        """The current score of a task."""
        key: float = self.score[v]
        if self.square > 0.0:
            key += math.sqrt(self.square * self.gain[v] / key)
        if self.leading:
            key += self.lead[v]
        return key

    def place(self, v: int) -> None:
        """Put a ready task into the heaps by its score."""
        key = self.worth(v)
        self.best.put(v, key, self.tie[v])
        if self.both_ends:
            if self.late[v]:
                self.worst_late.put(v, -key, -self.tie[v])
            else:
                self.worst.put(v, -key, -self.tie[v])

    def turn(self, v: int, far: int, awaited: int) -> None:
        """Change the numbers of parents of v's children that are not ready, and awaited; the scores of all parents follow."""
        if self.square == 0.0:
            return
        moved = 0  # each parent is placed once, however many of its children changed
        for i in range(self.child_ptr[v], self.child_ptr[v + 1]):
            w = self.child[i]
            change = -self.release(w)
            self.far[w] += far
            self.awaited[w] += awaited
            change += self.release(w)
            if change != 0.0:
                for j in range(self.parent_ptr[w], self.parent_ptr[w + 1]):
                    u = self.parent[j]
                    self.gain[u] = self.gain[u] + change
                    if self.state[u] == READY and self.moving[u] == 0:
                        self.moving[u] = 1
                        self.moved[moved] = u
                        moved += 1
        for i in range(moved):
            u = self.moved[i]
            self.moving[u] = 0
            self.place(u)

    def release(self, w: int) -> float:
        """The worth of a waiting task to its parents."""
        if self.far[w] > 0 or self.awaited[w] >= self.phi.shape[0]:
            return 0.0
        worth: float = self.phi[self.awaited[w]] * self.score[w]
        return worth
