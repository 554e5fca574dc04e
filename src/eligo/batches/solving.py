"""One component by itself: for every number of executed sources, the most sinks rendered, and which sources do it.

Trees by dynamic programming; other components with few different sources, or few different sinks, by sums over all sets of
them. What fits neither is left to the solvers for one size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eligo.batches.limits import FEW_ITEMS, MOST_ITEMS
from eligo.batches.trees import TreeBatches
from eligo.dag import Dag
from eligo.deciding.clock import Clock
from eligo.theory.profiles import Profile
from eligo.theory.subsets import Subsets


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The best batches of a component: `table` says how many sinks k sources can render, `choose` which sources do."""

    table: Profile
    choose: Callable[[int], list[int]]
    method: str

    def reaches(self, size: int) -> bool:
        """Whether batches of this size are in the table."""
        return size < len(self.table)


def solve(component: Dag, limit: int, clock: Clock) -> BatchSolution | None:
    """The best batches of up to *limit* sources of a connected bipartite dag, or None where it is too large for that.

    >>> solved = solve(Dag.from_arrays(5, [0, 0, 1, 1, 2], [3, 4, 3, 4, 4]), 3, Clock())
    >>> solved.table.tolist(), solved.choose(2), solved.method
    ([0, 0, 1, 2], [0, 1], 'subsets')
    """
    sources = int((component.outdegree > 0).sum())
    if component.arc_count == len(component) - 1:
        tree = TreeBatches(component, min(limit, sources))
        return BatchSolution(tree.table, tree.choose, "tree")
    most = FEW_ITEMS if clock.over() else MOST_ITEMS
    return _by_sources(component, sources, most) or _by_sinks(component, sources, most)


def _by_sources(component: Dag, sources: int, most: int) -> BatchSolution | None:
    """Every set of sources, twins counted once."""
    subsets = Subsets.of(component, most)
    if subsets is None:
        return None
    return BatchSolution(subsets.maxima, lambda k: filled(subsets.best_set(k), k, sources), "subsets")


def _by_sinks(component: Dag, sources: int, most: int) -> BatchSolution | None:
    """Every set of sinks, twins counted once: a source is spared when all its children are."""
    subsets = Subsets.of(component.dual(), most)
    if subsets is None:
        return None
    needed, rendered = sources - subsets.rendered, len(component) - sources - subsets.weight
    best = np.zeros(sources + 1, np.int64)
    np.maximum.at(best, needed, rendered)
    table = np.maximum.accumulate(best)

    def choose(k: int) -> list[int]:
        spared = int(np.flatnonzero((needed <= k) & (rendered == table[k]))[0])
        wanted = np.ones(len(component), np.bool_)
        wanted[[v for i, twins in enumerate(subsets.twins) if spared >> i & 1 for v in twins]] = False
        return filled(np.unique(component.tails[wanted[component.child]]).tolist(), k, sources)

    return BatchSolution(table, choose, "subsets")


def filled(chosen: list[int], size: int, sources: int) -> list[int]:
    """The chosen sources and as many others, the first ones, as are asked for; ascending."""
    if len(chosen) >= size:
        return sorted(chosen)
    free = np.ones(sources, np.bool_)
    free[chosen] = False
    return sorted(chosen + np.flatnonzero(free)[: size - len(chosen)].tolist())
