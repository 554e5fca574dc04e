"""The server: durable pairs of a claim and a completion a second, how long clients wait, memory, and a restart.

The server is a process of its own on a real store; clients are connections that speak the protocol from a second process
and run nothing. Beside it in the same run: an app on the same web server that only echoes, and what both keep.
"""

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.timing import heading, row, verdict

TASKS, LONG, MANY = 20_000, 120_000, 1_000_000  # batches go through the long one, so that the run lasts long enough
PAIRS, P99, BATCHED, P99_MANY, RESTART = 5_000, 20.0, 50_000, 100.0, 10.0
NO_LIMIT = float("inf")
CLIENTS, CROWD, BATCH = 50, 1_000, 100
TASK = 0.5  # seconds that a task takes on average where clients take their time
WARM = 2.0  # seconds of a long poll that ends a run
ECHO = """
import json, sys, uvicorn
async def app(scope, receive, send):
    message = await receive()
    body = message["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("serving on http://127.0.0.1:%d" % self.servers[0].sockets[0].getsockname()[1], flush=True)
config = uvicorn.Config(app, port=0, log_config=None, lifespan="off", ws="none", proxy_headers=False)
Server(config).run()
"""


class Connection(asyncio.Protocol):
    """One connection that sends requests and waits for answers, with as little overhead as possible."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self.seconds: list[float] = []

    def connection_made(self, transport: Any) -> None:
        """The connection is open."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A part of an answer arrived."""
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(rest) >= length and self._waiter is not None:
            self._buffer = rest[length:]
            self._waiter.set_result((int(head[9:12]), rest[:length]))

    async def post(self, path: str, words: Any, client: str) -> Any:
        """The answer to a POST."""
        body = json.dumps(words).encode()
        who = f"Eligo-Client: {client}\r\n" if client else ""
        key = f"Idempotency-Key: {os.urandom(9).hex()}\r\nContent-Length: {len(body)}\r\n\r\n"
        return await self._call(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{who}{key}", body)

    async def get(self, path: str) -> Any:
        """The JSON at an address."""
        return await self._call(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n", b"")

    async def _call(self, head: str, body: bytes) -> Any:
        self._waiter = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        self._transport.write(head.encode() + body)
        status, answer = await self._waiter
        self.seconds.append(time.perf_counter() - began)
        if status >= 300:
            raise RuntimeError(f"{status}: {answer[:200]!r}")
        return json.loads(answer)


async def work(address: tuple[str, int], size: int, kind: str, seconds: list[float]) -> int:
    """Run one client until it gets no more tasks; returns the number of delivered tasks."""
    together = kind != "apart"
    _, wire = await asyncio.get_running_loop().create_connection(Connection, *address)
    client = (await wire.post("/v1/clients", {"name": "bench"}, ""))["client"]
    wire.seconds = seconds
    done, reply = 0, None
    while True:
        if reply is None or not reply["grants"]:
            reply = await wire.post("/v1/request", {"wait": WARM, "size": size}, client)
            if not reply["grants"]:
                seconds.pop()
                return done
        results = [
            {"lease": task["lease"], "outcome": "done", "seconds": 0.001, "code": 0}
            for grant in reply["grants"]
            for task in grant["tasks"]
        ]
        if kind == "paced":
            await asyncio.sleep(random.uniform(0.5, 1.5) * TASK)
        ask = {"ask": {"size": size}} if together else {}
        reply = await wire.post("/v1/deliver", {"results": results, **ask}, client)
        done += len(results)
        if not together:
            reply = None


async def echo(address: tuple[str, int], calls: int, seconds: list[float]) -> int:
    """The same without a server behind it."""
    _, wire = await asyncio.get_running_loop().create_connection(Connection, *address)
    wire.seconds = seconds
    for _ in range(calls):
        await wire.post("/v1/request", {"wait": WARM, "size": 1}, "c-0")
    return calls


def load(kind: str, host: str, port: str, clients: str, size: str) -> None:
    """A crowd of clients in a separate process; prints its measurements."""
    import uvloop

    async def crowd() -> None:
        seconds: list[float] = []
        where = (host, int(port))
        if kind == "echo":
            jobs = [echo(where, 400, seconds) for _ in range(int(clients))]
        else:
            jobs = [work(where, int(size), kind, seconds) for _ in range(int(clients))]
        began = time.perf_counter()
        done = sum(await asyncio.gather(*jobs))
        took = time.perf_counter() - began - (0 if kind == "echo" else WARM)
        seconds.sort()
        at = {"p50": seconds[len(seconds) // 2], "p99": seconds[int(len(seconds) * 0.99)]}
        print(json.dumps({"done": done, "seconds": took, **at}))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(crowd())


@contextmanager
def served(*words: str) -> Iterator[tuple[str, str, int]]:
    """A server process: its host, its port and its number, for as long as the block lasts."""
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        host, port = line.strip().rpartition("/")[2].split(":")
        yield host, port, server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def eligo(store: Path, *more: str) -> tuple[str, ...]:
    """The command of a server."""
    files = ("--no-files",) if more else ()
    return (sys.executable, "-m", "eligo", "serve", "--open", "--port", "0", "--store", str(store), "-q", *files, *more)


def cpu(pid: int) -> float:
    """The seconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """The megabytes that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def measured(kind: str, place: tuple[str, str, int], clients: int, size: int = 1) -> dict[str, float]:
    """The measurements of a crowd of clients, and the CPU of the server."""
    host, port, pid = place
    before = cpu(pid)
    words = ["-c", f"from benchmarks.serving import load; load({kind!r}, {host!r}, {port!r}, '{clients}', '{size}')"]
    told = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, timeout=300).stdout
    found: dict[str, float] = json.loads(told)
    return found | {"cpu": cpu(pid) - before, "memory": memory(pid)}


def workflow(path: Path, n: int) -> Path:
    """A file with a workflow of n tasks that do nothing, in chains of two."""
    with path.open("w") as file:
        file.write('{"tasks": [')
        pair = '{"name": "a%d", "run": "true"},{"name": "b%d", "run": "true", "after": ["a%d"]}'
        file.write(",".join(pair % (i, i, i) for i in range(n // 2)))
        file.write("]}")
    return path


def run() -> None:
    """Print all figures of the server."""
    widths = (34, 10, 10, 9, 9, 10, 9)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        flows = {n: workflow(folder / f"{n}.json", n) for n in (TASKS, LONG)}
        heading(
            "Serving: durable claims and completions, SQLite, loopback",
            ("what", "tasks/s", "p50 ms", "p99 ms", "CPU us", "MB", ""), widths,
        )  # fmt: skip
        with served(sys.executable, "-c", ECHO) as server:
            _tell("a web server that echoes, 50", measured("echo", server, CLIENTS), widths, "calls")
        number = itertools.count()
        for name, kind, clients, size, least, longest in _cases():
            flow = flows[TASKS if size == 1 else LONG]
            with served(*eligo(folder / f"{next(number)}.db", str(flow))) as server:
                found = measured(kind, server, clients, size)
                holds = found["done"] / found["seconds"] >= least and found["p99"] * 1000 <= longest
                _tell(name, found, widths, verdict(holds))
    restart()


def _cases() -> list[tuple[str, str, int, int, float, float]]:
    """The name of a measurement, how clients call, their number, tasks at once, and the targets of rate and wait."""
    return [
        ("claim, then complete, 50 clients", "apart", CLIENTS, 1, PAIRS, P99),
        ("both in one call, 50 clients", "together", CLIENTS, 1, PAIRS, P99),
        ("batches of 100, 20 clients", "together", 20, BATCH, BATCHED, NO_LIMIT),
        ("1,000 clients, tasks of .5 s", "paced", CROWD, 1, 0, P99_MANY),
        ("1,000 clients, tasks of nothing", "together", CROWD, 1, 0, NO_LIMIT),
    ]


def _tell(name: str, found: dict[str, float], widths: tuple[int, ...], said: str) -> None:
    rate, spent = found["done"] / found["seconds"], found["cpu"] / found["done"] * 1e6
    row((name, f"{rate:,.0f}", found["p50"] * 1e3, found["p99"] * 1e3, spent, found["memory"], said), widths)


def restart(n: int = MANY) -> None:
    """A server with a million tasks, half of them done: how long until it serves again, and its memory."""
    widths = (34, 10, 10, 10)
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "many.db"
        heading(f"Restart with {n:,} tasks, half of them done", ("", "seconds", "MB", ""), widths)
        script = f"from benchmarks.serving import half_done; half_done({str(store)!r}, {n})"
        subprocess.run([sys.executable, "-c", script], check=True, timeout=600)
        began = time.perf_counter()
        with served(*eligo(store)) as server:
            took = time.perf_counter() - began
            row(("until clients may come", took, memory(server[2]), verdict(took <= RESTART)), widths)


def half_done(store: str, n: int) -> None:
    """A store with a workflow of which the first half of every chain is done."""
    from eligo.dag import Dag
    from eligo.server.rules.prepared import Wishes, prepare
    from eligo.server.rules.service import Service
    from eligo.server.schema import AskWords, ResultWords
    from eligo.stores.service_sqlite import SqliteServiceStore
    from eligo.workflow import Task, Workflow

    names = [f"t{i}" for i in range(n)]
    dag = Dag.from_arrays(n, range(n // 2), range(n // 2, 2 * (n // 2)), names)
    flow = Workflow(dag, {name: Task(name=name, command="true") for name in names}, name="many")
    kept = SqliteServiceStore(store)
    service = Service()
    service.submit(0.0, prepare(flow, Wishes(files=False, copies=1)), "key")
    client = service.enrol(0.0, "bench")
    client.quota, done, now = 1000.0, 0, 0.0
    while done < n // 2:
        now += 1.0
        ticket = service.ask(now, client, f"k{done}", AskWords(1, 500))
        service.serve(now)
        told = [ResultWords(lease.id, "done", 0.1) for grant in ticket.grants for lease in grant.leases]
        done += service.deliver(now, client, told).count("accepted")
        changes = service.take_changes()
        if changes is not None:
            kept.commit([changes])
    kept.close()


if __name__ == "__main__":
    run()
