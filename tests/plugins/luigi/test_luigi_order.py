"""Inside a real Luigi: tasks begin in eligo's order, and all else is as Luigi alone does it."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from began import PARENTS, began, overtaken, times
from engine_venv import engine_or_skip

import eligo

HERE = Path(__file__).resolve().parent
ORDER = [str(task) for task in eligo.priorities(PARENTS)]


@pytest.fixture(scope="session")
def python() -> Path:
    return engine_or_skip("luigi")


def run(python: Path, folder: Path, how: str, workers: int = 1, case: str = "order") -> tuple[str, list[str]]:
    """How the run ended, and which tasks are done."""
    folder.mkdir(exist_ok=True)
    surroundings = os.environ | {"PYTHONPATH": str(HERE.parent), "LUIGI_CONFIG_PATH": str(HERE / "luigi.cfg")}
    words = [str(python), str(HERE / "luigi_steps.py"), str(folder), how, str(workers), case]
    done = subprocess.run(words, env=surroundings, timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, names = json.loads((folder / "result").read_text("utf-8"))
    return status, names


def test_tasks_begin_in_the_order(python: Path, tmp_path: Path) -> None:
    assert run(python, tmp_path / "own", "own") == ("SUCCESS", sorted(PARENTS))
    assert began(times(tmp_path / "own" / "log"))[0] == "w" != ORDER[0]
    assert run(python, tmp_path / "eligo", "eligo") == ("SUCCESS", sorted(PARENTS))
    assert began(times(tmp_path / "eligo" / "log")) == ORDER


def test_no_task_is_overtaken_on_two_workers(python: Path, tmp_path: Path) -> None:
    run(python, tmp_path / "own", "own", 2)
    assert overtaken(times(tmp_path / "own" / "log"), PARENTS, ORDER, 0.1)
    run(python, tmp_path / "eligo", "eligo", 2)
    assert overtaken(times(tmp_path / "eligo" / "log"), PARENTS, ORDER, 0.1) == []


def test_failures_and_retries_and_going_on_are_the_same(python: Path, tmp_path: Path) -> None:
    for how in ("own", "eligo"):
        assert run(python, tmp_path / how, how, 2, "fail") == ("FAILED", ["w", "w0", "w1", "w2", "w3"])
        assert run(python, tmp_path / how, how, 2) == ("SUCCESS", sorted(PARENTS))
    moves = [Counter((tmp_path / how / "log").read_text("utf-8").split()[1::3]) for how in ("own", "eligo")]
    assert moves[0] == moves[1]
    assert moves[1] == {"d": 4, "d1": 2, "d2": 2, "w": 3, "w0": 2, "w1": 2, "w2": 2, "w3": 2}


def test_nothing_is_asked_of_tasks_more_often_than_by_luigi_alone(python: Path, tmp_path: Path) -> None:
    for how in ("own", "eligo"):
        run(python, tmp_path / how, how)
    asked = [Counter((tmp_path / how / "asked").read_text("utf-8").splitlines()) for how in ("own", "eligo")]
    assert asked[0] == asked[1]


def test_dependencies_found_on_the_way_are_run(python: Path, tmp_path: Path) -> None:
    assert run(python, tmp_path / "eligo", "eligo", 1, "dynamic") == ("SUCCESS", sorted([*PARENTS, "late"]))
    assert began(times(tmp_path / "eligo" / "log"))[:3] == ["late", *ORDER[:2]]  # no later than who asked


def test_own_priorities_come_first(python: Path, tmp_path: Path) -> None:
    run(python, tmp_path / "eligo", "eligo", 1, "wish")
    assert began(times(tmp_path / "eligo" / "log")) == ["w", "w2", *(task for task in ORDER if task not in {"w", "w2"})]


def test_without_luigi_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['luigi'] = None; import eligo.plugins.luigi as p; p.build([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("eligo.plugins.luigi needs Luigi (pip install luigi)")
