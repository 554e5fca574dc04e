"""The pebble game: the one state machine of execution, shared by theory, simulator, engines and server.

    waiting -> eligible -> allocated -> executed
                  ^            |  \\
                  +- release --+   +- fail -> failed - release -> eligible
"""

from collections.abc import Iterable, KeysView

import numpy as np

from eligo.dag import Dag
from eligo.errors import MoveError, ScheduleError, UnknownTaskError


class Execution:
    """A dag being executed: which tasks may be handed out now, which are out, which are done.

    A task is *eligible* when all its parents are executed and nobody has it. `take` hands it out, `complete` brings it
    back done and tells which tasks that made eligible, `release` brings it back undone, `fail` sets it aside until it is
    released. A move that the state does not allow raises `MoveError` and changes nothing.

    >>> game = Execution(Dag.from_arcs([("a", "b"), ("a", "c")]))
    >>> list(game.eligible)
    ['a']
    >>> game.take("a")
    >>> game.complete("a")
    ('b', 'c')

    The batched game is the same one with several tasks taken at a time:

    >>> game.take("b", "c")
    >>> list(game.eligible), list(game.allocated)
    ([], ['b', 'c'])

    The views keep the order in which tasks came in: `eligible` lists the oldest first, `executed` is the schedule so far.
    A completion costs time proportional to the task's children; every other move is constant.
    """

    def __init__(self, dag: Dag, executed: Iterable[str] = ()) -> None:
        self.dag = dag
        self._missing: list[int] = dag.indegree.tolist()
        self._eligible = dict.fromkeys(dag.sources)
        self._allocated: dict[str, None] = {}
        self._failed: dict[str, None] = {}
        self._executed: dict[str, None] = {}
        self._replay(dag.indices(executed))

    def _replay(self, done: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> None:
        """Begin with these tasks executed, given in any order; each one's parents must be among them."""
        rank = np.empty(len(self.dag), np.int32)
        rank[self.dag.order] = np.arange(len(self.dag))
        for task in self.dag.named(done[np.argsort(rank[done])]):
            if task not in self._eligible:
                raise ScheduleError(task, next(p for p in self.dag.parents(task) if p not in self._executed))
            self.execute(task)

    @property
    def eligible(self) -> KeysView[str]:
        """The tasks that may be taken, the longest eligible first."""
        return self._eligible.keys()

    @property
    def allocated(self) -> KeysView[str]:
        """The tasks that somebody has."""
        return self._allocated.keys()

    @property
    def failed(self) -> KeysView[str]:
        """The tasks that failed and were not released since."""
        return self._failed.keys()

    @property
    def executed(self) -> KeysView[str]:
        """The tasks that are done, in the order of completion."""
        return self._executed.keys()

    @property
    def finished(self) -> bool:
        """Whether every task is executed."""
        return len(self._executed) == len(self.dag)

    def state(self, task: str) -> str:
        """One of "waiting", "eligible", "allocated", "failed", "executed"."""
        if task not in self.dag:
            raise UnknownTaskError(task)
        places = ("eligible", "allocated", "failed", "executed")
        return next((place for place in places if task in getattr(self, place)), "waiting")

    def take(self, *tasks: str) -> None:
        """Hand out eligible tasks, all or none."""
        named: set[str] = set()
        for task in tasks:
            if task not in self._eligible or task in named:
                raise MoveError("take", task, "named twice" if task in named else self.state(task))
            named.add(task)
        for task in tasks:
            del self._eligible[task]
            self._allocated[task] = None

    def complete(self, task: str) -> tuple[str, ...]:
        """An allocated task is done. Returns the tasks that became eligible by it."""
        self._leave_allocated("complete", task)
        self._executed[task] = None
        return self._rendered(task)

    def release(self, task: str) -> None:
        """An allocated or failed task comes back undone, and is eligible again, behind the others."""
        if task in self._failed:
            del self._failed[task]
        else:
            self._leave_allocated("release", task)
        self._eligible[task] = None

    def fail(self, task: str) -> None:
        """An allocated task failed: nobody gets it until it is released."""
        self._leave_allocated("fail", task)
        self._failed[task] = None

    def execute(self, task: str) -> tuple[str, ...]:
        """Take and complete at once: one step of the pebble game."""
        self.take(task)
        return self.complete(task)

    def _leave_allocated(self, move: str, task: str) -> None:
        if task not in self._allocated:
            raise MoveError(move, task, self.state(task))
        del self._allocated[task]

    def _rendered(self, task: str) -> tuple[str, ...]:
        fresh = []
        u = self.dag.index[task]
        for v in self.dag.child[self.dag.child_ptr[u] : self.dag.child_ptr[u + 1]].tolist():
            self._missing[v] -= 1
            if not self._missing[v]:
                fresh.append(self.dag.tasks[v])
        self._eligible.update(dict.fromkeys(fresh))
        return tuple(fresh)
