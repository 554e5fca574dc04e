"""Interchangeable tasks, verified arc by arc.

A set of tasks is *interchangeable* when for any two of them some automorphism of the dag swaps the two and leaves the
others of the set, and those of earlier such sets, in place. Then some best set of executed tasks has states that never rise
along a fixed order of the set, because the automorphisms can sort it: of the many combinations of states only the sorted ones
matter.

Candidates come from colours. Each swap is written out as a map of tasks and checked on every arc, so nothing depends on the
colours being right.

Colours also give a numbering of tasks that does not depend on the previous one, as far as they distinguish the tasks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.effort import LEAST_ALIKE, MOST_ROUNDS, MOST_SETTLED
from eligo.deciding.work import Work
from eligo.rows import Ints

# Colours


ROUND = 80  # units of work for each task and arc in a round of refining


def colours(dag: Dag, start: NDArray[np.int64] | None = None, work: Work | None = None) -> NDArray[np.int64]:
    """Colours by refinement: tasks get equal colours unless some count of their parents and children, near or far, differs.

    Tasks that differ in *start* get different colours.

    >>> colours(Dag.from_arcs([("a", "b"), ("a", "c"), ("c", "d")])).tolist()
    [3, 0, 2, 1]
    """
    colour = _rank(dag.height, dag.level) if start is None else _rank(start, dag.height, dag.level)
    previous = 0
    for _ in range(MOST_ROUNDS):
        if (distinct := int(colour.max(initial=-1)) + 1) == previous or (work is not None and work.over()):
            break
        previous = distinct
        if work is not None:
            work.spend(ROUND * (len(dag) + dag.arc_count))
        mixed = _scatter(colour)
        above = _row_sums(mixed[dag.parent], dag.parent_ptr)
        below = _row_sums(mixed[dag.child], dag.child_ptr)
        colour = _rank(colour, above, below)
    return colour


def canonical_order(dag: Dag) -> Ints:
    """The tasks sorted by longest remaining path, then by colour, then by number."""
    return np.lexsort((colours(dag), -dag.height)).astype(np.int32)


def settled_order(dag: Dag, work: Work) -> Ints:
    """The tasks sorted by colour, after tasks of equal colour with different neighbours got colours of their own.

    Isomorphic dags mostly become equal if numbered in this order, namely if tasks of equal colour are interchangeable.
    """
    colour = colours(dag, None, work)
    for _ in range(MOST_SETTLED):
        v = None if work.over() else _first_unlike(dag, colour)
        if v is None:
            break
        start = 2 * colour
        start[v] -= 1
        colour = colours(dag, start, work)
    return np.argsort(colour, kind="stable").astype(np.int32)


def _first_unlike(dag: Dag, colour: NDArray[np.int64]) -> int | None:
    """The first task of a colour that a task with other parents or children has as well; None if there is none."""
    looks: dict[int, tuple[int, bytes, bytes]] = {}
    for v in np.argsort(colour, kind="stable").tolist():
        own = v, dag.parents_of(v).tobytes(), dag.children_of(v).tobytes()
        first = looks.setdefault(int(colour[v]), own)
        if first[1:] != own[1:]:
            return first[0]
    return None


def _rank(*keys: NDArray[np.generic]) -> NDArray[np.int64]:
    """The rank of each task's keys among the distinct ones."""
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), np.int64)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new)
    return ranks


def _scatter(colour: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Each colour as a number of 64 scattered bits, so that different multisets have different sums."""
    x = colour.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def _row_sums(values: NDArray[np.uint64], ptr: Ints) -> NDArray[np.uint64]:
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    differences: NDArray[np.uint64] = sums[ptr[1:]] - sums[ptr[:-1]]
    return differences


# Swaps


EXCHANGE = 100  # units of work for each task and arc when two branches are exchanged


class Alike(NamedTuple):
    """Interchangeable tasks in a fixed order, and for each two neighbours the automorphism that swaps them."""

    members: list[int]
    swaps: list[Ints]


class Twins:
    """The search for interchangeable tasks of a dag: `sets` has those found so far, each with verified swaps.

    >>> fork = Dag.from_arcs([("a", x) for x in "bcd"] + [(x, "e") for x in "bcd"])
    >>> (twins := Twins(fork, Work())).look(range(5))
    >>> [fork.named(alike.members) for alike in twins.sets]
    [('b', 'c', 'd')]
    """

    def __init__(self, dag: Dag, work: Work) -> None:
        self.dag, self.work = dag, work
        self.colour = colours(dag, None, work)
        self.sets: list[Alike] = []
        self._seen: set[int] = set()

    @cached_property
    def twice(self) -> Dag:
        """Two copies of the dag side by side, as one dag: their colours are refined together."""
        n = np.int32(len(self.dag))
        tails, heads = (np.concatenate([ends, ends + n]) for ends in (self.dag.tails, self.dag.child))
        return Dag.from_checked(2 * len(self.dag), tails, heads, None)

    def classes(self, among: Iterable[int]) -> list[list[int]]:
        """These tasks grouped by colour, the largest class first."""
        classes: dict[int, list[int]] = defaultdict(list)
        for v in sorted(among):
            classes[int(self.colour[v])].append(v)
        return sorted(classes.values(), key=len, reverse=True)

    def look(self, among: Sequence[int]) -> None:
        """Search for sets among these tasks, except those searched before; swaps leave earlier sets in place."""
        for members in self.classes(v for v in among if v not in self._seen):
            if len(members) >= LEAST_ALIKE:
                alike = self._chain(members, [v for alike in self.sets for v in alike.members])
                if len(alike.members) >= LEAST_ALIKE:
                    self.sets.append(alike)
        self._seen.update(among)

    def _chain(self, members: list[int], fixed: list[int]) -> Alike:
        """Members, from the first on, each of which can be swapped with the next: such swaps generate all."""
        alike = Alike(members[:1], [])
        for v in members[1:]:
            last = alike.members[-1]
            others = [m for m in members if m not in (last, v)]
            image = None if self.work.over() else swap(self, last, v, [*fixed, *others])
            if image is not None:
                alike.members.append(v)
                alike.swaps.append(image)
        return alike


def swap(twins: Twins, a: int, b: int, fixed: Sequence[int]) -> Ints | None:
    """An automorphism that swaps a and b and leaves the *fixed* tasks in place, as a map of tasks; None if none is found.

    Two copies of the dag are coloured alike except for a and b, which change places in the second, and refined together:
    tasks of equal colour correspond. Ambiguous pairs are decided one at a time.
    """
    dag, twice, colour = twins.dag, twins.twice, twins.colour
    n = len(dag)
    top = int(colour.max(initial=0)) + 1
    start = np.concatenate([colour, colour])
    for k, v in enumerate(fixed):
        start[v] = start[n + v] = top + k
    start[a] = start[n + b] = top + len(fixed)
    start[b] = start[n + a] = top + len(fixed) + 1
    refined = colours(twice, start, twins.work)
    same = np.flatnonzero(refined[:n] == refined[n:])
    refined[same] = refined[n + same] = refined.max() + 1 + np.arange(len(same))
    refined = colours(twice, refined, twins.work)
    image = _read_off(twins, refined)
    return image if image is not None and is_automorphism(dag, image) else None


def _read_off(twins: Twins, refined: NDArray[np.int64]) -> Ints | None:
    """The map given by equal colours; if several tasks share one, the first two are paired and the colours refined again."""
    n = len(twins.dag)
    while not twins.work.over():
        left, right = np.argsort(refined[:n], kind="stable"), np.argsort(refined[n:], kind="stable")
        if not np.array_equal(refined[:n][left], refined[n:][right]):
            return None
        ranked = refined[:n][left]
        unclear = np.flatnonzero(ranked[1:] == ranked[:-1])
        if not len(unclear):
            image = np.empty(n, np.int32)
            image[left] = right
            return image
        refined[left[unclear[0]]] = refined[n + right[unclear[0]]] = refined.max() + 1
        refined = colours(twins.twice, refined, twins.work)
    return None


def is_automorphism(dag: Dag, image: Ints) -> bool:
    """Whether a map of tasks is a permutation that takes arcs to arcs."""
    if not np.array_equal(np.sort(image), np.arange(len(dag))):
        return False
    codes = dag.tails.astype(np.int64) * len(dag) + dag.child
    moved = image[dag.tails].astype(np.int64) * len(dag) + image[dag.child]
    return np.array_equal(codes, np.sort(moved))


def swaps(dag: Dag, work: Work | None = None) -> list[list[tuple[int, int]]]:
    """Automorphisms that exchange one branch for another, as pairs of tasks: those of inner branches first.

    Without the tasks of unique colour, the dag splits into components; two that look alike are exchanged, and so on inside
    them. Each exchange is checked on every arc. Single tasks with the same parents and children are not exchanged, because
    positions do not distinguish them (`positions.units_of`).

    >>> fork = Dag.from_arcs([("a", x) for x in "bc"] + [("b", "d"), ("c", "e")])
    >>> [[fork.named(pair) for pair in pairs] for pairs in swaps(fork)]
    [[('d', 'e'), ('b', 'c')]]
    """
    return _Branches(dag, work or Work()).find()


class _Branches:
    """The search for exchanges of branches."""

    def __init__(self, dag: Dag, work: Work) -> None:
        self.dag, self.work = dag, work
        self.colour = colours(dag, None, work).tolist()
        self.near = [[*dag.parents_of(v).tolist(), *dag.children_of(v).tolist()] for v in range(len(dag))]
        self.exchanges: list[list[tuple[int, int]]] = []

    def find(self) -> list[list[tuple[int, int]]]:
        self._canonical_order(list(range(len(self.dag))), at_root=True)
        return self.exchanges

    def _canonical_order(self, tasks: list[int], at_root: bool = False) -> list[int]:
        """The tasks of a branch, in an order in which those of a branch like it correspond to them."""
        counts = Counter(self.colour[v] for v in tasks)
        own = sorted((v for v in tasks if counts[self.colour[v]] == 1), key=self.colour.__getitem__)
        rest = [v for v in tasks if counts[self.colour[v]] > 1]
        if not own and not at_root:
            return sorted(tasks, key=lambda v: (self.colour[v], v))
        alike: dict[tuple[int, ...], list[list[int]]] = defaultdict(list)
        for part in self._components(rest):
            alike[tuple(sorted(self.colour[v] for v in part))].append(part)
        for _, parts in sorted(alike.items()):
            branches = [self._canonical_order(part) for part in parts]
            self._exchange(branches)
            own += [v for branch in branches for v in branch]
        return own

    def _exchange(self, branches: list[list[int]]) -> None:
        """Record the exchanges of neighbouring branches that are automorphisms."""
        last = branches[0]
        for branch in branches[1:]:
            if len(branch) == 1 and self.near[last[0]] == self.near[branch[0]]:
                continue
            self.work.spend(EXCHANGE * (len(self.dag) + self.dag.arc_count))
            pairs = list(zip(last, branch, strict=True))
            image = np.arange(len(self.dag), dtype=np.int32)
            image[last], image[branch] = branch, last
            if is_automorphism(self.dag, image):
                self.exchanges.append(pairs)
                last = branch

    def _components(self, tasks: list[int]) -> list[list[int]]:
        remaining, parts = set(tasks), list[list[int]]()
        for first in tasks:
            if first in remaining:
                remaining.discard(first)
                part = [first]
                for v in part:
                    fresh = [w for w in self.near[v] if w in remaining]
                    remaining.difference_update(fresh)
                    part += dict.fromkeys(fresh)
                parts.append(part)
        return parts
