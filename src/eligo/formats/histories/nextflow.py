"""Nextflow's trace and its report: one row for each attempt at a task, with tabs between the cells.

    task_id  hash       native_id  name         status     exit  submit                   duration  realtime
    1        7d/eb4d44  1234       FASTQC (s1)  COMPLETED  0     2026-01-02 03:04:05.678  1m 5s     1m 3s

The run time of a task is its `realtime`. Without that column it is the `duration`, which includes waiting for a machine.
Times are in words, or in milliseconds in a raw trace. Failed attempts are left out. A task from the cache has the time of
its original run. The page of `-with-report` contains the same rows, raw, unless there are very many tasks.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from eligo.errors import FormatError
from eligo.formats.csv_format import separator
from eligo.formats.histories import Parsed, cut_off, is_blank, left_out, seconds_in
from eligo.workflow import Timed

NAME = "nextflow"

#: The statuses of tasks that count.
DONE = {"COMPLETED", "CACHED"}
COLUMNS: tuple[str, ...] = (
    "task_id", "hash", "name", "process", "tag", "status", "submit", "complete", "realtime", "duration", "cpus"
)  # fmt: skip
MILLISECOND = 0.001
_TAG = re.compile(r" \(.*\)$")
_PAGE = re.compile(r"\s*+<!doctype html[^\0]{0,5000}?<title>[^<]{0,500}?Nextflow Workflow Report", re.IGNORECASE)
_DATA = re.compile(r"window\.data\s*+=\s*+\{\s*+\"trace\"\s*+:\s*+")
_ESCAPE = re.compile(r"\\(.)")

#: The cells of a row that are not blank, by title; and its line, if it has one.
Row = tuple[Mapping[str, str], int | None]


class TraceRows(NamedTuple):
    """The attempts in a trace, and the number of ignored rows."""

    rows: Sequence[Row]
    #: the column of run times
    timed: str
    #: the numbers of ignored rows, by reason
    out: Counter[str]


def sniff(text: str) -> bool:
    """Whether the first line has columns of a trace, or a page begins like a report."""
    titles = _titles(text)
    named = bool({"name", "process"} & titles)
    return (
        named and ("realtime" in titles or ("duration" in titles and bool({"task_id", "native_id", "hash"} & titles)))
    ) or _PAGE.match(text) is not None


def _titles(text: str) -> set[str]:
    first = text.partition("\n")[0]
    return {title.strip() for title in first.split(separator(first))}


def parse(text: str, path: str) -> Parsed:
    """The run times of the completed tasks."""
    trace = attempts(text)
    records = [record for row, line in trace.rows for record in _records(row, trace.timed, line, trace.out)]
    return Parsed(records, _remarks(trace.out, trace.timed))


def attempts(text: str) -> TraceRows:
    """All rows of a trace, or of a report."""
    out: Counter[str] = Counter()
    if _PAGE.match(text):
        return TraceRows(_rows_of_page(text), "realtime", out)
    head, *lines = text.split("\n")
    sign = separator(head)
    titles = [title.strip() for title in head.split(sign)]
    timed = "realtime" if "realtime" in titles else "duration"
    return TraceRows(list(_rows(lines, sign, titles, out)), timed, out)


def _rows(lines: Sequence[str], sign: str, titles: Sequence[str], out: Counter[str]) -> Iterator[Row]:
    place = {title: titles.index(title) for title in COLUMNS if title in titles}
    spilling = {"script", "env"} & {*titles}  # columns whose values may have several lines
    for number, line in enumerate(lines, 2):
        cells = line.split(sign)
        if number == len(lines) + 1 and len(cells) < len(titles):  # the last line, perhaps incomplete
            out["cut"] += bool(line.strip())
        elif len(cells) > max(place.values()):
            yield {title: cells[i].strip() for title, i in place.items() if not is_blank(cells[i])}, number
        elif line.strip() and not spilling:
            raise FormatError(f"a row must have {len(titles)} cells like the header, got {len(cells)}", line=number)


def _rows_of_page(text: str) -> list[Row]:
    """The rows in a report: JSON, except for an escape sequence of JavaScript."""
    begin = _DATA.search(text)
    try:
        part = _ESCAPE.sub(lambda match: "'" if match[1] == "'" else match[0], text[begin.end() if begin else 0 :])
        rows = json.JSONDecoder().raw_decode(part)[0] if begin else None
    except (ValueError, RecursionError):
        raise FormatError("the data of this report are not valid JSON") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FormatError("this report lists no tasks, as for very large runs (use the trace instead)")
    cells = [{title: str(row[title]).strip() for title in COLUMNS if title in row} for row in rows]
    return [({title: cell for title, cell in row.items() if not is_blank(cell)}, None) for row in cells]


def _records(row: Mapping[str, str], timed: str, line: int | None, out: Counter[str]) -> list[Timed]:
    """The run time in a row; none if it does not count, which is added to *out*."""
    reason = "failed" if row.get("status", "COMPLETED") not in DONE else "untimed" if timed not in row else None
    if reason:
        out[reason] += 1
        return []
    kind, name = process_of(row, line), row.get("name")
    return [Timed(name, kind, seconds_in(row[timed], MILLISECOND, line))]


def process_of(row: Mapping[str, str], line: int | None) -> str:
    """The process that a row's task belongs to."""
    kind = row.get("process") or _TAG.sub("", row.get("name", ""))
    if not kind:
        raise FormatError("the row must have a process or a task name, got neither", line=line)
    return kind


def _remarks(out: Counter[str], timed: str) -> list[str]:
    wait = "no column realtime: times include waiting for a machine"
    return [
        *left_out(out["failed"], "incomplete attempt", "incomplete attempts"),
        *left_out(out["untimed"], "task without a time", "tasks without a time"),
        *([wait] if timed == "duration" else []),
        *(cut_off("line") if out["cut"] else []),
    ]
