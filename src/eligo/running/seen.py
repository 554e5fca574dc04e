"""A run as it is seen from outside: where every task stands, what was tried when, and what came of it.

Nothing is written, and another process may be at the run: what is read is as of one moment.
"""

import json
import os
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError
from eligo.execution import ALLOCATED, HELD, Execution
from eligo.running.commands import Commands
from eligo.running.curves import ReadyCurve
from eligo.running.folder import LOGS, read_kept
from eligo.running.location import STATE
from eligo.running.looked import Curve, Looked, Trying, left_behind
from eligo.stores import Attempt, Position, Session, read_run, readable, under_way
from eligo.workflow import Workflow

TAIL = 64 * 1024  # bytes of a log that are looked at for its last lines


class Seen(Looked):
    """The run in a folder, as of the moment at which this is made."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = Path(folder)
        if not (self.folder / STATE).is_file():
            raise InputError(f"{self.folder}: there is no run in this folder")
        self.at = time.time()
        self.under_way = under_way(self.folder / STATE)
        self._kept = read_run(self.folder / STATE)
        self.flow = self._workflow()
        with readable(self.folder / STATE):
            self.execution = Execution.replay(self.flow, self._kept.moves, self._kept.additions)
            running, again = present(self.facts, self.execution)
        #: what ran when the run was killed, as far as is known, by task
        self.cut_off = {} if self.under_way else running
        self.trying, self.again = (running, again) if self.under_way else ({}, {})
        self.flow = self.flow.grown(self.execution.dag)
        self.policy = policy_of(self.sessions)

    def _workflow(self) -> Workflow:
        try:
            return read_kept(self.folder, self._kept.facts, self._kept.tasks)
        except InputError:
            if under_way(self.folder / STATE):  # whoever begins it has not written all of it yet
                raise InputError(f"{self.folder}: this run is only beginning: look again in a moment") from None
            raise

    @property
    def facts(self) -> dict[str, str]:
        """What is known of the run, by name."""
        return self._kept.facts

    @property
    def moves(self) -> "array[int]":
        """Every move that was made."""
        return self._kept.moves

    @property
    def tasks(self) -> dict[str, bytes]:
        """The digest of each task that the run began with."""
        return self._kept.tasks

    @property
    def position(self) -> Position:
        """How far the store was read."""
        return self._kept.position

    @property
    def sessions(self) -> list[Session]:
        """Every time that it was begun or gone on with."""
        return self._kept.sessions

    @cached_property
    def title(self) -> str:
        """What to call it: the workflow's name, or that of its file, or of the folder."""
        return self.flow.name or os.path.basename(self.facts.get("file", "")) or self.folder.name

    @cached_property
    def attempts(self) -> list[Attempt]:
        """Every attempt that has ended, in order; those at tasks that the workflow has no longer are left out."""
        return [attempt for attempt in self._kept.attempts if attempt.task < len(self.flow)]

    @cached_property
    def tried(self) -> dict[int, list[Attempt]]:
        """The same by task."""
        found: dict[int, list[Attempt]] = {}
        for attempt in self.attempts:
            found.setdefault(attempt.task, []).append(attempt)
        return found

    def failure(self, v: int) -> str:
        """See `Looked`."""
        tried = self.tried.get(v, [])
        return (tried[-1].failure if tried else None) or "it failed"

    @property
    def interrupted(self) -> list[int]:
        """See `Looked`."""
        return left_behind(self)

    # When

    @cached_property
    def spans(self) -> list[tuple[float, float]]:
        """From when to when somebody was at the run, a pair a session."""
        ends = np.array([attempt.ended for attempt in self.attempts], np.float64)
        return spans_of(self.sessions, ends, self.at, self.under_way)

    @cached_property
    def seconds(self) -> float:
        """How long somebody was at it, in all."""
        return sum(end - begin for begin, end in self.spans)

    def moment(self, times: Iterable[float]) -> NDArray[np.float64]:
        """Times on the clock as seconds since the run began, without the breaks between its sessions."""
        asked = np.array(list(times), np.float64)
        gone = np.zeros(len(asked))
        for begin, end in self.spans:
            gone += np.clip(asked - begin, 0.0, end - begin)
        return gone

    # How many tasks were ready

    @cached_property
    def ready(self) -> Curve:
        """After each task that is done so far, how many could run then: those that ran, and those that waited to."""
        found = ReadyCurve(self.execution)
        found.follow()
        return np.array(found.counts, np.int64)

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        found = self._kept.curves.get(name)
        if found is None or self.execution.additions:  # the plan was one of what there was at the beginning
            return None
        return np.array(found, np.int64)

    # What tasks printed

    def log(self, v: int, attempt: int, err: bool = False) -> str:
        """Where what an attempt printed is, or would be: also while it runs."""
        commands = Commands(self.flow, "", str(self.folder / LOGS))
        kept = commands.log(self.flow.dag.tasks[v], attempt)[err]
        now = self.trying.get(v) or self.cut_off.get(v)
        if now is None or now.attempt != attempt or os.path.exists(kept):
            return kept
        return str(self.folder / LOGS / "running" / f"{now.client.replace(' ', '-')}.{'err' if err else 'out'}")

    def last_lines(self, v: int, attempt: int, most: int = 10) -> list[str]:
        """The last lines that an attempt printed: on standard error, or where that is empty on standard output."""
        return self.printed(v, attempt, most)[0]

    def printed(self, v: int, attempt: int, most: int = 10) -> tuple[list[str], str]:
        """The same, and the file that has them; no lines and no file where nothing was printed."""
        for err in (True, False):
            path = self.log(v, attempt, err)
            if lines := tail(path, most):
                return lines, path
        return [], ""


def policy_of(sessions: Sequence[Session]) -> str:
    """Which ready task goes next: as it was the last time that a run was gone on with."""
    return sessions[-1].policy if sessions else "finish"


def present(facts: Mapping[str, str], execution: Execution) -> tuple[dict[int, Trying], dict[int, float]]:
    """What runs just now, and what is tried again when, as a run told last: a second may pass before it is seen here."""
    told = json.loads(facts.get("present", "{}"))
    running = (Trying(*row) for row in told.get("running", ()))
    trying = {one.task: one for one in running if execution.codes[one.task] in {ALLOCATED, HELD}}
    return trying, {int(task): float(due) for task, due in told.get("again", ())}


def spans_of(
    sessions: Sequence[Session], ends: NDArray[np.float64], at: float, going: bool
) -> list[tuple[float, float]]:
    """From when to when somebody was at a run whose attempts ended then: a pair a session."""
    found = []
    for place, session in enumerate(sessions):
        later = [following.began for following in sessions[place + 1 :]]
        until = session.ended
        if until is None:  # it goes on, or was killed: then what ended last tells until when it lived
            known = ends[(ends >= session.began) & (ends <= min(later, default=at))]
            until = at if going and not later else float(known.max(initial=session.began))
        found.append((session.began, max(until, session.began)))
    return found


def tail(path: str, most: int) -> list[str]:
    """The last lines of a file that are not empty; none where there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL))
            text = file.read(TAIL).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.replace("\r", "\n").split("\n") if line.strip()][-most:]
