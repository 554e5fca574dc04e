"""Steady pools: workers that stay and tasks with given times; list scheduling event by event, and the least possible finish.

All tasks that end at one moment are finished before any worker gets a task. Times are sums of quotients: no product is ever
added (see `games`).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from eligo.kernels.boards import Board, Heap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    Floats = NDArray[np.float64]

LOOK = 64  # the most ready tasks that a slower worker passes over


class Crew:
    """Workers playing on a board, one task at a time each; tasks may also need a part of the *room* that all share.

    The fastest free worker is served first; among equals, the one that waits longest. It gets the first ready task for which
    there is room; those before it are passed over. A task needs the room that *sizes*, which rise, gives for its sort. If
    there is one sort, the board's own queue is used; else the ready tasks of each sort have a queue of their own, so that
    tasks that do not fit are not searched. *members* are the tasks sort by sort, each sort by number.

    With an *aim*, a worker that is not the fastest gets the first of `LOOK` ready tasks that it ends early enough for the
    aim, or the last of these: a task that would be late goes to a faster worker, if there is another task.
    """

    def __init__(self, board: Board, speeds: Floats, room: int, sizes: Longs, sort: Ints, members: Ints) -> None:
        n = board.n
        self.board = board
        self.speeds = speeds
        self.room = room
        self.sizes = sizes
        self.sort = sort
        self.members = members
        self.free = room
        self.asked = 0
        self.waiting = Heap(speeds.shape[0])
        self.ends = Heap(speeds.shape[0])
        self.task = array("i", bytes(4 * speeds.shape[0]))
        self.local = array("i", bytes(4 * n))  # the place of a task among those of its sort
        self.first = array("i", bytes(4 * (sizes.shape[0] + 1)))  # where a sort begins among the members
        self.queues: list[Heap] = []
        self.aim = 0.0  # none
        self.after = speeds  # with an aim: the time needed after each task
        self.passed = array("i", bytes(4 * LOOK))
        if sizes.shape[0] > 1:
            self.part()

    def part(self) -> None:
        """Create a queue for every sort of task."""
        for k in range(self.sizes.shape[0]):
            i = self.first[k]
            while i < self.board.n and self.sort[self.members[i]] == k:
                self.local[self.members[i]] = i - self.first[k]
                i += 1
            self.first[k + 1] = i
            self.queues.append(Heap(i - self.first[k]))

    def aim_at(self, aim: float, after: Floats) -> None:
        """Prefer tasks with which everything can end by *aim*; *after* is the time that is needed after each task."""
        self.aim = aim
        self.after = after

    def play(self, seed: int, seconds: Floats, begin: Floats, end: Floats, worker: Ints, order: Ints) -> float:
        """Play until every task is executed; returns the time at which the last one ends.

        Fills in when each task begins and ends, its worker, and the order in which they begin. A task that needs more room
        than there is never begins, nor do its descendants.
        """
        self.reset(seed)
        now = 0.0
        count = 0
        while True:
            v = self.next_task()
            while v >= 0:
                c = self.waiting.top()
                if self.aim > 0.0 and self.speeds[c] < self.speeds[0]:
                    v = self.in_time(c, now, seconds)
                self.waiting.remove(c)
                self.take(v)
                self.task[c] = v
                begin[v] = now
                end[v] = now + seconds[v] / self.speeds[c]
                worker[v] = c
                order[count] = v
                count += 1
                self.ends.put(c, -end[v], 0)
                v = self.next_task()
            c = self.ends.top()
            if c < 0:
                return now
            now = end[self.task[c]]
            while c >= 0 and end[self.task[c]] == now:
                self.ends.remove(c)
                v = self.task[c]
                self.free += self.sizes[self.sort[v]]
                self.board.finish(v)
                self.ask(c)
                c = self.ends.top()

    def reset(self, seed: int) -> None:
        """Start again at time 0, with all workers free."""
        self.board.reset(seed)
        self.waiting.clear()
        self.ends.clear()
        for k in range(len(self.queues)):
            self.queues[k].clear()
        self.free = self.room
        self.asked = 0
        for c in range(self.speeds.shape[0]):
            self.ask(c)

    def ask(self, c: int) -> None:
        """Add worker c, which is idle, to the waiting ones."""
        self.asked += 1
        self.waiting.put(c, self.speeds[c], self.asked)

    def take(self, v: int) -> None:
        """Start task v."""
        k = self.sort[v]
        if self.sizes.shape[0] > 1:
            queue = self.queues[k]
            queue.remove(self.local[v])
        self.board.take(v)
        self.free -= self.sizes[k]

    def next_task(self) -> int:
        """The first ready task for which there is room, or -1 if there is none or no worker is free."""
        if self.waiting.size == 0 or self.free < self.sizes[0]:
            return -1
        if self.sizes.shape[0] == 1:
            return self.board.best.top()
        self.part_ready()
        chosen = -1
        for k in range(self.sizes.shape[0]):
            if self.sizes[k] > self.free:
                break
            queue = self.queues[k]
            i = queue.top()
            if i >= 0:
                v = self.members[self.first[k] + i]
                if chosen < 0 or self.board.best.before(v, chosen):
                    chosen = v
        return chosen

    def in_time(self, c: int, now: float, seconds: Floats) -> int:
        """The first of the next few ready tasks that worker c can end in time for the aim; else the last of them."""
        best = self.board.best
        count = 0
        v = best.top()
        while count < LOOK and best.size > 1 and now + seconds[v] / self.speeds[c] + self.after[v] > self.aim:
            self.passed[count] = v
            count += 1
            self.board.hide(v)
            v = best.top()
        for i in range(count):
            self.board.place(self.passed[i])
        return v

    def part_ready(self) -> None:
        """Move tasks that became ready, or have a new score, to the queue of their sort; the board still has their keys."""
        best = self.board.best
        v = best.top()
        while v >= 0:
            self.board.hide(v)
            queue = self.queues[self.sort[v]]
            queue.put(self.local[v], best.key[v], best.tie[v])
            v = best.top()


# The lower bound


def best_window(
    heads: Floats, places: Ints, loads: Floats, tails: Floats, tree: Floats, sums: Floats, out: Floats
) -> None:
    """Find the thresholds t and u with the largest t + u + the loads of tasks with head at least t and tail at least u.

    Tasks are sorted by falling head; places[i] is the place of a task's tail among the different *tails*, which rise. *tree*
    and *sums* have twice as many entries as there are leaves, a power of 2: for each stretch of tails, the best u plus the
    loads inside it from u on, and all loads inside it. *out* gets the best value, its t and its u.
    """
    leaves = tree.shape[0] // 2
    out[0] = -1.0
    for i in range(tree.shape[0]):
        tree[i] = -1.0
        sums[i] = 0.0
    for i in range(heads.shape[0]):
        k = leaves + places[i]
        sums[k] += loads[i]
        tree[k] = tails[places[i]] + sums[k]
        k >>= 1
        while k >= 1:
            lower = tree[2 * k]
            if lower >= 0.0:
                lower += sums[2 * k + 1]
            tree[k] = max(lower, tree[2 * k + 1])
            sums[k] = sums[2 * k] + sums[2 * k + 1]
            k >>= 1
        if i + 1 < heads.shape[0] and heads[i + 1] == heads[i]:
            continue
        if heads[i] + tree[1] > out[0]:
            out[0] = heads[i] + tree[1]
            out[1] = heads[i]
            out[2] = tails[best_leaf(tree, sums, leaves)]


def best_leaf(tree: Floats, sums: Floats, leaves: int) -> int:
    """The leaf from which the best value of the tree comes."""
    k = 1
    while k < leaves:
        lower = tree[2 * k]
        if lower >= 0.0:
            lower += sums[2 * k + 1]
        k = 2 * k if lower >= tree[2 * k + 1] else 2 * k + 1
    return k - leaves
