"""Batches: trees for all sizes, polls of wide states, dense blocks in a time box, and the batched game."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.timing import REAL, fastest, heading, row, shuffled, verdict
from eligo import families
from eligo.batches import Batches, batch
from eligo.batches.component_solver import TreeBatches
from eligo.dag import Dag
from eligo.execution import Execution
from eligo.formats import read
from eligo.planning import plan
from eligo.simulation import batched, scheduler


def run() -> None:
    """Print the figures of batches."""
    trees()
    wide_states()
    dense_blocks()
    games()


def trees() -> None:
    """The best batch of every size, in trees of 2,000 sources: at most a second."""
    widths = (24, 9, 9, 10, 10, 8)
    heading("Trees, all sizes", ("tree", "sources", "sinks", "tables s", "choice s", "<= 1 s"), widths)
    star = Dag.from_arrays(4001, np.tile(np.arange(2000), 2), [2000] * 2000 + list(range(2001, 4001)))
    cases = {"path": families.w_dag(2000, 2), "star": star, "random": families.bipartite_tree(2000, seed=1)}
    for name, tree in cases.items():
        solved = TreeBatches(tree, 2000)
        tables, choice = fastest(partial(TreeBatches, tree, 2000), partial(solved.choose, 1000))
        row((name, 2000, len(tree) - 2000, tables, choice, verdict(tables <= 1)), widths)


WIDE: dict[str, Callable[[], Dag]] = {
    "butterfly": lambda: families.butterfly(17),
    "in-tree": lambda: families.in_tree(18),
    "W(100000,2)": lambda: families.w_dag(100_000, 2),
    "cycle of 100000": lambda: families.cycle_dag(100_000),
    "M(50000,3)": lambda: families.m_dag(50_000, 3),
    "prefix": lambda: families.parallel_prefix(100_000),
    "layered, 3 parents": lambda: families.random_layered(3, 100_000, seed=1, degree=3),
}


def wide_states(polls: int = 6, requests: int = 1000) -> None:
    """Polls for 1,000 of 100,000 eligible tasks during an execution: at most 0.1 s after the first."""
    widths = (24, 10, 10, 10, 10, 8, 8, 24)
    columns = ("dag", "eligible", "first s", "least s", "most s", "<= .1 s", "exact", "method")
    heading(f"{requests:,} requests in wide states", columns, widths)
    for name, make in WIDE.items():
        game = Execution(shuffled(make()))
        begin = time.perf_counter()
        batches = Batches(game)
        found = batches.best(requests)
        first, times = time.perf_counter() - begin, []
        for _ in range(polls):
            for task in found.tasks:
                game.execute(task)
            begin = time.perf_counter()
            found = batches.best(requests)
            times.append(time.perf_counter() - begin)
        met = verdict(max(times) <= 0.1) if found.exact else "(hard)"
        shown = (len(game.eligible), first, min(times), max(times), met, str(found.exact), found.method)
        row((name, *shown), widths)


def dense_blocks(seconds: float = 2.0) -> None:
    """Random blocks of 60 sources and 80 sinks: rendered, the bound, and whether it is proved."""
    widths = (24, 10, 10, 10, 10, 10, 16)
    columns = ("density", "requests", "rendered", "at most", "exact", "seconds", "method")
    heading(f"Dense blocks, 60 sources, {seconds:g} s", columns, widths)
    for density in (0.05, 0.1, 0.2, 0.3, 0.5):
        tails, heads = np.nonzero(np.random.default_rng(5).random((60, 80)) < density)
        dag = Dag.from_arrays(140, tails, 60 + heads)
        for requests in (10, 30, 45):
            begin = time.perf_counter()
            found = batch(dag, requests=requests, seconds=seconds)
            before = len(dag.sources) - requests
            value, bound = found.eligible_after - before, found.upper_bound - before
            took = time.perf_counter() - begin
            row((f"{density:g}", requests, value, bound, str(found.exact), took, found.method), widths)


def games(means: tuple[float, ...] = (4.0, 16.0, 64.0), runs: int = 5) -> None:
    """Polls that real workflows need if whole batches are chosen, divided by those of first come, first served."""
    rules = ("batch-optimal", "fifo", "lifo", "greedy-fifo", "critical-path", "ready", "balanced")
    widths = (36, 7, 8, 8, *(14,) * len(rules))
    heading("Polls, fifo = 1", ("workflow", "tasks", "mean r", "fifo", *rules), widths)
    if not REAL.exists():
        print("  none beside the checkout: skipped")
        return
    for path in [path for path in sorted(REAL.glob("*.json*")) if not path.name.startswith("synthetic")]:
        dag = read(path).dag
        if len(dag) <= 300:
            quick = plan(dag, "quick")
            for mean in means:
                polls = {rule: int(batched(scheduler(rule, dag, quick.sequence), mean, runs).sum()) for rule in rules}
                shares = (polls[rule] / polls["fifo"] for rule in rules)
                row((path.name[:36], len(dag), mean, polls["fifo"], *shares), widths)
