"""The Sweep algorithm: interleaving the optimal schedules of dags that stand side by side [1]_, section 3.

The table E(i, j) = E1(i) + E2(j) holds what i steps of the first and j of the second render. A path from the corner (0, 0)
to (n1, n2), down for a step of the first dag and right for one of the second, is an IC-optimal schedule of the sum exactly
when every entry on it is the largest of its diagonal. The verification table marks the entries that such a path reaches.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.theory.profiles import Profile, as_profile, convolve


class Interleaving(NamedTuple):
    """An optimal schedule of a sum: its profile, and the summand of each step."""

    profile: Profile
    turns: NDArray[np.int32]

    def merged(self, schedules: Sequence[Iterable[int]]) -> list[int]:
        """The summands' own schedules, each step taken from the one whose turn it is.

        >>> Interleaving(np.zeros(4, np.int64), np.array([0, 1, 0], np.int32)).merged([[7, 8], [9]])
        [7, 9, 8]
        """
        steps = [iter(schedule) for schedule in schedules]
        return [next(steps[turn]) for turn in self.turns.tolist()]


def sum_table(first: Sequence[int] | Profile, second: Sequence[int] | Profile) -> NDArray[np.int64]:
    """E(i, j) = E1(i) + E2(j).

    >>> sum_table([0, 4, 6], [0, 3, 5]).tolist()
    [[0, 3, 5], [4, 7, 9], [6, 9, 11]]
    """
    return np.add.outer(as_profile(first), as_profile(second))


def verification_table(first: Sequence[int] | Profile, second: Sequence[int] | Profile) -> NDArray[np.bool_]:
    """V(i, j): whether a path through diagonal maxima reaches the entry (i, j).

    >>> verification_table([0, 4, 6], [0, 3, 5]).astype(int).tolist()
    [[1, 0, 0], [1, 1, 1], [0, 1, 1]]
    """
    one, two = as_profile(first), as_profile(second)
    best = convolve(one, two)
    if len(one) > len(two):
        return verification_table(two, one).T
    diagonal = np.zeros((len(best), len(one) + 1), np.bool_)  # (i, j) is at [i + j, i + 1]
    for i, value in enumerate(one.tolist()):
        diagonal[i : i + len(two), i + 1] = value + two == best[i : i + len(two)]
    for before, here in pairwise(diagonal):
        here[1:] &= before[1:] | before[:-1]
    return np.stack([diagonal[i : i + len(two), i + 1] for i in range(len(one))])


def sweep_two(first: Sequence[int] | Profile, second: Sequence[int] | Profile) -> Interleaving | None:
    """2-IC-Sweep: an optimal interleaving of two dags with these maximal profiles, or None if the sum admits none.

    >>> sweep_two([0, 4, 6], [0, 3, 5]).turns.tolist()
    [0, 1, 1, 0]
    >>> sweep_two([0, 1], [0, 0, 2]) is None
    True
    """
    one, two = as_profile(first), as_profile(second)
    reached = verification_table(one, two)
    i, j = len(one) - 1, len(two) - 1
    if not reached[i, j]:
        return None
    turns = np.empty(i + j, np.int32)
    for k in range(i + j - 1, -1, -1):
        turns[k] = not (i and reached[i - 1, j])
        i, j = (i, j - 1) if turns[k] else (i - 1, j)
    return Interleaving(convolve(one, two), turns)


def sweep(profiles: Sequence[Sequence[int] | Profile]) -> Interleaving | None:
    """IC-Sweep for any number of dags, folded from the left; the sum admits exactly when the fold succeeds.

    That is Theorem 3.2 of [1]_. The dags are a ▷-chain exactly if their concatenated schedules are optimal for the sum (part
    2 of the theorem).

    >>> sweep([[0, 3, 4, 5], [0, 3, 4, 5]]).profile.tolist()
    [0, 3, 6, 7, 8, 9, 10]
    """
    total = Interleaving(as_profile(profiles[0]), np.zeros(len(profiles[0]) - 1, np.int32))
    for number, profile in enumerate(profiles[1:], 1):
        pair = sweep_two(total.profile, profile)
        if pair is None:
            return None
        turns = np.full(len(pair.turns), number, np.int32)
        turns[pair.turns == 0] = total.turns
        total = Interleaving(pair.profile, turns)
    return total
