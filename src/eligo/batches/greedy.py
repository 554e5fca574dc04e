"""Components too large for tables: orders whose beginnings are good batches, a bound, and exchanges that improve a batch.

**Expansive dags.** The batch of the tasks with the most private children is fast and within a proved factor. In an
*expansive* residual every eligible task v has phi(v) >= 2 private sinks, which miss no other task, and at most phi(v) shared
ones. The r tasks of largest phi then gain at least half of what the best r gain [1]_, where gain is the change in the
number of eligible tasks. Proof: let S be the sum of the r largest phi, so S >= 2r. They gain at least S - r. A shared sink
misses at least two tasks, so any r tasks gain at most S + S/2 - r, which is at most 2 (S - r). The factor is tight: tasks
in pairs that share two sinks, phi = 2. The paper proves 4 for phi as counted in the whole dag, including executed parents;
the factor of that choice is 3, and no better: if the other parents of shared sinks are already executed, it gains 1 instead
of 3.

**Shares.** A bound of every batch: each sink hands one unit of worth to the sources it misses. Whatever the shares, k
sources render no more sinks than the k largest sums of shares. The computation starts with equal shares; a few rounds in
which every sink gives less to its richer sources bring the bound close to the least one, which minimum cuts would find
(`eligo.deciding.bounds`).

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing, section 6.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import best_shares
from eligo.deciding.orders import RELEASES, nonsinks_of, release_order
from eligo.deciding.work import Clock, Work
from eligo.kernels import graph
from eligo.rows import Ints, places
from eligo.theory.profiles import Profile

# The most private children


Counts = NDArray[np.int64]

SPARSE = 16  # up to this fraction of the sources, they are picked one by one
MOST_WANTED = 4  # sources that one exchange may bring in
SHARE_ROUNDS = 12  # rounds in which sinks give less to their richer sources


def private_children(dag: Dag) -> Counts:
    """For every task, the number of its children that have no other parent: phi.

    >>> private_children(Dag.from_arcs([("a", "x"), ("a", "y"), ("b", "y")], tasks="abxy")).tolist()
    [1, 0, 0, 0]
    """
    sole = dag.indegree[dag.child] == 1
    return np.bincount(dag.tails, sole, minlength=len(dag)).astype(np.int64)


def largest(scores: Counts, size: int) -> Ints:
    """The places of the *size* largest scores, ascending; among equal scores earlier places count first. In linear time.

    >>> largest(np.array([2, 5, 2, 9, 2]), 3).tolist()
    [0, 1, 3]
    """
    n = len(scores)
    inside = np.zeros(n, np.bool_)
    keys = scores * n - np.arange(n)
    inside[np.argpartition(-keys, size)[:size] if size < n else slice(n)] = True
    return np.flatnonzero(inside).astype(np.int32)


# A bound


def share_bound(residual: Dag, rounds: int = SHARE_ROUNDS) -> Profile:
    """A bound of the sinks that k sources of a bipartite dag can render, for all k.

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


# Orders and exchanges


@dataclass(frozen=True, eq=False)
class Guess:
    """Batches of every size up to `size` from a few orders: `table` gives the number of sinks that the best of them render.

    `bound` gives an upper bound for any batch.

    >>> cycle = Dag.from_arrays(6, [0, 0, 1, 1, 2, 2], [3, 4, 4, 5, 5, 3])
    >>> guess = Guess.of(cycle, 3)
    >>> guess.table.tolist(), guess.bound.tolist(), guess.choose(2)
    ([0, 0, 1, 3], [0, 1, 2, 3], [0, 1])
    """

    residual: Dag
    size: int
    orders: Sequence[Ints]
    tables: Sequence[Profile]
    bound: Profile

    @classmethod
    def of(cls, residual: Dag, size: int) -> "Guess":
        """Batches from two orders: most releases first, and most private children first."""
        sources = int((residual.outdegree > 0).sum())
        size = min(size, sources)
        private = private_children(residual)[:sources]
        top = largest(private, size)
        guess = cls(residual, size, [], [], share_bound(residual)[: size + 1])
        return guess._with(most_releases(residual, size))._with(top[np.argsort(-private[top], kind="stable")])

    def with_modules(self, seconds: float) -> "Guess":
        """These batches and those of an order module by module, with a bound by minimum cuts, as exact as time allows."""
        shares = best_shares(self.residual, Work(clock=Clock(seconds)))
        order = nonsinks_of(self.residual, release_order(self.residual, shares.modules))
        bound = np.minimum(self.bound, shares.bound[: self.size + 1])
        return replace(self._with(order[: self.size]), bound=bound)

    def _with(self, order: Ints) -> "Guess":
        table = rendered_along(self.residual, order)
        return replace(self, orders=[*self.orders, order], tables=[*self.tables, table])

    @property
    def table(self) -> Profile:
        """The number of sinks that the best of the orders renders, for every size."""
        best: Profile = np.max(np.stack(self.tables), axis=0)
        return best

    def choose(self, size: int) -> list[int]:
        """The first *size* sources of the order that is best for this size, ascending."""
        values = [int(table[size]) for table in self.tables]
        return sorted(self.orders[values.index(max(values))][:size].tolist())


def rendered_along(residual: Dag, order: Ints) -> Profile:
    """The number of sinks that the first 0, 1, ... sources of an order render.

    >>> rendered_along(Dag.from_arrays(4, [0, 1, 1], [2, 2, 3]), np.array([1, 0], np.int32)).tolist()
    [0, 1, 2]
    """
    position = places(len(residual), order, elsewhere=len(order))
    step = np.empty(len(residual), np.int32)
    graph.eligible_steps(residual.parent_ptr, residual.parent, position, step)
    return np.cumsum(np.bincount(step[residual.indegree > 0], minlength=len(order) + 1)[: len(order) + 1])


def most_releases(residual: Dag, size: int) -> Ints:
    """The first *size* sources of the order that always takes the source that releases most, now or soon.

    >>> most_releases(Dag.from_arrays(7, [0, 1, 2, 2, 2], [3, 3, 4, 5, 6]), 2).tolist()
    [2, 0]
    """
    sources = int((residual.outdegree > 0).sum())
    if size * SPARSE > sources:
        return nonsinks_of(residual, release_order(residual))[:size]
    worth = RELEASES.tolist()
    worth += [0.0] * max(int(residual.indegree.max(initial=0)) + 1 - len(worth), 0)
    missing = residual.indegree.copy()
    score = np.bincount(residual.tails, np.array(worth)[missing[residual.child]], minlength=len(residual))
    return _pick(residual, size, score[:sources].astype(np.float64), missing, worth)


def _pick(residual: Dag, size: int, score: NDArray[np.float64], missing: Ints, worth: list[float]) -> Ints:
    """Pick sources one by one. Scores only rise, so only those that rose and the *size* largest at first are candidates."""
    heap = [(-float(score[u]), u) for u in np.lexsort((np.arange(len(score)), -score))[:size].tolist()]
    heapify(heap)
    picked: dict[int, None] = {}
    while len(picked) < size:
        key, u = heappop(heap)
        if u in picked or -key < score[u]:
            continue
        picked[u] = None
        for v in residual.children_of(u).tolist():
            missing[v] -= 1
            rise = worth[missing[v]] - worth[missing[v] + 1]
            if rise and missing[v]:
                for w in residual.parents_of(v).tolist():
                    if w not in picked:
                        score[w] += rise
                        heappush(heap, (-float(score[w]), w))
    return np.array(list(picked), np.int32)


def improve_batch(residual: Dag, chosen: Sequence[int], clock: Clock) -> list[int]:
    """A batch of the same size that renders at least as much, by exchanges as long as one helps and time allows.

    An exchange adds all sources that some sink still misses, and drops those whose loss costs least.

    >>> pairs = Dag.from_arrays(6, [0, 1, 2, 3], [4, 4, 5, 5])
    >>> improve_batch(pairs, [0, 3], Clock())
    [0, 1]
    """
    batch = _Exchanges(residual, chosen)
    while not clock.over() and batch.improve(clock):
        pass
    return sorted(batch.inside)


class _Exchanges:
    """A batch, with the number of sources that every sink still misses."""

    def __init__(self, residual: Dag, chosen: Sequence[int]) -> None:
        self._child_ptr: list[int] = residual.child_ptr.tolist()
        self._child: list[int] = residual.child.tolist()
        self._parent_ptr: list[int] = residual.parent_ptr.tolist()
        self._parent: list[int] = residual.parent.tolist()
        self.missing: list[int] = residual.indegree.tolist()
        self.rendered = 0
        self.inside: set[int] = set()
        for u in chosen:
            self._add(u)

    def improve(self, clock: Clock) -> bool:
        """Try exchanges in one round over the sinks that miss few sources; returns whether one helped."""
        helped = False
        most = min(MOST_WANTED, len(self.inside))
        for v in sorted(range(len(self.missing)), key=self.missing.__getitem__):
            if 0 < self.missing[v] <= most:
                helped |= self._exchange([u for u in self._parents(v) if u not in self.inside])
                if clock.over():
                    break
        return helped

    def _exchange(self, wanted: list[int]) -> bool:
        before = self.rendered
        for u in wanted:
            self._add(u)
        dropped = []
        for _ in wanted:
            dropped.append(min(self.inside.difference(wanted), key=lambda u: (self._loss(u), u)))
            self._drop(dropped[-1])
        if self.rendered > before:
            return True
        for u in dropped:
            self._add(u)
        for u in wanted:
            self._drop(u)
        return False

    def _loss(self, u: int) -> int:
        return sum(self.missing[v] == 0 for v in self._children(u))

    def _add(self, u: int) -> None:
        self.inside.add(u)
        for v in self._children(u):
            self.missing[v] -= 1
            self.rendered += self.missing[v] == 0

    def _drop(self, u: int) -> None:
        self.inside.remove(u)
        for v in self._children(u):
            self.rendered -= self.missing[v] == 0
            self.missing[v] += 1

    def _children(self, u: int) -> list[int]:
        return self._child[self._child_ptr[u] : self._child_ptr[u + 1]]

    def _parents(self, v: int) -> list[int]:
        return self._parent[self._parent_ptr[v] : self._parent_ptr[v + 1]]
