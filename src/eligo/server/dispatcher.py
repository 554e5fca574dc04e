"""The rules at work: the clock, those who wait for an answer, and what is kept before they get it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from eligo.additions import NewTasks
from eligo.server.group_commit import Keeper, Waiter
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import emit
from eligo.server.rules.clients import Client
from eligo.server.rules.outcomes import UNKNOWN, ForgottenError
from eligo.server.rules.results import ReadAdditions
from eligo.server.rules.served import Served, UnreadError
from eligo.server.rules.service import Service
from eligo.server.rules.state import parts_of
from eligo.server.rules.tickets import Request, Ticket
from eligo.server.schema import ResultWords

#: the next message of a connection
Gone = Callable[[], Awaitable[MutableMapping[str, Any]]]
TICK = 0.1  # seconds between two looks at what is late
PART = 2**20  # bytes of a document that are kept in one commit
MOST_PAUSE = 1.0  # seconds after an addition in which nothing else is added
STALL = 5.0  # seconds without a look after which the server stood still, not its clients


class Desk:
    """Where clients are answered: what they get is kept before they hear of it.

    *gather* is how long requests are gathered before they are answered together; 0: those that came at once are.
    """

    def __init__(self, service: Service, keeper: Keeper, gather: float = 0.0) -> None:
        self.service, self.keeper, self.gather = service, keeper, gather
        self._loop = asyncio.get_running_loop()
        self._tickets: dict[Ticket, Waiter] = {}
        self._unwatched: list[tuple[Ticket, Gone]] = []  # those who came since those who wait were looked at
        self._watching: dict[Ticket, asyncio.Task[None]] = {}
        #: requests that got nothing, and seconds that requests have waited while unfinished tasks remained
        self.empty, self.starved = 0, 0.0
        self._planned = False
        self._growth = asyncio.Lock()
        self._looked = time.monotonic()
        self._ticking = self._loop.call_later(TICK, self._tick)

    @property
    def waiting(self) -> int:
        """How many requests wait for work."""
        return len(self._tickets)

    async def ask(self, client: Client, key: str, request: Request, gone: Gone | None = None) -> Ticket:
        """Answer a request as soon as a task is ready or its time is over; *gone* ends when the caller disconnects."""
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
        """Whoever hung up gets nothing: somebody else would wait for it in vain."""
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
        """Whoever came and has to wait may hang up meanwhile; most get something at once."""
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
        """The turn of one addition: one comes at a time, then a pause as long, in which others are answered."""
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
        request: Request | None = None,
        added: ReadAdditions | None = None,
    ) -> tuple[list[str], Ticket | None]:
        """Take results, with what was read of tasks that they add; and answer a request that came with them, at once."""
        self.keeper.check()
        answers = await self._delivered_in_turn(client, deliveries, added or {})
        if request is None:
            self.wake()
            await self.keeper.kept()
            return answers, None
        return answers, await self.ask(client, key, request._replace(wait=0.0) if request.wait else request)

    async def _delivered_in_turn(
        self, client: Client, deliveries: Sequence[ResultWords], added: ReadAdditions
    ) -> list[str]:
        """Take results, and each of those that add tasks in its turn."""
        together, growing = apart(deliveries, added)
        answers = dict(zip(together, await self._taken(client, deliveries, together, added), strict=True))
        for part in growing:
            if deliveries[part[-1]].added in added:
                async with self._turn(parts_of(deliveries[part[-1]].lease)[0]):
                    some = await self._taken(client, deliveries, part, added)
            else:
                some = await self._taken(client, deliveries, part, added)
            answers.update(zip(part, some, strict=True))
        return [answers[i] for i in range(len(deliveries))]

    async def _taken(
        self, client: Client, deliveries: Sequence[ResultWords], part: Sequence[int], added: ReadAdditions
    ) -> list[str]:
        return await self._delivered(client, [deliveries[i] for i in part], added) if part else []

    async def _delivered(self, client: Client, deliveries: Sequence[ResultWords], added: ReadAdditions) -> list[str]:
        """Take results; what only the store knows of them is read first, while others are answered."""
        results, past = self.service.results, UNKNOWN
        while True:
            try:
                return results.deliver(time.monotonic(), client, deliveries, past, added)
            except UnreadError:  # it has come to this server since its results were looked at
                raise RefusedError(
                    503, "the server has just started to serve this workflow; try again", after=1
                ) from None
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
        """Look soon whether those who wait can be answered."""
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
        if self.service.books.agenda.behind and self.keeper.trouble is None:  # others are answered between two slices
            self.wake()

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._looked > STALL:
            self.service.stalled(now - self._looked)
        if self._tickets and any(one.open for one in self.service.served.values()):
            self.starved += len(self._tickets) * (now - self._looked)
        self._looked = now
        self._ticking = self._loop.call_later(TICK, self._tick)
        if self.service.expire(now):
            self.keeper.kept().add_done_callback(_ignored)
        self._serve()

    def drain(self, stop: bool = False) -> None:
        """Stop handing out tasks; waiting clients are asked to retry, or with *stop* dismissed."""
        if self.service.requests.draining is None:
            emit("server_draining")
        self.service.requests.draining = "stop" if stop else "pause"
        self.wake()

    def drain_on_request(self, on: bool) -> None:
        """Hand out nothing new for now, or again; a server that is about to end is not changed by this."""
        if self.service.requests.draining in {None, "drain"}:
            self.service.requests.draining = "drain" if on else None
            self.wake()

    def close(self) -> None:
        """Stop answering."""
        self._ticking.cancel()


def apart(deliveries: Sequence[ResultWords], added: ReadAdditions) -> tuple[list[int], list[list[int]]]:
    """The places of the results that are taken together, then those of workflows that grow by these results.

    The latter are in the order of execution, and each part ends with one that adds tasks. Files of a workflow that may grow
    never stay inside a grant, so that its results do not count by each other.
    """
    lease_ids = [parts_of(result.lease) for result in deliveries]
    grow = {lease_id[0] for lease_id, result in zip(lease_ids, deliveries, strict=True) if result.added in added}
    together, parts = [i for i, lease_id in enumerate(lease_ids) if lease_id[0] not in grow], list[list[int]]()
    some = list[int]()
    for i in sorted(set(range(len(lease_ids))).difference(together), key=lambda i: lease_ids[i][1]):
        some.append(i)
        if deliveries[i].added in added:
            parts.append(some)
            some = []
    return together, [*parts, some] if some else parts


def _ignored(done: Waiter) -> None:
    """Nobody waits for this; a store that cannot be written is told of elsewhere."""
    if not done.cancelled():
        done.exception()
