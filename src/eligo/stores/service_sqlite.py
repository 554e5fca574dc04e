"""A server's store by its name: an SQLite file, which this module implements, or a PostgreSQL database.

An SQLite file has one server, which writes through one connection (WAL, synchronous=FULL) and reads through another.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from eligo.errors import InputError
from eligo.stores.database import check_version, locked, make_private, open_reader, open_writer
from eligo.stores.service import Changes
from eligo.stores.service_sql import KEEPING, ServiceStore, to_keep

STEPS = "sqlite_steps"
SHORTLY = 200  # milliseconds to wait for a lock of another program
STATEMENTS = {kind: keeping.statement() for kind, keeping in KEEPING.items()}
#: the first version without a bug that affects two connections that write at once (sqlite.org/wal.html#walresetbug)
SOUND = (3, 51, 3)
OLD = (
    "SQLite {} has a bug that 3.51.3 fixes: your data is safe as long as no other program writes to the server's database"
    " (eligo backup is safe)"
)
#: errors that a retry would not cure
REFUSED = (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError, OverflowError)
SCHEMES = ("postgresql://", "postgres://")
ENDING = ".db"
WRONG_NAME = f"{{}}: the store of a server must be FILE{ENDING} or {SCHEMES[0]}USER@HOST/DATABASE"


class SqliteServiceStore(ServiceStore):
    """A server's state in a file. A second server is refused, so this one, at its *address*, holds every workflow."""

    def __init__(self, path: str | Path, address: str = "") -> None:
        self.path, self.address = str(path), address
        self.remark = None if sqlite3.sqlite_version_info >= SOUND else OLD.format(sqlite3.sqlite_version)
        with ExitStack() as opened:
            try:
                make_private(f"{self.path}.lock")
                self._lock = locked(f"{self.path}.lock", f"{self.path}: another server is using this file")
                opened.callback(os.close, self._lock)
                make_private(self.path)  # SQLite creates its log and index with the mode of the file
                self._writing = opened.enter_context(closing(_open_writer(self.path)))
                self._reading = opened.enter_context(closing(open_reader(self.path)))
            except (sqlite3.Error, OSError) as error:
                raise InputError(f"{self.path}: cannot be used as the store of a server: {error}") from None
            self._open = opened.pop_all()
        self._read_lock = threading.Lock()

    def prepare(self, changes: Sequence[Changes]) -> None:
        """Write everything in a transaction; only `finish` waits for the disk, so only it needs a thread."""
        with self._undone_on_error() as database:
            database.execute("BEGIN IMMEDIATE")
            for kind, rows in to_keep(changes):
                database.executemany(STATEMENTS[kind], map(tuple, rows))  # SQLite reads named tuples more slowly

    def finish(self) -> None:
        """Commit, which waits for the disk."""
        with self._undone_on_error() as database:
            database.execute("COMMIT")

    @contextmanager
    def _undone_on_error(self) -> Iterator[sqlite3.Connection]:
        """The writing connection; an error rolls the transaction back."""
        try:
            yield self._writing
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self._writing.in_transaction:
                    self._writing.execute("ROLLBACK")
            if isinstance(error, REFUSED):
                raise InputError(f"{self.path}: cannot be stored: {error}") from None
            if isinstance(error, sqlite3.Error):
                raise OSError(f"{self.path}: cannot be written: {error}") from error
            raise

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        try:
            with self._read_lock:
                return self._reading.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path}: cannot be read: {error}") from error

    def backup(self, path: str | Path) -> None:
        """Copy a consistent snapshot of the file."""
        back_up(self.path, path)

    def close(self) -> None:
        """Close the connections and unlock the file."""
        self._open.close()


def back_up(path: str | Path, copy: str | Path) -> None:
    """Copy a consistent snapshot of a server's file, also while a server uses it; an existing copy is never overwritten."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such store")
    if Path(copy).exists():
        raise InputError(f"{copy}: file already exists")
    part = f"{copy}.part"
    Path(part).unlink(missing_ok=True)
    try:
        make_private(part)
        with closing(open_reader(path)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)  # in one step: a write between two steps would restart the copy
        os.replace(part, copy)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{copy}: cannot write the copy: {error}") from None


def _open_writer(path: str) -> sqlite3.Connection:
    """The writing connection, the only one that moves the write-ahead log into the file."""
    check_file(path)
    database = open_writer(path, STEPS)
    try:
        database.execute("DELETE FROM document_part WHERE workflow NOT IN (SELECT id FROM workflow)")
        database.execute(f"PRAGMA busy_timeout = {SHORTLY}")  # from now on the server itself retries
    except BaseException:
        database.close()
        raise
    return database


def check_file(path: str) -> None:
    """Refuse a file that a server cannot use, without changing it."""
    try:
        with closing(open_reader(path)) as database:
            _check_is_ours(database, path)
            check_version(database, path, STEPS)
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be used as the store of a server: {error}") from None


def _check_is_ours(database: sqlite3.Connection, path: str) -> None:
    """Refuse another program's database."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "workflow" not in tables:
        raise InputError(f"{path}: this is not the store of a server")


def service_store(where: str, address: str = "") -> ServiceStore:
    """The store at `FILE.db` or `postgresql://...`, for a server with this address; see its `remark`."""
    if where.startswith(SCHEMES):
        return _postgres(where, address)
    if where.endswith(ENDING) and "://" not in where:
        return SqliteServiceStore(where, address)
    raise InputError(WRONG_NAME.format(where))


def check_store(where: str) -> None:
    """Refuse a store that a server could not use, without creating or upgrading it."""
    if where.startswith(SCHEMES):
        _postgres_module().check_reached(where)
        return
    path = Path(where)
    if not where.endswith(ENDING) or "://" in where:
        raise InputError(WRONG_NAME.format(where))
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise InputError(f"{where}: cannot be used as the store of a server: not writable")
    if path.exists():
        os.close(locked(f"{where}.lock", f"{where}: another server is using this file"))
        check_file(where)


def back_up_store(where: str, copy: str) -> None:
    """Copy a consistent snapshot of a store, also while a server uses it."""
    if where.startswith(SCHEMES):
        store = _postgres(where, "")
        try:
            store.backup(copy)
        finally:
            store.close()
    else:
        back_up(where, copy)


def _postgres(where: str, address: str) -> ServiceStore:
    store: ServiceStore = _postgres_module().PostgresServiceStore(where, address)
    return store


def _postgres_module() -> Any:
    try:
        return import_module("eligo.stores.service_postgres")
    except ImportError:
        raise InputError('PostgreSQL needs psycopg (pip install "eligo[postgres]")') from None
