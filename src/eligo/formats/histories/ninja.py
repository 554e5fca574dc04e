"""`.ninja_log`, in which ninja records when it started and finished to make each file, in milliseconds.

    # ninja log v6
    12      3456    1700000000000000000     out/main.o      9d1f0f3bb5d8a1c2

A task is named by its file. If a file was made more than once, the last time counts.
"""

import re

from eligo.errors import FormatError, shorten
from eligo.formats.histories import LONGEST, Parsed, cut_off
from eligo.workflow import Timed

NAME = "ninja"

VERSIONS = (5, 6, 7)
_HEAD = re.compile(r"# ninja log v([0-9]{1,9})\s*")
_TIMES = re.compile(r"[0-9]{1,18}")


def sniff(text: str) -> bool:
    """Whether the first line names this format."""
    return text.startswith("# ninja log v")


def parse(text: str, path: str) -> Parsed:
    """The time to make each file, the last time that it was made."""
    head, *lines = text.split("\n")
    version = _HEAD.fullmatch(head)
    if version is None or int(version[1]) not in VERSIONS:
        versions = ", ".join(map(str, VERSIONS))
        raise FormatError(f"unsupported ninja log version {shorten(head)!r} (supported: {versions})", line=1)
    durations: dict[str, float] = {}
    cut = False
    for number, line in enumerate(lines, 2):
        cells = line.rstrip("\r").split("\t")
        if len(cells) == 5:
            durations[cells[3]] = _seconds(cells[0], cells[1], number)
        elif line.strip() and not line.startswith("#"):
            if number <= len(lines):
                raise FormatError(f"a line must have 5 cells separated by tabs, got {len(cells)}", line=number)
            cut = True
    return Parsed([Timed(name, None, seconds) for name, seconds in durations.items()], cut_off("line") if cut else [])


def _seconds(start: str, end: str, line: int) -> float:
    if not (_TIMES.fullmatch(start) and _TIMES.fullmatch(end)) or not 0 <= int(end) - int(start) <= LONGEST * 1000:
        message = f"start and end must be integers in order, got {shorten(start)!r} and {shorten(end)!r}"
        raise FormatError(message, line=line)
    return (int(end) - int(start)) / 1000
