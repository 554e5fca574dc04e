"""Pieces of modules against enumeration: sets as dense as the whole, and the largest area one after the other."""

import json
from itertools import combinations

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import plan, verify
from eligo.dag import Dag, sum_of
from eligo.deciding.bounds import best_shares
from eligo.deciding.modules import module_dag, pieces
from eligo.deciding.symmetry import settled_order
from eligo.deciding.work import Work, cumulative
from eligo.theory.skeleton import skeleton
from eligo.theory.subsets import Subsets
from test_verifying import Document, edits, harmless, rejected


def modules_of(seed: int, count: int) -> list[Dag]:
    """Modules of small random dags, alone and beside copies of themselves, each as a dag by itself."""
    rng, found = np.random.default_rng(seed), list[Dag]()
    for i in range(count):
        part = skeleton(random_small_dag(rng, 12 - 6 * (i % 2)))
        dag = sum_of(*[part] * (1 + i % 2)).dag
        found += [module_dag(dag, module) for module in best_shares(dag).modules]
    return found


def rendered(dag: Dag, executed: set[int]) -> set[int]:
    return {v for v in range(len(dag)) if dag.indegree[v] and executed.issuperset(dag.parents_of(v).tolist())}


def largest_area(dag: Dag) -> int:
    subsets = Subsets.of(dag, 20)
    assert subsets is not None
    return int(cumulative(dag, np.array(subsets.largest_area_order(), np.int32)).sum())


def test_pieces_are_closed_and_as_dense_as_the_whole() -> None:
    several = 0
    for dag in modules_of(1, 200):
        executed, known = set[int](), set[int]()
        found = pieces(dag, Work())
        for piece in found:
            executed |= set(piece.tasks.tolist())
            assert set(piece.renders.tolist()) == rendered(dag, executed) - known
            known = rendered(dag, executed)
            assert len(known) * piece.q == len(executed) * piece.p
            assert all(executed.issuperset(dag.parents_of(v).tolist()) for v in executed)
        assert executed == set(np.flatnonzero(dag.outdegree > 0).tolist())
        several += len(found) > 1
    assert several > 50


def test_no_piece_has_one_inside() -> None:
    """Of all closed sets of a piece none but the whole is as dense as it."""
    for dag in modules_of(2, 80):
        for piece in pieces(dag, Work()):
            part, k = module_dag(dag, piece), len(piece.tasks)
            for size in range(1, k):
                for chosen in map(set, combinations(range(k), size)):
                    if all(chosen.issuperset(part.parents_of(v).tolist()) for v in chosen):
                        assert len(rendered(part, chosen)) * piece.q < size * piece.p


def test_the_largest_area_is_that_of_the_pieces_one_after_the_other() -> None:
    apart = 0
    for dag in modules_of(3, 600):
        found, before, area = pieces(dag, Work()), 0, 0
        for piece in found:
            area += largest_area(module_dag(dag, piece)) + before * len(piece.tasks)
            before += len(piece.renders)
        assert area == largest_area(dag)
        subsets = Subsets.of(dag, 20)
        apart += len(found) > 1 and subsets is not None and area < subsets.maxima.sum()
    assert apart > 3


def test_what_is_no_module_has_no_pieces() -> None:
    assert pieces(Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")]), Work()) == []


# Plans


def mosaic(rows: int, columns: int, copies: int) -> Dag:
    """Pictures on a grid, every two that touch compared, several times over; all is put together in the end."""
    places = [(i, j) for i in range(rows) for j in range(columns)]
    near = [(a, b) for a, b in combinations(places, 2) if max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1]
    pairs = [(f"{copy} {a}", f"{copy} {b}", f"{copy} {a} {b}") for copy in range(copies) for a, b in near]
    return Dag.from_arcs([(u, w) for a, b, w in pairs for u in (a, b)] + [(w, "end") for *_, w in pairs])


@pytest.fixture(scope="module")
def planned() -> tuple[Dag, Document]:
    dag = mosaic(4, 4, 2)
    return dag, json.loads(json.dumps(plan(dag).document()))


def test_areas_are_proved_piece_by_piece(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    entry = document["proof"]["modules"][0]
    assert [len(piece["order"]) for piece in entry["pieces"]] == [16, 16]
    assert document["verdict"] == "impossible"
    assert document["area"] == document["area_bound"]
    assert verify(dag, document).holds
    inner = dag.induced(np.flatnonzero(np.array(dag.tasks) != "end").astype(np.int32))
    order = inner.indices([name for piece in entry["pieces"] for name in piece["order"]])
    single = mosaic(4, 4, 1)
    alone = single.induced(np.flatnonzero(np.array(single.tasks) != "end").astype(np.int32))
    assert cumulative(inner, order).sum() == 2 * largest_area(alone) + 42 * 16


def test_equal_pieces_are_numbered_alike() -> None:
    """Whatever their numbers were: one of them is solved for all."""
    rng = np.random.default_rng(5)
    single = mosaic(4, 5, 1)
    for _ in range(10):
        shuffled = single.renumbered(rng.permutation(len(single)).astype(np.int32))
        numbered = [dag.renumbered(settled_order(dag, Work())) for dag in (single, shuffled)]
        assert len({(dag.tails.tobytes(), dag.child.tobytes()) for dag in numbered}) == 1
        assert sorted(numbered[1].tasks) == sorted(single.tasks)


def test_every_change_of_a_piece_is_noticed(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    count = 0
    for path, changed in edits(document):
        if "pieces" in path and not harmless(path, changed):
            assert rejected(dag, changed), path
            count += 1
    assert count > 40


def with_pieces(document: Document, pieces: list[Document]) -> Document:
    first, *others = document["proof"]["modules"]
    return document | {"proof": document["proof"] | {"modules": [first | {"pieces": pieces}, *others]}}


def test_pieces_must_be_as_dense_as_the_whole_and_have_every_task_once(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    one, two = document["proof"]["modules"][0]["pieces"]
    halves = [{"rule": "exact", "order": one["order"][:8]}, {"rule": "exact", "order": one["order"][8:]}]
    assert verify(dag, with_pieces(document, [two, one])).holds
    reasons = {
        "a piece is not as dense as its module": [*halves, two],
        "the pieces do not have every task once": [one, one],
        "a piece is not proved separately": [one, {"rule": "chain", "order": two["order"]}],
    }
    for reason, forged in reasons.items():
        assert verify(dag, with_pieces(document, forged)).reason == reason
    assert rejected(dag, with_pieces(document, [one]))
    assert rejected(dag, with_pieces(document, []))
    assert rejected(dag, with_pieces(document, [one, {"rule": "exact", "order": []}, two]))
    assert rejected(dag, with_pieces(document, [one, two | {"pieces": [one]}]))
