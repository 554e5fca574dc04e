"""The one loop: whoever is free asks, the allocator decides, the engine runs, the execution learns, the store keeps."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from eligo.allocating import Allocator, Grant, Prudent
from eligo.engines import Ending, Engine, Job, Work
from eligo.execution import Execution
from eligo.names import Name
from eligo.running.retrying import Retries
from eligo.stores import Attempt, Store

#: at most so long is waited at a time, so that whoever watches sees the clock go on
TICK = 0.25


@dataclass(eq=False)
class Runner:
    """A workflow being run: an execution, an allocator that hands out its tasks, an engine, and a store where it is kept.

    *work* says what an attempt at a task does; *watch* is called now and then with the runner itself.
    """

    execution: Execution
    allocator: Allocator
    engine: Engine
    work: Callable[[Name, int], Work]
    store: Store | None = None
    retries: Retries = field(default_factory=Retries)
    #: what each task needs: cores and bytes; None: one core and nothing that is known
    needs: Callable[[Name], tuple[float, int]] | None = None
    #: among tasks, the one with the larger number goes first, for engines that have queues of their own
    priority: Mapping[Name, int] = field(default_factory=dict)
    timeout: float | None = None
    #: after so many tasks that failed for good nothing more is begun
    most_failures: float = float("inf")
    watch: Callable[["Runner"], None] = lambda runner: None
    seed: int = 0
    #: what tasks returned, why those that failed for good did, and how often each was tried
    values: dict[Name, Any] = field(default_factory=dict)
    failures: dict[Name, Ending] = field(default_factory=dict)
    tries: Counter[Name] = field(default_factory=Counter)
    #: the jobs that are under way, by number
    running: dict[int, Job] = field(default_factory=dict)
    stopping: bool = False

    def __post_init__(self) -> None:
        self._attempts, self._jobs = 0, 0
        self._kept = 0 if self.store is None else self.store.kept
        self._losses: Counter[Name] = Counter()
        self._own: Counter[Name] = Counter()
        self._later: list[tuple[float, int, Name]] = []  # when what failed is tried again
        self._random = Random(self.seed)  # noqa: S311 - waits, not secrets
        self._notes: list[Attempt] = []

    def run(self) -> None:
        """Run until all is done, nothing more can be, or it was stopped and what runs has ended."""
        while self._going():
            if not self.stopping:
                self._try_again()
                self._start()
            self._accept(self.engine.wait(self._patience()))
            self._keep()
            self.watch(self)
        if self.store is not None:
            self.store.flush()

    def stop(self) -> None:
        """Begin nothing more; what runs may end."""
        self.stopping = True

    def abort(self) -> None:
        """Stop what runs too."""
        self.stopping = True
        self.engine.cancel(list(self.running.values()))

    def _going(self) -> bool:
        if self.running:
            return True
        if self.stopping or self.execution.finished:
            return False
        return bool(self._later or self.execution.eligible)

    def _start(self) -> None:
        """Give work to all who are free, as far as there is any."""
        while len(self.execution.eligible) or self._copying():
            grants = self.allocator.hand_out(self.engine.asks())
            for grant in grants:
                self._begin(grant)
            if not grants or self.needs is None:
                return

    def _copying(self) -> bool:
        return isinstance(self.allocator, Prudent) and self.allocator.rules.copies > 1

    def _begin(self, grant: Grant) -> None:
        self._jobs += 1
        for task in grant.tasks:
            self.tries[task] += 1
        works = tuple(self.work(task, self.tries[task]) for task in grant.tasks)
        cores, memory = (1.0, 0) if self.needs is None else map(max, zip(*map(self.needs, grant.tasks), strict=True))
        first = self.priority.get(grant.tasks[0], 0)
        job = Job(self._jobs, grant.ask.client, grant.tasks, works, first, cores, int(memory), self.timeout)
        self.running[job.number] = job
        self.engine.start(job)

    def _accept(self, endings: Iterable[Ending]) -> None:
        for ending in endings:
            if ending.last:
                self.running.pop(ending.job.number, None)
            self._note(ending)
            if ending.failure is None:
                self._done(ending)
            else:
                self._failed(ending)

    def _done(self, ending: Ending) -> None:
        """The first good result counts; whoever else is at it may stop."""
        game, task = self.execution, ending.task
        if task in game.executed:
            return
        self.values[task] = ending.value
        game.complete(task, late=True)
        if isinstance(self.allocator, Prudent):
            self.allocator.learn(ending.job.client, task, max(0.0, ending.ended - ending.began))  # clocks are set back
            if self._copying():
                self.engine.cancel([job for job in self.running.values() if task in job.tasks])

    def _failed(self, ending: Ending) -> None:
        """A task failed, or was lost: what else its job had comes back, and it may be tried again."""
        game, task = self.execution, ending.task
        rest = [other for other in ending.job.tasks[ending.place :] if other not in game.executed]
        if task in game.executed or game.holders(task) > 1:
            game.give_up(*rest)
            return
        counted, most = (self._losses, self.retries.lost) if ending.lost else (self._own, self.retries.most)
        counted[task] += 1
        game.give_up(*rest[1:])
        if ending.lost and self.stopping:
            game.give_up(task)
            return
        game.fail(task)
        if counted[task] <= most:
            due = time.monotonic() + self.retries.wait(counted[task], self._random)
            heappush(self._later, (due, self._attempts, task))
            return
        self.failures[task] = ending
        if len(self.failures) >= self.most_failures:
            self.stop()

    def _try_again(self) -> None:
        """What has waited long enough after a failure may be begun again."""
        while self._later and self._later[0][0] <= time.monotonic():
            self.execution.release(heappop(self._later)[2])

    def _patience(self) -> float:
        """How long to wait at most."""
        due = [self._later[0][0]] if self._later and not self.stopping else []
        if isinstance(self.allocator, Prudent) and self.allocator.due is not None:
            due.append(self.allocator.due)
        return min(TICK, max(0.0, min(due) - time.monotonic())) if due else TICK

    def _note(self, ending: Ending) -> None:
        self._attempts += 1
        if self.store is None:
            return
        began, ended, number = ending.began, ending.ended, self.execution.dag.number(ending.task)
        known = (ending.failure, ending.code, ending.memory, ending.lost)
        self._notes.append(Attempt(self.store.next_attempt(), number, str(ending.job.client), began, ended, *known))

    def _keep(self) -> None:
        """Hand new moves and attempts to the store; where it cannot write, nothing more is begun."""
        if self.store is None or (self._kept == len(self.execution.journal) and not self._notes):
            return
        self.store.add(self.execution.since(self._kept), self._notes)
        self._kept, self._notes = len(self.execution.journal), []
        if self.store.error is not None:
            self.stop()
