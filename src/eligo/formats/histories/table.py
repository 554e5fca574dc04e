"""Tables, with commas, semicolons or tabs: one row for a task that ran, or for a kind of task.

    task,kind,seconds
    align_1,align,12.5
    ,sort,3

One column has the run time: seconds, runtime, duration, elapsed or time. One has the task (task, name, job or id), or one has
its kind (kind, category, rule, process or program), or both exist. Other columns are ignored. A bare number is in seconds;
1m 3s and 0:01:03 are durations, too.
"""

from collections.abc import Sequence

from eligo.errors import FormatError, shorten
from eligo.formats.csv_format import rows_of
from eligo.formats.histories import Parsed, is_blank, left_out, seconds_in
from eligo.workflow import Timed

NAME = "table"

SECONDS = ("seconds", "runtime", "duration", "elapsed", "time")
TASKS = ("task", "name", "job", "id")
KINDS = ("kind", "category", "rule", "process", "program")


def sniff(text: str) -> bool:
    """Whether the first row names a column of times, and one of tasks or kinds."""
    try:
        header = next(rows_of(text.lstrip().partition("\n")[0]), ([""], 0))[0]
    except FormatError:
        return False
    return _place(header, SECONDS) is not None and _place(header, TASKS + KINDS) is not None


def parse(text: str, path: str) -> Parsed:
    """The run times of the tasks and kinds in a table."""
    rows = rows_of(text)
    header = next(rows, ([""], 0))[0]
    when, task, kind = (_place(header, titles) for titles in (SECONDS, TASKS, KINDS))
    records: list[Timed] = []
    untimed = 0
    for row, line in rows:
        name, sort, length = (_cell(row, place) for place in (task, kind, when))
        if length is None:
            untimed += 1
            continue
        if name is None and sort is None:
            raise FormatError(f"the row must have a task or a kind, got only the time {shorten(length)!r}", line=line)
        records.append(Timed(name, sort, seconds_in(length, line=line)))
    return Parsed(records, left_out(untimed, "row without a time", "rows without a time"))


def _place(header: Sequence[str], titles: Sequence[str]) -> int | None:
    """The place of the first of these titles that the header has."""
    cells = [cell.strip().lower() for cell in header]
    return next((cells.index(title) for title in titles if title in cells), None)


def _cell(row: Sequence[str], place: int | None) -> str | None:
    text = row[place].strip() if place is not None and place < len(row) else ""
    return None if is_blank(text) else text
