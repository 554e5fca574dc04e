"""A leaf server: it takes tasks from a parent server as a client, and hands them out to its own clients.

The client's folder keeps each grant from before its tasks are handed out until the parent has all its results.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from eligo.client.assignment import Assigned, assignments
from eligo.client.calls import LONGEST_TOLD_WAIT, Calls, ServerAwayError
from eligo.client.enrolment import Enrolment
from eligo.client.folder import WorkFolder
from eligo.client.options import WorkOptions
from eligo.client.results import Courier, Delivery, HeldLeases, Tally
from eligo.client.transfers import Depot, HashedFile
from eligo.client.trust import Trust
from eligo.errors import EligoError, FormatError
from eligo.server.app import PATIENT, Server, Setup, run_server
from eligo.server.files import Blobs
from eligo.server.http.refusals import RefusedError
from eligo.server.operations import Operations
from eligo.server.rules.leaf import KEY, Leaf, Want, given_files, grant_of, prepare_grant
from eligo.stores.service import Changes

LOOK, SELDOM = 0.02, 1.0  # seconds between checks: of results and demand; of leases and clients
FETCHERS = 4  # concurrent downloads
FAREWELL = 10.0  # seconds that the leaf waits for its parent at the end
MOST_GRANTS = 100  # in one request
T = TypeVar("T")


class LeafDepot(Depot):
    """Transfers of files between the parent and the storage of this server."""

    def __init__(self, folder: str, calls: Calls, blobs: Blobs) -> None:
        super().__init__(folder, calls, 0)
        self._blobs = blobs

    def path(self, sha256: str) -> str:
        """The path of a file in the storage, or of its temporary copy while it is fetched."""
        blob = self._blobs.path(sha256)
        return str(blob) if blob.exists() else super().path(sha256)

    def fetch(self, file: HashedFile, until: Callable[[], bool]) -> None:
        """Fetch a file into the storage of this server, unless it is there."""
        if self._blobs.size(file.sha256) is None:
            with self.borrowed(file, until) as path:
                self._blobs.add(path)
            with suppress(FileNotFoundError):
                os.unlink(super().path(file.sha256))


class UntrustedError(EligoError):
    """A task is not signed by a trusted key."""


class Upstream:
    """The client of the parent, in the event loop of the server; its calls wait in threads."""

    def __init__(self, options: WorkOptions, size: int | None, folder: WorkFolder, say: Callable[[str], None]) -> None:
        self._options, self._size, self._folder, self._say = options, size, folder, say
        self._calls = Calls(options.url, options.ca, say)
        self._leases, self._trust = HeldLeases(self._calls), Trust(options.trust)
        self._enrolment = Enrolment(self._calls, folder, options, say, self._is_over)
        self._asking, self._sending = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._fetching = ThreadPoolExecutor(FETCHERS)
        self._over, self._dismissed = False, False
        self._takes = set[asyncio.Task[None]]()
        #: why it cannot continue
        self.error: BaseException | None = None

    def begin(self, server: Server) -> None:
        """Start when the server is running: resume the grants in the folder, and request more."""
        self._server, self._leaf = server, Leaf(server.service)
        self._depot = LeafDepot(f"{self._folder.path}/files", self._calls, server.blobs)
        self._courier = Courier(self._calls, self._depot, self._folder, self._leases, self._say)
        server.watching.followers.append(self._leaf.note)
        self._leases.start()
        self._running = asyncio.create_task(self._run())

    def end(self) -> Tally:
        """Finish after the server has ended: deliver the results, and return the other tasks."""
        self._over = True
        self._calls.cut()
        for pool in (self._asking, self._sending, self._fetching):
            pool.shutdown()
        late = time.monotonic() + FAREWELL
        results = self._leaf.farewell()
        try:
            self._courier.deliver(results, lambda: time.monotonic() > late)
            self._forget(self._leaf.settle(time.monotonic(), results))
        except EligoError as error:
            later = "are still held and will be delivered or returned at the next start"
            self._say(f"{len(results)} tasks {later}: {error}")
        self._leases.close()
        self._calls.close()
        return self._courier.tally()

    def _is_over(self) -> bool:
        return self._over or self._draining

    @property
    def _draining(self) -> bool:
        """Whether the server is about to end, and not just drained until further notice."""
        return self._server.service.requests.draining in {"pause", "stop"}

    async def _run(self) -> None:
        """Run until the server ends; an error ends the server in an orderly way."""
        try:
            await self._in(self._asking, self._enrolment.enrol)
            await self._restore()
            await asyncio.gather(self._ask_for_ever(), self._deliver_for_ever(), self._look_for_ever())
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if not (self._is_over() and isinstance(error, ServerAwayError)):
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End the server as a signal would; the error is raised after it has ended."""
        self.error = error
        if not self._draining:
            signal.raise_signal(signal.SIGTERM)

    async def _in(self, pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    async def _await_commit(self) -> None:
        """Wait until all changes of this server are committed."""
        while True:
            try:
                return await self._server.desk.settle()
            except RefusedError:
                await asyncio.sleep(SELDOM)

    # Grants

    async def _restore(self) -> None:
        """Resume the grants in the folder, and cancel workflows without one."""
        for words in await asyncio.to_thread(self._folder.owed):
            if isinstance(words.get("grant"), dict):
                self._take_later(words["grant"], words.get("seconds"))
        await asyncio.gather(*self._takes)
        for workflow in self._leaf.strays():
            self._server.service.cancel(time.monotonic(), workflow)
        await self._await_commit()
        for grant in self._leaf.grants.values():
            self._leaf.note(await asyncio.to_thread(self._load_changes, grant.workflow))

    def _load_changes(self, workflow: str) -> Changes:
        store = self._server.store
        return Changes(outcomes=[*store.outcomes(workflow)], files=store.files(workflow))

    async def _ask_for_ever(self) -> None:
        while not (self._draining or self._dismissed):
            want = self._leaf.want(time.monotonic())
            if want is None or self._server.service.requests.draining:
                await asyncio.sleep(LOOK)
                continue
            began = time.monotonic()
            reply = await self._in(self._asking, partial(self._ask, self._request(want)))
            grants = reply.get("grants")
            for words in grants if isinstance(grants, list) else ():
                self._take_later(words, reply.get("lease"))
            self._dismissed = reply.get("stop") is True
            if not grants:
                await asyncio.sleep(_pause(reply, time.monotonic() - began))

    def _request(self, want: Want) -> dict[str, Any]:
        options, tasks = self._options, want.tasks
        size = tasks if self._size is None else self._size
        memory = None if want.memory == float("inf") else want.memory
        kind = {"seconds": options.seconds} if options.seconds is not None else {"size": size}
        count = 1 if options.seconds is not None else min(-(-tasks // size), MOST_GRANTS)
        machine = {"cores": want.cores, "memory": memory, "labels": (*options.labels, "launch")}
        return {"count": count, **kind, "wait": options.poll, **machine}

    def _ask(self, words: Mapping[str, Any]) -> dict[str, Any]:
        wait = self._options.poll
        return self._enrolment.call(lambda: self._calls.post("/v1/request", words, self._is_over, wait))

    def _take_later(self, words: Mapping[str, Any], seconds: object) -> None:
        try:
            grants = assignments({"grants": [words]})
        except FormatError as error:
            self._say(str(error))
            return
        for tasks in grants:
            self._leaf.coming += len(tasks)
            taking = asyncio.create_task(self._take(tasks, words, seconds))
            self._takes.add(taking)
            taking.add_done_callback(self._end_take)

    def _end_take(self, taking: "asyncio.Task[None]") -> None:
        self._takes.discard(taking)
        error = None if taking.cancelled() else taking.exception()
        if error is not None and self.error is None:
            self._fail(error)

    async def _take(self, tasks: Sequence[Assigned], words: Mapping[str, Any], seconds: object) -> None:
        """Hold a grant and hand out its tasks; if that is impossible, return it to the parent with the reason."""
        with suppress(ServerAwayError):  # this server is about to end, and the grant stays in its folder
            try:
                await self._adopt(tasks, words, seconds)
            except UntrustedError as error:
                self._say(f"returning {len(tasks)} tasks: {error}")
                await self._refuse(tasks, str(error), distrusted=True)
            except EligoError as error:
                await self._refuse(tasks, str(error))
            except (OSError, RefusedError) as error:
                self._say(f"returning {len(tasks)} tasks: {error}")
                await self._refuse(tasks, None)
                await asyncio.sleep(SELDOM)
            finally:
                self._leaf.coming -= len(tasks)

    async def _adopt(self, tasks: Sequence[Assigned], words: Mapping[str, Any], seconds: object) -> None:
        key = KEY + tasks[0].lease
        self._leases.hold([task.lease for task in tasks], seconds)
        owed = {"lease": key, "outcome": "returned", "seconds": seconds, "grant": words}
        await asyncio.to_thread(self._folder.owe, key, owed, durable=True)
        self._check(tasks)
        grant = grant_of(key, tasks, words)
        fetches = [partial(self._depot.fetch, file, self._is_over) for file in given_files(tasks).values()]
        await asyncio.gather(*(self._in(self._fetching, fetch) for fetch in fetches))
        service = self._server.service
        ready = await asyncio.to_thread(lambda: service.built(time.monotonic(), prepare_grant(grant), key))
        self._leaf.adopt(time.monotonic(), grant, ready)
        await self._await_commit()

    def _check(self, tasks: Sequence[Assigned]) -> None:
        """Refuse tasks that are invalid, not trusted, or cannot be passed on unchanged."""
        for task in tasks:
            if (why := self._trust.distrusts(task)) is not None:
                raise UntrustedError(f"{task.task}: {why}")
            why = task.wrong
            if why is None and task.environment:
                why = "it sets environment variables, which a leaf server does not pass on"
            if why is not None:
                raise FormatError(f"{task.task}: {why}")

    async def _refuse(self, tasks: Sequence[Assigned], why: str | None, distrusted: bool = False) -> None:
        """Return the tasks of a grant; the first one as failed if there is a reason *why*, unless they are *distrusted*."""
        results = [Delivery(task.lease, "returned", distrusted=distrusted) for task in tasks]
        if why is not None and not distrusted:
            results[0] = Delivery(tasks[0].lease, "failed", failure=why)
        await self._in(self._sending, partial(self._deliver, results))
        self._forget([KEY + tasks[0].lease])

    # Results

    async def _deliver_for_ever(self) -> None:
        while not self._draining:
            results = self._leaf.due()
            if not results:
                await asyncio.sleep(LOOK)
                continue
            await self._await_commit()
            await self._in(self._sending, partial(self._deliver, results))
            self._forget(self._leaf.settle(time.monotonic(), results))

    def _deliver(self, results: Sequence[Delivery]) -> None:
        self._enrolment.call(lambda: self._courier.deliver(results, self._is_over))

    def _forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._folder.settle(key)

    async def _look_for_ever(self) -> None:
        """Drop grants that the parent took back, or all if no client is left; end when the parent has no more tasks."""
        while not self._draining:
            await asyncio.sleep(SELDOM)
            now = time.monotonic()
            self._leaf.drop_gone(now, self._leases.gone)
            self._leaf.give_up(now)
            await self._purge()
            if self._dismissed and not (self._leaf.grants or self._takes):
                await self._dismiss()

    async def _purge(self) -> None:
        """Forget grants of which the parent has all results."""
        operations, ended = Operations(self._server.api), self._server.service.books.ended
        over, self._leaf.over = self._leaf.over, []
        for workflow in over:
            if workflow in ended:
                with suppress(EligoError):  # the store cannot be written now, or the grant is forgotten already
                    await operations.forget(workflow)
            if workflow in ended or workflow in self._server.service.served:
                self._leaf.over.append(workflow)

    async def _dismiss(self) -> None:
        """Dismiss the clients, because the parent has no more tasks, and end."""
        self._server.desk.drain(stop=True)
        end = time.monotonic() + PATIENT
        while self._server.guests() and time.monotonic() < end:
            await asyncio.sleep(LOOK)
        signal.raise_signal(signal.SIGTERM)


def _pause(reply: Mapping[str, Any], took: float) -> float:
    """The seconds to wait after a reply without grants."""
    wait = reply.get("wait")
    if isinstance(wait, int | float) and wait > 0:
        return min(wait, LONGEST_TOLD_WAIT) * random.uniform(1.0, 1.2)  # noqa: S311 - no secret
    return LOOK if took > SELDOM else random.uniform(0, SELDOM)  # noqa: S311 - no secret


def serve_below(
    options: WorkOptions,
    size: int | None,
    setup: Setup,
    ready: Callable[[Server, str], None],
    say: Callable[[str], None],
) -> Tally:
    """Serve tasks of the parent until a signal, or until the parent has no more tasks."""
    folder = WorkFolder(options.home(), options.url)
    try:
        folder.clean()
        upstream = Upstream(options, size, folder, say)

        def begin(server: Server, address: str) -> None:
            ready(server, address)
            upstream.begin(server)

        run_server(setup, [], begin)
        tally = upstream.end()
    finally:
        folder.close()
    if upstream.error is not None:
        raise upstream.error
    return tally
