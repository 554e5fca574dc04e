"""Where a run stands while it goes on: counts, rate, time left and how many tasks were ready, for whoever shows it."""

import math
import time
from collections import deque
from itertools import islice
from threading import Thread

import numpy as np

from eligo.dag import Dag
from eligo.execution import EXECUTED
from eligo.running.forecasting import Forecast, Left
from eligo.running.looked import AGAIN, BAD, DONE, FUTILE, READY, RUNNING, STATES, WAITING, below, reached
from eligo.running.loop import Runner
from eligo.workflow import Workflow

RECENT = 30.0  # seconds over which the rate is taken
SHORTEST = 0.5  # seconds that tell anything of a rate
FRESH = 2.0  # seconds for which a forecast is good
COLUMNS = 240  # in which the curve of ready tasks is kept
SHARE = 20  # a forecast may take one part in so many of the time


class Progress:
    """A run as it goes on; `look` is cheap, and is called as often as somebody wants to see it."""

    def __init__(self, flow: Workflow, runner: Runner, workers: int) -> None:
        self.runner, self._workers = runner, workers
        self.began = time.monotonic()
        self._game, self._forecast = runner.execution, Forecast(flow)
        self.size, self.before = len(self._game.graph), len(self._game.executed)
        self._rates: deque[tuple[float, int]] = deque([(self.began, self.before)])
        self._futile: tuple[int, int] = (0, 0)
        self._left: Left | None = None
        self._foreseen_at = self.began
        self._due = self.began + FRESH / 2
        self._parts, self._columns = min(COLUMNS, self.size + 1), dict[int, int]()
        self._told = 0

    def look(self) -> None:
        """See where it stands now."""
        now, done = time.monotonic(), len(self._game.executed)
        if self.size < len(self._game.graph):
            self._grow(len(self._game.graph))
        self._rates.append((now, done))
        while now - self._rates[0][0] > RECENT and len(self._rates) > 2:
            self._rates.popleft()
        column = done * self._parts // (self.size + 1)
        self._columns[column] = max(self._columns.get(column, 0), self.ready)
        if now >= self._due:
            self._due = math.inf  # until it is thought over
            Thread(target=self._foresee, args=self._facts(), daemon=True).start()

    def _grow(self, size: int) -> None:
        """Tasks were added: what was seen so far was an earlier part of the run than it seemed."""
        seen, self._columns = self._columns, {}
        for column, ready in seen.items():
            place = column * (self.size + 1) // (size + 1)
            self._columns[place] = max(self._columns.get(place, 0), ready)
        self.size, self._futile = size, (-1, 0)

    @property
    def ready(self) -> int:
        """How many tasks can run now: those that do, and those that wait for a worker."""
        return len(self._game.eligible) + len(self._game.allocated)

    @property
    def seconds(self) -> float:
        """How long it has gone on."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Tasks done a second, of late; 0 where that is not known yet."""
        (first, before), (last, now) = self._rates[0], self._rates[-1]
        return (now - before) / (last - first) if last - first >= SHORTEST else 0.0

    @property
    def left(self) -> Left | None:
        """How much longer it takes, where anything can be said."""
        gone = time.monotonic() - self._foreseen_at
        return None if self._left is None else Left(*(max(0.0, seconds - gone) for seconds in self._left))

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks stand where, for all of `STATES`."""
        game, failures = self._game, len(self.runner.failures)
        if failures != self._futile[0]:
            bad = [game.graph.number(task) for task in self.runner.failures]
            self._futile = (failures, len(below(game, bad)))
        found = {
            DONE: len(game.executed),
            RUNNING: len(game.allocated) + len(game.held),
            READY: len(game.eligible),
            AGAIN: len(game.failed) - failures,
            BAD: failures,
            FUTILE: self._futile[1],
        }
        found[WAITING] = max(0, self.size - sum(found.values()))
        return {state: found[state] for state in STATES}

    def curve(self, width: int) -> list[int]:
        """The most tasks that could run, in each of so many equal parts of the run, as far as it has come."""
        parts = min(width, self._parts)
        found = [0] * (max(self._columns, default=0) * parts // self._parts + 1)
        for column, ready in self._columns.items():
            place = column * parts // self._parts
            found[place] = max(found[place], ready)
        for place in range(1, len(found)):
            found[place] = found[place] or found[place - 1]
        return found

    def new_failures(self) -> list[tuple[object, str]]:
        """The tasks that failed for good since this was asked last, and why."""
        found = [(task, str(ending.failure)) for task, ending in islice(self.runner.failures.items(), self._told, None)]
        self._told += len(found)
        return found

    def _facts(self) -> tuple[Dag, bytes, set[int], dict[int, float]]:
        """What a forecast goes by, as of now: where tasks stand, those that are lost, and for how long others have run."""
        dag = self._game.dag
        self._forecast = self._forecast.grown(dag)
        number, now = self._game.graph.number, time.time()
        took = [self.runner.took.popleft() for _ in range(len(self.runner.took))]
        self._forecast.learn([(number(task), seconds) for task, seconds in took])
        running = {
            number(task): max(0.0, now - job.since)
            for job in self.runner.running.values()
            for task in job.tasks[job.ended : job.ended + 1]
        }
        return dag, bytes(self._game.codes), {number(task) for task in self.runner.failures}, running

    def _foresee(self, dag: Dag, codes: bytes, lost: set[int], running: dict[int, float]) -> None:
        """How much longer it takes: in a thread of its own, since of many tasks this takes a while."""
        began = time.monotonic()
        gone = np.frombuffer(codes, np.uint8) == EXECUTED
        gone[[*lost, *reached(dag, lost)]] = True
        rest = np.flatnonzero(~gone).tolist()
        found = self._forecast.left(rest, {v: spent for v, spent in running.items() if not gone[v]}, self._workers)
        if found is not None and self.rate and self._forecast.learned > 2 * self._workers:
            # what lies between tasks takes time too, where they are short
            found = Left(found.least, max(found.most, len(rest) / self.rate))
        self._left, self._foreseen_at = found, began
        self._due = time.monotonic() + max(FRESH, SHARE * (time.monotonic() - began))
