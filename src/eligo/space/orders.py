"""An order whose peak is close to the least: several starts, each improved by passing through minimum cuts.

Let task v run at the peak of an order. The least ideal of v is the executed set with which v needs the fewest bytes. The
order is rearranged to pass through it: the tasks of the ideal in their order, then v, then the others in theirs. If the peak
does not rise, the ideal is fixed, further ideals are chosen among those below or above it, and the next peak is treated.

Trees and series-parallel dags whose files have one reader each need no search: see `eligo.space.trees`.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.orders import list_order
from eligo.deciding.work import SECOND, Work
from eligo.errors import check_choice
from eligo.rows import Ints
from eligo.space.bounds import space_bound
from eligo.space.cuts import Cuts
from eligo.space.footprint import Footprint
from eligo.space.trees import exact_order

#: units of work for an order, by effort
ORDER_WORK = {"quick": SECOND / 4, "normal": 4 * SECOND, "thorough": 120 * SECOND}
RANDOM_STARTS = {"quick": 0, "normal": 200, "thorough": 5_000}
START, TASK = 500, 100  # units of work for each task of an order, and of one that is rearranged
#: a number for an order, the smaller the better
Measure = Callable[[Ints], int]
WHOLE = 2  # fixed ideals, the first and the last: the order is free


def space_order(footprint: Footprint, effort: str = "normal", measure: Measure | None = None) -> Ints:
    """An order of small peak, as numbers.

    With another *measure*, the order exceeds neither the peak nor the measure of the tasks as numbered. Of orders with the
    same peak, the one with the smallest measure is returned.

    >>> dag = Dag.from_arcs([("a", "c"), ("b", "d"), ("c", "e"), ("d", "e")], tasks="abcde")
    >>> footprint = Footprint.of_results(dag, [9, 9, 1, 1, 1])
    >>> footprint.peak(space_order(footprint))
    11
    """
    check_choice("effort", effort, ORDER_WORK)
    exact = exact_order(footprint)
    if exact is not None and measure is None:
        return exact
    search = _Search(footprint, Work(ORDER_WORK[effort]), measure)
    for order in sorted([*starts(footprint), *([] if exact is None else [exact])], key=footprint.peak):
        search.start(order)
    if RANDOM_STARTS[effort] and search.peak == space_bound(footprint, search.best, "quick").bytes:
        return search.best
    rng = Random(0)  # noqa: S311 - always the same
    for _ in range(RANDOM_STARTS[effort]):
        if search.over():
            break
        key = np.array(rng.sample(range(len(footprint.dag)), len(footprint.dag)))
        search.start(newest_first(footprint.dag, key))
        search.start(list_order(footprint.dag, key.astype(np.float64)))
    return search.best


def starts(footprint: Footprint) -> Iterator[Ints]:
    """Orders to improve; the first takes the tasks as they are numbered, for example by the engine."""
    dag, numbers = footprint.dag, np.arange(len(footprint.dag))
    yield as_numbered(dag)
    for key in (numbers, -numbers, footprint.left, -footprint.left):
        yield newest_first(dag, key)
    yield least_growth(footprint)
    yield after_liu(footprint)


def as_numbered(dag: Dag) -> Ints:
    """The order in which the ready task of smallest number runs first."""
    return list_order(dag, -np.arange(len(dag), dtype=np.float64))


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


class _Search:
    """The best order so far, and the cuts and the work for better ones."""

    def __init__(self, footprint: Footprint, work: Work, measure: Measure | None) -> None:
        self.footprint, self.work, self.cuts = footprint, work, Cuts(footprint)
        self.measure = measure or (lambda order: 0)
        self.best = as_numbered(footprint.dag)
        self.peak = footprint.peak(self.best)
        self.measured = self.most = self.measure(self.best)
        self.least = False  # whether the peak is proved to be the least

    def over(self) -> bool:
        """Whether the work is over, or nothing can be gained."""
        return self.least or self.work.over()

    def start(self, order: Ints) -> None:
        """Pass an order through cuts until that does not lower its peak, and keep it if it is the best."""
        self.work.spend(len(order) * START)
        peak = self.footprint.peak(order)
        self._keep(order, peak)
        while not self.over():
            order = self._passed(order)
            lower = self.footprint.peak(order)
            self._keep(order, lower)
            if lower == peak:
                break
            peak = lower

    def _keep(self, order: Ints, peak: int) -> None:
        if peak > self.peak:
            return
        measured = self.measure(order)
        if measured <= self.most and (peak, measured) < (self.peak, self.measured):
            self.best, self.peak, self.measured = order, peak, measured

    def _passed(self, order: Ints) -> Ints:
        """The order after one pass, in which every task is treated once at most."""
        fixed, treated, during = [0, len(order)], set[int](), self.footprint.during(order)
        while not self.work.over() and len(order):
            t = int(during.argmax())
            v, place = order.item(t), bisect_right(fixed, t)
            low, high = fixed[place - 1], fixed[place]
            cut = self.cuts.least(v, self.work, order[:low], order[high:])
            self.work.spend(len(order) * TASK)
            if v in treated or cut.bytes >= during[t] or not cut.complete:
                self.least = self.least or (cut.bytes >= during[t] and len(fixed) == WHOLE)
                break
            window = order[low:high]
            early, late = window[cut.ideal[window]], window[~cut.ideal[window]]
            rearranged = np.concatenate([order[:low], early, order[t : t + 1], late[late != v], order[high:]])
            after = self.footprint.during(rearranged)
            if after.max() > during.max():
                break
            order, during = rearranged, after
            treated.add(v)
            if low + len(early) not in {low, high}:
                insort(fixed, low + len(early))
        return order
