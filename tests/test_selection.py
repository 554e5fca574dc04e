"""Which tasks a run executes: targets, exceptions, repeats, and what it remembers of the others."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eligo
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats import parse
from eligo.running.selection import Selection, select
from eligo.workflow import Workflow

ROWS = [
    {"name": "a", "run": "echo >> a.log; date +%N > x", "outputs": ["x"]},
    {"name": "b", "run": "echo >> b.log; cp x y", "inputs": ["x"], "outputs": ["y"], "category": "copy"},
    {"name": "c", "run": "echo >> c.log; cp x z", "inputs": ["x"], "outputs": ["z"], "category": "copy"},
    {"name": "d", "run": "echo >> d.log; cat y z > w", "inputs": ["y", "z"], "outputs": ["w"]},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"tasks": ROWS}))
    return path


def counts(file: Path) -> dict[str, int]:
    """How often each task ran."""
    logs = {name: file.with_name(f"{name}.log") for name in "abcd"}
    return {name: len(log.read_text()) for name, log in logs.items() if log.exists()}


@given(st.integers(2, 9), st.integers(0, 10**6), st.data())
def test_a_selection_is_closed_upward_and_has_nothing_that_was_left_out(n: int, seed: int, data: st.DataObject) -> None:
    random = Random(seed)
    names = [f"t{i}" for i in range(n)]
    arcs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if random.random() < 0.3]
    dag = Dag.from_arcs(arcs, names)
    out = data.draw(st.lists(st.sampled_from(names), max_size=2))
    below = {v for v in names if any(v == o or _leads(dag, o, v) for o in out)}
    targets = data.draw(st.lists(st.sampled_from(sorted({*names} - below) or [""]), max_size=3))
    if "" in targets or below == {*names}:
        return
    chosen = set(select(Workflow(dag), targets, out).dag.tasks)
    above = {u for u in names if any(u == t or _leads(dag, u, t) for t in targets or names)}
    assert chosen == above - below


@given(st.integers(2, 9), st.integers(0, 10**6), st.data())
def test_until_and_start_from_narrow_a_selection(n: int, seed: int, data: st.DataObject) -> None:
    random = Random(seed)
    names = [f"t{i}" for i in range(n)]
    dag = Dag.from_arcs([(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if random.random() < 0.3], names)
    some = st.lists(st.sampled_from(names), min_size=1, max_size=2)
    flow, targets, until, first = Workflow(dag), data.draw(some), data.draw(some), data.draw(some)
    wanted = {u for u in names for t in targets if u == t or _leads(dag, u, t)}
    stops = {u for u in until if u in wanted}
    if not stops:
        with pytest.raises(InputError, match="need none of the tasks of --until"):
            select(flow, targets, until=until)
        return
    chosen = {u for u in names for t in stops if u == t or _leads(dag, u, t)}
    assert set(select(flow, targets, until=until).dag.tasks) == chosen
    onward = {v for v in names if any(v == u or _leads(dag, u, v) for u in first)}
    assumed = {v for v in names if any(_leads(dag, v, u) for u in first)} - onward
    assert {names[v] for v in Selection(start_from=tuple(first)).assumed(flow)} == assumed
    needed = {u for u in names for v in onward if u == v or _leads(dag, u, v)}
    assert set(select(flow, start_from=first).dag.tasks) == needed


def _leads(dag: Dag, a: str, b: str) -> bool:
    """Whether a path leads from a to b, by trying all."""
    return any(str(child) == b or _leads(dag, str(child), b) for child in dag.children(a))


def test_a_target_is_a_task_a_file_or_a_category() -> None:
    flow = parse(json.dumps({"tasks": ROWS}))
    assert select(flow, ["./y"]).dag.tasks == select(flow, ["b"]).dag.tasks == ("a", "b")
    assert select(flow, ["copy"]).dag.tasks == ("a", "b", "c")
    assert select(flow, except_=["z"]).dag.tasks == ("a", "b")
    with pytest.raises(InputError, match=r"named 'coppy' \(did you mean 'copy'\?\)"):
        select(flow, ["coppy"])
    with pytest.raises(InputError, match="target 'd' is an exception, or depends on one"):
        select(flow, ["d"], ["z"])
    with pytest.raises(InputError, match="'d' cannot run again: it is not selected"):
        Selection(("b",), again=("d",)).repeated(flow, select(flow, ["b"]))


def test_targets_run_with_what_they_need_and_the_rest_is_remembered(file: Path) -> None:
    assert run(["run", str(file), "y"]) == 0
    assert counts(file) == {"a": 1, "b": 1}
    assert run(["run", str(file), "c"]) == 0
    assert counts(file) == {"a": 1, "b": 1, "c": 1}
    assert run(["run", str(file)]) == 0
    assert counts(file) == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert run(["run", str(file), "--except", "d"]) == 0
    assert run(["run", str(file)]) == 0
    assert counts(file) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_what_depends_on_a_repeated_task_is_not_believed(file: Path) -> None:
    """d was done, was not selected, and one of its inputs is new: it must run again, and with the new input."""
    assert run(["run", str(file)]) == 0
    assert run(["run", str(file), "b", "--again", "a"]) == 0
    assert counts(file) == {"a": 2, "b": 2, "c": 1, "d": 1}
    assert run(["run", str(file)]) == 0
    assert counts(file) == {"a": 2, "b": 2, "c": 2, "d": 2}
    files = {name: file.with_name(name).read_text() for name in "xyzw"}
    assert files["y"] == files["z"] == files["x"]
    assert files["w"] == files["x"] * 2


def test_two_narrow_runs_after_another_leave_nothing_stale(file: Path) -> None:
    assert run(["run", str(file)]) == 0
    assert run(["run", str(file), "a", "--again", "a"]) == 0
    assert run(["run", str(file), "b"]) == 0
    assert run(["run", str(file), "c"]) == 0
    assert run(["run", str(file)]) == 0
    assert counts(file) == dict.fromkeys("abcd", 2)


@pytest.mark.parametrize("seed", range(6))
def test_random_selections_end_as_one_run_from_scratch(tmp_path: Path, seed: int) -> None:
    """Whatever was selected before, the last run leaves the files that a first run would, each newer than its inputs."""
    random, names = Random(seed), [f"t{i}" for i in range(7)]
    rows: list[dict[str, Any]] = []
    for i, name in enumerate(names):
        parents = [p for p in names[:i] if random.random() < 0.4]
        line = f"cat {' '.join(parents)} /dev/null > {name}; date +%s%N >> {name}"
        rows.append({"name": name, "run": line, "inputs": parents, "outputs": [name], "after": parents})
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"tasks": rows}))
    for _ in range(6):
        words = random.choice([["--again", random.choice(names)], [random.choice(names)], ["--fresh"], []])
        assert run(["run", str(file), *words, "-q"]) == 0
    assert run(["run", str(file), "-q"]) == 0
    for row in rows:
        content = file.with_name(row["name"]).read_text()
        assert content.startswith("".join(file.with_name(parent).read_text() for parent in row["inputs"]))


def test_all_is_run_again(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file)]) == 0
    assert run(["run", str(file), "--fresh"]) == 0
    assert counts(file) == dict.fromkeys("abcd", 2)
    assert "4 will run again as requested" in capsys.readouterr().err


def test_a_dry_run_says_what_would_run_and_why_and_runs_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "-n"]) == 0
    assert not file.with_name("flow.json.run").exists()
    assert run(["run", str(file), "b", "-q"]) == 0
    rows = json.loads(file.read_text())["tasks"]
    rows[1]["run"] += " # changed"
    file.write_text(json.dumps({"tasks": rows}))
    capsys.readouterr()
    assert run(["run", str(file), "--dry-run", "--again", "a", "--json"]) == 0
    reasons = {task["task"]: task["reason"] for task in json.loads(capsys.readouterr().out)["tasks"]}
    assert reasons == {
        "a": "a rerun was requested",
        "b": "its command, files or parents changed",
        "c": "it is not done yet",
        "d": "it is not done yet",
    }
    assert counts(file) == {"a": 1, "b": 1}
    file.with_name("x").unlink()
    assert run(["run", str(file), "-n", "b"]) == 0
    assert "an output is missing" in capsys.readouterr().out


def test_a_dry_run_lists_the_tasks_that_run_and_in_their_order(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "-n", "--json"]) == 0
    listed = [task["task"] for task in json.loads(capsys.readouterr().out)["tasks"]]
    assert listed == list(eligo.order(str(file)).order)
    assert run(["run", str(file), "-q"]) == 0
    capsys.readouterr()
    assert run(["run", str(file), "-n"]) == 0
    assert capsys.readouterr().out == "Nothing would run: all tasks are done\n"


def test_a_resumed_run_keeps_its_selection(file: Path) -> None:
    assert run(["run", str(file), "b", "--run", str(file.with_name("r"))]) == 0
    file.with_name("y").unlink()
    assert run(["run", "--resume", str(file.with_name("r"))]) == 0
    assert counts(file) == {"a": 1, "b": 2}


def test_a_run_that_grew_is_not_narrowed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = file.with_name("more.json")
    more.write_text('{"tasks": [{"name": "e", "run": "true", "after": ["a"]}]}')
    assert run(["run", str(file), "-q"]) == 0
    assert run(["add", str(file), str(more)]) == 0
    assert run(["run", str(file), "b"]) == 2
    assert "cannot be narrowed" in capsys.readouterr().err
    assert run(["run", str(file), "-q"]) == 0


def test_targets_in_python(file: Path) -> None:
    folder = file.with_name("run")
    assert eligo.run(str(file), targets=["y"], folder=folder).ok
    assert eligo.run(str(file), targets=["y"], again=["b"], folder=folder).ok
    assert counts(file) == {"a": 1, "b": 2}
    with pytest.raises(InputError, match="targets has no effect on functions"):
        eligo.run({"a": (lambda: 1, [])}, targets=["a"])


@pytest.mark.parametrize("words", [[], ["--again", "a"], ["--fresh"]])
def test_what_must_run_again_is_not_skipped_because_its_outputs_are_new(file: Path, words: list[str]) -> None:
    assert run(["run", str(file), "-q"]) == 0
    if not words:
        file.write_text(file.read_text().replace("date +%N > x", "echo new > x"))
    assert run(["run", str(file), "--skip-done", "-q", *words]) == 0
    assert counts(file) == dict.fromkeys("abcd", 2)


def test_a_target_may_be_a_path_or_a_program(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent.parent)
    assert run(["run", str(file), f"{file.parent.name}/y", "-q"]) == 0
    assert run(["run", str(file), str(file.with_name("y").absolute()), "-q"]) == 0
    assert counts(file) == {"a": 1, "b": 1}
    rows = [{"name": "p", "run": "true"}, {"name": "q", "run": "false"}]
    file.write_text(json.dumps({"tasks": rows}))
    assert run(["run", str(file), "true", "-q"]) == 0


def test_a_resumed_run_says_its_targets_as_they_are_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "b", "--except", "c", "-q"]) == 0
    capsys.readouterr()
    assert run(["run", "--resume", f"{file}.run", "-q"]) == 0
    assert "resuming with the options of the run: b --except c" in capsys.readouterr().err


def test_a_run_until_a_category_leaves_the_branches_beside_it(file: Path) -> None:
    assert run(["run", str(file), "d", "--until", "copy", "--quiet"]) == 0
    assert counts(file) == {"a": 1, "b": 1, "c": 1}
    assert run(["run", "--resume", f"{file}.run", "--quiet"]) == 0  # the run remembers it
    assert "d" not in counts(file)
    assert run(["run", str(file), "b", "--until", "c", "--quiet"]) == 2


def test_what_a_run_starts_from_needs_nothing_before_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "--start-from", "d", "--quiet"]) == 2
    assert "task 'a' cannot count as done for --start-from: its output 'x' does not exist" in capsys.readouterr().err
    for name in "xyz":
        file.with_name(name).write_text(f"{name}\n")
    assert run(["run", str(file), "--start-from", "b", "--quiet"]) == 0
    assert counts(file) == {"b": 1, "c": 1, "d": 1}  # d also needs c, which does not come before b
    assert run(["run", str(file), "--start-from", "b", "--quiet"]) == 0
    assert run(["run", str(file), "--quiet"]) == 0
    assert counts(file) == {"b": 1, "c": 1, "d": 1}


def test_half_an_output_does_not_count_as_done(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "a", "run": "echo half > x; false", "outputs": ["x"]}, *ROWS[1:]]
    file.write_text(json.dumps({"tasks": rows}))
    assert run(["run", str(file), "--retries", "0", "--quiet"]) == 1
    file.with_name("x").write_text("half\n")
    assert run(["run", str(file), "--start-from", "d", "--quiet"]) == 2
    assert "its last attempt did not finish" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["input", "command"])
def test_a_change_before_the_start_counts_as_done_too(
    file: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**ROWS[0], "inputs": ["raw"]}, *ROWS[1:]]
    file.with_name("raw").touch()
    file.write_text(json.dumps({"tasks": rows}))
    assert run(["run", str(file), "--quiet"]) == 0
    if change == "input":
        file.with_name("raw").write_text("new")
    else:
        file.write_text(json.dumps({"tasks": [{**rows[0], "run": "echo never"}, *rows[1:]]}))
    for words in (["--start-from", "b"], [], ["--start-from", "b", "--fresh"]):
        assert run(["run", str(file), *words, "--quiet"]) == 0
    assert counts(file) == {"a": 1, "b": 3, "c": 3, "d": 3}
    assert run(["run", str(file), "--start-from", "b", "--again", "a"]) == 2
    assert "task 'a' cannot run again: it is not selected" in capsys.readouterr().err
