"""Labels of clients and needs of tasks: who gets what, and what is told of what fits nobody."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eligo.cli import run as cli
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats import parse
from eligo.launch import own_labels
from eligo.server.rules.document import pack_workflow, unpack_workflow
from eligo.server.rules.needs import Need, Needs, Offer
from eligo.server.schema import AskWords, SubmittedWords, WorkflowWords
from eligo.server.view.answers import workflow_words
from eligo.workflow import Task, Workflow
from running_cases import written
from service_parts import Scene
from serving_cases import got, posted, serving, told, worked, working

GIGABYTE = 2**30
GPU, BOTH = frozenset({"gpu"}), frozenset({"gpu", "site-a"})


@pytest.fixture
def scene() -> Scene:
    return Scene()


def flow(**tasks: dict[str, Any]) -> Workflow:
    return Workflow(
        Dag.from_arcs([], tasks), {name: Task(name=name, command="true", **known) for name, known in tasks.items()}
    )


def unmet(scene: Scene, workflow: str) -> list[str]:
    """What the workflow's owner is told of ready tasks that fit nobody."""
    served = scene.served(workflow)
    return workflow_words(served, scene.service).notes


# Who gets what


def test_a_task_goes_only_to_a_client_that_has_all_its_labels(scene: Scene) -> None:
    scene.submit(flow(plain={}, gpu={"labels": ("gpu",)}, both={"labels": ("gpu", "site-a")}))
    ann, bob, eve = scene.enrol("ann"), scene.enrol("bob"), scene.enrol("eve")
    assert scene.tasks(scene.leases(ann, count=3)) == ["plain"]
    assert scene.tasks(scene.leases(bob, count=3, labels=GPU)) == ["gpu"]
    assert scene.tasks(scene.leases(eve, count=3, labels=BOTH | {"spare"})) == ["both"]


def test_labels_cores_and_memory_hold_together(scene: Scene) -> None:
    scene.submit(flow(large={"labels": ("gpu",), "cores": 4, "memory": GIGABYTE}))
    ann = scene.enrol()
    for less in ({"cores": 2.0}, {"memory": GIGABYTE / 2}, {"labels": frozenset({"site-a"})}):
        asked: dict[str, Any] = {"cores": 4.0, "memory": 2.0 * GIGABYTE, "labels": GPU, **less}
        ticket = scene.ask(ann, wait=0.0, **asked)
        scene.serve()
        assert ticket.grants == []
    assert scene.tasks(scene.leases(ann, cores=4.0, memory=2.0 * GIGABYTE, labels=GPU)) == ["large"]


def test_labels_are_honoured_after_a_restart(scene: Scene) -> None:
    scene.submit(flow(gpu={"labels": ("gpu",)}))
    ann = scene.enrol()
    scene.restart()
    assert scene.leases(ann) == []
    assert scene.tasks(scene.leases(ann, labels=GPU)) == ["gpu"]


def test_a_document_kept_before_there_were_labels_is_read() -> None:
    before = flow(a={"cores": 2.0})
    assert b"labels" not in pack_workflow(before)
    assert unpack_workflow(pack_workflow(before)).column("labels") == [()]
    assert unpack_workflow(pack_workflow(flow(a={"labels": ("gpu",)}))).task("a").labels == ("gpu",)


def test_an_old_client_says_nothing_and_an_old_server_is_told_nothing_it_refuses() -> None:
    assert (AskWords().labels, AskWords().files) == ([], [])
    assert SubmittedWords("w", 1, [], "running").notes == []


def test_tasks_are_grouped_by_their_needs_once() -> None:
    many = flow(**{f"t{i}": {"labels": ("b", "a") if i % 2 else ("a", "b"), "cores": float(i % 3)} for i in range(60)})
    needs = Needs(many)
    assert set(needs.groups) == {Need(cores, 0.0, frozenset("ab")) for cores in (1.0, 2.0)}
    for v, name in enumerate(many.dag.tasks):
        assert needs.groups[needs.group[v]].cores == (many.task(name).cores or 1.0)


# What fits nobody


def test_what_no_connected_client_can_run_is_told_with_what_is_lacking(scene: Scene) -> None:
    tasks = {f"gpu{i}": {"labels": ("gpu",)} for i in range(3)}
    workflow = scene.submit(flow(**tasks, large={"memory": 64 * GIGABYTE}, wide={"cores": 8}, plain={}))
    assert "3 ready tasks need gpu; no client is connected" in unmet(scene, workflow)
    ann = scene.enrol()
    scene.ask(ann, cores=4.0, memory=16.0 * GIGABYTE)
    assert unmet(scene, workflow) == [
        "3 ready tasks need gpu; no connected client has it",
        "1 ready task needs 64 GiB of memory; the largest client has 16 GiB",
        "1 ready task needs 8 cores; the largest client has 4 cores",
    ]
    scene.ask(scene.enrol("bob"), cores=8.0, memory=128.0 * GIGABYTE, labels=GPU)
    assert unmet(scene, workflow) == []


def test_a_client_that_was_not_heard_of_for_a_lease_counts_no_more(scene: Scene) -> None:
    workflow = scene.submit(flow(gpu={"labels": ("gpu",)}))
    scene.ask(scene.enrol(), labels=GPU, wait=1000.0)
    assert unmet(scene, workflow) == []
    scene.later(200.0)
    assert unmet(scene, workflow) == ["1 ready task needs gpu; no client is connected"]


def test_a_client_that_has_not_asked_yet_may_have_anything(scene: Scene) -> None:
    workflow = scene.submit(flow(gpu={"labels": ("gpu",)}))
    scene.enrol()
    assert unmet(scene, workflow) == []


def test_needs_that_clients_meet_only_together_are_told() -> None:
    needs = Needs(flow(a={"labels": ("gpu", "site-a")}))
    (found,) = needs.unmet([Offer(labels=GPU), Offer(labels=frozenset({"site-a"}))], np.arange(1, dtype=np.int32))
    assert found.sentence() == "1 task needs gpu, site-a; no connected client has all of it"
    (found,) = needs.unmet([Offer(labels=GPU)], np.arange(1, dtype=np.int32))
    assert found.sentence() == "1 task needs gpu, site-a; no connected client has site-a"


def test_nothing_is_told_of_a_workflow_that_has_ended(scene: Scene) -> None:
    workflow = scene.submit(flow(gpu={"labels": ("gpu",)}))
    scene.service.cancel(scene.now, workflow)
    served = scene.service.served.get(workflow)
    assert served is None or scene.service.books.unmet(served, np.arange(1, dtype=np.int32)) == []


def test_answers_of_earlier_servers_have_no_such_field() -> None:
    fields = {
        "workflow": "w",
        "name": "",
        "owner": "",
        "policy": "",
        "state": "",
        "made": 0.0,
        "tasks": 1,
        "counts": {},
    }
    assert WorkflowWords(**fields, lost=0, repeated=0, saved=0, missing=[], failures=[]).notes == []  # type: ignore[arg-type]


# With a real server and real clients


def test_a_real_client_gets_what_its_labels_allow_and_the_owner_is_told_what_fits_nobody(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [{"name": "a", "run": "echo a"}, {"name": "b", "run": "echo b", "labels": ["gpu"]}]
    path = written(tmp_path, tasks)
    with serving(tmp_path) as (url, _):
        assert "0 tasks done" in worked(tmp_path, url, "ann")  # it is known now what ann has
        code, said, warned = told("submit", url, str(path))
        assert (code, "warning: 1 task needs gpu; no connected client has it" in warned) == (0, True)
        place = f"{url}/{said.strip()}"
        assert "1 tasks done" in worked(tmp_path, url, "ann")
        assert "1 ready task needs gpu; no connected client has it" in told("status", place)[1]
        assert "It needs gpu; no connected client has it." in told("why", place, "b")[1]
        view = got(f"{url}/v1/workflows/{said.strip()}/view")
        assert view["unmet"] == ["1 ready task needs gpu; no connected client has it"]
        assert "1 tasks done" in worked(tmp_path, url, "bob", "--label", "gpu", "--label", "site-a")
        assert got(f"{url}/v1/workflows/{said.strip()}")["state"] == "done"
        labels = {one["name"]: set(one["labels"]) for one in got(f"{url}/v1/clients")["clients"]}
        own = set(own_labels(isolated=False))
        assert labels == {"ann": own, "bob": {"gpu", "site-a", *own}}
        assert " site-a" in told("clients", url)[1]


def test_a_run_on_a_server_may_have_labels(tmp_path: Path) -> None:
    path = written(tmp_path, [{"name": "a", "run": "touch made", "outputs": ["made"], "labels": ["gpu"]}])
    with serving(tmp_path) as (url, _):
        client = working(tmp_path, url, "ann", "--label", "gpu")
        assert told("run", str(path), "--on", url)[0] == 0
        client.terminate()
        client.communicate(timeout=60)
    assert (tmp_path / "made").exists()


def test_labels_that_are_none_are_refused_by_client_and_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["work", "http://127.0.0.1:1", "--label", "two words", "--folder", str(tmp_path)]) == 2
    assert "label 'two words' must be" in capsys.readouterr().err
    with serving(tmp_path) as (url, _):
        client = posted(f"{url}/v1/clients", {"name": "ann"})[1]["client"]
        for wrong in (["two words"], ["x"] * 65, "gpu"):
            assert posted(f"{url}/v1/request", {"labels": wrong}, json.dumps(wrong)[:50], Eligo_Client=client)[0] == 400


@pytest.mark.parametrize("label", ["", " ", "-gpu", "a,b", "x" * 65, 7])
def test_what_is_no_label_is_refused(label: Any) -> None:
    with pytest.raises(InputError, match="label"):
        Task(name="a", labels=(label,))
    with pytest.raises(InputError, match=r"label|string"):
        parse(json.dumps({"tasks": [{"name": "a", "labels": [label]}]}))


# Memory that grows


def test_memory_grows_after_a_failure_on_a_server_too(scene: Scene) -> None:
    """A client of little memory gets the first attempt, and only a larger one the second, also after a restart."""
    workflow = scene.submit(flow(a={"memory": GIGABYTE, "more_memory": (4 * GIGABYTE, 8 * GIGABYTE)}))
    ann, bob = scene.enrol("ann"), scene.enrol("bob")
    lease = scene.lease(ann, memory=2.0 * GIGABYTE)
    assert scene.served(workflow).memory_of(0) == GIGABYTE
    scene.bring(lease, "failed", failure="out of memory")
    scene.later(400.0)
    assert scene.leases(ann, memory=2.0 * GIGABYTE) == []
    assert unmet(scene, workflow) == ["1 ready task needs 4 GiB of memory; the largest client has 2 GiB"]
    scene.restart()
    scene.later(400.0)
    assert scene.leases(ann, memory=2.0 * GIGABYTE) == []
    lease = scene.lease(bob, memory=4.0 * GIGABYTE)
    assert scene.served(workflow).memory_of(0) == 4 * GIGABYTE
    scene.bring(lease, "failed", failure="out of memory")
    scene.later(400.0)
    assert scene.leases(bob, memory=7.0 * GIGABYTE) == []
    assert scene.tasks([scene.lease(bob, memory=8.0 * GIGABYTE)]) == ["a"]


def test_growing_memory_and_resources_are_kept_by_a_server() -> None:
    details = {"more_memory": (2, 3), "resources": (("gpus", 1), ("licence", 0.5))}
    kept = unpack_workflow(pack_workflow(flow(a={"memory": 1, **details}, b={})))
    assert (kept.task("a").more_memory, kept.task("a").resources) == tuple(details.values())
    assert (kept.task("b").more_memory, kept.task("b").resources) == ((), ())
