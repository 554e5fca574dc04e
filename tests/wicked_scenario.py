"""A server that is killed again and again while wicked clients work for it, held against `Promises`."""

import asyncio
import random
import secrets
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from eligo.stores.service_sqlite import service_store
from fault_scenarios import Size
from forked_server import ForkedServer
from light_clients import Ledger, percentile
from server_faults import Line, Reply, ServerProcess, Verdict, layered, line
from service_model import Promises, counted
from wicked_clients import WickedClient

RETRIES, LOST, COPIES = 3, 10, 2
OPEN = 6  # workflows at a time
TASKS = 1_000  # of each
PATIENCE = 240.0  # seconds until the last workflow has ended, once nobody is killed any more, and a twentieth a task


@dataclass
class Owner:
    """Submits workflow after workflow, retries what failed, and cancels some."""

    server: ServerProcess
    promises: Promises
    rng: random.Random
    left: int  # tasks to be submitted
    states: dict[str, str] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    cured: set[str] = field(default_factory=set)  # workflows all of whose tasks were retried, and fail no more

    @property
    def over(self) -> bool:
        return not self.left and all(state in {"done", "cancelled"} for state in self.states.values())

    async def look(self) -> None:
        """Submit what may be, and see to what goes on."""
        going = [workflow for workflow, state in self.states.items() if state not in {"done", "cancelled"}]
        for workflow in going:
            state = (await self._call("GET", f"/v1/workflows/{workflow}")).words["state"]
            self.states[workflow] = state
            if state == "failed":
                await self._retry(workflow)
            elif self.rng.random() < 0.0005:
                await self._call("POST", f"/v1/workflows/{workflow}/cancel", {})
        if len(going) < OPEN and self.left:
            await self._submit()

    async def _submit(self) -> None:
        size = min(TASKS, self.left)
        self.left -= size
        tasks = layered(size, 200, seed=self.left)
        for task in tasks[-1:-100:-37]:
            task["run"] = "false"
        quorum = 2 if len(self.states) % 5 == 4 else 1
        query = f"format=json&copies={COPIES}&files=false&policy=fifo&retries={RETRIES}&quorum={quorum}"
        words = (await self._call("POST", f"/v1/workflows?{query}", {"tasks": tasks})).words
        parents = {task["name"]: task["after"] for task in tasks}
        self.promises.parents[words["workflow"]] = parents
        self.names[words["workflow"]] = list(parents)
        self.states[words["workflow"]] = "running"

    async def _retry(self, workflow: str) -> None:
        self.cured.add(workflow)
        self.promises.retry(workflow, self.names[workflow])
        await self._call("POST", f"/v1/workflows/{workflow}/retry", {})

    async def _call(self, method: str, path: str, words: Any = None) -> Reply:
        key = {"Idempotency-Key": secrets.token_hex(8)} if method == "POST" else {}
        while True:
            try:
                reply = await asyncio.to_thread(self.server.call, method, path, words, key)
                if reply.status not in {429, 503}:
                    ended = path.endswith("/retry") and reply.status < 500  # it went on after an answer that was lost
                    assert reply.status < 300 or ended, (path, reply)
                    return reply
            except (OSError, HTTPException):
                pass
            await asyncio.sleep(0.2)


def wicked_kills(folder: Path, size: Size, between: tuple[float, float], seconds: float) -> Line:
    """Kill -9 the server, some of the time also while it comes back, for so many seconds at most."""
    began, promises, rng = time.monotonic(), Promises(RETRIES, LOST), random.Random(size.seed)
    ledger = Ledger()
    with ForkedServer(folder, "--lease", "1", "-q") as server:
        owner = Owner(server, promises, rng, size.tasks)
        asyncio.run(_play(owner, ledger, (size, between, seconds)))
        server.kill()
        kills = server.kills - 1
        assert "Traceback" not in server.log(), server.log()[-3000:]
    wrong, answers, most = _judged(owner)
    assert wrong == [], (len(wrong), kills, wrong[:6])
    slow = sorted(server.starts[1:])
    said = f"{kills} kills; {len(promises.said):,} results, {answers.total():,} leases: {_listed(answers)}; "
    said += f"a task failed at most {most} times, also late, as a copy and after its owner retried it; "
    said += f"back in {percentile(slow, 0.5):.2f} s, at most {slow[-1]:.2f} s"
    what = ("1", "kill -9 of the server, clients that do all they should not", str(size))
    return line(what, began, said, Verdict(0, answers.total() - answers["accepted"], 0))


def _listed(answers: Counter[str]) -> str:
    return ", ".join(f"{count:,} {answer}" for answer, count in answers.most_common())


def _judged(owner: Owner) -> tuple[list[str], Counter[str], int]:
    """What does not hold, how leases ended, and how often a task failed at most."""
    wrong, answers, most = list[str](), Counter[str](), 0
    with closing(service_store(str(owner.server.store))) as store:
        for workflow, state in owner.states.items():
            ends = list(store.outcomes(workflow))
            wrong += owner.promises.judge(workflow, owner.names[workflow], ends, state)
            answers.update(end.answer for end in ends)
            most = max(most, 0, *counted(ends, "failed").values())
    return wrong, answers, most


async def _play(owner: Owner, ledger: Ledger, how: tuple[Size, tuple[float, float], float]) -> None:
    size, between, seconds = how
    server, rng, over = owner.server, owner.rng, asyncio.Event()
    clients = [
        WickedClient(
            server.address,
            ledger,
            random.Random(size.seed * 1000 + i),
            promises=owner.promises,
            cured=owner.cured,
        )
        for i in range(size.clients)
    ]
    doing = [asyncio.ensure_future(client.work(over.is_set)) for client in clients]
    owning = asyncio.ensure_future(_own(owner, over))
    try:
        until = time.monotonic() + seconds
        while server.kills < size.kills and time.monotonic() < until and not over.is_set():
            await asyncio.sleep(rng.uniform(*between))
            await _kill(server, rng, [owning, *doing])
        async with asyncio.timeout(PATIENCE + size.tasks / 20):
            await asyncio.gather(owning, *doing)
    finally:
        over.set()
        for task in (owning, *doing):
            task.cancel()
        await asyncio.gather(owning, *doing, return_exceptions=True)


async def _kill(server: ServerProcess, rng: random.Random, doing: "list[asyncio.Task[None]]") -> None:
    for task in doing:
        if task.done():
            task.result()
    server.kill()
    while rng.random() < 0.4:
        server.begin()
        await asyncio.sleep(rng.uniform(0.05, 1.5))
        server.kill()
    await asyncio.to_thread(server.start)


async def _own(owner: Owner, over: asyncio.Event) -> None:
    while not owner.over:
        await owner.look()
        await asyncio.sleep(0.1)
    over.set()
