"""Graphs of rustworkx: a task is named by its node's payload if all payloads are hashable and distinct, else by its index."""

from typing import TYPE_CHECKING, Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.names import Name
from eligo.rows import places
from eligo.workflow import Workflow

if TYPE_CHECKING:
    import rustworkx


def from_rustworkx(graph: "rustworkx.PyDiGraph[Any, Any]") -> Workflow:
    """The workflow of a rustworkx PyDiGraph or PyDAG."""
    if all(base.__name__ != "PyDiGraph" for base in type(graph).__mro__):
        raise InputError("an undirected graph does not say which task depends on which (use a PyDiGraph)")
    indices = list(graph.node_indices())
    place = places(max(indices, default=-1) + 1, indices)
    ends = np.array(graph.edge_list(), np.int64).reshape(-1, 2)
    names = _distinct(graph.nodes()) or indices
    return Workflow(Dag.from_arrays(len(indices), place[ends[:, 0]], place[ends[:, 1]], names))


def _distinct(payloads: list[Any]) -> list[Name] | None:
    """The payloads if all are hashable and distinct, else None."""
    try:
        return payloads if len(set(payloads)) == len(payloads) else None
    except TypeError:
        return None


def to_rustworkx(flow: Workflow | Dag) -> "rustworkx.PyDiGraph[Any, None]":
    """The rustworkx PyDiGraph of a workflow: task i is node i, and the node's payload is the task."""
    import rustworkx

    dag = flow.dag if isinstance(flow, Workflow) else flow
    graph: rustworkx.PyDiGraph[Any, None] = rustworkx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(dag.tasks)
    graph.add_edges_from_no_data(list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True)))
    return graph
