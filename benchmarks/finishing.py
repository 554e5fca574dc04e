"""The bound on the finish: how close orders come to it on real traces, and how long it takes for a million tasks."""

import math
from functools import partial

import numpy as np

from benchmarks.timing import REAL, fastest, heading, row, verdict
from eligo import families
from eligo.estimating import estimate
from eligo.finishing import window_bound
from eligo.formats import read
from eligo.planning import plan
from eligo.simulation.steady import finish_on

WORKERS = (2, 4, 8, 16, 64)
NAMES = ("finish", "fifo", "critical-path", "critical-path-seconds")


def run() -> None:
    """Print the figures."""
    large()
    real()


def large() -> None:
    """A bound for a million tasks: under a second."""
    widths = (24, 12, 12, 8)
    heading("The bound on the finish, 16 workers", ("dag", "tasks", "seconds", "< 1 s"), widths)
    for name, dag in (("out-mesh", families.out_mesh(1413)), ("layered", families.random_layered(1000, 1000, seed=1))):
        times = np.random.default_rng(1).exponential(5.0, len(dag))
        seconds = fastest(partial(window_bound, dag, times, (1.0,) * 16), rounds=3)[0]
        row((name, len(dag), seconds, verdict(seconds < 1)), widths)


def real() -> None:
    """Makespans over the bound with the recorded seconds, geometric means over pools; only the last order knows seconds."""
    widths = (44, 7, *(22,) * len(NAMES))
    heading(f"Finish over the bound, {WORKERS} workers", ("workflow", "tasks", *NAMES), widths)
    if not REAL.exists():
        print("  none beside the checkout: skipped")
        return
    logs: dict[str, list[float]] = {name: [] for name in NAMES}
    for path in sorted(REAL.glob("*.json*")):
        flow = read(path)
        if path.name.startswith("synthetic") or estimate(flow).level != "seconds":
            continue
        found = plan(flow, "quick")
        ratios = {name: [1 + finish_on(flow, n, name, found).gap for n in WORKERS] for name in NAMES}
        for name, values in ratios.items():
            logs[name] += map(math.log, values)
        row((path.name[:44], len(flow), *(f"{_mean(ratios[name]):.4f}" for name in NAMES)), widths)
    row(("all", "", *(f"{math.exp(np.mean(logs[name])):.4f}" for name in NAMES)), widths)


def _mean(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
