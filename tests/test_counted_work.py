"""What planning may cost is counted: cuts, parts of sums, sets of items; and what is left out is left out gracefully."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import eligo
from conftest import complete_layers, random_small_dag
from eligo import families as f
from eligo.dag import Dag, sum_of
from eligo.deciding import solver as solving
from eligo.deciding.bounds import CUT, best_shares, block_bound
from eligo.deciding.effort import CLOSED_SET, EFFORTS, SET, new_effort
from eligo.deciding.elimination import ROLE, eliminate
from eligo.deciding.modules import few_sets
from eligo.deciding.solver import solve
from eligo.deciding.work import SECOND, Work
from eligo.planning import plan
from eligo.theory import solutions
from eligo.theory.blocks import decompose
from eligo.theory.skeleton import skeleton
from eligo.theory.solutions import solve_blocks


def rules(proof: Any) -> Iterator[str]:
    """All rules that a proof names."""
    if isinstance(proof, dict):
        if isinstance(proof.get("rule"), str):
            yield proof["rule"]
        for entry in proof.values():
            yield from rules(entry)
    elif isinstance(proof, list | tuple):
        for entry in proof:
            yield from rules(entry)


def test_every_cut_and_every_elimination_counts_however_small() -> None:
    dag, cutting, taking = skeleton(f.random_dag(60, 0.05, 3)), Work(), Work()
    cuts = 2 * len(best_shares(dag, cutting).modules) - 1  # one for each module, one for each split
    assert cuts > 3
    assert cutting.spent > cuts * CUT
    eliminate(dag, taking)
    assert taking.spent >= ROLE * int(((dag.indegree > 0) | (dag.outdegree > 0)).sum())


def test_shares_end_with_the_densest_of_what_is_left_for_all_of_it() -> None:
    rng = np.random.default_rng(5)
    dags = [skeleton(random_small_dag(rng, 14)) for _ in range(200)] + [skeleton(f.random_layered(12, 12, 1))]
    for dag in dags:
        whole = best_shares(dag)
        for most in (0, CUT, 4 * CUT, 10 * CUT):
            some = best_shares(dag, Work(most))
            assert (some.bound >= whole.bound).all()
            shares = [(m.p, m.q) for m in some.modules]
            assert shares == [(m.p, m.q) for m in whole.modules][: len(shares)]
            assert all(p * d > r * q for (p, q), (r, d) in pairwise(shares))


def test_a_plan_with_shares_that_ended_early_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], cuts=1))
    for dag in (f.random_layered(20, 20, 1), f.random_dag(200, 0.02, 1)):
        best = plan(dag, "quick")
        assert eligo.verify(dag, best.document()).holds
        assert best.area_bound <= 1.35 * best.area


@pytest.mark.parametrize("name", ["quick", "normal"])
def test_cuts_are_not_given_anew_to_every_part(name: str) -> None:
    """A tree is a series of sums of trees, down to the leaves."""
    effort = new_effort(name)
    solve(skeleton(f.random_out_tree(6_000, 1)), effort)
    assert effort.cutting.spent <= 1.2 * effort.cuts
    assert effort.cuts <= 2 * SECOND


def test_a_sum_is_taken_apart_only_where_its_parts_leave_half_of_the_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = sum_of(*(f.random_dag(40, 0.08, seed) for seed in range(4))).dag
    apart = plan(dag, "quick")
    monkeypatch.setattr(solving, "PART_TASK", SECOND)
    whole = plan(dag, "quick")
    assert "sum" in set(rules(apart.proof))
    assert "sum" not in set(rules(whole.proof))
    assert all(eligo.verify(dag, one.document()).holds for one in (apart, whole))


def bipartite(sources: int, seed: int) -> Dag:
    """A connected block that is no tree: each sink has two parents next to one another, and some a third."""
    rng = np.random.default_rng(seed)
    pairs = [(u, sources + u) for u in range(sources)] + [((u + 1) % sources, sources + u) for u in range(sources)]
    more = {(int(rng.integers(sources)), sources + u) for u in range(0, sources, 3)}
    tails, heads = zip(*sorted({*pairs, *more}), strict=True)
    return Dag.from_arrays(2 * sources, tails, heads)


def test_blocks_together_compare_no_more_sets_than_one_large_one() -> None:
    blocks = decompose(sum_of(*(bipartite(16, seed) for seed in range(12)), bipartite(9, 0)).dag)
    found = solve_blocks(blocks, 1 << 17)
    many = [one.sets for one in found.types if one.sets > 1 << solutions.ALWAYS_ITEMS]
    assert 0 < sum(many) <= 1 << 17
    assert {one.sets for one in found.types} >= {0, 1 << 9}  # a small one is solved also behind those that are too many
    assert all(one.scant != one.exact for one in found.types)
    assert (block_bound(found)[1:] == int((blocks.dag.indegree > 0).sum())).all()


def test_a_plan_for_which_sets_were_scant_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = sum_of(*(bipartite(16, seed) for seed in range(3)), f.bipartite_tree(40, 1)).dag
    plenty = plan(dag)
    monkeypatch.setattr(solving, "MOST_SETS", 0)
    scanty = plan(dag)
    assert scanty.proof != plenty.proof
    assert all(eligo.verify(dag, one.document()).holds for one in (plenty, scanty))


@pytest.mark.parametrize("name", ["quick", "normal"])
def test_sets_are_counted_over_all_parts_of_a_sum(name: str) -> None:
    """Each of them could compare 2 ** 20 sets and more by itself."""
    effort = new_effort(name)
    solve(sum_of(*(bipartite(20, seed) for seed in range(20))).dag, effort)
    assert effort.cutting.spent <= 1.2 * effort.cuts


def test_few_items_are_enumerated_and_more_where_half_of_the_work_suffices() -> None:
    dag, cost = bipartite(13, 1), (SET + CLOSED_SET) * 2**13
    assert few_sets(bipartite(10, 1), Work(0)) is not None
    assert few_sets(dag, Work(1.9 * cost)) is None
    assert few_sets(dag, work := Work(2 * cost)) is not None
    assert work.spent == cost


def test_blocks_are_equal_where_their_shapes_are() -> None:
    rng = np.random.default_rng(7)
    for _ in range(300):
        blocks = decompose(skeleton(random_small_dag(rng)))
        for b, shape in enumerate(blocks.shapes(range(len(blocks)))):
            dag = blocks.block_dag(b)
            arcs = sorted(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))
            assert sorted(map(tuple, np.frombuffer(shape, np.int32).reshape(-1, 2).tolist())) == arcs


def test_parts_in_series_are_told_also_where_no_task_stands_alone() -> None:
    told = " ".join(eligo.explain(complete_layers(3, 5, 2, 6)))
    assert "3 parts follow one another" in told


def test_nothing_is_looked_for_where_the_modules_have_the_largest_area(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = f.expansive_dag(60, 1)
    best = plan(dag)
    assert (best.verdict, best.proof["rule"]) == ("optimal", "modules")
    monkeypatch.setattr(solving, "heuristics", lambda *given: pytest.fail("an order was looked for"))
    assert plan(dag).order == best.order
