"""What `eligo run` does at the end of every attempt: print its output, and add a line to a table."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

from eligo.engines import Command, Ending
from eligo.errors import InputError

#: the columns of a table of attempts, as GNU parallel names them; then ours
COLUMNS = (
    "Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command", "Task", "Attempt",
)  # fmt: skip

Follow = Callable[[Ending], None]


def print_output(ending: Ending) -> None:
    """Print what an attempt printed, to the same streams, so that the outputs of tasks do not mix."""
    work = ending.job.works[ending.place]
    if isinstance(work, Command):
        for path, stream in ((work.out, sys.stdout), (work.err, sys.stderr)):
            _copy(path, stream)


def _copy(path: str, stream: IO[str]) -> None:
    """Copy a file to a stream; a task that printed nothing may have no file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            shutil.copyfileobj(file, stream)
    except FileNotFoundError:
        return
    stream.flush()


@dataclass
class JobLog:
    """A table of attempts with a line for each, which other programs can read while the run continues."""

    path: str
    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        head = _row(COLUMNS)
        try:
            if os.path.exists(self.path) and not os.path.isfile(self.path):
                raise InputError(f"{self.path}: --joblog must be a regular file")
            with open(self.path, "ab+") as file:
                file.seek(0)
                start = file.read(len(head))
                if start and start != head:
                    raise InputError(f"{self.path}: not a table of --joblog (choose another file)")
                file.write(b"" if start else head)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None

    def __call__(self, ending: Ending) -> None:
        """Add the line of an attempt."""
        self._count += 1
        attempt, work = ending.attempt, ending.job.works[ending.place]
        code = attempt.code or int(attempt.failure is not None)
        command = " ".join(work.argv) if isinstance(work, Command) else ""
        times = (f"{attempt.began:.3f}", f"{max(0.0, attempt.ended - attempt.began):.3f}")
        first, last = (self._count, attempt.client), (command, ending.task, attempt.attempt)
        row = (*first, *times, 0, 0, max(0, code), max(0, -code), *last)
        with open(self.path, "ab") as file:
            file.write(_row(list(map(str, row))))


def _row(cells: Sequence[str]) -> bytes:
    return ("\t".join(" ".join(cell.split()) for cell in cells) + "\n").encode("utf-8", "surrogateescape")


def all_of(follows: Sequence[Follow]) -> Follow:
    """One function that calls these in order."""

    def follow(ending: Ending) -> None:
        for each in follows:
            each(ending)

    return follow
