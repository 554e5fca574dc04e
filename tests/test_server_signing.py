"""Keys and signatures: what is signed is what is run, and nothing else holds."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eligo.dag import Dag
from eligo.engines.signed import signed_task
from eligo.errors import InputError
from eligo.server.signing import holds, new_key, private_key, public_key, sign, signatures
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
    with pytest.raises(InputError, match="is there already"):
        new_key(private)
    with pytest.raises(InputError, match="cannot be written"):
        new_key(private / "x")


def test_what_is_signed_holds_and_nothing_else(pair: tuple[Path, Path], tmp_path: Path) -> None:
    key, public = private_key(pair[0]), public_key(pair[1])
    signature = sign(key, b"message")
    assert holds(public, b"message", signature)
    assert not holds(public, b"massage", signature)
    assert not holds(public_key(new_key(tmp_path / "other")), b"message", signature)
    for wrong in (None, "", "!", signature[:-4], "A" * 88):
        assert not holds(public, b"message", wrong)


def test_keys_may_be_bare_bytes_in_base64(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_bytes(base64.b64encode(bytes(range(32))) + b"\n")
    bare.chmod(0o600)
    signature = sign(private_key(bare), b"m")
    other = tmp_path / "bare.pub"
    other.write_bytes(base64.b64encode(private_key(bare).public_key().public_bytes_raw()))
    assert holds(public_key(other), b"m", signature)


def test_what_is_no_key_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("-----BEGIN nothing")
    wrong.chmod(0o600)
    for path, load in ((wrong, private_key), (wrong, public_key), (pair[0], public_key), (pair[1], private_key)):
        os.chmod(path, 0o600)
        with pytest.raises(InputError, match="this is no"):
            load(path)
    with pytest.raises(InputError, match="cannot be read"):
        private_key(tmp_path / "nothing")
    pair[0].chmod(0o640)
    with pytest.raises(InputError, match="others may read"):
        private_key(pair[0])


def test_all_tasks_of_a_workflow_are_signed(pair: tuple[Path, Path]) -> None:
    details = {
        "a": Task(name="a", command="sort x > y", inputs=("x",), outputs=("y",)),
        "b": Task(name="b", command=("cat", "y", "ü"), inputs=("y",)),
    }
    flow = Workflow(Dag.from_arcs([("a", "b"), ("b", "c")]), details)
    signed = signatures(flow, "survey", private_key(pair[0]))
    assert set(signed) == {"a", "b"}
    public = public_key(pair[1])
    assert holds(public, signed_task("survey", "a", "sort x > y", inputs=["x"], outputs=["y"]), signed["a"])
    assert holds(public, signed_task("survey", "b", ["cat", "y", "ü"], inputs=["y"]), signed["b"])
    for other in (
        signed_task("other", "a", "sort x > y", inputs=["x"], outputs=["y"]),
        signed_task("survey", "b", "sort x > y", inputs=["x"], outputs=["y"]),
        signed_task("survey", "a", "rm -r /", inputs=["x"], outputs=["y"]),
        signed_task("survey", "a", "sort x > y", inputs=["x"], outputs=["y", ".profile"]),
        signed_task("survey", "a", "sort x > y", inputs=["x"], outputs=["y"], environment={"LD_PRELOAD": "x"}),
    ):
        assert not holds(public, other, signed["a"])


def test_the_bytes_are_those_of_the_protocol() -> None:
    assert signed_task("wü", "t", "c", inputs=["b", "a"], outputs=["o"], environment={"B": "1", "A": "2"}) == (
        b'eligo task 1\n{"command":"c","environment":{"A":"2","B":"1"},"inputs":["a","b"],"outputs":["o"],'
        b'"task":"t","workflow":"w\xc3\xbc"}'
    )


def test_forming_them_needs_nothing_that_is_heavy() -> None:
    code = "import sys, eligo.engines.signed; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "msgspec", "cryptography", "starlette"} & set(out.split())
