"""The finish on steady pools: what knowing run times gains on real traces, how tight the bound is, and how long it takes.

How long tasks take is known not at all, by the means of kinds from another trace of the application, 30 % off, or exactly.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import REAL, fastest, heading, row, verdict
from eligo import families
from eligo.estimates import estimate, kind_of, with_records, without_seconds
from eligo.finishing import heads_and_tails, window_bound
from eligo.formats import read
from eligo.planning import plan
from eligo.policies import Floats, Policy, fifo, policy
from eligo.pools import Pool
from eligo.prioritising import finishing_rules, soonest_on
from eligo.rows import places
from eligo.schedules import Schedule, Terms, improved_schedule, terms_of
from eligo.simulation.pebble import run_seeds
from eligo.simulation.volatile import Clients, volatile
from eligo.theory.eligibility import Order
from eligo.workflow import Timed, Workflow

WORKERS = (2, 4, 8, 16, 64)
UNEQUAL = ("4x1.0,4x0.5", "1x1,3x0.5", "2x1,6x0.25", "8x1,8x0.1", "2x2,4x1,8x0.5", "16x1,16x0.5")
NAMES = ("fifo", "critical-path", "critical-path-seconds", "balanced", "finish")
#: what else is tried for the best schedule that anything finds
OTHERS = ("ready", "lifo", "greedy-fifo")
SEARCHED = 1_000_000  # tasks, in all schedules that a search looks at
LOSSES = 10
CLOSED = 0.001  # a gap that counts as none
TIGHT = 1.002
#: what is known of run times, and which share of first come, first served's time must be enough then, on average
LEVELS = {"nothing": 1.0, "kinds": 0.985, "30 % off": 0.965, "exact": 0.96, "exact, improved": 0.96}
OFF = 0.3  # the deviation of the logarithm of seconds that are off
NEAR = 1.011  # times the bound, which exact seconds and an improved order must come to
SEED = 7
#: of each trace and number of workers: the makespans of all rules, "+" where improved, over the bound
Ratios = dict[tuple[str, int], dict[str, float]]


def run() -> None:
    """Print the figures."""
    large()
    kernel()
    knowing()
    unequal()
    found = ratios()
    real(found)
    tight(found)


def large() -> None:
    """A bound for a million tasks: under a second."""
    widths = (24, 12, 24, 12, 8)
    heading("The bound on the finish", ("dag", "tasks", "pool", "seconds", "< 1 s"), widths)
    for name, dag in (("out-mesh", families.out_mesh(1413)), ("layered", families.random_layered(1000, 1000, seed=1))):
        rng = np.random.default_rng(1)
        times, cores = rng.exponential(5.0, len(dag)), rng.choice([1.0, 2.0, 4.0, 8.0], len(dag))
        for pool, taken in ((Pool.of(16), None), (Pool(cores=64), cores)):
            seconds = fastest(partial(window_bound, dag, times, pool, taken), rounds=3)[0]
            row((name, len(dag), pool, seconds, verdict(seconds < 1)), widths)


def kernel() -> None:
    """Tasks scheduled in a second, first come, first served on 16 workers, and against the game of volatile clients."""
    widths = (24, 12, 18, 18, 18, 16)
    columns = ("dag", "tasks", "16 workers", "16 of two speeds", "64 cores, mixed", "vs volatile")
    heading("List schedules: tasks a second", columns, widths)
    for name, dag in (("out-mesh", families.out_mesh(446)), ("layered", families.random_layered(300, 333, seed=1))):
        rng = np.random.default_rng(1)
        times, cores = rng.exponential(5.0, len(dag)), rng.choice([1.0, 2.0, 4.0, 8.0], len(dag))
        rule, clients = fifo(dag), Clients(count=16, spread=1.0, stay=math.inf)
        games = [partial(_played, rule, times, pool, cores) for pool in ("16", "8x1,8x0.5", "64 cores")]
        *taken, crowd = fastest(*games, partial(volatile, rule, clients, seconds=times), rounds=3)
        row((name, len(dag), *(f"{len(dag) / t:,.0f}" for t in taken), f"{crowd / taken[0]:.2f} times"), widths)


def _played(rule: Policy, times: Floats, workers: str, cores: Floats) -> float:
    pool = Pool.parse(workers)
    return Terms(rule.dag, times, pool, None if pool.cores is None else cores).played(rule.board()).makespan


def knowing() -> None:
    """Time to finish over first come, first served's and over the bound, by what is known of run times; losses first."""
    found = {name: dict(_by_level(flow, sister)) for name, flow, sister in _with_sisters()}
    cells = {(trace, n): cell for trace, several in found.items() for n, cell in several.items()}
    if not cells:
        print("  no traces beside the checkout: what knowing gains is skipped")
        return
    for level in LEVELS:
        _print_losses(level, cells)
    columns, widths = ("workflow", *LEVELS), (36, *(max(9, len(level)) for level in LEVELS))
    heading(f"finish over first come, first served, {WORKERS} workers", columns, widths)
    for trace, several in found.items():
        row((trace[:36], *(_share(several.values(), level, "fifo") for level in LEVELS)), widths)
    for what, base in (("all", "fifo"), ("all, over the bound", "bound")):
        row((what, *(_share(cells.values(), level, base) for level in LEVELS)), widths)
    for level, most in LEVELS.items():
        mean = float(_share(cells.values(), level, "fifo"))
        print(f"  {level}: {mean:.3f} of first come, first served's time <= {most:g}: {verdict(mean <= most)}")
    near = float(_share(cells.values(), "exact, improved", "bound"))
    print(f"  exact, improved: {near:.4f} times the bound <= {NEAR}: {verdict(near <= NEAR)}")


def unequal() -> None:
    """The order given for workers of unequal speed over the bound, beside what it is chosen from: never later than these."""
    cells = [cell for _, flow in traces() for cell in _on_unequal(flow)]
    if not cells:
        return
    widths = (16, 12, 12, 12, 12)
    heading(f"Finish over the bound, {UNEQUAL}", ("", "given", *cells[0][1]), widths)
    rows = [(given, *others.values()) for given, others in cells]
    row(("on average", *(f"{_mean(list(column)):.4f}" for column in zip(*rows, strict=True))), widths)
    row(("at most", *(f"{max(column):.4f}" for column in zip(*rows, strict=True))), widths)
    later = sum(given > min(others.values()) for given, others in cells)
    print(f"  later than another: {later} of {len(cells)} cells: {verdict(not later)}")


def _on_unequal(flow: Workflow) -> Iterator[tuple[float, dict[str, float]]]:
    rules, seconds = finishing_rules(flow, plan(flow, "quick").sequence), estimate(flow).seconds
    for pool in UNEQUAL:
        terms = terms_of(flow, seconds, pool)
        bound = window_bound(terms.dag, terms.seconds, terms.pool).seconds
        others = {name: terms.played(rule.board()).makespan / bound for name, rule in rules.items()}
        yield soonest_on(terms, rules).makespan / bound, others


def _print_losses(level: str, cells: Ratios) -> None:
    lost = {key: cell[level] / cell["fifo"] for key, cell in cells.items() if level in cell}
    worst = sorted((key for key in lost if lost[key] > 1), key=lambda key: -lost[key])
    widths = (52, 10, 10)
    heading(f"{level}: later than first come, first served", ("workflow", "workers", "ratio"), widths)
    for key in worst[:LOSSES]:
        row((*key, f"{lost[key]:.4f}"), widths)
    print(f"  {len(worst)} of {len(lost)} cells" if worst else f"  none of {len(lost)} cells")


def _share(cells: Iterable[dict[str, float]], level: str, base: str) -> str:
    """The mean over cells where the level is known of its time over another."""
    known = [cell[level] / cell[base] for cell in cells if level in cell]
    return f"{_mean(known):.4f}" if known else "-"


def _with_sisters() -> Iterator[tuple[str, Workflow, Workflow | None]]:
    """Every trace with another one of its application, of another input where there is one, or with None."""
    families_of: dict[str, list[tuple[str, Workflow]]] = {}
    for name, flow in traces():
        families_of.setdefault(name.split("-")[0], []).append((name, flow))
    for several in families_of.values():
        for place, (name, flow) in enumerate(several):
            others = [each for each in several if each[0] != name]
            unlike = [each for each in others if each[0].rsplit("-", 1)[0] != name.rsplit("-", 1)[0]] or others
            yield name, flow, unlike[place % len(unlike)][1] if unlike else None


def _by_level(flow: Workflow, sister: Workflow | None) -> Iterator[tuple[int, dict[str, float]]]:
    """For every number of workers, the finish for each level of knowledge, under first come, first served, and at best."""
    sequence, seconds = plan(flow, "quick").sequence, estimate(flow).seconds
    rules = _informed(flow, sister, sequence)
    for n in WORKERS:
        terms = terms_of(flow, seconds, n)
        schedules = {name: terms.played(rule.board(), run_seeds(1, 0)[0]) for name, rule in rules.items()}
        schedules["exact, improved"] = improved_schedule(terms, schedules["exact"])
        ends = {name: schedule.makespan for name, schedule in schedules.items()}
        yield n, ends | {"bound": window_bound(flow.dag, seconds, Pool.of(n)).seconds}


def _informed(flow: Workflow, sister: Workflow | None, order: Order) -> dict[str, Policy]:
    """First come, first served, and the default policy, for each level of knowledge of run times."""
    bare, seconds = without_seconds(flow), estimate(flow).seconds
    drawn = np.random.default_rng(SEED).standard_normal(len(seconds))
    off = dict(zip(flow.dag.tasks, (seconds * np.exp(OFF * drawn)).tolist(), strict=True))
    wrong = replace(flow, details={name: replace(flow.task(name), seconds=off[name]) for name in flow.dag.tasks})
    known = {"nothing": bare, "30 % off": wrong, "exact": flow}
    known |= {} if sister is None else {"kinds": with_records(bare, _by_kind(sister))}
    return {"fifo": policy("fifo", flow)} | {name: policy("finish", each, order) for name, each in known.items()}


def _by_kind(flow: Workflow) -> list[Timed]:
    """How long the kinds of a workflow took, without the names."""
    taken = zip(flow.dag.tasks, estimate(flow).seconds.tolist(), strict=True)
    return [Timed(None, kind_of(flow.task(name)), seconds) for name, seconds in taken]


def traces() -> Iterator[tuple[str, Workflow]]:
    """The real workflows whose tasks' seconds are known."""
    for path in sorted(REAL.glob("*.json*")) if REAL.exists() else list[Path]():
        flow = read(path)
        if not path.name.startswith("synthetic") and estimate(flow).level == "seconds":
            yield path.name, flow


def ratios() -> Ratios:
    """The makespans of all rules on every real trace and pool, plain and improved."""
    found: Ratios = {}
    for trace, flow in traces():
        sequence, seconds = plan(flow, "quick").sequence, estimate(flow).seconds
        rules = {name: policy(name, flow, sequence) for name in (*NAMES, *OTHERS)}
        for n in WORKERS:
            found[trace, n] = _over_bound(terms_of(flow, seconds, n), rules)
    return found


def _over_bound(terms: Terms, rules: dict[str, Policy]) -> dict[str, float]:
    bound = window_bound(terms.dag, terms.seconds, terms.pool).seconds
    played = {name: terms.played(rule.board()) for name, rule in rules.items()}
    played |= {f"{name} +": improved_schedule(terms, schedule) for name, schedule in played.items()}
    best = min(played.values(), key=lambda schedule: schedule.makespan)
    played["searched"] = _searched(terms, best, bound)
    return {name: schedule.makespan / bound for name, schedule in played.items()}


def _searched(terms: Terms, best: Schedule, bound: float) -> Schedule:
    """The best schedule from many variants of this order and of the longest paths, each improved."""
    rng, left = np.random.default_rng(0), SEARCHED
    remaining = heads_and_tails(terms.dag, terms.seconds)[1] + terms.seconds
    paths = places(len(terms.dag), np.argsort(-remaining, kind="stable").astype(np.int32)) / max(1, len(terms.dag))
    while left > 0 and best.makespan > bound * (1 + CLOSED / 2):
        near = best.begin / best.makespan if rng.random() < 0.5 else paths
        key = near + rng.choice([0.01, 0.03, 0.1, 0.3]) * rng.standard_normal(len(near))
        begun = terms.listed(np.argsort(key, kind="stable").astype(np.int32))
        best = min(best, improved_schedule(terms, begun), key=lambda schedule: schedule.makespan)
        left -= 4 * len(near) + 500
    return best


def real(found: Ratios) -> None:
    """Makespans over the bound with the recorded seconds, geometric means over pools."""
    shown = tuple(f"{name}{better}" for name in NAMES for better in ("", " +"))
    widths = (36, *(max(9, len(name)) for name in shown))
    heading(f"Finish over the bound, {WORKERS} workers; +: improved forward and backward", ("workflow", *shown), widths)
    if not found:
        print("  none beside the checkout: skipped")
        return
    for trace in dict.fromkeys(trace for trace, _ in found):
        cells = [cell for (other, _), cell in found.items() if other == trace]
        row((trace[:36], *(f"{_mean([cell[name] for cell in cells]):.4f}" for name in shown)), widths)
    for n in WORKERS:
        cells = [cell for (_, workers), cell in found.items() if workers == n]
        row((f"{n} workers", *(f"{_mean([cell[name] for cell in cells]):.4f}" for name in shown)), widths)
    row(("all", *(f"{_mean([cell[name] for cell in found.values()]):.4f}" for name in shown)), widths)


def tight(found: Ratios) -> None:
    """The best schedule found by any method, over the bound: the remaining gap needs a better order or a better bound."""
    if not found:
        return
    best = {cell: min(values.values()) for cell, values in found.items()}
    mean, closed = _mean(list(best.values())), np.mean([value < 1 + CLOSED for value in best.values()])
    widths = (52, 10, 10)
    heading("Best schedule found over the bound, the largest gaps first", ("workflow", "workers", "ratio"), widths)
    for trace, n in sorted(best, key=lambda cell: -best[cell])[:LOSSES]:
        row((trace, n, f"{best[trace, n]:.4f}"), widths)
    row((f"all {len(best)}; {closed:.0%} within .1 %; <= {TIGHT}: {verdict(mean <= TIGHT)}", "", f"{mean:.4f}"), widths)


def _mean(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
