"""The dispatcher: calls the rules at the right time, holds waiting requests, and answers them after the commit."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from msgspec.structs import replace

from eligo.additions import NewTasks
from eligo.server.group_commit import Keeper, Waiter
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import emit
from eligo.server.rules.clients import Client
from eligo.server.rules.outcomes import UNKNOWN, ForgottenError
from eligo.server.rules.requests import Ticket
from eligo.server.rules.results import ReadAdditions
from eligo.server.rules.served import Served, UnreadError
from eligo.server.rules.service import Service
from eligo.server.rules.state import parts_of
from eligo.server.schema import AskWords, ResultWords

#: receives the next message of a connection
Gone = Callable[[], Awaitable[MutableMapping[str, Any]]]
TICK = 0.1  # seconds between two checks of deadlines
PART = 2**20  # bytes of a document in one commit
MOST_PAUSE = 1.0  # maximum seconds between two additions
STALL = 5.0  # seconds without a check that mean that the server stood still, not its clients


class Desk:
    """Answers clients; every answer is committed before it is sent.

    Requests that arrive within *gather* seconds are answered together; with 0, those of one step of the event loop.
    """

    def __init__(self, service: Service, keeper: Keeper, gather: float = 0.0) -> None:
        self.service, self.keeper, self.gather = service, keeper, gather
        self._loop = asyncio.get_running_loop()
        self._tickets: dict[Ticket, Waiter] = {}
        self._unwatched: list[tuple[Ticket, Gone]] = []  # waiting requests whose connections are not watched yet
        self._watching: dict[Ticket, asyncio.Task[None]] = {}
        #: requests that got no task, and seconds that requests have waited while unfinished tasks remained
        self.empty, self.starved = 0, 0.0
        self._planned = False
        self._growth = asyncio.Lock()
        self._last_tick = time.monotonic()
        self._ticking = self._loop.call_later(TICK, self._tick)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for tasks."""
        return len(self._tickets)

    async def ask(self, client: Client, key: str, request: AskWords, gone: Gone | None = None) -> Ticket:
        """Answer a request as soon as a task is ready or its time is over; *gone* returns when the caller disconnects."""
        self.keeper.check()
        ticket = self.service.ask(time.monotonic(), client, key, request)
        if not self.service.requests.pending(ticket):
            self.empty += not ticket.grants
            await self.keeper.kept()
            return ticket
        waiter = self._tickets[ticket] = self._loop.create_future()
        self.wake()
        if gone is not None and request.wait:
            self._unwatched.append((ticket, gone))
        try:
            await waiter
        finally:
            self._forget(ticket)
        return ticket

    async def _watch(self, receive: Gone, ticket: Ticket) -> None:
        """Withdraw a request when its client disconnects, so that another client gets the tasks."""
        while (await receive())["type"] != "http.disconnect":
            pass
        waiter = self._tickets.get(ticket)
        self._watching.pop(ticket, None)
        self._forget(ticket)
        if waiter is not None and not waiter.done():
            waiter.set_exception(RefusedError(499, "the client closed the connection"))

    def _forget(self, ticket: Ticket) -> None:
        if self._tickets.pop(ticket, None) is not None:
            self.service.requests.withdraw(ticket)
        watch = self._watching.pop(ticket, None)
        if watch is not None:
            watch.cancel()

    def _watch_all(self) -> None:
        """Watch the connections of requests that still wait; most requests are answered before."""
        unwatched, self._unwatched = self._unwatched, []
        for ticket, receive in unwatched:
            if ticket in self._tickets:
                self._watching[ticket] = self._loop.create_task(self._watch(receive, ticket))

    # Growth

    async def add(self, workflow: str, new: NewTasks) -> tuple[str, ...]:
        """Add tasks to a workflow, in their turn; returns their names."""
        async with self._turn(workflow):
            return self.service.add(time.monotonic(), workflow, new)

    @asynccontextmanager
    async def _turn(self, workflow: str) -> AsyncIterator[None]:
        """Wait for the turn of an addition; after each one there is a pause as long, in which requests are answered."""
        await self._growth.acquire()
        began = time.monotonic()
        try:
            served = self.service.served.get(workflow)
            if served is not None and not served.live.is_ready:
                await asyncio.to_thread(served.live.make_ready)
            began = time.monotonic()
            yield
        finally:
            self._loop.call_later(min(MOST_PAUSE, time.monotonic() - began), self._growth.release)

    # Results

    async def deliver(
        self,
        client: Client,
        deliveries: Sequence[ResultWords],
        key: str = "",
        request: AskWords | None = None,
        added: ReadAdditions | None = None,
    ) -> tuple[list[str], Ticket | None]:
        """Process results, with the tasks that they add, and answer at once a request for tasks that came with them."""
        self.keeper.check()
        deliver = self._deliver_in_turn if added else self._deliver_all
        answers = await deliver(client, deliveries, added or {})
        if request is None:
            self.wake()
            await self.keeper.kept()
            return answers, None
        return answers, await self.ask(client, key, replace(request, wait=0.0) if request.wait else request)

    async def _deliver_in_turn(
        self, client: Client, deliveries: Sequence[ResultWords], added: ReadAdditions
    ) -> list[str]:
        """Process results; results that add tasks wait for their turns."""
        together, growing = split_by_growth(deliveries, added)
        answers = dict(zip(together, await self._deliver_part(client, deliveries, together, added), strict=True))
        for part in growing:
            last = deliveries[part[-1]]
            async with self._turn(parts_of(last.lease)[0]) if last.added in added else nullcontext():
                answers.update(zip(part, await self._deliver_part(client, deliveries, part, added), strict=True))
        return [answers[i] for i in range(len(deliveries))]

    async def _deliver_part(
        self, client: Client, deliveries: Sequence[ResultWords], part: Sequence[int], added: ReadAdditions
    ) -> list[str]:
        return await self._deliver_all(client, [deliveries[i] for i in part], added) if part else []

    async def _deliver_all(self, client: Client, deliveries: Sequence[ResultWords], added: ReadAdditions) -> list[str]:
        """Process results; facts that only the store has are read first, while other requests are answered."""
        results, past = self.service.results, UNKNOWN
        while True:
            try:
                return results.deliver(time.monotonic(), client, deliveries, past, added)
            except UnreadError:  # this server has taken over the workflow since the additions were read
                sentence = "the server has just started to serve this workflow; try again"
                raise RefusedError(503, sentence, after=1) from None
            except ForgottenError:
                lacking, at = results.wanted(client, deliveries), self.service.books.ends
            try:
                past = await asyncio.to_thread(self.service.archive.read, lacking, past, at)
            except OSError:
                raise RefusedError(503, "the store cannot be read now; try again", after=1) from None

    async def keep_document(self, served: Served) -> None:
        """Store a large document in parts before its workflow, so that no request waits for one long commit."""
        document, id = served.row.document, served.row.id
        if len(document) <= PART:
            return
        for part, first in enumerate(range(0, len(document), PART)):
            self.service.books.changes.parts.append((id, part, document[first : first + PART]))
            await self.keeper.kept()
        served.row = served.row._replace(document=b"")

    async def settle(self) -> None:
        """Commit pending changes and serve waiting requests."""
        self.wake()
        await self.keeper.kept()

    def wake(self) -> None:
        """Serve waiting requests soon, in a later step of the event loop."""
        if self._planned:
            return
        self._planned = True
        if self.gather:
            self._loop.call_later(self.gather, self._serve)
        else:
            self._loop.call_soon(self._serve)

    def _serve(self) -> None:
        self._planned = False
        for ticket in self.service.serve(time.monotonic()) if self.keeper.trouble is None else ():
            waiter = self._tickets.pop(ticket, None)
            if waiter is not None:
                self.empty += not ticket.grants
                self.keeper.kept(waiter)
        self._watch_all()
        if self.service.books.agenda.behind and self.keeper.trouble is None:  # the rest follows in another step
            self.wake()

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._last_tick > STALL:
            self.service.stalled(now - self._last_tick)
        if self._tickets and any(one.open for one in self.service.served.values()):
            self.starved += len(self._tickets) * (now - self._last_tick)
        self._last_tick = now
        self._ticking = self._loop.call_later(TICK, self._tick)
        if self.service.expire(now):
            self.keeper.kept().add_done_callback(_ignore_error)
        self._serve()

    def drain(self, stop: bool = False) -> None:
        """Stop handing out tasks; waiting clients are asked to retry, or with *stop* dismissed."""
        if self.service.requests.draining is None:
            emit("server_draining")
        self.service.requests.draining = "stop" if stop else "pause"
        self.wake()

    def drain_on_request(self, on: bool) -> None:
        """Stop handing out tasks, or start again; this has no effect on a server that is about to end."""
        if self.service.requests.draining in {None, "drain"}:
            self.service.requests.draining = "drain" if on else None
            self.wake()

    def close(self) -> None:
        """Stop checking deadlines and serving requests."""
        self._ticking.cancel()


def split_by_growth(deliveries: Sequence[ResultWords], added: ReadAdditions) -> tuple[list[int], list[list[int]]]:
    """The indices of results in two groups: those to process together, and, in parts, those of workflows that get new tasks.

    The parts are in the order of execution, and each ends with a result that adds tasks, except perhaps the last one. Files
    of a workflow that may grow never stay inside a grant, so that its results do not depend on each other.
    """
    lease_ids = [parts_of(result.lease) for result in deliveries]
    grow = {lease_id[0] for lease_id, result in zip(lease_ids, deliveries, strict=True) if result.added in added}
    together, parts = [i for i, lease_id in enumerate(lease_ids) if lease_id[0] not in grow], list[list[int]]()
    part = list[int]()
    for i in sorted(set(range(len(lease_ids))).difference(together), key=lambda i: lease_ids[i][1]):
        part.append(i)
        if deliveries[i].added in added:
            parts.append(part)
            part = []
    return together, [*parts, part] if part else parts


def _ignore_error(done: Waiter) -> None:
    """Retrieve the error of a commit that no request waits for; the keeper itself reports a failing store."""
    if not done.cancelled():
        done.exception()
