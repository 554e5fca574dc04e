"""Where an execution stands, as fat tasks see it: what is gone, and what may go next, in the order of a ranking.

A task is *gone* when it is executed or out with a client. Everything here is by number, and every change costs time in
proportion to the tasks that it concerns, so that a large dag can be dealt out without looking at all of it each time.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from eligo.dag import Dag
from eligo.errors import ScheduleError
from eligo.rows import Ints


class State:
    """A dag of which some tasks are gone.

    >>> state = State(Dag.from_arcs([("a", "b"), ("a", "c")]))
    >>> state.take([0])
    >>> state.bring_back([0], done=1)
    >>> state.first(5), state.left
    ([1, 2], 2)
    """

    def __init__(self, dag: Dag, executed: Ints | None = None, taken: Ints | None = None) -> None:
        self.dag = dag
        executed, taken = (np.empty(0, np.int32) if tasks is None else tasks for tasks in (executed, taken))
        gone = np.zeros(len(dag), np.bool_)
        gone[executed] = True
        _check_closed(dag, gone, executed)
        missing = dag.indegree - np.bincount(dag.child[gone[dag.tails]], minlength=len(dag)).astype(np.int32)
        gone[taken] = True
        self.children: list[int] = dag.child.tolist()
        self.child_ptr: list[int] = dag.child_ptr.tolist()
        self.parents: list[int] = dag.parent.tolist()
        self.parent_ptr: list[int] = dag.parent_ptr.tolist()
        #: for every task, how many of its parents are not executed
        self.missing: list[int] = missing.tolist()
        self.gone = bytearray(gone.tobytes())
        self.left = len(dag) - int(gone.sum())
        self.rank: list[int] = list(range(len(dag)))
        self._ready = int(((missing == 0) & ~gone).sum())
        self._heap = [(v, v) for v in np.flatnonzero((missing == 0) & ~gone).tolist()]

    def children_of(self, v: int) -> list[int]:
        """The tasks that need this one."""
        return self.children[self.child_ptr[v] : self.child_ptr[v + 1]]

    def parents_of(self, v: int) -> list[int]:
        """The tasks that this one needs."""
        return self.parents[self.parent_ptr[v] : self.parent_ptr[v + 1]]

    def out(self, v: int) -> int:
        """How many children a task has."""
        return self.child_ptr[v + 1] - self.child_ptr[v]

    def remaining(self) -> Ints:
        """The tasks that are not gone, ascending."""
        return np.flatnonzero(np.frombuffer(self.gone, np.uint8) == 0).astype(np.int32)

    def rank_by(self, sequence: Ints) -> None:
        """From now on, what comes first in *sequence*, which holds all that remains, is first."""
        rank = np.full(len(self.dag), len(self.dag), np.int32)
        rank[sequence] = np.arange(len(sequence), dtype=np.int32)
        self.rank = rank.tolist()
        ready = np.unique(np.fromiter((v for _, v in self._heap), np.int32, len(self._heap)))
        ready = ready[np.argsort(rank[ready])]
        self._heap = list(zip(rank[ready].tolist(), ready.tolist(), strict=True))  # sorted, so it is a heap

    def is_ready(self, v: int) -> bool:
        """Whether a task may go next by itself."""
        return not self.missing[v] and not self.gone[v]

    def top(self) -> tuple[int, int] | None:
        """The rank and the number of the first task that may go next."""
        while self._heap and not self.is_ready(self._heap[0][1]):
            heappop(self._heap)
        return self._heap[0] if self._heap else None

    def pop(self) -> int:
        """Pass over the first task that may go next, until it is pushed again."""
        return heappop(self._heap)[1]

    def push(self, tasks: Iterable[int]) -> None:
        """Let tasks that were passed over be among those that may go next."""
        for v in tasks:
            heappush(self._heap, (self.rank[v], v))

    def ready_count(self) -> int:
        """How many tasks may go next by themselves: the eligible ones."""
        return self._ready

    def first(self, count: int) -> list[int]:
        """The first tasks that may go next, at most so many."""
        found: dict[int, None] = {}
        while len(found) < count and self.top() is not None:
            found[self.pop()] = None
        self.push(found)
        return list(found)

    def take(self, tasks: Iterable[int]) -> None:
        """These tasks go out, to be executed together."""
        for v in tasks:
            self._ready -= self.is_ready(v)
            self.gone[v] = 1
            self.left -= 1

    def bring_back(self, tasks: list[int], done: int) -> None:
        """The first *done* of some tasks that were out are executed; the others remain to be done."""
        for v in tasks[done:]:
            self.gone[v] = 0
            self.left += 1
            self._became_ready(v)
        for v in tasks[:done]:
            for w in self.children_of(v):
                self.missing[w] -= 1
                self._became_ready(w)

    def _became_ready(self, v: int) -> None:
        if self.is_ready(v):
            self._ready += 1
            heappush(self._heap, (self.rank[v], v))


def _check_closed(dag: Dag, gone: "np.ndarray[tuple[int], np.dtype[np.bool_]]", executed: Ints) -> None:
    """Every executed task's parents must be executed."""
    if not len(executed):
        return
    broken = np.flatnonzero(gone[dag.child] & ~gone[dag.tails])
    if len(broken):
        raise ScheduleError(dag.tasks[dag.child[broken[0]]], dag.tasks[dag.tails[broken[0]]])
