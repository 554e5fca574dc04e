"""Tasks that need not be run: their outputs are there, and newer than what they are made from."""

import os

from eligo.execution import Execution
from eligo.workflow import Task, Workflow


def up_to_date(flow: Workflow, game: Execution, place: str) -> int:
    """Execute, without running them, the tasks that are up to date and whose parents are executed; how many there were."""
    before = len(game.executed)
    for v in flow.dag.order.tolist():
        name = flow.dag.tasks[v]
        if name in game.eligible and is_up_to_date(flow.task(name), place):
            game.execute(name)
    return len(game.executed) - before


def is_up_to_date(task: Task, place: str) -> bool:
    """Whether a task has outputs, all of them are there, and none is older than an input."""
    made = [_changed(os.path.join(place, name)) for name in task.outputs]
    used = [_changed(os.path.join(place, name)) for name in task.inputs]
    if not made or None in made:
        return False
    return max((time for time in used if time is not None), default=0) <= min(time for time in made if time is not None)


def _changed(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
