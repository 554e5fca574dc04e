"""The progress of a run: a live display in a terminal, or a line now and then in logs and pipes."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from eligo.cli.output import format_rate, harmless, is_unicode
from eligo.errors import shorten
from eligo.estimates import lasting
from eligo.pages.folder_source import WatchedProcess
from eligo.pages.views import curve_of, summary
from eligo.running import Runner
from eligo.running.states import time_left

if TYPE_CHECKING:
    from rich.text import Text

OFTEN, FIRST, SELDOM = (
    0.25,
    2.0,
    30.0,
)  # seconds between two updates of the display, before the first line of a log, and between two lines
SHARE = 20  # the display may take one part in this many of the time
MOST_LINES, MOST_SHOWN = 20, 3  # failures that are printed one by one in a log, and shown at once on the display
HEIGHT = 7  # lines of the curve


@contextmanager
def watching(process: WatchedProcess, stream: TextIO, quiet: bool = False) -> Iterator[None]:
    """Show the progress of a run."""
    if quiet:
        yield
    elif stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}:
        with _display(process, stream):
            yield
    else:
        process.runner.watch = until_closed(_Lines(process, stream))
        yield


def until_closed(display: Callable[[Runner], None]) -> Callable[[Runner], None]:
    """The display; if its output is closed, the run continues without it."""

    def watch(runner: Runner) -> None:
        try:
            display(runner)
        except OSError:
            runner.watch = lambda runner: None

    return watch


class _Lines:
    """Prints a line soon, unless the run is over by then, then one every half minute; and one for every failure."""

    def __init__(self, process: WatchedProcess, stream: TextIO) -> None:
        self._process, self._stream = process, stream
        self._due, self._failures = time.monotonic() + FIRST, 0

    def __call__(self, runner: Runner) -> None:
        self._tell_failures()
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + SELDOM
            self._process.look()
            self._write(progress_line(summary(self._process)))

    def _tell_failures(self) -> None:
        for task, why in self._process.new_failures():
            self._failures += 1
            if self._failures <= MOST_LINES:
                self._write(f"{shorten(task)} failed: {why}")
            elif self._failures == MOST_LINES + 1:
                self._write(f"more than {MOST_LINES} tasks failed: further failures are only counted")

    def _write(self, line: str) -> None:
        self._stream.write(f"eligo: {harmless(line)}\n")
        self._stream.flush()


@contextmanager
def _display(process: WatchedProcess, stream: TextIO) -> Iterator[None]:
    """The live display, redrawn at most four times a second, and less often if that would slow the run."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    process.prepare()
    screen(process, (), console.width)  # its imports and one-time work do not count as its time
    due, failures = [0.0], list[str]()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def watch(runner: Runner) -> None:
            now = time.monotonic()
            if now < due[0]:
                return
            process.look()
            failures.extend(f"{shorten(task)}: {why}" for task, why in process.new_failures())
            live.update(screen(process, failures, console.width, is_unicode(console.encoding)), refresh=True)
            due[0] = time.monotonic() + max(OFTEN, SHARE * (time.monotonic() - now))

        process.runner.watch = until_closed(watch)
        yield


def screen(process: WatchedProcess, failures: Sequence[str], width: int, signs: bool = True) -> "Text":
    """The content of the live display."""
    from rich.text import Text

    from eligo.cli.top_style import Look, bar_line, curve_lines, is_dark, legend_line

    process.ready.follow()
    view, look = summary(process), Look(is_dark(), signs=signs)
    counts, curve = view["counts"], curve_of(process) | {"starved": []}  # the times at which workers came are not known
    lines = [bar_line(counts, width, look), legend_line(counts, width, look), Text(pace(view))]
    lines += curve_lines(view | {"curve": curve}, width, HEIGHT, look)
    lines += [Text(harmless(line), look.style("bad")) for line in failures[-MOST_SHOWN:]]
    if len(failures) > MOST_SHOWN:
        lines.append(Text(f"{len(failures):,} failures in total", look.style("bad")))
    text = Text("\n").join(lines)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def pace(view: Mapping[str, Any]) -> str:
    """The elapsed time, the rate and the estimated time left, in words."""
    speed = f"{format_rate(view['rate'])}, " if view["rate"] else ""
    left = "paused" if view["state"] == "held" else time_left(view["left"])
    idle = f"; {view['starving']}" if view.get("starving") else ""
    return f"{lasting(round(view['seconds']))} so far, {speed}{left}{idle}"


def progress_line(view: Mapping[str, Any]) -> str:
    """The state of a run in one line."""
    counts = view["counts"]
    parts = [f"{count:,} {state}" for state, count in counts.items() if state not in {"done", "pending"} and count]
    return ", ".join([f"{counts['done']:,} of {view['tasks']:,} done", *parts, pace(view)])
