"""The bound on the bytes at once and the order of small peak, against the least peak by enumeration of every ideal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from conftest import random_small_dag
from eligo.dag import Dag
from eligo.deciding.work import Work
from eligo.errors import InputError
from eligo.policies import POLICIES, from_order, policy
from eligo.rows import Ints
from eligo.schedules import Terms, terms_of
from eligo.space.bounds import SpaceBound, space_bound
from eligo.space.cuts import Cuts
from eligo.space.exact import least_peak, least_peak_order, live_bytes
from eligo.space.footprint import Footprint
from eligo.space.orders import as_numbered, space_order, starts
from eligo.space.trees import exact_order
from eligo.theory.eligibility import check_schedule
from eligo.theory.exact import down_sets
from eligo.verifying.space import space_holds
from eligo.workflow import Task, Workflow
from test_space import random_files, random_order

DATA = Path(__file__).parents[2] / "shared" / "data" / "wfinstances"


def flow_of(case: int) -> Workflow:
    """A small random workflow with files, or without any."""
    rng = np.random.default_rng(case)
    dag = random_small_dag(rng, 9)
    return Workflow(dag) if case % 4 == 0 else random_files(rng, dag)


@cache
def real() -> dict[str, Workflow]:
    if not DATA.exists():
        pytest.skip(f"{DATA} is missing")
    return {path.name: eligo.read(path) for path in sorted(DATA.glob("*-001*.json*"))}


def played(footprint: Footprint, order: Any, workers: int, rng: np.random.Generator) -> int:
    """The peak of an order followed by some workers, run times at random."""
    seconds = rng.uniform(1.0, 9.0, len(footprint.dag))
    schedule = terms_of(footprint.dag, seconds, workers).played(from_order(footprint.dag, order).board())
    return footprint.peak_in_time(schedule.begin, schedule.end)


def test_the_least_bytes_of_a_task_are_those_of_its_best_ideal() -> None:
    for case in range(60):
        footprint = Footprint.of(flow_of(case))
        ideals = [ideal for layer in down_sets(footprint.dag) for ideal in layer.items()]
        cuts = Cuts(footprint)
        for v in range(len(footprint.dag)):
            least = min(live_bytes(footprint, done) for done, eligible in ideals if eligible >> v & 1)
            cut = cuts.least(v, Work())
            assert cut.bytes == least + footprint.left[v]
            assert live_bytes(footprint, sum(1 << x for x in np.flatnonzero(cut.ideal).tolist())) == least


@pytest.mark.parametrize("part", range(4))
def test_bound_least_peak_and_orders_are_in_this_order(part: int) -> None:
    rng = np.random.default_rng(part)
    for case in range(part * 250, part * 250 + 250):
        flow = flow_of(case)
        footprint = Footprint.of(flow)
        order = space_order(footprint)
        bound, least = space_bound(footprint, order, "quick"), least_peak(footprint)
        check_schedule(flow, order)
        assert bound.bytes <= least <= footprint.peak(order)
        assert all(least <= footprint.peak(start) for start in starts(footprint))
        assert least <= footprint.peak(random_order(rng, flow.dag))
        for workers in (1, 2, 5, 64):
            assert bound.bytes <= played(footprint, order, workers, rng)
        assert space_holds(flow, bound.document())


def test_the_exact_order_has_the_least_peak_of_all_orders() -> None:
    for case in range(40):
        footprint = Footprint.of(flow_of(case))
        if len(footprint.dag) <= 6:
            peaks = [footprint.peak(np.array(order)) for order in every_order(footprint.dag)]
            assert footprint.peak(least_peak_order(footprint)) == min(peaks)


def every_order(dag: Dag, done: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    ready = [v for v in range(len(dag)) if v not in done and set(dag.parents_of(v).tolist()) <= set(done)]
    if not ready:
        yield done
    for v in ready:
        yield from every_order(dag, (*done, v))


def test_names_repeated_arcs_units_and_shortcuts_change_nothing() -> None:
    for case in range(0, 120, 4):
        rng = np.random.default_rng(case)
        dag = random_small_dag(rng, 9)
        sizes = rng.integers(0, 9, len(dag))
        footprint = Footprint.of_results(dag, sizes.tolist())
        bound, least = bounds(footprint), least_peak(footprint)
        scaled = Footprint.of_results(dag, (sizes * 1000).tolist())
        assert (bounds(scaled), least_peak(scaled)) == (1000 * bound, 1000 * least)
        twice = Dag.from_arrays(len(dag), np.tile(dag.tails, 2), np.tile(dag.child, 2))
        assert bounds(Footprint.of_results(twice, sizes.tolist())) == bound
        mixed = rng.permutation(len(dag))
        renumbered = dag.renumbered(mixed.astype(np.int32))
        assert bounds(Footprint.of_results(renumbered, sizes[mixed].tolist())) == bound
        assert bounds(replace(footprint, dag=with_shortcuts(dag))) == bound


def bounds(footprint: Footprint) -> int:
    """The bound by single tasks."""
    cuts = Cuts(footprint)
    return max((cuts.least(v, Work()).bytes for v in range(len(footprint.dag))), default=0)


def with_shortcuts(dag: Dag) -> Dag:
    """The dag with an arc from every task to the children of its children."""
    longer = [(u, w) for u in range(len(dag)) for v in dag.children_of(u) for w in dag.children_of(int(v))]
    tails, heads = np.array(longer, np.int32).reshape(-1, 2).T
    return Dag.from_arrays(len(dag), np.append(dag.tails, tails), np.append(dag.child, heads))


# Exact orders


def composed(rng: np.random.Generator, tasks: list[int]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """The arcs, sources and sinks of a random series-parallel dag of these tasks."""
    if len(tasks) == 1:
        return [], tasks, tasks
    k = int(rng.integers(1, len(tasks)))
    (arcs, tops, ends), (more, others, last) = composed(rng, tasks[:k]), composed(rng, tasks[k:])
    if rng.random() < 0.5:
        return arcs + more, tops + others, ends + last
    return arcs + more + [(u, v) for u in ends for v in others], tops, last


def with_files(rng: np.random.Generator, arcs: list[tuple[int, int]], n: int) -> Footprint:
    """A workflow with a file of random size along every arc."""
    inputs: list[list[str]] = [[] for _ in range(n)]
    outputs: list[list[str]] = [[] for _ in range(n)]
    for u, v in arcs:
        outputs[u].append(f"{u}-{v}")
        inputs[v].append(f"{u}-{v}")
    details = {str(v): Task(name=str(v), inputs=tuple(inputs[v]), outputs=tuple(outputs[v])) for v in range(n)}
    sizes = {f"{u}-{v}": int(rng.integers(0, 12)) for u, v in arcs}
    named = [(str(u), str(v)) for u, v in arcs]
    return Footprint.of(Workflow(Dag.from_arcs(named, tasks=list(map(str, range(n)))), details, file_sizes=sizes))


def test_series_parallel_dags_get_an_order_of_least_peak() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        n = int(rng.integers(2, 11))
        arcs, _, _ = composed(rng, rng.permutation(n).tolist())
        if arcs:
            footprint = with_files(rng, arcs, n)
            order = exact_order(footprint)
            assert order is not None
            check_schedule(footprint.dag, order)
            assert footprint.peak(order) == least_peak(footprint) == footprint.peak(space_order(footprint))


@pytest.mark.parametrize("results", [True, False])
def test_trees_with_a_last_task_get_an_order_of_least_peak(results: bool) -> None:
    rng = np.random.default_rng(9)
    for _ in range(100):
        n = int(rng.integers(2, 12))
        arcs = [(v, int(rng.integers(v + 1, n))) for v in range(n - 1)]
        footprint = with_files(rng, arcs, n)
        if results:
            footprint = Footprint.of_results(footprint.dag, rng.integers(0, 12, n).tolist())
        order = exact_order(footprint)
        assert order is not None
        assert footprint.peak(order) == least_peak(footprint)


def test_other_dags_have_no_exact_order() -> None:
    assert exact_order(Footprint.of_results(Dag.from_arcs([("a", "c"), ("a", "d"), ("b", "d")]))) is None
    assert exact_order(Footprint.of_results(Dag.from_arcs([("a", "b"), ("a", "c")]))) is None


# The checker


def test_forged_certificates_are_refused() -> None:
    """A larger bound, or a flow changed in one place, is refused unless the claim is still at most what the flow proves."""
    rng = np.random.default_rng(3)
    refused = 0
    for case in range(200):
        flow = flow_of(case)
        footprint = Footprint.of(flow)
        bound = space_bound(footprint, space_order(footprint, "quick"), "quick").document()
        if not bound["cases"]:
            continue
        assert not space_holds(flow, bound | {"bytes": bound["bytes"] + 1})
        least = least_peak(footprint)
        for _ in range(15):
            forged = json.loads(json.dumps(bound))
            forge(rng, forged, flow.dag.labels)
            forged["bytes"] = least + int(rng.integers(1, 4))
            refused += not space_holds(flow, forged)
            assert not space_holds(flow, forged)
    assert refused > 2000


def forge(rng: np.random.Generator, bound: dict[str, Any], tasks: tuple[str, ...]) -> None:
    """Change some places of a certificate."""
    row: list[Any]
    for _ in range(int(rng.integers(1, 4))):
        case = bound["cases"][int(rng.integers(len(bound["cases"])))]
        rows = case["files"] + case["returned"]
        row = rows[int(rng.integers(len(rows)))] if rows else [tasks[0], tasks[0], 0]
        change = int(rng.integers(6))
        if change == 0:
            row[2] += int(rng.integers(1, 9))
        elif change == 1:
            row[1] = str(rng.choice(tasks))
        elif change == 2:
            case["task"] = str(rng.choice(tasks))
        elif change == 3:
            bound["first"] = not bound["first"]
        elif change == 4:
            case["returned"].append([str(rng.choice(tasks)), str(rng.choice(tasks)), int(rng.integers(9))])
        else:
            case["files"].append([*row[:2], int(rng.integers(9))])


def test_a_malformed_certificate_is_an_error() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]))
    case: dict[str, Any] = {"task": "b", "files": [["a", "b", 1]], "returned": []}
    assert space_holds(flow, {"bytes": 1, "first": True, "cases": [case]})
    faults: list[dict[str, Any]] = [{"task": "x"}, {"files": [["a", "b"]]}, {"files": [["a", "x", 1]]}]
    for wrong in faults:
        with pytest.raises(InputError):
            space_holds(flow, {"bytes": 1, "first": True, "cases": [case | wrong]})
    lies: list[dict[str, Any]] = [
        {"files": [["a", "b", -1]]},
        {"files": [["a", "a", 1]]},
        {"returned": [["a", "b", 1]]},
    ]
    for false in lies:
        assert not space_holds(flow, {"bytes": 1, "first": True, "cases": [case | false]})
    assert not space_holds(flow, {"bytes": 0, "first": True, "cases": [case, case]})
    assert not space_holds(flow, {"bytes": 1, "first": True, "cases": []})
    assert space_holds(flow, {"bytes": 0, "first": True, "cases": []})


def test_a_bound_on_results_in_memory_is_checked_with_their_sizes() -> None:
    dag = Dag.from_arcs([("a", "c"), ("b", "c")])
    bound = space_bound(Footprint.of_results(dag, [3, 1, 4]), dag.order)
    assert bound.bytes == 7
    assert space_holds(dag, bound.document(), {"a": 3, "b": 4, "c": 1})
    assert not space_holds(dag, bound.document(), {"a": 3, "b": 3, "c": 1})


# Real workflows


def test_real_workflows_have_a_bound_that_holds_below_every_order() -> None:
    rng = np.random.default_rng(1)
    for name, flow in real().items():
        footprint = Footprint.of(flow)
        order = space_order(footprint, "quick")
        bound = space_bound(footprint, order, "quick")
        assert bound.bytes <= footprint.peak(order), name
        for followed in (order, policy("fifo", flow).order()):
            assert all(bound.bytes <= played(footprint, followed, n, rng) for n in (1, 4, 64)), name
        assert space_holds(flow, bound.document()), name


# The policy


def test_the_policy_space_follows_the_order() -> None:
    flow = flow_of(5)
    assert policy("space", flow).order().tolist() == space_order(Footprint.of(flow)).tolist()
    assert "space" in POLICIES


def test_a_workflow_without_files_between_tasks_needs_nothing() -> None:
    footprint = Footprint.of(Workflow(Dag.from_arcs([], "ab")))
    bound = space_bound(footprint, space_order(footprint))
    assert (bound.bytes, bound.members, bound.document()["cases"]) == (0, (), [])
    assert isinstance(bound, SpaceBound)


def test_with_another_measure_the_order_is_no_worse_than_the_tasks_as_numbered() -> None:
    for case in range(60):
        footprint = Footprint.of(flow_of(case))
        terms = terms_of(footprint.dag, np.ones(len(footprint.dag)), 3)

        def on_three(order: Ints, footprint: Footprint = footprint, terms: Terms = terms) -> int:
            schedule = terms.listed(order)
            return footprint.peak_in_time(schedule.begin, schedule.end)

        order, own = space_order(footprint, "quick", on_three), as_numbered(footprint.dag)
        assert footprint.peak(order) <= footprint.peak(own)
        assert on_three(order) <= on_three(own)


@pytest.mark.parametrize("width", [2, 8, 30])
def test_the_last_of_all_branches_of_a_fork_proves_its_least_peak(width: int) -> None:
    branches = [f"b{i}" for i in range(width)]
    dag = Dag.from_parents({"fork": [], **{branch: ["fork"] for branch in branches}, "join": branches})
    footprint = Footprint.of_results(dag)
    bound = space_bound(footprint, dag.order)
    assert (bound.bytes, footprint.peak(dag.order), bound.first) == (width + 1, width + 1, False)
    assert space_holds(dag, bound.document(), dict.fromkeys(dag.tasks, 1))


def test_parents_that_depend_on_each_other_prove_nothing_false() -> None:
    dag = Dag.from_parents({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["a", "b", "c"]})
    footprint = Footprint.of_results(dag, [5, 3, 2, 1])
    assert space_bound(footprint, dag.order).bytes == least_peak(footprint) == 10
