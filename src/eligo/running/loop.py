"""The one loop: whoever is free asks, the allocator decides, the engine runs, the execution learns, the store keeps."""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from random import Random

from eligo.allocating import Allocator, Grant, Prudent
from eligo.allocating.asking import all_or_none
from eligo.engines import Ending, Engine, Job, Work
from eligo.engines.performing import lost
from eligo.errors import EligoError
from eligo.execution import EXECUTED, Execution
from eligo.names import Name
from eligo.running.inspection import LATENESS, Absent, Inspection
from eligo.running.retrying import Retries
from eligo.running.values import Values
from eligo.stores import Attempt, Store

#: at most so long is waited at a time, so that whoever watches sees the clock go on
TICK = 0.25
MOST_TOOK = 10_000
#: what runs just now is told to the store so often, and so soon after a failure
TELLING, SOON = 1.0, 0.2


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
    timeout: float | None = None
    #: after so many tasks that failed for good nothing more is begun
    most_failures: float = float("inf")
    #: how many tasks a client gets at once
    size: int = 1
    #: the tasks that run nothing, and are done as soon as they are ready
    empty: Collection[Name] = frozenset()
    #: the outputs that a task should have made and has not; None where no task declares any
    absent: Absent | None = None
    watch: Callable[["Runner"], None] = lambda runner: None
    seed: int = 0
    #: what functions returned, why tasks that failed for good did, and how often each was tried that was not done at once
    values: Values = field(default_factory=Values)
    failures: dict[Name, Ending] = field(default_factory=dict)
    tries: Counter[Name] = field(default_factory=Counter)
    #: how many seconds tasks took, of those that are done since somebody looked; the latest, where nobody does
    took: deque[tuple[Name, float]] = field(default_factory=lambda: deque(maxlen=MOST_TOOK))
    #: the jobs that are under way, by number
    running: dict[int, Job] = field(default_factory=dict)
    stopping: bool = False
    #: whether what runs is to be stopped, and was not told so yet
    aborting: bool = False

    def __post_init__(self) -> None:
        self._attempts, self._jobs = 0, 0
        self._kept, self._grown = (0, 0) if self.store is None else (self.store.kept, self.store.grown)
        self._losses: Counter[Name] = Counter()
        self._own: Counter[Name] = Counter()
        self._later: list[tuple[float, int, Name]] = []  # when what failed is tried again
        self._random = Random(self.seed)  # noqa: S311 - waits, not secrets
        self._notes: list[Attempt] = []
        self._told = 0.0  # when the present is told to the store next, by the monotonic clock
        #: which good endings are failures, since outputs are missing; made when the first task ends
        self._inspection: Inspection | None = None
        if self.store is not None:
            names, left = self.execution.dag.tasks, self.execution.codes
            self.tries.update(names[v] for v in self.store.attempted() if v < len(names) and left[v] != EXECUTED)

    def run(self) -> None:
        """Run until all is done, nothing more can be, or it was stopped and what runs has ended."""
        try:
            self._pass(self.execution.eligible)
            while self._going():
                if not self.stopping:
                    self._try_again()
                    self._start()
                    self._keep()  # what is begun must be known, should this process be killed
                if self.aborting:
                    self.aborting = False
                    self.engine.cancel(list(self.running.values()))
                self._accept(self.engine.wait(self._patience()))
                self._keep()
                self._show()
        finally:
            self._keep()
        if self.store is not None:
            self.store.note("present", self.present())
            self.store.flush()

    def present(self) -> str:
        """What runs since when, and what is tried again when, as is kept for whoever looks at the run."""
        number, ahead = self.execution.graph.number, time.time() - time.monotonic()
        running = [
            [number(task), self.tries[task], str(job.client), round(job.since, 3)]
            for job in self.running.values()
            for task in job.tasks[job.ended : job.ended + 1]
        ]
        again = [[number(task), round(due + ahead, 1)] for due, _, task in self._later]
        return json.dumps({"running": running, "again": again}, separators=(",", ":"))

    def _show(self) -> None:
        """Let whoever watches see; the run goes on where nobody does any more."""
        try:
            self.watch(self)
        except OSError:
            self.watch = lambda runner: None

    @property
    def begun(self) -> int:
        """How many jobs were begun."""
        return self._jobs

    def stop(self) -> None:
        """Begin nothing more; what runs may end."""
        self.stopping = True

    def abort(self) -> None:
        """Stop what runs too, as soon as the loop comes to it: this may be called while it does anything else."""
        self.stopping = self.aborting = True

    def _going(self) -> bool:
        if self.running:
            return True
        if self.stopping or self.execution.finished:
            return False
        return bool(self._later or self.execution.eligible)

    def _start(self) -> None:
        """Give work to all who are free, as far as there is any."""
        while len(self.execution.eligible) or self._copying():
            asks = self.engine.asks()
            if self.size > 1:
                asks = [replace(ask, size=self.size) for ask in asks]
            grants = self.allocator.hand_out(asks)
            if not grants:
                return
            with all_or_none(self.execution, grants):
                while grants:
                    self._begin(grants[0])
                    del grants[0]
            if self.needs is None:
                return

    def _copying(self) -> bool:
        return isinstance(self.allocator, Prudent) and self.allocator.rules.copies > 1

    def _begin(self, grant: Grant) -> None:
        self._jobs += 1
        for task in grant.tasks:
            self.tries[task] += 1
        works = tuple(self.work(task, self.tries[task]) for task in grant.tasks)
        cores, memory = (1.0, 0) if self.needs is None else map(max, zip(*map(self.needs, grant.tasks), strict=True))
        earlier_first = -self._jobs  # for engines that have queues of their own
        job = Job(self._jobs, grant.ask.client, grant.tasks, works, earlier_first, cores, int(memory), self.timeout)
        job.since = time.time()
        try:
            self.engine.start(job)
        except EligoError:  # it was put wrongly, and would be again
            raise
        except Exception as error:  # whatever keeps an engine from it, others of its jobs may end well
            self._accept([lost(job, f"could not be begun: {type(error).__name__}: {error}"[:1000])])
        else:
            self.running[job.number] = job

    def _accept(self, endings: Iterable[Ending]) -> None:
        for ending in self._inspected(endings):
            ending.job.ended, ending.job.since = ending.place + 1, ending.ended
            if ending.last:
                self.running.pop(ending.job.number, None)
            self._note(ending)
            if ending.failure is None:
                self._done(ending)
            else:
                self._failed(ending)

    def _inspected(self, endings: Iterable[Ending]) -> Iterable[Ending]:
        """The endings that are certain: a command that did not make its declared outputs has failed."""
        if self.absent is None:
            return endings
        if self._inspection is None:
            lateness = 0.0 if self.engine.name == "local" else LATENESS
            self._inspection = Inspection(self.absent, lateness, self.engine.cancel)
        settled = list(self._inspection.settled(endings))
        for ending in self._inspection.discarded():
            self._note(ending)
        return settled

    def _done(self, ending: Ending) -> None:
        """The first good result counts; whoever else is at it may stop."""
        game, task = self.execution, ending.task
        if task in game.executed:
            return
        if ending.code is None:  # commands have a code and no value, and there may be a million
            self.values.add(task, ending.value)
        if self.tries[task] == 1:
            del self.tries[task]
        if self._losses or self._own:
            del self._losses[task], self._own[task]
        took = max(0.0, ending.ended - ending.began)  # clocks on walls are set back at times
        self.took.append((task, took))
        self._pass(game.complete(task, late=True))
        if isinstance(self.allocator, Prudent):
            self.allocator.learn(ending.job.client, task, took)
            if self._copying():
                self.engine.cancel([job for job in self.running.values() if task in job.tasks])

    def _pass(self, ready: Iterable[Name]) -> None:
        """Of what is ready now, be done with all that runs nothing, and so on with what becomes ready by that."""
        found = [task for task in ready if task in self.empty]
        while found:
            found += [task for task in self.execution.execute(found.pop()) if task in self.empty]

    def _failed(self, ending: Ending) -> None:
        """A task failed, or was lost: what else its job had comes back, and it may be tried again."""
        game, task = self.execution, ending.task
        rest = [other for other in ending.job.tasks[ending.place :] if other not in game.executed]
        self.tries.subtract(ending.job.tasks[ending.place + 1 :])  # these were not begun
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
        self._told = min(self._told, time.monotonic() + SOON)
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
        began, ended, number = ending.began, ending.ended, self.execution.graph.number(ending.task)
        known = (ending.failure, ending.code, ending.memory, ending.lost)
        self._notes.append(Attempt(self.store.next_attempt(), number, str(ending.job.client), began, ended, *known))

    def _keep(self) -> None:
        """Hand new moves and attempts to the store; where it cannot write, nothing more is begun."""
        if self.store is None:
            return
        if time.monotonic() >= self._told:
            self._told = time.monotonic() + TELLING
            self.store.note("present", self.present())
        if self._kept == len(self.execution.journal) and not self._notes:
            return
        self.store.add(self.execution.since(self._kept), self._notes, self.execution.additions[self._grown :])
        self._kept, self._grown, self._notes = len(self.execution.journal), len(self.execution.additions), []
        if self.store.error is not None:
            self.stop()
