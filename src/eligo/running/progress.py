"""The progress of `eligo.run` in Python: a bar, or a function of the user that is called regularly."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


#: True for a bar on standard error, or a function that gets the progress
Wish = bool | Callable[[Progress], object]


def progress_of(runner: "Runner", began: float) -> Progress:
    """The present progress of a run that began at this moment of the monotonic clock."""
    game = runner.execution
    running, failed = sum(len(job.tasks) - job.ended for job in runner.running.values()), len(runner.failures)
    seconds = time.monotonic() - began
    return Progress(tasks=len(game.graph), done=len(game.executed), running=running, failed=failed, seconds=seconds)


@contextmanager
def followed(runner: "Runner", wish: Wish) -> Iterator[None]:
    """Report the progress of a run, at most ten times a second and once at its end.

    An exception of the user's function ends the run.
    """
    if wish is False:
        yield
    elif wish is True:
        with _bar(runner) as show, followed(runner, show):
            yield
    elif callable(wish):
        began = time.monotonic()
        runner.watch = _Regularly(lambda: wish(progress_of(runner, began)))
        yield
        wish(progress_of(runner, began))
    else:
        raise InputError(f"progress must be True, False or a function, got {shorten(repr(wish))}")


class _Regularly:
    """Calls a function at most every tenth of a second."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call, self._due = call, time.monotonic()

    def __call__(self, runner: "Runner") -> None:
        if time.monotonic() >= self._due:
            self._call()
            self._due = time.monotonic() + OFTEN


@contextmanager
def _bar(runner: "Runner") -> Iterator[Callable[[Progress], object]]:
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
        bar = bars.add_task("", total=len(runner.execution.graph), running=0, failed=0)

        def show(now: Progress) -> None:
            bars.update(bar, total=now.tasks, completed=now.done, running=now.running, failed=now.failed)

        yield show
