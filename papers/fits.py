"""Power laws fitted to points, and the lower convex envelope: the comparison paper [1]_, section 5.1.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eligo.simulation.tables import Floats

ROUNDS = 200  # of the fit, which takes about ten


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
