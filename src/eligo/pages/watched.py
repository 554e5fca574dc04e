"""A workflow during its execution, as displays see it: its moves, its attempts, its workers, and a forecast."""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.estimates import Estimate, estimate
from eligo.execution import ALLOCATED, ELIGIBLE, HELD, WAITING
from eligo.pages.dag_picture import Drawn
from eligo.pages.ready_curve import ReadyCurve
from eligo.rows import Ints, places
from eligo.running.states import Curve, Forecast, Looked, TimeLeft, order_of
from eligo.space.disk_use import DiskUse
from eligo.stores import Attempt
from eligo.theory.eligibility import counts_without
from eligo.work.attempts import ACCEPTED, FAILED, LOSSES, Lease
from eligo.workflow import Workflow

# Attempts that have ended


#: the outcomes of an attempt: done, failed, lost with its worker, or no longer needed; and an attempt without one yet
WENT_WELL, WENT_WRONG, VANISHED, UNUSED, UNDERWAY = range(5)
OUTCOMES = {ACCEPTED: WENT_WELL, FAILED: WENT_WRONG, "conflict": WENT_WRONG, **dict.fromkeys(LOSSES, VANISHED)}
NOTHING = -(2**31)  # stands for no exit code, or for unknown memory
ROW = np.dtype([
    ("task", np.int32), ("attempt", np.int32), ("client", np.int32), ("outcome", np.int8), ("code", np.int64),
    ("memory", np.int64), ("began", np.float64), ("ended", np.float64),
])  # fmt: skip


def outcome_of(attempt: Attempt) -> int:
    """The outcome of an attempt, as the column has it."""
    return OUTCOMES.get(attempt.answer, UNUSED)


class Attempts:
    """Every attempt that has ended, in columns, for there may be millions; a second report of one replaces the first."""

    def __init__(self) -> None:
        self._rows = np.zeros(64, ROW)
        self._size = 0
        self._places: dict[int, int] = {}
        #: the clients, by the numbers in the column
        self.clients: list[str] = []
        self._clients: dict[str, int] = {}
        #: for each client, the number of attempts with each outcome, the begin of the first one and the end of the last
        self.tallies: list[list[int]] = []
        self.first: list[float] = []
        self.latest: list[float] = []
        #: the causes of failures, and the last lines of output, by place
        self.failures: dict[int, str] = {}
        self.tails: dict[int, str] = {}
        self.last: dict[int, int] = {}  # the place of the last attempt at each task
        self.tries: dict[int, list[int]] = {}  # the places of all attempts, if there are several

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> NDArray[np.void]:
        """All attempts so far, in the order of their reports; the array does not change when more are added."""
        return self._rows[: self._size]

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Add attempts that have ended."""
        for one in attempts:
            place, client, outcome = self._places.get(one.number), self._client(one.client), outcome_of(one)
            if place is None:
                place = self._places[one.number] = self._new(one.task)
            else:
                self.tallies[client][self._rows["outcome"][place]] -= 1
            self._note(client, one, outcome)
            self._rows[place] = (
                one.task, one.attempt, client, outcome, NOTHING if one.code is None else one.code,
                NOTHING if one.memory is None else one.memory, one.began, max(one.began, one.ended),
            )  # fmt: skip
            if outcome == WENT_WELL:
                self.failures.pop(place, None)  # a late result counts
            else:
                self.failures[place] = one.failure or one.answer
            if one.tail:
                self.tails[place] = one.tail

    def _note(self, client: int, one: Attempt, outcome: int) -> None:
        self.tallies[client][outcome] += 1
        self.first[client] = min(self.first[client], one.began)
        self.latest[client] = max(self.latest[client], one.ended)

    def _new(self, task: int) -> int:
        if self._size == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros(len(self._rows), ROW)])
        place, self._size = self._size, self._size + 1
        before = self.last.get(task)
        if before is not None:
            self.tries.setdefault(task, [before]).append(place)
        self.last[task] = place
        return place

    def _client(self, name: str) -> int:
        number = self._clients.get(name)
        if number is None:
            number = self._clients[name] = len(self.clients)
            self.clients.append(name)
            self.tallies.append([0, 0, 0, 0])
            self.first.append(float("inf"))
            self.latest.append(0.0)
        return number

    def tally(self, client: str) -> list[int]:
        """The number of a client's attempts with each outcome."""
        number = self._clients.get(client)
        return [0, 0, 0, 0] if number is None else self.tallies[number]

    def of(self, task: int) -> list[int]:
        """The places of a task's attempts, in order."""
        return self.tries.get(task) or ([self.last[task]] if task in self.last else [])

    def last_places(self, size: int) -> NDArray[np.int64]:
        """For each of *size* tasks, the place of its last attempt, or -1."""
        places = np.full(size, -1, np.int64)
        tasks = self.rows["task"]
        places[tasks] = np.arange(len(tasks))
        return places


RECENT = 30.0  # seconds over which the rate is measured
MOST_TAIL = 64 * 1024  # bytes of output that are read for the last lines
MOST_LINES = 40
FRESH, SHARE = 2.0, 20  # seconds between two forecasts, at least; they take at most one part in this many of the time


class Worker(NamedTuple):
    """A worker, and what is known about it."""

    client: str
    name: str
    seen: float
    alive: bool
    approved: bool = True
    speed: float | None = None
    quota: float | None = None
    lost: int = 0
    paused: float = 0.0


class Watched(Looked):
    """A workflow, its execution and its attempts, as displays see them during and after the execution."""

    #: "server" or "run"; the title, and the id
    source: str
    title: str
    id: str

    def __init__(self, flow: Workflow) -> None:
        super().__init__()
        self.flow, self.at = flow, time.time()
        self.attempts = Attempts()
        self._left: tuple[float, TimeLeft | None] = (0.0, None)
        self._due = 0.0
        self._foreseen = 0
        self._forecast = Forecast(flow)
        self._fifo: tuple[Ints, Curve] | None = None

    @cached_property
    def ready(self) -> ReadyCurve:
        """The number of tasks that could run after each finished one."""
        return ReadyCurve(self.execution)

    # What subclasses know

    @property
    @abstractmethod
    def status(self) -> str:
        """The state: running, paused, done, failed, cancelled, or stopped."""

    @property
    @abstractmethod
    def spans(self) -> Sequence[tuple[float, float]]:
        """The begin and end of each time span in which it was executed."""

    @property
    @abstractmethod
    def workers(self) -> Sequence[Worker]:
        """The workers."""

    @property
    def present(self) -> int:
        """The current number of workers."""
        return sum(worker.alive for worker in self.workers)

    @property
    def unmet(self) -> Sequence[str]:
        """What ready tasks need and no worker has, one sentence each."""
        return ()

    @property
    def crews(self) -> Sequence[tuple[float, float, int]] | None:
        """From when to when there were how many workers; None if only those with attempts are known."""
        return None

    def presence(self, begin: float, end: float) -> dict[str, float]:
        """The seconds between two times for which each worker was present, from its first attempt on."""
        alive = {worker.client for worker in self.workers if worker.alive and self.under_way}
        attempts, running = self.attempts, [(one.client, one.since, self.at) for one in self.trying.values()]
        ended = zip(attempts.clients, attempts.first, attempts.latest, strict=True)
        firsts, lasts = dict[str, float](), dict[str, float]()
        for name, first, last in (*ended, *running):
            firsts[name] = min(first, firsts.get(name, first))
            lasts[name] = self.at if name in alive else max(last, lasts.get(name, last))
        return {name: max(0.0, min(lasts[name], end) - max(first, begin)) for name, first in firsts.items()}

    def worker_seconds(self, begin: float, end: float, lanes: Mapping[str, int]) -> float:
        """The total time between two times for which workers were present, for each of their *lanes*."""
        return sum(lanes.get(name, 0) * seconds for name, seconds in self.presence(begin, end).items())

    @property
    def disk(self) -> DiskUse | None:
        """The space that outputs have taken; None if it was not measured."""
        return None

    @property
    def engine(self) -> str | None:
        """The engine that runs the tasks, if there is one."""
        return None

    @abstractmethod
    def printed(self, v: int, attempt: int, err: bool) -> str:
        """The end of the output of an attempt at a task, from standard output or from standard error."""

    def log(self, v: int, attempt: int, err: bool) -> str:
        """The file with the complete output of an attempt, even if it does not exist yet; "" if it is not on this machine."""
        return ""

    def tail(self, v: int, attempt: int) -> list[str]:
        """The last lines of output of an attempt at a task: of standard error, or if that is empty of standard output."""
        for err in (True, False):
            text = self.printed(v, attempt, err).replace("\r", "\n")
            if lines := [line for line in text.split("\n") if line.strip()]:
                return lines[-MOST_LINES:]
        return []

    @property
    def from_cache(self) -> int:
        """The number of tasks whose outputs were taken from a cache."""
        latest = self.attempts.rows["client"][list(self.attempts.last.values())]
        return int((latest == self.cache_client).sum()) if self.cache_client >= 0 else 0

    @property
    def cache_client(self) -> int:
        """The number of the client that stands for a cache; negative if there is none."""
        return -1

    @property
    def tallies(self) -> Mapping[str, int]:
        """The numbers of lost leases and repeated tasks, and of bytes that were not transferred."""
        return {"lost": 0, "repeated": sum(len(tries) - 1 for tries in self.attempts.tries.values()), "saved": 0}

    def may(self, who: str, scopes: frozenset[str]) -> dict[str, bool]:
        """What a user with this name and these rights may do to it."""
        return dict.fromkeys(("cancel", "pause", "workers", "retry", "release", "approve"), False)

    @property
    def holding(self) -> Mapping[int, Lease]:
        """The tasks that count as running: those that run, and those that a worker has and has not started yet."""
        codes = np.frombuffer(bytes(self.execution.codes), np.uint8)
        taken = np.flatnonzero((codes == ALLOCATED) | (codes == HELD)).tolist() if self.under_way else ()
        assigned = {v: self.assigned(v) for v in taken if v not in self.trying}
        return {**self.trying, **assigned}

    def assigned(self, v: int) -> Lease:
        """The lease of a task that its worker has not started yet; its worker may be unknown."""
        return Lease("", 0, v, len(self.attempts.of(v)) + 1, "", "", "", 0, self.at)

    # What is slow to compute, once

    def prepare(self) -> None:
        """Compute what a view needs before it is requested; it may be called in another thread."""
        self.ready.follow()
        _ = self.labels, self.fifo, self.planned

    def grow(self) -> None:
        """Include tasks that were added to the execution."""
        dag = self.execution.dag
        self.flow, self._forecast = self.flow.grown(dag), self._forecast.grown(dag)
        self._fifo = None
        for name in ("kinds", "drawing", "expected", "planned", "place"):
            self.__dict__.pop(name, None)

    @cached_property
    def drawing(self) -> Drawn:
        """The drawing of the dag."""
        return Drawn(self.flow, self.kinds)

    @cached_property
    def expected(self) -> Estimate:
        """The estimated run times of tasks."""
        return estimate(self.flow)

    @property
    def held(self) -> Ints:
        """The tasks that have failed permanently, and those that these block."""
        return np.concatenate([self._failed, self.blocked])

    @property
    def fifo(self) -> Curve:
        """The number of tasks that could run after each step with first come, first served, without those *held*."""
        held = self.held
        if self._fifo is None or not np.array_equal(self._fifo[0], held):
            self._fifo = held, counts_without(self.flow.dag, self.flow.dag.order, held)
        return self._fifo[1]

    @property
    def slots(self) -> int | None:
        """The number of tasks of one core that could always run at the same time; None if it is not known."""
        return None

    @cached_property
    def planned(self) -> tuple[Curve | None, Curve | None]:
        """The plan's curve, and its upper bound."""
        return self.curve("plan"), self.curve("bound")

    @cached_property
    def place(self) -> Ints | None:
        """The place of every task in the order that is followed, from 0; None if there is no order."""
        order = order_of(self)
        return None if order is None else places(len(self.flow), order)

    def failure(self, v: int) -> str:
        """See `Looked`."""
        failures = self.attempts.failures
        return next((failures[place] for place in reversed(self.attempts.of(v)) if place in failures), "failed")

    # Times

    @property
    def seconds(self) -> float:
        """The total time in which it was executed."""
        return sum(end - begin for begin, end in self.spans)

    def moment(self, at: float) -> float:
        """A time on the clock as seconds of execution since the start, without breaks."""
        return float(sum(min(max(at - begin, 0.0), end - begin) for begin, end in self.spans))

    @property
    def rate(self) -> float:
        """Recently finished tasks per second; 0 if that is not known."""
        rows = self.attempts.rows[-100_000:]
        if not self.under_way or not len(rows):
            return 0.0
        began = self.spans[-1][0] if self.spans else self.at
        long = min(RECENT, max(0.0, self.at - began))
        count = int(((rows["ended"] > self.at - long) & (rows["outcome"] == WENT_WELL)).sum())
        return count / long if long >= 1.0 else 0.0

    @property
    def remaining(self) -> TimeLeft | None:
        """The estimated time left, by the last forecast."""
        at, remaining = self._left
        elapsed = max(0.0, self.at - at)
        return (
            None
            if remaining is None or not self.under_way
            else TimeLeft(*(max(0.0, seconds - elapsed) for seconds in remaining))
        )

    @property
    def forecast_due(self) -> bool:
        """Whether the time left should be estimated again."""
        return self.under_way and self.at >= self._due

    def foresight(self) -> Callable[[], None]:
        """A function that estimates the time left from the current state; it may be called in another thread."""
        self._due = float("inf")
        rows = self.attempts.rows[self._foreseen :]
        self._foreseen += len(rows)
        good = (rows["outcome"] == WENT_WELL) & (rows["client"] != self.cache_client)
        took = list(zip(rows["task"][good].tolist(), (rows["ended"] - rows["began"])[good].tolist(), strict=True))
        codes, blocked, at = np.frombuffer(bytes(self.execution.codes), np.uint8), self.blocked, self.at
        running = {v: max(0.0, at - trying.since) for v, trying in self.trying.items()}
        out = {*running, *self.again}
        alive, rate = max(1, self.present), self.rate

        def foresee() -> None:
            begin = time.monotonic()
            try:
                self._forecast.learn(took)
                rest = np.flatnonzero((codes == WAITING) | (codes == ELIGIBLE)).tolist()
                remaining = self._forecast.remaining({*rest, *out}.difference(blocked.tolist()), running, alive)
                if remaining is not None and rate and self._forecast.learned > 2 * alive:
                    # the time between short tasks counts too
                    remaining = TimeLeft(remaining.least, max(remaining.most, len(rest) / rate))
                self._left = at, remaining
            finally:
                self._due = at + max(FRESH, SHARE * (time.monotonic() - begin))

        return foresee
