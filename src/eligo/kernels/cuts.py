"""Minimum cuts by a flow of worth from renderings to the executions they need, pushed downhill.

A task has two *roles*: v is its execution, n + v its rendering. A rendering starts with q units of worth and hands them to
its parents, which keep p units each and may hand on the rest if they are rendered too. Worth may go back the way it came.
The *height* of a role is at most its number of steps from an execution that has room: worth goes to roles that are one lower,
and if there is none the role rises.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Ints = memoryview[int]


class Network:
    """A dag through which worth flows, one part after another.

    *flow* has the worth along each arc, from child to parent, and *height* the height of every role.
    """

    def __init__(self, child_ptr: Ints, child: Ints, parent_ptr: Ints, parent: Ints, flow: Ints, height: Ints) -> None:
        self.child_ptr, self.child = child_ptr, child
        self.parent_ptr, self.parent = parent_ptr, parent
        self.flow, self.height = flow, height
        self.n = n = len(child_ptr) - 1
        self.twin = array("i", bytes(4 * len(child)))
        self.label = array("i", bytes(8 * n))
        self.cursor = array("i", bytes(8 * n))
        self.queue = array("i", bytes(8 * n + 4))
        self.worth = array("q", bytes(16 * n))
        self.room = array("q", bytes(8 * n))
        self.passed = array("q", bytes(8 * n))
        self.part = self.ways = self.limit = 0
        self.first = self.last = 0
        self.work = self.measured = 0  # the steps in all, and up to the last measurement
        self.pair()

    def pair(self) -> None:
        """Compute for every arc in the rows of parents its number in the rows of children."""
        for v in range(self.n):
            self.cursor[v] = self.parent_ptr[v]
        for a in range(self.child_ptr[self.n]):
            v = self.child[a]
            self.twin[self.cursor[v]] = a
            self.cursor[v] += 1

    def fit(self, p: int, q: int, tasks: Ints, renders: Ints) -> int:
        """Distribute the worth of a part; returns the number of roles reachable by worth without room, 0 if all of it fits.

        These roles get a height of -1. `work` counts the steps, for all parts so far.
        """
        self.begin(p, q, tasks, renders)
        patience = self.limit + self.ways
        self.measure(tasks, renders)
        while self.first != self.last:
            if self.work > self.measured + patience:
                self.measure(tasks, renders)
                continue
            x = self.queue[self.first]
            self.first += 1
            if self.first == len(self.queue):
                self.first = 0
            while self.worth[x] > 0 and self.height[x] < self.limit:
                rise = self.hand_back(x) if x < self.n else self.hand_down(x)
                self.work += 1
                if rise > 0:
                    self.height[x] = min(rise, self.limit)
                    self.cursor[x] = 0
        stuck = self.reach(tasks, renders)
        if stuck > 0:
            self.still(tasks)  # no arc between the two sides is in any part from now on
        return stuck

    def begin(self, p: int, q: int, tasks: Ints, renders: Ints) -> None:
        """Put all worth where it starts, with no flow."""
        self.part += 1
        self.limit = len(tasks) + len(renders) + 2
        for i in range(len(renders)):
            x = self.n + renders[i]
            self.label[x] = self.part
            self.worth[x] = q
        self.ways = self.still(tasks)
        for i in range(len(tasks)):
            u = tasks[i]
            self.label[u] = self.part
            self.worth[u] = self.passed[u] = 0
            self.room[u] = p
            if self.label[self.n + u] == self.part:
                self.ways += 1

    def still(self, tasks: Ints) -> int:
        """Stop the flow along the arcs inside the part; returns their number."""
        arcs = 0
        for i in range(len(tasks)):
            for a in range(self.child_ptr[tasks[i]], self.child_ptr[tasks[i] + 1]):
                if self.label[self.n + self.child[a]] == self.part:
                    self.flow[a] = 0
                    arcs += 1
        return arcs

    def measure(self, tasks: Ints, renders: Ints) -> None:
        """Compute the true height of every role, and queue the roles whose worth may still find room."""
        for i in range(len(renders)):
            self.height[self.n + renders[i]] = self.limit
        self.last = 0
        for i in range(len(tasks)):
            self.height[tasks[i]] = self.limit
            if self.room[tasks[i]] > 0:
                self.see(tasks[i], 1)
        at = 0
        while at < self.last:
            x = self.queue[at]
            at += 1
            if x < self.n:
                self.see_before_execution(x, self.height[x] + 1)
            else:
                self.see_before_rendering(x - self.n, self.height[x] + 1)
        self.first = self.last = 0
        self.work += self.limit + self.ways
        self.measured = self.work
        for i in range(len(renders)):
            self.await_turn(self.n + renders[i])
        for i in range(len(tasks)):
            self.await_turn(tasks[i])

    def see(self, x: int, height: int) -> None:
        """Record the first visit to a role."""
        self.height[x] = height
        self.queue[self.last] = x
        self.last += 1

    def see_before_execution(self, u: int, height: int) -> None:
        """Visit the renderings that can give worth to an execution: its children's, and its own if that got worth from it."""
        for a in range(self.child_ptr[u], self.child_ptr[u + 1]):
            x = self.n + self.child[a]
            if self.label[x] == self.part and self.height[x] == self.limit:
                self.see(x, height)
        x = self.n + u
        if self.label[x] == self.part and self.passed[u] > 0 and self.height[x] == self.limit:
            self.see(x, height)

    def see_before_rendering(self, v: int, height: int) -> None:
        """Visit the executions from which worth can come to a rendering: its own, and parents that have some of it."""
        if self.label[v] == self.part and self.height[v] == self.limit:
            self.see(v, height)
        for i in range(self.parent_ptr[v], self.parent_ptr[v + 1]):
            u = self.parent[i]
            if self.label[u] == self.part and self.height[u] == self.limit and self.flow[self.twin[i]] > 0:
                self.see(u, height)

    def await_turn(self, x: int) -> None:
        """Queue a role that has worth, unless no role with room can be reached."""
        self.cursor[x] = 0
        if self.worth[x] > 0 and self.height[x] < self.limit:
            self.queue[self.last] = x
            self.last += 1

    def give(self, x: int, some: int) -> None:
        """Give a role worth, and queue it if it had none."""
        if self.worth[x] == 0:
            self.queue[self.last] = x
            self.last += 1
            if self.last == len(self.queue):
                self.last = 0
        self.worth[x] += some

    def hand_down(self, x: int) -> int:
        """Hand worth of a rendering to a parent, or back to its own execution; returns the height it must rise to, or 0."""
        v = x - self.n
        below = self.height[x] - 1
        for i in range(self.parent_ptr[v] + self.cursor[x], self.parent_ptr[v + 1]):
            u = self.parent[i]
            if self.label[u] == self.part and self.height[u] == below:
                self.flow[self.twin[i]] += self.worth[x]
                self.give(u, self.worth[x])
                self.worth[x] = 0
                self.cursor[x] = i - self.parent_ptr[v]
                return 0
        own = self.label[v] == self.part and self.passed[v] > 0
        if own and self.height[v] == below:
            some = min(self.worth[x], self.passed[v])
            self.passed[v] -= some
            self.worth[x] -= some
            self.give(v, some)
            if self.worth[x] == 0:
                return 0
            own = self.passed[v] > 0
        lowest = self.height[v] if own else self.limit
        for i in range(self.parent_ptr[v], self.parent_ptr[v + 1]):
            u = self.parent[i]
            if self.label[u] == self.part and self.height[u] < lowest:
                lowest = self.height[u]
        self.work += self.parent_ptr[v + 1] - self.parent_ptr[v] + 8  # a rise counts as several steps
        return lowest + 1

    def hand_back(self, x: int) -> int:
        """Keep worth in an execution, hand it on, or back to children; returns the height it must rise to, or 0."""
        below = self.height[x] - 1
        if self.room[x] > 0 and below == 0:
            some = min(self.worth[x], self.room[x])
            self.room[x] -= some
            self.worth[x] -= some
            if self.worth[x] == 0:
                return 0
        own = self.label[self.n + x] == self.part
        if own and self.height[self.n + x] == below:
            self.passed[x] += self.worth[x]
            self.give(self.n + x, self.worth[x])
            self.worth[x] = 0
            return 0
        for a in range(self.child_ptr[x] + self.cursor[x], self.child_ptr[x + 1]):
            y = self.n + self.child[a]
            if self.label[y] == self.part and self.height[y] == below and self.flow[a] > 0:
                some = min(self.worth[x], self.flow[a])
                self.flow[a] -= some
                self.worth[x] -= some
                self.give(y, some)
                if self.worth[x] == 0:
                    self.cursor[x] = a - self.child_ptr[x]
                    return 0
        lowest = self.height[self.n + x] if own else self.limit
        for a in range(self.child_ptr[x], self.child_ptr[x + 1]):
            y = self.n + self.child[a]
            if self.label[y] == self.part and self.height[y] < lowest and self.flow[a] > 0:
                lowest = self.height[y]
        self.work += self.child_ptr[x + 1] - self.child_ptr[x] + 8  # as above
        return 1 if self.room[x] > 0 else lowest + 1

    def reach(self, tasks: Ints, renders: Ints) -> int:
        """Mark the roles that the remaining worth can reach; returns their number."""
        self.last = 0
        for i in range(len(renders)):
            if self.worth[self.n + renders[i]] > 0:
                self.see(self.n + renders[i], -1)
        for i in range(len(tasks)):
            if self.worth[tasks[i]] > 0:
                self.see(tasks[i], -1)
        at = 0
        while at < self.last:
            x = self.queue[at]
            at += 1
            if x < self.n:
                self.see_behind_execution(x)
            else:
                self.see_behind_rendering(x - self.n)
        return self.last

    def see_behind_execution(self, u: int) -> None:
        """Visit the renderings to which worth can go from an execution: its own, and children from which some came."""
        x = self.n + u
        if self.label[x] == self.part and self.height[x] >= 0:
            self.see(x, -1)
        for a in range(self.child_ptr[u], self.child_ptr[u + 1]):
            x = self.n + self.child[a]
            if self.label[x] == self.part and self.height[x] >= 0 and self.flow[a] > 0:
                self.see(x, -1)

    def see_behind_rendering(self, v: int) -> None:
        """Visit the executions to which worth can go from a rendering: parents, and its own, if some came from there."""
        for i in range(self.parent_ptr[v], self.parent_ptr[v + 1]):
            u = self.parent[i]
            if self.label[u] == self.part and self.height[u] >= 0:
                self.see(u, -1)
        if self.label[v] == self.part and self.passed[v] > 0 and self.height[v] >= 0:
            self.see(v, -1)
