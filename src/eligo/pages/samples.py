"""A curve of any length in a few hundred columns: of each the mean, and the least and the most, so that no peak is lost."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Sampled:
    """So many points in at most so many columns, as equal as can be.

    >>> columns = Sampled(5, 2)
    >>> columns.starts.tolist(), columns.sampled
    ([0, 2], True)
    >>> columns.line(np.array([1, 3, 2, 2, 8]))
    {'y': [2.0, 4.0], 'least': [1, 2], 'most': [3, 8]}
    >>> Sampled(3, 9).line(np.array([1, 3]))
    {'y': [1, 3], 'least': None, 'most': None}
    """

    def __init__(self, points: int, most: int) -> None:
        self.points, self.count = points, min(points, most)
        self.sampled = points > most

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first point of each column."""
        return np.arange(self.count, dtype=np.int64) * self.points // max(1, self.count)

    def _starts_within(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.starts[: int(np.searchsorted(self.starts, len(values), "left"))]

    def least(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The least of each column, as far as there are values."""
        return np.minimum.reduceat(values, self._starts_within(values)) if len(values) else values

    def most(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The most of each column, as far as there are values."""
        return np.maximum.reduceat(values, self._starts_within(values)) if len(values) else values

    def line(self, values: NDArray[np.int64]) -> dict[str, Any]:
        """Values, one a point as far as they go, as the page draws them."""
        if not self.sampled or not len(values):
            return {"y": values.tolist(), "least": None, "most": None}
        starts = self._starts_within(values)
        sizes = np.diff(np.append(starts, len(values)))
        return {
            "y": np.round(np.add.reduceat(values, starts) / sizes, 2).tolist(),
            "least": self.least(values).tolist(),
            "most": self.most(values).tolist(),
        }
