"""Real servers as programs of their own, and light clients that do tasks without doing anything."""

import http.client
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

COMMAND = "from eligo.cli import main; main()"


class RefusedCallError(Exception):
    """A server said no."""

    def __init__(self, status: int, said: Any) -> None:
        self.status = status
        super().__init__(f"{status} {said}")


class ServingProgram:
    """`eligo serve` on a database, at a port of its own."""

    def __init__(self, where: str, folder: Path, *options: str) -> None:
        access = () if "--tokens" in options else ("--open",)
        words = ["serve", "--store", where, "--port", "0", "--files", str(folder), "-q", *access, *options]
        surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words], text=True, stdout=subprocess.PIPE, env=surroundings
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("serving on "), line
        self.url = line.split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One call on a connection of its own."""
        with closing(Speaker(self)) as speaker:
            return speaker.call(method, path, body, **headers)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Speaker:
    """A connection to a server."""

    def __init__(self, server: ServingProgram, client: str = "", patience: float = 20.0) -> None:
        self.server, self.client = server, client
        self._line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience)

    def close(self) -> None:
        self._line.close()

    def move(self, server: ServingProgram) -> None:
        """Speak to another server from now on."""
        self.close()
        self.server, self._line = server, http.client.HTTPConnection("127.0.0.1", server.port, timeout=5.0)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """What the server answers."""
        told = {"Idempotency-Key": secrets.token_hex(8)} | {name.replace("_", "-"): it for name, it in headers.items()}
        if self.client:
            told["Eligo-Client"] = self.client
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        try:
            self._line.request(method, path, data, told)
            answer = self._line.getresponse()
            said = answer.read()
        except BaseException:
            self._line.close()
            raise
        if answer.status >= 400:
            raise RefusedCallError(answer.status, said)
        return json.loads(said)


@contextmanager
def command(*words: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A command under way, which is ended after."""
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", COMMAND, *words], env=surroundings) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def two_servers(where: str, folder: Path, *options: str) -> Iterator[list[ServingProgram]]:
    """Two servers on one database."""
    found = [ServingProgram(where, folder, *options) for _ in range(2)]
    try:
        yield found
    finally:
        for server in found:
            server.end()


def submit(server: ServingProgram, tasks: int, seed: int = 1, key: str | None = None) -> str:
    """Submit a workflow; its id."""
    headers = {} if key is None else {"Idempotency_Key": key}
    flow = makeflow(tasks, seed)
    return str(server.call("POST", "/v1/workflows?files=false&format=makeflow", flow, **headers)["workflow"])


def makeflow(tasks: int, seed: int) -> bytes:
    """A Makeflow file of so many tasks, each after up to two before it."""
    rng = random.Random(seed)
    rules = []
    for i in range(tasks):
        needs = " ".join(f"f{j}" for j in rng.sample(range(max(0, i - 20), i), min(i, 2)))
        rules.append(f"f{i}: {needs}\n\ttrue {i}\n")
    return "\n".join(rules).encode()


class LightClients:
    """Threads that ask for tasks and say that they are done; each changes to another server where its own is away."""

    def __init__(self, servers: list[ServingProgram], count: int = 4, pause: float = 0.0) -> None:
        self.servers, self.pause = servers, pause
        self.accepted: list[str] = []  # leases whose results were acknowledged
        self.leases: list[str] = []
        self.answers: Counter[str] = Counter()
        self.refusals: Counter[int] = Counter()
        self.wrong: list[BaseException] = []
        self.enough = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.enough.set()
        for thread in self.threads:
            thread.join(60)
        assert self.wrong == []

    def _work(self, number: int) -> None:
        speaker = Speaker(self.servers[number % len(self.servers)])
        try:
            client = self._patiently(speaker, "/v1/clients", {"name": f"light-{number}"})
            speaker.client = client["client"]
            results: list[dict[str, Any]] = []
            while not self.enough.is_set():
                results = self._turn(speaker, results)
        except BaseException as error:
            self.wrong.append(error)
        finally:
            speaker.close()

    def _turn(self, speaker: Speaker, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        ask = {"count": 2, "wait": 1.0}
        if results:
            reply = self._patiently(speaker, "/v1/deliver", {"results": results, "ask": ask})
            for result, answer in zip(results, reply.get("answers", ()), strict=False):
                self.answers[answer] += 1
                if answer == "accepted":
                    self.accepted.append(result["lease"])
        else:
            reply = self._patiently(speaker, "/v1/request", ask)
        leases = [task["lease"] for grant in reply.get("grants", ()) for task in grant["tasks"]]
        self.leases += leases
        if leases and self.pause:
            time.sleep(self.pause)
        return [{"lease": lease, "outcome": "done", "seconds": 0.01, "code": 0} for lease in leases]

    def _patiently(self, speaker: Speaker, path: str, body: Any) -> Any:
        """The same call, with the same key, until somebody answers."""
        key, turn = secrets.token_hex(8), self.servers.index(speaker.server)
        while not self.enough.is_set():
            try:
                return speaker.call("POST", path, body, Idempotency_Key=key)
            except RefusedCallError as error:
                self.refusals[error.status] += 1
                if error.status != 503:
                    raise
                time.sleep(0.1)
            except OSError:
                time.sleep(0.1)
            except http.client.HTTPException:
                time.sleep(0.1)
            turn += 1
            speaker.move(self.servers[turn % len(self.servers)])
        return {}


def wait_for(servers: list[ServingProgram], workflows: list[str], seconds: float) -> None:
    """Wait until workflows are done, whoever answers."""
    end, left = time.monotonic() + seconds, set(workflows)
    said: Any = None
    while left:
        assert time.monotonic() < end, f"not done in {seconds} s: {left}: {said}"
        for server in servers:
            for workflow in list(left):
                with (
                    suppress(RefusedCallError, OSError, http.client.HTTPException),
                    closing(Speaker(server, patience=2.0)) as speaker,
                ):
                    said = speaker.call("GET", f"/v1/workflows/{workflow}")
                    if said["state"] == "done":
                        left.discard(workflow)
        time.sleep(0.1)


def check_once(where: str, workflows: dict[str, int], acknowledged: list[str]) -> None:
    """Every task of every workflow was accepted once, no lease number was given twice, nothing acknowledged is missing."""
    with psycopg.connect(where) as database:
        for workflow, tasks in workflows.items():
            kept_ends = database.execute("SELECT ends FROM outcome WHERE workflow = %s ORDER BY id", (workflow,))
            ends = [end for (text,) in kept_ends for end in json.loads(text)]
            assert len({number for number, *_ in ends}) == len({(end[0], end[4]) for end in ends})
            last = {number: (number, task, secret, answer) for number, task, _, _, secret, _, _, answer, *_ in ends}
            rows = last.values()
            accepted = Counter(task for _, task, _, answer in rows if answer == "accepted")
            assert accepted == dict.fromkeys(range(tasks), 1)
            kept = {f"{workflow}.{number}.{secret}" for number, _, secret, answer in rows if answer == "accepted"}
            told = {lease for lease in acknowledged if lease.startswith(f"{workflow}.")}
            assert told <= kept
            assert database.execute("SELECT count(*) FROM lease WHERE workflow = %s", (workflow,)).fetchone() == (0,)
