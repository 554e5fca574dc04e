"""The max-plus knapsack: a total shared out among functions so that the sum of their values is largest, for every total.

The procedure BBDP of [1]_, figure 4, with its bookkeeping. The functions are joined two by two, as in a tournament, so that
the work is bounded by the square of the summed ranges however many functions there are; equal functions beside one another
are joined once. Who gets how much is read off the stored tables afterwards, so no back-pointers are kept.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from eligo.errors import InputError
from eligo.theory.profiles import Profile

LIMITLESS = 1 << 62


class Ranged(NamedTuple):
    """A function on the whole numbers low, low + 1, ...: its values there. Without values it is defined nowhere."""

    low: int
    values: Profile

    @property
    def high(self) -> int:
        """The largest number it is defined for; below `low` where there is none."""
        return self.low + len(self.values) - 1


NOTHING = Ranged(0, np.zeros(1, np.int64))


class Knapsack:
    """The largest sum of f_1(r_1) + ... + f_k(r_k) for every total r = r_1 + ... + r_k up to *limit*, each r_i in its range.

    >>> pair = Knapsack([Ranged(0, np.array([0, 4, 6])), Ranged(1, np.array([3, -5]))])
    >>> pair.best.low, pair.best.values.tolist()
    (1, [3, 7, 9, 1])
    >>> pair.split(3)
    [2, 1]

    Notes: O(N^2) for ranges of summed length N, and O(k + N * limit) where *limit* is less.
    """

    def __init__(self, functions: Sequence[Ranged], limit: int = LIMITLESS) -> None:
        self._count = len(functions)
        self._rounds = [[_cut(f, limit) for f in functions or [NOTHING]]]
        while len(self._rounds[-1]) > 1:
            self._rounds.append(list(_joined(self._rounds[-1], limit)))
        self.best = self._rounds[-1][0]

    def split(self, total: int) -> list[int]:
        """Who gets how much of a total when the sum is largest; where several ways are, the first functions get less."""
        if not self.best.low <= total <= self.best.high:
            raise InputError(f"{total} cannot be shared out: from {self.best.low} to {self.best.high} can")
        parts = [total]
        for functions in reversed(self._rounds[:-1]):
            pairs = zip_longest(functions[::2], functions[1::2])
            parts = [share for pair, part in zip(pairs, parts, strict=True) for share in _shares(*pair, part)]
        return parts[: self._count]


def max_plus(first: Ranged, second: Ranged, limit: int = LIMITLESS) -> Ranged:
    """For every total up to *limit*, the largest sum of the two; defined nowhere where one of them is.

    >>> max_plus(Ranged(0, np.array([0, 0, 2])), Ranged(0, np.array([0, 1]))).values.tolist()
    [0, 1, 2, 3]
    """
    low = first.low + second.low
    short, long = sorted((first.values, second.values), key=len)
    length = min(len(short) + len(long) - 1, limit - low + 1) if len(short) else 0
    best = np.full(max(length, 0), np.iinfo(np.int64).min, np.int64)
    for i, value in enumerate(short[: len(best)].tolist()):
        window = best[i : i + len(long)]
        np.maximum(window, long[: len(window)] + value, out=window)
    return Ranged(low, best)


def _cut(function: Ranged, limit: int) -> Ranged:
    kept = max(limit - function.low + 1, 0)
    return function if kept >= len(function.values) else Ranged(function.low, function.values[:kept])


def _joined(functions: list[Ranged], limit: int) -> Iterator[Ranged]:
    """Each two neighbours joined; of equal pairs in a row only the first is computed."""
    before: tuple[int, int] | None = None
    for a, b in zip_longest(functions[::2], functions[1::2]):
        if b is None:
            yield a
            return
        pair = id(a.values), id(b.values)
        if pair != before:
            both, before = max_plus(a, b, limit), pair
        yield both


def _shares(first: Ranged, second: Ranged | None, total: int) -> tuple[int, ...]:
    """What the two get of their total: the first as little as the best sum allows."""
    if second is None:
        return (total,)
    least, most = max(first.low, total - second.high), min(first.high, total - second.low)
    if least == most:
        return least, total - least
    mine = first.values[least - first.low : most - first.low + 1]
    other = second.values[total - most - second.low : total - least - second.low + 1]
    share = least + int(np.argmax(mine + other[::-1]))
    return share, total - share
