"""A run that is only looked at, also while another process writes it: one snapshot of everything that is kept."""

import fcntl
import os
import sqlite3
from array import array
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from eligo.formats.shared.seals import Row, all_rows, kept_seals, read_rows, seal
from eligo.stores.database import connected, readable
from eligo.stores.sqlite import Added, Attempt, unpacked_addition, unpacked_numbers


class Session(NamedTuple):
    """One time that a run was begun or gone on with; *ended* is None where it goes on still, or was killed."""

    number: int
    began: float
    ended: float | None
    policy: str
    workers: int
    engine: str


class Position(NamedTuple):
    """How far a run was read: how many moves, the number of the last attempt, and the check sums up to there."""

    moves: int
    attempt: int
    seals: dict[str, int]


class Kept(NamedTuple):
    """Everything that is kept of a run, as of one moment; tasks are places in *tasks*."""

    facts: dict[str, str]
    #: the digest of each task
    tasks: dict[str, bytes]
    moves: "array[int]"
    attempts: list[Attempt]
    sessions: list[Session]
    curves: "dict[str, array[int]]"
    additions: list[Added]
    position: Position


class News(NamedTuple):
    """What is new of a run since it was read: facts and sessions as they are now, moves and attempts behind those known."""

    facts: dict[str, str]
    sessions: list[Session]
    moves: "array[int]"
    attempts: list[Attempt]
    position: Position


def read_facts(path: str | Path) -> dict[str, str]:
    """What is known of a run, whoever writes it now."""
    with readable(path), closing(_reading(path)) as database:
        return dict(read_rows(database, "fact", kept_seals(database)))


def read_tasks(path: str | Path) -> dict[str, bytes]:
    """The tasks of a run, each with its digest."""
    with readable(path), closing(_reading(path)) as database:
        return {name: digest for _, name, digest in read_rows(database, "task", kept_seals(database))}


def read_run(path: str | Path) -> Kept:
    """All that is kept, as of one moment."""
    with readable(path), closing(_reading(path)) as database:
        return _all(database)


def read_news(path: str | Path, position: Position) -> News | None:
    """What is new behind what was read before; None where that is no longer true."""
    with readable(path), closing(_reading(path)) as database:
        return _news(database, position)


def _news(database: sqlite3.Connection, before: Position) -> News | None:
    database.execute("BEGIN")
    seals = kept_seals(database)
    facts: dict[str, str] = dict(read_rows(database, "fact", seals))
    sessions = [Session._make(row) for row in read_rows(database, "session", seals)]
    moved = database.execute(
        "SELECT first, moves FROM journal WHERE first >= ? ORDER BY first", (before.moves,)
    ).fetchall()
    tried = database.execute("SELECT * FROM attempt WHERE number > ? ORDER BY number", (before.attempt,)).fetchall()
    now = {"journal": seal(moved, before.seals["journal"]), "attempt": seal(tried, before.seals["attempt"])}
    if seals is None or not now.items() <= seals.items():  # begun anew, or damaged: whoever reads all of it finds out
        return None
    moves = unpacked_numbers(b"".join(packed for _, packed in moved))
    position = Position(before.moves + len(moves), tried[-1][0] if tried else before.attempt, now)
    return News(facts, sessions, moves, [_attempt(row) for row in tried], position)


def _attempt(row: Row) -> Attempt:
    """An attempt; of an older run it may have ended before it began, where the clock was set back."""
    attempt = Attempt._make(row)
    return attempt if attempt.ended >= attempt.began else attempt._replace(ended=attempt.began)


def _all(database: sqlite3.Connection) -> Kept:
    database.execute("BEGIN")
    rows, seals = all_rows(database)
    moves = unpacked_numbers(b"".join(packed for _, packed in rows["journal"]))
    attempts = [_attempt(row) for row in rows["attempt"]]
    read = {table: seal(rows[table]) for table in ("journal", "attempt")} if seals is None else seals
    return Kept(
        dict(rows["fact"]),
        {name: digest for _, name, digest in rows["task"]},
        moves,
        attempts,
        [Session._make(row) for row in rows["session"]],
        {name: unpacked_numbers(points) for name, points in rows["curve"]},
        [unpacked_addition(*row) for _, *row in rows["addition"]],
        Position(len(moves), attempts[-1].number if attempts else 0, read),
    )


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
        return connected(path)
    except sqlite3.Error:
        if Path(f"{path}-wal").exists():
            raise
    return connected(path, "mode=ro&immutable=1")
