"""Cleanup: forgets old clients and invalid tokens, and removes files that no workflow needs.

It works in small turns, so that requests never wait for it: each turn checks some clients, forgets some rows and removes some
files.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator
from itertools import islice

from eligo.server.auth.tokens import Gate
from eligo.server.files import Blobs
from eligo.server.group_commit import Keeper
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import LOGGER
from eligo.server.rules.service import Service
from eligo.stores.service_sql import ServiceStore

EVERY, SOON = 60.0, 0.2  # seconds between two turns, usually and if there is more to do
MARK = "whose the folder of files is"
ROUND = 3600.0  # seconds between two passes over all files
SPENT = 600.0  # seconds for which a temporary file stays after its last use: another workflow may have the same content
MOST = 1_000  # clients, tokens or rows of files in a turn


class Tidying:
    """Cleans up the state of one server; *gate* is None if it uses no tokens."""

    def __init__(
        self, service: Service, gate: Gate | None, store: ServiceStore, keeper: Keeper, blobs: Blobs | None
    ) -> None:
        self.service, self.gate, self.store, self.keeper, self.blobs = service, gate, store, keeper, blobs
        self._clients: Iterator[str] = iter(())
        self._files: Iterator[int] = iter(())
        self._began = float("-inf")

    async def for_ever(self) -> None:
        """Run turns until cancelled; errors are logged."""
        more = False
        while True:
            await asyncio.sleep(SOON if more else EVERY)
            try:
                more = await self.turn()
            except (OSError, RefusedError) as error:
                LOGGER.info("cleanup is delayed: %s", error)
                more = False
            except Exception:
                LOGGER.exception("cleanup failed")
                more = False

    async def turn(self) -> bool:
        """Run one turn; returns whether there is more to do at once."""
        if self.keeper.trouble is not None:
            return False
        await self.forget_clients()
        self.forget_tokens()
        rows = await self.forget_results()
        await self.keeper.kept()
        return await self.remove_files() or rows

    # Clients and tokens

    async def forget_clients(self) -> None:
        """Forget clients without leases that have not responded for long; those with results keep their rows."""
        clients = list(islice(self._clients, MOST))
        if not clients:
            self._clients = iter(list(self.service.clients))
            clients = list(islice(self._clients, MOST))
        away = self.service.away(time.monotonic(), clients)
        elsewhere = await asyncio.to_thread(self._elsewhere, away) if self.store.shared and away else set()
        forgotten = set(self.service.forget_clients(time.monotonic(), away, elsewhere)) - elsewhere
        if self.gate is not None and forgotten:
            self._drop(self.gate.drop(forgotten))

    def _elsewhere(self, clients: list[str]) -> set[str]:
        """The clients, among these, that have called another server in the meantime."""
        rows = [row for client in clients if (row := self.store.client(client)) is not None]
        return {row.id for row in rows if not self.service.is_away(row.seen - self.service.books.ahead, row.approved)}

    def forget_tokens(self) -> None:
        """Forget tokens that have been invalid for long."""
        if self.gate is not None:
            self._drop(self.gate.forget(time.time(), self.service.books.terms.forget_strangers, MOST))

    def _drop(self, hashes: list[str]) -> None:
        self.service.books.changes.tokens_gone += [(hash,) for hash in hashes]

    # Files

    async def forget_results(self) -> bool:
        """Forget the files of workflows that ended long ago; returns whether there may be more."""
        before = time.time() - self.service.books.terms.keep_results
        rows = await asyncio.to_thread(self.store.outdated, before, MOST)
        self.service.books.changes.files_gone += rows
        return len(rows) == MOST

    async def remove_files(self) -> bool:
        """Remove some unneeded files; returns whether this round has more to do."""
        if self.blobs is None:
            return False
        spent = self.service.books.spent
        if (some := list(islice(spent, MOST))) and await self._owns(self.blobs):
            spent.difference_update(await asyncio.to_thread(self._remove_spent, self.blobs, some))
        freed = await asyncio.to_thread(next, self._files, None)
        if freed is None and time.monotonic() - self._began > ROUND:
            self._began = time.monotonic()
            if not await self._owns(self.blobs):
                LOGGER.warning("%s belongs to another store: removing nothing from it", self.blobs.folder)
                return False
            self._files = self.blobs.swept(self._needed)
            freed = await asyncio.to_thread(next, self._files, None)
        return freed is not None

    def _remove_spent(self, blobs: Blobs, spent: list[str]) -> set[str]:
        """Remove former temporary files that were not used for a while; returns those that are settled."""
        needed = self._needed(spent)
        return {name for name in spent if name in needed or blobs.discard(name, SPENT)}

    async def _owns(self, blobs: Blobs) -> bool:
        """Whether the folder belongs to this store; which files another store needs is unknown."""
        mark = (await asyncio.to_thread(self.store.facts)).get(MARK)
        if mark is None:
            mark = secrets.token_hex(8)
            self.service.books.changes.facts.append((MARK, mark))
            await self.keeper.kept()
        return await asyncio.to_thread(blobs.claimed, mark)

    def _needed(self, hashes: list[str]) -> set[str]:
        return self.store.needed(hashes, time.time() - self.service.books.terms.keep_results)
