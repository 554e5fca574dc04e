"""Elimination, symmetry, moves and modules, each against the oracle; then the planner with enumeration switched off."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from functools import reduce
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest

import eligo
from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag, sum_of
from eligo.deciding import elimination
from eligo.deciding import solver as solving
from eligo.deciding.bounds import best_shares
from eligo.deciding.effort import EFFORTS
from eligo.deciding.elimination import (
    Elimination,
    Planner,
    StateTable,
    TooWideError,
    eliminate,
    exact_maxima,
    plan_joins,
    roles_of,
)
from eligo.deciding.modules import module_dag
from eligo.deciding.moves import frontier, guided_order, largest_area
from eligo.deciding.symmetry import Alike, Twins, is_automorphism
from eligo.deciding.work import Clock, Outlook, Work, cumulative
from eligo.errors import InputError
from eligo.planning import plan
from eligo.theory import exact
from eligo.theory.profiles import convolve
from eligo.theory.skeleton import skeleton
from eligo.theory.subsets import Subsets
from slow_theory import max_area_schedule


def dags(seed: int, count: int, most: int = 12) -> list[Dag]:
    rng = np.random.default_rng(seed)
    return [skeleton(random_small_dag(rng, most)) for _ in range(count)]


def subsets_of(dag: Dag) -> Subsets:
    found = Subsets.of(dag)
    assert found is not None
    return found


def sharing_a_sink(part: Dag, copies: int) -> Dag:
    """Copies of a dag whose first sinks are one task."""
    sink = int(np.flatnonzero(part.outdegree == 0)[0])
    whole = sum_of(*[part] * copies)
    place = np.arange(len(whole.dag))
    for image in whole.images[1:]:
        place[image[sink]] = whole.images[0][sink]
    kept, number = np.unique(place, return_inverse=True)
    return Dag.from_arrays(len(kept), number[whole.dag.tails], number[whole.dag.child])


SYMMETRIC = [
    sharing_a_sink(part, copies)
    for part in (families.w_dag(1, 2), families.m_dag(1, 2), families.n_dag(2), families.out_tree(2))
    for copies in (3, 4)
] + [families.fork_join(4, 1, 2), families.clique_dag(4)]


# Elimination


def test_elimination_is_exact() -> None:
    for dag in dags(1, 300, 13):
        assert exact_maxima(dag).tolist() == subsets_of(dag).maxima.tolist()


def test_any_order_of_elimination_gives_the_same() -> None:
    rng = np.random.default_rng(2)
    for dag in dags(3, 60, 9):
        order = rng.permutation(roles_of(dag)).tolist()
        assert exact_maxima(dag, plan=Elimination(order, [], [])).tolist() == subsets_of(dag).maxima.tolist()


def test_wide_dags_are_given_up() -> None:
    with pytest.raises(TooWideError):
        exact_maxima(families.random_layered(6, 60, seed=1, degree=6))
    stopped = Clock()
    stopped.stop()
    with pytest.raises(TooWideError):
        exact_maxima(families.out_mesh(6), Work(clock=stopped))
    with pytest.raises(TooWideError):
        exact_maxima(families.out_mesh(6), Work(100))


def joins_of(dag: Dag, work: Work) -> tuple[Planner, StateTable]:
    return plan_joins(dag, eliminate(dag, work), work)


WIDE = [families.butterfly(4), families.out_mesh(12), families.random_layered(5, 12, seed=3), families.clique_dag(9)]


@pytest.mark.parametrize("kept", [0, 1 / 4])
def test_joins_that_are_not_kept_give_the_same(kept: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal joins once or again and again, values of 16 bits or of 32."""
    monkeypatch.setattr(elimination, "FEW_ROWS", 0)
    monkeypatch.setattr(elimination, "KEPT", kept)
    for i, dag in enumerate(dags(11, 100, 12)):
        monkeypatch.setattr(elimination, "MOST_SMALL", 0 if i % 2 else elimination.MOST_SMALL)
        assert exact_maxima(dag).tolist() == subsets_of(dag).maxima.tolist()


@pytest.mark.parametrize("dag", WIDE, ids=str)
def test_what_is_planned_is_what_is_done(dag: Dag) -> None:
    """The work that is foreseen is the work that is counted; with less of it, nothing is begun."""
    bare, work = skeleton(dag), Work(memory=1e9)
    planner, last = joins_of(bare, work)
    before = work.spent
    maxima = elimination.perform(planner, last.rows, work)
    assert work.spent - before == planner.cost == sum(join.cost for join in planner.joins)
    assert exact_maxima(bare).tolist() == maxima.tolist()
    enough, little = (Work(units, memory=1e9) for units in (5 * work.spent, before + planner.cost / 2))
    exact_maxima(bare, enough)
    assert enough.spent == work.spent
    with pytest.raises(TooWideError):
        exact_maxima(bare, little)
    assert little.spent <= before


@pytest.mark.parametrize("dag", WIDE, ids=str)
def test_tables_take_the_memory_that_is_foreseen(dag: Dag) -> None:
    bare = skeleton(dag)
    planner, last = joins_of(bare, Work(memory=1e9))
    foreseen = planner.peak()
    tracemalloc.start()
    maxima = elimination.perform(planner, last.rows, Work())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < foreseen + 20_000  # what numpy and the loop itself take
    assert exact_maxima(bare, Work(memory=4 * foreseen)).tolist() == maxima.tolist()
    with pytest.raises(TooWideError):
        exact_maxima(bare, Work(memory=foreseen / 3))


def test_rows_go_along_what_there_is_less_of() -> None:
    """Executed tasks in an out-tree, rendered ones in an in-tree; the maxima are the same as ever."""
    for dag, turned in ((families.out_tree(3), False), (families.in_tree(3), True)):
        planner, last = joins_of(dag, Work(memory=1e9))
        assert (planner.turned, len(elimination.perform(planner, last.rows, Work()))) == (turned, 4)
        assert exact_maxima(dag).tolist() == subsets_of(dag).maxima.tolist()


def test_joins_in_a_row_take_two_states_a_task_and_not_three() -> None:
    """Nine joins with a source in common, each of which leads to a join of its own parts and of one they share."""
    arcs = [(source, f"join {i}") for i in range(9) for source in ("all", f"{i} a", f"{i} b")]
    arcs += [(f"join {i}", f"then {i}") for i in range(9)]
    arcs += [(f"then {i}", after) for i in range(9) for after in ("shared", f"{i} c")]
    arcs += [(before, f"last {i}") for i in range(9) for before in ("shared", f"{i} c")]
    planner, _ = joins_of(Dag.from_arcs(arcs), Work(memory=1e9))
    assert max(join.out.count for join in planner.joins) <= 2**10 < 3**9


def test_equal_parts_are_joined_once() -> None:
    part = skeleton(families.random_layered(4, 5, seed=1))
    alone, together = (joins_of(d, Work())[0] for d in (part, sum_of(*[part] * 8).dag))
    assert len(together.joins) == len(alone.joins) + 3  # two, four, eight


def test_what_is_interchangeable_is_found_in_every_large_bag() -> None:
    """Three times a sink for every two sources: each has a bag of all its sources, which are interchangeable."""
    part = Dag.from_arcs([(f"{u}", f"{i} {j}") for i, j in combinations(range(18), 2) for u in (i, j)])
    dag = sum_of(*[part] * 3).dag
    assert [len(alike.members) for alike in eliminate(dag).alike] == [18] * 3
    executed = [np.array([m * (m - 1) // 2 for m in range(19)])] * 3
    assert exact_maxima(dag).tolist() == reduce(convolve, executed).tolist()


def test_the_order_leaves_few_tables_waiting() -> None:
    """Many parts side by side are done one after another."""
    dag = skeleton(families.random_layered(4, 5, seed=1))
    order = eliminate(sum_of(*[dag] * 5).dag).order
    owners = [v % (5 * len(dag)) // len(dag) for v in order]
    assert sum(a != b for a, b in pairwise(owners)) == 4


# Symmetry


def interchangeable(dag: Dag) -> list[Alike]:
    twins = Twins(dag, Work())
    twins.look(range(len(dag)))
    return twins.sets


@pytest.mark.parametrize("dag", SYMMETRIC, ids=str)
def test_sorted_states_of_interchangeable_tasks_suffice(dag: Dag) -> None:
    bare = skeleton(dag)
    alike = interchangeable(bare)
    assert alike
    assert all(is_automorphism(bare, image) for one in alike for image in one.swaps)
    order = eliminate(bare).order
    maxima = exact_maxima(bare, plan=Elimination(order, [], alike)).tolist()
    assert maxima == exact_maxima(bare, plan=Elimination(order, [], [])).tolist() == subsets_of(bare).maxima.tolist()


def test_tasks_that_only_look_alike_are_not_interchangeable() -> None:
    """A cycle: all sources have one colour, but swapping two neighbours moves the others."""
    assert interchangeable(families.cycle_dag(6)) == []


def test_a_map_that_breaks_an_arc_is_no_automorphism() -> None:
    fork = Dag.from_arrays(4, [0, 0, 1], [1, 2, 3])
    assert is_automorphism(fork, np.array([0, 1, 2, 3], np.int32))
    assert not is_automorphism(fork, np.array([0, 2, 1, 3], np.int32))
    assert not is_automorphism(fork, np.array([0, 1, 1, 3], np.int32))


# Moves


def test_the_frontier_decides() -> None:
    for dag in dags(4, 300, 11):
        if dag.arc_count:
            subsets = subsets_of(dag)
            found = frontier(dag, subsets.maxima, 10**6)
            assert found.refuted == (subsets.optimal_order() is None)
            if found.order is not None:
                assert cumulative(dag, np.array(found.order, np.int32)).tolist() == subsets.maxima.tolist()


def test_a_truncated_frontier_refutes_nothing() -> None:
    for dag in dags(5, 200, 11):
        if dag.arc_count and frontier(dag, subsets_of(dag).maxima, 1).refuted:
            assert subsets_of(dag).optimal_order() is None


def test_guided_play_attains_the_target_or_gives_up() -> None:
    outcomes = Counter[bool]()
    for dag in dags(6, 300, 11):
        if dag.arc_count:
            maxima = subsets_of(dag).maxima
            order = guided_order(dag, maxima)
            outcomes[order is None] += 1
            if order is not None:
                assert cumulative(dag, np.array(order, np.int32)).tolist() == maxima.tolist()
    assert outcomes[False] > 5 * outcomes[True]


def test_the_largest_area_is_found_and_proved() -> None:
    for dag in dags(7, 300, 11):
        if dag.arc_count:
            subsets = subsets_of(dag)
            best = int(cumulative(dag, np.array(subsets.largest_area_order(), np.int32)).sum())
            found = largest_area(dag, subsets.maxima, -1, 10**6)
            assert (found.area, found.proved) == (best, True)
            assert found.order is not None
            assert cumulative(dag, np.array(found.order, np.int32)).sum() == best
            assert largest_area(dag, subsets.maxima, best, 10**6).proved
            assert largest_area(dag, subsets.maxima, -1, 1).area <= best


# Modules


def test_modules_bound_the_area_and_decide_with_the_maxima() -> None:
    """Lemma B: admits exactly when every module does and Mmod = M; no area exceeds the sum of Mmod."""
    for dag in dags(8, 200, 11):
        if not dag.arc_count:
            continue
        pieces, base, all_admit = [np.zeros(1, np.int64)], 0, True
        for module in best_shares(dag).modules:
            part = subsets_of(module_dag(dag, module))
            pieces.append(part.maxima[1:] + base)
            all_admit &= part.optimal_order() is not None
            base += len(module.renders)
        mmod, whole = np.concatenate(pieces), subsets_of(dag)
        assert (whole.optimal_order() is not None) == (all_admit and np.array_equal(mmod, whole.maxima))
        assert cumulative(dag, np.array(whole.largest_area_order(), np.int32)).sum() <= mmod.sum()


# The planner without enumeration


@pytest.fixture
def no_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.deciding.modules.MOST_ITEMS_FOR_AREA", -1)


@pytest.mark.usefixtures("no_enumeration")
@pytest.mark.parametrize("seed", range(6))
def test_verdicts_are_right_whenever_given(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(150):
        dag = random_small_dag(rng, 13)
        found = plan(dag)
        truth, optimal = exact.max_profile(dag), exact.ic_optimal_schedule(dag)
        assert found.verdict in {"bounded", "impossible" if optimal is None else "optimal"}
        assert all(u >= m for u, m in zip(found.upper_bound, truth, strict=True))
        assert found.area_bound >= eligo.area(dag, max_area_schedule(dag)) >= found.area
        assert found.verdict != "bounded"


@pytest.mark.usefixtures("no_enumeration")
@pytest.mark.parametrize("dag", [*SYMMETRIC, Dag.from_arrays(9, [0, 1, 2], [3, 3, 4])], ids=str)
def test_copies_that_share_a_sink_and_isolated_tasks(dag: Dag) -> None:
    found = plan(dag)
    assert found.verdict == ("impossible" if exact.ic_optimal_schedule(dag) is None else "optimal")
    assert found.area == found.area_bound == eligo.area(dag, max_area_schedule(dag))


def test_what_modules_can_have_together_bounds_the_maxima() -> None:
    """Each module's maxima, split among them in the best way: never below the truth, and sometimes below the shares."""
    lower = 0
    for dag in dags(12, 400, 11):
        shares = best_shares(dag) if dag.arc_count else None
        if shares is not None and len(shares.modules) > 1:
            alone = [subsets_of(module_dag(dag, module)).maxima for module in shares.modules]
            split = reduce(convolve, alone)
            assert (split >= subsets_of(dag).maxima).all()
            lower += bool((split < shares.bound).any())
    assert lower > 10


def test_a_bound_by_splits_is_needed_and_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither exact maxima nor probes are had."""
    monkeypatch.setitem(EFFORTS, "normal", replace(EFFORTS["normal"], probes=0))
    monkeypatch.setattr(solving, "maxima_within", lambda dag, effort: (None, {}))
    monkeypatch.setattr(solving, "few_sets", lambda dag, work: None)
    needed = 0
    for seed in range(40):
        dag = families.random_layered(5, 5, seed=seed)
        document = plan(dag).document()
        assert eligo.verify(dag, document).holds
        if document["proof"].get("split"):
            proof = {key: value for key, value in document["proof"].items() if key != "split"}
            needed += not eligo.verify(dag, document | {"proof": proof}).holds
    assert needed > 3


def changed(proof: Any, better: list[str] | None) -> Any:
    """A proof in which every set that surpasses modules is another, or none is."""
    if isinstance(proof, list):
        return [changed(part, better) for part in proof]
    if not isinstance(proof, dict):
        return proof
    kept = {key: changed(value, better) for key, value in proof.items() if key != "better"}
    return kept | ({"better": better} if "better" in proof and better is not None else {})


def test_a_set_that_surpasses_the_modules_proves_that_no_order_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the maxima of the whole are not to be had; and whatever else is said to be such a set is refused."""
    monkeypatch.setattr(solving, "maxima_within", lambda dag, effort: (None, {}))
    monkeypatch.setattr(solving, "extended_chain", lambda solutions: None)
    monkeypatch.setattr(solving, "_solve_undecided", solving.by_modules)
    found = 0
    for parents, children, more in product((2, 3, 4), (2, 3, 5, 7), (1, 2, 3)):
        arcs = [(f"a{i}", f"x{j}") for i in range(parents) for j in range(children)]
        dag = Dag.from_arcs(arcs + [(f"b{i}", f"y{i}.{j}") for i in range(2) for j in range(more)])
        document = plan(dag).document()
        proof = document["proof"]
        assert eligo.verify(dag, document).holds
        if changed(proof, None) != proof:
            found += 1
            assert subsets_of(dag).optimal_order() is None
            for other in (None, [], [document["order"][-1]], ["nobody"], list(document["order"])):
                assert not eligo.verify(dag, document | {"proof": changed(proof, other)}).holds
    assert found > 5


# Effort


def test_quick_is_valid_and_says_so() -> None:
    dag = families.random_layered(8, 12, seed=2)
    quick, normal = plan(dag, "quick"), plan(dag)
    for found in (quick, normal):
        assert found.profile == eligo.profile(dag, found.order)
        assert all(e <= u for e, u in zip(found.profile, found.upper_bound, strict=True))
    assert quick.area_bound >= normal.area_bound
    assert quick.area <= quick.area_bound


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown effort 'heroic' .choose from quick, normal, thorough"):
        plan(families.out_mesh(3), "heroic")


def test_a_stopped_clock_still_gives_an_order_and_a_bound() -> None:
    clock = Clock()
    clock.stop()
    dag = families.random_layered(10, 20, seed=5)
    found = plan(dag, clock=clock)
    assert eligo.is_schedule(dag, found.order)
    assert all(e <= u for e, u in zip(found.profile, found.upper_bound, strict=True))


def test_whoever_watches_is_told_what_is_tried_and_how_good_the_best_is() -> None:
    told: list[Outlook] = []
    found = plan(families.random_layered(4, 12, seed=4), watch=told.append)
    assert any("orders with the largest average" in outlook.trying for outlook in told)
    assert 0.5 < told[-1].best <= 1
    assert [outlook.seconds for outlook in told] == sorted((outlook.seconds for outlook in told), reverse=True)
    assert not found.cut


# Preferences


@pytest.mark.parametrize("prefer", ["path", "finish"])
def test_a_preference_costs_nothing(prefer: str) -> None:
    for dag in [*dags(9, 100, 12), families.out_mesh(7), families.fork_join(4, 2, 3), families.butterfly(3)]:
        found = plan(dag, prefer=prefer)
        assert found.profile == eligo.profile(dag, found.order) == plan(dag).profile
        assert eligo.verify(dag, found).holds


def test_finish_completes_branches_that_were_begun() -> None:
    r"""Three chains side by side: by path all begin before one ends, by finish one ends before the next begins.

    a0 - a1 - a2      b0 - b1 - b2      c0 - c1 - c2
    """
    chains = Dag.from_arcs([(f"{c}{i}", f"{c}{i + 1}") for c in "abc" for i in range(2)])
    assert [task[1] for task in plan(chains).order[:3]] == ["0", "0", "0"]
    assert [task[1] for task in plan(chains, prefer="finish").order[:4]] == ["0", "1", "0", "1"]


def test_an_unknown_preference_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown preference 'luck' .choose from path, finish"):
        plan(families.out_mesh(3), prefer="luck")
