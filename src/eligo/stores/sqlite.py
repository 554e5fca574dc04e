"""A run in one SQLite file: one writer, in a thread of its own, that commits whatever has come together meanwhile.

What was committed survives the death of the process and of the machine (WAL, synchronous=FULL). A second writer is refused;
readers may come at any time.
"""

import fcntl
import json
import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from eligo.errors import InputError, shorten

VERSION = 2
MOVES_KEPT = "SELECT moves FROM journal ORDER BY first"
ADDITIONS_KEPT = "SELECT tasks, arcs FROM addition ORDER BY number"
ATTEMPTS_KEPT = "SELECT * FROM attempt ORDER BY number"
MOST_BUSY = 30.0  # seconds that a reader or writer waits for another
LOOKED_AT = (0.01, 0.05, 0.1)  # seconds after which a lock is tried again: whoever looks whether it is held has it too
LINGER = 0.05  # seconds in which moves come together: each transaction costs as much as a task


#: what was added to a workflow at once: names, and arcs by number
Added = tuple[tuple[str, ...], tuple[tuple[int, int], ...]]


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
    """The file of a run that is under way; `add` and `note` return at once, `flush` once all is on the disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = locked(f"{self.path}.lock", f"{self.path}: this run is under way already, in another process")
        self._database = _opened(self.path)
        self._moves, self._first = array("q"), self._count()
        self._additions: list[Added] = []
        (self._grown,) = self._database.execute("SELECT count(*) FROM addition").fetchone()
        self._attempts: list[Attempt] = []
        self._notes: dict[str, str] = {}
        self._noted: dict[str, str] = {}
        self._session = 0
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

    def note(self, name: str, value: str) -> None:
        """Keep what is known of the run just now, soon, where it is not what was noted before."""
        with self._wanted:
            if self._noted.get(name) != value:
                self._noted[name] = self._notes[name] = value
                self._wanted.notify()

    def open_session(self, policy: str, workers: int, engine: str) -> None:
        """Keep that it is begun, or gone on with, now; `close` keeps when that ended."""
        with self._database as database:
            found = database.execute(
                "INSERT INTO session (began, policy, workers, engine) VALUES (?, ?, ?, ?)",
                (time.time(), policy, workers, engine),
            )
            database.execute("DELETE FROM fact WHERE name = 'present'")
        self._session = found.lastrowid or 0

    def curves(self) -> "dict[str, array[int]]":
        """What is kept of the plan, by name."""
        return {name: unpacked_numbers(points) for name, points in self._database.execute("SELECT * FROM curve")}

    def keep_curves(self, **curves: Sequence[int]) -> None:
        """Keep the plan's order and curves, as long as the tasks are these."""
        with self._database as database:
            packed = ((name, array("q", points).tobytes()) for name, points in curves.items())
            database.executemany("INSERT OR REPLACE INTO curve VALUES (?, ?)", packed)

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
            database.execute("DELETE FROM curve")
            rows = ((number, name, digest) for number, (name, digest) in enumerate(tasks.items()))
            database.executemany("INSERT INTO task VALUES (?, ?, ?)", rows)
            database.execute("DELETE FROM journal")
            database.execute("DELETE FROM addition")
            packed = array("q", moves)
            if packed:
                database.execute("INSERT INTO journal VALUES (0, ?)", (packed.tobytes(),))
        self._first, self._grown = len(moves), 0

    # What comes of it

    @property
    def kept(self) -> int:
        """How many moves were handed in."""
        return self._first + len(self._moves)

    def moves(self) -> "array[int]":
        """Every move that was kept."""
        return unpacked_numbers(b"".join(row for (row,) in self._database.execute(MOVES_KEPT)))

    @property
    def grown(self) -> int:
        """How many additions were handed in."""
        return int(self._grown) + len(self._additions)

    def additions(self) -> list[Added]:
        """Everything that was added to the workflow, of which the moves speak, in order."""
        return [unpacked_addition(*row) for row in self._database.execute(ADDITIONS_KEPT)]

    def attempts(self) -> Iterator[Attempt]:
        """Every attempt that was kept, in order."""
        for row in self._database.execute(ATTEMPTS_KEPT):
            yield Attempt._make(row)

    def attempted(self) -> Iterator[int]:
        """The task of every attempt, by number."""
        return (number for (number,) in self._database.execute("SELECT task FROM attempt"))

    def failing(self) -> list[int]:
        """The tasks of which the last attempt failed, by number."""
        failed, ended_well = (f"max(CASE WHEN failure IS {word} THEN number END)" for word in ("NOT NULL", "NULL"))
        having = f"{failed} > coalesce({ended_well}, 0)"
        rows = self._database.execute(f"SELECT task FROM attempt GROUP BY task HAVING {having}")  # noqa: S608 - our own words
        return [number for (number,) in rows]

    def killed_sessions(self) -> list[tuple[float, float]]:
        """When each session that has no end began, and when the next one did; infinity where there is none."""
        later = "(SELECT min(later.began) FROM session AS later WHERE later.number > session.number)"
        rows = self._database.execute(f"SELECT began, {later} FROM session WHERE ended IS NULL")  # noqa: S608 - our own words
        return [(began, float("inf") if until is None else until) for began, until in rows]

    def add(
        self, moves: Sequence[int], attempts: Sequence[Attempt] = (), additions: Sequence[tuple[Any, Any]] = ()
    ) -> None:
        """Keep moves and attempts, and what was added, soon; a disk that cannot is told by `error` and by `flush`."""
        for name in (name for tasks, _ in additions for name in tasks):
            if not isinstance(name, str):
                raise InputError(
                    f"a task that is added to a run is called by a text, and {shorten(repr(name))} is none"
                )
        with self._wanted:
            self._moves.extend(moves)
            self._attempts.extend(attempts)
            self._additions.extend(additions)
            self._wanted.notify()

    def next_attempt(self) -> int:
        """A number for an attempt, larger than all before."""
        self._last += 1
        return int(self._last)

    def flush(self) -> None:
        """Wait until all is kept."""
        self._hurry.set()
        with self._wanted:
            self._wanted.wait_for(lambda: self.error or not (self._waiting() or self._busy))
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
        with suppress(sqlite3.Error):  # a full disk was told of already
            self._end_session()
        self._database.close()
        os.close(self._lock)

    def _end_session(self) -> None:
        with self._database as database:
            database.execute("UPDATE session SET ended = ? WHERE number = ?", (time.time(), self._session))

    def _waiting(self) -> bool:
        return bool(self._moves or self._attempts or self._notes)

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
                self._wanted.wait_for(lambda: self._waiting() or self._closing)
            self._hurry.wait(LINGER)
            with self._wanted:
                if not self._waiting():
                    return
                moves, attempts, notes, additions = self._moves, self._attempts, self._notes, self._additions
                self._moves, self._attempts, self._notes, self._additions, self._busy = array("q"), [], {}, [], True
            try:
                self._keep(moves, attempts, notes, additions)
            except Exception as error:  # whatever it is: those who wait must hear of it
                with self._wanted:
                    self.error = error
                    self._wanted.notify_all()
                return

    def _keep(
        self, moves: "array[int]", attempts: list[Attempt], notes: dict[str, str], additions: list[Added]
    ) -> None:
        rows = [(number, *packed_addition(*added)) for number, added in enumerate(additions, self._grown)]
        with self._database as database:
            if moves:
                database.execute("INSERT INTO journal VALUES (?, ?)", (self._first, moves.tobytes()))
            database.executemany("INSERT INTO addition VALUES (?, ?, ?)", rows)
            database.executemany("INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", attempts)
            database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", notes.items())
        self._first += len(moves)
        self._grown += len(rows)


def packed_addition(tasks: tuple[str, ...], arcs: tuple[tuple[int, int], ...]) -> tuple[str, bytes]:
    """What was added, as it is kept.

    >>> unpacked_addition(*packed_addition(("x", "y"), ((0, 7), (7, 8))))
    (('x', 'y'), ((0, 7), (7, 8)))
    """
    return json.dumps(tasks), array("i", chain.from_iterable(arcs)).tobytes()


def unpacked_addition(tasks: str, arcs: bytes) -> Added:
    """The same as it was."""
    ends = array("i", arcs).tolist()
    return tuple(json.loads(tasks)), tuple(zip(ends[0::2], ends[1::2], strict=True))


def unpacked_numbers(points: bytes) -> "array[int]":
    """Numbers of 8 bytes, as they are kept."""
    found = array("q")
    found.frombytes(points)
    return found


def _opened(path: str) -> sqlite3.Connection:
    """The database, made where it is not there yet."""
    try:
        database = sqlite3.connect(path, timeout=MOST_BUSY, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version < VERSION:
            database.executescript(f"BEGIN; {_schema()} PRAGMA user_version = {VERSION}; COMMIT;")
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: this is no run, or cannot be written: {error}") from None
    if version > VERSION:
        raise InputError(f"{path}: this run was made by a newer eligo")
    return database


def _schema() -> str:
    return files("eligo.stores").joinpath("runs.sql").read_text("utf-8")


def locked(path: str, refusal: str) -> int:
    """Hold a lock file as long as the process lives; whoever comes second is refused."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    for wait in (*LOOKED_AT, None):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if wait is not None:
                time.sleep(wait)
    os.close(descriptor)
    raise InputError(refusal)
