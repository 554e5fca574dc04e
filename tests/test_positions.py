"""Positions of play in tables, against sets of tasks and against enumeration; what is alike counts once."""

from itertools import pairwise

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag, sum_of
from eligo.deciding.moves import frontier, largest_area, widening
from eligo.deciding.positions import Play, units_of
from eligo.deciding.seriesparallel import largest_area_order
from eligo.deciding.symmetry import is_automorphism, swaps
from eligo.deciding.work import Clock, Work, cumulative
from eligo.theory.skeleton import skeleton
from eligo.theory.subsets import Subsets
from eligo.verifying import modules as checked_modules
from eligo.verifying import positions as checked


def dags(seed: int, count: int, most: int = 11) -> list[Dag]:
    rng = np.random.default_rng(seed)
    found = [skeleton(random_small_dag(rng, most)) for _ in range(count)]
    return [dag for dag in found if dag.arc_count]


def alike_dags(seed: int, count: int) -> list[Dag]:
    """Copies of small dags, two or three of a kind, between one task that all need and one that needs all."""
    rng, found = np.random.default_rng(seed), list[Dag]()
    while len(found) < count:
        parts = [random_small_dag(rng, 5) for _ in range(2)]
        arcs = []
        for which, part in enumerate(parts):
            for copy in range(int(rng.integers(2, 4))):
                name = f"{which}.{copy}.{{}}".format
                arcs += [(name(u), name(v)) for u, v in part.arcs()]
                arcs += [("begin", name(v)) for v in part.sources] + [(name(v), "end") for v in part.sinks]
        dag = skeleton(Dag.from_arcs(arcs))
        if Subsets.of(dag, 18) is not None:
            found.append(dag)
    return found


def reachable(dag: Dag) -> set[frozenset[int]]:
    """Every set of executed nonsinks that moves lead to, whatever is inside or beside them: slow, and obviously right."""
    parents = {v: set(dag.parents_of(v).tolist()) for v in range(len(dag))}
    seen, waiting = {frozenset[int]()}, [frozenset[int]()]
    while waiting:
        done = waiting.pop()
        missed = {frozenset(parents[v] - done) for v in parents if parents[v] - done}
        playable = [m for m in missed if all(parents[u] <= done for u in m)]
        fresh = {done | m for m in playable if not any(other < m for other in playable)} - seen
        seen |= fresh
        waiting += fresh
    return seen


def test_every_position_is_one_that_moves_lead_to() -> None:
    """Fewer are made only where equal moves touch nothing else."""
    fewer = 0
    for dag in dags(1, 150, 8):
        play = Play(dag)
        for t in range(len(play.tasks)):
            assert play.expand(play.after(t), Work())
        made = {frozenset(play.executed(at).tolist()) for at in range(len(play))}
        everything = reachable(dag)
        assert made <= everything
        assert {0, len(play.tasks)} <= {len(done) for done in made}
        fewer += len(made) < len(everything)
    assert 0 < fewer < 150


def test_tasks_that_nothing_tells_apart_are_one_unit() -> None:
    """Joins of a hundred and more, each with a fan behind it: few units, and the largest area, which is known."""
    parts = [
        Dag.from_arcs([(f"s{i}", "join") for i in range(100 + 9 * fan)] + [("join", f"x{i}") for i in range(fan)])
        for fan in range(1, 8)
    ]
    dag = sum_of(*parts).dag
    best = largest_area_order(dag)
    assert best is not None
    assert [len(unit) for unit in units_of(dag)] == [109, 1, 118, 1, 127, 1, 136, 1, 145, 1, 154, 1, 163, 1]
    target = cumulative(dag, best)
    found = largest_area(dag, np.minimum.accumulate(np.maximum(target, target[-1])), -1, 10**6)
    assert (found.area, found.proved) == (int(target.sum()), True)
    assert found.order is not None
    assert cumulative(dag, found.order).sum() == target.sum()


def test_positions_remember_what_is_rendered_and_their_area() -> None:
    for dag in dags(2, 100):
        play = Play(dag)
        for t in range(len(play.tasks)):
            play.expand(play.after(t), Work())
        for at in range(len(play)):
            order = play.order(at)
            later = [v for v in dag.order.tolist() if dag.outdegree[v] and v not in order]
            rendered = cumulative(dag, np.array([*order, *later], np.int32))[: len(order) + 1]
            assert play.rendered(at) == rendered[-1]
            assert play.area(at) == rendered.sum()
            assert sorted(order.tolist()) == sorted(play.executed(at).tolist())


# What is alike


def test_swaps_are_automorphisms() -> None:
    found = 0
    for dag in alike_dags(3, 60):
        for pairs in swaps(dag):
            image = np.arange(len(dag), dtype=np.int32)
            for a, b in pairs:
                image[a], image[b] = b, a
            assert is_automorphism(dag, image)
            found += 1
    assert found > 80


def test_swapping_branches_changes_no_answer() -> None:
    fewer = 0
    for dag in alike_dags(4, 60):
        subsets, alike = Subsets.of(dag, 18), swaps(dag)
        assert subsets is not None
        best = int(cumulative(dag, np.array(subsets.largest_area_order(), np.int32)).sum())
        found = largest_area(dag, subsets.maxima, -1, 10**6, swaps=alike)
        assert (found.area, found.proved) == (best, True)
        assert found.order is not None
        assert cumulative(dag, found.order).sum() == best
        search = frontier(dag, subsets.maxima, 10**6, swaps=alike)
        assert search.refuted == (subsets.optimal_order() is None)
        if search.order is not None:
            assert cumulative(dag, search.order).tolist() == subsets.maxima.tolist()
        fewer += positions_of(dag, alike) < positions_of(dag, [])
    assert fewer > 20


def positions_of(dag: Dag, alike: list[list[tuple[int, int]]]) -> int:
    play = Play(dag, alike)
    for t in range(len(play.tasks)):
        play.expand(play.after(t), Work())
    return len(play)


def test_the_checker_finds_the_same_with_swaps() -> None:
    for dag in alike_dags(5, 40):
        subsets, alike = Subsets.of(dag, 18), [[dag.named(pair) for pair in pairs] for pairs in swaps(dag)]
        assert subsets is not None
        best = int(cumulative(dag, np.array(subsets.largest_area_order(), np.int32)).sum())
        assert all(checked_modules.exchange_holds(dag, pairs) for pairs in alike)
        assert checked.attains_maxima(dag, subsets.maxima, alike) == (subsets.optimal_order() is not None)
        for incumbent in (-1, best - 1, best):
            assert checked.largest_area(dag, subsets.maxima, incumbent, alike) == max(best, incumbent)


@pytest.mark.parametrize(
    "pairs",
    [[("b", "d")], [("b", "c"), ("d", "e"), ("d", "f")], [("b", "nobody")], [("b", "c"), ("d", "e"), ("a", "f")]],
)
def test_the_checker_refuses_what_is_not_alike(pairs: list[tuple[str, str]]) -> None:
    fork = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("c", "f")])
    assert not checked_modules.exchange_holds(fork, pairs)


def test_nested_branches_are_found_inside_out() -> None:
    """Two branches of two twigs each: three swaps, the twigs' own first, but for twigs of one task, which are one unit."""
    twigs = [(x, f"{x}{i}") for x in "bc" for i in (1, 2)]
    begin, end = [("a", "b"), ("a", "c"), *twigs], [(twig, "z") for _, twig in twigs]
    assert [len(pairs) for pairs in swaps(Dag.from_arcs(begin + end))] == [3]
    longer = [(twig, f"{twig}'") for _, twig in twigs] + [(f"{twig}'", "z") for _, twig in twigs]
    assert [len(pairs) for pairs in swaps(Dag.from_arcs(begin + longer))] == [2, 2, 5]


# Many words, and limits


@pytest.mark.parametrize("copies", [20, 22, 44])
def test_masks_of_several_words(copies: int) -> None:
    """Chains of three, some with a fan at their end, side by side: 60, 66 and 132 bits; the largest area is known."""
    chain, fan = (
        Dag.from_arcs(list(pairwise("abcd"))),
        Dag.from_arcs([*pairwise("abc"), ("c", "d"), ("c", "e"), ("c", "f")]),
    )
    dag = sum_of(*[chain] * (copies // 2), *[fan] * (copies // 2)).dag
    best = largest_area_order(dag)
    assert best is not None
    area = int(cumulative(dag, best).sum())
    maxima = cumulative(dag, best)
    found = largest_area(dag, maxima, -1, 3, swaps=swaps(dag))
    assert found.order is not None
    assert found.area == area == cumulative(dag, found.order).sum()


def test_where_work_memory_or_time_ends_nothing_is_proved() -> None:
    dag = skeleton(families.random_layered(6, 10, seed=3))
    order = np.flatnonzero(dag.outdegree > 0).astype(np.int32)
    ceiling = np.minimum(np.arange(len(order) + 1) * 3, int((dag.indegree > 0).sum()))
    stopped = Clock()
    stopped.stop()
    for work in (Work(200_000), Work(memory=50_000), Work(clock=stopped)):
        found = largest_area(dag, ceiling, -1, 10**6, work)
        assert (found.order, found.proved) == (None, False)
        assert not frontier(dag, ceiling, 10**6, work).refuted or work.clock is not stopped
        assert work.cut == (work.clock is stopped)


def test_the_same_work_gives_the_same_search() -> None:
    dag = skeleton(families.random_layered(5, 9, seed=5))
    ceiling = np.minimum(np.arange(int((dag.outdegree > 0).sum()) + 1) * 3, int((dag.indegree > 0).sum()))
    works = [Work(30_000_000) for _ in range(2)]
    found = [[largest_area(dag, ceiling, -1, width, work).area for width in widening(work)] for work in works]
    assert found[0] == found[1]
    assert works[0].spent == works[1].spent
