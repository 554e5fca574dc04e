"""Grants that consider where files are: bytes fetched, finish and places lost, simulated and with real clients.

Simulated: 16 clients fetch missing files at 12.5 MB/s each, run the task for its recorded seconds, and send its outputs.
Real: a server and 16 `eligo.client` processes on loopback, with the files of a Montage workflow 20 times smaller.
The window of the allocator was chosen on the first four workflows; the others were not looked at before.
"""

import heapq
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.serving import served
from benchmarks.timing import REAL, heading, row, verdict
from eligo.allocating import Ask, ByPolicy, allocator
from eligo.execution import Execution
from eligo.formats import read
from eligo.names import Name
from eligo.workflow import Workflow

CLIENTS, BANDWIDTH, MOST_LOST, RUNS = 16, 12.5e6, 0.01, 3
TUNED = (
    "montage-chameleon-2mass-01d-001.json.gz", "blast-chameleon-small-001.json",
    "1000genome-chameleon-4ch-100k-001.json.gz", "epigenomics-chameleon-hep-1seq-50k-001.json",
)  # fmt: skip
OTHERS = (
    "montage-chameleon-dss-125d-001.json.gz", "montage-chameleon-2mass-05d-001.json.gz",
    "1000genome-chameleon-22ch-250k-001.json.gz", "soykb-chameleon-10fastq-10ch-001.json.gz",
    "srasearch-chameleon-20a-001.json", "cycles-chameleon-2l-1c-9p-001.json.gz", "bwa-chameleon-small-001.json.gz",
    "sarek-dirt02-001.json", "rnaseq-dirt02-001.json.gz", "viralrecon-dirt02-001.json.gz",
)  # fmt: skip
SMALLER, SHORTER = 20, 0.5  # divides the sizes of files, and multiplies the seconds of tasks, for real clients
FETCHED = re.compile(r"([\d,]+) bytes fetched")


class Outcome(NamedTuple):
    """The result of one workflow."""

    fetched: float
    finish: float
    #: places lost, as a share of the sum of all places
    lost: float = 0.0


def simulate(flow: Workflow, near: bool) -> Outcome:
    """Simulate a workflow; if *near*, grants consider where files are."""
    game = Execution(flow)
    live = allocator("finish", flow, game, rules=None)
    assert isinstance(live, ByPolicy)
    tasks = {name: flow.task(name) for name in flow.dag.tasks}
    kept: list[set[str]] = [set() for _ in range(CLIENTS)]
    idle, busy, now, fetched = list(range(CLIENTS)), list[tuple[float, int, Name]](), 0.0, 0

    def size(files: Iterable[str]) -> int:
        return sum(flow.file_sizes.get(file, 0) for file in files)

    def ask(client: int) -> Ask:
        mine = kept[client]
        return Ask(client, saves=(lambda name: size(mine.intersection(tasks[name].inputs))) if near else None)

    while True:
        for grant in live.hand_out(list(map(ask, idle))):
            client, task = int(str(grant.ask.client)), tasks[grant.tasks[0]]
            missing = size(set(task.inputs) - kept[client])
            fetched += missing
            kept[client].update(task.inputs, task.outputs)
            idle.remove(client)
            took = (missing + size(task.outputs)) / BANDWIDTH + (task.seconds or 1.0)
            heapq.heappush(busy, (now + took, client, task.name))
        if not busy:
            return Outcome(fetched, now, live.lost / (live.granted * (live.granted + 1) / 2))
        now, client, done = heapq.heappop(busy)
        game.complete(done)
        idle.append(client)


def simulated() -> None:
    """Print the table of the simulation, and the largest loss."""
    widths = (46, 7, 12, 12, 9, 9, 9)
    columns = ("workflow", "tasks", "fetched, GB", "with, GB", "bytes", "finish", "lost, %")
    heading(f"Simulated, {CLIENTS} clients of {BANDWIDTH / 1e6:g} MB/s, policy finish", columns, widths)
    worst = slowest = 0.0
    for name in (*TUNED, *OTHERS):
        flow = read(REAL / name)
        without, near = simulate(flow, False), simulate(flow, True)
        worst, slowest = max(worst, near.lost), max(slowest, near.finish / without.finish)
        ratios = (near.fetched / max(1.0, without.fetched), near.finish / without.finish)
        cells = (without.fetched / 1e9, near.fetched / 1e9, *ratios, 100 * near.lost)
        row((f"{'' if name in TUNED else '* '}{name.partition('.')[0]}", len(flow), *cells), widths)
    print(f"* not used to choose the window; largest loss {100 * worst:.2f} %: {verdict(worst <= MOST_LOST)}")
    print(f"largest ratio of finishes: {slowest:.3f}")


def small(flow: Workflow, folder: Path) -> Path:
    """Write the workflow with smaller files and shorter tasks, and the input files that no task makes."""
    made = {name for task in flow.details.values() for name in task.outputs}
    size = {name: 1 + amount // SMALLER for name, amount in flow.file_sizes.items()}
    tasks = []
    for number, name in enumerate(flow.dag.tasks):
        task = flow.task(name)
        writes = [f"head -c {size.get(file, 1)} /dev/urandom > {file}" for file in task.outputs]
        seconds = round((task.seconds or 1.0) * SHORTER, 3)
        run = " && ".join([f"sleep {seconds}", *writes])
        after = [f"t{flow.dag.index[parent]}" for parent in flow.dag.parents(name)]
        known = {"seconds": seconds, "inputs": task.inputs, "outputs": task.outputs, "after": after}
        tasks.append({"name": f"t{number}", "run": run, **known})
    for name in {file for task in flow.details.values() for file in task.inputs} - made:
        (folder / name).write_bytes(os.urandom(size.get(name, 1)))
    path = folder / "flow.json"
    path.write_text(json.dumps({"tasks": tasks, "arcs_from": "after"}))
    return path


def called(url: str) -> Any:
    """The JSON at an address of the server."""
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.loads(reply.read())


def carry_out(flow: Workflow, near: bool) -> Outcome:
    """Serve the workflow to real clients until it is done."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = small(flow, folder)
        command = (sys.executable, "-m", "eligo")
        with served(*command, "serve", "--open", "--port", "0", "--store", str(folder / "s.db"), "-q") as (
            host,
            port,
            _,
        ):
            url = f"http://{host}:{port}"
            clients = [
                subprocess.Popen(
                    [sys.executable, "-m", "eligo.client", url, "--folder", str(folder / f"c{i}"), "--cores", "1"],
                    stderr=subprocess.PIPE, text=True,
                )
                for i in range(CLIENTS)
            ]  # fmt: skip
            while sum(one["cores"] > 0 for one in called(f"{url}/v1/clients")["clients"]) < CLIENTS:
                time.sleep(0.2)
            began = time.perf_counter()
            wishes = () if near else ("--no-locality",)
            done = subprocess.run(
                [*command, "submit", url, str(path), "--wait", *wishes], check=False, capture_output=True, text=True
            )
            took = time.perf_counter() - began
            for client in clients:
                client.send_signal(signal.SIGTERM)
            said = [client.communicate()[1] for client in clients]
        if done.returncode:
            raise RuntimeError(done.stderr)
        return Outcome(sum(int(found.replace(",", "")) for one in said for found in FETCHED.findall(one)), took)


def carried_out() -> None:
    """Print the table of real clients."""
    flow = read(REAL / TUNED[0])
    widths = (46, 12, 12, 9, 12, 12)
    columns = ("Montage, files 20 times smaller", "fetched, MB", "with, MB", "bytes", "finish, s", "with, s")
    heading(f"A real server and {CLIENTS} real clients on loopback", columns, widths)
    for _ in range(RUNS):
        without, near = carry_out(flow, False), carry_out(flow, True)
        bytes_ = (without.fetched / 1e6, near.fetched / 1e6, near.fetched / without.fetched)
        row((f"{len(flow)} tasks, load {os.getloadavg()[0]:.0f}", *bytes_, without.finish, near.finish), widths)


def run() -> None:
    """Print both tables, if the real workflows are available."""
    if not REAL.is_dir():
        print("Locality: there are no real workflows here")
        return
    simulated()
    carried_out()
