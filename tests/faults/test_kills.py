"""A run whose dispatcher is killed again and again: nothing is lost, nothing counts twice, nothing runs twice at once."""

import json
import os
import random
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from running_cases import completed, lines, started, state_of

TASKS, LAYER, WORKERS, KILLS = 2000, 100, 4, 50
EARLY = 6  # every so-manieth kill comes at any moment from the start on
SECONDS = float(os.environ.get("ELIGO_FAULT_SECONDS", "150"))
OPTIONS = ("--workers", str(WORKERS), "--policy", "fifo")  # whose beginning takes no time
BODY = "echo begin $CYCLE >> out/$ELIGO_TASK; : > going/$CYCLE; sleep 0.04; echo end $CYCLE >> out/$ELIGO_TASK"


def test_fifty_kills(tmp_path: Path) -> None:
    """Each task says in a file of its own in which cycle, from one kill to the next, it begins and ends."""
    rng = random.Random(20261115)
    (tmp_path / "out").mkdir()
    (tmp_path / "going").mkdir()
    tasks = [
        {"name": f"t{i}", "run": BODY, "after": [f"t{rng.randrange(i // LAYER * LAYER - LAYER, i // LAYER * LAYER)}"]}
        if i >= LAYER else {"name": f"t{i}", "run": BODY}
        for i in range(TASKS)
    ]  # fmt: skip
    flow = tmp_path / "flow.json"
    flow.write_text(json.dumps({"tasks": tasks}))
    run, done_in = tmp_path / "flow.json.run", dict[str, int]()
    deadline, cycle = time.monotonic() + SECONDS, 0
    while cycle < KILLS and time.monotonic() < deadline:
        cycle += 1
        ended = _killed(flow, cycle, rng)
        _check_store(run, done_in, cycle)
        if ended:
            break
    with started(flow, *OPTIONS, env={**os.environ, "CYCLE": str(cycle + 1)}) as last:
        out, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    assert f"All {TASKS:,} tasks done" in out
    _check_store(run, done_in, cycle + 1)
    assert completed(run) == {f"t{i}": 1 for i in range(TASKS)}
    again = _check_executions(tmp_path / "out", done_in)
    assert cycle >= 3
    assert again >= cycle
    print(f"{cycle} kills, {again} executions beyond the first of {TASKS}")  # noqa: T201


def _killed(flow: Path, cycle: int, rng: random.Random) -> bool:
    """Go on with the run and kill it at some moment after tasks began, at times before; whether it ended before."""
    going = flow.parent / "going" / str(cycle)
    with started(flow, *OPTIONS, env={**os.environ, "CYCLE": str(cycle)}) as run:
        while cycle % EARLY and not going.exists() and run.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.7) if cycle % EARLY else rng.uniform(0.1, 1.5))
        ended = run.poll() is not None
        run.kill()
        run.communicate()
    return ended


def _check_store(run: Path, done_in: dict[str, int], cycle: int) -> None:
    """The database is whole, nothing that was done is undone, nothing is done twice."""
    if not (run / "run.db").exists():
        return
    with closing(state_of(run)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'journal'").fetchone()[0]:
            return
    done = completed(run)
    assert set(done.values()) <= {1}
    assert done.keys() >= done_in.keys()
    for name in done.keys() - done_in.keys():
        done_in[name] = cycle


def _check_executions(out: Path, done_in: dict[str, int]) -> int:
    """A task runs once in a cycle, in none after it was done, and never begins while its earlier self goes on."""
    again = 0
    for name, last in done_in.items():
        told = [(word, int(cycle)) for word, cycle in map(str.split, lines(out / name))]
        begun = [cycle for word, cycle in told if word == "begin"]
        assert begun == sorted(set(begun)), f"{name} ran twice in a cycle: {told}"
        assert max(begun) <= last, f"{name} was done in cycle {last}: {told}"
        assert told[-1] == ("end", begun[-1])
        now = defaultdict(int, {"begin": 0})
        for word, cycle in told:
            assert word == "begin" or cycle == now["begin"], f"{name} began again while it still ran: {told}"
            now[word] = cycle
        again += len(begun) - 1
    return again
