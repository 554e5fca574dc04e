"""Minimum cuts of networks with capacities, by shortest augmenting paths.

The nodes of a network are tasks and, behind them, files. Arcs come in pairs: arc a runs from a node to `head[a]`, and arc
`twin[a]` runs back; `room` has what each can still carry. Every node has a *side*: 1 if the cut must keep it with the source,
2 if with the sink, 0 if it may be on either. A node's *distance* is its number of arcs with room to the sink's side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]

FAR = -1


class Network:
    """A network whose cuts are computed one after another.

    *work* counts the arcs looked at, for all cuts so far; *complete* says whether all that fits was sent in the last one.
    """

    def __init__(
        self, ptr: Ints, head: Ints, twin: Ints, room: Longs, distance: Ints, cursor: Ints, queue: Ints, path: Ints
    ) -> None:
        self.ptr, self.head, self.twin, self.room = ptr, head, twin, room
        self.distance, self.cursor, self.queue, self.path = distance, cursor, queue, path
        self.n = len(ptr) - 1
        self.work = 0
        self.complete = False

    def fill(self, side: Ints, entry: Ints, most: int) -> int:
        """Send as much as fits from the side of the source to that of the sink; returns the amount.

        *entry* is a buffer for arcs. The nodes that are FAR in the end are those of a largest source's side, if
        the work does not end before: after *most* arcs, no further paths are searched for.
        """
        amount = 0
        last = self.work + most
        entries = self.measure(side, entry)
        while entries > 0 and self.work <= last:
            for i in range(entries):
                amount += self.send(side, entry[i])
            entries = self.measure(side, entry)
        self.complete = entries == 0
        return amount

    def measure(self, side: Ints, entry: Ints) -> int:
        """Compute all distances, and list the arcs with room that leave the source's side; returns their number."""
        last = 0
        entries = 0
        for x in range(self.n):
            self.cursor[x] = self.ptr[x]
            self.distance[x] = FAR
            if side[x] == 2:
                self.distance[x] = 0
                self.queue[last] = x
                last += 1
        first = 0
        while first < last:
            x = self.queue[first]
            first += 1
            for a in range(self.ptr[x], self.ptr[x + 1]):
                y = self.head[a]
                if self.room[self.twin[a]] > 0:
                    if side[y] == 1:
                        entry[entries] = self.twin[a]
                        entries += 1
                    elif self.distance[y] == FAR:
                        self.distance[y] = self.distance[x] + 1
                        self.queue[last] = y
                        last += 1
            self.work += self.ptr[x + 1] - self.ptr[x]
        self.work += self.n
        return entries

    def send(self, side: Ints, entry: int) -> int:
        """Send what fits through an arc that leaves the source's side, along falling distances; returns the amount."""
        sent = 0
        self.path[0] = entry
        length = 1
        while length > 0:
            x = self.head[self.path[length - 1]]
            if self.distance[x] == 0:
                some = self.room[entry]
                for i in range(length):
                    some = min(some, self.room[self.path[i]])
                shortest = length
                for i in range(length - 1, -1, -1):
                    self.room[self.path[i]] -= some
                    self.room[self.twin[self.path[i]]] += some
                    if self.room[self.path[i]] == 0:
                        shortest = i
                self.work += 2 * length
                sent += some
                length = shortest
                continue
            begin = self.cursor[x]
            end = self.ptr[x + 1]
            a = begin
            while a < end and not (
                self.room[a] > 0 and self.distance[self.head[a]] == self.distance[x] - 1 and side[self.head[a]] != 1
            ):
                a += 1
            self.work += a - begin + 1
            self.cursor[x] = a
            if a < end:
                self.path[length] = a
                length += 1
            else:
                length -= 1  # a dead end
                if length > 0:
                    self.cursor[self.head[self.path[length - 1]]] += 1
        return sent


def spread(v: int, ptr: Ints, rows: Ints, side: Ints, mark: int, queue: Ints) -> None:
    """Mark the tasks that can be reached from task v and are on no side yet."""
    queue[0] = v
    last = 1
    first = 0
    while first < last:
        x = queue[first]
        first += 1
        for a in range(ptr[x], ptr[x + 1]):
            y = rows[a]
            if side[y] == 0:
                side[y] = mark
                queue[last] = y
                last += 1
