"""The writer of a run's SQLite file: a thread that commits everything that was queued meanwhile in one transaction.

Committed data survives a crash of the process or the machine (WAL, synchronous=FULL); queued moves and attempts survive one
of the process (`eligo.stores.tail`). A second writer is refused; readers may read at any time. Every table has a checksum,
and a file with a wrong one is refused.
"""

import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eligo.errors import InputError, shorten
from eligo.stores.database import (
    Added,
    added_names,
    locked,
    open_writer,
    packed_addition,
    unpacked_addition,
    unpacked_numbers,
)
from eligo.stores.run_reader import COLUMNS, STEPS, Row, kept_seals, readable, seal, seal_all, select, stock_of
from eligo.stores.tail import Extent, Tail
from eligo.work.attempts import Attempt
from eligo.work.files import FileChange

LINGER = 0.05  # seconds in which moves are collected: each transaction costs as much as a task
GONE = 2**31 - 1  # the number for tasks that the workflow no longer has; no added task gets it
INSERT_FILE = f"INSERT INTO file ({COLUMNS['file']}) VALUES (?, ?, ?, ?)"  # noqa: S608 - our own words
INSERT_ATTEMPT = f"INSERT INTO attempt ({COLUMNS['attempt']}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own words


@dataclass
class Queue:
    """What is queued for the next transaction."""

    moves: "array[int]" = field(default_factory=lambda: array("q"))
    additions: list[Added] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    files: list[FileChange] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.moves or self.attempts or self.files or self.notes)


class Store:
    """The file of a run that is being executed; `add` and `note` return at once, `flush` when everything is on disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = locked(f"{self.path}.lock", f"{self.path}: another process is already executing this run")
        try:
            with readable(self.path):
                stock = stock_of(self.path)
                self._database = open_writer(self.path, STEPS, seal_all)
                self._seals = kept_seals(self._database) or {}
                self._tail = Tail(self.path)
        except BaseException:
            os.close(self._lock)
            raise
        self._facts, self._first, self._grown, self._last, self._last_file = stock
        self._writing = threading.Lock()
        self._queue = Queue()
        self._noted: dict[str, str] = {}
        self._session, self._opened_at = 0, (0.0, 0.0)
        self._wanted = threading.Condition()
        self._hurry = threading.Event()  # `flush` or `close` waits for queued data
        self._closing, self._busy = False, False
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._write, name="eligo store", daemon=True)
        self._thread.start()
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    def _recover(self) -> None:
        """Write what a killed process had queued."""
        (session,) = self._database.execute("SELECT coalesce(max(number), 0) FROM session").fetchone()
        self._extent = Extent(session, self._first, self._last, self._last_file)
        for moves, attempts, files in list(self._tail.behind(self._extent)):
            self.add(moves, attempts, files=files)
        if self._queue:
            self.flush()

    @contextmanager
    def _transaction(self) -> Iterator[dict[str, int]]:
        """One transaction, which includes the checksums of the tables that it changes."""
        with self._writing:
            seals = dict(self._seals)
            with self._database as database:
                database.execute("BEGIN IMMEDIATE")
                yield seals
                changed = seals.items() - self._seals.items()
                database.executemany("INSERT OR REPLACE INTO seal VALUES (?, ?)", changed)
            self._seals = seals

    def _sealed_anew(self, *tables: str) -> dict[str, int]:
        return {table: seal(self._rows(table)) for table in tables}

    def _rows(self, table: str) -> sqlite3.Cursor:
        return select(self._database, table)

    # Facts, sessions and tasks

    def facts(self) -> dict[str, str]:
        """The facts of the run, by name."""
        return dict(self._facts)

    def remember(self, **facts: str) -> None:
        """Store facts of the run, before this returns."""
        with writable(self.path), self._transaction() as seals:
            self._database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts.items())
            seals.update(self._sealed_anew("fact"))
        self._facts |= facts

    def note(self, name: str, value: str) -> None:
        """Queue a changing fact of the run for writing, unless it is unchanged."""
        with self._wanted:
            if self._noted.get(name) != value:
                self._noted[name] = self._queue.notes[name] = value
                self._wanted.notify()

    def open_session(self, policy: str, workers: int, engine: str) -> None:
        """Record that the run starts or resumes now; `close` records the end."""
        self._opened_at = (time.time(), time.monotonic())
        with writable(self.path), self._transaction() as seals:
            cursor = self._database.execute(
                "INSERT INTO session (began, policy, workers, engine) VALUES (?, ?, ?, ?)",
                (self._opened_at[0], policy, workers, engine),
            )
            self._database.execute("DELETE FROM fact WHERE name = 'present'")
            seals.update(self._sealed_anew("session", "fact"))
        self._facts.pop("present", None)
        self._session = cursor.lastrowid or 0
        self._extent = self._extent._replace(session=self._session)

    def curves(self) -> "dict[str, array[int]]":
        """The order and curves of the plan, by name."""
        return {name: unpacked_numbers(points) for name, points in self._database.execute("SELECT * FROM curve")}

    def keep_curves(self, **curves: Sequence[int]) -> None:
        """Store the order and curves of the plan; `begin` deletes them."""
        with writable(self.path), self._transaction() as seals:
            packed = ((name, array("q", points).tobytes()) for name, points in curves.items())
            self._database.executemany("INSERT OR REPLACE INTO curve VALUES (?, ?)", packed)
            seals.update(self._sealed_anew("curve"))

    def tasks(self) -> dict[str, bytes]:
        """The tasks of the journal in the order of their numbers, each with its digest."""
        return dict(self._database.execute("SELECT name, digest FROM task ORDER BY number"))

    def begin(
        self, tasks: Mapping[str, bytes], moves: Sequence[int] = (), additions: Sequence[tuple[Any, Any, Any]] = ()
    ) -> None:
        """Start a new journal of these tasks with the moves and additions so far; attempts are kept."""
        self._tail.clear()  # its numbers are those of the journal until now
        with writable(self.path), self._transaction() as seals:
            database = self._database
            grown = [(number, *packed_addition(*added)) for number, added in enumerate(additions)]
            old = {name: number for number, name in enumerate((*self.tasks(), *added_names(self.additions())))}
            new = enumerate((*tasks, *added_names(additions)))
            moved = [(old[name], number) for number, name in new if name in old]
            database.execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER)")
            database.executemany("INSERT INTO moved VALUES (?, ?)", moved)
            renumbered = "coalesce((SELECT new FROM moved WHERE old = task), ?)"
            database.execute(f"UPDATE attempt SET task = {renumbered}", (GONE,))  # noqa: S608 - our own words
            database.execute("DROP TABLE moved")
            database.execute("DELETE FROM task")
            database.execute("DELETE FROM curve")
            rows = ((number, name, digest) for number, (name, digest) in enumerate(tasks.items()))
            database.executemany("INSERT INTO task VALUES (?, ?, ?)", rows)
            database.execute("DELETE FROM journal")
            database.execute("DELETE FROM addition")
            database.executemany("INSERT INTO addition VALUES (?, ?, ?)", grown)
            packed = array("q", moves)
            if packed:
                database.execute("INSERT INTO journal VALUES (0, ?)", (packed.tobytes(),))
            seals.update(self._sealed_anew("task", "curve", "journal", "addition", "attempt"))
        self._first, self._grown = len(moves), len(grown)
        self._extent = self._extent._replace(moves=self._first)

    # Moves and attempts

    @property
    def kept(self) -> int:
        """The number of moves, including queued ones."""
        return self._first + len(self._queue.moves)

    def moves(self) -> "array[int]":
        """Every stored move."""
        return unpacked_numbers(b"".join(moves for _, moves in self._rows("journal")))

    @property
    def grown(self) -> int:
        """The number of additions, including queued ones."""
        return int(self._grown) + len(self._queue.additions)

    def additions(self) -> list[Added]:
        """The tasks that were added to the workflow, in order."""
        return [unpacked_addition(*row) for _, *row in self._rows("addition")]

    def attempted(self) -> Iterator[int]:
        """The number of the task of every attempt."""
        return (number for (number,) in self._database.execute("SELECT task FROM attempt"))

    def failed_attempts(self, after: int = 0) -> Iterator[tuple[int, str, str]]:
        """The task, the answer and the message of every failed attempt whose number is greater than *after*, in order."""
        where = "WHERE failure IS NOT NULL AND number > ? ORDER BY number"
        return iter(self._database.execute(f"SELECT task, answer, failure FROM attempt {where}", (after,)))  # noqa: S608

    def failing(self) -> list[int]:
        """The numbers of the tasks whose last attempt failed."""
        failed, ended_well = (f"max(CASE WHEN failure IS {word} THEN number END)" for word in ("NOT NULL", "NULL"))
        having = f"{failed} > coalesce({ended_well}, 0)"
        rows = self._database.execute(f"SELECT task FROM attempt GROUP BY task HAVING {having}")  # noqa: S608 - our own words
        return [number for (number,) in rows]

    @property
    def began(self) -> float:
        """The start of the first session; infinity if there was none."""
        (began,) = self._database.execute("SELECT min(began) FROM session").fetchone()
        return float("inf") if began is None else began

    def killed_sessions(self) -> list[tuple[float, float]]:
        """The start of each session without an end, and the start of the next one; infinity if there is none."""
        later = "(SELECT min(later.began) FROM session AS later WHERE later.number > session.number)"
        rows = self._database.execute(f"SELECT began, {later} FROM session WHERE ended IS NULL")  # noqa: S608 - our own words
        return [(began, float("inf") if until is None else until) for began, until in rows]

    def files(self) -> list[FileChange]:
        """What happened to the output files of the run."""
        return [FileChange._make(row[1:]) for row in self._rows("file")]

    def add(
        self,
        moves: Sequence[int],
        attempts: Sequence[Attempt] = (),
        additions: Sequence[tuple[Any, Any, Any]] = (),
        files: Sequence[FileChange] = (),
    ) -> None:
        """Queue moves, attempts, additions and changes of files for writing; `error` and `flush` report write errors.

        Attempts get their numbers when they are written.
        """
        for name in (name for tasks, *_ in additions for name in tasks):
            if not isinstance(name, str):
                raise InputError(f"the name of an added task must be a string, got {shorten(repr(name))}")
        with self._wanted:
            if not additions:  # `flush` follows additions at once
                self._tail.append(self._extent, moves, attempts, files)
            self._extent = self._extent.behind(moves, attempts, files)
            self._queue.moves.extend(moves)
            self._queue.attempts.extend(attempts)
            self._queue.additions.extend(additions)
            self._queue.files.extend(files)
            self._wanted.notify()

    def flush(self) -> None:
        """Wait until everything queued is on disk."""
        self._hurry.set()
        with self._wanted:
            self._wanted.wait_for(lambda: self.error or not (self._queue or self._busy))
        self._hurry.clear()
        if self.error is not None:
            raise InputError(f"{self.path}: cannot be written: {self.error}")

    def close(self) -> None:
        """Write what is queued and close the file."""
        with self._wanted:
            self._closing = True
            self._hurry.set()
            self._wanted.notify()
        self._thread.join()
        with suppress(sqlite3.Error):  # such as of a full disk, which `flush` has reported
            self._end_session()
        self._database.close()
        if self.error is None:
            self._tail.close()
        os.close(self._lock)

    def _end_session(self) -> None:
        began, ticks = self._opened_at
        ended = max(time.time(), began + time.monotonic() - ticks)  # the wall clock may have been set back
        with self._transaction() as seals:
            self._database.execute("UPDATE session SET ended = ? WHERE number = ?", (ended, self._session))
            seals.update(self._sealed_anew("session"))

    def _write(self) -> None:
        """The thread that writes everything queued, one transaction after another."""
        while True:
            with self._wanted:
                self._busy = False
                self._wanted.notify_all()
                self._wanted.wait_for(lambda: self._queue or self._closing)
            self._hurry.wait(LINGER)
            with self._wanted:
                if not self._queue:
                    return
                queue, self._queue, self._busy = self._queue, Queue(), True
                self._tail.turn()
            try:
                self._keep(queue)
            except Exception as error:  # any error must reach the threads that wait in `flush`
                with self._wanted:
                    self.error = error
                    self._wanted.notify_all()
                return

    def _keep(self, queue: Queue) -> None:
        rows: dict[str, list[Row]] = {
            "journal": [(self._first, queue.moves.tobytes())] if queue.moves else [],
            "addition": [
                (number, *packed_addition(*added)) for number, added in enumerate(queue.additions, self._grown)
            ],
            "attempt": [_row(*each) for each in enumerate(queue.attempts, self._last + 1)],
            "file": [(number, *change) for number, change in enumerate(queue.files, self._last_file + 1)],
        }
        with self._transaction() as seals:
            database = self._database
            database.executemany("INSERT INTO journal VALUES (?, ?)", rows["journal"])
            database.executemany("INSERT INTO addition VALUES (?, ?, ?)", rows["addition"])
            database.executemany(INSERT_ATTEMPT, rows["attempt"])
            database.executemany(INSERT_FILE, rows["file"])
            database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", queue.notes.items())
            for table, added in rows.items():
                seals[table] = seal(added, seals[table])
            seals.update(self._sealed_anew("fact") if queue.notes else {})
        self._first += len(queue.moves)
        self._grown += len(rows["addition"])
        self._last += len(rows["attempt"])
        self._last_file += len(rows["file"])
        self._facts |= queue.notes


def _row(number: int, attempt: Attempt) -> Row:
    """The row of an attempt; if the clock was set back meanwhile, it ends when it began."""
    task, count, client, _, began, ended, answer, failure, code, memory = attempt[2:12]
    return (
        number, int(task), int(count), client, float(began), float(max(began, ended)), answer, failure,
        None if code is None else int(code), None if memory is None else int(memory),
    )  # fmt: skip


@contextmanager
def writable(path: str) -> Iterator[None]:
    """Turn write errors into an InputError."""
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be written: {error}") from None
