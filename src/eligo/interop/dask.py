"""Dask: its graphs and collections as workflows, and its cluster as an executor.

A key is a task. Its category is what Dask calls the key's group: `inc` for `inc-1f3a`. A collection's graph is read as it
is, before any optimisation; what Dask then runs may be fewer, larger tasks.

>>> flow = from_dask({("x", 0): 1, ("x", 1): 2, "total": (sum, [("x", 0), ("x", 1)])})
>>> list(flow.dag.arcs())
[(('x', 0), 'total'), (('x', 1), 'total')]
"""

import importlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError, UnknownTaskError
from eligo.rows import Ints
from eligo.workflow import Task, Workflow

PATIENCE = "20s"  # time limit for the scheduler's first answer


@dataclass(frozen=True, slots=True)
class DaskWorkflow(Workflow):
    """A Dask graph as a workflow: `nodes` has what each key runs, a function of a mapping with the results it depends on."""

    nodes: Mapping[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    #: the keys whose results the collection consists of
    results: frozenset[Any] = field(default=frozenset(), compare=False, repr=False)


def from_dask(source: object) -> DaskWorkflow:
    """The workflow of a Dask collection or graph: a HighLevelGraph, or a dict of tasks of any kind, tuples included.

    `eligo.plan` and `eligo.run` take it. As in Dask, a string in a tuple that is not a key is data.
    """
    dask, graph = _dask("a Dask graph"), _graph(source)
    nodes, index = _nodes(graph), {key: i for i, key in enumerate(graph)}
    needs = [_numbers(key, nodes, index) for key in graph]
    tails = np.array([parent for parents in needs for parent in parents], np.int32)
    heads = np.repeat(np.arange(len(needs), dtype=np.int32), list(map(len, needs)))
    details = {key: Task(name=key, category=dask.utils.key_split(key)) for key in graph}
    keys = frozenset(dask.core.flatten(getattr(source, "__dask_keys__", list)()))
    dag = Dag.from_arrays(len(graph), tails, heads, list(graph))
    return DaskWorkflow(dag, details, nodes=nodes, results=keys)


def _nodes(graph: Mapping[Any, Any]) -> dict[Any, Any]:
    """The tasks of a graph as Dask's own Task objects."""
    from dask._task_spec import convert_legacy_graph

    return dict(convert_legacy_graph(graph))


def digest_of_node(node: object) -> str:
    """A digest of what a key runs, by Dask's own rules."""
    from dask.base import tokenize

    return str(tokenize(node))


def _numbers(key: Any, nodes: Mapping[Any, Any], index: Mapping[Any, int]) -> list[int]:
    """The numbers of the keys that a key depends on; Dask leaves out a key whose value is itself."""
    needs = nodes[key].dependencies if key in nodes else [key]
    try:
        return sorted(index[parent] for parent in needs)
    except KeyError as error:
        raise UnknownTaskError(error.args[0], key, index) from None


def dask_rank(dag: Dag) -> Ints:
    """The rank that `dask.order` gives every task of a dag; Dask runs smaller ranks first."""
    dask = _dask("the policy 'dask'")
    ptr, parent = dag.parent_ptr.tolist(), dag.parent.tolist()
    ranks = dask.order.order({v: (sum, parent[ptr[v] : ptr[v + 1]]) for v in range(len(dag))})
    return np.array([ranks[v] for v in range(len(dag))], np.int32)


def _dask(what: str) -> ModuleType:
    """Dask with the submodules that are used here; raises if it is not installed."""
    try:
        import dask
        import dask.core
        import dask.order
        import dask.utils
    except ImportError:
        raise InputError(f"{what} needs Dask (pip install dask)") from None
    return dask


def _graph(source: object) -> Mapping[Any, Any]:
    graph = source if isinstance(source, Mapping) else getattr(source, "__dask_graph__", lambda: None)()
    if not isinstance(graph, Mapping):
        raise InputError(f"expected a Dask graph, got {type(source).__name__}")
    return dict(graph)  # which a HighLevelGraph makes from its layers once, not for every key


@contextmanager
def dask_cluster(address: str) -> Iterator[Executor]:
    """The cluster whose scheduler listens at HOST:PORT; files must have the same names there as here."""
    try:
        distributed = importlib.import_module("distributed")
    except ModuleNotFoundError:
        raise InputError("a Dask cluster needs dask.distributed (pip install 'dask[distributed]')") from None
    try:
        client = distributed.Client(f"tcp://{address}", timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        executor: Executor = client.get_executor(pure=False)
        yield executor
