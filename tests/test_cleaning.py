"""Temporary files: removed once no task needs them, made again when one does, and never a result or an input."""

import json
import os
import random
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.cli import run as command
from eligo.execution import Execution
from eligo.formats import generate, parse
from eligo.formats.histories.reader import read_sizes
from eligo.running.cleaning import Limits, RunOutputs
from eligo.running.reasons import REQUESTED
from eligo.running.task_files import TaskFiles
from eligo.space.disk_use import disk_use
from eligo.space.footprint import Footprint
from eligo.stores import read_files
from running_cases import ran, started, written

CHAIN: list[dict[str, Any]] = [
    {"name": "a", "run": "echo >> a.log; cat raw raw > x", "inputs": ["raw"], "outputs": ["x"]},
    {"name": "b", "run": "echo >> b.log; cat x x > y", "inputs": ["x"], "outputs": ["y"]},
    {"name": "c", "run": "echo >> c.log; cat y > z", "inputs": ["y"], "outputs": ["z"]},
]


def temporary(tasks: Sequence[Mapping[str, Any]], *files: str) -> list[dict[str, Any]]:
    """The tasks, with these outputs declared temporary."""
    return [
        {
            **task,
            "outputs": [
                {"name": file, "temporary": True} if file in files else file for file in task.get("outputs", ())
            ],
        }
        for task in tasks
    ]


def flow_in(folder: Path, tasks: Sequence[Mapping[str, Any]]) -> Path:
    (folder / "raw").write_text("raw")
    return written(folder, tasks)


def made(folder: Path) -> set[str]:
    """The files in a folder except logs, the workflow and its run."""
    return {path.name for path in folder.iterdir() if path.suffix not in {".log", ".yaml", ".run"}}


def runs(folder: Path) -> str:
    """How often each task of the chain has run."""
    return "".join(str(len((folder / f"{name}.log").read_text())) for name in "abc")


def explained(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[tuple[str, str]]:
    """The tasks that a run would execute, with the reasons."""
    capsys.readouterr()
    assert command(["run", str(path), "-n", "--json", *options]) == 0
    return [(task["task"], task["reason"]) for task in json.loads(capsys.readouterr().out)["tasks"]]


# What is removed


def test_a_declared_file_is_removed_and_no_other(tmp_path: Path) -> None:
    path = flow_in(tmp_path, temporary(CHAIN, "y"))
    assert ran(path) == 0
    assert made(tmp_path) == {"raw", "x", "z"}


def test_clean_removes_every_file_between_tasks(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "z"}
    assert (tmp_path / "z").read_text() == "raw" * 4


def test_a_result_stays_even_if_it_is_declared_temporary(tmp_path: Path) -> None:
    path = flow_in(tmp_path, temporary(CHAIN, "z"))
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "z"}


def test_a_finished_run_is_cleaned_afterwards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path) == 0
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "z"}
    assert "Nothing to do" in capsys.readouterr().out
    assert runs(tmp_path) == "111"


def test_a_file_that_a_task_changes_in_place_stays(tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "run": "echo more >> raw", "inputs": ["raw"], "outputs": ["raw"]},
        {"name": "b", "run": "cat raw > z", "inputs": ["raw"], "outputs": ["z"]},
    ]
    path = flow_in(tmp_path, tasks)
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "z"}


def test_a_file_of_several_writers_stays(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(
        "arcs_from: after\ntasks:\n- {name: a, run: echo 1 > x, outputs: [x]}\n"
        "- {name: b, run: cat x > y, inputs: [x], outputs: [y], after: [a]}\n"
        "- {name: c, run: echo 2 > x, outputs: [x], after: [b]}\n"
    )
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"x", "y"}


def test_a_file_that_is_read_only_before_it_is_written_is_a_result(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    (tmp_path / "x").write_text("0")
    path.write_text(
        "arcs_from: after\ntasks:\n- {name: b, run: cat x > y, inputs: [x], outputs: [y]}\n"
        "- {name: a, run: echo 1 > x, outputs: [{name: x, temporary: true}], after: [b]}\n"
    )
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"x", "y"}


def test_a_child_without_declared_inputs_counts_as_a_reader(tmp_path: Path) -> None:
    silent = {"name": "d", "run": "sleep 0.3; cat x > w", "after": ["a"], "outputs": ["w"]}
    path = flow_in(tmp_path, [*CHAIN, silent])
    assert ran(path, "--clean", "--workers", "3") == 0
    assert made(tmp_path) == {"raw", "w", "z"}


# Paths


def test_of_a_link_only_the_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    folder = tmp_path / "near"
    folder.mkdir()
    (tmp_path / "far" / "kept").write_text("kept")
    tasks = [
        {"name": "a", "run": "ln -s ../far/kept x", "outputs": ["x"]},
        {"name": "b", "run": "cat x > z", "inputs": ["x"], "outputs": ["z"]},
    ]
    path = flow_in(folder, tasks)
    assert ran(path, "--clean") == 0
    assert made(folder) == {"raw", "z"}
    assert (tmp_path / "far" / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    ("file", "why"),
    [("../far/x", "outside the folder"), ("link/x", "is a link"), ("{absolute}/x", "outside the folder")],
)
def test_a_path_that_leaves_the_folder_is_not_touched(
    tmp_path: Path, file: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    far, folder = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    folder.mkdir()
    (folder / "link").symlink_to(far)
    file = file.format(absolute=far)
    tasks: list[dict[str, Any]] = [
        {"name": "a", "run": f"echo 1 > {file}", "outputs": [{"name": file, "temporary": True}]},
        {"name": "b", "run": f"cat {file} > z", "inputs": [file], "outputs": ["z"]},
    ]
    assert ran(flow_in(folder, tasks)) == 0
    assert (far / "x").exists()
    assert why in " ".join(capsys.readouterr().err.split())


def test_a_folder_is_removed_as_a_whole_after_the_readers_of_files_in_it(tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "run": "mkdir -p d; echo 1 > d/1; echo 2 > d/2; ln -s ../raw d/3", "outputs": ["d"]},
        {"name": "b", "run": "cat d/1 > y", "inputs": ["d/1"], "outputs": ["y"], "after": ["a"]},
        {"name": "c", "run": "sleep 0.3; cat d/2 > z", "inputs": ["./d/2"], "outputs": ["z"], "after": ["a"]},
    ]
    path = flow_in(tmp_path, tasks)
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "y", "z"}
    assert ran(path, "--clean") == 0
    assert ran(path, "--clean", "--again", "c") == 0
    assert made(tmp_path) == {"raw", "y", "z"}


def test_a_folder_with_another_output_inside_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [
        {"name": "a", "run": "mkdir -p d; echo 1 > d/1; echo 2 > d/result", "outputs": ["d", "d/result"]},
        {"name": "b", "run": "cat d/1 > y", "inputs": ["d/1"], "outputs": ["y"], "after": ["a"]},
    ]
    assert ran(flow_in(tmp_path, tasks), "--clean") == 0
    assert (tmp_path / "d" / "result").exists()
    assert "other outputs are in it" in " ".join(capsys.readouterr().err.split())


def test_nothing_of_the_run_itself_is_removed(tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "run": "touch flow.yaml.run/run.db flow.yaml", "outputs": ["flow.yaml.run", "flow.yaml"]},
        {"name": "b", "run": "ls flow.yaml.run > z", "inputs": ["flow.yaml.run", "flow.yaml"], "outputs": ["z"]},
    ]
    path = flow_in(tmp_path, tasks)
    assert ran(path, "--clean") == 0
    assert path.exists()
    assert (tmp_path / "flow.yaml.run" / "run.db").exists()


# Readers that still need it


def test_a_failed_reader_keeps_its_inputs(tmp_path: Path) -> None:
    tasks = [*CHAIN[:2], {"name": "c", "run": "test -e ok; cat y > z", "inputs": ["y"], "outputs": ["z"]}]
    path = flow_in(tmp_path, tasks)
    assert ran(path, "--clean", "--retries", "0") == 1
    assert made(tmp_path) == {"raw", "y"}
    (tmp_path / "ok").touch()
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "ok", "z"}
    assert len((tmp_path / "a.log").read_text()) == 1


def test_a_retry_finds_its_inputs(tmp_path: Path) -> None:
    flaky = {"name": "c", "run": 'cat y > z; test "$ELIGO_ATTEMPT" -gt 1', "inputs": ["y"], "outputs": ["z"]}
    assert ran(flow_in(tmp_path, [*CHAIN[:2], flaky]), "--clean") == 0
    assert made(tmp_path) == {"raw", "z"}


def test_a_task_outside_the_selection_keeps_its_inputs(tmp_path: Path) -> None:
    path = flow_in(tmp_path, [*CHAIN, {"name": "d", "run": "cat x > w", "inputs": ["x"], "outputs": ["w"]}])
    assert ran(path, "--clean", "c") == 0
    assert made(tmp_path) == {"raw", "x", "z"}
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "w", "z"}
    assert runs(tmp_path) == "111"


def test_a_target_that_is_between_tasks_stays_in_that_run(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean", "y") == 0
    assert made(tmp_path) == {"raw", "y"}


def test_tasks_of_one_job_and_busy_tasks_keep_their_files(tmp_path: Path) -> None:
    assert ran(flow_in(tmp_path, CHAIN), "--clean", "--fat", "3") == 0
    assert made(tmp_path) == {"raw", "z"}
    flow = parse(json.dumps({"tasks": CHAIN}), "json")
    for name in ("x", "y"):
        (tmp_path / name).touch()
    outputs = RunOutputs(TaskFiles(flow, str(tmp_path)), Execution(flow, executed=["a", "b", "c"]), Limits(clean=True))
    outputs.clean(busy=[2])  # a second copy of c
    assert made(tmp_path) == {"raw", "y", "z"}
    outputs.clean()
    assert made(tmp_path) == {"raw", "z"}


# Resuming


def test_a_removed_file_is_no_reason_to_run_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    for options in ((), ("--clean",), ("--skip-done",), ("--why",)):
        assert ran(path, *options) == 0
    assert runs(tmp_path) == "111"
    assert explained(path, capsys) == []
    assert made(tmp_path) == {"raw", "z"}


def test_what_a_repeated_reader_needs_is_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    assert explained(path, capsys, "--again", "c") == [
        ("a", "its output x, a removed temporary file, is needed again"),
        ("b", "its output y, a removed temporary file, is needed again"),
        ("c", REQUESTED),
    ]
    assert ran(path, "--again", "c") == 0
    assert runs(tmp_path) == "222"
    assert made(tmp_path) == {"raw", "x", "y", "z"}
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "z"}
    assert runs(tmp_path) == "222"


def test_a_lost_result_is_made_again_with_all_that_it_needs(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    (tmp_path / "z").unlink()
    assert ran(path, "--clean") == 0
    assert runs(tmp_path) == "222"
    assert made(tmp_path) == {"raw", "z"}


def test_a_changed_input_is_noticed(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    (tmp_path / "raw").write_text("new")
    assert ran(path, "--clean") == 0
    assert (tmp_path / "z").read_text() == "new" * 4


def test_a_removal_without_a_record_is_recorded(tmp_path: Path) -> None:
    """As after a kill between the two."""
    path = flow_in(tmp_path, CHAIN)
    assert ran(path) == 0
    (tmp_path / "x").unlink()
    (tmp_path / "y").unlink()
    assert ran(path, "--clean") == 0
    removed = [change.name for change in read_files(tmp_path / "flow.yaml.run" / "run.db") if change.size is None]
    assert sorted(removed) == ["x", "y"]
    assert runs(tmp_path) == "111"


def test_the_cache_gives_removed_files_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, cache = (
        flow_in(tmp_path, [{**task, "run": task["run"].partition("; ")[2]} for task in CHAIN]),
        tmp_path / "cache.log",
    )
    assert ran(path, "--clean", "--cache", str(cache)) == 0
    assert ran(path, "--clean", "--cache", str(cache), "--again", "c") == 0
    assert "2 from the cache" in capsys.readouterr().out
    assert made(tmp_path) == {"raw", "z"}


def test_tasks_before_the_start_need_no_removed_files(tmp_path: Path) -> None:
    path = flow_in(tmp_path, temporary(CHAIN, "x"))
    assert ran(path) == 0
    assert ran(path, "--start-from", "c", "--run", str(tmp_path / "other.run")) == 0
    assert runs(tmp_path) == "112"


def test_python_has_it_too(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    eligo.run(path, clean=True)
    assert made(tmp_path) == {"raw", "z"}
    with pytest.raises(eligo.InputError, match="clean has no effect on functions"):
        eligo.run({"a": (lambda: 1, [])}, clean=True)


# Growth


def test_a_running_run_refuses_a_task_that_reads_a_removed_file(tmp_path: Path) -> None:
    late = json.dumps({"tasks": [{"name": "late", "run": "cat x", "inputs": ["x"]}]})
    grower = {
        "name": "c",
        "run": f"cat y > z; sleep 0.3; echo '{late}' > $ELIGO_ADD",
        "inputs": ["y"],
        "outputs": ["z"],
    }
    path = flow_in(tmp_path, [*CHAIN[:2], grower])
    with pytest.raises(eligo.TaskFailedError, match="a temporary file that was removed"):
        eligo.run(path, clean=True, retries=0, folder=tmp_path / "flow.yaml.run")


def test_a_task_that_is_added_between_runs_makes_the_writer_run_again(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    more = written(tmp_path, [{"name": "d", "run": "cat x > w", "inputs": ["x"], "outputs": ["w"]}], name="more.yaml")
    assert command(["add", str(path), str(more)]) == 0
    assert ran(path, "--clean") == 0
    assert made(tmp_path) == {"raw", "w", "z"}
    assert (tmp_path / "w").read_text() == "rawraw"


def test_a_new_reader_in_time_keeps_the_file(tmp_path: Path) -> None:
    late = json.dumps({"tasks": [{"name": "late", "run": "cat x > w", "inputs": ["x"], "outputs": ["w"]}]})
    grower = {"name": "b", "run": f"cat x > y; echo '{late}' > $ELIGO_ADD", "inputs": ["x"], "outputs": ["y"]}
    assert ran(flow_in(tmp_path, [CHAIN[0], grower, CHAIN[2]]), "--clean") == 0
    assert made(tmp_path) == {"raw", "w", "z"}


# Any workflow


def random_flow(rng: random.Random) -> list[dict[str, Any]]:
    """Tasks that each read some files before them and write one or two, some of them temporary."""
    files, tasks = ["raw"], list[dict[str, Any]]()
    for number in range(rng.randint(4, 9)):
        reads = sorted(rng.sample(files, min(len(files), rng.randint(1, 3))))
        writes = [f"f{number}.{part}" for part in range(rng.randint(1, 2))]
        line = f"test ! -e bad{number}; " + "; ".join(f"cat {' '.join(reads)} | cksum > {file}" for file in writes)
        outputs = [{"name": file, "temporary": True} if rng.random() < 0.4 else file for file in writes]
        tasks.append({"name": f"t{number}", "run": line, "inputs": reads, "outputs": outputs})
        files += writes
    return tasks


def contents(folder: Path, flow: eligo.Workflow) -> dict[str, bytes]:
    """The results of a workflow: what no task reads."""
    read = {file for task in flow.details.values() for file in task.inputs}
    outputs = [file for task in flow.details.values() for file in task.outputs if file not in read]
    return {file: (folder / file).read_bytes() for file in outputs}


@pytest.mark.parametrize("seed", range(12))
def test_any_run_ends_with_the_results_of_a_run_without_cleaning(tmp_path: Path, seed: int) -> None:
    """Tasks fail, inputs change, results get lost, and tasks are repeated, in any order; every other time with --clean."""
    rng = random.Random(seed)
    tasks = random_flow(rng)
    places = [tmp_path / name for name in ("cleaned", "plain")]
    for place in places:
        place.mkdir()
    cleaned, plain = (flow_in(place, tasks) for place in places)
    flow = eligo.read(cleaned)
    for _ in range(4):
        bad = places[0] / f"bad{rng.randrange(len(tasks))}"
        options = ["--clean"] if rng.random() < 0.7 else []
        match rng.randrange(4):
            case 0:
                bad.touch()
                ran(cleaned, "-q", "--retries", "0", *options)
                bad.unlink()
            case 1:
                raw = str(rng.random())
                for place in places:
                    (place / "raw").write_text(raw)
            case 2 if there := sorted(path for path in places[0].glob("f*.?")):
                rng.choice(there).unlink()
            case _:
                ran(cleaned, "-q", *options, "--again", f"t{rng.randrange(len(tasks))}")
    assert ran(cleaned, "-q", "--clean") == 0
    assert ran(plain, "-q", "--fresh") == 0
    expected = contents(places[1], flow)
    assert contents(places[0], flow) == expected
    assert made(places[0]) == {"raw", *expected}
    assert ran(cleaned, "-q", "--clean") == 0
    changes = read_files(Path(f"{cleaned}.run") / "run.db")
    use = disk_use(flow, changes)
    assert use.peak <= use.peak_without_cleaning <= use.written
    assert {change.name for change in changes if change.size is None}.isdisjoint(expected)


# The sizes that a run records


def test_a_run_records_sizes_and_the_next_plan_has_them(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    path.write_text(path.read_text() + "files: {raw: 3, x: 1000}\n")
    assert ran(path) == 0
    times = eligo.times.times_of(eligo.read(path))
    assert dict(times.flow.file_sizes) == {"raw": 3, "x": 6, "y": 12, "z": 12}
    footprint = Footprint.of(times.flow)
    assert footprint.level == "sizes"
    assert footprint.sizes.tolist() == [6, 12]


def test_sizes_of_another_run_give_means_of_kinds(tmp_path: Path) -> None:
    assert ran(flow_in(tmp_path, CHAIN)) == 0
    other = [
        {**task, "inputs": [f"other-{file}" for file in task["inputs"]], "outputs": [f"o-{task['name']}"]}
        for task in CHAIN
    ]
    other[1]["inputs"], other[2]["inputs"] = ["o-a"], ["o-b"]
    flow = eligo.with_history(parse(json.dumps({"tasks": other}), "json"), tmp_path / "flow.yaml.run")
    assert dict(flow.file_sizes) == {}
    footprint = Footprint.of(flow)
    assert footprint.level == "kinds"
    assert footprint.sizes.tolist() == [10, 10], "the mean of 6, 12 and 12: all are of one kind"


def test_a_history_of_another_kind_says_nothing_of_a_file_with_the_same_name() -> None:
    flow = parse(
        '{"tasks": [{"name": "a", "run": "sort r", "outputs": ["x"]}, {"name": "b", "inputs": ["x"], "run": "cat x"}]}'
    )
    measured = [eligo.workflow.Measured("x", "cat", 7), eligo.workflow.Measured("x", "gzip", 9)]
    assert dict(eligo.estimates.with_sizes(flow, measured[:1]).file_sizes) == {}
    assert dict(eligo.estimates.with_sizes(flow, measured[1:]).file_sizes) == {"x": 9}


def test_a_workflow_with_sizes_is_a_history(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    path.write_text(path.read_text().replace("name: a", "name: a\n  seconds: 3") + "files: {x: 1000}\n")
    assert [tuple(size) for size in eligo.read_history(path).sizes] == [("x", "echo", 1000)]


def test_a_run_of_an_older_version_is_read_and_resumed(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path) == 0
    run = tmp_path / "flow.yaml.run"
    with closing(sqlite3.connect(run / "run.db")) as database:
        database.executescript("DROP TABLE file; DELETE FROM seal WHERE name = 'file'; PRAGMA user_version = 4;")
    assert read_sizes(str(run)) == {}
    assert command(["status", str(run)]) == 0
    assert ran(path, "--clean", "--again", "c") == 0
    assert read_sizes(str(run)) == {"z": 12}
    assert made(tmp_path) == {"raw", "z"}


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    tasks = [{"name": "a", "run": "mkdir d; echo 12345 > d/1; mkdir d/e; echo 12 > d/e/2", "outputs": ["d"]}]
    assert ran(flow_in(tmp_path, tasks)) == 0
    assert read_sizes(str(tmp_path / "flow.yaml.run")) == {"d": 9}


def test_what_cleaning_saves_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path, "--clean") == 0
    use = (
        "30 bytes written, at most 18 bytes of it between tasks (18 bytes without cleaning); 2 temporary files removed"
    )
    assert f"files: {use}" in " ".join(capsys.readouterr().err.split())
    assert command(["status", str(path), "--json"]) == 0
    words = json.loads(capsys.readouterr().out)["disk"]
    assert words == {"written": 30, "peak": 18, "peak_without_cleaning": 18, "removed": 2}


# In files


def test_patterns_and_flags_are_read_and_written() -> None:
    text = """temporary: ["tmp/*", "*.bam"]
tasks:
- {name: a, foreach: {s: 1..2}, run: x, outputs: ["tmp/{s}", {name: "x{s}", temporary: true}, {name: "y{s}"}, "{s}.bam"]}
- {name: b, run: y, inputs: ["{a.outputs}"], outputs: [z]}
"""
    flow = parse(text, "yaml")
    assert flow.task("a-1").outputs == ("tmp/1", "x1", "y1", "1.bam")
    assert flow.task("a-2").temporary == ("tmp/2", "x2", "2.bam")
    for format in ("yaml", "json", "pegasus", "dax"):
        again = parse(generate(flow, format), format)
        assert [again.task(name).temporary for name in again.dag.tasks] == [
            ("tmp/1", "x1", "1.bam"),
            ("tmp/2", "x2", "2.bam"),
            (),
        ]
    assert "which files are temporary (2 tasks)" in eligo.formats.lost(flow, "makeflow")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"tasks": [{"name": "a", "outputs": [{"temporary": true}]}]}', "is missing"),
        ('{"tasks": [{"name": "a", "outputs": [{"name": "x", "temporary": 1}]}]}', "must be true or false, got 1"),
        ('{"tasks": [{"name": "a", "outputs": [{"name": "x", "size": 1}]}]}', "unknown key 'size'"),
        ('{"tasks": [{"name": "a"}], "temporary": "*.x"}', "must be a list of strings"),
        ('{"arcs": [["a", "b"]], "temporary": ["*"]}', 'needs "tasks"'),
    ],
)
def test_other_values_are_refused(text: str, why: str) -> None:
    with pytest.raises(eligo.InputError, match=why):
        parse(text, "json")


def test_a_change_of_what_is_temporary_repeats_nothing(tmp_path: Path) -> None:
    path = flow_in(tmp_path, CHAIN)
    assert ran(path) == 0
    flow_in(tmp_path, temporary(CHAIN, "x", "y"))
    assert ran(path) == 0
    assert runs(tmp_path) == "111"
    assert made(tmp_path) == {"raw", "z"}


# Incomplete outputs


APPENDS = {"name": "a", "run": "echo more >> x; test $ELIGO_ATTEMPT -ge 3", "outputs": ["x"]}


@pytest.mark.parametrize(("options", "lines"), [((), 1), (("--keep-incomplete",), 3)])
def test_the_next_attempt_finds_what_a_failed_one_wrote_only_on_request(
    tmp_path: Path, options: Sequence[str], lines: int
) -> None:
    flow = written(tmp_path, [APPENDS])
    assert ran(flow, *options) == 0
    assert (tmp_path / "x").read_text() == "more\n" * lines
    assert not (tmp_path / ".x.incomplete").exists()


def test_what_a_task_wrote_that_failed_for_good_stays_until_it_runs_again(tmp_path: Path) -> None:
    flow = written(tmp_path, [APPENDS])
    assert ran(flow, "--retries", "0") == 1
    assert (tmp_path / "x").read_text() == "more\n"
    assert ran(flow, "--retries", "0") == 1
    assert (tmp_path / "x").read_text() == "more\n"
    assert (tmp_path / ".x.incomplete").read_text() == "more\n"
    assert ran(flow, "--retries", "0") == 0
    assert (tmp_path / "x").read_text() == "more\n"
    assert not (tmp_path / ".x.incomplete").exists()


def test_what_an_attempt_did_not_write_or_also_reads_is_not_move_away(tmp_path: Path) -> None:
    for name in ("old", "both", "there/of a user"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before\n")
    for name in ("old", "there/of a user"):
        os.utime(tmp_path / name, (1, 1))
    task = {
        "name": "a",
        "run": "echo more >> both; echo > there/new; test $ELIGO_ATTEMPT = 2",
        "inputs": ["both"],
        "outputs": ["old", "both", "there"],
    }
    flow = written(tmp_path, [task])
    time.sleep(1.1)  # the times of files are trusted to a second
    assert ran(flow) == 0
    assert (tmp_path / "old").read_text() == "before\n"
    assert (tmp_path / "both").read_text() == "before\nmore\nmore\n"
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"new", "of a user"}


def test_the_outputs_of_a_killed_attempt_are_move_away_by_the_next_run(tmp_path: Path) -> None:
    task = {"name": "a", "run": "echo more >> x; test -e go || { echo > began; sleep 60; }", "outputs": ["x"]}
    flow = written(tmp_path, [task])
    with started(flow) as run:
        while not (tmp_path / "began").exists():
            assert run.poll() is None
            time.sleep(0.01)
        run.kill()
        run.communicate()
    (tmp_path / "go").touch()
    assert ran(flow) == 0
    assert (tmp_path / "x").read_text() == "more\n"
    assert not (tmp_path / ".x.incomplete").exists()
