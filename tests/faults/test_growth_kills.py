"""A growing run whose dispatcher is killed again and again: every added task is done once, and none is lost."""

import json
import random
import subprocess
import time
from pathlib import Path

from eligo.running.growth import add_to_run
from killing_cases import GOING, OUT, asked, check_executions, check_store, noting, surroundings, told
from running_cases import completed, started

WORKERS = int(asked("WORKERS", 4))
ROOTS = int(asked("TASKS", 280)) // 7  # each adds two tasks, and each of these two more
KILLS, NAP, SECONDS = int(asked("KILLS", 12)), asked("NAP", 0.05), asked("SECONDS", 60.0)
EARLY = 6  # every sixth kill comes at any moment from the start on
#: a task with this many levels below it, and a task that somebody else adds
GROW, LEAF = "sh grow.sh", "sh grow.sh 0"
SCRIPT = f"""
below() {{ printf '{{"name": "%s.%s", "after": ["%s"], "run": "{GROW} %s"}}' "$ELIGO_TASK" "$1" "$ELIGO_TASK" "$2"; }}
if test "$1" -gt 0; then
    less=$(($1 - 1))
    printf '{{"tasks": [%s, %s]}}' "$(below 0 $less)" "$(below 1 $less)" > "$ELIGO_ADD"
fi
{noting(NAP)}
"""


def test_every_added_task_is_done_once_whatever_is_killed(tmp_path: Path) -> None:
    """Tasks add tasks, and others come from outside at the moment of a kill, when the run may or may not have read them."""
    for name in (OUT, GOING):
        (tmp_path / name).mkdir()
    (tmp_path / "grow.sh").write_text(SCRIPT)
    roots = [f"t{i}" for i in range(ROOTS)]
    flow, run = tmp_path / "flow.json", tmp_path / "flow.json.run"
    flow.write_text(json.dumps({"tasks": [{"name": name, "run": f"{GROW} 2"} for name in roots]}))
    children = [f"{name}.{i}" for name in roots for i in "01"]
    wanted = {*roots, *children, *(f"{name}.{i}" for name in children for i in "01")}
    rng, done_in = random.Random(20261119), dict[str, int]()
    deadline, cycle = time.monotonic() + SECONDS, 0
    while cycle < KILLS and time.monotonic() < deadline:
        cycle += 1
        wanted |= _killed(flow, cycle, rng)
        check_store(run, done_in, cycle)
    with _begun(flow, cycle + 1) as last:
        out, err = last.communicate(timeout=max(120.0, SECONDS))
    assert last.returncode == 0, err
    assert f"All {len(wanted):,} tasks done" in out
    check_store(run, done_in, cycle + 1)
    assert completed(run) == dict.fromkeys(wanted, 1)
    assert [*(run / "inbox").iterdir()] == []
    again = check_executions(tmp_path, done_in, WORKERS)
    assert cycle >= 3
    print(told("local, growing", len(wanted), cycle, again))  # noqa: T201


def _begun(flow: Path, cycle: int) -> "subprocess.Popen[str]":
    return started(flow, "--workers", str(WORKERS), "--policy", "fifo", env=surroundings(cycle))


def _killed(flow: Path, cycle: int, rng: random.Random) -> set[str]:
    """Resume the run, kill it at some moment, and add a task from outside just before; returns the tasks that were added."""
    going, name = flow.parent / GOING / str(cycle), f"o{cycle}"
    with _begun(flow, cycle) as run:
        while cycle % EARLY and not going.exists() and run.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.7) if cycle % EARLY else rng.uniform(0.1, 1.5))
        if adds := going.exists():
            document = {"tasks": [{"name": name, "run": LEAF, "after": ["t0"]}]}
            add_to_run(f"{flow}.run", json.dumps(document), rng.choice((0.0, 0.3)))
            time.sleep(rng.uniform(0.0, 0.1))
        run.kill()
        run.communicate()
    return {name} if adds else set()
