"""What the tests of a server's faults share: servers and clients as real processes, and what must hold of what is kept.

A scenario gives a `Line` of the table in docs/understand/reliability.md; `tell` prints it.
"""

import asyncio
import json
import os
import random
import secrets
import signal
import socket
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple, Self

from eligo.execution import COMPLETE, unpacked
from eligo.server.rules.document import unpack_workflow
from eligo.stores.service_sqlite import service_store
from light_clients import Ledger, LightClient
from running_cases import COMMAND

STARTING = 240.0  # seconds in which a server must be there, also on a machine that is very busy
BACK = 2.0  # seconds in which it should be


class Line(NamedTuple):
    """What was tried, at what size, what was lost, done again, and how long it took."""

    number: str
    tried: str
    size: str
    lost: int
    repeated: int
    seconds: float
    result: str


def tell(line: Line) -> None:
    number, tried, size, lost, repeated, seconds, result = line
    print(f"\n| {number} | {tried} | {size} | {lost} | {repeated} | {seconds:.1f} s | {result} |", end="")  # noqa: T201


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def words(self) -> Any:
        return json.loads(self.body)


class ServerProcess:
    """`eligo serve` in a process of its own, that may be killed and goes on: the same store, the same port."""

    def __init__(self, folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        asked = {"--tokens", "--approve"} & set(options)  # else the subject is not who may come in
        self.folder, self.options = folder, options if asked else ("--open", *options)
        self.environment = {**os.environ, **(environment or {})}
        self.store: str | Path = folder / "served.db"
        self.host = "127.0.0.1"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.before: tuple[str, ...] = ()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = list[float]()  # how long each start took
        self.kills = 0

    @property
    def command(self) -> Sequence[str]:
        """What is `eligo`."""
        return COMMAND

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, self.port)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def begin(self) -> None:
        """Start, without waiting until it serves."""
        command = [
            *self.before,
            *self.command,
            "serve",
            "--store",
            str(self.store),
            "--port",
            str(self.port),
            *self.options,
        ]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)

    def start(self) -> float:
        """Start; the seconds until it answers."""
        began = time.monotonic()
        self.begin()
        try:
            while not self.answers():
                assert self.process is not None
                assert self.process.poll() is None, self.log()
                assert time.monotonic() - began < STARTING, self.log()
                time.sleep(0.01)
        except BaseException:
            self.kill()
            raise
        self.starts.append(time.monotonic() - began)
        return self.starts[-1]

    def answers(self) -> bool:
        with suppress(OSError, HTTPException):
            return self.get("/health").status == 200
        return False

    def kill(self) -> None:
        """As if it were never there to say farewell."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.kills += 1
            self.process = None

    def stop(self, seconds: float = 15.0) -> tuple[int, float]:
        """SIGTERM; its exit code, and how long it took."""
        process, began = self.process, time.monotonic()
        assert process is not None
        process.send_signal(signal.SIGTERM)
        code = process.wait(seconds)
        self.process = None
        return code, time.monotonic() - began

    def memory(self, figure: str = "VmHWM") -> int:
        """The most bytes of memory it has had; VmRSS: those that it has."""
        assert self.process is not None
        told = Path(f"/proc/{self.process.pid}/status").read_text().split(f"{figure}:")[1].split()
        return int(told[0]) * 1024

    def computed(self) -> float:
        """The seconds of a processor that it has had, however busy the machine is."""
        assert self.process is not None
        told = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def files(self) -> int:
        """How many files and connections it has open."""
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def log(self) -> str:
        return (self.folder / "server.log").read_text("utf-8", "replace")

    def call(
        self, method: str, path: str, words: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 30.0
    ) -> Reply:
        """One call; *words* go as JSON, bytes as they are."""
        body = words if isinstance(words, bytes | None) else json.dumps(words).encode()
        given = {"Idempotency-Key": secrets.token_hex(8)} if method == "POST" else {}
        with closing(HTTPConnection(*self.address, timeout=timeout)) as line:
            line.request(method, path, body, {**given, **(headers or {})})
            reply = line.getresponse()
            return Reply(reply.status, {name.lower(): word for name, word in reply.getheaders()}, reply.read())

    def get(self, path: str, **headers: str) -> Reply:
        return self.call("GET", path, headers=headers)

    def submit(self, tasks: Sequence[Mapping[str, Any]], query: str = "copies=1&files=false&policy=fifo") -> str:
        """Have a workflow served; its id."""
        reply = self.call("POST", f"/v1/workflows?format=json&{query}", {"tasks": list(tasks)}, timeout=120.0)
        assert reply.status == 201, reply
        return str(reply.words["workflow"])

    def state(self, workflow: str) -> dict[str, Any]:
        told: dict[str, Any] = self.get(f"/v1/workflows/{workflow}").words
        return told

    def finish(self, workflow: str, seconds: float) -> dict[str, Any]:
        """Wait until a workflow has ended; how it stands."""
        until = time.monotonic() + seconds
        while (told := self.state(workflow))["state"] in {"running", "paused"}:
            assert time.monotonic() < until, told
            time.sleep(0.05)
        return told


class Kept(NamedTuple):
    """What a store has of a workflow: for every lease that ended the task and the answer; how often tasks were completed."""

    tasks: list[str]
    ends: dict[str, tuple[str, str]]
    completed: Counter[str]

    def answers(self, *wanted: str) -> Counter[str]:
        """How often each task's leases ended so."""
        return Counter(task for task, answer in self.ends.values() if answer in wanted)


def kept(store: str | Path, workflow: str) -> Kept:
    """What is kept of a workflow by a server that is gone; the file is whole."""
    if isinstance(store, Path):
        with closing(sqlite3.connect(store)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(service_store(str(store))) as opened:
        names = [str(name) for name in unpack_workflow(opened.document(workflow)).dag.tasks]
        outcomes = opened.outcomes(workflow)
        ends = {f"{workflow}.{one.number}.{one.secret}": (names[one.task], one.answer) for one in outcomes}
        moves = opened.moves(workflow)
    return Kept(names, ends, Counter(names[v] for kind, v in unpacked(moves) if kind == COMPLETE))


class Verdict(NamedTuple):
    """What the end of a workflow came to: tasks and acknowledged results that were lost, executions beyond the first."""

    lost: int
    repeated: int
    late: int  # leases that were lost, or came back failed or returned


def judged(found: Kept, ledger: Ledger, spare: int = 0) -> Verdict:
    """Hold what is kept against what the clients know: nothing lost, nothing counted twice, nothing done without reason.

    *spare* is how many copies of a task may be out beside the first.
    """
    assert ledger.wrong == []
    accepted = found.answers("accepted")
    assert found.completed == accepted == Counter(dict.fromkeys(found.tasks, 1)), "not every task was accepted once"
    lost = [lease for lease in ledger.accepted if found.ends.get(lease, ("", ""))[1] != "accepted"]
    assert lost == [], "acknowledged results were lost"
    again = found.answers("expired", "lost", "failed", "returned", "voted", "duplicate", "conflict")
    most = {task: 1 + again[task] + ledger.unsure[task] + spare for task in found.tasks}
    assert {task: n for task, n in ledger.executed.items() if n > most[task]} == {}, "executed without reason"
    return Verdict(len(lost), sum(n - 1 for n in ledger.executed.values()), again.total())


NOTHING = Verdict(0, 0, 0)


def line(what: tuple[str, str, str], began: float, result: str, verdict: Verdict = NOTHING) -> Line:
    """The line of a scenario, with its number, what is tried and its size, that began then and has ended now."""
    return Line(*what, verdict.lost, verdict.repeated, time.monotonic() - began, result)


def layered(tasks: int, wide: int, seed: int = 7, run: str = "true") -> list[dict[str, Any]]:
    """Tasks in layers, each below one or two of the layer above."""
    rng = random.Random(seed)
    found = []
    for i in range(tasks):
        first = i // wide * wide - wide
        above = sorted({rng.randrange(first, first + wide) for _ in range(2)}) if first >= 0 else []
        found.append({"name": f"t{i}", "run": run, "after": [f"t{v}" for v in above]})
    return found


def light(count: int, address: tuple[str, int], ledger: Ledger, seed: int = 1, **habits: Any) -> list[LightClient]:
    """So many light clients."""
    return [LightClient(address, ledger, random.Random(seed * 100_003 + i), **habits) for i in range(count)]


@asynccontextmanager
async def watching(server: ServerProcess, workflow: str, look: float = 0.25) -> AsyncIterator[asyncio.Event]:
    """An event that is set when the workflow has ended, whatever becomes of the server meanwhile."""
    over = asyncio.Event()

    async def watch() -> None:
        while not over.is_set():
            with suppress(OSError, HTTPException, KeyError, ValueError):
                state = (await asyncio.to_thread(server.state, workflow))["state"]
                if state not in {"running", "paused"}:
                    over.set()
            await asyncio.sleep(look)

    task = asyncio.ensure_future(watch())
    try:
        yield over
    finally:
        over.set()
        await task


@contextmanager
def worker(server: ServerProcess, folder: Path, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`eligo work` in a process of its own."""
    folder.mkdir(exist_ok=True)
    command = [*COMMAND, "work", server.url, "--folder", str(folder), "--cores", "1", *options]
    with open(folder.with_suffix(".log"), "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
