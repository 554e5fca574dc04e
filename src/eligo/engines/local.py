"""Runs commands as processes on this machine, each in its own session, so that no process outlives its task.

If the machine lacks descriptors, processes or memory to start a task, the task waits and does not fail.
"""

import errno
import math
import os
import resource
import select
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

from eligo.allocating import Ask
from eligo.allocating.rooms import Needs, Room
from eligo.engines.cgroups import Cgroup, groups
from eligo.engines.job_run import ending_of
from eligo.engines.jobs import ALIKE, Command, Ending, Engine, Function, Job
from eligo.engines.output import Printed
from eligo.engines.registry import Wanted
from eligo.engines.sessions import SessionFile
from eligo.engines.threads import ThreadEngine
from eligo.engines.worker import (
    ASKED_TO_STOP,
    GRACE,
    KILOBYTE,
    NO_PROGRAM,
    SHORT,
    STOPPED,
    Performed,
    alive,
    describe_exit,
    describe_start_error,
    describe_timeout,
    is_in_use,
    kill_sessions,
    own_peak,
    process_table,
    signal_sessions,
)
from eligo.errors import InputError, ShortageError

SHELL = "/bin/sh"
#: signals that Python ignores and tasks should not: SIGPIPE ends a process that writes to a closed pipe
IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
#: minimum seconds between two checks of sessions whose first process has ended, and the same as a multiple of a check's time
LOOK, SHARE = 0.05, 10
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds between two attempts to start a task
MOST_WAITED = 300.0  # seconds without a start, while no task runs, after which the run stops
FILES_OF_A_TASK, OWN_FILES = 3, 100  # descriptors needed per task, and by this process itself
HEADROOM = 16  # descriptors reserved for the rest of this process
LIMITS = {
    errno.EMFILE: "ulimit -n limits the open files of a process",
    errno.ENFILE: "fs.file-max limits the open files of the machine",
    errno.EAGAIN: "ulimit -u limits the processes of a user",
}


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


class Shortage:
    """Decides when a failed start is retried, and when the run gives up."""

    def __init__(self) -> None:
        #: called once per run, with a sentence
        self.warn: Callable[[str], None] = _warn
        #: the time of the next retry, by the monotonic clock
        self.again = 0.0
        self._pause, self._since, self._warned, self._error = FIRST_PAUSE, math.inf, False, OSError()

    def meet(self, error: OSError, busy: bool) -> None:
        """Record that a task could not be started; *busy* if other tasks run, whose end may free resources."""
        now, self._error = time.monotonic(), error
        self._since = math.inf if busy else min(self._since, now)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        self.again = now + (LONGEST_PAUSE if busy else self._pause)
        if not self._warned:
            self._warned = True
            self.warn(f"cannot start more tasks for now: {self._words()}")

    def check(self) -> None:
        """Raise ShortageError if no task could be started for too long, or at once if the disk is full."""
        if self._error.errno == errno.ENOSPC:
            raise ShortageError(f"no task can be started: {self._words()}")
        if time.monotonic() - self._since > MOST_WAITED:
            raise ShortageError(f"no task could be started for {MOST_WAITED / 60:g} minutes: {self._words()}")

    def end(self) -> None:
        """Record that a task was started."""
        self._pause, self._since = FIRST_PAUSE, math.inf

    def _words(self) -> str:
        limit = LIMITS.get(self._error.errno or 0)
        return f"{self._error.strerror} ({limit})" if limit else str(self._error.strerror)


def allow_files(workers: int) -> tuple[int, int] | None:
    """Raise this process's limit of open files for *workers* tasks; returns the old limits if it was raised, else None."""
    needed = FILES_OF_A_TASK * workers + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return soft, hard


def most_files() -> float:
    """The largest descriptor that tasks may use; the rest is reserved for this process."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if most == resource.RLIM_INFINITY else most - HEADROOM


@dataclass(slots=True, eq=False)
class _Running:
    """A running task."""

    job: Job
    slot: int
    index: int = 0
    pid: int = 0
    watch: int = -1  # a descriptor that is readable once the process has ended
    began: float = 0.0
    #: the time of the next signal, SIGTERM and then SIGKILL, by the monotonic clock
    stops: float = math.inf
    terminated: bool = False
    why: str = ""
    lost: bool = False
    #: the control group that limits its memory, if any
    group: Cgroup | None = None
    #: exit code and peak memory, set once its first process has ended
    code: int = 0
    peak: int = 0

    @property
    def work(self) -> Command:
        return cast(Command, self.job.works[self.index])


class LocalEngine:
    """Runs up to *workers* tasks at once, as far as their needs fit into the *room*.

    If control groups can be created, tasks that state their memory are limited to it; *mark* identifies their groups.
    """

    name = "local"

    def __init__(self, workers: int, room: Room | None = None, scratch: str | None = None, mark: str = "") -> None:
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            cure = "set it to signal.SIG_DFL"
            raise InputError(f"SIGCHLD is ignored in this process, so task exits cannot be detected: {cure}")
        self.room = Room(workers) if room is None else room
        self._names: list[str] = []  # of all slots, also those that are no longer used
        self._use_slots(workers)
        self._running: dict[int, _Running] = {}  # by pidfd
        self._stopping: list[_Running] = []
        self._lingering: list[_Running] = []  # tasks whose first process has ended, within their grace period
        self._look = 0.0  # the time of the next check of them, by the monotonic clock
        self._unbegun: list[_Running] = []  # tasks for which this machine lacks resources
        self._poll = select.poll()
        self._ended: list[Ending] = []
        self._environment, self._here = dict(os.environb), _current_folder()
        self._limit = allow_files(workers)  # the tasks' limit of open files, if that of this process is larger
        self._printed = Printed(scratch) if scratch is not None else None
        self._sessions: SessionFile | None = None
        self._mark = mark
        self._groups = None if self.room.admits is None else groups(mark)  # early: of version 2, while no task runs
        #: why tasks cannot be started
        self.shortage = Shortage()
        self._peak = 0  # peak memory of this process itself, in the system's unit
        self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._spare = os.dup(self._nothing)  # a reserved descriptor, closed when no other is available
        self._last = 0  # the latest descriptor
        self._most_files = most_files()  # the largest descriptor that tasks may use

    def _use_slots(self, workers: int, busy: Collection[int] = ()) -> None:
        """Use this many slots from now on, the *busy* ones once they are free."""
        self._slots = workers
        self._names += [f"slot {number + 1}" for number in range(len(self._names), workers)]
        self._slot = {name: number for number, name in enumerate(self._names)}
        self._asks = self._possible_asks()
        self._free = [slot for slot in range(workers - 1, -1, -1) if slot not in busy]

    def resize(self, workers: int) -> None:
        """See `Resizable`; the number of cores is that of workers."""
        self._use_slots(workers, {each.slot for each in (*self._running.values(), *self._lingering, *self._unbegun)})
        self.room.resize(workers)
        raised = allow_files(workers)
        self._limit, self._most_files = self._limit or raised, most_files()

    def asks(self) -> Sequence[Ask]:
        """One ask per free slot; if tasks differ in their needs, a single one with the free resources."""
        if self._unbegun:
            return []
        return self.room.one_at_a_time([self._asks[slot] for slot in reversed(self._free)])

    def _possible_asks(self) -> list[Ask]:
        return [Ask(name, speed=ALIKE, fits=self.room.admits) for name in self._names]

    def heed(self, needs: Needs) -> None:
        """See `Heeding`."""
        self.room.heed(needs)
        self._asks = self._possible_asks()
        self._groups = self._groups or groups(self._mark)

    def start(self, job: Job) -> None:
        """Start the first task of a job."""
        if any(isinstance(work, Function) for work in job.works):
            raise InputError("engine local runs commands, not functions: use another engine")
        slot = self._slot[str(job.client)]
        self._free.remove(slot)
        self.room.enter(job)
        self._begin(_Running(job, slot))

    def _begin(self, running: _Running) -> None:
        """Start one task of a job, after those for which this machine lacked resources."""
        if self._unbegun:
            self._unbegun.append(running)
            return
        running.began = time.time()
        try:
            self._launch(running)
        except (OSError, ValueError) as error:  # ValueError: arguments that no program can be given
            if running.group is not None:
                running.group.close()
            if isinstance(error, OSError) and error.errno in SHORT:
                self._postpone(running, error)
            else:
                self._tell(running, NO_PROGRAM, describe_start_error(running.work, error), None)
        else:
            self.shortage.end()
            self._attend(running)

    def _postpone(self, running: _Running, error: OSError) -> None:
        """Queue a task for which this machine lacks resources now."""
        self._unbegun.append(running)
        busy = {each.slot for each in (*self._running.values(), *self._lingering)}
        self.shortage.meet(error, bool(busy))
        if self._printed is not None:
            self._printed.close(busy)  # idle slots may hold the files that are lacking

    def _launch(self, running: _Running) -> None:
        """Start the process of a task and open its pidfd."""
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if self._spare < 0:
            self._spare = os.dup(self._nothing)
        if self._running and self._last >= self._most_files:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        work = running.work
        if work.memory and self._groups is not None:
            running.group = self._groups.limited(work.memory)
            work = replace(work, argv=running.group.around(work.argv, {**os.environ, **work.environment}))
        running.pid = self._spawn(work, running.slot)
        if self._sessions is not None:  # at once: a program may cut all other ties before this process runs again
            self._sessions.enter(running.slot, running.pid, after)
        try:
            running.watch = self._last = self._watch(running.pid)
        except OSError:  # its end would go unnoticed
            os.killpg(running.pid, signal.SIGKILL)
            os.waitpid(running.pid, 0)
            raise
        if self._limit is not None:
            with suppress(OSError):  # it has ended, and its id may be reused
                resource.prlimit(running.pid, resource.RLIMIT_NOFILE, self._limit)

    def _watch(self, pid: int) -> int:
        """Open a pidfd; a reserved descriptor makes room if necessary."""
        try:
            return os.pidfd_open(pid)
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE}:
                raise
        os.close(self._spare)
        self._spare = -1
        return os.pidfd_open(pid)

    def _attend(self, running: _Running) -> None:
        """Watch a started task."""
        timeout = running.job.limit(running.index)
        self._running[running.watch] = running
        self._poll.register(running.watch, select.POLLIN)
        if timeout is not None:
            running.stops, running.why = time.monotonic() + timeout, describe_timeout(timeout)
            self._stopping.append(running)

    def _begin_rest(self) -> None:
        """Retry starting the queued tasks once the machine may have resources again."""
        if not self._unbegun or time.monotonic() < self.shortage.again:
            return
        waiting, self._unbegun = self._unbegun, []
        for running in waiting:
            self._begin(running)
        if self._unbegun and not self._running and not self._lingering:
            self.shortage.check()

    def _spawn(self, work: Command, slot: int) -> int:
        """Start a process in its own session without standard input; by the fast path if it runs in the current folder."""
        environment = self._environment.copy()  # in bytes, so that names are not encoded again for every process
        for name, word in work.environment.items():
            environment[os.fsencode(name)] = os.fsencode(word)
        if self._sessions is None and work.marker:
            self._sessions = SessionFile(work.marker)
        begin = self._spawn_here if work.folder == self._here else self._spawn_elsewhere
        printed = (os.devnull, os.devnull) if self._printed is None else self._printed.of(slot)
        try:
            return begin(work.folder, work.argv, environment, printed)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
        return begin(work.folder, (SHELL, *work.argv), environment, printed)  # a script without an interpreter line

    def _spawn_here(
        self, folder: str, argv: tuple[str, ...], environment: dict[bytes, bytes], printed: tuple[str, str]
    ) -> int:
        actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = [(os.POSIX_SPAWN_DUP2, self._nothing, 0)]
        actions += [(os.POSIX_SPAWN_OPEN, to, path, os.O_WRONLY, 0) for to, path in enumerate(printed, 1)]
        actions += [(os.POSIX_SPAWN_DUP2, file, file) for file in self._marker()]  # inherited by the program
        spawn = os.posix_spawn if os.sep in argv[0] else os.posix_spawnp
        return spawn(argv[0], argv, environment, file_actions=actions, setsid=True, setsigdef=IGNORED)

    def _spawn_elsewhere(
        self, folder: str, argv: tuple[str, ...], environment: dict[bytes, bytes], printed: tuple[str, str]
    ) -> int:
        with open(printed[0], "r+b") as out, open(printed[1], "r+b") as err:
            child = subprocess.Popen(  # noqa: S603 - the command is the user's own
                argv, cwd=folder, env=environment, start_new_session=True,
                stdin=self._nothing, stdout=out, stderr=err, pass_fds=self._marker(),
            )  # fmt: skip
        child.returncode = 0  # it is reaped here, not by subprocess
        return child.pid

    def _marker(self) -> tuple[int, ...]:
        return () if self._sessions is None else (self._sessions.file,)

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not self._ended:
            for watch, _ in self._poll.poll(self._patience(deadline)):
                self._reap(self._running[watch])
            now = time.monotonic()
            self._stop([each for each in self._stopping if each.stops <= now])
            self._look_at_lingering(now)
            self._begin_rest()
            if now >= deadline:
                break
        ended, self._ended = self._ended, []
        return ended

    def _patience(self, deadline: float) -> float | None:
        """The longest time to wait for a process to end, in milliseconds."""
        now = time.monotonic()
        until = min([deadline, *(running.stops for running in self._stopping)])
        if self._lingering:
            until = min(until, self._look, *(running.stops for running in self._lingering))
        if self._unbegun:
            until = min(until, self.shortage.again)
        return None if until == math.inf else 1000 * max(0.0, until - now)

    def _reap(self, running: _Running) -> None:
        """Reap a first process and kill the rest of its session, after a grace period if the task was asked to stop."""
        _, status, usage = os.wait4(running.pid, 0)
        self._poll.unregister(running.watch)
        os.close(running.watch)
        self._last = min(self._last, running.watch)
        del self._running[running.watch]
        if running.terminated or running.stops < math.inf:
            self._stopping.remove(running)
        running.code, running.peak = os.waitstatus_to_exitcode(status), usage.ru_maxrss
        if not is_in_use(running.pid, self._nothing):
            self._finish(running)
            return
        self._lingering.append(running)
        if running.stops < math.inf if running.terminated else running.code in ASKED_TO_STOP:
            # a shell dies at once, while its program still saves its files
            running.stops = min(running.stops, time.monotonic() + GRACE)
            return
        running.stops = 0.0
        with suppress(ProcessLookupError, PermissionError):  # no process remains in the group, or only a zombie
            os.killpg(running.pid, signal.SIGKILL)

    def _look_at_lingering(self, now: float) -> None:
        """Finish tasks whose sessions are empty or whose grace period is over."""
        if now < min([self._look, *(running.stops for running in self._lingering)]) or not self._lingering:
            return
        table = process_table()
        self._look = now + max(LOOK, SHARE * (time.monotonic() - now))
        alive_pids = set(alive({running.pid for running in self._lingering}, table).values())
        late = [running for running in self._lingering if running.pid in alive_pids and running.stops <= now]
        kill_sessions({running.pid for running in late}, table)
        over = [running for running in self._lingering if running.pid not in alive_pids or running in late]
        for running in over:
            self._lingering.remove(running)
            self._finish(running)

    def _finish(self, running: _Running) -> None:
        """Store a task's output, and continue its job."""
        self.shortage.again = 0.0
        if self._printed is not None:
            self._printed.keep(running.slot, running.work)
        failure, memory = running.why if running.terminated else describe_exit(running.code), self._memory(running.peak)
        if running.group is not None:
            failure, memory = running.group.failure() or failure, running.group.peak() or memory
            running.group.close()
        self._tell(running, running.code, failure, memory)

    def _memory(self, peak: int) -> int | None:
        """The peak memory of a process in bytes; None if it may be inherited from this one."""
        if peak > self._peak:
            self._peak = own_peak()
        return peak * KILOBYTE if peak > self._peak else None

    def _tell(self, running: _Running, code: int, failure: str | None, memory: int | None) -> None:
        """Record the result of a task; then start the job's next task, or free the slot."""
        job, index, now = running.job, running.index, time.time()
        performed = Performed(running.began, now, failure, None, code, memory, running.lost)
        ending = ending_of(job, index, performed)
        self._ended.append(ending)
        if not ending.last:
            self._begin(_Running(job, running.slot, index + 1))
            return
        if running.slot < self._slots:
            self._free.append(running.slot)
        self.room.leave(job)

    def _stop(self, late: Sequence[_Running]) -> None:
        """Send SIGTERM to tasks, and SIGKILL to those that already had it."""
        new, signalled = [each for each in late if not each.terminated], [each for each in late if each.terminated]
        if new:
            signal_sessions({running.pid for running in new}, signal.SIGTERM)
        if signalled:
            kill_sessions({running.pid for running in signalled}, process_table())
        for running in late:
            running.stops = math.inf if running.terminated else time.monotonic() + GRACE
            running.terminated = True

    def cancel(self, jobs: Sequence[Job]) -> None:
        """See `Engine`."""
        targets = [each for each in self._running.values() if each.job in jobs and not each.terminated]
        self._stopping += [running for running in targets if running.stops == math.inf]
        for running in targets:
            running.why, running.lost = STOPPED, True
        self._stop(targets)
        for running in [each for each in self._unbegun if each.job in jobs]:
            self._unbegun.remove(running)
            running.began, running.lost = time.time(), True
            self._tell(running, NO_PROGRAM, STOPPED, None)

    def close(self) -> None:
        """See `Engine`."""
        self.cancel([running.job for running in (*self._running.values(), *self._unbegun)])
        while self._running or self._lingering:
            self.wait(GRACE)
        for file in {self._nothing, self._spare} - {-1}:
            os.close(file)
        if self._printed is not None:
            self._printed.close()
        if self._sessions is not None:
            self._sessions.close()
        if self._limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._limit)


def _current_folder() -> str:
    """The folder of this process; "" if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def engine(wanted: Wanted) -> Engine:
    """The engine for this machine: commands run as processes, functions in threads of this process."""
    slots = wanted.own().slots
    if wanted.functions:
        return ThreadEngine(slots, wanted.room(slots))
    return LocalEngine(slots, wanted.room(slots), wanted.scratch, wanted.mark)
