"""The client as one file: complete, the same each time, and run by every Python from 3.9 on that is here."""

import ast
import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from eligo.server.client_archive import client_archive
from serving_cases import serving

OLDEST = (3, 9)


def pythons() -> Iterator[str]:
    """The Pythons of this machine that the archive is for."""
    names = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 20)]
    beside = sorted(map(str, Path.home().glob(".pyenv/versions/3.*/bin/python")))
    code = f"import sys; raise SystemExit(sys.version_info < {OLDEST})"
    for python in {*filter(None, names), *beside, sys.executable}:
        if subprocess.run([python, "-I", "-c", code], capture_output=True, check=False).returncode == 0:
            yield python


def test_every_module_is_written_for_the_oldest_python() -> None:
    with ZipFile(BytesIO(client_archive())) as archive:
        assert "eligo/client/worker.py" in archive.namelist()
        for name in archive.namelist():
            ast.parse(archive.read(name), name, feature_version=OLDEST)


def test_the_same_modules_give_the_same_bytes() -> None:
    first = client_archive()
    client_archive.cache_clear()
    assert client_archive() == first


@pytest.mark.parametrize("python", sorted(pythons()))
def test_a_machine_with_python_alone_works_for_a_server(python: str, tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "run": "echo a > a.txt", "outputs": ["a.txt"]},
        {"name": "b", "run": "cat a.txt a.txt > b.txt", "inputs": ["a.txt"], "outputs": ["b.txt"], "timeout": "1m"},
    ]
    (tmp_path / "flow.json").write_text(json.dumps({"tasks": tasks}))
    with serving(tmp_path, "flow.json", "--until-done") as (url, server):
        with urllib.request.urlopen(f"{url}/client.pyz") as answer:
            (tmp_path / "client.pyz").write_bytes(answer.read())
        with urllib.request.urlopen(f"{url}/client.pyz.sha256") as answer:
            digest, name = answer.read().decode().split()
        assert (digest, name) == (sha256((tmp_path / "client.pyz").read_bytes()).hexdigest(), "client.pyz")
        words = [python, "-I", "client.pyz", url, "--folder", str(tmp_path / "client"), "--idle-exit", "1"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert "2 tasks done, 0 failed" in done.stderr
        assert server.wait(60) == 0
    assert (tmp_path / "b.txt").read_text() == "a\na\n"
