"""The largest area, the best batch and the concave hull, computed slowly, for tests of faster methods."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.theory.exact import down_sets
from eligo.theory.profiles import Profile, hull_corners


def max_area_schedule(dag: Dag) -> tuple[str, ...]:
    """A schedule with the largest sum of E(t), by enumeration of every down-set."""
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}  # by executed set: the area so far, and the way there
    for layer in down_sets(dag):
        before, best = best, {}
        for executed, eligible in layer.items():
            lasts = [v for v in range(len(dag)) if executed >> v & 1 and executed ^ 1 << v in before]
            ways = [(area, (*way, v)) for v in lasts for area, way in [before[executed ^ 1 << v]]]
            area, way = max(ways, key=lambda way: way[0]) if executed else before[0]
            best[executed] = area + eligible.bit_count(), way
    ((_, order),) = best.values()
    return dag.named(order)


def best_batch(dag: Dag, executed: Iterable[str], requests: int) -> tuple[tuple[str, ...], int]:
    """The choice of that many eligible tasks whose execution leaves the most tasks eligible, and how many that is."""
    done = set(executed)
    ready = _eligible(dag, done)
    if not 0 <= requests <= len(ready):
        raise InputError(f"cannot choose {requests} tasks from {len(ready)} eligible tasks")
    outcomes = {chosen: len(_eligible(dag, done.union(chosen))) for chosen in combinations(ready, requests)}
    best = max(outcomes, key=outcomes.__getitem__)
    return best, outcomes[best]


def _eligible(dag: Dag, executed: set[str]) -> list[str]:
    return [task for task in dag.tasks if task not in executed and executed.issuperset(dag.parents(task))]


def concave_hull(profile: Profile) -> NDArray[np.float64]:
    """The least concave function that is nowhere below the profile, at the whole numbers."""
    corners = hull_corners(profile)
    return np.interp(np.arange(len(profile)), corners, profile[corners])
