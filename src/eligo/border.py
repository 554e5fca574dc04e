"""The one border: whatever describes a workflow becomes one here, and every public function lets it in by this door.

>>> as_workflow({"boil": [], "mash": ["boil"]}).dag.sinks
('mash',)
>>> as_workflow({1: [], 2: [1], (1, 2): [1, 2]}).dag.tasks
(1, 2, (1, 2))

The module of a library is imported only where an object of that library is given.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from eligo import estimating
from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.names import Name
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.formats import History
    from eligo.formats.detecting import StrPath

    Record = tuple[Name | None, str | None, float]  # such as a Timed

DEEPEST = 20  # lists inside lists of a Dask graph that are looked through


def as_workflow(source: object) -> Workflow:
    """The workflow that an object is, or describes.

    It may be a Workflow, a Dag, the path of a file in any format, a graph of networkx, rustworkx or Dask, a collection of
    Dask's, or a mapping from each task to those that it needs. Tasks are the objects that they are there.
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
    """The workflow with how long tasks took in earlier runs: files, folders, histories that were read, or records.

    Names count first, then kinds: see `eligo.estimating`.

    >>> flow = with_history({"fit_1": [], "fit_2": [], "plot": ["fit_1"]}, [("fit_1", None, 4.0), (None, "plot", 2.0)])
    >>> estimating.estimate(flow).seconds.tolist()
    [4.0, 4.0, 2.0]
    """
    found = as_workflow(flow)
    for history in histories:
        found = estimating.with_history(found, _records(history))
    return found


def _records(history: "StrPath | History | Iterable[Record]") -> "Iterable[Record]":
    from eligo.formats import History, read_history

    if isinstance(history, str | os.PathLike):
        history = read_history(history)
    if isinstance(history, History):
        return history.records
    if not isinstance(history, Iterable):
        raise InputError(f"{type(history).__name__} is no history: give the path of a file or folder, or records")
    return history


def dag_of(source: object) -> Dag:
    """The dag of whatever describes a workflow."""
    return source if isinstance(source, Dag) else as_workflow(source).dag


def _reader(source: object) -> Callable[[Any], Workflow]:
    """What makes a workflow of an object of another library."""
    homes = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "networkx" in homes and hasattr(source, "is_directed"):
        from eligo.interop.networkx import from_networkx

        return from_networkx
    if "rustworkx" in homes:
        from eligo.interop.rustworkx import from_rustworkx

        return from_rustworkx
    if "dask" in homes or hasattr(type(source), "__dask_graph__") or _is_dask_graph(source):
        from eligo.interop.dask import from_dask

        return from_dask
    if isinstance(source, Mapping) and "networkx" not in homes:
        return _from_parents
    raise InputError(
        f"{type(source).__name__} is no workflow: give a Workflow, a Dag, the path of a file, a graph of networkx,"
        " rustworkx or Dask, or a mapping from tasks to what they need"
    )


def _from_parents(source: Mapping[Any, Any]) -> Workflow:
    """The workflow of a mapping from tasks to those that they need."""
    for task, needs in source.items():
        if isinstance(needs, str | bytes) or not isinstance(needs, Iterable):
            raise InputError(f"what {shorten(task)!r} needs is no list of tasks, but {shorten(repr(needs))}")
    return Workflow(Dag.from_parents({task: list(needs) for task, needs in source.items()}))


def _is_dask_graph(source: object) -> bool:
    """Whether a mapping has calls as Dask writes them, a function and what it is given, or Dask's own tasks."""
    return isinstance(source, Mapping) and any(_calls(value, source, DEEPEST) for value in source.values())


def _calls(value: Any, tasks: Mapping[Any, Any], depth: int) -> bool:
    if type(value).__module__.partition(".")[0] == "dask":
        return True
    if isinstance(value, tuple) and value and callable(value[0]) and not _is_key(value[0], tasks):
        return True
    return depth > 0 and isinstance(value, list | tuple) and any(_calls(part, tasks, depth - 1) for part in value)


def _is_key(value: Any, tasks: Mapping[Any, Any]) -> bool:
    try:
        return value in tasks
    except TypeError:
        return False
