"""Clients and servers of other versions: of the same API they get on, of another one they are told so."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client_server import StandIn, task
from eligo.client.calls import ServerRefusedError
from eligo.client.options import WorkOptions
from eligo.client.worker import work
from running_cases import COMMAND
from server_faults import Reply, ServerProcess

NEWER = {"colour": "blue", "moods": [{"a": None}, 1e300], "": {}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("served"), "-q") as running:
        yield running


def with_more(words: Any) -> Any:
    """The same with fields in every object that nobody knows."""
    if isinstance(words, list):
        return [with_more(each) for each in words]
    if not isinstance(words, dict):
        return words
    return {**{name: word if name in FREE else with_more(word) for name, word in words.items()}, **NEWER}


FREE = {"environment", "inputs", "outputs", "files"}  # whose names are the user's, and not of the API


# A server of this version


@pytest.mark.parametrize("newer", [False, True])
def test_older_and_newer_clients_are_served(server: ServerProcess, newer: bool) -> None:
    """An older one says nothing but what was always needed, a newer one also what nobody here knows."""

    def said(path: str, words: dict[str, Any], **who: str) -> Reply:
        return server.call("POST", path, with_more(words) if newer else words, who)

    workflow = server.submit([{"name": "a", "run": "true"}, {"name": "b", "run": "true", "after": ["a"]}])
    who = {"Eligo-Client": said("/v1/clients", {}).words["client"]}
    for name in "ab":
        (given,) = said("/v1/request", {}, **who).words["grants"][0]["tasks"]
        assert given["task"] == name
        assert said("/v1/renew", {"leases": [given["lease"]]}, **who).words == {"gone": []}
        words = {"results": [{"lease": given["lease"], "outcome": "done"}]}
        assert said("/v1/deliver", words, **who).words["answers"] == ["accepted"]
    assert server.state(workflow)["state"] == "done"


def test_what_an_owner_wishes_is_not_ignored(server: ServerProcess) -> None:
    """A server that does not know a wish cannot keep to it: it says which."""
    reply = server.call("POST", "/v1/workflows?format=json&colour=blue", {"tasks": [{"name": "a", "run": "true"}]})
    assert (reply.status, reply.words["error"]) == (400, "unknown parameter 'colour'")


@pytest.mark.parametrize("path", ["/v2/clients", "/v2/request", "/v17/workflows/w-1", "/v0/"])
def test_callers_of_another_api_are_told_so(server: ServerProcess, path: str) -> None:
    for method in ("GET", "POST"):
        reply = server.call(method, path, b"" if method == "POST" else None)
        assert reply.status == 404
        number = path.split("/")[1].removeprefix("v")
        told = (
            f"this server supports version 1 of the API, not {number}: install the same version of eligo on both sides"
        )
        assert reply.words["error"] == told
    assert server.get("/v1/nothing").words["error"] == server.get("/v2x/y").words["error"]


# A client of this version


class Newer(StandIn):
    """One whose answers have fields that nobody here knows."""

    def post(self, path: str, words: dict[str, Any]) -> tuple[int, Any]:
        code, reply = super().post(path, words)
        return code, with_more(reply)


class Older(StandIn):
    """One that says nothing but what was always said."""

    def post(self, path: str, words: dict[str, Any]) -> tuple[int, Any]:
        code, reply = super().post(path, words)
        reply = {name: word for name, word in reply.items() if name not in {"wait", "stop", "token"}}
        for grant in reply.get("grants", ()):
            grant.pop("why", None)
            grant["tasks"] = [
                {name: word for name, word in each.items() if name in {"lease", "task", "command", "outputs"}}
                for each in grant["tasks"]
            ]
        return code, reply


class Another(StandIn):
    """One of another API, which says so as ours does."""

    def post(self, path: str, words: dict[str, Any]) -> tuple[int, Any]:
        return 404, {"error": "this server speaks version 2 of the API, and not 1", "request": "r-1"}


def options(server: StandIn, folder: Path) -> WorkOptions:
    return WorkOptions(server.url, cores=1, folder=str(folder / "client"), idle_exit=0.0, poll=2.0)


@pytest.mark.parametrize("kind", [Newer, Older])
def test_older_and_newer_servers_are_worked_for(tmp_path: Path, kind: type[StandIn]) -> None:
    with kind() as server:
        for name in "ab":
            server.grant(task(name, f"echo {name} > o", outputs=["o"]))
        tally = work(options(server, tmp_path), lambda text: None)
        assert (tally.done, tally.failed) == (2, 0)
        assert server.content(server.result("b"), "o") == b"b\n"


def test_a_server_of_another_api_is_not_asked_for_ever(tmp_path: Path) -> None:
    """Nor by a client that was known before the server was replaced."""
    with StandIn() as server:
        work(options(server, tmp_path), lambda text: None)
    with Another() as other:
        for folder in (tmp_path, tmp_path / "new"):
            folder.mkdir(exist_ok=True)
            (kept := folder / "client").mkdir(exist_ok=True)
            if folder == tmp_path:  # it was the same address
                known = json.loads((kept / "client.json").read_text())
                (kept / "client.json").write_text(json.dumps({**known, "url": other.url}))
            with pytest.raises(ServerRefusedError, match="speaks version 2 of the API, and not 1"):
                work(options(other, folder), lambda text: None)
        command = [*COMMAND, "work", other.url, "--folder", str(tmp_path / "third")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2
    assert (
        done.stderr
        == "eligo: the server refused the request: this server speaks version 2 of the API, and not 1 (HTTP 404)\n"
    )
