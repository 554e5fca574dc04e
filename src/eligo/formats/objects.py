"""Workflows as objects of other libraries: networkx and rustworkx graphs, and Dask's graphs and collections.

Each library is imported only where an object of its own is given or asked for. From the graphs of networkx, attributes of
nodes that are called like the fields of a `Task`, and are of their kind, are taken too, and written back; rustworkx has
one object a node, which is the name.

Dask's keys may be tuples and numbers, and tasks have names: a key that is no string is named as Python prints it, and
`from_dask` returns the key of each name as well. A task's category is what Dask calls the group of its key: inc of
inc-1f3a. A collection's graph is taken as it is, before any optimisation; what it then runs may be fewer, larger tasks.

>>> flow, keys = from_dask({("x", 0): 1, ("x", 1): 2, "total": (sum, [("x", 0), ("x", 1)])})
>>> list(flow.dag.arcs()), keys["('x', 1)"]
([("('x', 0)", 'total'), ("('x', 1)", 'total')], ('x', 1))
>>> as_workflow({"boil": [], "mash": ["boil"]}).dag.sinks
('mash',)
"""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.workflow import DETAILS, Task, Workflow, dag_of

if TYPE_CHECKING:
    import networkx
    import rustworkx

#: What a graph of Dask's maps: keys to tasks.
DaskGraph = Mapping[Any, Any]


class FromDask(NamedTuple):
    """A workflow made of a graph of Dask's, and the key that each of its tasks has there."""

    flow: Workflow
    keys: dict[str, Hashable]


def as_workflow(source: object) -> Workflow:
    """The workflow that an object is, or describes.

    It may be a Workflow, a Dag, the path of a file in any format, a graph of networkx, rustworkx or Dask, a collection of
    Dask's, or a mapping from each task's name to the names of those that it needs.
    """
    if isinstance(source, Workflow):
        return source
    if isinstance(source, Dag):
        return Workflow(source)
    if isinstance(source, str | os.PathLike):
        from eligo.formats import read

        return read(cast("str | os.PathLike[str]", source))
    home = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "networkx" in home:
        return from_networkx(cast("networkx.DiGraph[Any]", source))
    if "rustworkx" in home:
        return from_rustworkx(cast("rustworkx.PyDiGraph[Any, Any]", source))
    if isinstance(source, Mapping) and _are_parents(source):
        return Workflow(Dag.from_parents(source))
    if isinstance(source, Mapping) or hasattr(type(source), "__dask_graph__"):
        return from_dask(source).flow
    raise InputError(
        f"{type(source).__name__} is no workflow: give a Workflow, a Dag, the path of a file, a graph of networkx,"
        " rustworkx or Dask, or a mapping from tasks to what they need"
    )


# networkx


def from_networkx(graph: "networkx.DiGraph[Any]") -> Workflow:
    """The workflow of a networkx DiGraph or MultiDiGraph; its nodes are named by `str`."""
    dag = Dag.from_networkx(graph)
    known = zip(dag.tasks, graph.nodes(data=True), strict=True)
    details = {name: task for name, (_, data) in known if (task := _task(name, data)) is not None}
    sizes = graph.graph.get("file_sizes", {})
    sizes = {f: n for f, n in sizes.items() if isinstance(f, str) and type(n) is int} if isinstance(sizes, dict) else {}
    title = graph.graph.get("name")
    return Workflow(dag, details, title if isinstance(title, str) and title else None, file_sizes=sizes)


def to_networkx(flow: Dag | Workflow) -> "networkx.DiGraph[str]":
    """The networkx DiGraph of a workflow, with what is known of each task as attributes of its node.

    >>> graph = to_networkx(Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", seconds=2.0)}))
    >>> graph.nodes["a"], list(graph.edges)
    ({'seconds': 2.0}, [('a', 'b')])
    """
    import networkx

    flow = flow if isinstance(flow, Workflow) else Workflow(flow)
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from((name, flow.task(name).details()) for name in flow.dag.tasks)
    graph.add_edges_from(flow.dag.arcs())
    if flow.name is not None:
        graph.graph["name"] = flow.name
    if flow.file_sizes:
        graph.graph["file_sizes"] = dict(flow.file_sizes)
    return graph


def _task(name: str, data: Mapping[Any, Any]) -> Task | None:
    known = {key: data[key] for key in DETAILS if key in data and _FITS[key](data[key])}
    return Task(name=name, **known) if known else None


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _are_words(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(word, str) for word in value)


_FITS: dict[str, Callable[[Any], object]] = {
    "command": lambda value: isinstance(value, str) or (_are_words(value) and value),
    "inputs": _are_words,
    "outputs": _are_words,
    "seconds": _is_amount,
    "cores": _is_amount,
    "memory": lambda value: type(value) is int and value >= 0,
    "category": lambda value: isinstance(value, str),
    "priority": lambda value: type(value) is int,
}


# rustworkx


def from_rustworkx(graph: "rustworkx.PyDiGraph[Any, Any]") -> Workflow:
    """The workflow of a rustworkx PyDiGraph or PyDAG; a task is named by its payload where all are strings, else by index."""
    if all(base.__name__ != "PyDiGraph" for base in type(graph).__mro__):
        raise InputError("an undirected graph has no parents and children: give a PyDiGraph")
    return Workflow(Dag.from_rustworkx(graph))


def to_rustworkx(flow: Dag | Workflow) -> "rustworkx.PyDiGraph[str, None]":
    """The rustworkx PyDiGraph of a workflow: task i is node i, and the node's payload is its name."""
    import rustworkx

    dag = dag_of(flow)
    graph: rustworkx.PyDiGraph[str, None] = rustworkx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(dag.tasks)
    graph.add_edges_from_no_data(list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True)))
    return graph


# Dask


def from_dask(source: object) -> FromDask:
    """The workflow of a Dask graph (a dict or HighLevelGraph) or collection, and the key of each of its tasks."""
    from dask.core import get_dependencies
    from dask.utils import key_split

    graph = _dask_graph(source)
    index = {key: i for i, key in enumerate(graph)}
    needs = [[index[key] for key in get_dependencies(graph, task=task)] for task in graph.values()]
    tails = np.array([parent for parents in needs for parent in sorted(parents)], np.int32)
    heads = np.repeat(np.arange(len(needs), dtype=np.int32), list(map(len, needs)))
    names = named(graph)
    dag = Dag.from_arrays(len(names), tails, heads, names)
    details = {name: Task(name=name, category=key_split(key)) for name, key in zip(names, graph, strict=True)}
    return FromDask(Workflow(dag, details), dict(zip(names, graph, strict=True)))


def named(keys: Iterable[Hashable]) -> Sequence[str]:
    """A name for each key: the key if it is a string, else as Python prints it; all as Python prints them if two would agree.

    >>> named(["a", ("a", 1)]), named(["1", 1])
    (['a', "('a', 1)"], ["'1'", '1'])
    """
    keys = list(keys)
    names = [str(key) for key in keys]
    if len(set(names)) == len(names) and all(map(str.isprintable, names)):
        return names
    return [repr(key) for key in keys]


def _dask_graph(source: object) -> DaskGraph:
    graph = source if isinstance(source, Mapping) else cast(Any, source).__dask_graph__()
    if not isinstance(graph, Mapping):
        raise InputError(f"{type(source).__name__} has no graph of Dask's")
    return dict(graph)  # which a HighLevelGraph makes from its layers once, not for every key


def _are_parents(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping is from names to groups of names."""
    groups = (list, tuple, set, frozenset)
    return all(
        isinstance(name, str) and isinstance(needs, groups) and all(isinstance(need, str) for need in needs)
        for name, needs in source.items()
    )
