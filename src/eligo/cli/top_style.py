"""How `eligo top` shows things: the colours and letters of states, and text that cannot do anything to a terminal."""

import os
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from eligo.cli.output import harmless
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING, RUNNING

#: by which letter each state is known where colours are not enough
LETTERS = {DONE: "D", RUNNING: "R", READY: "Y", PENDING: "P", BLOCKED: "B", RETRYING: "T", BAD: "F"}
#: after Okabe and Ito (2008), as on the page: on light ground, and on dark
LIGHT = {
    DONE: "#009e73", RUNNING: "#0072b2", READY: "#56b4e9", PENDING: "#c2c9d2", BLOCKED: "#cc79a7", RETRYING: "#e69f00",
    BAD: "#d55e00", "seen": "#0072b2", "plan": "#009e73", "fifo": "#d55e00", "starved": "#b87400", "faint": "#546070",
    "bad": "#a63c06", "good": "#006b4e",
}  # fmt: skip
DARK = LIGHT | {
    RUNNING: "#2b8fd0", PENDING: "#57616e", "seen": "#56b4e9", "plan": "#14b98a", "fifo": "#f07f2e",
    "starved": "#e69f00", "faint": "#a3aebb", "bad": "#ff9d66", "good": "#4fd1a5",
}  # fmt: skip
#: the names of states as they are written on light ground, and on dark, dark or light enough to be read
INK = (
    {DONE: "#006b4e", RUNNING: "#0b5f9e", READY: "#1b6fa3", PENDING: "#546070", BLOCKED: "#93406f", RETRYING: "#8a5f00",
     BAD: "#a63c06"},
    {DONE: "#4fd1a5", RUNNING: "#6db9f2", READY: "#56b4e9", PENDING: "#a3aebb", BLOCKED: "#e09cc4", RETRYING: "#e69f00",
     BAD: "#ff9d66"},
)  # fmt: skip
#: what is written on them
WRITTEN = {
    DONE: "#00140e", RUNNING: "#ffffff", READY: "#0c2a3d", PENDING: "#2c3540", BLOCKED: "#3b1029", RETRYING: "#3a2900",
    BAD: "#1f0d00",
}  # fmt: skip


class Look(NamedTuple):
    """How things may look: on dark ground or light, with colours or without, with signs beyond ASCII or not."""

    dark: bool = True
    colours: bool = True
    signs: bool = True

    def style(self, what: str) -> str:
        """In which colour something is written."""
        return (DARK if self.dark else LIGHT)[what] if self.colours else ""

    def state(self, state: str) -> str:
        """In which colour the name of a state is written."""
        return INK[self.dark][state] if self.colours else ""

    def ground(self, state: str) -> str:
        """On which ground, and how, something is written in the bar."""
        if not self.colours:
            return ""
        written = "#eef1f5" if self.dark and state == PENDING else WRITTEN[state]
        return f"{written} on {self.style(state)}"


def is_dark() -> bool:
    """Whether the terminal says that its ground is dark; it is taken to be where it says nothing."""
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return not (ground.isdecimal() and int(ground) in {7, *range(9, 16)})


def one_line(text: object) -> str:
    r"""A text as it is, on one line, with whatever is no letter or sign written out.

    >>> print(one_line("[red]x[/]\n\x1b[2J"))
    [red]x[/]\n\x1b[2J
    """
    return harmless(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def cut(text: str, width: int) -> str:
    """A text within so many cells; what is too long is cut in its middle, since names often differ at their ends.

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
    """A text that is shown as it is."""
    line = one_line(text)
    return Text(line if width is None else cut(line, width), style, no_wrap=True, overflow="ellipsis", end="")
