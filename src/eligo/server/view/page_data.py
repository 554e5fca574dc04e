"""What the page asks for: where a workflow stands, its tasks, its dag, who did what when; once, or as it goes on."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, Protocol

from eligo.errors import EligoError, InputError
from eligo.pages.details import detail, lineage
from eligo.pages.tables import COLUMNS, MOST_ROWS, Query, stand, states_of, table
from eligo.pages.timelines import MOST_BARS, completed, gantt
from eligo.pages.views import view
from eligo.pages.watched import Watched
from eligo.server.auth.tokens import demand
from eligo.server.http.budgets import Account, Capacity, origin
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import Address, ApiCall, Caller
from eligo.server.schema import encode

#: seconds between two looks, after which it is told that time goes on, after which something is sent at any rate, and for
#: which those who look at the same share what they see
EVERY, SELDOM, QUIET, SHARED = 1.0, 5.0, 15.0, 0.5
MOST_WATCHERS = 2_000
MOST_REPORTED = 200_000  # tasks in one answer
#: what changes though nothing happens
CHANGING = re.compile(rb'"(?:now|seconds|rate|busy|paused)":[0-9.e+-]+,|"left":\[[0-9.,e+-]*\],')


class RenderedView(NamedTuple):
    """Where a workflow stands, as it is sent to all who watch it."""

    document: bytes
    #: the document without what changes though nothing happens
    standing: bytes
    event: bytes


class Lookout(Protocol):
    """Where workflows are that can be looked at."""

    async def watched(self, workflow: str) -> Watched:
        """A workflow, as it is now."""
        ...

    async def settled(self) -> None:
        """Wait until what was shown is committed, so that a kill undoes nothing of it."""
        ...

    @property
    def closing(self) -> bool:
        """Whether those who watch should go."""
        ...


class Views:
    """The addresses of the page."""

    def __init__(self, source: Lookout, who: Callable[[dict[bytes, bytes]], Caller]) -> None:
        self._source, self._who = source, who
        self._places = Capacity(MOST_WATCHERS)
        self._shared: dict[tuple[str, str, frozenset[str]], tuple[float, asyncio.Task[RenderedView]]] = {}
        #: what answers for a workflow that may be another server's
        self.answer: Callable[[ApiCall], Awaitable[Any]] = self._after_commit(self.view)

    async def _watched(self, call: ApiCall) -> Watched:
        return await self._source.watched(call.parts["workflow"])

    def _after_commit(self, answer: Callable[[ApiCall], Awaitable[Any]]) -> Callable[[ApiCall], Awaitable[Any]]:
        """An answer that comes once what it tells is kept: no kill undoes what somebody saw."""

        @wraps(answer)
        async def kept(call: ApiCall) -> Any:
            result = await answer(call)
            await self._source.settled()
            return result

        return kept

    async def view(self, call: ApiCall) -> bytes:
        """The state of a workflow: counts, curves, clients, failures, running tasks."""
        every = call.query.get("every") == "true"
        return encode(view(await self._watched(call), call.caller.name, call.caller.scopes, every))

    # As it goes on

    async def events(self, call: ApiCall) -> AsyncIterator[bytes]:
        """The same as a stream of events, whenever something changes, at most once a second."""
        account = Account(call.key)
        account.caller = call.caller.holder or origin(call.scope.get("client"))
        if not self._places.take(account):
            raise RefusedError(503, "too many viewers; try again", after=5)
        account.close()  # the stream takes its place when it starts
        path = call.scope["path"].removesuffix("/events") + "/view"  # as whoever answers for it is asked
        call = call._replace(scope={**call.scope, "path": path, "raw_path": path.encode()})
        return self._flowing(call, await self._render(call), account)

    async def _render(self, call: ApiCall) -> RenderedView:
        """What somebody sees who may still look; it is made once for all who look at the same with the same rights."""
        caller = self._who(call.scope["state"]["headers"])
        demand(caller.scopes, "read", "submit")
        owner = caller.name if "submit" in caller.scopes else ""  # who only reads sees the same, whatever the name
        place, now = (call.parts["workflow"], owner, caller.scopes), time.monotonic()
        if place not in self._shared or now - self._shared[place][0] > SHARED:
            self._shared = {key: entry for key, entry in self._shared.items() if now - entry[0] <= SHARED}
            picture = asyncio.create_task(self._picture(call._replace(caller=caller)))
            picture.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._shared[place] = now, picture
        return await asyncio.shield(self._shared[place][1])

    async def _picture(self, call: ApiCall) -> RenderedView:
        document = await self.answer(call)
        return RenderedView(document, CHANGING.sub(b"", document), b"event: view\ndata: %b\n\n" % document)

    async def _flowing(self, call: ApiCall, rendered: RenderedView, account: Account) -> AsyncIterator[bytes]:
        sent, stood, at = b"", b"", 0.0
        try:
            while self._places in account.holds or self._places.take(account):
                now = time.monotonic()
                if rendered.standing != stood or (rendered.document != sent and now - at > SELDOM):
                    sent, stood, at = rendered.document, rendered.standing, now
                    yield rendered.event
                elif now - at > QUIET:
                    at = now
                    yield b":\n\n"
                if self._source.closing:
                    return
                await asyncio.sleep(EVERY)
                rendered = await self._render(call)
        except EligoError:  # whoever listens asks again, and is told why
            return
        finally:
            account.close()

    # Closer

    async def table(self, call: ApiCall) -> dict[str, Any]:
        """The tasks of a workflow: filtered, sorted and paged."""
        watched = await self._watched(call)
        return await asyncio.to_thread(table, watched, stand(watched), _query(call))

    async def task(self, call: ApiCall) -> dict[str, Any]:
        """One task: the reason for its state, its neighbours, its attempts and the end of its output."""
        watched = await self._watched(call)
        return await asyncio.to_thread(detail, watched, call.query.get("name", ""))

    async def dag(self, call: ApiCall) -> dict[str, Any]:
        """The drawing of the dag; tasks are grouped in large dags."""
        watched = await self._watched(call)
        states = states_of(watched)
        return await asyncio.to_thread(lambda: watched.drawing.document(states))

    async def dag_states(self, call: ApiCall) -> dict[str, Any]:
        """The number of tasks in each state, for each node of the drawing."""
        watched = await self._watched(call)
        states = states_of(watched)
        return {"counts": await asyncio.to_thread(lambda: watched.drawing.counts(states))}

    async def lineage(self, call: ApiCall) -> dict[str, Any]:
        """The ancestors and descendants of a task in the drawing, and its longest path."""
        watched = await self._watched(call)
        return await asyncio.to_thread(lineage, watched, call.query.get("name", ""))

    async def gantt(self, call: ApiCall) -> dict[str, Any]:
        """The timeline: which client ran which task when."""
        watched = await self._watched(call)
        begin, end = (_float(call, name) for name in ("begin", "end"))
        return await asyncio.to_thread(gantt, watched, begin, end, call.number("limit", MOST_BARS, 10 * MOST_BARS))

    async def report(self, call: ApiCall) -> dict[str, Any]:
        """All of the above in one document, for a report in one file."""
        watched = await self._watched(call)
        if len(watched.flow) > MOST_REPORTED:
            raise RefusedError(413, f"a report covers at most {MOST_REPORTED:,} tasks, got {len(watched.flow):,}")
        return await asyncio.to_thread(completed, watched, view(watched), stand(watched))

    def addresses(self) -> Sequence[Address]:
        """All endpoints of the page."""
        one = "/v1/workflows/{workflow}"
        filters = {
            "search": "part of the name", "state": "only this state", "kind": "only this kind", "sort": "column",
            "descending": "true: largest first", "offset": "number of rows to skip", "limit": "maximum number of rows",
        }  # fmt: skip
        stretch = {"begin": "seconds since 1970", "end": "seconds since 1970", "limit": "maximum number of bars"}
        name = {"name": "name of the task"}
        endpoints: list[tuple[str, Any, dict[str, str] | None]] = [
            ("view", self.view, {"every": "true: all running and failed tasks"}),
            ("events", self.events, None), ("table", self.table, filters),
            ("task", self.task, name), ("dag", self.dag, None), ("dag/states", self.dag_states, None),
            ("lineage", self.lineage, name), ("gantt", self.gantt, stretch),
            ("report", self.report, None),
        ]  # fmt: skip
        return [
            Address(
                method="GET", path=f"{one}/{path}", scope="read|submit",
                answer=answer if path == "events" else self._after_commit(answer), gives=dict, query=query,
                says=answer.__doc__ or "", streams=path == "events",
            )
            for path, answer, query in endpoints
        ]  # fmt: skip


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
