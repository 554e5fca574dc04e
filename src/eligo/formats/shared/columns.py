"""Tables on their side: what each key says of all tasks at once, as one list.

A file of many tasks gives each the same few keys. Checked a column at a time, and made into tasks only where one is asked
for, it is read in a fraction of the time and the room that a row at a time takes.

>>> table = Columns([{"name": "a", "cores": 2}, {"name": "b"}], ("name", "cores", "memory"))
>>> table["name"], table["cores"], table["memory"]
(['a', 'b'], [2, None], None)
>>> Described(Dag.from_arcs([], "ab"), {"cores": table["cores"]})["a"]
Task('a', cores=2)
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from eligo.dag import Dag
from eligo.workflow import LazyDetails, Task

#: a value for each row, None where there is none; or None where no row has one
Column = list[Any] | None


class Columns:
    """The column of each of some keys."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> None:
        self.size = len(rows)
        self._columns = _alike(rows, keys) or _gathered(rows, keys)

    def __getitem__(self, key: str) -> Column:
        return self._columns.get(key)

    def filled(self, key: str) -> list[Any]:
        """The column, also where no row has a value."""
        return self._columns.get(key) or [None] * self.size

    def placed(self, places: Sequence[int], size: int) -> "Columns":
        """A table of *size* rows, in which row i of this one is row places[i]."""
        table = Columns((), ())
        table.size = size
        for key, column in self._columns.items():
            moved = table._columns[key] = [None] * size
            for place, value in zip(places, column, strict=True):
                moved[place] = value
        return table


def _alike(rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> dict[str, list[Any]] | None:
    """The columns of rows that all have the same keys, more than one; None where they have not."""
    first = list(rows[0]) if rows else []
    if len(first) < 2 or set(map(len, rows)) != {len(first)}:
        return None
    try:
        columns = zip(*map(itemgetter(*first), rows), strict=True)
    except KeyError:
        return None
    return {key: list(column) for key, column in zip(first, columns, strict=True) if key in keys}


def _gathered(rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> dict[str, list[Any]]:
    present = set().union(*set(map(tuple, rows))).intersection(keys)
    return {key: [row.get(key) for row in rows] for key in present}


class Described(LazyDetails):
    """The details of the tasks of a dag, from a column for each field of which anything is known."""

    def __init__(self, dag: Dag, fields: Mapping[str, Column]) -> None:
        self._dag, self._fields = dag, {key: column for key, column in fields.items() if column is not None}
        for key in _AMOUNTS & self._fields.keys():
            for name, amount in zip(dag.tasks, self._fields[key], strict=True):
                if amount is not None and not 0 <= amount < _INFINITE:
                    Task(name=name, **{key: amount})  # which refuses

    def __getitem__(self, name: str) -> Task:
        i = self._dag.index[name]
        details = {key: column[i] for key, column in self._fields.items() if column[i] is not None}
        if not details:
            raise KeyError(name)
        return Task(name=name, **details)

    def __iter__(self) -> Iterator[str]:
        return (name for name, has_details in zip(self._dag.tasks, self._is_known(), strict=True) if has_details)

    def __len__(self) -> int:
        return sum(self._is_known())

    def __bool__(self) -> bool:
        return any(self._is_known())  # without counting a million

    def column(self, what: str) -> list[Any]:
        """See `LazyDetails`."""
        nothing = () if what in {"inputs", "outputs", "labels"} else None
        values = self._fields.get(what)
        return [nothing if value is None else value for value in values or repeat(None, len(self._dag))]

    def __repr__(self) -> str:
        return f"Described({len(self)} tasks)"

    def _is_known(self) -> Iterator[bool]:
        """Whether anything is known of each task."""
        if not self._fields:
            return repeat(False, len(self._dag))
        return (any(value is not None for value in values) for values in zip(*self._fields.values(), strict=True))


_AMOUNTS = {"seconds", "cores", "memory"}
_INFINITE = float("inf")
