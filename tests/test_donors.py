"""Chains of blocks from which any fat task may be taken, by enumeration; the theorems that say too much of them."""

from itertools import combinations

import numpy as np
import pytest

from compositions import arcs_of, compositions, residual, spoiling
from conftest import GOLDEN, golden_dag
from eligo import families
from eligo.clusters import cluster, fat_task, strategies
from eligo.clusters.chains import chain_of, is_straight
from eligo.dag import Dag, sum_of
from eligo.planning import plan
from eligo.simulation import deal

COUNTEREXAMPLES = [golden_dag(case) for case in GOLDEN if "fat_task" in case]
#: three M-dags with two parents each, of which one fat task leaves no best order
THREE_M = Dag.from_arrays(13, [0, 1, 1, 2, 4, 5, 6, 6, 8, 8, 9, 10], [3, 3, 4, 4, 8, 7, 7, 8, 11, 12, 11, 12])


def straight(dag: Dag) -> bool:
    chain = chain_of(dag)
    return chain is not None and is_straight(chain)


def composed(rng: np.random.Generator, blocks: list[Dag], most: int) -> Dag:
    """Random blocks, the sources of each merged with random sinks of those before it, up to *most* tasks."""
    arcs: list[tuple[int, int]] = []
    tasks = 0
    while True:
        block = blocks[rng.integers(len(blocks))]
        sinks = sorted(set(range(tasks)) - {u for u, _ in arcs})
        sources = np.flatnonzero(block.indegree == 0)
        merged = int(rng.integers(0, min(len(sinks), len(sources)) + 1))
        if tasks + len(block) - merged > most:
            return Dag.from_arrays(tasks, *np.array(arcs, np.int32).T)
        if rng.random() < 0.5:  # along one another, as in a mesh
            begin = int(rng.integers(len(sinks) - merged + 1))
            place = dict(zip(sources[:merged].tolist(), sinks[begin : begin + merged], strict=True))
        else:
            place = dict(zip(rng.permutation(sources)[:merged].tolist(), rng.permutation(sinks)[:merged], strict=True))
        fresh = [v for v in range(len(block)) if v not in place]
        place |= dict(zip(fresh, range(tasks, tasks + len(fresh)), strict=True))
        arcs += [(int(place[u]), int(place[v])) for u, v in arcs_of(block)]
        tasks += len(fresh)


# A straight chain is a donor


@pytest.mark.parametrize(("letters", "tasks"), [("M", 10), ("W", 10), ("N", 8), ("C", 12), ("WNCM", 6)])
def test_every_fat_task_of_every_small_straight_chain_leaves_a_chain(letters: str, tasks: int) -> None:
    donors = [dag for dag in compositions(letters, tasks, 4) if straight(dag)]
    assert len(donors) > 10
    for dag in donors:
        fat_tasks, spoiled = spoiling(dag)
        assert not spoiled
        assert all(chain_of(residual(dag, inside)) is not None for inside in fat_tasks)


def test_no_certificate_of_a_dag_of_five_tasks_is_false() -> None:
    pairs = list(combinations(range(5), 2))
    chosen = ([pair for i, pair in enumerate(pairs) if mask >> i & 1] for mask in range(1, 1 << len(pairs)))
    donors = [dag for arcs in chosen if straight(dag := Dag.from_arrays(5, *np.array(arcs, np.int32).T))]
    assert len(donors) > 300
    assert not any(spoiling(dag)[1] for dag in donors)


BLOCKS = {
    "W": [families.w_dag(s, d) for s in (1, 2, 3, 4) for d in (2, 3)],
    "C": [families.cycle_dag(s) for s in (2, 3)],
    "N": [families.n_dag(s) for s in (2, 3)],
    "M": [families.m_dag(s, 2) for s in (1, 2, 3, 4)],
    "mixed": [
        families.w_dag(2, 2),
        families.w_dag(3, 2),
        families.n_dag(2),
        families.m_dag(2, 2),
        families.m_dag(1, 3),
    ],
}


@pytest.mark.parametrize("family", BLOCKS)
def test_no_certificate_of_a_donor_is_false(family: str) -> None:
    rng = np.random.default_rng(1)
    dags = [composed(rng, BLOCKS[family], 15) for _ in range(250)]
    certified = [dag for dag in dags if cluster(dag, 1, "communication", strategy="searched").certificate]
    assert len(certified) > 10
    assert not any(spoiling(dag)[1] for dag in certified)


def test_some_chains_are_no_donors() -> None:
    """The oracle finds sets that spoil: without a condition the certificate would be false."""
    spoiled = [dag for dag in compositions("M", 11, 4) if chain_of(dag) is not None and spoiling(dag)[1]]
    assert spoiled
    assert not any(map(straight, spoiled))


@pytest.mark.parametrize(
    "dag",
    [
        families.out_mesh(5), families.in_mesh(5), families.out_tree(4), families.fork_join(3, stages=2),
        families.w_dag(5, 3), families.n_dag(5), families.m_dag(5, 2), families.cycle_dag(5),
    ],
    ids=["out-mesh", "in-mesh", "out-tree", "fork-join", "W", "N", "M", "C"],
)  # fmt: skip
def test_familiar_dags_are_donors(dag: Dag) -> None:
    assert straight(dag)
    assert not spoiling(dag)[1]


def stacked(turn: int, flip: bool) -> Dag:
    """A cycle of four on a cycle of four: the sinks of the first are the sources of the second, turned or flipped."""
    places = [(turn + (-i if flip else i)) % 4 for i in range(4)]
    above = arcs_of(families.cycle_dag(4))
    below = [(4 + places[u], v + 4) for u, v in above]
    return Dag.from_arrays(12, *np.array(above + below, np.int32).T)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("turn", range(4))
def test_a_cycle_may_lie_on_a_cycle_as_long_as_it_is_not_twisted(turn: int, flip: bool) -> None:
    assert straight(stacked(turn, flip))


@pytest.mark.parametrize("dag", [*COUNTEREXAMPLES, THREE_M, families.butterfly(3)])
def test_no_counterexample_is_straight(dag: Dag) -> None:
    assert not straight(dag)


def test_a_chain_of_m_dags_that_is_not_straight_is_not_certified() -> None:
    assert plan(THREE_M).verdict == "optimal"
    assert fat_task(THREE_M, ["1", "9", "10"]).residual_verdict == "impossible"
    for size in range(1, len(THREE_M) + 1):
        fat = cluster(THREE_M, size, "communication", strategy="searched")
        assert fat.certificate is None
        assert fat.residual_verdict == "optimal"


# Theorem 5


def test_theorem_5_compares_too_little() -> None:
    """Taking a source of M(2,2) leaves N(2), which precedes M(2,2); but C(3) and N(2) cannot be compared."""
    whole = sum_of(families.cycle_dag(3), families.m_dag(2, 2)).dag
    assert plan(whole).verdict == "optimal"
    for source in ("1.0", "1.1", "1.2"):
        fat = fat_task(whole, [source])
        assert (fat.residual_verdict, fat.residual_chain) == ("impossible", None)


def test_what_remains_of_any_composition_as_a_chain_has_a_best_order() -> None:
    """Theorem 5, repaired: of any two blocks that remain one has priority over the other, as the super-dag allows."""
    more = 0
    for dag in compositions("WNCM", 6, 3):
        fat_tasks, spoiled = spoiling(dag)
        for inside in fat_tasks:
            kept = chain_of(residual(dag, inside)) is not None
            assert not (kept and inside in spoiled)
            more += kept and not straight(dag)
    assert more > 300


def test_where_residuals_are_not_planned_the_repaired_theorem_cuts_fewer_arcs(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = families.random_composition("m", 450, seed=2)
    assert not straight(dag)
    repaired = deal(dag, [8], "communication").cut_arcs
    monkeypatch.setattr(strategies, "MOST_CHECKED", 0)
    assert repaired < 0.95 * deal(dag, [8], "communication").cut_arcs
