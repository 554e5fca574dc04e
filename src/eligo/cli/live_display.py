"""A run while it goes on: a display where somebody watches, a line now and then in logs and pipes."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from eligo.cli.output import BLOCKS, harmless
from eligo.errors import shorten
from eligo.estimating import lasting
from eligo.pages.process_source import WatchedProcess
from eligo.pages.views import Sampled, summary
from eligo.running import Runner
from eligo.running.forecast import time_left

if TYPE_CHECKING:
    from rich.text import Text

OFTEN, FIRST, SELDOM = (
    0.25,
    2.0,
    30.0,
)  # seconds between looks for people, before the first line of a log, and between lines
SHARE = 20  # showing it may take one part in so many of the time
MOST_LINES, MOST_SHOWN = 20, 3  # failures that are told one by one in logs, and at once on a display
#: of each state: its sign in the bar and its colour
SIGNS = {
    "done": ("█", "green"),
    "running": ("▓", "blue"),
    "ready": ("▒", "cyan"),
    "pending": ("░", "bright_black"),
    "blocked": ("·", "magenta"),
    "retrying": ("!", "yellow"),
    "failed": ("x", "red"),
}
ALWAYS = ("done", "running", "ready", "pending")  # told also where there are none


@contextmanager
def watching(process: WatchedProcess, stream: TextIO, quiet: bool = False) -> Iterator[None]:
    """Tell how the run goes on while it does."""
    if quiet:
        yield
    elif stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}:
        with _display(process, stream):
            yield
    else:
        process.runner.watch = _Lines(process, stream)
        yield


class _Lines:
    """A line soon, where the run is not over by then, and every half minute; and one for every failure."""

    def __init__(self, process: WatchedProcess, stream: TextIO) -> None:
        self._process, self._stream = process, stream
        self._due, self._failures = time.monotonic() + FIRST, 0

    def __call__(self, runner: Runner) -> None:
        if len(runner.failures) > self._failures:
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
    """The display, at most four times a second, and less often where that would take time from the run."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    due, failures = [0.0], list[str]()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def watch(runner: Runner) -> None:
            now = time.monotonic()
            if now < due[0]:
                return
            process.look()
            failures.extend(f"{shorten(task)}: {why}" for task, why in process.new_failures())
            live.update(screen(process, failures, console.width), refresh=True)
            due[0] = time.monotonic() + max(OFTEN, SHARE * (time.monotonic() - now))

        process.runner.watch = watch
        yield


def screen(process: WatchedProcess, failures: Sequence[str], width: int) -> "Text":
    """What a person sees who watches."""
    from rich.text import Text

    view, text = summary(process), Text(no_wrap=True, overflow="ellipsis")
    for state, cells in bar(view["counts"], width).items():
        text.append(SIGNS[state][0] * cells, SIGNS[state][1])
    used = 0
    for state, count in view["counts"].items():
        label = f"{SIGNS[state][0]} {count:,} {state}  " if count or state in ALWAYS else ""
        used = used + len(label) if used + len(label) <= width else len(label)
        text.append("\n" if label and used == len(label) else "")
        text.append(label, SIGNS[state][1])
    text.append(f"\n{pace(view)}\n{_curves(process, width)}")
    for line in failures[-MOST_SHOWN:]:
        text.append(f"\n{harmless(line)}", "red")
    if len(failures) > MOST_SHOWN:
        text.append(f"\n{len(failures):,} failures in total", "red")
    return text


def _curves(process: WatchedProcess, width: int) -> str:
    """The tasks that could run so far, above those of the plan, in the same measure."""
    process.ready.follow()
    columns, counts = Sampled(len(process.flow) + 1, max(10, width - 26)), process.ready.counts
    actual, plan = columns.most(np.array(counts, np.int64)).tolist(), process.planned[0]
    planned = [] if plan is None else columns.most(plan).tolist()
    top = max([*actual, *planned, 1])
    lines = [f"    ready {_blocks(actual, top)} {counts[-1]:,} now"]
    if plan is not None:
        lines.append(f"  planned {_blocks(planned, top)} {plan[min(len(counts), len(plan)) - 1]:,} here")
    return "\n".join(lines)


def _blocks(values: Sequence[int], top: int) -> str:
    return "".join(BLOCKS[-(-value * 8 // top)] for value in values)


def bar(counts: dict[str, int], width: int) -> dict[str, int]:
    """How many cells of a bar each state gets: its share, and one at least where there is any task.

    >>> bar({"done": 997, "running": 2, "failed": 1, "ready": 0}, 10)
    {'done': 8, 'running': 1, 'failed': 1}
    """
    total = max(1, sum(counts.values()))
    cells = {state: max(1, count * width // total) for state, count in counts.items() if count}
    while cells and sum(cells.values()) != width:
        short = sum(cells.values()) < width
        exact = {state: counts[state] * width / total - had for state, had in cells.items()}
        if not short and max(cells.values()) == 1:
            break
        chosen = max(exact, key=exact.__getitem__) if short else min(exact, key=lambda s: (cells[s] == 1, exact[s]))
        cells[chosen] += 1 if short else -1
    return cells


def pace(view: Mapping[str, Any]) -> str:
    """How fast it goes and how long it still takes, in words."""
    speed = f"{speed_told(view['rate'])}, " if view["rate"] else ""
    return f"{lasting(round(view['seconds']))} so far, {speed}{time_left(view['left'])}"


def speed_told(rate: float) -> str:
    """Tasks a second as people say it.

    >>> speed_told(14.2), speed_told(0.05)
    ('14 tasks/s', '3 tasks/min')
    """
    return f"{_figures(rate)} tasks/s" if rate >= 1 else f"{_figures(60 * rate)} tasks/min"


def _figures(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def progress_line(view: Mapping[str, Any]) -> str:
    """Where a run stands, in one line."""
    counts = view["counts"]
    parts = [f"{count:,} {state}" for state, count in counts.items() if state not in {"done", "pending"} and count]
    return ", ".join([f"{counts['done']:,} of {view['tasks']:,} done", *parts, pace(view)])
