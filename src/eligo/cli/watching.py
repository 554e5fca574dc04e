"""A run while it goes on: a display where somebody watches, a line now and then in logs and pipes."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from eligo.cli.printing import BLOCKS, harmless
from eligo.errors import shorten
from eligo.estimating import lasting
from eligo.running import Runner
from eligo.running.forecasting import Left
from eligo.running.progress import Progress

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
    "waiting": ("░", "bright_black"),
    "futile": ("·", "magenta"),
    "to be tried again": ("!", "yellow"),
    "failed": ("x", "red"),
}
ALWAYS = ("done", "running", "ready", "waiting")  # told also where there are none


@contextmanager
def watching(progress: Progress, stream: TextIO, plan: Sequence[int] = (), quiet: bool = False) -> Iterator[None]:
    """Tell how the run goes on while it does; *plan* is how many tasks the plan has ready after each step."""
    if quiet:
        yield
    elif stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}:
        with _display(progress, stream, plan):
            yield
    else:
        progress.runner.watch = _Lines(progress, stream)
        yield


class _Lines:
    """A line soon, where the run is not over by then, and every half minute; and one for every failure."""

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._due, self._failures = time.monotonic() + FIRST, 0

    def __call__(self, runner: Runner) -> None:
        if len(runner.failures) > self._failures:
            self._tell_failures()
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + SELDOM
            self._progress.look()
            self._write(progress_line(self._progress))

    def _tell_failures(self) -> None:
        for task, why in self._progress.new_failures():
            self._failures += 1
            if self._failures <= MOST_LINES:
                self._write(f"{shorten(task)} failed: {why}")
            elif self._failures == MOST_LINES + 1:
                self._write(f"more than {MOST_LINES} tasks failed: from here on failures are only counted")

    def _write(self, line: str) -> None:
        self._stream.write(f"eligo: {harmless(line)}\n")
        self._stream.flush()


@contextmanager
def _display(progress: Progress, stream: TextIO, plan: Sequence[int]) -> Iterator[None]:
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
            progress.look()
            failures.extend(f"{shorten(task)}: {why}" for task, why in progress.new_failures())
            live.update(screen(progress, plan, failures, console.width), refresh=True)
            due[0] = time.monotonic() + max(OFTEN, SHARE * (time.monotonic() - now))

        progress.runner.watch = watch
        yield


def screen(progress: Progress, plan: Sequence[int], failures: Sequence[str], width: int) -> "Text":
    """What a person sees who watches."""
    from rich.text import Text

    counts, shown = progress.counts, Text(no_wrap=True, overflow="ellipsis")
    for state, cells in bar(counts, width).items():
        shown.append(SIGNS[state][0] * cells, SIGNS[state][1])
    used = 0
    for state, count in counts.items():
        told = f"{SIGNS[state][0]} {count:,} {state}  " if count or state in ALWAYS else ""
        used = used + len(told) if used + len(told) <= width else len(told)
        shown.append("\n" if told and used == len(told) else "")
        shown.append(told, SIGNS[state][1])
    shown.append(f"\n{pace(progress)}\n{_curves(progress, plan, width)}")
    for line in failures[-MOST_SHOWN:]:
        shown.append(f"\n{harmless(line)}", "red")
    if len(failures) > MOST_SHOWN:
        shown.append(f"\n{len(failures):,} failed in all", "red")
    return shown


def _curves(progress: Progress, plan: Sequence[int], width: int) -> str:
    """The tasks that could run so far, above those of the plan, in the same measure."""
    room = max(10, width - 26)
    seen, done = progress.curve(room), progress.counts["done"]
    parts = [max(plan[a:b]) for a, b in _parts(len(plan), min(room, len(plan)))] if plan else []
    top = max([*seen, *parts, 1])
    lines = [f"could run {_blocks(seen, top)} {progress.ready:,} now"]
    if parts:
        lines.append(f"  by plan {_blocks(parts, top)} {plan[min(done, len(plan) - 1)]:,} here")
    return "\n".join(lines)


def _parts(size: int, count: int) -> list[tuple[int, int]]:
    return [(place * size // count, (place + 1) * size // count) for place in range(count)]


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


def pace(progress: Progress) -> str:
    """How fast it goes and how long it still takes, in words."""
    speed = f"{speed_told(progress.rate)}, " if progress.rate else ""
    return f"{lasting(round(progress.seconds))} so far, {speed}{time_left(progress.left)}"


def speed_told(rate: float) -> str:
    """Tasks a second as people say it.

    >>> speed_told(14.2), speed_told(0.05)
    ('14 a second', '3 a minute')
    """
    return f"{_figures(rate)} a second" if rate >= 1 else f"{_figures(60 * rate)} a minute"


def _figures(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def time_left(left: Left | None) -> str:
    """A range of time as people say it, the least rounded down and the most up.

    >>> time_left(None), time_left(Left(50, 63)), time_left(Left(100, 260))
    ('time left not known yet', '50 s to 1 min 3 s left', '1 min 40 s to 4 min 20 s left')
    >>> time_left(Left(0.2, 0.7)), time_left(Left(3.0, 3.0)), time_left(Left(3000.2, 6599))
    ('at most 1 s left', 'about 3 s left', '50 min to 1 h 50 min left')
    """
    if left is None:
        return "time left not known yet"
    least, most = (
        sign * (sign * seconds // _unit(seconds)) * _unit(seconds) for sign, seconds in zip((1, -1), left, strict=True)
    )
    if least == most:
        return f"about {lasting(most)} left"
    return f"{lasting(least)} to {lasting(most)} left" if least else f"at most {lasting(most)} left"


def _unit(seconds: float) -> int:
    """Seconds, ten seconds, minutes and so on: nobody can promise more."""
    return 1 if seconds < 120 else 10 if seconds < 600 else 60 if seconds < 7200 else 600


def progress_line(progress: Progress) -> str:
    """Where a run stands, in one line."""
    counts = progress.counts
    told = [f"{count:,} {state}" for state, count in counts.items() if state not in {"done", "waiting"} and count]
    return ", ".join([f"{counts['done']:,} of {progress.size:,} done", *told, pace(progress)])
