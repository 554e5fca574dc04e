"""The handlers of the API for clients, tokens, workflows and the server itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import chain

import numpy as np

from eligo.additions import NewTasks
from eligo.errors import InputError, shorten
from eligo.execution import STATES
from eligo.server import schema
from eligo.server.auth.admission import Entrance
from eligo.server.auth.tokens import demand
from eligo.server.dispatcher import Desk
from eligo.server.http.bodies import in_file_thread
from eligo.server.http.budgets import origin
from eligo.server.http.refusals import RefusedError, unknown_workflow
from eligo.server.http.routes import (
    MOST_LISTED,
    ApiCall,
    Row,
    clients_after,
    endpoint,
    page_of,
    read_wishes,
)
from eligo.server.logs import emit
from eligo.server.metrics import Metrics
from eligo.server.preparation import Preparation
from eligo.server.rules.clients import Client, restore_client
from eligo.server.rules.results import ReadAdditions
from eligo.server.rules.served import CANCELLED, UNAVAILABLE, Served
from eligo.server.rules.service import Service, task_names
from eligo.server.view.answers import (
    client_words,
    ended_words,
    grants_in_turn,
    state_words,
    token_row_words,
    unavailable_words,
    without_nul,
    workflow_words,
)
from eligo.stores.service import Sums, WorkflowRow
from eligo.stores.service_sql import ServiceStore
from eligo.version import __version__
from eligo.work.attempts import Attempt, split_tails

TOGETHER = 5  # workflows of a list that are described in one step of the event loop
FILES = 1_000  # files of a workflow that are recorded in one commit
FEW_FILES = 32  # files that are looked up in the event loop
ONE = "/v1/workflows/{workflow}"
LIMIT = {"limit": "maximum number of entries"}
PAGE = {"after": "where to begin: `after` of the previous page"} | LIMIT
CLIENTS_PAGE = {"after": "only clients after this one: `after` of the previous page"} | LIMIT
WORKFLOWS_PAGE = {
    "limit": "maximum number, at most 1000", "state": "only workflows in this state",
    "before": "only workflows submitted before this one: `before` of the previous page",
}  # fmt: skip
WISHES = {
    "name": "name", "format": "format, if not to be detected", "policy": "policy",
    "share": "share of the server, relative to other owners", "quorum": "number of results that must agree",
    "timeout": "time limit of a task in seconds", "retries": "retries of a failed task",
    "copies": "clients that may run the same task at the end", "files": "false: do not transfer files",
    "inside": "false: upload every file, even if only tasks of the same grant read it",
    "rules": "false: ignore differences between clients",
    "locality": "false: ignore which files clients have cached",
    "ignore": "features of the file to ignore, such as PRE,POST; or all",
    "grow": "true: tasks may add tasks",
    "signed": "true: wait for the signatures of all tasks",
}  # fmt: skip


@dataclass(eq=False)
class Api:
    """The handlers, on one dispatcher."""

    desk: Desk
    store: ServiceStore
    entrance: Entrance
    preparation: Preparation = field(default_factory=Preparation)
    metrics: Metrics = field(default_factory=Metrics)
    openapi: Callable[[], bytes] = lambda: b"{}"

    @property
    def _service(self) -> Service:
        return self.desk.service

    # Clients

    @endpoint("POST", "/v1/request", "work", takes=schema.AskWords)
    async def request(self, call: ApiCall) -> schema.GrantsWords:
        """Request tasks."""
        ticket = await self.desk.ask(call.client, call.key, call.words, call.gone)
        return await grants_in_turn(ticket, self._service.books.terms.lease)

    @endpoint("POST", "/v1/deliver", "work", takes=schema.DeliverWords)
    async def deliver(self, call: ApiCall) -> schema.AnswersWords:
        """Deliver results and request more tasks."""
        if b"\\u0000" in call.body:
            without_nul(call.words.results)
        adding = self._service.results.adding(call.words.results)
        added = await self._read_added(call, adding) if adding else None
        if hashes := [file.sha256 for result in call.words.results for file in result.outputs.values()]:
            await self._look_up(hashes)
        answers, ticket = await self.desk.deliver(call.client, call.words.results, call.key, call.words.ask, added)
        grants = await grants_in_turn(ticket, self._service.books.terms.lease)
        return schema.AnswersWords(answers, grants.grants, grants.lease, grants.wait, grants.stop)

    async def _read_added(self, call: ApiCall, adding: Sequence[str]) -> ReadAdditions:
        """Read the tasks that results add, before the results are processed; unreadable ones are kept as errors."""
        added = dict[str, NewTasks | InputError]()
        for text in dict.fromkeys(adding):
            self.desk.keeper.check()
            try:
                added[text] = await self.preparation.read_addition(call.caller.holder, text.encode(), "json")
            except InputError as error:
                added[text] = error
            except RefusedError as refused:
                if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                    raise
                added[text] = InputError(str(refused))
        return added

    @endpoint("POST", "/v1/renew", "work", takes=schema.RenewWords)
    async def renew(self, call: ApiCall) -> schema.GoneWords:
        """Renew leases."""
        return schema.GoneWords(self._service.renew(time.monotonic(), call.client, call.words.leases))

    @endpoint("POST", "/v1/clients", takes=schema.EnrolWords, status=201, once=True, changes=True)
    async def enrol(self, call: ApiCall) -> schema.EnrolledWords:
        """Enrol a new client."""
        address = origin(call.scope.get("client"))
        approved = self.entrance.admits(call.caller, address)
        client = self._service.enrol(time.monotonic(), call.words.name, call.words.cores or 1.0, approved)
        token = self.entrance.token_for(client, approved, call.caller.token, address)
        emit("client_enrolled", client=client.id, name=client.name, approved=approved)
        return schema.EnrolledWords(client.id, approved, token)

    @endpoint("GET", "/v1/clients", "read", query=CLIENTS_PAGE)
    async def clients(self, call: ApiCall) -> schema.ClientsWords:
        """List the clients, by id."""
        await self.catch_up()
        clients, words = self._service.clients, list[schema.ClientWords]()
        chosen, after = clients_after(call, clients)
        for client in chosen:
            if client in clients:
                words.append(self._client_words(clients[client]))
            await asyncio.sleep(0)  # a client without results is searched in every workflow
        return schema.ClientsWords(words, after)

    @endpoint("GET", "/v1/clients/{client}", "read", "work")
    async def client(self, call: ApiCall) -> schema.ClientWords:
        """Show one client."""
        if self.entrance.learning is not None:
            await self.entrance.learning.learn_client(call.parts["client"])
        mine = call.caller.client is not None and call.caller.client.id == call.parts["client"]
        if not mine:
            demand(call.caller.scopes, "read")
        if call.parts["client"] not in self._service.clients:  # a client that left long ago still has a row
            row = await asyncio.to_thread(self.store.client, call.parts["client"])
            if row is not None:
                books = self._service.books
                return self._client_words(restore_client(row, books.ahead, books.now))
        return self._client_words(self.client_named(call))

    def _client_words(self, client: Client) -> schema.ClientWords:
        return client_words(client, self._service, self.entrance.access_of(client))

    @endpoint("POST", "/v1/clients/{client}/approve", "admin", changes=True)
    async def approve(self, call: ApiCall) -> schema.DoneWords:
        """Approve a client."""
        return await self._decide(call, True)

    @endpoint("POST", "/v1/clients/{client}/revoke", "admin", changes=True)
    async def revoke(self, call: ApiCall) -> schema.DoneWords:
        """Revoke the access of a client."""
        return await self._decide(call, False)

    async def _decide(self, call: ApiCall, approved: bool) -> schema.DoneWords:
        await self.catch_up()
        client = self.client_named(call)
        self.entrance.decide(client.id, approved)
        self._service.approve(client.id, approved)
        return schema.DoneWords()

    async def catch_up(self) -> None:
        """Load the clients and tokens that other servers on the same store have changed."""
        if self.entrance.learning is not None:
            await self.entrance.learning.catch_up()

    def client_named(self, call: ApiCall) -> Client:
        """The client that the URL names."""
        client = self._service.clients.get(call.parts["client"])
        if client is None:
            raise RefusedError(404, f"unknown client {shorten(call.parts['client'])!r}")
        return client

    @endpoint("POST", "/v1/tokens", "admin", takes=schema.TokenAskWords, status=201, once=True, changes=True)
    async def token(self, call: ApiCall) -> schema.TokenWords:
        """Issue a token."""
        await self.catch_up()
        words = call.words
        return schema.TokenWords(self.entrance.make(words.name, words.scopes, words.days, call.caller.token))

    @endpoint("GET", "/v1/tokens", "admin")
    async def tokens(self, call: ApiCall) -> schema.TokensWords:
        """List the tokens, without the tokens themselves."""
        await self.catch_up()
        return schema.TokensWords([token_row_words(*one) for one in self.entrance.tokens()])

    @endpoint("POST", "/v1/tokens/revoke", "admin", takes=schema.NameWords, changes=True)
    async def revoke_tokens(self, call: ApiCall) -> schema.CountWords:
        """Revoke all tokens of a name."""
        await self.catch_up()
        return schema.CountWords(self.entrance.revoke(call.words.name))

    # Workflows

    @endpoint("POST", "/v1/workflows", "submit", takes=bytes, status=201, query=WISHES, changes=True)
    async def submit(self, call: ApiCall) -> schema.SubmittedWords:
        """Submit a workflow in any format."""
        wishes = read_wishes(call)
        format = call.query.get("format") or None
        key = f"{call.caller.name}:{call.key}"
        build = partial(self._service.built, time.monotonic(), key=key)
        with self.metrics.preparing.timed():
            ready = await self.preparation.prepare(call.caller.name, call.body, format, wishes, build)
        if self._service.submitted(key) is None:
            await self.desk.keep_document(ready)
        workflow = self._service.submit(time.monotonic(), ready, key)
        served = self._service.served.get(workflow)
        needs = [] if served is None or served.files is None else served.files.needs
        ended = self._service.books.ended.get(workflow)
        state = served.state if served is not None else UNAVAILABLE if ended is None else ended.state
        every = np.arange(len(ready.flow), dtype=np.int32)
        notes = [] if served is None else self._service.notes(served, every, "task")
        return schema.SubmittedWords(workflow, len(ready.flow), needs, state, notes)

    @endpoint("GET", "/v1/workflows", "read", "submit", query=WORKFLOWS_PAGE)
    async def workflows(self, call: ApiCall) -> schema.WorkflowsWords:
        """List workflows, the newest first."""
        books = self._service.books
        every = chain(books.ended.values(), (served.row for served in books.served.values()))
        rows = [Row(row.made, row.id, row.state) for row in every]
        rows += [Row(one.row.made, one.row.id, UNAVAILABLE) for one in books.unavailable.values()]
        chosen, before = page_of(call, rows)
        words = schema.WorkflowsWords([one async for one in self.states_in_turn(chosen)], before)
        await self._await_commit()
        return words

    async def states_in_turn(self, workflows: Iterable[str]) -> AsyncIterator[schema.WorkflowWords]:
        """The states of workflows, except those that are purged meanwhile; other requests are answered in between."""
        for count, workflow in enumerate(workflows):
            with suppress(RefusedError):
                yield await self.state_of(workflow)
            if count % TOGETHER == 0:
                await asyncio.sleep(0)

    @endpoint("GET", ONE, "read", "submit")
    async def workflow(self, call: ApiCall) -> schema.WorkflowWords:
        """Show the state of a workflow."""
        words = await self.state_of(call.parts["workflow"])
        await self._await_commit()
        return words

    async def _await_commit(self) -> None:
        """Wait for the commit before a read-only answer, so that a kill undoes nothing that was shown.

        If the store is failing, reads are still answered.
        """
        with suppress(RefusedError):
            await self.desk.keeper.kept()

    async def state_of(self, workflow: str) -> schema.WorkflowWords:
        """The state of a workflow."""
        served = self._service.served.get(workflow)
        if served is not None:
            return workflow_words(served, self._service)
        if workflow in self._service.books.unavailable:
            return unavailable_words(self._service.books.unavailable[workflow])
        if workflow not in self._service.books.ended:
            raise unknown_workflow(workflow)
        return await self.stored_state(workflow)

    async def stored_state(self, workflow: str) -> schema.WorkflowWords:
        """The state of a workflow that this server does not serve, from the store."""
        row = self._service.books.ended.get(workflow) or await asyncio.to_thread(self.store.workflow, workflow)
        if row is None:
            raise unknown_workflow(workflow)
        if row.tally is None:  # it has not ended, or it ended before tallies were stored
            row = row._replace(tally=(await asyncio.to_thread(_tally, self.store, row)).text())
            if workflow in self._service.books.ended:
                self._service.books.ended[workflow] = row
        return ended_words(row, Sums.read(row.tally or ""))

    @endpoint("POST", f"{ONE}/inputs", "submit", takes=schema.InputsWords, changes=True)
    async def inputs(self, call: ApiCall) -> schema.MissingWords:
        """Assign uploaded files to the inputs of a workflow, and add signatures."""
        workflow, now = self.own(call).id, time.monotonic()
        if call.words.signatures:
            self._service.sign(now, workflow, call.words.signatures)
        files = [(name, file.sha256, file.size) for name, file in call.words.files.items()]
        missing = list[str]()
        for first in range(0, max(1, len(files)), FILES):
            some = files[first : first + FILES]
            await self._look_up([sha256 for _, sha256, _ in some])
            missing = self._service.provide(now, workflow, some)
            await self.desk.settle()
        return schema.MissingWords(missing)

    async def _look_up(self, hashes: Sequence[str]) -> None:
        """Look up many files in another thread, so that the rules find them without waiting for the disk."""
        if len(hashes) > FEW_FILES:
            await in_file_thread(lambda: [self._service.has_file(sha256) for sha256 in hashes])

    @endpoint("POST", f"{ONE}/tasks", "submit", takes=bytes, changes=True)
    async def add(self, call: ApiCall) -> schema.AddedWords:
        """Add tasks to a workflow from a JSON or YAML document; repeating the call changes nothing."""
        workflow = self.own(call).id
        new = await self.preparation.read_addition(call.caller.name, call.body)
        names = await self.desk.add(workflow, new)
        served = self._service.served.get(workflow)
        missing = [] if served is None or served.files is None else served.files.missing
        return schema.AddedWords(list(names), missing, "" if served is None else served.state)

    @endpoint("GET", f"{ONE}/tasks", "read", "submit", query=PAGE | {"state": "only tasks in this state"})
    async def tasks(self, call: ApiCall) -> schema.StatesWords:
        """List the tasks of a workflow with their states."""
        served = self._find_served(call)
        state, limit = call.query.get("state"), call.number("limit", MOST_LISTED, MOST_LISTED)
        begin = call.number("after", 0)
        codes = np.frombuffer(served.execution.codes, np.uint8)
        chosen = codes[begin:] == STATES.index(state) if state in STATES else np.full(len(codes[begin:]), state is None)
        numbers = (begin + np.flatnonzero(chosen)[: limit + 1]).tolist()
        after = numbers.pop() if len(numbers) > limit else None
        return schema.StatesWords(state_words(served, numbers), after)

    @endpoint("GET", f"{ONE}/attempts", "read", "submit", query=PAGE)
    async def attempts(self, call: ApiCall) -> schema.AttemptsWords:
        """List the outcomes of all attempts, by lease number."""
        workflow = call.parts["workflow"]
        if self._service.books.row_of(workflow) is None:
            raise unknown_workflow(workflow)
        begin, limit = call.number("after", 0), call.number("limit", MOST_LISTED, MOST_LISTED)
        return await asyncio.to_thread(self._attempts, workflow, begin, limit)

    def _attempts(self, workflow: str, begin: int, limit: int) -> schema.AttemptsWords:
        served = self._service.served.get(workflow)
        names = task_names(workflow, self.store) if served is None else served.flow.dag.tasks
        rows = self.store.outcomes_from(workflow, begin, limit + 1)
        after = rows.pop().number if len(rows) > limit else None
        return schema.AttemptsWords([_attempt(row, str(names[row.task])) for row in rows], after)

    @endpoint("GET", f"{ONE}/results", "read", "submit")
    async def results(self, call: ApiCall) -> schema.ResultsWords:
        """List the available files of a workflow."""
        workflow = call.parts["workflow"]
        state = (await self.state_of(workflow)).state
        rows = await asyncio.to_thread(self.store.files, workflow)
        files = {row.name: schema.FileWords(row.sha256, row.size) for row in rows}
        return schema.ResultsWords(state, files, [row.name for row in rows if row.given])

    @endpoint("POST", f"{ONE}/cancel", "submit", changes=True)
    async def cancel(self, call: ApiCall) -> schema.ChangedWords:
        """Cancel a workflow; one that has ended stays as it is."""
        workflow, books = call.parts["workflow"], self._service.books
        self._check_known(call)
        if workflow in books.ended:
            return schema.ChangedWords(False, books.ended[workflow].state)
        return schema.ChangedWords(self._service.cancel(time.monotonic(), workflow), CANCELLED)

    def own(self, call: ApiCall) -> Served:
        """The workflow of the call, if the caller owns it or is an operator."""
        self._check_known(call)
        return self._find_served(call)

    def _check_known(self, call: ApiCall) -> None:
        """Refuse an unknown workflow, and one of another owner in any state."""
        row = self._service.books.row_of(call.parts["workflow"])
        if row is None:
            raise unknown_workflow(call.parts["workflow"])
        self.check_owner(call, row.owner)

    def check_owner(self, call: ApiCall, owner: str) -> None:
        """Refuse a caller who is neither the owner of a workflow nor an operator."""
        if self.entrance.gate is not None and owner != call.caller.name and "admin" not in call.caller.scopes:
            raise RefusedError(403, "this workflow belongs to another owner")

    def _find_served(self, call: ApiCall) -> Served:
        workflow = call.parts["workflow"]
        if workflow in self._service.books.ended:
            raise RefusedError(409, "this workflow has ended")
        if workflow in self._service.books.unavailable:
            reason = self._service.books.unavailable[workflow].reason
            raise RefusedError(409, f"this workflow is unavailable: {reason}")
        if workflow not in self._service.served:
            raise unknown_workflow(workflow)
        return self._service.served[workflow]

    # The server

    @endpoint("GET", "/health")
    async def health(self, call: ApiCall) -> schema.HealthWords:
        """Liveness: answers whenever the process runs."""
        status = "draining" if self._service.requests.draining else "serving"
        return schema.HealthWords(status if self.desk.keeper.trouble is None else "failing", __version__)

    @endpoint("GET", "/ready")
    async def ready(self, call: ApiCall) -> schema.HealthWords:
        """Readiness: 503 while the server cannot hand out tasks or write to its store."""
        self.desk.keeper.check()
        if self._service.requests.draining:
            raise RefusedError(503, "the server is draining and hands out no tasks", after=1)
        return schema.HealthWords("serving", __version__)

    @endpoint("GET", "/metrics", "read")
    async def metrics_text(self, call: ApiCall) -> bytes:
        """Metrics in the Prometheus text format."""
        return self.metrics.text()

    @endpoint("GET", "/v1/openapi.json", gives=dict)
    async def openapi_document(self, call: ApiCall) -> bytes:
        """This OpenAPI document."""
        return self.openapi()


def _tally(store: ServiceStore, row: WorkflowRow) -> Sums:
    """The totals of a workflow so far, from its outcomes."""
    upshot = store.upshot(row.id)
    return Sums(len(task_names(row.id, store)), upshot.accepted, row.lost, upshot.repeated, upshot.saved)


def _attempt(row: Attempt, task: str) -> schema.AttemptWords:
    fields = (row.began, row.ended, row.answer, row.failure, row.code, row.memory)
    out, err = split_tails(row.tail or "")
    tails = (err, out) if err else (row.tail, None)
    return schema.AttemptWords(task, row.attempt, row.client, *fields, *tails)
