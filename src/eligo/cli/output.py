"""Output: tables, charts of plain letters, lines of blocks, and JSON for programs."""

import codecs
import errno
import io
import itertools
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, TextIO

from eligo.version import SCHEMA, __version__

BLOCKS = " ▁▂▃▄▅▆▇█"
#: replacements for signs that the terminal cannot show
PLAIN = str.maketrans({
    "▷": "|>", "→": "->", "×": "x", "≤": "<=", "ρ": "rho", "…": "...", "─": "-", "·": ".", "│": "|", "┤": "|", "└": "+",
    "▓": "=", "▒": "-", "░": ".", **dict(zip(BLOCKS, " .:-=+*%#", strict=True)),
})  # fmt: skip
WIDTH = 80  # characters, if there is no terminal

#: the keys of JSON documents of a server, and their new names
KEYS = {"made": "submitted", "repeated": "reassigned"}


def version_line() -> str:
    """What `eligo --version` prints."""
    from eligo.kernels import compiled

    return f"eligo {__version__} ({'compiled' if compiled() else 'interpreted'} kernels)\n"


def speak_plainly() -> None:
    """Write characters that the terminal's encoding lacks as plain letters instead of failing."""
    codecs.register_error("eligo", _plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not is_unicode(stream.encoding):
            stream.reconfigure(errors="eligo")


def open_streams() -> None:
    """Redirect standard streams that were closed before the start to nowhere: other files would get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the program ends


class _Pipe(io.FileIO):
    """A stream whose reader or terminal may disappear; later output is then discarded.

    Any other error is raised once, and later output is discarded too.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._stream = stream  # a reference, so that the file is not closed

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), self.fileno())
            if error.errno not in {errno.EPIPE, errno.EIO}:  # EIO: a terminal that was closed
                raise
            return memoryview(data).nbytes


def outlast_readers() -> None:
    """Keep working, with the usual exit code, after the reader of the output has gone, as in `eligo run FILE | head`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            pipe = io.BufferedWriter(_Pipe(stream))
            lines = stream.line_buffering or stream.write_through
            setattr(sys, name, io.TextIOWrapper(pipe, stream.encoding, stream.errors, "\n", lines))


def _plain_letters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - the handler is registered for this error only
    text = error.object[error.start : error.end].translate(PLAIN)
    return text.encode("ascii", "backslashreplace").decode(), error.end


def is_unicode(encoding: str | None) -> bool:
    """Whether this encoding can express every character."""
    return (encoding or "").lower().replace("_", "-").startswith("utf")


def sparkline(values: Sequence[int], width: int = 50, top: int = 0) -> str:
    """The values as a line of blocks, with the maximum of each stretch if there are more than *width*.

    The tallest block is the largest value, or *top* if that is larger.

    >>> sparkline([0, 1, 4, 8, 4, 0])
    ' ▁▄█▄ '
    """
    top = max(*values, top, 1)
    columns = min(width, len(values))
    cuts = [i * len(values) // columns for i in range(columns + 1)] if columns else [0]
    peaks = (max(values[a:b]) for a, b in itertools.pairwise(cuts))
    return "".join(BLOCKS[-(-peak * 8 // top)] for peak in peaks)


def figure(amount: float) -> str:
    """A number with three digits, or all digits before the point.

    >>> figure(0.12345), figure(3720.0)
    ('0.123', '3,720')
    """
    return f"{amount:,.3g}" if amount < 999.5 else f"{amount:,.0f}"


def format_rate(rate: float) -> str:
    """A rate of tasks in readable form.

    >>> format_rate(14.2), format_rate(0.05)
    ('14 tasks/s', '3 tasks/min')
    """
    return f"{_figures(rate)} tasks/s" if rate >= 1 else f"{_figures(60 * rate)} tasks/min"


def _figures(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def harmless(text: str) -> str:
    r"""The text with characters escaped that would move the cursor, change colours or reverse the writing direction.

    >>> print(harmless("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


def json_text(document: Mapping[str, Any], ascii_only: bool = False) -> str:
    """A document as JSON on one line, with the number of its schema."""
    return json.dumps({"schema": SCHEMA, **document}, ensure_ascii=ascii_only, allow_nan=False) + "\n"


def print_json(document: Mapping[str, Any]) -> None:
    """Print one document, and nothing else, on standard output."""
    sys.stdout.write(json_text(document, ascii_only=not is_unicode(sys.stdout.encoding)))


def print_answer(document: Mapping[str, Any], lines: Iterable[str], json: bool) -> int:
    """Print a document, or the sentences that stand for it; returns the exit code."""
    print_json(document) if json else print_lines(lines)
    return 0


def print_facts(title: str, facts: Iterable[tuple[str, object]]) -> None:
    """Print a sentence and a table of two columns."""
    rows = [(name, f"{value:,}" if isinstance(value, int) else str(value)) for name, value in facts]
    print_lines([title])
    column = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        room = max(20, width() - column)
        lines = [value] if len(value) <= room else wrapped(value, room)
        sys.stdout.writelines(
            f"{word:{column}}{line}".rstrip() + "\n"
            for word, line in zip((name, *[""] * len(lines)), lines or [""], strict=False)
        )


def with_new_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a server, with the new names of keys beside the old ones.

    >>> with_new_keys({"repeated": 2, "saved": 0})
    {'repeated': 2, 'saved': 0, 'reassigned': 2}
    """
    return {**document, **{new: document[old] for old, new in KEYS.items() if old in document}}


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], uncut: Collection[str] = ()) -> None:
    """Print a table with column titles. A narrow terminal cuts long cells, except in *uncut* columns."""
    sizes = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    least = [size if title in uncut else len(title) for title, size in zip(titles, sizes, strict=True)]
    widths = fitting(sizes, least, width()) if sys.stdout.isatty() else sizes  # scripts get all columns
    cells = [list(map(shortened, row, widths)) for row in (titles, *rows)]
    sys.stdout.writelines(f"{line}\n" for line in table_lines(cells))


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows with their cells in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip() for row in rows]


def fitting(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of columns with two blanks between them: the widest shrink until all fit, none below its least width.

    >>> fitting([4, 30, 18], [2, 4, 4], 40)
    [4, 16, 16]
    """
    result = list(widths)
    while sum(result) + 2 * len(result) - 2 > room:
        widest = max(range(len(result)), key=lambda j: result[j] - least[j])
        if result[widest] <= least[widest]:
            break
        result[widest] -= 1
    return result


def shortened(text: str, size: int) -> str:
    """The text, cut at its end if it is longer than *size*.

    >>> shortened("somebody", 8), shortened("somebody", 5)
    ('somebody', 'some…')
    """
    return text if len(text) <= size else f"{text[: size - 1]}…"


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences, each starting on a new line."""
    for line in lines:
        sys.stdout.write("\n".join(wrapped(line, width(), "  ")) + "\n")


def wrapped(text: str, room: int, indent: str = "") -> list[str]:
    """The text in lines; paths and addresses are not broken, so that they can be copied."""
    return wrap(text, room, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def width(stream: TextIO | None = None) -> int:
    """The number of characters on a line of standard output, or of another stream."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if (stream or sys.stdout).isatty() else WIDTH


# Ready tasks over time, as a chart of plain letters


PLAN, USUAL, BOUND = "*", "o", "."  # marks; later ones are drawn over earlier ones
MARGIN = 10  # characters before the first column
DONE = "tasks done"
TIMES = 6  # maximum number of columns per step


def chart(
    profile: Sequence[int], bound: Sequence[int], other: Sequence[int], height: int = 12, name: str = "this plan"
) -> str:
    """A chart, as wide as the terminal, of the ready tasks over time: in an order, under fifo, and at most.

    If there are more steps than columns, a column shows the mean of several.

    >>> print(chart([1, 2, 3, 1, 0], [1, 3, 3, 1, 0], [1, 1, 3, 1, 0]))
      tasks ready
           3 |      ......******         . bound
             |      ******o     *        o fifo
           1 |******oooooo      ******   * this plan
           0 +------------------------+
              0                       4 tasks done
              fifo: first come, first served; bound: no order has more ready
    """
    curves = {BOUND: bound, USUAL: other, PLAN: profile}
    visible = {mark: curve for mark, curve in curves.items() if mark == PLAN or list(curve) != list(profile)}
    names = {BOUND: "bound", USUAL: "fifo", PLAN: name if USUAL in visible else f"{name}, fifo"}
    labels = [f"{mark} {names[mark]}" for mark in visible]
    room = width() - MARGIN - max(2 + max(map(len, labels)), 1 + len(DONE))
    drawn = {mark: _columns(curve, room) for mark, curve in visible.items()}
    top = max(1, -int(-max(map(max, drawn.values())) // 1))
    rows = _paint(drawn, top, max(len(labels), min(height, max(3, top))))
    axis = _axis(len(rows[0]), len(profile) - 1)
    return "\n".join(["  tasks ready", *_add_frame(rows, labels, top), *axis, " " * MARGIN + _legend(BOUND in visible)])


def _columns(curve: Sequence[int], room: int) -> list[float]:
    """The height of every column: each step repeated, except the last, or the mean of several steps."""
    times = min(TIMES, room // len(curve))
    if times:
        return [float(value) for value in curve[:-1] for _ in range(times)] + [float(curve[-1])]
    cuts = [column * len(curve) // room for column in range(room + 1)]
    return [sum(curve[a:b]) / (b - a) for a, b in itertools.pairwise(cuts)]


def _paint(drawn: Mapping[str, Sequence[float]], top: int, height: int) -> list[list[str]]:
    """The rows, the highest first; a line rises and falls within the column in which it changes."""
    rows = [[" "] * len(next(iter(drawn.values()))) for _ in range(height)]
    for mark, line in drawn.items():
        levels = [-int(-value * height // top) for value in line]
        for column, (before, level) in enumerate(itertools.pairwise([levels[0], *levels])):
            for row in {level, *range(min(before, level) + 1, max(before, level))} - {0}:
                rows[height - row][column] = mark
    return rows


def _add_frame(rows: Sequence[Sequence[str]], labels: Sequence[str], top: int) -> Iterator[str]:
    """The rows, with the axis on their left and the names of the lines at the lower right."""
    height, blank = len(rows), [""] * (len(rows) - len(labels))
    for place, (row, label) in enumerate(zip(rows, [*blank, *labels], strict=True)):
        level = (height - place) * top
        tick = f"{level // height:,}" if place in {0, height - height // 2} and level % height == 0 else ""
        yield f"{tick:>8} |{''.join(row)}  {label}".rstrip()


def _axis(wide: int, last: int) -> Iterator[str]:
    """The axis at the bottom, with its ends."""
    wide = max(wide, len(f"{last:,}") + 2)
    yield f"{0:>8} +{'-' * (wide - 1)}+"
    yield f"{'':{MARGIN}}0{last:>{wide - 1},} {DONE}"


def _legend(bounded: bool) -> str:
    return "fifo: first come, first served" + ("; bound: no order has more ready" if bounded else "")
