"""Values of functions, each kept as long as a task needs it.

>>> values = Values({"b": ["a"]})
>>> values.add("a", 2)
>>> values.add("b", 3)
>>> values
{'b': 3}
>>> values["a"]
Traceback (most recent call last):
KeyError: "the result of 'a' was dropped after every task that uses it had finished: pass keep=['a'] or keep='all'"
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from eligo.dag import Dag
from eligo.errors import InputError, UnknownTaskError, shorten
from eligo.names import Name


class Values(dict[Name, Any]):
    """The values so far. One that other tasks use is dropped once all of these are done, unless it is to be kept.

    *takes* maps each task to the tasks whose values it uses.
    """

    def __init__(self, takes: Mapping[Name, Collection[Name]] | None = None, keep: Collection[Name] = ()) -> None:
        super().__init__()
        self._takes = {} if takes is None else takes
        self._takers = Counter(parent for parents in self._takes.values() for parent in set(parents))
        self._keep = keep

    def add(self, task: Name, result: Any) -> None:
        """Add the value of a finished task, and drop those that no remaining task uses."""
        self[task] = result
        for parent in set(self._takes.get(task, ())):
            self._takers[parent] -= 1
            if not self._takers[parent] and parent not in self._keep:
                del self[parent]

    def __missing__(self, task: Name) -> NoReturn:
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
