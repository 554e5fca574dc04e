"""The checker of plans: every plan holds, a plan changed in one place does not, and no false claim ever does."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

import eligo
from conftest import GOLDEN, complete_layers, golden_dag, random_small_dag
from eligo import families as f
from eligo import verifying
from eligo.dag import Dag, sum_of
from eligo.deciding.effort import EFFORTS
from eligo.errors import DuplicateTaskError, InputError, UnknownTaskError
from eligo.planning import plan
from eligo.theory import exact
from eligo.theory.skeleton import shortcut_mask, skeleton
from eligo.theory.solutions import solve_one
from eligo.theory.sweep import sweep_two
from eligo.theory.trees import tree_maxima
from eligo.verifying import Verification, documents, verify
from eligo.verifying import blocks as arithmetic
from eligo.verifying import blocks as worth
from eligo.verifying.documents import Refuted
from eligo.workflow import Workflow
from slow_theory import max_area_schedule

Document = dict[str, Any]

#: at the time of writing, what the planner's proofs of these are made of is in their names
SPECIMENS = {
    "chain": "a>b a>c b>d b>e c>e c>f",
    "exact": "1>0 1>3 2>0 2>3 4>0 4>2",
    "exact, impossible": "0>4 0>5 1>3 2>4 2>5",
    "chain with exact": (
        "0>10 1>0 1>5 1>7 1>11 2>6 2>7 2>11 3>0 3>10 4>8 5>0 5>10 6>4 7>5 9>3 9>6 10>4 10>8 11>0 11>4 11>6"
    ),
    "units": (
        "0>4 0>5 0>14 1>3 1>15 2>15 3>15 4>10 4>12 5>12 5>16 7>8 7>10 7>13 7>16 8>16 10>14 10>16 11>14 11>16 13>15 14>16"
    ),
    "bound, bounded": (
        "0>6 1>15 2>18 3>16 4>21 5>19 6>16 7>17 8>9 9>21 10>13 11>14 12>16 13>20 14>22 15>16 16>17 17>22 18>21 19>22 "
        "20>21 21>22"
    ),
    "bound, optimal": (
        "0>5 1>3 2>13 3>11 4>18 5>20 6>19 7>12 8>15 9>22 10>20 11>19 12>13 13>18 14>17 15>19 16>17 17>22 18>19 19>22 "
        "20>21 21>22"
    ),
    "bound with blocks": (
        "0>4 0>5 0>6 0>7 0>9 0>11 0>14 1>10 1>16 1>20 3>7 3>12 3>16 4>7 4>16 4>18 4>20 5>14 5>16 5>18 6>2 6>4 6>9 6>17 "
        "6>18 6>19 6>23 7>12 7>20 8>0 8>1 8>3 8>10 8>13 9>5 9>10 9>12 9>16 9>20 10>16 12>18 13>1 13>4 13>6 13>12 13>15 "
        "13>21 13>23 14>11 15>3 15>5 15>11 15>18 16>11 16>18 16>20 17>12 19>2 20>2 21>2 21>5 21>10 21>14 21>20 22>5 22>6 "
        "22>14 22>15 22>18 23>2 23>3 23>4 23>16 23>19 24>2 24>3 24>6 24>7 24>9 24>11 24>16 24>17 24>21 24>22"
    ),
    "sum, impossible": (
        "1>4 1>21 2>14 3>1 4>10 4>19 5>22 6>18 6>20 7>2 8>5 10>15 10>19 11>0 11>12 12>0 13>11 13>24 15>23 15>25 16>6 16>20 "
        "17>1 17>21 18>3 18>17 19>15 19>23 20>3 20>18 21>4 21>10 22>13 22>24 23>9 23>25 24>11 25>7 25>9"
    ),
    "sum, bounded": (
        "0>4 1>19 2>5 2>6 2>16 3>8 3>10 5>16 6>0 6>18 6>25 7>0 7>6 8>2 9>14 9>21 9>26 10>2 10>5 10>22 11>24 13>2 14>2 14>7 "
        "14>17 16>0 16>1 16>19 16>27 17>6 17>11 20>15 21>3 21>10 21>26 22>2 22>7 22>11 23>5 23>16 24>1 24>6 25>12 26>8"
    ),
    "sum, optimal": (
        "0>27 1>10 1>13 2>21 3>0 3>9 4>15 4>18 5>12 6>20 7>16 8>1 8>13 9>14 10>4 10>15 12>17 12>26 13>10 14>22 15>11 15>18 "
        "16>20 18>11 19>28 21>19 21>28 22>5 23>5 24>21 25>2 25>24 26>7 26>17 27>22 27>23 28>1"
    ),
    "chain with bound and exact": (
        "0>14 2>6 2>10 2>16 2>22 2>34 3>2 3>10 3>19 3>29 4>26 5>9 6>7 6>28 6>33 7>4 7>11 7>26 7>33 8>0 9>3 10>28 11>15 "
        "11>33 12>9 12>24 13>14 13>20 13>31 14>20 16>6 17>12 17>35 18>5 18>12 18>35 19>2 19>6 20>27 21>9 22>7 22>34 24>29 "
        "25>2 25>3 25>29 26>1 27>18 27>35 28>4 29>2 29>16 29>22 30>2 30>10 30>29 31>18 32>31 33>4 33>15 33>26 34>4 34>28 "
        "35>9"
    ),
    "chain with units": (
        "0>33 1>21 1>22 2>11 2>20 2>31 3>33 4>12 4>20 5>23 5>32 6>17 7>14 7>17 7>30 8>23 8>27 9>12 9>20 9>24 9>27 10>17 "
        "10>26 11>33 12>33 13>33 14>33 15>33 16>33 17>33 18>33 19>33 20>33 21>33 22>33 23>33 24>33 25>33 26>33 27>33 28>33 "
        "29>33 30>33 31>33 32>33 33>35 33>36 33>38 33>41 33>42 33>43 33>44 36>37 38>34 38>40 42>45 42>46 43>47 45>48 47>39"
    ),
}


for seed, what in ((4, "refuted"), (5, "optimal")):
    SPECIMENS[f"modules, {what}"] = " ".join(f"{u}>{v}" for u, v in f.random_layered(4, 12, seed=seed).arcs())


@cache
def specimen(name: str) -> tuple[Dag, str]:
    dag = Dag.from_arcs([(a, b) for a, _, b in (arc.partition(">") for arc in SPECIMENS[name].split())])
    return dag, json.dumps(plan(dag).document())


def document(name: str) -> tuple[Dag, Document]:
    dag, text = specimen(name)
    return dag, json.loads(text)


def assert_holds(dag: Dag) -> Verification:
    """A plan holds, as it is and after a round trip through JSON, and the checker finds what the plan says."""
    best = plan(dag)
    found = verify(dag, best)
    assert found.holds, found.reason
    assert (found.reason, found.verdict, found.area, found.area_bound) == (
        None, best.verdict, best.area, best.area_bound,
    )  # fmt: skip
    assert (found.profile, found.upper_bound, found.tight_steps) == (best.profile, best.upper_bound, best.tight_steps)
    gaps = (t for t, (e, u) in enumerate(zip(best.profile, best.upper_bound, strict=True)) if e < u)
    assert found.first_gap == next(gaps, None)
    assert verify(dag, json.loads(json.dumps(best.document()))) == found
    return found


def rejected(dag: Dag, changed: Any) -> bool:
    """Whether a changed document is refused, with a sentence that says why."""
    try:
        found = verify(dag, changed)
    except InputError as error:
        return bool(str(error)) and "\n" not in str(error)
    return not found.holds and bool(found.reason)


# Every plan holds


def test_plans_of_small_dags_hold_and_are_right() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        dag = random_small_dag(rng, most=14)
        found = assert_holds(dag)
        if len(dag) <= 10:
            best = exact.max_profile(dag)
            assert (found.verdict == "optimal") == (exact.ic_optimal_schedule(dag) is not None)
            assert found.upper_bound == best
            assert found.area_bound == sum(eligo.profile(dag, max_area_schedule(dag)))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_plans_of_golden_cases_hold(case: dict[str, Any]) -> None:
    assert assert_holds(golden_dag(case)).verdict == ("optimal" if case["ic_optimal_exists"] else "impossible")


FAMILIES = {
    "out-mesh": f.out_mesh(12),
    "in-mesh": f.in_mesh(12),
    "grid": f.grid(6, 9),
    "butterfly": f.butterfly(5),
    "out-tree": f.out_tree(5, 3),
    "in-tree": f.in_tree(5, 3),
    "random out-tree": f.random_out_tree(80, seed=1),
    "random in-tree": f.random_in_tree(80, seed=1),
    "prefix": f.parallel_prefix(16),
    "laplace": f.laplace(16),
    "matrices": f.matrix_multiplication(3),
    "fork and join": f.fork_join(5, stages=6, length=2),
    "W": f.w_dag(40, 4),
    "M": f.m_dag(40, 4),
    "cycle": f.cycle_dag(40),
    "clique": f.clique_dag(30),
    "expansive": f.expansive_dag(25, seed=1),
    "planar tree": f.random_planar_bipartite_tree(30, seed=1),
    "tree block": f.bipartite_tree(60, seed=1),
    "dense": f.random_dag(60, 0.5, seed=1),
    "two cycles": sum_of(f.cycle_dag(30), f.cycle_dag(31)).dag,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_plans_of_families_hold(name: str) -> None:
    assert_holds(FAMILIES[name])


@pytest.mark.parametrize("seed", range(8))
def test_plans_of_middling_dags_hold(seed: int) -> None:
    """Layered, random, composed, and sums of what cannot be swept."""
    rng = np.random.default_rng(seed)
    assert_holds(f.random_layered(5, 8 + seed, seed=seed))
    assert_holds(f.random_layered(8, 10, seed=seed, degree=3))
    assert_holds(f.random_dag(50, 0.08, seed=seed))
    assert_holds(sum_of(*(f.random_dag(14, 0.3, seed=10 * seed + i) for i in range(3))).dag)
    assert_holds(sum_of(*(random_small_dag(rng, most=14) for _ in range(4))).dag)
    assert_holds(in_series(*(random_small_dag(rng, most=16) for _ in range(3))))
    assert_holds(in_series(f.random_layered(4, 7, seed=seed), f.random_layered(4, 7, seed=seed + 100)))
    for kind in ("w", "m", "wnm", "q2"):
        assert_holds(f.random_composition(kind, 80, seed=seed))


def in_series(*parts: Dag) -> Dag:
    """One part after another, with a single task in between."""
    arcs: list[tuple[str, str]] = []
    for i, part in enumerate(parts):
        arcs += [(f"{i}.{u}", f"{i}.{v}") for u, v in part.arcs()]
        arcs += [(f"{i}.{sink}", f"neck {i}") for sink in part.sinks]
        arcs += [(f"neck {i - 1}", f"{i}.{source}") for source in part.sources if i]
    return Dag.from_arcs(arcs)


def test_a_long_dag_with_many_blocks_holds() -> None:
    assert_holds(f.out_mesh(60))
    assert_holds(f.butterfly(8))
    assert_holds(f.random_layered(10, 100))


@pytest.mark.parametrize("dag", [Dag.from_arcs([]), Dag.from_arcs([], tasks="a"), Dag.from_arcs([], tasks="abc")])
def test_dags_without_arcs_hold(dag: Dag) -> None:
    assert assert_holds(dag).verdict == "optimal"
    assert rejected(dag, plan(dag).document() | {"proof": {"rule": "units", "units": []}})
    for proof in ({"rule": "exact"}, {"rule": "sum", "parts": []}):
        assert verify(dag, plan(dag).document() | {"proof": proof}).holds


def test_a_workflow_is_as_good_as_its_dag(diamond: Dag) -> None:
    assert verify(Workflow(diamond), plan(diamond)).holds


def test_the_specimens_use_every_rule() -> None:
    def rules(proof: Document) -> Iterator[str]:
        return (part["rule"] for _, part in parts_of(proof))

    used = {name: list(rules(document(name)[1]["proof"])) for name in SPECIMENS}
    assert {rule for found in used.values() for rule in found} == set(documents.RULES)
    assert {document(name)[1]["verdict"] for name in SPECIMENS} == {"optimal", "impossible"}


# A plan changed in one place does not hold


def edits(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every way to change a document in one place: a number by one, a text, a flag; a key or an entry gone or added."""
    match node:
        case bool():
            yield path, not node
        case int():
            yield from ((path, node + by) for by in (-1, 1))
        case str():
            yield path, f"{node}'"
        case list():
            few = sorted({*range(min(4, len(node))), *range(0, len(node), len(node) // 5 + 1), len(node) - 1} - {-1})
            for i in few:
                yield (*path, i), [*node[:i], *node[i + 1 :]]
                yield from ((where, [*node[:i], new, *node[i + 1 :]]) for where, new in edits(node[i], (*path, i)))
        case dict():
            yield (*path, "surprise"), node | {"surprise": 1}
            for key, value in node.items():
                yield (*path, key), {k: v for k, v in node.items() if k != key}
                yield from ((where, node | {key: new}) for where, new in edits(value, (*path, key)))


def harmless(path: tuple[Any, ...], changed: Document) -> bool:
    """What leaves a valid proof of the same claims: free text, other steps in conflict, help that is not needed."""
    match path:
        case ("method" | "seconds" as key,):
            return key in changed
        case ("cut_short",):
            return True
        case ("proof", *_, "split"):
            return at(changed, path) is not True  # where probes or exact maxima say as much
        case ("proof", *_, "blocks"):
            return at(changed, path) is True
        case ("proof", "order"):
            return "order" not in changed["proof"]
        case ("proof", *_, "elimination"):
            return at(changed, path) is None and at(changed, path[:-1])["rule"] == "modules"
        case ("proof", *_, "executed_first", int()):
            return not any(name.endswith("'") for name in at(changed, path[:-1]))  # another order, as good as this one
        case ("proof", *_, "swaps") | ("proof", *_, "swaps", int()):
            return True  # with fewer of them there is more to look at
        case ("proof", *_, "swaps", int(), int()):
            return not at(changed, path[:-1])
    return "conflict" in path


@pytest.mark.parametrize("name", SPECIMENS)
def test_every_change_is_noticed(name: str) -> None:
    dag, original = document(name)
    assert verify(dag, original).holds
    count = 0
    for path, changed in edits(original):
        if not harmless(path, changed):
            assert rejected(dag, changed), path
            count += 1
    assert count > 40


@pytest.mark.parametrize("name", SPECIMENS)
def test_another_verdict_is_refused(name: str) -> None:
    dag, original = document(name)
    for verdict in {"optimal", "impossible", "bounded", "fine"} - {original["verdict"]}:
        assert verify(dag, original | {"verdict": verdict}).reason == "the verdict is not what follows from the proof"


@pytest.mark.parametrize("name", SPECIMENS)
def test_two_tasks_exchanged_are_noticed(name: str) -> None:
    """Unless it is as good a schedule as before."""
    dag, original = document(name)
    count = 0
    for i, j in combinations(range(min(len(dag), 16)), 2):
        order = list(original["order"])
        order[i], order[j] = order[j], order[i]
        same = eligo.is_schedule(dag, order) and list(eligo.profile(dag, order)) == original["profile"]
        assert same or rejected(dag, original | {"order": order})
        count += not same
    assert count


def parts_of(proof: Document) -> Iterator[tuple[tuple[Any, ...], Document]]:
    """Every rule of a proof, with the way to it."""
    yield (), proof
    for key in ("segments", "parts", "modules"):
        inside = proof.get(key, ())
        for i, inner in enumerate(inside) if not isinstance(inside, dict) else ():
            yield from (((key, i, *path), found) for path, found in parts_of(inner))
        if isinstance(inside, dict):
            yield from (((key, *path), found) for path, found in parts_of(inside))


def with_change(node: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(node, dict):
        return node | {path[0]: with_change(node[path[0]], path[1:], new)}
    return [*node[: path[0]], with_change(node[path[0]], path[1:], new), *node[path[0] + 1 :]]


@pytest.mark.parametrize("name", SPECIMENS)
def test_another_rule_proves_the_same_or_nothing(name: str) -> None:
    dag, original = document(name)
    for path, part in parts_of(original["proof"]):
        for rule in documents.RULES.keys() - {part["rule"]}:
            changed = with_change(original, ("proof", *path), part | {"rule": rule})
            enumerated = rule == "exact" and part["rule"] == "chain" and "segments" not in part
            assert rejected(dag, changed) or (enumerated and len(dag) < 40) or "modules" in path


def test_tasks_moved_between_modules_are_noticed() -> None:
    for name in ("bound, bounded", "bound with blocks", "sum, impossible", "chain with bound and exact"):
        dag, original = document(name)
        for path, part in parts_of(original["proof"]):
            modules = part.get("shares", {}).get("modules", [])
            where = ("proof", *path, "shares", "modules")
            for (i, a), (j, b) in permutations(enumerate(modules), 2):
                for key in ("tasks", "renders"):
                    moved = [dict(module) for module in modules]
                    moved[i] |= {key: a[key][1:]}
                    moved[j] |= {key: [*b[key], a[key][0]]}
                    assert rejected(dag, with_change(original, where, moved))
                exchanged = [{i: b, j: a}.get(k, module) for k, module in enumerate(modules)]
                assert rejected(dag, with_change(original, where, exchanged))


def test_the_order_of_a_part_matters() -> None:
    """Where the sum's verdict rests on it: any exchange that lowers a part's area is noticed."""
    for name in ("sum, impossible", "sum, optimal"):
        dag, original = document(name)
        for i, part in enumerate(original["proof"]["parts"]):
            own = dag.subdag({v for u in part["order"] for v in (u, *dag.children(u))})
            rest = [task for task in own.tasks if task not in part["order"]]
            best = eligo.area(own, [*part["order"], *rest])
            for a, b in combinations(range(len(part["order"])), 2):
                order = list(part["order"])
                order[a], order[b] = order[b], order[a]
                if not eligo.is_schedule(own, [*order, *rest]) or eligo.area(own, [*order, *rest]) < best:
                    assert rejected(dag, with_change(original, ("proof", "parts", i, "order"), order))


def test_a_false_conflict_is_noticed() -> None:
    dag, original = document("exact, impossible")
    conflict = original["proof"]["conflict"]
    for false in ([1], [len(dag)], [0], [-1, *conflict], [*conflict, 99]):
        found = verify(dag, original | {"proof": {"rule": "exact", "conflict": false}})
        assert found.reason == "one order is best after all the steps said to be in conflict"
    assert verify(dag, original | {"proof": {"rule": "exact"}}).holds


def test_a_segment_listed_twice_is_refused() -> None:
    dag, original = document("chain with exact")
    proof = original["proof"]
    changed = proof | {"segments": [*proof["segments"], *proof["segments"]]}
    assert "is not a segment" in str(verify(dag, original | {"proof": changed}).reason)


# Certificates made by hand


FORK = Dag.from_arcs([("u", "a"), ("u", "b"), ("a", "x"), ("b", "y")])
GOOD: Document = {
    "modules": [
        {"tasks": ["u"], "renders": ["a", "b"], "p": 2, "q": 1},
        {"tasks": ["a", "b"], "renders": ["x", "y"], "p": 1, "q": 1},
    ],
    "flow": [["a", "u", 1], ["b", "u", 1], ["x", "a", 1], ["y", "b", 1]],
}
ONE: Document = {"modules": [{"tasks": ["u", "a", "b"], "renders": ["a", "b", "x", "y"], "p": 2, "q": 1}]}
FALLING = "the shares do not fall from full module to full module"
STRAY = "each worth must be at least 0 and flow from a task to one of its parents in the same module, got "
KEEPING = "a module's share is not the most that one of its tasks keeps"


def shares_bound(shares: Document) -> list[int]:
    bound: list[int] = worth.shares_bound(FORK, shares).tolist()
    return bound


def test_shares_bound_the_profile() -> None:
    assert shares_bound(GOOD) == [0, 2, 3, 4]
    assert shares_bound(ONE | {"flow": GOOD["flow"]}) == [0, 2, 4, 4]
    handed_on = [["a", "u", 2], ["b", "u", 1], ["x", "a", 1], ["y", "b", 1]]
    assert shares_bound(with_change(ONE, ("modules", 0, "p"), 3) | {"flow": handed_on}) == [0, 3, 4, 4]


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        (with_change(GOOD, ("modules",), GOOD["modules"][::-1]), FALLING),
        (with_change(GOOD, ("modules", 0, "p"), 3), FALLING),
        (with_change(GOOD, ("modules", 1, "p"), 2), KEEPING),
        (with_change(GOOD, ("modules", 1, "p"), 0), KEEPING),
        (with_change(GOOD, ("modules", 0, "q"), 0), "task 'a' must hand on a worth of 0, got 1"),
        (with_change(GOOD, ("modules", 0, "tasks"), ["u", "a"]), "the modules do not have every task once"),
        (with_change(GOOD, ("modules", 0, "renders"), ["a"]), "the modules do not have every task once"),
        (with_change(GOOD, ("modules", 0, "tasks"), []), "the modules do not have every task once"),
        (with_change(GOOD, ("flow", 2), ["x", "u", 1]), STRAY + "1 from 'x' to 'u'"),
        (with_change(GOOD, ("flow", 2), ["x", "a", -1]), STRAY + "-1 from 'x' to 'a'"),
        (with_change(GOOD, ("flow", 2), ["x", "a", 2]), "task 'x' must hand on a worth of 1, got 2"),
        (with_change(GOOD, ("flow", 2), ["x", "a", 0]), "task 'x' must hand on a worth of 1, got 0"),
        (with_change(GOOD, ("flow", 0), ["a", "u", 2]), "task 'a' must hand on a worth of 1, got 2"),
        (
            with_change(ONE, ("modules", 0, "p"), 4)
            | {"flow": [["a", "u", 3], ["b", "u", 1], ["x", "a", 1], ["y", "b", 1]]},
            KEEPING,
        ),
    ],
)
def test_false_shares_are_refused(shares: Document, reason: str) -> None:
    with pytest.raises(Refuted, match=f"^{reason}$"):
        shares_bound(shares)


def test_worth_stays_within_its_module() -> None:
    crossed = [
        {"tasks": ["u", "b"], "renders": ["a", "x"], "p": 1, "q": 1},
        {"tasks": ["a"], "renders": ["b", "y"], "p": 2, "q": 1},
    ]
    with pytest.raises(Refuted, match=f"^{STRAY}1 from 'b' to 'u'$"):
        shares_bound(GOOD | {"modules": crossed})


def test_one_impossible_part_is_enough() -> None:
    """Wherever it stands, in series or side by side."""
    impossible, linear = document("exact, impossible")[0], f.out_mesh(8)
    enumerated = document("exact")[0]
    for parts in permutations((impossible, linear, enumerated)):
        assert assert_holds(in_series(*parts)).verdict == "impossible"
    for low in (f.n_dag(3), linear):
        assert assert_holds(sum_of(low, in_series(impossible, linear)).dag).verdict == "impossible"
        assert assert_holds(sum_of(impossible, in_series(low, linear)).dag).verdict == "impossible"


def test_an_undecided_part_proves_nothing_impossible() -> None:
    """Its bound may be what cannot be interleaved."""
    dag = sum_of(document("bound, bounded")[0], f.clique_dag(2)).dag
    original = plan(dag).document()
    if original["verdict"] == "bounded":
        found = verify(dag, original | {"verdict": "impossible"})
        assert found.reason == "the verdict is not what follows from the proof"


def test_a_block_divided_between_units_is_noticed() -> None:
    dag, original = document("units")
    sizes = original["proof"]["units"]
    i = next(i for i, (a, b) in enumerate(pairwise(sizes)) if a > 1 or b > 1)
    by = 1 if sizes[i + 1] > 1 else -1
    shifted = [*sizes[:i], sizes[i] + by, sizes[i + 1] - by, *sizes[i + 2 :]]
    found = verify(dag, original | {"proof": original["proof"] | {"units": shifted}})
    assert found.reason == "a block is divided between units"


def test_too_many_tasks_are_not_enumerated() -> None:
    dag = f.out_mesh(8)
    found = verify(dag, plan(dag).document() | {"proof": {"rule": "exact"}})
    assert found.reason == "too many tasks to enumerate all sets"


# No false claim holds


def test_no_false_claim_holds() -> None:
    """Whatever order, verdict and bound are put together with whatever proof: what holds is true."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(40):
        dag = random_small_dag(rng, most=8)
        best, found = exact.max_profile(dag), plan(dag)
        largest = sum(eligo.profile(dag, max_area_schedule(dag)))
        truth = "impossible" if exact.ic_optimal_schedule(dag) is None else "optimal"
        orders = [found.order, max_area_schedule(dag), random_schedule(dag, rng)]
        working = sum(len(dag.children(task)) > 0 for task in dag.tasks)
        units = rng.multinomial(working, [0.5, 0.5]).tolist()
        proofs = [{"rule": "chain"}, {"rule": "exact"}, {"rule": "units", "units": units}, found.proof]
        for order, proof, verdict in product(orders, proofs, ("optimal", "impossible", "bounded")):
            own = eligo.profile(dag, order)
            claim = found.document() | {"order": order, "profile": own, "area": sum(own), "proof": proof}
            for bound, area in product({own, best}, {sum(own), largest, sum(best)}):
                claim |= {"verdict": verdict, "upper_bound": bound, "area_bound": area}
                if verify(dag, claim).holds:
                    held += 1
                    assert bound == best
                    assert area >= largest
                    assert verdict != "optimal" or own == best
                    assert verdict != "impossible" or truth == "impossible"
    assert held >= 40


def random_schedule(dag: Dag, rng: np.random.Generator) -> tuple[str, ...]:
    game = eligo.Execution(dag)
    order = []
    while ready := sorted(game.eligible):
        order.append(str(rng.choice(ready)))
        game.execute(order[-1])
    return tuple(order)


# What is malformed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": None}, "'order' in the plan must be a list"),
        ({"order": "abc"}, "'order' in the plan must be a list"),
        ({"order": [1, 2]}, "'order' in the plan must be a string"),
        ({"profile": [1.0]}, "'profile' in the plan must be an integer"),
        ({"profile": [True]}, "'profile' in the plan must be an integer"),
        ({"area": "7"}, "'area' in the plan must be an integer"),
        ({"seconds": "soon"}, "'seconds' in the plan must be a number"),
        ({"verdict": 1}, "'verdict' in the plan must be a string"),
        ({"fingerprint": "0" * 32}, "this plan belongs to another workflow"),
        ({"colour": "red"}, "the plan has the unknown key 'colour'"),
        ({"proof": []}, "'proof' in the plan must be an object"),
        ({"proof": {}}, "'proof' in the plan has the unknown rule None"),
        ({"proof": {"rule": "hope"}}, "'proof' in the plan has the unknown rule 'hope'"),
        ({"proof": {"rule": ["chain"]}}, r"'proof' in the plan has the unknown rule \['chain'\]"),
        ({"proof": {"rule": "units"}}, "'proof' in the plan needs the key 'units'"),
        ({"proof": {"rule": "chain", "parts": []}}, "'proof' in the plan has the unknown key 'parts'"),
        ({"proof": {"rule": "chain", "segments?": []}}, r"'proof' in the plan has the unknown key 'segments\?'"),
        (
            {"proof": {"rule": "chain", "segments": [{"rule": "exact", "first": 0}]}},
            "'segments' in 'proof' in the plan needs the key 'last'",
        ),
        (
            {
                "proof": {
                    "rule": "modules",
                    "blocks": False,
                    "modules": [],
                    "shares": {"modules": [], "flow": [["a", "b"]]},
                }
            },
            "'flow' in 'shares' in 'proof' in the plan must be a list of 3",
        ),
        (
            {"proof": {"rule": "modules", "blocks": 1, "modules": [], "shares": {"modules": [], "flow": []}}},
            "'blocks' in 'proof' in the plan must be a boolean",
        ),
    ],
)
def test_a_malformed_plan_is_refused(diamond: Dag, change: Document, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$"):
        verify(diamond, plan(diamond).document() | change)


def test_every_key_is_needed(diamond: Dag) -> None:
    whole = plan(diamond).document()
    for key in whole.keys() - {"cut_short"}:  # older plans do not have it
        with pytest.raises(InputError, match=f"^the plan needs the key '{key}'$"):
            verify(diamond, {k: v for k, v in whole.items() if k != key})


@pytest.mark.parametrize("nothing", [None, 3, "plan", [], ()])
def test_what_is_no_plan_is_refused(diamond: Dag, nothing: Any) -> None:
    with pytest.raises(InputError, match=r"^the plan must be an object$"):
        verify(diamond, nothing)


def test_an_order_of_other_tasks_is_refused(diamond: Dag) -> None:
    whole = plan(diamond).document()
    with pytest.raises(UnknownTaskError, match="there is no task named 'z'"):
        verify(diamond, whole | {"order": ["a", "b", "c", "z"]})
    with pytest.raises(DuplicateTaskError, match="duplicate task 'b'"):
        verify(diamond, whole | {"order": ["a", "b", "b", "d"]})


def test_an_order_that_is_no_schedule_does_not_hold(diamond: Dag) -> None:
    whole = plan(diamond).document()
    found = verify(diamond, whole | {"order": ["a", "d", "b", "c"]})
    assert found == Verification(holds=False, reason="not a schedule: 'd' comes before 'b', which it depends on")
    assert verify(diamond, whole | {"order": ["a"]}).reason == "not a schedule: 'b' is missing"


def test_a_plan_of_another_workflow_is_refused(diamond: Dag) -> None:
    other = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d")])
    with pytest.raises(InputError, match=r"^this plan belongs to another workflow$"):
        verify(diamond, plan(other))


def test_huge_numbers_do_no_harm() -> None:
    for name in ("bound, bounded", "units", "chain with exact", "exact, impossible"):
        dag, original = document(name)
        for path, changed in edits(original):
            number = at(original, path)
            if isinstance(number, int) and isinstance(at(changed, path), int) and path[0] != "seconds":
                assert "conflict" in path or rejected(dag, with_change(original, path, 10**30))


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        node = node.get(step) if isinstance(node, dict) else node[step] if step < len(node) else None
    return node


def test_a_proof_nested_without_end_is_refused(diamond: Dag) -> None:
    proof: Document = {"rule": "exact", "first": 0, "last": 3}
    for _ in range(5_000):
        proof = {"rule": "chain", "segments": [proof], "first": 0, "last": 3}
    del proof["first"], proof["last"]
    with pytest.raises(InputError, match=r"^the proof is nested too deeply$"):
        verify(diamond, plan(diamond).document() | {"proof": proof})


# Its own arithmetic, against definitions and against the planner's


@pytest.mark.parametrize("arcs", [0, 3, 10**9])
def test_shortcuts_are_found(arcs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By sweeps alone, by short searches and sweeps for the rest, and by searches alone."""
    monkeypatch.setattr(documents, "LEAST_ARCS", arcs)
    rng = np.random.default_rng(3)
    for _ in range(100):
        dag = random_small_dag(rng, most=20)
        assert np.array_equal(documents.shortcut_mask(dag), shortcut_mask(dag))
    dense = f.random_dag(200, 0.2, seed=1)
    assert np.array_equal(documents.shortcut_mask(dense), shortcut_mask(dense))
    monkeypatch.setattr(documents, "MOST_BITS", 1_000)
    assert np.array_equal(documents.shortcut_mask(dense), shortcut_mask(dense))


def test_segments_end_where_all_before_precede_all_behind() -> None:
    rng = np.random.default_rng(4)
    dags = [skeleton(random_small_dag(rng, most=9)) for _ in range(300)]
    for dag in [*dags, complete_layers(2, 3, 1, 4, 2), f.random_layered(6, 3, 1)]:
        part = verifying._Part(dag, dag.order[dag.outdegree[dag.order] > 0])
        below = reach(part.dag)[: part.k, : part.k]
        ends = [t for t in range(part.k + 1) if below[:t, t:].all()]
        assert part.segment_ends().tolist() == ends


def reach(dag: Dag) -> np.ndarray[Any, np.dtype[np.bool_]]:
    below = np.zeros((len(dag), len(dag)), np.bool_)
    for u in dag.order[::-1].tolist():
        for v in dag.child[dag.child_ptr[u] : dag.child_ptr[u + 1]].tolist():
            below[u] |= below[v]
            below[u, v] = True
    return below


def test_maxima_of_blocks() -> None:
    """By definition: t tasks render the most sinks whose parents, all together, are at most t."""
    rng = np.random.default_rng(5)
    blocks = [f.w_dag(5, 2), f.n_dag(5), f.m_dag(5, 2), f.cycle_dag(5), f.clique_dag(4), f.w_dag(2, 4), f.m_dag(4, 7)]
    for sources, sinks in product((2, 5, 12, 60), (2, 5, 8)):
        tails, heads = np.nonzero(rng.random((sources, sinks)) < 0.5)
        dag = Dag.from_arrays(sources + sinks, tails, sources + heads)
        blocks += [part for part in map(dag.subdag, dag.components()) if len(part) > 1]
    for block in blocks:
        best = [0] * (len(block.sources) + 1)
        for size in range(len(block.sinks) + 1):
            for rendered in combinations(block.sinks, size):
                best[len({u for v in rendered for u in block.parents(v)})] = size
        maxima = np.maximum.accumulate(best).tolist()
        assert arithmetic.block_maxima(block.tails, block.child).tolist() == maxima


def test_what_no_method_solves_is_bounded() -> None:
    """As the planner bounds it, or the claims of its bounds could not be compared."""
    rng = np.random.default_rng(6)
    tails, heads = np.nonzero(rng.random((40, 40)) < 0.2)
    block = Dag.from_arrays(80, tails, 40 + heads)
    assert arithmetic.block_maxima(block.tails, block.child).tolist() == solve_one(block).maxima.tolist()


def test_maxima_of_large_trees() -> None:
    for seed in range(5):
        tree = f.bipartite_tree(80, seed=seed, max_degree=4)
        assert arithmetic.block_maxima(tree.tails, tree.child).tolist() == tree_maxima(tree).tolist()


def test_sweeping() -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        one, two = (np.append(0, np.cumsum(rng.integers(0, 3, rng.integers(1, 6)))) for _ in range(2))
        assert arithmetic.sweepable(one, two) == (sweep_two(one, two) is not None)


def test_modules_that_are_not_closed_are_refused() -> None:
    """Task 0 said to be rendered before three of its parents are executed: it would make a false refutation."""
    dag = Dag.from_arcs([(u, v) for u in "145" for v in "023"] + [("6", "0")], tasks="0123456")
    forged = {
        "rule": "modules",
        "blocks": False,
        "shares": {
            "modules": [
                {"tasks": ["6"], "renders": ["0"], "p": 1, "q": 1},
                {"tasks": ["1", "4", "5"], "renders": ["2", "3"], "p": 2, "q": 3},
            ],
            "flow": [["0", "6", 1], ["3", "1", 2], ["2", "4", 1], ["3", "4", 1], ["2", "5", 2]],
        },
        "modules": [{"rule": "exact", "order": ["6"]}, {"rule": "exact", "order": ["1", "4", "5"]}],
        "elimination": {"order": list("0123456"), "alike": []},
    }
    found = verify(dag, plan(dag).document() | {"proof": forged, "verdict": "impossible"})
    assert found.reason == "a module depends on a later one"


def test_a_bound_that_ran_out_of_work_still_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "normal", replace(EFFORTS["normal"], cuts=0))
    for seed in range(4):
        assert_holds(f.random_layered(8, 12, seed=seed))
