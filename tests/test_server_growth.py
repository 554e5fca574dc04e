"""Workflows of a server that grow: tasks that their owner adds, kept, restored, seen and refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from eligo.additions import read_addition
from eligo.errors import InputError
from eligo.server.rules.prepared import MOST_ARCS
from running_cases import written
from service_parts import Scene, flow_of
from serving_cases import got, posted, serving, told, worked

MORE = '{"tasks": [{"name": "x", "after": ["a"], "run": "make x", "labels": ["gpu"]}, {"name": "y", "run": "make y"}]}'


def test_an_added_task_is_handed_out_and_its_result_counts() -> None:
    scene = Scene()
    workflow, ann = scene.submit(flow_of({"a": [], "b": ["a"]}), policy="finish"), scene.enrol()
    assert scene.service.add(scene.now, workflow, read_addition('{"tasks": [{"name": "x", "run": "make x"}]}')) == (
        "x",
    )
    scene.kept()
    (granted,) = scene.get(ann, size=3)
    assert {scene.served(workflow).flow.dag.tasks[lease.task] for lease in granted.leases} == {"a", "b", "x"}


def test_what_was_added_is_restored_at_a_restart() -> None:
    scene = Scene()
    workflow = scene.submit(flow_of({"a": [], "b": ["a"]}), policy="finish")
    scene.service.add(scene.now, workflow, read_addition(MORE))
    scene.kept()
    before = scene.served(workflow)
    scene.restart()
    again = scene.served(workflow)
    assert again.flow.dag == before.flow.dag
    assert again.flow.task("x").labels == ("gpu",)
    assert list(again.commands) == ["true", "true", "make x", "make y"]
    assert again.order is not None
    assert again.order.tolist() == before.order.tolist() if before.order is not None else False
    assert bytes(again.execution.journal) == bytes(before.execution.journal)


def test_the_same_addition_again_changes_nothing() -> None:
    scene = Scene()
    workflow = scene.submit(flow_of({"a": []}))
    assert scene.service.add(scene.now, workflow, read_addition(MORE)) == ("x", "y")
    scene.kept()
    scene.restart()
    assert scene.service.add(scene.now, workflow, read_addition(MORE)) == ()
    assert len(scene.served(workflow).flow) == 3


def test_a_workflow_waits_for_the_files_that_new_tasks_read() -> None:
    scene = Scene()
    workflow = scene.submit(flow_of({"a": []}), files=True)
    new = '{"tasks": [{"name": "x", "run": "cat given", "inputs": ["given"]}]}'
    scene.service.add(scene.now, workflow, read_addition(new))
    assert scene.state(workflow) == "paused"
    assert scene.service.provide(scene.now, workflow, [("given", "0" * 64, 3)]) == []
    assert scene.state(workflow) == "running"


def test_a_workflow_that_failed_goes_on_with_new_tasks() -> None:
    scene = Scene()
    workflow, ann = scene.submit(flow_of({"a": []}), retries=0), scene.enrol()
    scene.bring(scene.lease(ann), "failed")
    assert scene.state(workflow) == "failed"
    scene.service.add(scene.now, workflow, read_addition('{"tasks": [{"name": "x", "run": "true"}]}'))
    assert scene.state(workflow) == "running"


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"signed": True}, "cannot add tasks to a signed workflow"),
        (
            {"policy": "cluster"},
            "a growing workflow may have at most 30 tasks with the policy 'cluster', got 41",
        ),
    ],
)
def test_a_workflow_that_cannot_grow_refuses_new_tasks(wishes: dict[str, Any], why: str) -> None:
    scene = Scene()
    workflow = scene.submit(flow_of({"a": []}), **wishes)
    new = json.dumps({"tasks": [{"name": f"x{i}", "run": "true"} for i in range(40)]})
    with pytest.raises(InputError, match=why):
        scene.service.add(scene.now, workflow, read_addition(new))
    assert len(scene.served(workflow).flow) == 1


def test_new_tasks_with_too_many_dependencies_for_a_policy_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST_ARCS, "batch-optimal", 2)
    scene = Scene()
    workflow = scene.submit(flow_of({"a": [], "b": ["a"]}), policy="batch-optimal")
    new = '{"tasks": [{"name": "x", "run": "true", "after": ["a", "b"]}]}'
    with pytest.raises(InputError, match=r"at most 2 dependencies with the policy 'batch-optimal', got up to 3"):
        scene.service.add(scene.now, workflow, read_addition(new))
    assert len(scene.served(workflow).flow) == 2


def test_a_result_adds_tasks_where_the_owner_allows_it() -> None:
    scene = Scene()
    workflow, ann = scene.submit(flow_of({"a": []}), grow=True), scene.enrol()
    assert scene.bring(scene.lease(ann), added=MORE) == "accepted"
    assert scene.state(workflow) == "running"
    scene.restart()
    assert set(scene.served(workflow).execution.eligible) == {"x", "y"}


@pytest.mark.parametrize(
    ("grow", "added", "why"),
    [
        (False, MORE, "tasks of this workflow may not add tasks (submit it with --grow)"),
        (True, '{"tasks": [{"name": "a", "run": "true"}]}', "added tasks were refused: task 'a' already exists"),
        (True, '{"tasks": [{"name": "x", "run": "true", "inputs": ["f"]}]}', "'x' reads 'f', which no task writes"),
    ],
)
def test_a_result_whose_addition_is_refused_is_a_failure(grow: bool, added: str, why: str) -> None:
    scene = Scene()
    workflow, ann = scene.submit(flow_of({"a": []}), grow=grow, files=True), scene.enrol()
    lease = scene.lease(ann)
    assert scene.bring(lease, added=added) == "failed"
    assert why in str(scene.store.ends[workflow, lease.number].failure)
    assert len(scene.served(workflow).flow) == 1


@pytest.mark.parametrize("other", [{"quorum": 2}, {"signed": True}])
def test_what_tasks_add_is_neither_compared_nor_signed(other: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="grow cannot be combined with a quorum above 1 or with signatures"):
        Scene().submit(flow_of({"a": []}), grow=True, **other)


# Over the network


def test_the_task_of_a_client_adds_tasks(tmp_path: Path) -> None:
    new = {
        "tasks": [
            {"name": "x", "run": "cat a > x", "inputs": ["a"], "outputs": ["x"]},
            {"name": "y", "run": "test -z ${ELIGO_ADD:-}"},
        ]
    }
    adds = f"echo hello > a; printf %s '{json.dumps(new)}' > \"$ELIGO_ADD\""
    flow = written(tmp_path, [{"name": "a", "run": adds, "outputs": ["a"]}])
    with serving(tmp_path) as (url, _):
        workflow = told("submit", url, str(flow), "--grow", "--retries", "0")[1].strip()
        worked(tmp_path, url, "ann", "--size", "3")
        found = got(f"{url}/v1/workflows/{workflow}")
        assert found["counts"]["done"] == 2, found
        assert "x" in got(f"{url}/v1/workflows/{workflow}/results")["files"]


def test_a_client_tells_its_task_nothing_of_adding_unless_it_may(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "test -z ${ELIGO_ADD:-}"}])
    with serving(tmp_path) as (url, _):
        workflow = told("submit", url, str(flow), "--retries", "0")[1].strip()
        worked(tmp_path, url)
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "done"


def test_tasks_come_to_a_workflow_of_a_server_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("hello\n")
    flow = written(tmp_path, [{"name": "a", "run": "echo a > a", "outputs": ["a"]}])
    new = [{"name": "x", "run": "cat a given.txt > x", "inputs": ["a", "given.txt"], "outputs": ["x"]}]
    more = written(tmp_path, new, "more.yaml")
    with serving(tmp_path) as (url, server):
        workflow = told("submit", url, str(flow))[1].strip()
        code, said, errors = told("add", f"{url}/{workflow}", str(more))
        assert (code, said) == (0, f"added 1 task to {url}/{workflow}\n"), errors
        server.kill()
        server.wait()
    with serving(tmp_path) as (url, _):
        assert [row["task"] for row in got(f"{url}/v1/workflows/{workflow}/tasks")["tasks"]] == ["a", "x"]
        worked(tmp_path, url)
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "done"
        assert {row["task"] for row in got(f"{url}/v1/workflows/{workflow}/attempts")["attempts"]} == {"a", "x"}
        code, _, errors = told("add", f"{url}/{workflow}", str(more))
        assert code == 2
        assert "this workflow has ended" in errors


def test_tasks_that_do_not_fit_are_refused_by_a_server(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    more = written(tmp_path, [{"name": "x", "run": "true", "after": ["nobody"]}], "more.yaml")
    with serving(tmp_path) as (url, _):
        workflow = told("submit", url, str(flow))[1].strip()
        code, _, errors = told("add", f"{url}/{workflow}", str(more))
        assert code == 2
        assert "new task 'x' comes after 'nobody', which does not exist" in errors
        status, _ = posted(f"{url}/v1/workflows/{workflow}/tasks", {"tasks": 3})
        assert status == 422
        assert got(f"{url}/v1/workflows/{workflow}")["tasks"] == 1


def test_a_page_sees_what_was_added_since_it_looked(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    more = written(tmp_path, [{"name": "x", "run": "true", "after": ["a"]}], "more.yaml")
    with serving(tmp_path) as (url, _):
        workflow = told("submit", url, str(flow))[1].strip()
        assert got(f"{url}/v1/workflows/{workflow}/view")["tasks"] == 1
        assert told("add", f"{url}/{workflow}", str(more))[0] == 0
        assert got(f"{url}/v1/workflows/{workflow}/view")["tasks"] == 2
