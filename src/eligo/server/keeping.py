"""Nobody is answered before what the answer rests on is kept: changes gather while the disk is busy, and go together.

The rules run in the event loop; the store is written by one thread. Where the store cannot be written, those who wait are
refused with 503, nothing new is done, and the same changes are tried again until they are kept.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter

from eligo.server.refusing import RefusedError
from eligo.stores.serving import Changes, ServiceStore

AGAIN = 1.0  # seconds until a store that could not be written is tried again
Waiter = asyncio.Future[None]


class Keeper:
    """Keeps changes in groups.

    *take* gives what is to be kept now; *seen* is told how long a group of how many took; *broken* that something can never
    be kept: the server must end, and begin again from what is kept.
    """

    def __init__(
        self,
        store: ServiceStore,
        take: Callable[[], Changes | None],
        seen: Callable[[float, int], None] = lambda seconds, size: None,
        broken: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.store, self._take, self._seen, self._broken = store, take, seen, broken
        #: why nothing can be kept just now
        self.trouble: str | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="eligo store")
        self._waiters: list[Waiter] = []
        self._writing = self._planned = False
        self._stuck: Changes | None = None

    def check(self) -> None:
        """Refuse where nothing can be kept now."""
        if self.trouble is not None:
            raise RefusedError(503, "what the server must not forget cannot be written now", after=AGAIN)

    def kept(self, waiter: Waiter | None = None) -> Waiter:
        """Done as soon as all that has happened up to now is kept."""
        waiter = self._loop.create_future() if waiter is None else waiter
        self._waiters.append(waiter)
        if not (self._writing or self._planned):
            self._planned = True
            self._loop.call_soon(self._begin)
        return waiter

    def _begin(self) -> None:
        self._planned = False
        if self._writing:
            return
        if self._stuck is not None:
            self._write(self._stuck, [])
            return
        waiters, self._waiters = self._waiters, []
        changes = self._take()
        if changes is None:
            _wake(waiters)
            return
        self._write(changes, waiters)

    def _write(self, changes: Changes, waiters: list[Waiter]) -> None:
        self._writing = True
        began = perf_counter()
        try:
            self.store.prepare([changes])
        except Exception as error:  # whatever it is: those who wait must hear of it
            self._writing = False
            self._fail(error, changes, waiters)
            return
        writing = self._loop.run_in_executor(self._thread, self.store.finish)
        writing.add_done_callback(lambda done: self._end(done, changes, waiters, began))

    def _end(self, done: asyncio.Future[None], changes: Changes, waiters: list[Waiter], began: float) -> None:
        self._writing = False
        error = done.exception()
        if error is None:
            if self.trouble is not None:
                logging.getLogger("eligo.server").warning("the store can be written again")
            self._stuck = self.trouble = None
            self._seen(perf_counter() - began, len(waiters))
            _wake(waiters)
            if self._waiters:
                self._begin()
            return
        self._fail(error, changes, waiters)

    def _fail(self, error: BaseException, changes: Changes, waiters: list[Waiter]) -> None:
        if self.trouble is None:
            logging.getLogger("eligo.server").error("the store cannot be written: %s", error)
        self.trouble, self._stuck = str(error), changes
        waiters, self._waiters = waiters + self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(
                    RefusedError(503, "what the server must not forget cannot be written now", after=AGAIN)
                )
        if isinstance(error, OSError):
            self._loop.call_later(AGAIN, self._begin)
        else:
            self._broken(error)

    async def close(self) -> None:
        """Keep what is left, as far as that can be done."""
        with suppress(RefusedError):
            await self.kept()
        self._thread.shutdown()


def _wake(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
