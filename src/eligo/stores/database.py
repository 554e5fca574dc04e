"""SQLite files: opened, locked, and brought up to date by numbered steps, for runs and servers alike."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import quote

from eligo.errors import InputError

MOST_BUSY = 30.0  # seconds that a reader or writer waits for another
LOCK_RETRIES = (0.01, 0.05, 0.1)  # seconds until a lock is tried again: `is_locked` also holds it for a moment


def open_writer(
    path: str, steps: str, finish: Callable[[sqlite3.Connection], None] = lambda database: None
) -> sqlite3.Connection:
    """The connection that writes a file, which is created or brought up to date; *finish* ends that transaction.

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
    """Apply the steps that a file lacks, all or none of them."""
    check_version(database, path, folder)
    steps = list(steps_after(folder, version_of(database)))
    if steps:
        database.executescript(f"BEGIN IMMEDIATE; {''.join(text for _, text in steps)}")
        finish(database)
        database.execute(f"PRAGMA user_version = {steps[-1][0]}")
        database.execute("COMMIT")


def open_reader(path: str | Path, mode: str = "mode=ro") -> sqlite3.Connection:
    """A connection that never writes, nor moves the log into the file."""
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
    """Refuse a file that a newer version made."""
    if version_of(database) > newest(folder):
        raise InputError(f"{path}: this file was written by a newer version of eligo (upgrade eligo)")


def version_of(database: sqlite3.Connection) -> int:
    """The number of the last step that was applied to a file."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def steps_after(folder: str, version: int) -> Iterator[tuple[int, str]]:
    """The numbered steps, each a text of statements, that bring a database from a version to the present one."""
    return ((number, file.read_text("utf-8")) for number, file in sorted(_steps(folder).items()) if number > version)


def newest(folder: str) -> int:
    """The number of the last step."""
    return max(_steps(folder))


def _steps(folder: str) -> dict[int, Traversable]:
    names = ((file.name, file) for file in files("eligo.stores").joinpath(folder).iterdir())
    return {int(name.partition("_")[0]): file for name, file in names if name.endswith(".sql")}


def make_private(path: str) -> None:
    """Make an empty file that only its user can read, unless there is a file already, which stays as it is."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def locked(path: str, refusal: str) -> int:
    """Hold a lock file as long as the process lives; raises if another process holds it."""
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
