"""Exact solutions by sums over all subsets of a few items.

The items are the nonsinks of a dag, interchangeable ones (*twins*: equal parents, equal children) counted as one item of
larger weight, because executing some twins but not all renders nothing. With f(X) = the nonsources whose parents all lie in
X, computed for all 2^c sets of items at once, the maximum M(t) of f over closed sets of weight at most t is the maximal
cumulative profile, and a walk through sets that attain it is an IC-optimal schedule.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.kernels import graph
from eligo.rows import distinct
from eligo.theory.profiles import Profile

MOST_ITEMS = 24
MOST_ITEMS_FOR_AREA = 20
MOST_BEST_SETS = 10_000
MANY = 1_000  # nonsinks that are grouped one by one; of the others, all twins of one are found at once


@dataclass(frozen=True, eq=False)
class Subsets:
    """All sets of the items of a dag: the twins of each item, the items it needs, and the rewards of sets of items."""

    twins: list[list[int]]
    needs: list[int]
    rewards: Mapping[int, int]

    @classmethod
    def of(cls, dag: Dag, most: int = MOST_ITEMS) -> "Subsets | None":
        """The items of a dag, or None if there are more than *most*.

        >>> quiet = Subsets.of(Dag.from_arcs([("a", "x"), ("b", "x"), ("c", "y")]))
        >>> quiet.twins, quiet.maxima.tolist()
        ([[0, 2], [3]], [0, 1, 1, 2])
        """
        twins = _twins(dag, most)
        if twins is None:
            return None
        bit, needed = np.zeros(len(dag), np.int64), np.zeros(len(dag), np.int64)
        for i, members in enumerate(twins):
            bit[members] = 1 << i
        nonsources = np.flatnonzero(dag.indegree)
        if len(nonsources):
            needed[nonsources] = np.bitwise_or.reduceat(bit[dag.parent], dag.parent_ptr[nonsources])
        rewards = Counter(needed[nonsources].tolist())
        return cls(twins, [int(needed[members[0]]) for members in twins], rewards)

    def __len__(self) -> int:
        return len(self.twins)

    @cached_property
    def weights(self) -> list[int]:
        """The number of tasks of each item."""
        return [len(members) for members in self.twins]

    @cached_property
    def rendered(self) -> NDArray[np.int32]:
        """For every set, the number of nonsources with all parents in it, by one subset-sum transform."""
        values = np.zeros(1 << len(self), np.int32)
        for mask, count in self.rewards.items():
            values[mask] = count
        for i in range(len(self)):
            halves = values.reshape(-1, 2, 1 << i)
            halves[:, 1] += halves[:, 0]
        return values

    @cached_property
    def weight(self) -> NDArray[np.int32]:
        """For every set, the number of its tasks."""
        total = np.zeros(1, np.int32)
        for w in self.weights:
            total = np.concatenate([total, total + np.int32(w)])
        return total

    @cached_property
    def closed(self) -> NDArray[np.intp]:
        """The sets that contain the needs of each of their items, ascending."""
        sets = np.arange(1 << len(self))
        for i, need in enumerate(self.needs):
            if need:
                sets = sets[((sets >> i & 1) == 0) | (sets & need == need)]
        return sets

    @cached_property
    def maxima(self) -> Profile:
        """M(t): the most nonsources that t executions can render."""
        best = np.zeros(sum(self.weights) + 1, np.int32)
        least = np.zeros_like(best)
        weight, rendered = self.weight, self.rendered
        if any(self.needs):
            weight, rendered = weight[self.closed], rendered[self.closed]
        graph.extremes(weight, rendered, least, best)
        return np.maximum.accumulate(best.astype(np.int64))

    def optimal_order(self) -> list[int] | None:
        """The nonsinks in an order that attains M(t) at every t, or None if there is none: exhaustive search."""
        full, dead = (1 << len(self)) - 1, set[int]()
        path: list[tuple[int, Iterator[int]]] = [(0, self._optimal_steps(0))]
        while path:
            done, steps = path[-1]
            if done == full:
                return self._tasks_of([later ^ earlier for (earlier, _), (later, _) in itertools.pairwise(path)])
            following = next((x for x in steps if x not in dead), None)
            if following is None:
                dead.add(done)
                path.pop()
            else:
                path.append((following, self._optimal_steps(following)))
        return None

    def _optimal_steps(self, done: int) -> Iterator[int]:
        """The sets with one item more for which the profile stays maximal up to and including the last twin of that item."""
        for i, weight in enumerate(self.weights):
            larger = done | 1 << i
            if larger == done or self.needs[i] & ~done:
                continue
            end = int(self.weight[done]) + weight
            if self.maxima[end - 1] == self.rendered[done] and self.maxima[end] == self.rendered[larger]:
                yield larger

    def best_order(self) -> tuple[list[int], bool]:
        """The nonsinks in an optimal order or, if there is none, in one of largest area; and whether it is optimal."""
        optimal = self.optimal_order()
        return (self.largest_area_order(), False) if optimal is None else (optimal, True)

    def conflict(self) -> tuple[int, ...]:
        """Steps at which no schedule is best together: the closest such pair, else a shortest run of steps.

        A schedule that is best after two steps needs a best set of the one inside a best set of the other; the steps at
        which M(t) rises suffice. Empty if there are too many best sets to compare.

        >>> Subsets.of(Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])).conflict()
        (2, 3)
        """
        rises = (np.flatnonzero(np.diff(self.maxima)) + 1).tolist()
        best = [self._best_sets(t) for t in rises]
        if sum(map(len, best)) > MOST_BEST_SETS:
            return ()
        for gap in range(1, len(rises)):
            for i in range(len(rises) - gap):
                if not len(_containing(best[i + gap], best[i])):
                    return rises[i], rises[i + gap]
        for i in range(len(rises)):
            if not len(self._surviving(rises[: i + 1])):
                return tuple(rises[: i + 1])
        return ()

    def best_set(self, *steps: int) -> list[int]:
        """A smallest set of nonsinks that renders M(t) by the last of these steps, after best sets at the earlier ones."""
        sets = self._surviving(steps)
        chosen = int(sets[np.argmin(self.weight[sets])])
        return sorted(v for i, members in enumerate(self.twins) if chosen >> i & 1 for v in members)

    def _surviving(self, steps: Sequence[int]) -> NDArray[np.intp]:
        """The best sets of the last step that a schedule can reach through best sets of all the others."""
        alive = np.zeros(1, np.intp)
        for t in steps:
            alive = _containing(self._best_sets(t), alive)
        return alive

    def _best_sets(self, t: int) -> NDArray[np.intp]:
        """The closed sets that render M(t) with at most t tasks."""
        sets = self.closed
        best: NDArray[np.intp] = sets[(self.weight[sets] <= t) & (self.rendered[sets] == self.maxima[t])]
        return best

    def largest_area_order(self) -> list[int]:
        """The nonsinks in an order with the largest sum of the cumulative profile: dynamic programming over closed sets."""
        area = np.full(1 << len(self), -1, np.int64)
        last = np.full(1 << len(self), -1, np.int8)
        area[0] = 0
        sizes = np.bitwise_count(self.closed)
        for size in range(1, len(self) + 1):
            layer = self.closed[sizes == size]
            for i, weight in enumerate(self.weights):
                here = layer[(layer >> i & 1) == 1]
                before = here ^ 1 << i
                reach = np.where(
                    area[before] < 0, -1, area[before] + self.rendered[before] * (weight - 1) + self.rendered[here]
                )
                better = reach > area[here]
                area[here[better]], last[here[better]] = reach[better], i
        return self._tasks_of(list(self._retrace(last)))

    def _retrace(self, last: NDArray[np.int8]) -> Iterator[int]:
        done, backwards = (1 << len(self)) - 1, []
        while done:
            backwards.append(1 << int(last[done]))
            done ^= backwards[-1]
        return reversed(backwards)

    def _tasks_of(self, bits: list[int]) -> list[int]:
        return [v for bit in bits for v in self.twins[bit.bit_length() - 1]]


def _twins(dag: Dag, most: int) -> list[list[int]] | None:
    """The nonsinks, grouped by equal parents and equal children; None as soon as there are too many groups."""
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    nonsinks = np.flatnonzero(dag.outdegree > 0)
    for v in nonsinks[:MANY].tolist():
        parents, children = _row(dag.parent_ptr, dag.parent, v), _row(dag.child_ptr, dag.child, v)
        groups.setdefault((parents.tobytes(), children.tobytes()), []).append(v)
        if len(groups) > most:
            return None
    twins, rest = list(groups.values()), nonsinks[MANY:]
    first, last = (dag.child[ptr].astype(np.int64) for ptr in (dag.child_ptr[rest], dag.child_ptr[rest + 1] - 1))
    if len(distinct(first * len(dag) + last)) > most:
        return None
    for group in twins:
        alike = _alike(dag, rest, group[0])
        group.extend(rest[alike].tolist())
        rest = rest[~alike]
    while len(rest) and len(twins) <= most:
        alike = _alike(dag, rest, int(rest[0]))
        twins.append(rest[alike].tolist())
        rest = rest[~alike]
    return None if len(twins) > most else twins


def _alike(dag: Dag, tasks: NDArray[np.intp], v: int) -> NDArray[np.bool_]:
    """The mask of the tasks that have the parents and the children of task v."""
    alike = np.ones(len(tasks), np.bool_)
    for ptr, rows in ((dag.parent_ptr, dag.parent), (dag.child_ptr, dag.child)):
        row = _row(ptr, rows, v)
        alike &= ptr[1:][tasks] - ptr[:-1][tasks] == len(row)
        alike[alike] = (rows[ptr[tasks[alike], None] + np.arange(len(row))] == row).all(1)
    return alike


def _containing(larger: NDArray[np.intp], smaller: NDArray[np.intp]) -> NDArray[np.intp]:
    """The larger sets that contain one of the smaller ones."""
    return larger[[bool(((smaller & ~x) == 0).any()) for x in larger]] if len(larger) else larger


def _row(ptr: NDArray[np.int32], rows: NDArray[np.int32], v: int) -> NDArray[np.int32]:
    return rows[ptr[v] : ptr[v + 1]]
