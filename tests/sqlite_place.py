"""A folder in which stores in SQLite can be made."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from eligo.stores.database import newest
from eligo.stores.service_sqlite import STEPS, SqliteServiceStore

#: a step that takes some tenths of a second
EXTRA = """
CREATE TABLE extra_1 (n INTEGER);
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 1500000) INSERT INTO extra_1 SELECT n FROM t;
CREATE TABLE extra_2 (n INTEGER);
INSERT INTO extra_2 SELECT n FROM extra_1;
"""
LAST = newest(STEPS)
MIGRATING = """
from eligo.stores import database as home
from eligo.stores.service_sqlite import SqliteServiceStore
real = home.steps_after
home.steps_after = lambda folder, version: [*real(folder, version), *([({last} + 1, {extra!r})] if version <= {last} else [])]
home.newest = lambda folder: {last} + 1
print("begins", flush=True)
store = SqliteServiceStore({path!r})
print(store.facts()["n"], flush=True)
"""


@dataclass(frozen=True)
class SqlitePlace:
    """A place for a file."""

    folder: Path
    name: str = "server.db"
    _numbers = count()

    @property
    def where(self) -> str:
        return str(self.folder / self.name)

    def open(self, address: str = "http://a") -> SqliteServiceStore:
        return SqliteServiceStore(self.where, address)

    def another(self) -> "SqlitePlace":
        return SqlitePlace(self.folder, f"other {next(self._numbers)}.db")

    def make_newer(self) -> None:
        with closing(sqlite3.connect(self.where)) as database:
            database.execute("PRAGMA user_version = 99")

    def restored(self, copy: Path) -> "SqlitePlace":
        return SqlitePlace(copy.parent, copy.name)

    def migrating(self) -> str:
        return MIGRATING.format(extra=EXTRA, path=self.where, last=LAST)

    def has_extra(self) -> bool:
        with closing(sqlite3.connect(self.where)) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'extra%'").fetchone()
        assert (version, tables) in {(LAST, 0), (LAST + 1, 2)}
        return bool(version > LAST)
