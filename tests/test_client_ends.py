"""How a client ends and comes back, as a real process: signals, kill -9, what it left; whom it trusts; its sandbox."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client_server import StandIn, task
from eligo.client.options import WorkOptions
from eligo.client.trust import DISTRUSTED, EXPIRED, OUTDATED, Seal, signed_task
from eligo.client.worker import work
from eligo.engines.worker import process_table
from eligo.errors import InputError

Start = Callable[..., "subprocess.Popen[str]"]
PATIENCE = 20.0


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as made:
        yield made


@pytest.fixture
def start(server: StandIn, tmp_path: Path) -> Iterator[Start]:
    """Starts clients, of which none outlives the test."""
    begun: list[subprocess.Popen[str]] = []

    def started(*words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-m", "eligo.client", server.url, "--folder", str(tmp_path / "client"), *words]
        begun.append(subprocess.Popen(argv, stderr=subprocess.PIPE, text=True))
        return begun[-1]

    yield started
    for client in begun:
        client.kill()
        client.communicate()


def wait_for(path: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} never came"
        time.sleep(0.01)


def ended(client: "subprocess.Popen[str]") -> str:
    """What a client said, once it has ended well."""
    _, said = client.communicate(timeout=PATIENCE)
    assert client.returncode == 0, said
    return said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(server: StandIn, start: Start, tmp_path: Path, number: int) -> None:
    """What runs is finished, what was not begun is returned at once, and nothing more is asked for."""
    server.grant(task("a", f"touch {tmp_path}/begun; sleep 1"), task("b", "true"))
    client = start("--cores", "2")
    wait_for(tmp_path / "begun")
    client.send_signal(number)
    assert server.result("b")["outcome"] == "returned"
    assert "a" not in server.outcomes(), "b did not wait for a"
    server.grant(task("c", "true"))
    said = ended(client)
    assert server.outcomes() == {"a": "done", "b": "returned"}
    assert said == "eligo: 1 tasks done, 0 failed, 1 returned; 0 bytes fetched, 0 bytes sent, 0 bytes saved\n"


def test_an_idle_client_drains_at_once(server: StandIn, start: Start) -> None:
    client = start("--cores", "2", "--poll", "60")
    server.await_count("POST", "/v1/request", 2)
    began = time.monotonic()
    client.terminate()
    ended(client)
    assert time.monotonic() - began < 30


def test_what_takes_longer_than_the_grace_is_stopped_and_returned(
    server: StandIn, start: Start, tmp_path: Path
) -> None:
    server.grant(task("a", f"touch {tmp_path}/begun; sleep 60"))
    client = start("--grace", "0.5")
    wait_for(tmp_path / "begun")
    client.terminate()
    ended(client)
    assert server.outcomes() == {"a": "returned"}


def test_a_second_signal_stops_at_once(server: StandIn, start: Start, tmp_path: Path) -> None:
    server.grant(task("a", f"touch {tmp_path}/begun; sleep 60"))
    client = start()
    wait_for(tmp_path / "begun")
    client.terminate()
    time.sleep(0.3)
    client.terminate()
    ended(client)
    assert server.outcomes() == {"a": "returned"}


def test_a_drained_client_leaves_what_it_cannot_deliver_to_the_next(
    server: StandIn, start: Start, tmp_path: Path
) -> None:
    server.grant(task("a", f"touch {tmp_path}/begun; sleep 0.3; echo x > o", outputs=["o"]))
    client = start("--grace", "1")
    wait_for(tmp_path / "begun")
    server.die()
    client.terminate()
    ended(client)
    server.start()
    start("--idle-exit", "0")
    assert server.content(server.result("a"), "o") == b"x\n"
    assert server.outcomes() == {"a": "done"}


def test_kill_and_restart_deliver_the_finished_once_and_return_the_rest(
    server: StandIn, start: Start, tmp_path: Path
) -> None:
    stray = f"setsid sleep 61.75 & touch {tmp_path}/begun; wait"
    server.fault("/v1/deliver", *["503"] * 10_000)
    server.grant(task("a", "echo x > o", outputs=["o"]))
    server.grant(task("long", stray), task("rest", "true"))
    client = start("--cores", "2")
    wait_for(tmp_path / "begun")
    server.await_count("POST", "/v1/deliver", 2)
    client.kill()
    client.wait()
    assert server.results == []
    server.faults.clear()
    assert ended(start("--idle-exit", "0")).startswith("eligo: 1 tasks done, 0 failed, 2 returned;")
    assert server.outcomes() == {"a": "done", "long": "returned", "rest": "returned"}
    died = {server.leases[each["lease"]] for each in server.results if each["died"]}
    assert died == {"long"}, "what was not begun is not counted against its task"
    assert server.content(server.result("a"), "o") == b"x\n"
    assert "61.75" not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
    ended(start("--idle-exit", "0"))
    assert len(server.results) == 3, "each was delivered once"
    assert os.listdir(tmp_path / "client" / "scratch") == []
    assert server.known == {"c-1"}, "it is the same client, whose leases these are"


STAYS = "echo $$ > {place}/pid; exec sleep 300"
CLOSER = "import os, sys; os.closerange(0, 4096); os.execve('/bin/sh', ['sh', '-c', sys.argv[1]], {})"


@pytest.mark.parametrize(
    "line",
    [
        f"exec env -i sh -c '{STAYS}'",
        f"exec setsid -w env -i sh -c '{STAYS}'",
        f"(setsid env -i sh -c '{STAYS}' &); sleep 300",
        f"exec env -i {sys.executable} {{place}}/closer '{STAYS}'",
    ],
    ids=["no environment", "own session", "daemon", "no files"],
)
def test_what_a_killed_client_left_is_ended_whatever_it_changed(
    line: str, server: StandIn, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "closer").write_text(CLOSER)
    server.grant(task("long", line.replace("{place}", str(tmp_path))))
    client = start()
    wait_for(tmp_path / "pid")
    client.kill()
    client.wait()
    stray = int((tmp_path / "pid").read_text())
    assert process_table()[stray].state not in b"ZX"
    ended(start("--idle-exit", "0"))
    assert (process := process_table().get(stray)) is None or process.state in b"ZX"


def test_what_is_half_written_is_not_believed(server: StandIn, start: Start, tmp_path: Path) -> None:
    ended(start("--idle-exit", "0"))
    owed = tmp_path / "client" / "owed"
    (owed / "x.json").write_text('{"lease": "w-1.')
    (owed / "y.json.part").write_text("{}")
    (owed / "z.json").write_text('{"lease": "l", "outcome": "done", "outputs": {"o": {"sha256": "../../x"}}}')
    ended(start("--idle-exit", "0"))
    assert server.results == []


def test_two_clients_do_not_use_one_folder(server: StandIn, start: Start) -> None:
    start()
    server.await_count("POST", "/v1/request", 1)
    second = start()
    _, said = second.communicate(timeout=PATIENCE)
    assert (second.returncode, said.count("\n")) == (2, 1)
    assert "in use by another client" in said


def test_wrong_words_end_in_one_sentence(start: Start) -> None:
    client = start("--memory", "much")
    assert "memory must be a number of bytes, such as 500M, got 'much'" in client.communicate(timeout=PATIENCE)[1]
    assert client.returncode == 2


def signer(folder: Path) -> tuple[Any, dict[str, str]]:
    """A private key, and files with its public one in every form."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = key.public_key()
    texts = {
        "pem": public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo),
        "ssh": public.public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH),
        "raw": base64.b64encode(public.public_bytes_raw()) + b"\n",
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    return key, {name: str(folder / name) for name in texts}


def signed(key: Any, words: dict[str, Any], expires: float = 60.0, **more: Any) -> dict[str, Any]:
    names = {"inputs": sorted(words["inputs"]), "outputs": sorted([*words["outputs"], *words["inside"]])}
    told = {"workflow": "night", "environment": {"A": "ä"}, **names, **more}
    given = {name: file["sha256"] for name, file in words["inputs"].items() if file is not None}
    until = int(time.time() + expires)
    message = signed_task(
        told["workflow"], words["task"], words["command"], expires=until, given=given,
        inputs=told["inputs"], outputs=told["outputs"], environment=told["environment"],
    )  # fmt: skip
    return {**words, "signed": told, "signature": Seal(until, frozenset(given), key.sign(message)).text(told["inputs"])}


def test_only_what_a_trusted_owner_has_signed_is_run(server: StandIn, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    key, files = signer(tmp_path)
    stranger, _ = signer(tmp_path / "..")
    good = [signed(key, task(f"good {name}", "echo $A > o", outputs=["o"])) for name in files]
    first = good[0]
    bad = [
        task("unsigned", "true"),
        signed(stranger, task("of a stranger", "true")),
        {**signed(key, task("other command", "true")), "command": "false || true"},
        {**signed(key, task("other name", "true")), "task": "renamed"},
        {**signed(key, task("more outputs", "true")), "outputs": ["o"]},
        {**signed(key, task("more inputs", "true")), "inputs": {"i": server.keep(b"x")}},
        {**signed(key, task("other environment", "true")), "signed": {**first["signed"], "environment": {"A": "b"}}},
        {**signed(key, task("no base64", "true")), "signature": "???"},
        signed(key, task("expired", "true"), expires=-1.0),
        {**signed(key, task("of an earlier version", "true")), "signature": base64.b64encode(bytes(64)).decode()},
    ]
    for each in [*good, *bad]:
        server.grant(each)
    for name, path in files.items():
        options = WorkOptions(server.url, 1, folder=str(tmp_path / "client"), trust=(path,), once=True)
        assert work(options, print).done == 1, name
    options = WorkOptions(server.url, 1, folder=str(tmp_path / "client"), trust=(files["pem"],), idle_exit=0.0)
    assert work(options, print).returned == len(bad)
    assert server.content(server.result("good pem"), "o").decode() == "ä\n"
    assert {each["failure"] for each in server.results if each["distrusted"]} == {DISTRUSTED, EXPIRED, OUTDATED}


def test_what_is_no_key_is_told(server: StandIn, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    for text in ("", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "ssh-rsa AAAA", "AAAA"):
        (tmp_path / "key").write_text(text)
        with pytest.raises(InputError, match="not an Ed25519 public key"):
            work(WorkOptions(server.url, folder=str(tmp_path / "client"), trust=(str(tmp_path / "key"),)))


def sandboxed() -> None:
    """Skip, loudly, where there is no bwrap or it may not do its work."""
    works = shutil.which("bwrap") and subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True, check=False
    )
    if not works or works.returncode:
        why = (
            "bwrap is not installed" if not works else f"bwrap may not make a sandbox: {works.stderr.decode().strip()}"
        )
        pytest.skip(f"THE SANDBOX IS NOT TESTED: {why}")


def test_a_sandboxed_task_sees_its_folder_and_no_more(server: StandIn, tmp_path: Path) -> None:
    sandboxed()
    (tmp_path / "secret").write_text("secret")
    server.grant(task("fine", "cat in > o; sort in >> o; pwd >> o", inputs={"in": server.keep(b"x\n")}, outputs=["o"]))
    server.grant(task("secret", f"cat {tmp_path}/secret"))
    server.grant(task("link", f"ln -s {tmp_path}/secret o", outputs=["o"]))
    server.grant(task("write", "touch /usr/x || touch /etc/x"))
    server.grant(
        task(
            "network",
            ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {server.port}), 2)"],
        )
    )
    server.grant(task("loud", "head -c 100000000 /dev/zero"))
    server.grant(task("slow", "setsid sleep 62.25", timeout=0.5))
    options = WorkOptions(server.url, 1, folder=str(tmp_path / "client"), sandbox="bwrap", idle_exit=0.0, output=2**20)
    work(options, print)
    assert server.content(server.result("fine"), "o").startswith(b"x\nx\n/")
    assert "No such file" in server.result("secret")["tail"]
    assert "points outside" in server.result("link")["failure"]
    assert "Read-only" in server.result("write")["tail"]
    assert "ConnectionRefused" in server.result("network")["tail"] or "not found" in server.result("network")["tail"]
    assert server.result("loud")["failure"].startswith("printed more than")
    assert server.result("slow")["failure"] == "took longer than 0.5 s"
    assert "62.25" not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def test_a_sandbox_may_have_the_network(server: StandIn, tmp_path: Path) -> None:
    sandboxed()
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("THE NETWORK OF A SANDBOX IS NOT TESTED: there is no python3 in it")
    code = f"import socket; socket.create_connection(('127.0.0.1', {server.port}), 2)"
    server.grant(task("a", ["python3", "-c", code]))
    options = WorkOptions(
        server.url, 1, folder=str(tmp_path / "client"), sandbox="bwrap", sandbox_network=True, once=True
    )
    work(options, print)
    assert server.result("a")["outcome"] == "done", json.dumps(server.result("a"))


def test_a_sandbox_that_is_not_installed_or_does_not_work_is_told(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="bwrap is not installed"):
        work(WorkOptions(server.url, folder=str(tmp_path / "client"), sandbox="bwrap"))
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(InputError, match="bwrap does not work on this machine: No permissions"):
        work(WorkOptions(server.url, folder=str(tmp_path / "client"), sandbox="bwrap"))
