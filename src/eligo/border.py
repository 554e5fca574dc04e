"""The one border: whatever describes a workflow becomes one here, and every public function lets it in by this door.

>>> as_workflow({"boil": [], "mash": ["boil"]}).dag.sinks
('mash',)
>>> as_workflow({1: [], 2: [1], (1, 2): [1, 2]}).dag.tasks
(1, 2, (1, 2))

The module of a library is imported only where an object of that library is given.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.workflow import Workflow


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
    if isinstance(source, Mapping) and _are_parents(source):
        return Workflow(Dag.from_parents(source))
    return _reader(source)(source)


def dag_of(source: object) -> Dag:
    """The dag of whatever describes a workflow."""
    return source if isinstance(source, Dag) else as_workflow(source).dag


def _reader(source: object) -> Callable[[Any], Workflow]:
    """What makes a workflow of an object of another library."""
    homes = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    if "networkx" in homes:
        from eligo.interop.networkx import from_networkx

        return from_networkx
    if "rustworkx" in homes:
        from eligo.interop.rustworkx import from_rustworkx

        return from_rustworkx
    if isinstance(source, Mapping) or hasattr(type(source), "__dask_graph__"):
        from eligo.interop.dask import from_dask

        return from_dask
    raise InputError(
        f"{type(source).__name__} is no workflow: give a Workflow, a Dag, the path of a file, a graph of networkx,"
        " rustworkx or Dask, or a mapping from tasks to what they need"
    )


def _are_parents(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping is from tasks to groups of tasks, and calls nothing as the tasks of a Dask graph do."""
    groups = (list, tuple, set, frozenset)
    return all(isinstance(needs, groups) and not _calls(needs, source) for needs in source.values())


def _calls(value: Any, tasks: Mapping[Any, Any]) -> bool:
    """Whether a value is a call as Dask writes it, a function and what it is given, or holds one."""
    if isinstance(value, tuple) and value and callable(value[0]) and value[0] not in tasks:
        return True
    return isinstance(value, list | tuple) and any(_calls(part, tasks) for part in value)
