"""Converts anything that describes a workflow into a `Workflow`; every public function uses it for its argument.

>>> as_workflow({"boil": [], "mash": ["boil"]}).dag.sinks
('mash',)
>>> as_workflow({1: [], 2: [1], (1, 2): [1, 2]}).dag.tasks
(1, 2, (1, 2))

A library is imported only if the argument is an object of that library.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from eligo import estimates
from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.names import Name
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.formats import History
    from eligo.formats.detection import StrPath

    Record = tuple[Name | None, str | None, float]  # for example a Timed


def as_workflow(source: object) -> Workflow:
    """The workflow that an object is, or describes.

    It may be a Workflow, a Dag, the path of a file in any format, a graph of networkx or rustworkx, a mapping from each task
    to its parents, or a table {task: (function, parents)}. Dask's collections, its HighLevelGraphs and dicts of its own Task
    objects are recognized by type; `eligo.from_dask` accepts any other Dask graph. Task names keep their types.
    """
    if isinstance(source, Workflow):
        return source
    if isinstance(source, Dag):
        return Workflow(source)
    if isinstance(source, str | os.PathLike):
        from eligo.formats import read

        return read(source)
    return _reader(source)(source)


def with_history(flow: object, *histories: "StrPath | History | Iterable[Record]") -> Workflow:
    """The workflow with run times of earlier runs, and their sizes of files: files, folders, `History` objects, or records.

    Names are matched first, then kinds: see `eligo.estimates`.

    >>> flow = with_history({"fit_1": [], "fit_2": [], "plot": ["fit_1"]}, [("fit_1", None, 4.0), (None, "plot", 2.0)])
    >>> estimates.estimate(flow).seconds.tolist()
    [4.0, 4.0, 2.0]
    """
    workflow = as_workflow(flow)
    for history in histories:
        workflow = _with_one_history(workflow, history)
    return workflow


def _with_one_history(flow: Workflow, history: "StrPath | History | Iterable[Record]") -> Workflow:
    from eligo.formats import History, read_history

    if isinstance(history, str | os.PathLike):
        history = read_history(history)
    if isinstance(history, History):
        return estimates.with_sizes(estimates.with_records(flow, history.records), history.sizes)
    if not isinstance(history, Iterable):
        raise InputError(f"history must be the path of a file or folder, or records, got {type(history).__name__}")
    return estimates.with_records(flow, history)


def dag_of(source: object) -> Dag:
    """The dag of anything that describes a workflow."""
    return source if isinstance(source, Dag) else as_workflow(source).dag


def _reader(source: object) -> Callable[[Any], Workflow]:
    """The function that converts an object of another library."""
    homes = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "networkx" in homes and hasattr(source, "is_directed"):
        from eligo.interop.networkx import from_networkx

        return from_networkx
    if "rustworkx" in homes:
        from eligo.interop.rustworkx import from_rustworkx

        return from_rustworkx
    if "dask" in homes or hasattr(type(source), "__dask_graph__") or _has_dask_tasks(source):
        from eligo.interop.dask import from_dask

        return from_dask
    if isinstance(source, Mapping) and "networkx" not in homes:
        return _from_mapping
    raise InputError(
        f"{type(source).__name__} is not a workflow: give a Workflow, a Dag, the path of a file, a graph of networkx,"
        " rustworkx or Dask, or a mapping from tasks to their dependencies"
    )


def _from_mapping(source: Mapping[Any, Any]) -> Workflow:
    """The workflow of a mapping from tasks to their parents, or to functions and their parents."""
    table = function_table(source)
    if table is not None:
        return Workflow(Dag.from_parents({task: call.parents for task, call in table.items()}))
    for task, needs in source.items():
        if isinstance(needs, str | bytes) or not isinstance(needs, Iterable):
            raise InputError(
                f"the dependencies of {shorten(task)!r} must be a list of tasks, got {shorten(repr(needs))}"
            )
    return Workflow(Dag.from_parents({task: list(needs) for task, needs in source.items()}))


class FunctionCall(NamedTuple):
    """A task in a table of functions: the function, and the tasks whose values are its arguments, in order."""

    function: Callable[..., Any]
    parents: tuple[Name, ...]


def function_table(source: object) -> dict[Name, FunctionCall] | None:
    """The functions of {task: (function, parents)}; None if the values are not functions.

    A dict of tuples is never taken for a Dask graph, in which the other keys decide what is a key and what is data.

    >>> function_table({"x": (list, []), "n": (len, ["x"])})["n"].parents
    ('x',)
    """
    if not isinstance(source, Mapping) or not any(_is_call(value, source) for value in source.values()):
        return None
    return {task: _call(task, value, source) for task, value in source.items()}


def _is_call(value: Any, tasks: Mapping[Any, Any]) -> bool:
    """Whether a value is a function, or a tuple that begins with one that is not itself a task, or such a pair as a list."""
    if isinstance(value, tuple) or (isinstance(value, list) and len(value) == 2 and _is_list(value[1])):
        return bool(value) and callable(value[0]) and not _is_key(value[0], tasks)
    return callable(value)


def _call(task: Name, value: Any, tasks: Mapping[Any, Any]) -> FunctionCall:
    if not (isinstance(value, tuple) and len(value) == 2 and _is_call(value, tasks) and _is_list(value[1])):
        raise InputError(_fault(shorten(task), value, tasks))
    function, parents = value
    if isinstance(parents, set | frozenset) and len(parents) > 1:
        raise InputError(f"the parents of {shorten(task)!r} are a set, which has no order: use a list")
    return FunctionCall(function, tuple(parents))


def _is_list(parents: object) -> bool:
    if isinstance(parents, list | tuple):  # much faster to check than the rest
        return True
    return isinstance(parents, Collection) and not isinstance(parents, str | bytes | Mapping)


def _fault(task: str, value: Any, tasks: Mapping[Any, Any]) -> str:
    """The error message for a value of a table of functions, with its cure."""
    if callable(value):
        return f"the value of {task!r} is a function without a list of parents: write ({_name_of(value)}, [])"
    if _is_list(value) and not _is_call(value, tasks):
        other = next(shorten(name) for name, entry in tasks.items() if _is_call(entry, tasks))
        return f"{task!r} has parents but no function, unlike {other!r}: write (function, {shorten(list(value))})"
    wrong = f"the value of {task!r} must be (function, [parents]), got {shorten(repr(value))}"
    cure = f": write ({_name_of(value[0])}, {_parents_in(value)})" if _is_call(value, tasks) else ""
    return f"{wrong}{cure} (for a Dask graph, give eligo.from_dask(graph))"


def _parents_in(value: Sequence[Any]) -> str:
    """The part of a value after its function, as a list of parents."""
    alone = len(value) == 2 and isinstance(value[1], list)
    return shorten(value[1] if alone else list(value[1:]))


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", "function"))


def _has_dask_tasks(source: object) -> bool:
    """Whether a mapping has tasks of Dask's own types."""
    return isinstance(source, Mapping) and any(
        base.__name__ == "GraphNode" and base.__module__.partition(".")[0] == "dask"
        for kind in set(map(type, source.values()))
        for base in kind.__mro__
    )


def _is_key(value: Any, tasks: Mapping[Any, Any]) -> bool:
    try:
        return value in tasks
    except TypeError:
        return False
