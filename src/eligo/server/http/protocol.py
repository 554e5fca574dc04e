"""Connections with limits: uvicorn's HTTP protocol with a deadline for headers and a maximum number of connections.

    uvicorn.Config(app, http=protocol(Patience()), ws="none")

uvicorn has no setting to drop a connection whose headers arrive a byte at a time, and does not count connections by address.
So a few methods of its protocol are extended here. If a later uvicorn lacks one of them, `protocol` raises an error.

Most requests are small and arrive in one piece. If the app has a direct endpoint for their path, its `reply` answers them in
one piece too: ASGI's messages would take as long as everything else.
"""

import asyncio
import resource
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eligo.errors import InputError
from eligo.server.http.budgets import origin
from eligo.server.http.refusals import TITLES, RefusedError

LARGE = 65_536  # bytes after which buffered output is sent at once
MOST, SPARE = 20_000, 256  # connections, and other files that a server opens
PHRASES = {status: title.encode() for status, title in TITLES.items()}
LINGER = 1.0  # seconds before a client that still sends its body after the answer is disconnected
METHODS = ("connection_made", "connection_lost", "data_received", "on_message_begin", "on_headers_complete", "on_body",
           "on_message_complete", "on_response_complete", "send_400_response", "pause_writing", "resume_writing")  # fmt: skip
FIELDS = ("loop", "transport", "flow", "cycle", "parser", "timeout_keep_alive", "app", "tasks", "scope", "headers",
          "pipeline", "expect_100_continue", "server_state")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The time limits of connections, in seconds, and the limits of their number."""

    #: for the headers of a request, from its first byte, or from the start of the connection
    head: float = 20.0
    #: maximum size of the headers
    head_bytes: int = 65_536
    #: between requests
    idle: float = 75.0
    #: until the client receives what was sent
    stall: float = 60.0
    #: connections of one address (for IPv6, of one /64), or None if addresses do not distinguish clients; and in total
    each: int | None = 256
    all: int = MOST


def most_connections() -> int:
    """Raise this process's limit of open files for `MOST` connections; returns how many are possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    if soft != endless and soft < MOST + SPARE:
        soft = MOST + SPARE if hard == endless else min(MOST + SPARE, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST if soft == endless else max(1, min(MOST, soft - SPARE))


class Door:
    """Counts connections by address and limits their number."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.inside: dict[str, int] = {}
        self.total = 0

    def enter(self, address: str) -> bool:
        """Count a new connection from an address; returns False if there are too many."""
        mine = self.inside.get(address, 0)
        if self.total >= self.patience.all or (self.patience.each is not None and mine >= self.patience.each):
            return False
        self.inside[address] = mine + 1
        self.total += 1
        return True

    def leave(self, address: str) -> None:
        """Count the end of a connection from an address."""
        self.total -= 1
        self.inside[address] -= 1
        if not self.inside[address]:
            del self.inside[address]


def protocol(patience: Patience | None = None) -> type[asyncio.Protocol]:
    """The connection class for `uvicorn.Config(http=...)`; its `door` counts the connections."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    check_hooks(HttpToolsProtocol)

    class PatientProtocol(_Patient, HttpToolsProtocol):
        door = Door(patience or Patience())

    return PatientProtocol


def check_hooks(base: type) -> None:
    """Raise if uvicorn's protocol lacks a method or field that is extended or used here."""
    import uvicorn
    from uvicorn.server import ServerState

    config = uvicorn.Config(_nothing, log_config=None, lifespan="off", ws="none")
    missing = [name for name in METHODS if not callable(getattr(base, name, None))]
    try:
        instance = base(config=config, server_state=ServerState(), app_state={}, _loop=object())
        missing += [name for name in FIELDS if not hasattr(instance, name)]
    except TypeError as error:
        missing.append(str(error))
    if missing:
        raise InputError(f"uvicorn {uvicorn.__version__} is not supported: it lacks {', '.join(missing)}")


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """The app of a protocol that is only inspected."""


class Gathering:
    """A transport that combines writes, because uvicorn writes headers and body separately."""

    __slots__ = ("_loop", "_parts", "_transport", "is_closing")

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()
        self.is_closing = transport.is_closing  # called for each request: `__getattr__` costs more

    def write(self, data: bytes) -> None:
        """Send data together with everything else that is written in this step of the event loop."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        if len(data) > LARGE:
            self._send()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def write_now(self, data: bytes) -> None:
        """Send data at once, after what was written before."""
        if self._parts:
            self._parts.append(data)
            self._send()
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Send what was written and close the connection."""
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Exchange:
    """A request that arrived in one piece, and its answer, with the attributes of a cycle that uvicorn reads."""

    __slots__ = ("_event", "disconnected", "keep_alive", "response_complete", "response_started", "task")

    task: "asyncio.Task[None]"  # the task that answers it

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.disconnected = self.response_started = self.response_complete = False
        self._event: asyncio.Event | None = None

    @property
    def message_event(self) -> asyncio.Event:
        """The event that is set when the caller disconnects."""
        if self._event is None:
            self._event = asyncio.Event()
        return self._event

    async def gone(self) -> dict[str, Any]:
        """Return when the caller has disconnected."""
        while not self.disconnected:
            await self.message_event.wait()
        return {"type": "http.disconnect"}

    def render(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
        """The bytes of the answer."""
        parts = [b"HTTP/1.1 %d %b\r\n" % (status, PHRASES.get(status, b""))]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
            self.keep_alive = self.keep_alive and name != b"connection"
        if not self.keep_alive and (b"connection", b"close") not in headers:
            parts.append(b"connection: close\r\n")
        parts += (b"\r\n", body)
        return b"".join(parts)


class _Patient:
    """The methods that extend uvicorn's protocol, which comes after this class in the method resolution order."""

    door: Door
    loop: asyncio.AbstractEventLoop
    transport: Any
    flow: Any
    cycle: Any
    timeout_keep_alive: Any
    app: Any
    parser: Any
    tasks: set[Any]
    scope: Any
    url: bytes
    expect_100_continue: bool
    pipeline: deque[Any]
    server_state: Any
    _address: str | None = None  # None: the connection was refused
    _since: float | None = None  # when the headers that are being read started
    _head = 0  # bytes of these headers so far
    _open = False  # whether a request is not read completely
    _direct: Mapping[tuple[str, str], Any]  # endpoints that `reply` answers
    _pending: deque[Any]  # the unanswered requests in their order
    _parts: list[bytes] | None = None  # of a body that may still arrive in one piece; None: uvicorn reads it
    _quiet: float | None = None  # when the last request was answered, if uvicorn does not time that
    _check_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    # The connection

    def connection_made(self, transport: Any) -> None:
        """Accept the connection, or close it at once if there are too many."""
        patience, address = self.door.patience, origin(transport.get_extra_info("peername"))
        if not self.door.enter(address):
            transport.abort()
            return
        self._address = address
        super().connection_made(Gathering(transport, self.loop))  # type: ignore[misc]
        self.timeout_keep_alive = patience.idle
        self._since, self._pending = self.loop.time(), deque()
        self._direct = getattr(self.app, "direct", {})
        self._check_timer = self.loop.call_later(min(patience.head, patience.idle), self._check_time)

    def connection_lost(self, error: Exception | None) -> None:
        """Count the end of the connection, and tell the tasks that still answer its requests."""
        if self._address is None:
            return
        self.door.leave(self._address)
        for timer in (self._check_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(error)  # type: ignore[misc]
        self._hang_up()

    def _hang_up(self) -> None:
        """Mark all open requests as disconnected; uvicorn itself marks only the last one, and the others would fail."""
        for cycle in self._pending:
            cycle.disconnected = True
            cycle.message_event.set()

    def _check_time(self) -> None:
        """Close the connection if its headers or its next request took too long; else check again when they could have."""
        now, patience = self.loop.time(), self.door.patience
        if self.transport.is_closing():  # the client does not receive what was sent last
            self.transport.abort()
            return
        due = now + min(patience.head, patience.idle)
        if self._since is not None and not self.flow.read_paused:
            due = self._since + patience.head
        elif self._quiet is not None:
            due = min(due, self._quiet + patience.idle)
        if due <= now:
            if self._since is not None:
                self._refuse(408, "the request headers arrived too slowly")
            self.transport.close()
            due = now + LINGER
        self._check_timer = self.loop.call_at(due, self._check_time)

    # Receiving

    def data_received(self, data: bytes) -> None:
        """Process received bytes; headers that exceed their limit are refused."""
        if self._address is None or self.transport.is_closing():
            return
        super().data_received(data)  # type: ignore[misc]
        if self._parts is not None:  # the body is incomplete: uvicorn and the app wait for the rest
            self._pass_to_uvicorn()
        if self._since is not None:
            self._head += len(data)
            if self._head > self.door.patience.head_bytes:
                self._refuse(431, "the request headers are too large")

    def on_message_begin(self) -> None:
        """Note the start of a request."""
        self._since, self._open, self._quiet = self.loop.time(), True, None
        super().on_message_begin()  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        """Decide whether `reply` may answer a request, or uvicorn reads its body."""
        self._since, self._head, self._parts = None, 0, []
        if not self._is_direct():
            self._pass_to_uvicorn()

    def _is_direct(self) -> bool:
        """Whether `reply` can answer a request if its body arrives in one piece."""
        place = self.parser.get_method().decode("ascii"), self.url.decode("latin-1")
        if place not in self._direct or not (self.cycle is None or self.cycle.response_complete):
            return False
        self.scope["method"], self.scope["path"] = place
        self.scope["raw_path"], self.scope["query_string"] = self.url, b""
        plain = self.parser.get_http_version() == "1.1" and not self.parser.should_upgrade()
        return plain and not self.expect_100_continue

    def _pass_to_uvicorn(self) -> None:
        """Let uvicorn read and answer a request."""
        parts, self._parts = self._parts, None
        super().on_headers_complete()  # type: ignore[misc]
        self._pending.append(self.cycle)
        for part in parts or ():
            super().on_body(part)  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        """Keep a part of a body, or pass it to uvicorn."""
        if self._parts is None:
            super().on_body(body)  # type: ignore[misc]
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """Answer a request whose body has arrived."""
        self._open = False
        if self._parts is None:
            super().on_message_complete()  # type: ignore[misc]
            return
        body, self._parts = b"".join(self._parts), None
        self.cycle = exchange = Exchange(self.parser.should_keep_alive())
        self._pending.append(exchange)
        exchange.task = self.loop.create_task(self._reply(exchange, self.scope, body))
        self.tasks.add(exchange.task)

    def send_400_response(self, message: str) -> None:
        """Refuse bytes that are not HTTP, in the form of all refusals."""
        self._refuse(400, "not an HTTP/1.1 request")

    def _refuse(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        if not self._pending or not self._pending[0].response_started:  # else it would be in the middle of an answer
            refused = RefusedError(status, sentence, connection="close")
            body = refused.problem(f"connection-{time.time_ns():x}")
            headers = [*refused.pairs(), (b"content-length", b"%d" % len(body))]
            self.transport.write(Exchange(keep_alive=False).render(status, headers, body))
        self.transport.close()
        self._hang_up()

    # Sending

    async def _reply(self, exchange: Exchange, scope: Any, body: bytes) -> None:
        """Answer a request that arrived in one piece."""
        try:
            answer = exchange.render(*await self.app.reply(scope, body, exchange.gone))
            if self.flow.write_paused and not exchange.disconnected:
                await self.flow.drain()
        except BaseException:
            self.transport.abort()
            raise
        finally:
            self.tasks.discard(exchange.task)
        if exchange.disconnected:
            return
        exchange.response_started = exchange.response_complete = True
        self.transport.write_now(answer)
        if not exchange.keep_alive:
            self.transport.close()
        self._end_exchange()

    def _end_exchange(self) -> None:
        """Do what uvicorn does after sending an answer, but without a new timer each time."""
        if self.pipeline:
            self.on_response_complete()
            return
        self._pending.popleft()
        self.server_state.total_requests += 1
        self._quiet = self.loop.time()
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Note the end of an answer; a client that still sends its body is disconnected soon."""
        self._pending.popleft()
        super().on_response_complete()  # type: ignore[misc]
        if self._open and not self.transport.is_closing():
            self.loop.call_later(LINGER, self._give_up, self.cycle)

    def _give_up(self, cycle: Any) -> None:
        if self._open and self.cycle is cycle:
            self.transport.close()
            self._hang_up()

    def pause_writing(self) -> None:
        """Limit the time in which the client must receive what was sent."""
        super().pause_writing()  # type: ignore[misc]
        self._stall_timer = self._stall_timer or self.loop.call_later(self.door.patience.stall, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that limit: the client is receiving again."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()  # type: ignore[misc]
