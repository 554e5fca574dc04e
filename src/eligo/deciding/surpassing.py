"""Sets that render more than any set of their size that agrees with the corners: with one of them no schedule is best.

Where the maxima of a dag are out of reach, such a set may still be found between two modules: some of the tasks of the first
are left out, and as many of the second are executed in their place.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from eligo.dag import Dag
from eligo.deciding.bounds import Module
from eligo.deciding.limits import MOST_SURPASSING, MOST_TRADES
from eligo.deciding.modules import Solved
from eligo.rows import Ints
from eligo.theory.profiles import Profile, concatenated, convolved


def surpassing(dag: Dag, modules: Sequence[Module], solved: Sequence[Solved]) -> Ints | None:
    """Tasks that are closed and render more than Mmod, where two modules side by side show some; needs exact maxima.

    >>> from eligo.deciding.bounds import best_shares
    >>> from eligo.deciding.effort import begun
    >>> from eligo.deciding.modules import solve_modules
    >>> arcs = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("a", "z"), ("b", "z"), ("c", "w")]
    >>> dag = Dag.from_arcs(arcs)
    >>> shares = best_shares(dag)
    >>> [dag.named(m.tasks) for m in shares.modules]
    [('a', 'b'), ('c',)]
    >>> found = surpassing(dag, shares.modules, solve_modules(dag, shares.modules, begun("normal")))
    >>> dag.named(found)
    ('c',)
    """
    if not all(one.exact for one in solved):
        return None
    before, base = [np.zeros(0, np.int32)], 0
    for (first, one), (second, two) in pairwise(zip(modules, solved, strict=True)):
        usual = concatenated([one.maxima, two.maxima])
        for kept, added in _trades(one.maxima, two.maxima, usual):
            tasks = np.concatenate([*before, first.tasks[one.order[:kept]], second.tasks[two.order[:added]]])
            if _rendered(dag, tasks) > base + usual[kept + added]:
                return tasks.astype(np.int32)
        before.append(first.tasks)
        base += len(first.renders)
    return None


def _trades(one: Profile, two: Profile, usual: Profile) -> Iterator[tuple[int, int]]:
    """How many of each render more together than one after the other, if nothing of the second needs the first."""
    if len(one) * len(two) > MOST_TRADES:
        return
    for t in np.flatnonzero(convolved(one, two) > usual)[:MOST_SURPASSING].tolist():
        kept = np.arange(max(0, t + 1 - len(two)), min(t, len(one) - 1) + 1)
        best = kept[(one[kept] + two[t - kept]).argmax()]
        yield int(best), t - int(best)


def _rendered(dag: Dag, tasks: Ints) -> int:
    """How many tasks have all their parents among these; -1 where one of these has not."""
    done = np.zeros(len(dag), np.bool_)
    done[tasks] = True
    whole = np.bincount(dag.child, ~done[dag.tails], minlength=len(dag)) == 0
    return int((whole & (dag.indegree > 0)).sum()) if whole[tasks].all() else -1
