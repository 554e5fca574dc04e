"""Python functions as tasks, from a graph, a table of functions, or a graph of Dask's; and the values that they return."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any, NamedTuple

from eligo.border import FunctionCall, as_workflow, function_table
from eligo.dag import Dag
from eligo.engines import Ending, Function
from eligo.errors import InputError, UnknownTaskError, shorten
from eligo.interop.dask import DaskWorkflow, digest_of_node
from eligo.names import Name
from eligo.running.fingerprints import fingerprint, function_name
from eligo.workflow import Workflow

#: returns the function of a task, given the values of its parents
FunctionFor = Callable[[Name, Mapping[Name, Any]], Function]
SOME_PARTS = 1_000  # elements from which the size of a long list is estimated


class Callables(NamedTuple):
    """A workflow whose tasks are functions."""

    flow: Workflow
    work: FunctionFor
    #: returns the name of a task's function, and a digest that changes if the function does
    identity: Callable[[Name], tuple[str, str]]
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
        return Callables(flow, lambda task, values: Function(function, (task,)), _identities(lambda task: function), {})
    if nodes is not None:
        takes = {key: node.dependencies for key, node in nodes.items()}
        results = flow.results if isinstance(flow, DaskWorkflow) else frozenset()
        return Callables(
            flow,
            lambda task, values: _of_dask(nodes[task], values),
            lambda task: (str(flow.task(task).category), digest_of_node(nodes[task])),
            takes,
            results,
        )
    if table is not None:
        parents = {task: call.parents for task, call in table.items()}
        identity = _identities(lambda task: table[task].function)
        return Callables(flow, lambda task, values: _bind_arguments(table[task], values), identity, parents)
    return None


def _identities(function_of: Callable[[Name], Callable[..., Any]]) -> Callable[[Name], tuple[str, str]]:
    """A function that returns the name and fingerprint of a task's function, computed once for all tasks that share it."""
    seen: dict[int, tuple[str, str]] = {}

    def identity(task: Name) -> tuple[str, str]:
        function = function_of(task)
        if id(function) not in seen:
            seen[id(function)] = function_name(function), fingerprint(function)
        return seen[id(function)]

    return identity


def _check_function(function: object, *, has_own: bool) -> None:
    if not callable(function):
        raise InputError(f"function must be callable, got {shorten(repr(function))}")
    if has_own:
        raise InputError("the tasks of this graph already have functions: leave the function argument out")


def _bind_arguments(call: FunctionCall, values: Mapping[Name, Any]) -> Function:
    return Function(call.function, tuple(values[parent] for parent in call.parents))


def _of_dask(node: Any, values: Mapping[Name, Any]) -> Function:
    return Function(node, ({key: values[key] for key in node.dependencies},))


def size_in_memory(value: object) -> int:
    """An estimate of the bytes that a value takes in memory, with those of the elements of a list, set or dictionary.

    >>> size_in_memory(memoryview(bytes(1000))), size_in_memory([bytes(1000)] * 10) > 10_000
    (1000, True)
    """
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    if not isinstance(parts, list | tuple | set | frozenset) or not parts:
        return _own_size(value)
    some = list(islice(parts, SOME_PARTS))
    return _own_size(value) + round(sum(map(_own_size, some)) * len(parts) / len(some))


def _own_size(value: object) -> int:
    size = getattr(value, "nbytes", None)  # of an array
    return size if isinstance(size, int) else sys.getsizeof(value)


class Values(dict[Name, Any]):
    """The values that tasks have returned. A value is dropped once all tasks that use it are done, unless it is to be kept.

    *takes* maps each task to the tasks whose values it uses.

    >>> values = Values({"b": ["a"]})
    >>> values.add("a", 2)
    >>> values.add("b", 3)
    >>> values
    {'b': 3}
    >>> values["a"]
    Traceback (most recent call last):
    KeyError: "the result of 'a' was dropped after every task that uses it had finished: pass keep=['a'] or keep='all'"
    """

    #: whether values outlive this process
    durable = False

    def __init__(self, takes: Mapping[Name, Collection[Name]] | None = None, keep: Collection[Name] = ()) -> None:
        super().__init__()
        self._takes = {} if takes is None else takes
        self._takers = Counter(parent for parents in self._takes.values() for parent in set(parents))
        self._keep = keep

    def is_wanted(self, task: Name) -> bool:
        """Whether the user wants the value of a task."""
        return task not in self._takers or task in self._keep

    def is_in_use(self, task: Name) -> bool:
        """Whether the user or an unfinished task wants the value of a task."""
        return self.is_wanted(task) or self._takers[task] > 0

    def add(self, task: Name, result: Any) -> None:
        """Add the value of a finished task, and drop those that no remaining task uses."""
        self[task] = result
        self.drop_parents(task)

    def drop_parents(self, task: Name) -> None:
        """Drop the values that a finished task has used, unless the user or another task wants them."""
        for parent in set(self._takes.get(task, ())):
            self._takers[parent] -= 1
            if not self.is_in_use(parent):
                self.pop(parent, None)

    def refusal(self, ending: Ending) -> str | None:
        """Why the value of a successful task cannot be used, or None."""
        return None

    def __missing__(self, task: Name) -> Any:
        if task not in self._takers or self._takers[task]:
            raise KeyError(task)
        dropped = f"the result of {shorten(task)!r} was dropped after every task that uses it had finished"
        raise KeyError(f"{dropped}: pass keep=[{shorten(repr(task))}] or keep='all'")


def tasks_to_keep(keep: "str | Collection[Name]", dag: Dag) -> Collection[Name]:
    """The tasks whose values are kept even if other tasks use them.

    >>> tasks_to_keep(["b"], Dag.from_arcs([("a", "c")]))
    Traceback (most recent call last):
    eligo.errors.UnknownTaskError: there is no task named 'b'
    """
    if isinstance(keep, str) and keep == "all":
        return frozenset(dag.tasks)
    if isinstance(keep, str | bytes) or not isinstance(keep, Collection):
        raise InputError(f"keep must be 'all' or a list of tasks, got {shorten(repr(keep))}")
    for task in keep:
        try:
            dag.number(task)
        except UnknownTaskError:
            raise UnknownTaskError(task, known=dag.tasks) from None
    return frozenset(keep)
