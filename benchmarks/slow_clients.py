"""The rules for slow clients, over HTTP: is their gain with a real server the one that the simulation predicts?

Sixteen clients that never leave, of speeds 1 to 30, sleep as long as tasks take them; with and without the rules, the same
speeds. The simulation plays the same workflow, times and distribution of speeds; its interval is that of as many runs.
"""

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.serving import Connection, served
from benchmarks.timing import heading, row, verdict
from eligo import families, policies, simulation
from eligo.allocating import PRUDENT, Rules, rules_with_times
from eligo.simulation import Clients
from eligo.workflow import Task, Workflow

COUNT, SPREAD, RUNS, PLAYED = 16, 30.0, 8, 2_000
LOOK = 0.05  # seconds between checks whether another client was faster; the simulation then stops this one
MEAN = 0.12  # seconds of a task at speed 1


def workflow() -> Workflow:
    """Twelve layers of ten tasks whose times are exponential."""
    dag = families.random_layered(12, 10, seed=7)
    times = np.random.default_rng(7).exponential(MEAN, len(dag)) + 0.01
    return Workflow(
        dag,
        {
            name: Task(name=name, command="true", seconds=float(time))
            for name, time in zip(dag.tasks, times, strict=True)
        },
    )


async def one_client(address: tuple[str, int], speed: float, times: dict[str, float], over: asyncio.Event) -> None:
    """Request, sleep and deliver until the server has no more tasks."""
    _, wire = await asyncio.get_running_loop().create_connection(Connection, *address)
    client = (await wire.post("/v1/clients", {"name": f"speed {speed:.2f}"}, ""))["client"]
    while not over.is_set():
        reply = await wire.post("/v1/request", {"wait": 1}, client)
        for task in [task for grant in reply["grants"] for task in grant["tasks"]]:
            spent = times[task["task"]] / speed
            if await slept(wire, spent, task["lease"], client):
                result = {"lease": task["lease"], "outcome": "done", "seconds": spent, "code": 0}
                await wire.post("/v1/deliver", {"results": [result]}, client)


async def slept(wire: Connection, seconds: float, lease: str, client: str) -> bool:
    """Sleep for the time of a task, or until another client has done it; returns whether it slept to the end."""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > LOOK:
        await asyncio.sleep(LOOK)
        if (await wire.post("/v1/renew", {"leases": [lease]}, client))["gone"]:
            return False
    await asyncio.sleep(max(0.0, left))
    return True


async def makespan(address: tuple[str, int], flow: Workflow, rules: bool, seed: int) -> float:
    """The time in which a crowd finishes the workflow."""
    _, wire = await asyncio.get_running_loop().create_connection(Connection, *address)
    tasks = [
        {"name": name, "run": "true", "seconds": flow.task(name).seconds, "after": list(flow.dag.parents(name))}
        for name in flow.dag.tasks
    ]
    path = f"/v1/workflows?files=false&rules={str(rules).lower()}&name={seed}-{rules}"
    workflow = (await wire.post(path, {"tasks": tasks}, ""))["workflow"]
    draws, over = random.Random(seed), asyncio.Event()
    speeds = [SPREAD ** (draws.random() - 0.5) for _ in range(COUNT)]
    times = {str(name): flow.task(name).seconds or 0.0 for name in flow.dag.tasks}
    began = time.perf_counter()
    crowd = [asyncio.create_task(one_client(address, speed, times, over)) for speed in speeds]
    while (await wire.get(f"/v1/workflows/{workflow}"))["state"] != "done":
        await asyncio.sleep(0.02)
    took = time.perf_counter() - began
    over.set()
    await asyncio.gather(*crowd)
    return took


def played(flow: Workflow) -> tuple[float, float, float]:
    """The gain of the rules in the simulation, and the interval for the mean of a few runs."""
    seconds = np.array(flow.column("seconds"))
    policy = policies.policy("finish", flow)
    clients = Clients(count=COUNT, spread=SPREAD, stay=float("inf"))
    with_rules, without = (
        simulation.volatile(policy, clients, PLAYED, 1, seconds, rules=rules).makespan
        for rules in (rules_with_times(PRUDENT, flow), Rules())
    )
    ratios = np.log(with_rules / without)
    spread = 1.96 * ratios.std() / RUNS**0.5
    return tuple(float(np.exp(ratios.mean() + sign * spread)) for sign in (0, -1, 1))  # type: ignore[return-value]


def run() -> None:
    """Print both, side by side."""
    flow, widths = workflow(), (44, 10, 20, 10)
    expected, least, most = played(flow)
    pairs = []
    with tempfile.TemporaryDirectory() as place:
        words = (sys.executable, "-m", "eligo", "serve", "--port", "0", "--store", str(Path(place) / "s.db"), "-q")
        with served(*words, "--open") as (host, port, _):
            for seed in range(RUNS):
                both = [asyncio.run(makespan((host, int(port)), flow, rules, seed)) for rules in (True, False)]
                pairs.append(both[0] / both[1])
    found = statistics.geometric_mean(pairs)
    heading(
        f"Rules for slow clients over HTTP: {COUNT} clients of speeds 1 to {SPREAD:g}, {len(flow)} tasks, {RUNS} runs",
        ("makespan with the rules, of that without", "found", "simulated, 95 %", ""), widths,
    )  # fmt: skip
    told = f"{expected:.3f} ({least:.3f}-{most:.3f})"
    row(("geometric mean", found, told, verdict(least <= found <= most)), widths)
    print(json.dumps([round(pair, 3) for pair in pairs]))
