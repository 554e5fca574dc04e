"""The folder of a run of eligo's own, FILE.run: its database has when every attempt at a task began and ended.

A task took the mean of its attempts that ended well; the others are left out. Its kind is told by the workflow that is kept
in the same folder. The run may still be under way.
"""

import os
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

NAME = "eligo"

STATE, LOCK, WORKFLOW = "run.db", "run.db.lock", "workflow.json"
_MEANS = """
SELECT task.name, avg(max(0, attempt.ended - attempt.began)) FROM attempt JOIN task ON task.number = attempt.task
WHERE attempt.failure IS NULL GROUP BY attempt.task ORDER BY attempt.task
"""
_FAILED = "SELECT count(*) FROM attempt WHERE failure IS NOT NULL"


def is_run(folder: str) -> bool:
    """Whether a folder is that of a run."""
    return bool(folder) and all(os.path.isfile(os.path.join(folder, name)) for name in (STATE, LOCK))


def parse_run(folder: str) -> Parsed:
    """How long the tasks took that ended well."""
    import sqlite3

    path = os.path.join(folder, STATE)
    try:
        with closing(_opened(path)) as database:
            means: list[tuple[str, float]] = database.execute(_MEANS).fetchall()
            ((failed,),) = database.execute(_FAILED)
    except sqlite3.Error as error:
        raise FormatError(f"cannot be read: {error}", path) from None
    kinds = _kinds(os.path.join(folder, WORKFLOW))
    records = [Timed(name, kinds.get(name), seconds) for name, seconds in means]
    return Parsed(records, left_out(failed, "attempt that failed is", "attempts that failed are"))


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
