"""What the tests of runs share: workflows as files, the command, and what is in a run's folder."""

import sqlite3
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from eligo.cli import run as eligo
from eligo.execution import COMPLETE, unpacked
from eligo.stores import read_files
from eligo.stores.database import added_names, unpacked_addition

COMMAND = (sys.executable, "-c", "from eligo.cli import main; main()")


def written(folder: Path, tasks: Sequence[Mapping[str, Any]], name: str = "flow.yaml") -> Path:
    """A workflow in a file."""
    path = folder / name
    path.write_text(yaml.safe_dump({"tasks": [dict(task) for task in tasks]}, allow_unicode=True), "utf-8")
    return path


def ran(path: Path, *options: str) -> int:
    """The exit code of `eligo run` on two workers, in this process."""
    chosen = () if "--workers" in options else ("--workers", "2")
    return eligo(["run", str(path), *chosen, *options])


def started(path: Path, *options: str, inside: Sequence[str] = (), **settings: Any) -> "subprocess.Popen[str]":
    """The same in a process of its own, which those words begin."""
    words, pipe = [*inside, *COMMAND, "run", str(path), *options], subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, **settings)


def peak(run: Path, results: Sequence[str] = ("result",)) -> int:
    """The most bytes of files between tasks that a run had at once, from its record of files."""
    there, most = dict[str, int](), 0
    for change in read_files(run / "run.db"):
        if change.size is None:
            del there[change.name]
        elif not change.name.endswith(tuple(results)):
            there[change.name] = change.size
        most = max(most, sum(there.values()))
    return most


#: the columns of attempts before version 4, and no check sums, as before version 3
BEFORE_SEALS = """
ALTER TABLE attempt RENAME TO attempt_now;
CREATE TABLE attempt (number INTEGER PRIMARY KEY, task INTEGER NOT NULL, client TEXT NOT NULL, began REAL NOT NULL,
    ended REAL NOT NULL, failure TEXT, code INTEGER, memory INTEGER, lost INTEGER NOT NULL);
INSERT INTO attempt SELECT number, task, client, began, ended, failure, code, memory, answer = 'expired' FROM attempt_now;
DROP TABLE attempt_now;
DROP TABLE seal;
"""


def downgrade(path: Path, more: str) -> None:
    """Make the database of a run one without check sums; *more* statements make it that of a version."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(BEFORE_SEALS + more)


def state_of(run: Path) -> sqlite3.Connection:
    """The database of a run."""
    return sqlite3.connect(run / "run.db")


def completed(run: Path) -> Counter[str]:
    """How often each task is said to be done in the journal."""
    with closing(state_of(run)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM task ORDER BY number")]
        added = database.execute("SELECT tasks, arcs FROM addition ORDER BY number").fetchall()
        moves = array("q")
        for (packed,) in database.execute("SELECT moves FROM journal ORDER BY first"):
            moves.frombytes(packed)
    names += added_names([unpacked_addition(*row) for row in added])
    return Counter(names[v] for kind, v in unpacked(moves) if kind == COMPLETE)


def attempts(run: Path) -> list[dict[str, Any]]:
    """Every attempt of a run, with the task's name."""
    with closing(state_of(run)) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM attempt JOIN task ON task.number = attempt.task ORDER BY attempt.number")
        return [dict(row) for row in rows]


def lines(path: Path) -> list[str]:
    """The lines of a file; none where it is not there."""
    return path.read_text("utf-8").splitlines() if path.exists() else []
