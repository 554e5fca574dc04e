"""The folder of a run of eligo's own, FILE.run: its database has when every attempt at a task began and ended.

A task took the mean of its attempts that ended well; the others are left out. Its kind is told by the workflow that is kept
in the same folder. The run may still be under way.
"""

import os
from collections.abc import Iterable
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from eligo.errors import FormatError, InputError
from eligo.estimating import all_kinds
from eligo.formats.histories.measures import Parsed, left_out
from eligo.formats.reading import read
from eligo.workflow import Timed

if TYPE_CHECKING:
    import sqlite3

    from eligo.formats.shared.seals import Row

NAME = "eligo"

STATE, LOCK, WORKFLOW = "run.db", "run.db.lock", "workflow.json"


def is_run(folder: str) -> bool:
    """Whether a folder is that of a run."""
    return bool(folder) and all(os.path.isfile(os.path.join(folder, name)) for name in (STATE, LOCK))


def parse_run(folder: str) -> Parsed:
    """How long the tasks took that ended well."""
    import sqlite3

    from eligo.formats.shared.seals import CURE

    path = os.path.join(folder, STATE)
    try:
        with closing(_opened(path)) as database:
            names, attempts = _read(database)
        failed = sum(failure is not None for _, _, _, failure in attempts)
        means = _means((task, ended - began) for task, began, ended, failure in attempts if failure is None)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise FormatError(f"cannot be read: {error}: {CURE}", path) from None
    kinds = _kinds(os.path.join(folder, WORKFLOW))
    records = [Timed(names[task], kinds.get(names[task]), seconds) for task, seconds in means if task in names]
    return Parsed(records, left_out(failed, "attempt that failed is", "attempts that failed are"))


def _read(database: "sqlite3.Connection") -> "tuple[dict[int, str], list[Row]]":
    """The tasks by number, and of every attempt its task, beginning, end and failure."""
    from eligo.formats.shared.seals import kept_seals, read_rows

    database.execute("BEGIN")
    seals = kept_seals(database)
    names = {number: name for number, name, _ in read_rows(database, "task", seals)}
    return names, [(row[1], *row[3:6]) for row in read_rows(database, "attempt", seals)]


def _means(took: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """The mean seconds of each task, by number; a clock that was set back counts as none."""
    found: dict[int, list[float]] = {}
    for task, seconds in took:
        found.setdefault(task, []).append(max(0.0, seconds))
    return [(task, sum(seconds) / len(seconds)) for task, seconds in sorted(found.items())]


def _opened(path: str) -> "sqlite3.Connection":
    """The database to be read only, in a folder that cannot be written too."""
    import sqlite3

    place = f"file:{quote(os.path.abspath(path))}?mode=ro"
    try:
        database = sqlite3.connect(place, uri=True)
        database.execute("SELECT count(*) FROM fact")
    except sqlite3.OperationalError:
        if os.path.exists(f"{path}-wal"):  # somebody writes it
            raise
        return sqlite3.connect(f"{place}&immutable=1", uri=True)
    return database


def _kinds(path: str) -> dict[str, str]:
    """The kind of every task of the workflow that was run, where it is there."""
    with suppress(InputError):
        flow = read(path, "json")
        return dict(zip(flow.dag.labels, all_kinds(flow), strict=True))
    return {}
