"""Means with their confidence intervals.

This module has only the statistics that a comparison of schedulers needs [1]_, section 5.1.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

SURE = 0.95
NEARLY_NORMAL = 100  # from this many degrees of freedom a series for Student's distribution is exact enough


class Mean(NamedTuple):
    """The mean of several runs, and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.high - self.value:.2g}" if self.high > self.value else f"{self.value:.4g}"


def mean_of(values: ArrayLike, together: int = 1) -> Mean:
    """The mean of the values with its interval, wide enough that *together* such intervals all hold in 95 % of cases.

    >>> print(mean_of([1.0, 2.0, 3.0]))
    2 ± 2.5
    """
    runs = np.asarray(values, np.float64)
    deviation = float(runs.std(ddof=1)) if len(runs) > 1 else 0.0
    return mean_with(float(runs.mean()), deviation, len(runs), together)


def mean_with(value: float, deviation: float, runs: int, together: int = 1) -> Mean:
    """A mean with its interval, from the standard deviation of its runs; a single run gets a margin of 0."""
    margin = student(runs - 1, together) * deviation / math.sqrt(runs) if runs > 1 else 0.0
    return Mean(value, value - margin, value + margin)


@lru_cache(maxsize=256)
def student(freedom: int, together: int = 1) -> float:
    """The number of deviations that cover 95 % of Student's distribution with these degrees of freedom.

    With *together* intervals, all of them hold in at least 95 % of cases (Bonferroni).

    >>> [round(student(k), 3) for k in (1, 5, 49, 1000)], round(student(49, 15), 3)
    ([12.706, 2.571, 2.01, 1.962], 3.086)
    """
    chance = (1 - SURE) / together
    if freedom < NEARLY_NORMAL:
        return _student(freedom, chance)
    z = NormalDist().inv_cdf(1 - chance / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _student(freedom: int, chance: float) -> float:
    """Compute it by bisection of the angle whose tangent is t / sqrt(freedom), for which the distribution is a finite sum."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        odd = freedom % 2
        term = total = 0.0 if freedom == 1 else math.cos(angle) if odd else 1.0
        for k in range(2 + odd, freedom - 1, 2):
            term *= math.cos(angle) ** 2 * (k - 1) / k
            total += term
        within = math.sin(angle) * total
        within = (angle + within) * 2 / math.pi if odd else within
        low, high = (angle, high) if within < 1 - chance else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def ratio_of(values: ArrayLike, base: ArrayLike, together: int = 1) -> Mean:
    """The ratio of the means of paired runs, with its interval (first order).

    >>> ratio_of([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    Mean(value=2.0, low=2.0, high=2.0)
    """
    over, under = np.asarray(values, np.float64), np.asarray(base, np.float64)
    ratio = float(over.mean() / under.mean())
    spread = mean_of((over - ratio * under) / under.mean(), together)
    margin = spread.high - spread.value
    return Mean(ratio, ratio - margin, ratio + margin)
