"""A server's store in one SQLite file: one process, one writer (WAL, synchronous=FULL), and a connection that only looks."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eligo.errors import InputError
from eligo.stores.serving import Changes
from eligo.stores.serving_sql import SqlStore, newest, statements, steps_after
from eligo.stores.sqlite import MOST_BUSY, locked

STEPS = "sqlite_steps"


class SqliteServiceStore(SqlStore):
    """A server's state in a file; a second server on it is refused."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            self._lock = locked(f"{self.path}.lock", f"{self.path}: another server is at this file already")
            self._writing = _opened(self.path)
            self._reading = _looking(self.path)
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{self.path}: a server cannot keep its state here: {error}") from None
        self._looks = threading.Lock()

    def commit(self, changes: Sequence[Changes]) -> None:
        """See `ServiceStore`."""
        database = self._writing
        try:
            database.execute("BEGIN IMMEDIATE")
            for statement, rows in statements(changes):
                database.executemany(statement, rows)
            database.execute("COMMIT")
        except sqlite3.Error as error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise OSError(f"{self.path}: cannot be written: {error}") from error

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        with self._looks:
            return self._reading.execute(statement, values).fetchall()

    def backup(self, path: str | Path) -> None:
        """See `ServiceStore`."""
        back_up(self.path, path)

    def close(self) -> None:
        """See `ServiceStore`."""
        self._reading.close()
        self._writing.close()
        os.close(self._lock)


def back_up(path: str | Path, copy: str | Path) -> None:
    """A copy of a server's file as of one moment, also while a server is at it; what was there under its name is kept."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no server's file here")
    if Path(copy).exists():
        raise InputError(f"{copy}: this is there already")
    part = f"{copy}.part"
    Path(part).unlink(missing_ok=True)
    try:
        with closing(_looking(str(path))) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target, pages=1000, sleep=0.001)
        os.replace(part, copy)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{copy}: the copy cannot be made: {error}") from None


def _opened(path: str) -> sqlite3.Connection:
    """The connection that writes, with the database brought up to date, step after step, each whole or not at all."""
    database = sqlite3.connect(path, timeout=MOST_BUSY, check_same_thread=False, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > newest(STEPS):
        database.close()
        raise InputError(f"{path}: this server's file was made by a newer eligo")
    for number, text in steps_after(STEPS, version):
        database.executescript(f"BEGIN IMMEDIATE; {text} PRAGMA user_version = {number}; COMMIT;")
    return database


def _looking(path: str) -> sqlite3.Connection:
    """A connection that never writes, nor moves the log into the file."""
    address = f"file:{quote(path)}?mode=ro"
    database = sqlite3.connect(address, timeout=MOST_BUSY, uri=True, check_same_thread=False, isolation_level=None)
    database.execute("PRAGMA query_only = 1")
    return database
