"""Tasks that need not run: their outputs exist, are complete, and are newer than their inputs."""

import os
from dataclasses import dataclass

import numpy as np

from eligo.execution import COMPLETE, FAIL, GROW, RELEASE, Execution
from eligo.running.task_files import are_current, changed
from eligo.stores import Store, added_names
from eligo.workflow import Task, Workflow

SECOND = 10**9  # in the unit of file times, which may lag slightly behind the clock


@dataclass(frozen=True)
class Doubts:
    """Reasons why an existing output may be incomplete."""

    #: labels of tasks that were started in this run and never completed
    unfinished: frozenset[str] = frozenset()
    #: start and end times of dispatchers that were killed: their last starts may be missing from the store
    killed: tuple[tuple[float, float], ...] = ()

    def touch(self, changed: int) -> bool:
        """Whether a file with this modification time may belong to a task that was killed with its dispatcher."""
        return any(SECOND * (began - 1) <= changed < SECOND * until for began, until in self.killed)


NO_DOUBTS = Doubts()


def unfinished_tasks(store: Store, earlier: frozenset[str] = frozenset()) -> frozenset[str]:
    """The labels of tasks that were started and never completed: the last attempt failed, or the dispatcher was killed.

    *earlier* are those of earlier journals; tasks that completed since are left out.
    """
    names = [*store.tasks(), *added_names(store.additions())]
    moves = np.array(store.moves(), np.int64)
    moves = moves[moves >> 32 != GROW]
    last = np.full(len(names), -1)
    last[moves & 0xFFFFFFFF] = moves >> 32  # of several moves of a task, the last one counts
    out = np.flatnonzero(~np.isin(last, (-1, COMPLETE, FAIL, RELEASE))).tolist()
    started = {names[v] for v in (*out, *store.failing()) if v < len(names)}
    return (earlier | started) - {names[v] for v in np.flatnonzero(last == COMPLETE).tolist()}


def up_to_date(flow: Workflow, game: Execution, place: str, doubts: Doubts = NO_DOUBTS) -> int:
    """Execute tasks that are up to date and whose parents are executed, without running them; returns their number."""
    before = len(game.executed)
    for v in flow.dag.order.tolist():
        name = flow.dag.tasks[v]
        complete = flow.dag.labels[v] not in doubts.unfinished
        if complete and name in game.eligible and is_up_to_date(flow.task(name), place, doubts):
            game.execute(name)
    return len(game.executed) - before


def is_up_to_date(task: Task, place: str, doubts: Doubts = NO_DOUBTS) -> bool:
    """Whether a task has outputs, all of which exist and can be trusted, and none is older than an input."""
    if not are_current(task.outputs, task.inputs, place):
        return False
    return not any(doubts.touch(changed(os.path.join(place, name)) or 0) for name in task.outputs)
