"""A limit on the files between tasks: how much later real workflows end, and how long a decision takes."""

import math
import time
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

import eligo
from eligo.allocating import Allocator, Ask, Space, Within, allocator
from eligo.dag import Dag
from eligo.estimates import estimate
from eligo.execution import Execution
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.workflow import Workflow

FOLDER = Path(__file__).parent.parent.parent / "shared" / "data" / "wfinstances"
LIMITS = (1.0, 1.25, 1.5, 2.0)
MOST = 3_000  # tasks


def run() -> None:
    """Print both."""
    print(
        "\nA limit on the files between tasks: finish over `finish` without a limit, and peak over the least of the order"
    )
    for workers in (4, 16):
        ratios: dict[float, list[float]] = {share: [] for share in LIMITS}
        peaks: dict[float, list[float]] = {share: [] for share in LIMITS}
        for name, flow in workflows():
            footprint = Footprint.of(flow)
            order = space_order(footprint, "quick")
            least = footprint.peak(order)
            free, _ = play(flow, workers, None)
            line = []
            for share in LIMITS:
                limit = math.floor(share * least)
                end, within = play(flow, workers, limit)
                assert within is None or within.most <= limit
                ratios[share].append(end / free)
                peaks[share].append((within.most if within else 0) / least)
                line.append(f"{end / free:.3f}")
            print(f"  {workers:2} workers {name[:34]:34} {len(flow):6,} tasks  {'  '.join(line)}", flush=True)
        for share in LIMITS:
            mean, worst, peak = np.mean(ratios[share]), max(ratios[share]), np.mean(peaks[share])
            print(
                f"  {workers:2} workers, limit {share:4} times the least: {mean:.3f}, at worst {worst:.2f}; peak {peak:.2f}"
            )
    decisions(100_000)


def workflows() -> Iterator[tuple[str, Workflow]]:
    """Real workflows with recorded times and sizes."""
    for path in sorted(FOLDER.glob("*.json*")):
        flow = eligo.read(path)
        timed = estimate(flow).level == "seconds"
        if timed and len(flow) <= MOST and Footprint.of(flow).level == "sizes" and len(Footprint.of(flow)):
            yield path.name.partition(".")[0], flow


def play(flow: Workflow, workers: int, limit: int | None) -> tuple[float, Within | None]:
    """The end on some workers, and the limit that was kept."""
    game, seconds = Execution(flow.dag), estimate(flow).seconds.tolist()
    space = None if limit is None else Space(limit, workers=workers)
    chosen: Allocator = allocator("finish", flow, game, rules=None, space=space)
    now, free, running = 0.0, workers, list[tuple[float, int]]()
    number, name = game.graph.number, game.graph.name
    while not game.finished:
        grants = chosen.hand_out([Ask(worker) for worker in range(free)]) if free else []
        for grant in grants:
            v = number(grant.tasks[0])
            heappush(running, (now + seconds[v], v))
        free -= len(grants)
        now, v = heappop(running)
        game.complete(name(v))
        free += 1
    return now, chosen if isinstance(chosen, Within) else None


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
