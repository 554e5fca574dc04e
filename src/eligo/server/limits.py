"""The border of the server: what a request must keep to before anybody reads it, in one ASGI middleware.

    app = Guard(Starlette(routes=..., exception_handlers=HANDLERS), Bounds(hosts=("eligo.example.org",)))

One class, because a chain of six costs more than all that they do. It stands around everything else, so whatever goes wrong
inside ends here: as JSON, with the request's id, without a traceback. For what is inside it leaves in `scope["state"]`:
`request` (the id), `headers` (a dict of bytes, no header twice that matters), `body` (whole, except for files).
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from eligo.errors import InputError
from eligo.server.bodies import Account, Replay, Upload, Waiting, linger
from eligo.server.refusing import RefusedError, told
from eligo.server.spooling import Body, Spool

MEGABYTE = 2**20
FILES = "/v1/files/"
ONCE = (b"host", b"content-length", b"content-encoding", b"transfer-encoding", b"content-range", b"origin",
        b"authorization", b"idempotency-key", b"eligo-client")  # fmt: skip
VERSION = re.compile(r"/v(?!1/)([0-9]{1,9})/")  # in addresses of other APIs than ours
SAME = "install the same version of eligo at both ends"
UNEXPECTED = "something went wrong here; it was written down"
GONE = 499  # as nginx logs a client that did not wait for the answer

#: decides before the body is read, at once or later; may put things into the state; refuses by RefusedError
Enter = Callable[[Scope, dict[bytes, bytes]], Awaitable[None] | None]
#: a status, headers and a body
Reply = tuple[int, list[tuple[bytes, bytes]], bytes]
#: is told of each request: scope, status, seconds, bytes in, bytes out
Seen = Callable[[Scope, int, float, int, int], None]


class Direct(Protocol):
    """An address that can be answered without ASGI's messages."""

    status: int
    kind: tuple[bytes, bytes]

    async def given(self, scope: Scope, gone: Receive) -> bytes:
        """The body of the answer to what is in the state; *gone* ends when nobody waits for it."""
        ...


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
        #: by method and path, what answers requests that came whole
        self.direct: Mapping[tuple[str, str], Direct] = getattr(app, "direct", {})
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
        state = scope.setdefault("state", {})
        answer = _Answer(send, self._begun(state))
        try:
            await self._answered(scope, state, receive, answer)
        except ClientDisconnect:
            pass
        except (Exception, asyncio.CancelledError) as error:
            await answer.refuse(self._refusal(error, answer.request), scope, receive)
        finally:
            self._over(scope, answer)

    async def reply(self, scope: Scope, body: bytes, gone: Receive) -> Reply:
        """Answer one request that came whole and that `direct` knows: the same, without ASGI's messages."""
        state = scope["state"]
        account, said = Account(self._begun(state)), b""
        try:
            said = await self._replied(scope, state, body, gone, account)
            endpoint = scope["endpoint"]
            account.status, kind = endpoint.status, [endpoint.kind]
        except (Exception, asyncio.CancelledError) as error:
            refused = self._refusal(error, account.request)
            said, account.status, kind = told(refused.sentence, account.request), refused.status, _headers(refused)
        finally:
            account.sent = len(said)
            self._over(scope, account)
        length = (b"content-length", b"%d" % len(said))
        return account.status, [*kind, length, (b"eligo-request", account.request.encode())], said

    async def _replied(
        self, scope: Scope, state: dict[str, Any], body: bytes, gone: Receive, account: Account
    ) -> bytes:
        headers = self._checked(scope, state)
        if _bringing(headers):
            self._measured(scope, headers)
            if len(body) > self._most(scope):
                raise _too_large(self._most(scope))
        if self.enter is not None and (later := self.enter(scope, headers)) is not None:
            await later
        account.taken = account.held = len(body)
        self.held += len(body)
        if self.held > self.bounds.held:
            raise _too_many()
        state["body"] = body
        account.kind = self._place(scope["path"], filed=False)
        scope["endpoint"] = endpoint = self.direct[scope["method"], scope["path"]]
        return await endpoint.given(scope, gone)

    def _begun(self, state: dict[str, Any]) -> str:
        """The id of a request that begins."""
        request = state["request"] = f"{self._first}-{next(self._next):x}"
        return request

    def _refusal(self, error: BaseException, request: str) -> RefusedError:
        """How it is told that something went wrong."""
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, asyncio.CancelledError):  # who stops the server waits no longer for what is under way
            return RefusedError(503, "the server stops; come again", after=1, connection="close")
        self.logger.error('{"request":"%s","error":"unexpected"}', request, exc_info=error)
        return RefusedError(500, UNEXPECTED)

    def _over(self, scope: Scope, account: Account) -> None:
        """A request is answered, or nobody waits for that any more."""
        if account.kind:
            self.running[account.kind] -= 1
        self.held -= account.held
        self._told(scope, account, time.perf_counter() - account.began)

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
            receive = Upload(self._waiting(receive), answer) if bringing else receive
        elif bringing:
            state["body"] = body = await self._whole(scope, receive)
            answer.taken = answer.held = len(body)
            receive = Replay(body, receive)
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
        if len(pairs) > bounds.headers or len(b"".join([*headers, *headers.values()])) > bounds.header_bytes:
            raise RefusedError(431, "the headers are too large")
        if len(headers) != len(pairs):
            _refuse_twice([name for name, _ in pairs])
        if len(scope["query_string"]) + len(scope["path"]) > bounds.address:
            raise RefusedError(414, "the address is too long")
        host = headers.get(b"host", b"")
        if host not in self._known and self._hosts:
            self._recognise(host)
        if b"origin" in headers or b"sec-fetch-site" in headers:
            self._same_site(scope, host, headers)
        return headers

    def _recognise(self, host: bytes) -> None:
        if _without_port(host.lower()) not in self._hosts:
            raise RefusedError(421, "this server is not called by that name")
        if len(self._known) < 1000:  # with its port, it is found at once the next time
            self._known.add(host)

    def _same_site(self, scope: Scope, host: bytes, headers: dict[bytes, bytes]) -> None:
        """Refuse what pages of other sites ask; a link from there leads to our page, in which there is nothing yet."""
        origin, site = headers.get(b"origin", b"").lower(), headers.get(b"sec-fetch-site")
        if origin in self._origins and origin:
            return
        scheme, _, name = origin.partition(b"://")
        # where a proxy speaks TLS, the browser knows the scheme, and we do not
        ours = name == host.lower() and (site == b"same-origin" or scheme == scope["scheme"].encode())
        linked = scope["path"] == "/" and headers.get(b"sec-fetch-mode") == b"navigate"
        if (origin and not ours) or (site == b"cross-site" and not linked):
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
        size, most, waiting = 0, self._most(scope), self._waiting(receive)
        try:
            while True:
                message = await waiting.next()
                part: bytes = message["body"]
                size += len(part)
                self.held += len(part)
                if size > most:
                    raise _too_large(most)
                if self.held > self.bounds.held:
                    raise _too_many()
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

    def _waiting(self, receive: Receive) -> Waiting:
        return Waiting(receive, self.bounds.patience, self.bounds.rate)

    # What is told of it

    def _told(self, scope: Scope, answer: Account, seconds: float) -> None:
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


class _Answer(Account):
    """Where the answer goes: adds the id, remembers the status, and after a refusal drops what else is said."""

    __slots__ = ("send",)

    def __init__(self, send: Send, request: str) -> None:
        super().__init__(request)
        self.send = send

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
        headers = [*_headers(refused), (b"content-length", b"%d" % len(body))]
        closing = "connection" in refused.headers
        unread = _bringing(dict(scope["headers"])) and "body" not in scope["state"]
        if unread and not closing:
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": True})
        if unread and not closing:
            await linger(receive)
        await self({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(refused: RefusedError) -> list[tuple[bytes, bytes]]:
    said = {name: value for name, value in refused.headers.items() if value.isascii() and value.isprintable()}
    return [(b"content-type", b"application/json"), *((name.encode(), value.encode()) for name, value in said.items())]


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


def _too_many() -> RefusedError:
    return RefusedError(503, "too many large requests at a time", after=5)


# What Starlette is to do with what goes wrong inside it


def _of_refusal(request: Request, error: Exception) -> Response:
    refused = error if isinstance(error, RefusedError) else RefusedError(500, "something went wrong here")
    body = told(refused.sentence, request.scope["state"].get("request", ""))
    return Response(body, refused.status, refused.headers, "application/json")


def _of_starlette(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is nothing at this address", 405: "this address does not take this method"}
    sentence = words.get(status) or str(getattr(error, "detail", "refused"))
    if status == 404 and (other := VERSION.match(request.scope["path"])):
        sentence = f"this server speaks version 1 of the API, and not {other[1]}: {SAME}"
    headers = getattr(error, "headers", None) or {}
    body = told(sentence, request.scope["state"].get("request", ""))
    return Response(body, status, dict(headers), "application/json")


def _of_anything(request: Request, error: Exception) -> Response:
    return _of_refusal(request, RefusedError(500, UNEXPECTED))


#: for Starlette(exception_handlers=...): refusals and its own errors as JSON; the rest comes up to the guard as well
HANDLERS: dict[Any, ExceptionHandler] = {
    RefusedError: _of_refusal, HTTPException: _of_starlette, Exception: _of_anything,
}  # fmt: skip
