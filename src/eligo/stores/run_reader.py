"""The reader of a run's database: a consistent snapshot, also while another process writes it.

A file that is damaged or not a run is refused in one sentence. Every table has a checksum over its rows in order, which also
detects missing rows and wrong rows that SQLite accepts. Where rows are only appended, the checksum is continued.
"""

import os
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from eligo.errors import EligoError, InputError
from eligo.stores.database import (
    Added,
    check_version,
    is_locked,
    open_reader,
    unpacked_addition,
    unpacked_numbers,
    version_of,
)
from eligo.work.attempts import Attempt, answer_to
from eligo.work.files import FileChange

STEPS = "run_steps"
#: the tables with checksums, and their columns; the first column orders the rows
COLUMNS = {
    "fact": "name, value",
    "task": "number, name, digest",
    "journal": "first, moves",
    "addition": "number, tasks, arcs",
    "attempt": "number, task, attempt, client, began, ended, answer, failure, code, memory",
    "session": "number, began, ended, policy, workers, engine",
    "curve": "name, points",
    "file": "number, at, name, size",
}
SEALED_SINCE = 3  # the version of the schema; older runs have no checksums until they are resumed
#: attempts had other columns before this version
ATTEMPTS_SINCE, ATTEMPTS_BEFORE = 4, "number, task, client, began, ended, failure, code, memory, lost"
FILES_SINCE = 5  # older runs have not recorded the sizes of files
CURE = "restore a copy, or delete its folder to start over"
#: SQLite's error codes for a file that cannot be accessed but may be valid
NO_ACCESS = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
}  # fmt: skip

Row = tuple[Any, ...]


class Stock(NamedTuple):
    """The present content of a file, as far as a writer needs it to append rows."""

    facts: dict[str, str]
    moves: int = 0
    additions: int = 0
    attempt: int = 0
    file: int = 0


class Session(NamedTuple):
    """One start or resumption of a run; *ended* is None if it is still running or was killed."""

    number: int
    began: float
    ended: float | None
    policy: str
    workers: int
    engine: str


class Position(NamedTuple):
    """How far a run was read: the number of moves, the last attempt and change of a file, and the checksums up to there."""

    moves: int
    attempt: int
    file: int
    seals: dict[str, int]


class Kept(NamedTuple):
    """Everything that is stored of a run, as one snapshot; tasks are given by their places in *tasks*.

    `read_news` returns the present facts and sessions and the new moves, attempts and changes of files; the other fields
    are empty.
    """

    facts: dict[str, str]
    #: the digest of each task
    tasks: dict[str, bytes]
    moves: "array[int]"
    attempts: list[Attempt]
    sessions: list[Session]
    curves: "dict[str, array[int]]"
    additions: list[Added]
    files: list[FileChange]
    position: Position


def read_facts(path: str | Path) -> dict[str, str]:
    """The facts of a run, also while another process writes it."""
    with readable(path), closing(_reading(path)) as database:
        return dict(read_rows(database, "fact", kept_seals(database)))


def read_tasks(path: str | Path) -> dict[str, bytes]:
    """The tasks of a run, each with its digest."""
    with readable(path), closing(_reading(path)) as database:
        return {name: digest for _, name, digest in read_rows(database, "task", kept_seals(database))}


def read_files(path: str | Path) -> list[FileChange]:
    """What happened to the output files of a run; nothing is known about a run of an older version."""
    with readable(path), closing(_reading(path)) as database:
        rows = read_rows(database, "file", kept_seals(database)) if version_of(database) >= FILES_SINCE else []
        return [FileChange._make(row[1:]) for row in rows]


def read_run(path: str | Path) -> Kept:
    """Everything that is stored of a run."""
    with readable(path), closing(_reading(path)) as database:
        return _all(database)


def read_news(path: str | Path, position: Position) -> Kept | None:
    """The changes since an earlier read; None if that read is no longer valid."""
    with readable(path), closing(_reading(path)) as database:
        return _news(database, position)


def stock_of(path: str) -> Stock:
    """Check a file by reading all of it, without changing it; returns what a writer needs to append to it."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return Stock({})
    with closing(_open_snapshot(path)) as database:
        if _is_empty(database):  # its creator was stopped before it wrote anything
            return Stock({})
        rows, _ = all_rows(database)
        check_structure(database)
    moves = sum(len(packed) for _, packed in rows["journal"]) // 8
    return Stock(dict(rows["fact"]), moves, len(rows["addition"]), _last(rows["attempt"]), _last(rows["file"]))


def _last(rows: Sequence[Row], before: int = 0) -> int:
    """The number of the last row; that *before*, if there is none."""
    return rows[-1][0] if rows else before


def _is_empty(database: sqlite3.Connection) -> bool:
    return not version_of(database) and database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _news(database: sqlite3.Connection, before: Position) -> Kept | None:
    seals, version = kept_seals(database), version_of(database)
    facts: dict[str, str] = dict(read_rows(database, "fact", seals))
    sessions = [Session._make(row) for row in read_rows(database, "session", seals)]
    moved = select(database, "journal", before.moves - 1, version=version).fetchall()
    tried = select(database, "attempt", before.attempt, version=version).fetchall()
    changed = select(database, "file", before.file).fetchall() if version >= FILES_SINCE else []
    rows = {"journal": moved, "attempt": tried} | ({"file": changed} if version >= FILES_SINCE else {})
    now = {table: seal(each, before.seals.get(table, 0)) for table, each in rows.items()}
    if seals is None or not now.items() <= seals.items():  # restarted or damaged: `read_run` finds out which
        return None
    if tried and version < ATTEMPTS_SINCE:  # to number the attempts at each task, all attempts must be read
        return None
    moves = unpacked_numbers(b"".join(packed for _, packed in moved))
    position = Position(before.moves + len(moves), _last(tried, before.attempt), _last(changed, before.file), now)
    files = [FileChange._make(row[1:]) for row in changed]
    return Kept(facts, {}, moves, [attempt_of(row) for row in tried], sessions, {}, [], files, position)


def attempt_of(row: Row) -> Attempt:
    """The attempt in a row."""
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
        [FileChange._make(row[1:]) for row in rows["file"]],
        Position(len(moves), _last(rows["attempt"]), _last(rows["file"]), read),
    )


def under_way(path: str | Path) -> bool:
    """Whether a process is executing the run."""
    return is_locked(f"{path}.lock")


def _reading(path: str | Path) -> sqlite3.Connection:
    """A read-only connection, also if the folder is read-only and no process executes the run."""
    try:
        return _open_snapshot(path)
    except sqlite3.Error:
        if Path(f"{path}-wal").exists():
            raise
    return _open_snapshot(path, "mode=ro&immutable=1")


def _open_snapshot(path: str | Path, mode: str = "mode=ro") -> sqlite3.Connection:
    """A read-only connection to a snapshot of the file, so that rows and checksums match."""
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
    """Turn errors of reading a run's file into one sentence with the file's name and the cure."""
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


def seal(rows: Iterable[Sequence[Any]], before: int = 0) -> int:
    """The checksum of rows that follow others with the checksum *before*.

    >>> seal([(1, "a"), (2, b"b")]) == seal([(2, b"b")], seal([(1, "a")])) != seal([(2, b"b"), (1, "a")])
    True
    """
    for row in rows:
        *others, last = row
        data = last if isinstance(last, bytes) else repr(last).encode()
        before = crc32(data, crc32(repr(others).encode(), before))
    return before


def seal_all(database: sqlite3.Connection) -> None:
    """Rewrite the checksums of all tables."""
    seals = [(table, seal(select(database, table))) for table in COLUMNS]
    database.executemany("INSERT OR REPLACE INTO seal VALUES (?, ?)", seals)


def kept_seals(database: sqlite3.Connection) -> dict[str, int] | None:
    """The stored checksums of a run; None if it is older than checksums are."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'seal'").fetchone():
        return dict(database.execute("SELECT name, value FROM seal"))
    if version_of(database) >= SEALED_SINCE:
        raise sqlite3.DatabaseError("the checksums are missing")
    return None


def select(
    database: sqlite3.Connection, table: str, after: int | None = None, *, version: int = ATTEMPTS_SINCE
) -> sqlite3.Cursor:
    """The rows of a table in order, with the columns of a version; if *after* is given, only those behind it."""
    columns = ATTEMPTS_BEFORE if table == "attempt" and version < ATTEMPTS_SINCE else COLUMNS[table]
    key, behind = columns.partition(",")[0], () if after is None else (after,)
    where = f" WHERE {key} > ?" if behind else ""
    return database.execute(f"SELECT {columns} FROM {table}{where} ORDER BY {key}", behind)  # noqa: S608 - our own words


def read_rows(database: sqlite3.Connection, table: str, seals: dict[str, int] | None) -> list[Row]:
    """The rows of a table; raises `sqlite3.DatabaseError` if they do not match the checksum."""
    version = version_of(database)
    rows = select(database, table, version=version).fetchall()
    if seals is not None and seals.get(table) != seal(rows):
        raise sqlite3.DatabaseError(f"the checksum of table {table!r} is wrong")
    return upgraded_attempts(rows) if table == "attempt" and version < ATTEMPTS_SINCE else rows


def upgraded_attempts(rows: Iterable[Row]) -> list[Row]:
    """Attempts of an older run in the present columns.

    >>> upgraded_attempts([(1, 7, "slot 1", 2.0, 1.0, "stopped", -15, None, 1), (2, 7, "slot 1", 3.0, 4.0, None, 0, 9, 0)])
    [(1, 7, 1, 'slot 1', 2.0, 2.0, 'expired', 'stopped', -15, None), (2, 7, 2, 'slot 1', 3.0, 4.0, 'accepted', None, 0, 9)]
    """
    counts, upgraded = Counter[int](), list[Row]()
    for number, task, client, began, ended, failure, code, memory, lost in rows:
        counts[task] += 1
        span = began, max(began, ended)  # the wall clock may have been set back
        upgraded.append((number, task, counts[task], client, *span, answer_to(failure, lost), failure, code, memory))
    return upgraded


def check_structure(database: sqlite3.Connection) -> None:
    """Raise `sqlite3.DatabaseError` if SQLite detects damage."""
    (status,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if status != "ok":
        raise sqlite3.DatabaseError(status)


def all_rows(database: sqlite3.Connection) -> tuple[dict[str, list[Row]], dict[str, int] | None]:
    """The rows of every table, and the checksums; an older run has no checksums and not every table."""
    seals, tables = kept_seals(database), set(COLUMNS)
    if version_of(database) < FILES_SINCE:
        tables.remove("file")
    if seals is None:
        tables &= {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if "fact" not in tables:
            raise sqlite3.DatabaseError("no such table: fact")
        check_structure(database)
    return {table: read_rows(database, table, seals) if table in tables else [] for table in COLUMNS}, seals
