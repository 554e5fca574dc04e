"""How a task's command runs on a server's clients: as its owner states, with what the client's machine has."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eligo.client.assignment import assignments
from eligo.client.trust import DISTRUSTED, Trust
from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.formats import parse
from eligo.launch import Launch, own_labels
from eligo.server.auth.signatures import new_key, private_key, signatures
from eligo.server.rules.document import pack_workflow, unpack_workflow
from eligo.server.rules.needs import Needs, Offer
from eligo.server.rules.prepared import Wishes, prepare
from eligo.workflow import Task, Workflow
from launch_cases import with_podman
from running_cases import written
from serving_cases import got, serving, told, worked

HOW = Launch(
    env={"A": "1"}, dir="d", shell=("sh",), timeout=(5, "1h"), retries=3, container="x", conda="y", modules=("z",)
)


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program in place of podman."""
    return with_podman(tmp_path, monkeypatch)


def submitted(folder: Path, url: str, task: dict[str, Any]) -> str:
    """A workflow of one task on a server."""
    return told("submit", url, str(written(folder, [{"name": "a", **task}])))[1].strip()


def test_a_client_runs_a_task_as_its_owner_states(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, _):
        line = '[[ $A == "b c" ]] && pwd > ../out && echo $ELIGO_ATTEMPT'
        workflow = submitted(tmp_path, url, {"run": line, "env": {"A": "b c"}, "dir": "d/e", "outputs": ["d/out"]})
        worked(tmp_path, url)
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "done"


def test_a_failure_within_a_line_is_one_on_a_client_too(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, _):
        workflow = submitted(tmp_path, url, {"run": "false | true", "retries": 0})
        worked(tmp_path, url)
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "failed"


def test_a_task_that_is_late_by_its_own_limit_is_retried_as_often_as_it_says(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, _):
        task = {"run": '[ "$ELIGO_ATTEMPT" = 2 ] || sleep 600', "timeout": [0.2, "1h"], "retries": 1}
        workflow = submitted(tmp_path, url, task)
        worked(tmp_path, url, "ann", "--idle-exit", "8")
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "done"


def test_a_task_in_a_container_waits_for_a_client_that_has_them(tmp_path: Path, podman: Path) -> None:
    with serving(tmp_path) as (url, _):
        task = {"run": "echo $IMAGE > out; echo $HOME | grep -q scratch", "container": "alpine", "outputs": ["out"]}
        workflow = submitted(tmp_path, url, task)
        assert worked(tmp_path, url)
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "done"


def test_a_task_is_not_given_to_a_client_without_its_programs() -> None:
    needs = Needs(parse('{"tasks": [{"name": "a", "run": "ls", "container": "x"}, {"name": "b", "run": "ls"}]}'))
    offers = {Offer(labels=frozenset(own_labels(isolated=True)))}
    assert [unmet.sentence() for unmet in needs.unmet(offers, np.arange(2, dtype=np.int32))] == [
        "1 task needs container; no connected client has it"
    ]


def test_a_folder_outside_that_of_the_task_is_refused(tmp_path: Path) -> None:
    for folder in ("../x", "/etc"):
        flow = parse(f'{{"tasks": [{{"name": "a", "run": "ls", "dir": "{folder}"}}]}}')
        with pytest.raises(FormatError, match="outside the scratch folder"):
            prepare(flow, Wishes(name="x"))


def test_a_stored_workflow_keeps_how_its_commands_are_run() -> None:
    flow = Workflow(Dag.from_arcs([], tasks=["a", "b"]), {"a": Task(name="a", command="ls", launch=HOW)})
    again = unpack_workflow(pack_workflow(flow))
    assert again.task("a") == flow.task("a")
    assert again.task("b").launch is None


@pytest.mark.parametrize("change", [{"env": {"A": "2"}}, {"container": "other"}, {"shell": "bash"}, {"dir": "e"}, {}])
def test_a_server_cannot_change_how_a_signed_command_is_run(change: dict[str, Any], tmp_path: Path) -> None:
    public = new_key(tmp_path / "owner")
    flow = Workflow(Dag.from_arcs([], tasks=["a"]), {"a": Task(name="a", command="ls", launch=HOW)})
    text = signatures(flow, "survey", private_key(tmp_path / "owner"), {}, int(time.time()) + 60)["a"]
    signed = {"workflow": "survey", "inputs": [], "outputs": [], "environment": {}}
    words = {"lease": "l", "task": "a", "command": "ls", "signature": text, "signed": signed}
    words["launch"] = replace(HOW, **change).document()
    ((task,),) = assignments({"grants": [{"workflow": "w-1", "tasks": [words]}]})
    assert Trust([str(public)]).distrusts(task) == (DISTRUSTED if change else None)


def test_a_client_refuses_a_description_that_it_does_not_understand() -> None:
    for launch in ({"env": {"A": 1}}, {"dir": "../x"}, {"setup": {"spack": "x"}}):
        words = {"lease": "l", "task": "a", "command": "ls", "launch": launch}
        ((task,),) = assignments({"grants": [{"workflow": "w-1", "tasks": [words]}]})
        assert task.wrong is not None


def test_labels_name_what_a_task_demands_of_a_client() -> None:
    assert HOW.labels == {"container", "conda", "modules", "launch"}
    assert Launch(timeout=5, retries=2, shell=("/bin/sh", "-c")).labels == set()
    assert own_labels(isolated=True) == ("launch",)
