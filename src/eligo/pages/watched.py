"""A workflow during its execution, as displays see it: its moves, its attempts, its workers, and a forecast."""

import time
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.estimating import Estimate, estimate
from eligo.execution import COMPLETE, ELIGIBLE, FAIL, GROW, MANY, RELEASE, WAITING, Addition, Execution, unpacked
from eligo.pages.dag_drawing import Drawn
from eligo.rows import Ints, places, released
from eligo.running.forecast import Forecast, Left
from eligo.running.reasons import order_of
from eligo.running.states import Curve, Looked
from eligo.stores import Attempt
from eligo.theory.eligibility import eligible_counts
from eligo.work.attempts import ACCEPTED, FAILED, LOSSES
from eligo.workflow import Workflow

# The number of tasks that could run


class ReadyCurve:
    """After each completed task, the number of tasks that were running or ready."""

    def __init__(self, execution: Execution) -> None:
        self._game, dag = execution, execution.begun
        self._read = 0
        self._failed: set[int] = set()
        self._missing = array("i", dag.indegree.tobytes())
        self._ready = int((dag.indegree == 0).sum())
        #: the completed tasks in order, and two curves with one more entry, the initial value: without and with tasks
        #: that await a retry
        self.order, self.counts, self.eligible = array("i"), array("q", [self._ready]), array("q", [self._ready])

    def follow(self) -> None:
        """Process the moves since the last call."""
        game, missing = self._game, self._missing
        moves = game.since(self._read)
        self._read += len(moves)
        for kind, v in unpacked(moves):
            if kind == COMPLETE:
                self.order.append(v)
                self._ready -= 1
                missing[v] = -1
                self._ready += self._rendered(v)
                self.eligible.append(self._ready)
                self.counts.append(self._ready - len(self._failed))
            elif kind == FAIL:
                self._failed.add(v)
            elif kind == RELEASE:
                self._failed.discard(v)
            elif kind == GROW:
                self._grow(game.additions[v])

    def _rendered(self, v: int) -> int:
        """Update the parents of a task's children once it is done; returns the number of tasks that become ready."""
        graph, missing, count = self._game.graph, self._missing, 0
        if graph.has_many(v, MANY):
            row = graph.row_of(v)
            return len(released(row[row < len(missing)], missing))
        for w in graph.children_of(v):
            if w < len(missing):
                missing[w] -= 1
                count += not missing[w]
        return count

    def _grow(self, added: Addition) -> None:
        """Process added tasks: some are ready, and some that were ready must wait."""
        missing = self._missing
        missing.extend([0] * len(added.tasks))
        self._ready += len(added.tasks)
        for u, w in added.arcs:
            if missing[u] >= 0:  # not done
                self._ready -= not missing[w]
                missing[w] += 1


# Attempts that have ended


#: what came of an attempt: it was done, failed, was lost with its worker, or nobody needed it any more
WENT_WELL, WENT_WRONG, VANISHED, UNUSED = range(4)
OUTCOMES = {ACCEPTED: WENT_WELL, FAILED: WENT_WRONG, "conflict": WENT_WRONG, **dict.fromkeys(LOSSES, VANISHED)}
NOTHING = -(2**31)  # where there is no exit code, or no memory
ROW = np.dtype([
    ("task", np.int32), ("attempt", np.int32), ("client", np.int32), ("outcome", np.int8), ("code", np.int64),
    ("memory", np.int64), ("began", np.float64), ("ended", np.float64),
])  # fmt: skip


def outcome_of(attempt: Attempt) -> int:
    """What came of an attempt, as the column has it."""
    return OUTCOMES.get(attempt.answer, UNUSED)


class Attempts:
    """Attempts as they end; one that is told again takes the place of what was told before."""

    def __init__(self) -> None:
        self._rows = np.zeros(64, ROW)
        self._size = 0
        self._places: dict[int, int] = {}
        #: who made them, by the numbers in the column; why they failed, and the last that these printed
        self.clients: list[str] = []
        self._clients: dict[str, int] = {}
        #: of each of them: how many attempts came to what, when the first began and the last ended
        self.tallies: list[list[int]] = []
        self.first: list[float] = []
        self.latest: list[float] = []
        self.failures: dict[int, str] = {}
        self.tails: dict[int, str] = {}
        self.last: dict[int, int] = {}  # the place of the last attempt at each task
        self.tries: dict[int, list[int]] = {}  # and of all, where there were several

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> NDArray[np.void]:
        """All so far, in the order in which they were told; this does not change when more come."""
        return self._rows[: self._size]

    def add(self, attempts: Iterable[Attempt]) -> None:
        """More attempts have ended."""
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
                self.failures.pop(place, None)  # it came late, but it came
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
        """How many attempts of a client came to what."""
        number = self._clients.get(client)
        return [0, 0, 0, 0] if number is None else self.tallies[number]

    def of(self, task: int) -> list[int]:
        """The places of the attempts at a task, the first first."""
        return self.tries.get(task) or ([self.last[task]] if task in self.last else [])

    def last_places(self, size: int) -> NDArray[np.int64]:
        """For each of so many tasks the place of its last attempt, or -1."""
        places = np.full(size, -1, np.int64)
        tasks = self.rows["task"]
        places[tasks] = np.arange(len(tasks))
        return places


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
        self._left: tuple[float, Left | None] = (0.0, None)
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
    def remaining(self) -> Left | None:
        """How much longer it takes, as was last foreseen."""
        at, remaining = self._left
        elapsed = max(0.0, self.at - at)
        return (
            None
            if remaining is None or not self.under_way
            else Left(*(max(0.0, seconds - elapsed) for seconds in remaining))
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
                remaining = self._forecast.left({*rest, *out}.difference(blocked.tolist()), running, alive)
                if remaining is not None and rate and self._forecast.learned > 2 * alive:
                    # what lies between tasks takes time too, where they are short
                    remaining = Left(remaining.least, max(remaining.most, len(rest) / rate))
                self._left = at, remaining
            finally:
                self._due = at + max(FRESH, SHARE * (time.monotonic() - begin))

        return foresee
