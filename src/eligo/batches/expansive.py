"""Expansive dags: the batch of the tasks with the most private children, fast and within a proved factor.

In an *expansive* residual every eligible task v has phi(v) >= 2 private sinks, which miss nobody else, and at most phi(v)
shared ones. The r tasks of largest phi then gain at least half of what the best r gain [1]_, where gain is the change in the
number of eligible tasks. Proof: let S be the sum of the r largest phi, so S >= 2r. They gain at least S - r. A shared sink
misses two tasks at least, so any r tasks gain at most S + S/2 - r, which is at most 2 (S - r). The factor is tight: tasks in
pairs that share two sinks, phi = 2. The paper proves 4 for phi as counted in the whole dag, executed parents included; that
one is within 3, and no better: where the other parents of shared sinks are executed already, 1 is gained instead of 3.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing, section 6.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.rows import Ints

Counts = NDArray[np.int64]


def private_children(dag: Dag) -> Counts:
    """For every task, how many of its children have no other parent: phi.

    >>> private_children(Dag.from_arcs([("a", "x"), ("a", "y"), ("b", "y")], tasks="abxy")).tolist()
    [1, 0, 0, 0]
    """
    sole = dag.indegree[dag.child] == 1
    return np.bincount(dag.tails, sole, minlength=len(dag)).astype(np.int64)


def is_expansive(residual: Dag) -> bool:
    """Whether each source of a bipartite dag has two private children or more, and at most as many others.

    >>> from eligo.families import expansive_dag, w_dag
    >>> is_expansive(expansive_dag(5, seed=1)), is_expansive(w_dag(5, 2))
    (True, False)
    """
    sources = residual.outdegree > 0
    private = private_children(residual)[sources]
    return bool((private >= 2).all() and (residual.outdegree[sources] - private <= private).all())


def largest(scores: Counts, size: int) -> Ints:
    """The places of that many largest scores, ascending, earlier ones first among equals: a selection, not a sort.

    >>> largest(np.array([2, 5, 2, 9, 2]), 3).tolist()
    [0, 1, 3]
    """
    n = len(scores)
    if size >= n:
        return np.arange(n, dtype=np.int32)
    keys = scores * n - np.arange(n)
    return np.sort(np.argpartition(-keys, size)[:size]).astype(np.int32) if size else np.empty(0, np.int32)
