"""What a machine may lack to start a process: descriptors, processes, memory. It is never the fault of a task."""

import errno
import math
import resource
import time
import warnings
from collections.abc import Callable

from eligo.errors import ShortageError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds between two tries to start a task
MOST_WAITED = 300.0  # seconds without a start, while nothing runs, after which the run stops
FILES_OF_A_TASK, OWN_FILES = 3, 100  # descriptors that are needed
HEADROOM = 16  # descriptors that tasks leave to the rest of this process
LIMITS = {
    errno.EMFILE: "ulimit -n limits the open files of a process",
    errno.ENFILE: "fs.file-max limits the open files of the machine",
    errno.EAGAIN: "ulimit -u limits the processes of a user",
}


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


class Shortage:
    """When a start is tried again that the machine had no room for, and when no longer."""

    def __init__(self) -> None:
        #: called once in a run, with a sentence
        self.warn: Callable[[str], None] = _warn
        #: when to try again, by the monotonic clock
        self.again = 0.0
        self._pause, self._since, self._warned, self._error = FIRST_PAUSE, math.inf, False, OSError()

    def meet(self, error: OSError, busy: bool) -> None:
        """A task could not be started; *busy* where others run, whose end may make room."""
        now, self._error = time.monotonic(), error
        self._since = math.inf if busy else min(self._since, now)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        self.again = now + (LONGEST_PAUSE if busy else self._pause)
        if not self._warned:
            self._warned = True
            self.warn(f"cannot start more tasks for now: {self._words()}")

    def check(self) -> None:
        """Raise ShortageError where nothing could be started for too long, or the disk is full, where a run ends at once."""
        if self._error.errno == errno.ENOSPC:
            raise ShortageError(f"no task can be started: {self._words()}")
        if time.monotonic() - self._since > MOST_WAITED:
            raise ShortageError(f"no task could be started for {MOST_WAITED / 60:g} minutes: {self._words()}")

    def end(self) -> None:
        """A task was started."""
        self._pause, self._since = FIRST_PAUSE, math.inf

    def _words(self) -> str:
        limit = LIMITS.get(self._error.errno or 0)
        return f"{self._error.strerror} ({limit})" if limit else str(self._error.strerror)


def allow_files(workers: int) -> tuple[int, int] | None:
    """Let this process have as many files open as so many tasks need; the limits that it had, where they were too small."""
    needed = FILES_OF_A_TASK * workers + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return soft, hard


def most_files() -> float:
    """The largest number of a file that tasks may cause to be opened: some are left to the rest of this process."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if most == resource.RLIM_INFINITY else most - HEADROOM
