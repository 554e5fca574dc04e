"""The parts of the screen of `eligo top`: lists that keep their cursor, and sheets above everything else."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.message import Message
from textual.screen import ModalScreen
from textual.theme import Theme
from textual.widgets import DataTable, Static

from eligo.cli.top_tables import ListColumn, Row, fit_row, place_columns

BAR = 1  # columns of the bar by which a list is scrolled
#: the colours of the page
THEMES = (
    Theme(
        name="eligo-dark", primary="#6db9f2", secondary="#a3aebb", accent="#6db9f2", foreground="#e6eaf0",
        background="#0d1117", surface="#0d1117", panel="#1a2028", warning="#e69f00", error="#ff9d66",
        success="#4fd1a5", dark=True,
    ),
    Theme(
        name="eligo-light", primary="#0b5f9e", secondary="#546070", accent="#0b5f9e", foreground="#1a2330",
        background="#ffffff", surface="#ffffff", panel="#eef2f6", warning="#b87400", error="#a63c06",
        success="#006b4e", dark=False,
    ),
)  # fmt: skip

STYLE = """
Sheet { align: center middle; }
#sheet { width: 94%; max-width: 124; height: auto; max-height: 94%; border: round $accent;
         padding: 0 1; background: $background; scrollbar-size-vertical: 1; }
#sheet-text { height: auto; }
"""


class Listing(DataTable[Text]):
    """A table that is updated once a second; the cursor stays on the same row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "detail", key_display="Enter"),
        Binding("left", "screen.turn(-1)", show=False),
        Binding("right", "screen.turn(1)", show=False),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]

    def __init__(self, columns: Sequence[ListColumn], name: str, nothing: str) -> None:
        super().__init__(id=name, cursor_type="row", cell_padding=1)
        self._nothing = Row("", [Text("" if column.width else nothing) for column in columns])
        self._wanted, self._placed = columns, list[tuple[int, ListColumn]]()
        self._rows: list[Row] = []

    def keys(self) -> list[str]:
        """The keys of the rows."""
        return [row.key for row in self._rows]

    @property
    def chosen(self) -> str | None:
        """The key of the row under the cursor."""
        return (self._rows[self.cursor_row].key or None) if 0 <= self.cursor_row < len(self._rows) else None

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns as fit."""
        self._set_columns()

    def _set_columns(self) -> None:
        columns = place_columns(self._wanted, self.size.width - BAR)
        if columns == self._placed or self.size.width < 20:
            return
        self._placed = columns
        row, rows = self.cursor_row, self._rows
        self._rows = []
        self.clear(columns=True)
        for _, column in columns:
            self.add_column(Text(column.title, justify="right" if column.right else "left"), width=column.width)
        self.show(rows)
        self.move_cursor(row=row)

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows; only changed cells are updated."""
        chosen, place, before = self.chosen, self.cursor_row, self.row_count
        self._rows = list(rows) or [self._nothing]
        if not self._placed:
            return
        self._fill([fit_row(row, self._placed) for row in self._rows], before)
        keys = self.keys()
        if chosen in keys and keys.index(chosen) != place:
            self.move_cursor(row=keys.index(chosen))

    def _fill(self, cells: list[list[Text]], before: int) -> None:
        for line in range(min(before, len(cells))):
            for column, cell in enumerate(cells[line]):
                current = self.get_cell_at(Coordinate(line, column))
                if current != cell or current.style != cell.style:
                    self.update_cell_at(Coordinate(line, column), cell)
        for fresh in cells[before:]:
            self.add_row(*fresh)
        for _ in range(before - len(cells)):
            self.remove_row(self.ordered_rows[-1].key)


class TaskListing(Listing):
    """The tasks, a page at a time; moving beyond its ends requests another page."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "leaf(-1)", show=False),
        Binding("pagedown", "leaf(1)", show=False),
        Binding("home", "leaf(-1000000000)", show=False),
        Binding("end", "leaf(1000000000)", show=False),
    ]

    class Leafed(Message):
        """The user wants another page, this many pages further."""

        def __init__(self, pages: int) -> None:
            self.pages = pages
            super().__init__()

    @property
    def page(self) -> int:
        """The number of tasks that fit."""
        return max(1, self.size.height - self.header_height)

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns and tasks as fit."""
        super().on_resize(event)
        self.action_leaf(0)

    def action_leaf(self, pages: int) -> None:
        """Turn pages."""
        self.post_message(self.Leafed(pages))

    def action_cursor_down(self) -> None:
        """Move to the next task."""
        if self.cursor_row >= self.row_count - 1:
            self.action_leaf(1)
        else:
            super().action_cursor_down()

    def action_cursor_up(self) -> None:
        """Move to the previous task."""
        if self.cursor_row <= 0:
            self.action_leaf(-1)
        else:
            super().action_cursor_up()


class Sheet(ModalScreen[None]):
    """A text above everything else, until a key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,backspace", "dismiss", "back"),
        Binding("question_mark", "dismiss", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll(10)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
    ]

    def __init__(self, text: Text, title: str) -> None:
        super().__init__()
        self._text, self._title = text, title

    def compose(self) -> ComposeResult:
        """A frame with the text in it."""
        with VerticalScroll(id="sheet") as frame:
            frame.border_title = self._title
            frame.border_subtitle = "Esc: back"
            yield Static(self._text, id="sheet-text")

    def show(self, text: Text) -> None:
        """Show another text."""
        if text != self._text:
            self._text = text
            self.query_one("#sheet-text", Static).update(text)

    def action_scroll(self, lines: int) -> None:
        """Scroll by some lines."""
        self.query_one("#sheet", VerticalScroll).scroll_relative(y=lines, animate=False)
