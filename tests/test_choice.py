"""The library chooses the order: `eligo plan` writes it and `eligo run` follows it, and `compare` reads and computes once."""

import builtins
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo import families
from eligo.cli import run
from eligo.simulation import scheduler
from eligo.theory import skeleton
from running_cases import lines

#: what every task runs: it notes that it has begun
NOTE = 'echo "$ELIGO_TASK" >> began'
FAMILIES: dict[str, Callable[[], eligo.Dag]] = {
    "out-tree": lambda: families.FAMILIES["out-tree"](3, 2),
    "in-tree": lambda: families.FAMILIES["in-tree"](3, 2),
    "out-mesh": lambda: families.FAMILIES["out-mesh"](5),
    "butterfly": lambda: families.FAMILIES["butterfly"](2),
    "w": lambda: families.FAMILIES["w"](4, 2),
    "layered": lambda: families.FAMILIES["layered"](5, 4, seed=3),
    "random": lambda: families.random_layered(6, 4, seed=8),
}
MAKEFLOW = f"""\
a1 a2:
\t{NOTE}; touch a1 a2
b: a1
\t{NOTE}; touch b
c: a2
\t{NOTE}; touch c
d: a2
\t{NOTE}; touch d
all: b c d
\t{NOTE}; touch all
"""
NINJA = f"""\
rule note
  command = {NOTE.replace("$", "$$")}; touch $out
build x: note
build y: note
build y1: note y
build y2: note y
build sum: note x y1 y2
"""
DAGMAN = """\
JOB lone note.sub
JOB hub note.sub
JOB left note.sub
JOB right note.sub
JOB last note.sub
PARENT hub CHILD left right
PARENT left right CHILD last
PRIORITY right 7
"""
YAML = f"""\
tasks:
- {{name: small, run: '{NOTE}', seconds: 1}}
- {{name: large, run: '{NOTE}', seconds: 9, priority: 2}}
- {{name: next, run: '{NOTE}', seconds: 30, after: [small]}}
- {{name: other, run: '{NOTE}', seconds: 2, after: [large]}}
- {{name: end, run: '{NOTE}', seconds: 1, after: [next, other]}}
"""
FILES = {"flow.makeflow": MAKEFLOW, "build.ninja": NINJA, "flow.dag": DAGMAN, "flow.yaml": YAML}


def written(case: str, folder: Path, timed: bool = False) -> Path:
    """The file of a case: that of a format, or a family's dag with commands, and with run times where *timed*."""
    if case in FILES:
        (folder / "note.sub").write_text("executable = note.sh\n")
        (folder / "note.sh").write_text(f"#!/bin/sh\n{NOTE}\n")
        (folder / "note.sh").chmod(0o755)
        (folder / case).write_text(FILES[case])
        return folder / case
    dag, seconds = FAMILIES[case](), np.random.default_rng(5)
    tasks = [
        {"name": str(name), "after": [*map(str, dag.parents(name))], "run": NOTE}
        | ({"seconds": float(seconds.integers(1, 60))} if timed else {})
        for name in dag.tasks
    ]
    (folder / f"{case}.json").write_text(json.dumps({"tasks": tasks}))
    return folder / f"{case}.json"


def with_history(file: Path) -> Path:
    """A history of some of the tasks in a file."""
    tasks = eligo.read(file).dag.tasks
    rows = [f"{name},{(7 * number) % 11 + 1}" for number, name in enumerate(tasks) if number % 3]
    history = file.parent / "history.csv"
    history.write_text("\n".join(["task,seconds", *rows]))
    return history


def plan_written(file: Path, *options: str) -> list[str]:
    """The order that the command writes."""
    out = file.parent / "order.txt"
    assert run(["plan", str(file), "--names", "--force", "-o", str(out), *options]) == 0
    return lines(out)


def begun(file: Path, *options: str) -> list[str]:
    """The tasks as a run with one worker begins them."""
    assert run(["run", str(file), "--workers", "1", "-q", *options]) == 0
    return lines(file.parent / "began")


@pytest.mark.parametrize("case", [*FAMILIES, *FILES])
def test_the_order_of_the_library_is_written_by_plan_and_followed_by_run(case: str, tmp_path: Path) -> None:
    file = written(case, tmp_path)
    order = list(eligo.order(file).order)
    assert plan_written(file) == order
    assert begun(file) == order


@pytest.mark.parametrize("case", FAMILIES)
def test_so_is_the_order_that_goes_by_the_run_times_of_the_file(case: str, tmp_path: Path) -> None:
    file = written(case, tmp_path, timed=True)
    order = list(eligo.order(file).order)
    assert plan_written(file) == order == list(eligo.order(file, workers=1).order)
    assert begun(file) == order


@pytest.mark.parametrize("case", [*FAMILIES, *FILES])
def test_so_is_the_order_that_goes_by_a_history(case: str, tmp_path: Path) -> None:
    file = written(case, tmp_path)
    history = str(with_history(file))
    order = list(eligo.order(file, history=history).order)
    assert plan_written(file, "--history", history) == order
    assert begun(file, "--history", history) == order


@pytest.mark.parametrize("policy", ["ready", "balanced", "critical-path"])
def test_so_is_the_order_of_another_policy(policy: str, tmp_path: Path) -> None:
    file = written("layered", tmp_path)
    order = list(eligo.order(file, policy=policy).order)
    assert plan_written(file, "--policy", policy) == order
    assert begun(file, "--policy", policy) == order


def test_the_run_of_the_library_follows_the_order_too(tmp_path: Path) -> None:
    file = written("flow.yaml", tmp_path)
    order = list(eligo.order(file).order)
    eligo.run(file, workers=1)
    assert lines(tmp_path / "began") == order


def test_functions_are_run_in_the_order_too() -> None:
    dag, called = FAMILIES["layered"](), list[Any]()
    graph = {name: list(dag.parents(name)) for name in dag.tasks}
    eligo.run(graph, called.append, workers=1)
    assert called == list(eligo.order(graph).order)


def test_priorities_for_engines_are_those_of_the_order(tmp_path: Path) -> None:
    for case in (*FAMILIES, *FILES):
        file = written(case, tmp_path)
        assert tuple(eligo.priorities(eligo.read(file))) == eligo.order(file).order


def test_the_order_for_a_pool_is_written_by_plan(tmp_path: Path) -> None:
    for case in FAMILIES:
        file = written(case, tmp_path, timed=True)
        for option, pool in (("--workers=3", 3), ("--workers=1x1,2x0.5", "1x1,2x0.5"), ("--cores=2", "2 cores")):
            assert plan_written(file, option) == list(eligo.order(file, pool).order)


def test_the_run_times_of_an_earlier_run_count_for_the_library_as_for_the_command(tmp_path: Path) -> None:
    file = written("layered", tmp_path)
    assert eligo.order(file).times.sources == []
    assert run(["run", str(file), "--workers", "2", "-q"]) == 0
    chosen = eligo.order(file)
    assert chosen.times.sources == [f"{file}.run"]
    assert chosen.times.complete
    assert plan_written(file) == list(chosen.order)


def test_priorities_come_first_unless_they_are_overridden(tmp_path: Path) -> None:
    file = written("flow.yaml", tmp_path)
    assert eligo.order(file).order[0] == "large"
    assert eligo.order(file, override=True).order[0] == "small"
    assert plan_written(file, "--override") == list(eligo.order(file, override=True).order)


@pytest.mark.parametrize("order", ["finish", "ready", "fifo"])
def test_a_plan_of_tasks_with_priorities_is_saved_and_verified(order: str, tmp_path: Path) -> None:
    file, saved = written("flow.yaml", tmp_path), str(tmp_path / "plan.json")
    assert run(["plan", str(file), "--policy", order, "--workers", "2", "--save", saved]) == 0
    assert run(["verify", str(file), saved]) == 0
    chosen = eligo.order(file, policy=order)
    assert json.loads(Path(saved).read_text())["used"] == chosen.used
    assert chosen.order[0] == "large"
    assert chosen.candidates["ready"].sequence.tolist() == chosen.plan.sequence.tolist()


def test_the_candidates_are_data(tmp_path: Path) -> None:
    chosen = eligo.order(written("layered", tmp_path, timed=True), 3)
    assert list(chosen.candidates) == ["ready", "finish", "fifo"]
    assert chosen.bound is not None
    for name, candidate in chosen.candidates.items():
        assert candidate.name == name
        assert len(candidate.rounds) == 3
        assert candidate.seconds is not None
        assert candidate.gap == pytest.approx(candidate.seconds / chosen.bound.seconds - 1)
        assert bool(candidate.why) == (name == "finish")
    assert chosen.chosen is chosen.candidates["finish"]
    assert chosen.flow.dag.named(chosen.candidates["finish"].sequence) == chosen.order
    assert chosen.times.sources == ["the file"]


def test_without_run_times_an_order_for_a_pool_has_no_finish() -> None:
    chosen = eligo.order({"a": []}, 4)
    assert (chosen.order, chosen.finish, chosen.prediction) == (("a",), None, None)


def test_an_order_that_there_is_not_is_refused_before_any_work() -> None:
    with pytest.raises(eligo.InputError, match="unknown policy 'quickest'"):
        eligo.order({"a": []}, policy="quickest")


# What is compared is read once


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is opened to be read."""
    counts, plain = Counter[str](), builtins.open

    def counting(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if "r" in mode and isinstance(file, str | Path):
            counts[str(file)] += 1
        return plain(file, mode, *rest, **named)

    monkeypatch.setattr(builtins, "open", counting)
    monkeypatch.setattr(io, "open", counting)
    return counts


@pytest.mark.parametrize("case", ["layered", "flow.yaml", "build.ninja", "flow.makeflow"])
def test_compare_reads_a_workflow_once_and_looks_for_its_shortcuts_once(
    case: str, tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, looked = written(case, tmp_path, timed=True), list[eligo.Dag]()
    plain = skeleton.shortcut_mask

    def counting(dag: eligo.Dag) -> Any:
        looked.append(dag)
        return plain(dag)

    monkeypatch.setattr(skeleton, "shortcut_mask", counting)
    opened.clear()
    assert run(["compare", str(file), "--runs", "2", "--rates", "2,8", "--workers", "2,4"]) == 0
    assert opened[str(file)] == 1
    assert len([dag for dag in looked if len(dag) == len(eligo.read(file))]) == 1


def test_compare_makes_each_player_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, made, plain = written("layered", tmp_path, timed=True), Counter[str](), scheduler

    def counting(name: str, *rest: Any) -> Any:
        made[name] += 1
        return plain(name, *rest)

    monkeypatch.setattr("eligo.simulation.experiments.scheduler", counting)
    assert run(["compare", str(file), "--runs", "2", "--policy", "finish,ready,fifo"]) == 0
    assert made == {"finish": 1, "ready": 1, "fifo": 1}
