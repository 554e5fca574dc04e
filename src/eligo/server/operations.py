"""Handlers for owners and operators: pause, resume, retry and purge workflows, pause and tag clients, drain the server."""

import asyncio
import time

from eligo.server.http.handlers import Api
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall, endpoint
from eligo.server.rules.served import BROKEN
from eligo.server.rules.service import Service
from eligo.server.schema import (
    ChangedWords,
    CountWords,
    DoneWords,
    DrainWords,
    HealthWords,
    ReleaseWords,
    RetryWords,
    TagsWords,
)

FLOW, CLIENT = "/v1/workflows/{workflow}", "/v1/clients/{client}"
PAGES = 16  # of outcomes, 256 each, that one commit deletes: requests are answered in between
RETRIED = 5_000  # tasks that are retried in one commit


class Operations:
    """The handlers, beside those of `Api`."""

    def __init__(self, api: Api) -> None:
        self.api, self.desk = api, api.desk

    @property
    def _service(self) -> Service:
        return self.desk.service

    # Workflows

    @endpoint("POST", f"{FLOW}/pause", "submit", changes=True)
    async def pause(self, call: ApiCall) -> ChangedWords:
        """Pause a workflow until it is resumed, also across restarts; running tasks finish."""
        served = self.api.own(call)
        changed = self._service.pause(time.monotonic(), served.id)
        return ChangedWords(changed, served.state)

    @endpoint("POST", f"{FLOW}/resume", "submit", changes=True)
    async def resume(self, call: ApiCall) -> ChangedWords:
        """Resume a paused workflow."""
        served = self.api.own(call)
        changed = self._service.resume(time.monotonic(), served.id)
        return ChangedWords(changed, served.state)

    @endpoint("POST", f"{FLOW}/retry", "submit", takes=RetryWords, changes=True)
    async def retry(self, call: ApiCall) -> CountWords:
        """Retry failed tasks."""
        served, count = self.api.own(call), 0
        tasks = list(served.execution.failed if call.words.tasks is None else dict.fromkeys(call.words.tasks))
        served.flow.dag.indices(tasks)  # refuses unknown tasks before any is retried
        for first in range(0, max(1, len(tasks)), RETRIED):
            count += self._service.retry(time.monotonic(), served.id, tasks[first : first + RETRIED])
            await self.desk.settle()
        return CountWords(count)

    @endpoint("POST", f"{FLOW}/release", "submit", takes=ReleaseWords, changes=True)
    async def release(self, call: ApiCall) -> CountWords:
        """Take tasks back from their clients, so that others can run them."""
        return CountWords(self._service.release(time.monotonic(), self.api.own(call).id, call.words.tasks))

    @endpoint("POST", f"{FLOW}/purge", "submit", changes=True)
    async def purge(self, call: ApiCall) -> DoneWords:
        """Delete a workflow that has ended; files that no other workflow needs are deleted later."""
        workflow = call.parts["workflow"]
        self._check_ended(call, workflow)
        if workflow in self._service.served:
            self._service.cancel(time.monotonic(), workflow)
            await self.desk.settle()
        await self.forget(workflow)
        return DoneWords()

    async def forget(self, workflow: str) -> None:
        """Delete a workflow that has ended, some pages of outcomes at a time."""
        pages = await asyncio.to_thread(self.api.store.pages, workflow)
        for first in range(0, len(pages), PAGES):
            self._service.books.changes.pages_gone += [(workflow, page) for page in pages[first : first + PAGES]]
            await self.desk.keeper.kept()
        self._service.purge(workflow)

    def _check_ended(self, call: ApiCall, workflow: str) -> None:
        row = self._service.books.ended.get(workflow)
        if row is not None:
            self.api.check_owner(call, row.owner)
        elif self.api.own(call).state != BROKEN:
            raise RefusedError(409, "this workflow has not ended (cancel it first)")

    # Clients

    @endpoint("POST", f"{CLIENT}/pause", "admin", changes=True)
    async def hold(self, call: ApiCall) -> DoneWords:
        """Pause a client until it is resumed, also across restarts; its running tasks finish."""
        return await self._mark(call, held=True)

    @endpoint("POST", f"{CLIENT}/resume", "admin", changes=True)
    async def let_go(self, call: ApiCall) -> DoneWords:
        """Resume a paused client."""
        return await self._mark(call, held=False)

    @endpoint("POST", f"{CLIENT}/tags", "admin", takes=TagsWords, changes=True)
    async def tag(self, call: ApiCall) -> DoneWords:
        """Replace the tags of a client."""
        return await self._mark(call, tags=call.words.tags)

    async def _mark(self, call: ApiCall, held: bool | None = None, tags: list[str] | None = None) -> DoneWords:
        await self.api.catch_up()
        self._service.mark_client(self.api.client_named(call).id, held, tags)
        self.api.entrance.mark()
        return DoneWords()

    # The server

    @endpoint("POST", "/v1/drain", "admin", takes=DrainWords)
    async def drain(self, call: ApiCall) -> HealthWords:
        """Stop handing out tasks, or start again; a restarted server hands out tasks."""
        self.desk.drain_on_request(call.words.on)
        return await self.api.health(call)
