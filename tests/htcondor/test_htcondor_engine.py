"""HTCondor as an engine, against a real pool."""

import time
from pathlib import Path

from condor_pool import Pool

from eligo.engines import Command, Ending, Engine, Job, htcondor
from eligo.running import Runner
from eligo.work.demands import Demand
from engine_contract import Bench, EngineContract, flow_of, lines, prepare

pytest_plugins = ["condor_fixtures"]


class TestHTCondor(EngineContract):
    """What every engine must do."""


def one(bench: Bench, name: str, command: str, engine: Engine | None = None) -> tuple[Engine, Path]:
    """One job on its way."""
    place = bench.folder(name)
    going = bench.make(1, str(place / "jobs"), "0badcafe") if engine is None else engine
    work = Command(("/bin/sh", "-c", command), str(place))
    going.start(Job(1, going.asks()[0].client, ("t",), (work,)))
    return going, place


def ending_of(engine: Engine, seconds: float = 60) -> Ending:
    until = time.monotonic() + seconds
    while not (found := engine.wait(1.0)):
        assert time.monotonic() < until
    engine.close()
    return found[0]


def test_a_job_that_is_held_has_failed_with_the_reason(bench: Bench, pool: Pool) -> None:
    engine, _ = one(bench, "held", "sleep 100")
    pool.run("condor_hold", "-reason", "for a test", *bench.jobs("0badcafe"))
    ending = ending_of(engine)
    assert not ending.attempt.lost
    assert "for a test" in str(ending.attempt.failure)
    until = time.monotonic() + 20
    while bench.jobs("0badcafe"):
        assert time.monotonic() < until


def test_a_job_that_is_evicted_is_lost_and_tried_again(bench: Bench, pool: Pool) -> None:
    place = bench.folder("evicted")
    going = prepare(bench, place, flow_of({"t": []}, lambda _: "echo x >> ran; test -e go || sleep 100"))
    evicted: list[bool] = []

    def watch(runner: Runner) -> None:
        if lines(place / "ran") and not evicted:
            evicted.append(True)
            (place / "go").touch()
            pool.run("condor_vacate_job", "-fast", *bench.jobs(going.folder.mark))

    going.runner.watch = watch
    runner = going.run()
    assert runner.execution.finished
    assert runner.attempts_at("t") == 2
    assert lines(place / "ran") == ["x", "x"]


def test_the_better_has_the_larger_number_and_what_a_job_needs_is_asked_for(bench: Bench, pool: Pool) -> None:
    place = bench.folder("numbers")
    engine = bench.make(2, str(place / "jobs"), "0badcafe")
    work = Command(("/bin/true",), "/")
    engine.start(Job(1, engine.asks()[0].client, ("t",), (work,), 41, Demand(64.0, 2**31)))
    (key,) = bench.jobs("0badcafe")
    assert pool.run("condor_q", key, "-af", "JobPrio", "RequestCpus", "RequestMemory").split() == ["41", "64", "2048"]
    engine.cancel([Job(1, None, ("t",), (work,))])
    assert ending_of(engine).attempt.lost


def test_a_node_without_python_is_told(bench: Bench) -> None:
    engine = htcondor.make(1, str(bench.folder("no python") / "jobs"), "0badcafe", python="/no/python")
    one(bench, "x", "true", engine)
    assert "/no/python" in str(ending_of(engine).attempt.failure)


def test_what_htcondor_refuses_is_a_failure_with_its_reason(bench: Bench) -> None:
    engine = htcondor.make(1, str(bench.folder("refused") / "jobs"), "0badcafe", ["universe = nowhere"])
    one(bench, "y", "true", engine)
    ending = ending_of(engine)
    assert not ending.attempt.lost
    assert "universe" in str(ending.attempt.failure)
