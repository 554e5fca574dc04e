"""`eligo top`: a run or a server's workflow, live on the whole screen of a terminal."""

from contextlib import suppress
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message

from eligo.cli.top_board import EVERY, Overview, Poller, Update
from eligo.cli.top_board import STYLE as BOARD_STYLE
from eligo.cli.top_panes import STYLE as SHEET_STYLE
from eligo.cli.top_panes import THEMES, Sheet
from eligo.cli.top_style import Look, said
from eligo.cli.top_tables import detail_text, worker_text
from eligo.pages.sources import RunSource

HELP = """\
tab, left, right   next or previous pane; 1 to 4 select one
up, down           select a row; PgUp and PgDn scroll by a page
Enter              details of the task, the worker, or the first task that failed this way
/                  search tasks by part of the name; Esc clears the search
s, r               sort tasks by the next column; reverse the order
f                  show only tasks of one state, then of the next, then all
w                  next workflow of the server
c                  hide or show the curve
d                  dark or light background
q                  quit; the run continues

The curve shows how many tasks were ready after each finished task: observed, planned, and with first come,
first served. Where the axis is thick, fewer tasks were ready than there were workers.
States: D done, R running, Y ready, P pending, B blocked (depends on a failed task),
T retrying, F failed."""


class TopApp(App[None]):
    """Shows what a source reports until the user quits."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "eligo top"
    CSS = BOARD_STYLE + SHEET_STYLE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("d", "ground", show=False),
        Binding("question_mark", "help", "help", key_display="?"),
    ]

    class Learned(Message):
        """The source has new data."""

        def __init__(self, update: Update) -> None:
            self.update = update
            super().__init__()

    def __init__(self, source: RunSource, dark: bool = True, every: float = EVERY) -> None:
        super().__init__()
        self._dark = dark
        self._poller = Poller(source, self._heard, every)
        self.board = Overview(source.place, self._poller)
        self._last: Update | None = None
        self._sheet: Sheet | None = None
        self._about = ("", "")  # "task" or "worker", and which

    def get_default_screen(self) -> Overview:
        """The screen below all sheets."""
        return self.board

    def on_mount(self) -> None:
        """Use the colours of the page."""
        for theme in THEMES:
            self.register_theme(theme)
        self._paint_ground()

    def on_ready(self) -> None:
        """Start to read the source, once all parts of the screen exist."""
        self._poller.start()

    def on_unmount(self) -> None:
        """Stop reading the source."""
        self._poller.stop(0.2)

    def _heard(self, update: Update) -> None:
        """Receive data from the other thread."""
        with suppress(RuntimeError):  # the screen is being closed
            self.post_message(self.Learned(update))

    @on(Learned)
    def _update(self, news: Learned) -> None:
        self._last = news.update
        if self.board.is_attached:
            self.board.receive(news.update)
            self._paint_sheet()

    def _paint_ground(self) -> None:
        self.theme = "eligo-dark" if self._dark else "eligo-light"
        self.board.look = Look(self._dark, not self.no_color)

    def action_ground(self) -> None:
        """Switch between dark and light background."""
        self._dark = not self._dark
        self._paint_ground()
        self.board.paint()

    def action_help(self) -> None:
        """Show what the keys do."""
        self.push_screen(Sheet(Text(HELP), "eligo top"))

    # Sheets with details

    @on(Overview.DetailsWanted)
    def _open_sheet(self, wanted: Overview.DetailsWanted) -> None:
        self._about, self._sheet = (wanted.what, wanted.key), Sheet(Text("reading ..."), wanted.what)
        self.push_screen(self._sheet, lambda _: self._sheet_closed())
        if wanted.what == "task":
            self._poller.wish(task=wanted.key)
        self.call_after_refresh(self._paint_sheet)

    def _sheet_closed(self) -> None:
        self._sheet = None
        self._poller.wish(task=None)

    def _paint_sheet(self) -> None:
        sheet, last, look = self._sheet, self._last, self.board.look
        if sheet is None or last is None or not sheet.is_mounted:
            return
        what, key = self._about
        if what == "worker" and last.view is not None:
            sheet.show(worker_text(last.view, key, look))
        elif what == "task" and last.wish.task == key:
            if last.detail is not None:
                sheet.show(detail_text(last.detail, look))
            elif last.missing:
                sheet.show(said(last.missing))
