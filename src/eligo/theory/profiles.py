"""Arithmetic on cumulative profiles: arrays E(0) = 0, E(1), ..., E(s), never falling.

The *max-plus convolution* of two profiles is, for each k, the most that k executions split between the two can render.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Profile = NDArray[np.int64]


def as_profile(values: Sequence[int] | Profile) -> Profile:
    """The values as an array of exact integers."""
    return np.asarray(values, np.int64)


def convolve(first: Profile, second: Profile, most: int | None = None) -> Profile:
    """The max-plus convolution: max over i + j = k of first(i) + second(j), for all k or only for k < *most*.

    >>> convolve(as_profile([0, 4, 6]), as_profile([0, 3, 5])).tolist()
    [0, 4, 7, 9, 11]
    """
    short, long = sorted((first, second), key=len)
    length = len(first) + len(second) - 1 if len(short) else 0
    best = np.full(length if most is None else min(length, max(most, 0)), np.iinfo(np.int64).min, np.int64)
    for i, value in enumerate(short[: len(best)].tolist()):
        window = best[i : i + len(long)]
        np.maximum(window, long[: len(window)] + value, out=window)
    return best


def concatenate(profiles: Sequence[Profile]) -> Profile:
    """The profile of running all of the first, then all of the second, and so on.

    >>> concatenate([as_profile([0, 2]), as_profile([0, 0, 1])]).tolist()
    [0, 2, 2, 3]
    """
    if not profiles:
        return np.zeros(1, np.int64)
    gains = np.concatenate([np.diff(profile) for profile in profiles])
    return np.concatenate([[0], np.cumsum(gains)])


def repeat_profile(profile: Profile, times: int) -> Profile:
    """The profile of several copies, run one after another; *times* is their number."""
    return concatenate([profile] * times)


def dual_maxima(maxima: Profile, sinks: int) -> Profile:
    """The maximal profile of the dual of a bipartite block, from its own maxima and its number of sinks.

    To render j tasks of the dual, all that they need must be executed: the least number of dual steps that renders j is the
    number of sinks less the number that the block's other s - j sources can render.

    >>> dual_maxima(np.array([0, 1, 2, 4]), 4).tolist()
    [0, 0, 1, 2, 3]
    """
    s = len(maxima) - 1
    least = sinks - maxima[s - np.arange(s + 1)]
    return np.searchsorted(least, np.arange(sinks + 1), side="right").astype(np.int64) - 1


def hull_corners(profile: Profile) -> list[int]:
    """The steps at which the concave hull of a profile bends, including both ends.

    >>> hull_corners(as_profile([0, 0, 2, 2]))
    [0, 2, 3]
    """
    corners: list[int] = []
    values = profile.tolist()  # faster than an array for access one by one
    for t, value in enumerate(values):
        while len(corners) > 1 and _below(values, corners[-2], corners[-1], t, value):
            corners.pop()
        corners.append(t)
    return corners


class Side(NamedTuple):
    """A side of the concave hull: its slope p / q in lowest terms, and the gains of the profile's steps below it."""

    p: int
    q: int
    gains: Profile


def hull_sides(profile: Profile) -> list[Side]:
    """The sides of the concave hull, the steepest first.

    >>> [(p, q, gains.tolist()) for p, q, gains in hull_sides(as_profile([0, 0, 2, 2]))]
    [(1, 1, [0, 2]), (0, 1, [0])]
    """
    corners, gains = hull_corners(profile), np.diff(profile)
    widths, rises = np.diff(corners), np.diff(profile[corners])
    common = np.gcd(widths, rises)
    slopes = zip((rises // common).tolist(), (widths // common).tolist(), strict=True)
    return [Side(p, q, gains[a:b]) for (p, q), (a, b) in zip(slopes, pairwise(corners), strict=True)]


def _below(profile: list[int], a: int, b: int, t: int, value: int) -> bool:
    """Whether the corner at b lies on or below the line from a to (t, value)."""
    return (profile[b] - profile[a]) * (t - a) <= (value - profile[a]) * (b - a)
