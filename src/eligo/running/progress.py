"""The progress of `eligo.run` in Python: a bar, or a function of the user that is called regularly."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eligo.errors import InputError, shorten

if TYPE_CHECKING:
    from eligo.running.loop import Runner

OFTEN = 0.1  # seconds between two calls


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a run at a moment."""

    tasks: int
    done: int
    running: int
    #: permanently failed tasks
    failed: int
    #: seconds since the start
    seconds: float


#: whether to show a bar on standard error, or a function that gets the progress
ProgressOption = bool | Callable[[Progress], object]


def progress_of(runner: "Runner", began: float) -> Progress:
    """The current progress of a run, given its start time on the monotonic clock."""
    game, seconds = runner.execution, time.monotonic() - began
    running, failed = sum(len(job.tasks) - job.ended for job in runner.running.values()), len(runner.failures)
    return Progress(tasks=len(game.graph), done=len(game.executed), running=running, failed=failed, seconds=seconds)


def check_progress(option: ProgressOption) -> None:
    """Refuse anything else."""
    if not isinstance(option, bool) and not callable(option):
        raise InputError(f"progress must be True, False or a function, got {shorten(repr(option))}")


@contextmanager
def followed(runner: "Runner", option: ProgressOption) -> Iterator[None]:
    """Report the progress of a run while it lasts and once at its end."""
    if option is False:
        yield
        return
    with _bar(len(runner.execution.graph)) if option is True else nullcontext(option) as call:
        reports = runner.watch = _Reports(call)
        yield
        reports.report(runner)


class _Reports:
    """Calls a function with the progress of a run, at most ten times a second; if it raises StopIteration, the run stops."""

    def __init__(self, call: Callable[[Progress], object]) -> None:
        self._call, self._began = call, time.monotonic()
        self._due = self._began

    def __call__(self, runner: "Runner") -> None:
        if time.monotonic() >= self._due:
            self.report(runner)
            self._due = time.monotonic() + OFTEN

    def report(self, runner: "Runner") -> None:
        """Call the function now."""
        try:
            self._call(progress_of(runner, self._began))
        except StopIteration:
            runner.stop()


@contextmanager
def _bar(tasks: int) -> Iterator[Callable[[Progress], object]]:
    """A bar on standard error; in a log, it is printed once at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[running]} running, {task.fields[failed]} failed"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(file=sys.stderr)) as bars:
        bar = bars.add_task("", total=tasks, running=0, failed=0)

        def show(now: Progress) -> None:
            bars.update(bar, total=now.tasks, completed=now.done, running=now.running, failed=now.failed)

        yield show
