"""The ready curve in a terminal: dots of braille, each line with a pattern of its own, over an axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.text import Text

from eligo.cli.top_style import Look

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a sign of braille, by column and row
LEAST_ROOM = 24  # columns that a curve needs


class CurveLine(NamedTuple):
    """A line: its name in the document, what it is called, its pattern of dots, and its sign where there is no braille."""

    name: str
    words: str
    pattern: str
    sign: str


#: the last is drawn above the others
KINDS = (
    CurveLine("fifo", "fifo", "#  ", "."),
    CurveLine("plan", "planned", "####  ", "-"),
    CurveLine("seen", "seen", "#", "*"),
)


class Canvas:
    """Lines of dots."""

    def __init__(self, width: int, height: int, look: Look) -> None:
        self._look, self.width, self.height = look, width, height
        self._across, self._down = (2, 4) if look.signs else (1, 1)
        self._cells: dict[tuple[int, int], tuple[int, CurveLine]] = {}

    @property
    def columns(self) -> int:
        """How many dots lie side by side."""
        return self.width * self._across

    def line(self, kind: CurveLine, values: Sequence[float | None], top: float) -> None:
        """Draw values, one a column of dots; the height is *top*."""
        rows, before = self.height * self._down - 1, None
        for x, value in enumerate(values):
            if value is None:
                before = None
                continue
            y = rows - round(min(1.0, value / top) * rows)
            last = y if before is None else before
            before = y
            if kind.pattern[x % len(kind.pattern)] == "#" or not self._look.signs:
                for dot in range(min(last, y) + (last < y), max(last, y) + (last <= y)):
                    self._set(kind, x, dot)

    def _set(self, kind: CurveLine, x: int, y: int) -> None:
        place = (x // self._across, y // self._down)
        bits = DOTS[x % 2][y % 4] if self._look.signs else 0
        self._cells[place] = (self._cells.get(place, (0, kind))[0] | bits, kind)

    def row(self, y: int) -> Text:
        """One line of the drawing."""
        text = Text(no_wrap=True, end="")
        for x in range(self.width):
            bits, kind = self._cells.get((x, y), (0, None))
            if kind is None:
                text.append(" ")
            else:
                text.append(chr(0x2800 + bits) if self._look.signs else kind.sign, self._look.style(kind.name))
        return text


def drawn(view: dict[str, Any], width: int, height: int, look: Look) -> list[Text]:
    """So many lines of text: how many tasks could run after each step, as seen, planned, and first come, first served."""
    curve = view["curve"]
    kinds = [kind for kind in KINDS if curve["lines"].get(kind.name) and curve["lines"][kind.name]["y"]]
    legend = _legend(curve, kinds, look)
    aside = max((text.cell_len for text in legend), default=0) + 2
    top = max((max(curve["lines"][kind.name]["y"]) for kind in kinds), default=0)
    label = max(len(f"{top:,.0f}"), 1) + 2
    room = width - aside - label
    if room < LEAST_ROOM or height < 4 or not kinds:
        return legend
    canvas = Canvas(room, height - 2, look)
    steps = len(curve["steps"])
    for kind in kinds:
        canvas.line(kind, _column_means(curve["lines"][kind.name]["y"], steps, canvas.columns), max(top, 1))
    lines = []
    for y in range(height - 2):
        mark, edge = (f"{top:,.0f}", "┤") if not y else ("", "│")
        beside = legend[y] if y < len(legend) else Text()
        lines.append(_row(f"{mark:>{label - 2}} {edge}", canvas.row(y), beside, look))
    return [*lines, *_axis(view, room, label, look)]


def _row(mark: str, drawing: Text, beside: Text, look: Look) -> Text:
    return Text.assemble((mark, look.style("faint")), drawing, "  ", beside, no_wrap=True, end="")


def _column_means(values: Sequence[float], steps: int, columns: int) -> list[float | None]:
    """One value a column, of *steps* that there will be: the mean of those that fall into it."""
    means: list[float | None] = []
    for x in range(columns):
        begin = x * steps // columns
        part = values[begin : max(begin + 1, (x + 1) * steps // columns)]
        means.append(sum(part) / len(part) if part else None)
    return means


def _axis(view: dict[str, Any], room: int, label: int, look: Look) -> list[Text]:
    """The axis, on which stretches are marked where too little could run, and what its ends stand for."""
    tasks, hungry = view["tasks"], [False] * room
    for begin, end in view["curve"]["starved"]:
        first = min(room - 1, begin * room // max(1, tasks))
        for x in range(first, max(first + 1, min(room, -(-end * room // max(1, tasks))))):
            hungry[x] = True
    axis = Text.assemble((f"{'0':>{label - 2}} └", look.style("faint")), no_wrap=True, end="")
    for starving in hungry:
        axis.append(_hunger(look) if starving else "─", look.style("starved" if starving else "faint"))
    below = f"{'':{label}}0{f'{tasks:,} tasks done':>{room - 1}}"
    return [axis, Text(below, look.style("faint"), no_wrap=True, end="")]


def _hunger(look: Look) -> str:
    """What marks a stretch where too little could run."""
    return "▒" if look.signs else "!"


def _legend(curve: dict[str, Any], kinds: Sequence[CurveLine], look: Look) -> list[Text]:
    """What each line is, and how high it is where the run has come to."""
    actual = curve["lines"].get("seen")
    here = len(actual["y"]) - 1 if actual and actual["y"] else 0
    lines = []
    for kind in reversed(kinds):
        values = curve["lines"][kind.name]["y"]
        sample = Canvas(4, 1, look)
        sample.line(kind, [0.5] * sample.columns, 1.0)
        value = f" {values[min(here, len(values) - 1)]:,.0f}"
        lines.append(Text.assemble(sample.row(0), f" {kind.words}", (value, "bold" if look.colours else "")))
    if curve["starved"]:
        lines.append(Text.assemble((4 * _hunger(look), look.style("starved")), " fewer than workers"))
    return lines
