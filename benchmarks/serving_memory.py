"""The memory of a server over a million tasks, at 10 %, 50 % and 90 % of them, compared with its start.

The server is a process of its own on a real store, the clients connections from a second process that ask for a hundred
tasks at a time: once for one workflow of a million tasks, once for a hundred workflows of ten thousand, each submitted
when the one before it has ended.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.serving import BATCH, eligo, memory, served, workflow
from benchmarks.timing import heading, row, verdict

TASKS, PIECES = 1_000_000, 100
CLIENTS = 20
AT = (0.1, 0.5, 0.9)
MOST_GROWTH = 64.0  # megabytes from the first look to the last
LOOK = 0.25  # seconds between two looks


def run(n: int = TASKS) -> None:
    """Print both tables."""
    widths = (34, 10, 10, 10, 10, 10, 9)
    columns = ("what", "begun MB", *(f"at {at:.0%}" for at in AT), "tasks/s", "")
    heading(f"Memory of a server over {n:,} tasks, SQLite, loopback", columns, widths)
    for name, pieces in (("one workflow", 1), (f"{PIECES} workflows one by one", PIECES)):
        with tempfile.TemporaryDirectory() as place:
            begun, found, rate = measured(Path(place), n, pieces)
        grown = found[-1] - found[0]
        row((name, begun, *found, f"{rate:,.0f}", verdict(grown <= MOST_GROWTH)), widths)


def measured(folder: Path, n: int, pieces: int) -> tuple[float, list[float], float]:
    """The megabytes at the beginning and at each share of the tasks; tasks a second."""
    flow = workflow(folder / "flow.json", n // pieces)
    with served(*eligo(folder / "store.db", *([str(flow)] if pieces == 1 else []))) as (host, port, pid):
        begun, url = memory(pid), f"http://{host}:{port}"
        began = time.perf_counter()
        load = _load(host, port)
        done = _in_pieces(url, flow, pieces) if pieces > 1 else lambda: _done(url)
        found = _watched(done, n, pid, load)
        took = time.perf_counter() - began
        load.kill()
        load.wait()
    return begun, found, n * AT[-1] / took


def _load(host: str, port: str) -> "subprocess.Popen[bytes]":
    script = f"from benchmarks.serving import load; load('together', {host!r}, {port!r}, '{CLIENTS}', '{BATCH}')"
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)


def _watched(done: Callable[[], int], n: int, pid: int, load: "subprocess.Popen[bytes]") -> list[float]:
    """The memory of a process as soon as each share of the tasks is done."""
    found = list[float]()
    while len(found) < len(AT):
        if load.poll() is not None:
            raise RuntimeError("the clients have ended too soon")
        if done() >= n * AT[len(found)]:
            found.append(memory(pid))
        time.sleep(LOOK)
    return found


def _done(url: str) -> int:
    """How many tasks of the one workflow are done."""
    (one,) = _got(f"{url}/v1/workflows")["workflows"]
    count: int = one["counts"]["done"]
    return count


def _in_pieces(url: str, flow: Path, pieces: int) -> Callable[[], int]:
    """Submits a workflow whenever fewer than two are active; each look returns the number of tasks that are done."""
    ids: list[str] = []
    size = 0

    def look() -> int:
        nonlocal size
        open_ = [one for one in ids[-2:] if _got(f"{url}/v1/workflows/{one}")["state"] == "running"]
        for _ in range(min(2 - len(open_), pieces - len(ids))):
            told = _submitted(url, flow.read_bytes())
            size = told["tasks"]
            ids.append(told["workflow"])
        return (len(ids) - 2) * size if len(ids) < pieces else len(ids) * size

    return look


def _submitted(url: str, body: bytes) -> Any:
    headers = {"Idempotency-Key": os.urandom(9).hex()}
    request = urllib.request.Request(f"{url}/v1/workflows?files=false&copies=1", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def _got(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


if __name__ == "__main__":
    run()
