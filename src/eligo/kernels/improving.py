"""Orders of nonsinks: by a list of scores, and improved by moving tasks forward or back.

Moving a set of tasks ahead of others that stand between them changes when tasks become eligible only inside that stretch. A
walk along the stretch computes after every step by how much the sum of those times would change.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]
    View = memoryview[int]  # of an array of 32-bit integers: reading one without compiled kernels gives Python integers


def list_order(
    child_ptr: Ints,
    child: Ints,
    parent_ptr: Ints,
    parent: Ints,
    missing: Ints,
    score: Floats,
    gain: Floats,
    state: Ints,
    key: Floats,
    heap: Ints,
    order: Ints,
) -> int:
    """List scheduling with a heap: always execute the eligible task of the largest score; returns the number executed.

    *score* comes in as the static part plus gain[missing(c)] for each child c, and is kept up to date as parents are
    executed: gain[k] is the worth of a child that still misses k parents, 0 from the last entry on. Equal scores go by
    number. *missing* counts parents and is used up; *state* comes in as zeros (1: eligible, 2: executed); *key* and *heap*
    hold at most one entry per task and one more for every change of a score.
    """
    n = missing.shape[0]
    kinds = gain.shape[0]
    size = 0
    for v in range(n):
        if missing[v] == 0:
            state[v] = 1
            size = push(heap, key, size, v, score[v])
    done = 0
    while size > 0:
        u = heap[0]
        stale = key[0] != score[u] or state[u] == 2
        size = pop(heap, key, size)
        if stale:
            continue
        state[u] = 2
        order[done] = u
        done += 1
        for i in range(child_ptr[u], child_ptr[u + 1]):
            w = child[i]
            missing[w] -= 1
            before = missing[w] + 1
            change = 0.0
            if before < kinds:
                change -= gain[before]
            if missing[w] < kinds:
                change += gain[missing[w]]
            if missing[w] == 0:
                state[w] = 1
                size = push(heap, key, size, w, score[w])
            elif change != 0.0:
                for j in range(parent_ptr[w], parent_ptr[w + 1]):
                    v = parent[j]
                    if state[v] < 2:
                        score[v] += change
                        if state[v] == 1:
                            size = push(heap, key, size, v, score[v])
    return done


def push(heap: Ints, key: Floats, size: int, v: int, k: float) -> int:
    """Add task v with key k to the heap; returns its new size."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if key[up] > k or (key[up] == k and heap[up] <= v):
            break
        heap[i] = heap[up]
        key[i] = key[up]
        i = up
    heap[i] = v
    key[i] = k
    return size + 1


def pop(heap: Ints, key: Floats, size: int) -> int:
    """Remove the top of the heap; returns its new size."""
    size -= 1
    v = heap[size]
    k = key[size]
    i = 0
    while True:
        j = 2 * i + 1
        if j >= size:
            break
        if j + 1 < size and (key[j + 1] > key[j] or (key[j + 1] == key[j] and heap[j + 1] < heap[j])):
            j += 1
        if k > key[j] or (k == key[j] and v <= heap[j]):
            break
        heap[i] = heap[j]
        key[i] = key[j]
        i = j
    heap[i] = v
    key[i] = k
    return size


class Lineup:
    """The nonsinks of a dag in an order that is improved in place.

    *order* has the nonsinks, *place* the place of each of them there, and *last*, for every nonsource, the place of the last
    of its parents, -1 for a source. No walk is longer than *reach* steps. `saved` is the total number of steps by which tasks
    are eligible earlier than at first.
    """

    def __init__(
        self,
        reach: int,
        child_ptr: View,
        child: View,
        parent_ptr: View,
        parent: View,
        order: View,
        place: View,
        last: View,
    ) -> None:
        self.child_ptr, self.child = child_ptr, child
        self.parent_ptr, self.parent = parent_ptr, parent
        self.order, self.place, self.last = order, place, last
        self.reach = reach
        self.n, self.k = len(place), len(order)
        self.mark = array("i", bytes(4 * self.n))
        self.taken = array("i", bytes(4 * self.n))
        self.passed = array("i", bytes(4 * (self.k + 1)))
        self.kept = array("i", bytes(4 * (self.k + 1)))
        self.stamp = self.end = 0
        self.at = self.quiet = 0  # the next place, and how many places before it saved nothing
        self.saved = self.work = 0

    def improve(self, most: int) -> bool:
        """Improve the order, place by place, until the work in all is *most*; returns whether no place saves anything."""
        while self.quiet < self.k and self.work < most:
            saved = self.pull_at(self.at) + self.push_at(self.at)
            self.saved += saved
            self.quiet = 0 if saved > 0 else self.quiet + 1
            self.at = (self.at + 1) % self.k
        return self.quiet >= self.k

    def pull_at(self, p: int) -> int:
        """Pull forward what a task that becomes eligible at place p misses, if that saves steps; returns their number."""
        u = self.order[p]
        for i in range(self.child_ptr[u], self.child_ptr[u + 1]):
            w = self.child[i]
            if self.last[w] == p:
                change = self.pull(w, p)
                if change < 0:
                    self.split(self.end, p)
                    return -change
        return 0

    def push_at(self, p: int) -> int:
        """Push back the task at place p with its descendants, if that saves steps; returns their number."""
        change = self.push(p)
        if change < 0:
            self.split(p, self.end)
            return -change
        return 0

    def pull(self, w: int, p: int) -> int:
        """The change if all ancestors of w from some place on move ahead of the others; the best place is `end`.

        A task counts for the movers while none of its parents is passed; from then on it waits for the last one passed.
        """
        self.stamp += 1
        self.mark_all(self.parent_ptr, self.parent, w)
        change = best = movers = passed = counting = 0
        for q in range(p, max(-1, p - self.reach), -1):
            u = self.order[q]
            self.work += 2 + self.child_ptr[u + 1] - self.child_ptr[u]
            if self.mark[u] == self.stamp:
                movers += 1
                self.passed[q] = passed
                counting += self.rendered_at(u, q)
                self.mark_all(self.parent_ptr, self.parent, u)
                continue
            for i in range(self.child_ptr[u], self.child_ptr[u + 1]):
                c = self.child[i]
                at = self.last[c]
                if at == q:
                    change += movers
                elif at <= p and self.taken[c] != self.stamp and self.mark[self.order[at]] == self.stamp:
                    self.taken[c] = self.stamp
                    counting -= 1
                    change += passed - self.passed[at] + q + movers - at
            change -= counting
            passed += 1
            if change < best:
                best = change
                self.end = q
        return best

    def push(self, p: int) -> int:
        """The change if the task at p and its descendants up to some place move behind the others; the best is `end`."""
        self.stamp += 1
        self.mark[self.order[p]] = self.stamp
        change = best = movers = passed = counting = 0
        for q in range(p, min(self.k, p + self.reach)):
            u = self.order[q]
            self.work += 2 + self.child_ptr[u + 1] - self.child_ptr[u]
            if self.mark[u] == self.stamp:
                movers += 1
                self.passed[q] = passed
                counting += self.rendered_at(u, q)
                self.mark_all(self.child_ptr, self.child, u)
                continue
            passed += 1
            change += counting
            for i in range(self.child_ptr[u], self.child_ptr[u + 1]):
                c = self.child[i]
                if self.last[c] == q:
                    if self.mark[c] == self.stamp:
                        at = self.last_mover(c, q)
                        change += at + passed - self.passed[at] - q
                        counting += 1
                    else:
                        change -= movers
            if change < best:
                best = change
                self.end = q
        return best

    def rendered_at(self, u: int, p: int) -> int:
        """The number of tasks that become eligible with u at place p."""
        count = 0
        for i in range(self.child_ptr[u], self.child_ptr[u + 1]):
            if self.last[self.child[i]] == p:
                count += 1
        return count

    def mark_all(self, ptr: View, rows: View, v: int) -> None:
        """Mark the parents, or the children, of v."""
        self.work += ptr[v + 1] - ptr[v]
        for i in range(ptr[v], ptr[v + 1]):
            self.mark[rows[i]] = self.stamp

    def last_mover(self, c: int, before: int) -> int:
        """The place of the last marked parent of c among those before a place."""
        latest = -1
        self.work += self.parent_ptr[c + 1] - self.parent_ptr[c]
        for i in range(self.parent_ptr[c], self.parent_ptr[c + 1]):
            u = self.parent[i]
            if self.mark[u] == self.stamp and latest < self.place[u] < before:
                latest = self.place[u]
        return latest

    def split(self, begin: int, end: int) -> None:
        """Put the marked tasks of a stretch first if its last task is marked, else last; all keep their order."""
        first = self.mark[self.order[end]] == self.stamp
        size = 0
        q = begin
        for p in range(begin, end + 1):
            u = self.order[p]
            if (self.mark[u] == self.stamp) == first:
                self.order[q] = u
                q += 1
            else:
                self.kept[size] = u
                size += 1
        for i in range(size):
            self.order[q + i] = self.kept[i]
        self.settle(begin, end)

    def settle(self, begin: int, end: int) -> None:
        """Update the places of a stretch after its order has changed."""
        for p in range(begin, end + 1):
            self.place[self.order[p]] = p
        for p in range(begin, end + 1):
            u = self.order[p]
            self.work += 4 * (1 + self.child_ptr[u + 1] - self.child_ptr[u])
            for i in range(self.child_ptr[u], self.child_ptr[u + 1]):
                c = self.child[i]
                if begin <= self.last[c] <= end:
                    self.last[c] = p
