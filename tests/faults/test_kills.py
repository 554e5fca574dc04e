"""A run whose dispatcher is killed again and again: nothing is lost, nothing counts twice, nothing runs twice at once."""

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from eligo.engines.sessions import POOL, marked_processes
from eligo.running.folder import MARK, kept_workflow
from killing_cases import (
    GOING,
    asked,
    check_engine,
    check_executions,
    check_store,
    inside,
    layers,
    noting,
    surroundings,
    told,
)
from running_cases import COMMAND, completed, started, written

WORKERS = int(asked("WORKERS", 4))
EARLY = 6  # every so-manieth kill comes at any moment from the start on
SECONDS = asked("SECONDS", 150.0)
LINGER = 5.0  # seconds that workers of a dispatcher that is gone may take to go too


@dataclass(frozen=True)
class Course:
    """A run to be killed; how often and how large it is, the environment may say too."""

    on: str
    tasks: int
    #: how long a task takes, and how long it takes at most from the start of a dispatcher to its first task
    nap: float
    starting: float
    kills: int
    seconds: float

    def as_asked(self) -> "Course":
        tasks, kills = int(asked("TASKS", self.tasks)), int(asked("KILLS", self.kills))
        return replace(self, tasks=tasks, kills=kills, nap=asked("NAP", self.nap))

    @property
    def wide(self) -> int:
        return max(10, self.tasks // 20)


COURSES = [
    Course("local", 2000, 0.04, 1.5, 50, SECONDS),
    Course("dask", 300, 0.1, 4.0, 25, max(SECONDS / 2.0, min(SECONDS, 60.0))),
    Course("ray", 60, 0.1, 6.0, 4, SECONDS),
    Course("parsl", 60, 0.1, 4.0, 4, SECONDS),
]


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.on)
def test_many_kills(course: Course, tmp_path: Path) -> None:
    """Each task says in a file of its own in which cycle, from one kill to the next, it begins and ends."""
    check_engine(course.on)
    course = course.as_asked()
    rng = random.Random(20261115)
    parents = layers(tmp_path, course.tasks, course.wide, rng)
    tasks = [{"name": name, "run": noting(course.nap), "after": above} for name, above in parents.items()]
    flow = tmp_path / "flow.json"
    flow.write_text(json.dumps({"tasks": tasks}))
    run, done_in = tmp_path / "flow.json.run", dict[str, int]()
    deadline, cycle = time.monotonic() + course.seconds, 0
    while cycle < course.kills and time.monotonic() < deadline:
        cycle += 1
        ended = _killed(course, flow, cycle, rng)
        check_store(run, done_in, cycle)
        if ended:
            break
    with _begun(course, flow, cycle + 1) as last:
        out, err = last.communicate(timeout=max(120.0, SECONDS))
    assert last.returncode == 0, err
    assert f"All {course.tasks:,} tasks done" in out
    check_store(run, done_in, cycle + 1)
    assert completed(run) == dict.fromkeys(parents, 1)
    again = check_executions(tmp_path, done_in, WORKERS)
    mark = kept_workflow(run)[0]["mark"]
    assert marked_processes(MARK, [mark]) == []
    assert marked_processes(POOL, [mark]) == []
    assert cycle >= 3
    assert again >= cycle
    print(told(course.on, course.tasks, cycle, again))  # noqa: T201


def test_workers_that_do_not_get_to_run_go_with_their_dispatcher_too(tmp_path: Path) -> None:
    """One that does not notice at once what happened could go on beside the next dispatcher."""
    check_engine("dask")
    flow = written(tmp_path, [{"name": "t", "run": "touch began; sleep 300"}])
    command = [*COMMAND, "run", str(flow), "--on", "dask", "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        until = time.monotonic() + 60
        while not (tmp_path / "began").exists():
            assert time.monotonic() < until
            assert run.poll() is None
            time.sleep(0.05)
        workers = [number for number in _children(run.pid) if b"resource_tracker" not in _words(number)]
        for number in workers:
            os.kill(number, signal.SIGSTOP)
        run.kill()
        run.wait()
    try:
        assert len(workers) >= 2
        assert _gone(workers)
    finally:
        for number in (*workers, *marked_processes(MARK, [kept_workflow(tmp_path / "flow.yaml.run")[0]["mark"]])):
            if Path("/proc", str(number)).exists():
                os.kill(number, signal.SIGKILL)


def _begun(course: Course, flow: Path, cycle: int) -> "subprocess.Popen[str]":
    """A dispatcher; by first come, first served, whose beginning takes no time."""
    options = ("--on", course.on, "--workers", str(WORKERS), "--policy", "fifo")
    return started(flow, *options, inside=inside(course.on), env=surroundings(cycle))


def _killed(course: Course, flow: Path, cycle: int, rng: random.Random) -> bool:
    """Go on with the run and kill it at some moment after tasks began, at times before; whether it ended before.

    Dask's workers go with it; tasks, and what Ray and Parsl leave, are for the next one to end.
    """
    going = flow.parent / GOING / str(cycle)
    with _begun(course, flow, cycle) as run:
        while cycle % EARLY and not going.exists() and run.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.7) if cycle % EARLY else rng.uniform(0.1, course.starting))
        ended = run.poll() is not None
        workers = _children(run.pid) if course.on == "dask" else []
        run.kill()
        run.communicate()
    assert _gone(workers)
    return ended


def _children(parent: int) -> list[int]:
    """The processes that a process began itself."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(told[1]) == parent:
            found.append(int(place.parent.name))
    return found


def _words(process: int) -> bytes:
    return Path("/proc", str(process), "cmdline").read_bytes()


def _gone(processes: list[int]) -> bool:
    """Whether these end soon."""
    until = time.monotonic() + LINGER
    while left := [number for number in processes if Path("/proc", str(number)).exists()]:
        if time.monotonic() > until:
            print(f"still there: {left}")  # noqa: T201
            return False
        time.sleep(0.02)
    return True
