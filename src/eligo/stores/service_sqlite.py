"""A server's store in one SQLite file: one process, one writer (WAL, synchronous=FULL), and a connection that only looks."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from eligo.errors import InputError
from eligo.stores.database import check_version, locked, make_private, open_reader, open_writer
from eligo.stores.service import Changes
from eligo.stores.service_sql import KEEPING, ServiceStore, to_keep

STEPS = "sqlite_steps"
SHORTLY = 200  # milliseconds that somebody else's lock is waited for
STATEMENTS = {kind: keeping.statement() for kind, keeping in KEEPING.items()}
#: the first version without a fault that two connections which write at once can hit (sqlite.org/wal.html#walresetbug)
SOUND = (3, 51, 3)
OLD = (
    "SQLite {} has a bug that 3.51.3 fixes: your data is safe as long as no other program writes to the server's database"
    " (eligo backup is safe)"
)
#: what no second try would cure
REFUSED = (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError, OverflowError)


class SqliteServiceStore(ServiceStore):
    """A server's state in a file; a second server on it is refused, so this one holds every workflow, at its *address*."""

    shared = False

    def __init__(self, path: str | Path, address: str = "") -> None:
        self.path, self.address = str(path), address
        self.remark = None if sqlite3.sqlite_version_info >= SOUND else OLD.format(sqlite3.sqlite_version)
        with ExitStack() as opened:
            try:
                make_private(f"{self.path}.lock")
                self._lock = locked(f"{self.path}.lock", f"{self.path}: another server is using this file")
                opened.callback(os.close, self._lock)
                make_private(self.path)  # SQLite gives its log and its index the mode of the file
                self._writing = opened.enter_context(closing(_opened(self.path)))
                self._reading = opened.enter_context(closing(open_reader(self.path)))
            except (sqlite3.Error, OSError) as error:
                raise InputError(f"{self.path}: cannot be used as the store of a server: {error}") from None
            self._open = opened.pop_all()
        self._looks = threading.Lock()

    def prepare(self, changes: Sequence[Changes]) -> None:
        """All but the wait for the disk, which is the only thing that is worth a thread here."""
        with self._undone_on_error() as database:
            database.execute("BEGIN IMMEDIATE")
            for kind, rows in to_keep(changes):
                database.executemany(STATEMENTS[kind], map(tuple, rows))  # rows with names take it longer to read

    def finish(self) -> None:
        """Commit, and wait for the disk."""
        with self._undone_on_error() as database:
            database.execute("COMMIT")

    @contextmanager
    def _undone_on_error(self) -> Iterator[sqlite3.Connection]:
        """The connection that writes; where something goes wrong, nothing of it is kept."""
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

    def hold(self, workflow: str) -> int | None:
        """1: it is held already."""
        return 1

    def keep_holding(self, seconds: float) -> set[str]:
        """Every workflow: nothing has to be extended."""
        return set(self.holders())

    def unheld(self) -> list[str]:
        """None: this server holds all."""
        return []

    def let_go(self) -> None:
        """Nothing to do: the lock goes with the process."""

    def holders(self) -> dict[str, str]:
        """This server's address for every workflow."""
        return {workflow: self.address for (workflow,) in self._rows("SELECT id FROM workflow")}

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        try:
            with self._looks:
                return self._reading.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path}: cannot be read: {error}") from error

    def backup(self, path: str | Path) -> None:
        """Copy the file as of one moment."""
        back_up(self.path, path)

    def close(self) -> None:
        """Close its connections, and unlock the file."""
        self._open.close()


def back_up(path: str | Path, copy: str | Path) -> None:
    """Copy a server's file as of one moment, also while a server uses it; an existing copy is never overwritten."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such store")
    if Path(copy).exists():
        raise InputError(f"{copy}: file already exists")
    part = f"{copy}.part"
    Path(part).unlink(missing_ok=True)
    try:
        make_private(part)
        with closing(open_reader(path)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)  # in one go: what is written between two steps would begin it anew
        os.replace(part, copy)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{copy}: cannot write the copy: {error}") from None


def _opened(path: str) -> sqlite3.Connection:
    """The connection that writes, and alone moves the log into the file."""
    check_file(path)
    database = open_writer(path, STEPS)
    try:
        database.execute("DELETE FROM document_part WHERE workflow NOT IN (SELECT id FROM workflow)")
        database.execute(f"PRAGMA busy_timeout = {SHORTLY}")  # from now on the server itself tries again
    except BaseException:
        database.close()
        raise
    return database


def check_file(path: str) -> None:
    """Refuse a file that a server cannot use; nothing of it is changed."""
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
