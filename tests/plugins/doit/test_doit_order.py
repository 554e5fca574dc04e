"""Inside a real doit: tasks begin in eligo's order, and all else is as doit alone does it."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from began import PARENTS, began, overtaken, times
from engine_venv import engine_or_skip

import eligo

HERE = Path(__file__).resolve().parent
ORDER = [str(task) for task in eligo.priorities(PARENTS)]
LINES = '[tool.doit.plugins.command]\nrun = "eligo.plugins.doit:OrderedRun"\n'


@pytest.fixture(scope="session")
def python() -> Path:
    return engine_or_skip("doit")


def place(folder: Path, how: str) -> Path:
    """A folder with a dodo file, and with eligo's line for eligo."""
    made = folder / how
    made.mkdir()
    (made / "dodo.py").write_text((HERE / "dodo_steps.py").read_text("utf-8"), "utf-8")
    (made / "pyproject.toml").write_text(LINES if how == "eligo" else "", "utf-8")
    return made


def doit(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    surroundings = os.environ | {"PYTHONPATH": str(HERE.parent)}
    command = [str(python), "-m", "doit", *words]
    return subprocess.run(
        command, cwd=folder, env=surroundings, timeout=60, capture_output=True, text=True, check=False
    )


def test_tasks_begin_in_the_order(python: Path, tmp_path: Path) -> None:
    own, other = place(tmp_path, "own"), place(tmp_path, "eligo")
    assert doit(python, own, *PARENTS).returncode == 0
    assert began(times(own / "log"))[0] == "w" != ORDER[0]
    assert doit(python, other, *PARENTS).returncode == 0
    assert began(times(other / "log")) == ORDER


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_no_task_is_overtaken_on_two_workers(python: Path, tmp_path: Path, kind: str) -> None:
    own, other = place(tmp_path, "own"), place(tmp_path, "eligo")
    doit(python, own, "-n2", "-P", kind, "w0", "w1", "w2", "w3", "d2")
    assert overtaken(times(own / "log"), PARENTS, ORDER, 0.1)
    doit(python, other, "-n2", "-P", kind, "w0", "w1", "w2", "w3", "d2")
    assert overtaken(times(other / "log"), PARENTS, ORDER, 0.1) == []


def test_what_is_up_to_date_is_not_run_again(python: Path, tmp_path: Path) -> None:
    for how in ("own", "eligo"):
        folder = place(tmp_path, how)
        assert doit(python, folder, "-n2", *PARENTS).returncode == 0
        (folder / "w.out").write_text("changed", "utf-8")
        (folder / "log").unlink()
        assert doit(python, folder, "-n2", *PARENTS).returncode == 0
        assert set(times(folder / "log")) == {"w0", "w1", "w2", "w3"}


@pytest.mark.parametrize("going_on", [(), ("--continue",)])
def test_failures_are_the_same(python: Path, tmp_path: Path, going_on: tuple[str, ...]) -> None:
    codes, outcomes = [], []
    for how in ("own", "eligo"):
        folder = place(tmp_path, how)
        codes.append(doit(python, folder, *going_on, "-n2", *PARENTS, "FAILS=d").returncode)
        outcomes.append(sorted(path.stem for path in folder.glob("*.out")))
        assert doit(python, folder, "-n2", *PARENTS).returncode == 0  # goes on where it was
        moves = Counter((folder / "log").read_text("utf-8").split()[1::3])
        assert moves == {**dict.fromkeys(PARENTS, 2), "d": 4}
    assert codes[0] == codes[1] != 0
    if going_on:
        assert outcomes[0] == outcomes[1] == ["w", "w0", "w1", "w2", "w3"]


def test_setup_tasks_and_tasks_made_on_the_way_are_run_when_they_are_needed(python: Path, tmp_path: Path) -> None:
    folder = place(tmp_path, "eligo")
    doit(python, folder, "-n2", "extra", "late")
    seen = times(folder / "log")
    assert set(seen) == {"w", "before", "extra", "d", "late-x", "late-y"}
    assert max(seen["before"][1], seen["w"][1]) < seen["extra"][0]
    assert seen["d"][1] < min(seen["late-x"][0], seen["late-y"][0])


def test_another_order_can_be_had_and_one_that_is_none_is_refused(python: Path, tmp_path: Path) -> None:
    folder = place(tmp_path, "eligo")
    assert doit(python, folder, "--order", "fifo", *PARENTS).returncode == 0
    assert began(times(folder / "log")) == [str(task) for task in eligo.priorities(PARENTS, "fifo")]
    refused = doit(python, folder, "--order", "nonsense")
    assert refused.returncode == 3
    assert refused.stderr.startswith("ERROR: unknown policy 'nonsense'")
    assert "Traceback" not in refused.stderr


def test_a_circle_is_told_of_by_doit(python: Path, tmp_path: Path) -> None:
    folder = place(tmp_path, "eligo")
    line = "def task_{}(): return {{'actions': [], 'task_dep': ['{}']}}\n"
    (folder / "dodo.py").write_text(line.format("a", "b") + line.format("b", "a"), "utf-8")
    assert "Cyclic" in doit(python, folder).stderr
