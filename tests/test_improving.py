"""Orders improved by local search: legal, never worse, as good as a slow search says, the same however they are run."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families, kernels
from eligo.dag import Dag
from eligo.deciding.effort import new_effort
from eligo.deciding.orders import heuristics, improve_best, improve_order, merge_orders
from eligo.deciding.solver import solve
from eligo.deciding.work import Clock, Work, cumulative
from eligo.kernels.improving import Lineup
from eligo.rows import Ints
from eligo.theory.skeleton import skeleton
from eligo.theory.subsets import Subsets


def area(dag: Dag, order: Sequence[int] | Ints) -> int:
    """The sum of what is rendered; refuses what is no schedule."""
    return int(cumulative(dag, np.asarray(order, np.int32)).sum())


def random_order(dag: Dag, rng: np.random.Generator) -> list[int]:
    """Any legal order of the nonsinks."""
    order: list[int] = []
    while ready := [
        v
        for v in np.flatnonzero(dag.outdegree).tolist()
        if v not in order and {*dag.parents_of(v).tolist()} <= {*order}
    ]:
        order.append(int(rng.choice(ready)))
    return order


def line(dag: Dag, order: Sequence[int], reach: int = 1000) -> tuple[Lineup, Ints]:
    """A line to ask single moves of, and the array in which they are made."""
    own, (place, last) = np.array(order, np.int32), np.full((2, len(dag)), -1, np.int32)
    place[own] = np.arange(len(own))
    np.maximum.at(last, dag.child, place[dag.tails])
    rows = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, own, place, last)
    return Lineup(reach, *(row.data for row in rows)), own


# The slow twin: every move is made and its area counted


def closed(dag: Dag, order: Sequence[int], first: set[int], back: bool) -> set[int]:
    """Some tasks of a stretch with all their ancestors, or descendants, inside it."""
    found = set(first)
    for v in reversed(order) if back else order:
        row = dag.children_of(v) if back else dag.parents_of(v)
        if found & {*row.tolist()}:
            found.add(v)
    return found & {*order}


def slow_moves(dag: Dag, order: list[int], p: int, reach: int) -> list[list[int]]:
    """What comes of pulling forward what a task rendered at p misses, and of pushing the one at p back, to every place."""
    results = []
    place = {v: i for i, v in enumerate(order)}
    for w in dag.children_of(order[p]).tolist():
        needed = {*dag.parents_of(w).tolist()}
        if max(place[u] for u in needed) == p:
            for begin in range(max(0, p - reach + 1), p):
                stretch = order[begin : p + 1]
                first = closed(dag, stretch, needed & {*stretch}, back=True)
                results.append(order[:begin] + split(stretch, first) + order[p + 1 :])
    for end in range(p + 1, min(len(order), p + reach)):
        stretch = order[p : end + 1]
        first = {*stretch} - closed(dag, stretch, {order[p]}, back=False)
        results.append(order[:p] + split(stretch, first) + order[end + 1 :])
    return results


def split(stretch: list[int], first: set[int]) -> list[int]:
    return [v for v in stretch if v in first] + [v for v in stretch if v not in first]


@pytest.mark.parametrize("seed", range(40))
def test_a_walk_knows_what_the_best_move_saves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = skeleton(random_small_dag(rng, 14) if seed % 2 else families.random_layered(4, 4, seed=seed, degree=3))
    order = random_order(dag, rng)
    reach = [1000, 3][seed % 3 == 0]
    for p in range(len(order)):
        row, own = line(dag, order, reach)
        saved = row.push_at(p)
        assert (area(dag, own) - area(dag, order), saved >= 0) == (saved, True)
        pulled, own = line(dag, order, reach)
        more = pulled.pull_at(p)
        assert area(dag, own) - area(dag, order) == more
        best = max([area(dag, moved) for moved in slow_moves(dag, order, p, reach)], default=0) - area(dag, order)
        assert (max(saved, more) > 0) == (best > 0)
        assert max(saved, more) <= max(best, 0)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_improved_is_no_better_by_any_move(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = skeleton(families.random_layered(5, 4, seed=seed, degree=2 + seed % 2))
    order = random_order(dag, rng)
    found = improve_order(dag, np.array(order, np.int32), Work(), 1000)
    assert area(dag, found) >= area(dag, order)
    assert sorted(found.tolist()) == sorted(order)
    for p in range(len(order)):
        assert all(area(dag, moved) <= area(dag, found) for moved in slow_moves(dag, found.tolist(), p, 1000))


# Never worse, and how good


@pytest.mark.parametrize("units", [0, 100, 5_000, 10_000_000])
def test_no_work_makes_an_order_worse(units: int) -> None:
    dag = skeleton(families.random_layered(12, 15, seed=4))
    candidates = heuristics(dag, True)
    best = max(area(dag, order) for _, order in candidates)
    work = Work(units)
    name, order = improve_best(dag, candidates, work)
    assert area(dag, order) >= best
    assert name.endswith(", improved") == (area(dag, order) > best)
    assert (improve_best(dag, candidates, Work(units))[1] == order).all()
    for _, own in candidates:
        assert area(dag, improve_order(dag, own, Work(units))) >= area(dag, own)


def test_small_layered_dags_get_nearly_the_largest_area() -> None:
    lost = []
    for seed in range(100, 130):
        dag = skeleton(families.random_layered(5, 4, seed=seed))
        subsets = Subsets.of(dag)
        assert subsets
        _, order = improve_best(dag, heuristics(dag, True), Work())
        lost.append(1 - area(dag, order) / area(dag, subsets.best_order()[0]))
    assert max(lost) < 0.01
    assert sum(lost) / len(lost) < 0.0005


@pytest.mark.parametrize(("layers", "degree"), [(40, 2), (10, 4), (1, 2)])
def test_what_is_decided_has_the_improved_order(layers: int, degree: int) -> None:
    """Also where no work is left for anything else, and where the dag is a sum of parts that touch nowhere."""
    dag = skeleton(families.random_layered(layers, 20, seed=11, degree=degree))
    dag = dag if layers > 1 else two_of(skeleton(families.random_layered(10, 15, seed=5)))
    plain, _ = solve(dag, replace(new_effort("normal", Clock()), work=Work(0), improving=Work(0)))
    found, _ = solve(dag, replace(new_effort("normal", Clock()), work=Work(0)))
    gaps = [outcome.area_bound - area(dag, outcome.order) for outcome in (plain, found)]
    assert gaps[1] < gaps[0]
    again, _ = solve(dag, replace(new_effort("normal", Clock()), work=Work(0)))
    assert (again.order == found.order).all()


def two_of(dag: Dag) -> Dag:
    tails, heads = (np.concatenate([side, side + len(dag)]) for side in (dag.tails, dag.child))
    return Dag.from_arrays(2 * len(dag), tails, heads)


def test_large_areas_are_summed_in_full() -> None:
    """A star whose branches come before it: what one move saves is more than 32 bits can tell."""
    branches, leaves = 70_000, 70_000
    tails = np.concatenate([np.arange(branches), np.full(leaves, branches)])
    heads = branches + 1 + np.concatenate([np.arange(branches), branches + np.arange(leaves)])
    dag = Dag.from_arrays(branches + 1 + branches + leaves, tails, heads)
    row, own = line(dag, range(branches + 1), 100_000)
    if not kernels.compiled():
        pytest.skip("too long where the kernels are interpreted")
    assert row.pull_at(branches) == branches * (leaves - 1)
    assert own[0] == branches


# Parts


def test_parts_are_merged_as_well_as_can_be() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        gains = [rng.integers(0, 4, size=rng.integers(1, 5)) for _ in range(2)]
        profiles = [np.concatenate([[0], np.cumsum(row)]) for row in gains]
        orders = [np.arange(begin, begin + len(row), dtype=np.int32) for begin, row in zip((0, 10), gains, strict=True)]
        found = merge_orders(orders, profiles).tolist()
        assert [[v for v in found if (v >= 10) == second] for second in (False, True)] == [o.tolist() for o in orders]
        worth = dict(zip([*orders[0].tolist(), *orders[1].tolist()], np.concatenate(gains).tolist(), strict=True))
        assert summed([worth[v] for v in found]) == max(
            summed(row) for row in mixtures(gains[0].tolist(), gains[1].tolist())
        )


def summed(gains: list[int]) -> int:
    return int(np.cumsum(gains).sum())


def mixtures(one: list[int], two: list[int]) -> list[list[int]]:
    """Both in all ways, each in its own order."""
    total = len(one) + len(two)
    rows = []
    for chosen in combinations(range(total), len(one)):
        first, second = iter(one), iter(two)
        rows.append([next(first) if i in chosen else next(second) for i in range(total)])
    return rows


# However it is run


def test_compiled_and_interpreted_orders_are_the_same() -> None:
    script = """
from eligo import families
from eligo.deciding.orders import improve_best
from eligo.deciding.orders import heuristics
from eligo.deciding.work import Work
for units in (30_000, 3_000_000):
    for seed in range(3):
        dag, work = families.random_layered(8, 12, seed=seed, degree=3), Work(units)
        name, order = improve_best(dag, heuristics(dag, True), work)
        print(name, order.tolist(), work.spent)
"""
    told = []
    for pure in ("", "1"):
        env = {"ELIGO_PURE": pure, "PYTHONPATH": str(Path(families.__file__).parents[2]), "PATH": ""}
        told.append(subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True))
    assert told[0].stdout == told[1].stdout
    assert "improved" in told[0].stdout
