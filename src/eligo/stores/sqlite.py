"""A run in one SQLite file: one writer, in a thread of its own, that commits whatever has come together meanwhile.

What was committed survives the death of the process and of the machine (WAL, synchronous=FULL). A second writer is refused;
readers may come at any time.
"""

import fcntl
import os
import sqlite3
import threading
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from eligo.errors import InputError

VERSION = 1
MOST_BUSY = 30.0  # seconds that a reader or writer waits for another
LINGER = 0.05  # seconds in which moves come together: each transaction costs as much as a task


class Attempt(NamedTuple):
    """One attempt at a task: its number in the run, who made it, when, and what came of it."""

    number: int
    task: int
    client: str
    began: float
    ended: float
    failure: str | None
    code: int | None
    memory: int | None
    lost: int


class Store:
    """The file of a run that is under way; `add` and `journal` return at once, `flush` once all is on the disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = _locked(self.path + ".lock")
        self._database = _opened(self.path)
        self._moves, self._first = array("q"), self._count()
        self._attempts: list[Attempt] = []
        (self._last,) = self._database.execute("SELECT coalesce(max(number), 0) FROM attempt").fetchone()
        self._wanted = threading.Condition()
        self._hurry = threading.Event()  # somebody waits for what is not kept yet
        self._closing, self._busy = False, False
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._write, name="eligo store", daemon=True)
        self._thread.start()

    # What the run is of

    def facts(self) -> dict[str, str]:
        """What is known of the run, by name."""
        return dict(self._database.execute("SELECT name, value FROM fact"))

    def remember(self, **facts: str) -> None:
        """Keep what is known of the run."""
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts.items())

    def tasks(self) -> dict[str, bytes]:
        """The tasks that the journal speaks of, in the order of their numbers, each with its digest."""
        return dict(self._database.execute("SELECT name, digest FROM task ORDER BY number"))

    def begin(self, tasks: Mapping[str, bytes], moves: Sequence[int] = ()) -> None:
        """Begin a journal of these tasks anew, with moves that were made already; attempts are kept."""
        with self._database as database:
            old = {name: number for number, name in database.execute("SELECT number, name FROM task")}
            moved = ((old[name], number) for number, name in enumerate(tasks) if name in old)
            database.execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER)")
            database.executemany("INSERT INTO moved VALUES (?, ?)", moved)
            renumbered = "coalesce((SELECT new FROM moved WHERE old = task), ?)"  # what is gone is behind the last one
            database.execute(f"UPDATE attempt SET task = {renumbered}", (len(tasks),))  # noqa: S608 - our own words
            database.execute("DROP TABLE moved")
            database.execute("DELETE FROM task")
            rows = ((number, name, digest) for number, (name, digest) in enumerate(tasks.items()))
            database.executemany("INSERT INTO task VALUES (?, ?, ?)", rows)
            database.execute("DELETE FROM journal")
            packed = array("q", moves)
            if packed:
                database.execute("INSERT INTO journal VALUES (0, ?)", (packed.tobytes(),))
        self._first = len(moves)

    # What comes of it

    @property
    def kept(self) -> int:
        """How many moves were handed in."""
        return self._first + len(self._moves)

    def moves(self) -> "array[int]":
        """Every move that was kept."""
        found = array("q")
        for (packed,) in self._database.execute("SELECT moves FROM journal ORDER BY first"):
            found.frombytes(packed)
        return found

    def attempts(self) -> Iterator[Attempt]:
        """Every attempt that was kept, in order."""
        for row in self._database.execute("SELECT * FROM attempt ORDER BY number"):
            yield Attempt._make(row)

    def attempted(self) -> Iterator[int]:
        """The task of every attempt, by number."""
        return (number for (number,) in self._database.execute("SELECT task FROM attempt"))

    def add(self, moves: Sequence[int], attempts: Sequence[Attempt] = ()) -> None:
        """Keep moves and attempts, soon; a disk that cannot is told by `error` and by `flush`."""
        with self._wanted:
            self._moves.extend(moves)
            self._attempts.extend(attempts)
            self._wanted.notify()

    def next_attempt(self) -> int:
        """A number for an attempt, larger than all before."""
        self._last += 1
        return int(self._last)

    def flush(self) -> None:
        """Wait until all is kept."""
        self._hurry.set()
        with self._wanted:
            self._wanted.wait_for(lambda: self.error or not (self._moves or self._attempts or self._busy))
        self._hurry.clear()
        if self.error is not None:
            raise InputError(f"{self.path}: cannot be written: {self.error}")

    def close(self) -> None:
        """Keep what is left, and let go of the file."""
        with self._wanted:
            self._closing = True
            self._hurry.set()
            self._wanted.notify()
        self._thread.join()
        self._database.close()
        os.close(self._lock)

    def _count(self) -> int:
        found = self._database.execute("SELECT first, length(moves) / 8 FROM journal ORDER BY first DESC LIMIT 1")
        first, count = found.fetchone() or (0, 0)
        return int(first + count)

    def _write(self) -> None:
        """The writer: whatever has come together goes into one transaction."""
        while True:
            with self._wanted:
                self._busy = False
                self._wanted.notify_all()
                self._wanted.wait_for(lambda: self._moves or self._attempts or self._closing)
            self._hurry.wait(LINGER)
            with self._wanted:
                moves, attempts = self._moves, self._attempts
                if not (moves or attempts):
                    return
                self._moves, self._attempts, self._busy = array("q"), [], True
            try:
                self._keep(moves, attempts)
            except Exception as error:  # whatever it is: those who wait must hear of it
                with self._wanted:
                    self.error = error
                    self._wanted.notify_all()
                return

    def _keep(self, moves: "array[int]", attempts: list[Attempt]) -> None:
        with self._database as database:
            if moves:
                database.execute("INSERT INTO journal VALUES (?, ?)", (self._first, moves.tobytes()))
            database.executemany("INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", attempts)
        self._first += len(moves)


def read_facts(path: str | Path) -> dict[str, str]:
    """What is known of a run, whoever writes it now."""
    with closing(reading(path)) as database:
        return dict(database.execute("SELECT name, value FROM fact"))


def reading(path: str | Path) -> sqlite3.Connection:
    """A run that is only looked at."""
    try:
        database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", timeout=MOST_BUSY, uri=True)
        database.execute("SELECT count(*) FROM fact")
    except sqlite3.Error as error:
        raise InputError(f"{path}: this is no run: {error}") from None
    return database


def _opened(path: str) -> sqlite3.Connection:
    """The database, made where it is not there yet."""
    try:
        database = sqlite3.connect(path, timeout=MOST_BUSY, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            database.executescript(f"BEGIN; {_schema()} PRAGMA user_version = {VERSION}; COMMIT;")
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: this is no run, or cannot be written: {error}") from None
    if version > VERSION:
        raise InputError(f"{path}: this run was made by a newer eligo")
    return database


def _schema() -> str:
    return files("eligo.stores").joinpath("runs.sql").read_text("utf-8")


def _locked(path: str) -> int:
    """Hold a lock file as long as the process lives; whoever comes second is refused."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(f"{path.removesuffix('.lock')}: this run is under way already, in another process") from None
    return descriptor
