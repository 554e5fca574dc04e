"""What is kept as bytes or JSON in one column: moves, the curves of a plan, and the tasks added to a workflow."""

import json
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

#: tasks added to a workflow at once: their names, arcs by number, and where known a row of a document for each task
Added = tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[Mapping[str, object], ...]]


def added_names(additions: Sequence[tuple[Any, Any, Any]]) -> list[str]:
    """The tasks of additions, in the order of their numbers."""
    return [name for tasks, *_ in additions for name in tasks]


def packed_addition(
    tasks: tuple[str, ...], arcs: tuple[tuple[int, int], ...], details: tuple[Mapping[str, object], ...] = ()
) -> tuple[str, bytes]:
    """An addition as stored: the rows of its tasks, or their names if there are no rows.

    >>> unpacked_addition(*packed_addition(("x", "y"), ((0, 7), (7, 8))))
    (('x', 'y'), ((0, 7), (7, 8)), ())
    """
    return json.dumps(details or tasks), array("i", chain.from_iterable(arcs)).tobytes()


def unpacked_addition(tasks: str, arcs: bytes) -> Added:
    """The same as it was."""
    rows, ends = json.loads(tasks), array("i", arcs).tolist()
    names = tuple(row if isinstance(row, str) else row["name"] for row in rows)
    details = tuple(row for row in rows if isinstance(row, dict))
    return names, tuple(zip(ends[0::2], ends[1::2], strict=True)), details


def unpacked_numbers(points: bytes) -> "array[int]":
    """Numbers of 8 bytes, as they are kept."""
    numbers = array("q")
    numbers.frombytes(points)
    return numbers
