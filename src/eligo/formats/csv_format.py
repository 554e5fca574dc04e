"""Tables of arcs, with commas, semicolons or tabs: a row is a parent and a child, or one task alone.

    parent,child
    fetch,align
    "two, words",align
    lonely

Cells are quoted as in RFC 4180. Spaces after a separator are ignored, and so are empty cells. The first row may be a header:
parent and child, another pair of `HEADERS`, or the given *columns*, in any order and any letter case. Other columns are
ignored, and remarks list them. Without a header, the parent comes first. The separator is the first of tab, semicolon and
comma that occurs outside quotes in the first row that has any. Lines at the top that begin with # are comments if a header
follows or if they have one cell. A repeated header is skipped.

>>> flow = parse("To;From\\nb;a\\n;lonely")
>>> flow.dag.tasks, list(flow.dag.arcs())
(('a', 'b', 'lonely'), [('a', 'b')])
>>> print(generate(flow), end="")
parent,child
a,b
lonely

>>> list(rows_of('task;seconds\\n"a;b"; 2'))
[(['task', 'seconds'], 1), (['a;b', '2'], 2)]
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import FormatError, shorten
from eligo.formats.detection import WORDS
from eligo.formats.shared.data_arcs import arc_lines
from eligo.formats.shared.names import unread
from eligo.workflow import Origin, Workflow

NAME = "csv"
TAKES = ("columns",)
PRIORITIES = False
CANNOT = tuple(WORDS)

# Tables

_QUOTED = re.compile(r'"(?:[^"]++|"")*+"')
_SIGN = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)
_GLANCE = 100_000  # characters in which the separator is searched


def rows_of(text: str) -> Iterator[tuple[list[str], int]]:
    """The rows of a table, except empty ones, and the line at which each ends."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if any(cell.strip("\t") for cell in row) and not (reader.line_num == 1 and _SIGN.match(text)):
                yield row, reader.line_num
    except csv.Error as error:
        raise FormatError(f"not a valid table: {error}", line=max(reader.line_num, 1)) from None


def separator(text: str) -> str:
    """The separator of cells: as in a first line `sep=;`, which Excel writes, or else by the first line that has one.

    In that line it is the first of tab, semicolon and comma outside quotes; lines that begin with # count last.
    """
    if match := _SIGN.match(text):
        return match[1]
    lines = [line for line in _QUOTED.sub("", text[:_GLANCE]).splitlines() if line.strip()]
    for line in sorted(lines, key=lambda line: line.startswith("#")):
        for sign in "\t;,":
            if sign in line:
                return sign
    return ","


# Workflows


#: the cells of a row, and the line at which it ends
Row = tuple[list[str], int]

HEADERS = (
    ("parent", "child"), ("source", "target"), ("from", "to"), ("tail", "head"), ("src", "dst"), ("upstream", "downstream"),
    ("predecessor", "successor"), ("after", "task"), ("depends_on", "task"), ("needs", "task"),
)  # fmt: skip

_HEADER = re.compile(
    "|".join(
        rf'\s*+"?{a}"?[ ]*+[,;\t][ ]*+"?{b}"?[ \r]*+(?:[,;\t\n]|\Z)' for x, y in HEADERS for a, b in ((x, y), (y, x))
    ),
    re.IGNORECASE,
)
_TOP = re.compile(r"(?:#[^\n]*+\n|\s++)*+")  # comments and empty lines
_EXAMPLES = " or ".join(f"{parent},{child}" for parent, child in HEADERS)
_SPECIAL = re.compile(r'[,;\t"\r\n]|^\s|\s$')


def parse(text: str, columns: tuple[str, str] | None = None) -> Workflow:
    """The workflow that a table of arcs describes; *columns* are the titles of the parent and the child."""
    index: dict[str, int] = {}
    ends: list[int] = []
    rows = list(_without_comments(rows_of(text), columns))
    places = _places(rows[0][0], (columns,) if columns else HEADERS) if rows else ()
    if columns and rows and not places:
        row, line = rows[0]
        raise FormatError(f"no columns {_titles(columns)} in the header, which has {_titles(row)}", line=line)
    again = 0
    for row, line in rows[1:] if places else rows:
        if places and row == rows[0][0]:  # concatenated tables
            again += 1
            continue
        pair = [row[i] for i in places if i < len(row)] if places else row
        if len(pair) > 2:
            raise _without_header(len(pair), line)
        numbers = [index.setdefault(name, len(index)) for name in pair if name]
        ends += numbers if len(numbers) == 2 else ()
    flat = np.array(ends, np.int32)
    dag = Dag.from_arrays(len(index), flat[::2], flat[1::2], tuple(index))
    remarks = _remarks(rows[0][0], places, again) if places else _doubts(flat, dag.tasks)
    return Workflow(dag, origin=Origin(format=NAME, remarks=remarks))


def _without_comments(rows: Iterable[Row], columns: tuple[str, str] | None) -> Iterator[Row]:
    """The rows without those at the top that begin with # and have one cell, or precede a header."""
    top: list[Row] = []
    rows = iter(rows)
    for row in rows:
        if not row[0][0].startswith("#"):
            header = _places(row[0], (columns,) if columns else HEADERS)
            yield from (above for above in top if not header and len(above[0]) > 1)
            yield row
            break
        top.append(row)
    else:
        yield from top
    yield from rows


def _remarks(header: Sequence[str], places: Sequence[int], again: int) -> tuple[str, ...]:
    """The remarks on a table with a header."""
    repeated = (f"skipped rows that repeat the header: {again:,}",) if again else ()
    return unread(f"{title} (column)" for i, title in enumerate(header) if i not in places and title.strip()) + repeated


def _without_header(cells: int, line: int) -> FormatError:
    message = f"a row must have a parent and a child, got {cells} cells: name the columns in a header, {_EXAMPLES}"
    return FormatError(message, line=line).cured_by("columns")


def _doubts(ends: NDArray[np.int32], tasks: Sequence[str]) -> tuple[str, ...]:
    """The remark on a first row that may be a header, because its names appear nowhere else.

    Raises for a table without arcs whose names contain spaces or arrows, like a list of arcs.
    """
    if not len(ends) and any(re.search(r"\S\s|->", name) for name in tasks):
        raise FormatError(
            "no row has two cells, so this is not a table of arcs (a list of arcs must be named .arcs)"
        ).cured_by("arcs")
    if len(ends) < 4 or ends[:2].tolist() != [0, 1] or ends[2:].min() < 2:
        return ()
    first = f"the first row was read as an arc, from {shorten(tasks[0])!r} to {shorten(tasks[1])!r}"
    return (f"{first}, which appear nowhere else; if it is a header, name the columns {_EXAMPLES}",)


def fitted(name: str) -> str:
    """The name, or _ if it is empty."""
    return name or "_"


def generate(flow: Workflow, old: Mapping[str, str] = MappingProxyType({})) -> str:
    """The table of a workflow's arcs. If the arcs do not show the order of the tasks, the tasks come first.

    The names of tasks in *old* are not written.
    """
    dag = flow.dag
    free = (titles for titles in HEADERS if titles[0] not in dag or titles[1] not in dag.children(titles[0]))
    header = ",".join(next(free, HEADERS[0]))  # an arc that equals the header would be skipped as a repetition
    return "".join([f"{header}\n", *arc_lines(dag, list(map(_cell, dag.tasks)), ",")])


def sniff(text: str) -> bool:
    """Whether the text begins with a known header."""
    return _HEADER.match(text, _TOP.match(text).end()) is not None  # type: ignore[union-attr]


def _places(row: Sequence[str], headers: Sequence[tuple[str, str]]) -> Sequence[int]:
    """The places of the parent and the child in a row that has one of these headers; empty for other rows."""
    titles = [cell.strip().lower() for cell in row]
    for pair in headers:
        parent, child = (title.strip().lower() for title in pair)
        if parent in titles and child in titles:
            return titles.index(parent), titles.index(child)
    return ()


def _titles(row: Sequence[str]) -> str:
    return shorten(" and ".join(map(repr, row)) if len(row) == 2 else ", ".join(map(repr, row)), 200)


def _cell(name: str) -> str:
    if not name:
        raise FormatError("CSV cannot represent a task with an empty name")
    return '"' + name.replace('"', '""') + '"' if _SPECIAL.search(name) else name
