"""Compressed rows: each task's neighbours from the ends of all arcs, in linear passes."""

from array import array
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.kernels import graph

Ints = NDArray[np.int32]
SLACK = 1_000  # stale numbers allowed in the order, in addition to as many as are valid


def pointers(counts: NDArray[np.integer[Any]]) -> Ints:
    """The start of each row, and the end of the last, from their lengths."""
    ptr = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=ptr[1:])
    return ptr


def places(n: int, sequence: NDArray[np.integer[Any]] | list[int], elsewhere: int = -1) -> Ints:
    """The position of each of 0..n-1 in a sequence, *elsewhere* if it has none: the inverse of a permutation.

    >>> places(4, np.array([2, 0, 1])).tolist()
    [1, 2, 0, -1]
    """
    place = np.full(n, elsewhere, np.int32)
    place[sequence] = np.arange(len(sequence), dtype=np.int32)
    return place


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, ascending: many times faster than `np.unique`, which hashes them and loads numpy.ma.

    >>> distinct(np.array([3, -1, 3])).tolist(), distinct(np.array([])).tolist()
    ([-1, 3], [])
    """
    ascending = np.sort(values)
    first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]


def gather_rows(ptr: Ints, rows: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    """The rows of several tasks one after another, and the length of each."""
    length = ptr[1:][tasks] - ptr[:-1][tasks]
    shift = np.repeat(ptr[:-1][tasks] - pointers(length)[:-1], length)
    return rows[np.arange(len(shift), dtype=np.int32) + shift], length


def released_children(children: Ints, missing: "array[int]") -> Ints:
    """The children without missing parents, after each now misses one parent less."""
    counts = np.frombuffer(missing, np.int32)
    counts[children] -= 1
    free: Ints = children[counts[children] == 0]
    return free


def latest(turn: Ints, parents: Ints, degree: Ints) -> Ints:
    """For tasks with these parents, one row after another, the turn of the parent executed last; -1 for none."""
    last = np.full(len(degree), -1, np.int32)
    some = np.flatnonzero(degree)
    if len(some):
        last[some] = np.maximum.reduceat(turn[parents], (np.cumsum(degree) - degree)[some])
    return last


def rows(n: int, tail: Ints, head: Ints) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Sorted rows of children and of parents, without duplicates, and the number of duplicates: linear passes."""
    if are_rows(tail, head):
        child_ptr, child, dropped = pointers(np.bincount(tail, minlength=n)), head.copy(), 0
    else:
        child_ptr, child, dropped = _sorted_rows(n, tail, head)
    parent_ptr = pointers(np.bincount(child, minlength=n))
    parent = np.empty(len(child), np.int32)
    graph.transpose(child_ptr, child, parent_ptr[:-1], parent_ptr[:-1].copy(), parent)
    return child_ptr, child, parent_ptr, parent, dropped


def are_rows(tail: Ints, head: Ints) -> bool:
    """Whether arcs are sorted by tail, then by head, without duplicates, as in rows of children."""
    step = np.diff(tail)
    return bool(((step > 0) | ((step == 0) & (head[1:] > head[:-1]))).all())


def _sorted_rows(n: int, tail: Ints, head: Ints) -> tuple[Ints, Ints, int]:
    """Rows of children from arcs in any order, sorted by transposing them twice."""
    ptr = pointers(np.bincount(head, minlength=n))
    rough = np.empty(len(head), np.int32)
    graph.scatter(head, tail, ptr[:-1].copy(), rough)
    begin = pointers(np.bincount(tail, minlength=n))[:-1]
    end, child = begin.copy(), np.empty(len(tail), np.int32)
    dropped = graph.transpose(ptr, rough, begin, end, child)
    child_ptr = pointers(end - begin)
    if dropped:
        graph.compact(begin, end, child_ptr, child)
        child = child[: len(child) - dropped].copy()
    return child_ptr, child, dropped


def find_cycle(parent_ptr: Ints, parent: Ints, reached: Ints) -> list[int]:
    """A cycle among the tasks that Kahn's pass did not reach: each has such a parent, so walk up until one repeats."""
    unreached = np.ones(len(parent_ptr) - 1, np.bool_)
    unreached[reached] = False
    seen: dict[int, int] = {}
    v = int(unreached.argmax())
    while v not in seen:
        seen[v] = len(seen)
        above = parent[parent_ptr[v] : parent_ptr[v + 1]]
        v = int(above[unreached[above]][0])
    walk = list(seen)[seen[v] :]
    return [v, *reversed(walk)]


class Arrivals(MutableMapping[int, None]):
    """The numbers, among 0..n-1, that are in a state, in order of arrival. Many arrivals at once are cheap.

    A removed number stays in the order until half of that is stale: 4 bytes each, compared with 70 in a dictionary.

    >>> ready = Arrivals(4)
    >>> ready.extend(np.array([2, 0, 3], np.int32))
    >>> del ready[2]
    >>> ready[2] = None
    >>> list(ready), len(ready), 1 in ready
    ([0, 3, 2], 3, False)
    >>> list(reversed(ready))
    [2, 3, 0]
    """

    def __init__(self, n: int) -> None:
        self._order, self._place = array("i"), array("i", [-1]) * n
        self._count = 0

    def __setitem__(self, number: int, value: None) -> None:
        if self._place[number] < 0:
            self._place[number] = len(self._order)
            self._order.append(number)
            self._count += 1

    def extend(self, numbers: Ints) -> None:
        """Add numbers, none of which is present."""
        first = len(self._order)
        np.frombuffer(self._place, np.int32)[numbers] = np.arange(first, first + len(numbers), dtype=np.int32)
        self._order.frombytes(numbers.tobytes())
        self._count += len(numbers)

    def widen(self, more: int) -> None:
        """Increase n by *more*."""
        self._place.extend([-1] * more)

    def __getitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)

    def __delitem__(self, number: int) -> None:
        if self._place[number] < 0:
            raise KeyError(number)
        self._place[number] = -1
        self._count -= 1
        if len(self._order) > 2 * self._count + SLACK:
            self._compact()

    def _compact(self) -> None:
        """Remove stale numbers from the order."""
        order, place = np.array(self._order, np.int32), np.frombuffer(self._place, np.int32)
        order = order[place[order] == np.arange(len(order), dtype=np.int32)]
        place[order] = np.arange(len(order), dtype=np.int32)
        self._order = array("i", order.tobytes())

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._place) and self._place[number] >= 0

    def __iter__(self) -> Iterator[int]:
        place = self._place
        return (number for i, number in enumerate(self._order) if place[number] == i)

    def __reversed__(self) -> Iterator[int]:
        order, place = self._order, self._place
        return (order[i] for i in range(len(order) - 1, -1, -1) if place[order[i]] == i)

    def __len__(self) -> int:
        return self._count

    @property
    def numbers(self) -> Ints:
        """The numbers as an array."""
        self._compact()
        return np.array(self._order, np.int32)


class Settled(MutableMapping[int, None]):
    """The numbers in a state that none leaves, in order: 4 bytes each, compared with 70 in a dictionary.

    >>> states = bytearray(3)
    >>> done = Settled(states, 5)
    >>> states[2], done[2] = 5, None
    >>> list(done), len(done), 2 in done, 1 in done
    ([2], 1, True, False)
    """

    def __init__(self, states: bytearray, state: int) -> None:
        self.states, self._state, self._order = states, state, array("i")
        #: adds one number
        self.add = self._order.append

    def __setitem__(self, number: int, value: None) -> None:
        self.add(number)

    def __getitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)

    def __delitem__(self, number: int) -> None:
        raise KeyError(number)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self.states) and self.states[number] == self._state

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def extend(self, numbers: Ints) -> None:
        """Add numbers."""
        self._order.frombytes(numbers.tobytes())
