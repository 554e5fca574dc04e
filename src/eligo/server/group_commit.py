"""Nobody is answered before what the answer rests on is kept: changes gather while the disk is busy, and go together.

The rules run in the event loop; the store is written by one thread. Where the store cannot be written, those who wait are
refused with 503, nothing new is done, and the same changes are tried again until they are kept. What is of workflows that
another server holds now is dropped, and whoever waits for it comes again.
"""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import TypeVar

from eligo.errors import InputError, NotHeldError
from eligo.server.http.refusals import RefusedError
from eligo.server.logs import LOGGER, event
from eligo.stores.service import Changes
from eligo.stores.service_sql import ServiceStore

UNWRITTEN = "the store cannot be written now; try again"
MOVED = "another server has taken over this workflow; try again"
LARGE = 2**18  # bytes of a document: to hand it to the store takes too long for the event loop
MANY = 5_000  # files: the same
AGAIN = 1.0  # seconds until a store that could not be written is tried again
Waiter = asyncio.Future[None]
T = TypeVar("T")


class Keeper:
    """Keeps changes in groups.

    *take* gives what is to be kept now; *seen* is told how long a group of how many took; *broken* that something can never
    be kept: the server must end, and begin again from what is kept; *lost* which workflows another server holds now.
    """

    def __init__(
        self,
        store: ServiceStore,
        take: Callable[[], Changes | None],
        on_commit: Callable[[float, int], None] = lambda seconds, size: None,
        broken: Callable[[BaseException], None] = lambda error: None,
        lost: Callable[[Collection[str]], None] = lambda workflows: None,
    ) -> None:
        self.store, self._take, self._seen, self._broken, self._lost = store, take, on_commit, broken, lost
        #: why nothing can be kept just now, and how often a transaction failed
        self.trouble: str | None = None
        self.failures = 0
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="eligo store")
        self._waiters: list[Waiter] = []
        self._writing = self._planned = self._halted = False
        self._stuck: Changes | None = None
        self._retrying: asyncio.TimerHandle | None = None
        #: workflows that were lost while something of them may still be on its way to the store
        self.tainted: set[str] = set()
        #: workflows that were submitted and are still on their way to the store
        self.new: set[str] = set()

    def check(self) -> None:
        """Refuse where nothing can be kept now."""
        if self.trouble is not None:
            raise RefusedError(503, UNWRITTEN, after=AGAIN)

    def kept(self, waiter: Waiter | None = None) -> Waiter:
        """Done as soon as all that has happened up to now is kept."""
        waiter = self._loop.create_future() if waiter is None else waiter
        if self._retrying is not None:  # nothing is tried before its time
            _refuse([waiter], UNWRITTEN)
            return waiter
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
        if self._halted:
            _refuse(waiters, UNWRITTEN)
            return
        try:
            changes = self._take()
        except Exception as error:  # what was taken of it is gone: nothing may be written behind that hole
            self._halted, self.trouble = True, str(error)
            _refuse(waiters, UNWRITTEN)
            self._broken(error)
            return
        if changes is None:
            _wake(waiters)
            return
        self._write(changes, waiters)

    def _write(self, changes: Changes, waiters: list[Waiter]) -> None:
        self._writing = True
        self.new = {row.id for row in changes.workflows}
        began = perf_counter()
        documents = any(len(row.document) > LARGE for row in changes.workflows)
        large = bool(changes.parts) or len(changes.files) > MANY or documents
        try:
            if not large:
                self.store.prepare([changes])
        except Exception as error:  # whatever it is: those who wait must hear of it
            self._writing = False
            self._failed(error, changes, waiters)
            return
        write = partial(self.store.commit, [changes]) if large else self.store.finish
        writing = self._loop.run_in_executor(self._thread, write)
        writing.add_done_callback(lambda done: self._end(done, changes, waiters, began))

    def _end(self, done: asyncio.Future[None], changes: Changes, waiters: list[Waiter], began: float) -> None:
        self._writing = False
        error = done.exception()
        if error is None:
            if self.trouble is not None:
                LOGGER.warning("the store is writable again", extra=event("store_recovered"))
            self._stuck = self.trouble = None
            self.tainted.clear()
            self.new = set()
            self._seen(perf_counter() - began, len(waiters))
            _wake(waiters)
            if self._waiters:
                self._begin()
            return
        self._failed(error, changes, waiters)

    def _failed(self, error: BaseException, changes: Changes, waiters: list[Waiter]) -> None:
        if isinstance(error, NotHeldError):
            self._part(set(error.workflows), changes, waiters)
        elif isinstance(error, InputError) and changes.workflows and self.store.shared:  # others may have them already
            self._part({row.id for row in changes.workflows}, changes, waiters)
        else:
            self._fail(error, changes, waiters)

    def _part(self, workflows: set[str], changes: Changes, waiters: list[Waiter]) -> None:
        """Keep the rest of a group, without what is of these workflows."""
        self.drop(workflows)
        _refuse(waiters, MOVED)
        rest = changes.without(workflows | self.tainted)
        self.tainted.clear()
        self.trouble = None
        self._stuck = rest if rest else None
        self._begin()

    def drop(self, workflows: Collection[str]) -> None:
        """Drop workflows that other servers hold; waiting requests are refused and retried."""
        self._lost(workflows)
        self.tainted.update(workflows if self._writing or self._stuck is not None else ())
        waiters, self._waiters = self._waiters, []
        _refuse(waiters, MOVED)

    async def run(self, work: Callable[[], T]) -> T:
        """Do something with the store between two groups."""
        return await self._loop.run_in_executor(self._thread, work)

    def _fail(self, error: BaseException, changes: Changes, waiters: list[Waiter]) -> None:
        if self.trouble is None:
            LOGGER.error("the store cannot be written: %s", error, extra=event("store_failed", error=str(error)))
        self.trouble, self._stuck = str(error), changes
        self.failures += 1
        waiters, self._waiters = waiters + self._waiters, []
        _refuse(waiters, UNWRITTEN)
        if isinstance(error, OSError):
            self._retrying = self._retrying or self._loop.call_later(AGAIN, self._try_again)
        else:
            self._broken(error)

    def _try_again(self) -> None:
        self._retrying = None
        self._begin()

    async def close(self) -> None:
        """Write pending changes, as far as possible."""
        with suppress(RefusedError):
            await self.kept()
        self._thread.shutdown()


def _refuse(waiters: list[Waiter], sentence: str) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(RefusedError(503, sentence, after=AGAIN))


def _wake(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
