"""What each address of the API does."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from eligo.errors import InputError
from eligo.execution import STATES
from eligo.formats.reading import parse
from eligo.server.asking import Request
from eligo.server.clients import Client, remembered
from eligo.server.entering import Entrance
from eligo.server.http import Address, ApiCall
from eligo.server.packing import unpacked_flow
from eligo.server.preparing import Wishes, prepared
from eligo.server.refusing import RefusedError
from eligo.server.served import Served
from eligo.server.service import Service
from eligo.server.speaking import Desk
from eligo.server.telling import (
    client_words,
    ended_words,
    grants_words,
    state_words,
    token_row_words,
    without_nul,
    workflow_words,
)
from eligo.server.tokens import demand
from eligo.server.words import (
    AnswersWords,
    AskWords,
    AttemptsWords,
    AttemptWords,
    ClientsWords,
    ClientWords,
    CountWords,
    DeliverWords,
    DoneWords,
    EnrolledWords,
    EnrolWords,
    FileWords,
    GoneWords,
    GrantsWords,
    HealthWords,
    InputsWords,
    MissingWords,
    NameWords,
    ReleaseWords,
    RenewWords,
    ResultsWords,
    RetryWords,
    StatesWords,
    SubmittedWords,
    TokenAskWords,
    TokensWords,
    TokenWords,
    WorkflowsWords,
    WorkflowWords,
)
from eligo.stores.serving import LeaseEnd, ServiceStore, Sums, WorkflowRow
from eligo.version import __version__

#: what would be made a second time
ONCE = {"/v1/clients", "/v1/tokens"}
MOST_SAID = 4_096  # bytes by which a client says who it is
MOST_LISTED = 1_000  # tasks, or attempts, in one answer
WISHES = {each.name for each in fields(Wishes)} - {"owner"}


@dataclass(eq=False)
class Api:
    """The calls of the API, on one desk."""

    desk: Desk
    store: ServiceStore
    entrance: Entrance
    metrics: Callable[[], bytes] = lambda: b""
    openapi: Callable[[], bytes] = lambda: b"{}"

    @property
    def _service(self) -> Service:
        return self.desk.service

    # Clients

    async def enrol(self, call: ApiCall) -> EnrolledWords:
        """A new client."""
        self.desk.keeper.check()
        approved = self.entrance.admits(call.caller)
        if len(call.body) > MOST_SAID:
            raise RefusedError(413, f"who a client is takes at most {MOST_SAID} bytes")
        client = self._service.enrol(time.monotonic(), call.words.name, call.words.cores or 1.0, approved)
        token = self.entrance.token_for(client, approved, call.caller.token)
        await self.desk.settle()
        return EnrolledWords(client.id, approved, token)

    async def request(self, call: ApiCall) -> GrantsWords:
        """Work for a client."""
        ticket = await self.desk.ask(call.client, call.key, _request(call.words), call.gone)
        return grants_words(ticket, self._service.books.terms.lease)

    async def renew(self, call: ApiCall) -> GoneWords:
        """A client lives."""
        return GoneWords(self._service.renew(time.monotonic(), call.client, call.words.leases))

    async def deliver(self, call: ApiCall) -> AnswersWords:
        """What a client brings."""
        ask = None if call.words.ask is None else _request(call.words.ask)
        if b"\\u0000" in call.body:
            without_nul(call.words.results)
        answers, ticket = await self.desk.deliver(call.client, call.words.results, call.key, ask)
        given = grants_words(ticket, self._service.books.terms.lease)
        return AnswersWords(answers, given.grants, given.lease, given.wait, given.stop)

    async def clients(self, call: ApiCall) -> ClientsWords:
        """Who the clients are."""
        await self._catch_up()
        return ClientsWords([client_words(one, self._service) for one in self._service.clients.values()])

    async def client(self, call: ApiCall) -> ClientWords:
        """One client."""
        if self.entrance.learning is not None:
            await self.entrance.learning.learn_client(call.parts["client"])
        mine = call.caller.client is not None and call.caller.client.id == call.parts["client"]
        if not mine:
            demand(call.caller.scopes, "read")
        if call.parts["client"] not in self._service.clients:  # who did something long ago still has a name
            row = await asyncio.to_thread(self.store.client, call.parts["client"])
            if row is not None:
                books = self._service.books
                return client_words(remembered(row, books.ahead, books.now), self._service)
        return client_words(self._client(call), self._service)

    async def approve(self, call: ApiCall) -> DoneWords:
        """A client may have work."""
        return await self._let(call, True)

    async def revoke(self, call: ApiCall) -> DoneWords:
        """A client may have no more work."""
        return await self._let(call, False)

    async def _let(self, call: ApiCall, approved: bool) -> DoneWords:
        self.desk.keeper.check()
        await self._catch_up()
        client = self._client(call)
        self.entrance.decide(client.id, approved)
        self._service.approve(client.id, approved)
        await self.desk.settle()
        return DoneWords()

    async def _catch_up(self) -> None:
        """Know what other servers know of clients."""
        if self.entrance.learning is not None:
            await self.entrance.learning.catch_up()

    def _client(self, call: ApiCall) -> Client:
        found = self._service.clients.get(call.parts["client"])
        if found is None:
            raise RefusedError(404, "there is no such client")
        return found

    async def token(self, call: ApiCall) -> TokenWords:
        """A new token."""
        self.desk.keeper.check()
        made = self.entrance.make(call.words.name, call.words.scopes, call.words.days, call.caller.token)
        await self.desk.settle()
        return TokenWords(made)

    async def tokens(self, call: ApiCall) -> TokensWords:
        """Every token that is kept, and never the token itself."""
        await self._catch_up()
        return TokensWords([token_row_words(row, fault) for row, fault in self.entrance.tokens()])

    async def revoke_tokens(self, call: ApiCall) -> CountWords:
        """Make the tokens of a name worthless."""
        self.desk.keeper.check()
        await self._catch_up()
        count = self.entrance.revoke(call.words.name)
        await self.desk.settle()
        return CountWords(count)

    # Workflows

    async def submit(self, call: ApiCall) -> SubmittedWords:
        """A workflow to be served, in any format."""
        self.desk.keeper.check()
        wishes = _wishes(call)
        format = call.query.get("format") or None
        key = f"{call.caller.name}:{call.key}"
        ready = await asyncio.to_thread(self._ready, call.body, format, wishes, key)
        workflow = self._service.submit(time.monotonic(), ready, key)
        await self.desk.settle()
        served = self._service.served.get(workflow)
        needs = [] if served is None or served.files is None else served.files.needs
        state = self._service.books.ended[workflow].state if served is None else served.state
        return SubmittedWords(workflow, len(ready.flow), needs, state)

    def _ready(self, body: bytes, format: str | None, wishes: Wishes, key: str) -> Served:
        """A workflow read, planned and made ready: all that takes long."""
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"a workflow is text in UTF-8, and this is not: {error}") from None
        return self._service.built(time.monotonic(), prepared(parse(text, format), wishes), key)

    async def inputs(self, call: ApiCall) -> MissingWords:
        """Files of a workflow that were uploaded, and the owner's signatures."""
        self.desk.keeper.check()
        workflow, now = self._own(call).id, time.monotonic()
        if call.words.signatures:
            self._service.sign(now, workflow, call.words.signatures)
        files = [(name, file.sha256, file.size) for name, file in call.words.files.items()]
        missing = self._service.provide(now, workflow, files)
        await self.desk.settle()
        return MissingWords(missing)

    async def workflows(self, call: ApiCall) -> WorkflowsWords:
        """All workflows."""
        known = [*self._service.books.ended, *self._service.served]
        words = WorkflowsWords([await self.told(workflow) for workflow in known])
        await self._until_kept()
        return words

    async def workflow(self, call: ApiCall) -> WorkflowWords:
        """Where a workflow stands."""
        words = await self.told(call.parts["workflow"])
        await self._until_kept()
        return words

    async def _until_kept(self) -> None:
        """What is told to who only looks must not be undone by a kill either; where nothing can be kept, he may look."""
        with suppress(RefusedError):
            await self.desk.keeper.kept()

    async def told(self, workflow: str) -> WorkflowWords:
        """Where a workflow stands, in words."""
        served = self._service.served.get(workflow)
        if served is not None:
            return workflow_words(served)
        if workflow not in self._service.books.ended:
            raise RefusedError(404, "there is no such workflow")
        return await self.kept(workflow)

    async def kept(self, workflow: str) -> WorkflowWords:
        """Where a workflow stands that is not served here, by what was kept of it."""
        row = self._service.books.ended.get(workflow) or await asyncio.to_thread(self.store.workflow, workflow)
        if row is None:
            raise RefusedError(404, "there is no such workflow")
        if row.tally is None:  # it goes on, or ended before tallies were kept
            row = row._replace(tally=(await asyncio.to_thread(_tallied, self.store, row)).text())
            if workflow in self._service.books.ended:
                self._service.books.ended[workflow] = row
        return ended_words(row, Sums.read(row.tally or ""))

    async def tasks(self, call: ApiCall) -> StatesWords:
        """The tasks of a workflow that is served, and where they stand."""
        served = self._served(call)
        state, limit = call.query.get("state"), call.number("limit", MOST_LISTED, MOST_LISTED)
        begin = call.number("after", 0)
        found, codes = [], served.execution.codes
        for v in range(begin, len(codes)):
            if state is None or STATES[codes[v]] == state:
                found.append(v)
            if len(found) > limit:
                break
        after = found.pop() if len(found) > limit else None
        return StatesWords(state_words(served, found), after)

    async def attempts(self, call: ApiCall) -> AttemptsWords:
        """What came of every attempt, by the numbers of leases."""
        workflow = call.parts["workflow"]
        if workflow not in self._service.served and workflow not in self._service.books.ended:
            raise RefusedError(404, "there is no such workflow")
        begin, limit = call.number("after", 0), call.number("limit", MOST_LISTED, MOST_LISTED)
        return await asyncio.to_thread(self._attempts, workflow, begin, limit)

    def _attempts(self, workflow: str, begin: int, limit: int) -> AttemptsWords:
        served = self._service.served.get(workflow)
        names = unpacked_flow(self.store.document(workflow)).dag.tasks if served is None else served.flow.dag.tasks
        rows = self.store.outcomes_from(workflow, begin, limit + 1)
        after = rows.pop().number if len(rows) > limit else None
        return AttemptsWords([_attempt(row, str(names[row.task])) for row in rows], after)

    async def results(self, call: ApiCall) -> ResultsWords:
        """The files of a workflow that are there."""
        workflow = call.parts["workflow"]
        state = (await self.told(workflow)).state
        rows = await asyncio.to_thread(self.store.files, workflow)
        return ResultsWords(state, {row.name: FileWords(row.sha256, row.size) for row in rows})

    async def cancel(self, call: ApiCall) -> DoneWords:
        """Hand out nothing more of a workflow."""
        self.desk.keeper.check()
        if call.parts["workflow"] not in self._service.books.ended:
            self._service.cancel(time.monotonic(), self._own(call).id)
        await self.desk.settle()
        return DoneWords()

    async def retry(self, call: ApiCall) -> CountWords:
        """Try tasks again that were set aside."""
        self.desk.keeper.check()
        count = self._service.retry(time.monotonic(), self._own(call).id, call.words.tasks)
        await self.desk.settle()
        return CountWords(count)

    async def release(self, call: ApiCall) -> CountWords:
        """Take tasks back from the clients that have them, so that others get them."""
        self.desk.keeper.check()
        count = self._service.release(time.monotonic(), self._own(call).id, call.words.tasks)
        await self.desk.settle()
        return CountWords(count)

    def _own(self, call: ApiCall) -> Served:
        """The workflow that is meant, which is the caller's, or the caller an operator."""
        served = self._served(call)
        if (
            self.entrance.gate is not None
            and served.wishes.owner != call.caller.name
            and "admin" not in call.caller.scopes
        ):
            raise RefusedError(403, "this workflow is somebody else's")
        return served

    def _served(self, call: ApiCall) -> Served:
        workflow = call.parts["workflow"]
        if workflow in self._service.books.ended:
            raise RefusedError(409, "this workflow has ended")
        if workflow not in self._service.served:
            raise RefusedError(404, "there is no such workflow")
        return self._service.served[workflow]

    # The server

    async def health(self, call: ApiCall) -> HealthWords:
        """Whether the server serves."""
        trouble = self.desk.keeper.trouble
        if trouble is not None:
            raise RefusedError(503, f"what the server must not forget cannot be written now: {trouble}", after=1)
        return HealthWords("draining" if self._service.requests.draining else "serving", __version__)

    async def measured(self, call: ApiCall) -> bytes:
        """What Prometheus is told."""
        return self.metrics()

    async def described(self, call: ApiCall) -> bytes:
        """The description of the API."""
        return self.openapi()

    def addresses(self) -> list[Address]:
        """Every address."""
        one = "/v1/workflows/{workflow}"
        page = {"after": "where to begin: what the answer before this one said", "limit": "how many at most"}
        ask = {
            "name": "how it is called", "format": "its format, where that is not seen", "policy": "which task goes first",
            "share": "of the server's work, compared with other owners", "quorum": "how many results must agree",
            "timeout": "seconds that a task may take", "retries": "how often a failed task is tried again",
            "copies": "how many clients may have one task at the end", "files": "false: no file travels",
            "rules": "false: all clients are alike",
            "ignore": "what the file asks for and the server's clients do not do, such as PRE,POST; all: whatever it is",
            "signed": "true: it waits for the signatures of all tasks",
        }  # fmt: skip
        table: list[tuple[str, str, str | None, Any, Any, Any, int, Mapping[str, str] | None]] = [
            ("POST", "/v1/request", "work", self.request, AskWords, GrantsWords, 200, None),
            ("POST", "/v1/deliver", "work", self.deliver, DeliverWords, AnswersWords, 200, None),
            ("POST", "/v1/renew", "work", self.renew, RenewWords, GoneWords, 200, None),
            ("POST", "/v1/clients", None, self.enrol, EnrolWords, EnrolledWords, 201, None),
            ("GET", "/v1/clients", "read", self.clients, None, ClientsWords, 200, None),
            ("GET", "/v1/clients/{client}", "read|work", self.client, None, ClientWords, 200, None),
            ("POST", "/v1/clients/{client}/approve", "admin", self.approve, None, DoneWords, 200, None),
            ("POST", "/v1/clients/{client}/revoke", "admin", self.revoke, None, DoneWords, 200, None),
            ("POST", "/v1/tokens", "admin", self.token, TokenAskWords, TokenWords, 201, None),
            ("GET", "/v1/tokens", "admin", self.tokens, None, TokensWords, 200, None),
            ("POST", "/v1/tokens/revoke", "admin", self.revoke_tokens, NameWords, CountWords, 200, None),
            ("POST", "/v1/workflows", "submit", self.submit, bytes, SubmittedWords, 201, ask),
            ("GET", "/v1/workflows", "read|submit", self.workflows, None, WorkflowsWords, 200, None),
            ("GET", one, "read|submit", self.workflow, None, WorkflowWords, 200, None),
            ("POST", f"{one}/inputs", "submit", self.inputs, InputsWords, MissingWords, 200, None),
            ("GET", f"{one}/tasks", "read|submit", self.tasks, None, StatesWords, 200, page | {"state": "only those"}),
            ("GET", f"{one}/attempts", "read|submit", self.attempts, None, AttemptsWords, 200, page),
            ("GET", f"{one}/results", "read|submit", self.results, None, ResultsWords, 200, None),
            ("POST", f"{one}/cancel", "submit", self.cancel, None, DoneWords, 200, None),
            ("POST", f"{one}/retry", "submit", self.retry, RetryWords, CountWords, 200, None),
            ("POST", f"{one}/release", "submit", self.release, ReleaseWords, CountWords, 200, None),
            ("GET", "/health", None, self.health, None, HealthWords, 200, None),
            ("GET", "/metrics", "read", self.measured, None, bytes, 200, None),
            ("GET", "/v1/openapi.json", None, self.described, None, dict, 200, None),
        ]
        return [
            Address(
                method=method, path=path, scope=scope, answer=answer, takes=takes, gives=gives, status=status,
                query=query, says=answer.__doc__ or "", once=path in ONCE and method == "POST",
            )
            for method, path, scope, answer, takes, gives, status, query in table
        ]  # fmt: skip


def _request(told: AskWords) -> Request:
    memory = float("inf") if told.memory is None else told.memory
    return Request(told.count, told.size, told.seconds, told.wait, told.cores, memory)


def _wishes(call: ApiCall) -> Wishes:
    """What the owner asks for, from behind the question mark."""
    kinds = {"share": float, "timeout": float, "quorum": int, "retries": int, "copies": int}
    unknown = set(call.query) - WISHES - {"format"}
    if unknown:
        raise RefusedError(400, f"nothing is known here of {min(unknown)!r}")
    found: dict[str, Any] = {name: value for name, value in call.query.items() if name in WISHES}
    for name, kind in kinds.items():
        if name in found:
            try:
                found[name] = kind(found[name])
            except ValueError:
                raise RefusedError(400, f"{name} is a number, and {found[name][:20]!r} is none") from None
    for name in {"files", "rules", "signed"} & found.keys():
        found[name] = found[name] != "false"
    return Wishes(owner=call.caller.name, **found)


def _tallied(store: ServiceStore, row: WorkflowRow) -> Sums:
    """What came of a workflow so far, by its outcomes."""
    upshot = store.upshot(row.id)
    return Sums(len(unpacked_flow(store.document(row.id))), upshot.accepted, row.lost, upshot.repeated, upshot.saved)


def _attempt(row: LeaseEnd, task: str) -> AttemptWords:
    known = (row.began, row.ended, row.answer, row.failure, row.code, row.memory, row.tail)
    return AttemptWords(task, row.attempt, row.client, *known)
