"""Tasks that need not be run: their outputs are there, whole, and newer than what they are made from."""

import os
from dataclasses import dataclass

import numpy as np

from eligo.execution import COMPLETE, FAIL, GROW, RELEASE, Execution
from eligo.running.task_files import are_current, changed
from eligo.stores import Store, added_names
from eligo.workflow import Task, Workflow

SECOND = 10**9  # in the unit of file times, which may be a little behind those of the clock


@dataclass(frozen=True)
class Doubts:
    """Why an output may be half written although it is there."""

    #: tasks, by label, that were begun in this run and never completed
    unfinished: frozenset[str] = frozenset()
    #: from when to when dispatchers ran that were killed: what they began last may be in no store
    killed: tuple[tuple[float, float], ...] = ()

    def touch(self, changed: int) -> bool:
        """Whether a file that was changed then may be of a task that was killed with its dispatcher."""
        return any(SECOND * (began - 1) <= changed < SECOND * until for began, until in self.killed)


NO_DOUBTS = Doubts()


def unfinished_tasks(store: Store, earlier: frozenset[str] = frozenset()) -> frozenset[str]:
    """The labels of tasks that were begun and never completed: the last attempt failed, or the dispatcher was killed.

    *earlier* are those of an earlier time, as far as they did not complete since.
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
    """Execute, without running them, the tasks that are up to date and whose parents are executed; how many there were."""
    before = len(game.executed)
    for v in flow.dag.order.tolist():
        name = flow.dag.tasks[v]
        complete = flow.dag.labels[v] not in doubts.unfinished
        if complete and name in game.eligible and is_up_to_date(flow.task(name), place, doubts):
            game.execute(name)
    return len(game.executed) - before


def is_up_to_date(task: Task, place: str, doubts: Doubts = NO_DOUBTS) -> bool:
    """Whether a task has outputs, all of them are there and beyond doubt, and none is older than an input."""
    if not are_current(task.outputs, task.inputs, place):
        return False
    return not any(doubts.touch(changed(os.path.join(place, name)) or 0) for name in task.outputs)
