"""What `eligo run` does at the end of every attempt: `--stream` and `--joblog`."""

import csv
import json
import os
from pathlib import Path

import pytest

from eligo.cli import run
from eligo.cli.endings import COLUMNS


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


@pytest.mark.parametrize("words", [["--stream"], ["--joblog", "x"]])
@pytest.mark.parametrize("where", [["-n"], ["--rehearse", "1"], ["--on", "http://127.0.0.1:9"]])
def test_what_has_no_effect_is_refused(
    file: Path, words: list[str], where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", str(file), *words, *where]) == 2
    assert "no effect" in capsys.readouterr().err


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


def test_outputs_are_not_mixed_into_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "--stream", "--json"]) == 2
    assert "--stream has no effect with --json" in capsys.readouterr().err
