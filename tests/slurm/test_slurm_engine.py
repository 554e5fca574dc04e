"""Slurm as an engine, against a real cluster."""

import os
import time
from pathlib import Path

import pytest
from slurm_pool import Cluster

from eligo.engines import Command, Job, slurm
from eligo.engines.batch_system import QueueEngine
from eligo.running import Runner
from eligo.work.demands import Demand
from engine_contract import Bench, EngineContract, flow_of, lines, prepare

pytest_plugins = ["slurm_fixtures"]


@pytest.fixture
def bench(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PATH", f"{cluster.programs}:{os.environ['PATH']}")
    monkeypatch.setenv("ELIGO_KEPT", "kept")

    def make(workers: int, folder: str, mark: str) -> QueueEngine:
        return slurm.make(workers, folder, mark, python="/usr/bin/python3")

    def jobs(mark: str) -> list[str]:
        # a job that has ended is listed as completing for a moment, until its node has tidied up
        listing = cluster.run("squeue", "--noheader", "--states=PENDING,RUNNING,SUSPENDED", "--format=%i|%j")
        rows = [line.split("|") for line in listing.splitlines()]
        return [key for key, name in rows if name.startswith(f"eligo-{mark}.")]

    def remove(mark: str) -> None:
        cluster.run("scancel", *jobs(mark))

    return Bench("slurm", tmp_path, make, remove, jobs)


class TestSlurm(EngineContract):
    """What every engine must do."""


def test_a_job_that_is_removed_before_it_began_is_lost(bench: Bench, cluster: Cluster) -> None:
    place = bench.folder("waiting")
    going = prepare(
        bench, place, flow_of({name: [] for name in "abcd"}, lambda name: f"echo {name} >> ran; sleep 2"), 4
    )
    waiting: list[str] = []

    def watch(runner: Runner) -> None:
        if len(lines(place / "ran")) == 2 and not waiting:
            waiting.extend(cluster.run("squeue", "--noheader", "--states=PENDING", "--format=%i").split()[:1])
            cluster.run("scancel", *waiting)

    going.runner.watch = watch
    runner = going.run()
    assert runner.execution.finished
    assert sorted(lines(place / "ran")) == list("abcd")
    assert sorted(runner.tries.begun.values()) == [2]


def test_a_controller_that_is_away_for_a_while_is_waited_for(bench: Bench, cluster: Cluster) -> None:
    place = bench.folder("away")
    flow = flow_of({"a": [], "b": ["a"], "c": ["b"]}, lambda name: f"echo {name} >> ran; sleep 1")
    going = prepare(bench, place, flow)
    killed: list[int] = []

    def watch(runner: Runner) -> None:
        if lines(place / "ran") and not killed:
            killed.append(1)
            cluster.run("scontrol", "shutdown", "slurmctld")

    going.runner.watch = watch
    runner = going.run()
    assert runner.execution.finished
    assert lines(place / "ran") == ["a", "b", "c"]
    assert not runner.tries.begun


def test_of_those_that_wait_the_better_goes_first(bench: Bench, cluster: Cluster) -> None:
    place = bench.folder("nice")
    engine = bench.make(8, str(place / "jobs"), "0badcafe")
    cluster.run("scontrol", "update", "partitionname=main", "state=down")
    try:
        for number, priority in enumerate((5, 3, 4, 1, 6, 2), 1):
            work = Command(("/bin/sh", "-c", f"echo {priority} >> ran; sleep 0.2"), str(place))
            engine.start(Job(number, engine.asks()[0].client, (number,), (work,), priority, Demand(2.0)))
    finally:
        cluster.run("scontrol", "update", "partitionname=main", "state=up")
    ended, until = 0, time.monotonic() + 60
    while ended < 6 and time.monotonic() < until:
        ended += len(engine.wait(1.0))
    engine.close()
    assert lines(place / "ran") == list("654321")


def test_what_slurm_refuses_is_a_failure_with_its_reason(bench: Bench) -> None:
    place = bench.folder("refused")
    engine = slurm.make(1, str(place / "jobs"), "0badcafe", ["--partition=nowhere"])
    engine.start(Job(1, engine.asks()[0].client, ("t",), (Command(("/bin/true",), "/"),)))
    (ending,) = engine.wait(1.0)
    assert not ending.attempt.lost
    assert "invalid partition" in str(ending.attempt.failure)
    engine.close()


def test_a_node_without_python_is_told(bench: Bench) -> None:
    place = bench.folder("no python")
    engine = slurm.make(1, str(place / "jobs"), "0badcafe", python="/no/python")
    engine.start(Job(1, engine.asks()[0].client, ("t",), (Command(("/bin/true",), "/"),)))
    until = time.monotonic() + 60
    while not (found := engine.wait(1.0)) and time.monotonic() < until:
        pass
    (ending,) = found
    assert ending.attempt.lost
    assert "/no/python" in str(ending.attempt.failure)
    engine.close()
