"""Games on a dag: the random draws, the ready tasks in the order of a policy, the pebble game and the batched game.

A seed gives the same game on every machine, compiled or not: draws are 64-bit integers (splitmix64 [1]_), an exponential
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
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    Floats = NDArray[np.float64]

MASK = 0xFFFFFFFFFFFFFFFF
STEP = 0x9E3779B97F4A7C15
MIX_ONE = 0xBF58476D1CE4E5B9
MIX_TWO = 0x94D049BB133111EB
UNIT = 1.0 / 9007199254740992.0  # 2 to the power of -53

RANK, FIRST, LAST, RANDOM = 0, 1, 2, 3  # how equal scores are told apart
WAITING, READY, OUT, DONE = 0, 1, 2, 3  # what a task is


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
        """A number from 0 up to 1, one of 2 ** 53."""
        return (self.draw() >> 11) * UNIT

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, for n far below 2 ** 32."""
        return ((self.draw() >> 32) * n) >> 32

    def exponential(self) -> float:
        """An exponential number of mean 1: a first draw counts where the run that falls from it has odd length."""
        whole = 0.0
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
                return whole + (first >> 11) * UNIT
            whole += 1.0

    def branch(self, number: int) -> int:
        """The state of another stream, one for each number; this one does not move."""
        other = Draws(self.state ^ (number * MIX_ONE & MASK))
        return other.draw()


class Heap:
    """Numbers 0..n-1, some of them in, the one of the largest key on top; equal keys by the smaller tie, then number."""

    def __init__(self, n: int) -> None:
        self.size = 0
        self.items = array("i", bytes(4 * n))
        self.place = array("i", [-1]) * n
        self.key = array("d", bytes(8 * n))
        self.tie = array("q", bytes(8 * n))

    def clear(self) -> None:
        """Take all out."""
        for i in range(self.size):
            self.place[self.items[i]] = -1
        self.size = 0

    def top(self) -> int:
        """The first, or -1."""
        return self.items[0] if self.size > 0 else -1

    def put(self, v: int, key: float, tie: int) -> None:
        """Put v in, or where it is in, give it another key."""
        i = self.place[v]
        if i < 0:
            i = self.size
            self.size += 1
        self.key[v] = key
        self.tie[v] = tie
        self.rise(v, i)
        self.sink(v, self.place[v])

    def remove(self, v: int) -> None:
        """Take v out, if it is in."""
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
        """Whether v goes before w."""
        if self.key[v] != self.key[w]:
            return self.key[v] > self.key[w]
        if self.tie[v] != self.tie[w]:
            return self.tie[v] < self.tie[w]
        return v < w

    def rise(self, v: int, i: int) -> None:
        """Put v at place i or above."""
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
        """Put v at place i or below."""
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
    """A dag being executed under a policy: which ready task goes next, kept up to date move by move.

    A task's score is its static part plus sqrt(square * the sum over its children c in reach of phi[awaited(c)] times
    static(c) / static(v)), where awaited(c) counts the parents of c that nobody has taken yet; c is in reach once all of
    these are ready. Rows of children and *sources* are sorted by *rank*, the
    order in which tasks that become ready together arrive; *ties* tells equal scores apart: by rank, the first arrived, the
    last arrived, or at random. With FIRST and LAST, equal ranks arrive in random order.
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
        self.both_ends = both_ends
        self.n = n
        self.draws = Draws(0)
        self.best = Heap(n)
        self.worst = Heap(n)
        self.state = array("i", bytes(4 * n))
        self.missing = array("i", bytes(4 * n))
        self.awaited = array("i", bytes(4 * n))
        self.far = array("i", bytes(4 * n))  # of the awaited parents, how many are not ready
        self.gain = array("d", bytes(8 * n))
        self.tie = array("q", bytes(8 * n))
        self.late = array("i", bytes(4 * n))  # whether a task is not for whoever gets the lowest score
        self.worst_late = Heap(n)
        self.group = array("i", bytes(4 * n))
        self.arrived = 0
        self.done = 0

    def reset(self, seed: int) -> None:
        """Begin again, with the sources ready."""
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
        self.arrive_together(self.sources.shape[0])

    def take(self, v: int) -> None:
        """A task is handed out: a ready one, or one that is held for whoever has all that it waits for."""
        waiting = 1 if self.state[v] == WAITING else 0
        self.state[v] = OUT
        self.hide(v)
        self.turn(v, -waiting, -1)

    def hide(self, v: int) -> None:
        """A ready task is passed over, until it is placed again."""
        self.best.remove(v)
        if self.both_ends:
            self.worst.remove(v)
            self.worst_late.remove(v)

    def lose(self, v: int) -> None:
        """A task that was handed out will not come back done; it is not ready before it arrives."""
        self.state[v] = WAITING
        self.turn(v, 1, 1)

    def finish(self, v: int) -> int:
        """A task that was handed out is executed; returns how many became ready, listed in *group* as they arrived."""
        self.state[v] = DONE
        self.done += 1
        count = 0
        for i in range(self.child_ptr[v], self.child_ptr[v + 1]):
            w = self.child[i]
            self.missing[w] -= 1
            if self.missing[w] == 0 and self.state[w] == WAITING:
                self.group[count] = w
                count += 1
        self.arrive_together(count)
        return count

    def give_back(self, v: int) -> None:
        """A task that was handed out, or set aside, comes back undone: ready, if its parents are executed."""
        if self.state[v] == OUT:
            self.lose(v)
        if self.missing[v] == 0:
            self.arrive(v)

    def execute(self, v: int) -> None:
        """A task comes back done, also one that was given up meanwhile."""
        if self.state[v] != OUT:
            self.take(v)
        self.finish(v)

    def is_done(self, v: int) -> bool:
        """Whether a task is executed."""
        return self.state[v] == DONE

    def arrive_together(self, count: int) -> None:
        """The first tasks of *group*, sorted by rank, become ready."""
        if self.ties == FIRST or self.ties == LAST:
            self.shuffle(count)
        if self.ties == LAST:
            for i in range(count - 1, -1, -1):
                self.arrive(self.group[i])
        else:
            for i in range(count):
                self.arrive(self.group[i])

    def shuffle(self, count: int) -> None:
        """Mix the tasks of equal rank in *group*."""
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
        """One task becomes ready."""
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
        """The score of a task as things stand."""
        key: float = self.score[v]
        if self.square > 0.0:
            key += math.sqrt(self.square * self.gain[v] / key)
        return key

    def place(self, v: int) -> None:
        """Put a ready task where its score belongs."""
        key = self.worth(v)
        self.best.put(v, key, self.tie[v])
        if self.both_ends:
            if self.late[v]:
                self.worst_late.put(v, -key, -self.tie[v])
            else:
                self.worst.put(v, -key, -self.tie[v])

    def turn(self, v: int, far: int, awaited: int) -> None:
        """So many more parents of the children of v are not ready, and are awaited: the scores of all parents change."""
        if self.square == 0.0:
            return
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
                    if self.state[u] == READY:
                        self.place(u)

    def release(self, w: int) -> float:
        """What a task that waits is worth to its parents."""
        if self.far[w] > 0 or self.awaited[w] >= self.phi.shape[0]:
            return 0.0
        worth: float = self.phi[self.awaited[w]] * self.score[w]
        return worth


def pebbles(board: Board, seed: int, order: Ints, eligible: Ints) -> None:
    """Play the pebble game: the tasks in the order of execution, and E(0..n)."""
    board.reset(seed)
    eligible[0] = board.best.size
    for t in range(board.n):
        v = board.best.top()
        board.take(v)
        board.finish(v)
        order[t] = v
        eligible[t + 1] = board.best.size


def queued_pebbles(board: Board, seed: int, order: Ints, eligible: Ints) -> None:
    """The same where the first or the last to arrive goes next, whatever its score: no heap is needed."""
    board.draws.state = seed
    for v in range(board.n):
        board.missing[v] = board.parent_ptr[v + 1] - board.parent_ptr[v]
    count = board.sources.shape[0]
    for i in range(count):
        board.group[i] = board.sources[i]
    ready = 0
    first = board.ties == FIRST
    for t in range(board.n + 1):
        board.shuffle(count)
        if first:
            for i in range(count):
                order[t + ready + i] = board.group[i]
        else:
            for i in range(count):
                board.awaited[ready + i] = board.group[count - 1 - i]
        ready += count
        eligible[t] = ready
        if t == board.n:
            break
        ready -= 1
        if not first:
            order[t] = board.awaited[ready]
        v = order[t]
        count = 0
        for i in range(board.child_ptr[v], board.child_ptr[v + 1]):
            w = board.child[i]
            board.missing[w] -= 1
            if board.missing[w] == 0:
                board.group[count] = w
                count += 1


def batched_polls(board: Board, seed: int, mean: float, requests: Longs, batch: Ints) -> int:
    """Play the batched game and count its polls; -1 where the requests end before.

    At each poll r tasks are asked for and as many of the ready ones are handed out one by one; all are executed, in that
    order, before the next poll. r comes from *requests*, or where *mean* is above 0 it is max(1, ceil(mean * exponential)).
    """
    stream = Draws(seed)
    stream.state = stream.branch(1)
    board.reset(seed)
    polls = 0
    while board.done < board.n:
        if mean > 0.0:
            wanted = max(1.0, math.ceil(mean * stream.exponential()))
        elif polls < requests.shape[0]:
            wanted = requests[polls]
        else:
            return -1
        polls += 1
        count = 0
        while count < wanted and board.best.size > 0:
            v = board.best.top()
            board.take(v)
            batch[count] = v
            count += 1
        for i in range(count):
            board.finish(batch[i])
    return polls
