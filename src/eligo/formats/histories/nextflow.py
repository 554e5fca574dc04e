"""Nextflow's trace: a row for every attempt at a task, with tabs between the cells.

    task_id  hash       native_id  name         status     exit  submit                   duration  realtime
    1        7d/eb4d44  1234       FASTQC (s1)  COMPLETED  0     2026-01-02 03:04:05.678  1m 5s     1m 3s

How long a task ran is its `realtime`, or where there is none its `duration`, which has the wait for a machine in it. Times
are in words or, of a raw trace, in milliseconds. Attempts that failed are left out; of a task in the cache there is the time
that it took when it ran.
"""

import re
from collections import Counter
from collections.abc import Mapping

from eligo.errors import FormatError
from eligo.formats.histories.measures import Parsed, cut_off, is_blank, left_out, seconds_in
from eligo.formats.shared.tables import separator
from eligo.workflow import Timed

NAME = "nextflow"

#: What a task is worth counting for.
DONE = {"COMPLETED", "CACHED"}
COLUMNS: tuple[str, ...] = ("name", "process", "status", "realtime", "duration")
MILLISECOND = 0.001
_TAG = re.compile(r" \(.*\)$")


def sniff(text: str) -> bool:
    """Whether the first line has titles of a trace."""
    titles = _titles(text)
    named = bool({"name", "process"} & titles)
    return named and (
        "realtime" in titles or ("duration" in titles and bool({"task_id", "native_id", "hash"} & titles))
    )


def _titles(text: str) -> set[str]:
    first = text.partition("\n")[0]
    return {title.strip() for title in first.split(separator(first))}


def parse(text: str, path: str) -> Parsed:
    """The tasks that were completed, and how long each ran."""
    head, *lines = text.split("\n")
    sign = separator(head)
    titles = [title.strip() for title in head.split(sign)]
    place = {title: titles.index(title) for title in COLUMNS if title in titles}
    timed = "realtime" if "realtime" in place else "duration"
    spilling = {"script", "env"} & {*titles}  # which go on over several lines
    records: list[Timed] = []
    out: Counter[str] = Counter()
    for number, line in enumerate(lines, 2):
        cells = line.split(sign)
        if number == len(lines) + 1 and len(cells) < len(titles):  # after the last end of a line
            out["cut"] += bool(line.strip())
        elif len(cells) > max(place.values()):
            row = {title: cells[i].strip() for title, i in place.items() if not is_blank(cells[i])}
            records += _recorded(row, timed, number, out)
        elif line.strip() and not spilling:
            raise FormatError(f"a row has {len(cells)} cells, and the header {len(titles)}", line=number)
    return Parsed(records, _remarks(out, timed))


def _recorded(row: Mapping[str, str], timed: str, line: int, out: Counter[str]) -> list[Timed]:
    """What a row says; nothing, and one more of *out*, where it does not count."""
    reason = "failed" if row.get("status", "COMPLETED") not in DONE else "untimed" if timed not in row else None
    if reason:
        out[reason] += 1
        return []
    name = row.get("name")
    kind = row.get("process") or (name and _TAG.sub("", name))
    if kind is None:
        raise FormatError("the row names no task", line=line)
    try:
        return [Timed(name, kind, seconds_in(row[timed], MILLISECOND))]
    except FormatError as error:
        raise error.at(line) from None


def _remarks(out: Counter[str], timed: str) -> list[str]:
    wait = "there is no column realtime, so the time that tasks waited for a machine counts too"
    return [
        *left_out(out["failed"], "attempt that was not completed is", "attempts that were not completed are"),
        *left_out(out["untimed"], "task without a time is", "tasks without a time are"),
        *([wait] if timed == "duration" else []),
        *(cut_off("line") if out["cut"] else []),
    ]
