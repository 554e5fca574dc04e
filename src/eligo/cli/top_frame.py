"""One frame of `eligo top` as plain text, for scripts, logs, and terminals that do no more."""

import shutil
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.text import Text

from eligo.cli.output import WIDTH, is_unicode, print_lines
from eligo.cli.top_curve import drawn
from eligo.cli.top_style import Look, is_dark, one_line, said
from eligo.cli.top_tables import (
    FAILURES,
    RUNNING,
    WORKERS,
    ListColumn,
    Row,
    failure_rows,
    running_rows,
    table_lines,
    tail_lines,
    worker_rows,
)
from eligo.cli.top_words import head
from eligo.pages.sources import RunSource
from eligo.plotting.labels import counted
from eligo.running import states as looked

HEIGHT = 8  # lines of the curve
MOST_ROWS, MOST_TAIL = 8, 3


def print_once(source: RunSource) -> int:
    """Print where it stands now."""
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
    """Where a workflow stands: the first lines, the curve, what runs, who is at it, what failed."""
    lines = [*head(view, width, look).split("\n"), Text(), *drawn(view, width, HEIGHT, look)]
    running = view["counts"][looked.RUNNING]
    lines += _section("running", RUNNING, running_rows(view, look), (running, width), look)
    lines += _section("workers", WORKERS, worker_rows(view, look), (len(view["clients"]), width), look)
    lines += _section("failures", FAILURES, failure_rows(view, look), (len(view["failures"]), width), look)
    if view["failures"]:
        lines += [Text("        ", end="") + line for line in tail_lines(view["failures"][0], MOST_TAIL, look)]
    words = [part for sentence in view["order"]["words"] for part in wrap(one_line(sentence), width)]
    lines += [Text(), *map(Text, words)]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _section(
    title: str, columns: Sequence[ListColumn], rows: Sequence[Row], size: tuple[int, int], look: Look
) -> list[Text]:
    total, width = size
    if not rows:
        return []
    more = total - len(rows[:MOST_ROWS])
    lines = [
        Text(),
        said(title.upper(), "bold" if look.colours else ""),
        *table_lines(columns, rows[:MOST_ROWS], width, look),
    ]
    return [*lines, said(f"... and {more:,} more", look.style("faint"))] if more > 0 else lines
