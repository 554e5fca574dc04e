"""Keys and signatures: what is signed is what is run, and nothing else holds."""

import base64
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eligo.client.assignment import Assigned, assignments
from eligo.client.transfers import HashedFile
from eligo.client.trust import DISTRUSTED, EXPIRED, Seal, Trust, signed_task
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.server.auth.signatures import new_key, private_key, signatures
from eligo.workflow import Task, Workflow


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    path = tmp_path / "owner"
    return path, new_key(path)


def test_a_pair_of_keys_is_made_once_and_the_private_one_is_private(pair: tuple[Path, Path]) -> None:
    private, public = pair
    assert private.stat().st_mode & 0o777 == 0o600
    assert public == Path(f"{private}.pub")
    assert b"PRIVATE" not in public.read_bytes()
    with pytest.raises(InputError, match="already exists"):
        new_key(private)
    with pytest.raises(InputError, match="cannot write the key"):
        new_key(private / "x")


def test_keys_may_be_bare_bytes_in_base64(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_bytes(base64.b64encode(bytes(range(32))) + b"\n")
    bare.chmod(0o600)
    assert private_key(bare).private_bytes_raw() == bytes(range(32))


def test_what_is_no_key_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("-----BEGIN nothing")
    for path in (wrong, pair[1]):
        os.chmod(path, 0o600)
        with pytest.raises(InputError, match="must be an Ed25519 private key"):
            private_key(path)
    with pytest.raises(InputError, match="cannot read the key"):
        private_key(tmp_path / "nothing")
    pair[0].chmod(0o640)
    with pytest.raises(InputError, match="other users can read"):
        private_key(pair[0])


FILES = {"x": HashedFile("ab" * 32, 1)}
DETAILS = {
    "a": Task(name="a", command="sort x > y", inputs=("x",), outputs=("y",)),
    "b": Task(name="b", command=("cat", "y", "ü"), inputs=("y",)),
}


def assigned(name: str, signature: str, **inputs: dict[str, Any]) -> Assigned:
    """A task as a server tells of it."""
    task = DETAILS[name]
    signed = {"workflow": "survey", "inputs": [*task.inputs], "outputs": [*task.outputs], "environment": {}}
    command = task.command if isinstance(task.command, str) else list(task.command or ())
    told = {"lease": "l", "task": name, "command": command, "inputs": inputs, "outputs": [*task.outputs]}
    reply = {"grants": [{"workflow": "w-1", "tasks": [{**told, "signature": signature, "signed": signed}]}]}
    ((found,),) = assignments(reply)
    return found


def test_a_client_that_trusts_the_owner_takes_what_was_signed(pair: tuple[Path, Path]) -> None:
    flow = Workflow(Dag.from_arcs([("a", "b"), ("b", "c")]), DETAILS)
    expires = int(time.time()) + 60
    signed, trust = signatures(flow, "survey", private_key(pair[0]), FILES, expires), Trust([str(pair[1])])
    assert set(signed) == {"a", "b"}
    assert trust.distrusts(assigned("a", signed["a"], x=FILES["x"]._asdict())) is None
    made = {"sha256": "cd" * 32, "size": 7}  # what another task made cannot be known when the workflow is signed
    assert trust.distrusts(assigned("b", signed["b"], y=made)) is None


@pytest.mark.parametrize("change", ["content", "missing", "expiry", "given", "task"])
def test_a_server_cannot_swap_inputs_or_extend_a_signature(pair: tuple[Path, Path], change: str) -> None:
    expires = int(time.time()) + 60
    flow, trust = Workflow(Dag.from_arcs([("a", "b")]), DETAILS), Trust([str(pair[1])])
    text = signatures(flow, "survey", private_key(pair[0]), FILES, expires)["a"]
    version, until, given, signature = text.split(".")
    inputs = {"x": FILES["x"]._asdict()}
    if change == "content":
        inputs = {"x": {"sha256": "cd" * 32, "size": 1}}
    elif change == "missing":
        inputs = {}
    elif change == "expiry":
        text = ".".join([version, str(int(until) + 1), given, signature])
    elif change == "given":
        text = ".".join([version, until, "0", signature])
    task = assigned("b" if change == "task" else "a", text, **({"y": inputs["x"]} if change == "task" else inputs))
    assert trust.distrusts(task) == DISTRUSTED


def test_a_signature_is_good_until_it_expires(pair: tuple[Path, Path]) -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]), DETAILS)
    text = signatures(flow, "survey", private_key(pair[0]), FILES, int(time.time()))["a"]
    assert Trust([str(pair[1])]).distrusts(assigned("a", text, x=FILES["x"]._asdict())) == EXPIRED


def test_the_bytes_are_those_of_the_protocol() -> None:
    made = signed_task(
        "wü", "t", "c", expires=9, given={"b": "2", "a": "1"}, inputs=["b", "a"], outputs=["o"],
        environment={"B": "1", "A": "2"},
    )  # fmt: skip
    assert made == (
        b'eligo task 2\n{"command":"c","environment":{"A":"2","B":"1"},"expires":9,"given":{"a":"1","b":"2"},'
        b'"inputs":["a","b"],"outputs":["o"],"task":"t","workflow":"w\xc3\xbc"}'
    )


@pytest.mark.parametrize("text", ["", "1.7.0.x", "2.7.ff.x", "2.x.0.x", "2.7.0.", "2.7.-1.x", "2..0.x"])
def test_what_is_no_signature_is_none(text: str) -> None:
    for signature in ("A" * 86 + "==", "x"):
        assert Seal.parsed(text.replace("x", signature), ["a"]) is None


def test_forming_them_needs_nothing_that_is_heavy() -> None:
    code = "import sys, eligo.client.trust; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "msgspec", "cryptography", "starlette"} & set(out.split())
