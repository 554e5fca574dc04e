"""What the families share: arcs as arrays, sizes that make sense, random numbers from a seed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eligo.dag import Dag
from eligo.errors import InputError

Numbers = NDArray[np.integer[Any]]

MOST = 100_000_000  # tasks or arcs: a slip on the command line must not fill the memory


def dag_of_arcs(n: int, *arcs: tuple[ArrayLike, ArrayLike]) -> Dag:
    """The dag of n tasks with arcs from tails to heads; the two of a pair are broadcast."""
    pairs = [np.broadcast_arrays(tails, heads) for tails, heads in arcs]
    tails, heads = (np.concatenate([pair[end].ravel() for pair in pairs]) for end in (0, 1))
    return Dag.from_arrays(n, tails, heads)


def mirrored(dag: Dag) -> Dag:
    """The dual, numbered backwards, so that its sources come first."""
    last = len(dag) - 1
    return Dag.from_arrays(len(dag), last - dag.child, last - dag.tails)


def generator(seed: int) -> np.random.Generator:
    """Random numbers that depend on the seed alone."""
    at_least(0, seed=seed)
    return np.random.default_rng(seed)


def at_least(least: int, **sizes: float) -> None:
    """Refuse a size that is no whole number or too small, by its name."""
    for name, value in sizes.items():
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} is a whole number of at least {least}, and {value!r} is not")


def fits(count: int) -> int:
    """The count itself, unless it would fill the memory."""
    if count > MOST:
        raise InputError(f"that would be more than {MOST:,} tasks or arcs: choose something smaller")
    return count


#: the families by the names that the command line has for them
