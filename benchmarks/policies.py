"""Policies: the default against its competitors in the batched game and among volatile clients, losses first.

A cell is a workflow and a setting. In each, the best competitor is chosen on one half of the runs and compared on the
other half, with common draws; intervals are 95 %, by the delta method, and those of means take each workflow's cells as one
observation. Without run times, the default is the longest remaining path plus releases within reach, of weight 1.1 and
scaled by the paths below them. It was chosen with all of these workflows in view, so the tables are too favourable;
docs/understand/comparison.md has its results on others. With few runs, the ratio of a cell varies by 0.5 % from seed to
seed, hence 1,000 in the batched game.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import REAL, fastest, heading, row, verdict
from eligo import families, policies, simulation
from eligo.allocating import PRUDENT, Rules, rules_with_times
from eligo.dag import Dag
from eligo.estimates import estimate, kind_of, with_records, without_seconds
from eligo.formats import read
from eligo.planning import Plan, plan
from eligo.policies import Policy
from eligo.prioritising import order_to_follow
from eligo.simulation import Clients
from eligo.theory.eligibility import area
from eligo.theory.skeleton import skeleton
from eligo.workflow import Timed, Workflow, dag_of

COMPETITORS = ("fifo", "lifo", "greedy", "critical-path", "ready")
MEANS = (2, 4, 8, 16, 32, 64, 128, 256)
SEED = 2026
Numbers = NDArray[np.int64] | NDArray[np.float64]
GROUPS = ("real", "generated")
MOST = 1.005  # times the rounds of the best competitor, in any cell


def run() -> None:
    """Print the tables of the claim."""
    speeds()
    batched()
    priorities()
    volatile()


@dataclass(frozen=True, eq=False)
class Case:
    """A workflow with its plan and its group."""

    name: str
    group: str
    flow: Dag | Workflow
    plan: Plan

    @property
    def untimed(self) -> Dag | Workflow:
        """The workflow without its seconds: in the batched game there are none."""
        return without_seconds(self.flow) if isinstance(self.flow, Workflow) else self.flow

    def policy(self, name: str) -> Policy:
        """The policy of that name, without run times."""
        return policies.policy(name, self.untimed, self.plan.sequence)

    def static(self) -> Policy:
        """The order of the default policy without run times, as fixed priorities."""
        bare = skeleton(dag_of(self.flow))
        return policies.from_order(bare, order_to_follow(self.untimed, "finish", self.plan), "static")


def chains(count: int, length: int, fan: int, depth: int = 1) -> Dag:
    """Chains that each end in a fan-out of chains of that depth, which meet in three joins."""
    arcs = [(f"c{i}.{j}", f"c{i}.{j + 1}") for i in range(count) for j in range(length - 1)]
    for i in range(count):
        for k in range(fan):
            way = [f"c{i}.{length - 1}", *(f"f{i}.{k}.{d}" for d in range(depth)), f"join{k % 3}"]
            arcs += pairwise(way)
    return Dag.from_arcs(arcs)


GENERATED: dict[str, Callable[[], Dag]] = {
    "out-mesh 20": lambda: families.out_mesh(20),
    "out-mesh 40": lambda: families.out_mesh(40),
    "in-mesh 20": lambda: families.in_mesh(20),
    "grid 18": lambda: families.grid(18, 18),
    "butterfly 6": lambda: families.butterfly(6),
    "butterfly 8": lambda: families.butterfly(8),
    "out-tree 7": lambda: families.out_tree(7),
    "in-tree 7": lambda: families.in_tree(7),
    "random out-tree": lambda: families.random_out_tree(300, seed=1),
    "random in-tree": lambda: families.random_in_tree(300, seed=1),
    "diamond 6": lambda: families.diamond(6),
    "prefix 64": lambda: families.parallel_prefix(64),
    "fork-join 6 x 20": lambda: families.fork_join(6, 20),
    "fork-join 8 x 6 x 5": lambda: families.fork_join(8, 6, 5),
    "layered 10 x 40": lambda: families.random_layered(10, 40, seed=1, degree=3),
    "layered 20 x 20": lambda: families.random_layered(20, 20, seed=2, degree=2),
    "layered 6 x 100": lambda: families.random_layered(6, 100, seed=5, degree=2),
    "random 300": lambda: families.random_dag(300, 0.01, seed=3),
    "W(50,3)": lambda: families.w_dag(50, 3),
    "composition w": lambda: families.random_composition("w", 400, seed=1),
    "composition m": lambda: families.random_composition("m", 400, seed=1),
    "composition wnm": lambda: families.random_composition("wnm", 400, seed=1),
    "chains 10 x 6, fan 10": lambda: chains(10, 6, 10),
    "chains 20 x 4, fan 6": lambda: chains(20, 4, 6),
    "chains 8 x 10, fan 20 x 2": lambda: chains(8, 10, 20, 2),
}


@cache
def cases() -> tuple[Case, ...]:
    """Every workflow of the tables; the real ones lie beside the checkout."""
    return tuple(_cases())


def _cases() -> Iterator[Case]:
    files = [path for path in sorted(REAL.glob("*.json*")) if not path.name.startswith("synthetic")]
    if not files:
        print("  no real workflows beside the checkout: generated ones only")
    for path in files:
        flow = read(path)
        short = path.name.split(".")[0].replace("-chameleon", "").replace("-dirt02", "").removesuffix("-001")
        yield Case(short, GROUPS[0], flow, plan(flow))
    for name, make in GENERATED.items():
        dag = make()
        yield Case(name, GROUPS[1], dag, plan(dag))


@dataclass(frozen=True)
class Cell:
    """How much longer than its best competitor something took in one cell, and the half width of the interval."""

    group: str
    workflow: str
    what: str
    best: str
    ratio: float
    interval: float


def compare(case: Case, what: str, ours: Numbers, theirs: Mapping[str, Numbers]) -> Cell:
    """Choose the best competitor on the first half of the runs, and compare on the second."""
    half = len(ours) // 2
    best = min(theirs, key=lambda name: float(theirs[name][:half].mean()))
    a, b = ours[half:].astype(np.float64), theirs[best][half:].astype(np.float64)
    ratio = float(a.mean() / b.mean())
    spread = float(np.std(a - ratio * b, ddof=1)) / math.sqrt(len(a)) / float(b.mean())
    return Cell(case.group, case.name, f"{case.name}, {what}", best, ratio, 1.96 * spread)


def losses(title: str, cells: list[Cell], above: float, most: int = 12) -> None:
    """The cells in which the competitor was better, the worst first."""
    widths = (52, 16, 9, 9, 15)
    heading(f"{title}: losses above {above:g}", ("cell", "group", "ratio", "+-", "best"), widths)
    worst = sorted((cell for cell in cells if cell.ratio > above), key=lambda cell: -cell.ratio)
    for cell in worst[:most]:
        row((cell.what, cell.group, cell.ratio, cell.interval, cell.best), widths)
    print(f"  {len(worst)} of {len(cells)} cells" if worst else "  none")


def mean_ratio(cells: list[Cell]) -> tuple[float, float]:
    """The geometric mean of the ratios and the half width of its interval, over workflows."""
    own = groupby(cells, key=lambda cell: cell.workflow)
    logs = np.array([np.log([cell.ratio for cell in group]).mean() for _, group in own])
    whole = float(np.exp(np.log([cell.ratio for cell in cells]).mean()))
    return whole, float(1.96 * logs.std(ddof=1) / math.sqrt(len(logs)))


def batched(runs: int = 1000) -> None:
    """Polls against the best of five competitors, 8 request rates: the default is never above 1.005, real or generated."""
    names = ("finish", "finish without chains", "static order", *COMPETITORS)
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for case in cases():
        default = case.policy("finish")
        bare = replace(default, name="plain", score=np.asarray(default.dag.height + 1, np.float64))
        rivals = {name: case.policy(name) for name in COMPETITORS}
        ours = {"finish": default, "finish without chains": bare, "static order": case.static(), **rivals}
        for mean in MEANS:
            polls = {name: simulation.batched(policy, mean, runs, SEED) for name, policy in ours.items()}
            theirs = {name: polls[name] for name in COMPETITORS}
            for name in names:
                others = {rival: found for rival, found in theirs.items() if rival != name}
                cells[name].append(compare(case, f"rho {mean}", polls[name], others))
    losses("Batched game, finish", cells["finish"], MOST)
    losses("Batched game, its static order", cells["static order"], MOST)
    widths = (26, 16, 8, 9, 9, 9, 11, 11)
    columns = ("policy", "group", "cells", "mean", "+-", "most", f"<= {MOST}", "worse")
    heading(f"Polls against the best (other) competitor, {runs} runs", columns, widths)
    for name in names:
        for group in GROUPS:
            _summary(name, [cell for cell in cells[name] if cell.group == group], widths)
    for group in GROUPS:
        most = max((cell.ratio for cell in cells["finish"] if cell.group == group), default=None)
        if most is not None:
            fixed = max(cell.ratio for cell in cells["static order"] if cell.group == group)
            print(f"  {group}: never above {MOST}: {verdict(most <= MOST)} ({most:.4f}; its static order {fixed:.4f})")
    surely = sum(cell.ratio - cell.interval > MOST for cell in cells["finish"])
    print(f"  above {MOST} by more than the interval: {surely} cells")


def _summary(name: str, cells: list[Cell], widths: tuple[int, ...]) -> None:
    if cells:
        mean, interval = mean_ratio(cells)
        most = max(cell.ratio for cell in cells)
        within = float(np.mean([cell.ratio <= 1.005 for cell in cells]))
        worse = sum(cell.ratio - cell.interval > 1 for cell in cells)
        row((name, cells[0].group, len(cells), mean, interval, most, within, worse), widths)


def priorities(runs: int = 200) -> None:
    """Fixed priorities for an export: the default policy played once, and the plan, area and polls of both."""
    widths = (30, 16, 7, 12, 12, 12, 12)
    columns = ("workflow", "group", "tasks", "area", "of bound", "polls", "polls, most")
    heading("Static order, as a share of the plan's (of bound: of the plan's bound)", columns, widths)
    lines = []
    for case in cases():
        static, planned = case.static(), case.policy("ready")
        polls = [
            float(simulation.batched(static, m, runs, SEED).mean() / simulation.batched(planned, m, runs, SEED).mean())
            for m in MEANS
        ]
        kept = area(static.dag, simulation.play(static))
        shares = (kept / max(1, case.plan.area), kept / max(1, case.plan.area_bound))
        average = float(np.exp(np.log(polls).mean()))
        lines.append((case.name, case.group, len(case.plan.sequence), *shares, average, max(polls)))
    for line in sorted(lines, key=lambda line: line[3]):
        row(line, widths)


SETTINGS = {
    "8 of 16 here": Clients(count=16, stay=20.0, away=20.0),
    "32 of 64 here": Clients(count=64, stay=20.0, away=20.0),
    "8 of 16, fixed": Clients(count=16, stay=350.0, away=350.0, fixed=True),
    "8 that stay": Clients(count=8, stay=math.inf),
}
RULES: dict[str, tuple[str, Callable[[Workflow], Rules]]] = {
    "prudent: slow rule and copies": ("balanced", lambda flow: PRUDENT),
    "the same, informed": ("finish", lambda flow: rules_with_times(PRUDENT, flow)),
    "order alone": ("balanced", lambda flow: Rules()),
    "slow rule": ("balanced", lambda flow: Rules(slow=0.5)),
    "... and fastest first": ("balanced", lambda flow: Rules(slow=0.5, copies=2, fastest=True)),
    "... and times by kind": (
        "balanced",
        lambda flow: Rules(slow=0.5, copies=2, fastest=True, expected=_kind_seconds(flow), long=3.0),
    ),
    "fifo with the prudent rules": ("fifo", lambda flow: PRUDENT),
    "critical-path with the same": ("critical-path", lambda flow: PRUDENT),
}


def volatile(runs: int = 200) -> None:
    """Makespan among clients of speeds 1..30, unknown to the server: at most 0.96 of the best competitor, pooled.

    Informed rules know the seconds in the file if tasks take these; times that are drawn at random are unknown to all.
    """
    found: dict[str, list[Cell]] = {name: [] for name in RULES}
    shares: dict[str, list[tuple[float, float]]] = {name: [] for name in RULES}
    for case in cases():
        if isinstance(case.flow, Workflow):
            for what, clients, seconds in _settings(case.flow):
                game = partial(
                    simulation.volatile, clients=clients, runs=runs, seed=SEED, seconds=seconds, drawn=seconds is None
                )
                rivals = {name: game(case.policy(name)) for name in COMPETITORS}
                theirs = {name: outcome.makespan for name, outcome in rivals.items()}
                flow = without_seconds(case.flow) if seconds is None else case.flow
                for name, (order, rules) in RULES.items():
                    outcome = game(policies.policy(order, flow, case.plan.sequence), rules=rules(flow))
                    cell = compare(case, what, outcome.makespan, theirs)
                    found[name].append(cell)
                    stalls = outcome.stalled.sum() / max(1e-9, rivals[cell.best].stalled.sum())
                    shares[name].append((stalls, outcome.wasted.sum() / outcome.present.sum()))
    if any(found.values()):
        _print_volatile(found, shares, runs)


def _kind_seconds(flow: Workflow) -> NDArray[np.float64]:
    """The means of kinds, as a run like this one would give them."""
    seconds = dict(zip(flow.dag.tasks, estimate(flow).seconds.tolist(), strict=True))
    past = tuple(Timed(None, kind_of(flow.task(name)), seconds[name]) for name in flow.dag.tasks)
    return estimate(with_records(without_seconds(flow), past)).seconds


def _settings(flow: Workflow) -> Iterator[tuple[str, Clients, NDArray[np.float64] | None]]:
    recorded = estimate(flow).seconds
    for name, clients in SETTINGS.items():
        if np.ptp(recorded) > 0:
            yield f"{name}, recorded times", clients, recorded
        yield f"{name}, drawn times", clients, None


def _print_volatile(found: dict[str, list[Cell]], shares: dict[str, list[tuple[float, float]]], runs: int) -> None:
    default = next(iter(RULES))
    losses(f"Volatile clients, {default}", found[default], 1.0)
    widths = (32, 8, 9, 9, 9, 10, 12, 9, 9)
    columns = ("rules", "cells", "makespan", "+-", "most", "worse", "worse > 5 %", "stalls", "wasted")
    heading(f"Volatile clients against the best competitor without rules, {runs} runs", columns, widths)
    for name, cells in found.items():
        mean, interval = mean_ratio(cells)
        most = max(cell.ratio for cell in cells)
        worse = [sum(cell.ratio - cell.interval > limit for cell in cells) for limit in (1.0, 1.05)]
        stalls, wasted = np.mean(shares[name], axis=0).tolist()
        row((name, len(cells), mean, interval, most, *worse, stalls, wasted), widths)
    pooled, _ = mean_ratio(found[default])
    none_worse = not any(cell.ratio - cell.interval > 1.05 for cell in found[default])
    print(f"  pooled {pooled:.3f} <= .96: {verdict(pooled <= 0.96)}; no cell worse by > 5 %: {verdict(none_worse)}")


def speeds() -> None:
    """Print the cost of the games on one core."""
    widths = (52, 10, 10, 8)
    heading("Simulators", ("game", "seconds", "target", ""), widths)
    mesh, layered = families.out_mesh(140), families.random_layered(10, 100, seed=1, degree=3)
    wide = families.random_layered(100, 100, seed=1, degree=3)
    games: dict[str, tuple[Callable[[], object], float]] = {
        "1,000 FIFO executions with E(t), mesh of 1e4": (
            partial(simulation.profiles, policies.fifo(mesh), 1000, 1),
            0.35,
        ),
        "1,000 FIFO executions with E(t), layered 1e4": (
            partial(simulation.profiles, policies.fifo(wide), 1000, 1),
            0.35,
        ),
        "1,000 runs among volatile clients, 1,000 tasks": (
            partial(simulation.volatile, policies.balanced(layered), Clients(), 1000, 1, rules=PRUDENT),
            10.0,
        ),
        "1,000 batched games, rho 8, 1,000 tasks": (
            partial(simulation.batched, policies.balanced(layered), 8.0, 1000, 1),
            10.0,
        ),
    }
    for name, (game, target) in games.items():
        seconds = fastest(game, rounds=3)[0]
        row((name, seconds, target, verdict(seconds <= target)), widths)
