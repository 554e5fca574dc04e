"""A complete server: its store, files, rules and HTTP API, from start to end."""

import asyncio
import gc
import logging
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
from starlette.types import Scope

from eligo.client.worker import heeding
from eligo.errors import InputError
from eligo.pages.views import count_words
from eligo.server.auth.admission import Entrance, Learning, OperatorToken
from eligo.server.auth.tokens import Gate
from eligo.server.cleanup import Tidying
from eligo.server.client_archive import client_routes
from eligo.server.cluster.holders import Holding, take_free
from eligo.server.cluster.neighbours import Neighbours
from eligo.server.dispatcher import Desk
from eligo.server.files import Blobs, routes
from eligo.server.group_commit import Keeper
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.handlers import Api
from eligo.server.http.protocol import MOST, Patience, most_connections, protocol
from eligo.server.http.routes import Application, endpoints_of, openapi
from eligo.server.logs import LOGGER, emit, emit_changes, event, log_to, log_unavailable
from eligo.server.metrics import Metrics, census
from eligo.server.operations import Operations
from eligo.server.preparation import Preparation
from eligo.server.rules.clients import ServerTerms
from eligo.server.rules.needs import Travels
from eligo.server.rules.outcomes import Archive
from eligo.server.rules.prepared import Wishes, prepare
from eligo.server.rules.served import ENDED
from eligo.server.rules.service import Service
from eligo.server.schema import WorkflowWords, encode
from eligo.server.view.answers import unavailable_words, workflow_words
from eligo.server.view.followed import Watching
from eligo.server.view.page_data import Views, page_routes
from eligo.stores.service import Changes
from eligo.stores.service_sql import ServiceStore
from eligo.stores.service_sqlite import service_store
from eligo.version import __version__
from eligo.workflow import Workflow

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
ANYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - addresses to listen on, not to connect to
GIGABYTE = 2**30
SELDOM = 20_000  # new objects before each garbage collection
SWITCH = 0.001  # seconds before a busy thread lets others run; a request for tasks waits for several such turns
REMARKED = "operator notice"
PATIENT = 5  # seconds that the server waits for open requests before it ends


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The settings of a server."""

    host: str = "127.0.0.1"
    port: int = 8750
    #: FILE.db or postgresql://...
    store: str = "eligo.db"
    #: the folder for files; None: beside the store
    files: str | None = None
    most_file: int = 64 * GIGABYTE
    most_files: int = 1024 * GIGABYTE
    #: whether callers need tokens, and whether a new client may ask for one and wait for approval
    tokens: bool = True
    approving: bool = False
    certificate: str | None = None
    key: str | None = None
    #: names that `Host` may have, besides the server's own
    hosts: tuple[str, ...] = ()
    insecure: bool = False
    #: the file for the log of requests; "-": standard error; None: no log
    log: str | None = None
    #: the address at which other servers on the same store reach this one, such as "https://a.example.org:8750"
    address: str | None = None
    #: seconds for which requests for tasks are collected and answered together
    gather: float = 0.0
    #: whether to end when every workflow has ended
    until_done: bool = False
    terms: ServerTerms = field(default_factory=ServerTerms)

    @property
    def files_folder(self) -> str:
        """The folder for files."""
        return self.files or ("eligo.files" if "://" in self.store else f"{self.store.removesuffix('.db')}.files")

    def address_at(self, port: int) -> str:
        """The address under which other servers on the same store reach this one."""
        host = socket.gethostname() if self.host in ANYWHERE else self.host
        return self.address or f"{'https' if self.certificate else 'http'}://{_bracket(host)}:{port}"

    def check(self) -> None:
        """Raise if the setup is insecure or its certificate cannot be used."""
        if not (self.host in LOOPBACK or self.insecure or (self.tokens and self.certificate)):
            lacking = "TLS" if self.tokens else "tokens"
            sentence = f"{self.host} is reachable from other machines, so the server needs {lacking}"
            raise InputError(sentence).cured_by("insecure" if self.tokens else "open")
        if self.certificate:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
            except OSError as error:
                raise InputError(f"{self.certificate}: cannot load the certificate and its key: {error}") from None


class Server:
    """A server that runs in this event loop."""

    def __init__(self, setup: Setup, store: ServiceStore) -> None:
        self.setup, self.store = setup, store
        self.blobs = Blobs(setup.files_folder, setup.most_file, setup.most_files)
        began = time.monotonic()
        ahead = time.time() - began
        self.gate = Gate(store.tokens(), setup.host not in LOOPBACK) if setup.tokens else None
        self.service = Service(setup.terms, self.gate, ahead=ahead, archive=Archive.of(store), has_file=self.blobs.has)
        for fault in self.service.restore(began, store, take_free(store) if store.shared else None):
            log_unavailable(fault.row.id, fault.reason)
        self._folders: dict[str, Path] = {}  # of workflows that were submitted from a folder of this machine
        self._copies: list[asyncio.Task[None]] = []
        #: the last state of each workflow that ended or was served at the end
        self.states: dict[str, WorkflowWords] = {}
        self._recorded: dict[str, tuple[str, int]] = {}  # for each of them, the state and the number of moves
        #: a remark on the store for the operator, unless it was shown before
        self.remark = self._new_remark(store.remark)
        self.metrics = Metrics(census=lambda: census(self.desk))
        #: why it cannot continue; it must be restarted from the store
        self.broken: BaseException | None = None
        self.keeper = Keeper(store, self._changes, self.metrics.committed, self._break, self.service.forget)
        self.desk = Desk(self.service, self.keeper, setup.gather)
        learning = Learning(self.service, self.gate, store) if store.shared else None
        tidying = Tidying(self.service, self.gate, store, self.keeper, self.blobs)
        self._tidying = asyncio.create_task(tidying.for_ever())
        self.entrance = Entrance(self.service, self.gate, setup.approving, learning)
        self.api = Api(self.desk, store, self.entrance, Preparation(setup.terms), metrics=self.metrics)
        self.neighbours = None if learning is None else self._meet(began, learning)
        self.watching = Watching(self.service, store, self.keeper)
        self.operator_token = OperatorToken(self.entrance, setup.files_folder)
        app = self._application()
        self._admit = app.admit
        self.metrics.know(app.routes)
        bounds = Bounds(hosts=self._hosts(), file=setup.most_file, folder=str(self.blobs.parts))
        enter = app.admit if learning is None else self._enter
        self.app = Guard(app, bounds, enter=enter, seen=self.metrics.seen)

    def _application(self) -> Application:
        """The API, the files and the page as one ASGI app."""
        views = Views(self.watching, self.entrance.who)
        endpoints = [*endpoints_of(self.api), *endpoints_of(Operations(self.api)), *views.endpoints()]
        if self.neighbours is not None:
            endpoints = self.neighbours.joined(endpoints)
        views.answer = next(one.answer for one in endpoints if one.path.endswith("/view"))
        self.api.openapi = lambda: encode(openapi(endpoints))
        return Application(endpoints, self.entrance.who, routes(self.blobs), [*page_routes(), *client_routes()])

    def _new_remark(self, remark: str | None) -> str | None:
        """A remark on the store if it was not shown before; always, if several servers share the store."""
        if remark is None or self.store.shared:
            return remark
        if self.store.facts().get(REMARKED) == remark:
            return None
        self.service.books.changes.facts.append((REMARKED, remark))
        return remark

    def _meet(self, began: float, learning: Learning) -> Neighbours:
        """The access to the other servers on the same store."""
        tls = None
        if self.setup.certificate:  # the other servers may have the same one, signed by no known authority
            tls = ssl.create_default_context()
            tls.load_verify_locations(self.setup.certificate)
        return Neighbours(self.api, Holding(self.desk, self.store, began, learning.refresh), tls)

    def line(self) -> str:
        """The state of the server in one line."""
        task_counts = count_words(census(self.desk).tasks) or "no tasks"
        clients = sum(1 for _ in self.service.books.connected())
        return f"{task_counts}; {clients:,} client{'' if clients == 1 else 's'}"

    def summary(self) -> dict[str, Any]:
        """The totals of everything served since the start."""
        workflows = [msgspec.to_builtins(one) for one in self.states.values()]
        totals = {what: sum(one[what] for one in workflows) for what in ("lost", "repeated", "saved")}
        return {"workflows": workflows, **totals}

    def guests(self) -> int:
        """The number of recent clients that have not been dismissed yet."""
        recent = time.monotonic() - self.setup.terms.longest_wait
        return sum(one.seen > recent and not one.dismissed for one in self.service.clients.values())

    def _enter(self, scope: Scope, headers: dict[bytes, bytes]) -> Awaitable[None] | None:
        """Admit a caller; one that this server does not know may be known to the store."""
        learning = self.entrance.learning
        if learning is not None and learning.lacks(headers):
            return self._enter_later(learning, scope, headers)
        self._admit(scope, headers)
        return None

    async def _enter_later(self, learning: Learning, scope: Scope, headers: dict[bytes, bytes]) -> None:
        await learning.learn(headers)
        self._admit(scope, headers)

    def _break(self, error: BaseException) -> None:
        self.broken = error

    def _changes(self) -> Changes | None:
        """The changes to store; the states of workflows that have ended are recorded before the rules drop them."""
        for served in self.service.books.moved:
            moves = len(served.execution.journal)
            if served.state in ENDED and self._recorded.get(served.id) != (served.state, moves):
                self._recorded[served.id] = served.state, moves  # a failed workflow may be retried and end differently
                self.states[served.id] = workflow_words(served, self.service)
                if served.files is not None:
                    self._copy_results(served.id, served.files.makers)
        changes = self.service.take_changes()
        if changes is not None:
            try:
                self.watching.note(changes)
            except Exception:  # an error of the display must not lose changes
                LOGGER.exception("updating the status page failed", extra=event("error"))
            emit_changes(changes)
        return changes

    def _copy_results(self, workflow: str, names: Collection[str]) -> None:
        """Copy the files that a workflow's tasks wrote into the folder from which it was submitted, if any."""
        folder = self._folders.get(workflow)

        def copy() -> None:
            if folder is not None:
                self.blobs.copy([row for row in self.store.files(workflow) if row.name in names], folder)

        if folder is not None:
            self._copies.append(asyncio.create_task(self._after_commit(copy)))

    async def _after_commit(self, work: Callable[[], None]) -> None:
        """Run a function in a thread after the next commit."""
        await self.keeper.kept()
        await asyncio.to_thread(work)

    def _hosts(self) -> tuple[str, ...]:
        hostname = urlsplit(self.setup.address_at(self.setup.port)).hostname or ""
        return (*Bounds().hosts, _bracket(self.setup.host), _bracket(hostname), *self.setup.hosts)

    async def submit(self, flow: Workflow, wishes: Wishes, folder: str | Path | None = None) -> str:
        """Serve a workflow, unless it was submitted before; files that no task writes are taken from *folder*."""
        ready = await asyncio.to_thread(prepare, flow, wishes)
        key = f"file:{sha256(ready.document).hexdigest()[:32]}:{wishes.name}"
        elsewhere = await asyncio.to_thread(self.store.submitted, key) if self.store.shared else None
        if elsewhere is not None and elsewhere not in self.service.served:
            return elsewhere
        built = await asyncio.to_thread(self.service.built, time.monotonic(), ready, key)
        workflow = self.service.submit(time.monotonic(), built, key)
        served = self.service.served.get(workflow)
        if folder is not None:
            self._folders[workflow] = Path(folder).resolve()
            if served is None:  # it had ended before; perhaps its results were not copied then
                self._copy_results(workflow, Travels(flow).makers)
        if served is not None and served.files is not None and folder is not None:
            files = await asyncio.to_thread(self._store_files, served.files.missing, Path(folder))
            self.service.provide(time.monotonic(), workflow, files)
        await self.desk.settle()
        return workflow

    def _store_files(self, names: Sequence[str], folder: Path) -> list[tuple[str, str, int]]:
        return [(name, *self.blobs.add(folder / name)) for name in names]

    @property
    def over(self) -> bool:
        """Whether every workflow has ended."""
        if self.neighbours is not None and self.neighbours.holding.elsewhere:
            return False
        return all(served.verdict is not None for served in self.service.served.values())

    async def close(self) -> None:
        """Stop answering and write all pending changes."""
        self.desk.close()
        self.api.preparation.close()
        self._tidying.cancel()
        if self.neighbours is not None:
            await self.neighbours.holding.close()
            self.neighbours.close()
        copied = await asyncio.gather(*self._copies, return_exceptions=True)
        await self.keeper.close()
        self.states.update((key, workflow_words(one, self.service)) for key, one in self.service.served.items())
        self.states.update((id, unavailable_words(one)) for id, one in self.service.books.unavailable.items())
        self.store.close()
        for error in copied:
            if isinstance(error, OSError):
                raise InputError(f"cannot copy results: {error} (the files are in {self.setup.files_folder})")


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that answers waiting requests before it ends."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals to end; uvicorn would raise them again, and end the process before the last commit."""
        with heeding(self.handle_exit):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end after a signal."""
        asyncio.get_running_loop().call_soon_threadsafe(self._ending)
        super().handle_exit(sig, frame)


async def serve(
    setup: Setup, flows: Sequence[tuple[Workflow, Wishes, str | None]], ready: Callable[[Server, str], None]
) -> Server:
    """Serve until a signal, or until all workflows are done; calls *ready* with the address once clients can connect."""
    setup.check()
    listener = listening(setup)
    # the name could lead our own commands, with their token, to another program that listens at its other address
    host = listener.getsockname()[0] if setup.host == "localhost" else setup.host
    address = f"{'https' if setup.certificate else 'http'}://{_bracket(host)}:{listener.getsockname()[1]}"
    server = Server(setup, service_store(setup.store, setup.address_at(listener.getsockname()[1])))
    await server.desk.settle()
    for flow, wishes, folder in flows:
        await server.submit(flow, wishes, folder)

    def begin() -> None:
        ready(server, address)
        emit("server_started", address=address, version=__version__, workflows=len(server.service.served))

    with server.operator_token.offered(address):
        await _listen(server, listener, begin)
    if server.broken is not None:
        raise InputError(f"stopping because the store cannot be written: {server.broken}")
    return server


async def _listen(server: Server, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until the server ends."""
    running = _Uvicorn(_config(server.setup, server), server.desk.drain)
    task = asyncio.create_task(running.serve([listener]))
    while not running.started and not task.done():
        await asyncio.sleep(0.005)
    gc.freeze()  # present objects stay, so the garbage collector need not examine them again
    gc.set_threshold(SELDOM)
    sys.setswitchinterval(SWITCH)
    ready()
    watch = asyncio.create_task(_watch(server, running, task))
    await task
    await watch
    await server.close()
    emit("server_stopped", error=None if server.broken is None else str(server.broken))


async def _watch(server: Server, running: _Uvicorn, task: "asyncio.Task[None]") -> None:
    """End the server if its store is broken or, with `until_done`, when all workflows have ended and clients know it."""
    while not task.done() and server.broken is None and not (server.setup.until_done and server.over):
        await asyncio.sleep(0.05)
    if server.broken is not None:
        running.should_exit = True
        return
    server.desk.drain(stop=True)
    end = time.monotonic() + PATIENT
    while server.guests() and time.monotonic() < end and not task.done():
        await asyncio.sleep(0.05)
    running.should_exit = True


def listening(setup: Setup) -> socket.socket:
    """The socket on which a server listens."""
    family = socket.AF_INET6 if ":" in setup.host else socket.AF_INET
    try:
        return socket.create_server((setup.host, setup.port), family=family, backlog=MOST)
    except OSError as error:
        raise InputError(f"cannot listen on {setup.host}:{setup.port}: {error.strerror}") from None


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _config(setup: Setup, server: Server) -> uvicorn.Config:
    each = None if setup.host in LOOPBACK else 256  # on loopback, all clients or their proxy have the same address
    return uvicorn.Config(
        server.app, http=protocol(Patience(each=each, all=most_connections())), ws="none", lifespan="off",
        backlog=MOST, log_config=None, access_log=False, ssl_certfile=setup.certificate, ssl_keyfile=setup.key,
        timeout_graceful_shutdown=PATIENT, server_header=False, proxy_headers=False, date_header=False,
    )  # fmt: skip


def run_server(
    setup: Setup, flows: Sequence[tuple[Workflow, Wishes, str | None]], ready: Callable[[Server, str], None]
) -> Server:
    """Run `serve` in its own event loop."""
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    if setup.log is not None:
        log_to(setup.log)
    with suppress(ImportError):
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(setup, flows, ready))
    return asyncio.run(serve(setup, flows, ready))
