"""The guard of the server: checks every request against limits and identifies its caller before anything else reads it.

    app = Guard(Router(routes), Bounds(hosts=("eligo.example.org",)))

It is one class, because a chain of six middlewares costs more than all their checks. It wraps everything else, so every error
inside ends here: as JSON, with the request's id, without a traceback. It leaves for the app in `scope["state"]`: `request`
(the id), `headers` (a dict of bytes; no important header is repeated), `body` (all of it, except for files).

A request enters in one of two ways. `__call__` is ASGI. `reply` answers small requests that arrived in one piece, without
ASGI's messages, which would cost as much as the rest of the request. Both call the same functions: `_admit` for
authentication and scopes, `_hold` and `_place` for limits, `_refusal` for errors, `_finish` for accounting. They stay two
because receiving the body and sending the answer differ.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eligo.errors import InputError, shorten
from eligo.server.http.bodies import Body, Replay, Spool, Upload, Waiting, linger
from eligo.server.http.budgets import Account, Capacity, origin
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import emit, event

MEGABYTE = 2**20
FILES = "/v1/files/"
ELSEWHERE = {b"cross-site", b"same-site"}  # pages from another port of this machine are same-site
BRINGING = {"POST", "PUT", "PATCH"}  # methods whose requests have a body
PROBES = {"/health", "/ready"}  # answered however busy the server is
ONCE = (b"host", b"content-length", b"content-encoding", b"transfer-encoding", b"content-range", b"origin",
        b"authorization", b"idempotency-key", b"eligo-client")  # fmt: skip
VERSION = re.compile(r"/v(?!1/)([0-9]{1,9})/")  # in paths of other versions of the API
SAME = "install the same version of eligo on both sides"
UNEXPECTED = "internal server error (see the server's log)"
GONE = 499  # as nginx logs a client that disconnected before the answer

#: admits a caller before its body is read, at once or by an awaitable; may write into the state; raises `RefusedError`
Enter = Callable[[Scope, dict[bytes, bytes]], Awaitable[None] | None]
#: a status, headers and a body
Reply = tuple[int, list[tuple[bytes, bytes]], bytes]
#: called after each request with its scope, status, seconds, bytes received and bytes sent
Seen = Callable[[Scope, int, float, int, int], None]


class Direct(Protocol):
    """An endpoint that can answer without ASGI's messages."""

    status: int
    kind: tuple[bytes, bytes]

    async def respond(self, scope: Scope, gone: Receive) -> bytes:
        """The body of the answer to the request in the state; *gone* returns when the caller disconnects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits on requests; sizes in bytes, times in seconds."""

    #: the names that `Host` may have, without port; empty: any
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    #: the largest body: of most requests, of a submitted workflow, and of a file or part of a file
    body: int = 8 * MEGABYTE
    workflow: int = 256 * MEGABYTE
    file: int = 64 * 1024 * MEGABYTE
    #: the largest body of a request without a token, or with a method that needs no body
    open: int = 4096
    #: the largest body of a long poll: the bodies of as many polls as `polls` allows must leave most of `held` free
    poll: int = 16_384
    #: the total size of the bodies that are held at a time
    held: int = 1024 * MEGABYTE
    #: the folder for bodies that are too large for memory; None: the system's folder for temporary files
    folder: str | None = None
    #: how long a client may pause in a body; the bytes per second that a larger body must bring, and its longest pause
    patience: float = 10.0
    rate: float = 16_384.0
    stall: float = 30.0
    #: how long the transfer of a file keeps its place; afterwards the slowest transfer may be dropped for another one
    turn: float = 10.0
    #: concurrent requests, of which one caller gets half: quick ones, those that wait for a task, those for files
    quick: int = 8_192
    polls: int = 20_000
    files: int = 64
    #: the number of headers, their size, and the length of the path with its query
    headers: int = 64
    header_bytes: int = 32_768
    address: int = 8_192
    #: the paths of long polls
    polling: frozenset[str] = field(default=frozenset({"/v1/request"}))


class Guard:
    """An ASGI app that passes a request on to another app only if it is within limits."""

    def __init__(
        self, app: ASGIApp, bounds: Bounds | None = None, *, enter: Enter | None = None, seen: Seen | None = None,
        logger: logging.Logger | None = None,
    ) -> None:  # fmt: skip
        #: by method and path, the endpoints that answer requests which arrived in one piece
        self.direct: Mapping[tuple[str, str], Direct] = getattr(app, "direct", {})
        self.app, self.bounds, self.enter, self.seen = app, bounds or Bounds(), enter, seen
        self.logger = logger or logging.getLogger("eligo.server.requests")
        #: method and path of endpoints that need no token
        self.open: Collection[tuple[str, str]] = getattr(app, "open", ())
        # clients that enrolled with one token share its limit of bodies; each has a limit of places of its own
        self.bodies = Capacity(self.bounds.held, lambda account: account.holds[self.bodies], by="owner")
        self.places = {
            "quick": Capacity(self.bounds.quick), "polls": Capacity(self.bounds.polls),
            "files": Capacity(self.bounds.files, self._slowness),
        }  # fmt: skip
        self._spool = Spool(folder=self.bounds.folder)
        self._first, self._next = secrets.token_hex(4), count(1)
        self._hosts = {host.lower().encode() for host in self.bounds.hosts}
        self._seen_hosts = set(self._hosts)
        for host in self.bounds.hosts:
            if "/" in host or _without_port(host.encode()) != host.encode():
                raise InputError(f"a host must be a name without scheme and port, got {host!r}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        state, scope["app"] = scope.setdefault("state", {}), self  # with an app, Starlette's router raises its refusals
        answer = _Answer(send, self._request_id(state))
        try:
            await self._answer(scope, state, receive, answer)
        except ClientDisconnect:
            pass
        except (Exception, asyncio.CancelledError) as error:
            await answer.refuse(self._refusal(error, answer, scope), scope, receive)
        finally:
            self._finish(scope, answer)

    async def reply(self, scope: Scope, body: bytes, receive: Receive) -> Reply:
        """Answer one request to an endpoint of `direct` that arrived in one piece."""
        state = scope["state"]
        account, answer = Account(self._request_id(state)), b""
        try:
            await self._admit(scope, state, account)
            self._hold(account, len(body))
            state["body"] = body
            self._place(account, scope["path"])
            scope["endpoint"] = endpoint = self.direct[scope["method"], scope["path"]]
            answer = await endpoint.respond(scope, receive)
            account.status, kind = endpoint.status, [endpoint.kind]
        except (Exception, asyncio.CancelledError) as error:
            refused = self._refusal(error, account, scope)
            answer, account.status, kind = refused.problem(account.request), refused.status, refused.pairs()
        finally:
            account.sent = len(answer)
            self._finish(scope, account)
        length = (b"content-length", b"%d" % len(answer))
        return account.status, [*kind, length, (b"eligo-request", account.request.encode())], answer

    def _request_id(self, state: dict[str, Any]) -> str:
        """A new request id, which is also left in the state."""
        request = state["request"] = f"{self._first}-{next(self._next):x}"
        return request

    def _refusal(self, error: BaseException, account: Account, scope: Scope) -> RefusedError:
        """The refusal that answers a request which raised this error; unexpected errors are logged."""
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, HTTPException):
            return _of_router(error, scope["path"])
        if isinstance(error, asyncio.CancelledError):
            if account.dropped and account.task is not None:
                account.task.uncancel()
                sentence = "the server dropped this request to free memory for other callers; try again"
                return RefusedError(503, sentence, after=5)
            # the server is being stopped and does not wait for open requests
            return RefusedError(503, "the server is shutting down; try again", after=1, connection="close")
        request = account.request
        self.logger.error("request %s failed", request, exc_info=error, extra=event("error", request=request))
        return RefusedError(500, UNEXPECTED)

    def _finish(self, scope: Scope, account: Account) -> None:
        """Release what a request holds, count and log it, when it is answered or its caller has disconnected."""
        account.close()
        seconds = time.perf_counter() - account.began
        status = GONE if account.gone else account.status or GONE
        if self.seen is not None:
            self.seen(scope, status, seconds, account.taken, account.sent)
        if self.logger.isEnabledFor(logging.INFO):
            emit(
                "request", self.logger, request=account.request, method=scope["method"], path=scope["path"],
                status=status, ms=round(seconds * 1000, 2), client=scope["state"].get("client"),
            )  # fmt: skip

    async def _answer(self, scope: Scope, state: dict[str, Any], receive: Receive, answer: "_Answer") -> None:
        has_body = _has_body(await self._admit(scope, state, answer))
        path: str = scope["path"]
        if path.startswith(FILES):
            receive = Upload(self._waiting(receive), answer) if has_body else receive
        elif has_body:
            state["body"] = body = await self._read_body(receive, answer)
            answer.read, receive = True, Replay(body, receive)
        else:
            state["body"] = b""
        self._place(answer, path)
        await self.app(scope, receive, answer)

    async def _admit(self, scope: Scope, state: dict[str, Any], account: Account) -> dict[bytes, bytes]:
        """Check the headers of a request and identify its caller; returns the headers."""
        headers = self._check_headers(scope, state)
        account.most = self._limit_of(scope)
        if _has_body(headers):
            self._check_length(headers, account.most)
        if self.enter is not None and (later := self.enter(scope, headers)) is not None:
            await later
        # tokens distinguish callers; behind a proxy, addresses do not
        caller = state.get("caller")
        account.caller = (caller and caller.holder) or origin(scope.get("client"))
        account.owner = (caller and caller.owner) or account.caller
        return headers

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        else:  # WebSockets are not supported
            await send({"type": "websocket.close", "code": 1008})

    # Checks before the body is read

    def _check_headers(self, scope: Scope, state: dict[str, Any]) -> dict[bytes, bytes]:
        """The headers; refused if they exceed a limit, name another host, or come from a page of another site."""
        pairs, bounds = scope["headers"], self.bounds
        headers: dict[bytes, bytes] = dict(pairs)
        state["headers"] = headers
        if len(pairs) > bounds.headers or len(b"".join([*headers, *headers.values()])) > bounds.header_bytes:
            raise RefusedError(431, "the request headers are too large")
        if len(headers) != len(pairs):
            _refuse_twice([name for name, _ in pairs])
        if len(scope["query_string"]) + len(scope["path"]) > bounds.address:
            raise RefusedError(414, "the URL is too long")
        host = headers.get(b"host", b"")
        if host not in self._seen_hosts and self._hosts:
            self._recognise(host)
        if b"origin" in headers or b"sec-fetch-site" in headers:
            self._same_site(scope, host, headers)
        return headers

    def _recognise(self, host: bytes) -> None:
        if _without_port(host.lower()) not in self._hosts:
            raise RefusedError(421, f"unknown Host header {_text(host)!r} (add it with --allow-host)")
        if len(self._seen_hosts) < 1000:  # the name with this port is accepted at once the next time
            self._seen_hosts.add(host)

    def _same_site(self, scope: Scope, host: bytes, headers: dict[bytes, bytes]) -> None:
        """Refuse requests from pages of other sites; links to our page are allowed, since the page itself has no data."""
        origin, site = headers.get(b"origin", b"").lower(), headers.get(b"sec-fetch-site")
        scheme, _, name = origin.partition(b"://")
        # behind a proxy that ends TLS, the browser knows the scheme, and this server does not
        ours = name == host.lower() and (site == b"same-origin" or scheme == scope["scheme"].encode())
        linked = scope["path"] == "/" and headers.get(b"sec-fetch-mode") == b"navigate"
        if (origin and not ours) or (site in ELSEWHERE and not linked):
            raise RefusedError(403, "requests from pages of other origins are refused")

    def _check_length(self, headers: dict[bytes, bytes], most: int) -> None:
        """Refuse a compressed body, and one whose Content-Length is invalid or exceeds *most*."""
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RefusedError(415, "compressed request bodies are not supported")
        length = headers.get(b"content-length")
        if length is not None and not length.isdigit():
            raise RefusedError(400, f"Content-Length must be a number, got {_text(length)!r}")
        if length is not None and int(length) > most:
            raise _too_large(most)

    def _limit_of(self, scope: Scope) -> int:
        """The largest body that a request may have."""
        path: str = scope["path"]
        if (scope["method"], path) in self.open:
            return self.bounds.open
        if path.startswith(FILES):
            return self.bounds.file if scope["method"] == "PUT" else 0
        if scope["method"] not in BRINGING:
            return self.bounds.open
        if path in self.bounds.polling:
            return self.bounds.poll
        return self.bounds.workflow if path == "/v1/workflows" else self.bounds.body

    def _place(self, account: Account, path: str) -> None:
        """Give a request a place among the concurrent ones of its kind."""
        if path in PROBES:
            return
        kind = "files" if path.startswith(FILES) else "polls" if path in self.bounds.polling else "quick"
        if not self.places[kind].take(account):
            raise RefusedError(503, "too many concurrent requests; try again", after=1)
        if kind == "files":  # a dropped transfer can be resumed
            self.places[kind].expose(account)

    def _slowness(self, account: Account) -> float:
        """The seconds per byte of a transfer; 0 in its first turn."""
        seconds = time.perf_counter() - account.began
        return seconds / (1 + account.taken + account.sent) if seconds > self.bounds.turn else 0.0

    # Bodies

    def _hold(self, account: Account, size: int) -> None:
        """Count received bytes of a body; refused if the body exceeds its limit, or its caller's share of all bodies."""
        account.taken += size
        if account.taken > account.most:
            raise _too_large(account.most)
        if not self.bodies.take(account, size):
            raise RefusedError(503, "too many large concurrent requests; try again", after=5)

    async def _read_body(self, receive: Receive, account: Account) -> bytes:
        """The body, received within its time; the request gets a place only afterwards, so that slow bodies take none."""
        body: Body | None = None
        waiting = self._waiting(receive)
        try:
            while True:
                message = await waiting.next()
                part: bytes = message["body"]
                more = message.get("more_body")
                self._hold(account, len(part))
                if body is None:
                    if not more:
                        return part
                    body = Body(self._spool)
                    self.bodies.expose(account)
                if not more:
                    self.bodies.protect(account)
                await body.add(part)
                if not more:
                    return await body.content()
        except BaseException:
            self.bodies.release(account)
            raise
        finally:
            if body is not None:
                body.close()

    def _waiting(self, receive: Receive) -> Waiting:
        return Waiting(receive, self.bounds.patience, self.bounds.rate, self.bounds.stall)


class _Answer(Account):
    """The ASGI `send` of a request: adds its id, and records the status and the number of bytes sent."""

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
        """Send a refusal; if an answer has started, send nothing, and the server closes the connection."""
        if self.status:
            return
        body = refused.problem(self.request)
        headers = [*refused.pairs(), (b"content-length", b"%d" % len(body))]
        closing = "connection" in refused.headers
        unread = _has_body(dict(scope["headers"])) and not self.read
        if unread and not closing:
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": True})
        if unread and not closing:
            await linger(receive)
        await self({"type": "http.response.body", "body": b"", "more_body": False})


def _has_body(headers: dict[bytes, bytes]) -> bool:
    """Whether a request has a body."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _without_port(host: bytes) -> bytes:
    name, colon, port = host.rpartition(b":")
    return name if colon and (port.isdigit() or not port) and (b":" not in name or name.endswith(b"]")) else host


def _text(header: bytes) -> str:
    return shorten(header.decode("latin-1"))


def _refuse_twice(names: list[bytes]) -> None:
    for name in ONCE:
        if names.count(name) > 1:
            raise RefusedError(400, f"header {name.decode()} is given twice")


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"the body exceeds the limit of {most} bytes")


def _of_router(error: HTTPException, path: str) -> RefusedError:
    """The refusal of a request for which there is no route."""
    words = {404: "no such URL", 405: "method not allowed for this URL"}
    sentence = words.get(error.status_code, error.detail)
    if error.status_code == 404 and (other := VERSION.match(path)):
        sentence = f"this server supports version 1 of the API, not {other[1]}: {SAME}"
    headers: dict[str, Any] = {**(error.headers or {})}
    return RefusedError(error.status_code, sentence, **headers)
