"""Every exit code of the command in the documented case; the table of docs/reference/commands.md lists all of them."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from eligo.cli import run
from running_cases import started, written
from test_operations import PATIENCE, wait_for

TABLE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
TASKS = {"good": "true", "bad": "false"}
CASES = [
    ("run good.yaml", 0),
    ("run good.yaml again", 0),
    ("status good.yaml", 0),
    ("verify good.yaml good.txt", 0),
    ("run bad.yaml", 1),
    ("status bad.yaml", 1),
    ("verify good.yaml bad.txt", 1),
    ("run nothing.yaml", 2),
    ("run good.yaml --no-such-option", 2),
    ("run good.yaml nobody", 2),
    ("pause good.yaml", 2),
    ("cancel good.yaml", 0),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, command in TASKS.items():
        tasks: list[dict[str, Any]] = [{"name": "a", "run": command}, {"name": "again", "run": "true", "after": ["a"]}]
        written(tmp_path, tasks, f"{name}.yaml")
        assert run(["run", f"{name}.yaml", "--quiet", "--retries", "0"]) == (name == "bad")
    Path("good.txt").write_text("a\nagain\n")
    Path("bad.txt").write_text("again\na\n")
    return tmp_path


@pytest.mark.parametrize(("words", "code"), CASES, ids=[words for words, _ in CASES])
def test_a_command_ends_with_its_code(words: str, code: int, place: Path) -> None:
    assert run([*words.split(), *(["--retries", "0"] if words == "run bad.yaml" else [])]) == code


def test_a_run_that_is_stopped_ends_with_130(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch begun; sleep 600"}])
    process = started(flow)
    wait_for((tmp_path / "begun").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130


def test_the_table_lists_every_code() -> None:
    text = TABLE.read_text("utf-8").partition("## Exit codes")[2]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {0, 1, 2, 130}
