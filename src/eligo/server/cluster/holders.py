"""Holds of workflows on a shared store: each server renews its own for a limited time, and takes free workflows."""

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

LOOK = 1.0  # seconds between two checks of what other servers hold, and what is free
REFRESH = 0.5  # seconds between two checks for changed clients and tokens
RENEW = 5.0  # seconds after which holds are renewed
SURE = HELD - 2.0  # seconds after a renewal in which no other server can take a workflow, whatever the clocks do


class Holding:
    """Keeps the holds of this server, and knows those of the others, until it is closed.

    It also calls *refresh* regularly, which reads what else other servers may have changed.
    """

    def __init__(self, desk: Desk, store: ServiceStore, began: float, refresh: Callable[[], Awaitable[None]]) -> None:
        self.desk, self.store = desk, store
        #: for each held workflow, the address of its server at the last check
        self.holders: dict[str, str] = {}
        #: whether workflows that have not ended are held by other servers, or by none
        self.elsewhere = True
        self._sure, self._renew = began + SURE, 0.0
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(_repeat(self.look, LOOK)), loop.create_task(_repeat(refresh, REFRESH))]

    @property
    def _served(self) -> set[str]:
        return set(self.desk.service.served)

    @property
    def _settled(self) -> set[str]:
        """The workflows for which there is nothing to do: served here, ended, or impossible to restore."""
        books = self.desk.service.books
        return {*books.served, *books.ended, *books.unavailable}

    @property
    def sure(self) -> bool:
        """Whether no other server can hold a workflow that this one held at its last check."""
        return time.monotonic() < self._sure

    async def close(self) -> None:
        """Stop checking; the store releases the holds when it is closed."""
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
        self.elsewhere = bool(set(unheld) | self.holders.keys() - self._settled)
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
        for workflow in held - self._settled:
            await self._adopt(workflow)

    async def _take(self, workflow: str) -> None:
        """Hold a workflow, unless another server takes it first or earlier changes of it are still being written."""
        keeper, service = self.desk.keeper, self.desk.service
        if workflow in service.served or keeper.trouble or workflow in keeper.tainted or service.requests.draining:
            return
        if await keeper.run(partial(self.store.hold, workflow)) is not None:
            self.holders[workflow] = self.store.address  # calls are no longer forwarded to its last holder
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


async def _repeat(look: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Call a function periodically; errors are logged."""
    while True:
        try:
            await look()
        except (OSError, RefusedError) as error:
            LOGGER.info("cannot read the state of other servers now: %s", error)
        except Exception:
            LOGGER.exception("cannot read the state of other servers")
        await asyncio.sleep(seconds)


def take_free(store: ServiceStore) -> list[WorkflowRow]:
    """Take the workflows that no server holds; returns their rows."""
    rows = (store.workflow(id) for id in store.unheld() if store.hold(id) is not None)
    return [row for row in rows if row is not None]


def _clients(store: ServiceStore, ids: set[str]) -> list[ClientRow]:
    return [row for id in ids if (row := store.client(id)) is not None]
