"""Runs as displays see them: the run in a folder, read from its store, and the run of this process, read from memory."""

import json
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from threading import Thread

import numpy as np
from numpy.typing import NDArray

from eligo.additions import LiveWorkflow
from eligo.errors import InputError
from eligo.execution import ALLOCATED, FAILED, HELD, Execution
from eligo.names import Name
from eligo.pages.watched import MOST_TAIL, RECENT, Watched, Worker
from eligo.running.commands import Commands
from eligo.running.folder import LOGS, read_kept
from eligo.running.location import STATE
from eligo.running.loop import Runner
from eligo.running.states import Curve, Trying, cut_off_tasks
from eligo.stores import Attempt, Kept, Session, read_news, read_run, readable, under_way
from eligo.work.attempts import ACCEPTED
from eligo.workflow import Workflow


class WatchedRun(Watched):
    """A run; `renew` takes in what is new. Nothing is written, and another process may be at the run."""

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
        self.at, self.moves, self._curves = at, stored.moves, stored.curves
        self.facts, self.sessions, self._position = stored.facts, stored.sessions, stored.position
        self.id = self.title = self._title()
        self._take(stored.attempts)
        with readable(self._path):
            self._learn()

    def _title(self) -> str:
        """What to call it: the workflow's name, or that of its file, or of the folder."""
        return self.flow.name or os.path.basename(self.facts.get("file", "")) or self.folder.name

    def renew(self) -> "WatchedRun":
        """The run as it is now: this one, or another where it was begun anew with another workflow."""
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
        self._learn()
        return self

    def _take(self, attempts: Sequence[Attempt]) -> None:
        """Attempts have ended; those at tasks that the workflow has no longer are left out."""
        self.attempts.add(one for one in attempts if one.task < len(self.flow))

    def _learn(self) -> None:
        """What runs now, and what is tried again: as the run told last, up to a second ago."""
        self.policy = self.sessions[-1].policy if self.sessions else "finish"
        running, again = _present(self.facts, self.execution)
        self.trying, self.again, self.cut_off = (running, again, {}) if self.under_way else ({}, {}, running)

    # See `Watched` for these

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        points = self._curves.get(name)
        if points is None or self.execution.additions:  # the plan was one of what there was at the beginning
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
            return "running"
        if self.execution.finished:
            return "done"
        return "failed" if self.failed and self.execution.stuck else "stopped"

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
        """See `Watched`: all who did anything, and those of whom nothing was seen yet."""
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

    @property
    def present(self) -> int:
        """See `Watched`: as many as tasks can run at a time, whether all of them were needed yet or not."""
        return self.sessions[-1].workers if self.under_way and self.sessions else 0

    @property
    def worker_seconds(self) -> float:
        """See `Watched`: of every session, its workers for as long as it went on."""
        spans = zip(self.sessions, self.spans, strict=True)
        return sum(session.workers * (end - begin) for session, (begin, end) in spans)

    def log(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`: also while it runs, where it prints elsewhere."""
        commands = Commands(self.flow, "", str(self.folder / LOGS))
        path = commands.log(self.flow.dag.tasks[v], attempt)[err]
        now = self.trying.get(v) or self.cut_off.get(v)
        if now is None or now.attempt != attempt or os.path.exists(path):
            return path
        return str(self.folder / LOGS / "running" / f"{now.client.replace(' ', '-')}.{'err' if err else 'out'}")

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
        if under_way(folder / STATE):  # whoever begins it has not written all of it yet
            raise InputError(f"{folder}: this run is just starting: try again in a moment") from None
        raise


def _execution_of(flow: Workflow, stored: Kept, going: bool) -> Execution:
    """The execution so far; one that goes on is followed as it is, with moves that belong to the next ones."""
    if not going:
        return Execution.replay(flow, stored.moves, stored.additions)
    execution = Execution(flow)
    execution.follow(stored.moves, stored.additions)
    return execution


def _present(facts: Mapping[str, str], execution: Execution) -> tuple[dict[int, Trying], dict[int, float]]:
    """What runs just now, and what is tried again when, as a run told last: a second may pass before it is seen here."""
    present = json.loads(facts.get("present", "{}"))
    running = (Trying(*row) for row in present.get("running", ()))
    trying = {one.task: one for one in running if execution.codes[one.task] in {ALLOCATED, HELD}}
    return trying, {int(task): float(due) for task, due in present.get("again", ())}


def _spans(sessions: Sequence[Session], ends: NDArray[np.float64], at: float, going: bool) -> list[tuple[float, float]]:
    """From when to when somebody was at a run whose attempts ended then: a pair a session."""
    spans = []
    for place, session in enumerate(sessions):
        later = [following.began for following in sessions[place + 1 :]]
        until = session.ended
        if until is None:  # it goes on, or was killed: then what ended last tells until when it lived
            within = ends[(ends >= session.began) & (ends <= min(later, default=at))]
            until = at if going and not later else float(within.max(initial=session.began))
        spans.append((session.began, max(until, session.began)))
    return spans


def looked_at(folder: str | Path, before: WatchedRun | None = None) -> WatchedRun:
    """The run in a folder as it is now, ready to be shown; *before* is what was seen of it last."""
    run = WatchedRun(folder) if before is None else before.renew()
    if run is not before:
        run.prepare()
    if run.forecast_due:
        run.foresight()()
    return run


# The run of this process


SHORTEST = 0.5  # seconds that tell anything of a rate


class WatchedProcess(Watched):
    """A run as it goes on; `look` is cheap, and is called as often as somebody wants to see it."""

    source, id, status = "run", "run", "running"

    def __init__(self, flow: Workflow, runner: Runner, workers: int, plan: Sequence[int] = ()) -> None:
        super().__init__(flow)
        self.runner, self._workers, self._plan = runner, workers, plan
        self.execution, self.policy, self.under_way = runner.execution, "", True
        self.title, self._began = flow.name or self.id, self.at
        self._begin = time.monotonic()
        self._due = self.at + SHORTEST
        self._rates: deque[tuple[float, int]] = deque([(self._begin, len(self.execution.executed))])
        self._reported = 0
        self.look()

    def look(self) -> None:
        """See where it stands now."""
        if len(self.flow) < len(self.execution.graph):
            self.grow()
        now = time.monotonic()
        self.at = self._began + now - self._begin
        self._rates.append((now, len(self.execution.executed)))
        while now - self._rates[0][0] > RECENT and len(self._rates) > 2:
            self._rates.popleft()
        self._learn()
        if self.forecast_due:
            Thread(target=self.foresight(), daemon=True).start()  # of many tasks this takes a while

    def _learn(self) -> None:
        """What runs, what is tried again, and how long those took that are done since."""
        runner, number = self.runner, self.execution.graph.number
        self.trying = {
            lease.task: Trying(lease.task, lease.attempt, lease.client, job.since)
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
        """The tasks that failed for good since this was asked last, and why."""
        new = [
            (task, str(ending.attempt.failure))
            for task, ending in islice(self.runner.failures.items(), self._reported, None)
        ]
        self._reported += len(new)
        return new

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
        """See `Watched`: nobody asks for them by name."""
        return ()

    @property
    def present(self) -> int:
        """See `Watched`."""
        return self._workers

    @property
    def rate(self) -> float:
        """See `Watched`: by what was seen, however many tasks were done between two looks."""
        (first, before), (last, now) = self._rates[0], self._rates[-1]
        return (now - before) / (last - first) if last - first >= SHORTEST else 0.0

    def printed(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`: whoever wants to see that looks at the run's folder."""
        return ""
