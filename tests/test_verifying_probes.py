"""The checker on probes and on series-parallel areas: what the planner proves holds, what is changed does not."""

import json
from typing import Any

import numpy as np
import pytest

from eligo import families
from eligo.dag import Dag
from eligo.deciding.bounds import best_shares, probe_task, probes_proof
from eligo.deciding.elimination import exact_maxima
from eligo.deciding.seriesparallel import largest_area_order
from eligo.deciding.work import cumulative
from eligo.planning import plan
from eligo.theory.skeleton import skeleton
from eligo.verifying import positions, verify
from eligo.verifying.blocks import probed_bound
from eligo.verifying.documents import Refuted
from slow_theory import max_area_schedule
from test_verifying import edits

Document = dict[str, Any]


@pytest.fixture
def probing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither enumeration nor elimination: only probes are left."""
    for room in ("solver", "modules"):
        monkeypatch.setattr(f"eligo.deciding.{room}.maxima_within", lambda *_: (None, {}))
        monkeypatch.setattr(f"eligo.deciding.{room}.few_sets", lambda *_: None)


def probed_document(seed: int) -> tuple[Dag, Document]:
    dag = families.random_layered(3, 6, seed, 3)
    return dag, json.loads(json.dumps(plan(dag).document()))


def test_a_probe_means_the_same_to_planner_and_checker() -> None:
    for seed in range(20):
        dag = skeleton(families.random_layered(3, 5, seed, 3))
        rough = best_shares(dag).bound
        for v in np.flatnonzero(dag.outdegree > 0).tolist():
            probe = probe_task(dag, v, len(rough) - 1)
            found = probed_bound(dag, rough, probes_proof(dag, [probe]))
            assert np.array_equal(found, np.minimum(rough, probe.bound))
            assert (found >= exact_maxima(dag)).all()


@pytest.mark.usefixtures("probing")
def test_plans_with_probes_hold() -> None:
    probes = 0
    for seed in range(12):
        dag, document = probed_document(seed)
        probes += json.dumps(document).count('"waiting"')
        found = verify(dag, document)
        assert found.holds, found.reason
    assert probes > 20


@pytest.mark.usefixtures("probing")
def test_a_probe_that_is_left_out_is_missed() -> None:
    dag, document = next(found for found in map(probed_document, range(20)) if "probes" in found[1]["proof"])
    document["proof"]["probes"].pop()
    assert not verify(dag, document).holds


@pytest.mark.usefixtures("probing")
def test_a_probe_changed_in_one_place_is_refused() -> None:
    dag, document = next(found for found in map(probed_document, range(20)) if "probes" in found[1]["proof"])
    bare = skeleton(dag)
    rough = best_shares(bare).bound
    probes = document["proof"]["probes"]
    honest = probed_bound(bare, rough, probes)
    for i, probe in enumerate(probes):
        for _, changed in list(edits(probe))[::7]:
            try:
                found = probed_bound(bare, rough, [*probes[:i], changed, *probes[i + 1 :]])
            except (Refuted, KeyError, TypeError, ValueError):
                continue
            assert (found >= exact_maxima(bare)).all()  # another true proof, perhaps of less
            assert (found >= honest).all()


def test_the_checker_knows_largest_areas_of_its_own() -> None:
    for seed in range(60):
        dag = families.random_out_tree(9, seed)
        order = largest_area_order(dag)
        assert order is not None
        best = dag.indices(max_area_schedule(dag))
        best = best[dag.outdegree[best] > 0]
        areas = [int(cumulative(dag, nonsinks).sum()) for nonsinks in (order, best)]
        assert areas[0] == areas[1] == positions.series_parallel_area(dag)


def test_the_checker_knows_what_is_not_series_parallel() -> None:
    assert positions.series_parallel_area(Dag.from_arcs([("a", "c"), ("a", "d"), ("b", "d")])) is None
    for seed in range(60):
        dag = skeleton(families.random_dag(9, 0.2, seed))
        assert (positions.series_parallel_area(dag) is None) == (largest_area_order(dag) is None)


def test_a_false_largest_area_is_refused() -> None:
    dag = families.random_out_tree(120, seed=5)
    document = json.loads(json.dumps(plan(dag).document()))
    assert verify(dag, document).holds
    lowered = document | {"area_bound": document["area_bound"] - 1}
    assert not verify(dag, lowered).holds
