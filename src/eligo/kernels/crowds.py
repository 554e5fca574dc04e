"""Volatile clients, event by event: they come, ask, work at their own speed, leave, return late or never.

All events of one moment are processed before any client gets a task. Every client has a random stream of its own, so that
two policies meet the same clients at the same times. Lengths of time are drawn by division by a rate, and the rest of a task
is kept as time: no product is ever added (see `games`).
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from eligo.kernels.boards import Board, Draws, Heap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Crowd:
    """Clients playing on a board. Times are those of the board's tasks; rates are per unit of time, 0 for never.

    *leave* and *come* are the rates at which clients leave and return; *fixed* makes both lengths constant. A client that
    leaves keeps its task with the probability *keep* and continues it when it returns; otherwise the work is lost. The
    server gives up on an absent client's task after *patience*. With the probability *renewal* a new client returns instead.
    Speeds are between 1 / sqrt(spread) and sqrt(spread), evenly on a logarithmic scale.

    A client slower than *slow* of the mean gets the lowest score; if tasks are marked late on the board and a faster client
    is present, it waits rather than take one of them. If nothing is ready, a task that is out longer than *overdue* mean
    times is also given to another client, to at most *copies* in all; the first result counts and the others stop.
    """

    def __init__(
        self,
        board: Board,
        count: int,
        leave: float,
        come: float,
        fixed: bool,
        keep: float,
        patience: float,
        renewal: float,
        spread: float,
        slow: float,
        speeds_known: bool,
        fastest: bool,
        copies: int,
        overdue: float,
    ) -> None:
        n = board.n
        self.board = board
        self.count = count
        self.leave = leave
        self.come = come
        self.fixed = fixed
        self.keep = keep
        self.patience = patience
        self.renewal = renewal
        self.spread = spread
        self.slow = slow
        self.speeds_known = speeds_known
        self.fastest = fastest
        self.most_copies = copies
        self.overdue = overdue
        self.draws = Draws(0)
        self.streams = array("Q", bytes(8 * count))
        # three events per client: it leaves or comes, it is done, it is given up; the last event: a task is overdue
        self.events = Heap(3 * count + 1)
        self.waiting = Heap(count)
        self.running = Heap(n)  # tasks that may get another copy, the longest out first
        self.refused = array("i", bytes(4 * count))
        self.present = array("i", bytes(4 * count))
        self.speed = array("d", bytes(8 * count))
        self.task = array("i", bytes(4 * count))  # the task that a client has; -1: none
        self.believed = array("i", bytes(4 * count))  # the task that the server believes it has
        self.since = array("d", bytes(8 * count))  # when it started to work or to wait
        self.came = array("d", bytes(8 * count))
        self.remaining = array("d", bytes(8 * count))  # remaining time on the task of an absent client
        self.worked = array("d", bytes(8 * count))  # time worked on its task before `since`
        self.work_done = array("d", bytes(8 * count))
        self.time_done = array("d", bytes(8 * count))
        self.work = array("d", bytes(8 * n))
        self.expected = array("d", bytes(8 * n))
        self.began = array("d", bytes(8 * n))
        self.copies = array("i", bytes(4 * n))  # clients that the server believes have a task
        self.log: list[tuple[float, int, int]] | None = None  # if kept: time, client and task of each assignment
        self.holders = array("i", bytes(4 * n))  # clients that have it

    def play(self, seed: int, seconds: Floats, drawn: bool, expected: Floats, outcome: Floats) -> int:
        """Play until every task is executed; returns the number of tasks that remain.

        *outcome* gets the makespan and the clients' total time present, useful, waiting and wasted. *seconds* are the tasks'
        times at speed 1, each multiplied by an exponential number if *drawn*; *expected* are those that the server assumes.
        Tasks remain if no client stays long enough to finish one, so that thousands of events per client bring no result.
        """
        self.reset(seed, seconds, drawn, expected)
        fruitless = 0
        while self.board.done < self.board.n and self.events.size > 0 and fruitless < 3000 * (self.count + 1):
            fruitless += 1
            slot = self.events.top()
            self.now = -self.events.key[slot]
            self.events.remove(slot)
            if slot < self.count:
                if self.present[slot]:
                    self.go(slot)
                else:
                    self.enter(slot)
            elif slot < 2 * self.count:
                self.deliver(slot - self.count)
                fruitless = 0
            elif slot < 3 * self.count:
                self.give_up(slot - 2 * self.count)
            if self.events.size == 0 or -self.events.key[self.events.top()] > self.now:
                self.serve()
        for c in range(self.count):
            if self.present[c]:
                self.here += self.now - self.came[c]
            if self.waiting.place[c] >= 0:
                self.stalled += self.now - self.since[c]
        outcome[0] = self.now
        outcome[1] = self.here
        outcome[2] = self.useful
        outcome[3] = self.stalled
        outcome[4] = self.wasted
        undone: int = self.board.n - self.board.done
        return undone

    def reset(self, seed: int, seconds: Floats, drawn: bool, expected: Floats) -> None:
        """Start again at time 0, with each client present or absent as after a long time."""
        self.board.reset(seed)
        self.draws.state = seed
        base = self.draws.branch(2)
        self.draws.state = self.draws.branch(1)
        for v in range(self.board.n):
            self.work[v] = seconds[v] * self.draws.exponential() if drawn else seconds[v]
            self.expected[v] = expected[v]
            self.copies[v] = 0
            self.holders[v] = 0
        self.events.clear()
        self.waiting.clear()
        self.running.clear()
        self.now = 0.0
        self.asked = 0
        self.total_work = 0.0
        self.total_time = 0.0
        self.finished = 0
        self.useful = 0.0
        self.wasted = 0.0
        self.stalled = 0.0
        self.here = 0.0
        for c in range(self.count):
            self.draws.state = base
            self.streams[c] = self.draws.branch(c)
            self.task[c] = -1
            self.believed[c] = -1
            self.come_first(c)
        self.serve()

    def come_first(self, c: int) -> None:
        """Decide whether client c is present at time 0."""
        self.draws.state = self.streams[c]
        self.introduce(c)
        u = self.draws.fraction()
        phase = self.draws.fraction() if self.fixed else self.draws.exponential()
        self.streams[c] = self.draws.state
        self.present[c] = self.leave == 0.0 or u * (self.leave + self.come) < self.come
        if self.present[c]:
            self.came[c] = 0.0
            if self.leave > 0.0:
                self.happen(c, phase / self.leave)
            self.ask(c)
        else:
            self.happen(c, phase / self.come)

    def introduce(self, c: int) -> None:
        """Give a new client a speed, and a history only if speeds are known."""
        bits = self.draws.draw()
        root = self.spread
        speed = 1.0 / math.sqrt(self.spread)
        for _ in range(24):
            root = math.sqrt(root)
            if bits & 1:
                speed *= root
            bits >>= 1
        self.speed[c] = speed
        self.work_done[c] = 0.0
        self.time_done[c] = 0.0
        if self.speeds_known:
            self.work_done[c] = speed
            self.time_done[c] = 1.0
            self.total_work += speed
            self.total_time += 1.0

    def happen(self, slot: int, after: float) -> None:
        """Schedule an event *after* this time from now."""
        self.events.put(slot, -(self.now + after), 0)

    def length(self) -> float:
        """The length of a stay or an absence, at rate 1."""
        u = self.draws.exponential()
        return 1.0 if self.fixed else u

    def go(self, c: int) -> None:
        """Let client c leave."""
        self.draws.state = self.streams[c]
        keeps = self.draws.fraction() < self.keep
        renewed = self.draws.fraction() < self.renewal
        away = self.length() / self.come
        self.present[c] = 0
        self.here += self.now - self.came[c]
        self.happen(c, away)
        v = self.task[c]
        if v < 0:
            self.stalled += self.now - self.since[c]
            self.waiting.remove(c)
        else:
            self.worked[c] += self.now - self.since[c]
            self.remaining[c] = -self.events.key[self.count + c] - self.now
            self.events.remove(self.count + c)
            if renewed or not keeps:
                self.drop(c)
            if self.patience > 0.0:
                self.happen(2 * self.count + c, self.patience)
            else:
                self.give_up(c)
        if renewed:
            self.introduce(c)
        self.streams[c] = self.draws.state

    def enter(self, c: int) -> None:
        """Let client c return, and continue its task or request one."""
        self.draws.state = self.streams[c]
        self.happen(c, self.length() / self.leave)
        self.streams[c] = self.draws.state
        self.present[c] = 1
        self.came[c] = self.now
        self.events.remove(2 * self.count + c)
        if self.task[c] >= 0:
            self.since[c] = self.now
            self.happen(self.count + c, self.remaining[c])
        else:
            self.give_up(c)
            self.ask(c)

    def ask(self, c: int) -> None:
        """Add client c, which is present and idle, to the waiting ones."""
        self.since[c] = self.now
        self.asked += 1
        self.waiting.put(c, 0.0, self.asked)

    def by_pace(self) -> None:
        """Sort the waiting clients, the fastest first."""
        for i in range(self.waiting.size):
            self.refused[i] = self.waiting.items[i]
        for i in range(self.waiting.size):
            c = self.refused[i]
            pace = 1.0
            if self.time_done[c] > 0.0:
                pace = self.work_done[c] / self.time_done[c] * self.total_time / self.total_work
            self.waiting.put(c, pace, self.waiting.tie[c])

    def is_slow(self, c: int) -> bool:
        """Whether client c is known to be slow."""
        if self.time_done[c] == 0.0:
            return False
        return self.work_done[c] * self.total_time < self.slow * self.total_work * self.time_done[c]

    def serve(self) -> None:
        """Hand out tasks to the waiting clients."""
        refused = 0
        if self.fastest:
            self.by_pace()
        while self.waiting.size > 0:
            c = self.waiting.top()
            v = self.choose(c)
            self.waiting.remove(c)
            if v < 0:
                self.refused[refused] = c
                refused += 1
                if self.board.best.size == 0 and self.running.size == 0:
                    break
            else:
                self.hand_out(c, v)
        for i in range(refused):
            c = self.refused[i]
            self.waiting.put(c, self.waiting.key[c], self.waiting.tie[c])

    def choose(self, c: int) -> int:
        """The task for client c, or -1."""
        if self.board.best.size > 0:
            if self.slow > 0.0 and self.is_slow(c):
                v = self.board.worst.top()
                if v < 0 and not self.faster_present():
                    v = self.board.worst_late.top()
                return v
            return self.board.best.top()
        if self.most_copies > 1 and self.running.size > 0 and not self.is_slow(c):
            v = self.running.top()
            if self.finished > 0:
                due = self.began[v] + self.total_time * self.overdue / self.finished
                if due <= self.now:
                    return v
                self.events.put(3 * self.count, -due, 0)
        return -1

    def faster_present(self) -> bool:
        """Whether a client is present that is not slow."""
        c = 0
        while c < self.count and (not self.present[c] or self.is_slow(c)):
            c += 1
        return c < self.count

    def hand_out(self, c: int, v: int) -> None:
        """Start task v on client c."""
        if self.log is not None:
            self.log.append((self.now, c, v))
        self.stalled += self.now - self.since[c]
        if self.copies[v] == 0:
            self.board.take(v)
            self.began[v] = self.now
        self.task[c] = v
        self.believed[c] = v
        self.copies[v] += 1
        self.holders[v] += 1
        self.since[c] = self.now
        self.worked[c] = 0.0
        self.happen(self.count + c, self.work[v] / self.speed[c])
        if self.copies[v] < self.most_copies:
            self.running.put(v, -self.began[v], 0)
        else:
            self.running.remove(v)

    def deliver(self, c: int) -> None:
        """Take the first result of a task, from client c."""
        v = self.task[c]
        took = self.worked[c] + (self.now - self.since[c])
        self.useful += took
        self.work_done[c] += self.expected[v]
        self.time_done[c] += took
        self.total_work += self.expected[v]
        self.total_time += took
        self.finished += 1
        self.task[c] = -1
        self.believed[c] = -1
        self.holders[v] -= 1
        self.copies[v] = 0
        self.running.remove(v)
        self.board.execute(v)
        self.ask(c)
        if self.holders[v] > 0:
            for other in range(self.count):
                if self.task[other] == v:
                    self.stop(other)

    def stop(self, c: int) -> None:
        """Stop client c, whose task another client has finished."""
        if self.present[c]:
            self.worked[c] += self.now - self.since[c]
            self.events.remove(self.count + c)
        self.drop(c)
        self.believed[c] = -1
        self.events.remove(2 * self.count + c)
        if self.present[c]:
            self.ask(c)

    def drop(self, c: int) -> None:
        """Lose the work of client c on its task."""
        self.wasted += self.worked[c]
        self.holders[self.task[c]] -= 1
        self.task[c] = -1

    def give_up(self, c: int) -> None:
        """Give up waiting for the task that the server believes client c to have."""
        v = self.believed[c]
        self.believed[c] = -1
        self.events.remove(2 * self.count + c)
        if v < 0 or self.board.is_done(v):
            return
        self.copies[v] -= 1
        if self.copies[v] == 0:
            self.running.remove(v)
            self.board.give_back(v)
        elif self.most_copies > 1:
            self.running.put(v, -self.began[v], 0)
