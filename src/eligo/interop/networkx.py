"""Graphs of networkx: each node is a task; node attributes named like the fields of a `Task` are its details.

>>> import networkx
>>> list(from_networkx(networkx.DiGraph([((1, 2), "x"), (3, "x")])).dag.arcs())
[((1, 2), 'x'), (3, 'x')]
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.names import LABEL, Name
from eligo.workflow import DETAILS, Task, Workflow

if TYPE_CHECKING:
    import networkx


def from_networkx(graph: "networkx.DiGraph[Any]") -> Workflow:
    """The workflow of a networkx DiGraph or MultiDiGraph."""
    if not graph.is_directed():
        raise InputError("an undirected graph does not say which task depends on which (use a DiGraph)")
    arcs = ((u, v) for u, v, *_ in graph.edges())
    dag = Dag.from_arcs(arcs, tasks=graph.nodes)
    details = {node: task for node, data in graph.nodes(data=True) if (task := _task(node, data)) is not None}
    sizes = graph.graph.get("file_sizes", {})
    sizes = {f: n for f, n in sizes.items() if isinstance(f, str) and type(n) is int} if isinstance(sizes, dict) else {}
    title = graph.graph.get("name")
    return Workflow(dag, details, title if isinstance(title, str) and title else None, file_sizes=sizes)


def to_networkx(flow: Workflow | Dag) -> "networkx.DiGraph[Any]":
    """The networkx DiGraph of a workflow, with each task's details as attributes of its node.

    >>> graph = to_networkx(Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", seconds=2.0)}))
    >>> graph.nodes["a"], list(graph.edges)
    ({'seconds': 2.0}, [('a', 'b')])
    """
    import networkx

    flow = flow if isinstance(flow, Workflow) else Workflow(flow)
    graph: networkx.DiGraph[Any] = networkx.DiGraph()
    graph.add_nodes_from((name, flow.task(name).details()) for name in flow.dag.tasks)
    graph.add_edges_from(flow.dag.arcs())
    if flow.name is not None:
        graph.graph["name"] = flow.name
    if flow.file_sizes:
        graph.graph["file_sizes"] = dict(flow.file_sizes)
    return graph


def _task(name: Name, data: Mapping[Any, Any]) -> Task | None:
    details = {key: data[key] for key in DETAILS if key in data and _FITS[key](data[key])}
    return Task(name=name, **details) if details else None


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _are_words(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(word, str) for word in value)


_FITS: dict[str, Callable[[Any], object]] = {
    "command": lambda value: isinstance(value, str) or (_are_words(value) and value), "inputs": _are_words,
    "outputs": _are_words, "seconds": _is_amount, "cores": _is_amount,
    "memory": lambda value: type(value) is int and value >= 0,
    "labels": lambda value: _are_words(value) and all(re.fullmatch(LABEL, word) for word in value),
    "category": lambda value: isinstance(value, str), "priority": lambda value: type(value) is int,
}  # fmt: skip
