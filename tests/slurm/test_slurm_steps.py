"""Steps of a job of Slurm's that one has already, in a real cluster."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_pool import Cluster

import eligo
from eligo.engines import Command, Ending, Job
from eligo.engines.slurm import StepsEngine
from eligo.errors import InputError
from eligo.running import Retries
from engine_contract import HOSTILE, PARENTS, Bench, flow_of, kill_again_and_again, lines, noted, prepare

pytest_plugins = ["slurm_fixtures"]


@pytest.fixture
def bench(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A job of two cores, in which nothing runs."""
    monkeypatch.setenv("PATH", f"{cluster.programs}:{os.environ['PATH']}")
    asked = ["salloc", "--no-shell", "--ntasks=2"]
    granted = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stderr
    number = re.findall(r"Granted job allocation ([0-9]+)", granted)[0]
    monkeypatch.setenv("SLURM_JOB_ID", number)

    def steps(mark: str) -> list[str]:
        rows = cluster.run("squeue", "--steps", f"--job={number}", "--noheader", "--format=%i|%j").split()
        return [row.partition("|")[0] for row in rows if row.endswith(f"|eligo-{mark}")]

    yield Bench(StepsEngine.name, tmp_path, StepsEngine, lambda mark: None, steps)
    cluster.run("scancel", number)


def one(bench: Bench, command: Command, timeout: float | None = None) -> Ending:
    engine = bench.make(1, str(bench.folder("jobs")), "0badcafe")
    engine.start(Job(1, engine.asks()[0].client, ("t",), (command,), timeout=timeout))
    until = time.monotonic() + 60
    while not (found := engine.wait(1.0)):
        assert time.monotonic() < until
    engine.close()
    return found[0]


def test_everything_is_run_in_the_order(bench: Bench) -> None:
    place = bench.folder("dozen")
    flow = flow_of(PARENTS, noted)
    runner = prepare(bench, place, flow, workers=1).run()
    assert runner.execution.finished
    assert lines(place / "ran") == list(eligo.priorities(flow, "ready"))


def test_two_at_a_time_and_failures(bench: Bench) -> None:
    place = bench.folder("failures")
    both = "touch {0}; until test -e {1}; do sleep 0.1; done"  # ends only if the other one runs at the same time
    commands = {"a": both.format("a", "b"), "b": both.format("b", "a"), "c": "exit 3", "d": "true"}
    flow = flow_of({"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}, commands.__getitem__)
    going = prepare(bench, place, flow)
    going.runner.settings = replace(going.runner.settings, retries=Retries(most=0))
    runner = going.run()
    assert (runner.failures["c"].attempt.code, sorted(runner.execution.blocked)) == (3, ["d"])


def test_words_folder_and_streams_are_as_they_should(bench: Bench) -> None:
    place = bench.folder("words $(x) %j '\"")
    words = ("/bin/sh", "-c", 'cat; pwd; printf "%s\\0" "$X" "$@"; echo oops >&2', "sh", *HOSTILE)
    work = Command(words, str(place), {"X": HOSTILE[2]}, str(place / "out"), str(place / "err"))
    ending = one(bench, work)
    assert (ending.attempt.failure, ending.attempt.memory) == (None, None)
    folder, _, rest = (place / "out").read_bytes().partition(b"\n")
    assert os.fsdecode(folder) == str(place)
    assert rest.split(b"\0")[:-1] == [HOSTILE[2].encode(), *map(os.fsencode, HOSTILE)]
    assert (place / "err").read_text() == "oops\n"


def test_a_step_that_takes_too_long_is_ended(bench: Bench) -> None:
    ending = one(bench, Command(("/bin/sleep", "100"), "/"), timeout=1.0)
    assert ending.attempt.failure == "took longer than 1 s"
    until = time.monotonic() + 60
    while bench.jobs("0badcafe"):
        assert time.monotonic() < until


def test_steps_that_outlive_whoever_began_them_are_ended(bench: Bench) -> None:
    place = bench.folder("strays")
    engine = bench.make(1, str(place / "jobs"), "0badcafe")
    engine.start(Job(1, engine.asks()[0].client, ("t",), (Command(("/bin/sleep", "100"), "/"),)))
    until = time.monotonic() + 60
    while not bench.jobs("0badcafe"):
        assert time.monotonic() < until
    StepsEngine(1, str(place / "more"), "0badcafe").end_strays("0badcafe")
    assert bench.jobs("0badcafe") == []
    engine.close()


def test_nothing_is_lost_or_done_twice_when_the_dispatcher_is_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_again_and_again(bench, monkeypatch, kills=5, tasks=27)


def test_without_a_job_there_are_no_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(InputError, match="slurm-steps must run inside a Slurm job"):
        StepsEngine(1, str(tmp_path), "0badcafe")
