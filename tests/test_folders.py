"""Folders of runs that are copied, moved and refused: each run writes into its own, and what it was stays known."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eligo.cli import run
from eligo.engines.sessions import marked_processes
from eligo.pages.folder_source import WatchedRun
from eligo.running.folder import MARK, kept_workflow
from eligo.stores import Store
from running_cases import COMMAND, downgrade, lines, ran, started, written

Captured = pytest.CaptureFixture[str]
PATIENT = 60.0
#: `b` fails until there is a file `go` where it runs
TASKS: tuple[dict[str, Any], ...] = (
    {"name": "a", "run": "echo a >> ran; echo said"},
    {"name": "b", "run": "echo b >> ran; test -e go", "after": ["a"]},
)


def until(holds: Callable[[], object]) -> None:
    """Wait for something, however loaded the machine is."""
    end = time.monotonic() + PATIENT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def mark_of(project: Path) -> str:
    return kept_workflow(project / "flow.yaml.run")[0]["mark"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a run of which one task is left."""
    place = tmp_path / "first"
    place.mkdir()
    assert ran(written(place, TASKS), "--retries", "0") == 1
    assert lines(place / "ran") == ["a", "b"]
    return place


def older(project: Path) -> None:
    """Make a run one of an earlier eligo: absolute paths, no place, no check sums."""
    more = "DELETE FROM fact WHERE name IN ('place', 'workflow'); PRAGMA user_version = 2;"
    downgrade(project / "flow.yaml.run" / "run.db", more)


@pytest.mark.parametrize("by", ["file", "resume"])
@pytest.mark.parametrize("aged", [False, True])
def test_a_copy_writes_into_itself_and_has_a_mark_of_its_own(project: Path, by: str, aged: bool) -> None:
    if aged:
        older(project)
    copy = project.parent / "second"
    shutil.copytree(project, copy)
    (copy / "go").touch()
    mark = mark_of(project)
    words = [str(copy / "flow.yaml")] if by == "file" else ["--resume", str(copy / "flow.yaml.run")]
    assert run(["run", *words, "--workers", "2"]) == 0
    assert (lines(project / "ran"), lines(copy / "ran")) == (["a", "b"], ["a", "b", "b"])
    assert mark_of(project) == mark != mark_of(copy)
    assert WatchedRun(project / "flow.yaml.run").counts["done"] == 1
    assert run(["run", "--resume", str(copy / "flow.yaml.run")]) == 0
    assert mark_of(copy) != mark


@pytest.mark.parametrize("aged", [False, True])
def test_a_moved_project_goes_on_where_it_is_now(project: Path, aged: bool) -> None:
    if aged:
        older(project)
    mark, moved = mark_of(project), project.parent / "elsewhere" / "deeper"
    moved.parent.mkdir()
    project.rename(moved)
    (moved / "go").touch()
    assert run(["run", "--resume", str(moved / "flow.yaml.run")]) == 0
    assert (lines(moved / "ran"), mark_of(moved)) == (["a", "b", "b"], mark)
    assert not project.exists()


def test_a_copy_that_was_opened_and_refused_is_still_on_its_own(project: Path) -> None:
    copy = project.parent / "second"
    shutil.copytree(project, copy)
    (copy / "go").touch()
    assert ran(copy / "flow.yaml", "--policy", "nonsense") == 2
    mark = mark_of(copy)
    assert run(["run", "--resume", str(copy / "flow.yaml.run")]) == 0
    assert (lines(project / "ran"), lines(copy / "ran")) == (["a", "b"], ["a", "b", "b"])
    assert mark_of(copy) == mark != mark_of(project)


def test_a_project_that_was_moved_away_and_copied_back_is_two_runs(project: Path) -> None:
    away = project.parent / "away"
    project.rename(away)
    shutil.copytree(away, project)
    for place in (project, away):
        (place / "go").touch()
        assert run(["run", "--resume", str(place / "flow.yaml.run")]) == 0
        assert lines(place / "ran") == ["a", "b", "b"]
    assert mark_of(project) != mark_of(away)


def test_a_folder_for_tasks_moves_with_its_copy(tmp_path: Path) -> None:
    place = tmp_path / "first"
    (place / "work").mkdir(parents=True)
    path = written(place, TASKS)
    assert ran(path, "--dir", str(place / "work"), "--retries", "0") == 1
    copy = tmp_path / "second"
    shutil.copytree(place, copy)
    assert ran(copy / "flow.yaml", "--retries", "0") == 1
    assert (lines(place / "work/ran"), lines(copy / "work/ran")) == (["a", "b"], ["a", "b", "b"])


def test_a_run_that_is_moved_away_from_its_project_still_runs_there(project: Path) -> None:
    (project / "go").touch()
    moved = project.parent / "kept" / "x.run"
    moved.parent.mkdir()
    (project / "flow.yaml.run").rename(moved)
    assert run(["run", "--resume", str(moved)]) == 0
    assert lines(project / "ran") == ["a", "b", "b"]


def test_where_tasks_should_run_is_asked_for_where_it_is_not_known(project: Path, capsys: Captured) -> None:
    moved = project.parent / "kept" / "x.run"
    moved.parent.mkdir()
    (project / "flow.yaml.run").rename(moved)
    (project / "flow.yaml").unlink()
    assert run(["run", "--resume", str(moved)]) == 2  # neither of two folders has the file
    assert str(project) in (said := capsys.readouterr().err)
    assert "choose another with --dir DIR" in said
    (project / "go").touch()
    assert run(["run", "--resume", str(moved), "--dir", str(project)]) == 0
    assert lines(project / "ran") == ["a", "b", "b"]
    assert lines(moved.parent / "ran") == []


def test_a_folder_that_is_not_there_is_refused_before_anything_runs(project: Path, capsys: Captured) -> None:
    assert ran(project / "flow.yaml", "--dir", str(project / "nowhere")) == 2
    assert "no such folder" in capsys.readouterr().err
    assert lines(project / "ran") == ["a", "b"]


def test_the_verbs_that_look_work_in_copies_and_after_a_move(project: Path, capsys: Captured) -> None:
    copy = project.parent / "second"
    shutil.copytree(project, copy)
    shutil.rmtree(project)
    folder = str(copy / "flow.yaml.run")
    (copy / "flow.yaml.run" / "report.html").unlink()
    capsys.readouterr()
    for words in (
        ["status", folder],
        ["why", folder, "b"],
        ["log", folder, "a"],
        ["top", folder, "--once"],
        ["report", folder],
    ):
        assert run(words) == (1 if words[0] == "status" else 0)
    said = capsys.readouterr()
    assert str(project) not in said.out + said.err
    assert "said" in said.out
    assert (copy / "flow.yaml.run" / "report.html").exists()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """A project whose run is under way, with a task that waits."""
    place = tmp_path / "first"
    place.mkdir()
    path = written(place, [{"name": "a", "run": "echo $$ >> pids; while [ ! -e go ]; do sleep 0.1; done"}])
    with started(path, "--workers", "1") as process:
        try:
            until(lambda: lines(place / "pids") and WatchedRun(place / "flow.yaml.run").counts["running"])
            yield place
        finally:
            (place / "go").touch()
            process.send_signal(signal.SIGTERM)
            process.communicate()


def test_a_copy_of_a_live_run_leaves_the_tasks_of_the_original_alone(live: Path) -> None:
    copy = live.parent / "second"
    shutil.copytree(live, copy)
    (copy / "go").touch()
    pid = int(lines(live / "pids")[0])
    assert ran(copy / "flow.yaml") == 0
    os.kill(pid, 0)
    assert pid in marked_processes(MARK, [mark_of(live)])
    assert len(lines(copy / "pids")) == 2


# A run that is refused


@pytest.mark.parametrize(
    ("edit", "options"),
    [
        ([*TASKS, {"name": "c", "after": ["b"]}], ()),  # runs nothing
        ([{"name": "z", "run": "true", "cores": 99}], ()),
        ([{"name": "z", "run": "true"}], ("--policy", "nonsense")),
        ([{"name": "z", "run": "true"}], ("--dir", "/nowhere/at/all")),
        ([{"name": "z", "run": "true"}], ("--on", "abacus")),
    ],
)
def test_a_refused_edit_leaves_the_run_as_it_was(
    project: Path, edit: list[dict[str, object]], options: tuple[str, ...], capsys: Captured
) -> None:
    folder = project / "flow.yaml.run"
    kept, before = (folder / "workflow.json").read_bytes(), WatchedRun(folder)
    assert ran(written(project, edit), *options) == 2
    assert "internal" not in capsys.readouterr().err
    after = WatchedRun(folder)
    assert (folder / "workflow.json").read_bytes() == kept
    assert (after.counts, after.facts, after.execution.codes) == (before.counts, before.facts, before.execution.codes)
    assert run(["status", str(folder)]) == 1
    assert json.loads(kept)


@pytest.mark.parametrize("step", ["begin", "remember", "open_session"])
def test_a_kill_while_a_run_begins_leaves_what_was_done(
    project: Path, step: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Whatever was written before the kill, the run can be looked at or is told to be run again, and goes on."""

    remember = Store.remember

    def killed(store: Store, *args: object, **facts: str) -> None:
        if step != "remember" or "workflow" not in facts:
            raise KeyboardInterrupt
        remember(store, **facts)  # the check sum, which is kept before the file is replaced

    with monkeypatch.context() as patch:
        patch.setattr(Store, step, killed)
        changed = ({"name": "c", "run": "true"},) if step == "begin" else ()
        assert ran(written(project, [*TASKS, *changed])) == 130
    capsys.readouterr()
    code = run(["status", str(project / "flow.yaml")])
    said = capsys.readouterr().err
    assert code == 1 or (code == 2 and "run the workflow's file again" in said)
    (project / "go").touch()
    assert ran(project / "flow.yaml") == 0
    assert lines(project / "ran") == ["a", "b", "b"]


def test_a_first_run_that_is_refused_is_told_as_none(tmp_path: Path, capsys: Captured) -> None:
    assert ran(written(tmp_path, [{"name": "a"}])) == 2
    capsys.readouterr()
    assert run(["status", str(tmp_path / "flow.yaml")]) == 2
    assert "not run yet" in capsys.readouterr().err


def test_a_run_is_resumed_as_its_file_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--resume without FILE reads it with the options of the first time: here every arc is turned round."""
    monkeypatch.chdir(tmp_path)
    tasks: list[dict[str, object]] = [
        {"name": "late", "run": "test -e early.txt"},
        {"name": "early", "run": "false", "after": ["late"]},
    ]
    Path("flow.json").write_text(json.dumps({"tasks": tasks}))
    assert run(["run", "flow.json", "--reverse", "--retries", "0", "--quiet"]) == 1
    tasks[1]["run"] = "touch early.txt"
    Path("flow.json").write_text(json.dumps({"tasks": tasks}))
    assert run(["run", "--resume", "flow.json.run", "--quiet"]) == 0
    assert run(["run", "--resume", "flow.json.run", "--quiet"]) == 0


def test_copies_of_a_run_whose_original_is_gone_leave_each_other_alone(live: Path) -> None:
    """The run goes on in a folder that was moved, and a copy of that knows it only by marks."""
    moved, copy = live.parent / "moved", live.parent / "third"
    live.rename(moved)
    shutil.copytree(moved, copy)
    (copy / "go").touch()
    pid = int(lines(moved / "pids")[0])
    assert ran(copy / "flow.yaml") == 0
    os.kill(pid, 0)
    assert mark_of(copy) != mark_of(moved)
    moved.rename(live)


def test_another_folder_for_tasks_is_refused_once_some_are_done(project: Path, capsys: Captured) -> None:
    (project.parent / "elsewhere").mkdir()
    assert ran(project / "flow.yaml", "--dir", str(project.parent / "elsewhere")) == 2
    assert "finished tasks of this run ran in" in capsys.readouterr().err
    assert ran(project / "flow.yaml", "--dir", str(project), "--retries", "0") != 2


def test_a_run_is_resumed_with_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.json").write_text('{"tasks": [{"name": "a", "run": "echo >> tries; test -e go"}]}')
    assert run(["run", "flow.json", "--retries", "0", "--workers", "1", "--policy", "fifo", "--quiet"]) == 1
    assert run(["run", "--resume", "flow.json.run", "--quiet"]) == 1
    assert "resuming with the options of the run: --workers 1 --policy fifo --retries 0" in capsys.readouterr().err
    assert len(lines(Path("tries"))) == 2
    Path("go").touch()
    assert run(["run", "--resume", "flow.json.run", "--policy", "lifo", "--quiet"]) == 0
    assert "--policy" not in capsys.readouterr().err
    assert [session.policy for session in WatchedRun(Path("flow.json.run")).sessions] == ["fifo", "fifo", "lifo"]


def test_the_shell_that_resumes_a_run_is_not_ended_as_a_stray_of_it(project: Path) -> None:
    """A task may have started it, such as one of tmux: it has the mark of the run in its environment."""
    (project / "go").touch()
    command = [*COMMAND, "run", str(project / "flow.yaml"), "--retries", "0", "--quiet"]
    shell = ["/bin/sh", "-c", f"{shlex.join(command)}; echo alive"]
    environment = os.environ | {MARK: mark_of(project)}
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout.endswith("alive\n"), done


def test_a_first_run_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    flow = tmp_path / "m.yaml"
    flow.write_text("tasks: [{name: a, run: 'true', inputs: [missing.txt]}]")
    assert run(["run", str(flow)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["m.yaml"]
