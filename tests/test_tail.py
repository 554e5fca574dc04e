"""The tail of a run's store: what ended before a kill of the process is known, although it was not committed yet."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from eligo.stores import Store

#: writes three moves and an attempt, and dies before a transaction can begin
KILLED = """
import os, signal, sys
from eligo.stores import Attempt, Store, run_store
run_store.LINGER = 60
store = Store(sys.argv[1])
store.begin({"a": b"", "b": b""})
store.open_session("finish", 2, "local")
store.add([1, 2], [Attempt("", 0, 0, 1, "slot 1", "", 1.5, 2.25, "accepted", None, 0, None)])
store.add([3])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The store of a process that was killed."""
    path = tmp_path / "run.db"
    process = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL
    return path


def test_what_a_killed_process_had_queued_is_stored_when_the_file_is_opened(path: Path) -> None:
    for _ in range(2):  # and only once
        with closing(Store(path)) as store:
            assert list(store.moves()) == [1, 2, 3]
            assert list(store.attempted()) == [0]
            assert not store.failing()
    assert not list(path.parent.glob("*.tail-*"))


@pytest.mark.parametrize("damage", ["cut", "spoilt", "empty"])
def test_damaged_records_and_those_behind_them_are_left_out(path: Path, damage: str) -> None:
    (tail,) = (file for file in path.parent.glob("*.tail-*") if file.stat().st_size)
    data = tail.read_bytes()
    tail.write_bytes({"cut": data[:-3], "spoilt": data.replace(b"1.5", b"1.6"), "empty": b""}[damage])
    with closing(Store(path)) as store:
        assert list(store.moves()) == {"cut": [1, 2], "spoilt": [], "empty": []}[damage]


def test_the_tail_of_an_earlier_journal_is_left_out(path: Path) -> None:
    tails = {file: file.read_bytes() for file in path.parent.glob("*.tail-*")}
    with closing(Store(path)) as store:
        store.begin({"b": b""})
        store.open_session("finish", 2, "local")
    for file, data in tails.items():
        file.write_bytes(data)
    with closing(Store(path)) as store:
        assert not store.moves()


def test_kills_repeat_at_most_the_tasks_that_were_running(tmp_path: Path) -> None:
    tasks, kills, workers, log, random = 400, 5, 2, tmp_path / "log", Random(3)
    rows = [{"name": f"t{i}", "run": f"echo t{i} >> log"} for i in range(tasks)]
    (tmp_path / "flow.json").write_text(json.dumps({"tasks": rows}))
    log.touch()
    command = [sys.executable, "-m", "eligo", "run", str(tmp_path / "flow.json"), "-q", "-j", str(workers)]
    for _ in range(kills):
        before, until = log.stat().st_size, time.monotonic() + 60
        with subprocess.Popen(command) as process:
            more = random.randrange(1, 250)
            while log.stat().st_size < before + more and process.poll() is None and time.monotonic() < until:
                os.sched_yield()
            process.kill()
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    counts = Counter(log.read_text().split())
    assert len(counts) == tasks
    assert counts.total() <= tasks + kills * workers
