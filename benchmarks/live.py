"""Serving live: what a poll, a grant and a restart cost with 100,000 tasks out; the compiled crowd beside the live one."""

import sys
import time
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import fastest, heading, row, verdict
from eligo import families, policies
from eligo.allocating import PRUDENT, Allocator, Ask, ByBatch, ByCluster, ByPolicy, Prudent
from eligo.dag import Dag, sum_of
from eligo.execution import ELIGIBLE, EXECUTED, Execution
from eligo.planning import PlanLeft, plan
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
    what_is_left()
    large_parts()
    what_has_grown()
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
    """1,000 tasks added to a half executed dag: to the execution itself, to its dag, and to whoever follows, asked next."""
    widths = (24, 14, 14, 14)
    heading("1,000 tasks added, ms", ("to", *(f"{len(families.out_mesh(size)):,}" for size in MESHES)), widths)
    makers: dict[str, Callable[[Execution], Allocator | None] | None] = {"execution": None, "dag": lambda game: None}
    makers |= ALLOCATORS
    for name, make in makers.items():
        row((name, *(_added(families.out_mesh(size), make) * 1e3 for size in MESHES)), widths)


def _added(dag: Dag, make: Callable[[Execution], Allocator | None] | None) -> float:
    """How many seconds of a processor that takes, at best of a few."""
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


def series(*parts: Dag) -> Dag:
    """Dags one after another, with a task between every two that all wait for."""
    tails, heads, base = list[NDArray[np.integer[Any]]](), list[NDArray[np.integer[Any]]](), 0
    for part in parts:
        first, last = np.flatnonzero(part.indegree == 0), np.flatnonzero(part.outdegree == 0)
        tails += [np.full(len(first), base), part.tails + base + 1, last + base + 1]
        heads += [first + base + 1, part.child + base + 1, np.full(len(last), base + 1 + len(part))]
        base += len(part) + 1
    return Dag.from_arrays(base + 1, np.concatenate(tails), np.concatenate(heads))


def what_is_left() -> None:
    """A plan that follows a run: in order, out of order, and whether it is still what planning from scratch finds."""
    widths = (16, 10, 9, 10, 9, 10, 9, 10, 10, 10, 6)
    columns = ("dag", "tasks", "begin s", "in order ms", "<= 1 ms", "astray ms", "<= 50 ms", "100 astray ms", "plan s")
    heading("What is left of a million tasks (medians)", (*columns, "verdict", "same"), widths)
    many = sum_of(families.w_dag(3, 3), families.w_dag(2, 2), families.n_dag(5)).dag
    copies = np.arange(40_000)[:, None] * len(many)
    hard = [families.random_layered(5, 10, seed) for seed in range(10)]
    dags = {
        "out-mesh": families.out_mesh(1413),
        "in-mesh": families.in_mesh(1413),
        "butterfly": families.butterfly(16),
        "fork-join": families.fork_join(1000, 10, 100),
        "sum of blocks": Dag.from_arrays(
            40_000 * len(many), (copies + many.tails).ravel(), (copies + many.child).ravel()
        ),
        "hard segments": series(*hard, families.fork_join(1000, 10, 100)),
    }
    for name, dag in dags.items():
        row((name, *_followed(dag, "quick" if name == "hard segments" else "normal")), widths)


def large_parts() -> None:
    """One completion after another, at random, in a single large block or segment, and what a plan from scratch takes."""
    widths = (24, 10, 12, 9, 12, 12, 6)
    columns = ("dag", "tasks", "astray ms", "<= 50 ms", "plan ms", "verdict", "same")
    heading("What is left of a large block or segment (medians, of a processor)", columns, widths)
    ring = np.arange(29_000)
    dags = {
        "N(29,000)": families.n_dag(29_000),
        "W(29,000,2)": families.w_dag(29_000, 2),
        "C(29,000)": Dag.from_arrays(58_000, np.tile(ring, 2), 29_000 + np.append(ring, np.roll(ring, -1))),
        "M(3,19,000)": families.m_dag(3, 19_000),
        "M(20,2,900)": families.m_dag(20, 2_900),
        "layered 50 x 20, quick": families.random_layered(50, 20, 1),
        "layered 100 x 100, quick": families.random_layered(100, 100, 1),
        "layered 500 x 100, quick": families.random_layered(500, 100, 1),
        "10 layered in a sum": sum_of(*(families.random_layered(10, 10, seed) for seed in range(10))).dag,
    }
    for name, dag in dags.items():
        effort = "quick" if name.endswith("quick") else "normal"
        rng, best, game = np.random.default_rng(1), plan(dag, effort), Execution(dag)
        left, strayed = best.after(game), list[float]()
        for _ in range(7):
            ready = list(game.numbers(ELIGIBLE))
            game.complete_number(ready[int(rng.integers(len(ready)))], late=True)
            begin = time.process_time()
            left = left.after(game)
            _ = left.verdict
            strayed.append(time.process_time() - begin)
        out = float(np.median(strayed))
        row((name, len(dag), out * 1e3, verdict(out <= 0.05), *_scratch(game, left, effort, 1e3)), widths)


def what_has_grown() -> None:
    """A plan that follows a run to which 100 tasks are added, one below another from the last tasks on."""
    widths = (24, 10, 10, 10, 12, 6)
    heading(
        "What is left of a dag that has grown (of a processor)",
        ("dag", "tasks", "after s", "plan s", "verdict", "same"),
        widths,
    )
    hard = [families.random_layered(6, 10, seed) for seed in range(10)]
    dags = {
        "out-mesh": families.out_mesh(1413),
        "fork-join": families.fork_join(1000, 10, 100),
        "hard segments": series(*hard),
        "hard segments, fork-join": series(*hard, families.fork_join(1000, 10, 100)),
    }
    for name, dag in dags.items():
        best, game = plan(dag), Execution(dag)
        left = best.after(game)
        fresh = [f"new {i}" for i in range(100)]
        game.grow(fresh, pairwise([dag.tasks[int(dag.order[-1])], *fresh]))
        begin = time.process_time()
        left = left.after(game)
        _ = left.verdict
        row((name, len(game.graph), time.process_time() - begin, *_scratch(game, left, "normal", 1)), widths)


def _scratch(game: Execution, left: PlanLeft, effort: str, scale: float) -> tuple[float, str, str]:
    """How long a plan of what is left takes from scratch, its verdict, and whether it says the same."""
    begin = time.process_time()
    twin = plan(
        game.dag.induced(np.flatnonzero(np.frombuffer(game.codes, np.uint8) != EXECUTED).astype(np.int32)), effort
    )
    seconds = time.process_time() - begin
    same = (left.verdict, left.area_bound) == (twin.verdict, twin.area_bound)
    return seconds * scale, twin.verdict, verdict(same)


def _followed(dag: Dag, effort: str) -> tuple[object, ...]:
    """One run: 200 completions in order, 20 at random, one by one, and 100 at random, all at once."""
    rng, best, game = np.random.default_rng(1), plan(dag, effort), Execution(dag)

    def astray() -> None:
        ready = list(islice(game.numbers(ELIGIBLE), 1_000))
        game.complete_number(ready[int(rng.integers(len(ready)))], late=True)

    def asked() -> float:
        begin = time.perf_counter()
        _ = best.after(game).verdict
        return time.perf_counter() - begin

    first, steady, strayed = asked(), list[float](), list[float]()
    for _ in range(200):
        game.execute(best.after(game).next(1)[0])
        steady.append(asked())
    for _ in range(20):
        astray()
        strayed.append(asked())
    for _ in range(100):
        astray()
    hundred, left = asked(), best.after(game)
    order, out = float(np.median(steady)), float(np.median(strayed))
    told = (order * 1e3, verdict(order <= 1e-3), out * 1e3, verdict(out <= 0.05), hundred * 1e3)
    return len(dag), first, *told, *_scratch(game, left, effort, 1)


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
