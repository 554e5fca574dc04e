"""What the tests that kill dispatchers share: tasks that note when they begin and end, and what must hold of these notes.

A cycle goes from one kill to the next; its number is in the environment. How many tasks there are, how long they take, how
many run at a time, how often they are killed and for how many seconds at most, is too, as ELIGO_FAULT_TASKS, _NAP, _WORKERS,
_KILLS and _SECONDS; what is usual is short.
"""

import os
import random
import subprocess
from collections import Counter, defaultdict
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from running_cases import completed, lines, state_of

OUT, GOING = "out", "going"
#: Ray and Parsl may listen on every address: each dispatcher is in a network of its own that has only loopback
ALONE = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
PACKAGES = {"dask": "distributed", "ray": "ray", "parsl": "parsl"}


def asked(name: str, usual: float) -> float:
    """What the environment says of the kills."""
    return float(os.environ.get(f"ELIGO_FAULT_{name}", usual))


def told(engine: str, tasks: int, kills: int, again: int) -> str:
    """A row of what was found, where all that must hold does."""
    return f"{engine}: {tasks} tasks, {kills} kills, 0 lost, 0 accepted twice, {again} executions beyond the first"


def surroundings(cycle: int) -> dict[str, str]:
    """The environment of a dispatcher in that cycle."""
    return {**os.environ, "CYCLE": str(cycle)}


def noting(seconds: float) -> str:
    """A command that notes its begin and its end in a file of its task's own, and that something began in this cycle."""
    return (
        f"echo begin $CYCLE >> {OUT}/$ELIGO_TASK; : > {GOING}/$CYCLE; sleep {seconds}; "
        f"echo end $CYCLE >> {OUT}/$ELIGO_TASK"
    )


def layers(place: Path, tasks: int, wide: int, rng: random.Random) -> dict[str, list[str]]:
    """The parents of tasks in layers, each with one parent in the layer above; makes the folders for their notes."""
    for name in (OUT, GOING):
        (place / name).mkdir()
    above = [i // wide * wide - wide for i in range(tasks)]
    return {f"t{i}": [f"t{rng.randrange(first, first + wide)}"] if first >= 0 else [] for i, first in enumerate(above)}


def check_store(run: Path, done_in: dict[str, int], cycle: int) -> None:
    """The database is whole, nothing that was done is undone, nothing is done twice; notes in which cycle each was done."""
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


def check_executions(place: Path, done_in: dict[str, int], workers: int) -> int:
    """A task runs once in a cycle, in none after it was done, and never begins while its earlier self goes on.

    So it runs at most once more than the kills that hit it. A kill hits no more tasks than run at a time. Gives how often
    tasks ran beyond the first time.
    """
    hit = Counter[int]()
    for name, last in done_in.items():
        told = [(word, int(cycle)) for word, cycle in map(str.split, lines(place / OUT / name))]
        begun = [cycle for word, cycle in told if word == "begin"]
        assert begun == sorted(set(begun)), f"{name} ran twice in a cycle: {told}"
        assert max(begun) <= last, f"{name} was done in cycle {last}: {told}"
        assert told[-1] == ("end", begun[-1])
        now = defaultdict(int, {"begin": 0})
        for word, cycle in told:
            assert word == "begin" or cycle == now["begin"], f"{name} began again while it still ran: {told}"
            now[word] = cycle
        hit.update(begun[:-1])
    assert max(hit.values(), default=0) <= workers, f"a kill hit more than {workers} tasks: {hit.most_common(3)}"
    return hit.total()


def check_engine(on: str) -> None:
    """Skip the test if this engine cannot be had here."""
    if on in PACKAGES and find_spec(PACKAGES[on]) is None:
        pytest.skip(f'KILLS WERE NOT TESTED ON {on.upper()}: it needs pip install "eligo[{on}]"')
    if on in {"ray", "parsl"} and subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"KILLS WERE NOT TESTED ON {on.upper()}: it needs a network of its own, and none can be had")


def inside(on: str) -> tuple[str, ...]:
    """The words that begin a dispatcher on this engine."""
    return ALONE if on in {"ray", "parsl"} else ()
