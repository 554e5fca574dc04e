"""Tables as text: rows of cells with commas, semicolons or tabs between them, quoted as RFC 4180 says.

>>> list(rows_of('task;seconds\\n"a;b"; 2'))
[(['task', 'seconds'], 1), (['a;b', '2'], 2)]
"""

import csv
import io
import re
from collections.abc import Iterator

from eligo.errors import FormatError

_QUOTED = re.compile(r'"(?:[^"]++|"")*+"')
_SIGN = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)
_GLANCE = 100_000  # characters in which the separator is looked for


def rows_of(text: str) -> Iterator[tuple[list[str], int]]:
    """The rows of a table, but for empty ones, and the line at which each ends."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if any(cell.strip("\t") for cell in row) and not (reader.line_num == 1 and _SIGN.match(text)):
                yield row, reader.line_num
    except csv.Error as error:
        raise FormatError(f"not a valid table: {error}", line=max(reader.line_num, 1)) from None


def separator(text: str) -> str:
    """What parts the cells: what a first line such as `sep=;` says, as Excel writes it, or else the first of tab, semicolon
    and comma that occurs outside quotes in the first line that has any; lines that begin with # count last.
    """
    if said := _SIGN.match(text):
        return said[1]
    lines = [line for line in _QUOTED.sub("", text[:_GLANCE]).splitlines() if line.strip()]
    for line in sorted(lines, key=lambda line: line.startswith("#")):
        for sign in "\t;,":
            if sign in line:
                return sign
    return ","
