"""The page: its files, and the documents that it requests about a workflow, once or as a stream of events."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from eligo.errors import EligoError, InputError
from eligo.pages.details import detail, lineage
from eligo.pages.html import ABSENT, ASSETS, asset
from eligo.pages.tables import COLUMNS, MOST_ROWS, Query, stand, states_of, table
from eligo.pages.timelines import MOST_BARS, completed, gantt
from eligo.pages.views import view
from eligo.pages.watched import Watched
from eligo.server.auth.tokens import demand
from eligo.server.http.budgets import Account, Capacity, origin
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall, Caller, Endpoint, accepts_gzip, endpoint, endpoints_of
from eligo.server.schema import encode

ONE = "/v1/workflows/{workflow}"
NAME = {"name": "name of the task"}
FILTERS = {
    "search": "part of the name", "state": "only this state", "kind": "only this kind", "sort": "column",
    "descending": "true: largest first", "offset": "number of rows to skip", "limit": "maximum number of rows",
}  # fmt: skip
STRETCH = {"begin": "seconds since 1970", "end": "seconds since 1970", "limit": "maximum number of bars"}
#: seconds: between two checks; before an event in which only times have changed; before a sign of life on a silent stream;
#: and for which viewers with the same rights share one document
EVERY, SELDOM, QUIET, SHARED = 1.0, 5.0, 15.0, 0.5
MOST_WATCHERS = 2_000
MOST_REPORTED = 200_000  # tasks in one answer
#: the parts of a document that change with time alone
CHANGING = re.compile(rb'"(?:now|seconds|rate|busy|paused)":[0-9.e+-]+,|"left":\[[0-9.,e+-]*\],')

#: the files of the page, which need no token because they contain no data
PATHS = {"/": "index.html", "/page/page.js": "page.js", "/page/page.css": "page.css"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cache-control": "no-cache", "vary": "accept-encoding",
}  # fmt: skip
GZIPPED = {"content-encoding": "gzip"}
PLAIN = "<!DOCTYPE html><title>eligo</title><p>The server is running, but {}.</p>"


class RenderedView(NamedTuple):
    """The state of a workflow as it is sent to its viewers."""

    document: bytes
    #: the document without the parts that change with time alone
    lasting: bytes
    event: bytes


class Lookout(Protocol):
    """A source of workflows that can be viewed."""

    async def watched(self, workflow: str) -> Watched:
        """The current state of a workflow."""

    async def settled(self) -> None:
        """Wait until what was shown is committed, so that a kill undoes nothing of it."""

    @property
    def closing(self) -> bool:
        """Whether streams should end."""

    @property
    def end(self) -> Mapping[str, str | None] | None:
        """What the last event of a stream says after the last view; None before the end."""


class Views:
    """The handlers of the page."""

    def __init__(self, source: Lookout, who: Callable[[dict[bytes, bytes]], Caller]) -> None:
        self._source, self._who = source, who
        self._places = Capacity(MOST_WATCHERS)
        self._shared: dict[tuple[str, str, frozenset[str], bool], tuple[float, asyncio.Task[RenderedView]]] = {}
        #: the handler of `view`, which may forward a call to another server
        self.answer: Callable[[ApiCall], Awaitable[Any]] = self._after_commit(self.view)

    @property
    def readers(self) -> int:
        """The number of open streams."""
        return self._places.total - self._places.free

    async def _workflow(self, call: ApiCall) -> Watched:
        return await self._source.watched(call.parts["workflow"])

    def _after_commit(self, answer: Callable[[ApiCall], Awaitable[Any]]) -> Callable[[ApiCall], Awaitable[Any]]:
        """A handler that answers after the commit of what it shows, so that a kill undoes nothing that was shown."""

        @wraps(answer)
        async def kept(call: ApiCall) -> Any:
            result = await answer(call)
            await self._source.settled()
            return result

        return kept

    @endpoint("GET", f"{ONE}/view", "read", "submit", gives=dict, query={"every": "true: all running and failed tasks"})
    async def view(self, call: ApiCall) -> bytes:
        """The state of a workflow: counts, curves, clients, failures, running tasks."""
        every = call.query.get("every") == "true"
        return encode(view(await self._workflow(call), call.caller.name, call.caller.scopes, every))

    # Streams

    @endpoint("GET", f"{ONE}/events", "read", "submit", gives=dict, streams=True)
    async def events(self, call: ApiCall) -> AsyncIterator[bytes]:
        """The state of a workflow as a stream of events: again whenever something changes, at most once a second."""
        account = Account(call.key)
        account.caller = call.caller.holder or origin(call.scope.get("client"))
        if not self._places.take(account):
            raise RefusedError(503, "too many viewers; try again", after=5)
        account.close()  # the stream takes its place when it starts
        path = call.scope["path"].removesuffix("/events") + "/view"  # another server is asked for the view
        call = call._replace(scope={**call.scope, "path": path, "raw_path": path.encode()})
        return self._stream(call, await self._render(call), account)

    async def _render(self, call: ApiCall) -> RenderedView:
        """The view of a caller whose token is still valid; viewers with the same rights share it."""
        caller = self._who(call.scope["state"]["headers"])
        demand(caller.scopes, "read", "submit")
        owner = caller.name if "submit" in caller.scopes else ""  # readers see the same, whatever their name
        place = (call.parts["workflow"], owner, caller.scopes, self._source.end is not None)
        now = time.monotonic()
        if place not in self._shared or now - self._shared[place][0] > SHARED:
            self._shared = {key: entry for key, entry in self._shared.items() if now - entry[0] <= SHARED}
            picture = asyncio.create_task(self._picture(call._replace(caller=caller)))
            picture.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._shared[place] = now, picture
        return await asyncio.shield(self._shared[place][1])

    async def _picture(self, call: ApiCall) -> RenderedView:
        document = await self.answer(call)
        return RenderedView(document, CHANGING.sub(b"", document), b"event: view\ndata: %b\n\n" % document)

    async def _stream(self, call: ApiCall, rendered: RenderedView, account: Account) -> AsyncIterator[bytes]:
        sent, lasting, at = b"", b"", 0.0
        end: Mapping[str, str | None] | None = None
        sent_end = end
        try:
            while self._places in account.holds or self._places.take(account):
                now = time.monotonic()
                if rendered.lasting != lasting or (rendered.document != sent and now - at > SELDOM):
                    sent, lasting, at = rendered.document, rendered.lasting, now
                    yield rendered.event
                elif now - at > QUIET or sent_end is not None:  # at the end, to notice that the viewer has left
                    at = now
                    yield b":\n\n"
                if end is not sent_end:
                    sent_end = end
                    yield b"event: ended\ndata: %b\n\n" % encode(end)
                if self._source.closing:
                    return
                await asyncio.sleep(EVERY)
                end = self._source.end  # before the view, which then is the last one
                rendered = await self._render(call)
        except EligoError:  # the viewer connects again, and then gets the reason
            return
        finally:
            account.close()

    # Details

    @endpoint("GET", f"{ONE}/table", "read", "submit", gives=dict, query=FILTERS)
    async def table(self, call: ApiCall) -> dict[str, Any]:
        """The tasks of a workflow: filtered, sorted and paged."""
        watched = await self._workflow(call)
        return await asyncio.to_thread(table, watched, stand(watched), _query(call))

    @endpoint("GET", f"{ONE}/task", "read", "submit", gives=dict, query=NAME)
    async def task(self, call: ApiCall) -> dict[str, Any]:
        """One task: the reason for its state, its neighbours, its attempts and the end of its output."""
        watched = await self._workflow(call)
        return await asyncio.to_thread(detail, watched, call.query.get("name", ""))

    @endpoint("GET", f"{ONE}/dag", "read", "submit", gives=dict)
    async def dag(self, call: ApiCall) -> dict[str, Any]:
        """The drawing of the dag; tasks are grouped in large dags."""
        watched = await self._workflow(call)
        states = states_of(watched)
        return await asyncio.to_thread(lambda: watched.drawing.document(states))

    @endpoint("GET", f"{ONE}/dag/states", "read", "submit", gives=dict)
    async def dag_states(self, call: ApiCall) -> dict[str, Any]:
        """The number of tasks in each state, for each node of the drawing."""
        watched = await self._workflow(call)
        states = states_of(watched)
        return {"counts": await asyncio.to_thread(lambda: watched.drawing.counts(states))}

    @endpoint("GET", f"{ONE}/lineage", "read", "submit", gives=dict, query=NAME)
    async def lineage(self, call: ApiCall) -> dict[str, Any]:
        """The ancestors and descendants of a task in the drawing, and its longest path."""
        watched = await self._workflow(call)
        return await asyncio.to_thread(lineage, watched, call.query.get("name", ""))

    @endpoint("GET", f"{ONE}/gantt", "read", "submit", gives=dict, query=STRETCH)
    async def gantt(self, call: ApiCall) -> dict[str, Any]:
        """The timeline: which client ran which task when."""
        watched = await self._workflow(call)
        begin, end = (_float(call, name) for name in ("begin", "end"))
        return await asyncio.to_thread(gantt, watched, begin, end, call.number("limit", MOST_BARS, 10 * MOST_BARS))

    @endpoint("GET", f"{ONE}/report", "read", "submit", gives=dict)
    async def report(self, call: ApiCall) -> dict[str, Any]:
        """All of the above in one document, for a report in one file."""
        watched = await self._workflow(call)
        if len(watched.flow) > MOST_REPORTED:
            raise RefusedError(413, f"a report covers at most {MOST_REPORTED:,} tasks, got {len(watched.flow):,}")
        return await asyncio.to_thread(completed, watched, view(watched), stand(watched))

    def endpoints(self) -> list[Endpoint]:
        """All endpoints of the page; each but the stream answers after the commit of what it shows."""
        declared = endpoints_of(self)
        return [one if one.streams else replace(one, answer=self._after_commit(one.answer)) for one in declared]


def _query(call: ApiCall) -> Query:
    query = call.query
    limit = max(1, call.number("limit", 100, MOST_ROWS))
    texts = (query.get("search", ""), query.get("state", ""), query.get("kind", ""), query.get("sort") or COLUMNS[0])
    return Query(*texts, query.get("descending") == "true", call.number("offset", 0), limit)


def _float(call: ApiCall, name: str) -> float | None:
    text = call.query.get(name, "")
    try:
        value = float(text) if text else None
    except ValueError:
        raise RefusedError(400, f"{name} must be a number, got {text[:20]!r}") from None
    if value is not None and not abs(value) < 1e12:
        raise InputError(f"{name} must be a time in seconds since 1970, got {text[:20]!r}")
    return value


# The files of the page


def page_routes() -> list[Route]:
    """The routes of the files."""
    return [Route(path, _file, methods=["GET"]) for path in PATHS]


async def _file(request: Request) -> Response:
    name = PATHS[request.url.path]
    zipped = asset(f"{name}.gz") if accepts_gzip(request.headers.get("accept-encoding", "").encode()) else None
    body = zipped or asset(name)
    if body is None:
        return Response(PLAIN.format(ABSENT), 404, HEADERS, ASSETS["index.html"])
    return Response(body, headers=HEADERS | (GZIPPED if zipped else {}), media_type=ASSETS[name])
