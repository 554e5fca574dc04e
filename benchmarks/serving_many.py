"""The server's rules: CPU of a request, a tick, a submit and a restart, for 10 to 10,000 workflows.

The rules run alone, without HTTP and mostly without a store, and CPU time is counted: other load matters little. Then the
same for clients that wait: for anything at all, and for something that fits them. Then a server process with watchers.
"""

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.serving import Connection, cpu, eligo, served, workflow
from benchmarks.timing import heading, row, verdict
from eligo.dag import Dag
from eligo.server.rules.clients import Client, ServerTerms
from eligo.server.rules.prepared import Prepared, Wishes, prepare
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, ResultWords
from eligo.stores.service_sqlite import SqliteServiceStore
from eligo.workflow import Task, Workflow

WORKFLOWS = (10, 100, 1_000, 10_000)
WAITING = (10, 100, 1_000, 10_000)
WATCHERS = (1, 10, 100, 1_000)
REQUESTS = 300
FLAT = 2.0  # times as much at most for the most as for the fewest
WIDTHS = (46, *(10 for _ in WORKFLOWS), 8)


def flow(cores: float | None = None, tasks: int = 10) -> Workflow:
    """A workflow of pairs of tasks, the second after the first."""
    names = [f"t{i}" for i in range(tasks)]
    dag = Dag.from_arrays(tasks, range(tasks // 2), range(tasks // 2, tasks), names)
    return Workflow(dag, {name: Task(name=name, command="true", cores=cores) for name in names}, name="many")


def cpu_ms(work: Callable[[], object], times: int) -> float:
    """The milliseconds of CPU of one call, averaged over *times* calls."""
    gc.collect()  # otherwise garbage of earlier measurements would be freed in these calls
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times * 1e3


class Rules:
    """A service with *count* workflows, and a clock."""

    def __init__(self, count: int, ready: Prepared, owners: int = 1) -> None:
        self.service, self.now, self.keys = Service(ServerTerms(most_workflows=10**6)), 0.0, 0
        self.ready, self.owners = ready, owners
        for _ in range(count):
            self.submit()
        self.service.serve(self.now)
        self.service.take_changes()

    def key(self) -> str:
        """A new key."""
        self.keys += 1
        return f"k{self.keys}"

    def submit(self) -> None:
        """Submit another workflow."""
        key = self.key()
        if self.owners == 1:
            self.service.submit(self.now, self.ready, key)
            return
        wishes = Wishes(files=False, owner=f"o{self.keys % self.owners}")
        self.service.submit(self.now, self.ready._replace(wishes=wishes), key)

    def enrol(self) -> Client:
        """A client without a low limit."""
        client = self.service.enrol(self.now, "bench")
        client.quota = 1024.0
        return client

    def pair(self, client: Client) -> None:
        """A request and its result, including the rows to store."""
        self.now += 0.001
        ticket = self.service.ask(self.now, client, self.key(), AskWords())
        self.service.serve(self.now)
        leases = [lease.id for grant in ticket.grants for lease in grant.leases]
        self.service.deliver(self.now, client, [ResultWords(lease, "done", 0.1) for lease in leases])
        self.service.serve(self.now)
        self.service.take_changes()

    def tick(self) -> None:
        """The step that the server does ten times a second."""
        self.now += 0.1
        self.service.expire(self.now)
        self.service.serve(self.now)

    def accepted(self) -> None:
        """A submit, including the rows to store."""
        self.submit()
        self.service.serve(self.now)
        self.service.take_changes()


def requests(count: int, owners: int = 1) -> float:
    """CPU of a claim with its completion."""
    rules = Rules(count, prepare(flow(), Wishes(files=False)), owners)
    client = rules.enrol()
    rules.pair(client)
    return cpu_ms(lambda: rules.pair(client), REQUESTS if count > 100 else min(REQUESTS, 8 * count))


def misfits(count: int) -> float:
    """The same where all workflows but the last ask for more cores than the client has."""
    rules = Rules(count, prepare(flow(cores=8), Wishes(files=False)))
    rules.ready = prepare(flow(tasks=2 * REQUESTS), Wishes(files=False))
    rules.submit()
    client = rules.enrol()
    rules.pair(client)
    return cpu_ms(lambda: rules.pair(client), REQUESTS)


def ticks(count: int) -> float:
    """CPU share of an idle server in percent, with ten ticks a second."""
    rules = Rules(count, prepare(flow(), Wishes(files=False)))
    return cpu_ms(rules.tick, 100) * 10 / 10


def submits(count: int) -> float:
    """CPU of a submit."""
    rules = Rules(count, prepare(flow(), Wishes(files=False)))
    return cpu_ms(rules.accepted, 100)


def waiting(count: int, fits: bool = True) -> float:
    """CPU of a result that makes one task ready; a waiting client gets it and asks again, or it fits none of them."""
    tasks = 4 * REQUESTS
    names = [f"t{i}" for i in range(tasks)]
    dag = Dag.from_arrays(tasks, range(tasks - 1), range(1, tasks), names)  # a chain: one is ready at a time
    details = {name: Task(name=name, command="true") for name in names}
    rules = Rules(1, prepare(Workflow(dag, details, name="chain"), Wishes(files=False, copies=1)))
    worker, crowd = rules.enrol(), [rules.enrol() for _ in range(count)]
    tickets = [rules.service.ask(0.0, worker, "first", AskWords(wait=60.0))]
    rules.service.serve(0.0)
    if not fits:
        rules.ready = prepare(flow(cores=8), Wishes(files=False))
        rules.submit()
    tickets += [rules.service.ask(0.0, one, rules.key(), AskWords(wait=1e9)) for one in crowd]
    rules.service.serve(0.0)
    held = [tickets[0]]

    def step() -> None:
        rules.now += 0.001
        ticket = held.pop()
        client, lease = ticket.client, ticket.grants[0].leases[0].id
        rules.service.deliver(rules.now, client, [ResultWords(lease, "done", 0.1)])
        held.extend(rules.service.serve(rules.now))
        rules.service.ask(rules.now, client, rules.key(), AskWords(wait=1e9))
        rules.service.serve(rules.now)
        rules.service.take_changes()

    return cpu_ms(step, REQUESTS)


def restart(count: int) -> float:
    """CPU per workflow until a store with *count* workflows is served again."""
    with tempfile.TemporaryDirectory() as place:
        _fill_apart(path := Path(place) / "many.db", count)
        gc.collect()
        store, began = SqliteServiceStore(str(path)), time.process_time()
        Service(ServerTerms(most_workflows=10**6)).restore(0.0, store)
        took = time.process_time() - began
        store.close()
    return took * 1e3 / count


def fill(path: str, count: int) -> None:
    """A store with *count* workflows."""
    store, rules = SqliteServiceStore(path), Rules(0, prepare(flow(), Wishes(files=False)))
    client = rules.enrol()
    for _ in range(count):
        rules.submit()
    tickets = [rules.service.ask(0.0, client, rules.key(), AskWords()) for _ in range(min(count, 1000))]
    rules.service.serve(0.0)
    leases = [grant.leases[0].id for ticket in tickets for grant in ticket.grants]
    rules.service.deliver(0.0, client, [ResultWords(lease, "done", 0.1) for lease in leases[::2]])
    store.commit([changes for changes in [rules.service.take_changes()] if changes is not None])
    store.close()


def over_http(count: int) -> float:
    """CPU of a server process for a claim with its completion in one call, over HTTP and with a store."""

    async def pairs(address: tuple[str, int]) -> None:
        _, wire = await asyncio.get_running_loop().create_connection(Connection, *address)
        client = (await wire.post("/v1/clients", {"name": "bench"}, ""))["client"]
        reply = await wire.post("/v1/request", {}, client)
        for _ in range(REQUESTS):
            leases = [task["lease"] for grant in reply["grants"] for task in grant["tasks"]]
            results = [{"lease": lease, "outcome": "done", "seconds": 0.1} for lease in leases]
            reply = await wire.post("/v1/deliver", {"results": results, "ask": {}}, client)

    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "many.db"
        _fill_apart(store, max(count, REQUESTS // 4))  # enough tasks for all requests
        with served(*eligo(store)) as (host, port, pid):
            began = cpu(pid)
            asyncio.run(pairs((host, int(port))))
            return (cpu(pid) - began) / REQUESTS * 1e3


def watchers(count: int, seconds: float = 8.0) -> float:
    """CPU share in percent of a server with *count* watchers of one workflow, of which a task is done every 20 ms."""
    with tempfile.TemporaryDirectory() as place:
        source = workflow(Path(place) / "flow.json", 2_000)
        with served(*eligo(Path(place) / "watched.db", str(source))) as (host, port, pid):
            return asyncio.run(_watch((host, int(port)), pid, count, seconds))


def watchers_apart(count: int, seconds: float = 8.0) -> float:
    """The same where each of them watches a workflow of its own."""
    with tempfile.TemporaryDirectory() as place:
        _fill_apart(store := Path(place) / "watched.db", count)
        source = workflow(Path(place) / "flow.json", 2_000)
        with served(*eligo(store, str(source))) as (host, port, pid):
            return asyncio.run(_watch((host, int(port)), pid, count, seconds, apart=True))


async def _watch(address: tuple[str, int], pid: int, count: int, seconds: float, apart: bool = False) -> float:
    _, wire = await asyncio.get_running_loop().create_connection(Connection, *address)
    ids = [one["workflow"] for one in (await wire.get("/v1/workflows"))["workflows"]]
    ids = ids[:count] if apart else ids * count

    async def watch(id: str) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(f"GET /v1/workflows/{id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            while await reader.read(2**16):
                pass
        finally:
            writer.close()

    crowd = [asyncio.create_task(watch(id)) for id in ids]
    client = (await wire.post("/v1/clients", {"name": "bench"}, ""))["client"]
    await asyncio.sleep(2.0)
    began, end = cpu(pid), time.perf_counter() + seconds
    while time.perf_counter() < end:
        reply = await wire.post("/v1/request", {}, client)
        leases = [task["lease"] for grant in reply["grants"] for task in grant["tasks"]]
        await wire.post("/v1/deliver", {"results": [{"lease": one, "outcome": "done"} for one in leases]}, client)
        await asyncio.sleep(0.02)
    share = (cpu(pid) - began) / seconds * 100
    for task in crowd:
        task.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    return share


def _fill_apart(store: Path, count: int) -> None:
    """Fill a store in a separate process, so that its memory is freed."""
    script = f"from benchmarks.serving_many import fill; fill({str(store)!r}, {count})"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


CASES: list[tuple[str, Callable[[int], float], tuple[int, ...]]] = [
    ("request and result, one owner, ms", requests, WORKFLOWS),
    ("request and result, 100 owners, ms", lambda count: requests(count, 100), WORKFLOWS),
    ("request where one workflow fits, ms", misfits, WORKFLOWS),
    ("idle, percent of a core", ticks, WORKFLOWS),
    ("submit, ms", submits, WORKFLOWS),
    ("restart, ms a workflow", restart, WORKFLOWS),
    ("clients that wait: a task for one of them, ms", waiting, WAITING),
    ("clients that wait: and one that fits nobody, ms", lambda count: waiting(count, fits=False), WAITING),
    ("over HTTP, in one call, with a store, ms", over_http, WORKFLOWS),
    ("watchers of a workflow (1 to 1,000), percent", watchers, WATCHERS),
    ("watchers, each of a workflow of its own, percent", watchers_apart, WATCHERS),
]


def run(most: int = 10_000) -> None:
    """Print all figures, up to *most* workflows and clients."""
    heading("Serving many: CPU of the rules", ("what", *(f"{count:,}" for count in WORKFLOWS), ""), WIDTHS)
    for name, measure, counts in CASES:
        cells: list[Any] = [measure(count) if count <= most else "" for count in counts]
        figures = [cell for cell in cells if cell != ""]
        row((name, *(f"{cell:.3f}" if cell != "" else "" for cell in cells), _flat(figures)), WIDTHS)


def _flat(figures: list[float]) -> str:
    return verdict(max(figures) <= FLAT * max(figures[0], 0.02))


if __name__ == "__main__":
    run()
