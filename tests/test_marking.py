"""Marked tasks against enumeration: what they leave to come, largest areas found with them, and proofs of these."""

import json
from itertools import combinations

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import plan, verify
from eligo.dag import Dag
from eligo.deciding import modules
from eligo.deciding.effort import EFFORTS
from eligo.deciding.elimination import eliminate, exact_maxima
from eligo.deciding.marks import closest, marked_bounds, maxima_by_marks, rank_candidates
from eligo.deciding.moves import largest_area
from eligo.deciding.positions import Marked
from eligo.deciding.work import Work
from eligo.theory.profiles import Profile
from eligo.theory.skeleton import skeleton
from eligo.verifying.modules import marks_of
from eligo.verifying.positions import largest_area as checked_area
from test_pieces import mosaic, rendered
from test_verifying import Document, edits, harmless, rejected
from test_verifying_searches import solved_dags


def with_marks(seed: int, count: int) -> list[tuple[Dag, list[int]]]:
    """Small dags, and some of the tasks of each that others need."""
    rng, found = np.random.default_rng(seed), list[tuple[Dag, list[int]]]()
    while len(found) < count:
        dag = skeleton(random_small_dag(rng, 11))
        nonsinks = np.flatnonzero(dag.outdegree > 0)
        if len(nonsinks):
            some = rng.permutation(nonsinks)[: rng.integers(1, min(4, len(nonsinks)) + 1)]
            found.append((dag, sorted(some.tolist())))
    return found


def closed_sets(dag: Dag) -> list[set[int]]:
    nonsinks = np.flatnonzero(dag.outdegree > 0).tolist()
    sets = [set(one) for size in range(len(nonsinks) + 1) for one in combinations(nonsinks, size)]
    return [one for one in sets if all(one.issuperset(dag.parents_of(v).tolist()) for v in one)]


def bits(executed: set[int], tasks: list[int]) -> int:
    return sum(1 << i for i, v in enumerate(tasks) if v in executed)


def document_of(dag: Dag, tasks: list[int]) -> Document:
    return modules._proof_of_marks(dag, Marked(tasks, np.zeros((1, 1), np.int64)), eliminate(dag, kept=tasks))


def test_maxima_by_marks_are_those_of_all_closed_sets() -> None:
    for dag, tasks in with_marks(1, 120):
        best = dict[tuple[int, int], int]()
        for one in closed_sets(dag):
            key = bits(one, tasks), len(one)
            best[key] = max(best.get(key, 0), len(rendered(dag, one)))
        table = maxima_by_marks(dag, eliminate(dag, kept=tasks), Work())
        assert {(q, t): int(table[q, t]) for q, t in zip(*np.nonzero(table >= 0), strict=True)} == best


def largest_behind(dag: Dag) -> dict[frozenset[int], int]:
    """For each closed set the largest sum of what is rendered after each step that follows."""
    found, sets = dict[frozenset[int], int](), {frozenset(one) for one in closed_sets(dag)}
    for one in sorted(sets, key=len, reverse=True):
        nexts = [one | {v} for v in range(len(dag)) if v not in one and one | {v} in sets]
        found[one] = max((len(rendered(dag, set(two))) + found[two] for two in nexts), default=0)
    return found


def test_never_more_comes_than_marked_tasks_leave() -> None:
    """And no less may come where all tasks are marked; the checker finds the same."""
    exact = 0
    for dag, tasks in with_marks(2, 80):
        for marks in (tasks, np.flatnonzero(dag.outdegree > 0).tolist()):
            found, checked = marked_bounds(dag, marks, Work())[0], marks_of(dag, document_of(dag, marks))
            assert checked is not None
            assert list(checked.tasks) == found.tasks
            for one, most in largest_behind(dag).items():
                left = found.to_come[bits(set(one), marks), len(one)]
                assert left == checked.to_come[bits(set(one), marks), len(one)] >= most
                assert left == most or marks is tasks
                exact += left == most
    assert exact > 1000


def test_largest_areas_with_marked_tasks() -> None:
    rng = np.random.default_rng(3)
    for dag, maxima, area in solved_dags(4, 60):
        nonsinks = np.flatnonzero(dag.outdegree > 0)
        tasks = sorted(rng.permutation(nonsinks)[:3].tolist())
        told = marked_bounds(dag, tasks, Work())[0]
        found = largest_area(dag, maxima, -1, 1 << 20, marked=told)
        assert (found.area, found.proved) == (area, True)
        again = largest_area(dag, maxima, area, 1 << 20, marked=told)
        assert (again.order, again.proved) == (None, True)
        marks = marks_of(dag, document_of(dag, tasks))
        assert checked_area(dag, maxima, area - 1, (), marks) == checked_area(dag, maxima, area, (), marks) == area


def torn(rows: int, columns: int, seed: int) -> Dag:
    """A mosaic some of whose pictures are not compared."""
    whole, rng = mosaic(rows, columns, 1), np.random.default_rng(seed)
    last = int(whole.index["end"])
    compared = [v for v in whole.parents_of(last).tolist() if rng.random() < 0.8]
    arcs = [(u, v) for v in compared for u in whole.parents_of(v).tolist()] + [(v, last) for v in compared]
    names = whole.tasks
    return Dag.from_arcs([(names[u], names[v]) for u, v in arcs])


def inner(dag: Dag) -> Dag:
    return dag.induced(np.flatnonzero(np.array(dag.tasks) != "end").astype(np.int32))


def positions_seen(dag: Dag, maxima: Profile, area: int, told: Marked | None) -> float:
    work = Work()
    found = largest_area(dag, maxima, area, 1 << 20, work, (), *([] if told is None else [told]))
    assert (found.order, found.proved) == (None, True)
    return work.spent


def test_few_marked_tasks_spare_most_of_a_search() -> None:
    dag = inner(torn(5, 5, 7))
    maxima = exact_maxima(dag)
    area = largest_area(dag, maxima, -1, 300).area
    told = closest(dag, area, Work())
    assert told is not None
    assert area <= told[0].to_come[0, 0] < maxima.sum()
    assert 2 * positions_seen(dag, maxima, area, told[0]) < positions_seen(dag, maxima, area, None)


def test_those_are_marked_first_that_make_the_least_difference() -> None:
    dag = Dag.from_arcs([*(("a", f"{j}") for j in range(9)), ("b", "x"), ("c", "y"), ("d", "z")])
    assert dag.named(np.array(rank_candidates(dag, Work()), np.int32)) == ("b", "c", "d", "a")


def test_no_tasks_are_marked_where_there_is_no_work_or_room_for_it() -> None:
    dag = inner(torn(4, 4, 1))
    assert closest(dag, 0, Work(1000)) is None
    assert closest(dag, 0, Work(memory=100)) is None
    assert not any(EFFORTS[name].marks for name in ("quick", "normal"))


# Plans


@pytest.fixture(scope="module")
def planned() -> tuple[Dag, Document]:
    """A plan whose area is proved with marked tasks: without a first look, which would suffice for so few."""
    dag = torn(5, 5, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modules, "FIRST_LOOK", 0)
        return dag, json.loads(json.dumps(plan(dag, effort="thorough").document()))


def entry_of(document: Document) -> Document:
    found: Document = next(one for one in document["proof"]["modules"] if "marked" in one)
    return found


def test_a_largest_area_is_proved_by_marked_tasks(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    assert entry_of(document)["area"] > 0
    assert document["area"] == document["area_bound"]
    assert document["verdict"] == "impossible"
    assert verify(dag, document).holds
    assert plan(dag, effort="thorough").area == document["area"]


def changed_entry(document: Document, **new: object) -> Document:
    """The document with something else in the module that has marked tasks; None takes it out."""
    entry = {key: value for key, value in (entry_of(document) | new).items() if value is not None}
    parts = [entry if "marked" in one else one for one in document["proof"]["modules"]]
    return document | {"proof": document["proof"] | {"modules": parts}}


def test_what_marked_tasks_leave_bounds_the_area_without_a_search(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    looser = changed_entry(document, area=None)
    bounds = range(document["area_bound"], sum(document["upper_bound"]))
    assert sum(verify(dag, looser | {"area_bound": bound}).holds for bound in bounds) == 1


def test_every_change_of_marked_tasks_is_noticed(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    count = 0
    for path, changed in edits(document):
        if "marked" in path[:-1] and not harmless(path, changed):
            assert rejected(dag, changed), path
            count += 1
    assert count > 20


def test_marked_tasks_must_be_tasks_that_others_need_each_once(planned: tuple[Dag, Document]) -> None:
    dag, document = planned
    how = entry_of(document)["marked"]
    sink = dag.tasks[int(dag.parents_of(int(dag.index["end"]))[0])]
    for tasks in ([], [*how["tasks"], how["tasks"][0]], [*how["tasks"], sink], [*how["tasks"], "nobody"]):
        forged = changed_entry(document, marked=how | {"tasks": tasks})
        assert verify(dag, forged).reason == "no tasks to mark"
    fewer = changed_entry(document, marked=how | {"tasks": how["tasks"][1:]})
    assert verify(dag, fewer).reason == "not every unmarked task is eliminated once"
