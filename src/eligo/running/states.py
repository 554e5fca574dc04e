"""The state of a workflow during a run, as status commands see it: the state of every task, and the counts."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.estimating import all_kinds
from eligo.execution import ALLOCATED, FAILED, Execution
from eligo.growing import reached
from eligo.rows import Ints
from eligo.workflow import Workflow

Curve = NDArray[np.int64]

#: the states as they are displayed, in order
DONE, RUNNING, READY, PENDING, BLOCKED, RETRYING, BAD = (
    "done", "running", "ready", "pending", "blocked", "retrying", "failed",
)  # fmt: skip
STATES = (DONE, RUNNING, READY, PENDING, BLOCKED, RETRYING, BAD)
_TOLD = (PENDING, READY, RUNNING, RUNNING, BAD, DONE)  # by the states of an execution


class Trying(NamedTuple):
    """A running attempt: the task, the number of the attempt, the worker and the start time."""

    task: int
    attempt: int
    client: str
    since: float


class Looked(ABC):
    """A workflow and its execution, live or at one moment. Tasks are numbers; `labels` has their names."""

    flow: Workflow
    execution: Execution
    #: the time of this state by the wall clock, and whether the run or server is active
    at: float
    under_way: bool
    #: the policy that chooses the next task
    policy: str
    #: running attempts by task; failed tasks that will be retried, with the time
    trying: Mapping[int, Trying]
    again: Mapping[int, float]
    #: attempts that ran when the run was killed, by task
    cut_off: Mapping[int, Trying] = MappingProxyType({})

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int32)
        self._below = (-1, nothing, nothing)  # number of tasks, failed tasks, and the tasks they block; cached

    @abstractmethod
    def curve(self, name: str) -> Curve | None:
        """A curve of the plan: "order", "plan" (ready tasks after each step), or "bound" (its upper bound)."""

    def obstacles(self, v: int) -> list[str]:
        """Sentences about what keeps a task from running, apart from its unfinished parents."""
        return []

    @abstractmethod
    def failure(self, v: int) -> str:
        """The message of a task's last failure."""

    def name_of(self, client: str) -> str:
        """The name of a worker."""
        return client

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return self.flow.dag.labels

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of each task."""
        return all_kinds(self.flow)

    @property
    def failed(self) -> list[int]:
        """The tasks that failed permanently."""
        return list(map(int, self._failed))

    @property
    def _failed(self) -> Ints:
        failed = np.asarray(self.execution.codes) == FAILED
        failed[list(self.again)] = False
        return np.flatnonzero(failed).astype(np.int32)

    def failed_for(self) -> Mapping[str, Collection[int]]:
        """The permanently failed tasks by message."""
        causes: dict[str, list[int]] = {}
        for v in self.failed:
            causes.setdefault(self.failure(v), []).append(v)
        return causes

    @property
    def blocked(self) -> Ints:
        """The tasks that depend on a permanently failed task, in the order of their numbers."""
        size, failed = len(self.execution.graph), self._failed
        if size != self._below[0] or not np.array_equal(failed, self._below[1]):
            self._below = (size, failed, reached(self.execution.dag, failed))
        return self._below[2]

    @property
    def interrupted(self) -> list[int]:
        """The tasks of a run that were running when it was killed, and run again when it is resumed."""
        return []

    def state(self, v: int) -> str:
        """The state of a task, one of `STATES`; tasks that ran when the run was stopped are ready."""
        blocked = self.blocked
        if len(blocked) and v in blocked[np.searchsorted(blocked, v) :][:1]:
            return BLOCKED
        state = _TOLD[self.execution.codes[v]]
        if state == RUNNING and not self.under_way:
            return READY if not self.execution.missing[v] else PENDING
        return RETRYING if state == BAD and v in self.again else state

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks in each of `STATES`."""
        return count_states(self.execution, len(self._failed), len(self.blocked), self.under_way)


def count_states(game: Execution, failed: int, blocked: int, under_way: bool = True) -> dict[str, int]:
    """The number of tasks in each of `STATES`, given how many *failed* permanently and are *blocked*."""
    held, out, ready = len(game.held), len(game.allocated), len(game.eligible)
    counts = {
        DONE: len(game.executed),
        RUNNING: held + out if under_way else 0,
        READY: ready if under_way else ready + out,
    }
    counts |= {BLOCKED: blocked, RETRYING: len(game.failed) - failed, BAD: failed}
    counts[PENDING] = len(game.graph) - sum(counts.values())
    return {state: counts[state] for state in STATES}


def cut_off_tasks(looked: Looked) -> list[int]:
    """The tasks that were assigned when the run or server was killed."""
    return [] if looked.under_way else sorted(looked.execution.numbers(ALLOCATED))
