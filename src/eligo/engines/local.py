"""Processes on this machine: one a task, each in a process group of its own, so that nothing that it starts outlives it."""

import errno
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from eligo.allocating import Ask
from eligo.engines.futures import threads
from eligo.engines.jobs import ALIKE, Command, Ending, Engine, Function, Job
from eligo.engines.naming import Wanted
from eligo.engines.performing import GRACE, NO_PROGRAM, said, unable
from eligo.engines.room import Needs, Room
from eligo.engines.worker import KILOBYTE, own_peak
from eligo.errors import InputError

SHELL = "/bin/sh"
#: what this machine, and not the task, lacked when it could not be begun
SHORT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC}
#: what Python ignores, and a task should not: a pipe that nobody reads ends who writes into it
IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(slots=True, eq=False)
class _Running:
    """A task under way."""

    job: Job
    slot: int
    index: int = 0
    pid: int = 0
    watch: int = -1  # a file that can be read once the process has ended
    began: float = 0.0
    #: when it is told to stop, or made to once it was told, by the monotonic clock
    stops: float = math.inf
    told: bool = False
    why: str = ""
    lost: bool = False


class LocalEngine:
    """So many tasks at a time; *cores* and *memory* are what they may have together, and *needs* what each wants of them.

    Where a task needs more than one core or some memory, it waits until that is free, and smaller ones that come later may
    go before it; one that needs more than there is runs alone.
    """

    name = "local"
    slack = 0

    def __init__(
        self,
        workers: int,
        cores: float | None = None,
        memory: int | None = None,
        needs: Needs | None = None,
        scratch: str | None = None,
    ) -> None:
        self._free = list(range(workers - 1, -1, -1))
        self._names = [f"slot {number + 1}" for number in range(workers)]
        self._room = Room(workers if cores is None else cores, memory, needs)
        self._asks = [Ask(name, speed=ALIKE, fits=self._room.admits) for name in self._names]
        self._slot = {name: number for number, name in enumerate(self._names)}
        self._running: dict[int, _Running] = {}  # by the file that tells of its end
        self._stopping: list[_Running] = []
        self._poll = select.poll()
        self._ended: list[Ending] = []
        self._environment, self._here = dict(os.environb), os.getcwd()
        self._printed = Printed(scratch) if scratch is not None else None
        self._peak = 0  # of this process itself, in the system's unit
        self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def asks(self) -> Sequence[Ask]:
        """One for every free slot; where tasks differ in what they need, one that says what is left."""
        free = [self._asks[slot] for slot in reversed(self._free)]
        return free if self._room.admits is None else free[:1]

    def start(self, job: Job) -> None:
        """Begin the first task of a job."""
        if any(isinstance(work, Function) for work in job.works):
            raise InputError("a local process runs commands, and this task is a function")
        slot = self._slot[str(job.client)]
        self._free.remove(slot)
        self._room.enter(job)
        self._begin(_Running(job, slot))

    def _begin(self, running: _Running) -> None:
        """Begin one task of a job."""
        work, timeout = cast(Command, running.job.works[running.index]), running.job.timeout
        running.began = time.time()
        try:
            running.pid = self._spawn(work, running.slot)
            running.watch = os.pidfd_open(running.pid)
        except (OSError, ValueError) as error:  # ValueError: words that no program can be given
            self._not_begun(running, work, error)
            return
        self._running[running.watch] = running
        self._poll.register(running.watch, select.POLLIN)
        if timeout is not None:
            running.stops, running.why = time.monotonic() + timeout, f"took longer than {timeout:g} s"
            self._stopping.append(running)

    def _not_begun(self, running: _Running, work: Command, error: OSError | ValueError) -> None:
        """A task could not be begun; where it was, but cannot be watched, it is ended."""
        if running.pid:
            self._signal(running, signal.SIGKILL)
            os.waitpid(running.pid, 0)
        running.lost = getattr(error, "errno", None) in SHORT
        self._tell(running, NO_PROGRAM, unable(work, error), None)

    def _spawn(self, work: Command, slot: int) -> int:
        """A process of its own group, without standard input; the quick way where the folder is ours."""
        environment = self._environment.copy()  # in bytes, since each word of it is made so for every process
        for name, word in work.environment.items():
            environment[os.fsencode(name)] = os.fsencode(word)
        streams = [self._nothing, self._nothing] if self._printed is None else self._printed.of(slot)
        begin = self._spawned if work.folder == self._here else self._spawned_elsewhere
        try:
            return begin(work, work.argv, environment, streams)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
        return begin(work, (SHELL, *work.argv), environment, streams)  # a script that does not say whose: as shells do

    def _spawned(
        self, work: Command, argv: tuple[str, ...], environment: dict[bytes, bytes], streams: list[int]
    ) -> int:
        actions = [(os.POSIX_SPAWN_DUP2, at, to) for to, at in enumerate((self._nothing, *streams))]
        spawn = os.posix_spawn if os.sep in argv[0] else os.posix_spawnp
        return spawn(argv[0], argv, environment, file_actions=actions, setpgroup=0, setsigdef=IGNORED)

    def _spawned_elsewhere(
        self, work: Command, argv: tuple[str, ...], environment: dict[bytes, bytes], streams: list[int]
    ) -> int:
        out, err = streams
        child = subprocess.Popen(  # noqa: S603 - the words are the user's own
            argv, cwd=work.folder, env=environment, process_group=0, stdin=self._nothing, stdout=out, stderr=err
        )
        child.returncode = 0  # it is waited for here, and not when it is forgotten
        return child.pid

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not self._ended:
            until = min([deadline, *(running.stops for running in self._stopping)])
            for watch, _ in self._poll.poll(None if until == math.inf else 1000 * max(0.0, until - time.monotonic())):
                self._reap(self._running[watch])
            now = time.monotonic()
            for running in [each for each in self._stopping if each.stops <= now]:
                self._stop(running)
            if now >= deadline:
                break
        ended, self._ended = self._ended, []
        return ended

    def _reap(self, running: _Running) -> None:
        """A process has ended: end what it left behind, before its number can be anybody else's, and go on with the job."""
        self._signal(running, signal.SIGKILL)
        _, status, usage = os.wait4(running.pid, 0)
        self._poll.unregister(running.watch)
        os.close(running.watch)
        del self._running[running.watch]
        if running.stops < math.inf or running.told:
            self._stopping.remove(running)
        work = running.job.works[running.index]
        if self._printed is not None and isinstance(work, Command):
            self._printed.keep(running.slot, work)
        code = os.waitstatus_to_exitcode(status)
        self._tell(running, code, running.why if running.told else said(code), self._memory(usage.ru_maxrss))

    def _memory(self, peak: int) -> int | None:
        """The most that a process had, in bytes; None where that is what this one had when it began it."""
        if peak > self._peak:
            self._peak = own_peak()
        return peak * KILOBYTE if peak > self._peak else None

    def _tell(self, running: _Running, code: int, failure: str | None, memory: int | None) -> None:
        """Say what became of a task; its job goes on, or its slot is free."""
        job, index, now = running.job, running.index, time.time()
        ending = Ending(job, index, running.began, now, failure, None, code, memory, running.lost)
        self._ended.append(ending)
        if not ending.last:
            self._begin(_Running(job, running.slot, index + 1))
            return
        self._free.append(running.slot)
        self._room.leave(job)

    def _stop(self, running: _Running) -> None:
        """Tell a task to stop, and once it was told and did not, make it."""
        self._signal(running, signal.SIGKILL if running.told else signal.SIGTERM)
        running.stops = math.inf if running.told else time.monotonic() + GRACE
        running.told = True

    def _signal(self, running: _Running, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only a zombie
            os.killpg(running.pid, number)

    def cancel(self, jobs: Sequence[Job]) -> None:
        """See `Engine`."""
        for running in [each for each in self._running.values() if each.job in jobs and not each.told]:
            if running.stops == math.inf:
                self._stopping.append(running)
            running.why, running.lost = "stopped", True
            self._stop(running)

    def close(self) -> None:
        """Stop all that runs, and free what it has."""
        self.cancel([running.job for running in self._running.values()])
        while self._running:
            self.wait(GRACE)
        os.close(self._nothing)
        if self._printed is not None:
            self._printed.close()


class Printed:
    """What tasks print: into two files a slot, which are given the task's name once something is in them.

    Most tasks print nothing, and files are dear.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[int, list[int]] = {}
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: what tasks print cannot be kept here: {error.strerror}") from None

    def of(self, slot: int) -> list[int]:
        """The files of a slot, for standard output and standard error."""
        if slot not in self._open:
            out = self._fresh(slot, "out")
            try:
                self._open[slot] = [out, self._fresh(slot, "err")]
            except OSError:
                os.close(out)
                raise
        return self._open[slot]

    def path(self, slot: int, kind: str) -> str:
        """Where what a slot's task prints is to be found while it runs."""
        return f"{self._folder}/slot-{slot + 1}.{kind}"

    def keep(self, slot: int, work: Command) -> None:
        """A task has ended: what it printed gets its name."""
        streams, used = self._open[slot], False
        for place, (kind, name) in enumerate((("out", work.out), ("err", work.err))):
            if not os.fstat(streams[place]).st_size:
                continue
            used = True
            if name != os.devnull:
                with suppress(OSError):  # its folder is gone: what the task did counts
                    os.rename(self.path(slot, kind), name)
        if used:
            for stream in self._open.pop(slot):
                os.close(stream)

    def _fresh(self, slot: int, kind: str) -> int:
        return os.open(self.path(slot, kind), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)

    def close(self) -> None:
        """Close all of them, and take away what is empty."""
        for slot, streams in self._open.items():
            for kind, stream in zip(("out", "err"), streams, strict=True):
                os.close(stream)
                with suppress(OSError):
                    os.unlink(self.path(slot, kind))


def engine(wanted: Wanted) -> Engine:
    """One that runs on this machine: commands as processes, functions in threads of this one."""
    slots = wanted.own().slots
    if wanted.functions:
        return threads(slots, wanted.room(slots))
    return LocalEngine(slots, wanted.cores, wanted.memory, wanted.needs, wanted.scratch)
