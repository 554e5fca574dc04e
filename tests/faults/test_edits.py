"""A run over files that is killed while its files and commands change: no stale output is believed, and little runs twice."""

import json
import random
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from killing_cases import asked, check_engine, inside, surroundings
from running_cases import started

WORKERS, TURNS = int(asked("WORKERS", 4)), int(asked("TURNS", 10_000))
SECONDS, NAP = asked("SECONDS", 60.0), asked("NAP", 0.02)
SOURCES, WIDE, DEEP = 6, 6, 4
#: the longest time from the start of a dispatcher to a kill, by engine
LATEST = {"local": 1.2, "dask": 4.0, "ray": 8.0, "parsl": 5.0}


@dataclass
class Project:
    """Files in layers, each made from files of the layer above, and the changes since the last complete run."""

    place: Path
    rng: random.Random
    reads: dict[str, list[str]] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    #: tasks that may run again: those whose files or commands changed, or were gone, since the last complete run
    dirty: set[str] = field(default_factory=set)
    #: outputs edited by hand since their tasks last began: what the task wrote, and what was edited into it
    by_hand: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    edits: int = 0

    def __post_init__(self) -> None:
        for folder in ("made", "notes"):
            (self.place / folder).mkdir()
        above = [f"s{i}" for i in range(SOURCES)]
        for name in above:
            self._write_source(name)
        for layer in range(DEEP):
            names = [f"t{layer}_{i}" for i in range(WIDE)]
            self.reads |= {name: self.rng.sample(above, 2) for name in names}
            above = [f"made/{name}" for name in names]
        self.words = dict.fromkeys(self.reads, 0)
        self.dirty = {*self.reads}
        self.describe()

    def describe(self) -> None:
        """Write the workflow's file."""
        tasks = [
            {"name": name, "run": self._command(name), "inputs": files, "outputs": [f"made/{name}"]}
            for name, files in self.reads.items()
        ]
        (self.place / "flow.json").write_text(json.dumps({"tasks": tasks}))

    def _command(self, name: str) -> str:
        """Writes half of its output first, so that a killed task leaves a wrong file."""
        files = " ".join(self.reads[name])
        make = f"echo half > made/{name}; sleep {NAP}; {{ echo {self.words[name]}; cat {files}; }} | sha256sum > made/{name}"
        return f"echo begin $CYCLE >> $NOTES/{name}; {make}; echo end $CYCLE >> $NOTES/{name}"

    def _write_source(self, name: str) -> None:
        """A source has one of few contents, so that a cache has outputs for it."""
        (self.place / name).write_text(f"{self.rng.randrange(4)}\n" * self.rng.randint(1, 2))

    def edit(self) -> None:
        """Change a source, a command or an output, or delete an output."""
        self.edits += 1
        name = self.rng.choice([*self.reads])
        output = self.place / "made" / name
        match self.rng.choice(("command", "delete", "by hand", "source", "source")):
            case "command":
                self.words[name] = (self.words[name] + 1) % 3
                self.describe()
                self.dirty.add(name)
            case "delete" if name not in self.by_hand:  # who read it before it was deleted is not recorded
                output.unlink(missing_ok=True)
                self.dirty.add(name)
            case "by hand" if output.exists():
                before, _ = self.by_hand.get(name, (output.read_bytes(), b""))
                output.write_text(f"{self.rng.random()}\n")
                self.by_hand[name] = before, output.read_bytes()
                self.dirty.update(task for task, files in self.reads.items() if f"made/{name}" in files)
            case _:
                self.edit_source()

    def edit_source(self) -> None:
        """Change a source."""
        name = f"s{self.rng.randrange(SOURCES)}"
        self._write_source(name)
        self.dirty.update(task for task, files in self.reads.items() if name in files)

    def may_run(self) -> set[str]:
        """The tasks of which something changed or whose output is gone, and all that depend on them.

        A task whose output is gone may run until a run is complete: the end of its execution may be lost in a kill.
        """
        self.dirty |= {task for task in self.reads if not (self.place / "made" / task).exists()}
        allowed = set(self.dirty)
        for task, files in self.reads.items():  # in an order of the dag
            if any(file.removeprefix("made/") in allowed for file in files):
                allowed.add(task)
        return allowed

    def stale(self) -> list[str]:
        """The outputs that differ from what the sources and commands of this moment make; they need not exist if all read.

        An output that was edited by hand stays so until its task runs. So its task must run if it would now write something
        else than what was there before the edit.
        """
        right: dict[str, bytes] = {}
        for task, files in self.reads.items():
            read = b"".join(right.get(file) or (self.place / file).read_bytes() for file in files)
            digest = sha256(b"%d\n" % self.words[task] + read).hexdigest()
            made = f"{digest}  -\n".encode()
            before, after = self.by_hand.get(task, (made, made))
            right[f"made/{task}"] = after if before == made and self._holds(task, after) else made
        last = {f"made/t{DEEP - 1}_{i}" for i in range(WIDE)}
        there = {file for file in right if (self.place / file).exists()} | last
        return [file for file in sorted(there) if (self.place / file).read_bytes() != right[file]]

    def _holds(self, task: str, content: bytes) -> bool:
        """Whether this is the output; a cache may write it anew although no task begins."""
        path = self.place / "made" / task
        return path.exists() and path.read_bytes() == content


@pytest.mark.parametrize("on", ["local", "dask", "ray", "parsl"])
def test_no_stale_output_is_believed(on: str, tmp_path: Path) -> None:
    """Kills and edits in turns; some edits come while the run goes on. What a complete run leaves is right."""
    check_engine(on)
    project = Project(tmp_path, random.Random(int(asked("SEED", 20261119))))
    deadline, turn, kills, complete, needless = time.monotonic() + SECONDS, 0, 0, 0, 0
    while turn < TURNS and time.monotonic() < deadline:
        turn += 1
        for _ in range(project.rng.choice((0, 1, 1, 2))):
            project.edit()
        allowed = project.may_run()
        killed, edited = _turn(on, project, turn)
        kills += killed
        began = _began_in(tmp_path, project.reads, turn)
        project.by_hand = {task: edit for task, edit in project.by_hand.items() if task not in began}
        extra = began - project.may_run() - allowed
        needless += len(extra)
        assert not extra, f"turn {turn}: ran although nothing that they read had changed: {sorted(extra)}"
        if not killed and not edited:
            complete += 1
            assert project.stale() == [], f"turn {turn}"
            project.dirty.clear()
    assert _turn(on, project, turn + 1, may_be_killed=False) == (False, False)
    assert project.stale() == []
    _check_notes(tmp_path, project.reads)
    assert kills
    assert complete
    row = f"{kills} kills, {project.edits} edits, {complete} complete runs, 0 stale, {needless} needless executions"
    print(f"{on}: {len(project.reads)} tasks, {row}")  # noqa: T201


def _turn(on: str, project: Project, turn: int, may_be_killed: bool = True) -> tuple[bool, bool]:
    """Run or resume; whether it was killed, and whether a source was edited while it ran."""
    rng, flow = project.rng, project.place / "flow.json"
    cache = rng.choice(((), ("--cache", str(project.place / "cache"))))
    options = ("--on", on, "--workers", str(WORKERS), "--policy", "fifo", *cache)
    environment = surroundings(turn) | {"NOTES": "notes"}  # a file that a command names is part of a cache's key
    kill, edit = may_be_killed and rng.random() < 0.6, may_be_killed and rng.random() < 0.2
    with started(flow, *options, inside=inside(on), env=environment) as run:
        if edit:
            _wait(run, rng.uniform(0.0, LATEST[on]))
            project.edits += 1
            project.edit_source()
        if kill:
            _wait(run, rng.uniform(0.1, LATEST[on]))
            kill = run.poll() is None
            run.kill()
        out, err = run.communicate(timeout=120)
    assert kill or run.returncode == 0, f"turn {turn}: {out}{err}"
    return kill, edit


def _wait(run: "subprocess.Popen[str]", seconds: float) -> None:
    """Until so much time has passed, or the run has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and run.poll() is None:
        time.sleep(0.005)


def _notes(place: Path, task: str) -> list[tuple[str, int]]:
    path = place / "notes" / task
    rows = path.read_text().split() if path.exists() else []
    return [(word, int(turn)) for word, turn in zip(rows[::2], rows[1::2], strict=True)]


def _began_in(place: Path, tasks: Iterable[str], turn: int) -> set[str]:
    return {task for task in tasks if ("begin", turn) in _notes(place, task)}


def _check_notes(place: Path, tasks: Iterable[str]) -> None:
    """A task runs once in a turn, and never begins while its earlier self goes on."""
    for task in tasks:
        notes, began = _notes(place, task), 0
        begun = [turn for word, turn in notes if word == "begin"]
        assert begun == sorted(set(begun)), f"{task} ran twice in a turn: {notes}"
        for word, turn in notes:
            assert word == "begin" or turn == began, f"{task} began again while it still ran: {notes}"
            began = turn
