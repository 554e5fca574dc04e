"""The least bytes that wait between tasks when a task begins, by a minimum cut, with a flow that proves it.

When task v begins, the executed tasks are an *ideal*: with a task it has the task's parents. It has all ancestors of v, and
neither v nor a descendant. A network has a node for every task, on the source's side if executed; an arc without limit from
a task to each parent, because an ideal has the parents; and for every file a node: what the writer passes to the file is at
most its size, what the file passes to its readers has no limit. A file with one reader is an arc from writer to reader.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.deciding.work import Work
from eligo.kernels import lender
from eligo.kernels.flows import FAR, Network, spread
from eligo.rows import Ints, pointers
from eligo.space.footprint import Bytes, Footprint

FREE, INSIDE, OUTSIDE = 0, 1, 2
NO_LIMIT = 1 << 61
ARC, RESET = 12, 4  # units of work for an arc that is looked at, and for each arc before a cut
Mask = NDArray[np.bool_]


class Cut(NamedTuple):
    """The least bytes, those of the task included, and the ideal that was executed then.

    If a limit ended the work before it was *complete*, the bytes are a lower bound, and the ideal has no meaning.
    """

    bytes: int
    ideal: Mask
    complete: bool


class Passed(NamedTuple):
    """A flow: the amounts that files pass to their readers, and that tasks pass to their parents."""

    file: Ints
    reader: Ints
    bytes: Bytes
    task: Ints
    parent: Ints
    returned: Bytes


class Cuts:
    """The minimum cuts of a footprint, one after another."""

    def __init__(self, footprint: Footprint) -> None:
        self.footprint, self._dag, self._lend = footprint, footprint.dag, lender()
        n, m = len(footprint.dag), len(footprint)
        readers = np.diff(footprint.reader_ptr)
        several = np.flatnonzero(readers != 1)
        node = np.full(m, -1, np.int32)
        node[several] = n + np.arange(len(several), dtype=np.int32)
        file = np.repeat(np.arange(m, dtype=np.int32), readers)
        split = node[file] >= 0
        tails, heads, sizes = footprint.writer[file], footprint.reader, footprint.sizes[file]
        #: the pairs of arcs: those of files with one reader, from writers to other files, from these to readers, to parents
        self._tail = np.concatenate([tails[~split], footprint.writer[several], node[file[split]], self._dag.child])
        self._head = np.concatenate([heads[~split], node[several], heads[split], self._dag.tails])
        endless = np.full(int(split.sum()) + self._dag.arc_count, NO_LIMIT, np.int64)
        self._limit = np.concatenate([sizes[~split], footprint.sizes[several], endless])
        self._file, self._split = file, split
        self.count = n + len(several)
        self._connect()

    def _connect(self) -> None:
        """Lay out the arcs by their tails, each with its twin."""
        pairs = len(self._tail)
        tails, heads = np.concatenate([self._tail, self._head]), np.concatenate([self._head, self._tail])
        place = np.empty(2 * pairs, np.int32)
        order = np.argsort(tails, kind="stable")
        place[order] = np.arange(2 * pairs, dtype=np.int32)
        twin = np.empty(2 * pairs, np.int32)
        twin[place[:pairs]], twin[place[pairs:]] = place[pairs:], place[:pairs]
        self._arc = place[:pairs]
        self._capacity = np.zeros(2 * pairs, np.int64)
        self._capacity[self._arc] = self._limit
        self._room = self._capacity.copy()
        self._buffers, self._entry = np.zeros((4, self.count), np.int32), np.empty(2 * pairs, np.int32)
        ptr, head = pointers(np.bincount(tails, minlength=self.count)), heads[order].astype(np.int32)
        self._network = Network(*map(self._lend, (ptr, head, twin, self._room, *self._buffers)))
        self._side = np.zeros(self.count, np.int32)

    def least(self, v: int, work: Work, inside: Ints | None = None, outside: Ints | None = None) -> Cut:
        """The least bytes while task v runs; the work is spent.

        *inside* and *outside* are tasks that the ideal has, with their ancestors, or has not, with their descendants. The
        ideal is the largest with the least bytes.
        """
        dag, lend = self._dag, self._lend
        self._side[:] = FREE
        side, queue = lend(self._side), lend(self._buffers[2])
        for mark, seeds, ptr, rows in (
            (INSIDE, inside, dag.parent_ptr, dag.parent),
            (OUTSIDE, outside, dag.child_ptr, dag.child),
        ):
            fixed = [] if seeds is None else seeds.tolist()
            self._side[fixed] = mark
            for x in fixed:
                spread(x, lend(ptr), lend(rows), side, mark, queue)
        spread(v, lend(dag.parent_ptr), lend(dag.parent), side, INSIDE, queue)
        side[v] = OUTSIDE
        spread(v, lend(dag.child_ptr), lend(dag.child), side, OUTSIDE, queue)
        np.copyto(self._room, self._capacity)
        before, most = self._network.work, int(min(work.remaining, NO_LIMIT)) // ARC
        amount = self._network.fill(side, lend(self._entry), most)
        work.spend((self._network.work - before) * ARC + len(self._room) * RESET)
        tasks, far = self._side[: len(dag)], self._buffers[0, : len(dag)] == FAR
        ideal = (tasks == INSIDE) | ((tasks == FREE) & far)
        return Cut(int(self.footprint.left[v]) + amount, ideal, self._network.complete)

    def passed(self) -> Passed:
        """The flow of the last cut."""
        flow = (self._capacity - self._room)[self._arc]
        single, several = int((~self._split).sum()), self.count - len(self._dag)
        rows = np.concatenate([np.flatnonzero(~self._split), np.flatnonzero(self._split)])
        amounts = np.concatenate([flow[:single], flow[single + several : single + several + int(self._split.sum())]])
        returned = flow[single + several + int(self._split.sum()) :]
        some, back = np.flatnonzero(amounts), np.flatnonzero(returned)
        file = self._file[rows]
        reader = self.footprint.reader[rows]
        dag = self._dag
        return Passed(file[some], reader[some], amounts[some], dag.child[back], dag.tails[back], returned[back])
