"""Workflows that somebody looks at: followed from the first look on, also when they have ended."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from eligo.execution import ALLOCATED, FAILED
from eligo.pages.attempted import UNUSED, VANISHED, WENT_WELL, WENT_WRONG, Attempted
from eligo.pages.watched import Watched, Worker
from eligo.running.looked import Curve, Trying
from eligo.server.books import Books
from eligo.server.clients import Client
from eligo.server.keeping import Keeper
from eligo.server.recalling import recalled
from eligo.server.refusing import RefusedError
from eligo.server.served import BROKEN, ENDED, FINAL, Served
from eligo.server.service import Service
from eligo.stores.serving import LeaseEnd, ServiceStore
from eligo.theory.eligibility import eligible_counts

#: workflows that are followed, their tasks together, and the seconds after which one is no longer that nobody asks for
MOST_WATCHED, MOST_TASKS, PATIENCE = 16, 2**21, 600.0
MOST_LINES = 40
OUTCOMES = {"accepted": WENT_WELL, "failed": WENT_WRONG, "conflict": WENT_WRONG, "expired": VANISHED}


class WatchedServed(Watched):
    """A workflow of a server."""

    source = "server"

    def __init__(self, served: Served, books: Books) -> None:
        super().__init__(served.flow)
        self.served, self.execution, self._books = served, served.execution, books
        self.id, self.title = served.id, served.row.name
        self.policy = served.wishes.policy
        self._plan = served.order, served.ceiling
        self.asked = 0.0  # when somebody looked at it last
        self.renew()

    def renew(self) -> None:
        """Look at how things stand."""
        served, codes, ahead = self.served, self.execution.codes, self._books.ahead
        self.at, self.under_way = self._books.wall, served.state not in ENDED
        leases = (served.leases[number] for numbers in served.holding.values() for number in sorted(numbers)[:1])
        self.trying = {
            one.task: Trying(one.task, one.attempt, one.client, one.since)
            for one in leases
            if codes[one.task] == ALLOCATED
        }
        self.again = {v: due + ahead for due, v in served.later if codes[v] == FAILED}

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        order, ceiling = self._plan
        if name == "bound" or order is None:
            return None if ceiling is None else np.asarray(ceiling, np.int64)
        return order.astype(np.int64) if name == "order" else eligible_counts(self.flow.dag, order)

    def failure(self, v: int) -> str:
        """See `Looked`."""
        return self.served.causes.get(v) or super().failure(v)

    @property
    def status(self) -> str:
        """See `Watched`."""
        return self.served.state

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        """See `Watched`."""
        made = self.served.row.made
        last = self.at if self.under_way else max(self.attempts.latest, default=made)
        return [(made, max(made, last))]

    @property
    def workers(self) -> Sequence[Worker]:
        """See `Watched`: who has done anything of it, and who may yet."""
        books, known = self._books, {*self.attempts.clients, *(one.client for one in self.trying.values())}
        there = [one for one in books.clients.values() if one.id in known or (self.under_way and self._alive(one))]
        gone = [Worker(id, id, 0.0, False) for id in known if id not in books.clients]
        return [*map(self._worker, there), *gone]

    def _alive(self, client: Client) -> bool:
        return self._books.now - client.seen < self._books.terms.lease + self._books.terms.grace

    def _worker(self, client: Client) -> Worker:
        books, speed = self._books, self.served.allocator.speeds.of(client.id)
        paused = max(0.0, client.paused - books.now)
        alive = self._alive(client)
        return Worker(
            client.id, client.name, client.seen + books.ahead, alive, client.approved, speed, client.quota, 0, paused
        )

    def name_of(self, client: str) -> str:
        """See `Watched`: names that several have are told apart."""
        found = self._books.clients.get(client)
        return client if found is None else found.name

    def tail(self, v: int, attempt: int) -> list[str]:
        """See `Watched`."""
        rows, tails = self.attempts.rows, self.attempts.tails
        found = [tails[place] for place in self.attempts.of(v) if place in tails and rows["attempt"][place] == attempt]
        return [line for line in found[-1].splitlines() if line.strip()][-MOST_LINES:] if found else []

    @property
    def tallies(self) -> Mapping[str, int]:
        """See `Watched`."""
        served = self.served
        return {"lost": served.lost, "repeated": served.repeated, "saved": served.saved}

    def may(self, who: str, scopes: frozenset[str]) -> dict[str, bool]:
        """See `Watched`."""
        owner = "admin" in scopes or ("submit" in scopes and who == self.served.wishes.owner)
        state = self.served.state
        return {
            "cancel": owner and state not in ENDED - {BROKEN},
            "retry": owner and state not in ENDED - {BROKEN} and bool(len(self.execution.failed)),
            "release": owner and bool(self.trying),
            "approve": "admin" in scopes,
        }


def attempted(row: LeaseEnd) -> Attempted:
    """What came of a lease, as whoever looks is told."""
    outcome = OUTCOMES.get(row.answer, UNUSED)
    failure = None if outcome == WENT_WELL else row.failure or row.answer
    known = (row.number, row.task, row.attempt, row.client, row.began, row.ended)
    return Attempted(*known, outcome, failure, row.code, row.memory, row.tail)


class Watching:
    """The workflows of a server that somebody looks at."""

    def __init__(self, service: Service, store: ServiceStore, keeper: Keeper) -> None:
        self._service, self._store, self._keeper = service, store, keeper
        self._known: OrderedDict[str, WatchedServed] = OrderedDict()
        self._building: dict[str, asyncio.Task[WatchedServed]] = {}
        self._meanwhile: dict[str, list[LeaseEnd]] = {}
        self._foreseeing: set[asyncio.Task[None]] = set()

    @property
    def closing(self) -> bool:
        """Whether those who watch should go."""
        return self._service.requests.draining is not None

    async def settled(self) -> None:
        """Comes back when all that was seen is kept; where nothing can be kept, one may look all the same."""
        with suppress(RefusedError):
            await self._keeper.kept()

    def note(self, outcomes: Iterable[LeaseEnd]) -> None:
        """Leases have ended."""
        for row in outcomes if self._known or self._meanwhile else ():
            if row.workflow in self._meanwhile:
                self._meanwhile[row.workflow].append(row)
            elif row.workflow in self._known:
                self._known[row.workflow].attempts.add([attempted(row)])

    async def watched(self, workflow: str) -> WatchedServed:
        """A workflow, as it is now."""
        found = self._known.get(workflow)
        if found is not None and not self._same(found):
            del self._known[workflow]  # another server had it meanwhile
            found = None
        if found is None:
            if workflow not in self._building:
                self._building[workflow] = asyncio.create_task(self._build(workflow))
            found = await asyncio.shield(self._building[workflow])
        self._remember(workflow, found)
        found.renew()
        if found.forecast_due:
            task = asyncio.create_task(asyncio.to_thread(found.foresight()))
            self._foreseeing.add(task)
            task.add_done_callback(self._foreseeing.discard)
        return found

    def _remember(self, workflow: str, found: WatchedServed) -> None:
        """Follow it further, and no longer what nobody looks at, or what is too much together."""
        now, self._known[workflow] = self._service.books.now, found
        found.asked = now
        self._known.move_to_end(workflow)
        while len(self._known) > 1:
            oldest = next(iter(self._known.values()))
            many = sum(len(one.flow) for one in self._known.values()) > MOST_TASKS or len(self._known) > MOST_WATCHED
            if not many and now - oldest.asked < PATIENCE:
                return
            self._known.popitem(last=False)

    def _same(self, found: WatchedServed) -> bool:
        current = self._service.served.get(found.id)
        ended = current is None and found.id in self._service.books.ended and found.served.state in FINAL
        return current is found.served or ended

    async def _build(self, workflow: str) -> WatchedServed:
        """Everything that has happened to a workflow so far, and what takes a moment to work out."""
        service, store = self._service, self._store
        self._meanwhile[workflow] = []
        try:
            found = WatchedServed(await self._served(workflow), service.books)
            kept = await asyncio.to_thread(lambda: [*map(attempted, store.outcomes(workflow))])
            found.attempts.add(kept)
            found.attempts.add(map(attempted, service.books.recent.of(workflow)))
            await asyncio.to_thread(found.prepare)
            found.attempts.add(map(attempted, self._meanwhile[workflow]))
            self._known[workflow] = found  # from here on it is told what ends
            return found
        finally:
            del self._meanwhile[workflow], self._building[workflow]

    async def _served(self, workflow: str) -> Served:
        served = self._service.served.get(workflow)
        if served is not None:
            return served
        row = await asyncio.to_thread(self._store.workflow, workflow) if workflow in self._service.books.ended else None
        if row is None:
            raise RefusedError(404, "there is no such workflow")
        return await asyncio.to_thread(recalled, row, self._store, lambda: self._service.books.now)
