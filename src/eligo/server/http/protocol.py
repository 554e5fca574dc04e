"""Connections that do not wait for ever: uvicorn's own protocol with a deadline for headers and a limit on connections.

    uvicorn.Config(app, http=protocol(Patience()), ws="none")

uvicorn drops no connection whose headers come a byte at a time, and counts none. It has no setting for either, so a few
methods of its protocol are extended here; where a later uvicorn lacks one, `protocol` says so instead of going without.

Most requests are small and come whole, in one piece. Where the app has a `reply` for their address, they are answered by
that, in one piece too: ASGI would take as long for its messages as all the rest takes.
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

LARGE = 65_536  # bytes that are sent at once
MOST, SPARE = 20_000, 256  # connections, and files that a server opens beside them
PHRASES = {status: title.encode() for status, title in TITLES.items()}
LINGER = 1.0  # seconds that are left to whoever was answered before all of his body came
METHODS = ("connection_made", "connection_lost", "data_received", "on_message_begin", "on_headers_complete", "on_body",
           "on_message_complete", "on_response_complete", "send_400_response", "pause_writing", "resume_writing")  # fmt: skip
FIELDS = ("loop", "transport", "flow", "cycle", "parser", "timeout_keep_alive", "app", "tasks", "scope", "headers",
          "pipeline", "expect_100_continue", "server_state")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long connections may keep us waiting, in seconds, and how many there may be."""

    #: for all headers of a request, from its first byte, or from the beginning of the connection
    head: float = 20.0
    #: the most bytes that these may be
    head_bytes: int = 65_536
    #: between requests
    idle: float = 75.0
    #: until what we sent is taken off
    stall: float = 60.0
    #: connections of one address (of IPv6, of one /64), where that tells clients apart; and of all
    each: int | None = 256
    all: int = MOST


def most_connections(wanted: int = MOST) -> int:
    """As many as that, or as there may be files; this process takes leave to open what it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    if soft != endless and soft < wanted + SPARE:
        soft = wanted + SPARE if hard == endless else min(wanted + SPARE, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == endless else max(1, min(wanted, soft - SPARE))


class Door:
    """How many connections there are, by address."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.inside: dict[str, int] = {}
        self.total = self.refused = 0

    def enter(self, address: str) -> bool:
        """Whether one more from there may come in; it is counted."""
        mine = self.inside.get(address, 0)
        if self.total >= self.patience.all or (self.patience.each is not None and mine >= self.patience.each):
            self.refused += 1
            return False
        self.inside[address] = mine + 1
        self.total += 1
        return True

    def leave(self, address: str) -> None:
        """One of those from there has gone."""
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
    """Refuse a uvicorn whose protocol is not the one that is extended here."""
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
    """The app of a protocol that is only looked at."""


class Gathering:
    """A transport that sends together what is written at once: uvicorn writes headers and body one after the other."""

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()

    def write(self, data: bytes) -> None:
        """Send this, with what else is written before the loop comes round."""
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
        """Send this, behind what was written before."""
        if self._parts:
            self._parts.append(data)
            self._send()
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close it once all is sent."""
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Exchange:
    """A request that came whole, and its answer: as far as uvicorn looks at such a thing."""

    __slots__ = ("_over", "disconnected", "keep_alive", "response_complete", "response_started", "task")

    task: "asyncio.Task[None]"  # who answers it

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.disconnected = self.response_started = self.response_complete = False
        self._over: asyncio.Event | None = None

    @property
    def message_event(self) -> asyncio.Event:
        """Set when the caller is gone."""
        if self._over is None:
            self._over = asyncio.Event()
        return self._over

    async def gone(self) -> dict[str, Any]:
        """Ends when the caller is gone."""
        while not self.disconnected:
            await self.message_event.wait()
        return {"type": "http.disconnect"}

    def written(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
        """The answer, as it is sent."""
        parts = [b"HTTP/1.1 %d %b\r\n" % (status, PHRASES.get(status, b""))]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
            self.keep_alive = self.keep_alive and name != b"connection"
        if not self.keep_alive and (b"connection", b"close") not in headers:
            parts.append(b"connection: close\r\n")
        parts += (b"\r\n", body)
        return b"".join(parts)


class _Patient:
    """What is added to uvicorn's protocol; it stands before it in the order of classes."""

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
    _address: str | None = None  # None: turned away
    _since: float | None = None  # when the headers that are being read began
    _head = 0  # bytes of them so far
    _open = False  # whether a request is not read to its end
    _direct: Mapping[tuple[str, str], Any]  # what is answered by `reply`
    _asked: deque[Any]  # the requests that are not answered yet, in their order
    _parts: list[bytes] | None = None  # of a body that may yet come whole; None: uvicorn has it
    _quiet: float | None = None  # since when the last request is answered, where uvicorn does not count that
    _look_again: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    # The connection

    def connection_made(self, transport: Any) -> None:
        """Let it in, or close it at once where there are too many."""
        address = origin(transport.get_extra_info("peername"))
        if not self.door.enter(address):
            transport.abort()
            return
        self._address = address
        super().connection_made(Gathering(transport, self.loop))  # type: ignore[misc]
        self.timeout_keep_alive = self.door.patience.idle
        self._since, self._asked = self.loop.time(), deque()
        self._direct = getattr(self.app, "direct", {})
        self._look_again = self.loop.call_later(min(self.door.patience.head, self.door.patience.idle), self._look)

    def connection_lost(self, error: Exception | None) -> None:
        """Count it as gone."""
        if self._address is None:
            return
        self.door.leave(self._address)
        for timer in (self._look_again, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(error)  # type: ignore[misc]
        self._hang_up()

    def _hang_up(self) -> None:
        """Whoever still answers speaks to nobody; uvicorn tells only the last one, and the others would fail."""
        for cycle in self._asked:
            cycle.disconnected = True
            cycle.message_event.set()

    def _look(self) -> None:
        """Close what has waited for its headers too long; else look again when it may have."""
        now, patience = self.loop.time(), self.door.patience
        if self.transport.is_closing():  # somebody does not take what was sent last
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
        self._look_again = self.loop.call_at(due, self._look)

    # What comes in

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is more than headers may be and they are not whole yet."""
        if self._address is None or self.transport.is_closing():
            return
        super().data_received(data)  # type: ignore[misc]
        if self._parts is not None:  # not whole: it takes its time, which uvicorn and the app know how to wait for
            self._by_uvicorn()
        if self._since is not None:
            self._head += len(data)
            if self._head > self.door.patience.head_bytes:
                self._refuse(431, "the request headers are too large")

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._since, self._open, self._quiet = self.loop.time(), True, None
        super().on_message_begin()  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        """All headers are there."""
        self._since, self._head, self._parts = None, 0, []
        if not self._may_come_whole():
            self._by_uvicorn()

    def _may_come_whole(self) -> bool:
        """Whether a request is one that `reply` answers once its body is there."""
        place = self.parser.get_method().decode("ascii"), self.url.decode("latin-1")
        if place not in self._direct or not (self.cycle is None or self.cycle.response_complete):
            return False
        self.scope["method"], self.scope["path"] = place
        self.scope["raw_path"], self.scope["query_string"] = self.url, b""
        plain = self.parser.get_http_version() == "1.1" and not self.parser.should_upgrade()
        return plain and not self.expect_100_continue

    def _by_uvicorn(self) -> None:
        """Let uvicorn read and answer a request."""
        parts, self._parts = self._parts, None
        super().on_headers_complete()  # type: ignore[misc]
        self._asked.append(self.cycle)
        for part in parts or ():
            super().on_body(part)  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        """Some of the body is there."""
        if self._parts is None:
            super().on_body(body)  # type: ignore[misc]
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """All of the body is there."""
        self._open = False
        if self._parts is None:
            super().on_message_complete()  # type: ignore[misc]
            return
        body, self._parts = b"".join(self._parts), None
        self.cycle = exchange = Exchange(self.parser.should_keep_alive())
        self._asked.append(exchange)
        exchange.task = self.loop.create_task(self._reply(exchange, self.scope, body))
        self.tasks.add(exchange.task)

    def send_400_response(self, message: str) -> None:
        """Refuse what is not HTTP, in the words of all refusals."""
        self._refuse(400, "not an HTTP/1.1 request")

    def _refuse(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        if not self._asked or not self._asked[0].response_started:  # else it would be in the midst of an answer
            refused = RefusedError(status, sentence, connection="close")
            body = refused.problem(f"connection-{time.time_ns():x}")
            headers = [*refused.pairs(), (b"content-length", b"%d" % len(body))]
            self.transport.write(Exchange(keep_alive=False).written(status, headers, body))
        self.transport.close()
        self._hang_up()

    # What goes out

    async def _reply(self, exchange: Exchange, scope: Any, body: bytes) -> None:
        """Answer a request that came whole."""
        try:
            answer = exchange.written(*await self.app.reply(scope, body, exchange.gone))
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
        self._replied()

    def _replied(self) -> None:
        """The same as uvicorn does when an answer is sent, but without a timer for each."""
        if self.pipeline:
            self.on_response_complete()
            return
        self._asked.popleft()
        self.server_state.total_requests += 1
        self._quiet = self.loop.time()
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """The answer is sent; a client that still sends its body is soon cut off."""
        self._asked.popleft()
        super().on_response_complete()  # type: ignore[misc]
        if self._open and not self.transport.is_closing():
            self.loop.call_later(LINGER, self._give_up, self.cycle)

    def _give_up(self, cycle: Any) -> None:
        if self._open and self.cycle is cycle:
            self.transport.close()
            self._hang_up()

    def pause_writing(self) -> None:
        """What was sent is not taken off: wait, but not for ever."""
        super().pause_writing()  # type: ignore[misc]
        self._stalled = self._stalled or self.loop.call_later(self.door.patience.stall, self.transport.abort)

    def resume_writing(self) -> None:
        """It is taken off again."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()  # type: ignore[misc]
