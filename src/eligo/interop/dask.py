"""Dask's graphs and collections: a key is a task, and its category what Dask calls the key's group: inc of inc-1f3a.

A collection's graph is taken as it is, before any optimisation; what Dask then runs may be fewer, larger tasks.

>>> flow = from_dask({("x", 0): 1, ("x", 1): 2, "total": (sum, [("x", 0), ("x", 1)])})
>>> list(flow.dag.arcs())
[(('x', 0), 'total'), (('x', 1), 'total')]
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.rows import Ints
from eligo.workflow import Task, Workflow


def from_dask(source: object) -> Workflow:
    """The workflow of a Dask graph (a dict or HighLevelGraph) or collection."""
    dask, graph = _dask("a graph of Dask's"), _graph(source)
    index = {key: i for i, key in enumerate(graph)}
    needs = [[index[key] for key in dask.core.get_dependencies(graph, task=task)] for task in graph.values()]
    tails = np.array([parent for parents in needs for parent in sorted(parents)], np.int32)
    heads = np.repeat(np.arange(len(needs), dtype=np.int32), list(map(len, needs)))
    details = {key: Task(name=key, category=dask.utils.key_split(key)) for key in graph}
    return Workflow(Dag.from_arrays(len(graph), tails, heads, list(graph)), details)


def dask_rank(dag: Dag) -> Ints:
    """The rank that `dask.order` gives every task of a dag: Dask would rather run the smaller one."""
    dask = _dask("the scheduler 'dask'")
    ptr, parent = dag.parent_ptr.tolist(), dag.parent.tolist()
    ranks = dask.order.order({v: (sum, parent[ptr[v] : ptr[v + 1]]) for v in range(len(dag))})
    return np.array([ranks[v] for v in range(len(dag))], np.int32)


def _dask(what: str) -> ModuleType:
    """Dask with the parts of it that are used here, or what to do without it."""
    try:
        import dask
        import dask.core
        import dask.order
        import dask.utils
    except ImportError:
        raise InputError(f"{what} needs Dask: pip install dask") from None
    return dask


def _graph(source: object) -> Mapping[Any, Any]:
    graph = source if isinstance(source, Mapping) else cast(Any, source).__dask_graph__()
    if not isinstance(graph, Mapping):
        raise InputError(f"{type(source).__name__} has no graph of Dask's")
    return dict(graph)  # which a HighLevelGraph makes from its layers once, not for every key


def dask_nodes(source: object) -> dict[Any, Any]:
    """What each key of a graph runs: a function of a mapping that has what it depends on."""
    _dask("a graph of Dask's")
    from dask._task_spec import convert_legacy_graph

    graph = convert_legacy_graph(_graph(source))
    if not any(callable(getattr(node, "func", None)) for node in graph.values()):
        raise InputError("nothing in this graph can be run")
    return dict(graph)
