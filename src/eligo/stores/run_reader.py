"""The reader of a run's database, also while another process writes it: everything as of one moment.

A file that is damaged, or no run at all, is refused in one sentence.
"""

import os
import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from eligo.errors import EligoError, InputError
from eligo.stores.database import check_version, is_locked, open_reader, version_of
from eligo.stores.packing import Added, unpacked_addition, unpacked_numbers
from eligo.stores.seals import (
    ATTEMPTS_SINCE,
    CURE,
    Row,
    all_rows,
    check_structure,
    kept_seals,
    read_rows,
    seal,
    select,
)
from eligo.work.attempts import Attempt

STEPS = "run_steps"
#: the codes of SQLite for a file that may be right but cannot be reached
NO_ACCESS = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
}  # fmt: skip


class Stock(NamedTuple):
    """What new rows follow."""

    facts: dict[str, str]
    moves: int = 0
    additions: int = 0
    attempt: int = 0


class Session(NamedTuple):
    """One start or resumption of a run; *ended* is None if it is still running or was killed."""

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
    """The facts of a run, also while another process writes it."""
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
    """The news since the last read; None if what was read is no longer valid."""
    with readable(path), closing(_reading(path)) as database:
        return _news(database, position)


def stock_of(path: str) -> Stock:
    """Read everything once, so that nothing is believed of a damaged file, by a connection that leaves it as it is."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return Stock({})
    with closing(_connected(path)) as database:
        if _is_empty(database):  # whoever made it was stopped before anything was in it
            return Stock({})
        rows, _ = all_rows(database)
        check_structure(database)
    moves = sum(len(packed) for _, packed in rows["journal"]) // 8
    return Stock(dict(rows["fact"]), moves, len(rows["addition"]), rows["attempt"][-1][0] if rows["attempt"] else 0)


def _is_empty(database: sqlite3.Connection) -> bool:
    return not version_of(database) and database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _news(database: sqlite3.Connection, before: Position) -> News | None:
    seals, version = kept_seals(database), version_of(database)
    facts: dict[str, str] = dict(read_rows(database, "fact", seals))
    sessions = [Session._make(row) for row in read_rows(database, "session", seals)]
    moved = select(database, "journal", before.moves - 1, version=version).fetchall()
    tried = select(database, "attempt", before.attempt, version=version).fetchall()
    now = {"journal": seal(moved, before.seals["journal"]), "attempt": seal(tried, before.seals["attempt"])}
    if seals is None or not now.items() <= seals.items():  # begun anew, or damaged: whoever reads all of it finds out
        return None
    if tried and version < ATTEMPTS_SINCE:  # which attempt at its task each is, only all of them tell
        return None
    moves = unpacked_numbers(b"".join(packed for _, packed in moved))
    position = Position(before.moves + len(moves), tried[-1][0] if tried else before.attempt, now)
    return News(facts, sessions, moves, [attempt_of(row) for row in tried], position)


def attempt_of(row: Row) -> Attempt:
    """An attempt, by its row."""
    number, task, attempt, client, *rest = row
    return Attempt("", number, task, attempt, client, "", *rest)


def _all(database: sqlite3.Connection) -> Kept:
    rows, seals = all_rows(database)
    moves = unpacked_numbers(b"".join(packed for _, packed in rows["journal"]))
    attempts = [attempt_of(row) for row in rows["attempt"]]
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
    return is_locked(f"{path}.lock")


def _reading(path: str | Path) -> sqlite3.Connection:
    """A connection that cannot write; where the folder cannot be written and nobody is at it, the file as it is."""
    try:
        return _connected(path)
    except sqlite3.Error:
        if Path(f"{path}-wal").exists():
            raise
    return _connected(path, "mode=ro&immutable=1")


def _connected(path: str | Path, mode: str = "mode=ro") -> sqlite3.Connection:
    """A connection to which the file stays as it is now: rows and their check sums are of one moment."""
    database = open_reader(path, mode)
    try:
        database.execute("BEGIN")
        check_version(database, path, STEPS)
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with the file of a run is said in one sentence, with its name and what can be done."""
    try:
        yield
    except InputError:
        raise
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in NO_ACCESS:
            raise InputError(f"{path}: cannot open a run here: {error}") from None
        raise _damage(path, error) from error
    except (EligoError, sqlite3.Error, ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise _damage(path, error) from error


def _damage(path: str | Path, why: object) -> InputError:
    return InputError(f"{path}: not a run, or damaged: {why} ({CURE})")
