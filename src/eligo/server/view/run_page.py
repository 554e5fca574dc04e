"""The page of a run in a folder, which is only read; another process may execute the run meanwhile."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn

from eligo.errors import InputError
from eligo.pages.folder_source import WatchedRun, looked_at
from eligo.pages.html import ABSENT, is_built
from eligo.server.app import Setup, listening
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.protocol import Patience, protocol
from eligo.server.http.refusals import unknown_workflow
from eligo.server.http.routes import ApiCall, Application, Caller, endpoint, endpoints_of
from eligo.server.schema import WorkflowsWords, WorkflowWords
from eligo.server.view.page_data import Views, page_routes

EVERY = 0.4  # seconds before the folder is read again
RUN = "run"  # the id of the one workflow
PATIENT = 2  # seconds that open requests may take at the end
MOST_WAIT = 60.0  # seconds that a run may take to start


class RunLookout:
    """The one workflow of a folder."""

    closing = False

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._run: WatchedRun | None = None
        self._read = 0.0
        self._lock = asyncio.Lock()

    async def watched(self, workflow: str = RUN) -> WatchedRun:
        """The current state of the run."""
        if workflow != RUN:
            raise unknown_workflow(workflow)
        async with self._lock:
            if self._run is None:
                self._run, self._read = await asyncio.to_thread(looked_at, self._folder), time.monotonic()
            elif time.monotonic() - self._read > EVERY:
                await self._renew(self._run)
            self._run.id = RUN
            return self._run

    async def _renew(self, run: WatchedRun) -> None:
        """Read new moves, in the event loop, so that no document is made in the middle of an update."""
        self._run, self._read = run.renew(), time.monotonic()
        if self._run is not run:
            await asyncio.to_thread(self._run.prepare)
        if self._run.forecast_due:
            await asyncio.to_thread(self._run.foresight())

    async def settled(self) -> None:
        """Return at once: everything in the folder is stored already."""

    @endpoint("GET", "/v1/workflows", "read")
    async def workflows(self, call: ApiCall) -> WorkflowsWords:
        """The workflow of the run."""
        run = await self.watched()
        began, lost = run.spans[0][0] if run.spans else run.at, run.tallies["lost"]
        about = (RUN, run.title, "", run.policy, run.status, began, len(run.flow), {**run.counts})
        return WorkflowsWords([WorkflowWords(*about, lost, run.tallies["repeated"], run.tallies["saved"], [], [])])

    def app(self) -> Guard:
        """The ASGI app of the page."""
        anybody = Caller("anybody", frozenset({"read"}))
        views = Views(self, lambda headers: anybody)
        endpoints = [*endpoints_of(self), *views.endpoints()]
        return Guard(Application(endpoints, lambda headers: anybody, [], page_routes()), Bounds())


def show_run(folder: str | Path, port: int, ready: Callable[[str], None], with_parent: bool = False) -> None:
    """Show a run until a signal or, *with_parent*, until the parent process ends; calls *ready* with the address."""
    if not is_built():
        raise InputError(ABSENT)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    asyncio.run(_serve_page(folder, port, ready, with_parent))


async def _serve_page(folder: str | Path, port: int, ready: Callable[[str], None], with_parent: bool) -> None:
    listener = listening(Setup(port=port))
    lookout = RunLookout(folder)
    await _wait_for_run(lookout, MOST_WAIT if with_parent else 0.0)
    config = uvicorn.Config(
        lookout.app(), http=protocol(Patience()), ws="none", lifespan="off", log_config=None, access_log=False,
        timeout_graceful_shutdown=PATIENT, server_header=False, proxy_headers=False, date_header=False,
    )  # fmt: skip
    server = uvicorn.Server(config)

    def end() -> None:
        sys.stdin.read()
        lookout.closing = server.should_exit = True

    if with_parent:
        threading.Thread(target=end, daemon=True).start()
    ready(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    await server.serve([listener])


async def _wait_for_run(lookout: RunLookout, patience: float) -> None:
    """Wait until there is a run in the folder; raises if there is none in time."""
    until = time.monotonic() + patience
    while True:
        try:
            await lookout.watched()
            return
        except InputError:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(0.2)
