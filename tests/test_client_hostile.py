"""A server that was taken over, against a real client that trusts one owner's key: what is refused, and what cannot be."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client_server import StandIn, digest, task
from eligo.client.trust import DISTRUSTED
from test_client_ends import signed, signer

pytest.importorskip("cryptography")
PATIENCE = 60.0
EXTREMES = ("Infinity", "-Infinity", "NaN", "1e999", "1e308", "-1", "0", '"1"', "true", "[]", "{}", "null")


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as made:
        yield made


class Owner:
    """Signs tasks, and has a client run that trusts nobody else."""

    def __init__(self, server: StandIn, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.key, self.files = signer(folder)
        self.ran = folder / "ran"

    def task(self, name: str, command: str = "", **more: Any) -> dict[str, Any]:
        return signed(self.key, task(name, f"echo {name.split(maxsplit=1)[0]} >> {self.ran}; {command}", **more))

    def runs(self) -> Counter[str]:
        return Counter(self.ran.read_text().split() if self.ran.exists() else ())

    def work(self, *words: str) -> str:
        """What a client says that works until there is nothing to do."""
        argv = [sys.executable, "-m", "eligo.client", self.server.url, "--folder", str(self.folder / "client")]
        told = subprocess.run(
            [*argv, "--cores", "1", "--idle-exit", "0.5", "--trust", self.files["pem"], *words],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert "Traceback" not in told.stderr, told.stderr
        return told.stderr


@pytest.fixture
def owner(server: StandIn, tmp_path: Path) -> Owner:
    return Owner(server, tmp_path)


def again(words: dict[str, Any], number: int, **more: Any) -> dict[str, Any]:
    return {**words, "lease": f"{words['lease']}-{number}", **more}


def test_changes_to_a_signed_task_are_refused(server: StandIn, owner: Owner) -> None:
    good = owner.task("good")
    said = good["signed"]
    changed: list[dict[str, Any]] = [
        {"command": f"echo evil >> {owner.ran}"},
        {"command": ["sh", "-c", good["command"]]},
        {"task": "other"},
        {"signature": None},
        {"signature": good["signature"][:-4] + "AAA="},
        {"inputs": {"run.sh": server.keep(b"evil")}},
        {"outputs": ["../../client.json"]},
        {"outputs": ["/etc/passwd"]},
        {"inside": ["x"]},
        {"signed": {**said, "workflow": "day"}},
        *(
            {"signed": {**said, "environment": {name: "/tmp/evil"}}}
            for name in ("LD_PRELOAD", "PATH", "A", "PYTHONPATH")
        ),
        {"signed": {**said, "environment": {}}},
        {"signed": {**said, "inputs": ["x"]}},
        {"signed": {}},
    ]
    for number, change in enumerate(changed):
        server.grant(again(good, number, **change))
    server.grant(again(good, 1000))
    owner.work()
    assert owner.runs() == {"good": 1}
    assert Counter(each["outcome"] for each in server.results) == {
        "failed": 2,
        "returned": len(changed) - 2,
        "done": 1,
    }
    for each in server.results:
        assert each["distrusted"] == (each["outcome"] == "returned")
        assert each["outcome"] == "done" or each["failure"] == DISTRUSTED or "points outside" in each["failure"]


def test_unsigned_fields_change_nothing(server: StandIn, owner: Owner) -> None:
    """The environment that counts is the signed one; what is not known is not heeded; limits are the client's too."""
    more = {
        "environment": {"LD_PRELOAD": "/tmp/evil.so"},
        "folder": "/",
        "user": "root",
        "sandbox": None,
        "shell": "sh",
    }
    good = owner.task("good", 'env > o; echo "${LD_PRELOAD-}" > p', outputs=["o", "p"])
    server.grant({**good, **more})
    owner.work()
    result = server.result("good")
    assert server.content(result, "p") == b"\n"
    found = dict(line.split("=", 1) for line in server.content(result, "o").decode().splitlines())
    assert (found["A"], found["PATH"]) == ("ä", os.environ["PATH"])


def test_what_a_signature_does_not_cover(server: StandIn, owner: Owner) -> None:
    """Docs say so: a signed task can be repeated, with other limits; other content of an input is refused."""
    good = owner.task("good", "cat i > o", inputs={"i": server.keep(b"true")}, outputs=["o"])
    server.grant(good)
    server.grant(again(good, 1))
    server.grant(again(good, 2, inputs={"i": server.keep(b"false")}))
    server.grant(again(good, 3, attempt=7, timeout=9.0, cores=64, memory=2**40))
    owner.work()
    assert owner.runs() == {"good": 3}
    assert [server.content(each, "o") for each in server.results if each["outcome"] == "done"] == [b"true"] * 3
    assert [each["failure"] for each in server.results if each["distrusted"]] == [DISTRUSTED]


@pytest.mark.parametrize("field", ["timeout", "memory", "cores", "attempt"])
def test_numbers_that_are_none_stop_nobody(server: StandIn, owner: Owner, field: str) -> None:
    """Each is run as it can be or failed, and the client goes on."""
    for number, extreme in enumerate(EXTREMES):
        words = json.dumps(again(owner.task(f"t{number}"), number, **{field: "HERE"})).replace('"HERE"', extreme)
        lease = again(owner.task(f"t{number}"), number)["lease"]
        server.leases[lease] = f"t{number}"
        server.fault("/v1/request", f'say {{"grants": [{{"workflow": "w-1", "tasks": [{words}]}}], "lease": 60}}')
    server.grant(owner.task("good"))
    said = owner.work()
    assert owner.runs()["good"] == 1, said
    assert server.outcomes().keys() == {*(f"t{i}" for i in range(len(EXTREMES))), "good"}, said


@pytest.mark.parametrize("field", ["wait", "stop"])
def test_answers_that_make_no_sense_stop_nobody(server: StandIn, owner: Owner, field: str) -> None:
    """A client that is told to stay away for ever stays away for some minutes at most, which is not waited for here."""
    for extreme in EXTREMES:
        if field == "wait" and extreme in {"Infinity", "1e999", "1e308"}:
            continue
        usual = {"grants": "[]", "lease": "60", "wait": "0", "stop": "false"} | {field: extreme}
        if (field, extreme) != ("stop", "true"):
            words = ", ".join(f'"{name}": {text}' for name, text in usual.items())
            server.fault("/v1/request", f"say {{{words}}}")
    server.grant(owner.task("good", "sleep 1"))
    said = owner.work("--idle-exit", "60", "--once")
    assert owner.runs() == {"good": 1}, said


@pytest.mark.parametrize("extreme", ["Infinity", "1e308", "-1"])
def test_leases_are_renewed_whatever_was_said_of_their_length(server: StandIn, owner: Owner, extreme: str) -> None:
    first = owner.task("first")
    server.leases[first["lease"]], server.lease = "first", 0.6
    words = f'"grants": [{{"workflow": "w-1", "tasks": [{json.dumps(first)}]}}], "lease": {extreme}'
    server.fault("/v1/request", f"say {{{words}}}")
    (lease,) = server.grant(owner.task("good", "sleep 2"))
    owner.work()
    assert owner.runs() == {"first": 1, "good": 1}
    assert server.renewed[lease] > 0


@pytest.mark.parametrize("workflow", ["../../x", "$(touch x)", "w\n1", "\ud800", None])
def test_ids_of_workflows_are_plain_words(server: StandIn, owner: Owner, workflow: Any) -> None:
    """Commands that use $ELIGO_WORKFLOW without quotes were signed for words, not for scripts."""
    bad = {"grants": [{"workflow": workflow, "tasks": [owner.task("bad")]}], "lease": 60}
    server.fault("/v1/request", f"say {json.dumps(bad)}")
    assert "invalid answer" in owner.work()
    assert not owner.runs()


def test_a_million_leases_are_not_taken(server: StandIn, owner: Owner) -> None:
    """Each would be a file on the client's disk: no server hands out more than 10,000 tasks in one answer."""
    many = {"grants": [{"workflow": "w-1", "tasks": [{"lease": f"w-1.{i}", "task": "t", "command": "true"}
                                                     for i in range(500_000)]}]}  # fmt: skip
    server.fault("/v1/request", f"say {json.dumps(many, separators=(',', ':'))}")
    assert "more than 10,000 tasks" in owner.work()
    assert os.listdir(owner.folder / "client" / "owed") == []


def test_a_file_without_end_does_not_fill_the_disk(server: StandIn, owner: Owner) -> None:
    free = shutil.disk_usage(owner.folder).free
    huge = {"i": {"sha256": digest(b"x"), "size": free}}
    server.grant(owner.task("huge", inputs=huge))
    server.grant(owner.task("good"))
    owner.work()
    assert server.outcomes() == {"huge": "returned", "good": "done"}
    assert server.count("GET", "/v1/files") == 0


def test_nobody_is_sent_elsewhere(server: StandIn, owner: Owner) -> None:
    """Redirects are not followed: neither tokens nor files go to another host."""
    with StandIn() as elsewhere:
        server.grant(owner.task("read", inputs={"i": server.keep(b"x")}))
        server.fault("/v1/files", f"go to {elsewhere.url}")
        server.fault("/v1/deliver", "", f"go to {elsewhere.url}")
        server.grant(owner.task("good"))
        owner.work()
        assert server.result("read")["outcome"] == "failed"
        assert elsewhere.connections == 0


@pytest.mark.parametrize("name", ["c-1\r\nHost: evil", "../tokens", "", 7])
def test_names_that_the_server_gives_are_plain_words(owner: Owner, server: StandIn, name: Any) -> None:
    server.fault("/v1/clients", f"say {json.dumps({'client': name, 'approved': True, 'token': None})}")
    said = owner.work()
    assert "invalid answer" in said or "not an eligo server" in said
    assert server.count("POST", "/v1/request") == 0


def test_an_answer_without_end_is_given_up(owner: Owner) -> None:
    """More than 64 MiB are no answer; the client says so and tries again until it is told to stop."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        argv = [sys.executable, "-m", "eligo.client", f"http://127.0.0.1:{listening.getsockname()[1]}"]
        client = subprocess.Popen([*argv, "--folder", str(owner.folder / "client")], stderr=subprocess.PIPE, text=True)
        try:
            sent = [_endless(listening) for _ in range(2)]
        finally:
            client.terminate()
            _, said = client.communicate(timeout=PATIENCE)
    assert max(sent) < 128 * 2**20
    assert "Traceback" not in said


def _endless(listening: socket.socket) -> int:
    """Answer one connection without end; the bytes that were taken."""
    listening.settimeout(PATIENCE)
    connection, _ = listening.accept()
    sent = 0
    with connection:
        connection.settimeout(PATIENCE)
        connection.recv(65_536)
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while sent < 256 * 2**20:
                sent += connection.send(b"x" * 2**20)
        except OSError:
            pass
    return sent
