"""A server for a long while: clients come and die, it is killed itself, workflows come and end; it must not grow."""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from fault_scenarios import watched
from light_clients import Ledger, LightClient, working
from server_faults import Kept, Line, ServerProcess, judged, kept, layered, light, line, worker

MEGABYTE = 2**20
TASKS = 500  # of a workflow, of which two are served at a time
REAL = 4  # of the clients
GROWS = 32 * MEGABYTE  # that a server may, once it is warm
STEADY = 4 * MEGABYTE  # that it may between 30,000 tasks and 60,000
FILES = 64  # that it may have open beside its connections
QUIET = 1 / 3  # of the time, at the end, in which the server is not killed: how it grows is seen there


class Sample(NamedTuple):
    """What the server had at some moment, in which of its lives."""

    life: int
    at: float
    memory: int
    files: int


@dataclass(eq=False)
class Soak:
    """What goes on."""

    server: ServerProcess
    until: float
    clients: int
    chance: random.Random = field(default_factory=lambda: random.Random(32))
    ledger: Ledger = field(default_factory=Ledger)
    workflows: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    died: Counter[str] = field(default_factory=Counter)
    #: workflows that have not ended
    open: int = 0

    def over(self) -> bool:
        return time.monotonic() > self.until and not self.open

    def does(self, task: str) -> Mapping[str, Any] | None:
        """One client in five hundred dies with its task, one task in a hundred fails."""
        number = self.chance.random()
        return None if number < 0.002 else {"outcome": "failed", "code": 1} if number < 0.012 else {}


def soak(folder: Path, seconds: float, clients: int = 100) -> Line:
    """So many clients for so long, four of them real; they and the server are killed at random."""
    began = time.monotonic()
    with ServerProcess(folder, "--lease", "3", "-q") as server:
        going = Soak(server, began + seconds, clients)
        asyncio.run(_going(going, folder, began + (1 - QUIET) * seconds))
        size = sum(path.stat().st_size for path in folder.glob("served.db*"))
        server.kill()
        assert "Traceback" not in server.log(), server.log()[-3000:]
        found = _all_kept(going)
        verdict = judged(found, going.ledger)
    most = max(sample.files for sample in going.samples)
    assert most <= clients + REAL + FILES, f"{most} files are open"
    first, last = _warm(going.samples)
    assert last - first < GROWS, f"it grew from {first / MEGABYTE:.0f} to {last / MEGABYTE:.0f} MiB"
    said = f"{server.kills - 1} kills of the server, {going.died['light']} light and {going.died['real']} real clients died; "
    said += (
        f"its last {QUIET * seconds:.0f} s {first / MEGABYTE:.0f} MiB when warm, {last / MEGABYTE:.0f} MiB at the end"
    )
    said += f" (most ever {max(s.memory for s in going.samples) / MEGABYTE:.0f}); at most {most} files open"
    said += f"; store {size / MEGABYTE:.0f} MiB"
    what = (
        "32",
        f"{seconds:g} s of kills",
        f"{len(found.tasks):,} tasks in {len(going.workflows)} workflows, {clients} clients",
    )
    return line(what, began, said, verdict)


def _all_kept(going: Soak) -> Kept:
    """What is kept of all workflows together; what real clients did is known from there only."""
    each = [kept(going.server.store, workflow) for workflow in going.workflows]
    tasks = [task for one in each for task in one.tasks]
    ends = {lease: end for one in each for lease, end in one.ends.items()}
    for lease, (task, _) in ends.items():
        going.ledger.executed[task] += lease not in going.ledger.given
    return Kept(tasks, ends, sum((one.completed for one in each), start=Counter[str]()))


def _warm(samples: list[Sample]) -> tuple[int, int]:
    """The memory of the server's last life: in the middle on average, once it is warm, and at the end."""
    last = [sample.memory for sample in samples if sample.life == samples[-1].life]
    assert len(last) >= 8, "it did not live long enough to be looked at"
    part = len(last) // 4
    return sum(last[part : 2 * part]) // part, sum(last[-part:]) // part


async def _going(going: Soak, folder: Path, quiet: float) -> None:
    jobs = [_serving(going), _serving(going), _killing(going, quiet), _looking(going)]
    jobs += [_light(going) for _ in range(going.clients - REAL)]
    jobs += [_real(going, folder / f"w{number}") for number in range(REAL)]
    try:
        async with asyncio.timeout(going.until - time.monotonic() + 120):
            await asyncio.gather(*jobs)
    finally:
        going.until = going.open = 0  # whatever happens: until Python 3.12, whoever is cancelled may not notice it


async def _serving(going: Soak) -> None:
    """One workflow after the other, until time is over."""
    while time.monotonic() < going.until:
        going.open += 1
        name, server = f"f{len(going.workflows)}", going.server
        going.workflows.append("")
        place, key = len(going.workflows) - 1, {"Idempotency-Key": secrets.token_hex(8)}
        tasks = [
            {"name": f"{name}.{task['name']}", "run": "sleep 0.3", "after": [f"{name}.{v}" for v in task["after"]]}
            for task in layered(TASKS, 100, seed=place)
        ]
        asked = "/v1/workflows?format=json&copies=1&files=false&policy=fifo&retries=20"
        workflow = going.workflows[place] = (await _insist(server, "POST", asked, {"tasks": tasks}, key))["workflow"]
        while (await _insist(server, "GET", f"/v1/workflows/{workflow}"))["state"] == "running":
            await asyncio.sleep(0.3)
        going.open -= 1


async def _insist(server: ServerProcess, *words: Any) -> dict[str, Any]:
    """What is answered, once somebody answers who does not say to come again."""
    while True:
        with suppress(OSError, HTTPException):
            reply = await asyncio.to_thread(server.call, *words)
            if reply.status not in {429, 503}:
                assert reply.status < 300, reply
                return dict(reply.words)
        await asyncio.sleep(0.2)


async def _killing(going: Soak, quiet: float) -> None:
    """Kill the server at random, until it shall be quiet."""
    while (left := quiet - time.monotonic()) > 0:
        await asyncio.sleep(min(left, going.chance.uniform(1.0, 20.0)))
        going.server.kill()
        await asyncio.to_thread(going.server.start)


async def _looking(going: Soak) -> None:
    """What the server has, twice a second."""
    while not going.over():
        with suppress(OSError, IndexError, AssertionError):  # it is dead just now
            server = going.server
            going.samples.append(Sample(server.kills, time.monotonic(), server.memory("VmRSS"), server.files()))
        await asyncio.sleep(0.5)


async def _light(going: Soak) -> None:
    """A light client, and another where it dies."""
    while not going.over():
        chance = random.Random(going.chance.random())
        client = LightClient(going.server.address, going.ledger, chance, 0.3, does=going.does)
        await client.work(going.over)
        going.died["light"] += not going.over()


async def _real(going: Soak, folder: Path) -> None:
    """A real client that is killed at random, and another."""
    while not going.over():
        with worker(going.server, folder):
            until = time.monotonic() + going.chance.uniform(5.0, 30.0)
            while not going.over() and time.monotonic() < until:
                await asyncio.sleep(0.2)
        going.died["real"] += not going.over()


def steady(folder: Path, tasks: int, clients: int = 40, each: int = 2000) -> Line:
    """Workflow after workflow without a fault: once it remembers as many calls as it ever does, it grows no more."""
    began, ledger, memory = time.monotonic(), Ledger(), list[int]()
    with ServerProcess(folder, "-q") as server:
        crowd = light(clients, server.address, ledger)
        for number in range(tasks // each):
            workflow = server.submit(layered(each, 200, seed=number))
            asyncio.run(watched(server, workflow, partial(_worked, crowd)))
            memory.append(server.memory("VmRSS"))
        server.kill()
        assert "Traceback" not in server.log(), server.log()[-3000:]
    half, end = memory[len(memory) // 2], memory[-1]
    assert end - half < STEADY, [one // MEGABYTE for one in memory]
    said = f"{memory[0] / MEGABYTE:.0f} MiB after the first workflow, {half / MEGABYTE:.0f} MiB half way, "
    said += f"{end / MEGABYTE:.0f} MiB at the end"
    what = ("32", "workflow after workflow", f"{tasks:,} tasks in {tasks // each} workflows, {clients} clients")
    return line(what, began, said)


async def _worked(crowd: list[LightClient], server: ServerProcess, over: asyncio.Event) -> None:
    assert await working(crowd, over, 300), "it took too long"
