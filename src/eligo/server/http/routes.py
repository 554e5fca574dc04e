"""Endpoints of the API: how each is declared, who may call it, how a call is answered, and the OpenAPI document of all.

`endpoint` declares a method as the handler of an endpoint. Routes, scopes and the OpenAPI document are made from these.
"""

import asyncio
import re
import secrets
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from hashlib import sha256
from heapq import nlargest, nsmallest
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from eligo.errors import EligoError, shorten
from eligo.server.auth.tokens import demand
from eligo.server.http.guard import FILES
from eligo.server.http.json_body import SMALL, Reader, read_small
from eligo.server.http.refusals import PROBLEM, RefusedError, explain_fault
from eligo.server.rules.clients import Client
from eligo.server.rules.prepared import Wishes
from eligo.server.schema import DoneWords, encode
from eligo.version import __version__
from eligo.work.demands import bytes_in

KEY = re.compile(rb"[A-Za-z0-9_-]{1,64}")
MOST_ANSWERS = 10_000  # remembered answers of each endpoint
MOST_LISTED = 1_000  # rows in one answer
JSON = (b"content-type", b"application/json")
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
GZIPPED = [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
#: level, method, window and memory: 48 kB for each stream
SMALL_GZIP = (6, zlib.DEFLATED, 16 + 13, 5)
PLAIN = (b"content-type", b"text/plain; version=0.0.4")
WISHES = {each.name for each in fields(Wishes)} - {"owner"}
DECLARED = "eligo_endpoint"  # the attribute of a handler with the endpoint that it answers
Handler = TypeVar("Handler", bound=Callable[..., Any])


class Caller(NamedTuple):
    """The caller of an endpoint: its name, its scopes, and the client that it is, if any."""

    name: str
    scopes: frozenset[str]
    client: Client | None = None
    #: the hash of its token, if it has one
    token: str | None = None
    #: the hash of the token with which the client enrolled, if known
    owner: str | None = None

    @property
    def holder(self) -> str:
        """The id under which its requests are counted; empty if they are counted by address."""
        return self.token or ("" if self.client is None else self.client.id)


class ApiCall(NamedTuple):
    """One call of an endpoint."""

    caller: Caller
    key: str
    #: the parameters of the path, and those of the query
    parts: Mapping[str, str]
    query: Mapping[str, str]
    #: the message that was sent, and its bytes
    words: Any
    body: bytes
    #: returns when the caller disconnects
    gone: Receive
    #: the ASGI scope of the request
    scope: Scope

    @property
    def client(self) -> Client:
        """The client that calls; 403 if the caller is not a client."""
        if self.caller.client is None:
            raise RefusedError(403, "only clients can call this (enrol with POST /v1/clients)")
        return self.caller.client

    def number(self, name: str, usual: int, most: int = 2**53) -> int:
        """An integer in the query, or the *usual* one; larger ones are cut to *most*."""
        text = self.query.get(name, "")
        if not text:
            return usual
        if not (text.isascii() and text.isdecimal() and len(text) < 17):
            raise RefusedError(400, f"{name} must be a non-negative integer, got {text[:20]!r}")
        return min(int(text), most)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One endpoint of the API: its address, who may call it, its messages, and the handler that answers it."""

    method: str
    path: str
    answer: Callable[[ApiCall], Awaitable[Any]]
    #: scopes of tokens, any of which allows a call; empty: no token is needed
    scopes: tuple[str, ...] = ()
    #: the types of the request and of the answer; bytes: not JSON
    takes: Any = None
    gives: Any = DoneWords
    status: int = 200
    says: str = ""
    #: whether this server answers a repeated call with the same key as before; other handlers see to that themselves
    once: bool = False
    #: the parameters of the query, with their meanings
    query: Mapping[str, str] = field(default_factory=dict)
    #: whether the answer is a stream of server-sent events, which ends when the caller disconnects
    streams: bool = False


def endpoint(
    method: str, path: str, *scopes: str, changes: bool = False, **fields: Any
) -> Callable[[Handler], Handler]:
    """Declare a method as the handler of an endpoint with these fields; its docstring and return type describe the answer.

    A call that *changes* something is refused while the store cannot be written, and answered once it is written.
    """

    def declare(handler: Handler) -> Handler:
        answering = _durable(handler) if changes else handler
        about = {"gives": handler.__annotations__["return"], "says": handler.__doc__ or "", **fields}
        setattr(answering, DECLARED, Endpoint(method=method, path=path, answer=handler, scopes=scopes, **about))
        return answering

    return declare


def _durable(handler: Handler) -> Handler:
    @wraps(handler)
    async def answer(owner: Any, call: ApiCall) -> Any:
        owner.desk.keeper.check()
        words = await handler(owner, call)
        await owner.desk.settle()
        return words

    return cast(Handler, answer)


def endpoints_of(owner: object) -> list[Endpoint]:
    """The endpoints that the methods of an object answer, in the order of their declaration."""
    declared = {name: getattr(member, DECLARED, None) for name, member in vars(type(owner)).items()}
    return [replace(one, answer=getattr(owner, name)) for name, one in declared.items() if one is not None]


class Answering:
    """The ASGI app of one endpoint: checks calls, decodes their bodies, and encodes the answers of the handler."""

    def __init__(
        self, endpoint: Endpoint, who: Callable[[dict[bytes, bytes]], Caller], reader: Reader | None = None
    ) -> None:
        self.endpoint, self._who, self._reader = endpoint, who, reader or Reader()
        self.status, self.kind = endpoint.status, PLAIN if endpoint.gives is bytes else JSON
        self._scopes = frozenset(endpoint.scopes)
        self._decode: Any = None if endpoint.takes in (None, bytes) else msgspec.json.Decoder(endpoint.takes).decode
        self._posts = endpoint.method == "POST"
        self._answers: OrderedDict[tuple[str, str, bytes], asyncio.Future[Any]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI defines it, whose body is in its state."""
        if self.endpoint.streams:
            chunks = await self._answer(scope, receive)
            zipped = accepts_gzip(scope["state"]["headers"].get(b"accept-encoding", b""))
            await (_stream(_gzipped(chunks), receive, send, GZIPPED) if zipped else _stream(chunks, receive, send))
            return
        body = await self.respond(scope, receive)
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": self.status, "headers": [self.kind, length]})
        await send({"type": "http.response.body", "body": body})

    async def respond(self, scope: Scope, gone: Receive) -> bytes:
        """The body of the answer; *gone* returns when the caller disconnects."""
        answer = await self._answer(scope, gone)
        return answer if isinstance(answer, bytes) else encode(answer)

    async def _answer(self, scope: Scope, receive: Receive) -> Any:
        try:
            state, words = scope["state"], None
            caller, key, body = self._permitted(state), self._key(state["headers"]), state["body"]
            if self._decode is not None:
                words = self._words(body) if len(body) <= SMALL else await self._large_words(body, caller)
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"))) if scope["query_string"] else {}
            call = ApiCall(caller, key, scope.get("path_params") or {}, query, words, body, receive, scope)
            return await (self._once(call) if self.endpoint.once else self.endpoint.answer(call))
        except RefusedError:
            raise
        except EligoError as error:
            raise RefusedError(422, str(error)) from None

    async def _once(self, call: ApiCall) -> Any:
        """The answer of the handler, which a repeated call gets again instead of calling the handler twice."""
        place = (call.caller.token or call.caller.name, call.key, sha256(call.body).digest())
        pending = self._answers.get(place)
        if pending is None:
            pending = self._answers[place] = asyncio.ensure_future(self.endpoint.answer(call))
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(pending)
        except Exception:
            self._answers.pop(place, None)
            raise

    def _permitted(self, state: dict[str, Any]) -> Caller:
        """The caller, who may call this endpoint."""
        caller: Caller = state.get("caller") or self._caller(state["headers"])
        self.check(caller)
        state["client"] = caller.name
        return caller

    def _key(self, headers: dict[bytes, bytes]) -> str:
        key = headers.get(b"idempotency-key", b"")
        if self._posts and not key:
            key = secrets.token_urlsafe(24).encode()  # without a key, a repeated call is a new one
        if self._posts and KEY.fullmatch(key) is None:
            raise RefusedError(400, "Idempotency-Key must be 1 to 64 letters, digits, - or _")
        return key.decode("ascii")

    def check(self, caller: Caller) -> None:
        """Refuse a caller whose token has none of the scopes that allow a call."""
        if self._scopes and self._scopes.isdisjoint(caller.scopes):
            demand(caller.scopes, *sorted(self._scopes))

    def _caller(self, headers: dict[bytes, bytes]) -> Caller:
        """The caller, if the guard did not identify it; anyone may call an endpoint without scopes."""
        try:
            return self._who(headers)
        except RefusedError:
            if self._scopes:
                raise
            return Caller("anybody", frozenset())

    def _words(self, body: bytes) -> Any:
        try:
            return read_small(body or b"{}", self._decode)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RefusedError(400, explain_fault(str(error))) from None

    async def _large_words(self, body: bytes, caller: Caller) -> Any:
        if len(body) > self.endpoint.takes.most:
            raise RefusedError(413, f"the body exceeds the limit of {self.endpoint.takes.most} bytes")
        try:
            return await self._reader.read(body, self._decode, caller.owner or caller.holder)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RefusedError(400, explain_fault(str(error))) from None


def accepts_gzip(encodings: bytes) -> bool:
    """Whether a caller with this Accept-Encoding header accepts gzip.

    >>> accepts_gzip(b"br, GZIP"), accepts_gzip(b"gzip;q=0"), accepts_gzip(b"")
    (True, False, False)
    """
    parts = (part.replace(b" ", b"").lower().partition(b";") for part in encodings.split(b","))
    return any(name in {b"gzip", b"*"} and quality not in {b"q=0", b"q=0.0"} for name, _, quality in parts)


async def _gzipped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a stream, each compressed so that it can be read at once."""
    packer = zlib.compressobj(*SMALL_GZIP)
    async for chunk in chunks:
        yield packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)


async def _stream(
    chunks: AsyncIterator[bytes], receive: Receive, send: Send, encoding: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send parts until there are no more, or the caller disconnects."""
    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
    await send({"type": "http.response.start", "status": 200, "headers": [*EVENTS, *encoding]})
    try:
        async for chunk in chunks:
            if disconnect.done():
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        disconnect.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Application:
    """The API as an ASGI app: endpoints with a fixed path are looked up, the others are found by Starlette's router."""

    def __init__(
        self, endpoints: Sequence[Endpoint], who: Callable[[dict[bytes, bytes]], Caller], routes: Sequence[Route],
        pages: Sequence[Route] = (),
    ) -> None:  # fmt: skip
        reader = Reader()
        answering = {(each.method, each.path): Answering(each, who, reader) for each in endpoints}
        table = [Route(path, answer, methods=[method]) for (method, path), answer in answering.items()]
        unguarded = [route for route, each in zip(table, endpoints, strict=True) if not each.scopes]
        self._who = who
        #: all routes
        self.routes = [*table, *routes, *pages]
        #: method and path of those that need no token
        self.open = {(method, route.path) for route in (*unguarded, *pages) for method in route.methods or ()}
        #: by method and path, the endpoints with a fixed path
        self.direct = {place: answer for place, answer in answering.items() if "{" not in place[1]}
        self._router = Router(self.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI defines it."""
        direct = self.direct.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if direct is not None:
            scope["endpoint"] = direct
        await (self._router if direct is None else direct)(scope, receive, send)

    def admit(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Identify the caller before its body is read, and check its scopes if the path is fixed or that of a file.

        Every endpoint checks its scopes again when it is called; those of files are checked only here.
        """
        place = scope["method"], scope["path"]
        if place in self.open:
            return
        scope["state"]["caller"] = caller = self._who(headers)
        if place in self.direct:
            self.direct[place].check(caller)
        elif scope["path"].startswith(FILES):
            demand(caller.scopes, "work", "submit")


# Parameters


class Row(NamedTuple):
    """The values by which lists of workflows are sorted and filtered."""

    #: larger for newer workflows
    rank: float
    id: str
    state: str


def page_of(call: ApiCall, rows: Collection[Row]) -> tuple[list[str], str | None]:
    """The requested page of workflows, the newest first, and its last workflow, or None if no older ones follow."""
    state, limit = call.query.get("state"), call.number("limit", MOST_LISTED, MOST_LISTED) or MOST_LISTED
    before, last = call.query.get("before"), None
    if before is not None and (last := next((row for row in rows if row.id == before), None)) is None:
        raise RefusedError(404, f"unknown workflow {shorten(before)!r} in 'before' (start again without it)")
    matching = (row for row in rows if (state is None or row.state == state) and (last is None or row[:2] < last[:2]))
    ids = [row.id for row in nlargest(limit + 1, matching)]
    return ids[:limit], ids[limit - 1] if len(ids) > limit else None


def clients_after(call: ApiCall, ids: Iterable[str]) -> tuple[list[str], str | None]:
    """The requested page of clients, sorted by id, and its last client, or None if no others follow."""
    after, limit = call.query.get("after", ""), call.number("limit", MOST_LISTED, MOST_LISTED) or MOST_LISTED
    page = nsmallest(limit + 1, (id for id in ids if id > after))
    return page[:limit], page[limit - 1] if len(page) > limit else None


def read_wishes(call: ApiCall) -> Wishes:
    """The settings of a submitted workflow, from the query."""
    kinds = {"share": float, "timeout": float, "quorum": int, "retries": int, "copies": int}
    unknown = set(call.query) - WISHES - {"format"}
    if unknown:
        raise RefusedError(400, f"unknown parameter {min(unknown)!r}")
    settings: dict[str, Any] = {name: value for name, value in call.query.items() if name in WISHES}
    for name, kind in kinds.items():
        if name in settings:
            try:
                settings[name] = kind(settings[name])
            except ValueError:
                raise RefusedError(400, f"{name} must be a number, got {settings[name][:20]!r}") from None
    if "space" in settings:
        space = settings["space"] = bytes_in(settings["space"])
        if space is None:
            raise RefusedError(400, f"space must be a size, such as 200G, got {call.query['space'][:20]!r}")
    for name in {"files", "inside", "rules", "signed", "locality", "grow", "clean"} & settings.keys():
        settings[name] = settings[name] != "false"
    return Wishes(owner=call.caller.name, **settings)


# OpenAPI


KEY_HEADER = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "A repeated call with the same key gets the same answer and has no further effect.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
}  # fmt: skip
IDENTIFIED = {"Eligo-Request": {"description": "Request id, as in the log.", "schema": {"type": "string"}}}
PATIENT = {"Retry-After": {"description": "Seconds to wait before the next try.", "schema": {"type": "integer"}}}
REFERENCE = "#/components/schemas/{name}"
#: statuses that every endpoint may answer with
EVERYWHERE = (400, 403, 408, 414, 421, 429, 431, 500, 503)


class Problem(msgspec.Struct):
    """An error (RFC 9457): `detail` is the reason in one sentence, `instance` the id of the request.

    `error` and `request` repeat them for older clients.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    error: str
    request: str


def openapi(endpoints: Sequence[Endpoint], title: str = "eligo server") -> dict[str, Any]:
    """The OpenAPI 3.1 document of these endpoints."""
    types = [Problem, *(kind for each in endpoints for kind in _types(each))]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    by_type = {str(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _types(endpoint: Endpoint) -> list[Any]:
    return [kind for kind in (endpoint.takes, endpoint.gives) if kind is not None and kind is not bytes]


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.says,
        "operationId": _identity(endpoint.method, endpoint.path),
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.takes is not None:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.takes, schemas)}
    if endpoint.scopes:
        operation["security"] = [{"token": []}, {}]  # a server for this machine alone may run without tokens
        scopes = " or ".join(endpoint.scopes)
        operation["description"] = f"Needs a token with the scope {scopes}, unless the server runs without tokens."
    return operation


def _identity(method: str, path: str) -> str:
    """The name of an operation.

    >>> _identity("POST", "/v1/clients/{client}/approve")
    'post_clients_client_approve'
    """
    return "_".join([method.lower(), *re.findall(r"[a-z0-9]+", path.removeprefix("/v1").lower())])


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    parts = re.findall(r"{(\w+)}", endpoint.path)
    named = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in parts]
    # clients are listed by their ids, everything else by number
    numbers = {"limit"} if endpoint.path == "/v1/clients" else {"limit", "after"}
    for name in endpoint.query:
        kind = "integer" if name in numbers else "string"
        named.append({"name": name, "in": "query", "required": False, "schema": {"type": kind}})
    return [*named, KEY_HEADER] if endpoint.method == "POST" else named


def _responses(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    refused = {*EVERYWHERE}
    refused |= {409, 422} if endpoint.method == "POST" else set()
    refused |= {413, 415, 422} if endpoint.takes is not None else set()
    refused |= {401} if endpoint.scopes else set()
    refused |= {404} if "{" in endpoint.path else set()
    kinds = {endpoint.status: endpoint.gives} | dict.fromkeys(sorted(refused - {endpoint.status}), Problem)
    return {str(status): _response(status, kind, schemas) for status, kind in kinds.items()}


def _response(status: int, kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    headers = IDENTIFIED | (PATIENT if status in {429, 503} else {})
    return {"description": HTTPStatus(status).phrase, "headers": headers, "content": _content(kind, schemas)}


def _content(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    if kind is bytes:
        return {"application/octet-stream": {}}
    return {PROBLEM if kind is Problem else "application/json": {"schema": schemas[str(kind)]}}
