"""The screen of `eligo top`: its parts, its keys, and the thread that reads what they show."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static, Tab, TabbedContent, TabPane

from eligo.cli import top_tables as tables
from eligo.cli.top_panes import Listing, TaskListing
from eligo.cli.top_style import Look, curve_lines, head, one_line, said
from eligo.errors import EligoError, InputError
from eligo.pages.sources import Document, Listed, RunSource
from eligo.pages.tables import Query
from eligo.running.states import STATES

# Reading the source in a thread of its own


EVERY = 1.0  # seconds between two rounds
SHARE = 4  # reading takes at most one part in this many of the time
SELDOM = 10.0  # seconds between two requests for the list of workflows


class Wish(NamedTuple):
    """What to read: a workflow, None for the first one; a part of its tasks; one of its tasks."""

    workflow: str | None = None
    query: Query | None = None
    task: str | None = None


class Update(NamedTuple):
    """The data that one round of reading returned for a wish; *trouble* is the reason if there are none."""

    wish: Wish
    at: float
    workflows: Sequence[Listed] = ()
    view: Document | None = None
    table: Document | None = None
    detail: Document | None = None
    missing: str = ""
    trouble: str = ""


class Poller:
    """Reads a source once a second, and at once after a new wish; *tell* receives the results."""

    def __init__(self, source: RunSource, tell: Callable[[Update], None], every: float = EVERY) -> None:
        self._source, self._tell, self._every = source, tell, every
        self._wish, self._lock = Wish(), threading.Lock()
        self._wake, self._over = threading.Event(), False
        self._workflows: list[Listed] = []
        self._listed = float("-inf")
        self._thread = threading.Thread(target=self._loop, name="eligo top", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, patience: float = 0.0) -> None:
        """End the thread after the current round; waits for it at most *patience* seconds."""
        self._over = True
        self._wake.set()
        if patience and self._thread.is_alive():
            self._thread.join(patience)

    def wish(self, **changed: Any) -> None:
        """Change what is read, at once."""
        with self._lock:
            self._wish = self._wish._replace(**changed)
        self._wake.set()

    def _loop(self) -> None:
        while not self._over:
            self._wake.clear()
            with self._lock:
                wish = self._wish
            begin = time.monotonic()
            update = self._round(wish)
            if self._over:
                return
            self._tell(update)
            self._wake.wait(max(self._every, (SHARE - 1) * (time.monotonic() - begin)))

    def _round(self, wish: Wish) -> Update:
        """Read everything in the wish once."""
        try:
            return self._fetch(wish)
        except EligoError as error:
            return Update(wish, time.time(), self._workflows, trouble=str(error))
        except Exception as error:  # a folder that is just being written, or a server with invalid answers
            return Update(wish, time.time(), self._workflows, trouble=f"{type(error).__name__}: {error}")

    def _fetch(self, wish: Wish) -> Update:
        source = self._source
        if time.monotonic() - self._listed > SELDOM or not self._workflows:
            self._workflows, self._listed = source.workflows(), time.monotonic()
        chosen = wish.workflow or (self._workflows[0].workflow if self._workflows else None)
        if chosen is None:
            return Update(wish, time.time(), missing="no workflows on this server")
        view = source.view(chosen)
        table = None if wish.query is None else source.table(chosen, wish.query)
        detail, missing = None, ""
        if wish.task is not None:
            try:
                detail = source.detail(chosen, wish.task)
            except InputError as error:
                missing = str(error)
        wish = wish._replace(workflow=chosen)
        return Update(wish, time.time(), self._workflows, view, table, detail, missing)


PANES = ("running", "workers", "failures", "tasks")
SILENT = 4.0  # seconds without an answer after which the screen says so
WIDE = 120  # columns; wider screens have room beside the curve
TALL = 20  # lines; lower screens have no room for the curve
ASIDE = 48

STYLE = """
#head, #curve { text-wrap: nowrap; text-overflow: ellipsis; }
#head { height: auto; padding: 0 1; }
#trouble { height: auto; padding: 0 1; background: $error; color: $background; text-style: bold; display: none; }
#middle { height: 8; margin-top: 1; padding: 0 1; }
#curve { width: 1fr; }
#aside { width: 48; padding-left: 2; color: $secondary; display: none; }
TabbedContent { height: 1fr; }
TabPane { padding: 0; }
Listing, Listing:focus { height: 1fr; background: $background; background-tint: transparent; }
Listing { scrollbar-size-vertical: 1; overflow-x: hidden; }
Listing > .datatable--even-row, Listing > .datatable--odd-row { background: $background; }
Listing > .datatable--header { background: $panel; color: $secondary; text-style: none; }
Listing > .datatable--cursor { background: $accent 30%; color: $foreground; text-style: none; }
Listing:focus > .datatable--cursor { background: $accent 30%; color: $foreground; text-style: bold; }
#tail { height: auto; max-height: 6; padding: 0 2; }
#below { height: 1; }
#found { width: 1fr; padding: 0 1; color: $secondary; text-wrap: nowrap; text-overflow: ellipsis; }
#search { width: 40%; height: 1; border: none; padding: 0 1; background: $panel; display: none; }
"""


class Overview(Screen[None]):
    """The state of a workflow."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "turn(1)", "pane", priority=True, key_display="Tab"),
        Binding("shift+tab", "turn(-1)", show=False, priority=True),
        *(Binding(str(place + 1), f"open('{name}')", show=False) for place, name in enumerate(PANES)),
        Binding("slash", "search", "search", key_display="/"),
        Binding("s", "sort", "sort"),
        Binding("r", "reverse", show=False),
        Binding("f", "filter", "filter"),
        Binding("w", "next_workflow", "next workflow"),
        Binding("c", "curve", show=False),
        Binding("escape", "forget", show=False),
    ]

    class DetailsWanted(Message):
        """The user wants details of a task or a worker."""

        def __init__(self, what: str, key: str) -> None:
            self.what, self.key = what, key
            super().__init__()

    def __init__(self, place: str, poller: Poller) -> None:
        super().__init__()
        self._place, self._poller = place, poller
        self._last: Update | None = None
        self._view: Document | None = None
        self._query = Query(most=10)
        self._total = 0
        self._good, self._heard_at = 0.0, time.monotonic()
        self._with_curve = True
        self.look = Look()

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield Static(f"reading {said(self._place)} ...", id="head", markup=False)
        yield Static(id="trouble", markup=False)
        with Horizontal(id="middle"):
            yield Static(id="curve", markup=False)
            yield Static(id="aside", markup=False)
        with TabbedContent(initial="running"):
            with TabPane("Running", id="running"):
                yield Listing(tables.RUNNING, "running-list", "no running tasks")
            with TabPane("Workers", id="workers"):
                yield Listing(tables.WORKERS, "workers-list", "no workers yet")
            with TabPane("Failures", id="failures"):
                yield Listing(tables.FAILURES, "failures-list", "no failures")
                yield Static(id="tail", markup=False)
            with TabPane("Tasks", id="tasks"):
                yield TaskListing(list(tables.TASKS.values()), "tasks-list", "no matching tasks")
                with Horizontal(id="below"):
                    yield Input(placeholder="part of a task name", id="search")
                    yield Static(id="found", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Check now and then how long the source has been silent."""
        self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        if self.ready:
            self._paint_trouble()

    def receive(self, update: Update) -> None:
        """Take in new data and show it."""
        before = self._last
        self._last, self._heard_at = update, time.monotonic()
        if not update.trouble:
            self._good = update.at
        if update.view is not None:
            self._view = update.view
        self.paint()
        if self.ready and update.table is not None and update.wish.query == self._query:
            self._paint_tasks(update.table)
        if before is None or len(before.workflows) != len(update.workflows):
            self.refresh_bindings()

    def on_resize(self, event: events.Resize) -> None:
        """Redraw in the new size."""
        self.call_after_refresh(self.paint)

    # Drawing

    @property
    def ready(self) -> bool:
        """Whether all parts exist: not at the very beginning, nor at the end."""
        complete = all(len(self.query(part)) == len(PANES) for part in (Listing, Tab))
        return complete and all(self.query(part) for part in ("#trouble", "#found"))

    def paint(self) -> None:
        """Redraw everything."""
        if not self.ready:
            return
        self._paint_trouble()
        view, look = self._view, self.look
        if view is None:
            if self._last is not None and self._last.missing:
                self.query_one("#head", Static).update(said(self._last.missing))
            return
        self.query_one("#head", Static).update(head(view, self.size.width - 2, look, self._which()))
        self._paint_curve(view)
        self._list("running").show(tables.running_rows(view, look))
        self._list("workers").show(tables.worker_rows(view, look))
        self._list("failures").show(tables.failure_rows(view, look))
        self._paint_tail()
        numbers = {"running": view["counts"]["running"], "workers": view["workers"], "failures": view["failures_total"]}
        tabs = self.query_one(TabbedContent)
        for name in PANES:
            number = numbers.get(name, view["tasks"])
            label = f"{name.capitalize()} {number:,}"
            if str(tabs.get_tab(name).label) != label:
                tabs.get_tab(name).label = label

    def _which(self) -> str:
        """The place of the workflow among several; empty if there is only one."""
        ids = [one.workflow for one in self._last.workflows] if self._last else []
        here = self._last.wish.workflow if self._last else None
        return f"  workflow {ids.index(here) + 1} of {len(ids)}" if len(ids) > 1 and here in ids else ""

    def _paint_curve(self, view: Document) -> None:
        """Draw the curve in a third of the screen, with an assessment in words beside it if there is room."""
        middle, aside = self.query_one("#middle"), self.query_one("#aside", Static)
        height, wide = max(7, min(16, (self.size.height - 8) // 3 + 2)), self.size.width >= WIDE
        middle.display = self._with_curve and self.size.height >= TALL
        middle.styles.height, aside.display = height, wide
        room = self.size.width - 2 - (ASIDE if wide else 0)
        self.query_one("#curve", Static).update(Text("\n").join(curve_lines(view, room, height, self.look)))
        if wide:
            words = [Text(f"{one_line(sentence)}\n") for sentence in view["order"]["words"]]
            aside.update(
                Text("").join([*words, Text("\nfinished last:\n"), *tables.recent_lines(view, ASIDE - 2, self.look)])
            )

    def _paint_trouble(self) -> None:
        """Show since when the source has not answered, and why."""
        line, trouble = self.query_one("#trouble", Static), self._last.trouble if self._last else ""
        silent = time.monotonic() - self._heard_at
        if not trouble and silent > SILENT and self._last is not None:
            trouble = "no answer yet"
        line.display = bool(trouble)
        if trouble:
            since = (
                f"no answer since {tables.clock(self._good)} ({tables.took(max(0.0, time.time() - self._good))})"
                if self._good
                else "no answer"
            )
            line.update(Text(f"{since}, retrying: {said(trouble)}"))

    def _paint_tail(self) -> None:
        chosen = self._list("failures").chosen
        causes = self._view["failures"] if self._view else []
        visible = chosen is not None and int(chosen) < len(causes)
        tail = self.query_one("#tail", Static)
        tail.display = visible
        if chosen is not None and visible:
            tail.update(Text("\n").join(tables.tail_lines(causes[int(chosen)], 6, self.look)))

    def _paint_tasks(self, table: Document) -> None:
        self._total = table["total"]
        self._list("tasks").show(tables.task_rows(table, self.look))
        query, first = self._query, self._query.offset
        caption = f"{first + 1:,} to {first + len(table['rows']):,} of {self._total:,}" if table["rows"] else "none"
        caption += f' with "{query.search}"' if query.search else ""
        caption += f", {query.state}" if query.state else ""
        caption += f"; by {tables.TASKS[query.sort].title}{', descending' if query.descending else ''}"
        self.query_one("#found", Static).update(said(caption))

    def _list(self, pane: str) -> Listing:
        return self.query_one(f"#{pane}-list", Listing)

    # Keys

    @property
    def pane(self) -> str:
        """The name of the open pane."""
        return self.query_one(TabbedContent).active

    def action_open(self, pane: str) -> None:
        """Open a pane."""
        self.query_one(TabbedContent).active = pane
        self._list(pane).focus()
        self._ask()

    def action_turn(self, by: int) -> None:
        """Open the next pane."""
        self.action_open(PANES[(PANES.index(self.pane) + by) % len(PANES)])

    @on(TabbedContent.TabActivated)
    def _turned(self) -> None:
        if not self.ready:
            return
        if not self.query_one("#search", Input).has_focus:
            self._list(self.pane).focus()
        self._ask()
        self.paint()
        self.refresh_bindings()

    def _ask(self, **changed: object) -> None:
        """Request the tasks to show, if their pane is open."""
        room = self.query_one(TaskListing).page
        self._query = self._query._replace(most=room, **changed)  # type: ignore[arg-type]
        self._poller.wish(query=self._query if self.pane == "tasks" else None)

    def action_search(self) -> None:
        """Search the tasks."""
        self.action_open("tasks")
        entry = self.query_one("#search", Input)
        entry.display = True
        entry.focus()

    @on(Input.Changed, "#search")
    def _searched(self, event: Input.Changed) -> None:
        self._ask(search=event.value, offset=0)

    @on(Input.Submitted, "#search")
    def _search_ended(self) -> None:
        self._list("tasks").focus()

    def action_forget(self) -> None:
        """Show all tasks again."""
        entry = self.query_one("#search", Input)
        entry.display, entry.value = False, ""
        self._list(self.pane).focus()
        self._ask(search="", state="", offset=0)

    @on(TaskListing.Leafed)
    def _leafed(self, event: TaskListing.Leafed) -> None:
        if not self.ready:
            return
        most = self.query_one(TaskListing).page
        page = min(max(0, (self._total - 1) // most), max(0, self._query.offset // most + event.pages))
        if event.pages and page * most != self._query.offset:
            self._list("tasks").move_cursor(row=0)
        self._ask(offset=page * most)

    def action_sort(self) -> None:
        """Sort by the next column."""
        names = list(tables.TASKS)
        self._ask(sort=names[(names.index(self._query.sort) + 1) % len(names)], offset=0)

    def action_reverse(self) -> None:
        """Reverse the order of the tasks."""
        self._ask(descending=not self._query.descending, offset=0)

    def action_filter(self) -> None:
        """Show only tasks of the next state."""
        states = ("", *STATES)
        self._ask(state=states[(states.index(self._query.state) + 1) % len(states)], offset=0)

    def action_next_workflow(self) -> None:
        """Show the next workflow."""
        ids = [one.workflow for one in self._last.workflows] if self._last else []
        if len(ids) > 1 and self._last is not None:
            here = ids.index(self._last.wish.workflow) if self._last.wish.workflow in ids else -1
            self._poller.wish(workflow=ids[(here + 1) % len(ids)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key applies to what is open."""
        if action == "next_workflow":
            return self._last is not None and len(self._last.workflows) > 1
        if action in {"sort", "reverse", "filter"}:
            return bool(self.query(TabbedContent)) and self.pane == "tasks"
        return True

    def action_curve(self) -> None:
        """Hide or show the curve."""
        self._with_curve = not self._with_curve
        self.paint()

    @on(DataTable.RowHighlighted, "#failures-list")
    def _cause_chosen(self) -> None:
        if self.ready:
            self._paint_tail()

    @on(DataTable.RowSelected)
    def _selected(self) -> None:
        chosen = self._list(self.pane).chosen
        if chosen is None:
            return
        if self.pane == "failures" and self._view is not None:
            chosen = self._view["failures"][int(chosen)]["tasks"][0]
        self.post_message(self.DetailsWanted("worker" if self.pane == "workers" else "task", str(chosen)))
