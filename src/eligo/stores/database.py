"""The database of a run: opened, brought up to date, and refused in one sentence where it is damaged."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from eligo.errors import EligoError, InputError
from eligo.formats.shared.seals import CURE, ROWS, all_rows, check_structure, kept_seals, seal

VERSION = 3
MOST_BUSY = 30.0  # seconds that a reader or writer waits for another
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


def stock_of(path: str) -> Stock:
    """Read everything once, so that nothing is believed of a damaged file, by a connection that leaves it as it is."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return Stock({})
    with closing(connected(path)) as database:
        if _is_empty(database):  # whoever made it was stopped before anything was in it
            return Stock({})
        rows, _ = all_rows(database)
        check_structure(database)
    moves = sum(len(packed) for _, packed in rows["journal"]) // 8
    return Stock(dict(rows["fact"]), moves, len(rows["addition"]), rows["attempt"][-1][0] if rows["attempt"] else 0)


def _is_empty(database: sqlite3.Connection) -> bool:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return not version and database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def connected(path: str | Path, how: str = "mode=ro") -> sqlite3.Connection:
    """A connection that cannot write."""
    database = sqlite3.connect(f"file:{quote(str(path))}?{how}", timeout=MOST_BUSY, uri=True)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise InputError(f"{path}: this run was made by a newer eligo")
    except BaseException:
        database.close()
        raise
    return database


def opened(path: str) -> sqlite3.Connection:
    """The database, made where it is not there yet, and brought up to date."""
    database = sqlite3.connect(path, timeout=MOST_BUSY, check_same_thread=False)
    try:
        _bring_up_to_date(database)
    except BaseException:
        database.close()
        raise
    return database


def _bring_up_to_date(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version < VERSION:
        sealed = kept_seals(database) is not None  # then a version below that is damage, which the check sums tell
        database.executescript(f"BEGIN; {_schema()}")
        if not sealed:
            seals = ((table, seal(database.execute(rows))) for table, rows in ROWS.items())
            database.executemany("INSERT INTO seal VALUES (?, ?)", list(seals))
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.commit()


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with the file of a run is said in one sentence, with its name and what can be done."""
    try:
        yield
    except InputError:
        raise
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in NO_ACCESS:
            raise InputError(f"{path}: no run can be opened here: {error}") from None
        raise damage(path, error) from error
    except (EligoError, sqlite3.Error, ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise damage(path, error) from error


def damage(path: str | Path, why: object) -> InputError:
    """That the file of a run is damaged, and how."""
    return InputError(f"{path}: this is no run, or it is damaged ({why}): {CURE}")


@contextmanager
def writable(path: str) -> Iterator[None]:
    """A file that cannot be written is told in one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be written: {error}") from None


def _schema() -> str:
    return files("eligo.stores").joinpath("runs.sql").read_text("utf-8")
