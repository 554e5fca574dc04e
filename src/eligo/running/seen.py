"""A run as it is seen from outside: where every task stands, what was tried when, and what came of it.

Nothing is written, and another process may be at the run: what is read is as of one moment.
"""

import json
import os
import time
from array import array
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError
from eligo.execution import ALLOCATED, COMPLETE, EXECUTED, FAIL, HELD, RELEASE, Execution, unpacked
from eligo.running.commands import Commands
from eligo.running.folder import KEPT, LOGS, STATE
from eligo.running.looked import Curve, Looked, Trying
from eligo.stores import Attempt, Session, read_run, under_way
from eligo.theory.eligibility import eligible_counts
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
        self._under_way = under_way(self.folder / STATE)
        self._kept = read_run(self.folder / STATE)
        self.flow = _workflow(self.folder)
        if self.flow.dag.labels != self._kept.tasks:
            raise InputError(f"{self.folder}: this run is only beginning: look again in a moment")
        self.execution = Execution.replay(self.flow, self._kept.moves)

    @property
    def facts(self) -> dict[str, str]:
        """What is known of the run, by name."""
        return self._kept.facts

    @property
    def moves(self) -> "array[int]":
        """Every move that was made."""
        return self._kept.moves

    @property
    def sessions(self) -> list[Session]:
        """Every time that it was begun or gone on with."""
        return self._kept.sessions

    @property
    def under_way(self) -> bool:
        """Whether some process is at it."""
        return self._under_way

    @property
    def policy(self) -> str:
        """Which ready task goes next: the last time that it was gone on with."""
        return self.sessions[-1].policy if self.sessions else "finish"

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

    @cached_property
    def _present(self) -> dict[str, list[list[Any]]]:
        told: dict[str, list[list[Any]]] = json.loads(self.facts.get("present", "{}")) if self.under_way else {}
        return told

    @cached_property
    def trying(self) -> dict[int, Trying]:
        """What runs just now, by task; nothing where nobody is at the run. A second may pass before it is seen here."""
        told = (Trying(*row) for row in self._present.get("running", ()))
        return {trying.task: trying for trying in told if self.execution.codes[trying.task] in {ALLOCATED, HELD}}

    @cached_property
    def again(self) -> dict[int, float]:
        """The tasks that failed and are tried again, with the time when."""
        return {int(task): float(due) for task, due in self._present.get("again", ())}

    def failure(self, v: int) -> str:
        """See `Looked`."""
        tried = self.tried.get(v, [])
        return (tried[-1].failure if tried else None) or "it failed"

    # When

    @cached_property
    def spans(self) -> list[tuple[float, float]]:
        """From when to when somebody was at the run, a pair a session."""
        ends = [attempt.ended for attempt in self.attempts]
        found = []
        for place, session in enumerate(self.sessions):
            later = [following.began for following in self.sessions[place + 1 :]]
            until = session.ended
            if until is None:  # it goes on, or was killed: then what ended last tells until when it lived
                limit = min(later, default=self.at)
                known = max((end for end in ends if session.began <= end <= limit), default=session.began)
                until = self.at if self.under_way and not later else known
            found.append((session.began, max(until, session.began)))
        return found

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
        dag, done = self.flow.dag, list(self.execution.numbers(EXECUTED))
        rest = np.setdiff1d(np.arange(len(dag)), done)
        rank = np.empty(len(dag), np.int64)
        rank[dag.order] = np.arange(len(dag))
        order = np.concatenate([np.array(done, np.int64), rest[np.argsort(rank[rest])]]).astype(np.int32)
        return eligible_counts(dag, order)[: len(done) + 1] - self._set_aside()

    def _set_aside(self) -> Curve:
        """Just after each task that was done, how many had failed and were not to be tried just then."""
        found, failed = [0], set[int]()
        for kind, v in unpacked(self._kept.moves):
            if kind == COMPLETE:
                found.append(len(failed))
            elif kind == FAIL:
                failed.add(v)
            elif kind == RELEASE:
                failed.discard(v)
        return np.array(found, np.int64)

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        found = self._kept.curves.get(name)
        return None if found is None else np.array(found, np.int64)

    # What tasks printed

    def log(self, v: int, attempt: int, err: bool = False) -> str:
        """Where what an attempt printed is, or would be: also while it runs."""
        commands = Commands(self.flow, "", str(self.folder / LOGS))
        kept = commands.log(self.flow.dag.tasks[v], attempt)[err]
        now = self.trying.get(v)
        if now is None or now.attempt != attempt or os.path.exists(kept):
            return kept
        return str(self.folder / LOGS / "running" / f"{now.client.replace(' ', '-')}.{'err' if err else 'out'}")

    def last_lines(self, v: int, attempt: int, most: int = 10) -> list[str]:
        """The last lines that an attempt printed: on standard error, or where that is empty on standard output."""
        for err in (True, False):
            lines = tail(self.log(v, attempt, err), most)
            if lines:
                return lines
        return []


def tail(path: str, most: int) -> list[str]:
    """The last lines of a file that are not empty; none where there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL))
            text = file.read(TAIL).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.replace("\r", "\n").split("\n") if line.strip()][-most:]


def _workflow(folder: Path) -> Workflow:
    from eligo.formats import read

    return read(str(folder / KEPT), "json")
