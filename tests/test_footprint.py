"""How many results an order keeps in memory, against one that keeps them in a set."""

import numpy as np

from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag
from eligo.theory.eligibility import peak_results


def slow_peak(dag: Dag, order: tuple[str, ...]) -> int:
    alive: set[str] = set()
    done: set[str] = set()
    peak = 0
    for task in order:
        alive.add(task)
        peak = max(peak, len(alive))
        done.add(task)
        alive -= {other for other in alive if dag.children(other) and set(dag.children(other)) <= done}
    return peak


def test_the_peak_is_that_of_a_set_of_results() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        dag = random_small_dag(rng, 14)
        assert peak_results(dag, dag.order) == slow_peak(dag, dag.named(dag.order))
        ready = [task for task in dag.tasks if not dag.parents(task)]
        order: list[str] = []
        while ready:
            order.append(ready.pop(int(rng.integers(len(ready)))))
            ready += [task for task in dag.children(order[-1]) if set(dag.parents(task)) <= set(order)]
        assert peak_results(dag, order) == slow_peak(dag, tuple(order))


def test_a_tree_by_levels_and_branch_by_branch() -> None:
    tree = families.in_tree(9)
    assert peak_results(tree, tree.order) == 2**8 + 1
    assert peak_results(Dag.from_arcs([]), []) == 0
