"""Handles shortages on this machine, which are not failures of tasks: descriptors, processes or memory for a new process."""

import errno
import math
import resource
import time
import warnings
from collections.abc import Callable

from eligo.errors import ShortageError

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
