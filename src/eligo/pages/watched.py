"""A workflow while it is carried out: follows its execution move by move, and knows every attempt that has ended."""

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eligo.estimating import Estimate, estimate
from eligo.execution import ELIGIBLE, WAITING
from eligo.pages.attempts import WENT_WELL, Attempts
from eligo.pages.dag_drawing import Drawn
from eligo.rows import Ints, places
from eligo.running.curves import ReadyCurve
from eligo.running.states import Curve, Forecast, Looked, TimeLeft, order_of
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

RECENT = 30.0  # seconds over which the rate is taken
MOST_TAIL = 64 * 1024  # bytes of what was printed that are looked at for the last lines
MOST_LINES = 40
FRESH, SHARE = 2.0, 20  # a forecast is good for so many seconds, and takes at most one part in so many of the time


class Worker(NamedTuple):
    """Somebody who carries out tasks, and what is known of him."""

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
    """A workflow that somebody looks at while it is carried out, and after."""

    #: "server" or "run"; how it is called, and by what it is asked for
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

    @cached_property
    def ready(self) -> ReadyCurve:
        """How many tasks could run after each that is done."""
        return ReadyCurve(self.execution)

    # What others know

    @property
    @abstractmethod
    def status(self) -> str:
        """How it goes: running, paused, done, failed, cancelled, or stopped."""

    @property
    @abstractmethod
    def spans(self) -> Sequence[tuple[float, float]]:
        """From when to when somebody was at it."""

    @property
    @abstractmethod
    def workers(self) -> Sequence[Worker]:
        """Who carries it out."""

    @property
    def present(self) -> int:
        """How many workers there are now."""
        return sum(worker.alive for worker in self.workers)

    @property
    def unmet(self) -> Sequence[str]:
        """What ready tasks need and no worker has, a sentence each."""
        return ()

    @property
    def worker_seconds(self) -> float:
        """For how long workers were there, all together: each from its first attempt on."""
        alive = {worker.client for worker in self.workers if worker.alive and self.under_way}
        attempts = self.attempts
        return sum(
            (self.at if name in alive else end) - begin
            for name, begin, end in zip(attempts.clients, attempts.first, attempts.latest, strict=True)
        )

    @property
    def engine(self) -> str | None:
        """Who runs the tasks, where that is one engine."""
        return None

    @abstractmethod
    def printed(self, v: int, attempt: int, err: bool) -> str:
        """The end of what an attempt at a task printed, on standard output or on standard error."""

    def log(self, v: int, attempt: int, err: bool) -> str:
        """The file that has all that an attempt printed, or would have it; "" where there is none here."""
        return ""

    def tail(self, v: int, attempt: int) -> list[str]:
        """The last lines that an attempt at a task printed: on standard error, or where that is empty on standard output."""
        for err in (True, False):
            text = self.printed(v, attempt, err).replace("\r", "\n")
            if lines := [line for line in text.split("\n") if line.strip()]:
                return lines[-MOST_LINES:]
        return []

    @property
    def tallies(self) -> Mapping[str, int]:
        """Leases lost, tasks handed out again, bytes that did not travel."""
        return {"lost": 0, "repeated": sum(len(tries) - 1 for tries in self.attempts.tries.values()), "saved": 0}

    def may(self, who: str, scopes: frozenset[str]) -> dict[str, bool]:
        """What somebody of that name with these rights may do to it."""
        return {"cancel": False, "retry": False, "release": False, "approve": False}

    # What takes a moment, once

    def prepare(self) -> None:
        """Work out what a view needs, once, before it is asked for; it may be called in another thread."""
        self.ready.follow()
        _ = self.labels, self.fifo, self.planned

    def grow(self) -> None:
        """Take in tasks that were added to the execution."""
        dag = self.execution.dag
        self.flow, self._forecast = self.flow.grown(dag), self._forecast.grown(dag)
        for name in ("kinds", "drawing", "expected", "fifo", "planned", "place"):
            self.__dict__.pop(name, None)

    @cached_property
    def drawing(self) -> Drawn:
        """Where its tasks are drawn."""
        return Drawn(self.flow, self.kinds)

    @cached_property
    def expected(self) -> Estimate:
        """How long tasks are believed to take."""
        return estimate(self.flow)

    @cached_property
    def fifo(self) -> Curve:
        """How many tasks could run after each step, first come, first served."""
        return eligible_counts(self.flow.dag, self.flow.dag.order)

    @cached_property
    def planned(self) -> tuple[Curve | None, Curve | None]:
        """The plan's curve, and the most that there can be."""
        return self.curve("plan"), self.curve("bound")

    @cached_property
    def place(self) -> Ints | None:
        """For every task its place in the order that is followed, from 0; None where there is none."""
        order = order_of(self)
        return None if order is None else places(len(self.flow), order)

    def failure(self, v: int) -> str:
        """See `Looked`."""
        failures = self.attempts.failures
        return next((failures[place] for place in reversed(self.attempts.of(v)) if place in failures), "failed")

    # When

    @property
    def seconds(self) -> float:
        """How long somebody was at it, in all."""
        return sum(end - begin for begin, end in self.spans)

    def moment(self, at: float) -> float:
        """A time on the clock as seconds since it began, without the breaks in which nobody was at it."""
        return float(sum(min(max(at - begin, 0.0), end - begin) for begin, end in self.spans))

    @property
    def rate(self) -> float:
        """Tasks done a second, of late; 0 where that is not known."""
        rows = self.attempts.rows[-100_000:]
        if not self.under_way or not len(rows):
            return 0.0
        began = self.spans[-1][0] if self.spans else self.at
        long = min(RECENT, max(0.0, self.at - began))
        count = int(((rows["ended"] > self.at - long) & (rows["outcome"] == WENT_WELL)).sum())
        return count / long if long >= 1.0 else 0.0

    @property
    def left(self) -> TimeLeft | None:
        """How much longer it takes, as was last foreseen."""
        at, remaining = self._left
        elapsed = max(0.0, self.at - at)
        return (
            None
            if remaining is None or not self.under_way
            else TimeLeft(*(max(0.0, seconds - elapsed) for seconds in remaining))
        )

    @property
    def forecast_due(self) -> bool:
        """Whether the time that is left should be worked out again."""
        return self.under_way and self.at >= self._due

    def foresight(self) -> Callable[[], None]:
        """What works out how much longer it takes, from how things stand now; it may be called in another thread."""
        self._due = float("inf")
        rows = self.attempts.rows[self._foreseen :]
        self._foreseen += len(rows)
        good = rows["outcome"] == WENT_WELL
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
                    # what lies between tasks takes time too, where they are short
                    remaining = TimeLeft(remaining.least, max(remaining.most, len(rest) / rate))
                self._left = at, remaining
            finally:
                self._due = at + max(FRESH, SHARE * (time.monotonic() - begin))

        return foresee
