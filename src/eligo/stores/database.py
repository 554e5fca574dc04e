"""What all stores share: SQLite files that are opened, locked and upgraded step by step, and values packed into a column."""

import fcntl
import json
import os
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eligo.errors import InputError

MOST_BUSY = 30.0  # seconds that a reader or writer waits for the lock of another
LOCK_RETRIES = (0.01, 0.05, 0.1)  # seconds between attempts to lock: `is_locked` also holds the lock for a moment
#: tasks added to a workflow at once: their names, their arcs by task number, and a document row per task if known
Added = tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[Mapping[str, object], ...]]


def open_writer(
    path: str, steps: str, finish: Callable[[sqlite3.Connection], None] = lambda database: None
) -> sqlite3.Connection:
    """Create or upgrade a file and return the connection that writes it; *finish* runs in the transaction of an upgrade.

    A committed transaction survives the death of the process and of the machine.
    """
    database = sqlite3.connect(path, timeout=MOST_BUSY, check_same_thread=False, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        _upgrade(database, path, steps, finish)
    except BaseException:
        database.close()
        raise
    return database


def _upgrade(
    database: sqlite3.Connection, path: str, folder: str, finish: Callable[[sqlite3.Connection], None]
) -> None:
    """Apply the steps that a file lacks, in one transaction."""
    check_version(database, path, folder)
    steps = list(steps_after(folder, version_of(database)))
    if steps:
        database.executescript(f"BEGIN IMMEDIATE; {''.join(text for _, text in steps)}")
        finish(database)
        database.execute(f"PRAGMA user_version = {steps[-1][0]}")
        database.execute("COMMIT")


def open_reader(path: str | Path, mode: str = "mode=ro") -> sqlite3.Connection:
    """A connection that neither writes nor moves the write-ahead log into the file."""
    address = f"file:{quote(str(path))}?{mode}"
    database = sqlite3.connect(address, timeout=MOST_BUSY, uri=True, check_same_thread=False, isolation_level=None)
    try:
        database.execute("PRAGMA query_only = 1")
        database.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        database.close()
        raise
    return database


def check_version(database: sqlite3.Connection, path: str | Path, folder: str) -> None:
    """Refuse a file that was written by a newer version."""
    if version_of(database) > newest(folder):
        raise InputError(f"{path}: this file was written by a newer version of eligo (upgrade eligo)")


def version_of(database: sqlite3.Connection) -> int:
    """The number of the last step that was applied to a file."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def steps_after(folder: str, version: int) -> Iterator[tuple[int, str]]:
    """The numbered upgrade steps after a version, each as a text of SQL statements."""
    return ((number, file.read_text("utf-8")) for number, file in sorted(_steps(folder).items()) if number > version)


def newest(folder: str) -> int:
    """The number of the last upgrade step."""
    return max(_steps(folder))


def _steps(folder: str) -> dict[int, Path]:
    return {int(file.name.partition("_")[0]): file for file in Path(__file__).with_name(folder).glob("*.sql")}


def make_private(path: str) -> None:
    """Create an empty file that only its user can read; an existing file is not changed."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def locked(path: str, refusal: str) -> int:
    """Lock a file until the returned descriptor is closed or the process ends; raises if another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    for wait in (*LOCK_RETRIES, None):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if wait is not None:
                time.sleep(wait)
    os.close(descriptor)
    raise InputError(refusal)


def is_locked(path: str) -> bool:
    """Whether a process holds a lock file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def added_names(additions: Sequence[tuple[Any, Any, Any]]) -> list[str]:
    """The names of added tasks, in the order of their numbers."""
    return [name for tasks, *_ in additions for name in tasks]


def packed_addition(
    tasks: tuple[str, ...], arcs: tuple[tuple[int, int], ...], details: tuple[Mapping[str, object], ...] = ()
) -> tuple[str, bytes]:
    """An addition as stored: the rows of its tasks as JSON, or their names if there are no rows, and its arcs as bytes.

    >>> unpacked_addition(*packed_addition(("x", "y"), ((0, 7), (7, 8))))
    (('x', 'y'), ((0, 7), (7, 8)), ())
    """
    return json.dumps(details or tasks), array("i", chain.from_iterable(arcs)).tobytes()


def unpacked_addition(tasks: str, arcs: bytes) -> Added:
    """The addition that `packed_addition` packed."""
    rows, ends = json.loads(tasks), array("i", arcs).tolist()
    names = tuple(row if isinstance(row, str) else row["name"] for row in rows)
    details = tuple(row for row in rows if isinstance(row, dict))
    return names, tuple(zip(ends[0::2], ends[1::2], strict=True)), details


def unpacked_numbers(points: bytes) -> "array[int]":
    """Numbers that are stored as 8 bytes each."""
    numbers = array("q")
    numbers.frombytes(points)
    return numbers
