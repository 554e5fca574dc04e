"""Run times of tasks in earlier runs, from the files that engines leave behind: one module for each format.

| format      | what it is                                                    |
|-------------|---------------------------------------------------------------|
| `nextflow`  | Nextflow's trace, `nextflow run ... -with-trace`              |
| `snakemake` | the output of `benchmark:` in Snakemake's rules               |
| `htcondor`  | the log of DAGMan's jobs, `FILE.dag.nodes.log`                |
| `ninja`     | `.ninja_log`, versions 5 to 7                                 |
| `eligo`     | the folder of one of eligo's own runs, FILE.run               |
| `table`     | a table with a column of seconds, and one of tasks or kinds   |

The module of each text format has `NAME`, `sniff(text)`, which returns whether a text looks like the format, and
`parse(text, path)`, which returns the run times in it. `reader` reads the folder of a run. A workflow with run times is a
history, too. `eligo.formats.read_history` reads all of these, and folders of them. This module has what the formats share.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from eligo.errors import FormatError, shorten
from eligo.workflow import Measured, Timed

#: The modules, in the order in which they examine a text.
MODULES = ("nextflow", "snakemake", "htcondor", "ninja", "table")

#: The maximum run time in seconds, about 30,000 years.
LONGEST = 1e12

#: The words for a value that was not measured.
BLANK = {"", "-", "na", "n/a", "null", "none"}

_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
_PLAIN = re.compile(rf"\+?{_NUMBER}(?:[eE][-+]?[0-9]++)?")
_PARTS = re.compile(rf"({_NUMBER})\s*+(ms|s|m|h|d)(?:ec|in)?\b\s*+")
_CLOCK = re.compile(r"(?:([0-9]++) days?, )?([0-9]++):([0-5]?[0-9]):([0-5]?[0-9](?:\.[0-9]++)?)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Parsed(NamedTuple):
    """The run times in a file, remarks for the user, one sentence each, and the sizes of files that tasks wrote."""

    records: Sequence[Timed]
    remarks: Sequence[str] = ()
    sizes: Sequence[Measured] = ()


@dataclass(frozen=True)
class History:
    """Run times of earlier runs, for `eligo.with_history`."""

    records: tuple[Timed, ...]
    #: the name of the format, or the names of all formats in a folder
    format: str
    #: the file or folder; "-" is standard input
    path: str
    #: remarks for the user, one sentence each
    remarks: tuple[str, ...] = ()
    #: sizes of files that tasks wrote, if it is a run
    sizes: tuple[Measured, ...] = ()

    def __repr__(self) -> str:
        return f"History({self.path!r}, {self.format!r}, {len(self.records):,} records)"


class HistoryFormat(Protocol):
    """The contents of a format's module."""

    NAME: str

    def sniff(self, text: str) -> bool:
        """Whether the text, or its beginning, looks like this format."""

    def parse(self, text: str, path: str) -> Parsed:
        """The run times in the text of the file at *path*."""


def module(format: str) -> HistoryFormat:
    """The module of a format."""
    return cast(HistoryFormat, import_module(f"{__name__}.{format}"))


def detect(text: str) -> str | None:
    """The format of a history, or None if the text is not a history.

    >>> detect("# ninja log v6\\n"), detect("task,seconds\\na,1"), detect("parent,child")
    ('ninja', 'table', None)
    """
    return next((format for format in MODULES if module(format).sniff(text)), None)


def seconds_in(text: str, unit: float = 1.0, line: int | None = None) -> float:
    """Parse a duration and return it in seconds. A bare number is multiplied by *unit*; 1m 3s and 0:01:03 work, too.

    >>> seconds_in("90.5"), seconds_in("1m 3s"), seconds_in("1d 2h"), seconds_in("931ms"), seconds_in("1 day, 0:02:03")
    (90.5, 63.0, 93600.0, 0.931, 86523.0)
    >>> seconds_in("1500", unit=0.001)
    1.5
    """
    seconds = _read(text.strip(), unit)
    if not 0 <= seconds <= LONGEST:
        message = f"a duration must be at least 0, such as 63, 1m 3s or 0:01:03, got {shorten(text)!r}"
        raise FormatError(message, line=line)
    return seconds


def _read(text: str, unit: float) -> float:
    if _PLAIN.fullmatch(text):
        return float(text) * unit
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    parts = _PARTS.findall(text)
    if not parts or _PARTS.sub("", text):
        return math.nan
    return math.fsum(float(number) * _UNITS[sign] for number, sign in parts)


def is_blank(text: str) -> bool:
    """Whether the text stands for a value that was not measured."""
    return text.strip().lower() in BLANK


def left_out(count: int, one: str, many: str) -> list[str]:
    """The remark that some entries were ignored; none for a count of 0.

    >>> left_out(2, "failed attempt", "failed attempts"), left_out(0, "row", "rows")
    (['ignored 2 failed attempts'], [])
    """
    return [f"ignored {count:,} {one if count == 1 else many}"] if count else []


def cut_off(last: str) -> list[str]:
    """The remark that the last line, or event, is incomplete: the file may still be written."""
    return [f"ignored the last {last}, which is incomplete"]
