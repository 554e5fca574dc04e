"""Python functions as tasks: what is run of a graph, a table of functions, or a graph of Dask's."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.engines import Function
from eligo.errors import InputError, shorten
from eligo.names import Name
from eligo.workflow import Workflow

#: what a task does, from what those before it returned
FunctionFor = Callable[[Name, Mapping[Name, Any]], Function]


class Callables(NamedTuple):
    """A workflow whose tasks are functions."""

    flow: Workflow
    work: FunctionFor


def callables_of(graph: object, function: Callable[..., Any] | None) -> Callables | None:
    """The functions of a graph: *function* of each task, or the graph's own; None where it has commands instead."""
    if function is not None:
        if not callable(function):
            raise InputError(f"what is run for every task is a function, and {shorten(repr(function))} is none")
        return Callables(as_workflow(graph), lambda task, values: Function(function, (task,)))
    if _has_functions(graph):
        return _table(graph)  # type: ignore[arg-type]
    flow = as_workflow(graph)
    if any(task.command for task in flow.details.values()):
        return None
    return _of_dask(graph, flow)


def _has_functions(graph: object) -> bool:
    if not isinstance(graph, Mapping) or not graph:
        return False
    return all(isinstance(pair, tuple) and len(pair) == 2 and callable(pair[0]) for pair in graph.values()) and all(
        isinstance(pair[1], list | tuple | set | frozenset) and all(parent in graph for parent in pair[1])
        for pair in graph.values()
    )


def _table(graph: Mapping[Name, tuple[Callable[..., Any], list[Name]]]) -> Callables:
    """{task: (function, parents)}: each function gets what its parents returned, in their order."""
    flow = Workflow(Dag.from_parents({task: list(parents) for task, (_, parents) in graph.items()}))
    needs = {task: tuple(parents) for task, (_, parents) in graph.items()}

    def work(task: Name, values: Mapping[Name, Any]) -> Function:
        return Function(graph[task][0], tuple(values[parent] for parent in needs[task]))

    return Callables(flow, work)


def _of_dask(graph: object, flow: Workflow) -> Callables | None:
    if not (isinstance(graph, Mapping) or hasattr(type(graph), "__dask_graph__")):
        return None
    try:
        from eligo.interop.dask import dask_nodes

        nodes = dask_nodes(graph)
    except InputError:
        return None

    def work(task: Name, values: Mapping[Name, Any]) -> Function:
        return Function(nodes[task], ({key: values[key] for key in nodes[task].dependencies},))

    return Callables(flow, work)
