"""The API: one table of addresses, each with what it takes, what it gives, and who may call it."""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eligo.errors import EligoError
from eligo.server.clients import Client
from eligo.server.limits import HANDLERS
from eligo.server.openapi import Endpoint, openapi
from eligo.server.refusing import RefusedError
from eligo.server.tokens import demand
from eligo.server.words import DoneWords, encode

KEY = re.compile(rb"[A-Za-z0-9_-]{1,64}")
NAMES = re.compile(rb'"([^"]*)"\s*:')
MOST_ANSWERS = 10_000  # that are remembered of each address
JSON = (b"content-type", b"application/json")
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


class Caller(NamedTuple):
    """Who calls: what it may do, and which client it is, if it is one."""

    name: str
    scopes: frozenset[str]
    client: Client | None = None


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
            raise RefusedError(403, "this is for clients, and the caller is none: POST /v1/clients makes one")
        return self.caller.client


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

    def __init__(self, address: Address, who: Callable[[dict[bytes, bytes]], Caller]) -> None:
        self.address, self._who = address, who
        self._decode = None if address.takes in (None, bytes) else msgspec.json.Decoder(address.takes).decode
        self._posts = address.method == "POST"
        self._answers: OrderedDict[tuple[str, str, bytes], asyncio.Future[Any]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it; the body is read already."""
        try:
            call = self._call(scope, receive)
            given = await (self._once(call) if self.address.once else self.address.answer(call))
        except RefusedError:
            raise
        except EligoError as error:
            raise RefusedError(422, str(error)) from None
        if self.address.streams:
            await _stream(given, receive, send)
            return
        body = given if isinstance(given, bytes) else encode(given)
        kind = (b"content-type", b"text/plain; version=0.0.4") if self.address.gives is bytes else JSON
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": self.address.status, "headers": [kind, length]})
        await send({"type": "http.response.body", "body": body})

    async def _once(self, call: ApiCall) -> Any:
        """The answer that the same call got before, where it comes again; for what would make something else each time."""
        place = (call.caller.name, call.key, sha256(call.body).digest())
        known = self._answers.get(place)
        if known is None:
            known = self._answers[place] = asyncio.ensure_future(self.address.answer(call))
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(known)
        except Exception:
            self._answers.pop(place, None)
            raise

    def _call(self, scope: Scope, receive: Receive) -> ApiCall:
        state = scope["state"]
        headers: dict[bytes, bytes] = state["headers"]
        caller = self._allowed(headers)
        state["client"] = caller.name
        key = headers.get(b"idempotency-key", b"")
        if self._posts and KEY.fullmatch(key) is None:
            raise RefusedError(400, "a POST needs an Idempotency-Key of 1 to 64 letters, digits, - or _")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"))) if scope["query_string"] else {}
        parts = scope.get("path_params") or {}
        body = state["body"]
        return ApiCall(caller, key.decode("ascii"), parts, query, self._words(body), body, receive, scope)

    def _allowed(self, headers: dict[bytes, bytes]) -> Caller:
        try:
            caller = self._who(headers)
        except RefusedError:
            if self.address.scope is not None:
                raise
            return Caller("anybody", frozenset())
        if self.address.scope is not None:
            demand(caller.scopes, *self.address.scope.split("|"))
        return caller

    def _words(self, body: bytes) -> Any:
        if self._decode is None:
            return None
        try:
            words = self._decode(body or b"{}")
            if _may_repeat(body):
                json.loads(body, object_pairs_hook=_once_each)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RefusedError(400, f"this is not what is taken here: {error}"[:300]) from None
        return words


async def _stream(parts: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send parts until there are no more, or nobody listens."""
    gone = asyncio.ensure_future(_hung_up(receive))
    await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
    try:
        async for part in parts:
            if gone.done():
                return
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _may_repeat(body: bytes) -> bool:
    r"""Whether some name may stand twice in one object: a quick look, since mostly none stands twice anywhere.

    >>> _may_repeat(b'{"a": 1, "b": {"c": 2}}'), _may_repeat(b'{"a": 1, "a": 2}'), _may_repeat(b'{"a": 1, "\\u0061": 2}')
    (False, True, True)
    """
    names = NAMES.findall(body)
    return len(names) > len(set(names)) or b"\\" in body


def _once_each(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that says two things of one name: whoever reads the other of them reads something else."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name is given twice in one object")


def described(addresses: list[Address]) -> bytes:
    """The OpenAPI document of the API."""
    return encode(openapi([_endpoint(address) for address in addresses]))


def _endpoint(address: Address) -> Endpoint:
    kinds = {"limit": int | None, "after": int | None}
    query = {name: kinds.get(name, str | None) for name in address.query or ()}
    gives = {address.status: dict if address.gives is dict else address.gives}
    scopes = () if address.scope is None else tuple(address.scope.split("|"))
    refuses = (409, 422) if address.method == "POST" else ()
    return Endpoint(address.method, address.path, address.says, address.takes, gives, query, refuses, scopes)


def application(
    addresses: list[Address], who: Callable[[dict[bytes, bytes]], Caller], routes: list[Route]
) -> tuple[ASGIApp, list[Route]]:
    """The API as an ASGI app: addresses without parts at once, the others by Starlette's router; and all its routes."""
    found: list[Route] = []
    quick: dict[tuple[str, str], Answering] = {}
    for address in addresses:
        endpoint = Answering(address, who)
        found.append(Route(address.path, endpoint, methods=[address.method]))
        if "{" not in address.path:
            quick[address.method, address.path] = endpoint
    router = Starlette(routes=[*found, *routes], exception_handlers=HANDLERS)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = quick.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if endpoint is not None:
            scope["endpoint"] = endpoint
        await (router if endpoint is None else endpoint)(scope, receive, send)

    return app, [*found, *routes]
