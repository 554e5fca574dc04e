"""The page of a run in a folder, which is only read; another process may execute the run meanwhile."""

import asyncio
import logging
import math
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route

from eligo.errors import InputError, counted
from eligo.pages.folder_source import WatchedRun, looked_at
from eligo.pages.html import ABSENT, ASSETS, is_built
from eligo.running.folder import REPORT
from eligo.running.inbox import ask
from eligo.server.app import Setup, listening
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.protocol import Patience, protocol
from eligo.server.http.refusals import RefusedError, unknown_workflow
from eligo.server.http.routes import ApiCall, Application, Caller, endpoint, endpoints_of
from eligo.server.schema import ReleaseWords, RetryWords, SizeWords, WorkflowsWords, WorkflowWords
from eligo.server.view.page_data import ONE, Views, page_routes

EVERY = 0.4  # seconds before the folder is read again
RUN = "run"  # the id of the one workflow
PATIENT = 2  # seconds that open requests may take at the end
MOST_WAIT = 60.0  # seconds that a run may take to start
MOST_HELD = 600.0  # seconds that readers may take to receive the end
SOON = 2.0  # seconds after which a message says that the page waits for readers
KEPT = "the run has ended; its page stays: press Ctrl-C to close it"
WAITING = "not informed of the end yet: waiting up to 10 min; press Ctrl-C to stop now"
ANYBODY = Caller("anybody", frozenset({"read"}))
OWNER = Caller("owner", frozenset({"read", "submit"}))
LONGEST = 30.0  # seconds that a run may take to answer a request
REPORT_HEADERS = {"content-security-policy": "frame-ancestors 'none'", "x-content-type-options": "nosniff"}


class RunLookout:
    """The one workflow of a folder."""

    closing = False

    def __init__(self, folder: str | Path) -> None:
        #: the token with which a page may change the run: other users of this machine can only read
        self.token = secrets.token_urlsafe(16)
        #: what the last event of a stream says; None until the run has ended
        self.end: Mapping[str, str | None] | None = None
        self._views = Views(self, self._caller)
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

    def finish(self) -> None:
        """Note that the run has ended: viewers get its last state, and then where its report is."""
        report = self._folder.absolute() / REPORT
        self.end, self._read = {"report": str(report) if report.is_file() else None}, 0.0

    async def _report(self, request: Request) -> FileResponse:
        """The report, whose own policy allows only its own program."""
        if self.end is None or self.end["report"] is None:
            raise unknown_workflow(REPORT)
        return FileResponse(self.end["report"], headers=REPORT_HEADERS, media_type=ASSETS["index.html"])

    async def settled(self) -> None:
        """Return at once: everything in the folder is stored already."""

    @endpoint("GET", "/v1/workflows", "read")
    async def workflows(self, call: ApiCall) -> WorkflowsWords:
        """The workflow of the run."""
        run = await self.watched()
        began, lost = run.spans[0][0] if run.spans else run.at, run.tallies["lost"]
        about = (RUN, run.title, "", run.policy, run.status, began, len(run.flow), {**run.counts})
        return WorkflowsWords([WorkflowWords(*about, lost, run.tallies["repeated"], run.tallies["saved"], [], [])])

    # Changes

    def _caller(self, headers: dict[bytes, bytes]) -> Caller:
        given = headers.get(b"authorization", b"")
        return OWNER if secrets.compare_digest(given, b"Bearer " + self.token.encode()) else ANYBODY

    async def _ask(self, verb: str, **words: Any) -> dict[str, Any]:
        """The answer of the run to a request."""
        try:
            answer = await asyncio.to_thread(ask, self._folder, {"verb": verb, **words}, LONGEST)
        except InputError as error:
            raise RefusedError(409, str(error)) from None
        if answer is None:
            raise RefusedError(409, "the run is not running")
        self._read = 0.0
        return answer

    @endpoint("POST", f"{ONE}/pause", "submit")
    async def pause(self, call: ApiCall) -> dict[str, Any]:
        """Start no more tasks; running tasks finish."""
        return await self._ask("pause")

    @endpoint("POST", f"{ONE}/resume", "submit")
    async def resume(self, call: ApiCall) -> dict[str, Any]:
        """Start tasks again."""
        return await self._ask("resume")

    @endpoint("POST", f"{ONE}/cancel", "submit")
    async def cancel(self, call: ApiCall) -> dict[str, Any]:
        """Stop the run and its tasks; it can be resumed later."""
        return await self._ask("cancel")

    @endpoint("POST", f"{ONE}/retry", "submit", takes=RetryWords)
    async def retry(self, call: ApiCall) -> dict[str, Any]:
        """Retry failed tasks."""
        return await self._ask("retry", tasks=call.words.tasks)

    @endpoint("POST", f"{ONE}/release", "submit", takes=ReleaseWords)
    async def release(self, call: ApiCall) -> dict[str, Any]:
        """Take running tasks back from their workers."""
        return await self._ask("release", tasks=call.words.tasks)

    @endpoint("POST", f"{ONE}/workers", "submit", takes=SizeWords)
    async def workers(self, call: ApiCall) -> dict[str, Any]:
        """Change the maximum number of concurrent tasks."""
        if call.words.workers < 1:
            raise RefusedError(400, f"workers must be a positive integer, got {call.words.workers}")
        return await self._ask("workers", workers=call.words.workers)

    @property
    def readers(self) -> int:
        """The number of open pages that follow the run."""
        return self._views.readers

    def app(self) -> Guard:
        """The ASGI app of the page."""
        endpoints = [*endpoints_of(self), *self._views.endpoints()]
        pages = [*page_routes(), Route(f"/{REPORT}", self._report, methods=["GET"])]
        return Guard(Application(endpoints, self._caller, [], pages), Bounds())


class Parent:
    """The process with the run, which writes a word to standard input after it: "ended", or "hold" to keep the page."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.word, self.over, self.gone = say, "", asyncio.Event(), asyncio.Event()

    def listen(self) -> None:
        """Wait for the word, and for the end of the process, in a thread."""
        threading.Thread(target=self._listen, args=(asyncio.get_running_loop(),), daemon=True).start()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the page has ended before
            self.word = sys.stdin.readline().strip()
            loop.call_soon_threadsafe(self.over.set)
            sys.stdin.read()
            loop.call_soon_threadsafe(self.gone.set)

    async def stay(self, lookout: RunLookout) -> None:
        """Wait until all readers have the end of the run; not at all without readers, unless the page is to be kept."""
        begin, said = time.monotonic(), False
        most = {"hold": math.inf, "ended": MOST_HELD}.get(self.word, SOON)  # without a word, it was killed
        while (self.word == "hold" or lookout.readers) and (elapsed := time.monotonic() - begin) < most:
            if self.word and self.gone.is_set():
                return
            if not said and self.word and (elapsed > SOON or self.word == "hold"):
                said = True
                self.say(KEPT if self.word == "hold" else f"{counted(lookout.readers, 'open tab')} {WAITING}")
            await asyncio.sleep(0.1)


def show_run(
    folder: str | Path, ports: Sequence[int], ready: Callable[[str, str], None], parent: Parent | None = None
) -> None:
    """Show a run until a signal or the end of the *parent*, on the first free port; *ready* gets the address and a token."""
    if not is_built():
        raise InputError(ABSENT)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    asyncio.run(_serve_page(folder, ports, ready, parent))


async def _serve_page(
    folder: str | Path, ports: Sequence[int], ready: Callable[[str, str], None], parent: Parent | None
) -> None:
    listener = _listener(ports)
    lookout = RunLookout(folder)
    if parent is not None:
        parent.listen()
    await _wait_for_run(lookout, parent)
    config = uvicorn.Config(
        lookout.app(), http=protocol(Patience()), ws="none", lifespan="off", log_config=None, access_log=False,
        timeout_graceful_shutdown=PATIENT, server_header=False, proxy_headers=False, date_header=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    ready(f"http://127.0.0.1:{listener.getsockname()[1]}/", lookout.token)
    if parent is not None:
        over = asyncio.create_task(parent.over.wait())
        await asyncio.wait({over, serving}, return_when=asyncio.FIRST_COMPLETED)
        lookout.finish()
        await parent.stay(lookout)
        lookout.closing = server.should_exit = True
    await serving


def _listener(ports: Sequence[int]) -> socket:
    """A socket on the first port that is free; raises if none is."""
    for port in ports[:-1]:
        with suppress(InputError):
            return listening(Setup(port=port))
    return listening(Setup(port=ports[-1]))


async def _wait_for_run(lookout: RunLookout, parent: Parent | None) -> None:
    """Wait until there is a run in the folder; raises if there is none in time."""
    until = time.monotonic() + (MOST_WAIT if parent is not None else 0.0)
    while True:
        try:
            await lookout.watched()
            return
        except InputError:
            if time.monotonic() >= until or (parent is not None and parent.over.is_set()):
                raise
            await asyncio.sleep(0.2)
