"""The finish of a workflow against the size of its pool: with a lower bound, utilisation and cost for each size.

The knee is the size with the largest ratio of efficiency to finish [1]_: more workers beyond it cost more than they gain.

.. [1] Eager, Zahorjan, Lazowska (1989): Speedup versus efficiency in parallel systems. IEEE Trans. Computers 38(3).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from eligo.finishing import window_bound
from eligo.schedules import Schedule, Terms

LITTLE = 0.01  # a gain below this share counts as nothing
FEW = 16  # sizes that are all shown
HOUR = 3600


class ScalingPoint(NamedTuple):
    """One size of the pool, the simulated finish, the bound that no order can beat, and the share of busy time."""

    size: int
    finish: float
    floor: float
    utilisation: float
    #: the price of the pool until the finish; None if no price is given
    cost: float | None

    def document(self) -> dict[str, Any]:
        """The same as plain data."""
        return self._asdict()


@dataclass(frozen=True)
class ScalingCurve:
    """The points by size, smallest first; a price is per worker or core and hour, a deadline in seconds."""

    points: tuple[ScalingPoint, ...]
    price: float | None = None
    deadline: float | None = None

    @cached_property
    def knee(self) -> int:
        """The size at which the ratio of efficiency to finish is largest; 1 / (size * finish ** 2) up to a constant."""
        return min(self.points, key=lambda point: point.size * point.finish**2).size

    @cached_property
    def enough(self) -> int:
        """The smallest size beyond which less than 1 % is gained."""
        best = min((point.finish for point in self.points), default=0.0)
        return next(point.size for point in self.points if point.finish <= best * (1 + LITTLE))

    @cached_property
    def front(self) -> tuple[int, ...]:
        """The sizes for which no other costs no more and finishes no later, cheapest first."""
        sizes, soonest = list[int](), math.inf
        for point in sorted(self.points, key=lambda point: (point.cost or 0.0, point.finish, point.size)):
            if point.finish < soonest:
                sizes.append(point.size)
                soonest = point.finish
        return tuple(sizes)

    @cached_property
    def cheapest(self) -> ScalingPoint | None:
        """The cheapest pool that finishes by the deadline, or the smallest if there is no price; None if there is none."""
        latest = math.inf if self.deadline is None else self.deadline
        points = [point for point in self.points if point.finish <= latest]
        return min(points, key=lambda point: (point.cost or 0.0, point.size), default=None)

    def document(self) -> dict[str, Any]:
        """The curve as plain data."""
        plain: dict[str, Any] = {"points": [point.document() for point in self.points], "knee": self.knee}
        plain |= {"enough": self.enough}
        if self.price is not None:
            plain |= {"price": self.price, "front": self.front}
        if self.price is not None or self.deadline is not None:
            plain |= {"deadline": self.deadline, "cheapest": self.cheapest and self.cheapest.size}
        return plain


def scaling_point(terms: Terms, schedule: Schedule, price: float | None = None) -> ScalingPoint:
    """The point of a schedule.

    >>> from eligo.dag import Dag
    >>> from eligo.schedules import terms_of
    >>> terms = terms_of(Dag.from_arcs([], tasks="abc"), [3.0, 3.0, 3.0], 2)
    >>> point = scaling_point(terms, terms.listed(terms.dag.order), price=3.0)
    >>> point.finish, round(point.floor, 6), point.utilisation, point.cost
    (6.0, 6.0, 0.75, 0.01)
    """
    end, size = schedule.makespan, terms.pool.size
    needs = 1.0 if terms.cores is None else terms.cores
    busy = float(((schedule.end - schedule.begin) * needs).sum())
    floor = window_bound(terms.dag, terms.seconds, terms.pool, terms.cores).seconds
    cost = None if price is None else price * size * end / HOUR
    return ScalingPoint(size, end, floor, busy / (size * end) if end else 1.0, cost)


def size_between(points: Sequence[ScalingPoint], deadline: float | None) -> int | None:
    """A size between the smallest that meets a deadline and the next smaller one, in a sequence of rising sizes."""
    meets = [point.size for point in points if deadline is not None and point.finish <= deadline]
    smaller = [point.size for point in points if meets and point.size < meets[0]]
    return (smaller[-1] + meets[0]) // 2 if smaller and meets[0] - smaller[-1] > 1 else None


def sizes_between(first: int, last: int) -> list[int]:
    """All sizes of a short range; of a longer one its ends, the powers of two, and three times these.

    >>> sizes_between(2, 6), sizes_between(1, 256)
    ([2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
    """
    if last - first < FEW:
        return list(range(first, last + 1))
    powers = [1 << exponent for exponent in range(last.bit_length())]
    between = {size for size in (*powers, *(3 * power for power in powers)) if first < size < last}
    return sorted({first, last, *between})
