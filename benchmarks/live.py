"""Serving live: what a poll, a grant and a restart cost with 100,000 tasks out; the compiled crowd beside the live one."""

import sys
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from benchmarks.timing import fastest, heading, row, verdict
from eligo import families, policies
from eligo.allocating import PRUDENT, Allocator, Ask, ByBatch, ByCluster, ByPolicy, Prudent
from eligo.dag import Dag
from eligo.execution import Execution
from eligo.simulation import Clients, volatile
from eligo.simulation.crowd import LiveCrowd
from eligo.simulation.pebble import run_seeds
from eligo.simulation.volatile import setting_of

OUT = 100_000
POLLS = 200
MESHES = (44, 446, 1413)  # of about 1,000, 100,000 and 1,000,000 tasks

ALLOCATORS: dict[str, Callable[[Execution], Allocator]] = {
    "by policy": lambda game: ByPolicy(policies.balanced(game.dag), game),
    "by batch": ByBatch,
    "by cluster": lambda game: ByCluster(game.dag, game),
    "prudent": lambda game: Prudent(ByPolicy(policies.balanced(game.dag), game), PRUDENT),
}


def run() -> None:
    """Print the figures."""
    polls()
    journal()
    growth()
    crowds()


def polls() -> None:
    """A poll when nothing happened, and one after 1,000 of 100,000 tasks came back; everything else is out."""
    widths = (16, 14, 14, 16, 12)
    columns = ("allocator", "idle poll us", "<= 100 us", "grant of 1 us", "1,000 back ms")
    heading(f"Polls with {OUT:,} tasks out", columns, widths)
    dag = Dag.from_arrays(2 * OUT, np.arange(OUT), np.arange(OUT) + OUT)
    for name, make in ALLOCATORS.items():
        game = Execution(dag, allocated=dag.named(np.arange(OUT)))
        allocator = make(game)
        allocator.hand_out([Ask("somebody")])

        def idle(allocator: Allocator = allocator) -> None:
            for _ in range(POLLS):
                allocator.hand_out([Ask("somebody")])

        seconds = fastest(idle)[0] / POLLS
        for v in range(1_000):
            game.complete(dag.tasks[v])
        begin = time.perf_counter()
        allocator.hand_out([Ask("somebody")])
        back = time.perf_counter() - begin
        begin = time.perf_counter()
        for _ in range(POLLS):
            allocator.hand_out([Ask("somebody")])
        grant = (time.perf_counter() - begin) / POLLS
        row((name, seconds * 1e6, verdict(seconds <= 1e-4), grant * 1e6, back * 1e3), widths)


def journal() -> None:
    """A restart from the journal of a half executed dag of a million tasks, and what a move takes."""
    widths = (40, 12, 12)
    heading("The journal", ("what", "measured", ""), widths)
    dag = families.out_mesh(1413)
    half = dag.named(dag.order[: len(dag) // 2])
    begin = time.perf_counter()
    game = Execution(dag, half)
    row((f"begin with {len(half):,} of {len(dag):,} done, s", time.perf_counter() - begin, ""), widths)
    begin = time.perf_counter()
    Execution.replay(dag, game.journal)
    row((f"replay {len(game.journal):,} moves, s", time.perf_counter() - begin, ""), widths)
    size = sys.getsizeof(game.since(0)) / len(game.journal)
    row(("bytes a move", size, verdict(size < 9)), widths)


def growth() -> None:
    """The cost of adding 1,000 tasks to a half executed dag: of `grow`, the dag, and each allocator's next request."""
    widths = (24, 14, 14, 14)
    heading("1,000 tasks added, ms", ("to", *(f"{len(families.out_mesh(size)):,}" for size in MESHES)), widths)
    makers: dict[str, Callable[[Execution], Allocator | None] | None] = {"execution": None, "dag": lambda game: None}
    makers |= ALLOCATORS
    for name, make in makers.items():
        row((name, *(_added(families.out_mesh(size), make) * 1e3 for size in MESHES)), widths)


def _added(dag: Dag, make: Callable[[Execution], Allocator | None] | None) -> float:
    """The least processor seconds of a few attempts."""
    game = Execution(dag, dag.named(dag.order[: len(dag) // 2]))
    follower, best = None if make is None else make(game), float("inf")
    for turn in range(3):
        fresh = [f"{turn}.{i}" for i in range(1_000)]
        arcs = [(dag.tasks[i * len(dag) // 1_000], task) for i, task in enumerate(fresh)]
        begin = time.process_time()
        game.grow(fresh, [*arcs, *pairwise(fresh)])
        if make is not None:
            begin = time.process_time()
            _ = game.dag if follower is None else follower.hand_out([Ask("somebody")])
        best = min(best, time.process_time() - begin)
    return best


def crowds(runs: int = 20) -> None:
    """The same game compiled and live: the same makespans, and how much faster the compiled one is."""
    widths = (40, 12, 12, 12, 12)
    heading("Volatile clients, prudent rules", ("dag", "live s", "compiled s", "ratio", "same"), widths)
    clients = Clients()
    for name, dag in (
        ("out-mesh 20", families.out_mesh(20)),
        ("layered 10 x 50", families.random_layered(10, 50, seed=1)),
    ):
        policy, setting = policies.balanced(dag), setting_of(clients, 1.0)
        begin = time.perf_counter()
        makespans = []
        for seed in run_seeds(runs, 1):
            live = LiveCrowd(policy, setting, PRUDENT, [1.0] * len(dag), seed, drawn=True)
            live.play()
            makespans.append(live.now)
        slow = time.perf_counter() - begin
        begin = time.perf_counter()
        fast = volatile(policy, clients, runs, 1, drawn=True, rules=PRUDENT)
        compiled = time.perf_counter() - begin
        row((name, slow, compiled, slow / compiled, verdict(fast.makespan.tolist() == makespans)), widths)
