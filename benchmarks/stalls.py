"""How long one step holds the event loop of a server, for every policy, and how long a client waits during a large submit.

A step is measured by the processor time of its thread, so that other work on the machine does not count. The calls over HTTP
are measured on the wall, beside the same calls before the submit.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.serving import Connection, eligo, served
from benchmarks.timing import heading, row, verdict
from eligo.allocating import ALLOCATORS
from eligo.dag import Dag
from eligo.execution import FAILED
from eligo.formats.shared.columns import Described
from eligo.pages.views import view
from eligo.policies import POLICIES
from eligo.rows import Ints
from eligo.server.asking import Request
from eligo.server.operations import RETRIED
from eligo.server.packing import unpacked_plan
from eligo.server.preparing import MOST_TASKS, Prepared, Wishes, prepared
from eligo.server.replanning import LARGEST, order_of_rest, standing
from eligo.server.service import Service
from eligo.server.telling import workflow_words
from eligo.server.watching import WatchedServed
from eligo.server.whole import SELDOM
from eligo.server.words import ResultWords, encode
from eligo.workflow import Workflow

SIZE, HALF = 1_000_000, 1_000
GRANT, STEP, ASK = 20.0, 100.0, 100.0  # milliseconds
LATER, TOGETHER = 20, 1_000  # tasks that are done one by one, after the first; those of one grant where all are done
T = TypeVar("T")


def shapes(size: int) -> dict[str, Callable[[], Dag]]:
    """The dags whose steps are long, each of so many tasks."""
    some, rest = np.arange(size, dtype=np.int32), np.arange(1, size, dtype=np.int32)
    half = min(HALF, size // 2)

    def arcs(tails: Ints, heads: Ints, count: int = size) -> Dag:
        return Dag.from_arrays(count, tails, heads, [f"t{i}" for i in range(count)])

    def complete() -> Dag:
        tails, heads = np.triu_indices(half, 1)
        return arcs(tails.astype(np.int32), heads.astype(np.int32), half)

    return {
        "star": lambda: arcs(np.zeros(size - 1, np.int32), rest),
        "roots": lambda: arcs(some[:0], some[:0]),
        "chain": lambda: arcs(some[:-1], rest),
        "join": lambda: arcs(some[:-1], np.full(size - 1, size - 1, np.int32)),
        "two hubs": lambda: arcs(np.repeat(some[:2], size - 2), np.tile(some[2:], 2)),
        "complete": complete,
    }


class Steps:
    """The longest of each kind of step, in milliseconds of processor time."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}

    def take(self, kind: str, step: Callable[..., T], *given: Any) -> T:
        """Take a step."""
        begin = time.thread_time()
        outcome = step(*given)
        self.longest[kind] = max(self.longest.get(kind, 0.0), 1e3 * (time.thread_time() - begin))
        return outcome

    def most(self, *kinds: str) -> float:
        """The longest of some kinds of steps."""
        return max(self.longest.get(kind, 0.0) for kind in kinds)


class Served:
    """A workflow on a server without a network, and one client that has no limit."""

    def __init__(self, ready: Prepared, steps: Steps) -> None:
        self.steps, self.service = steps, Service()
        self.served = self.service.built(0.0, ready, "key")
        steps.take("submit", self.service.submit, 0.0, self.served, "key")
        self.client = self.service.enrol(0.0, "bench")
        self.client.quota = 1e9
        self.asked = 0

    def ask(self, size: int = 1) -> list[str]:
        """The leases that the client gets, once its workflow has caught up."""
        service, self.asked = self.service, self.asked + 1
        ticket = service.ask(0.0, self.client, str(self.asked), Request(size=size))
        self.steps.take("grant", service.serve, 0.0)
        while service.books.agenda.behind:
            self.steps.take("grant", service.serve, 0.0)
        self.steps.take("keep", service.take_changes)
        return [lease.id for granted in ticket.grants for lease in granted.leases]

    def bring(self, leases: list[str], outcome: Any = "done") -> None:
        """The client brings results."""
        results = [ResultWords(lease, outcome, 0.0) for lease in leases]
        self.steps.take("results", self.service.deliver, 0.0, self.client, results)
        self.steps.take("keep", self.service.take_changes)

    def look(self) -> None:
        """Somebody looks at it."""
        self.steps.take("status", workflow_words, self.served, self.service)
        watched = WatchedServed(self.served, self.service)
        watched.prepare()
        self.steps.take("view", lambda: encode(view(watched)))

    def hold(self) -> None:
        """Its owner holds it for a while."""
        self.steps.take("pause", self.service.pause, 0.0, self.served.id)
        self.steps.take("resume", self.service.resume, 0.0, self.served.id)

    def end(self) -> None:
        """Its owner cancels it."""
        self.steps.take("cancel", self.service.cancel, 0.0, self.served.id)
        self.steps.take("keep", self.service.take_changes)


def ready_of(dag: Dag, policy: str) -> Prepared:
    """A workflow as the preparing process gives it; of large ones the plan is that of the dag's own order."""
    flow, wishes = Workflow(dag, Described(dag, {"command": ["true"] * len(dag)})), Wishes(policy=policy, files=False)
    return Prepared(flow, wishes, b"", dag.order) if policy not in MOST_TASKS else prepared(flow, wishes)


def play(dag: Dag, policy: str) -> Steps:
    """Begin with a workflow, look at it, and cancel it."""
    steps = Steps()
    scene = Served(ready_of(dag, policy), steps)
    leases = scene.ask()
    for _ in range(min(LATER, len(dag) // 3)):
        scene.bring(leases)
        leases = scene.ask()
    scene.look()
    scene.hold()
    scene.end()
    return steps


def joined(size: int) -> Steps:
    """All but the last task of a join are done when a server begins; then its last parent is."""
    dag, steps = shapes(size)["join"](), Steps()
    scene = Served(ready_of(dag, "fifo"), steps)
    while leases := scene.ask(TOGETHER):
        scene.bring(leases)
    return steps


def failed(size: int) -> Steps:
    """Every task fails for good, and is tried again."""
    steps = Steps()
    ready = ready_of(shapes(size)["roots"](), "fifo")
    scene = Served(ready._replace(wishes=Wishes(policy="fifo", files=False, retries=0)), steps)
    while leases := scene.ask(TOGETHER):
        scene.bring(leases, "failed")
    scene.look()
    names = list(scene.served.execution.failed)
    for first in range(0, len(names), RETRIED):
        some = names[first : first + RETRIED]
        steps.take("retry", scene.service.retry, 0.0, scene.served.id, some)
        steps.take("keep", scene.service.take_changes)
    scene.ask()
    scene.end()
    assert not scene.served.execution.numbers(FAILED)
    return steps


def futile(size: int) -> Steps:
    """The task that all others wait for fails for good."""
    steps = Steps()
    ready = ready_of(shapes(size)["star"](), "fifo")
    scene = Served(ready._replace(wishes=Wishes(policy="fifo", files=False, retries=0)), steps)
    scene.bring(scene.ask(), "failed")
    scene.look()
    return steps


def replanned() -> Steps:
    """The largest workflow that is planned anew while it is served follows its new plan."""
    steps = Steps()
    scene = Served(ready_of(shapes(LARGEST)["star"](), "finish"), steps)
    scene.bring(scene.ask())
    order = order_of_rest(steps.take("standing", standing, scene.served))
    steps.take("replan", scene.service.replan, scene.served.id, order)
    assert unpacked_plan(scene.service.books.changes.plans[0][1], LARGEST)
    return steps


def told(cells: Mapping[str, float], most: float) -> tuple[Any, ...]:
    """Rounded figures, and whether none is above the target."""
    return (*(round(cell, 1) for cell in cells.values()), verdict(max(cells.values()) <= most))


def policies(size: int) -> None:
    """The longest grant of every policy for every shape, and the longest of all other steps."""
    names, widths = [*POLICIES, *ALLOCATORS], (24, 9, 9, 9, 9, 9, 9, 9)
    grants: dict[str, dict[str, float]] = {name: {} for name in names}
    others = Steps()
    for shape, made in shapes(size).items():
        dag = made()
        for name in names:
            most = MOST_TASKS.get(name, size)
            steps = play(dag if len(dag) <= most else shapes(most)[shape](), name)
            grants[name][shape] = steps.most("grant")
            for kind, longest in steps.longest.items():
                others.longest[kind] = max(others.longest.get(kind, 0.0), longest)
    title = f"Longest grant, ms of processor time: {size:,} tasks, or as many as a policy serves (target {GRANT:g})"
    heading(title, ("policy", *shapes(size), ""), widths)
    for name in names:
        row((name, *told(grants[name], GRANT)), widths)
    everything(others, size)


def everything(others: Steps, size: int) -> None:
    """The longest of all other steps."""
    widths = (44, 9, 9)
    heading(f"Longest step, ms of processor time: {size:,} tasks (target {STEP:g})", ("step", "ms", ""), widths)
    parts = {"": others, ", all of a join": joined(size), ", all failed": failed(size), ", all blocked": futile(size)}
    parts[f", {LARGEST:,} tasks"] = replanned()
    for part, steps in parts.items():
        for kind, longest in steps.longest.items():
            row((kind + part, *told({kind: longest}, STEP)), widths)


# Over HTTP


def bodies(size: int) -> dict[str, bytes]:
    """Large workflows, as they are submitted."""
    draws = np.random.default_rng(1)
    words: dict[str, list[dict[str, Any]]] = {
        "roots with long commands": [{"run": "echo " + draws.bytes(48).hex()} for _ in range(9 * size // 10)],
        "chain": [{"run": "true", "after": [f"t{i - 1}"] if i else []} for i in range(size)],
        "star": [{"run": "true", "after": ["t0"] if i else []} for i in range(size)],
        "join": [{"run": "true", "after": [f"t{j}" for j in range(i)] if i == size - 1 else []} for i in range(size)],
        "complete": [{"run": "true", "after": [f"t{j}" for j in range(i)]} for i in range(round((16 * size) ** 0.5))],
    }
    return {
        shape: json.dumps({"tasks": [{"name": f"t{i}", **one} for i, one in enumerate(tasks)]}).encode()
        for shape, tasks in words.items()
    }


async def pair(wire: Connection, client: str) -> float:
    """Ask for a task and bring it back; the seconds that the ask took."""
    reply = await wire.post("/v1/request", {}, client)
    spent = wire.seconds[-1]
    leases = [task["lease"] for grant in reply["grants"] for task in grant["tasks"]]
    if leases:
        results = [{"lease": lease, "outcome": "done", "seconds": 0.001, "code": 0} for lease in leases]
        await wire.post("/v1/deliver", {"results": results}, client)
    return spent


def submitted(address: tuple[str, int], body: bytes) -> None:
    """Submit a workflow; this blocks."""
    wire = HTTPConnection(*address, timeout=600)
    wire.request("POST", "/v1/workflows?files=false&policy=fifo", body, {"Idempotency-Key": "large"})
    if wire.getresponse().status != HTTPStatus.CREATED:
        raise RuntimeError("the submit was refused")


async def asked(address: tuple[str, int], body: bytes) -> tuple[list[float], list[float]]:
    """The seconds of asks before a submit and during it."""
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(Connection, *address)
    await wire.post(
        "/v1/workflows?files=false", {"tasks": [{"name": f"s{i}", "run": "true"} for i in range(20_000)]}, ""
    )
    client = (await wire.post("/v1/clients", {"name": "bench"}, ""))["client"]
    before = [await pair(wire, client) for _ in range(300)]
    submit = asyncio.create_task(asyncio.to_thread(submitted, address, body))
    during = []
    while not submit.done():
        during.append(await pair(wire, client))
        await asyncio.sleep(0.002)
    await submit
    return before, during


def submits(size: int) -> None:
    """The longest ask during each submit."""
    widths = (30, 9, 12, 12, 9)
    columns = ("submit", "MB", "ms before", "ms during", "")
    heading(
        f"Longest ask over HTTP during a submit of {size:,} tasks or 8 arcs for each (target {ASK:g} ms)",
        columns,
        widths,
    )
    for shape, body in bodies(size).items():
        with tempfile.TemporaryDirectory() as place, served(*eligo(Path(place) / "s.db")) as (host, port, _):
            before, during = asyncio.run(asked((host, int(port)), body))
        longest = [1e3 * max(seconds) for seconds in (before, during)]
        row((shape, len(body) / 1e6, *map(float, longest), verdict(longest[1] <= ASK)), widths)


def run() -> None:
    """Steps without a network, then asks over HTTP."""
    gc.freeze()
    gc.set_threshold(SELDOM)  # as a server does
    policies(SIZE)
    submits(SIZE)
