"""The bytes at once: how far the order `space` is from its bound on real workflows, and how long both take on large dags.

`python -m benchmarks.space FOLDER` measures the workflows of another folder.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.timing import REAL, heading, row, verdict
from eligo import families
from eligo.dag import Dag
from eligo.formats import read
from eligo.policies import policy
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.verifying.space import space_holds

MEAN, ELSEWHERE = 1.12, 1.15  # required of the mean ratio, here and on workflows that played no part in the design
LEAST = 1.01  # a ratio that counts as proved least
CHECKED = 3_000  # tasks, up to which certificates are checked here
SECONDS = 10  # for the order and the bound of 1e5 tasks


def run() -> None:
    """Print the figures."""
    real(REAL, MEAN)
    large()


def real(folder: Path, most: float) -> None:
    """The peaks of orders over the bound, on all workflows of a folder with known sizes."""
    widths = (48, 8, 10, 10, 10, 10, 10)
    columns = ("workflow", "tasks", "space", "fifo", "finish", "seconds", "checked")
    heading("Peak of bytes over the bound", columns, widths)
    ratios = []
    for path in sorted(folder.glob("*.json*")):
        flow = read(path)
        footprint = Footprint.of(flow)
        if footprint.level != "sizes" or not footprint.sizes.any():
            continue
        begin = time.process_time()
        order = space_order(footprint)
        bound = space_bound(footprint, order)
        seconds = time.process_time() - begin
        peaks = [footprint.peak(one) for one in (order, policy("fifo", flow).order(), policy("finish", flow).order())]
        ratios.append([peak / bound.bytes for peak in peaks])
        checked = space_holds(flow, bound.document()) if len(flow) < CHECKED else "-"
        row((path.name.partition(".")[0], len(flow), *ratios[-1], seconds, checked), widths)
    table = np.array(ratios)
    row(("mean", len(table), *table.mean(0), "", verdict(table[:, 0].mean() <= most)), widths)
    row(("worst", len(table), *table.max(0), "", ""), widths)
    row(("proved least", len(table), *(table <= LEAST).mean(0), "", ""), widths)


def dags() -> Iterator[tuple[str, Dag]]:
    """Dags of 1e5 tasks."""
    yield "layered", families.random_layered(100, 1000, seed=1)
    yield "out-mesh", families.out_mesh(446)
    yield "butterfly", families.butterfly(13)


def large() -> None:
    """The seconds of CPU that order and bound take."""
    widths = (16, 10, 12, 12, 12, 10)
    heading("Order and bound, random sizes", ("dag", "tasks", "s order", "s bound", "over bound", "< 10 s"), widths)
    for name, dag in dags():
        sizes = np.random.default_rng(1).integers(1, 1000, len(dag))
        footprint = Footprint.of_results(dag, sizes.tolist())
        moments = [time.process_time()]
        order = space_order(footprint)
        moments.append(time.process_time())
        bound = space_bound(footprint, order)
        moments.append(time.process_time())
        took = np.diff(moments).tolist()
        row((name, len(dag), *took, footprint.peak(order) / bound.bytes, verdict(sum(took) < SECONDS)), widths)


if __name__ == "__main__":
    real(Path(sys.argv[1]), ELSEWHERE)
