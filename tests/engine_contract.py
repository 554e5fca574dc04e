"""What every engine with a queue of its own must do, through the loop that runs workflows.

A test file of such an engine has a fixture `bench` and a class that inherits from `EngineContract`.
"""

import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import eligo
from eligo.engines import Command, Engine, Job
from eligo.running import Commands, Retries, RunFolder, Runner, Settings
from eligo.work.demands import Demand
from eligo.workflow import Task, Workflow
from killing_cases import GOING, asked, check_executions, check_store, layers, noting, surroundings, told
from running_cases import completed

DISPATCH = Path(__file__).with_name("engine_dispatch.py")
SECONDS = 120.0
#: what is killed: so many tasks, so wide, that take so long; so often, within so many seconds, at times before tasks begin
TASKS, KILLS, WORKERS = (int(asked(*each)) for each in (("TASKS", 45), ("KILLS", 10), ("WORKERS", 2)))
NAP, KILLING, WIDE, EARLY = asked("NAP", 0.5), asked("SECONDS", 60.0), max(9, TASKS // 20), 4
HOSTILE = ["", " ", "$HOME `id` \"' \\ \n\t;&|<>*", "-x", "--", "%j %", "ünï", os.fsdecode(b"\xff\xfe"), "$(JOB) $$(X)"]
FAST = Retries(most=2, lost=3, first=0.1, longest=0.2)
PARENTS = {
    "a": [], "b": [], "c": ["a"], "d": ["a", "b"], "e": ["c"], "f": ["c", "d"], "g": [], "h": ["g", "f"], "i": ["e"],
    "j": ["h", "i"], "k": ["j"], "l": ["j", "b"],
}  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """A system under test: its name and what makes it an engine, a folder that its nodes see, and how to remove a job."""

    name: str
    shared: Path
    #: workers, folder for jobs, the mark of the run
    make: Callable[[int, str, str], Engine]
    #: remove the jobs of a run, by the system's own means, as somebody else would
    remove: Callable[[str], None]
    #: the jobs of a run that the system has
    jobs: Callable[[str], list[str]]

    def folder(self, name: str) -> Path:
        folder = self.shared / f"{name} {time.monotonic_ns()}"
        folder.mkdir()
        return folder


@dataclass(frozen=True)
class Going:
    """A run in a folder, ready to go."""

    folder: RunFolder
    engine: Engine
    runner: Runner

    def run(self, seconds: float = SECONDS) -> Runner:
        until = time.monotonic() + seconds
        watched = self.runner.watch

        def watch(runner: Runner) -> None:
            if time.monotonic() > until:
                raise TimeoutError(f"still running: {[job.tasks for job in runner.running.values()]}")
            watched(runner)

        self.runner.watch = watch
        try:
            self.runner.run()
        finally:
            self.engine.close()
            self.folder.close()
        return self.runner


def flow_of(parents: Mapping[str, Sequence[str]], command: Callable[[str], str | tuple[str, ...]]) -> Workflow:
    dag = eligo.Dag.from_parents(parents)
    return Workflow(dag, {name: Task(name=name, command=command(name)) for name in dag.tasks})


def noted(name: str) -> str:
    """A command that writes its task's name down, if what it needs was run before."""
    needs = " && ".join([f"grep -qx {other} ran" for other in PARENTS[name]] or ["true"])
    return f"{needs} && echo {shlex.quote(name)} >> ran"


def prepare(bench: Bench, place: Path, flow: Workflow, workers: int = 2, timeout: float | None = None) -> Going:
    """A run of a workflow, begun or gone on with."""
    folder = RunFolder(place / "run")
    engine = bench.make(workers, folder.jobs, folder.mark)
    resumed = folder.resume(flow, engine)
    folder.begin(flow, resumed)
    work = Commands(flow, str(place), folder.logs, (("ELIGO_RUN", folder.mark),))
    work.make_folders()
    rules = eligo.allocator("ready", flow, resumed.execution, rules=None)
    runner = Runner(resumed.execution, rules, engine, work, folder.store, Settings(retries=FAST, timeout=timeout))
    return Going(folder, engine, runner)


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


class EngineContract:
    """The tests themselves."""

    def test_everything_is_run_and_nothing_twice(self, bench: Bench) -> None:
        place = bench.folder("dozen")
        going = prepare(bench, place, flow_of(PARENTS, noted))
        runner = going.run()
        assert runner.execution.finished
        assert sorted(lines(place / "ran")) == sorted(PARENTS)
        assert not list((place / "run" / "jobs").iterdir())
        until = time.monotonic() + SECONDS
        while bench.jobs(going.folder.mark):
            assert time.monotonic() < until, "a job stays in the queue although all tasks are done"
            time.sleep(0.1)

    def test_one_at_a_time_they_begin_in_the_order(self, bench: Bench) -> None:
        place = bench.folder("order")
        flow = flow_of(PARENTS, noted)
        prepare(bench, place, flow, workers=1).run()
        assert lines(place / "ran") == list(eligo.priorities(flow, "ready"))

    def test_words_folder_environment_and_streams_are_as_they_should(self, bench: Bench) -> None:
        place = bench.folder("words $(x) %j '\"")
        script = 'cat; pwd; printf "%s\\0" "$X" "$ELIGO_KEPT" "$@"; echo oops >&2'
        out, err = str(place / "out"), str(place / "err")
        words = ("/bin/sh", "-c", script, "sh", *HOSTILE)
        work = Command(words, str(place), {"X": HOSTILE[2]}, out, err)
        engine = bench.make(1, str(place / "jobs"), "0badcafe")
        engine.start(Job(1, engine.asks()[0].client, ("t",), (work,), 7, Demand(1.0, 10_000_000)))
        ending = only_ending(engine)
        engine.close()
        assert (ending.attempt.failure, ending.attempt.code, ending.attempt.lost) == (None, 0, False)
        assert 0 < ending.attempt.ended - ending.attempt.began < 10
        folder, _, rest = Path(out).read_bytes().partition(b"\n")
        assert os.fsdecode(folder) == str(place)
        assert rest.split(b"\0")[:-1] == [HOSTILE[2].encode(), b"kept", *map(os.fsencode, HOSTILE)]
        assert Path(err).read_text() == "oops\n"

    def test_failures_are_tried_again_and_for_good_what_needs_them_is_futile(self, bench: Bench) -> None:
        place = bench.folder("failures")
        commands: dict[str, str | tuple[str, ...]] = {
            "once": "test -e once || { touch once; exit 3; }", "poison": "echo x >> poison; kill -9 $$",
            "missing": ("/no/such/program",), "after": "true", "below": "true", "good": "true",
        }  # fmt: skip
        parents = {"once": [], "poison": [], "missing": [], "after": ["poison"], "below": ["after"], "good": ["once"]}
        runner = prepare(bench, place, flow_of(parents, lambda name: commands[name])).run()
        assert sorted(runner.execution.executed) == ["good", "once"]
        assert sorted(runner.execution.blocked) == ["after", "below"]
        assert {name: (end.attempt.failure, end.attempt.code) for name, end in runner.failures.items()} == {
            "poison": ("ended by SIGKILL", -9),
            "missing": ("cannot run '/no/such/program': No such file or directory", 127),
        }
        assert {task: runner.attempts_at(task) for task in runner.execution.dag.tasks if runner.attempts_at(task)} == {
            "once": 2,
            "poison": 3,
            "missing": 3,
        }
        assert len(lines(place / "poison")) == 3

    def test_a_job_that_somebody_else_removes_is_lost_and_tried_again(self, bench: Bench) -> None:
        place = bench.folder("removed")
        going = prepare(bench, place, flow_of({"t": []}, lambda _: "echo x >> ran; test -e go || sleep 100"))
        removed: list[bool] = []

        def watch(runner: Runner) -> None:
            if lines(place / "ran") and not removed:
                removed.append(True)
                (place / "go").touch()
                bench.remove(going.folder.mark)

        going.runner.watch = watch
        runner = going.run()
        assert runner.execution.finished
        assert runner.attempts_at("t") == 2
        assert lines(place / "ran") == ["x", "x"]

    def test_a_task_that_takes_too_long_is_ended(self, bench: Bench) -> None:
        place = bench.folder("timeout")
        going = prepare(bench, place, flow_of({"t": []}, lambda _: "sleep 100 & wait"), timeout=1.0)
        going.runner.settings = replace(going.runner.settings, retries=Retries(most=0))
        runner = going.run()
        assert runner.failures["t"].attempt.failure == "took longer than 1 s"

    def test_stopping_empties_the_queue(self, bench: Bench) -> None:
        place = bench.folder("stopped")
        going = prepare(bench, place, flow_of({name: [] for name in "abc"}, lambda _: "echo x >> ran; sleep 100"), 3)
        going.runner.watch = lambda runner: runner.abort() if lines(place / "ran") else None
        runner = going.run()
        assert not runner.execution.executed
        assert not runner.execution.allocated
        assert bench.jobs(going.folder.mark) == []

    def test_nothing_is_lost_or_done_twice_when_the_dispatcher_is_killed_again_and_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kill_again_and_again(bench, monkeypatch, KILLS, TASKS)


def kill_again_and_again(bench: Bench, monkeypatch: pytest.MonkeyPatch, kills: int, tasks: int) -> None:
    """Kill the dispatcher of a run so often, and count how often each task was run."""
    place, rng, done_in = bench.folder("killed"), random.Random(20261115), dict[str, int]()
    parents = layers(place, tasks, WIDE, rng)
    (place / "flow.json").write_text(json.dumps({"parents": parents, "command": noting(NAP)}))
    until, cycle = time.monotonic() + KILLING, 0
    while cycle < kills and time.monotonic() < until and len(done_in) < tasks:
        cycle += 1
        kill_after(bench, place, cycle, rng)
        check_store(place / "run", done_in, cycle)
    monkeypatch.setenv("CYCLE", str(cycle + 1))
    going = prepare(bench, place, flow_of(parents, lambda _: noting(NAP)), WORKERS)
    assert bench.jobs(going.folder.mark) == []
    assert going.run(max(SECONDS, KILLING)).execution.finished
    check_store(place / "run", done_in, cycle + 1)
    assert completed(place / "run") == dict.fromkeys(parents, 1)
    again = check_executions(place, done_in, WORKERS)
    assert cycle >= 3
    assert again >= 1
    print(told(bench.name, tasks, cycle, again))  # noqa: T201


def kill_after(bench: Bench, place: Path, cycle: int, rng: random.Random) -> None:
    """Go on with the run in a process of its own, and kill it some moments after tasks began; now and then before."""
    process = subprocess.Popen([sys.executable, str(DISPATCH), bench.name, str(place)], env=surroundings(cycle))
    try:
        while cycle % EARLY and not (place / GOING / str(cycle)).exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 3.0))
        assert not process.poll(), "the dispatcher failed"
    finally:
        process.kill()
        process.wait()


def only_ending(engine: Engine) -> eligo.engines.Ending:
    until = time.monotonic() + SECONDS
    while not (found := engine.wait(1.0)):
        assert time.monotonic() < until
    (ending,) = found
    return ending
