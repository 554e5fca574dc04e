"""A bound of every batch from shares: each sink hands one unit of worth to the sources it misses.

Whatever the shares, k sources render no more sinks than the k largest sums of shares. Equal shares are a beginning; a few
rounds in which every sink gives less to its richer sources bring the bound close to the least, which minimum cuts would find
(`eligo.deciding.bounds`).
"""

import numpy as np

from eligo.batches.limits import SHARE_ROUNDS
from eligo.dag import Dag
from eligo.theory.profiles import Profile


def share_bound(residual: Dag, rounds: int = SHARE_ROUNDS) -> Profile:
    """At most how many sinks k sources of a bipartite dag can render, for all k.

    >>> m = Dag.from_arrays(7, [0, 1, 2, 2, 3, 4], [5, 5, 5, 6, 6, 6])  # M(2,3)
    >>> share_bound(m, rounds=0).tolist(), share_bound(m).tolist()
    ([0, 0, 1, 1, 1, 2], [0, 0, 0, 1, 1, 2])
    """
    tails, heads, n = residual.tails, residual.child, len(residual)
    degree, step = np.maximum(residual.indegree, 1), 1 / (1 + residual.outdegree[tails])
    share = 1 / degree[heads]
    for _ in range(rounds):
        worth = np.bincount(tails, share, minlength=n)[tails]
        average = (np.bincount(heads, worth, minlength=n) / degree)[heads]
        share = np.maximum(share + (average - worth) * step, 0)
        share /= np.bincount(heads, share, minlength=n)[heads]
    worth = np.sort(np.bincount(tails, share, minlength=n)[residual.outdegree > 0])[::-1]
    sums = np.floor(np.concatenate([[0], np.cumsum(worth)]) + 1e-6).astype(np.int64)
    return np.minimum(sums, int((residual.indegree > 0).sum()))
