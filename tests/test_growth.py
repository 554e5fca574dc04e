"""Runs that grow: tasks that tasks add, tasks that come from outside, and what is left of them after a kill."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.cli import run as command
from eligo.pages.folder_source import WatchedRun
from eligo.running.inbox import send
from running_cases import ran, started, written

LONG = 120.0  # seconds after which something that should happen will not


def adding(tasks: Sequence[Mapping[str, Any]]) -> str:
    """A command that adds tasks."""
    return f"printf %s '{json.dumps({'tasks': list(tasks)})}' > \"$ELIGO_ADD\""


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def executed(run: Path) -> set[str]:
    return set(map(str, WatchedRun(run).execution.executed))


def test_a_task_adds_tasks_that_run_after_it(tmp_path: Path) -> None:
    new = [
        {"name": "x", "after": ["a"], "run": "cat a > x", "outputs": ["x"]},
        {"name": "y", "inputs": ["x"], "run": "cat x"},
    ]
    flow = written(tmp_path, [{"name": "a", "run": f"echo hello > a; {adding(new)}"}])
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "x", "y"}
    assert (tmp_path / "x").read_text() == "hello\n"


def test_added_tasks_can_add_tasks(tmp_path: Path) -> None:
    script = tmp_path / "second.sh"
    script.write_text(adding([{"name": "z", "run": "true"}]))
    flow = written(tmp_path, [{"name": "a", "run": adding([{"name": "y", "run": f"sh {script}"}])}])
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "y", "z"}


def test_an_added_task_that_runs_nothing_is_done(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": adding([{"name": "x", "run": ":"}])}])
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "x"}


def test_an_added_task_must_make_its_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = written(tmp_path, [{"name": "a", "run": adding([{"name": "x", "run": "true", "outputs": ["x"]}])}])
    assert ran(flow, "--retries", "0") == 1
    assert "x: the task did not create 'x'" in capsys.readouterr().out


def test_added_tasks_that_need_several_cores_wait_for_them(tmp_path: Path) -> None:
    alone = "mkdir lock && sleep 0.1 && rmdir lock"
    new = [{"name": f"x{i}", "run": alone, "cores": 2} for i in range(3)]
    flow = written(tmp_path, [{"name": "a", "run": adding(new)}])
    assert ran(flow, "--workers", "2", "--retries", "0") == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"tasks": [{"name": "a", "run": "true"}]}', "task 'a' already exists"),
        ('{"tasks": [{"name": "x", "run": "true", "after": ["b"]}]}', "comes after 'b', which does not exist"),
        ('{"tasks": [{"name": "x", "run": "true", "inputs": ["gone"]}]}', "'x' reads 'gone', which does not exist"),
        ('{"tasks": [{"name": "x", "run": "true", "cores": 99}]}', "task 'x' needs 99 cores"),
        ('{"tasks": [', "line 1: "),
    ],
)
def test_a_task_whose_addition_is_refused_has_failed(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = written(
        tmp_path, [{"name": "a", "run": f"printf %s '{text}' > \"$ELIGO_ADD\""}, {"name": "c", "run": "true"}]
    )
    assert ran(flow, "--retries", "0") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "a: invalid tasks in $ELIGO_ADD: " in out
    assert why in out
    assert executed(Path(f"{flow}.run")) == {"c"}


def test_a_refused_addition_within_a_fat_task_fails_its_task_alone(tmp_path: Path) -> None:
    bad = "echo '{' > $ELIGO_ADD"
    tasks = [{"name": "a", "run": bad}, *({"name": f"b{i}", "run": "true"} for i in range(3))]
    flow = written(tmp_path, tasks)
    assert ran(flow, "--retries", "0", "--fat", "4", "--workers", "1") == 1
    assert executed(Path(f"{flow}.run")) == {"b0", "b1", "b2"}


def test_only_a_regular_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = written(
        tmp_path, [{"name": "a", "run": "mkfifo $ELIGO_ADD"}, {"name": "b", "run": "ln -s /etc/passwd $ELIGO_ADD"}]
    )
    assert ran(flow, "--retries", "0") == 1
    assert capsys.readouterr().out.count("not a regular file") == 2
    assert not executed(Path(f"{flow}.run"))


def test_what_a_failed_attempt_added_does_not_count(tmp_path: Path) -> None:
    once = f"test -e again || {{ touch again; {adding([{'name': 'x', 'run': 'true'}])}; exit 1; }}"
    flow = written(tmp_path, [{"name": "a", "run": once}])
    assert ran(flow, "--retries", "1") == 0
    assert executed(Path(f"{flow}.run")) == {"a"}


def test_the_library_runs_what_tasks_add(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": adding([{"name": "x", "run": "true"}])}])
    result = eligo.run(str(flow), workers=2)
    assert set(result.execution.executed) == {"a", "x"}


# After a stop


def test_added_tasks_are_resumed_after_a_kill(tmp_path: Path) -> None:
    new = [
        {"name": "x", "run": "test -e go || { touch began; sleep 600; }; echo x > x", "outputs": ["x"]},
        {"name": "y", "run": "cat x > y", "inputs": ["x"], "outputs": ["y"]},
    ]
    flow = written(tmp_path, [{"name": "a", "run": f"echo once >> count; {adding(new)}"}])
    process = started(flow, "--workers", "2")
    wait_for((tmp_path / "began").exists)
    process.kill()
    process.communicate()
    assert executed(Path(f"{flow}.run")) == {"a"}
    (tmp_path / "go").touch()
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "x", "y"}
    assert (tmp_path / "count").read_text() == "once\n"


def test_what_a_killed_attempt_added_does_not_count(tmp_path: Path) -> None:
    once = f"test -e go || {{ {adding([{'name': 'x', 'run': 'true'}])}; touch began; sleep 600; }}"
    flow = written(tmp_path, [{"name": "a", "run": once}])
    process = started(flow, "--workers", "1")
    wait_for((tmp_path / "began").exists)
    process.kill()
    process.communicate()
    (tmp_path / "go").touch()
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a"}


def test_a_task_that_is_done_again_may_add_the_same_again(tmp_path: Path) -> None:
    new = [{"name": "x", "run": "cat a > x", "inputs": ["a"], "outputs": ["x"]}]
    flow = written(tmp_path, [{"name": "a", "run": f"echo a >> a; {adding(new)}", "outputs": ["a"]}])
    assert ran(flow) == 0
    (tmp_path / "a").unlink()
    (tmp_path / "x").unlink()
    assert ran(flow) == 0
    assert (tmp_path / "x").read_text() == "a\n"
    assert executed(Path(f"{flow}.run")) == {"a", "x"}


def test_added_tasks_stay_where_the_file_changes(tmp_path: Path) -> None:
    first = {"name": "a", "run": adding([{"name": "x", "run": "echo x >> x", "after": ["a"]}])}
    flow = written(tmp_path, [first])
    assert ran(flow) == 0
    written(tmp_path, [first, {"name": "b", "run": "echo b > b"}])
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "b", "x"}
    assert (tmp_path / "x").read_text() == "x\n"


def test_added_tasks_that_no_longer_fit_the_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = written(tmp_path, [{"name": "a", "run": adding([{"name": "x", "run": "true", "after": ["a"]}])}])
    assert ran(flow) == 0
    written(tmp_path, [{"name": "b", "run": "true"}])
    assert ran(flow) == 2
    assert "tasks added to this run do not fit the changed workflow" in capsys.readouterr().err


# From outside


def add(run: Path, folder: Path, tasks: Sequence[Mapping[str, Any]]) -> int:
    return command(["add", str(run), str(written(folder, tasks, "more.yaml"))])


def test_tasks_come_to_a_run_that_is_under_way(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch began; until test -e go; do sleep 0.05; done; echo a > a"}])
    process = started(flow, "--workers", "2")
    wait_for((tmp_path / "began").exists)
    assert (
        add(
            Path(f"{flow}.run"),
            tmp_path,
            [{"name": "x", "run": "touch go"}, {"name": "y", "run": "cat a", "after": ["a"]}],
        )
        == 0
    )
    assert process.wait(LONG) == 0
    process.communicate()
    assert executed(Path(f"{flow}.run")) == {"a", "x", "y"}


def test_tasks_that_do_not_fit_a_run_under_way_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch began; until test -e go; do sleep 0.05; done"}])
    process = started(flow, "--workers", "2")
    wait_for((tmp_path / "began").exists)
    assert add(Path(f"{flow}.run"), tmp_path, [{"name": "a", "run": "true"}]) == 2
    assert "task 'a' already exists" in capsys.readouterr().err
    (tmp_path / "go").touch()
    assert process.wait(LONG) == 0
    process.communicate()
    assert not os.listdir(f"{flow}.run/inbox")


def test_tasks_come_to_a_run_that_stopped(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "echo a > a", "outputs": ["a"]}])
    assert ran(flow) == 0
    assert add(Path(f"{flow}.run"), tmp_path, [{"name": "x", "run": "cat a > x", "inputs": ["a"]}]) == 0
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "x"}


def test_what_is_left_in_the_inbox_is_taken_when_the_run_is_resumed(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert ran(flow) == 0
    send(f"{flow}.run", '{"tasks": [{"name": "x", "run": "true"}]}')
    assert ran(flow) == 0
    assert executed(Path(f"{flow}.run")) == {"a", "x"}


def test_an_addition_that_is_no_workflow_names_its_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert ran(flow) == 0
    (tmp_path / "bad.json").write_text('{"tasks": [\n{"name": "x", "run": "true", "colour": "red"}]}')
    assert command(["add", str(flow), str(tmp_path / "bad.json")]) == 2
    assert "bad.json:2: " in capsys.readouterr().err


def test_a_looker_sees_what_was_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = written(tmp_path, [{"name": "a", "run": adding([{"name": "x", "run": "echo hello"}])}])
    assert ran(flow) == 0
    capsys.readouterr()
    assert command(["log", str(flow), "x"]) == 0
    assert capsys.readouterr().out == "hello\n"
