"""How long tasks took in earlier runs, from the files that engines leave behind: one module a format, the same few names.

| format      | what it is                                                    |
|-------------|---------------------------------------------------------------|
| `nextflow`  | Nextflow's trace, `nextflow run ... -with-trace`              |
| `snakemake` | what the `benchmark:` of Snakemake's rules writes             |
| `htcondor`  | the log of a DAGMan's jobs, `FILE.dag.nodes.log`              |
| `ninja`     | `.ninja_log`, versions 5 to 7                                 |
| `eligo`     | the folder of a run of eligo's own, FILE.run                  |
| `table`     | a table with a column of seconds, and one of tasks or kinds   |

A run is a folder, which `reader` reads. The module of a text has `NAME`, `sniff(text)`: whether a text looks like it, and
`parse(text, path)`: what it says. Beside these every workflow with run times is the history of others;
`eligo.formats.read_history` reads them all, and folders of them. What the modules share is below.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from eligo.errors import FormatError, shorten
from eligo.workflow import Timed

#: The modules, in the order in which they look at a text.
MODULES = ("nextflow", "snakemake", "htcondor", "ninja", "table")

#: No task took longer: some 30,000 years.
LONGEST = 1e12

#: What stands where nothing was measured.
BLANK = {"", "-", "na", "n/a", "null", "none"}

_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
_PLAIN = re.compile(rf"\+?{_NUMBER}(?:[eE][-+]?[0-9]++)?")
_PARTS = re.compile(rf"({_NUMBER})\s*+(ms|s|m|h|d)(?:ec|in)?\b\s*+")
_CLOCK = re.compile(r"(?:([0-9]++) days?, )?([0-9]++):([0-5]?[0-9]):([0-5]?[0-9](?:\.[0-9]++)?)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Parsed(NamedTuple):
    """The run times in a file, and remarks for the user, one sentence each."""

    records: Sequence[Timed]
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class History:
    """Run times of earlier runs, for `eligo.with_history`."""

    records: tuple[Timed, ...]
    #: the format's name, or that of each that the files of a folder have
    format: str
    #: the file or folder; "-" is standard input
    path: str
    #: what whoever reads it should be told, a sentence each
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"History({self.path!r}, {self.format!r}, {len(self.records):,} records)"


class HistoryFormat(Protocol):
    """What the module of a format has."""

    NAME: str

    def sniff(self, text: str) -> bool:
        """Whether the text looks like this format, at a glance; its beginning is enough."""

    def parse(self, text: str, path: str) -> Parsed:
        """What the text, in a file of this name, says."""


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
    """How many seconds a text says: a bare number counts *unit* seconds; 1m 3s and 0:01:03 are themselves.

    >>> seconds_in("90.5"), seconds_in("1m 3s"), seconds_in("1d 2h"), seconds_in("931ms"), seconds_in("1 day, 0:02:03")
    (90.5, 63.0, 93600.0, 0.931, 86523.0)
    >>> seconds_in("1500", unit=0.001)
    1.5
    """
    seconds = _read(text.strip(), unit)
    if not 0 <= seconds <= LONGEST:
        raise FormatError(f"invalid duration {shorten(text)!r}", line=line)
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
    """Whether nothing was measured."""
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
