"""Dask's order: the ranks that `dask.order` gives the tasks of a graph. Needs Dask."""

from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.rows import Ints


def dask_rank(dag: Dag) -> Ints:
    """The rank of every task: Dask would rather run the smaller one."""
    try:
        from dask.order import order
    except ImportError:
        raise InputError("the scheduler 'dask' needs Dask: pip install dask") from None
    ptr, parent = dag.parent_ptr.tolist(), dag.parent.tolist()
    graph: dict[Any, Any] = {v: (sum, parent[ptr[v] : ptr[v + 1]]) for v in range(len(dag))}
    ranks = order(graph)
    return np.array([ranks[v] for v in range(len(dag))], np.int32)
