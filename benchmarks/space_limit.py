"""A limit on the files between tasks: how much later real workflows end, and how long a decision takes.

`python -m benchmarks.space_limit FOLDER` prints space and finish of several orders and limits on the workflows of another
folder.
"""

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

import numpy as np

import eligo
from benchmarks.timing import REAL, heading, row
from eligo.allocating import Allocator, Ask, Space, Within, allocator
from eligo.dag import Dag
from eligo.estimates import estimate
from eligo.execution import Execution
from eligo.finishing import earliest_finish
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.workflow import Workflow

LIMITS = (1.0, 1.25, 1.5, 2.0)
MOST = 3_000  # tasks
POLICIES = {"first come, first served": "fifo", "depth first": "lifo", "`finish`": "finish", "`space`": "space"}
SHARES = (1.0, 1.5, 2.0)  # limits, as multiples of the peak of the reference order


def run() -> None:
    """Print both."""
    print(
        "\nA limit on the files between tasks: finish over `finish` without a limit, and peak over the least of the order"
    )
    for workers in (4, 16):
        ratios: dict[float, list[float]] = {share: [] for share in LIMITS}
        peaks: dict[float, list[float]] = {share: [] for share in LIMITS}
        for name, flow in workflows(REAL):
            footprint = Footprint.of(flow)
            least = footprint.peak(space_order(footprint, "quick"))
            free = play(flow, workers).end
            line = []
            for share in LIMITS:
                limit = math.floor(share * least)
                played = play(flow, workers, limit=limit)
                assert played.peak <= limit
                ratios[share].append(played.end / free)
                peaks[share].append(played.peak / least)
                line.append(f"{played.end / free:.3f}")
            print(f"  {workers:2} workers {name[:34]:34} {len(flow):6,} tasks  {'  '.join(line)}", flush=True)
        for share in LIMITS:
            mean, worst, peak = np.mean(ratios[share]), max(ratios[share]), np.mean(peaks[share])
            print(
                f"  {workers:2} workers, limit {share:4} times the least: {mean:.3f}, at worst {worst:.2f}; peak {peak:.2f}"
            )
    trade(REAL)
    decisions(100_000)


def trade(folder: Path) -> None:
    """Peak and finish over their bounds, by orders without a limit and by limits."""
    for workers in (4, 16):
        ratios: dict[str, list[tuple[float, ...]]] = {}
        for _, timed in workflows(folder):
            flow = replace(timed, details={name: replace(task, priority=None) for name, task in timed.details.items()})
            for name, played in plays(flow, workers):
                ratios.setdefault(name, []).append(played)
        widths = (28, 12, 12, 12, 12, 20, 12)
        count = len(next(iter(ratios.values())))
        columns = ("", "peak/bound", "worst", "finish/bound", "worst", "/bound in the limit", "worst")
        heading(f"{count} workflows, {workers} workers, priorities of the files ignored", columns, widths)
        for name, rows in ratios.items():
            pairs = zip(np.mean(rows, 0).tolist(), np.max(rows, 0).tolist(), strict=True)
            row((name, *(figure for pair in pairs for figure in pair)), widths)


def plays(flow: Workflow, workers: int) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The names of orders and limits, each with the peak and the finish over their bounds."""
    footprint, soonest = Footprint.of(flow), earliest_finish(flow, workers).seconds
    order = space_order(footprint, "quick")
    least, bound = footprint.peak(order), space_bound(footprint, order).bytes
    settings: list[tuple[str, str, int | None]] = [(name, policy, None) for name, policy in POLICIES.items()]
    settings += [(f"limit of {share:g} times the least", "finish", math.floor(share * least)) for share in SHARES]
    for name, policy, limit in settings:
        played = play(flow, workers, policy, limit)
        within = soonest if limit is None else max(soonest, filled(flow, footprint) / limit)
        yield name, (played.peak / bound, played.end / soonest, played.end / within)


def filled(flow: Workflow, footprint: Footprint) -> float:
    """The bytes times the seconds that all files exist at least: while they are written, and while they are read once."""
    seconds = estimate(flow).seconds
    read = np.maximum.reduceat(seconds[footprint.reader], footprint.reader_ptr[:-1])
    return float((footprint.sizes * (seconds[footprint.writer] + read)).sum())


def workflows(folder: Path) -> Iterator[tuple[str, Workflow]]:
    """Real workflows with recorded times and sizes."""
    for path in sorted(folder.glob("*.json*")):
        flow = eligo.read(path)
        timed = estimate(flow).level == "seconds"
        if timed and len(flow) <= MOST and Footprint.of(flow).level == "sizes" and len(Footprint.of(flow)):
            yield path.name.partition(".")[0], flow


class Played(NamedTuple):
    """The end of a workflow, and the peak of its files."""

    end: float
    peak: int


def play(flow: Workflow, workers: int, policy: str = "finish", limit: int | None = None) -> Played:
    """A workflow on some workers."""
    game, seconds = Execution(flow.dag), estimate(flow).seconds
    space = None if limit is None else Space(limit, workers=workers)
    chosen: Allocator = allocator(policy, flow, game, rules=None, space=space)
    now, free, running, begin = 0.0, workers, list[tuple[float, int]](), np.zeros(len(flow))
    number, name = game.graph.number, game.graph.name
    while not game.finished:
        grants = chosen.hand_out([Ask(worker) for worker in range(free)]) if free else []
        for grant in grants:
            v = number(grant.tasks[0])
            begin[v] = now
            heappush(running, (now + seconds.item(v), v))
        free -= len(grants)
        now, v = heappop(running)
        game.complete(name(v))
        free += 1
    return Played(now, Footprint.of(flow).peak_in_time(begin, begin + seconds))


def decisions(n: int) -> None:
    """The time of a decision under a limit, with many tasks."""
    rng = np.random.default_rng(1)
    tails = np.arange(n - 1)
    child = np.minimum(n - 1, tails + 1 + rng.integers(1, 400, n - 1))
    tree = Dag.from_arrays(n, tails, child)
    fan = Dag.from_arrays(
        n,
        np.append(np.arange(n // 2), np.arange(n // 2)),
        np.append(np.arange(n // 2) + n // 2, np.full(n // 2, n - 1)),
    )
    for what, dag in (("a tree", tree), ("a wide fan", fan)):
        footprint = Footprint.of_results(dag, rng.integers(1, 1000, n).tolist())
        order = space_order(footprint, "quick")
        for workers in (16, 256):
            flow = Workflow(dag)
            bare = [timed(allocator("finish", flow, Execution(dag), rules=None), workers)]
            game = Execution(dag)
            limit = math.floor(1.5 * footprint.peak(order))
            within = Within(allocator("finish", flow, game, rules=None), footprint, limit, order)
            bare.append(timed(within, workers))
            print(
                f"  {what} of {n:,} tasks, {workers} workers: {bare[0]:.1f} us a decision, with a limit {bare[1]:.1f} us",
                flush=True,
            )


def timed(chosen: Allocator, workers: int, most: int = 20_000) -> float:
    """The mean microseconds of processor time of a decision; tasks end in random order."""
    game, rng = chosen.execution, np.random.default_rng(2)
    chosen.hand_out([])
    out, spent, count = list[object](), 0.0, 0
    while not game.finished and count < most:
        begin = time.thread_time()
        grants = chosen.hand_out([Ask()]) if len(out) < workers else []
        spent += time.thread_time() - begin
        count += len(out) < workers
        out += [grant.tasks[0] for grant in grants]
        if not grants:
            i = int(rng.integers(len(out)))
            out[i], out[-1] = out[-1], out[i]
            game.complete(out.pop())
    return 1e6 * spent / count


if __name__ == "__main__":
    trade(Path(sys.argv[1]))
