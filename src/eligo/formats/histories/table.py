"""Tables, with commas, semicolons or tabs: a row for a task that ran, or for a kind of task.

    task,kind,seconds
    align_1,align,12.5
    ,sort,3

One column says how long: seconds, runtime, duration, elapsed or time. One says which task: task, name, job or id; one which
kind: kind, category, rule, process or program; either will do. Other columns are not read. A bare number is in seconds;
1m 3s and 0:01:03 are lengths of time too.
"""

from collections.abc import Sequence

from eligo.errors import FormatError
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
    """How long the tasks and kinds of a table took."""
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
            raise FormatError("the row has neither a task nor a kind", line=line)
        records.append(Timed(name, sort, seconds_in(length, line=line)))
    return Parsed(records, left_out(untimed, "row without a time", "rows without a time"))


def _place(header: Sequence[str], titles: Sequence[str]) -> int | None:
    """Where the first of these titles stands that is there."""
    cells = [cell.strip().lower() for cell in header]
    return next((cells.index(title) for title in titles if title in cells), None)


def _cell(row: Sequence[str], place: int | None) -> str | None:
    text = row[place].strip() if place is not None and place < len(row) else ""
    return None if is_blank(text) else text
