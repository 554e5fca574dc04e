"""The bytes that exist while tasks run, and those that will exist if the rest then runs one by one in a reference order.

A task has *not started*, *runs*, has *ended*, or is *lost*: it failed permanently, or depends on such a task. A file exists
from the start of its writer until all its readers have ended; a file with a lost reader stays. The forecast is kept as a tree
over the places of the order, with the bytes during each task that has not started, so that a start is one addition to a
range of places for each of its files.

The remaining readers of a file form a list in the reference order. A task that is returned goes to the very front of the
order: the bytes that exist now count its files already, so it can always run next. If it is the last that started, its
start is undone instead.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Bytes = NDArray[np.int64]

WAITS, RUNS, ENDED, LOST = range(4)
#: the same, for other modules
STATES = (WAITS, RUNS, ENDED, LOST)
NONE = -(2**61)  # the bytes at a place without a task: less than any sum of sizes


class Ledger:
    """The files of a workflow, by number; *reader* lists the readers of each file by rising place.

    *size*, *status* and *place* belong to the ledger from now on. *written* has the files of each task, and *read* the
    entries of *reader* that name it. Places up to the first used one are free for returned tasks.
    """

    def __init__(
        self,
        size: Bytes,
        writer: Ints,
        reader_ptr: Ints,
        reader: Ints,
        written_ptr: Ints,
        written: Ints,
        read_ptr: Ints,
        read: Ints,
        status: Ints,
        place: Ints,
        leaves: int,
    ) -> None:
        self.size, self.writer = size, writer
        self.reader_ptr, self.reader = reader_ptr, reader
        self.written_ptr, self.written = written_ptr, written
        self.read_ptr, self.read = read_ptr, read
        self.status, self.place = status, place
        self.files, self.tasks, self.leaves = len(size), len(status), leaves
        #: the most bytes in each stretch of places, and what is added to the whole stretch
        self.most = array("q", bytes(16 * leaves))
        self.more = array("q", bytes(16 * leaves))
        self.task_at = array("i", bytes(4 * leaves))
        self.file_of = array("i", bytes(4 * len(reader)))
        self.below = array("i", bytes(4 * len(reader)))
        self.above = array("i", bytes(4 * len(reader)))
        self.first = array("i", bytes(4 * len(size)))
        self.last = array("i", bytes(4 * len(size)))
        self.unread = array("i", bytes(4 * len(size)))
        self.kept = array("i", bytes(4 * len(size)))  # the number of its lost readers
        self.left = array("q", bytes(8 * len(status)))
        self.live = 0
        self.running = 0
        self.front = leaves
        self.begin()

    def begin(self) -> None:
        """Fill the ledger from the status and place of every task."""
        for p in range(self.leaves):
            self.task_at[p] = -1
            self.most[self.leaves + p] = NONE
        for v in range(self.tasks):
            if self.status[v] == RUNS:
                self.running += 1
            if self.status[v] == WAITS:
                self.task_at[self.place[v]] = v
                self.most[self.leaves + self.place[v]] = 0
                self.front = min(self.front, self.place[v])
        for k in range(self.leaves - 1, 0, -1):
            self.most[k] = max(self.most[2 * k], self.most[2 * k + 1])
        for f in range(self.files):
            self.first[f] = self.last[f] = -1
            for j in range(self.reader_ptr[f], self.reader_ptr[f + 1]):
                self.file_of[j] = f
                self.unread[f] += self.status[self.reader[j]] != ENDED
                self.kept[f] += self.status[self.reader[j]] == LOST
                if self.status[self.reader[j]] == WAITS:
                    self.link(j, self.last[f], -1)
            v = self.writer[f]
            self.left[v] += self.size[f]
            if (self.status[v] == RUNS or self.status[v] == ENDED) and self.unread[f] > 0:
                self.live += self.size[f]
            self.forecast(f, self.size[f])

    # The tree

    def add(self, begin: int, end: int, some: int) -> None:
        """Add bytes at the places from *begin* to before *end*."""
        if begin >= end or some == 0:
            return
        low = begin + self.leaves
        high = end + self.leaves
        while low < high:
            if low & 1:
                self.most[low] += some
                self.more[low] += some
                low += 1
            if high & 1:
                high -= 1
                self.most[high] += some
                self.more[high] += some
            low >>= 1
            high >>= 1
        self.rise(begin + self.leaves)
        self.rise(end - 1 + self.leaves)

    def rise(self, k: int) -> None:
        """Update the stretches above a place."""
        k >>= 1
        while k >= 1:
            self.most[k] = max(self.most[2 * k], self.most[2 * k + 1]) + self.more[k]
            k >>= 1

    def peak(self) -> int:
        """The maximum number of bytes at once if the rest runs one by one in the order."""
        return max(self.most[1], 0)

    def next_task(self) -> int:
        """The first task of the order that has not started; -1 if there is none."""
        if self.most[1] < NONE // 2:
            return -1
        k = 1
        while k < self.leaves:
            k = 2 * k if self.most[2 * k] > NONE // 2 else 2 * k + 1
        v: int = self.task_at[k - self.leaves]
        return v

    # Files

    def forecast(self, f: int, some: int) -> None:
        """Add bytes wherever a file will exist."""
        begin = 0
        v = self.writer[f]
        if self.status[v] == LOST:
            return
        if self.status[v] == WAITS:
            begin = self.place[v]
        self.add(begin, self.end_of(f), some)

    def end_of(self, f: int) -> int:
        """The place after the last at which a file exists."""
        end = self.leaves
        if self.kept[f] == 0:
            end = 0
            if self.last[f] >= 0:
                end = self.place[self.reader[self.last[f]]] + 1
        return end

    def link(self, j: int, below: int, above: int) -> None:
        """Insert a reader between its neighbours in the list of its file."""
        f = self.file_of[j]
        self.below[j] = below
        self.above[j] = above
        if below >= 0:
            self.above[below] = j
        else:
            self.first[f] = j
        if above >= 0:
            self.below[above] = j
        else:
            self.last[f] = j

    def unlink(self, j: int) -> None:
        """Remove a reader from the list of its file; it keeps its neighbours, so that this can be undone."""
        f = self.file_of[j]
        below = self.below[j]
        above = self.above[j]
        if below >= 0:
            self.above[below] = above
        else:
            self.first[f] = above
        if above >= 0:
            self.below[above] = below
        else:
            self.last[f] = below

    def resize(self, f: int, size: int) -> None:
        """Correct the size of a file."""
        more = size - self.size[f]
        v = self.writer[f]
        self.size[f] = size
        self.left[v] += more
        if (self.status[v] == RUNS or self.status[v] == ENDED) and self.unread[f] > 0:
            self.live += more
        self.forecast(f, more)

    # Tasks

    def start(self, v: int) -> None:
        """Let a task run."""
        self.add(self.place[v], self.place[v] + 1, NONE)
        for i in range(self.read_ptr[v], self.read_ptr[v + 1]):
            self.leave(self.read[i])
        self.add(0, self.place[v], self.left[v])
        self.status[v] = RUNS
        self.live += self.left[v]
        self.running += 1

    def leave(self, j: int) -> None:
        """Remove a reader from its file, which then exists for a shorter time."""
        f = self.file_of[j]
        end = self.end_of(f)
        self.unlink(j)
        self.add(self.end_of(f), end, -self.size[f])

    def give_back(self, v: int, undo: bool) -> None:
        """Return a running task, to the front of the order or, with *undo*, to its place if it was the last that started."""
        if not undo:
            self.front -= 1
            self.place[v] = self.front
            self.task_at[self.front] = v
        self.status[v] = WAITS
        self.live -= self.left[v]
        self.running -= 1
        self.add(0, self.place[v], -self.left[v])
        for i in range(self.read_ptr[v + 1] - 1, self.read_ptr[v] - 1, -1):
            j = self.read[i]
            f = self.file_of[j]
            end = self.end_of(f)
            if undo:
                self.link(j, self.below[j], self.above[j])
            else:
                self.link(j, -1, self.first[f])
            self.add(end, self.end_of(f), self.size[f])
        self.add(self.place[v], self.place[v] + 1, -NONE)

    def finish(self, v: int) -> None:
        """Let a running task end."""
        self.status[v] = ENDED
        self.running -= 1
        for i in range(self.read_ptr[v], self.read_ptr[v + 1]):
            f = self.file_of[self.read[i]]
            self.unread[f] -= 1
            if self.unread[f] == 0:
                self.live -= self.size[f]

    def lose(self, v: int) -> None:
        """Take a task that has not started out of the order; its inputs stay. The tasks below it must follow."""
        self.add(self.place[v], self.place[v] + 1, NONE)
        for i in range(self.written_ptr[v], self.written_ptr[v + 1]):
            self.forecast(self.written[i], -self.size[self.written[i]])
        for i in range(self.read_ptr[v], self.read_ptr[v + 1]):
            j = self.read[i]
            f = self.file_of[j]
            end = self.end_of(f)
            self.unlink(j)
            self.kept[f] += 1
            if self.status[self.writer[f]] != LOST:
                self.add(end, self.leaves, self.size[f])
        self.status[v] = LOST

    def may_start(self, v: int, limit: int) -> bool:
        """Whether a task may start: the bytes stay within a limit, now and in the forecast, or at least grow no further."""
        if self.left[v] > 0 and self.live + self.left[v] > limit:
            return False
        before = max(limit, self.most[1])
        self.start(v)
        after = self.most[1]
        self.give_back(v, True)
        return after <= before
