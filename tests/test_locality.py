"""Grants that know where files are: who has most bytes of a task gets it, and the order loses at most 1 %."""

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from client_server import StandIn, digest, task
from eligo.allocating import Ask, ByPolicy, allocator
from eligo.allocating.by_policy import MOST_LOST, NEAR
from eligo.client.options import WorkOptions
from eligo.client.transfers import MOST_TOLD, SMALL, Depot, HashedFile
from eligo.client.worker import work
from eligo.dag import Dag
from eligo.execution import Execution
from eligo.families import random_layered
from eligo.names import Name
from eligo.policies import Policy, policy
from eligo.server.schema import AskWords
from eligo.workflow import Task, Workflow
from service_parts import Scene, flow_of
from serving_cases import got, posted, serving

COUNT = 120


def last_wanted(name: Name) -> int:
    """An adversary: the more, the later a task comes."""
    return int(str(name).lstrip("t")) + 1


def line(count: int = COUNT, **known: Any) -> Workflow:
    """Tasks that wait for nothing, in the order of their numbers."""
    names = [f"t{i}" for i in range(count)]
    return Workflow(Dag.from_arcs([], names), {name: Task(name=name, command="true", **known) for name in names})


def granted(live: ByPolicy, *asks: Ask) -> list[Name]:
    return [grant.tasks[0] for grant in live.hand_out(asks)]


def by_plan(flow: Workflow) -> ByPolicy:
    live = allocator("ready", flow, rules=None, order=flow.dag.order)
    assert isinstance(live, ByPolicy)
    return live


# The allocator


def test_of_nearly_equal_tasks_a_client_gets_the_one_it_has_most_bytes_of() -> None:
    live = by_plan(line())
    for _ in range(40):
        granted(live, Ask())
    assert granted(live, Ask(saves=lambda name: {"t43": 7, "t44": 9}.get(name, 0))) == ["t44"]


def test_of_tasks_that_save_as_much_the_first_goes_first() -> None:
    live = by_plan(line())
    assert [granted(live, Ask(saves=lambda task: 5))[0] for _ in range(COUNT)] == [f"t{i}" for i in range(COUNT)]
    assert live.lost == 0


def test_a_task_that_was_passed_over_comes_next() -> None:
    live = by_plan(line())
    for _ in range(40):
        granted(live, Ask())
    granted(live, Ask(saves=last_wanted))
    assert granted(live, Ask()) == ["t40"]


def test_a_higher_priority_is_never_passed_over() -> None:
    known = {f"t{i}": Task(name=f"t{i}", command="true", priority=i % 200) for i in range(400)}
    flow = Workflow(Dag.from_arcs([], known), known)
    live = allocator("finish", flow, rules=None, order=flow.dag.order)
    assert isinstance(live, ByPolicy)
    priorities = [known[granted(live, Ask(saves=last_wanted))[0]].priority or 0 for _ in known]
    assert priorities == sorted(priorities, reverse=True)


def test_only_what_fits_is_compared() -> None:
    live = by_plan(line())
    for _ in range(40):
        granted(live, Ask())
    even = Ask(fits=lambda name: int(name[1:]) % 2 == 0, saves=last_wanted)
    assert int(granted(live, even)[0][1:]) % 2 == 0


def test_slow_clients_and_fat_tasks_go_by_the_policy_alone() -> None:
    one, other = by_plan(line()), by_plan(line())
    for more in ({"modest": True}, {"size": 3}):
        asks = [Ask(saves=last_wanted, **more), Ask(**more)]
        assert one.hand_out(asks[:1])[0].tasks == other.hand_out(asks[1:])[0].tasks


def test_of_clients_that_wait_the_one_that_has_the_files_gets_the_task() -> None:
    flow = Workflow(Dag.from_arcs([], ["t0"]))
    live = by_plan(flow)
    asks = [Ask("first", saves=lambda task: 0), Ask("second", saves=lambda task: 9), Ask("third")]
    assert [grant.ask.client for grant in live.hand_out(asks)] == ["second"]
    assert live.lost == 0


def test_clients_that_have_nothing_are_served_as_they_came() -> None:
    live = by_plan(line())
    grants = live.hand_out([Ask(i, saves=lambda task: 0) for i in range(50)])
    assert [(grant.ask.client, grant.tasks) for grant in grants] == [(i, (f"t{i}",)) for i in range(50)]


def ready_in_order(rule: Policy, game: Execution) -> dict[Name, float]:
    """What is ready, the best first, each with its score, on a board that followed the execution from its beginning."""
    twin = ByPolicy(rule, Execution.replay(game.dag, game.journal))
    found = dict[Name, float]()
    while (v := twin._board.first(False, [], None)) >= 0:
        twin._board.hide(v)
        found[game.dag.tasks[v]] = twin._board.worth(v)
    return found


def played(
    name: str, flow: Workflow, saves: Callable[[random.Random], Callable[[Name], int]], seed: int
) -> Iterator[tuple[int, float]]:
    """Play a workflow with clients that save; of each grant, how many better tasks it passed over, and its share of score."""
    draws, out = random.Random(seed), list[Name]()
    rule = policy(name, flow)
    game = Execution(flow)
    live = ByPolicy(rule, game, flow=flow)
    while not game.finished:
        if out and (draws.random() < 0.5 or not game.eligible):
            game.complete(out.pop(draws.randrange(len(out))))
            continue
        ready = ready_in_order(rule, game)
        (chosen,) = granted(live, Ask(saves=saves(draws)))
        out.append(chosen)
        best = max(ready.values())
        yield [*ready].index(chosen), ready[chosen] / best if best else 1.0


def _drawn(seed: int, name: Name) -> int:
    return crc32(str(name).encode(), seed)


ADVERSARIES: dict[str, Callable[[random.Random], Callable[[Name], int]]] = {
    "always the same": lambda draws: lambda task: crc32(str(task).encode()),
    "random": lambda draws: partial(_drawn, draws.randrange(2**32)),
}


@pytest.mark.parametrize("name", ["ready", "balanced", "finish", "critical-path"])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_the_order_loses_at_most_one_percent_of_its_places_and_scores(name: str, adversary: str) -> None:
    """After every grant: places lost are at most 1 % of 1 + 2 + ... + t, and each score is within 1 % of the best."""
    lost = 0
    flow = Workflow(random_layered(8, 14, seed=5))
    for t, (place, share) in enumerate(played(name, flow, ADVERSARIES[adversary], 3), 1):
        lost += place
        assert lost <= MOST_LOST * t * (t + 1) / 2
        assert share >= 1 - NEAR - 1e-12
    assert lost > 0, "nothing was ever preferred, so nothing was tested"


# The server


SHARED: dict[str, tuple[list[str], list[str]]] = {f"t{i}": ([f"f{i % 2}"], []) for i in range(COUNT)}


def provided(scene: Scene, **wishes: Any) -> str:
    """A workflow whose even tasks read one file and whose odd tasks read another."""
    workflow = scene.submit(flow_of({name: [] for name in SHARED}, SHARED), files=True, policy="ready", **wishes)
    files = [(name, digest(name.encode()), 10**6) for name in ("f0", "f1")]
    assert scene.service.provide(scene.now, workflow, files) == []
    return workflow


def reads(scene: Scene, files: frozenset[str], **wishes: Any) -> list[str]:
    """Which file the tasks read that a client gets that has some files, once others got some."""
    provided(scene, **wishes)
    ann, bob = scene.enrol("ann"), scene.enrol("bob")
    for _ in range(60):
        scene.bring(scene.lease(ann))
    found = list[str]()
    for _ in range(4):
        lease = scene.lease(bob, files=files)
        found += scene.served(lease.workflow).flow.task(*scene.tasks([lease])).inputs
        scene.bring(lease)
    return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_client_gets_tasks_whose_files_it_has(scene: Scene) -> None:
    assert reads(scene, frozenset({digest(b"f1")[:16]})) == ["f1"] * 4


def test_the_owner_may_have_tasks_chosen_regardless_of_files(scene: Scene) -> None:
    assert sorted(reads(scene, frozenset({digest(b"f1")[:16]}), locality=False)) == ["f0"] * 2 + ["f1"] * 2


def test_files_of_others_change_nothing(scene: Scene) -> None:
    assert sorted(reads(scene, frozenset({digest(b"other")[:16]}))) == ["f0"] * 2 + ["f1"] * 2


def test_the_same_requests_get_the_same_tasks() -> None:
    have = frozenset({digest(b"f1")[:16]})
    assert reads(Scene(), have) == reads(Scene(), have)


def test_over_http_the_task_whose_file_is_there_is_chosen_and_wrong_hashes_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "--open") as (url, _):
        tasks = [{"name": name, "run": "true", "inputs": inputs} for name, (inputs, _) in SHARED.items()]
        made = posted(f"{url}/v1/workflows?policy=plan", {"tasks": tasks})[1]
        content = {name: name.encode() for name in made["needs"]}
        for data in content.values():
            assert put(f"{url}/v1/files/{digest(data)}", data) < 300
        files = {name: {"sha256": digest(data), "size": len(data)} for name, data in content.items()}
        assert posted(f"{url}/v1/workflows/{made['workflow']}/inputs", {"files": files}, "i")[1] == {"missing": []}
        client = posted(f"{url}/v1/clients", {"name": "ann"})[1]["client"]

        def step(number: int, **ask: Any) -> dict[str, Any]:
            reply = posted(f"{url}/v1/request", ask, f"r{number}", Eligo_Client=client)[1]
            (only,) = reply["grants"][0]["tasks"]
            results = {"results": [{"lease": only["lease"], "outcome": "done"}]}
            assert posted(f"{url}/v1/deliver", results, f"d{number}", Eligo_Client=client)[0] == 200
            return only  # type: ignore[no-any-return]

        for number in range(40):
            step(number)
        mine = [digest(b"f1")[:16]]
        assert [[*step(100 + i, files=mine)["inputs"]] for i in range(3)] == [["f1"]] * 3
        for wrong in ([digest(b"f1")], ["x" * 16], mine * 257):
            assert posted(f"{url}/v1/request", {"files": wrong}, str(len(wrong[0])), Eligo_Client=client)[0] == 400
        assert got(f"{url}/v1/workflows/{made['workflow']}")["counts"]["done"] == 43


def put(url: str, data: bytes) -> int:
    import urllib.request

    request = urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"}, method="PUT")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return int(reply.status)


# The client


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as found:
        yield found


def served(server: StandIn, folder: Path, **options: Any) -> None:
    server.stop_word = True
    work(WorkOptions(server.url, folder=str(folder / "client"), name="ann", cores=1, **options), say=lambda text: None)


def told(server: StandIn) -> list[list[str]]:
    """The files that the client said it has, with each request."""
    return [words["files"] for words in server.requests if "files" in words]


def test_a_client_tells_of_larger_files_that_this_server_named(server: StandIn, tmp_path: Path) -> None:
    large, small = server.keep(b"x" * SMALL), server.keep(b"y" * (SMALL - 1))
    (tmp_path / "client" / "files").mkdir(parents=True)
    stranger = b"z" * SMALL  # of an earlier server at this address, for all we know
    (tmp_path / "client" / "files" / digest(stranger)).write_bytes(stranger)
    server.grant(task("a", "head -c 70000 in > o", inputs={"in": large, "less": small}, outputs=["o"]))
    server.grant(task("b", ["true"]))
    depot = os.listdir(tmp_path / "client" / "files")
    assert digest(stranger) in depot
    served(server, tmp_path)
    made = server.result("a")["outputs"]["o"]["sha256"]
    assert {*told(server)[-1]} == {large["sha256"][:16], made[:16]}
    assert {prefix for files in told(server) for prefix in files} <= {large["sha256"][:16], made[:16]}


def test_what_a_client_tells_is_what_the_server_takes(tmp_path: Path) -> None:
    depot = Depot(str(tmp_path), None, 10**9)  # type: ignore[arg-type]
    files = [HashedFile(digest(bytes([i % 256, i // 256])), SMALL) for i in range(MOST_TOLD + 50)]
    for file in files:
        depot._note(file)
    depot._note(files[0])
    assert depot.kept()[:2] == [files[0].sha256[:16], files[-1].sha256[:16]]
    assert len(depot.kept()) == MOST_TOLD
    assert msgspec_takes(depot.kept())


def msgspec_takes(files: list[str]) -> bool:
    import msgspec

    return msgspec.json.decode(msgspec.json.encode({"files": files}), type=AskWords).files == files


def test_files_that_were_pruned_or_of_a_server_that_forgot_us_are_not_told(tmp_path: Path) -> None:
    depot = Depot(str(tmp_path), None, SMALL)  # type: ignore[arg-type]
    for letter in (b"a", b"b"):
        (tmp_path / digest(letter)).write_bytes(letter * SMALL)
        depot._note(HashedFile(digest(letter), SMALL))
    os.utime(tmp_path / digest(b"a"), (0, 0))
    depot.sweep()
    assert depot.kept() == [digest(b"b")[:16]]
    depot.forget()
    assert depot.kept() == []
