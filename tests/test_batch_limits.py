"""Batches that a server chooses while its clients wait: what the solvers may begin with, and the processor time of it all."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eligo import Batches, Dag, Execution
from eligo.batches import best, component_solver
from eligo.batches.component_solver import BRIEF, FULL, Budget
from eligo.deciding.work import Clock
from eligo.server.schema import ResultWords
from eligo.theory.subsets import Subsets
from service_parts import Scene, flow_of

LONGEST = 0.045  # seconds of processor time: 20 ms are promised, and others may use the processor's caches


def bipartite(sources: int, sinks: int, degree: int) -> dict[str, list[str]]:
    """Tasks each of which waits for some of the first ones."""
    rng = np.random.default_rng(26)
    parents: dict[str, list[str]] = {f"s{i}": [] for i in range(sources)}
    for i in range(sinks):
        parents[f"t{i}"] = [f"s{j}" for j in rng.choice(sources, degree, replace=False)]
    return parents


def layered(layers: int, width: int, degree: int) -> dict[str, list[str]]:
    """Layers of tasks, each of which waits for some of the layer above."""
    rng = np.random.default_rng(26)
    return {
        f"t{layer}-{i}": [f"t{layer - 1}-{j}" for j in rng.choice(width, degree, replace=False)] if layer else []
        for layer in range(layers)
        for i in range(width)
    }


def tree(tasks: int) -> dict[str, list[str]]:
    """A tree of two layers without a name."""
    rng, lower = np.random.default_rng(26), [False]
    parents: dict[str, list[str]] = {f"t{i}": [] for i in range(tasks)}
    for i in range(1, tasks):
        j = int(rng.integers(i))
        lower.append(not lower[j])
        child, parent = (i, j) if lower[i] else (j, i)
        parents[f"t{child}"].append(f"t{parent}")
    return parents


SHAPES: dict[str, Callable[[], dict[str, list[str]]]] = {
    "bipartite": lambda: bipartite(200, 800, 3),
    "few sources": lambda: bipartite(18, 200, 5),
    "few sinks": lambda: bipartite(200, 18, 30),
    "layers": lambda: layered(5, 80, 3),
    "twenty sinks": lambda: bipartite(980, 20, 300),
    "tree": lambda: tree(600),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_solver_begins_with_a_large_component_on_a_server(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    enumerated, trees, of, build = [0], [0], Subsets.of, component_solver.TreeBatches

    def note_items(dag: Dag, most: int) -> Any:
        subsets = of(dag, most)
        enumerated.append(len(subsets) if subsets is not None else 0)
        return subsets

    def note_tree(dag: Dag, limit: int) -> Any:
        trees.append(len(dag))
        return build(dag, limit)

    monkeypatch.setattr(Subsets, "of", note_items)
    monkeypatch.setattr(component_solver, "TreeBatches", note_tree)
    monkeypatch.setattr(best, "solve_program", lambda *_: pytest.fail("an integer program takes too long"))
    play(SHAPES[shape](), 1, 400)
    play(SHAPES[shape](), 20, 20)
    assert max(enumerated) <= BRIEF.items
    assert max(trees) <= BRIEF.tree_tasks


@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize("shape", ["bipartite", "layers", "twenty sinks"])
def test_a_batch_takes_little_processor_time_on_a_server(shape: str, size: int) -> None:
    longest = min(play(SHAPES[shape](), size, 100) for _ in range(2))
    assert longest < LONGEST


def play(parents: dict[str, list[str]], size: int, rounds: int) -> float:
    """Execute a workflow in batches; the longest time in which tasks were handed out."""
    scene = Scene(first_quota=1e6, most_quota=1e6)
    workflow, client, longest = scene.submit(flow_of(parents), policy="batch-optimal"), scene.enrol(), 0.0
    for _ in range(rounds):
        ticket, begin = scene.ask(client, size=size), time.thread_time()
        scene.service.serve(scene.now)
        longest = max(longest, time.thread_time() - begin)
        scene.tell(client, *(ResultWords(lease.id, "done") for grant in ticket.grants for lease in grant.leases))
        if scene.state(workflow) == "done":
            break
    return longest


def test_time_that_is_up_leaves_components_to_the_greedy_choice() -> None:
    dag = Dag.from_arrays(9, [0, 0, 1, 1, 2, 3, 3, 4, 2], [5, 6, 5, 7, 6, 7, 8, 8, 8])
    for limits, method in ((FULL, "subsets"), (BRIEF, "greedy")):
        found = Batches(Execution(dag), limits).best(2, seconds=0.0)
        assert found.method == method
        assert found.eligible_after <= found.upper_bound


def test_a_budget_allows_less_once_time_is_up() -> None:
    early, late = Budget(Clock(), BRIEF), Budget(Clock(0.0), BRIEF)
    assert (early.items, late.items) == (12, 0)
    assert early.allows_tree(150, 75, 10)
    assert not early.allows_tree(151, 75, 10)
    assert not late.allows_tree(3, 2, 1)
    assert not Budget(Clock()).allows_tree(20_000, 10_000, 1_001)
