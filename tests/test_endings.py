"""What `eligo run` does with attempts: `--stream`, `--stream-lines` and `--joblog`; and `eligo log --follow`."""

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eligo.cli import run
from eligo.cli.endings import COLUMNS
from running_cases import COMMAND, started, written
from serving_cases import PATIENCE, serving
from test_operations import wait_for


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flow.json"
    rows = [
        {"name": "a", "run": "echo one; echo two >&2"},
        {"name": "b", "run": "echo again >> tries; test $(wc -l < tries) -ge 2 && echo three"},
        {"name": "c", "run": "kill -9 $$"},
    ]
    path.write_text(json.dumps({"tasks": rows}))
    return path


def test_outputs_are_printed_to_their_streams(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "--stream", "--except", "c", "-j", "1"]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[:2] == ["one", "three"]
    assert "two\n" in err


def test_outputs_of_tasks_do_not_mix(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, many = tmp_path / "flow.json", 12
    line = "for i in 1 2 3 4 5; do echo {name} $i; sleep 0.01; done"
    rows = [{"name": f"t{i}", "run": line.replace("{name}", f"t{i}")} for i in range(many)]
    path.write_text(json.dumps({"tasks": rows}))
    assert run(["run", str(path), "--stream", "-j", "4"]) == 0
    lines = capfd.readouterr().out.splitlines()[: 5 * many]
    blocks = [lines[i : i + 5] for i in range(0, 5 * many, 5)]
    assert sorted(blocks) == sorted([f"t{i} {j}" for j in range(1, 6)] for i in range(many))


def test_a_table_has_a_line_for_each_attempt(file: Path) -> None:
    log = file.with_name("jobs.tsv")
    assert run(["run", str(file), "--joblog", str(log), "--retries", "1", "-q"]) == 1
    with log.open(newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t"))
    ends = sorted((row["Task"], row["Attempt"], row["Exitval"], row["Signal"]) for row in rows)
    assert ends == [
        ("a", "1", "0", "0"),
        ("b", "1", "1", "0"),
        ("b", "2", "0", "0"),
        ("c", "1", "0", "9"),
        ("c", "2", "0", "9"),
    ]
    assert [row["Seq"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert all(float(row["JobRuntime"]) >= 0 for row in rows)


def test_a_table_is_continued(file: Path) -> None:
    log = file.with_name("jobs.tsv")
    for _ in range(2):
        assert run(["run", str(file), "a", "--again", "a", "--joblog", str(log)]) == 0
    lines = log.read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [COLUMNS[0], "1", "1"]


def test_a_table_that_cannot_be_written_is_refused_before_anything_runs(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", str(file), "--joblog", str(file.parent / "no" / "jobs.tsv")]) == 2
    assert "cannot be written: No such file" in capsys.readouterr().err
    assert not file.with_name("tries").exists()


@pytest.mark.parametrize("kind", ["workflow", "other", "folder", "pipe"])
def test_a_file_of_something_else_is_not_written_to(file: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And it is refused before anything that was done is done again."""
    assert run(["run", str(file), "a", "-q"]) == 0
    places = {"workflow": file, "other": file.with_name("other"), "folder": file.parent, "pipe": file.with_name("pipe")}
    places["other"].write_text("precious")
    os.mkfifo(places["pipe"])
    before = file.read_text()
    assert run(["run", str(file), "a", "--fresh", "--joblog", str(places[kind])]) == 2
    assert "--joblog" in capsys.readouterr().err
    assert (file.read_text(), places["other"].read_text()) == (before, "precious")
    assert run(["run", str(file), "a"]) == 0
    assert "already done" in capsys.readouterr().out


# While tasks run


def next_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_lines_of_running_tasks_come_with_their_names(tmp_path: Path) -> None:
    talk = "echo first; printf half >&2; while [ ! -e go ]; do sleep 0.02; done; echo ' more' >&2; printf last"
    flow = written(tmp_path, [{"name": "a", "run": talk}, {"name": "b", "run": "exit 3"}])
    process = started(flow, "--stream-lines", "--retries", "0")
    try:
        assert next_line(process) == "a: first\n"
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert out.splitlines()[0] == "a: last"
    assert "a: half more\n" in err
    assert process.returncode == 1


def test_lines_of_another_engine_come_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    flow = written(tmp_path, [{"name": "a", "run": "echo one; echo two"}])
    assert run(["run", str(flow), "--on", "dask", "--workers", "1", "--stream-lines"]) == 0
    assert capfd.readouterr().out.splitlines()[:2] == ["a: one", "a: two"]


def test_a_log_is_followed_until_its_task_has_ended(tmp_path: Path) -> None:
    talk = "echo $ELIGO_ATTEMPT; while [ ! -e go ]; do sleep 0.02; done; echo end; test -e again || { touch again; exit 1; }"
    tasks: list[dict[str, Any]] = [
        {"name": "a", "run": talk},
        {"name": "b", "run": "while [ ! -e stop ]; do sleep 0.02; done; echo b", "after": ["a"]},
    ]
    flow = written(tmp_path, tasks)
    with started(flow, "--workers", "1", "--retries", "1"):
        wait_for((tmp_path / "flow.yaml.run" / "run.db").exists)
        wait_for(lambda: run(["why", str(flow), "a"]) == 0)
        command = [*COMMAND, "log", str(flow), "a", "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as log:
            assert next_line(log) == "1\n"
            (tmp_path / "go").touch()
            assert log.communicate(timeout=PATIENCE)[0] == "end\n2\nend\n"
            assert log.returncode == 0
        assert not (tmp_path / "stop").exists()  # the run is still going on
        (tmp_path / "stop").touch()


def test_following_what_has_ended_prints_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "--except", "c", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["log", str(file), "a", "-f"]) == 0
    assert run(["log", str(file), "a", "-f", "--err"]) == 0
    assert run(["log", str(file), "b", "-f", "--attempt", "2"]) == 0
    assert capsys.readouterr().out == "one\ntwo\nthree\n"
    assert run(["log", str(file), "b", "-f", "--attempt", "3"]) == 2


def test_the_log_of_a_server_is_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path) as (url, _):
        flow = written(tmp_path, [{"name": "a", "run": "echo one; echo two"}])
        assert run(["submit", url, str(flow)]) == 0
        place = f"{url}/{capfd.readouterr().out.strip()}"
        work = [*COMMAND, "work", url, "--once", "--folder", str(tmp_path / "client")]
        with subprocess.Popen(work, stderr=subprocess.DEVNULL) as client:
            assert run(["log", place, "a", "--follow"]) == 0
            assert client.wait(PATIENCE) == 0
    assert capfd.readouterr().out == "one\ntwo\n"
