"""Priorities that users gave tasks come first, and hold for what these tasks need too; eligo's order decides among equals."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from eligo.prioritising import priorities


class Standing(NamedTuple):
    """How soon a task is to go: by what its user wishes, then by its number along the order, the larger the sooner."""

    wish: float
    number: int


def standings(
    parents: Mapping[str, Collection[str]], wishes: Mapping[str, float], order: str = "finish"
) -> dict[str, Standing]:
    """Where every task stands; who needs a task wishes for it as much as for itself.

    >>> standings({"a": [], "b": [], "c": ["b"], "d": ["b"]}, {"a": 0, "b": 0, "c": 5, "d": 0})["b"]
    Standing(wish=5, number=4)
    """
    numbers, raised = priorities(parents, order), dict(wishes)
    for task in reversed(numbers):  # before what it needs
        for parent in parents[str(task)]:
            raised[parent] = max(raised[parent], raised[str(task)])
    return {str(task): Standing(raised[str(task)], number) for task, number in numbers.items()}
