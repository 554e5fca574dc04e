"""Probing: never below the truth, never above the shares, and what each probe says."""

import numpy as np
import pytest

from eligo.dag import Dag
from eligo.deciding.bounds import best_shares, probe_bound, probe_task
from eligo.deciding.elimination import exact_maxima
from eligo.deciding.work import Work
from eligo.families import random_dag, random_layered
from eligo.theory.skeleton import skeleton

DAGS = [skeleton(random_layered(3, 4, seed, 3)) for seed in range(60)]
DAGS += [skeleton(random_dag(13, p, seed)) for p in (0.15, 0.3) for seed in range(60)]


def test_probes_lie_between_the_truth_and_the_shares() -> None:
    for dag in DAGS:
        rough, truth = best_shares(dag).bound, exact_maxima(dag)
        bound, _ = probe_bound(dag, rough)
        assert (truth <= bound).all()
        assert (bound <= rough).all()


def test_each_probe_is_a_bound_by_itself() -> None:
    for dag in DAGS:
        truth = exact_maxima(dag)
        for v in np.flatnonzero(dag.outdegree > 0).tolist():
            assert (truth <= probe_task(dag, v, len(truth) - 1).bound).all()


def test_probing_closes_most_of_the_gap_of_layered_dags() -> None:
    by_shares = by_probes = steps = 0
    for dag in DAGS[:60]:
        rough, truth = best_shares(dag).bound, exact_maxima(dag)
        by_shares += int((rough == truth)[1:].sum())
        by_probes += int((probe_bound(dag, rough)[0] == truth)[1:].sum())
        steps += len(truth) - 1
    assert by_shares < 0.95 * steps < 0.98 * steps <= by_probes


def test_the_useful_probes_give_the_whole_bound() -> None:
    for dag in DAGS:
        rough = best_shares(dag).bound
        bound, probes = probe_bound(dag, rough)
        again = np.minimum.reduce([rough, *(probe.bound for probe in probes)])
        assert np.array_equal(again, bound)


def test_work_that_is_over_changes_nothing() -> None:
    dag = DAGS[0]
    rough = best_shares(dag).bound
    bound, probes = probe_bound(dag, rough, Work(0))
    assert np.array_equal(bound, rough)
    assert not probes


@pytest.mark.parametrize("arcs", [[], [("a", "b")], [("a", "b"), ("b", "c")]], ids=["none", "one", "chain"])
def test_small_dags(arcs: list[tuple[str, str]]) -> None:
    dag = Dag.from_arcs(arcs, tasks=["a", "b", "c"])
    assert np.array_equal(probe_bound(dag, best_shares(dag).bound)[0], exact_maxima(dag))
