"""The bytes that exist at once in an order, against a set of files that is kept step by step."""

import numpy as np
import pytest

from conftest import random_small_dag
from eligo.dag import Dag
from eligo.space.footprint import Footprint
from eligo.workflow import Task, Workflow


def random_order(rng: np.random.Generator, dag: Dag) -> tuple[str, ...]:
    order: list[str] = []
    while len(order) < len(dag):
        ready = [t for t in dag.tasks if t not in order and set(dag.parents(t)) <= set(order)]
        order.append(ready[int(rng.integers(len(ready)))])
    return tuple(order)


def random_files(rng: np.random.Generator, dag: Dag) -> Workflow:
    """A workflow in which some arcs carry files, of which some are read by several tasks."""
    inputs: dict[str, list[str]] = {task: [] for task in dag.tasks}
    outputs: dict[str, list[str]] = {task: [] for task in dag.tasks}
    sizes = {}
    for task in dag.tasks:
        for number in range(int(rng.integers(3))):
            file = f"{task}.{number}"
            outputs[task].append(file)
            sizes[file] = int(rng.integers(9))
            for child in dag.children(task):
                if rng.random() < 0.6:
                    inputs[child].append(file)
    details = {t: Task(name=t, inputs=tuple(inputs[t]), outputs=tuple(outputs[t])) for t in dag.tasks}
    return Workflow(dag, details, file_sizes=sizes)


def slow_peak(flow: Workflow, order: tuple[str, ...]) -> int:
    """The peak of an order, by looking at every file after every step."""
    writer = {file: t for t in flow.dag.tasks for file in flow.task(t).outputs}
    readers = {file: {t for t in flow.dag.tasks if file in flow.task(t).inputs} for file in writer}
    done: set[str] = set()
    peak = 0
    for task in order:
        there = [f for f in writer if writer[f] in {*done, task} and readers[f] and not readers[f] <= done]
        peak = max(peak, sum(flow.file_sizes[file] for file in there))
        done.add(task)
    return peak


def test_the_peak_is_that_of_a_set_of_files() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        flow = random_files(rng, random_small_dag(rng, 12))
        if not any(flow.task(t).inputs for t in flow.dag.tasks):
            continue
        footprint, order = Footprint.of(flow), random_order(rng, flow.dag)
        assert footprint.level == "sizes"
        assert footprint.peak(order) == slow_peak(flow, order)
        begin = np.argsort(flow.dag.indices(order)).astype(np.float64)
        assert footprint.peak_in_time(begin, begin + 1.0) == slow_peak(flow, order)


def test_a_file_read_by_no_later_task_is_a_result() -> None:
    dag = Dag.from_arcs([("a", "b")], tasks=["a", "b", "c"])
    details = {
        "a": Task(name="a", outputs=("x", "y")),
        "b": Task(name="b", inputs=("x", "in")),
        "c": Task(name="c", inputs=("y",)),
    }
    footprint = Footprint.of(Workflow(dag, details, file_sizes={"x": 5, "y": 7, "in": 3}))
    assert (footprint.peak("abc"), footprint.inputs) == (5, 3)


@pytest.mark.parametrize(
    ("sizes", "level", "peak"),
    [({"a.bam": 4, "b.bam": 6}, "sizes", 10), ({"a.bam": 4}, "kinds", 8), ({"other": 4}, "files", 2), ({}, "files", 2)],
)
def test_unknown_sizes_are_those_of_the_kind_or_one(sizes: dict[str, int], level: str, peak: int) -> None:
    dag = Dag.from_parents({"sort_1": [], "sort_2": [], "merge": ["sort_1", "sort_2"]})
    details = {
        "sort_1": Task(name="sort_1", outputs=("a.bam",)),
        "sort_2": Task(name="sort_2", outputs=("b.bam",)),
        "merge": Task(name="merge", inputs=("a.bam", "b.bam")),
    }
    footprint = Footprint.of(Workflow(dag, details, file_sizes=sizes))
    assert (footprint.level, footprint.peak(dag.tasks)) == (level, peak)


def test_files_with_the_same_readers_count_as_one() -> None:
    dag = Dag.from_arcs([("a", "b")])
    details = {"a": Task(name="a", outputs=("x", "y")), "b": Task(name="b", inputs=("y", "x"))}
    footprint = Footprint.of(Workflow(dag, details, file_sizes={"x": 5, "y": 7}))
    assert (len(footprint), footprint.names, footprint.sizes.tolist()) == (1, (("x", "y"),), [12])


def test_results_in_memory_and_workflows_without_tasks() -> None:
    dag = Dag.from_arcs([("a", "b"), ("a", "c")])
    assert Footprint.of_results(dag, [3, 1, 1]).peak("abc") == 3
    assert Footprint.of(Workflow(Dag.from_arcs([]))).peak([]) == 0
