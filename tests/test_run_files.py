"""Files that tasks declare: half-written ones are not believed, missing ones are noticed, deleted ones are made again."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.cli import run
from eligo.engines import Job
from eligo.engines.job_run import ending_of
from eligo.engines.worker import Performed
from eligo.formats import write
from eligo.running.task_files import Inspection
from eligo.workflow import Task, Workflow
from running_cases import attempts, lines, ran, started, written

Captured = pytest.CaptureFixture[str]
PATIENCE = 60.0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def pair(first: str, **more: Any) -> list[dict[str, Any]]:
    """A task that makes a file, and one that reads it."""
    return [
        {"name": "make", "run": first, "outputs": ["half"], **more},
        {"name": "use", "run": "cat half > used", "inputs": ["half"], "outputs": ["used"], "after": ["make"]},
    ]


# Tasks that never completed are not up to date


def test_outputs_of_a_failed_task_are_not_taken_for_done(tmp_path: Path) -> None:
    flow = written(tmp_path, pair("echo half > half; exit 1"))
    assert ran(flow, "--skip-done", "--retries", "0") == 1
    assert ran(flow, "--skip-done", "--retries", "0") == 1
    assert not (tmp_path / "used").exists()
    flow = written(tmp_path, pair("echo whole > half"))
    assert ran(flow, "--skip-done") == 0
    assert lines(tmp_path / "used") == ["whole"]


def test_outputs_of_a_task_that_took_too_long_are_not_taken_for_done(tmp_path: Path) -> None:
    flow = written(tmp_path, pair("echo half > half; exec sleep 60"))
    assert ran(flow, "--skip-done", "--retries", "0", "--timeout", "0.5") == 1
    flow = written(tmp_path, pair("echo whole > half; exec sleep 0"))
    assert ran(flow, "--skip-done") == 0
    assert lines(tmp_path / "used") == ["whole"]


def kill_when(process: "subprocess.Popen[str]", made: Path) -> None:
    """Kill a dispatcher once a task of it has made a file."""
    wait_for(made.exists)
    process.kill()
    process.communicate()


def test_outputs_of_a_task_that_ran_when_the_dispatcher_was_killed_are_not_taken_for_done(tmp_path: Path) -> None:
    slow = "echo half > half; test -e go || exec sleep 60; echo whole > half"
    flow = written(tmp_path, pair(slow))
    kill_when(started(flow, "--workers", "1"), tmp_path / "half")
    (tmp_path / "go").touch()
    assert ran(flow, "--skip-done") == 0
    assert lines(tmp_path / "used") == ["whole"]


def test_a_killed_task_stays_unfinished_while_the_file_changes_and_others_run(tmp_path: Path) -> None:
    """The journal begins anew with every change of the file, and forgets who was running."""
    slow = "echo half > half; test -e go || exec sleep 60; echo whole > half"
    flow = written(tmp_path, pair(slow))
    kill_when(started(flow, "--workers", "1"), tmp_path / "half")
    others = [{"name": "first", "run": "exit 1"}, *pair(slow)]
    others[1]["after"] = ["first"]
    assert ran(written(tmp_path, others), "--skip-done", "--retries", "0") == 1
    (tmp_path / "go").touch()
    assert ran(written(tmp_path, pair(slow)), "--skip-done") == 0
    assert lines(tmp_path / "used") == ["whole"]


def test_a_failure_after_an_earlier_success_counts(tmp_path: Path) -> None:
    assert ran(written(tmp_path, pair("echo one > half"))) == 0
    assert ran(written(tmp_path, pair("echo half > half; exit 1")), "--retries", "0") == 1
    assert ran(written(tmp_path, pair("echo two > half")), "--skip-done") == 0
    assert lines(tmp_path / "used") == ["two"]


def test_a_success_after_a_failure_counts_as_well(tmp_path: Path) -> None:
    flow = written(tmp_path, pair("echo >> ran; echo 1 > half; test -e go"))
    assert ran(flow, "--retries", "0") == 1
    (tmp_path / "go").touch()
    assert ran(flow) == 0
    more = [*pair("echo >> ran; echo 1 > half; test -e go"), {"name": "new", "run": "true"}]
    assert ran(written(tmp_path, more), "--skip-done") == 0
    assert len(lines(tmp_path / "ran")) == 2
    assert ran(written(tmp_path, pair("echo >> ran; echo 2 > half; test -e go")), "--skip-done") == 0
    assert len(lines(tmp_path / "ran")) == 3  # another command makes other files, however new the present ones are


def test_a_deleted_output_is_made_again_for_a_task_that_does_not_say_what_it_reads(tmp_path: Path) -> None:
    """Also if another task does say so, and is done."""
    tasks = [
        {"name": "t0", "run": "echo 0 > o0", "outputs": ["o0"]},
        {"name": "t1", "run": "cat o0 > o1", "inputs": ["o0"], "outputs": ["o1"]},
        {"name": "t2", "run": "cat o0 o1 > o2", "after": ["t0", "t1"], "outputs": ["o2"]},
    ]
    flow = written(tmp_path, tasks)
    assert ran(flow) == 0
    for name in ("o0", "o2"):
        (tmp_path / name).unlink()
    assert ran(flow, "--retries", "0") == 0
    assert (tmp_path / "o2").read_text() == "0\n0\n"


# Outputs that a task declares and does not make


@pytest.mark.parametrize("options", [[], ["--fat", "4"], ["--on", "dask"]])
def test_a_task_that_does_not_make_its_output_has_failed(options: list[str], tmp_path: Path, capsys: Captured) -> None:
    if "dask" in options:
        pytest.importorskip("distributed")
    tasks = pair("true")
    tasks[1]["run"] = "echo >> ran"
    flow = written(tmp_path, [*tasks, {"name": "other", "run": "touch other", "outputs": ["other"]}])
    assert ran(flow, "--retries", "1", *options) == 1
    assert "make: the task did not create 'half', 2 attempts" in capsys.readouterr().out
    assert (tmp_path / "other").exists()
    assert not {"use"} & {each["name"] for each in attempts(Path(f"{flow}.run")) if each["failure"] is None}


def test_the_library_says_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    task = Task(name="a", command="touch one", outputs=("one", "two", "three"))
    flow = Workflow(eligo.Dag.from_arcs([], ["a"]), {"a": task})
    with pytest.raises(eligo.TaskFailedError, match="did not create 'two' and 1 other output"):
        eligo.run(flow, retries=0)
    with ThreadPoolExecutor(1) as pool, pytest.raises(eligo.TaskFailedError, match="did not create 'two'"):
        eligo.run(flow, on=pool, retries=0)


def test_a_task_that_runs_nothing_makes_nothing(tmp_path: Path, capsys: Captured) -> None:
    assert ran(written(tmp_path, [{"name": "a", "run": ":", "outputs": ["x"]}]), "--retries", "0") == 1
    assert "did not create 'x'" in capsys.readouterr().out


def test_ninja_does_not_ask_for_outputs(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("rule r\n  command = true\nbuild never_made: r\n", "utf-8")
    assert (ran(tmp_path / "build.ninja"), ran(tmp_path / "build.ninja")) == (0, 0)


def test_files_that_are_seen_late_are_waited_for() -> None:
    """As on network file systems; and no longer than for some seconds."""
    looks: list[str] = []

    def absent(task: object) -> list[str]:
        looks.append(str(task))
        return ["late"] if len(looks) < 3 else []

    job = Job(1, "slot 1", ("a",), ())
    inspection = Inspection(absent, 60.0, lambda jobs: None)
    first = list(inspection.settled([ending_of(job, 0, Performed(0.0, 1.0, code=0))]))
    second, third = list(inspection.settled([])), list(inspection.settled([]))
    assert (first, second, [ending.attempt.failure for ending in third]) == ([], [], [None])


def test_what_a_job_ran_after_a_task_without_outputs_does_not_count() -> None:
    job, stopped = Job(1, "slot 1", ("a", "b", "c"), ()), list[Job]()
    inspection = Inspection(lambda task: ["x"] if task == "a" else [], 0.0, stopped.extend)
    ends = [ending_of(job, place, Performed(0.0, 1.0, code=0)) for place in range(3)]
    assert list(inspection.settled(ends[:1])) == []
    assert stopped == [job]
    assert [(ending.task, ending.attempt.failure) for ending in inspection.settled(ends[1:])] == [
        ("a", "the task did not create 'x'")
    ]
    assert [ending.task for ending in inspection.discarded()] == ["b", "c"]


# Outputs that are gone


def chain() -> list[dict[str, Any]]:
    """Three tasks in a row, each of which counts how often it ran."""
    return [
        {"name": "a", "run": "echo >> ran_a; echo a > a", "outputs": ["a"]},
        {"name": "b", "run": "echo >> ran_b; cat a > b", "inputs": ["a"], "outputs": ["b"], "after": ["a"]},
        {"name": "c", "run": "echo >> ran_c; cat b > c", "inputs": ["b"], "outputs": ["c"], "after": ["b"]},
    ]


def counts(folder: Path) -> list[int]:
    """How often each of them ran."""
    return [len(lines(folder / f"ran_{name}")) for name in "abc"]


def test_a_final_output_that_is_gone_is_made_again(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, chain())
    assert ran(flow) == 0
    (tmp_path / "c").unlink()
    assert ran(flow) == 0
    assert "1 will run again because outputs are missing" in capsys.readouterr().err
    assert (tmp_path / "c").exists()
    assert counts(tmp_path) == [1, 1, 2]


def test_an_intermediate_output_may_go_once_all_its_readers_are_done(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, chain())
    assert ran(flow) == 0
    (tmp_path / "a").unlink()
    assert ran(flow) == 0
    assert "Nothing to do" in capsys.readouterr().out
    (tmp_path / "b").unlink()
    (tmp_path / "c").unlink()
    assert ran(flow) == 0
    assert counts(tmp_path) == [2, 2, 2]


def test_an_output_that_an_unfinished_task_needs_is_made_again(tmp_path: Path) -> None:
    tasks = chain()
    tasks[2]["run"] += "; test -e go"
    flow = written(tmp_path, tasks)
    assert ran(flow, "--retries", "0") == 1
    (tmp_path / "b").unlink()
    (tmp_path / "go").touch()
    assert ran(flow) == 0
    assert counts(tmp_path) == [1, 2, 2]


def test_what_depends_on_a_task_that_is_done_again_is_done_again(tmp_path: Path, capsys: Captured) -> None:
    tasks = chain()
    tasks[1]["outputs"] = ["b", "b2"]
    tasks[1]["run"] += "; touch b2"
    flow = written(tmp_path, tasks)
    assert ran(flow) == 0
    (tmp_path / "b2").unlink()
    assert ran(flow) == 0
    assert "1 will run again because they depend on these" in capsys.readouterr().err
    assert counts(tmp_path) == [1, 2, 2]


def test_a_file_that_a_later_task_deletes_does_not_come_back_for_ever(tmp_path: Path) -> None:
    """A child that declares no inputs may have read whatever its parent wrote."""
    tasks = [
        {"name": "a", "run": "echo >> ran_a; touch temp", "outputs": ["temp"]},
        {"name": "b", "run": "echo >> ran_b; rm temp", "after": ["a"]},
    ]
    flow = written(tmp_path, tasks)
    assert (ran(flow), ran(flow)) == (0, 0)
    assert counts(tmp_path) == [1, 1, 0]


def test_outputs_that_are_gone_are_made_again_by_the_library_too(tmp_path: Path) -> None:
    flow = written(tmp_path, chain())
    eligo.run(flow, folder=tmp_path / "run")
    (tmp_path / "c").unlink()
    assert eligo.run(flow, folder=tmp_path / "run").begun == 1


# Inputs that nobody makes


def test_an_input_that_nobody_makes_and_that_is_not_there_is_refused_first(tmp_path: Path, capsys: Captured) -> None:
    tasks = [
        {"name": "a", "run": "touch ran", "inputs": ["here"]},
        {"name": "b", "run": "touch ran", "inputs": ["typo.txt", "other.txt"]},
        {"name": "c", "run": "touch ran", "inputs": ["third"]},
    ]
    (tmp_path / "here").touch()
    assert ran(written(tmp_path, tasks)) == 2
    told = capsys.readouterr().err
    assert "task 'b' reads 'typo.txt', which does not exist and no task writes" in told
    assert "2 more such inputs: 'other.txt' of 'b', 'third' of 'c'" in told
    assert not (tmp_path / "ran").exists()
    for name in ("typo.txt", "other.txt", "third"):
        (tmp_path / name).touch()
    assert ran(tmp_path / "flow.yaml") == 0


def test_inputs_of_tasks_that_are_done_need_not_be_there(tmp_path: Path) -> None:
    flow = written(
        tmp_path, [{"name": "a", "run": "rm source", "inputs": ["source"]}, {"name": "b", "run": "test -e go"}]
    )
    (tmp_path / "source").touch()
    assert ran(flow, "--retries", "0") == 1
    (tmp_path / "go").touch()
    assert ran(flow) == 0


# What the engine of a run may not know


def test_a_stopped_dispatcher_leaves_nothing_that_is_believed(tmp_path: Path) -> None:
    flow = written(tmp_path, pair("echo half > half; test -e go || exec sleep 60; echo whole > half"))
    process = started(flow, "--workers", "1")
    wait_for((tmp_path / "half").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    os.utime(tmp_path / "half", (1000, 1000))
    (tmp_path / "go").touch()
    assert ran(flow, "--skip-done") == 0
    assert lines(tmp_path / "used") == ["whole"]


def test_a_run_goes_on_from_the_workflow_that_it_kept(tmp_path: Path) -> None:
    flow = written(tmp_path, chain())
    assert ran(flow) == 0
    write(eligo.read(flow), tmp_path / "again.json", "json")
    assert ran(tmp_path / "again.json", "--run", str(tmp_path / "flow.yaml.run")) == 0
    assert counts(tmp_path) == [1, 1, 1]


@pytest.mark.parametrize(
    ("written_as", "read_as"), [("made", "{folder}/made"), ("{folder}/made", "made"), ("made", "made/part")]
)
def test_one_file_spelt_in_two_ways_is_refused_where_no_arc_orders_its_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written_as: str, read_as: str
) -> None:
    output, given = (name.format(folder=tmp_path) for name in (written_as, read_as))
    tasks: list[dict[str, object]] = [
        {"name": "r", "run": "true", "inputs": [given]},
        {"name": "w", "run": "mkdir made && touch made/part", "outputs": [output]},
    ]
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"tasks": tasks}))
    assert run(["run", str(path)]) == 2
    assert "list 'w' in `after`, or use the same spelling" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
    tasks[0]["after"] = ["w"]
    path.write_text(json.dumps({"tasks": tasks}))
    assert run(["run", str(path), "--quiet"]) == 0


def test_what_is_older_than_its_inputs_is_made_again_where_files_count(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    path.write_text('{"tasks": [{"name": "a", "run": "cat src > dst", "inputs": ["src"], "outputs": ["dst"]}]}')
    (tmp_path / "src").write_text("1")
    assert run(["run", str(path), "--quiet"]) == 0
    (tmp_path / "src").write_text("2")
    later = (tmp_path / "dst").stat().st_mtime_ns + 10**9
    os.utime(tmp_path / "src", ns=(later, later))
    assert run(["run", str(path), "--skip-done", "--quiet"]) == 0
    assert (tmp_path / "dst").read_text() == "2"
