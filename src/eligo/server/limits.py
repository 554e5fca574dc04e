"""The border of the server: what a request must keep to before anybody reads it, in one ASGI middleware.

    app = Guard(Starlette(routes=..., exception_handlers=HANDLERS), Bounds(hosts=("eligo.example.org",)))

One class, because a chain of six costs more than all that they do. It stands around everything else, so whatever goes wrong
inside ends here: as JSON, with the request's id, without a traceback. For what is inside it leaves in `scope["state"]`:
`request` (the id), `headers` (a dict of bytes, no header twice that matters), `body` (whole, except for files).
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from itertools import count
from json.encoder import encode_basestring_ascii as quoted
from types import coroutine
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from eligo.errors import InputError
from eligo.server.refusing import RefusedError, told
from eligo.server.spooling import Body, Spool

MEGABYTE = 2**20
FILES = "/v1/files/"
ONCE = (b"host", b"content-length", b"content-encoding", b"transfer-encoding", b"content-range", b"origin",
        b"authorization", b"idempotency-key", b"eligo-client")  # fmt: skip
LINGER, LINGER_BYTES = 1.0, 16 * MEGABYTE  # what is read on after a refusal, so that the other side sees the refusal
UNEXPECTED = "something went wrong here; it was written down"
GONE = 499  # as nginx logs a client that did not wait for the answer

#: decides before the body is read, at once or later; may put things into the state; refuses by RefusedError
Enter = Callable[[Scope, dict[bytes, bytes]], Awaitable[None] | None]
#: is told of each request: scope, status, seconds, bytes in, bytes out
Seen = Callable[[Scope, int, float, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is taken from anybody; sizes in bytes, times in seconds."""

    #: the names by which the server may be called, without port; none: any
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    #: pages of other sites that may call it, such as "https://dash.example.org"
    origins: tuple[str, ...] = ()
    #: the largest body, of a workflow that is submitted, and of a file or part of it
    body: int = 8 * MEGABYTE
    workflow: int = 256 * MEGABYTE
    file: int = 64 * 1024 * MEGABYTE
    #: all bodies together that are held at a time
    held: int = 1024 * MEGABYTE
    #: where those wait that are too large for memory; None: where the system has such files
    folder: str | None = None
    #: how long a client may let a body wait in all; and for larger ones, how many bytes a second it must bring
    patience: float = 10.0
    rate: float = 16_384.0
    #: requests at a time: of the quick ones, of those that wait for a task, of files
    quick: int = 4_096
    polls: int = 20_000
    files: int = 64
    #: headers, their bytes, and the length of the address with its query
    headers: int = 64
    header_bytes: int = 32_768
    address: int = 8_192
    #: whose requests may wait long
    polling: frozenset[str] = field(default=frozenset({"/v1/request"}))


class Guard:
    """An ASGI app around another that lets only what is within bounds come to it."""

    def __init__(
        self, app: ASGIApp, bounds: Bounds | None = None, *, enter: Enter | None = None, seen: Seen | None = None,
        logger: logging.Logger | None = None,
    ) -> None:  # fmt: skip
        self.app, self.bounds, self.enter, self.seen = app, bounds or Bounds(), enter, seen
        self.logger = logger or logging.getLogger("eligo.server.requests")
        self.running = {"quick": 0, "polls": 0, "files": 0}
        self.held = 0
        self._spool = Spool(folder=self.bounds.folder)
        self._first, self._next = secrets.token_hex(4), count(1)
        self._hosts = {host.lower().encode() for host in self.bounds.hosts}
        self._known = set(self._hosts)
        self._origins = {origin.rstrip("/").lower().encode() for origin in self.bounds.origins}
        if wrong := [
            host for host in self.bounds.hosts if "/" in host or _without_port(host.encode()) != host.encode()
        ]:
            raise InputError(f"a host is a name without scheme and port, not {wrong[0]!r}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        began = time.perf_counter()
        state = scope.setdefault("state", {})
        request = state["request"] = f"{self._first}-{next(self._next):x}"
        answer = _Answer(send, request)
        try:
            await self._answered(scope, state, receive, answer)
        except RefusedError as refused:
            await answer.refuse(refused, scope, receive)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:  # who stops the server waits no longer for what is under way
            await answer.refuse(
                RefusedError(503, "the server stops; come again", after=1, connection="close"), scope, receive
            )
        except Exception:
            self.logger.exception('{"request":"%s","error":"unexpected"}', request)
            await answer.refuse(RefusedError(500, UNEXPECTED), scope, receive)
        finally:
            if answer.kind:
                self.running[answer.kind] -= 1
            self.held -= answer.held
            self._told(scope, answer, time.perf_counter() - began)

    async def _answered(self, scope: Scope, state: dict[str, Any], receive: Receive, answer: "_Answer") -> None:
        headers = self._checked(scope, state)
        path: str = scope["path"]
        filed, bringing = path.startswith(FILES), _bringing(headers)
        if bringing:
            self._measured(scope, headers)
        if self.enter is not None:
            later = self.enter(scope, headers)
            if later is not None:
                await later
        if filed:
            receive = _Upload(receive, self.bounds, answer) if bringing else receive
        elif bringing:
            state["body"] = body = await self._whole(scope, receive)
            answer.taken = answer.held = len(body)
            receive = _Replay(body, receive)
        else:
            state["body"] = b""
        answer.kind = self._place(path, filed)
        await self.app(scope, receive, answer)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        else:  # nobody speaks WebSocket here
            await send({"type": "websocket.close", "code": 1008})

    # What is looked at before anything is read

    def _checked(self, scope: Scope, state: dict[str, Any]) -> dict[bytes, bytes]:
        """The headers, once they are seen to be within bounds and meant for us."""
        pairs, bounds = scope["headers"], self.bounds
        headers: dict[bytes, bytes] = dict(pairs)
        state["headers"] = headers
        if (
            len(pairs) > bounds.headers
            or sum(map(len, headers)) + sum(map(len, headers.values())) > bounds.header_bytes
        ):
            raise RefusedError(431, "the headers are too large")
        if len(headers) != len(pairs):
            _refuse_twice([name for name, _ in pairs])
        if len(scope["query_string"]) + len(scope["path"]) > bounds.address:
            raise RefusedError(414, "the address is too long")
        host = headers.get(b"host", b"")
        if host not in self._known and self._hosts:
            self._recognise(host)
        if b"origin" in headers or b"sec-fetch-site" in headers:
            self._same_site(scope["scheme"].encode(), host, headers)
        return headers

    def _recognise(self, host: bytes) -> None:
        if _without_port(host.lower()) not in self._hosts:
            raise RefusedError(421, "this server is not called by that name")
        if len(self._known) < 1000:  # with its port, it is found at once the next time
            self._known.add(host)

    def _same_site(self, scheme: bytes, host: bytes, headers: dict[bytes, bytes]) -> None:
        origin = headers.get(b"origin", b"").lower()
        if origin in self._origins and origin:
            return
        if headers.get(b"sec-fetch-site") == b"cross-site" or (
            origin and origin != b"%b://%b" % (scheme, host.lower())
        ):
            raise RefusedError(403, "requests from pages of other sites are not answered")

    def _measured(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse a body that cannot be read, or is too large by its own account."""
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RefusedError(415, "bodies must not be compressed")
        length = headers.get(b"content-length")
        if length is not None and not length.isdigit():
            raise RefusedError(400, "the length of the body is no number")
        if length is not None and int(length) > self._most(scope):
            raise _too_large(self._most(scope))

    def _most(self, scope: Scope) -> int:
        path: str = scope["path"]
        if path.startswith(FILES):
            return self.bounds.file if scope["method"] == "PUT" else 0
        return self.bounds.workflow if path == "/v1/workflows" else self.bounds.body

    def _place(self, path: str, filed: bool) -> str:
        """Take a place among the requests of its kind that are being answered."""
        kind = "files" if filed else "polls" if path in self.bounds.polling else "quick"
        if self.running[kind] >= getattr(self.bounds, kind) and path != "/health":
            raise RefusedError(503, "too many requests at a time", after=1)
        self.running[kind] += 1
        return kind

    # Bodies

    async def _whole(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, within its time; a place is taken only afterwards, so that slow ones take none."""
        body: Body | None = None
        size, most, waiting = 0, self._most(scope), _Waiting(receive, self.bounds)
        try:
            while True:
                message = await waiting.next()
                part: bytes = message["body"]
                size += len(part)
                self.held += len(part)
                if size > most:
                    raise _too_large(most)
                if self.held > self.bounds.held:
                    raise RefusedError(503, "too many large requests at a time", after=5)
                if body is None and not message.get("more_body"):
                    return part
                body = body or Body(self._spool)
                await body.add(part)
                if not message.get("more_body"):
                    return await body.whole()
        except BaseException:
            self.held -= size
            raise
        finally:
            if body is not None:
                body.close()

    # What is told of it

    def _told(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        status = answer.status or GONE
        if self.seen is not None:
            self.seen(scope, status, seconds, answer.taken, answer.sent)
        if self.logger.isEnabledFor(logging.INFO):
            client = scope["state"].get("client")
            line = (
                f'{{"request":"{answer.request}","method":{quoted(scope["method"])},"path":{quoted(scope["path"])},'
                f'"status":{status},"ms":{seconds * 1000:.2f},"client":{quoted(client) if client else "null"}}}'
            )
            logger = (
                self.logger
            )  # by `info` the stack would be searched for who called, which takes longer than all else
            logger.handle(logging.LogRecord(logger.name, logging.INFO, __file__, 0, line, None, None))


class _Waiting:
    """The parts of a body, for which the client may let us wait so long, and longer the more it has brought."""

    __slots__ = ("got", "left", "rate", "receive")

    def __init__(self, receive: Receive, bounds: Bounds) -> None:
        self.receive, self.left, self.rate, self.got = receive, bounds.patience, bounds.rate, 0

    async def next(self) -> Message:
        """The next message; only the time that is waited for it counts, not what we do between."""
        call: Any = self.receive()
        try:
            pending = call.send(None)
        except (
            StopIteration
        ) as there:  # mostly it came with the headers, and a timer would cost as much as all the rest
            message: Message = there.value
        else:
            message = await self._later(call, pending)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message

    async def _later(self, call: Any, pending: Any) -> Message:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.left):
                message: Message = await _resumed(call, pending)
        except TimeoutError:
            raise RefusedError(408, "the body came too slowly", connection="close") from None
        self.left += len(message.get("body", b"")) / self.rate - (time.monotonic() - began)
        return message


@coroutine
def _resumed(call: Any, pending: Any) -> Generator[Any, Any, Message]:
    """A coroutine that was begun by hand, and that waits for something, taken up again by the loop."""
    try:
        yield pending
    except BaseException as error:
        call.throw(error)
        raise
    message: Message = yield from call
    return message


class _Upload:
    """What comes in for a file: passed on as it comes, within its time."""

    __slots__ = ("_answer", "_done", "_receive", "_waiting")

    def __init__(self, receive: Receive, bounds: Bounds, answer: "_Answer") -> None:
        self._waiting, self._receive, self._done, self._answer = _Waiting(receive, bounds), receive, False, answer

    async def __call__(self) -> Message:
        if self._done:
            return await self._receive()
        message = await self._waiting.next()
        self._done = not message.get("more_body")
        self._answer.taken += len(message["body"])
        return message


class _Replay:
    """A body that was read already, and then whatever comes after it."""

    __slots__ = ("_body", "_receive")

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


class _Answer:
    """Where the answer goes: adds the id, remembers the status, and after a refusal drops what else is said."""

    __slots__ = ("held", "kind", "request", "send", "sent", "status", "taken")

    def __init__(self, send: Send, request: str) -> None:
        self.send, self.request, self.kind = send, request, ""
        self.status = self.sent = self.taken = self.held = 0

    def __call__(self, message: Message) -> Coroutine[Any, Any, None]:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"eligo-request", self.request.encode())]
        else:
            self.sent += len(message.get("body", b""))
        return self.send(message)  # type: ignore[return-value]

    async def refuse(self, refused: RefusedError, scope: Scope, receive: Receive) -> None:
        """Send a refusal, unless an answer is under way, which the server then breaks off."""
        if self.status:
            return
        body = told(refused.sentence, self.request)
        headers = _said(refused, body)
        closing = "connection" in refused.headers
        unread = _bringing(dict(scope["headers"])) and "body" not in scope["state"]
        if unread and not closing:
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": True})
        if unread and not closing:
            await _linger(receive)
        await self({"type": "http.response.body", "body": b"", "more_body": False})


async def _linger(receive: Receive) -> None:
    """Read on a little: a connection that is closed over unread bytes is reset, and the refusal lost with it."""
    left = LINGER_BYTES
    try:
        async with asyncio.timeout(LINGER):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return


def _said(refused: RefusedError, body: bytes) -> list[tuple[bytes, bytes]]:
    said = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return said + [(name.encode(), value.encode()) for name, value in refused.headers.items()]


def _bringing(headers: dict[bytes, bytes]) -> bool:
    """Whether a request has a body."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _without_port(host: bytes) -> bytes:
    name, colon, port = host.rpartition(b":")
    return name if colon and (port.isdigit() or not port) and (b":" not in name or name.endswith(b"]")) else host


def _refuse_twice(names: list[bytes]) -> None:
    for name in ONCE:
        if names.count(name) > 1:
            raise RefusedError(400, f"the header {name.decode()} is given twice")


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"the body is larger than {most} bytes")


# What Starlette is to do with what goes wrong inside it


def _of_refusal(request: Request, error: Exception) -> Response:
    refused = error if isinstance(error, RefusedError) else RefusedError(500, "something went wrong here")
    body = told(refused.sentence, request.scope["state"].get("request", ""))
    return Response(body, refused.status, refused.headers, "application/json")


def _of_starlette(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is nothing at this address", 405: "this address does not take this method"}
    sentence = words.get(status) or str(getattr(error, "detail", "refused"))
    headers = getattr(error, "headers", None) or {}
    body = told(sentence, request.scope["state"].get("request", ""))
    return Response(body, status, dict(headers), "application/json")


def _of_anything(request: Request, error: Exception) -> Response:
    return _of_refusal(request, RefusedError(500, UNEXPECTED))


#: for Starlette(exception_handlers=...): refusals and its own errors as JSON; the rest comes up to the guard as well
HANDLERS: dict[Any, ExceptionHandler] = {
    RefusedError: _of_refusal, HTTPException: _of_starlette, Exception: _of_anything,
}  # fmt: skip
