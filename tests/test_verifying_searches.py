"""The checker's searches over positions and its bound by hulls: right where they answer, silent where they are cut off."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families as f
from eligo.dag import Dag, sum_of
from eligo.deciding import bounds, effort, elimination
from eligo.deciding.effort import EFFORTS
from eligo.deciding.symmetry import Twins
from eligo.deciding.work import Work, cumulative
from eligo.planning import plan
from eligo.theory.profiles import Profile, hull_sides
from eligo.theory.skeleton import skeleton
from eligo.theory.subsets import Subsets
from eligo.verifying import _Part, blocks, modules, positions, verify
from test_verifying import Document, at, edits, harmless, parts_of, rejected, with_change

TOO_MANY = "too many positions to try"
ATTAINED = "an order attains the maxima"


def solved_dags(seed: int, count: int) -> Iterator[tuple[Dag, Profile, int]]:
    """Dags without shortcuts, with their maxima and largest area by enumeration of all sets; many have equal parts."""
    rng = np.random.default_rng(seed)
    while count:
        dag = random_small_dag(rng, most=16)
        if rng.random() < 0.4:
            dag = f.random_layered(int(rng.integers(2, 5)), int(rng.integers(3, 7)), seed=int(rng.integers(1000)))
        elif rng.random() < 0.4:
            small = random_small_dag(rng, most=5)
            dag = sum_of(dag, *[small] * int(rng.integers(2, 4))).dag
        dag = skeleton(dag)
        subsets = Subsets.of(dag, 18) if dag.arc_count else None
        if subsets is not None:
            count -= 1
            order = np.array(subsets.largest_area_order(), np.int32)
            yield dag, subsets.maxima, int(cumulative(dag, order).sum())


# Searches over positions


@pytest.mark.parametrize("at_once", [1, 300, positions.AT_ONCE])
def test_searches_find_what_enumeration_finds(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "AT_ONCE", at_once)
    refuted = 0
    for dag, maxima, largest in solved_dags(at_once, 150):
        assert positions.attains_maxima(dag, maxima) == (largest == maxima.sum())
        for incumbent in (-1, largest - 1, largest, largest + 2):
            assert positions.largest_area(dag, maxima, incumbent) == max(largest, incumbent)
        refuted += largest < maxima.sum()
    assert refuted >= 10


def test_equal_moves_are_tried_once() -> None:
    """Else forty joins side by side, or with one parent in common, would make far more positions than can be tried."""
    apart, maxima = sum_of(*[f.m_dag(1, 3)] * 40).dag, np.arange(121) // 3
    joined = Dag.from_arcs([(parent, f"x{i}") for i in range(40) for parent in ("a", f"b{i}")])
    for dag, best in ((apart, maxima), (joined, np.append(0, np.arange(41)))):
        assert positions.attains_maxima(dag, best)
        assert positions.largest_area(dag, best, 0) == best.sum()


def test_moves_that_open_or_touch_others_are_not_equal() -> None:
    """One of two tasks with a child each opens more than the other."""
    opening = Dag.from_arcs([("a", "x"), ("b", "y"), ("y", "p"), ("y", "q")])
    touching = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z"), ("c", "z")])
    for dag in (opening, touching):
        for order in (dag, dag.renumbered(np.arange(len(dag), dtype=np.int32)[::-1].copy())):
            subsets = Subsets.of(order, 10)
            assert subsets is not None
            assert positions.attains_maxima(order, subsets.maxima)


def branches(copies: int, size: int, rng: np.random.Generator) -> tuple[Dag, list[list[tuple[str, str]]]]:
    """A root before equal branches, the tasks in any order; and the swaps of neighbours, with their pairs in any order."""
    shape = [(i, j) for j in range(1, size) for i in range(j) if i == j - 1 or rng.random() < 0.3]
    arcs = [("root", f"{c}.0") for c in range(copies)]
    arcs += [(f"{c}.{i}", f"{c}.{j}") for c in range(copies) for i, j in shape]
    arcs += [(f"{c}.{i}", f"{c}.{i}.end") for c in range(copies) for i in range(size)]
    names = sorted({name for arc in arcs for name in arc})
    dag = Dag.from_arcs(arcs, tasks=rng.permutation(names).tolist())
    swaps = [[(f"{c}.{i}", f"{c + 1}.{i}") for i in rng.permutation(size)] for c in range(copies - 1)]
    return dag, swaps


def test_positions_that_differ_by_swaps_alone_are_one_however_tasks_are_numbered() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        copies, size = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        dag, swaps = branches(copies, size, rng)
        game = positions._Game(dag, swaps)
        states = rng.integers(0, 2, (copies, size))
        rows = np.zeros((20, game.k), np.bool_)
        for row in rows:
            for c, state in enumerate(rng.permutation(states)):
                row[[game.place[dag.index[f"{c}.{i}"]] for i in np.flatnonzero(state)]] = True
        assert len(np.unique(game._sort(np.packbits(rows, axis=1)), axis=0)) == 1


def test_an_order_that_attains_the_maxima_needs_no_other_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways to grow a set are looked at only where the order is not the best at every step."""
    dag = Dag.from_arcs(
        [("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("c", "z"), ("c", "x"), ("a", "w"), ("c", "v")]
    )
    subsets = Subsets.of(dag)
    assert subsets is not None
    part = _Part(dag, np.array(subsets.best_order()[0], np.int32))
    bound = part.certified({"rule": "exact"})
    monkeypatch.delattr(blocks.Sets, "largest_sum")
    assert part.certified({"rule": "exact"}).slack == bound.slack == 0


def test_a_search_that_is_cut_off_concludes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With less and less to spend: the right answer, or none."""
    answers = []
    for dag, maxima, largest in solved_dags(3, 40):
        for most in (0, 10, 100, 1_000, 10_000):
            monkeypatch.setattr(positions, "MOST_CELLS", most)
            met = answer(positions.attains_maxima, dag, maxima)
            area = answer(positions.largest_area, dag, maxima, largest - 1)
            assert met in {None, largest == maxima.sum()}
            assert area in {None, largest}
            answers += [met is None, area is None]
    assert 40 < sum(answers) < len(answers) - 40


def answer(search: Callable[..., int], *details: Any) -> int | None:
    try:
        return search(*details)
    except OverflowError:
        return None


# Refutations in proofs


def refuted_alone(monkeypatch: pytest.MonkeyPatch, seed: int = 4, columns: int = 12) -> tuple[Dag, Document]:
    """A plan with a module that is refuted, and no claim of a largest area."""
    monkeypatch.setattr("eligo.deciding.modules.MOST_FOR_AREA", 0)
    dag = f.random_layered(4, columns, seed=seed)
    return dag, json.loads(json.dumps(plan(dag).document()))


def eliminations(document: Document) -> list[tuple[tuple[Any, ...], Document]]:
    found = [(("proof", *path), part) for path, part in parts_of(document["proof"]) if part["rule"] == "elimination"]
    assert found
    return found


@pytest.mark.parametrize("seed", [4, 8])
def test_a_refutation_alone_holds_and_every_change_is_noticed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dag, document = refuted_alone(monkeypatch, seed)
    assert verify(dag, document).holds
    assert [(part.get("refuted"), "area" in part) for _, part in eliminations(document)] == [(True, False)]
    count = 0
    for path, changed in edits(document):
        if not harmless(path, changed):
            assert rejected(dag, changed), path
            count += 1
    assert count > 100


def test_an_area_that_is_claimed_beside_a_refutation_must_be_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    dag, document = refuted_alone(monkeypatch)
    ((path, part),) = eliminations(document)
    for area in (0, 1, 10**6, 10**30):
        changed = with_change(document, path, part | {"area": area})
        assert verify(dag, changed).reason == "the order does not have the largest area"


def test_a_module_that_admits_is_not_refuted() -> None:
    """With or without an area, whatever else is claimed."""
    dag = f.random_layered(4, 12, seed=5)
    document: Document = json.loads(json.dumps(plan(dag).document()))
    for path, part in eliminations(document):
        own = int(module_of(dag, document, path, part["order"])._eliminate(part["elimination"]).sum())
        for more in ({"refuted": True}, {"refuted": True, "area": own}):
            for verdict in ("optimal", "impossible", "bounded"):
                changed = with_change(document, path, part | more) | {"verdict": verdict}
                assert verify(dag, changed).reason == ATTAINED


def module_of(dag: Dag, document: Document, path: tuple[Any, ...], order: list[str]) -> _Part:
    """One module of a proof, with its tasks in this order."""
    nonsinks = dag.indices(document["order"])
    part = _Part(skeleton(dag), nonsinks[dag.outdegree[nonsinks] > 0])
    inner = part._within(at(document, path[:-2])["shares"]["modules"])
    return _Part(inner, inner.indices(order))


def test_a_refutation_that_cannot_be_checked_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    dag, document = refuted_alone(monkeypatch)
    for most in (0, 1, 50):
        monkeypatch.setattr(positions, "MOST_CELLS", most)
        found = verify(dag, document)
        assert (found.holds, found.reason, found.verdict) == (False, TOO_MANY, None)


def test_an_area_that_cannot_be_checked_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = f.random_layered(4, 12, seed=4)
    document = json.loads(json.dumps(plan(dag).document()))
    assert any("area" in part for _, part in eliminations(document))
    monkeypatch.setattr(positions, "MOST_CELLS", 50)
    assert verify(dag, document).reason == TOO_MANY


def test_only_the_largest_area_is_proved() -> None:
    """Not that of a worse order, though it is that order's own, nor another number for the best."""
    dag = f.random_layered(4, 12, seed=4)
    document: Document = json.loads(json.dumps(plan(dag).document()))
    ((path, entry),) = [(path, part) for path, part in eliminations(document) if "area" in part]
    count = 0
    for i in range(len(entry["order"]) - 1):
        order = [*entry["order"]]
        order[i : i + 2] = order[i + 1], order[i]
        if order[i] in dag.children(order[i + 1]):
            continue
        own = int(module_of(dag, document, path, order).cumulative.sum())
        if own < entry["area"]:
            changed = with_change(document, path, entry | {"order": order, "area": own})
            assert verify(dag, changed).reason == "the order does not have the largest area"
            count += 1
    assert count
    for by in (-1, 1):
        changed = with_change(document, path, entry | {"area": entry["area"] + by})
        assert verify(dag, changed).reason == "the order does not have the largest area"


@pytest.mark.parametrize("tasks", ["", "a", "abc"])
def test_nothing_is_refuted_of_a_dag_without_arcs(tasks: str) -> None:
    dag = Dag.from_arcs([], tasks=tasks)
    proof = {"rule": "elimination", "elimination": {"order": [], "alike": []}}
    document = plan(dag).document()
    assert verify(dag, document | {"proof": proof | {"area": 0}}).holds
    assert verify(dag, document | {"proof": proof | {"area": 0, "refuted": True}}).reason == ATTAINED
    assert verify(dag, document | {"proof": proof | {"refuted": True}}).reason == ATTAINED


# Tables


@pytest.mark.parametrize(("limit", "value"), [("WIDEST", 2), ("MOST_ROWS", 10), ("MOST_CELLS", 200)])
def test_tables_that_are_too_large_prove_nothing(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = f.random_layered(4, 12, seed=4)
    document = plan(dag).document()
    monkeypatch.setattr(modules, limit, value)
    assert verify(dag, document).reason == "the tables of the proof are too large to check"


@pytest.mark.parametrize("kept", [0, 50, modules.MOST_KEPT])
def test_maxima_by_elimination(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the planner's order and in any other, whether or not equal tables are kept."""
    monkeypatch.setattr(modules, "MOST_KEPT", kept)
    rng = np.random.default_rng(kept)
    for dag, maxima, _ in solved_dags(kept, 40):
        order = [(v % len(dag), int(v < len(dag))) for v in elimination.eliminate(dag).order]
        assert modules.exact_maxima(dag, order, []).tolist() == maxima.tolist()
        if len(dag) <= 12:
            shuffled = modules.all_roles(dag)
            rng.shuffle(shuffled)
            assert modules.exact_maxima(dag, shuffled, []).tolist() == maxima.tolist()


def test_roles_are_read_from_names() -> None:
    """A task in the middle has two: named once, it is rendered and executed there; twice, the one and then the other."""
    dag = Dag.from_arcs([("a", "b"), ("b", "c")])
    rendered, executed = 0, 1
    a, b, c = (dag.index[name] for name in "abc")
    both = [(a, executed), (b, rendered), (b, executed), (c, rendered)]
    assert modules.roles(dag, "abc", None) == sorted(both) == modules.all_roles(dag) == both
    assert modules.roles(dag, "abcb", []) == [(a, executed), (b, rendered), (c, rendered), (b, executed)]
    assert modules.roles(dag, "abcb", ["b"]) == [(a, executed), (b, executed), (c, rendered), (b, rendered)]
    for names, first in (("abc", []), ("abcbb", None), ("abb", ["b"]), ("abcb", ["a"]), ("abcb", "bb"), ("abcb", "x")):
        assert sorted(modules.roles(dag, names, first)) != both


def test_an_order_of_tasks_named_once_holds_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """As plans of earlier versions have it: a task is rendered and executed at one place of the order."""
    dag, document = refuted_alone(monkeypatch)
    ((path, part),) = eliminations(document)
    how = part["elimination"]
    assert len(how["order"]) > len(set(how["order"]))
    once = {"order": list(dict.fromkeys(how["order"])), "alike": how["alike"]}
    assert verify(dag, with_change(document, path, part | {"elimination": once})).holds
    for wrong in (once | {"order": once["order"][1:]}, once | {"order": how["order"]}, once | {"executed_first": []}):
        changed = with_change(document, path, part | {"elimination": wrong})
        assert verify(dag, changed).reason == "not every task is eliminated once"


def test_maxima_whichever_is_counted_along() -> None:
    """Fewer tasks are rendered than executed, or fewer executed than rendered: both ways, and proofs of both."""
    turned = 0
    for dag, maxima, _ in solved_dags(7, 80):
        order = [*reversed(modules.all_roles(dag))]
        turned += modules._Joins(dag, {}, {}).turned
        assert modules.exact_maxima(dag, order, []).tolist() == maxima.tolist()
    assert 10 < turned < 70


def test_maxima_of_dags_with_equal_parts_kept_sorted() -> None:
    """Several sets of tasks that can be swapped: nothing better is lost."""
    rng = np.random.default_rng(2)
    sets = 0
    for _ in range(60):
        arcs = [
            (f"{u}", f"{i} {v}") for u, most in (("a", 3), ("b", 4)) for i, v in enumerate("x" * rng.integers(2, most))
        ]
        copies = [random_small_dag(rng, most=4) for _ in range(2)]
        for which, part in enumerate(copies):
            for i in range(3):
                arcs += [(f"{which}.{i}.{u}", f"{which}.{i}.{v}") for u, v in part.arcs()]
                arcs += [(f"{which}.{i}.{sink}", "end") for sink in part.sinks]
        dag = skeleton(Dag.from_arcs(arcs))
        subsets = Subsets.of(dag, 20)
        (twins := Twins(dag, Work())).look(list(range(len(dag))))
        found = twins.sets
        alike = [
            {"tasks": dag.named(one.members), "swaps": [moved(dag, image) for image in one.swaps]} for one in found
        ]
        assert modules.swaps_hold(dag, alike)
        if subsets is not None and len(alike) > 1:
            names = ["end", *sorted(set(dag.tasks) - {"end"})]  # which puts all that is alike into one table
            order = modules.roles(dag, names, None)
            assert modules.exact_maxima(dag, order, alike).tolist() == subsets.maxima.tolist()
            sets += 1
    assert sets >= 10


def moved(dag: Dag, image: Any) -> list[tuple[str, str]]:
    places = np.flatnonzero(image != np.arange(len(dag)))
    return list(zip(dag.named(places), dag.named(image[places]), strict=True))


# The bound by hulls


def random_profiles(rng: np.random.Generator) -> list[Profile]:
    """A few, some of them the same object, as blocks of one shape are."""
    own = [np.append(0, np.cumsum(rng.integers(0, 4, rng.integers(1, 9)))) for _ in range(4)]
    return [own[i] for i in rng.integers(0, 4, rng.integers(1, 12))]


def test_hulls_bound_the_convolution() -> None:
    """By definition: rounded down, the least concave function above the convolution."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        profiles = random_profiles(rng)
        together = reduce(blocks.convolve, profiles, blocks.NOTHING)
        by_hulls = blocks._convolve_hulls(profiles)
        assert (by_hulls >= together).all()
        assert by_hulls.tolist() == [above(together.tolist(), t) for t in range(len(together))]
        assert by_hulls.tolist() == bounds._hull_bound([(hull_sides(profile), 1) for profile in profiles]).tolist()


def above(values: list[int], t: int) -> int:
    """The highest line between two points, at t, rounded down in whole numbers."""
    lines = [
        (values[a] * (b - t) + values[b] * (t - a)) // (b - a)
        for a in range(t + 1)
        for b in range(t, len(values))
        if a < b
    ]
    return max([values[t], *lines])


@pytest.mark.parametrize("copies", [3, 3_000, 10_000])
def test_the_hulls_of_many_steps_are_exact(copies: int) -> None:
    """Where a sum of fractions would be off, even below the truth: sides of slope 1/3, 2/7 and 1/49."""
    slopes = [np.append(np.zeros(q, np.int64), p) for p, q in ((1, 3), (2, 7), (1, 49))]
    bound = blocks._convolve_hulls([profile for profile in slopes for _ in range(copies)])
    steps = np.arange(copies + 1)
    assert (bound[3 * steps] == steps).all()
    assert (bound[3 * copies + 7 * steps] == copies + 2 * steps).all()
    assert (bound[10 * copies + 49 * steps] == 3 * copies + steps).all()
    assert bound.tolist() == bounds._hull_bound([(hull_sides(profile), copies) for profile in slopes]).tolist()


def slow_hulls(profiles: list[Profile]) -> list[int]:
    """The convolution of the hulls as fractions, step by step: the largest sum over all ways to divide t."""
    together = [Fraction(0)]
    for profile in profiles:
        own = [
            max(
                Fraction(int(profile[a]) * (b - t) + int(profile[b]) * (t - a), b - a)
                for a in range(t + 1)
                for b in range(max(t, a + 1), len(profile))
            )
            for t in range(len(profile) - 1)
        ]
        own.append(Fraction(int(profile[-1])))
        together = [
            max(together[i] + own[t - i] for i in range(len(together)) if 0 <= t - i < len(own))
            for t in range(len(together) + len(own) - 1)
        ]
    return [math.floor(value) for value in together]


def test_hulls_are_convolved_as_fractions_would_be() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        profiles = random_profiles(rng)[:5]
        slow = slow_hulls(profiles)
        assert blocks._convolve_hulls(profiles).tolist() == slow
        counts = [(hull_sides(profile), sum(profile is other for other in profiles)) for profile in unique(profiles)]
        assert bounds._hull_bound(counts).tolist() == slow


def unique(profiles: list[Profile]) -> list[Profile]:
    return list({id(profile): profile for profile in profiles}.values())


def test_checker_and_planner_use_hulls_alike() -> None:
    assert blocks.LARGEST_CONVOLUTION == effort.LARGEST_CONVOLUTION


def random_blocks(count: int, seed: int) -> Dag:
    """Small random bipartite dags side by side, too many to be taken as a sum."""
    rng = np.random.default_rng(seed)
    tails, heads, size = list[Any](), list[Any](), 0
    for _ in range(count):
        sources, sinks = rng.integers(2, 9, 2).tolist()
        arc = rng.random((sources, sinks)) < 0.45
        arc[np.arange(sources), rng.integers(0, sinks, sources)] = True
        arc[rng.integers(0, sources, sinks), np.arange(sinks)] = True
        u, v = np.nonzero(arc)
        tails, heads, size = [*tails, size + u], [*heads, size + sources + v], size + sources + sinks
    return Dag.from_arrays(size, np.concatenate(tails), np.concatenate(heads))


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No time for shares: only then can the bound by hulls be lower than theirs."""
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], cuts=0))
    return monkeypatch


def uses_blocks(document: Document) -> bool:
    return any(part.get("blocks") for _, part in parts_of(document["proof"]))


def test_a_large_plan_bounded_by_hulls_holds(hurried: pytest.MonkeyPatch) -> None:
    few = random_blocks(20, 1)
    shift = np.arange(150).reshape(-1, 1) * len(few)
    dag = Dag.from_arrays(150 * len(few), (few.tails + shift).ravel(), (few.child + shift).ravel())
    document = json.loads(json.dumps(plan(dag, "quick").document()))
    assert uses_blocks(document)
    assert sum(dag.outdegree > 0) ** 2 > blocks.LARGEST_CONVOLUTION
    assert verify(dag, document).holds
    hurried.setattr(blocks, "LARGEST_CONVOLUTION", 10**12)
    assert not verify(dag, document).holds
    for by in (-1, 1):
        other = [*document["upper_bound"]]
        other[100] += by
        assert rejected(dag, document | {"upper_bound": other})


DAGS_FOR_HULLS = {
    "blocks": random_blocks(210, 1),
    "layers": f.random_layered(8, 12, seed=1),
    "in series": f.random_layered(12, 14, seed=3, degree=2),
}


@pytest.mark.parametrize("name", DAGS_FOR_HULLS)
def test_plans_bounded_by_hulls_hold_and_every_change_is_noticed(name: str, hurried: pytest.MonkeyPatch) -> None:
    """With the limits lowered so that small dags have such plans."""
    dag, limit = DAGS_FOR_HULLS[name], 1_000
    for module in (blocks, bounds):
        hurried.setattr(module, "LARGEST_CONVOLUTION", limit)
    document = json.loads(json.dumps(plan(dag, "quick").document()))
    assert uses_blocks(document)
    assert verify(dag, document).holds
    for path, changed in edits(document):
        spare = path[-3:-2] == ("flow",)  # a coarse module leaves room for other flows that prove the same
        assert spare or harmless(path, changed) or rejected(dag, changed), path


def test_exact_blocks_are_not_what_a_plan_by_hulls_says(hurried: pytest.MonkeyPatch) -> None:
    """Each way round the claim is another one; what the checker certifies is never below the truth."""
    dag = DAGS_FOR_HULLS["blocks"]
    exact = plan(dag, "quick").document()
    assert verify(dag, exact).holds
    hurried.setattr(bounds, "LARGEST_CONVOLUTION", 1_000)
    loose = plan(dag, "quick").document()
    assert verify(dag, loose).reason == "the upper_bound is not what follows from the proof"
    hurried.setattr(blocks, "LARGEST_CONVOLUTION", 1_000)
    assert verify(dag, loose).holds
    assert verify(dag, exact).reason == "the upper_bound is not what follows from the proof"
    assert all(a <= b for a, b in zip(exact["upper_bound"], loose["upper_bound"], strict=True))


def test_plans_of_sums_and_segments_bounded_by_hulls_hold(hurried: pytest.MonkeyPatch) -> None:
    for module in (blocks, bounds):
        hurried.setattr(module, "LARGEST_CONVOLUTION", 100)
    used = 0
    for seed in range(8):
        for dag in (sum_of(*(f.random_layered(6, 9, seed=seed + i) for i in (0, 50))).dag, random_blocks(205, seed)):
            document = json.loads(json.dumps(plan(dag, "quick").document()))
            assert verify(dag, document).holds
            used += uses_blocks(document)
    assert used >= 8
