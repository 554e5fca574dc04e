"""The folder of a run of eligo's own, FILE.run: its database has when every attempt at a task began and ended.

A task took the mean of its attempts that ended well; the others are left out. Its kind is told by the workflow that is kept
in the same folder. The run may still be under way.
"""

import os
from collections.abc import Iterable
from contextlib import suppress

from eligo.errors import InputError
from eligo.estimating import all_kinds
from eligo.formats.histories.measures import Parsed, left_out
from eligo.formats.reader import read
from eligo.workflow import Timed

NAME = "eligo"

STATE, LOCK, WORKFLOW = "run.db", "run.db.lock", "workflow.json"


def is_run(folder: str) -> bool:
    """Whether a folder is that of a run."""
    return bool(folder) and all(os.path.isfile(os.path.join(folder, name)) for name in (STATE, LOCK))


def parse_run(folder: str) -> Parsed:
    """How long the tasks took that ended well."""
    from eligo.stores import added_names, read_run  # not at the top: a plan without a history needs no database

    state = read_run(os.path.join(folder, STATE))
    names = [*state.tasks, *added_names(state.additions)]
    failed = sum(attempt.failure is not None for attempt in state.attempts)
    means = _means((one.task, one.ended - one.began) for one in state.attempts if one.failure is None)
    kinds = _kinds(os.path.join(folder, WORKFLOW))
    records = [Timed(names[task], kinds.get(names[task]), seconds) for task, seconds in means if task < len(names)]
    return Parsed(records, left_out(failed, "failed attempt", "failed attempts"))


def _means(took: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """The mean seconds of each task, by number."""
    times: dict[int, list[float]] = {}
    for task, seconds in took:
        times.setdefault(task, []).append(seconds)
    return [(task, sum(seconds) / len(seconds)) for task, seconds in sorted(times.items())]


def _kinds(path: str) -> dict[str, str]:
    """The kind of every task of the workflow that was run, where it is there."""
    with suppress(InputError):
        flow = read(path, "json")
        return dict(zip(flow.dag.labels, all_kinds(flow), strict=True))
    return {}
