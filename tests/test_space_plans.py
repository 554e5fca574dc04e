"""The peak sizes of files between tasks in plans, their check, and in comparisons."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo import families
from eligo.cli import run
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.verifying import verify
from eligo.workflow import Workflow
from test_space import random_files

SIZED = {
    "tasks": [
        {"name": "a1", "outputs": ["a1.bam"], "run": ":"},
        {"name": "a2", "outputs": ["a2.bam"], "run": ":"},
        {"name": "b1", "inputs": ["a1.bam"], "outputs": ["b1.txt"], "run": ":"},
        {"name": "b2", "inputs": ["a2.bam"], "outputs": ["b2.txt"], "run": ":"},
        {"name": "all", "inputs": ["b1.txt", "b2.txt"], "run": ":"},
    ],
    "files": {"a1.bam": 1000, "a2.bam": 1000, "b1.txt": 10, "b2.txt": 10},
}


@pytest.fixture
def sized(tmp_path: Path) -> str:
    path = tmp_path / "sized.json"
    path.write_text(json.dumps(SIZED), "utf-8")
    return str(path)


def timed(flow: Workflow) -> Workflow:
    return eligo.with_history(flow, [(name, None, 1.0) for name in flow.dag.tasks])


@pytest.mark.parametrize("workers", [None, 3])
def test_peaks_are_at_least_the_bound_and_are_checked(workers: int | None) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        flow = timed(random_files(rng, families.random_dag(12, 0.3, int(rng.integers(99)))))
        chosen = eligo.order(flow, workers)
        footprint = Footprint.of(flow)
        if not footprint.sized:
            continue
        assert chosen.space_bound is not None
        for candidate in chosen.candidates.values():
            assert candidate.peak is not None
            assert chosen.space_bound.bytes <= candidate.peak
            assert workers or candidate.peak == footprint.peak(candidate.sequence)
        document = json.loads(json.dumps(chosen.plan.document() | chosen.document()))
        document |= {} if workers is None else {"workers": workers}
        verification = verify(flow, without_finish(document))
        assert verification.holds, verification.reason


def without_finish(document: dict[str, Any]) -> dict[str, Any]:
    """The document without predicted finishes, which need a certificate of their own."""
    for entry in document["orders"]:
        entry.pop("makespan", None)
    return document


@pytest.mark.parametrize(
    ("key", "change", "reason"),
    [("bytes", 1, "does not hold"), ("peak", 1, "not that of the order"), ("peak", -9000, "less space")],
)
def test_forged_bounds_and_peaks_are_refused(sized: str, key: str, change: int, reason: str) -> None:
    chosen = eligo.order(sized)
    document = json.loads(json.dumps(chosen.plan.document() | chosen.document()))
    (document["space"] if key == "bytes" else document["orders"][0])[key] += change
    assert reason in str(verify(eligo.read(sized), document).reason)


def test_peaks_without_a_bound_are_refused(sized: str) -> None:
    chosen = eligo.order(sized)
    document = json.loads(json.dumps(chosen.plan.document() | chosen.document()))
    del document["space"]
    assert verify(eligo.read(sized), document).reason == "the peaks have no bound"


def test_plan_prints_the_peak_of_every_order_and_the_bound(sized: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", sized, "--policy", "space", "--save", f"{sized}.plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "at most 1020 B of files exist at once between tasks" in lines[0]
    assert next(line for line in lines if line.startswith("  fifo")).endswith("1.96 KiB")
    assert next(line for line in lines if line.startswith("* space")).endswith("1020 B")
    assert "  no order needs less than 1020 B" in lines
    assert run(["verify", sized, f"{sized}.plan"]) == 0
    assert "every order needs at least 1020 B between tasks" in capsys.readouterr().out


def test_a_plan_without_sizes_counts_results_if_space_is_requested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"arcs": [["a", "c"], ["b", "d"], ["c", "e"], ["d", "e"]]}), "utf-8")
    assert run(["plan", str(path)]) == 0
    assert "peak" not in capsys.readouterr().out
    assert run(["plan", str(path), "--policy", "space"]) == 0
    assert "3 results (files are unknown: every task leaves one result)" in capsys.readouterr().out


def test_compare_shows_the_peak_over_its_bound(
    sized: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert run(["compare", sized, "--policy", "space,fifo", "--runs", "2"]) == 0
    out = capsys.readouterr().out
    table = out[out.index("Peak size of files between tasks") :].splitlines()
    assert [line.split() for line in table[2:4]] == [["fifo", "1.971"], ["space", "*1.000"]]


def test_a_plan_within_a_limit_keeps_it_one_task_at_a_time(sized: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", sized, "--space", "1500", "--policy", "ready", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    used = next(entry for entry in document["orders"] if entry["name"] == document["used"])
    footprint = Footprint.of(eligo.read(sized))
    assert (document["used"], used["peak"]) == ("ready within 1.46 KiB", footprint.peak(used["order"]))
    assert used["peak"] <= 1500 < footprint.peak(eligo.plan(sized).sequence)
    assert verify(eligo.read(sized), document).holds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--space", "1019"], "no order of the tasks fits in 1019 B: every order needs at least 1020 B"),
        (["--space", "much"], "--space must be a size, such as 200G, got 'much'"),
        (["--space", "2K", "--workers", "2"], "keeps a limit on space only if one task runs at a time, got 2 workers"),
    ],
)
def test_limits_that_no_plan_keeps_are_refused(
    sized: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", sized, *words]) == 2
    assert message in capsys.readouterr().err


def test_the_finish_within_some_limits_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = range(6)
    first = [{"name": f"a{i}", "outputs": [f"a{i}.bam"], "seconds": 9} for i in pairs]
    second = [{"name": f"b{i}", "inputs": [f"a{i}.bam"], "seconds": 1} for i in pairs]
    path = tmp_path / "wide.json"
    path.write_text(json.dumps({"tasks": first + second, "files": {f"a{i}.bam": 1024 for i in pairs}}), "utf-8")
    chosen = eligo.order(str(path), 6)
    assert [(one.limit, one.seconds, one.peak) for one in chosen.front] == [
        (1024, 60.0, 1024), (1280, 60.0, 1024), (1536, 60.0, 1024), (2048, 30.0, 2048),
    ]  # fmt: skip
    assert run(["plan", str(path), "--workers", "6"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1 KiB: 1 min" in out
    assert "no limit (6 KiB): 10 s" in out


def test_the_bound_names_the_task_and_the_files(sized: str) -> None:
    footprint = Footprint.of(eligo.read(sized))
    bound = space_bound(footprint, space_order(footprint))
    assert bound.why == "if b2 ends last of 2 tasks, files such as a2.bam, b1.txt, b2.txt exist"
    memory = Footprint.of_results(eligo.Dag.from_arcs([("a", "b")]), [7, 1])
    assert space_bound(memory, ["a", "b"]).why == "when a runs, files such as the result of a exist"


def test_the_explanation_draws_the_files_between_tasks(sized: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run(["explain", sized, "-o", str(tmp_path / "x.svg")]) == 0
    text = " ".join((tmp_path / "x.svg").read_text("utf-8").split())
    assert "space: 1020 B" in text
    assert "No order needs less than 1020 B for files between tasks." in text
