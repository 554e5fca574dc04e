"""A numbering of tasks that does not depend on how they were numbered before, as far as colours can tell them apart."""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.limits import MOST_ROUNDS, MOST_SETTLED
from eligo.deciding.work import Work
from eligo.rows import Ints

ROUND = 80  # units of work for each task and arc in a round of refining


def colours(dag: Dag, start: NDArray[np.int64] | None = None, work: Work | None = None) -> NDArray[np.int64]:
    """Colour refinement: tasks get equal colours where no count of parents and children, near or far, differs.

    Tasks that differ in *start* differ from the beginning.

    >>> colours(Dag.from_arcs([("a", "b"), ("a", "c"), ("c", "d")])).tolist()
    [3, 0, 2, 1]
    """
    colour = _ranked(dag.height, dag.level) if start is None else _ranked(start, dag.height, dag.level)
    found = 0
    for _ in range(MOST_ROUNDS):
        if (distinct := int(colour.max(initial=-1)) + 1) == found or (work is not None and work.over()):
            break
        found = distinct
        if work is not None:
            work.spend(ROUND * (len(dag) + dag.arc_count))
        mixed = _mixed(colour)
        above = _row_sums(mixed[dag.parent], dag.parent_ptr)
        below = _row_sums(mixed[dag.child], dag.child_ptr)
        colour = _ranked(colour, above, below)
    return colour


def canonical_order(dag: Dag) -> Ints:
    """The tasks by longest remaining path, then by colour, then as they were."""
    return np.lexsort((colours(dag), -dag.height)).astype(np.int32)


def settled_order(dag: Dag, work: Work) -> Ints:
    """The tasks by colour, where of those that look alike but differ the first is told apart, and so on.

    Dags that are the same but for the numbering mostly are the same when numbered so: where what looks alike is alike.
    """
    colour = colours(dag, None, work)
    for _ in range(MOST_SETTLED):
        v = None if work.over() else _unsettled(dag, colour)
        if v is None:
            break
        start = 2 * colour
        start[v] -= 1
        colour = colours(dag, start, work)
    return np.argsort(colour, kind="stable").astype(np.int32)


def _unsettled(dag: Dag, colour: NDArray[np.int64]) -> int | None:
    """The first task of a colour that some have whose parents or children are others."""
    looks: dict[int, tuple[int, bytes, bytes]] = {}
    for v in np.argsort(colour, kind="stable").tolist():
        own = v, dag.parents_of(v).tobytes(), dag.children_of(v).tobytes()
        known = looks.setdefault(int(colour[v]), own)
        if known[1:] != own[1:]:
            return known[0]
    return None


def _ranked(*keys: NDArray[np.generic]) -> NDArray[np.int64]:
    """The rank of each task's keys among the different ones."""
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), np.int64)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new)
    return ranks


def _mixed(colour: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Each colour as a number of 64 scattered bits, so that sums tell multisets apart."""
    x = colour.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def _row_sums(values: NDArray[np.uint64], ptr: Ints) -> NDArray[np.uint64]:
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    differences: NDArray[np.uint64] = sums[ptr[1:]] - sums[ptr[:-1]]
    return differences
