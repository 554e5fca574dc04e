"""What people see: tables, a line of blocks for E(t), and JSON for programs."""

import itertools
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eligo.version import __version__

BLOCKS = " ▁▂▃▄▅▆▇█"


def version_line() -> str:
    """What `eligo --version` prints."""
    from eligo.kernels import compiled

    return f"eligo {__version__} ({'compiled' if compiled() else 'interpreted'} kernels)\n"


def sparkline(values: Sequence[int], width: int = 60, top: int = 0) -> str:
    """The values as a line of blocks, the largest of each stretch where there are more than *width*.

    The tallest block is the largest value, or *top* where that is more.

    >>> sparkline([0, 1, 4, 8, 4, 0])
    ' ▁▄█▄ '
    """
    top = max(*values, top, 1)
    columns = min(width, len(values))
    cuts = [i * len(values) // columns for i in range(columns + 1)] if columns else [0]
    peaks = (max(values[a:b]) for a, b in itertools.pairwise(cuts))
    return "".join(BLOCKS[-(-peak * 8 // top)] for peak in peaks)


def chart(profile: Sequence[int], bound: Sequence[int], other: Sequence[int], width: int = 64, height: int = 12) -> str:
    """Ready tasks over time, as text: bars for the plan, dots for the bound above it, a dash for the other order.

    >>> print(chart([1, 2, 3, 0], [1, 3, 3, 0], [1, 1, 3, 0], height=3))
           3 ┤ ·█
             │ ██
           0 ┤█─█
    """
    columns = min(width, len(profile))
    at = [round(i * (len(profile) - 1) / max(1, columns - 1)) for i in range(columns)]
    top = max(*bound, 1)
    rows = []
    for row in range(height, 0, -1):
        floor = top * (row - 1) / height
        line = "".join(_mark(profile[t], bound[t], other[t], floor, top / height) for t in at)
        label = f"{top:,}" if row == height else "0" if row == 1 else ""
        rows.append(f"{label:>8} {'┤' if label else '│'}{line.rstrip()}")
    return "\n".join(rows)


def _mark(value: int, bound: int, other: int, floor: float, step: float) -> str:
    if floor < other <= floor + step and other < value:
        return "─"
    return "█" if value > floor else "·" if bound > floor else " "


def print_json(document: Mapping[str, Any]) -> None:
    """One document on standard output, and nothing else."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def print_facts(title: str, facts: Iterable[tuple[str, object]]) -> None:
    """A table of two columns."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in facts:
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        table.add_row(Text(name, "dim"), Text(shown))
    Console(soft_wrap=True, highlight=False).print(table)
