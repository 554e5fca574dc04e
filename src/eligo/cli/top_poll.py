"""What `eligo top` asks for, again and again, in a thread of its own, so that keys are heeded whatever the source does."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eligo.errors import EligoError, InputError
from eligo.pages.sources import Document, Listed, RunSource
from eligo.pages.tables import Query

EVERY = 1.0  # seconds between two looks
SHARE = 4  # of the time, one part in so many is spent looking
SELDOM = 10.0  # seconds between two looks at which workflows there are


class Wish(NamedTuple):
    """What is looked at: a workflow, none: the first there is; a part of its tasks; a task of it."""

    workflow: str | None = None
    query: Query | None = None
    task: str | None = None


class Tidings(NamedTuple):
    """What came of one round, and for which wish; *trouble* says why nothing did."""

    wish: Wish
    at: float
    workflows: Sequence[Listed] = ()
    view: Document | None = None
    table: Document | None = None
    detail: Document | None = None
    missing: str = ""
    trouble: str = ""


class Poller:
    """Asks a source once a second, and at once where something else is wished for; *tell* is told what came of it."""

    def __init__(self, source: RunSource, tell: Callable[[Tidings], None], every: float = EVERY) -> None:
        self._source, self._tell, self._every = source, tell, every
        self._wish, self._lock = Wish(), threading.Lock()
        self._wake, self._over = threading.Event(), False
        self._workflows: list[Listed] = []
        self._listed = float("-inf")
        self._thread = threading.Thread(target=self._loop, name="eligo top", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, patience: float = 0.0) -> None:
        """End, once what is under way has come to its end; that is not waited for longer than so many seconds."""
        self._over = True
        self._wake.set()
        if patience and self._thread.is_alive():
            self._thread.join(patience)

    def wish(self, **changed: Any) -> None:
        """Look at something else as well, at once."""
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

    def _round(self, wish: Wish) -> Tidings:
        """One look at everything that is wished for."""
        try:
            return self._fetch(wish)
        except EligoError as error:
            return Tidings(wish, time.time(), self._workflows, trouble=str(error))
        except Exception as error:  # a folder that is just being written, a server that says strange things
            return Tidings(wish, time.time(), self._workflows, trouble=f"{type(error).__name__}: {error}")

    def _fetch(self, wish: Wish) -> Tidings:
        source = self._source
        if time.monotonic() - self._listed > SELDOM or not self._workflows:
            self._workflows, self._listed = source.workflows(), time.monotonic()
        chosen = wish.workflow or (self._workflows[0].workflow if self._workflows else None)
        if chosen is None:
            return Tidings(wish, time.time(), missing="no workflows on this server")
        view = source.view(chosen)
        table = None if wish.query is None else source.table(chosen, wish.query)
        detail, missing = None, ""
        if wish.task is not None:
            try:
                detail = source.detail(chosen, wish.task)
            except InputError as error:
                missing = str(error)
        wish = wish._replace(workflow=chosen)
        return Tidings(wish, time.time(), self._workflows, view, table, detail, missing)
