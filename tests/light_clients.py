"""Clients of a server by the hundred in one process: they speak its protocol over plain sockets, and note all they know."""

import asyncio
import json
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PATIENCE = 20.0  # seconds until a server that says nothing is away
Address = tuple[str, int]


class Head(NamedTuple):
    """The first line of a message, its headers, and both as they came."""

    first: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def status(self) -> int:
        return int(self.first.split()[1])


async def read_message(reader: asyncio.StreamReader, bodiless: bool = False) -> tuple[Head, bytes]:
    """A request or an answer with a length."""
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    headers = {name.lower(): word.strip() for name, _, word in (line.partition(":") for line in lines)}
    length = 0 if bodiless else int(headers.get("content-length", "0"))
    return Head(first, headers, raw), await reader.readexactly(length)


@dataclass(eq=False)
class Ledger:
    """What all clients together know: the truth that the server's store is held against at the end."""

    executed: Counter[str] = field(default_factory=Counter)  # how often each task was begun
    unsure: Counter[str] = field(default_factory=Counter)  # results of each task that were sent and not answered
    answers: dict[str, str] = field(default_factory=dict)  # what was said to each lease's result
    given: dict[str, str] = field(default_factory=dict)  # the task of each lease
    codes: Counter[int] = field(default_factory=Counter)
    cuts: int = 0
    #: how long calls took that did not wait for work
    took: list[float] = field(default_factory=list)
    #: answers that contradict earlier ones
    wrong: list[str] = field(default_factory=list)

    def answered(self, lease: str, answer: str) -> None:
        before = self.answers.setdefault(lease, answer)
        if before != answer:
            self.wrong.append(f"{lease}: {before}, then {answer}")

    def add(self, other: "Ledger") -> None:
        """Add what clients elsewhere know."""
        for mine, theirs in ((self.executed, other.executed), (self.unsure, other.unsure)):
            mine.update(theirs)
        self.codes.update(other.codes)
        for lease, answer in other.answers.items():
            self.answered(lease, answer)
        self.given.update(other.given)
        self.took += other.took
        self.wrong += other.wrong
        self.cuts += other.cuts

    @property
    def accepted(self) -> set[str]:
        return {lease for lease, answer in self.answers.items() if answer == "accepted"}


@dataclass(eq=False)
class LightClient:
    """One client. *does* says what comes of a task: the fields of its result, or None: the client is never heard of again."""

    address: Address
    ledger: Ledger
    chance: random.Random
    nap: float = 0.0  # seconds that a task takes on average
    token: str | None = None
    does: Callable[[str], Mapping[str, Any] | None] = lambda task: {}
    wait: float = 0.5  # seconds that it lets the server hold a request
    size: int = 1
    pause: float = 0.5  # seconds at most between two tries
    renews: bool = True
    id: str = ""

    _reader: asyncio.StreamReader | None = None
    _writer: asyncio.StreamWriter | None = None

    async def once(self, method: str, path: str, body: bytes = b"", key: str = "") -> tuple[Head, bytes]:
        """What is answered to one try."""
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection(*self.address, limit=2**24)
        who = f"Eligo-Client: {self.id}\r\n" if self.id and not self.token else ""
        who += f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        key = f"Idempotency-Key: {key}\r\n" if key else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{who}{key}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        return await read_message(self._reader)

    def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def call(
        self, path: str, words: Mapping[str, Any], lost: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """What is answered to a POST, tried again under the same key until somebody answers."""
        body, key = json.dumps(words).encode(), secrets.token_urlsafe(16)
        while True:
            began = time.perf_counter()
            try:
                head, said = await asyncio.wait_for(self.once("POST", path, body, key), PATIENCE)
            except (OSError, EOFError, TimeoutError):
                self.hang_up()
                self.ledger.cuts += 1
                lost()
                await asyncio.sleep(self.chance.uniform(0, self.pause))
                continue
            self.ledger.codes[head.status] += 1
            if path != "/v1/request":
                self.ledger.took.append(time.perf_counter() - began)
            if head.status not in {429, 503}:
                assert head.status < 300, f"{path}: {head.first} {said!r}"
                answer: dict[str, Any] = json.loads(said)
                return answer
            if head.headers.get("connection") == "close":
                self.hang_up()
            await asyncio.sleep(min(self.pause, float(head.headers["retry-after"])) * self.chance.uniform(0.5, 1.5))

    async def enrol(self) -> None:
        if not self.id:
            told = await self.call("/v1/clients", {"name": "light", "cores": 1, "version": "0"})
            self.id, self.token = told["client"], told["token"] or self.token

    def asking(self) -> dict[str, Any]:
        return {"count": 1, "size": self.size, "wait": self.wait, "cores": 1}

    async def work(self, over: Callable[[], bool]) -> None:
        """Ask, do and deliver until all is over; what it has then it has delivered."""
        await self.enrol()
        reply: dict[str, Any] = {"grants": []}
        while not over():
            tasks = [task for grant in reply["grants"] for task in grant["tasks"]]
            if not tasks:
                await asyncio.sleep(min(reply.get("wait", 0.0), self.pause))
                reply = await self.call("/v1/request", self.asking())
                continue
            if (found := await self._done(tasks, reply["lease"])) is None:
                break
            reply = found
        self.hang_up()

    async def _done(self, tasks: list[dict[str, Any]], lease: float) -> dict[str, Any] | None:
        """What is said to the last result of a grant, whose members are delivered one by one."""
        reply: dict[str, Any] = {"grants": []}
        for place, task in enumerate(tasks, 1):
            self.ledger.given[task["lease"]] = task["task"]
            self.ledger.executed[task["task"]] += 1
            fields = self.does(task["task"])
            if fields is None:
                return None
            await self._nap([each["lease"] for each in tasks[place - 1 :]], lease)
            reply = await self.deliver([task], fields, self.asking() if place == len(tasks) else None)
        return reply

    async def _nap(self, leases: list[str], lease: float) -> None:
        left = self.chance.uniform(0, 2 * self.nap)
        while left > 0:
            await asyncio.sleep(step := min(left, lease / 3))
            left -= step
            if left > 0 and self.renews:
                await self.call("/v1/renew", {"leases": leases})

    async def deliver(
        self, tasks: list[dict[str, Any]], fields: Mapping[str, Any], ask: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Deliver until it is answered, and note what was."""
        results = [
            {"lease": task["lease"], "outcome": "done", "seconds": self.nap, "code": 0, **fields} for task in tasks
        ]
        names = [task["task"] for task in tasks]
        reply = await self.call(
            "/v1/deliver", {"results": results, "ask": ask}, lambda: self.ledger.unsure.update(names)
        )
        for task, answer in zip(tasks, reply["answers"], strict=True):
            self.ledger.answered(task["lease"], answer)
        return reply


async def working(clients: list[LightClient], over: asyncio.Event, seconds: float) -> bool:
    """Have clients work until all is over; False where it takes longer than so many seconds."""
    tasks = [asyncio.ensure_future(client.work(over.is_set)) for client in clients]
    try:
        done, late = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        return not late
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in clients:
            client.hang_up()


def percentile(numbers: list[float], share: float = 0.99) -> float:
    """Below this so large a share of numbers lies."""
    return sorted(numbers)[min(len(numbers) - 1, int(share * len(numbers)))] if numbers else 0.0
