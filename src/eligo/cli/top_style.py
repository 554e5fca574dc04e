"""The style that `eligo top` and the live display share: colours and letters of states, the first lines, the curve."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from eligo.cli.output import format_rate, harmless
from eligo.errors import counted
from eligo.pages.views import STATE_WORDS
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING, RUNNING, STATES

#: the letter of each state, for where colours are not enough
LETTERS = {DONE: "D", RUNNING: "R", READY: "Y", PENDING: "P", BLOCKED: "B", RETRYING: "T", BAD: "F"}
#: after Okabe and Ito (2008), as on the page: on light background, and on dark
LIGHT = {
    DONE: "#009e73", RUNNING: "#0072b2", READY: "#56b4e9", PENDING: "#c2c9d2", BLOCKED: "#cc79a7", RETRYING: "#e69f00",
    BAD: "#d55e00", "seen": "#0072b2", "plan": "#009e73", "fifo": "#d55e00", "starved": "#b87400", "faint": "#546070",
    "bad": "#a63c06", "good": "#006b4e",
}  # fmt: skip
DARK = LIGHT | {
    RUNNING: "#2b8fd0", PENDING: "#57616e", "seen": "#56b4e9", "plan": "#14b98a", "fifo": "#f07f2e",
    "starved": "#e69f00", "faint": "#a3aebb", "bad": "#ff9d66", "good": "#4fd1a5",
}  # fmt: skip
#: the colours of the names of states on light background, and on dark, with enough contrast to be read
INK = (
    {DONE: "#006b4e", RUNNING: "#0b5f9e", READY: "#1b6fa3", PENDING: "#546070", BLOCKED: "#93406f", RETRYING: "#8a5f00",
     BAD: "#a63c06"},
    {DONE: "#4fd1a5", RUNNING: "#6db9f2", READY: "#56b4e9", PENDING: "#a3aebb", BLOCKED: "#e09cc4", RETRYING: "#e69f00",
     BAD: "#ff9d66"},
)  # fmt: skip
#: the colours of text on the states of the bar
WRITTEN = {
    DONE: "#00140e", RUNNING: "#ffffff", READY: "#0c2a3d", PENDING: "#2c3540", BLOCKED: "#3b1029", RETRYING: "#3a2900",
    BAD: "#1f0d00",
}  # fmt: skip
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a sign of braille, by column and row
LEAST_ROOM = 24  # columns that a curve needs


class Look(NamedTuple):
    """The style of the output: on dark or light background, with or without colours, with or without signs beyond ASCII."""

    dark: bool = True
    colours: bool = True
    signs: bool = True

    def style(self, what: str) -> str:
        """The colour of something."""
        return (DARK if self.dark else LIGHT)[what] if self.colours else ""

    def state(self, state: str) -> str:
        """The colour of the name of a state."""
        return INK[self.dark][state] if self.colours else ""

    def ground(self, state: str) -> str:
        """The colours of a state in the bar."""
        if not self.colours:
            return ""
        written = "#eef1f5" if self.dark and state == PENDING else WRITTEN[state]
        return f"{written} on {self.style(state)}"


def is_dark() -> bool:
    """Whether the terminal's background is dark by COLORFGBG; assumed if that is not set."""
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return not (ground.isdecimal() and int(ground) in {7, *range(9, 16)})


def one_line(text: object) -> str:
    r"""A text on one line, with control characters escaped.

    >>> print(one_line("[red]x[/]\n\x1b[2J"))
    [red]x[/]\n\x1b[2J
    """
    return harmless(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def cut(text: str, width: int) -> str:
    """A text of at most *width* cells; a longer one is cut in its middle, since names often differ at their ends.

    >>> cut("process_sample_0123", 12), cut("short", 12)
    ('process…0123', 'short')
    """
    if cell_len(text) <= width:
        return text
    if width < 5:
        return set_cell_size(text, max(0, width)).rstrip()
    end = ""
    while cell_len(end) < width // 3:
        end = text[len(text) - len(end) - 1 :]
    return f"{set_cell_size(text, width - 1 - cell_len(end)).rstrip()}…{end}"


def said(text: object, style: str = "", width: int | None = None) -> Text:
    """A text to show literally on one line."""
    line = one_line(text)
    return Text(line if width is None else cut(line, width), style, no_wrap=True, overflow="ellipsis", end="")


# The first lines


def title_line(view: dict[str, Any], look: Look, more: str = "") -> Text:
    """The title, the state, and the workers."""
    state = view["state"]
    style = look.style(
        {"failed": "bad", "cancelled": "bad", "stopped": "starved", "paused": "starved", "held": "starved"}.get(
            state, "good"
        )
    )
    line = said(view["title"], "bold" if look.colours else "", 40)
    line.append(f"  {STATE_WORDS.get(state, state)}", style)
    if state in {"running", "paused", "held"}:
        busy = "" if view["busy"] is None else f", {100 * view['busy']:.0f} % busy"
        line.append(f"  {counted(view['workers'], 'worker')}{busy}", look.style("faint"))
    line.append(f"  policy {said(view['policy'], width=20)}{more}", look.style("faint"))
    return line


def pace_line(view: dict[str, Any], look: Look) -> Text:
    """The progress and the rate."""
    line = said(view["headline"])
    if view["rate"]:
        line.append(f"  {format_rate(view['rate'])}", look.style("faint"))
    for what in ("repeated", "lost"):
        line.append(f"  {view[what]:,} {what}" if view[what] else "", look.style("faint"))
    return line


def bar_line(counts: dict[str, int], width: int, look: Look) -> Text:
    """A bar of the states, each as wide as its share, with its name or letter in it."""
    line = Text(no_wrap=True, end="")
    for state, cells in bar({state: counts.get(state, 0) for state in STATES}, width).items():
        if look.colours:
            inside = state if len(state) + 2 <= cells else LETTERS[state]
            line.append(f"{inside:^{cells}}", look.ground(state))
        else:
            line.append(LETTERS[state] * cells)
    return line


def bar(counts: dict[str, int], width: int) -> dict[str, int]:
    """The number of cells of each state in a bar: its share, and at least one if there is a task in it.

    >>> bar({"done": 997, "running": 2, "failed": 1, "ready": 0}, 10)
    {'done': 8, 'running': 1, 'failed': 1}
    """
    total = max(1, sum(counts.values()))
    cells = {state: max(1, count * width // total) for state, count in counts.items() if count}
    while cells and sum(cells.values()) != width:
        short = sum(cells.values()) < width
        exact = {state: counts[state] * width / total - had for state, had in cells.items()}
        if not short and max(cells.values()) == 1:
            break
        chosen = max(exact, key=exact.__getitem__) if short else min(exact, key=lambda s: (cells[s] == 1, exact[s]))
        cells[chosen] += 1 if short else -1
    return cells


def legend_line(counts: dict[str, int], width: int, look: Look) -> Text:
    """The number of tasks in each state and its letter, on as many lines as needed."""
    line, used = Text(end=""), 0
    for state in STATES:
        number = counts.get(state, 0)
        if not number and state != DONE:
            continue
        label = f" {number:,} {state}"
        if used and used + len(label) + 3 > width:
            line.append("\n")
            used = 0
        if used:
            line.append("  ")
        line.append(LETTERS[state] if not look.colours else f" {LETTERS[state]} ", look.ground(state))
        line.append(label)
        used += len(label) + (3 if not look.colours else 5)
    return line


def head(view: dict[str, Any], width: int, look: Look, more: str = "") -> Text:
    """The first lines."""
    parts = [
        title_line(view, look, more), pace_line(view, look), bar_line(view["counts"], width, look),
        legend_line(view["counts"], width, look),
    ]  # fmt: skip
    return Text("\n", end="").join(parts)


# The ready curve: dots of braille, each line with a pattern of its own, over an axis


class CurveLine(NamedTuple):
    """A line: its key in the document, its name, its pattern of dots, and its sign if there is no braille."""

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
    """A canvas of dots."""

    def __init__(self, width: int, height: int, look: Look) -> None:
        self._look, self.width, self.height = look, width, height
        self._across, self._down = (2, 4) if look.signs else (1, 1)
        self._cells: dict[tuple[int, int], tuple[int, CurveLine]] = {}

    @property
    def columns(self) -> int:
        """The number of dots in a row."""
        return self.width * self._across

    def line(self, kind: CurveLine, values: Sequence[float | None], top: float) -> None:
        """Draw values, one for each column of dots; *top* is the value at the upper edge."""
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


def curve_lines(view: dict[str, Any], width: int, height: int, look: Look) -> list[Text]:
    """The curve in *height* lines: the number of tasks that could run after each step, seen, planned and fifo."""
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
    """One value for each column of *steps* in all: the mean of the values that fall into it."""
    means: list[float | None] = []
    for x in range(columns):
        begin = x * steps // columns
        part = values[begin : max(begin + 1, (x + 1) * steps // columns)]
        means.append(sum(part) / len(part) if part else None)
    return means


def _axis(view: dict[str, Any], room: int, label: int, look: Look) -> list[Text]:
    """The axis, with marks where fewer tasks were ready than there were workers, and labels at its ends."""
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
    """The mark for stretches with fewer ready tasks than workers."""
    return "▒" if look.signs else "!"


def _legend(curve: dict[str, Any], kinds: Sequence[CurveLine], look: Look) -> list[Text]:
    """The name of each line, and its current height."""
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
