"""Workflows that are hard to serve, such as those with very many files, stall nobody: the rules, and a real server."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import pytest

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.server.schema import FileWords, ResultWords
from eligo.server.view.answers import grants_words, workflow_words
from eligo.work.tries import MOST_CAUSES, Retries
from eligo.workflow import Task, Workflow
from measured_server import MeasuredServer
from service_parts import Scene, flow_of
from test_server_scopes import TABLE

#: seconds of processor time that one step may take; a quiet machine needs a sixth
MOST = 0.5
FILES = 40_000
HASH = "0" * 64
T = TypeVar("T")


def within(step: Callable[[], T], most: float = MOST) -> T:
    """What a step gives that takes no longer."""
    began = time.thread_time()
    outcome = step()
    assert time.thread_time() - began < most
    return outcome


def names(count: int = FILES) -> tuple[str, ...]:
    return tuple(f"file{i:06}" for i in range(count))


def pair_of_tasks(count: int = FILES) -> Workflow:
    """A task that writes very many files, and one that reads them."""
    tasks = {"a": Task(name="a", command="true", outputs=names(count)),
             "b": Task(name="b", command="true", inputs=names(count))}  # fmt: skip
    return Workflow(Dag.from_arcs([("a", "b")], ["a", "b"]), tasks)


# The rules


def test_a_grant_of_very_many_files() -> None:
    """One compared each file with all others: a million files held everybody up for an hour."""
    scene = Scene()
    scene.submit(pair_of_tasks(), files=True, policy="ready")
    ticket = scene.ask(scene.enrol(), size=2)
    scene.serve()
    (words,) = within(lambda: grants_words(ticket, 60.0)).grants
    assert (words.tasks[0].inside, words.tasks[0].outputs) == ([*names()], [])
    assert words.tasks[1].inputs == dict.fromkeys(names())


def test_a_result_of_very_many_files() -> None:
    scene = Scene()
    scene.submit(pair_of_tasks(), files=True)
    ann = scene.enrol()
    outputs = {name: FileWords(HASH, 1) for name in names()}
    lease = scene.lease(ann)
    assert within(lambda: scene.bring(lease, outputs=outputs), 2 * MOST) == "accepted"
    other = outputs | {"other": FileWords(HASH, 1)}
    assert within(lambda: scene.bring(lease, outputs=other)) in {"duplicate", "accepted"}


@pytest.mark.parametrize("order", [1, -1])
def test_results_that_count_only_by_others_are_judged_in_one_pass(order: int) -> None:
    """Each of a chain counts by the one before; where the first is worth nothing, the others were looked at n² times."""
    size = 1_000
    scene = Scene(first_quota=1e9, most_quota=1e9)
    files = {f"t{i}": ([f"f{i - 1}"] if i else [], [f"f{i}"]) for i in range(size)}
    workflow = scene.submit(flow_of({f"t{i}": [f"t{i - 1}"] if i else [] for i in range(size)}, files), files=True)
    ann = scene.enrol()
    leases = scene.leases(ann, size=size)
    assert len(leases) == size
    brought = [f"f{lease.task}" if lease.task else "not an output" for lease in leases]
    results = [
        ResultWords(lease.id, "done", outputs={name: FileWords(HASH, 1)})
        for lease, name in zip(leases, brought, strict=True)
    ]
    answers = within(lambda: scene.tell(ann, *results[::order]))[::order]
    assert answers == ["failed", *["refused"] * (size - 1)]
    assert scene.state(workflow) == "running"


def test_files_that_stay_inside_count_only_with_all_their_readers() -> None:
    """Readers that no arc leads to directly count as well."""
    for brought, answers in (((0, 1, 2), ["accepted"] * 3), ((0, 1), ["failed", "refused"])):
        scene = Scene()
        files = {"a": ([], ["x"]), "b": ([], []), "c": (["x"], ["z"])}
        scene.submit(flow_of({"a": [], "b": ["a"], "c": ["b"]}, files), files=True)
        scene.uploaded = {HASH}
        leases = scene.leases(scene.enrol(), size=3)
        outputs: dict[int, dict[str, FileWords]] = {2: {"z": FileWords(HASH, 1)}}
        results = [ResultWords(leases[i].id, "done", outputs=outputs.get(i, {})) for i in brought]
        assert scene.tell(leases[0].client, *results) == answers


def test_requests_of_who_has_voted_on_all_there_is() -> None:
    """Each asked about a thousand tasks that wait for other owners."""
    scene = Scene(first_quota=1e9, most_quota=1e9)
    scene.submit(flow_of({f"t{i}": [] for i in range(2_500)}), quorum=2)
    ann = scene.enrol(owner="ann")
    leases = scene.leases(ann, count=1_000)
    assert set(scene.tell(ann, *(ResultWords(lease.id, "done") for lease in leases))) == {"voted"}
    ticket = scene.ask(ann, count=1_000)
    within(scene.serve)
    assert len(ticket.grants) == 1_000


def test_late_failures_while_very_many_tasks_wait_for_a_retry() -> None:
    """Each looked through all that wait."""
    size, late = 50_000, 1_000
    scene = Scene(first_quota=1e9, most_quota=1e9, retries=Retries(most=9, lost=9, first=1e6, longest=1e6))
    workflow = scene.submit(flow_of({f"t{i}": [] for i in range(size)}))
    ann = scene.enrol()
    leases = scene.leases(ann, size=size)
    for first in range(0, size - late, 10_000):
        some = leases[first : min(first + 10_000, size - late)]
        scene.tell(ann, *(ResultWords(lease.id, "failed") for lease in some))
    scene.later(100.0)
    bob = scene.enrol()
    scene.tell(bob, *(ResultWords(lease.id, "failed") for lease in scene.leases(bob, size=late)))
    results = [ResultWords(lease.id, "failed") for lease in leases[-late:]]
    assert set(within(lambda: scene.tell(ann, *results))) == {"failed"}
    assert len(scene.served(workflow).tries.later) == size


def test_failures_where_very_many_clients_have_left() -> None:
    """Each looked through all of them for another that is connected."""
    scene = Scene(first_quota=1e9, most_quota=1e9)
    for i in range(10_000):
        scene.service.enrol(scene.now, f"left{i}")
    scene.submit(flow_of({f"t{i}": [] for i in range(1_000)}))
    scene.later(200.0)
    leases = scene.leases(ann := scene.enrol(), size=1_000)
    within(lambda: scene.tell(ann, *(ResultWords(lease.id, "failed") for lease in leases)))


def test_requests_that_offer_something_else_each_time() -> None:
    """Each looked at every workflow: machines differ in memory, and who attacks says what he likes."""
    scene = Scene()
    flow = flow_of({"a": []})
    for _ in range(3_000):
        scene.submit(flow)
    clients = [scene.enrol() for _ in range(100)]
    within(lambda: [scene.lease(client, memory=1e9 + i) for i, client in enumerate(clients)])


def test_an_owner_with_very_many_workflows_keeps_nobody_out() -> None:
    scene = Scene(most_workflows=10)
    flow = flow_of({"a": []})
    for _ in range(10):
        scene.submit(flow, owner="ann")
    with pytest.raises(InputError, match="already serves 10 workflows, its maximum, and 10 of them are yours"):
        scene.submit(flow, owner="ann")
    for _ in range(5):
        scene.submit(flow, owner="bob")
    for _ in range(3):
        scene.submit(flow, owner="eve")
    for owner in ("ann", "bob", "eve"):
        with pytest.raises(InputError, match="already serves 18 workflows"):
            scene.submit(flow, owner=owner)


def test_a_cause_of_failure_for_each_task() -> None:
    size = 20_000
    scene = Scene(first_quota=1e9, most_quota=1e9, retries=Retries(most=0, lost=0, first=1.0, longest=1.0))
    workflow = scene.submit(flow_of({f"t{i}": [] for i in range(size)}))
    leases = scene.leases(ann := scene.enrol(), size=size)
    scene.tell(ann, *(ResultWords(lease.id, "failed", failure=f"exit code {lease.task}") for lease in leases))
    words = within(lambda: workflow_words(scene.served(workflow), scene.service))
    assert len(words.failures) == MOST_CAUSES + 1
    assert sum(one.count for one in words.failures) == size
    assert scene.service.retry(scene.now, workflow) == size
    assert scene.served(workflow).tries.failed_for == {}


# A real server


class Asker(threading.Thread):
    """A client that renews its leases again and again, and how long it waited at most."""

    def __init__(self, server: MeasuredServer, headers: dict[str, str]) -> None:
        super().__init__()
        self.server, self.headers, self.over, self.longest = server, headers, threading.Event(), 0.0

    def run(self) -> None:
        with closing(HTTPConnection(*self.server.address, timeout=240)) as line:
            while not self.over.is_set():
                began = time.perf_counter()
                headers = self.headers | {"Idempotency-Key": secrets.token_hex(8)}
                line.request("POST", "/v1/renew", b'{"leases": []}', headers)
                line.getresponse().read()
                self.longest = max(self.longest, time.perf_counter() - began)
                time.sleep(0.01)


class Served:
    """A server with a workflow, and a client that works."""

    def __init__(self, server: MeasuredServer) -> None:
        self.server = server
        self.client = self.enrolled("works")
        self.asker = self.enrolled("asks")

    def enrolled(self, name: str) -> dict[str, str]:
        return {"Eligo-Client": self.server.call("POST", "/v1/clients", {"name": name}).words["client"]}

    def take(self, what: str, method: str, path: str, words: Any = None, most: float = MOST) -> Any:
        """A call, while which no step takes longer."""
        self.server.longest()
        asker = Asker(self.server, self.asker)
        asker.start()
        try:
            reply = self.server.call(method, path, words, self.client, timeout=240.0)
        finally:
            asker.over.set()
            asker.join()
        step = self.server.longest()
        figures = f"{reply.status} {len(reply.body):>12,} B {1e3 * step:6.0f} ms"
        print(f"{what:40} {figures}, renewals {1e3 * asker.longest:6.0f} ms")  # noqa: T201
        assert reply.status < 300, reply
        assert step < most, what
        return reply.words if reply.body[:1] == b"{" else None


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with MeasuredServer(tmp_path, "-q") as server:
        yield Served(server)


def test_very_many_files_over_http(served: Served) -> None:
    """Given, granted, brought and listed."""
    file = b"a file"
    digest = sha256(file).hexdigest()
    assert served.server.call("PUT", f"/v1/files/{digest}", file).status == 201
    some = list(names())
    tasks = [{"name": "a", "run": "true", "inputs": [f"given-{name}" for name in some], "outputs": some},
             {"name": "b", "run": "true", "inputs": some}]  # fmt: skip
    path = "/v1/workflows/" + served.take("submit", "POST", "/v1/workflows", {"tasks": tasks})["workflow"]
    files = {name: {"sha256": digest, "size": len(file)} for name in some}
    given = {f"given-{name}": words for name, words in files.items()}
    assert served.take("inputs", "POST", f"{path}/inputs", {"files": given}) == {"missing": []}
    words = served.take("request", "POST", "/v1/request", {"size": 2, "wait": 1.0})
    (task, _) = words["grants"][0]["tasks"]
    result = {"lease": task["lease"], "outcome": "done", "outputs": files}
    assert served.take("deliver", "POST", "/v1/deliver", {"results": [result]})["answers"] == ["accepted"]
    assert len(served.take("results", "GET", f"{path}/results")["files"]) == 2 * FILES


LOOKS = sorted(
    path for (method, path), one in TABLE.items() if method == "GET" and not one.streams and path != "/v1/tokens"
)
TASKS = int(os.environ.get("ELIGO_LOOK_TASKS", "200000"))
DONE = 6 * TASKS // 10


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A large workflow of which much is done and some has failed."""
    with MeasuredServer(tmp_path_factory.mktemp("looked"), "-q", "--most-tasks", "10000") as server:
        one = Served(server)
        tasks = [{"name": f"t{i}", "run": "true"} for i in range(TASKS)]
        query = "format=json&copies=1&files=false&policy=fifo&retries=0&rules=false"
        id = server.call("POST", f"/v1/workflows?{query}", {"tasks": tasks}, timeout=120.0).words["workflow"]
        done = 0
        while done < DONE:
            grants = server.call("POST", "/v1/request", {"size": 10_000}, one.client, timeout=60.0).words["grants"]
            leases = [task["lease"] for grant in grants for task in grant["tasks"]]
            results = [{"lease": lease, "outcome": "done", "seconds": 0.1} for lease in leases]
            if done > DONE // 2:
                results[-1] |= {"outcome": "failed", "failure": f"exit code {done % 250}"}
            assert server.call("POST", "/v1/deliver", {"results": results}, one.client, timeout=60.0).status == 200
            done += len(leases)
        server.call("POST", "/v1/request", {"size": 10_000}, one.client, timeout=60.0)
        yield one, id


@pytest.mark.parametrize("path", LOOKS)
def test_looks_hold_nobody_up(watched: tuple[Served, str], path: str) -> None:
    """Every address that only looks, by a large workflow: twice, because the first look makes ready what the others use."""
    served, workflow = watched
    query = {"/task": "?name=t1", "/lineage": "?name=t1", "/view": "?every=true", "/gantt": "?limit=20000"}
    address = path.format(workflow=workflow, client=served.client["Eligo-Client"])
    address += next((text for end, text in query.items() if path.endswith(end)), "")
    for _ in range(2):
        served.take(path, "GET", address, most=MOST if path.endswith("/report") else 0.6 * MOST)
