"""Group commit: changes collect while the disk is busy and are committed together; answers wait for their commit.

The rules run in the event loop; one thread writes the store. While the store cannot be written, waiting requests are refused
with 503, nothing new starts, and the same changes are retried until they are committed. Changes of workflows that another
server holds now are dropped, and their requests are refused with 503, so that clients repeat them.
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
LARGE = 2**18  # bytes of a document that takes too long to prepare in the event loop
MANY = 5_000  # files in one commit that take too long as well
AGAIN = 1.0  # seconds before a failed commit is retried
Waiter = asyncio.Future[None]
T = TypeVar("T")


class Keeper:
    """Commits changes in groups.

    *take* returns the changes to commit. The keeper calls *on_commit* with the seconds and number of answers of each group,
    *broken* with an error that no retry can fix, so that the server must be restarted from the store, and *lost* with the
    workflows that another server holds now.
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
        #: why the store cannot be written now, and the number of failed transactions
        self.trouble: str | None = None
        self.failures = 0
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="eligo store")
        self._waiters: list[Waiter] = []
        self._writing = self._planned = self._halted = False
        self._stuck: Changes | None = None
        self._retrying: asyncio.TimerHandle | None = None
        #: lost workflows of which changes may still be waiting to be written
        self.tainted: set[str] = set()
        #: submitted workflows that are being written
        self.new: set[str] = set()

    def check(self) -> None:
        """Raise 503 while the store cannot be written."""
        if self.trouble is not None:
            raise RefusedError(503, UNWRITTEN, after=AGAIN)

    def kept(self, waiter: Waiter | None = None) -> Waiter:
        """A future that is done when all changes up to now are committed."""
        waiter = self._loop.create_future() if waiter is None else waiter
        if self._retrying is not None:  # nothing is written before the next retry
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
        except Exception as error:  # some changes may be lost, so no later ones may be written
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
        except Exception as error:  # waiting requests must be refused, whatever the error is
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
        elif isinstance(error, InputError) and changes.workflows and self.store.shared:  # another server may have them
            self._part({row.id for row in changes.workflows}, changes, waiters)
        else:
            self._fail(error, changes, waiters)

    def _part(self, workflows: set[str], changes: Changes, waiters: list[Waiter]) -> None:
        """Commit a group without the changes of these workflows."""
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
        """Call a function of the store between two groups, in its thread."""
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
