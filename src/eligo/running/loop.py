"""The loop of a run: the engine asks for tasks, the allocator chooses, the engine runs them, the store keeps the results."""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from eligo.allocating import Allocator, Grant, Prudent, Rules, Within
from eligo.allocating.asks import all_or_none
from eligo.allocating.prudent import SLOW
from eligo.allocating.rooms import Needs
from eligo.engines import Command, Ending, Engine, Job, Work
from eligo.engines.job_run import ending_of, lost_ending
from eligo.engines.room import Devices, Wants, equip, machine_cores
from eligo.engines.worker import STOPPED, Performed
from eligo.errors import EligoError, InputError, is_amount, shorten
from eligo.execution import EXECUTED, Execution
from eligo.names import Name
from eligo.policies import present_name
from eligo.running.cleaning import RunOutputs
from eligo.running.folder import FORGIVEN
from eligo.running.functions import Values, size_in_memory
from eligo.running.growth import RunGrowth
from eligo.running.output_cache import CachedTasks
from eligo.running.selection import EVERYTHING, Selection
from eligo.running.task_files import LATENESS, Absent, Inspection
from eligo.stores import Store
from eligo.work.attempts import CACHE, LOSSES, Attempt, Lease
from eligo.work.demands import CORES, PLAIN, Amounts, Demand, largest
from eligo.work.tries import Retries, Tries

#: longest wait in seconds at a time, so that the display's clock advances
TICK = 0.25
MOST_TOOK = 10_000
#: seconds between two reports of the running tasks to the store, and until the next one after a failure
TELLING, SOON = 1.0, 0.2


#: slow workers get what matters least; no second copies, which would write the same files
CAREFUL = Rules(slow=SLOW)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run; the defaults are those of the command line."""

    #: maximum number of concurrent tasks; None: the number of cores
    workers: int | None = None
    #: which tasks to run, and which of them although they are done
    selection: Selection = EVERYTHING
    #: a policy, another allocator by name, or a file with an order
    policy: str = "finish"
    #: the number of tasks per job
    size: int = 1
    retries: Retries = field(default_factory=Retries)
    timeout: float | None = None
    #: the number of permanently failed tasks after which no more tasks are started
    most_failures: float = float("inf")
    #: whether tasks whose outputs are newer than their inputs count as done
    skip_done: bool = False
    #: whether to say why each task runs
    why: bool = False
    #: the folder of a cache of outputs
    cache: str | None = None
    #: whether every file that one task writes and another reads is temporary
    clean: bool = False
    #: whether an attempt finds the outputs of earlier, incomplete ones
    keep_incomplete: bool = False
    #: limit of the bytes of temporary files, or of results in memory, between tasks
    space: int | None = None
    #: totals of other resources that tasks share, by name; "memory" replaces that of this machine
    resources: Amounts = field(default_factory=dict)
    #: what the machines have, such as "gpu", for tasks with labels; None: labels are ignored
    labels: frozenset[str] | None = None
    #: the folder in which tasks run; None: the folder of the workflow's file
    directory: str | None = None
    rules: Rules = CAREFUL
    seed: int = 0
    #: whether the run starts paused
    paused: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", present_name(self.policy))
        if self.workers is not None and (type(self.workers) is not int or self.workers < 1):
            raise InputError(f"workers must be a positive integer, got {self.workers!r}")
        if type(self.size) is not int or self.size < 1:
            raise InputError(f"--fat must be a positive integer, got {self.size!r}")
        for what, total in self.resources.items():
            if what == CORES or not is_amount(total):
                cure = "use workers for cores" if what == CORES else "it must be a non-negative number"
                raise InputError(f"invalid total of the resource {shorten(what)!r}, {total!r}: {cure}")
        if not self.most_failures >= 1:
            raise InputError(f"--max-failures must be at least 1, got {self.most_failures!r}")
        if self.space is not None and (type(self.space) is not int or self.space < 0):
            raise InputError(f"space must be a number of bytes, got {self.space!r}")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise InputError(f"timeout must be positive, got {self.timeout!r}")

    @property
    def slots(self) -> int:
        """The maximum number of concurrent tasks."""
        return self.workers or machine_cores()


@dataclass(eq=False)
class Runner:
    """Runs a workflow: connects an execution, an allocator, an engine, and a store that records what happens.

    *work* returns the command or function of an attempt at a task; *watch* is called regularly with the runner itself.
    """

    execution: Execution
    allocator: Allocator
    engine: Engine
    work: Callable[[Name, int], Work]
    store: Store | None = None
    settings: Settings = field(default_factory=Settings)
    #: what each task needs; None: no more than one core each
    needs: Wants | None = None
    #: the graphics processors of this machine, if the engine does not choose one for each task
    devices: Devices | None = None
    #: tasks without a command, which are complete as soon as they are ready
    empty: Collection[Name] = frozenset()
    #: returns the declared outputs that a task did not create; None if no task declares outputs
    absent: Absent | None = None
    #: has the outputs of tasks that ran before; None: every task runs
    cache: CachedTasks | None = None
    #: accepts tasks that are added during the run; None: none can be added
    growth: RunGrowth | None = None
    #: records the sizes of outputs, and removes temporary ones; None: there are no files
    outputs: RunOutputs | None = None
    #: the bytes of a value in memory
    size_of: Callable[[Any], int] = size_in_memory
    #: performs requests from outside; returns whether there were any
    operate: Callable[["Runner"], bool] = lambda runner: False
    watch: Callable[["Runner"], None] = lambda runner: None
    #: called with the ending of every attempt
    follow: Callable[[Ending], None] = lambda ending: None
    #: values of functions, endings of permanently failed tasks, and the attempts at unfinished tasks
    values: Values = field(default_factory=Values)
    failures: dict[Name, Ending] = field(default_factory=dict)
    tries: Tries = field(default_factory=Tries)
    #: run times of completed tasks, in seconds, until the display takes them; only the latest are kept
    took: deque[tuple[Name, float]] = field(default_factory=lambda: deque(maxlen=MOST_TOOK))
    #: the running jobs, by number
    running: dict[int, Job] = field(default_factory=dict)
    stopping: bool = False
    #: whether no task is started until the run is resumed
    paused: bool = False
    #: whether running tasks must still be cancelled
    aborting: bool = False

    def __post_init__(self) -> None:
        self._attempts, self._jobs = 0, 0
        self.paused = self.settings.paused
        self._withdrawn: set[int] = set()  # the numbers of jobs whose tasks become ready again
        #: the number of tasks whose outputs were taken from the cache
        self.from_cache = 0
        self._kept, self._grown = (0, 0) if self.store is None else (self.store.kept, self.store.grown)
        self._random = Random(self.settings.seed)  # noqa: S311 - waits, not secrets
        self._notes: list[Attempt] = []
        self._next_report = 0.0  # time of the next report of the running tasks, by the monotonic clock
        self._next_inbox_check = 0.0  # time of the next check of the inbox, by the monotonic clock
        #: turns successful endings with missing outputs or refused additions into failures; created at the first ending
        self._inspection: Inspection | None = None
        if self.growth is not None:
            self._follow_growth(self.growth)
        if self.store is not None:
            self._restore_tries(self.store)
        if self.needs is not None:
            self.needs.failures = self.failures_of
        inner = self.allocator.allocator if isinstance(self.allocator, Prudent) else self.allocator
        #: the limit on the space between tasks, if there is one
        self.within = inner if isinstance(inner, Within) else None
        if self.within is not None:
            self.within.retrying = lambda v: v in self.tries.waiting

    def _restore_tries(self, store: Store) -> None:
        """Count the attempts of earlier processes at unfinished tasks; those that the run stopped are not failures."""
        codes, forgiven = self.execution.codes, int(store.facts().get(FORGIVEN, 0))
        attempts = Counter(v for v in store.attempted() if v < len(codes) and codes[v] != EXECUTED)
        failed = ((v, answer in LOSSES) for v, answer, why in store.failed_attempts(forgiven) if why != STOPPED)
        self.tries.begun.update(attempts)
        self.tries.recount(((v, lost) for v, lost in failed if v in attempts), self.settings.retries)

    def run(self) -> None:
        """Run until every task is done or blocked, or the run was stopped and its running tasks have ended."""
        try:
            self._pass(self.execution.eligible)
            while self._take_inbox() or self._going() or self._take_inbox(last=True):
                before = self.from_cache
                if not self.stopping:
                    self._try_again()
                    if not self.paused:
                        self._start()
                    self._keep()  # an assignment must be on disk in case this process is killed
                if self.aborting:
                    self.aborting = False
                    self.engine.cancel(list(self.running.values()))
                workers_are_free = self.from_cache > before
                self._accept(self.engine.wait(0.0 if workers_are_free else self._patience()))
                self._keep()
                self.watch(self)
        finally:
            self._keep()
        if self.store is not None:
            self._clean(self.store)
            self.store.note("present", self.present())
            self.store.flush()

    def present(self) -> str:
        """The running tasks with their start times, and the times of retries, as JSON for status commands."""
        ahead = time.time() - time.monotonic()
        running = [
            [lease.task, lease.attempt, lease.client, round(job.since, 3)]
            for job in self.running.values()
            for lease in job.leases[job.ended : job.ended + 1]
        ]
        again = [[v, round(due + ahead, 1)] for due, v in self.tries.later]
        state = {"running": running, "again": again, "state": self.state, "workers": self.settings.slots}
        return json.dumps(state, separators=(",", ":"))

    @property
    def state(self) -> str:
        """The state as it is displayed: running, held (paused) or stopped."""
        return "stopped" if self.stopping else "held" if self.paused else "running"

    def save(self) -> None:
        """Write the present state, so that displays see it."""
        self._next_report = 0.0
        self._keep()
        if self.store is not None:
            with suppress(InputError):  # the store reports its own errors
                self.store.flush()

    def _tell(self, ending: Ending) -> None:
        """Pass an ending on; if its output is closed, the run continues without it."""
        try:
            self.follow(ending)
        except OSError:
            self.follow = lambda ending: None

    @property
    def jobs_started(self) -> int:
        """The number of started jobs."""
        return self._jobs

    def attempts_at(self, task: Name) -> int:
        """The number of attempts at a task; 0 if it is complete and had only one."""
        return self.tries.begun[self.execution.graph.number(task)]

    def failures_of(self, task: Name) -> int:
        """The number of failed attempts at a task that is not done."""
        return self.tries.failures[self.execution.graph.number(task)]

    def stop(self) -> None:
        """Start no more tasks; running tasks may finish."""
        self.stopping = True

    def abort(self) -> None:
        """Stop running tasks too, at the next step of the loop; may be called from a signal handler."""
        self.stopping = self.aborting = True

    def withdraw(self, jobs: Iterable[Job]) -> None:
        """Stop running jobs whose tasks become ready again, as if they had not been started."""
        chosen = list(jobs)
        self._withdrawn.update(job.number for job in chosen)
        self.engine.cancel(chosen)

    def _going(self) -> bool:
        if self.running:
            return True
        if self.stopping or self.execution.finished:
            return False
        return bool(self.tries.waiting or self.execution.eligible)

    def _start(self) -> None:
        """Assign tasks to free workers as long as there are ready tasks."""
        while len(self.execution.eligible) or self._copying():
            asks = self.engine.asks()
            if self.settings.size > 1:
                asks = [replace(ask, size=self.settings.size) for ask in asks]
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
        while self.cache is not None and grant.tasks and self._take_from(self.cache, grant.tasks[0]):
            grant = replace(grant, tasks=grant.tasks[1:])
        if grant.tasks:
            self._start_job(grant)

    def _take_from(self, cache: CachedTasks, task: Name) -> bool:
        """Complete a task with its outputs from the cache, if it has them."""
        v = self.execution.graph.number(task)
        work = self.work(task, self.tries.begun[v] + 1)
        if not isinstance(work, Command) or not cache.take(task, work):
            return False
        self._jobs += 1
        self.from_cache += 1
        self.tries.begun.update([v])
        now = time.time()
        job = Job(self._jobs, CACHE, (task,), (work,), leases=(self._lease(v, CACHE),))
        self._accept([ending_of(job, 0, Performed(now, now, code=0))])
        return True

    def _start_job(self, grant: Grant) -> None:
        self._jobs += 1
        numbers = [self.execution.graph.number(task) for task in grant.tasks]
        self.tries.begun.update(numbers)
        if self.outputs is not None and self.outputs.incomplete:
            self.outputs.move_away(numbers)
        leases = tuple(self._lease(v, str(grant.ask.client)) for v in numbers)
        works = tuple(self.work(task, lease.attempt) for task, lease in zip(grant.tasks, leases, strict=True))
        demand, works = (PLAIN, works) if self.needs is None else self._equipped(self.needs, grant.tasks, works)
        earlier_first = -self._jobs  # for engines with their own queues
        job = Job(
            self._jobs, grant.ask.client, grant.tasks, works, earlier_first, demand, self.settings.timeout, leases
        )
        job.since = time.time()
        try:
            self.engine.start(job)
        except EligoError:  # invalid input: a retry would fail too
            raise
        except Exception as error:  # an engine may raise anything; other jobs may still succeed
            self._accept([lost_ending(job, f"could not be started: {type(error).__name__}: {error}"[:1000])])
        else:
            self.running[job.number] = job

    def _equipped(self, needs: Needs, tasks: Sequence[Name], works: Sequence[Work]) -> tuple[Demand, tuple[Work, ...]]:
        """The resources that a job needs to run these tasks one after another, and their work with its share of these."""
        demands = [needs(task) for task in tasks]
        together = largest(demands)
        devices = "" if self.devices is None else self.devices.take(self._jobs, together)
        return together, tuple(map(partial(equip, devices=devices), works, demands))

    def _lease(self, task: int, client: str) -> Lease:
        return Lease("", self._jobs, task, self.tries.begun[task], client, "", "", self._jobs, time.time())

    def _accept(self, endings: Iterable[Ending]) -> None:
        for ending in self._inspect(endings):
            ending.job.ended, ending.job.since = ending.place + 1, ending.attempt.ended
            if ending.last:
                self.running.pop(ending.job.number, None)
                if self.devices is not None:
                    self.devices.give_back(ending.job.number)
            self._note(ending)
            self._tell(ending)
            if ending.attempt.failure is None:
                self._complete(ending)
            else:
                self._handle_failure(ending)

    def _inspect(self, endings: Iterable[Ending]) -> Iterable[Ending]:
        """The endings after inspection: a command that did not create its declared outputs has failed."""
        if self.absent is None and self.growth is None and not self.values.durable:
            return endings
        if self._inspection is None:
            lateness = 0.0 if self.engine.name == "local" else LATENESS
            self._inspection = Inspection(self._lacking, lateness, self.engine.cancel, self._refusal)
        settled = list(self._inspection.settled(endings))
        self._adopt()
        for ending in self._inspection.discarded():
            self._note(ending)
        return settled

    def _lacking(self, task: Name) -> Sequence[str]:
        return () if self.absent is None else self.absent(task)

    # Tasks that are added

    def _refusal(self, ending: Ending) -> str | None:
        """Add the tasks that a successful task submitted, or store its value; returns why that is refused, or None."""
        if ending.task in self.execution.executed:
            return None
        if self.growth is None:
            return self.values.refusal(ending)
        return self.growth.take_from(ending.task, ending.job.works[ending.place])

    def _take_inbox(self, last: bool = False) -> bool:
        """Take what is in the inbox, at intervals or at the *last* moment; returns whether there was anything."""
        if not (last or time.monotonic() >= self._next_inbox_check):
            return False
        self._next_inbox_check = time.monotonic() + TICK
        return self.operate(self) or self._take_additions()

    def _take_additions(self) -> bool:
        """Add tasks from the inbox; returns whether there were any."""
        if self.growth is None or self.stopping:
            return False
        taken = list(self.growth.take_inbox())
        if taken:
            self._adopt()
            self._keep()
        for path in taken if self.store is None or self.store.error is None else ():
            path.unlink(missing_ok=True)
        return bool(taken)

    def _adopt(self) -> None:
        """Update needs and outputs after tasks were added."""
        if self.growth is not None and len(self.execution.additions) > self._grown:
            self._follow_growth(self.growth)
            self._pass(self.execution.eligible)

    def _follow_growth(self, growth: RunGrowth) -> None:
        self.needs, self.absent, self.empty = growth.needs, growth.absent, growth.empty
        if self.outputs is not None and self.outputs.files is not growth.files:
            self.outputs.follow(growth.files)
        if self.needs is not None:
            self.needs.failures = self.failures_of

    def _complete(self, ending: Ending) -> None:
        """Record the first successful result; other copies are cancelled."""
        game, task = self.execution, ending.task
        if task in game.executed:
            return
        if ending.attempt.code is None:  # commands have a code but no value, and there may be a million of them
            self.values.add(task, ending.value)
            if self.within is not None:
                self.within.correct(task, self.size_of(ending.value))
        if self.tries.begun[v := ending.attempt.task] == 1:
            self.tries.forget([v])
        took = max(0.0, ending.attempt.ended - ending.attempt.began)  # the wall clock is set back at times
        has_run, work = ending.attempt.client != CACHE, ending.job.works[ending.place]
        if has_run:
            self.took.append((task, took))
        if has_run and self.cache is not None and isinstance(work, Command):
            self.cache.add(task, work)
        self._pass(game.complete(task, late=True))
        if isinstance(self.allocator, Prudent) and has_run:
            self.allocator.learn(ending.job.client, task, took)
            if self._copying():
                self.engine.cancel([job for job in self.running.values() if task in job.tasks])

    def _pass(self, ready: Iterable[Name]) -> None:
        """Complete all ready tasks that have no command, and those that become ready by that."""
        empty_tasks = [task for task in ready if task in self.empty]
        while empty_tasks:
            empty_tasks += [task for task in self.execution.execute(empty_tasks.pop()) if task in self.empty]

    def _handle_failure(self, ending: Ending) -> None:
        """Record a failed or lost attempt: the rest of its job is released, and the task may be retried."""
        game, task = self.execution, ending.task
        rest = [other for other in ending.job.tasks[ending.place :] if other not in game.executed]
        self.tries.begun.subtract(
            lease.task for lease in ending.job.leases[ending.place + 1 :]
        )  # these were not started
        if task in game.executed or game.holders(task) > 1:
            game.give_up(*rest)
            return
        if self.outputs is not None:
            self.outputs.distrust(ending.attempt.task, ending.attempt.began)
        if ending.attempt.lost and (self.stopping or ending.job.number in self._withdrawn):
            game.give_up(*rest)
            return
        self.tries.count(ending.attempt.task, ending.attempt.attempt, ending.attempt.answer)
        game.give_up(*rest[1:])
        game.fail(task)
        self._next_report = min(self._next_report, time.monotonic() + SOON)
        v, why = ending.attempt.task, ending.attempt.failure
        if self.tries.again_or_never(v, why, time.monotonic(), self.settings.retries, self._random) is None:
            self.failures[task] = ending
            if len(self.failures) >= self.settings.most_failures:
                self.stop()

    def _try_again(self) -> None:
        """Release tasks whose retry is due."""
        for v in self.tries.due(time.monotonic()) if self.tries.waiting else ():
            self.execution.release(self.execution.graph.name(v))

    def _patience(self) -> float:
        """The longest time to wait for the engine, in seconds."""
        due = [self.tries.next_due] if self.tries.waiting and not self.stopping else []
        if isinstance(self.allocator, Prudent) and self.allocator.due is not None and not self.paused:
            due.append(self.allocator.due)
        return min(TICK, max(0.0, min(due) - time.monotonic())) if due else TICK

    def _note(self, ending: Ending) -> None:
        self._attempts += 1
        if self.store is not None:
            self._notes.append(ending.attempt)

    def _keep(self) -> None:
        """Write new moves and attempts to the store; if it cannot write, start no more tasks."""
        if self.store is None:
            return
        if time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + TELLING
            self.store.note("present", self.present())
        if self._kept == len(self.execution.journal) and not self._notes:
            return
        added, moves = self.execution.additions[self._grown :], self.execution.since(self._kept)
        changes = [] if self.outputs is None else self.outputs.ended(moves)
        if self.within is not None:
            self.within.correct_files({change.name: change.size or 0 for change in changes})
        self.store.add(moves, self._notes, added, changes)
        if added:
            with suppress(InputError):  # the store reports its own errors
                self.store.flush()
        self._kept, self._grown, self._notes = len(self.execution.journal), len(self.execution.additions), []
        if self.store.error is not None:
            self.stop()
        else:
            self._clean(self.store)

    def _clean(self, store: Store) -> None:
        """Remove temporary files that no task needs any more, now that the ends of those that read them are stored."""
        if self.outputs is not None and self.outputs.is_due:
            jobs = self.running.values()
            busy = [lease.task for job in jobs for lease in job.leases[job.ended :]]
            store.add((), files=self.outputs.clean(busy))
