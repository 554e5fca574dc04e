"""Several servers on one store: each holds workflows for a while, and takes those that nobody holds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from eligo.server.dispatcher import Desk
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import LOGGER, log_unavailable
from eligo.server.rules.served import FINAL
from eligo.server.rules.state import Unavailable
from eligo.stores.service import HELD, ClientRow, WorkflowRow
from eligo.stores.service_sql import ServiceStore

LOOK = 1.0  # seconds between two looks at what others hold, and what nobody does
REFRESH = 0.5  # seconds between two looks at who may come in
RENEW = 5.0  # seconds after which what is held is held anew
SURE = HELD - 2.0  # seconds after that for which nobody else can have taken it, whatever the clocks do


class Holding:
    """What this server holds, and where the rest is; looks after that until it is closed.

    *refresh* is called now and then: it reads what else other servers may have changed.
    """

    def __init__(self, desk: Desk, store: ServiceStore, began: float, refresh: Callable[[], Awaitable[None]]) -> None:
        self.desk, self.store = desk, store
        #: the addresses of servers by what they hold, as of the last look
        self.holders: dict[str, str] = {}
        #: whether other servers hold something that goes on, or nobody does
        self.elsewhere = True
        self._sure, self._renew = began + SURE, 0.0
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(_again(self.look, LOOK)), loop.create_task(_again(refresh, REFRESH))]

    @property
    def _served(self) -> set[str]:
        return set(self.desk.service.served)

    @property
    def _known(self) -> set[str]:
        """The workflows for which there is nothing to do: served here, ended, or impossible to restore."""
        books = self.desk.service.books
        return {*books.served, *books.ended, *books.unavailable}

    @property
    def sure(self) -> bool:
        """Whether no other server can hold what this one held at its last look."""
        return time.monotonic() < self._sure

    async def close(self) -> None:
        """Look no more; the store lets go of what is held when it is closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> None:
        """Renew the holds of this server, drop lost workflows, and take free ones."""
        began = time.monotonic()
        if began >= self._renew or not self.sure:
            await self._hold_on(began)
        unheld = await asyncio.to_thread(self.store.unheld)
        for workflow in unheld:
            await self._take(workflow)
        before, self.holders = self.others(), await asyncio.to_thread(self.store.holders)
        self.elsewhere = bool(set(unheld) | self.holders.keys() - self._known)
        if self.others() - before:
            self.desk.service.requests.hurry(time.monotonic())

    def others(self) -> set[str]:
        """The addresses of the other servers that hold something."""
        return set(self.holders.values()) - {self.store.address, ""}

    async def _hold_on(self, began: float) -> None:
        keeper, books = self.desk.keeper, self.desk.service.books
        stored = self._served - keeper.new - {row.id for row in books.changes.workflows}
        held = await keeper.run(partial(self.store.keep_holding, HELD))
        self._sure, self._renew = began + SURE, began + RENEW
        lost = (stored & self._served) - held
        if lost:
            LOGGER.warning("other servers have taken over these workflows: %s", ", ".join(lost))
            keeper.drop(lost)
        for workflow in books.unavailable.keys() - held:
            del books.unavailable[workflow]
        for workflow in held - self._known:
            await self._adopt(workflow)

    async def _take(self, workflow: str) -> None:
        """Hold a workflow, unless somebody is sooner or something that was done with it before is still on its way."""
        keeper, service = self.desk.keeper, self.desk.service
        if workflow in service.served or keeper.trouble or workflow in keeper.tainted or service.requests.draining:
            return
        if await keeper.run(partial(self.store.hold, workflow)) is not None:
            self.holders[workflow] = self.store.address  # nothing more is passed on to who held it
            await self._adopt(workflow)

    async def _adopt(self, workflow: str) -> None:
        service = self.desk.service
        row = await asyncio.to_thread(self.store.workflow, workflow)
        if row is None or row.state in FINAL or workflow in service.served or workflow in self.desk.keeper.tainted:
            return
        restored = await asyncio.to_thread(service.recalled, row, self.store)
        leases = () if isinstance(restored, Unavailable) else restored.leases.values()
        for client in await asyncio.to_thread(_clients, self.store, {one.client for one in leases}):
            service.learn(client)
        fault = service.adopt(time.monotonic(), restored)
        if fault is not None:
            log_unavailable(fault.row.id, fault.reason)
        if workflow in service.served:
            LOGGER.info("now serving %s", workflow)
        await self.desk.settle()


async def _again(look: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Look again and again, whatever comes of it."""
    while True:
        try:
            await look()
        except (OSError, RefusedError) as error:
            LOGGER.info("cannot read the state of other servers now: %s", error)
        except Exception:
            LOGGER.exception("cannot read the state of other servers")
        await asyncio.sleep(seconds)


def taken(store: ServiceStore) -> list[WorkflowRow]:
    """Take the workflows that no server holds; returns their rows."""
    rows = (store.workflow(id) for id in store.unheld() if store.hold(id) is not None)
    return [row for row in rows if row is not None]


def _clients(store: ServiceStore, ids: set[str]) -> list[ClientRow]:
    return [row for id in ids if (row := store.client(id)) is not None]
