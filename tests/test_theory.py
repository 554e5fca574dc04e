"""Skeleton, blocks, one block at a time, series, duality, bounds: each against something slow and obvious."""

from fractions import Fraction
from itertools import product

import networkx
import numpy as np
import pytest

import eligo
from conftest import GOLDEN, complete_layers, golden_dag, random_small_dag
from eligo.dag import Dag, sum_of
from eligo.deciding.bounds import best_shares, block_bound
from eligo.deciding.orders import candidate_orders
from eligo.deciding.symmetry import canonical_order
from eligo.deciding.work import Work, cumulative
from eligo.families import (
    bipartite_tree,
    butterfly,
    clique_dag,
    cycle_dag,
    fork_join,
    m_dag,
    n_dag,
    out_mesh,
    planar_bipartite_tree,
    random_dag,
    random_layered,
    w_dag,
)
from eligo.planning import plan
from eligo.theory import exact, subsets
from eligo.theory.blocks import decompose
from eligo.theory.eligibility import dual_schedule
from eligo.theory.skeleton import segments, shortcut_mask, skeleton
from eligo.theory.solutions import solve_blocks, solve_one
from eligo.theory.subsets import Subsets
from eligo.theory.trees import planar_order, tree_maxima
from slow_theory import concave_hull, max_area_schedule


@pytest.mark.parametrize("many", [0, 2, 5])
def test_twins_are_the_same_one_by_one_and_at_once(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(many)
    for dag in (random_small_dag(rng, 12) for _ in range(100)):
        for most in (1, 3, 6, 20):
            expected = Subsets.of(dag, most)
            monkeypatch.setattr(subsets, "MANY", many)
            found = Subsets.of(dag, most)
            monkeypatch.undo()
            assert getattr(found, "twins", None) == getattr(expected, "twins", None)


def subsets_of(dag: Dag) -> Subsets:
    found = Subsets.of(dag)
    assert found is not None
    return found


def small_dags(seed: int, count: int, most: int = 12) -> list[Dag]:
    rng = np.random.default_rng(seed)
    return [random_small_dag(rng, most) for _ in range(count)]


def shuffled(dag: Dag, seed: int) -> Dag:
    mixed = np.random.default_rng(seed).permutation(len(dag))
    return Dag.from_arrays(len(dag), mixed[dag.tails], mixed[dag.child])


def maxima(dag: Dag) -> list[int]:
    """The oracle's cumulative maxima over nonsinks."""
    profile = exact.max_profile(dag)
    return [e + t - profile[0] for t, e in enumerate(profile)][: int((dag.outdegree > 0).sum()) + 1]


# Skeleton


def test_the_skeleton_is_the_transitive_reduction() -> None:
    for dag in small_dags(1, 200):
        digraph: networkx.DiGraph[str] = networkx.DiGraph(list(dag.arcs()))
        digraph.add_nodes_from(dag.tasks)
        assert set(skeleton(dag).arcs()) == set(networkx.transitive_reduction(digraph).edges())


def test_sweeps_find_the_same_shortcuts_as_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = random_dag(700, 0.02, 3)
    masks = []
    for budget in (-1, 10**9):
        monkeypatch.setattr("eligo.theory.skeleton.LEAST_BUDGET", budget)
        masks.append(shortcut_mask(dag))
    assert masks[0].any()
    assert np.array_equal(masks[0], masks[1])


def test_the_skeleton_of_a_larger_random_dag() -> None:
    rng = np.random.default_rng(2)
    tails, heads = np.triu_indices(120, 1)
    keep = rng.random(len(tails)) < 0.06
    dag = shuffled(Dag.from_arrays(120, tails[keep], heads[keep]), 3)
    digraph: networkx.DiGraph[str] = networkx.DiGraph(list(dag.arcs()))
    assert set(skeleton(dag).arcs()) == set(networkx.transitive_reduction(digraph).edges())


def test_meshes_and_butterflies_are_their_own_skeletons() -> None:
    for dag in (out_mesh(12), butterfly(4), fork_join(4, 3, 2)):
        assert skeleton(dag) is dag


# Blocks


@pytest.mark.parametrize("name", [c["name"] for c in GOLDEN if "parses" in c])
def test_golden_parse_verdicts(name: str) -> None:
    case = next(c for c in GOLDEN if c["name"] == name)
    blocks = decompose(golden_dag(case))
    assert (blocks.parse_failure is None) == case["parses"]


def test_blocks_partition_the_arcs_and_the_super_dag_has_no_cycle() -> None:
    for dag in map(skeleton, small_dags(4, 200)):
        blocks = decompose(dag)
        assert (blocks.source_of >= 0).tolist() == (dag.outdegree > 0).tolist()
        assert (blocks.sink_of >= 0).tolist() == (dag.indegree > 0).tolist()
        assert (blocks.source_of[dag.tails] == blocks.sink_of[dag.child]).all()
        assert blocks.arc_counts.sum() == dag.arc_count
        assert eligo.is_schedule(blocks.superdag, blocks.superdag.order)


def test_bipartite_blocks_are_connected_components_of_split_tasks() -> None:
    for dag in map(skeleton, small_dags(5, 100)):
        blocks = decompose(dag)
        split: networkx.Graph[str] = networkx.Graph([(f"{u} out", f"{v} in") for u, v in dag.arcs()])
        if blocks.parse_failure is None:
            assert len(blocks) == networkx.number_connected_components(split)
            assert blocks.bipartite.all()


# One block


NAMED = [
    *(
        (f"{letter}({s},{d})", make(s, d))
        for letter, make in (("W", w_dag), ("M", m_dag))
        for s in (1, 2, 3, 5)
        for d in (2, 3)
    ),
    *((f"N({s})", n_dag(s)) for s in (1, 2, 3, 5)),
    *((f"C({s})", cycle_dag(s)) for s in (2, 3, 5)),
    *((f"Q({s})", clique_dag(s)) for s in (3, 4)),
]


@pytest.mark.parametrize(("name", "dag"), NAMED, ids=[name for name, _ in NAMED])
def test_named_blocks_are_recognised_and_run_optimally(name: str, dag: Dag) -> None:
    for seed in range(6):
        block = shuffled(dag, seed)
        solutions = solve_blocks(decompose(block))
        coincide = {"W(1,2)": "W(1,2)", "N(1)": "N(1)"}
        assert solutions.types[0].name == coincide.get(name, name)
        assert cumulative(block, solutions.ordered).tolist() == solutions.types[0].maxima.tolist()


def test_a_star_of_shared_sinks_is_no_w() -> None:
    r"""Four sources of degree 3 around a middle one: counts as in W(4,3), but not a path.

    a   b   c
     \ / \ /     and the middle source shares a sink with each
    """
    arcs = [(0, 4), (0, 5), (0, 6), (1, 4), (1, 7), (1, 8), (2, 5), (2, 9), (2, 10), (3, 6), (3, 11), (3, 12)]
    star = Dag.from_arrays(13, [u for u, _ in arcs], [v for _, v in arcs])
    solution = solve_blocks(decompose(star)).types[0]
    assert solution.kind is None
    assert solution.maxima.tolist() == maxima(star)


def test_subset_sums_equal_the_oracle_on_all_small_dags() -> None:
    for dag in map(skeleton, small_dags(7, 300, 11)):
        subsets = subsets_of(dag)
        assert subsets.maxima.tolist() == maxima(dag)
        order = subsets.optimal_order()
        assert (order is None) == (exact.ic_optimal_schedule(dag) is None)
        assert (order is None) == bool(subsets.conflict())
        if order is not None:
            assert cumulative(dag, np.array(order, np.int32)).tolist() == subsets.maxima.tolist()
        best = cumulative(dag, np.array(subsets.largest_area_order(), np.int32)).sum()
        assert best == sum(_cumulative_of(dag, max_area_schedule(dag)))


def _cumulative_of(dag: Dag, order: tuple[str, ...]) -> tuple[int, ...]:
    return eligo.cumulative_profile(dag, order)[: int((dag.outdegree > 0).sum()) + 1]


def test_conflicting_steps_really_conflict() -> None:
    """No schedule attains the maxima at all the steps that the conflict names."""
    found = 0
    for dag in small_dags(8, 400, 9):
        steps = subsets_of(skeleton(dag)).conflict()
        if not steps:
            continue
        found += 1
        best = exact.max_profile(dag)
        reach = {0}
        for t, layer in enumerate(exact.down_sets(dag)):
            if t:
                reach = {x for x in layer if any(x & 1 << v and x ^ 1 << v in reach for v in range(len(dag)))}
            if t in steps:
                reach = {x for x in reach if layer[x].bit_count() == best[t]}
        assert not reach
    assert found


def test_twins_are_counted_once() -> None:
    assert len(subsets_of(clique_dag(20))) == 1


def test_large_blocks_are_solved_through_their_sinks() -> None:
    """30 sources in different sets of 5 sinks: too many to enumerate, but not their sinks."""
    masks = [m for m in range(1, 32) if m not in (31,)]
    arcs = [(i, 30 + b) for i, mask in enumerate(masks) for b in range(5) if mask >> b & 1]
    block = Dag.from_arrays(35, [u for u, _ in arcs], [v for _, v in arcs])
    solution = solve_one(block)
    assert (solution.method, solution.exact) == ("dual subsets", True)
    unions = {j: min(_union(c, masks) for c in range(32) if c.bit_count() == j) for j in range(6)}
    assert solution.maxima.tolist() == [max(j for j in range(6) if unions[j] <= t) for t in range(31)]


def _union(chosen: int, masks: list[int]) -> int:
    return sum(bool(mask & chosen) for mask in masks)


# Trees


def test_tree_tables_equal_subset_sums() -> None:
    for seed in range(60):
        tree = bipartite_tree(8, seed)
        assert tree_maxima(tree).tolist() == subsets_of(tree).maxima.tolist()


def zigzags(longest: int) -> list[tuple[int | Fraction, ...]]:
    return [
        tuple(d if (i + start) % 2 else Fraction(1, d) for i, d in enumerate(sizes))
        for length in range(1, longest + 1)
        for start in (0, 1)
        for sizes in product((2, 3), repeat=length)
    ]


def test_every_small_planar_tree_is_run_optimally() -> None:
    for zigzag in zigzags(5):
        tree = shuffled(planar_bipartite_tree(*zigzag), len(zigzag))
        order = planar_order(tree)
        assert order is not None
        assert cumulative(tree, np.array(order, np.int32)).tolist() == tree_maxima(tree).tolist()


def test_the_bipartite_tree_without_an_optimal_schedule_is_not_called_planar() -> None:
    case = next(c for c in GOLDEN if c["name"] == "cx.bipartite-tree-no-ICopt")
    tree = golden_dag(case)
    assert planar_order(tree) is None
    assert tree_maxima(tree).tolist() == case["max_profile_cumulative"]
    assert solve_one(tree).admits is False


# Series


def test_all_of_a_segment_precede_all_of_the_next_and_nothing_splits_it_further() -> None:
    layers = [complete_layers(2, 3, 1, 4, 2), complete_layers(3, 3, 2), sum_of(complete_layers(2, 2), n_dag(2)).dag]
    for dag in map(skeleton, [*small_dags(9, 300), *layers]):
        label = segments(dag)
        digraph: networkx.DiGraph[int] = networkx.DiGraph(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))
        digraph.add_nodes_from(range(len(dag)))
        sequence = [v for v in dag.order.tolist() if dag.outdegree[v]]
        above = {v: networkx.ancestors(digraph, v) for v in sequence}
        for t in range(1, len(sequence)):
            certain = all(set(sequence[:t]) <= above[v] for v in sequence[t:])
            assert certain == (label[sequence[:t]].max() < label[sequence[t:]].min())
        assert set(label[dag.outdegree == 0].tolist()) <= {-1}


def test_complete_layers_of_any_widths_are_decided_at_once() -> None:
    best = plan(complete_layers(2, 7, 3, 30, 4, 25, 9, 1, 2, 30), "quick")
    assert (best.verdict, best.proof) == ("optimal", {"rule": "chain"})
    assert eligo.verify(best.dag, best.document()).holds


# Duality


def test_the_dual_of_an_optimal_schedule_is_optimal() -> None:
    for dag in small_dags(10, 100, 10):
        best = exact.ic_optimal_schedule(dag)
        if best is not None:
            assert eligo.profile(dag.dual(), dual_schedule(dag, best)) == exact.max_profile(dag.dual())


# Bounds and orders


def test_the_bounds_are_never_below_the_truth() -> None:
    for dag in map(skeleton, small_dags(11, 300)):
        if dag.arc_count:
            truth = np.array(maxima(dag))
            assert (best_shares(dag).bound >= truth).all()
            assert (best_shares(dag, Work(0)).bound >= truth).all()
            assert (block_bound(solve_blocks(decompose(dag))) >= truth).all()


def test_what_stands_in_for_the_bound_by_blocks_says_the_same_beside_another() -> None:
    soon = 0
    for dag in map(skeleton, small_dags(14, 300)):
        if dag.arc_count:
            found, other = solve_blocks(decompose(dag)), best_shares(dag).bound
            whole, beside = block_bound(found), block_bound(found, other)
            assert (beside <= whole).all()
            assert np.minimum(beside, other).tolist() == np.minimum(whole, other).tolist()
            soon += beside.tolist() != whole.tolist()
    assert soon


def test_the_shares_are_the_concave_hull_of_the_truth() -> None:
    from eligo.theory.profiles import as_profile

    for dag in map(skeleton, small_dags(12, 150)):
        if dag.arc_count:
            hull = concave_hull(as_profile(maxima(dag)))
            assert best_shares(dag).bound.tolist() == np.floor(hull + 1e-9).astype(int).tolist()


def test_large_blocks_bound_by_hulls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.deciding.bounds.LARGEST_CONVOLUTION", 0)
    for dag in map(skeleton, small_dags(13, 100)):
        if dag.arc_count:
            assert (block_bound(solve_blocks(decompose(dag))) >= np.array(maxima(dag))).all()


def test_every_candidate_order_is_a_schedule() -> None:
    for dag in [*small_dags(14, 30), random_layered(6, 10, seed=1)]:
        modules, dual = (best_shares(d).modules if d.arc_count else [] for d in (dag, dag.dual()))
        for name, order in candidate_orders(dag, modules, dual):
            assert eligo.is_schedule(dag, order), name


def test_renumbering_by_colours_forgets_the_numbering() -> None:
    for i, dag in enumerate(small_dags(15, 60)):
        again = shuffled(dag, i)
        one, two = (d.renumbered(canonical_order(d)) for d in (dag, again))
        assert one.level.tolist() == two.level.tolist()
        assert one.outdegree.tolist() == two.outdegree.tolist()
