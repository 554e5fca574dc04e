"""The sessions of a client's tasks, so that the next client finds their processes after a crash, whatever they changed."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

from eligo.engines.job_run import MARK
from eligo.engines.sessions import PROCESSES, SessionFile, end_marked


class TaskSessions:
    """Records the session of every running task in a file, which the tasks also hold open."""

    def __init__(self, folder: str, mark: str) -> None:
        self.path, self._mark = f"{folder}/{PROCESSES}", mark
        self._file: SessionFile | None = None
        self._busy, self._lock = set[int](), threading.Lock()

    def end(self) -> None:
        """Kill the processes of this client's tasks, also those of an earlier client with the same folder."""
        end_marked(MARK, self._mark, self.path)

    @contextmanager
    def recording(self) -> Iterator[Callable[[int], object]]:
        """Yields a function that records the session of a task; the record is replaced once the task has ended."""
        if sys.platform != "linux":
            yield lambda session: None
            return
        with self._lock:
            self._file = self._file or SessionFile(self.path)
            slot = next(number for number in count() if number not in self._busy)
            self._busy.add(slot)
        try:
            yield partial(self._file.enter, slot, after=time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        finally:
            with self._lock:
                self._busy.remove(slot)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
