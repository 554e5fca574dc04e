"""Runs with a limit on the files, or results in memory, between tasks."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.running.functions import size_in_memory
from running_cases import peak, ran

SIZE, WIDE = 10_000, 8


def wide(folder: Path, **more: Any) -> Path:
    """A workflow in which each of several large files becomes a small one."""
    rows: list[dict[str, Any]] = []
    for i in range(WIDE):
        rows += [
            {"name": f"make_{i}", "run": f"head -c {SIZE} /dev/zero > big_{i}; sleep 0.05", "outputs": [f"big_{i}"]},
            {
                "name": f"cut_{i}",
                "run": f"head -c 10 big_{i} > small_{i}",
                "inputs": [f"big_{i}"],
                "outputs": [f"small_{i}"],
            },
        ]
    small = [f"small_{i}" for i in range(WIDE)]
    rows.append({"name": "all", "run": f"cat {' '.join(small)} > result", "inputs": small, "outputs": ["result"]})
    sizes = {f"big_{i}": SIZE for i in range(WIDE)} | dict.fromkeys(small, 10) | more.pop("sizes", {})
    path = folder / "flow.json"
    path.write_text(json.dumps({"tasks": rows, "files": sizes, **more}))
    return path


@pytest.mark.parametrize("policy", ["finish", "fifo", "batch-optimal"])
def test_a_run_keeps_its_limit(tmp_path: Path, policy: str) -> None:
    flow = wide(tmp_path)
    assert ran(flow, "--clean", "--space", "25k", "--workers", "8", "--policy", policy, "-q") == 0
    assert SIZE < peak(tmp_path / "flow.json.run") <= 25 * 1024
    assert (tmp_path / "result").stat().st_size == 10 * WIDE


def test_a_child_that_declares_no_inputs_counts_as_a_reader(tmp_path: Path) -> None:
    flow = wide(tmp_path)
    document = json.loads(flow.read_text())
    document["tasks"] += [{"name": f"quiet_{i}", "run": "sleep 0.1", "after": [f"make_{i}"]} for i in range(WIDE)]
    flow.write_text(json.dumps(document))
    assert ran(flow, "--clean", "--space", "25k", "--workers", "8", "-q") == 0
    assert SIZE < peak(tmp_path / "flow.json.run") <= 25 * 1024


def test_fat_tasks_and_retries_keep_the_limit(tmp_path: Path) -> None:
    flow = wide(tmp_path)
    rows = json.loads(flow.read_text())
    rows["tasks"][2]["run"] = f"test -e again || {{ touch again; exit 1; }}; {rows['tasks'][2]['run']}"
    flow.write_text(json.dumps(rows))
    assert ran(flow, "--clean", "--space", "25k", "--workers", "8", "--fat", "3", "-q") == 0
    assert SIZE < peak(tmp_path / "flow.json.run") <= 25 * 1024


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--space", "9k", "--clean"], "no order of the tasks fits in 9 KiB: every order needs at least"),
        (["--space", "9k"], "no file between tasks is temporary, so that none is removed: add --clean"),
        (["--space", "much", "--clean"], "--space must be a size, such as 200G, got 'much'"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(
    tmp_path: Path, options: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(wide(tmp_path), *options) == 2
    assert why in capsys.readouterr().err


def test_sizes_must_be_known_and_an_earlier_run_knows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = wide(tmp_path)
    flow.write_text(json.dumps({"tasks": json.loads(flow.read_text())["tasks"]}))
    assert ran(flow, "--clean", "--space", "25k") == 2
    assert "no sizes are known" in capsys.readouterr().err
    assert ran(flow, "--clean", "-q") == 0
    assert ran(flow, "--clean", "-q", "--space", "25k", "--fresh", "--workers", "8") == 0


def test_a_larger_file_than_expected_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = wide(tmp_path, sizes={f"big_{i}": 5_000 for i in range(WIDE)})
    assert ran(flow, "--clean", "--space", "11k", "--workers", "8") == 0
    assert "the limit of 11 KiB was exceeded by" in capsys.readouterr().err
    assert (tmp_path / "result").exists()


class Large:
    """A result of a function, counted while it exists."""

    nbytes, lock, alive, most = 1_000, threading.Lock(), 0, 0

    def __init__(self) -> None:
        with Large.lock:
            Large.alive += 1
            Large.most = max(Large.most, Large.alive)

    def __del__(self) -> None:
        with Large.lock:
            Large.alive -= 1


@pytest.mark.parametrize("on", ["local", "threads"])
def test_results_in_memory_stay_within_a_limit(on: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    graph: dict[str, Any] = {f"make_{i}": (Large, []) for i in range(20)}
    graph |= {f"cut_{i}": (lambda large: large.nbytes, [f"make_{i}"]) for i in range(20)}
    graph["all"] = (lambda *sizes: sum(sizes), [f"cut_{i}" for i in range(20)])
    Large.most = 0
    with ThreadPoolExecutor(8) as pool:
        result = eligo.run(graph, on=pool if on == "threads" else "local", workers=8, space=4_500)
    assert result.values == {"all": 20_000}
    assert Large.most <= 8


def test_functions_whose_results_stay_cannot_be_limited() -> None:
    with pytest.raises(
        eligo.InputError, match="space has no effect on functions that do not use the results of others"
    ):
        eligo.run({1: [], 2: [1]}, lambda node: node, space="1M")
    with pytest.raises(eligo.InputError, match="space must be a size, such as '200G', got 'big'"):
        eligo.run({"a": (int, [])}, space="big")


def test_the_bytes_of_values_are_estimated() -> None:
    assert size_in_memory([bytes(1000)] * 5_000) > 5_000_000
    assert size_in_memory({"a": bytes(1000)}) > 1_000
