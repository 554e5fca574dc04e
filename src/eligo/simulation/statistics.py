"""Means with their intervals, power laws fitted to points, and the lower convex envelope.

What a comparison of schedulers needs of statistics [1]_, section 5.1, and no more.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

SURE = 0.95
NEARLY_NORMAL = 100  # degrees of freedom from which on a series for Student's distribution is exact enough
ROUNDS = 200  # of the fit, which takes about ten


class Mean(NamedTuple):
    """The mean of several runs, and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.high - self.value:.2g}" if self.high > self.value else f"{self.value:.4g}"


def mean_of(values: ArrayLike, together: int = 1) -> Mean:
    """The mean of the values with its interval; of so many *together*, all are right in 95 % of cases.

    >>> print(mean_of([1.0, 2.0, 3.0]))
    2 ± 2.5
    """
    runs = np.asarray(values, np.float64)
    deviation = float(runs.std(ddof=1)) if len(runs) > 1 else 0.0
    return mean_with(float(runs.mean()), deviation, len(runs), together)


def mean_with(value: float, deviation: float, runs: int, together: int = 1) -> Mean:
    """A mean of which the deviation of its runs is known; a single run has no interval."""
    margin = student(runs - 1, together) * deviation / math.sqrt(runs) if runs > 1 else 0.0
    return Mean(value, value - margin, value + margin)


@lru_cache(maxsize=256)
def student(freedom: int, together: int = 1) -> float:
    """How many deviations hold 95 % of Student's distribution with so many degrees of freedom.

    Of so many intervals *together*, all are right in at least 95 % of cases (Bonferroni).

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
    """By bisection of the angle whose tangent is t / sqrt(freedom), for which the distribution is a finite sum."""
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
    """The ratio of two means over runs that belong together in pairs, with its interval (first order).

    >>> ratio_of([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    Mean(value=2.0, low=2.0, high=2.0)
    """
    over, under = np.asarray(values, np.float64), np.asarray(base, np.float64)
    ratio = float(over.mean() / under.mean())
    spread = mean_of((over - ratio * under) / under.mean(), together)
    margin = spread.high - spread.value
    return Mean(ratio, ratio - margin, ratio + margin)


class PowerLaw(NamedTuple):
    """y = a v^b."""

    a: float
    b: float

    def __str__(self) -> str:
        return f"{self.a:.3g} v^{self.b:.3g}"

    def at(self, sizes: ArrayLike) -> Floats:
        """Its values."""
        return self.a * np.asarray(sizes, np.float64) ** self.b


def power_law(sizes: ArrayLike, values: ArrayLike) -> PowerLaw | None:
    """The a v^b with the least sum of squares; None where two positive values of different sizes are not there.

    Gauss and Newton's method with damping, from the straight line through the logarithms; for each b the best a is known,
    so only the two are ever searched together near the end.

    >>> print(power_law([10, 20, 40, 80], [0.5 * v**1.7 for v in (10, 20, 40, 80)]))
    0.5 v^1.7
    """
    v, y = np.asarray(sizes, np.float64), np.asarray(values, np.float64)
    positive = (v > 0) & (y > 0)
    if len(np.unique(v[positive])) < 2:
        return None
    unit = float(v.max())  # so that the powers stay near 1
    b = float(np.polyfit(np.log(v[positive]), np.log(y[positive]), 1)[0])
    scale, b = _refined(v / unit, y, _best_scale(v / unit, y, b), b)
    return PowerLaw(scale * unit**-b, b)


def _refined(x: Floats, y: Floats, scale: float, b: float) -> tuple[float, float]:
    damping = 1e-3
    error = _error(x, y, scale, b)
    for _ in range(ROUNDS):
        power = x**b
        slopes = np.column_stack([power, scale * power * np.log(x)])
        normal = slopes.T @ slopes
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)) + 1e-300, slopes.T @ (y - scale * power))
        tried = _error(x, y, scale + step[0], b + step[1])
        if tried > error:
            damping *= 10
            if damping > 1e12:
                break
            continue
        small = abs(step[1]) < 1e-13 * (1 + abs(b)) and abs(step[0]) < 1e-13 * (1 + abs(scale))
        scale, b, error, damping = scale + float(step[0]), b + float(step[1]), tried, damping / 10
        if small:
            break
    return scale, b


def _best_scale(x: Floats, y: Floats, b: float) -> float:
    power = x**b
    return float(power @ y / (power @ power))


def _error(x: Floats, y: Floats, scale: float, b: float) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(((y - scale * x**b) ** 2).sum())
    return found if math.isfinite(found) else math.inf


def lower_envelope(sizes: Sequence[float], values: Sequence[float]) -> list[int]:
    """Which points are corners of the lower convex envelope, from left to right.

    >>> lower_envelope([1, 2, 3, 4], [1, 3, 1, 5])
    [0, 2, 3]
    """
    corners: list[int] = []
    seen = -math.inf
    for i in sorted(range(len(sizes)), key=lambda i: (sizes[i], values[i])):
        if sizes[i] == seen:
            continue  # a lower point of the same size is there already
        seen = sizes[i]
        while len(corners) > 1 and _above(sizes, values, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    return corners


def _above(x: Sequence[float], y: Sequence[float], a: int, b: int, c: int) -> bool:
    """Whether point b lies on or above the line from a to c."""
    return (y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a])
