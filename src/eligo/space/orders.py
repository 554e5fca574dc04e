"""An order whose peak is close to the least: several starts, each improved by passing through minimum cuts.

Let task v run at the peak of an order. The least ideal of v is the executed set with which v needs the fewest bytes. The
order is rearranged to pass through it: the tasks of the ideal in their order, then v, then the others in theirs. If the peak
does not rise, the ideal is fixed, further ideals are chosen among those below or above it, and the next peak is treated.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.work import SECOND, Work
from eligo.errors import check_choice
from eligo.rows import Ints
from eligo.space.cuts import Cuts
from eligo.space.footprint import Footprint

#: units of work for an order, by effort
ORDER_WORK = {"quick": SECOND / 4, "normal": 2 * SECOND, "thorough": 60 * SECOND}
ARC, TASK = 5, 30  # units of work for an arc that a cut looks at, and for each task of an order that is tried


def space_order(footprint: Footprint, effort: str = "normal") -> Ints:
    """An order of small peak, as numbers.

    >>> dag = Dag.from_arcs([("a", "c"), ("b", "d"), ("c", "e"), ("d", "e")])
    >>> footprint = Footprint.of_results(dag, [9, 9, 1, 1, 1])
    >>> footprint.peak(space_order(footprint))
    11
    """
    check_choice("effort", effort, ORDER_WORK)
    work, cuts = Work(ORDER_WORK[effort]), Cuts(footprint)
    orders = sorted(starts(footprint), key=footprint.peak)
    return min((through_cuts(cuts, order, work) for order in orders), key=footprint.peak)


def starts(footprint: Footprint) -> Iterator[Ints]:
    """Orders to improve."""
    dag, numbers = footprint.dag, np.arange(len(footprint.dag))
    for key in (numbers, -numbers, footprint.left, -footprint.left):
        yield newest_first(dag, key)
    yield least_growth(footprint)
    yield after_liu(footprint)


def newest_first(dag: Dag, key: NDArray[np.integer[Any]]) -> Ints:
    """The order in which the newest ready task runs first; of those that became ready together, that of smallest key."""
    missing, keys = dag.indegree.tolist(), key.tolist()
    ptr, child = dag.child_ptr.tolist(), dag.child.tolist()
    stack = sorted(np.flatnonzero(dag.indegree == 0).tolist(), key=keys.__getitem__, reverse=True)
    order = []
    while stack:
        v = stack.pop()
        order.append(v)
        fresh = []
        for w in child[ptr[v] : ptr[v + 1]]:
            missing[w] -= 1
            if not missing[w]:
                fresh.append(w)
        stack += sorted(fresh, key=keys.__getitem__, reverse=True)
    return np.array(order, np.int32)


def least_growth(footprint: Footprint) -> Ints:
    """The order in which the ready task runs first after which the fewest bytes exist; of equal ones the newest."""
    dag = footprint.dag
    missing, done = dag.indegree.tolist(), [False] * len(dag)
    ptr, child = dag.child_ptr.tolist(), dag.child.tolist()
    growth = _Growth(footprint)
    heap = [(growth.of[v], 0, v) for v in range(len(dag)) if not missing[v]]
    heapify(heap)
    order: list[int] = []
    while heap:
        grown, _, v = heappop(heap)
        if done[v] or grown != growth.of[v]:
            continue
        done[v] = True
        order.append(v)
        fresh = [w for w in growth.last_readers(v, done) if not missing[w]]
        for w in child[ptr[v] : ptr[v + 1]]:
            missing[w] -= 1
            if not missing[w]:
                fresh.append(w)
        for w in fresh:
            heappush(heap, (growth.of[w], -len(order), w))
    return np.array(order, np.int32)


class _Growth:
    """For every task, the bytes that it leaves less those of the files that only it has still to read."""

    def __init__(self, footprint: Footprint) -> None:
        self._ptr, self._reader = footprint.reader_ptr.tolist(), footprint.reader.tolist()
        self._sizes, self._unread = footprint.sizes.tolist(), np.diff(footprint.reader_ptr).tolist()
        self._reads: list[list[int]] = [[] for _ in range(len(footprint.dag))]
        self.of: list[int] = footprint.left.tolist()
        for f, size in enumerate(self._sizes):
            readers = self._readers(f)
            for v in readers:
                self._reads[v].append(f)
            if len(readers) == 1:
                self.of[readers[0]] -= size

    def _readers(self, f: int) -> list[int]:
        readers: list[int] = self._reader[self._ptr[f] : self._ptr[f + 1]]
        return readers

    def last_readers(self, v: int, done: list[bool]) -> Iterator[int]:
        """Take note that a task is done; returns the tasks that alone have still to read one of its files."""
        for f in self._reads[v]:
            self._unread[f] -= 1
            if self._unread[f] == 1:
                last = next(w for w in self._readers(f) if not done[w])
                self.of[last] -= self._sizes[f]
                yield last


def after_liu(footprint: Footprint) -> Ints:
    """The order of a walk up from the sinks, parents by falling difference of the peak above them and the bytes they leave.

    The peaks are those that the dag would have if it were a tree.
    """
    dag, left = footprint.dag, footprint.left.tolist()
    ptr, parent, peak = dag.parent_ptr.tolist(), dag.parent.tolist(), [0] * len(dag)
    rows: list[list[int]] = [[] for _ in left]
    for v in dag.order.tolist():
        rows[v] = sorted(parent[ptr[v] : ptr[v + 1]], key=lambda u: left[u] - peak[u])
        held = 0
        for u in rows[v]:
            peak[v] = max(peak[v], held + peak[u])
            held += left[u]
        peak[v] = max(peak[v], held + left[v])
    sinks = np.flatnonzero(dag.outdegree == 0).tolist()
    return _walk_up(sorted(sinks, key=lambda v: -peak[v]), rows)


def _walk_up(sinks: list[int], rows: list[list[int]]) -> Ints:
    """The order of a depth-first walk from these sinks through the rows of parents."""
    order, seen = list[int](), [False] * len(rows)
    stack = sinks[::-1]
    while stack:
        v = stack.pop()
        if v < 0:
            order.append(~v)
        elif not seen[v]:
            seen[v] = True
            stack.append(~v)
            stack += [u for u in reversed(rows[v]) if not seen[u]]
    return np.array(order, np.int32)


def through_cuts(cuts: Cuts, order: Ints, work: Work) -> Ints:
    """The order after passes through cuts, until none lowers the peak."""
    peak = cuts.footprint.peak(order)
    while not work.over():
        order = _pass(cuts, order, work)
        if cuts.footprint.peak(order) == peak:
            break
        peak = cuts.footprint.peak(order)
    return order


def _pass(cuts: Cuts, order: Ints, work: Work) -> Ints:
    """The order after one pass, in which every task is treated once at most."""
    footprint, fixed, treated = cuts.footprint, [0, len(order)], set[int]()
    during = footprint.during(order)
    while not work.over() and len(order):
        t = int(during.argmax())
        v, place = order.item(t), bisect_right(fixed, t)
        low, high = fixed[place - 1], fixed[place]
        before = cuts.work
        cut = cuts.least(v, order[:low], order[high:])
        work.spend((cuts.work - before) * ARC + len(order) * TASK)
        if v in treated or cut.bytes >= during[t]:
            break
        window = order[low:high]
        early, late = window[cut.ideal[window]], window[~cut.ideal[window]]
        rearranged = np.concatenate([order[:low], early, order[t : t + 1], late[late != v], order[high:]])
        after = footprint.during(rearranged)
        if after.max() > during.max():
            break
        order, during = rearranged, after
        treated.add(v)
        if low + len(early) not in {low, high}:
            insort(fixed, low + len(early))
    return order
