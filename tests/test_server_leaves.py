"""Servers below a server as people start them; tests/faults/test_leaf_kills.py has the long form."""

import json
import subprocess
import time
from pathlib import Path

import leaf_scenarios as play
from eligo.server.upstream import LOOK
from leaf_scenarios import LeafProcess, Tree
from running_cases import COMMAND
from server_faults import ServerProcess, tell, worker


def test_kills_of_a_leaf_and_of_its_parent(tmp_path: Path) -> None:
    tell(play.kills(tmp_path, Tree(tasks=32, leaves=2, workers=2, kills=2, size=6)))


def eligo(*words: str) -> str:
    ended = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, timeout=play.PATIENCE)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_signed_tasks_are_run_by_clients_of_a_leaf_that_trust_their_owner_and_have_its_token(tmp_path: Path) -> None:
    owner, flow = str(tmp_path / "owner"), tmp_path / "flow.json"
    tasks = [
        {"name": "a", "run": "cat given.txt > a.txt", "inputs": ["given.txt"], "outputs": ["a.txt"]},
        {"name": "b", "run": "cat a.txt > b.txt", "inputs": ["a.txt"], "outputs": ["b.txt"], "after": ["a"]},
    ]
    flow.write_text(json.dumps({"tasks": tasks}))
    (tmp_path / "given.txt").write_text("given\n")
    eligo("key", owner)
    with (
        ServerProcess(tmp_path) as parent,
        LeafProcess(tmp_path / "leaf", parent, "--tokens", "--trust", f"{owner}.pub") as leaf,
        worker(leaf, tmp_path / "client", "--trust", f"{owner}.pub", "--token-file", f"{leaf.folder}/served.token"),
    ):
        eligo("submit", parent.url, str(flow), "--sign", owner, "--wait")
    assert (tmp_path / "b.txt").read_text() == "given\n"


def test_a_leaf_and_its_clients_end_with_a_parent_that_has_nothing_more(tmp_path: Path) -> None:
    flow = tmp_path / "flow.json"
    flow.write_text(json.dumps({"tasks": [{"name": f"t{i}", "run": "true"} for i in range(5)]}))
    with (
        ServerProcess(tmp_path, str(flow), "--until-done") as parent,
        LeafProcess(tmp_path / "leaf", parent) as leaf,
        worker(leaf, tmp_path / "client") as client,
    ):
        assert leaf.process is not None
        assert client.wait(play.PATIENCE) == leaf.process.wait(play.PATIENCE) == 0
        assert leaf.owes() == []


def test_a_leaf_forgets_grants_that_its_parent_has_all_results_of(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path) as parent,
        LeafProcess(tmp_path / "leaf", parent) as leaf,
        worker(leaf, tmp_path / "client"),
    ):
        workflow = parent.submit([{"name": f"t{i}", "run": "true"} for i in range(5)])
        play.until("the workflow is done", lambda: parent.get(f"/v1/workflows/{workflow}").words["state"] == "done")
        play.until("nothing is kept", lambda: leaf.get("/v1/workflows").words["workflows"] == [])


def test_a_leaf_that_was_drained_works_again(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path) as parent,
        LeafProcess(tmp_path / "leaf", parent) as leaf,
        worker(leaf, tmp_path / "client"),
    ):
        for on in (True, False):
            assert leaf.call("POST", "/v1/drain", {"on": on}).status == 200
            time.sleep(2 * LOOK)  # so that the leaf looks meanwhile
        workflow = parent.submit([{"name": "a", "run": "true"}])
        play.until("the workflow is done", lambda: parent.get(f"/v1/workflows/{workflow}").words["state"] == "done")


def refusal(*words: str) -> str:
    ended = subprocess.run(
        [*COMMAND, "work", "http://127.0.0.1:1", *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    return ended.stderr


def test_options_that_say_how_tasks_are_run_are_refused_with_serve() -> None:
    assert "--cores" in refusal("--serve", "127.0.0.1:0", "--cores", "2")


def test_an_address_that_is_none_is_refused() -> None:
    assert "HOST:PORT" in refusal("--serve", "8760")
    assert "without --serve" in refusal("--open")


def test_a_leaf_that_others_can_reach_needs_tokens_and_a_certificate(tmp_path: Path) -> None:
    assert "--cert" in refusal("--serve", "0.0.0.0:0", "--folder", str(tmp_path))
