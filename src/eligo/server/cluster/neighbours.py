"""The other servers on the same store: calls about workflows that they hold are forwarded, and their answers returned."""

import asyncio
import json
import random
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from eligo.server import schema
from eligo.server.cluster.holders import Holding
from eligo.server.http.handlers import Api
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall, Endpoint, Row, page_of
from eligo.server.rules.served import FINAL

FORWARDED = b"eligo-forwarded"
FORWARDED_HEADERS = (b"authorization", b"eligo-client", b"idempotency-key", b"content-type")
ID = re.compile(r"w-[0-9a-f]{1,32}")
TURN = 1.0  # seconds that a request waits here before other servers are asked again
EMPTY, AWAY = 0.25, 2.0  # seconds without further requests to a server that had no task, or did not answer
MOST_KEYS = 20_000  # remembered requests that other servers have answered
MOST_AT_A_TIME = 32  # concurrent calls to one server
MOST_IDLE = 8  # idle connections to one server
LARGEST = 256 * 2**20
CONNECTING = 2.0  # seconds
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Answer = Callable[[ApiCall], Awaitable[Any]]


class Reply(NamedTuple):
    """The answer of another server."""

    status: int
    headers: dict[str, str]
    body: bytes


class Neighbour:
    """Another server, called over HTTP/1.1 on connections that stay open."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        url = urlsplit(address)
        self.name, self.host = url.netloc, url.hostname or ""
        self.tls = tls if url.scheme == "https" else None
        self.port = url.port or (443 if self.tls else 80)
        self._idle: list[Streams] = []
        self._places = asyncio.Semaphore(MOST_AT_A_TIME)

    async def call(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b"", patience: float = 10.0
    ) -> Reply:
        """Call the server; raises `OSError` if it does not answer in time."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.name}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
        async with self._places:
            while self._idle:  # the other side may have closed the connection meanwhile, which shows only now
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    return await self._exchange(self._idle.pop(), request, patience)
            try:
                return await self._exchange(await self._connect(), request, patience)
            except asyncio.IncompleteReadError:
                raise OSError(f"{self.name} closed the connection before its answer was complete") from None

    async def _connect(self) -> Streams:
        async with asyncio.timeout(CONNECTING):
            return await asyncio.open_connection(self.host, self.port, ssl=self.tls)

    async def _exchange(self, streams: Streams, request: bytes, patience: float) -> Reply:
        reader, writer = streams
        complete = False
        try:
            async with asyncio.timeout(patience):
                writer.write(request)
                await writer.drain()
                answer = await _read(reader)
                complete = True
        except (asyncio.LimitOverrunError, ValueError) as error:
            raise OSError(f"invalid answer from {self.name}: {error}") from None
        finally:
            if complete and answer.headers.get("connection") != "close" and len(self._idle) < MOST_IDLE:
                self._idle.append(streams)
            else:
                writer.close()
        return answer

    def close(self) -> None:
        """Close its idle connections."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


async def _read(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if "content-length" not in headers:
        raise ValueError("no Content-Length header")
    size = int(headers["content-length"])
    if not 0 <= size <= LARGEST:
        raise ValueError("answer too large")
    return Reply(int(head[0].split(" ")[1]), headers, await reader.readexactly(size))


@dataclass(eq=False)
class Neighbours:
    """Answers calls with the help of the other servers."""

    api: Api
    holding: Holding
    tls: ssl.SSLContext | None = None
    _neighbours: dict[str, Neighbour] = field(default_factory=dict)  # by address
    _quiet: dict[str, float] = field(default_factory=dict)  # until when a server is not asked for tasks
    _answered: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)  # by client and key, which server

    def joined(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """The endpoints of the API, changed so that the server that holds a workflow answers calls about it."""
        special: dict[tuple[str, str], Answer] = {
            ("POST", "/v1/request"): self.request,
            ("POST", "/v1/deliver"): self.deliver,
            ("POST", "/v1/renew"): self.renew,
            ("POST", "/v1/workflows"): self.submit,
            ("GET", "/v1/workflows"): self.workflows,
        }
        result = []
        for each in endpoints:
            own = self._here_or_there(each.answer) if "{workflow}" in each.path and not each.streams else None
            answer = special.get((each.method, each.path), own)
            result.append(each if answer is None else replace(each, answer=self._while_sure(answer)))
        return result

    def close(self) -> None:
        """Close all idle connections."""
        for neighbour in self._neighbours.values():
            neighbour.close()

    # Forwarding

    def _while_sure(self, answer: Answer) -> Answer:
        """Refuse calls while other servers may hold workflows of this one, and calls for which the store cannot be read."""

        @wraps(answer)
        async def checked(call: ApiCall) -> Any:
            if not self.holding.sure:
                raise RefusedError(503, "the server is checking which workflows it holds; try again", after=1)
            try:
                return await answer(call)
            except OSError:
                raise RefusedError(503, "the store cannot be read now; try again", after=1) from None

        return checked

    def _here_or_there(self, answer: Answer) -> Answer:
        """Answer a call about a workflow here, or forward it to the server that holds the workflow."""

        @wraps(answer)
        async def routed(call: ApiCall) -> Any:
            holder = await self._where(call.parts["workflow"], call)
            return await (answer(call) if holder is None else self._forward(holder, call))

        return routed

    async def _where(self, workflow: str, call: ApiCall) -> str | None:
        """The address of the server that holds a workflow; None if this server answers."""
        service, store = self.api.desk.service, self.api.store
        if service.books.row_of(workflow) is not None or ID.fullmatch(workflow) is None:
            return None
        forwarded = FORWARDED in call.scope["state"]["headers"]
        holder = None if forwarded else self.holding.holders.get(workflow)
        if holder is None and not forwarded:
            holder = (await asyncio.to_thread(store.holders)).get(workflow)
        if holder and holder != store.address:
            return holder
        row = await asyncio.to_thread(store.workflow, workflow)
        if row is None:
            return None
        if row.state not in FINAL:
            raise RefusedError(503, "no server holds this workflow right now; try again", after=1)
        service.ended(row._replace(document=b""))
        return None

    async def _forward(self, holder: str, call: ApiCall, path: str | None = None, body: bytes | None = None) -> bytes:
        """The answer of another server to a call, or to a different *path* or *body* of the same caller."""
        headers = call.scope["state"]["headers"]
        outgoing = {name.decode(): headers[name].decode("latin-1") for name in FORWARDED_HEADERS if name in headers}
        outgoing[FORWARDED.decode()] = "1"
        if path is None:
            query = call.scope["query_string"].decode("latin-1")
            path = call.scope.get("raw_path", call.scope["path"].encode()).decode("latin-1").partition("?")[0]
            path = f"{path}?{query}" if query else path
        if holder not in self._neighbours:
            self._neighbours[holder] = Neighbour(holder, self.tls)
        try:
            body = call.body if body is None else body
            reply = await self._neighbours[holder].call(call.scope["method"], path, outgoing, body)
        except OSError:
            raise RefusedError(503, "the server that holds this workflow does not answer; try again", after=1) from None
        if reply.status >= 400:
            raise _refusal(reply.status, reply.headers, reply.body)
        return reply.body

    # Work

    async def request(self, call: ApiCall) -> Any:
        """Answer a request for tasks, with tasks of other servers if there are none here."""
        if FORWARDED in call.scope["state"]["headers"]:
            return await self.api.request(call)
        before = self._answered.get((call.client.id, call.key))
        if (
            before is not None
            and (answer := await self._ask_server(before, call, call.words)) is not None
            and answer.grants
        ):
            return answer
        end = time.monotonic() + min(call.words.wait, self.api.desk.service.books.terms.longest_wait)
        wait = 0.0
        while True:
            remaining = max(0.0, end - time.monotonic())
            wait = min(wait, remaining) if self.holding.others() else remaining
            answer = await self.api.request(call._replace(words=msgspec.structs.replace(call.words, wait=wait)))
            if answer.grants or answer.stop or answer.wait:
                return answer
            remote = await self._ask(call, call.words)
            if remote is not None or time.monotonic() >= end:
                return answer if remote is None else remote
            wait = TURN

    async def _ask(self, call: ApiCall, ask: schema.AskWords) -> schema.GrantsWords | None:
        """The grants of the first other server that has tasks, in random order; None if none has."""
        others = [holder for holder in self.holding.others() if self._quiet.get(holder, 0.0) < time.monotonic()]
        for holder in random.sample(others, len(others)):
            answer = await self._ask_server(holder, call, ask)
            if answer is not None and answer.grants:
                self._remember(call, holder)
                return answer
        return None

    def _remember(self, call: ApiCall, holder: str) -> None:
        """Remember that a repeated call gets its answer from the same server."""
        self._answered[call.client.id, call.key] = holder
        if len(self._answered) > MOST_KEYS:
            self._answered.popitem(last=False)

    async def _ask_server(self, holder: str, call: ApiCall, ask: schema.AskWords) -> schema.GrantsWords | None:
        """The tasks that another server has for a client now; None if it does not answer."""
        body = schema.encode(msgspec.structs.replace(ask, wait=0.0))
        try:
            reply = await self._forward(holder, call, "/v1/request", body)
            answer = msgspec.json.decode(reply, type=schema.GrantsWords)
        except RefusedError:
            self._quiet[holder] = time.monotonic() + AWAY
            return None
        if not answer.grants and not answer.wait:
            self._quiet[holder] = time.monotonic() + EMPTY
        return answer

    async def deliver(self, call: ApiCall) -> Any:
        """Process the results of a client, each on the server that holds its workflow."""
        served = self.api.desk.service.served
        places = {one.lease.partition(".")[0]: "" for one in call.words.results}
        for workflow in places.keys() - served.keys():
            places[workflow] = await self._where(workflow, call) or ""
        holders, ask = set(places.values()) - {""}, call.words.ask
        before = self._answered.get((call.client.id, call.key))
        if len(holders) == 1 and "" not in places.values() and (before in holders or not self._has_work()):
            self._remember(call, holder := holders.pop())
            return await self._forward(holder, call)  # with its request for tasks
        if before is not None:
            call = call._replace(words=schema.DeliverWords(call.words.results))
        answer = await (self._deliver_by_holder(call, places) if holders else self.api.deliver(call))
        if ask is None or answer.grants or answer.stop or answer.wait or FORWARDED in call.scope["state"]["headers"]:
            return answer
        remote = await (self._ask(call, ask) if before is None else self._ask_server(before, call, ask))
        return answer if remote is None else msgspec.structs.replace(answer, grants=remote.grants)

    def _has_work(self) -> bool:
        return any(one.open and one.ready for one in self.api.desk.service.served.values())

    async def _deliver_by_holder(self, call: ApiCall, places: dict[str, str]) -> schema.AnswersWords:
        """Deliver each result to the server that holds its workflow; the answers keep the order of the results."""
        answers = await self._deliver_elsewhere(call, places)
        here = [one for one in call.words.results if one.lease not in answers]
        local = await self.api.deliver(call._replace(words=schema.DeliverWords(here, call.words.ask)))
        answers.update(zip((one.lease for one in here), local.answers, strict=True))
        return msgspec.structs.replace(local, answers=[answers[one.lease] for one in call.words.results])

    async def _deliver_elsewhere(self, call: ApiCall, places: dict[str, str]) -> dict[str, str]:
        """The answers of other servers to the results of their workflows, by lease."""
        answers: dict[str, str] = {}
        groups: dict[str, list[schema.ResultWords]] = {}
        for one in call.words.results:
            groups.setdefault(places[one.lease.partition(".")[0]], []).append(one)
        for holder, group in groups.items():
            if holder:
                body = await self._forward(holder, call, body=schema.encode(schema.DeliverWords(group)))
                replies = msgspec.json.decode(body, type=schema.AnswersWords).answers
                answers.update(zip((one.lease for one in group), replies, strict=True))
        return answers

    async def renew(self, call: ApiCall) -> Any:
        """Renew the leases of a client; leases that cannot be checked now are not reported as gone."""
        served = self.api.desk.service.served
        groups: dict[str | None, list[str]] = {None: []}
        for lease in call.words.leases:
            workflow = lease.partition(".")[0]
            with suppress(RefusedError):
                holder = None if workflow in served else await self._where(workflow, call)
                groups.setdefault(holder, []).append(lease)
        lost = (await self.api.renew(call._replace(words=schema.RenewWords(groups.pop(None))))).gone
        for holder, leases in groups.items():
            with suppress(RefusedError):
                body = await self._forward(holder or "", call, body=schema.encode(schema.RenewWords(leases)))
                lost += msgspec.json.decode(body, type=schema.GoneWords).gone
        return schema.GoneWords(lost)

    # Workflows

    async def submit(self, call: ApiCall) -> Any:
        """Submit a workflow; a repeated call is answered by the server that holds the workflow."""
        key = f"{call.caller.name}:{call.key}"
        workflow = await asyncio.to_thread(self.api.store.submitted, key)
        if workflow is None:
            self.api.desk.service.forget_purged(key)
        holder = None if workflow is None else await self._where(workflow, call)
        return await (self.api.submit(call) if holder is None else self._forward(holder, call))

    async def workflows(self, call: ApiCall) -> Any:
        """A page of all workflows; other servers add the states of those that they hold."""
        service, states = self.api.desk.service, await asyncio.to_thread(self.api.store.states)
        chosen, before = page_of(call, [Row(i, id, state) for i, (id, state) in enumerate(states.items())])
        here = [id for id in chosen if id in service.served]
        by_id = {one.workflow: one async for one in self.api.states_in_turn(here)}
        if FORWARDED in call.scope["state"]["headers"]:
            return schema.WorkflowsWords([*by_id.values()])
        for holder in self.holding.others():
            with suppress(RefusedError):
                words = msgspec.json.decode(await self._forward(holder, call), type=schema.WorkflowsWords)
                by_id.update((one.workflow, one) for one in words.workflows if one.workflow not in by_id)
        return schema.WorkflowsWords([by_id.get(id) or await self.api.stored_state(id) for id in chosen], before)


def _refusal(status: int, headers: dict[str, str], body: bytes) -> RefusedError:
    try:
        sentence = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        sentence = "another server refused the request"
    after = headers.get("retry-after", "")
    return RefusedError(status, sentence, float(after) if after.isdecimal() else None)
