"""Runs: what is done, kept, gone on with and refused. Slow faults, such as fifty kills, are in tests/faults."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eligo.allocating import Ask, allocator
from eligo.cli import run as cli
from eligo.cli.live_display import until_closed
from eligo.dag import Dag
from eligo.engines import Ending, Function, Job
from eligo.engines.command_line import words_of
from eligo.engines.futures import FutureEngine
from eligo.engines.job_run import ending_of, perform
from eligo.engines.local import LocalEngine
from eligo.engines.room import Wants
from eligo.engines.worker import Performed
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.formats import read, write
from eligo.planning import Plan
from eligo.planning import plan as make_plan
from eligo.running import Commands, Retries, RunFolder, Runner, Settings
from eligo.running.api import run
from eligo.running.commands import log_name
from eligo.stores import Attempt, Store, read_run
from eligo.work.demands import Demand
from eligo.workflow import Task, Workflow
from running_cases import COMMAND, attempts, completed, lines, ran, started, state_of, written

Captured = pytest.CaptureFixture[str]


# What is run, and what is kept of it


def test_tasks_run_after_those_they_need(tmp_path: Path) -> None:
    flow = written(tmp_path, [
        {"name": "late", "run": "echo late >> all", "after": ["early"]},
        {"name": "early", "run": "echo early >> all"},
    ])  # fmt: skip
    assert ran(flow) == 0
    assert lines(tmp_path / "all") == ["early", "late"]
    assert completed(tmp_path / "flow.yaml.run") == {"early": 1, "late": 1}


def test_a_second_run_does_nothing_and_says_so(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "echo >> all"}])
    assert (ran(flow), ran(flow)) == (0, 0)
    assert len(lines(tmp_path / "all")) == 1
    assert "Nothing to do: the only task is already done" in capsys.readouterr().out


def test_a_changed_file_keeps_what_did_not_change(tmp_path: Path, capsys: Captured) -> None:
    def tasks(word: str, *more: str) -> list[dict[str, Any]]:
        say = {"a": "a", "b": word, "c": "c", "d": "d"} | {name: name for name in more}
        needs = {"c": ["b"], "d": ["a"]}
        return [{"name": n, "run": f"echo {w} >> all", "after": needs.get(n, [])} for n, w in say.items()]

    flow = written(tmp_path, [*tasks("b"), {"name": "old", "run": "echo old >> all"}])
    assert ran(flow) == 0
    (tmp_path / "all").unlink()
    written(tmp_path, tasks("other", "e"))
    assert ran(flow) == 0
    assert sorted(lines(tmp_path / "all")) == ["c", "e", "other"]
    told = capsys.readouterr().err
    assert "2 already done, 2 changed since and will run again, 1 new, 1 removed" in told
    assert completed(tmp_path / "flow.yaml.run") == dict.fromkeys("abcde", 1)


def test_attempts_stay_with_their_tasks_when_the_file_changes_twice(tmp_path: Path) -> None:
    with_store = Store(tmp_path / "run.db")
    with_store.begin({"a": b"1", "b": b"2"})
    with_store.add([], [Attempt("", 1 + task, task, 1, "x", "", 0.0, 1.0, "accepted", code=0) for task in (0, 1)])
    with_store.flush()
    with_store.begin({"b": b"2"})
    with_store.begin({"c": b"3", "d": b"4", "b": b"2"})
    tasks = list(with_store.tasks())
    assert [tasks[a.task] if a.task < len(tasks) else None for a in read_run(with_store.path).attempts] == [None, "b"]
    with_store.close()


def test_resuming_without_the_file_runs_tasks_where_they_ran(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "test -e go && pwd > where"}])
    assert ran(flow, "--retries", "0") == 1
    (tmp_path / "go").touch()
    flow.unlink()
    assert subprocess.run([*COMMAND, "run", "--resume", f"{flow}.run"], check=False, cwd="/").returncode == 0
    assert lines(tmp_path / "where") == [str(tmp_path.resolve())]


# Names and words


ODD = [
    "with space", "quote'\"s", "$(touch harm)", "`touch harm`", "../../up", "..", ".hidden", "ünïcödé ☂", "a/b", "%2F",
    "-rf", "x" * 300, "y" * 299 + "1", "y" * 299 + "2", "semi;colon", "CON", "a.2", "~", "*",
]  # fmt: skip


def test_odd_names_stay_inside_the_folder_of_logs(tmp_path: Path) -> None:
    show = (sys.executable, "-c", "import os; print(os.environ['ELIGO_TASK'])")
    details = {name: Task(name=name, command=show) for name in ODD}
    flow = Workflow(Dag.from_arcs([], tasks=ODD), details)
    inside = tmp_path / "deep" / "er" / "run"
    inside.parent.mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if inside not in path.parents}
    from eligo import run

    assert run(flow, workers=2, folder=inside).ok
    assert {path for path in tmp_path.rglob("*") if inside not in path.parents} - {inside} == before
    logs = [path.read_text("utf-8") for path in (inside / "logs").rglob("*.out")]
    assert sorted(logs) == sorted(f"{name}\n" for name in ODD)


def test_names_of_logs_differ_for_every_task_and_attempt(tmp_path: Path) -> None:
    names = [*ODD, "a", "a.1", "A", "a%2E2", "a~2"]
    commands = Commands(Workflow(Dag.from_arcs([], tasks=names)), ".", str(tmp_path))
    found = [commands.log(name, attempt)[0] for name in names for attempt in (1, 2, 11)]
    assert len(set(found)) == len(found)
    assert all(len(os.path.basename(path)) < 200 and os.sep not in log_name(name) for path in found for name in names)


def test_words_reach_the_program_byte_by_byte(tmp_path: Path) -> None:
    words = ["", " ", "a b", "$HOME", "`x`", "'", '"', "\\", "*", "~", "ü☂", "\t", "--", "-n", "a\nb", "%s", "!", "#"]
    tell = "import sys, os; open('argv', 'wb').write(b'\\0'.join(os.fsencode(w) for w in sys.argv[1:]))"
    flow = written(tmp_path, [{"name": "a", "run": [sys.executable, "-c", tell, *words]}])
    assert ran(flow) == 0
    assert (tmp_path / "argv").read_bytes() == b"\0".join(word.encode() for word in words)


@pytest.mark.parametrize("line", ["echo a b", "echo 'a  b' c", "echo $((1+1))", "x=1; echo $x", "echo a\\ b", "echo ~"])
def test_a_line_means_what_a_shell_says(line: str, tmp_path: Path) -> None:
    ours = subprocess.run(words_of(line), capture_output=True, check=True).stdout
    assert ours == subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout


def test_a_name_with_a_newline_is_refused_at_reading(tmp_path: Path, capsys: Captured) -> None:
    assert ran(written(tmp_path, [{"name": "a\nb", "run": "true"}])) == 2
    assert "control character" in capsys.readouterr().err


def test_a_script_without_a_first_line_runs_as_in_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "step"
    script.write_text("echo done $1 > made\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    flow = written(tmp_path, [{"name": "a", "run": "./step x"}])
    assert ran(flow) == 0
    assert lines(tmp_path / "made") == ["done x"]
    os.unlink(tmp_path / "made")
    assert subprocess.run([*COMMAND, "run", "flow.yaml", "--run", "other"], check=False, cwd=tmp_path).returncode == 0
    assert lines(tmp_path / "made") == ["done x"]


def test_signals_mean_to_tasks_what_they_mean_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flow = written(tmp_path, [{"name": "a", "run": "yes | head -1 > out", "shell": "sh"}])
    assert ran(flow) == 0
    assert not (tmp_path / "flow.yaml.run" / "logs" / "000" / "a.err").exists()


# What goes wrong in tasks


def test_failures_are_tried_again_and_told(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [
        {"name": "flaky", "run": "echo >> tries; test $(wc -l < tries) = 2"},
        {"name": "bad", "run": "echo why >&2; exit 3"},
        {"name": "below", "run": "touch below", "after": ["bad"]},
    ])  # fmt: skip
    assert ran(flow, "--retries", "1") == 1
    told = capsys.readouterr().out
    assert "1 of 3 tasks done, 1 failed, 1 blocked" in told
    assert "bad: exit code 3, 2 attempts" in told
    assert not (tmp_path / "below").exists()
    run = tmp_path / "flow.yaml.run"
    assert [each["code"] for each in attempts(run) if each["name"] == "bad"] == [3, 3]
    assert lines(run / "logs" / "000" / "bad.err") == ["why"]
    assert lines(run / "logs" / "000" / "bad~2.err") == ["why"]


def test_a_failed_task_is_tried_again_by_the_next_run(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "test -e ready"}])
    assert ran(flow, "--retries", "0") == 1
    (tmp_path / "ready").touch()
    assert ran(flow, "--retries", "0") == 0


WAITING = "echo >> tries; test $(wc -l < tries) = 1 || test -e go || { touch waits; sleep 600; }; false"


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM])
def test_a_stop_gives_no_task_more_retries(way: int, tmp_path: Path) -> None:
    """It fails once before, so that one retry remains of two; once all are used up, the next run grants them again."""
    flow = _stopped_at_the_second_attempt(tmp_path, way)
    assert ran(flow) == 1
    assert len(lines(tmp_path / "tries")) == 4  # the attempt that was interrupted is no failure
    assert ran(flow) == 1
    assert len(lines(tmp_path / "tries")) == 7


def test_a_changed_file_gives_all_retries_again(tmp_path: Path) -> None:
    _stopped_at_the_second_attempt(tmp_path, signal.SIGKILL)
    assert ran(written(tmp_path, [{"name": "a", "run": "echo >> tries; exit 2"}])) == 1
    assert len(lines(tmp_path / "tries")) == 5


def _stopped_at_the_second_attempt(place: Path, way: int) -> Path:
    flow = written(place, [{"name": "a", "run": WAITING}])
    with started(flow, "--workers", "1") as run:
        _until((place / "waits").exists)
        run.send_signal(way)
        run.communicate(timeout=240)
    assert len(lines(place / "tries")) == 2
    (place / "go").touch()
    return flow


def test_waits_between_tries_double() -> None:
    from random import Random

    waits = [Retries(first=1.0).wait(failures, Random(1)) for failures in range(1, 6)]
    assert all(2 ** (k - 1) / 2 <= wait <= 2 ** (k - 1) for k, wait in enumerate(waits, 1))


def test_after_too_many_failures_nothing_more_is_begun(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": f"t{i}", "run": "false"} for i in range(30)])
    assert ran(flow, "--retries", "0", "--max-failures", "3") == 1
    assert 3 <= len(attempts(tmp_path / "flow.yaml.run")) <= 4
    assert "--resume" in capsys.readouterr().err


def test_a_task_that_takes_too_long_is_ended_with_all_it_began(tmp_path: Path, capsys: Captured) -> None:
    stubborn = "trap '' TERM; (trap '' TERM; sleep 61 & sleep 62) & sleep 63; sleep 64"
    flow = written(tmp_path, [{"name": "hung", "run": stubborn}, {"name": "well", "run": "true"}])
    began = time.monotonic()
    assert ran(flow, "--retries", "0", "--timeout", "0.3") == 1
    assert 5 < time.monotonic() - began < 50
    assert "hung: took longer than 0.3 s" in capsys.readouterr().out
    assert _sleepers("61", "62", "63", "64") == []


def test_what_a_task_leaves_behind_is_ended(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "sleep 71 & (sleep 72 &) ; exit 0"}])
    assert ran(flow) == 0
    assert _sleepers("71", "72") == []


def _sleepers(*seconds: str) -> list[bytes]:
    """The processes that sleep so long."""
    wanted = [b"sleep\0" + each.encode() + b"\0" for each in seconds]
    found = [Path(place, "cmdline") for place in Path("/proc").glob("[0-9]*")]
    return [text for text in map(_bytes, found) if text in wanted]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_task_that_is_killed_failed(tmp_path: Path, capsys: Captured) -> None:
    assert ran(written(tmp_path, [{"name": "a", "run": "kill -9 $$"}]), "--retries", "0") == 1
    assert "a: ended by SIGKILL" in capsys.readouterr().out


def test_programs_that_are_not_there_are_told(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": ["/no/such/program"]}, {"name": "b", "run": ["true"]}])
    assert ran(flow, "--retries", "0") == 1
    assert "cannot run '/no/such/program': No such file or directory" in capsys.readouterr().out


# What is asked for


def test_what_is_newer_than_its_inputs_is_left_out(tmp_path: Path) -> None:
    flow = written(tmp_path, [
        {"name": "a", "run": "echo >> ran_a; touch a", "inputs": ["source"], "outputs": ["a"]},
        {"name": "b", "run": "echo >> ran_b; touch b", "inputs": ["a"], "outputs": ["b"], "after": ["a"]},
        {"name": "c", "run": "echo >> ran_c"},
    ])  # fmt: skip
    for age, name in enumerate(("b", "a", "source")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert ran(flow, "--skip-done") == 0
    assert [name for name in "abc" if (tmp_path / f"ran_{name}").exists()] == ["c"]
    os.utime(tmp_path / "source", (2000, 2000))
    assert ran(flow, "--skip-done", "--run", str(tmp_path / "second")) == 0
    assert [len(lines(tmp_path / f"ran_{name}")) for name in "abc"] == [1, 1, 2]


def test_what_was_left_out_is_kept(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "echo >> ran", "outputs": ["made"]}])
    (tmp_path / "made").touch()
    assert (ran(flow, "--skip-done"), ran(flow)) == (0, 0)
    assert not (tmp_path / "ran").exists()


def test_never_more_cores_than_workers(tmp_path: Path) -> None:
    sizes = [1, 2, 3, 0.5, 0.1, 0.1, 0.7, 3, 2, 1, 0.5, 0.2]
    flow = written(tmp_path, [{"name": f"t{i}", "run": "sleep 0.05", "cores": c} for i, c in enumerate(sizes)])
    assert ran(flow, "--workers", "3") == 0
    found = [
        (each["began"], each["ended"], sizes[int(each["name"][1:])]) for each in attempts(tmp_path / "flow.yaml.run")
    ]
    for moment in (began for began, _, _ in found):
        assert sum(cores for began, ended, cores in found if began <= moment < ended) <= 3 + 1e-9


def test_a_task_that_wants_more_cores_than_there_are_is_refused_first(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "small", "run": "touch ran"}, {"name": "big", "run": "true", "cores": 3}])
    assert ran(flow) == 2
    assert "task 'big' needs 3 cores, but only 2 are available" in (told := capsys.readouterr().err)
    assert "--workers N" in told
    assert not (tmp_path / "ran").exists()
    assert ran(flow, "--workers", "3") == 0


def test_tasks_that_run_nothing_are_refused_first(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch ran"}, {"name": "b"}, {"name": "c"}])
    assert ran(flow) == 2
    assert "task 'b' (and 1 more) has no command" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "0"], "workers must be a positive integer, got 0"),
        (["--workers", "-1"], "workers must be a positive integer, got -1"),
        (["--fat", "0"], "--fat must be a positive integer, got 0"),
        (["--timeout", "0"], "timeout must be positive, got 0.0"),
        (["--retries", "-1"], "retries"),
        (["--max-failures", "0"], "--max-failures must be at least 1, got 0"),
        (["--policy", "roulette"], "unknown policy 'roulette'"),
        (["--on", "mars"], "unknown engine 'mars'"),
        (["--rehearse", "0"], "--rehearse must be positive, got 0.0"),
    ],
)
def test_wrong_options_are_told_in_a_line(options: Sequence[str], words: str, tmp_path: Path, capsys: Captured) -> None:
    assert ran(written(tmp_path, [{"name": "a", "run": "touch ran"}]), *options) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "internal" not in told
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("engine", "there", "program"),
    [
        ("slurm", (), "sbatch"),
        ("slurm", ("sbatch", "squeue"), "scancel"),
        ("slurm-steps", (), "srun"),
        ("htcondor", (), "condor_submit"),
        ("htcondor-dagman", (), "condor_submit_dag"),
    ],
)
def test_an_engine_without_its_programs_is_refused_first(  # noqa: PLR0913, PLR0917
    engine: str, there: Sequence[str], program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "bin").mkdir()
    for name in there:
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = written(tmp_path, [{"name": "a", "run": ["/bin/sh", "-c", "echo >> ran"]}])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert ran(path, "--on", engine) == 2
    said = capsys.readouterr().err
    assert f"engine {engine} needs the program {program}, which is not on the PATH" in said
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "flow.yaml.run" / "workflow.json").exists()


def test_no_tasks_are_done_at_once(tmp_path: Path) -> None:
    assert ran(written(tmp_path, [])) == 0


@pytest.mark.parametrize("options", [["--fat", "4"], ["--batch"], ["--policy", "cluster", "--fat", "3"]])
def test_every_way_of_handing_out_does_all(options: Sequence[str], tmp_path: Path) -> None:
    flow = written(tmp_path, [
        {"name": f"t{i}", "run": f"echo >> out{i}", "after": [f"t{i // 2}"] if i > 1 else []} for i in range(1, 30)
    ])  # fmt: skip
    assert ran(flow, *options) == 0
    assert all(len(lines(tmp_path / f"out{i}")) == 1 for i in range(1, 30))


# Folders


def test_a_run_is_not_kept_in_a_file(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    (tmp_path / "flow.yaml.run").write_text("mine")
    assert ran(flow) == 2
    assert "not a folder" in capsys.readouterr().err


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert ran(flow, "--run", str(tmp_path)) == 2
    assert "not a run folder, and not empty" in capsys.readouterr().err


def test_a_folder_whose_making_was_cut_off_is_taken(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    (tmp_path / "flow.yaml.run" / "logs").mkdir(parents=True)
    (tmp_path / "flow.yaml.run" / "run.db.lock").touch()
    assert ran(flow) == 0


@pytest.mark.parametrize("place", ["logs", "logs/000", "logs/running"])
def test_logs_that_cannot_be_kept_are_told(place: str, tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch ran"}])
    run = tmp_path / "flow.yaml.run"
    (run / place).parent.mkdir(parents=True)
    (run / place).write_text("in the way")
    (run / "run.db").touch()
    assert ran(flow) == 2
    told = capsys.readouterr().err
    assert "cannot write" in told
    assert "internal" not in told
    assert not (tmp_path / "ran").exists()


def test_a_second_run_at_the_same_time_is_refused(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "echo >> began; sleep 3"}])
    with started(flow) as first:
        _until(lambda: lines(tmp_path / "began"))
        assert ran(flow) == 2
        assert "another process is already executing this run" in capsys.readouterr().err
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=240)
    assert len(lines(tmp_path / "began")) == 1


def _until(what: Any, seconds: float = 240.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Stops


def test_ctrl_c_lets_what_runs_end_and_begins_nothing_more(tmp_path: Path) -> None:
    stay = "while test ! -e go; do sleep 0.05; done"
    tasks = [{"name": f"t{i}", "run": f"touch began{i}; {stay}; echo >> ended"} for i in range(6)]
    flow = written(tmp_path, tasks)
    with started(flow, "--workers", "2") as run:
        _until(lambda: len([*tmp_path.glob("began*")]) == 2)
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        err = run.stderr.readline()
        (tmp_path / "go").touch()
        out, rest = run.communicate(timeout=240)
        err += rest
    assert run.returncode == 130
    # a process may have begun while the run is still noting that it has
    assert re.search("no more tasks are started; waiting for (1 running task|2 running tasks);", err)
    assert f"eligo run --resume {flow}.run" in err
    assert "2 of 6 tasks done" in out
    assert len(lines(tmp_path / "ended")) == len(list(tmp_path.glob("began*"))) == 2
    assert ran(flow, "--workers", "6") == 0
    assert len(lines(tmp_path / "ended")) == 6


@pytest.mark.parametrize("signals", [[signal.SIGINT, signal.SIGINT], [signal.SIGTERM]])
def test_a_second_ctrl_c_or_sigterm_stops_what_runs(signals: Sequence[int], tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": f"t{i}", "run": f"touch began{i}; test -e go || sleep 30"} for i in range(3)])
    with started(flow, "--workers", "2") as run:
        _until((tmp_path / "began1").exists)
        for number in signals:
            run.send_signal(number)
            time.sleep(0.2)
        _, err = run.communicate(timeout=240)
    assert run.returncode == 130
    assert f"eligo run --resume {flow}.run" in err
    assert completed(tmp_path / "flow.yaml.run") == {}
    (tmp_path / "go").touch()
    assert ran(flow) == 0


def test_what_outlived_a_killed_run_is_ended_before_it_goes_on(tmp_path: Path) -> None:
    body = "echo begin $$ >> log; trap '' TERM; while test ! -e go; do sleep 0.05; done; echo end $$ >> log"
    flow = written(tmp_path, [{"name": "a", "run": body}])
    with started(flow) as run:
        _until(lambda: lines(tmp_path / "log"))
        run.kill()
    (first,) = lines(tmp_path / "log")
    assert Path("/proc", first.split()[1]).exists()
    with started(flow) as run:
        _until(lambda: len(lines(tmp_path / "log")) == 2)
        assert not Path("/proc", first.split()[1], "exe").exists()
        (tmp_path / "go").touch()
        run.communicate(timeout=240)
    assert run.returncode == 0
    assert [line.split()[0] for line in lines(tmp_path / "log")] == ["begin", "begin", "end"]


# Engines and stores that fail


class Failing:
    """An engine that cannot begin some tasks."""

    name = "failing"

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.times, self.out = error, times, list[Job]()

    def asks(self) -> list[Ask]:
        return [Ask(f"s{i}") for i in range(3 - len(self.out))]

    def start(self, job: Job) -> None:
        if self.times:
            self.times -= 1
            raise self.error
        self.out.append(job)

    def wait(self, seconds: float | None) -> list[Ending]:
        if not self.out:
            time.sleep(min(0.01, seconds or 0.01))
        ended, self.out = self.out, []
        return [ending_of(job, place, Performed(1.0, 2.0)) for job in ended for place in range(len(job.tasks))]

    def cancel(self, jobs: Sequence[Job]) -> None:
        self.out = [job for job in self.out if job not in jobs]

    def close(self) -> None:
        self.out = []


def _runner(engine: Any, n: int = 6) -> Runner:
    game = Execution({f"t{i}": [] for i in range(n)})
    quick = Retries(first=0.01, longest=0.01)
    return Runner(
        game,
        allocator("fifo", game.dag, game),
        engine,
        lambda task, attempt: Function(print),
        settings=Settings(retries=quick),
    )


def test_what_an_engine_could_not_begin_is_tried_again() -> None:
    runner = _runner(Failing(OSError("no worker"), 4))
    runner.run()
    assert runner.execution.finished


def test_what_an_engine_never_begins_is_told() -> None:
    runner = _runner(Failing(OSError("no worker"), 10**9), n=2)
    runner.run()
    assert {str(ending.attempt.failure) for ending in runner.failures.values()} == {
        "could not be started: OSError: no worker"
    }
    assert not runner.running
    assert runner.execution.stuck


def test_where_tasks_are_put_wrongly_all_grants_come_back() -> None:
    runner = _runner(Failing(InputError("not for me"), 1))
    with pytest.raises(InputError, match="not for me"):
        runner.run()
    assert len(runner.execution.eligible) == 6
    assert not runner.running


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    class Backward(Failing):
        def wait(self, seconds: float | None) -> list[Ending]:
            return [ending_of(each.job, each.place, Performed(2.0, 1.0)) for each in super().wait(seconds)]

    runner = _runner(Backward(OSError(), 0))
    runner.run()
    assert runner.execution.finished


def test_a_run_goes_on_where_nobody_watches_any_more() -> None:
    runner = _runner(Failing(OSError("no worker"), 0))

    def gone(runner: Runner) -> None:
        raise BrokenPipeError

    runner.watch = until_closed(gone)
    runner.run()
    assert runner.execution.finished


def test_a_run_does_not_think_for_long_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def noted(flow: Workflow, effort: str) -> Plan:
        asked.append(effort)
        return make_plan(flow, effort)

    monkeypatch.setattr("eligo.running.folder.plan", noted)
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert (ran(flow), ran(flow, "--policy", "fifo")) == (0, 0)
    assert asked == ["quick"]


def test_a_function_is_refused_by_local_processes_and_the_slot_stays_free() -> None:
    engine = LocalEngine(1)
    with pytest.raises(InputError, match="runs commands"):
        engine.start(Job(1, "slot 1", ("a",), (Function(print),)))
    assert len(engine.asks()) == 1
    engine.close()


def test_whoever_waits_for_a_store_hears_that_it_cannot_write(tmp_path: Path) -> None:
    store = Store(tmp_path / "run.db")
    store.begin({"a": b"1"})
    store.add([], [Attempt("", 1, 0, 1, "x", "", 0.0, 1.0, "accepted", memory=2**80)])  # which no database holds
    with pytest.raises(InputError, match="cannot be written"):
        store.flush()
    store.close()


def test_commands_keep_nothing_once_they_are_done(tmp_path: Path) -> None:
    flow = Workflow(Dag.from_arcs([], tasks=list("abc")), {n: Task(name=n, command=("true",)) for n in "abc"})
    folder = RunFolder(tmp_path / "run")
    resumed = folder.resume(flow)
    folder.begin(flow, resumed)
    commands = Commands(flow, str(tmp_path), folder.logs)
    plain = allocator("fifo", flow, resumed.execution, rules=None)  # with copies a task may be begun twice
    runner = Runner(resumed.execution, plain, LocalEngine(2), commands, folder.store)
    runner.run()
    assert (runner.values, dict(runner.tries.begun), runner.running) == ({}, {}, {})
    runner.engine.close()
    folder.close()


def test_what_tasks_need_is_known_where_any_needs_more() -> None:
    flow = Workflow(Dag.from_arcs([], tasks=["a", "b"]), {"a": Task(name="a", cores=2)})
    needs = Wants(flow) or None
    assert needs is not None
    assert (needs("a"), needs("b")) == (Demand(2.0), Demand())
    with pytest.raises(InputError, match="--fat must be a positive integer"):
        Settings(size=0)


# What a run teaches


def test_a_run_is_a_history(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [
        {"name": "a_1", "run": "sleep 0.2"}, {"name": "a_2", "run": "sleep 0.1", "after": ["a_1"]},
        {"name": "bad", "run": "sleep 0.3; false"},
    ])  # fmt: skip
    assert ran(flow, "--retries", "0") == 1
    from eligo.formats import read_history

    for place in (tmp_path / "flow.yaml.run", tmp_path / "flow.yaml.run" / "run.db", tmp_path):
        history = read_history(place)
        assert [(timed.task, timed.kind) for timed in history.records] == [("a_1", "sleep"), ("a_2", "sleep")]
        for timed, least in zip(history.records, (0.2, 0.1), strict=True):
            assert least <= timed.seconds < least + 60  # a busy machine takes longer
        assert (history.format, len(history.remarks)) == ("eligo", 1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.db").write_text("somebody else's")
    assert len(read_history(tmp_path).records) == 2
    capsys.readouterr()
    from eligo.cli import run as eligo

    assert eligo(["plan", str(flow), "--json", "--workers", "2"]) == 0
    assert f"run times from an earlier run, {flow}.run: 2 tasks by name, 1 by kind" in capsys.readouterr().err


def test_a_history_that_is_given_or_times_of_the_file_go_before_the_run(tmp_path: Path, capsys: Captured) -> None:
    from eligo.cli import run as eligo

    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert ran(flow) == 0
    (tmp_path / "past.csv").write_text("task,seconds\na,5\n")
    assert eligo(["plan", str(flow), "--history", str(tmp_path / "past.csv"), "--workers", "1"]) == 0
    assert "about 5 s" in capsys.readouterr().out
    written(tmp_path, [{"name": "a", "run": "true", "seconds": 7}])
    assert eligo(["plan", str(flow), "--workers", "1"]) == 0
    assert "about 7 s" in capsys.readouterr().out


def test_a_run_goes_by_what_was_measured_before(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}, {"name": "b", "run": "false"}])
    assert ran(flow, "--retries", "0") == 1
    assert ran(flow, "--retries", "0") == 1
    assert "run times from an earlier run" in capsys.readouterr().err
    (tmp_path / "past.csv").write_text("task,seconds\na,5\nb,6\n")
    assert ran(flow, "--retries", "0", "--history", str(tmp_path / "past.csv")) == 1
    assert f"{tmp_path / 'past.csv'}: 2 tasks by name" in capsys.readouterr().err


def test_a_comparison_goes_by_what_was_measured_before(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}, {"name": "b", "run": "sleep 0.1", "after": ["a"]}])
    assert ran(flow) == 0
    words = ["compare", str(flow), "--json", "--runs", "3", "--workers", "1", "--policy", "finish,fifo"]
    capsys.readouterr()
    assert cli(words) == 0
    told = capsys.readouterr()
    assert f"run times from an earlier run, {flow}.run: 2 tasks by name" in told.err
    (found,) = json.loads(told.out)["best"].values()
    assert found["seconds_from"] == f"{flow}.run"
    assert list(found["steady"]) == ["1"]
    (tmp_path / "past.csv").write_text("task,seconds\na,5\nb,6\n")
    assert cli([*words, "--history", str(tmp_path / "past.csv")]) == 0
    (found,) = json.loads(capsys.readouterr().out)["best"].values()
    assert found["seconds_from"] == str(tmp_path / "past.csv")
    experiment = tmp_path / "e.yaml"
    experiment.write_text(f"dags: [{{file: {flow.name}}}]\nschedulers: [fifo]\ngames: {{pebble: {{}}}}\nruns: 2\n")
    assert cli(["compare", str(experiment)]) == 0
    assert "earlier run" not in capsys.readouterr().err


def test_a_run_that_cannot_be_read_teaches_nothing(tmp_path: Path, capsys: Captured) -> None:
    from eligo.cli import run as eligo

    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    (tmp_path / "flow.yaml.run").mkdir()
    (tmp_path / "flow.yaml.run" / "run.db").write_text("nothing of ours" * 100)
    (tmp_path / "flow.yaml.run" / "run.db.lock").touch()
    assert eligo(["plan", str(flow)]) == 0
    assert "the run times of that run are not used" in capsys.readouterr().err


# Rehearsals


def test_a_rehearsal_runs_nothing_and_tells_how_long_it_takes(tmp_path: Path, capsys: Captured) -> None:
    import json

    flow = written(tmp_path, [
        {"name": f"t{i}", "run": "touch ran", "seconds": 100 * (1 + i % 3), "after": [f"t{i - 2}"] if i > 1 else []}
        for i in range(8)
    ])  # fmt: skip
    before = sorted(tmp_path.rglob("*"))
    assert ran(flow, "--rehearse", "1", "--policy", "finish,fifo,batch-optimal", "--json") == 0
    assert sorted(tmp_path.rglob("*")) == before
    found = json.loads(capsys.readouterr().out)
    assert [each["policy"] for each in found["rehearsals"]] == ["finish", "fifo", "batch-optimal"]
    assert all(0.9 < each["ratio"] < 1.5 for each in found["rehearsals"][:2])
    assert found["rehearsals"][0]["predicted"] == pytest.approx(1 / found["scale"])
    assert found["rehearsals"][2]["predicted"] is None
    assert ran(flow, "--rehearse", "0.5") == 0
    assert "8 tasks as sleeps" in capsys.readouterr().out


def test_what_cannot_be_rehearsed_is_told(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "fit_1", "run": "touch ran"}, {"name": "fit_2", "run": "touch ran"}])
    assert ran(flow, "--rehearse", "1") == 2
    assert "--history FILE" in capsys.readouterr().err
    (tmp_path / "past.csv").write_text("task,seconds\nfit_1,5\n")
    assert ran(flow, "--rehearse", "0.3", "--history", str(tmp_path / "past.csv")) == 0
    assert "1 task has no run time of their own" in capsys.readouterr().err


def test_a_rehearsal_on_dask_is_about_as_long_as_predicted(tmp_path: Path, capsys: Captured) -> None:
    import json

    pytest.importorskip("distributed", reason='NOT TESTED: the engine dask needs pip install "eligo[dask]"')
    tasks = [{"name": f"t{i}", "run": "touch ran", "seconds": 100 * (1 + i % 3)} for i in range(12)]
    flow = written(tmp_path, [task | {"after": [f"t{i - 2}"] if i > 1 else []} for i, task in enumerate(tasks)])
    assert ran(flow, "--on", "dask", "--rehearse", "3", "--json") == 0
    assert [path.name for path in tmp_path.iterdir()] == [flow.name]
    (found,) = json.loads(capsys.readouterr().out)["rehearsals"]
    assert 0.99 < found["ratio"] < 1.5


def test_a_rehearsal_whose_sleeps_fail_says_so(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.running.rehearsal.SLEEP", "false")
    flow = written(tmp_path, [{"name": "a", "run": "true", "seconds": 1}])
    assert ran(flow, "--rehearse", "0.1", "--retries", "0") == 2
    assert "rehearsal with policy finish failed: a: exit code 1" in capsys.readouterr().err


def test_to_let_go_of_an_engine_is_no_part_of_how_long_tasks_took() -> None:
    class Slow(FutureEngine):
        def free(self) -> None:
            time.sleep(0.5)

    with ThreadPoolExecutor(1) as executor:
        engine = Slow(lambda job, mark: executor.submit(perform, job.works, job.timeout, mark), 1)
        assert run({"a": []}, str, on=engine).seconds < 0.4


# DAGMan


def test_what_is_done_of_a_dagman_file_is_told_to_dagman(tmp_path: Path, capsys: Captured) -> None:
    bodies = {"a": "/bin/true", "b": "/bin/false", "c": "/bin/true"}
    text = "".join(f"JOB {name} {{\n executable = {program}\n}}\n" for name, program in bodies.items())
    flow = tmp_path / "w.dag"
    flow.write_text(text + "PARENT a CHILD b\nPARENT b CHILD c\n")
    assert ran(flow, "--retries", "0") == 1
    rescue = tmp_path / "w.dag.run" / "rescue.dag"
    assert f"copy it to {flow}.rescue001" in capsys.readouterr().err
    Path(f"{flow}.rescue001").write_bytes(rescue.read_bytes())
    left = read(flow)
    assert (left.dag.tasks, left.origin and left.origin.done) == (("b", "c"), ("a",))
    flow.write_text(flow.read_text().replace("/bin/false", "/bin/true"))
    assert ran(flow) == 0
    assert not rescue.exists()


def test_nodes_of_dagman_that_run_nothing_are_done_as_soon_as_they_are_ready(tmp_path: Path, capsys: Captured) -> None:
    """Also in a row, and where the run goes on without its file."""
    jobs = {name: ("touch", name) for name in "abe"} | dict.fromkeys("df", ("test", "-e a -a -e b"))
    jobs["c"] = ("test", "-e go")
    bodies = {name: f"executable = /usr/bin/{program}\n arguments = {words}" for name, (program, words) in jobs.items()}
    text = "".join(f"JOB {name} {{\n {body}\n}}\n" for name, body in bodies.items())
    arcs = "PARENT first CHILD a b e\nPARENT a b e CHILD c d f\nPARENT c CHILD last\nPARENT last CHILD end\n"
    flow = tmp_path / "w.dag"
    flow.write_text(text + "".join(f"JOB {name} none.sub NOOP\n" for name in ("first", "last", "end")) + arcs)
    names = set(read(flow).dag.tasks)
    assert ran(flow, "--retries", "0") == 1
    (tmp_path / "go").touch()
    flow.rename(tmp_path / "gone.dag")
    state = tmp_path / "w.dag.run"
    assert cli(["run", "--resume", str(state)]) == 0
    assert set(completed(state)) == names
    assert {each["name"] for each in attempts(state)} == set(jobs)
    capsys.readouterr()


def test_lines_for_a_shell_are_no_submit_files(tmp_path: Path) -> None:
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", command="echo x > made && test -s made")})
    write(flow, tmp_path / "w.dag")
    assert ran(tmp_path / "w.dag") == 0
    assert (tmp_path / "made").read_text() == "x\n"


def test_a_description_without_a_program_is_no_node_that_runs_nothing(tmp_path: Path, capsys: Captured) -> None:
    flow = tmp_path / "w.dag"
    flow.write_text("JOB a {\n request_cpus = 1\n}\nJOB b none.sub NOOP\n")
    assert ran(flow) == 2
    assert "task 'a' has no command" in capsys.readouterr().err


def test_the_state_of_a_run_can_be_read_while_it_goes_on(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}, {"name": "b", "run": "touch b; sleep 3", "after": ["a"]}])
    with started(flow) as run:
        _until((tmp_path / "b").exists)
        _until(lambda: completed(tmp_path / "flow.yaml.run") == {"a": 1})
        database = state_of(tmp_path / "flow.yaml.run")
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=240)


def test_words_for_a_shell_are_quoted_by_the_user_alone() -> None:
    assert words_of("sort a > b")[-1] == "sort a > b"
    assert words_of(shlex.join(["echo", "a b"]))[-1] == "echo 'a b'"
