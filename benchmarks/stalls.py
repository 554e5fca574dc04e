"""How long one step holds the event loop of a server, for every policy, and how long a client waits during a large submit.

A step is measured by the processor time of its thread, so that other work on the machine does not count. The calls over HTTP
are measured on the wall, beside the same calls before the submit.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.serving import Connection, eligo, served
from benchmarks.timing import heading, row, verdict
from eligo.allocating import ALLOCATORS
from eligo.dag import Dag
from eligo.execution import FAILED
from eligo.formats.shared.document import Described
from eligo.pages.views import view
from eligo.policies import POLICIES
from eligo.rows import Ints
from eligo.server.app import SELDOM
from eligo.server.operations import RETRIED
from eligo.server.rules.prepared import MOST_ARCS, MOST_TASKS, Prepared, Wishes, needed_arcs, prepare
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, ResultWords, encode
from eligo.server.view.answers import workflow_words
from eligo.server.view.followed import WatchedServed
from eligo.workflow import Workflow

SIZE, HALF = 1_000_000, 1_000
GRANT, STEP, ASK = 20.0, 100.0, 100.0  # milliseconds
LATER, TOGETHER = 20, 1_000  # tasks that are done one by one, after the first; those of one grant where all are done
TOGETHER_SUBMITS = 4
SIZES = (1, 20, 100)  # tasks of a request, for policies that choose a set for each client
T = TypeVar("T")


def shapes(size: int) -> dict[str, Callable[[], Dag]]:
    """The dags whose steps are long, each of *size* tasks."""
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
        "bipartite": lambda: arcs(*random_arcs(some[: size // 5], some[size // 5 :], 3)),
        "few sinks": lambda: arcs(*random_arcs(some[: size - 20], some[size - 20 :], 300)),
        "10 layers": lambda: arcs(*layered(size, 10, 3)),
        "20 layers": lambda: arcs(*layered(size, 20, 5)),
    }


def random_arcs(sources: Ints, sinks: Ints, degree: int) -> tuple[Ints, Ints]:
    """For every sink, *degree* sources at random."""
    degree = min(degree, len(sources))
    picked = np.random.default_rng(26).integers(0, len(sources) - degree + 1, (len(sinks), degree))
    tails = sources[np.sort(picked, axis=1) + np.arange(degree)]  # sorted and shifted, no source comes twice
    return tails.ravel(), np.repeat(sinks, degree)


def layered(size: int, layers: int, degree: int) -> tuple[Ints, Ints]:
    """Layers of equal width; every task waits for some of the layer above."""
    rows = np.array_split(np.arange(size, dtype=np.int32), layers)
    pairs = [random_arcs(above, below, degree) for above, below in pairwise(rows)]
    return np.concatenate([tails for tails, _ in pairs]), np.concatenate([heads for _, heads in pairs])


class Longest(NamedTuple):
    """A step: its milliseconds of processor time, those of garbage collection among them, and where it happened."""

    ms: float
    garbage: float
    where: str


class Collector:
    """Counts the processor time of garbage collection."""

    def __init__(self) -> None:
        self.seconds, self._begin = 0.0, 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._begin = time.thread_time()
        else:
            self.seconds += time.thread_time() - self._begin


COLLECTOR = Collector()


class Steps:
    """The longest of each kind of step."""

    def __init__(self, where: str = "") -> None:
        self.where = where
        self.longest: dict[str, Longest] = {}

    def take(self, kind: str, step: Callable[..., T], *given: Any) -> T:
        """Take a step."""
        garbage, begin = COLLECTOR.seconds, time.thread_time()
        outcome = step(*given)
        spent, garbage = time.thread_time() - begin, COLLECTOR.seconds - garbage
        self.note(kind, Longest(1e3 * spent, 1e3 * garbage, self.where))
        return outcome

    def note(self, kind: str, step: Longest) -> None:
        """Keep a step if it is the longest of its kind."""
        if kind not in self.longest or step > self.longest[kind]:
            self.longest[kind] = step

    def most(self, kind: str) -> float:
        """The milliseconds of the longest of a kind of steps."""
        return self.longest[kind].ms if kind in self.longest else 0.0


class Served:
    """A workflow on a server without a network, and one client that has no limit."""

    def __init__(self, ready: Prepared, steps: Steps) -> None:
        gc.collect()  # otherwise the workflows of earlier measurements would be freed in a step of this one
        self.steps, self.service = steps, Service()
        self.served = self.service.built(0.0, ready, "key")
        steps.take("submit", self.service.submit, 0.0, self.served, "key")
        self.client = self.service.enrol(0.0, "bench")
        self.client.quota = 1e9
        self.asked = 0

    def ask(self, size: int = 1) -> list[str]:
        """The leases that the client gets, once its workflow has caught up."""
        service, self.asked = self.service, self.asked + 1
        ticket = service.ask(0.0, self.client, str(self.asked), AskWords(size=size))
        self.steps.take("grant", service.serve, 0.0)
        while service.books.agenda.behind:
            self.steps.take("grant", service.serve, 0.0)
        self.steps.take("keep", service.take_changes)
        return [lease.id for granted in ticket.grants for lease in granted.leases]

    def bring(self, leases: list[str], outcome: Any = "done") -> None:
        """The client delivers results."""
        results = [ResultWords(lease, outcome, 0.0) for lease in leases]
        self.steps.take("results", self.service.deliver, 0.0, self.client, results)
        self.steps.take("keep", self.service.take_changes)

    def look(self) -> None:
        """Show the workflow to a viewer."""
        self.steps.take("status", workflow_words, self.served, self.service)
        watched = WatchedServed(self.served, self.service)
        watched.prepare()
        self.steps.take("view", lambda: encode(view(watched)))

    def hold(self) -> None:
        """The owner pauses and resumes the workflow."""
        self.steps.take("pause", self.service.pause, 0.0, self.served.id)
        self.steps.take("resume", self.service.resume, 0.0, self.served.id)

    def end(self) -> None:
        """The owner cancels the workflow."""
        self.steps.take("cancel", self.service.cancel, 0.0, self.served.id)
        self.steps.take("keep", self.service.take_changes)


def ready_of(dag: Dag, policy: str) -> Prepared:
    """A workflow as the preparing process gives it; of large ones the plan is that of the dag's own order."""
    flow, wishes = Workflow(dag, Described(dag, {"command": ["true"] * len(dag)})), Wishes(policy=policy, files=False)
    return Prepared(flow, wishes, b"", dag.order) if policy not in MOST_TASKS else prepare(flow, wishes)


def play(dag: Dag, policy: str, where: str, size: int = 1) -> Steps:
    """Start a workflow, view it, and cancel it. For policies that choose a set for each client, all but the last is done."""
    steps = Steps(where)
    scene = Served(ready_of(dag, policy), steps)
    leases = scene.ask(size)
    rounds = len(dag) // size if policy in MOST_TASKS else min(LATER, len(dag) // 3)
    for _ in range(rounds - 1):
        scene.bring(leases)
        leases = scene.ask(size)
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
    """Every task fails permanently, and is retried."""
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


def blocked(size: int) -> Steps:
    """The task that all others depend on fails permanently."""
    steps = Steps()
    ready = ready_of(shapes(size)["star"](), "fifo")
    scene = Served(ready._replace(wishes=Wishes(policy="fifo", files=False, retries=0)), steps)
    scene.bring(scene.ask(), "failed")
    scene.look()
    return steps


def _cell(figure: float | None) -> str:
    return "refused" if figure is None else f"{figure:.1f}"


def _met(figures: Iterable[float], most: float) -> str:
    return verdict(max(figures) <= most)


def policies(size: int) -> None:
    """The longest grant of every policy for every shape, and the longest of all other steps."""
    names, widths = [*POLICIES, *ALLOCATORS], (24, *(9 for _ in shapes(size)), 9)
    grants: dict[str, dict[str, float]] = {name: {} for name in names}
    others = Steps()
    for shape, made in shapes(size).items():
        dag = made()
        for name in names:
            most = MOST_TASKS.get(name, size)
            part = dag if len(dag) <= most else shapes(most)[shape]()
            if name in MOST_ARCS and needed_arcs(part) > MOST_ARCS[name]:
                continue
            for together in SIZES if name in MOST_TASKS else (1,):
                steps = play(part, name, f"{name}, {shape}, size {together}", together)
                grants[name][shape] = max(grants[name].get(shape, 0.0), steps.most("grant"))
                for kind, longest in steps.longest.items():
                    others.note(kind, longest)
    title = f"Longest grant, ms of processor time: {size:,} tasks, or as many as a policy serves (target {GRANT:g})"
    heading(title, ("policy", *shapes(size), ""), widths)
    for name in names:
        row(
            (name, *(_cell(grants[name].get(shape)) for shape in shapes(size)), _met(grants[name].values(), GRANT)),
            widths,
        )
    everything(others, size)


def everything(others: Steps, size: int) -> None:
    """The longest of all other steps."""
    widths, columns = (28, 9, 12, 9, 40), ("step", "ms", "of it gc", "", "where")
    heading(f"Longest step, ms of processor time: {size:,} tasks (target {STEP:g})", columns, widths)
    parts = {"": others, ", all of a join": joined(size), ", all failed": failed(size), ", all blocked": blocked(size)}
    for part, steps in parts.items():
        for kind, longest in steps.longest.items():
            figures = _cell(longest.ms), _cell(longest.garbage), _met([longest.ms], STEP)
            row((kind + part, *figures, longest.where), widths)


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
        "roots with files": [{"run": "true", "inputs": [f"a{i}"], "outputs": [f"b{i}"]} for i in range(size)],
        "roots, the largest body": [{"run": "echo " + "x" * 222} for _ in range(size)],
    }
    return {
        shape: json.dumps({"tasks": [{"name": f"t{i}", **one} for i, one in enumerate(tasks)]}).encode()
        for shape, tasks in words.items()
    }


def loads(size: int) -> dict[str, list[bytes]]:
    """The submissions: each large workflow by itself, and several together."""
    single = bodies(size)
    return {shape: [body] for shape, body in single.items()} | {
        f"{TOGETHER_SUBMITS} chains at once": [single["chain"]] * TOGETHER_SUBMITS
    }


async def pair(wire: Connection, client: str) -> float:
    """Request a task and deliver it; returns the seconds of the request."""
    reply = await wire.post("/v1/request", {}, client)
    spent = wire.seconds[-1]
    leases = [task["lease"] for grant in reply["grants"] for task in grant["tasks"]]
    if leases:
        results = [{"lease": lease, "outcome": "done", "seconds": 0.001, "code": 0} for lease in leases]
        await wire.post("/v1/deliver", {"results": results}, client)
    return spent


def submitted(address: tuple[str, int], body: bytes, key: str) -> None:
    """Submit a workflow, with the files of its tasks if they have any; this blocks."""
    wire = HTTPConnection(*address, timeout=600)
    files = "true" if b'"outputs"' in body[:1000] else "false"
    wire.request("POST", f"/v1/workflows?files={files}&policy=fifo", body, {"Idempotency-Key": key})
    reply = wire.getresponse()
    if reply.status != HTTPStatus.CREATED:
        raise RuntimeError(f"the submit was refused: {reply.read().decode()}")


async def asked(address: tuple[str, int], bodies: Sequence[bytes]) -> tuple[list[float], list[float]]:
    """The seconds of requests before submits and during them."""
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(Connection, *address)
    await wire.post(
        "/v1/workflows?files=false", {"tasks": [{"name": f"s{i}", "run": "true"} for i in range(20_000)]}, ""
    )
    client = (await wire.post("/v1/clients", {"name": "bench"}, ""))["client"]
    before = [await pair(wire, client) for _ in range(300)]
    submits = [
        asyncio.create_task(asyncio.to_thread(submitted, address, body, f"large-{i}")) for i, body in enumerate(bodies)
    ]
    during = []
    while not all(submit.done() for submit in submits):
        during.append(await pair(wire, client))
        await asyncio.sleep(0.002)
    await asyncio.gather(*submits)
    return before, during


def submits(size: int) -> None:
    """The longest request during each submit."""
    widths = (30, 9, 12, 12, 12, 9)
    columns = ("submit", "MB", "ms before", "99 % during", "ms during", "")
    heading(
        f"Longest ask over HTTP during a submit of {size:,} tasks or 8 arcs for each (target {ASK:g} ms)",
        columns,
        widths,
    )
    for shape, each in loads(size).items():
        with tempfile.TemporaryDirectory() as place, served(*eligo(Path(place) / "s.db")) as (host, port, _):
            before, during = asyncio.run(asked((host, int(port)), each))
        figures = [1e3 * float(figure) for figure in (max(before), np.quantile(during, 0.99), max(during))]
        row((shape, sum(map(len, each)) / 1e6, *figures, verdict(figures[-1] <= ASK)), widths)


def run() -> None:
    """Print the steps without a network, then requests over HTTP."""
    gc.freeze()
    gc.set_threshold(SELDOM)  # as a server does
    policies(SIZE)
    submits(SIZE)
