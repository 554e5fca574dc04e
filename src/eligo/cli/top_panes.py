"""The parts of the screen of `eligo top`: lists that keep their place, and sheets that lie above everything."""

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

from eligo.cli.top_tables import ListColumn, Row, fitted, placed

BAR = 1  # columns of the bar by which a list is scrolled
#: the grounds and inks of the page
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
    """A table that is renewed once a second and keeps its place: the cursor stays on what it was on."""

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
        """What its rows are about."""
        return [row.key for row in self._rows]

    @property
    def chosen(self) -> str | None:
        """What the cursor is on."""
        return (self._rows[self.cursor_row].key or None) if 0 <= self.cursor_row < len(self._rows) else None

    def on_resize(self, event: events.Resize) -> None:
        """As many columns as there is room for."""
        self._set_columns()

    def _set_columns(self) -> None:
        columns = placed(self._wanted, self.size.width - BAR)
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
        """Show these, and only change what has changed."""
        chosen, place, before = self.chosen, self.cursor_row, self.row_count
        self._rows = list(rows) or [self._nothing]
        if not self._placed:
            return
        self._fill([fitted(row, self._placed) for row in self._rows], before)
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
    """The tasks, a page at a time: beyond its ends the next page is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "leaf(-1)", show=False),
        Binding("pagedown", "leaf(1)", show=False),
        Binding("home", "leaf(-1000000000)", show=False),
        Binding("end", "leaf(1000000000)", show=False),
    ]

    class Leafed(Message):
        """Another page is wanted: so many further."""

        def __init__(self, pages: int) -> None:
            self.pages = pages
            super().__init__()

    @property
    def page(self) -> int:
        """How many tasks there is room for."""
        return max(1, self.size.height - self.header_height)

    def on_resize(self, event: events.Resize) -> None:
        """As many columns, and as many tasks, as there is room for."""
        super().on_resize(event)
        self.action_leaf(0)

    def action_leaf(self, pages: int) -> None:
        """Turn pages."""
        self.post_message(self.Leafed(pages))

    def action_cursor_down(self) -> None:
        """One task further."""
        if self.cursor_row >= self.row_count - 1:
            self.action_leaf(1)
        else:
            super().action_cursor_down()

    def action_cursor_up(self) -> None:
        """One task back."""
        if self.cursor_row <= 0:
            self.action_leaf(-1)
        else:
            super().action_cursor_up()


class Sheet(ModalScreen[None]):
    """Something to read above everything else, until a key closes it."""

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
        """Another text, or the same as it is now."""
        if text != self._text:
            self._text = text
            self.query_one("#sheet-text", Static).update(text)

    def action_scroll(self, lines: int) -> None:
        """Read on."""
        self.query_one("#sheet", VerticalScroll).scroll_relative(y=lines, animate=False)
