"""The oracle itself: golden cases, the plain definition over all permutations, and the metamorphic laws."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import eligo
from conftest import GOLDEN, golden_dag, random_small_dag
from eligo.dag import Dag, sum_of
from eligo.errors import InputError
from eligo.theory import exact
from slow_theory import best_batch, max_area_schedule

SMALL = [case for case in GOLDEN if case["n"] <= exact.LARGEST]


def by_name(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", SMALL, ids=by_name)
def test_golden_case(case: dict[str, Any]) -> None:
    dag = golden_dag(case)
    profile = exact.max_profile(dag)
    cumulative = [e + t - len(dag.sources) for t, e in enumerate(profile)]
    expected = case["max_profile_cumulative"]
    assert cumulative[: len(expected)] == expected
    schedule = exact.ic_optimal_schedule(dag)
    assert (schedule is not None) == case["ic_optimal_exists"]
    if schedule is not None:
        assert eligo.profile(dag, schedule) == profile


@pytest.mark.parametrize("case", [c for c in SMALL if "fat_task" in c], ids=by_name)
def test_golden_residual(case: dict[str, Any]) -> None:
    """What is left after the fat task of a counterexample admits no IC-optimal schedule."""
    dag = golden_dag(case)
    fat = {str(v) for v in case["fat_task"]}
    residual = dag.subdag(task for task in dag.tasks if task not in fat)
    assert (exact.ic_optimal_schedule(residual) is not None) == case["residual_ic_optimal_exists"]


def test_against_all_permutations() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        dag = random_small_dag(rng, most=6)
        profiles = {p: eligo.profile(dag, p) for p in permutations(dag.tasks) if eligo.is_schedule(dag, p)}
        best = tuple(map(max, zip(*profiles.values(), strict=True)))
        assert exact.max_profile(dag) == best
        optimal = exact.ic_optimal_schedule(dag)
        assert (optimal is None) == (best not in profiles.values())
        assert optimal is None or profiles[optimal] == best
        assert sum(profiles[max_area_schedule(dag)]) == max(map(sum, profiles.values()))


def test_relabelling_and_shortcuts_change_nothing() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        dag = random_small_dag(rng, most=9)
        mixed = rng.permutation(len(dag))
        relabelled = Dag.from_arrays(len(dag), mixed[dag.tails], mixed[dag.child])
        grandchildren = [(p, w) for p, v in dag.arcs() for w in dag.children(v)]
        with_shortcuts = Dag.from_arcs([*dag.arcs(), *grandchildren], tasks=dag.tasks)
        for other in (relabelled, with_shortcuts):
            assert exact.max_profile(other) == exact.max_profile(dag)
            assert (exact.ic_optimal_schedule(other) is None) == (exact.ic_optimal_schedule(dag) is None)


def test_existence_is_self_dual() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        dag = random_small_dag(rng, most=10)
        assert (exact.ic_optimal_schedule(dag) is None) == (exact.ic_optimal_schedule(dag.dual()) is None)


def test_a_sum_that_admits_has_summands_that_admit() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        parts = [random_small_dag(rng, most=6) for _ in range(2)]
        if exact.ic_optimal_schedule(sum_of(*parts).dag) is not None:
            assert all(exact.ic_optimal_schedule(part) is not None for part in parts)


def test_the_best_batch_leaves_the_most(diamond: Dag) -> None:
    assert best_batch(diamond, ["a"], 2) == (("b", "c"), 1)
    assert best_batch(diamond, ["a"], 0) == ((), 2)
    with pytest.raises(InputError, match="cannot choose 3 tasks from 2 eligible tasks"):
        best_batch(diamond, ["a"], 3)


def test_too_many_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="cannot enumerate more than"):
        exact.max_profile(Dag.from_arrays(23, [], []))
