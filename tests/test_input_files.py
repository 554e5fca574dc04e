"""Inputs that no task writes: what reads a changed one runs again, and nothing else does."""

import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eligo.cli import run
from eligo.running.input_files import LARGEST_HASHED, InputFile, look_up

ROWS: list[dict[str, Any]] = [
    {"name": "a", "run": "echo >> a.log; cat raw > x", "inputs": ["raw"], "outputs": ["x"]},
    {"name": "b", "run": "echo >> b.log; cat x > y", "inputs": ["x"], "outputs": ["y"]},
    {"name": "c", "run": "echo >> c.log; cat other > z", "inputs": ["./other"], "outputs": ["z"]},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "raw").write_text("one")
    (folder / "other").write_text("other")
    path = folder / "flow.json"
    path.write_text(json.dumps({"tasks": ROWS}))
    assert run(["run", str(path), "-q"]) == 0
    return path


def counts(file: Path) -> str:
    return "".join(str(len((file.parent / f"{name}.log").read_text())) for name in "abc")


def test_what_reads_a_changed_input_runs_again_with_what_depends_on_it(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.with_name("raw").write_text("two")
    capsys.readouterr()
    assert run(["run", str(file), "-n", "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert [(task["task"], task["reason"]) for task in tasks] == [
        ("a", "input raw changed"),
        ("b", "it needs a, which runs"),
    ]
    assert run(["run", str(file)]) == 0
    assert counts(file) == "221"
    assert file.with_name("y").read_text() == "two"
    assert "1 will run again because inputs changed, 1 will run again because they depend" in capsys.readouterr().err
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "221"


def test_another_time_alone_is_no_change(file: Path) -> None:
    os.utime(file.with_name("raw"), (1, 1))
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "111"


def test_another_content_of_the_same_size_and_time_is_not_looked_for(file: Path) -> None:
    """As make and others do, who compare times."""
    raw = file.with_name("raw")
    status = raw.stat()
    raw.write_text("two")
    os.utime(raw, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "111"


def test_an_input_that_is_gone_is_not_needed_by_tasks_that_are_done(file: Path) -> None:
    raw = file.with_name("raw")
    raw.unlink()
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "111"
    raw.write_text("new")
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "221"


def test_a_change_is_not_forgotten_by_a_run_of_other_tasks_or_a_refused_one(file: Path) -> None:
    file.with_name("raw").write_text("two")
    assert run(["run", str(file), "c", "-q"]) == 0
    assert run(["run", str(file), "-q", "-j", "0"]) == 2
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "221"


def test_a_failed_run_still_knows_of_the_change(file: Path) -> None:
    file.with_name("raw").write_text("two")
    text = file.read_text()
    file.write_text(text.replace("cat raw > x", "cat raw > x; exit 1"))
    assert run(["run", str(file), "-q", "--retries", "0"]) == 1
    file.write_text(text)
    assert run(["run", str(file), "-q"]) == 0
    assert file.with_name("y").read_text() == "two"


def test_a_copied_project_runs_nothing_again(file: Path) -> None:
    copy = file.parent.with_name("copy")
    shutil.copytree(file.parent, copy, copy_function=shutil.copy)
    assert run(["run", str(copy / "flow.json"), "-q"]) == 0
    assert counts(copy / "flow.json") == "111"


# Files that tasks write


@pytest.mark.parametrize("again", [False, True])
def test_what_reads_an_edited_output_of_another_task_runs_again(
    file: Path, again: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if again:  # by then the run has recorded the file
        assert run(["run", str(file), "-q"]) == 0
    file.with_name("x").write_text("edited")
    capsys.readouterr()
    assert run(["run", str(file), "--why"]) == 0
    assert "eligo: b: input x changed\n" in capsys.readouterr().err
    assert counts(file) == "121"
    assert file.with_name("y").read_text() == "edited"
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "121"


def test_readers_of_a_task_whose_command_changed_run_again_once(file: Path) -> None:
    assert run(["run", str(file), "-q"]) == 0  # records the output of a
    file.write_text(file.read_text().replace("cat raw", "cat raw raw"))
    for _ in range(2):
        assert run(["run", str(file), "-q"]) == 0
        assert counts(file) == "221"


def test_readers_of_a_task_that_ran_on_request_run_again_once_even_if_no_other_file_is_read(file: Path) -> None:
    file.write_text(json.dumps({"tasks": [{**ROWS[0], "inputs": []}, ROWS[1]]}))
    for words in ([], [], ["--again", "a"], []):
        assert run(["run", str(file), *words, "-q"]) == 0
    assert [len(file.with_name(f"{name}.log").read_text()) for name in "ab"] == [3, 3]


def test_an_output_with_an_old_time_is_no_reason_to_run_again(file: Path) -> None:
    for name in ("x", "y"):  # as after unpacking an archive
        os.utime(file.with_name(name), (1, 1))
    os.utime(file.with_name("x"), (2, 2))
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "111"


def test_a_copied_project_with_new_times_runs_nothing_again_later_either(file: Path) -> None:
    copy = file.parent.with_name("copy")
    shutil.copytree(file.parent, copy, copy_function=shutil.copy)
    for _ in range(2):
        os.utime(copy / "y")
        assert run(["run", str(copy / "flow.json"), "-q"]) == 0
    os.utime(copy / "flow.json.run")
    assert counts(copy / "flow.json") == "111"
    (copy / "x").write_text("edited")
    assert run(["run", str(copy / "flow.json"), "-q"]) == 0
    assert counts(copy / "flow.json") == "121"


def test_a_run_says_why_each_task_runs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.with_name("raw").write_text("two")
    file.write_text(file.read_text().replace("cat other", "cat  other"))
    assert run(["run", str(file), "--why", "-q"]) == 0
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if line.startswith(("eligo: a:", "eligo: b:", "eligo: c:"))
    ]
    assert sorted(lines) == [
        "eligo: a: input raw changed",
        "eligo: b: it needs a, which runs",
        "eligo: c: its command, files or parents changed",
    ]


@pytest.mark.parametrize("seed", range(4))
def test_after_random_edits_every_file_is_that_of_a_first_run(tmp_path: Path, seed: int) -> None:
    random, rows = Random(seed), list[dict[str, Any]]()
    for i in range(6):
        inputs = [f"in{j}" for j in range(3) if random.random() < 0.5] + [
            f"t{j}" for j in range(i) if random.random() < 0.4
        ]
        line = f"echo >> log; cat {' '.join(inputs)} /dev/null > t{i}"
        rows.append({"name": f"t{i}", "run": line, "inputs": inputs, "outputs": [f"t{i}"]})
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"tasks": rows}))
    for step in range(6):
        for j in range(3):
            if step == 0 or random.random() < 0.4:
                (tmp_path / f"in{j}").write_text(f"{step}.{j}" + "x" * random.randrange(3))
        words = random.choice([[], [f"t{random.randrange(6)}"], ["--again", "t0"]])
        assert run(["run", str(file), "-q", *words]) == 0
    assert run(["run", str(file), "-q"]) == 0
    for row in rows:
        assert (tmp_path / row["outputs"][0]).read_text() == "".join(
            (tmp_path / name).read_text() for name in row["inputs"]
        )


def test_large_files_are_compared_by_size_and_time(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (LARGEST_HASHED + 1))
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    states = look_up(["large", "small", "folder", "none"], str(tmp_path), {})
    assert {name: state.digest is None for name, state in states.items()} == {"large": True, "small": False}
    assert InputFile(1, 2, None).differs(InputFile(1, 3, None))
    assert not InputFile(1, 2, "a").differs(InputFile(1, 3, "a"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"raw": 3}', '{"raw": [1]}'])
def test_a_damaged_record_is_refused(file: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it, nobody can tell what changed."""
    (file.parent / "flow.json.run" / "inputs.json").write_text(text)
    assert run(["run", str(file), "-q"]) == 2
    assert "inputs.json: damaged (delete it" in capsys.readouterr().err
    (file.parent / "flow.json.run" / "inputs.json").unlink()
    assert run(["run", str(file), "-q"]) == 0
    assert counts(file) == "111"
