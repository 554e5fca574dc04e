"""Lengths of time as the files of engines say them, and what a file came to.

>>> seconds_in("90.5"), seconds_in("1m 3s"), seconds_in("1d 2h"), seconds_in("931ms"), seconds_in("1 day, 0:02:03")
(90.5, 63.0, 93600.0, 0.931, 86523.0)
>>> seconds_in("1500", unit=0.001)
1.5
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from eligo.errors import FormatError, shorten
from eligo.workflow import Timed

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


def seconds_in(text: str, unit: float = 1.0, line: int | None = None) -> float:
    """How many seconds a text says: a bare number counts *unit* seconds; 1m 3s and 0:01:03 are themselves."""
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
