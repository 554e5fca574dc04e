"""A run with --clean whose dispatcher is killed again and again ends with the results of a run that keeps everything."""

import json
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from eligo.stores import read_files
from killing_cases import asked, check_store
from running_cases import completed, ran, started

KILLS = int(asked("KILLS", 12))
WIDE, DEEP = 4, 6


def tangled(rng: random.Random) -> list[dict[str, Any]]:
    """Tasks in layers that each read some files of the two layers above."""
    rows, above = list[dict[str, Any]](), ["raw"]
    for layer in range(DEEP):
        names = [f"t{layer}_{number}" for number in range(WIDE)]
        for name in names:
            reads = sorted(rng.sample(above, min(len(above), 3)))
            line = f"cat {' '.join(reads)} > {name}.part; sleep 0.05; cksum {name}.part > {name}; rm {name}.part"
            rows.append({"name": name, "run": line, "inputs": reads, "outputs": [name]})
        above = [*above[-WIDE:], *names]
    return rows


def test_kills_lose_no_file_that_a_task_needs(tmp_path: Path) -> None:
    """No task ever misses an input: each runs without retries, and `cat` would fail."""
    rng, places = random.Random(20261119), [tmp_path / name for name in ("cleaned", "plain")]
    rows = tangled(rng)
    for place in places:
        place.mkdir()
        (place / "raw").write_text("raw\n")
        (place / "flow.json").write_text(json.dumps({"tasks": rows}))
    flow, run, done_in = places[0] / "flow.json", places[0] / "flow.json.run", dict[str, int]()
    for cycle in range(KILLS):
        with started(flow, "--clean", "-q", "--retries", "0", "--workers", "3") as dispatcher:
            until = time.monotonic() + rng.uniform(0.3, 2.0)
            while time.monotonic() < until and dispatcher.poll() is None:
                time.sleep(0.01)
            dispatcher.send_signal(signal.SIGKILL)
            dispatcher.communicate()
        if dispatcher.returncode == 0:  # it was faster: begin anew
            check_end(places[0], rows)
            shutil.rmtree(run)
            for row in rows:
                (places[0] / row["name"]).unlink(missing_ok=True)
            done_in.clear()
        assert dispatcher.returncode in {0, -signal.SIGKILL}
        check_store(run, done_in, cycle)
    assert ran(flow, "--clean", "-q", "--retries", "0") == 0
    assert completed(run) == dict.fromkeys((row["name"] for row in rows), 1)
    assert ran(places[1] / "flow.json", "-q") == 0
    check_end(places[0], rows)
    for file in results(rows):
        assert (places[0] / file).read_bytes() == (places[1] / file).read_bytes()


def results(rows: list[dict[str, Any]]) -> set[str]:
    """The files that no task reads."""
    return {row["name"] for row in rows} - {file for row in rows for file in row["inputs"]}


def check_end(place: Path, rows: list[dict[str, Any]]) -> None:
    """After a complete run all results are there and no other output is, and the store says the same."""
    there = {row["name"] for row in rows if (place / row["name"]).exists()}
    assert there == results(rows)
    last = {change.name: change.size for change in read_files(place / "flow.json.run" / "run.db")}
    assert {name for name, size in last.items() if size is not None} == there
