"""Priority: the definition, the closed forms, the chain."""

from itertools import product

import numpy as np
import pytest

from eligo.families import clique_dag, cycle_dag, m_dag, n_dag, w_dag
from eligo.theory import exact
from eligo.theory.priority import Kind, has_priority, named_priority, precedes, sorted_chain
from eligo.theory.profiles import as_profile, convolve, dual_maxima
from slow_theory import concave_hull

KINDS = [
    *(Kind(letter, s, d) for letter in "WM" for s in range(1, 8) for d in range(2, 6)),
    *(Kind("N", s) for s in range(1, 8)),
    *(Kind(letter, s) for letter in "CQ" for s in range(2, 8)),
]


def by_definition(e1: list[int], e2: list[int]) -> bool:
    s1, s2 = len(e1) - 1, len(e2) - 1
    return all(
        e1[x] + e2[y] <= e1[min(s1, x + y)] + e2[max(0, x + y - s1)] for x, y in product(range(s1 + 1), range(s2 + 1))
    )


def rising(steps: int, top: int) -> list[list[int]]:
    """Every profile of at most that many steps with values up to *top*."""
    found = [[0]]
    every = []
    for _ in range(steps):
        found = [[*profile, value] for profile in found for value in range(profile[-1], top + 1)]
        every += found
    return every


def test_the_vectorised_test_is_the_definition() -> None:
    for e1, e2 in product(rising(3, 3), repeat=2):
        assert has_priority(e1, e2) == by_definition(e1, e2)


@pytest.mark.parametrize("first", KINDS, ids=str)
def test_the_named_rules_are_necessary_and_sufficient(first: Kind) -> None:
    """Theorem 2 of the clustering paper and section 4.1.2 of the comparison paper, with what both miss."""
    for second in KINDS:
        assert named_priority(first, second) == has_priority(first.profile, second.profile), f"{first} ▷ {second}"


@pytest.mark.parametrize("s", range(1, 5))
def test_the_closed_profiles_are_maximal(s: int) -> None:
    blocks = [(Kind("W", s, d), w_dag(s, d)) for d in (2, 3, 4)] + [(Kind("M", s, d), m_dag(s, d)) for d in (2, 3, 4)]
    blocks += [(Kind("N", s), n_dag(s))]
    blocks += [(Kind("C", s), cycle_dag(s)), (Kind("Q", s), clique_dag(s))] if s > 1 else []
    for kind, dag in blocks:
        if len(dag) <= 17:
            profile = exact.max_profile(dag)
            cumulative = [e + t - profile[0] for t, e in enumerate(profile)]
            assert cumulative[: len(kind.profile)] == kind.profile.tolist(), str(kind)


def test_priority_is_transitive_but_neither_reflexive_nor_total() -> None:
    profiles = rising(3, 3)
    before = {(i, j) for i, j in product(range(len(profiles)), repeat=2) if has_priority(profiles[i], profiles[j])}
    after: dict[int, list[int]] = {}
    for i, j in before:
        after.setdefault(i, []).append(j)
    assert all((i, k) in before for i, j in before for k in after.get(j, ()))
    assert not has_priority([0, 1, 1], [0, 1, 1])
    assert not has_priority([0, 4, 6], [0, 3, 5])
    assert not has_priority([0, 3, 5], [0, 4, 6])


def test_the_papers_condition_d_above_0_must_be_d_above_1() -> None:
    """W(2,1), read as M(1,2), does not precede N(1), though the printed rule says W(s,d) does for every d > 0."""
    assert not has_priority(Kind("M", 1, 2).profile, Kind("N", 1).profile)


def test_a_chain_is_found_exactly_when_all_are_comparable() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        kinds = [KINDS[i] for i in rng.choice(len(KINDS), 4, replace=False)]
        comparable = all(precedes(a, b) or precedes(b, a) for a, b in product(kinds, repeat=2) if a is not b)
        chain = sorted_chain(kinds)
        assert (chain is not None) == comparable
        assert chain is None or all(precedes(kinds[a], kinds[b]) for i, a in enumerate(chain) for b in chain[i + 1 :])


def test_named_and_unnamed_profiles_mix() -> None:
    assert sorted_chain([as_profile([0, 0, 1]), Kind("W", 1, 2)]) == [1, 0]


def test_duality_turns_priorities_around() -> None:
    """G1 ▷ G2 exactly when the dual of G2 ▷ the dual of G1."""
    sinks = {
        "W": lambda k: k.s * (k.d - 1) + 1,
        "M": lambda k: k.s,
        "N": lambda k: k.s,
        "C": lambda k: k.s,
        "Q": lambda k: k.s,
    }
    duals = [dual_maxima(kind.profile, sinks[kind.letter](kind)) for kind in KINDS]
    rng = np.random.default_rng(1)
    for i, j in rng.integers(0, len(KINDS), (400, 2)).tolist():
        assert has_priority(KINDS[i].profile, KINDS[j].profile) == has_priority(duals[j], duals[i])


def test_convolution_is_the_best_split() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        one, two = (np.concatenate([[0], np.cumsum(rng.integers(0, 4, rng.integers(1, 6)))]) for _ in range(2))
        best = [
            max(one[i] + two[k - i] for i in range(len(one)) if 0 <= k - i < len(two))
            for k in range(len(one) + len(two) - 1)
        ]
        assert convolve(one, two).tolist() == best


def test_the_concave_hull_is_least() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        profile = as_profile(np.concatenate([[0], np.cumsum(rng.integers(0, 5, 7))]))
        hull = concave_hull(profile)
        assert (hull >= profile - 1e-9).all()
        assert (np.diff(hull, 2) <= 1e-9).all()
        for t in range(len(profile)):
            lines = [
                profile[a] + (profile[b] - profile[a]) * (t - a) / (b - a)
                for a in range(t + 1)
                for b in range(t, len(profile))
                if a < b
            ]
            assert hull[t] == pytest.approx(max(lines))
