"""How `eligo run` ends, and what it does with attempts: print their output, or add a line to a table."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from eligo.engines import Command, Ending, Job
from eligo.engines.output import slot_output
from eligo.errors import InputError
from eligo.running import Runner

FAILED, INTERRUPTED = 1, 130  # exit codes
#: the columns of a table of attempts, as GNU parallel names them; then ours
COLUMNS = (
    "Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command", "Task", "Attempt",
)  # fmt: skip

EVERY = 0.1  # seconds between two looks at the output of running tasks
Follow = Callable[[Ending], None]


class Ended(NamedTuple):
    """The number of tasks of a run, its duration, its folder, its report, and the number of tasks from a cache."""

    tasks: int
    seconds: float
    run: str
    report: str | None = None
    from_cache: int = 0

    def document(self, policy: str, done: int, failed: Mapping[str, str], blocked: Sequence[str]) -> dict[str, Any]:
        """The result of a run as plain data, the same for every engine."""
        return {
            "tasks": self.tasks, "done": done, "failed": dict(failed), "blocked": list(blocked),
            "futile": list(blocked),  # its name in schema 1
            "seconds": self.seconds, "makespan": self.seconds, "run": self.run, "policy": policy, "report": self.report,
            "from_cache": self.from_cache,
        }  # fmt: skip


def print_output(ending: Ending) -> None:
    """Print what an attempt printed, to the same streams, so that the outputs of tasks do not mix."""
    work = ending.job.works[ending.place]
    if isinstance(work, Command):
        for path, stream in ((work.out, sys.stdout), (work.err, sys.stderr)):
            _copy(path, stream)


class TaskLines:
    """Prints the lines of running tasks as they come, each after the name of its task.

    It is called at the end of every attempt, and regularly with the runner meanwhile.
    """

    def __init__(self) -> None:
        self._due = 0.0
        #: for the output and the errors of each attempt that runs, the number of bytes read and the start of a line
        self._read: dict[tuple[int, int, int], tuple[int, bytes]] = {}

    def __call__(self, ending: Ending) -> None:
        """Print the rest of the output of an attempt, of which the last line may lack its end."""
        work = ending.job.works[ending.place]
        if not isinstance(work, Command):
            return
        for kind, path in enumerate((work.out, work.err)):
            self._print(ending.job, ending.place, kind, path)
            _, rest = self._read.pop((ending.job.number, ending.place, kind), (0, b""))
            _print_lines(ending.task, [rest] if rest else [], kind)

    def watch(self, runner: Runner) -> None:
        """Print the new lines of all running tasks, now and then."""
        if time.monotonic() < self._due:
            return
        for job in runner.running.values():
            work = job.works[job.ended] if job.ended < len(job.works) else None
            if isinstance(work, Command):
                for kind, path in enumerate((work.out, work.err)):
                    self._print(job, job.ended, kind, present_output(path, str(job.client), runner))
        self._due = time.monotonic() + EVERY

    def _print(self, job: Job, place: int, kind: int, path: str) -> None:
        """Print the complete lines that a file has now and had not before."""
        seen, rest = self._read.get((job.number, place, kind), (0, b""))
        with suppress(FileNotFoundError), open(path, "rb") as file:
            file.seek(seen)
            data = file.read()
            *lines, rest = (rest + data).split(b"\n")
            self._read[job.number, place, kind] = (seen + len(data), rest)
            _print_lines(job.tasks[place], lines, kind)


def present_output(path: str, client: str, runner: Runner) -> str:
    """The file to which a running attempt prints what will be in *path*."""
    if runner.engine.name != "local" or runner.growth is None:
        return path
    return slot_output(runner.growth.commands.logs, client, path.rpartition(".")[2])


def _print_lines(task: object, lines: Sequence[bytes], kind: int) -> None:
    stream = sys.stderr if kind else sys.stdout
    stream.writelines(f"{task}: {line.decode('utf-8', 'replace')}\n" for line in lines)
    stream.flush()


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
                    raise InputError(f"{self.path}: this file was not written by --joblog (choose another file)")
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
