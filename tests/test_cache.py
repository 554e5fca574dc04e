"""The cache of outputs: what ran before with the same inputs is copied, the rest runs, and nothing damaged is believed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

import eligo
from eligo.cli import run
from eligo.running.output_cache import LIST

Rows = list[dict[str, Any]]
ROWS: Rows = [
    {"name": "a", "run": "echo ran >> $RAN; echo said; tr a-z A-Z < raw > x", "inputs": ["raw"], "outputs": ["x"]},
    {"name": "b", "run": "echo ran >> $RAN; cat x x > sub/y", "inputs": ["x"], "outputs": ["sub/y"]},
]


class Place:
    """A folder for projects that share a cache."""

    def __init__(self, path: Path) -> None:
        self.path, self.cache = path, path / "cache"

    def project(self, name: str, rows: Rows, **files: str) -> Path:
        """A workflow in a folder of its own, with these input files."""
        folder = self.path / name
        (folder / "sub").mkdir(parents=True, exist_ok=True)
        for file, content in {"raw": "text", **files}.items():
            (folder / file).write_text(content)
        path = folder / "flow.json"
        path.write_text(json.dumps({"tasks": rows}))
        return path

    def run(self, path: Path, *words: str) -> int:
        """Run a workflow with the cache; returns how many commands ran."""
        before = self.ran
        assert run(["run", str(path), "-q", "--cache", str(self.cache), *words]) == 0
        return self.ran - before

    @property
    def ran(self) -> int:
        """How many commands ran so far."""
        file = self.path / "ran"
        return len(file.read_text().split()) if file.exists() else 0

    def entries(self) -> list[Path]:
        """The entries of the cache."""
        return [path.parent for path in self.cache.glob(f"??/*/{LIST}")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    return Place(tmp_path)


def test_the_same_commands_in_another_folder_take_their_outputs_from_the_cache(place: Place) -> None:
    assert place.run(place.project("one", ROWS)) == 2
    file = place.project("two", ROWS)
    os.rmdir(file.with_name("sub"))  # the folder of an output is made again, too
    assert place.run(file) == 0
    assert (file.with_name("x").read_text(), (file.parent / "sub/y").read_text()) == ("TEXT", "TEXTTEXT")


def test_what_came_from_the_cache_is_said_everywhere(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.run(place.project("one", ROWS))
    file = place.project("two", [*ROWS, {"name": "c", "run": "true"}])
    assert run(["run", str(file), "--cache", str(place.cache)]) == 0
    told = capsys.readouterr()
    assert ", 2 from the cache;" in told.out
    assert "tasks that cannot be cached: 1 without declared outputs" in told.err
    assert run(["status", str(file)]) == 0
    assert "from the cache  2 tasks" in capsys.readouterr().out
    assert run(["status", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["from_cache"] == 2
    assert run(["why", str(file), "a"]) == 0
    assert "outputs taken from the cache" in " ".join(capsys.readouterr().out.split())
    assert run(["log", str(file), "a"]) == 0
    assert capsys.readouterr() == ("said\n", "eligo: from the cache: the output of the execution that made its files\n")
    assert "2 from the cache" in Path(f"{file}.run/report.html").read_text()
    assert [timed.task for timed in eligo.read_history(f"{file}.run").records] == ["c"]


@pytest.mark.parametrize(
    ("rows", "files", "runs"),
    [
        (ROWS, {"raw": "text"}, 0),
        (ROWS, {"raw": "other"}, 2),
        (ROWS, {"raw": "TEXT"}, 1),  # b reads the same as before
        ([ROWS[0] | {"run": f"{ROWS[0]['run']} "}, ROWS[1]], {}, 1),
        ([ROWS[0] | {"env": {"LC_ALL": "C"}}, ROWS[1]], {}, 1),
        ([ROWS[0] | {"shell": "sh"}, ROWS[1]], {}, 1),
        ([ROWS[0] | {"name": "renamed", "timeout": 60, "retries": 5}, ROWS[1]], {}, 0),
    ],
)
def test_the_command_and_the_contents_of_inputs_decide(
    place: Place, rows: Rows, files: Mapping[str, str], runs: int
) -> None:
    place.run(place.project("one", ROWS))
    assert place.run(place.project("two", rows, **files)) == runs


def test_a_script_in_the_command_is_an_input_even_if_it_is_not_declared(place: Place) -> None:
    rows = [{"name": "a", "run": "echo ran >> $RAN; sh ./make.sh > x", "outputs": ["x"]}]
    place.run(place.project("one", rows, **{"make.sh": "echo 1"}))
    assert place.run(place.project("two", rows, **{"make.sh": "echo 1"})) == 0
    file = place.project("three", rows, **{"make.sh": "echo 2"})
    assert place.run(file) == 1
    assert file.with_name("x").read_text() == "2\n"


def test_a_file_that_the_command_names_is_found_from_its_own_folder(place: Place) -> None:
    rows = [{"name": "a", "run": "echo ran >> $RAN; sh make.sh > ../x", "dir": "sub", "outputs": ["x"]}]
    place.run(place.project("one", rows, **{"sub/make.sh": "echo 1"}))
    assert place.run(place.project("two", rows, **{"sub/make.sh": "echo 1"})) == 0
    assert place.run(place.project("three", rows, **{"sub/make.sh": "echo 2"})) == 1


def test_an_executable_output_stays_executable(place: Place) -> None:
    rows = [{"name": "a", "run": "echo true > x; chmod +x x", "outputs": ["x"]}]
    place.run(place.project("one", rows))
    place.run(file := place.project("two", rows))
    assert os.access(file.with_name("x"), os.X_OK)


def test_outputs_are_copies_that_may_be_changed_in_place(place: Place) -> None:
    for name in ("one", "two"):
        place.run(file := place.project(name, ROWS))
        with file.with_name("x").open("r+") as output:
            output.write("spoilt")
    place.run(file := place.project("three", ROWS))
    assert file.with_name("x").read_text() == "TEXT"


@pytest.mark.parametrize("damage", ["content", "missing", "list", "other list", "cut"])
def test_a_damaged_entry_is_made_again_and_replaced(place: Place, damage: str) -> None:
    place.run(place.project("one", ROWS))
    for entry in place.entries():
        if damage == "content":
            (entry / "0").write_text("TEXt")
        elif damage == "missing":
            (entry / "0").unlink()
        elif damage == "list":
            (entry / LIST).write_text("{")
        elif damage == "other list":
            (entry / LIST).write_text("{}")
        else:
            os.truncate(entry / "0", 1)
    file = place.project("two", ROWS)
    assert place.run(file) == 2
    assert (file.parent / "sub/y").read_text() == "TEXTTEXT"
    assert place.run(place.project("three", ROWS)) == 0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"name": "a", "run": "true"}], "1 without declared outputs"),
        ([{"name": "a", "run": "echo $ELIGO_TASK > x", "outputs": ["x"]}], "1 that use variables of Eligo"),
        (
            [{"name": "a", "run": "true"}, {"name": "b", "run": "touch x", "outputs": ["x"], "after": ["a"]}],
            "1 after a task without declared outputs",
        ),
        (
            [{"name": "a", "run": "ls sub > x", "inputs": ["sub"], "outputs": ["x"]}],
            "1 with an input that is not a regular file",
        ),
    ],
)
def test_a_task_whose_inputs_are_not_known_runs_and_is_counted(
    place: Place, rows: Rows, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place.run(place.project("one", rows))
    assert reason in capsys.readouterr().err
    assert not place.entries()


@pytest.mark.parametrize("command", ["mkdir x", "ln -s raw x", "mkfifo x"])
def test_only_regular_files_are_cached(place: Place, command: str) -> None:
    rows = [{"name": "a", "run": f"echo ran >> $RAN; {command}", "outputs": ["x"]}]
    assert [place.run(place.project(name, rows)) for name in ("one", "two")] == [1, 1]


def test_a_task_without_inputs_reads_all_outputs_of_its_parents(place: Place) -> None:
    rows = [ROWS[0], {"name": "b", "run": "cat [x] > y", "after": ["a"], "outputs": ["y"]}]
    place.run(place.project("one", rows))
    place.run(file := place.project("two", rows, raw="other"))
    assert file.with_name("y").read_text() == "OTHER"


def test_what_ran_while_its_input_changed_is_not_added(place: Place) -> None:
    rows = [{"name": "a", "run": "cat raw > x; echo more >> raw", "inputs": ["raw"], "outputs": ["x"]}]
    place.run(place.project("one", rows))
    assert not place.entries()


def test_a_task_that_adds_tasks_is_not_added(place: Place) -> None:
    script = 'touch x; echo \'{"tasks": [{"name": "new", "run": "true"}]}\' > "$ELIGO_ADD"'
    rows = [{"name": "a", "run": "sh ./add.sh", "outputs": ["x"]}]
    place.run(place.project("one", rows, **{"add.sh": script}))
    assert not place.entries()


def test_tasks_that_are_to_run_again_run_and_renew_the_cache(place: Place) -> None:
    file = place.project("one", ROWS)
    assert place.run(file) == 2
    assert place.run(file, "--again", "a") == 1  # b reads the same as before
    assert place.run(file, "--fresh") == 2


def test_a_failed_attempt_leaves_nothing_in_the_cache(place: Place) -> None:
    rows = [{"name": "a", "run": "echo half > x; test -e ok", "outputs": ["x"]}]
    file = place.project("one", rows)
    assert run(["run", str(file), "-q", "--cache", str(place.cache), "--retries", "0"]) == 1
    assert not place.entries()


@pytest.mark.parametrize("words", [("--fat", "2"), ("--policy", "cluster"), ("--batch",), ("--on", "dask")])
def test_every_way_to_choose_tasks_and_other_engines_use_the_cache(place: Place, words: tuple[str, ...]) -> None:
    if "dask" in words:
        pytest.importorskip("distributed")
    assert place.run(place.project("one", ROWS), *words, "-j", "2") == 2
    # of tasks that a worker gets together, those behind the first that runs are not cached
    assert place.run(place.project("two", ROWS), *words, "-j", "2") == ("--fat" in words)
    file = place.project("three", ROWS)
    assert place.run(file, *words, "-j", "2") == 0
    assert (file.parent / "sub/y").read_text() == "TEXTTEXT"


def test_a_resumed_run_uses_the_same_cache(place: Place) -> None:
    file = place.project("one", ROWS)
    place.run(file, "x")
    place.run(place.project("two", ROWS))
    before = place.ran
    assert run(["run", "--resume", f"{file}.run", "sub/y", "-q"]) == 2  # targets need FILE
    assert run(["run", str(file), "-q", "--cache", str(place.cache)]) == 0
    assert place.ran == before


def test_python_runs_share_the_cache_and_refuse_it_for_functions(place: Place, tmp_path: Path) -> None:
    files = [place.project(name, ROWS) for name in ("one", "two")]
    results = [eligo.run(file, cache=place.cache, folder=f"{file}.run") for file in files]
    assert [result.from_cache for result in results] == [0, 2]
    with pytest.raises(eligo.InputError, match="cache has no effect on functions"):
        eligo.run({"a": (int, [])}, cache=tmp_path)
    with pytest.raises(eligo.InputError, match="raw: the cache must be a folder"):
        eligo.run(files[0], cache=files[0].with_name("raw"), folder=tmp_path / "r")


def test_runs_at_the_same_time_share_a_cache(place: Place) -> None:
    rows = [
        {"name": f"t{i}", "run": f"seq {i % 5} 3000 > x{i}", "inputs": ["raw"], "outputs": [f"x{i}"]} for i in range(20)
    ]
    files = [place.project(str(number), rows) for number in range(4)]
    words = ["-q", "-j", "2", "--cache", str(place.cache)]
    processes = [subprocess.Popen([sys.executable, "-m", "eligo", "run", str(file), *words]) for file in files]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0, 0]
    for file in files:
        for i in range(20):
            assert file.with_name(f"x{i}").read_text() == "".join(f"{n}\n" for n in range(i % 5, 3001))
    assert len(place.entries()) == 20
    assert not list((place.cache / "drafts").iterdir())
    assert place.run(place.project("later", rows)) == 0


def test_a_killed_run_leaves_no_half_entry_and_no_half_output(place: Place) -> None:
    rows = [
        {"name": f"t{i}", "run": f"head -c 3000000 /dev/zero | tr '\\0' {i} > x{i}", "outputs": [f"x{i}"]}
        for i in range(9)
    ]
    random, file = Random(7), place.project("one", rows)
    for round_ in range(4):
        command = [sys.executable, "-m", "eligo", "run", str(file), "-q", "-j", "2", "--cache", str(place.cache)]
        with subprocess.Popen([*command, "--fresh"] if round_ % 2 else command) as process:
            while process.poll() is None and random.random() < 0.999 and not any((place.cache / "drafts").glob("*/0")):
                pass
            process.send_signal(signal.SIGKILL)
    for name in ("one", "two"):
        place.run(file := place.project(name, rows))
        assert [file.with_name(f"x{i}").read_text() for i in range(9)] == [f"{i}" * 3_000_000 for i in range(9)]


# Twins


def project_of(random: Random, size: int) -> Rows:
    """A workflow of tasks that read some files of others, or the raw one."""
    rows: Rows = []
    for i in range(size):
        files = random.sample([row["outputs"][0] for row in rows], min(len(rows), random.randrange(3))) or ["raw"]
        rows.append({"name": f"t{i}", "run": _command(random, files, i), "inputs": files, "outputs": [f"x{i}"]})
    return rows


def _command(random: Random, files: list[str], i: int) -> str:
    return f"{random.choice(['cat', 'sort', 'head -n 3 -q', 'wc -c'])} {' '.join(files)} > x{i}"


def edited(random: Random, rows: Rows, folder: Path) -> Rows:
    """The workflow after an edit of a command, of the raw file, or of an output."""
    kind, row = random.randrange(4), random.choice(rows)
    if kind == 0:
        folder.joinpath("raw").write_text(f"{random.randrange(3)}\ntext\n")
    elif kind == 1:
        folder.joinpath(row["outputs"][0]).unlink(missing_ok=True)
    elif kind == 2:
        fresh = row | {"run": _command(random, row["inputs"], int(row["name"][1:]))}
        return [fresh if each is row else each for each in rows]
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_a_run_with_a_cache_makes_the_same_files_as_one_without(place: Place, seed: int) -> None:
    random = Random(seed)
    rows = project_of(random, 8)
    for step in range(6):
        with_cache, without = (place.project(name, rows, raw="b\na\n") for name in ("with", "without"))
        rows = edited(random, rows, with_cache.parent)
        with_cache = place.project("with", rows, raw=with_cache.with_name("raw").read_text())
        without = place.project("without", rows, raw=with_cache.with_name("raw").read_text())
        place.run(with_cache)
        assert run(["run", str(without), "-q", "--run", str(without.parent / f"run-{step}")]) == 0
        read = {file for row in rows for file in row["inputs"]}
        for name in (row["outputs"][0] for row in rows):
            file = with_cache.with_name(name)
            if name not in read or file.exists():  # an intermediate file that was deleted is not made again
                assert file.read_bytes() == without.with_name(name).read_bytes(), (step, name)
