"""Python functions as tasks: from a graph, a table of functions, or a graph of Dask's."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from eligo.border import FunctionCall, as_workflow, function_table
from eligo.engines import Function
from eligo.errors import InputError, shorten
from eligo.interop.dask import DaskWorkflow
from eligo.names import Name
from eligo.workflow import Workflow

#: returns the function of a task, given the values of its parents
FunctionFor = Callable[[Name, Mapping[Name, Any]], Function]


class Callables(NamedTuple):
    """A workflow whose tasks are functions."""

    flow: Workflow
    work: FunctionFor
    #: the tasks whose values each task uses, if any
    takes: Mapping[Name, Collection[Name]]
    #: the tasks whose values the user wants, whether or not other tasks use them
    results: frozenset[Name] = frozenset()


def callables_of(graph: object, function: Callable[..., Any] | None) -> Callables | None:
    """The functions of a graph: *function* for each task, or the graph's own; None if it has commands."""
    flow = as_workflow(graph)
    nodes = flow.nodes if isinstance(flow, DaskWorkflow) else None
    table = function_table(graph) if nodes is None else None
    if function is not None:
        _check_function(function, has_own=table is not None or nodes is not None)
        return Callables(flow, lambda task, values: Function(function, (task,)), {})
    if nodes is not None:
        takes = {key: node.dependencies for key, node in nodes.items()}
        results = flow.results if isinstance(flow, DaskWorkflow) else frozenset()
        return Callables(flow, lambda task, values: _of_dask(nodes[task], values), takes, results)
    if table is not None:
        parents = {task: call.parents for task, call in table.items()}
        return Callables(flow, lambda task, values: _bind_arguments(table[task], values), parents)
    return None


def _check_function(function: object, *, has_own: bool) -> None:
    if not callable(function):
        raise InputError(f"function must be callable, got {shorten(repr(function))}")
    if has_own:
        raise InputError("the tasks of this graph already have functions: leave the function argument out")


def _bind_arguments(call: FunctionCall, values: Mapping[Name, Any]) -> Function:
    return Function(call.function, tuple(values[parent] for parent in call.parents))


def _of_dask(node: Any, values: Mapping[Name, Any]) -> Function:
    return Function(node, ({key: values[key] for key in node.dependencies},))
