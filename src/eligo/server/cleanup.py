"""Cleanup: forgets old clients and invalid tokens, and removes files that no workflow needs.

It works in small turns, so that requests never wait for it: each turn checks some clients, forgets some rows and removes some
files.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import itemgetter

from eligo.server.auth.tokens import Gate
from eligo.server.files import Blobs
from eligo.server.group_commit import Keeper
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import LOGGER
from eligo.server.rules.results import BRIEFLY_UNUSED
from eligo.server.rules.service import Service
from eligo.stores.service_sql import ServiceStore

EVERY, SOON = 60.0, 0.2  # seconds between two turns, usually and if there is more to do
HURRY = 1.0  # seconds between two removals of temporary files for workflows with a limit of space
MARK = "whose the folder of files is"
ROUND = 3600.0  # seconds between two passes over all files
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
        more, due = False, time.monotonic() + EVERY
        while True:
            await asyncio.sleep(SOON if more else HURRY)
            try:
                if more or time.monotonic() >= due:
                    more, due = await self.turn(), time.monotonic() + EVERY
                elif BRIEFLY_UNUSED in self.service.books.spent.values() and self.keeper.trouble is None:
                    await self.keeper.kept()
                    await self.remove_spent()
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
        await self.remove_spent()
        freed = await asyncio.to_thread(next, self._files, None)
        if freed is None and time.monotonic() - self._began > ROUND:
            self._began = time.monotonic()
            if not await self._owns(self.blobs):
                LOGGER.warning("%s belongs to another store: removing nothing from it", self.blobs.folder)
                return False
            self._files = self.blobs.swept(self._needed)
            freed = await asyncio.to_thread(next, self._files, None)
        return freed is not None

    async def remove_spent(self) -> None:
        """Remove some of the temporary files that no task needs any more."""
        spent = self.service.books.spent
        if self.blobs is None or not spent or not await self._owns(self.blobs):
            return
        some = dict(sorted(spent.items(), key=itemgetter(1))[:MOST])  # those first that stay for a short time only
        for name in await asyncio.to_thread(self._remove_spent, self.blobs, some):
            spent.pop(name, None)

    def _remove_spent(self, blobs: Blobs, spent: Mapping[str, float]) -> list[str]:
        """Remove former temporary files that were not used for a while; returns those that are settled."""
        now = time.time()  # what is used from now on stays: a workflow that is not in `needed` may need it
        needed = self._needed([*spent])
        return [name for name, unused in spent.items() if name in needed or blobs.discard(name, now - unused)]

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
