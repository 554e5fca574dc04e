"""The API: one table of addresses, each with what it takes, what it gives, and who may call it."""

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from eligo.errors import EligoError
from eligo.server.auth.tokens import demand
from eligo.server.http.guard import HANDLERS
from eligo.server.http.openapi import Endpoint, openapi
from eligo.server.http.reading import SMALL, Reader, read_small
from eligo.server.http.refusals import RefusedError, explain_fault
from eligo.server.rules.clients import Client
from eligo.server.schema import DoneWords, encode

KEY = re.compile(rb"[A-Za-z0-9_-]{1,64}")
MOST_ANSWERS = 10_000  # that are remembered of each address
JSON = (b"content-type", b"application/json")
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
PLAIN = (b"content-type", b"text/plain; version=0.0.4")


class Caller(NamedTuple):
    """Who calls: what it may do, and which client it is, if it is one."""

    name: str
    scopes: frozenset[str]
    client: Client | None = None
    #: the hash of its token; None where it has none
    token: str | None = None
    #: the hash of the token with which the client enrolled; None where that is not known
    owner: str | None = None

    @property
    def holder(self) -> str:
        """For whom its requests are counted; empty where its address says more than it does."""
        return self.token or ("" if self.client is None else self.client.id)


class ApiCall(NamedTuple):
    """One call, as far as it is understood."""

    caller: Caller
    key: str
    #: the parts of the address that differ, and what stands behind the question mark
    parts: Mapping[str, str]
    query: Mapping[str, str]
    #: what was sent, in words; and as it came
    words: Any
    body: bytes
    #: ends when the caller is gone
    gone: Receive
    #: the call as it came
    scope: Scope

    @property
    def client(self) -> Client:
        """The client that calls."""
        if self.caller.client is None:
            raise RefusedError(403, "only clients can call this (enrol with POST /v1/clients)")
        return self.caller.client

    def number(self, name: str, usual: int, most: int = 2**53) -> int:
        """A whole number behind the question mark, or the usual one; at most so large."""
        text = self.query.get(name, "")
        if not text:
            return usual
        if not (text.isascii() and text.isdecimal() and len(text) < 17):
            raise RefusedError(400, f"{name} must be a non-negative integer, got {text[:20]!r}")
        return min(int(text), most)


@dataclass(frozen=True, kw_only=True)
class Address:
    """An address of the API."""

    method: str
    path: str
    #: what the caller must be allowed: work, submit, read, admin, or any of several with | between; None: anybody may
    scope: str | None
    answer: Callable[[ApiCall], Awaitable[Any]]
    #: the words that are sent and given back; bytes: as they are
    takes: Any = None
    gives: Any = DoneWords
    status: int = 200
    says: str = ""
    #: whether the same call again, by its key, gets the same answer here; the others see to that themselves
    once: bool = False
    #: what may stand behind the question mark, and what it is
    query: Mapping[str, str] | None = None
    #: whether the answer comes in parts, for as long as the caller listens: events as browsers know them
    streams: bool = False


class Answering:
    """Answers the calls of one address, whatever comes."""

    def __init__(
        self, address: Address, who: Callable[[dict[bytes, bytes]], Caller], reader: Reader | None = None
    ) -> None:
        self.address, self._who, self._reader = address, who, reader or Reader()
        self.status, self.kind = address.status, PLAIN if address.gives is bytes else JSON
        self._scopes = None if address.scope is None else frozenset(address.scope.split("|"))
        self._decode: Any = None if address.takes in (None, bytes) else msgspec.json.Decoder(address.takes).decode
        self._posts = address.method == "POST"
        self._answers: OrderedDict[tuple[str, str, bytes], asyncio.Future[Any]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it; the body is read already."""
        if self.address.streams:
            await _stream(await self._answer(scope, receive), receive, send)
            return
        body = await self.given(scope, receive)
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": self.status, "headers": [self.kind, length]})
        await send({"type": "http.response.body", "body": body})

    async def given(self, scope: Scope, gone: Receive) -> bytes:
        """The body of the answer; *gone* ends when the caller is gone."""
        answer = await self._answer(scope, gone)
        return answer if isinstance(answer, bytes) else encode(answer)

    async def _answer(self, scope: Scope, receive: Receive) -> Any:
        try:
            call = self._call(scope, receive)
            if self._decode is not None:
                few = len(call.body) <= SMALL
                call = call._replace(words=self._words(call.body) if few else await self._large_words(call))
            return await (self._once(call) if self.address.once else self.address.answer(call))
        except RefusedError:
            raise
        except EligoError as error:
            raise RefusedError(422, str(error)) from None

    async def _once(self, call: ApiCall) -> Any:
        """The answer that the same call got before, where it comes again; for what would make something else each time."""
        place = (call.caller.token or call.caller.name, call.key, sha256(call.body).digest())
        pending = self._answers.get(place)
        if pending is None:
            pending = self._answers[place] = asyncio.ensure_future(self.address.answer(call))
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(pending)
        except Exception:
            self._answers.pop(place, None)
            raise

    def _call(self, scope: Scope, receive: Receive) -> ApiCall:
        state = scope["state"]
        headers: dict[bytes, bytes] = state["headers"]
        caller = self._allowed(state.get("caller"), headers)
        state["client"] = caller.name
        key = headers.get(b"idempotency-key", b"")
        if self._posts and not key:
            key = secrets.token_urlsafe(24).encode()  # the same call again is another one then
        if self._posts and KEY.fullmatch(key) is None:
            raise RefusedError(400, "Idempotency-Key must be 1 to 64 letters, digits, - or _")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"))) if scope["query_string"] else {}
        path_params = scope.get("path_params") or {}
        return ApiCall(caller, key.decode("ascii"), path_params, query, None, state["body"], receive, scope)

    def _allowed(self, admitted: Caller | None, headers: dict[bytes, bytes]) -> Caller:
        """Who calls, as far as he may."""
        try:
            caller = self._who(headers) if admitted is None else admitted
        except RefusedError:
            if self._scopes is not None:
                raise
            return Caller("anybody", frozenset())
        if self._scopes is not None and self._scopes.isdisjoint(caller.scopes):
            demand(caller.scopes, *sorted(self._scopes))
        return caller

    def _words(self, body: bytes) -> Any:
        try:
            return read_small(body or b"{}", self._decode)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RefusedError(400, explain_fault(str(error))) from None

    async def _large_words(self, call: ApiCall) -> Any:
        if len(call.body) > self.address.takes.most:
            raise RefusedError(413, f"the body exceeds the limit of {self.address.takes.most} bytes")
        try:
            return await self._reader.read(call.body, self._decode, call.caller.owner or call.caller.holder)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RefusedError(400, explain_fault(str(error))) from None


async def _stream(chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send parts until there are no more, or nobody listens."""
    disconnect = asyncio.ensure_future(_hung_up(receive))
    await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
    try:
        async for chunk in chunks:
            if disconnect.done():
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        disconnect.cancel()


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def described(addresses: list[Address]) -> bytes:
    """The OpenAPI document of the API."""
    return encode(openapi([_endpoint(address) for address in addresses]))


def _endpoint(address: Address) -> Endpoint:
    kinds = {"limit": int | None, "after": str | None if address.path == "/v1/clients" else int | None}
    query = {name: kinds.get(name, str | None) for name in address.query or ()}
    gives = {address.status: dict if address.gives is dict else address.gives}
    scopes = () if address.scope is None else tuple(address.scope.split("|"))
    refuses = (409, 422) if address.method == "POST" else ()
    return Endpoint(address.method, address.path, address.says, address.takes, gives, query, refuses, scopes)


class Application:
    """The API as an ASGI app: addresses without parts at once, the others by Starlette's router."""

    def __init__(
        self, addresses: list[Address], who: Callable[[dict[bytes, bytes]], Caller], routes: list[Route],
        pages: Sequence[Route] = (),
    ) -> None:  # fmt: skip
        reader = Reader()
        endpoints = {(address.method, address.path): Answering(address, who, reader) for address in addresses}
        table = [Route(path, answer, methods=[method]) for (method, path), answer in endpoints.items()]
        anybody = [route for route, address in zip(table, addresses, strict=True) if address.scope is None]
        #: all its routes
        self.routes = [*table, *routes, *pages]
        #: those that need no token, by method and path
        self.open = {(method, route.path) for route in (*anybody, *pages) for method in route.methods or ()}
        #: those that are answered at once
        self.direct = {(method, path): answer for (method, path), answer in endpoints.items() if "{" not in path}
        self._router = Starlette(routes=self.routes, exception_handlers=HANDLERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        endpoint = self.direct.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if endpoint is not None:
            scope["endpoint"] = endpoint
        await (self._router if endpoint is None else endpoint)(scope, receive, send)
