"""Sweep: the paper's tables entry by entry, and the theorem by enumeration."""

import numpy as np
import pytest

import eligo
from conftest import GOLDEN, golden_dag, random_small_dag
from eligo.dag import Dag, sum_of
from eligo.planning import plan
from eligo.theory import exact
from eligo.theory.priority import Kind, has_priority
from eligo.theory.sweep import sum_table, sweep, sweep_two, verification_table

B1, B2 = [0, 4, 6], [0, 3, 5]
M2, M3, M4 = (Kind("M", 1, d).profile.tolist() for d in (2, 3, 4))

TABLES = {
    "Table 2": (B1, B2, [[0, 3, 5], [4, 7, 9], [6, 9, 11]]),
    "Table 3": ([0, 1], [0, 0, 2], [[0, 0, 2], [1, 1, 3]]),
    "Table 4": ([0, 0, 1, 2], [0, 0, 0, 1, 3],
                [[0, 0, 0, 1, 3], [0, 0, 0, 1, 3], [1, 1, 1, 2, 4], [2, 2, 2, 3, 5]]),
    "Table 5: B1, B3": (B1, M2, [[0, 0, 1], [4, 4, 5], [6, 6, 7]]),
    "Table 5: B2, B3": (B2, M2, [[0, 0, 1], [3, 3, 4], [5, 5, 6]]),
    "Table 5: B4, B6": (M2, M3, [[0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 2]]),
    "Table 5: B6, B5": (M3, M4, [[0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 2]]),
    "Table 6": ([0, 3, 4, 5], [0, 3, 4, 5], [[0, 3, 4, 5], [3, 6, 7, 8], [4, 7, 8, 9], [5, 8, 9, 10]]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_table_entries(name: str) -> None:
    one, two, table = TABLES[name]
    assert sum_table(one, two).tolist() == table


def test_table_2_forces_the_first_two_steps() -> None:
    """B1 first, then B2, and the rest either way: neither has priority, and every path begins down, right."""
    reached = verification_table(B1, B2)
    assert reached.astype(int).tolist() == [[1, 0, 0], [1, 1, 1], [0, 1, 1]]
    assert not has_priority(B1, B2)
    assert not has_priority(B2, B1)


@pytest.mark.parametrize("name", ["Table 3", "Table 4"])
def test_tables_without_a_path(name: str) -> None:
    one, two, _ = TABLES[name]
    assert sweep_two(one, two) is None


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("Table 5")])
def test_table_5_has_priority_one_way_only(name: str) -> None:
    one, two, _ = TABLES[name]
    assert has_priority(one, two)
    assert not has_priority(two, one)


def test_an_l_shaped_path_is_priority() -> None:
    for one, two, _ in TABLES.values():
        down_then_right = verification_table(one, two)
        assert has_priority(one, two) == (down_then_right[:, 0].all() and down_then_right[-1].all())


def test_table_6_is_interleaved_only() -> None:
    """Two copies of the fMRI dag: not prior to itself, and yet the sum can be swept."""
    assert not has_priority([0, 3, 4, 5], [0, 3, 4, 5])
    mixed = sweep([[0, 3, 4, 5], [0, 3, 4, 5]])
    assert mixed is not None
    assert mixed.turns.tolist()[:2] in ([0, 1], [1, 0])


@pytest.mark.parametrize("name", ["Sweep.Fig3.topleft", "Sweep.Fig3.topright", "Sweep.B1+B2", "Sweep.fMRI.sum"])
def test_the_papers_dags_need_sweep_and_are_solved_by_it(name: str) -> None:
    dag = golden_dag(next(case for case in GOLDEN if case["name"] == name))
    found = plan(dag)
    assert found.verdict == "optimal"
    assert "sweep" in found.method
    assert found.profile == exact.max_profile(dag)


def test_a_sum_admits_exactly_when_its_parts_do_and_can_be_swept() -> None:
    rng = np.random.default_rng(6)
    outcomes: set[tuple[bool, bool]] = set()
    while len(outcomes) < 3:
        parts = [random_small_dag(rng, most=7) for _ in range(2)]
        whole = sum_of(*parts).dag
        admits = exact.ic_optimal_schedule(whole) is not None
        maxima = [_nonsinks_only(part) for part in parts]
        parts_admit = all(exact.ic_optimal_schedule(part) is not None for part in parts)
        swept = sweep(maxima)
        assert admits == (parts_admit and swept is not None)
        outcomes.add((parts_admit, swept is not None))


def _nonsinks_only(dag: Dag) -> list[int]:
    profile = exact.max_profile(dag)
    return [e + t - profile[0] for t, e in enumerate(profile)][: int((dag.outdegree > 0).sum()) + 1]


def test_three_way_sweep_attains_the_sum() -> None:
    w = [0, 2]
    parts = [eligo.Dag.from_arcs([("a", "b"), ("a", "c")]) for _ in range(3)]
    mixed = sweep([w, w, w])
    assert mixed is not None
    assert mixed.profile.tolist() == _nonsinks_only(sum_of(*parts).dag)
    assert sorted(mixed.turns.tolist()) == [0, 1, 2]
