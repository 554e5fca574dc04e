"""The policy `space` keeps no more results in memory than dask.order, with one task at a time and with four."""

from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("distributed") is None:
    pytest.skip('NOT TESTED: the plug-in for Dask needs pip install "eligo[dask]"', allow_module_level=True)

import dask.order
import numpy as np

from benchmarks.dask_graphs import KINDS, Needs, graph_of
from benchmarks.dask_memory import means_by_month, needs_of, shuffle, tree_sum
from conftest import random_small_dag
from eligo.dag import Dag
from eligo.interop.dask import from_dask
from eligo.plugins.dask import order_of
from eligo.workflow import Workflow


def numbered(graph: dict[Any, Any]) -> Dag:
    """The dag of a graph, its tasks numbered by dask.order."""
    place = dask.order.order(graph)
    return from_dask({key: graph[key] for key in sorted(graph, key=place.__getitem__)}).dag


def results_at_once(dag: Dag, order: tuple[object, ...], workers: int) -> int:
    """The most results that exist at once if the first ready tasks run together, round by round."""
    waiting, done, most = list(order), set[object](), 0
    while waiting:
        running = [task for task in waiting if done.issuperset(dag.parents(task))][:workers]
        waiting = [task for task in waiting if task not in running]
        there = [task for task in [*done, *running] if dag.children(task) and not done.issuperset(dag.children(task))]
        most = max(most, len(there))
        done.update(running)
    return most


def assert_no_worse(graph: dict[Any, Any]) -> None:
    dag = numbered(graph)
    order = order_of(Workflow(dag), "space")
    for workers in (1, 4):
        assert results_at_once(dag, order, workers) <= results_at_once(dag, dag.tasks, workers)


@pytest.mark.parametrize("kind", KINDS)
def test_space_is_no_worse_than_dask_on_graphs_that_are_hard_to_order(kind: str) -> None:
    build, size = KINDS[kind]
    assert_no_worse(graph_of(build(*size)))


def test_space_is_no_worse_than_dask_on_graphs_of_collections() -> None:
    for collection in (tree_sum(64), means_by_month(2), *shuffle(5)[:1]):
        assert_no_worse(needs_of(collection))


def test_space_is_no_worse_than_dask_on_random_graphs() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        dag = random_small_dag(rng, 20)
        needs: Needs = {label: list(map(str, dag.parents(label))) for label in map(str, dag.tasks)}
        assert_no_worse(graph_of(needs))
