"""How many results an order keeps in memory at once.

A result exists from when its task runs until the last of its children has run. The results of sinks are what the workflow is
for: they stay. An order that makes many tasks ready early has many results waiting to be used.
"""

import numpy as np

from eligo.dag import Dag
from eligo.rows import places
from eligo.theory.eligibility import Order, order_indices


def peak_results(dag: Dag, order: Order) -> int:
    """The largest number of results that exist at once, where one task runs at a time in this order; in linear time.

    A task's parents still exist when its own result comes to be.

    >>> tree = Dag.from_arcs([("a", "ab"), ("b", "ab"), ("c", "cd"), ("d", "cd"), ("ab", "all"), ("cd", "all")])
    >>> peak_results(tree, ["a", "b", "ab", "c", "d", "cd", "all"])
    4
    >>> peak_results(tree, ["a", "b", "c", "d", "ab", "cd", "all"])
    5
    """
    n = len(dag)
    position = places(n, order_indices(dag, order))
    last_use = np.full(n, n)
    parents = np.flatnonzero(dag.outdegree)
    if len(parents):
        last_use[parents] = np.maximum.reduceat(position[dag.child], dag.child_ptr[parents])
    used_up = np.cumsum(np.bincount(last_use, minlength=n + 1))  # by step: the results whose last child has run
    produced = np.arange(1, n + 1)
    return int((produced - np.concatenate([[0], used_up[: n - 1]])[:n]).max(initial=0))
