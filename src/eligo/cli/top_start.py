"""The start of `eligo top`: the terminal and its background colour; or, with --once, one frame as plain text."""

import os
import re
import select
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.text import Text

from eligo.cli import top_tables as tables
from eligo.cli.output import WIDTH, is_unicode, print_lines
from eligo.cli.top_style import Look, curve_lines, head, is_dark, one_line, said
from eligo.errors import InputError, counted
from eligo.pages.sources import RunSource
from eligo.running import states as looked

HEIGHT = 8  # lines of the curve
MOST_ROWS, MOST_TAIL = 8, 3
NEEDED = 'eligo top needs Textual: pip install "eligo[top]", or use --once'
PATIENT = 0.2  # seconds to wait for the terminal's answer about its colours
_GROUND = re.compile(rb"\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")


def show_top(source: RunSource) -> int:
    """Show the screen until the user quits; returns the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("eligo top needs a terminal: use --once to print the current state")
    try:
        from eligo.cli.top import TopApp
    except ImportError as error:
        raise InputError(f"{NEEDED} ({error.name} is missing)") from None
    app = TopApp(source, dark=ground_is_dark())
    app.run()
    return int(app.return_code or 0)


def ground_is_dark() -> bool:
    """Whether the terminal's background is dark, by COLORFGBG or its own answer; assumed if neither says."""
    if os.environ.get("COLORFGBG"):
        return is_dark()
    try:
        return answers_dark(_query_terminal())
    except (ImportError, OSError):
        return True


def answers_dark(answer: bytes) -> bool:
    r"""Whether the terminal that gave this answer has a dark background.

    >>> answers_dark(b"\x1b]11;rgb:ffff/ffff/dddd\x1b\\"), answers_dark(b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07"), answers_dark(b"")
    (False, True, True)
    """
    match = _GROUND.search(answer)
    if match is None:
        return True
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


def _query_terminal() -> bytes:
    """The terminal's answer to a query of its background and then of its type, which all terminals answer."""
    import termios
    import tty

    stream = sys.stdin.fileno()
    try:
        before = termios.tcgetattr(stream)
    except termios.error:
        return b""
    answer, end = b"", time.monotonic() + PATIENT
    try:
        tty.setcbreak(stream)
        os.write(sys.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        while (remaining := end - time.monotonic()) > 0 and not re.search(rb"\x1b\[\?[\d;]*c", answer):
            if select.select([stream], [], [], remaining)[0]:
                answer += os.read(stream, 256)
    finally:
        with suppress(termios.error):
            termios.tcsetattr(stream, termios.TCSAFLUSH, before)
    return answer


# One frame


def print_once(source: RunSource) -> int:
    """Print the current state."""
    workflows = source.workflows()
    if not workflows:
        print_lines(["no workflows on this server"])
        return 0
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    coloured = console.is_terminal and not console.no_color and console.color_system is not None
    look = Look(is_dark(), coloured, is_unicode(sys.stdout.encoding))
    width = shutil.get_terminal_size((WIDTH, 24)).columns if console.is_terminal else WIDTH
    lines = frame(source.view(workflows[0].workflow), width, look)
    if len(workflows) > 1:
        lines += [Text(), said(f"... and {counted(len(workflows) - 1, 'workflow')} more: eligo status {source.place}")]
    for line in lines:
        line.rstrip()
        console.print(line)
    return 0


def frame(view: dict[str, Any], width: int, look: Look) -> list[Text]:
    """The state of a workflow: the first lines, the curve, running tasks, workers, and failures."""
    lines = [*head(view, width, look).split("\n"), Text(), *curve_lines(view, width, HEIGHT, look)]
    running = view["counts"][looked.RUNNING]
    lines += _section("running", tables.RUNNING, tables.running_rows(view, look), (running, width), look)
    lines += _section("workers", tables.WORKERS, tables.worker_rows(view, look), (len(view["clients"]), width), look)
    lines += _section(
        "failures", tables.FAILURES, tables.failure_rows(view, look), (len(view["failures"]), width), look
    )
    if view["failures"]:
        lines += [Text("        ", end="") + line for line in tables.tail_lines(view["failures"][0], MOST_TAIL, look)]
    words = [part for sentence in view["order"]["words"] for part in wrap(one_line(sentence), width)]
    lines += [Text(), *map(Text, words)]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _section(
    title: str, columns: Sequence[tables.ListColumn], rows: Sequence[tables.Row], size: tuple[int, int], look: Look
) -> list[Text]:
    total, width = size
    if not rows:
        return []
    more = total - len(rows[:MOST_ROWS])
    lines = [
        Text(),
        said(title.upper(), "bold" if look.colours else ""),
        *tables.table_lines(columns, rows[:MOST_ROWS], width, look),
    ]
    return [*lines, said(f"... and {more:,} more", look.style("faint"))] if more > 0 else lines
