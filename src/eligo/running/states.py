"""A workflow that is carried out, as whoever looks at it sees it: where every task stands, and how many stand where."""

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

#: the states as people are told them, in the order in which they are told
DONE, RUNNING, READY, PENDING, BLOCKED, RETRYING, BAD = (
    "done", "running", "ready", "pending", "blocked", "retrying", "failed",
)  # fmt: skip
STATES = (DONE, RUNNING, READY, PENDING, BLOCKED, RETRYING, BAD)
_TOLD = (PENDING, READY, RUNNING, RUNNING, BAD, DONE)  # by the states of an execution


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
    #: what ran when the run was killed, by task
    cut_off: Mapping[int, Trying] = MappingProxyType({})

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int32)
        self._below = (-1, nothing, nothing)  # which tasks are blocked, and for how many tasks and which failed ones

    @abstractmethod
    def curve(self, name: str) -> Curve | None:
        """Of the plan: "order", "plan", the tasks that it has ready after each step, or "bound", the most there can be."""

    def obstacles(self, v: int) -> list[str]:
        """What keeps a task from running beside the tasks that it waits for, a sentence each."""
        return []

    @abstractmethod
    def failure(self, v: int) -> str:
        """Why a task failed, the last time that it did."""

    def name_of(self, client: str) -> str:
        """What a worker is called."""
        return client

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
        return list(map(int, self._failed))

    @property
    def _failed(self) -> Ints:
        failed = np.asarray(self.execution.codes) == FAILED
        failed[list(self.again)] = False
        return np.flatnonzero(failed).astype(np.int32)

    def failed_for(self) -> Mapping[str, Collection[int]]:
        """The tasks that failed and are not tried again, by why they failed."""
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
        """Where a task stands, in one of `STATES`; what was with somebody when all was stopped is ready again."""
        blocked = self.blocked
        if len(blocked) and v in blocked[np.searchsorted(blocked, v) :][:1]:
            return BLOCKED
        state = _TOLD[self.execution.codes[v]]
        if state == RUNNING and not self.under_way:
            return READY if not self.execution.missing[v] else PENDING
        return RETRYING if state == BAD and v in self.again else state

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks stand where, for all of `STATES`."""
        return count_states(self.execution, len(self._failed), len(self.blocked), self.under_way)


def count_states(game: Execution, failed: int, blocked: int, under_way: bool = True) -> dict[str, int]:
    """How many tasks stand where, for all of `STATES`: *failed* for good, and *blocked* because of these."""
    held, out, ready = len(game.held), len(game.allocated), len(game.eligible)
    counts = {
        DONE: len(game.executed),
        RUNNING: held + out if under_way else 0,
        READY: ready if under_way else ready + out,
    }
    counts |= {BLOCKED: blocked, RETRYING: len(game.failed) - failed, BAD: failed}
    counts[PENDING] = len(game.graph) - sum(counts.values())
    return {state: counts[state] for state in STATES}


def left_behind(looked: Looked) -> list[int]:
    """The tasks that somebody had when whoever gave them out was killed."""
    return [] if looked.under_way else sorted(looked.execution.numbers(ALLOCATED))
