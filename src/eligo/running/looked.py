"""A workflow that is carried out, as whoever looks at it sees it: where every task stands, and how many stand where."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.estimating import all_kinds
from eligo.execution import ALLOCATED, FAILED, Execution
from eligo.rows import Ints, gathered
from eligo.workflow import Workflow

Curve = NDArray[np.int64]

#: the states as people are told them, in the order in which they are told
DONE, RUNNING, READY, WAITING, FUTILE, AGAIN, BAD = (
    "done", "running", "ready", "waiting", "futile", "to be tried again", "failed",
)  # fmt: skip
STATES = (DONE, RUNNING, READY, WAITING, FUTILE, AGAIN, BAD)
_TOLD = (WAITING, READY, RUNNING, RUNNING, BAD, DONE)  # by the states of an execution


class Trying(NamedTuple):
    """An attempt under way: at which task, the so-manieth, by whom and since when."""

    task: int
    attempt: int
    client: str
    since: float


class Looked(ABC):
    """A workflow and its execution, live or as of one moment. Tasks are numbers; `labels` has their names."""

    flow: Workflow
    execution: Execution
    #: when this is, by the clock on the wall, and whether somebody is at it then
    at: float
    under_way: bool
    #: which ready task goes next
    policy: str
    #: what runs just now, by task; the tasks that failed and are tried again, with the time when
    trying: Mapping[int, Trying]
    again: Mapping[int, float]

    def __init__(self) -> None:
        self._below: tuple[tuple[int, frozenset[int]], frozenset[int]] = ((-1, frozenset()), frozenset())

    @abstractmethod
    def curve(self, name: str) -> Curve | None:
        """Of the plan: "order", "plan", the tasks that it has ready after each step, or "bound", the most there can be."""

    @abstractmethod
    def failure(self, v: int) -> str:
        """Why a task failed, the last time that it did."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What the tasks are called."""
        return self.flow.dag.labels

    @cached_property
    def kinds(self) -> list[str]:
        """What kind of task each is."""
        return all_kinds(self.flow)

    @property
    def failed(self) -> list[int]:
        """The tasks that failed, and are not tried again by themselves."""
        again = self.again
        return [v for v in list(self.execution.numbers(FAILED)) if v not in again]

    @property
    def futile(self) -> frozenset[int]:
        """The tasks that hang on such as failed for good."""
        stands = (len(self.execution.journal), frozenset(self.again))
        if self._below[0] != stands:
            self._below = (stands, below(self.execution, self.failed))
        return self._below[1]

    @property
    def interrupted(self) -> list[int]:
        """The tasks of a run that were running when it was killed, and run again when it is resumed."""
        return []

    def state(self, v: int) -> str:
        """Where a task stands, in one of `STATES`; what was with somebody when all was stopped is ready again."""
        if v in self.futile:
            return FUTILE
        told = _TOLD[self.execution.codes[v]]
        if told == RUNNING and not self.under_way:
            return READY if not self.execution.missing[v] else WAITING
        return AGAIN if told == BAD and v in self.again else told

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks stand where, for all of `STATES`."""
        game = self.execution
        held, out, ready, failed = (len(tasks) for tasks in (game.held, game.allocated, game.eligible, game.failed))
        running = held + out if self.under_way else 0
        bad = len(self.failed)
        found = {DONE: len(game.executed), RUNNING: running, READY: ready if self.under_way else ready + out}
        found |= {FUTILE: len(self.futile), AGAIN: failed - bad, BAD: bad}
        found[WAITING] = len(self.flow) - sum(found.values())
        return {state: found[state] for state in STATES}


def left_behind(looked: Looked) -> list[int]:
    """The tasks that somebody had when whoever gave them out was killed."""
    return [] if looked.under_way else sorted(looked.execution.numbers(ALLOCATED))


def below(game: Execution, tasks: Iterable[int]) -> frozenset[int]:
    """All tasks that hang on these, however far down."""
    return frozenset(reached(game.dag, tasks).tolist())


def reached(dag: Dag, tasks: Iterable[int], up: bool = False) -> Ints:
    """All tasks below these, or above them, in the order of their numbers.

    >>> reached(Dag.from_arcs([("a", "b"), ("b", "c"), ("d", "c")]), [0]).tolist()
    [1, 2]
    """
    ptr, near = (dag.parent_ptr, dag.parent) if up else (dag.child_ptr, dag.child)
    found, level = np.zeros(len(dag), np.bool_), np.array(list(tasks), np.int32)
    while len(level):
        level = np.unique(gathered(ptr, near, level)[0])
        level = level[~found[level]]
        found[level] = True
    return np.flatnonzero(found).astype(np.int32)
