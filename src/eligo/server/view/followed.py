"""Workflows of a server that are viewed: each is followed from its first view on, also after it has ended."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np

from eligo.execution import ALLOCATED, ELIGIBLE, FAILED
from eligo.pages.watched import Watched, Worker
from eligo.policies import PLAN_EFFORT
from eligo.running.states import Curve
from eligo.server.group_commit import Keeper
from eligo.server.http.refusals import RefusedError, unknown_workflow
from eligo.server.rules.clients import Client
from eligo.server.rules.served import BROKEN, ENDED, FINAL, Served
from eligo.server.rules.service import Service
from eligo.server.rules.state import Unavailable
from eligo.stores.service import Changes
from eligo.stores.service_sql import ServiceStore
from eligo.theory.eligibility import eligible_counts
from eligo.work.attempts import Attempt, Lease, split_tails

#: maximum number of followed workflows and of their tasks together, and seconds without a view after which one is dropped
MOST_WATCHED, MOST_TASKS, PATIENCE = 2_000, 2**21, 600.0


class WatchedServed(Watched):
    """A workflow of a server."""

    source = "server"

    def __init__(self, served: Served, service: Service) -> None:
        super().__init__(served.flow)
        self.served, self.execution, self._service, self._books = served, served.execution, service, service.books
        self.id, self.title = served.id, served.row.name
        self.policy = served.wishes.policy
        self._plan = served.order if self.policy in PLAN_EFFORT else None, served.ceiling
        self.asked = 0.0  # time of the last view
        self.renew()

    def renew(self) -> None:
        """Update the times, the running attempts and the pending retries."""
        served, codes, ahead = self.served, self.execution.codes, self._books.ahead
        self.at, self.under_way = self._books.wall, served.state not in ENDED
        leases = (served.leases[number] for numbers in served.holding.values() for number in sorted(numbers)[:1])
        self.trying = {lease.task: lease for lease in leases if codes[lease.task] == ALLOCATED}
        self.again = {v: due + ahead for v, due in served.tries.waiting.items() if codes[v] == FAILED}

    def assigned(self, v: int) -> Lease:
        """See `Watched`: the other tasks of a grant."""
        numbers = self.served.holding.get(v)
        return self.served.leases[min(numbers)]._replace(since=self.at) if numbers else super().assigned(v)

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        order, ceiling = self._plan
        if name == "bound":
            return None if ceiling is None else np.asarray(ceiling, np.int64)
        if order is None or (name == "plan" and self.execution.additions):  # the plan covers only the original tasks
            return None
        return order.astype(np.int64) if name == "order" else eligible_counts(self.flow.dag, order)

    def failure(self, v: int) -> str:
        """See `Looked`."""
        return self.served.tries.causes.get(v) or super().failure(v)

    def failed_for(self) -> Mapping[str, Collection[int]]:
        """See `Looked`."""
        tries = self.served.tries
        return tries.failed_for if len(tries.causes) == len(self._failed) else super().failed_for()

    @property
    def status(self) -> str:
        """See `Watched`."""
        return self.served.state

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        """See `Watched`."""
        submitted = self.served.row.made
        last = self.at if self.under_way else max(self.attempts.latest, default=submitted)
        return [(submitted, max(submitted, last))]

    @property
    def workers(self) -> Sequence[Worker]:
        """See `Watched`: the clients that have run tasks of it and, if it has not ended, all connected clients."""
        books, ids = self._books, {*self.attempts.clients, *(one.client for one in self.trying.values())}
        present = [one for one in books.clients.values() if one.id in ids or (self.under_way and books.is_alive(one))]
        forgotten = [Worker(id, id, 0.0, False) for id in ids if id not in books.clients]
        return [*map(self._worker, present), *forgotten]

    def _worker(self, client: Client) -> Worker:
        books, speed = self._books, self.served.allocator.speeds.of(client.id)
        paused = max(0.0, client.paused - books.now)
        here = (client.seen + books.ahead, books.is_alive(client), client.approved)
        return Worker(client.id, client.name, *here, speed, client.quota, 0, paused)

    def name_of(self, client: str) -> str:
        """See `Looked`: duplicate names are made unique."""
        record = self._books.clients.get(client)
        return client if record is None else record.name

    def printed(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`."""
        rows, tails = self.attempts.rows, self.attempts.tails
        ends = [tails[place] for place in self.attempts.of(v) if place in tails and rows["attempt"][place] == attempt]
        return split_tails(ends[-1])[err] if ends else ""

    @property
    def unmet(self) -> Sequence[str]:
        """See `Watched`."""
        demands = self._books.unmet(self.served, self.execution.ready.numbers)
        return [
            *(one.sentence("ready task") for one in demands),
            *(self.served.space_notes() if self.under_way else ()),
        ]

    def obstacles(self, v: int) -> list[str]:
        """See `Looked`."""
        unmet = self._books.unmet(self.served, np.array([v], np.int32))
        needs = [f"It needs {one.need}; {one.why}." for one in unmet]
        if self.execution.codes[v] == ELIGIBLE and self.under_way and not self.served.may_start(v):
            needs.append("It waits for space: the files between tasks would exceed the limit.")
        return [*self._service.closed(self.served), *needs]

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
            "pause": owner and state not in ENDED,
            "workers": False,
            "retry": owner and state not in ENDED - {BROKEN} and bool(len(self.execution.failed)),
            "release": owner and bool(self.trying),
            "approve": "admin" in scopes,
        }


class Watching:
    """The workflows of a server that are being viewed."""

    def __init__(self, service: Service, store: ServiceStore, keeper: Keeper) -> None:
        self._service, self._store, self._keeper = service, store, keeper
        self._workflows: OrderedDict[str, WatchedServed] = OrderedDict()
        self._building: dict[str, asyncio.Task[WatchedServed]] = {}
        self._meanwhile: dict[str, list[Attempt]] = {}
        self._foreseeing: set[asyncio.Task[None]] = set()
        #: called with all changes before they are committed
        self.followers: list[Callable[[Changes], None]] = []

    end = None  # a server has no end that viewers wait for

    @property
    def closing(self) -> bool:
        """Whether streams should end."""
        return self._service.requests.draining not in {None, "drain"}

    async def settled(self) -> None:
        """Wait until what was shown is committed; returns at once if the store is failing."""
        with suppress(RefusedError):
            await self._keeper.kept()

    def note(self, changes: Changes) -> None:
        """Record ended leases for all followers."""
        for follow in self.followers:
            follow(changes)
        for row in changes.outcomes if self._workflows or self._meanwhile else ():
            if row.workflow in self._meanwhile:
                self._meanwhile[row.workflow].append(row)
            elif row.workflow in self._workflows:
                self._workflows[row.workflow].attempts.add([row])

    async def watched(self, workflow: str) -> WatchedServed:
        """The current state of a workflow."""
        watched = self._workflows.get(workflow)
        if watched is not None and not self._same(watched):
            del self._workflows[workflow]  # another server has held it meanwhile
            watched = None
        if watched is None:
            if workflow not in self._building:
                self._building[workflow] = asyncio.create_task(self._build(workflow))
            watched = await asyncio.shield(self._building[workflow])
        self._remember(workflow, watched)
        watched.renew()
        if watched.forecast_due:
            task = asyncio.create_task(asyncio.to_thread(watched.foresight()))
            self._foreseeing.add(task)
            task.add_done_callback(self._foreseeing.discard)
        return watched

    def _remember(self, workflow: str, watched: WatchedServed) -> None:
        """Keep following a workflow, and drop those without recent views or above the limits."""
        now, self._workflows[workflow] = self._service.books.now, watched
        # a workflow that was viewed before does not change the sum
        tasks = 0 if watched.asked else sum(len(one.flow) for one in self._workflows.values())
        watched.asked = now
        self._workflows.move_to_end(workflow)
        while len(self._workflows) > 1:
            oldest = next(iter(self._workflows.values()))
            many = tasks > MOST_TASKS or len(self._workflows) > MOST_WATCHED
            if not many and now - oldest.asked < PATIENCE:
                return
            self._workflows.popitem(last=False)
            tasks -= len(oldest.flow)

    def _same(self, watched: WatchedServed) -> bool:
        current = self._service.served.get(watched.id)
        ended = current is None and watched.id in self._service.books.ended and watched.served.state in FINAL
        return (current is watched.served or ended) and len(watched.flow) == len(watched.served.flow)

    async def _build(self, workflow: str) -> WatchedServed:
        """Start to follow a workflow: collect its attempts so far, and prepare what takes a while to compute."""
        service, store = self._service, self._store
        self._meanwhile[workflow] = []
        try:
            watched = WatchedServed(await self._find_served(workflow), service)
            await asyncio.to_thread(lambda: watched.attempts.add(store.outcomes(workflow)))  # there may be millions
            watched.attempts.add(service.books.recent.of(workflow))
            await asyncio.to_thread(watched.prepare)
            watched.attempts.add(self._meanwhile[workflow])
            if watched.forecast_due:
                await asyncio.to_thread(watched.foresight())  # a single look has an estimate too
            self._workflows[workflow] = watched  # from now on, `note` adds its attempts
            return watched
        finally:
            del self._meanwhile[workflow], self._building[workflow]

    async def _find_served(self, workflow: str) -> Served:
        served = self._service.served.get(workflow)
        if served is not None:
            return served
        books = self._service.books
        if workflow in books.unavailable:
            raise RefusedError(409, f"this workflow is unavailable: {books.unavailable[workflow].reason}")
        row = await asyncio.to_thread(self._store.workflow, workflow) if workflow in books.ended else None
        if row is None:
            raise unknown_workflow(workflow)
        restored = await asyncio.to_thread(self._service.recalled, row, self._store)
        if isinstance(restored, Unavailable):
            raise RefusedError(409, f"this workflow is unavailable: {restored.reason}")
        return restored
