"""A run that is only looked at, also while another process writes it: one snapshot of everything that is kept."""

import fcntl
import os
import sqlite3
from array import array
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from eligo.errors import InputError
from eligo.stores.sqlite import (
    ADDITIONS_KEPT,
    ATTEMPTS_KEPT,
    MOST_BUSY,
    MOVES_KEPT,
    Added,
    Attempt,
    unpacked_addition,
    unpacked_numbers,
)


class Session(NamedTuple):
    """One time that a run was begun or gone on with; *ended* is None where it goes on still, or was killed."""

    number: int
    began: float
    ended: float | None
    policy: str
    workers: int
    engine: str


class Kept(NamedTuple):
    """Everything that is kept of a run, as of one moment; tasks are places in *tasks*."""

    facts: dict[str, str]
    tasks: tuple[str, ...]
    moves: "array[int]"
    attempts: list[Attempt]
    sessions: list[Session]
    curves: "dict[str, array[int]]"
    additions: list[Added]


def read_facts(path: str | Path) -> dict[str, str]:
    """What is known of a run, whoever writes it now."""
    with closing(_reading(path)) as database:
        return dict(database.execute("SELECT name, value FROM fact"))


def read_run(path: str | Path) -> Kept:
    """All that is kept, as of one moment."""
    with closing(_reading(path)) as database:
        try:
            return _all(database)
        except sqlite3.Error as error:
            raise InputError(f"{path}: this run cannot be read, or another eligo made it: {error}") from None


class News(NamedTuple):
    """What is new of a run since it was read: facts and sessions as they are now, moves and attempts behind those known."""

    facts: dict[str, str]
    sessions: list[Session]
    moves: "array[int]"
    attempts: list[Attempt]


def read_news(path: str | Path, moves: int, attempt: int) -> News | None:
    """What is new behind so many moves and the attempt of that number; None where what was known is no longer true."""
    with closing(_reading(path)) as database:
        try:
            return _news(database, moves, attempt)
        except sqlite3.Error as error:
            raise InputError(f"{path}: this run cannot be read: {error}") from None


def _news(database: sqlite3.Connection, moves: int, attempt: int) -> News | None:
    database.execute("BEGIN")
    facts = dict(database.execute("SELECT name, value FROM fact"))
    sessions = [Session._make(row) for row in database.execute("SELECT * FROM session ORDER BY number")]
    last = database.execute("SELECT max(first) FROM journal WHERE first <= ?", (moves,)).fetchone()[0] or 0
    rows = [row for (row,) in database.execute("SELECT moves FROM journal WHERE first >= ? ORDER BY first", (last,))]
    found = unpacked_numbers(b"".join(rows))
    if last + len(found) < moves:
        return None
    tried = database.execute("SELECT * FROM attempt WHERE number > ? ORDER BY number", (attempt,))
    return News(facts, sessions, found[moves - last :], [Attempt._make(row) for row in tried])


def _all(database: sqlite3.Connection) -> Kept:
    database.execute("BEGIN")
    facts = dict(database.execute("SELECT name, value FROM fact"))
    tasks = tuple(name for (name,) in database.execute("SELECT name FROM task ORDER BY number"))
    moves = unpacked_numbers(b"".join(row for (row,) in database.execute(MOVES_KEPT)))
    attempts = [Attempt._make(row) for row in database.execute(ATTEMPTS_KEPT)]
    sessions = [Session._make(row) for row in database.execute("SELECT * FROM session ORDER BY number")]
    curves = {name: unpacked_numbers(points) for name, points in database.execute("SELECT * FROM curve")}
    grows = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'addition'").fetchone()  # older runs do not
    additions = [unpacked_addition(*row) for row in database.execute(ADDITIONS_KEPT)] if grows else []
    return Kept(facts, tasks, moves, attempts, sessions, curves, additions)


def under_way(path: str | Path) -> bool:
    """Whether some process is at the run now."""
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _reading(path: str | Path) -> sqlite3.Connection:
    """A connection that cannot write; where the folder cannot be written and nobody is at it, the file as it is."""
    try:
        return _connected(path, "mode=ro")
    except sqlite3.Error as error:
        if Path(f"{path}-wal").exists():
            raise InputError(f"{path}: this is no run: {error}") from None
    try:
        return _connected(path, "mode=ro&immutable=1")
    except sqlite3.Error as error:
        raise InputError(f"{path}: this is no run: {error}") from None


def _connected(path: str | Path, how: str) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{quote(str(path))}?{how}", timeout=MOST_BUSY, uri=True)
    try:
        database.execute("SELECT count(*) FROM fact")
    except sqlite3.Error:
        database.close()
        raise
    return database
