"""Check sums of a run's database: wrong rows that SQLite takes for right ones are found before anything believes them.

Every table has one, over its rows in order, so a row that is missing or out of place changes it as a changed row does. For
rows that only ever follow others, the check sum is continued and not computed anew.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

#: the tables that are sealed, and how their rows are read
ROWS = {
    "fact": "SELECT name, value FROM fact ORDER BY name",
    "task": "SELECT number, name, digest FROM task ORDER BY number",
    "journal": "SELECT first, moves FROM journal ORDER BY first",
    "addition": "SELECT number, tasks, arcs FROM addition ORDER BY number",
    "attempt": "SELECT number, task, client, began, ended, failure, code, memory, lost FROM attempt ORDER BY number",
    "session": "SELECT number, began, ended, policy, workers, engine FROM session ORDER BY number",
    "curve": "SELECT name, points FROM curve ORDER BY name",
}
SEALED_SINCE = 3  # the version of the schema; older runs have no check sums until they are continued
CURE = "restore a copy of it, or delete its folder to begin anew"

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


def kept_seals(database: sqlite3.Connection) -> dict[str, int] | None:
    """The check sums of a run; None where it is older than they are."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'seal'").fetchone():
        return dict(database.execute("SELECT name, value FROM seal"))
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version >= SEALED_SINCE:
        raise sqlite3.DatabaseError("its check sums are missing")
    return None


def read_rows(database: sqlite3.Connection, table: str, seals: dict[str, int] | None) -> list[Row]:
    """The rows of a table; `sqlite3.DatabaseError` where they are not what was written."""
    rows = database.execute(ROWS[table]).fetchall()
    if seals is not None and seals.get(table) != seal(rows):
        raise sqlite3.DatabaseError(f"the check sum of its table {table!r} is wrong")
    return rows


def check_structure(database: sqlite3.Connection) -> None:
    """`sqlite3.DatabaseError` where SQLite itself finds something wrong."""
    (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)


def all_rows(database: sqlite3.Connection) -> tuple[dict[str, list[Row]], dict[str, int] | None]:
    """The rows of every table, as of one moment, and the check sums; an older run has neither these nor every table."""
    if not database.in_transaction:
        database.execute("BEGIN")
    seals, tables = kept_seals(database), set(ROWS)
    if seals is None:
        tables &= {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if "fact" not in tables:
            raise sqlite3.DatabaseError("no such table: fact")
        check_structure(database)
    return {table: read_rows(database, table, seals) if table in tables else [] for table in ROWS}, seals
