"""Check sums of a run's database: wrong rows that SQLite takes for right ones are found before anything believes them.

Every table has one, over its rows in order, so a row that is missing or out of place changes it as a changed row does. For
rows that only ever follow others, the check sum is continued and not computed anew.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from eligo.stores.database import version_of
from eligo.work.attempts import answer_to

#: the tables that are sealed, with their columns; the first one orders the rows
COLUMNS = {
    "fact": "name, value",
    "task": "number, name, digest",
    "journal": "first, moves",
    "addition": "number, tasks, arcs",
    "attempt": "number, task, attempt, client, began, ended, answer, failure, code, memory",
    "session": "number, began, ended, policy, workers, engine",
    "curve": "name, points",
}
SEALED_SINCE = 3  # the version of the schema; older runs have no check sums until they are continued
#: attempts had other columns before this version
ATTEMPTS_SINCE, ATTEMPTS_BEFORE = 4, "number, task, client, began, ended, failure, code, memory, lost"
CURE = "restore a copy, or delete its folder to start over"

Row = tuple[Any, ...]


def seal(rows: Iterable[Sequence[Any]], before: int = 0) -> int:
    """The check sum of rows behind others whose check sum was *before*.

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
    """The check sums of a run; None where it is older than they are."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'seal'").fetchone():
        return dict(database.execute("SELECT name, value FROM seal"))
    if version_of(database) >= SEALED_SINCE:
        raise sqlite3.DatabaseError("the checksums are missing")
    return None


def select(
    database: sqlite3.Connection, table: str, after: int | None = None, *, version: int = ATTEMPTS_SINCE
) -> sqlite3.Cursor:
    """The rows of a table in order, as a version keeps them; where *after* is given, only those behind it."""
    columns = ATTEMPTS_BEFORE if table == "attempt" and version < ATTEMPTS_SINCE else COLUMNS[table]
    key, behind = columns.partition(",")[0], () if after is None else (after,)
    where = f" WHERE {key} > ?" if behind else ""
    return database.execute(f"SELECT {columns} FROM {table}{where} ORDER BY {key}", behind)  # noqa: S608 - our own words


def read_rows(database: sqlite3.Connection, table: str, seals: dict[str, int] | None) -> list[Row]:
    """The rows of a table; `sqlite3.DatabaseError` where they are not what was written."""
    version = version_of(database)
    rows = select(database, table, version=version).fetchall()
    if seals is not None and seals.get(table) != seal(rows):
        raise sqlite3.DatabaseError(f"the checksum of table {table!r} is wrong")
    return upgraded_attempts(rows) if table == "attempt" and version < ATTEMPTS_SINCE else rows


def upgraded_attempts(rows: Iterable[Row]) -> list[Row]:
    """Attempts of an older run as they are kept now.

    >>> upgraded_attempts([(1, 7, "slot 1", 2.0, 1.0, "stopped", -15, None, 1), (2, 7, "slot 1", 3.0, 4.0, None, 0, 9, 0)])
    [(1, 7, 1, 'slot 1', 2.0, 2.0, 'expired', 'stopped', -15, None), (2, 7, 2, 'slot 1', 3.0, 4.0, 'accepted', None, 0, 9)]
    """
    counts, upgraded = Counter[int](), list[Row]()
    for number, task, client, began, ended, failure, code, memory, lost in rows:
        counts[task] += 1
        span = began, max(began, ended)  # clocks on walls are set back at times
        upgraded.append((number, task, counts[task], client, *span, answer_to(failure, lost), failure, code, memory))
    return upgraded


def check_structure(database: sqlite3.Connection) -> None:
    """`sqlite3.DatabaseError` where SQLite itself finds something wrong."""
    (status,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if status != "ok":
        raise sqlite3.DatabaseError(status)


def all_rows(database: sqlite3.Connection) -> tuple[dict[str, list[Row]], dict[str, int] | None]:
    """The rows of every table, as of one moment, and the check sums; an older run has neither these nor every table."""
    seals, tables = kept_seals(database), set(COLUMNS)
    if seals is None:
        tables &= {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if "fact" not in tables:
            raise sqlite3.DatabaseError("no such table: fact")
        check_structure(database)
    return {table: read_rows(database, table, seals) if table in tables else [] for table in COLUMNS}, seals
