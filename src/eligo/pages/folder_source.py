"""Runs as displays see them: the run in a folder, read from its store, and the run of this process, read from memory."""

import json
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.additions import LiveWorkflow
from eligo.engines import Ending
from eligo.engines.output import slot_output
from eligo.errors import InputError
from eligo.execution import ALLOCATED, FAILED, HELD, Execution
from eligo.names import Name
from eligo.pages.watched import MOST_TAIL, RECENT, Watched, Worker
from eligo.running.commands import Commands
from eligo.running.folder import LOGS, STATE, read_kept
from eligo.running.loop import Runner
from eligo.running.states import Curve, cut_off_tasks
from eligo.space.disk_use import DiskUse, disk_use
from eligo.stores import Attempt, Kept, Session, read_news, read_run, readable, under_way
from eligo.work.attempts import ACCEPTED, CACHE, Lease
from eligo.workflow import Workflow


class WatchedRun(Watched):
    """The run in a folder; `renew` reads what is new. It only reads, and another process may be running it."""

    source = "run"

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._path = self.folder / STATE
        if not self._path.is_file():
            raise InputError(f"{self.folder}: no run in this folder")
        at, self.under_way = time.time(), under_way(self._path)
        stored = read_run(self._path)
        flow = _workflow(self.folder, stored)
        with readable(self._path):
            self.execution = _execution_of(flow, stored, self.under_way)
        super().__init__(LiveWorkflow(flow, self.execution).flow)
        self.at, self._curves = at, stored.curves
        self.facts, self.sessions, self._position = stored.facts, stored.sessions, stored.position
        self.id = self.title = self._title()
        self._take(stored.attempts)
        self._files = stored.files
        with readable(self._path):
            self._learn()

    def _title(self) -> str:
        """The title: the name of the workflow, of its file, or of the folder."""
        return self.flow.name or os.path.basename(self.facts.get("file", "")) or self.folder.name

    def renew(self) -> "WatchedRun":
        """The current run: this object updated, or another one if the run was started again with another workflow."""
        news = read_news(self._path, self._position)
        if news is None or len(news.sessions) != len(self.sessions):
            return WatchedRun(self.folder)
        self.at, self.under_way = time.time(), under_way(self._path)
        self.facts, self.sessions, self._position = news.facts, news.sessions, news.position
        try:
            self.execution.follow(news.moves)
        except InputError:
            return WatchedRun(self.folder)
        self._take(news.attempts)
        self._files += news.files
        self._learn()
        return self

    def _take(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts that have ended, except those at tasks that the workflow no longer has."""
        self.attempts.add(one for one in attempts if one.task < len(self.flow))

    def _learn(self) -> None:
        """Read the running tasks and the retries, as the run last reported them, up to a second ago."""
        self.policy = self.sessions[-1].policy if self.sessions else "finish"
        self._now = json.loads(self.facts.get("present", "{}"))
        running, again = _present(self._now, self.execution)
        self.trying, self.again, self.cut_off = (running, again, {}) if self.under_way else ({}, {}, running)

    # See `Watched` for these

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        points = self._curves.get(name)
        if points is None or self.execution.additions:  # the plan covers only the original tasks
            return None
        return np.array(points, np.int64)

    @property
    def interrupted(self) -> list[int]:
        """See `Looked`."""
        return cut_off_tasks(self)

    @property
    def status(self) -> str:
        """See `Watched`."""
        if self.under_way:
            return "held" if self._now.get("state") == "held" else "running"
        if self.execution.finished:
            return "done"
        return "failed" if self.failed and self.execution.stuck else "stopped"

    @property
    def disk(self) -> DiskUse | None:
        """See `Watched`."""
        return disk_use(self.flow, self._files) if self._files else None

    @property
    def engine(self) -> str | None:
        """See `Watched`."""
        return self.sessions[-1].engine if self.sessions else None

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        """See `Watched`."""
        return _spans(self.sessions, self.attempts.rows["ended"], self.at, self.under_way)

    @property
    def workers(self) -> Sequence[Worker]:
        """See `Watched`: all workers with attempts, and those that have started their first."""
        last, attempts = self.sessions[-1] if self.sessions else None, self.attempts
        began = last.began if last is not None else 0.0
        busy = {one.client for one in self.trying.values()}
        names = {*attempts.clients, *busy}
        latest = dict(zip(attempts.clients, attempts.latest, strict=True))
        return [
            Worker(
                client,
                client,
                self.at if client in busy else latest.get(client, began),
                self.under_way and (client in busy or latest.get(client, 0.0) >= began),
            )
            for client in sorted(names, key=lambda client: (len(client), client))
        ]

    def may(self, who: str, scopes: frozenset[str]) -> dict[str, bool]:
        """See `Watched`: what the run itself can do while it runs."""
        owner = "submit" in scopes and self.under_way
        return super().may(who, scopes) | {
            "cancel": owner, "pause": owner, "workers": owner, "retry": owner and bool(self.failed),
            "release": owner and bool(self.trying),
        }  # fmt: skip

    @property
    def present(self) -> int:
        """See `Watched`: the number of tasks that can run at the same time, including workers that had no task yet."""
        if not (self.under_way and self.sessions):
            return 0
        return int(self._now.get("workers", self.sessions[-1].workers))

    @property
    def slots(self) -> int | None:
        """See `Watched`."""
        return min((session.workers for session in self.sessions), default=None)

    @property
    def crews(self) -> Sequence[tuple[float, float, int]]:
        """See `Watched`."""
        spans = zip(self.sessions, self.spans, strict=True)
        return [(begin, end, session.workers) for session, (begin, end) in spans]

    def presence(self, begin: float, end: float) -> dict[str, float]:
        """See `Watched`: the workers were present in all sessions."""
        names = {*self.attempts.clients, *(one.client for one in self.trying.values())}
        return dict.fromkeys(names, sum(self._overlaps(begin, end)))

    def worker_seconds(self, begin: float, end: float, lanes: Mapping[str, int]) -> float:
        """See `Watched`: the workers of every session, including those without tasks."""
        overlaps = zip(self.sessions, self._overlaps(begin, end), strict=True)
        return sum(session.workers * seconds for session, seconds in overlaps)

    def _overlaps(self, begin: float, end: float) -> list[float]:
        """The seconds of each session between two times."""
        return [max(0.0, min(last, end) - max(first, begin)) for first, last in self.spans]

    @property
    def cache_client(self) -> int:
        """See `Watched`."""
        clients = self.attempts.clients
        return clients.index(CACHE) if CACHE in clients else -1

    def log(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`: the output of a running attempt is in another file."""
        commands = Commands(self.flow, "", str(self.folder / LOGS))
        path = commands.log(self.flow.dag.tasks[v], attempt)[err]
        now = self.trying.get(v) or self.cut_off.get(v)
        if now is None or now.attempt != attempt or os.path.exists(path):
            return path
        return slot_output(str(self.folder / LOGS), now.client, "err" if err else "out")

    def printed(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`."""
        path = self.log(v, attempt, err)
        try:
            with open(path, "rb") as file:
                file.seek(max(0, os.path.getsize(path) - MOST_TAIL))
                return file.read(MOST_TAIL).decode("utf-8", "replace")
        except OSError:
            return ""


def _workflow(folder: Path, stored: Kept) -> Workflow:
    try:
        return read_kept(folder, stored.facts, stored.tasks)
    except InputError:
        if under_way(folder / STATE):  # the process that starts it has not written everything yet
            raise InputError(f"{folder}: this run is just starting: try again in a moment") from None
        raise


def _execution_of(flow: Workflow, stored: Kept, going: bool) -> Execution:
    """The execution so far; that of a run under way is followed as it is, without repairs of a cut journal."""
    if not going:
        return Execution.replay(flow, stored.moves, stored.additions)
    execution = Execution(flow)
    execution.follow(stored.moves, stored.additions)
    return execution


def _present(present: Mapping[str, Any], execution: Execution) -> tuple[dict[int, Lease], dict[int, float]]:
    """The running tasks, and the times of retries, as a run last reported them: up to a second ago."""
    rows = present.get("running", ())
    running = (Lease("", 0, task, attempt, client, "", "", 0, since) for task, attempt, client, since in rows)
    trying = {one.task: one for one in running if execution.codes[one.task] in {ALLOCATED, HELD}}
    return trying, {int(task): float(due) for task, due in present.get("again", ())}


def _spans(sessions: Sequence[Session], ends: NDArray[np.float64], at: float, going: bool) -> list[tuple[float, float]]:
    """The begin and end of every session of a run; *ends* are those of its attempts."""
    spans = []
    for place, session in enumerate(sessions):
        later = [following.began for following in sessions[place + 1 :]]
        until = session.ended
        if until is None:  # it is running, or was killed after the last attempt that ended
            within = ends[(ends >= session.began) & (ends <= min(later, default=at))]
            until = at if going and not later else float(within.max(initial=session.began))
        spans.append((session.began, max(until, session.began)))
    return spans


def looked_at(folder: str | Path, before: WatchedRun | None = None) -> WatchedRun:
    """The current run in a folder, ready to be shown; *before* is the result of the previous call."""
    run = WatchedRun(folder) if before is None else before.renew()
    if run is not before:
        run.prepare()
    if run.forecast_due:
        run.foresight()()
    return run


# The run of this process


SHORTEST = 0.5  # seconds; no rate is computed over a shorter time
FIRST_WAIT = 0.1  # seconds for which a display waits for the first forecast


class WatchedProcess(Watched):
    """The run of this process; `look` is cheap enough for every update of a display."""

    source, id = "run", "run"

    def __init__(self, flow: Workflow, runner: Runner, plan: Sequence[int] = ()) -> None:
        super().__init__(flow)
        self.runner, self._plan = runner, plan
        self.execution, self.policy, self.under_way = runner.execution, "", True
        self.title, self._began = flow.name or self.id, self.at
        self._begin = time.monotonic()
        self._due = self.at + SHORTEST
        self._rates: deque[tuple[float, int]] = deque([(self._begin, len(self.execution.executed))])
        self._reported = set[tuple[Name, int]]()  # the tasks and attempts of reported failures
        self.look()

    def look(self) -> None:
        """Read the current state."""
        if len(self.flow) < len(self.execution.graph):
            self.grow()
        now = time.monotonic()
        self.at = self._began + now - self._begin
        self._rates.append((now, len(self.execution.executed)))
        while now - self._rates[0][0] > RECENT and len(self._rates) > 2:
            self._rates.popleft()
        self._learn()
        if self.forecast_due:
            thread = Thread(target=self.foresight(), daemon=True)  # this is slow for many tasks
            thread.start()
            thread.join(0.0 if self.remaining else FIRST_WAIT)

    def _learn(self) -> None:
        """Read the running tasks, the retries, and the durations of tasks that are done since."""
        runner, number = self.runner, self.execution.graph.number
        self.trying = {
            lease.task: lease._replace(since=job.since)
            for job in runner.running.values()
            for lease in job.leases[job.ended : job.ended + 1]
        }
        self.again = {v: self.at for v in self.execution.numbers(FAILED) if v not in runner.tries.causes}
        took = [runner.took.popleft() for _ in range(len(runner.took))]
        first = len(self.attempts)
        self.attempts.add(
            Attempt("", place, number(task), 1, "", "", self.at - seconds, self.at, ACCEPTED)
            for place, (task, seconds) in enumerate(took, first)
        )

    def new_failures(self) -> list[tuple[Name, str]]:
        """The tasks that failed permanently since the last call, and why."""
        new = list(takewhile(self._is_new, reversed(self.runner.failures.items())))[::-1]
        self._reported.update((task, ending.attempt.attempt) for task, ending in new)
        return [(task, str(ending.attempt.failure)) for task, ending in new]

    def _is_new(self, failure: tuple[Name, Ending]) -> bool:
        return (failure[0], failure[1].attempt.attempt) not in self._reported

    # See `Watched` for these

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        return np.array(self._plan, np.int64) if name == "plan" and len(self._plan) else None

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        """See `Watched`."""
        return [(self._began, self.at)]

    @property
    def workers(self) -> Sequence[Worker]:
        """See `Watched`: the display of a run does not list workers."""
        return ()

    @property
    def status(self) -> str:
        """See `Watched`."""
        return "held" if self.runner.state == "held" else "running"

    @property
    def present(self) -> int:
        """See `Watched`."""
        return self.runner.settings.slots

    @property
    def from_cache(self) -> int:
        """See `Watched`."""
        return self.runner.from_cache

    @property
    def rate(self) -> float:
        """See `Watched`: measured between calls of `look`."""
        (first, before), (last, now) = self._rates[0], self._rates[-1]
        return (now - before) / (last - first) if last - first >= SHORTEST else 0.0

    def printed(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`: displays of this process show no output; it is in the run's folder."""
        return ""
