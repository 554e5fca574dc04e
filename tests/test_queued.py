"""Jobs in a batch system's queue, with a system of our own that does what it is told, and what real ones do now and then."""

import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from eligo.engines import Command, Ending, Function, Job
from eligo.engines.batch_system import QueueEngine, Sighting, UnansweredError, query
from eligo.engines.slurm import Nice
from eligo.errors import InputError


class Pretended:
    """A system whose jobs are processes here."""

    name = "pretended"
    looks = (0.02, 0.1)

    def __init__(self) -> None:
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.submits = 0
        #: what goes wrong: before and after a job is taken, and what is told of jobs instead of the truth
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.told: dict[int, Sighting] = {}
        self.silent = False
        self.removed: list[str] = []

    def submit(self, folder: Path, job: Job, words: Sequence[str]) -> str:
        self.submits += 1
        if self.before:
            raise self.before.pop()
        printed = (folder / f"{job.number}.txt").open("wb")
        with printed:
            self.running[job.number] = subprocess.Popen(words, cwd=folder, stderr=printed)
        if self.after:
            raise self.after.pop()
        return str(job.number)

    def look(self, folder: Path) -> Mapping[int, Sighting] | None:
        if self.silent:
            return None
        codes = {number: process.poll() for number, process in self.running.items()}
        found = {number: Sighting(str(number), code is not None, code == 0, "over") for number, code in codes.items()}
        return {**found, **self.told}

    def remove(self, keys: Collection[str]) -> None:
        self.removed += keys
        for key in keys:
            self.running[int(key)].terminate()

    def end_strays(self, mark: str) -> None:
        self.removed.append(mark)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    monkeypatch.setattr("eligo.engines.batch_system.CLEAR", 0.3)
    monkeypatch.setattr("eligo.engines.batch_system.LATE", 0.5)
    monkeypatch.setattr("eligo.engines.batch_system.AGAIN", (0.05, 0.2))
    pretended = Pretended()
    yield pretended
    for process in pretended.running.values():
        process.kill()
        process.wait()


def start(engine: QueueEngine, number: int = 1, *codes: str) -> Job:
    works = tuple(Command((sys.executable, "-S", "-c", code), "/") for code in codes or ("pass",))
    job = Job(number, engine.asks()[0].client, tuple(f"t{place}" for place in range(len(works))), works)
    engine.start(job)
    return job


def endings(engine: QueueEngine, count: int = 1) -> list[Ending]:
    found: list[Ending] = []
    until = time.monotonic() + 20
    while len(found) < count:
        assert time.monotonic() < until
        found += engine.wait(0.25)
    return found


def test_a_job_comes_back_and_its_slot_is_free(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    start(engine)
    (next(tmp_path.iterdir()) / "done" / ".nfs0001").touch()  # as file servers leave them
    assert engine.asks() == []
    (ending,) = endings(engine)
    assert (ending.attempt.failure, ending.attempt.code, ending.task) == (None, 0, "t0")
    assert len(engine.asks()) == 1
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_system_that_does_not_answer_is_asked_again(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    queue.before = [UnansweredError("away"), UnansweredError("away")]
    start(engine)
    assert endings(engine)[0].attempt.failure is None
    assert queue.submits == 3


def test_a_job_that_was_taken_without_an_answer_is_not_handed_in_again(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    queue.after = [UnansweredError("timed out")]
    start(engine, 1, "import time; time.sleep(0.5)")
    assert endings(engine)[0].attempt.failure is None
    assert queue.submits == 1


def test_while_nothing_is_known_nothing_is_lost(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    start(engine, 1, "import time; time.sleep(1)")
    queue.silent = True
    assert endings(engine)[0].attempt.failure is None


def test_what_is_refused_is_a_failure(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    queue.before = [InputError("no such partition")]
    start(engine)
    (ending,) = endings(engine)
    assert (ending.attempt.failure, ending.attempt.lost) == ("no such partition", False)


def test_a_worker_that_is_killed_is_lost_with_what_it_did_before(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    start(engine, 1, "pass", "import os, time; os.kill(os.getppid(), 9); time.sleep(1)", "pass")
    first, second = endings(engine, 2)
    assert (first.attempt.failure, first.place) == (None, 0)
    assert (second.place, second.attempt.lost, second.last) == (1, True, True)


def test_a_worker_that_cannot_even_begin_says_why(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path, python="/bin/cat")
    start(engine)
    (ending,) = endings(engine)
    assert ending.attempt.lost
    assert "over: " in str(ending.attempt.failure)
    assert "cat: " in str(ending.attempt.failure)


def test_what_is_held_has_failed_and_is_taken_out(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    queue.told[1] = Sighting("1", True, why="held: no", lost=False, to_remove=True)
    start(engine, 1, "import time; time.sleep(60)")
    (ending,) = endings(engine)
    assert ending.attempt.lost or ending.attempt.failure == "held: no"
    assert queue.removed == ["1"]


def test_stopping_ends_what_runs(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 2, tmp_path)
    job = start(engine, 1, "import time; time.sleep(60)")
    queue.before = [UnansweredError("away")] * 1000
    other = start(engine, 2)
    while not list(tmp_path.glob("*/1.json.begun")):
        time.sleep(0.01)
    time.sleep(0.2)
    engine.cancel([job, other])
    found = endings(engine, 2)
    assert [ending.attempt.lost for ending in found] == [True, True]
    assert len(engine.asks()) == 2


def test_what_an_earlier_process_left_is_taken_away(queue: Pretended, tmp_path: Path) -> None:
    before = QueueEngine(queue, 1, tmp_path)
    start(before)
    engine = QueueEngine(queue, 1, tmp_path)
    engine.end_strays("mark")
    assert queue.removed == ["mark"]
    assert list(tmp_path.iterdir()) == []
    QueueEngine(queue, 1, tmp_path / "new").end_strays("other")
    assert queue.removed == ["mark"]


def test_functions_are_refused(queue: Pretended, tmp_path: Path) -> None:
    engine = QueueEngine(queue, 1, tmp_path)
    with pytest.raises(InputError, match="batch systems run commands"):
        engine.start(Job(1, engine.asks()[0].client, ("t",), (Function(print),)))


def test_a_program_that_is_missing_or_complains_is_told() -> None:
    with pytest.raises(InputError, match="no-such-program is not installed"):
        query(["no-such-program"], ())
    with pytest.raises(UnansweredError, match="cannot access"):
        query(["ls", "/no/such"], ("cannot access",))
    with pytest.raises(InputError, match=r"^ls: "):
        query(["ls", "/no/such"], ("timed out",))


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_of_jobs_that_wait_almost_all_go_in_the_order(seed: int, counted: bool) -> None:
    """Whether or not the cluster prefers what was handed in first."""
    random, nice = Random(seed), Nice(16)
    jobs = [Job(number, None, (), (), random.randrange(1000)) for number in range(16)]
    back = {job.number: nice.of(job) for job in jobs}
    went = sorted(jobs, key=lambda job: (back[job.number] + counted * job.number, job.number))
    pairs = [(a, b) for place, a in enumerate(went) for b in went[place + 1 :]]
    assert sum(a.priority < b.priority for a, b in pairs) <= len(pairs) / 10
