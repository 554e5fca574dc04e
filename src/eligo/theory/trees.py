"""Blocks that are trees.

Maxima M(t) of any bipartite tree by dynamic programming over it; optimal orders of *planar bipartite trees* (the
caterpillars among them) by removing a maximal source and sweeping the remaining parts [1]_, section 5.2. A bipartite tree
need not admit an IC-optimal schedule: the smallest known exception has 20 tasks.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from eligo.dag import Dag
from eligo.theory.profiles import Profile, convolve
from eligo.theory.sweep import sweep_two

NEVER = -(1 << 40)  # below every reachable value: no such choice


def tree_maxima(tree: Dag) -> Profile:
    """M(t) of a bipartite tree: the most sinks that t of its sources can render, for all t.

    The tree is rooted at a source. Each source has two tables over the number of executed sources below it, for itself not
    executed and executed. A sink counts if all its parents are executed; relaxing that to "may count only if" changes no
    maximum.

    >>> tree_maxima(Dag.from_arrays(5, [0, 0, 1, 1], [2, 3, 3, 4])).tolist()
    [0, 1, 3]
    """
    neighbours = _neighbours(tree)
    root = int(np.flatnonzero(tree.outdegree)[0])
    tables: dict[int, tuple[Profile, Profile]] = {}
    for v, above in reversed(_preorder(neighbours, root)):
        below = [tables.pop(w) for w in neighbours[v] if w != above]
        tables[v] = _source_tables(below) if tree.outdegree[v] else _sink_tables(below)
    return np.maximum(*tables[root])


def even_tree(tree: Dag) -> tuple[Profile, list[int]] | None:
    """M(t) and an order that attains it if all sources have d children, or all sinks but one e parents and that one fewer.

    None for any other tree. A forest has fewer arcs than tasks, so c sources have at least c (d - 1) + 1 children, and
    exactly that many if they are connected: connected ones are executed last. Likewise j sinks need at least j (e - 1) + 1
    parents; if the sink with fewer is among them, as many fewer as it lacks, so connected sets of sinks grow from that sink.

    >>> maxima, order = even_tree(Dag.from_arrays(9, [0, 0, 1, 1, 2, 2, 3, 3], [4, 5, 4, 6, 4, 7, 4, 8]))
    >>> maxima.tolist(), order
    ([0, 1, 2, 3, 5], [1, 2, 3, 0])
    """
    out, into = tree.outdegree[tree.outdegree > 0], tree.indegree[tree.indegree > 0]
    root, steps = int(np.flatnonzero(tree.outdegree)[0]), np.arange(len(out) + 1, dtype=np.int64)
    if np.ptp(out) == 0:
        walk = _preorder(_neighbours(tree), root)
        return np.append(steps[:-1] * (int(out[0]) - 1), len(into)), [v for v, _ in walk[::-1] if tree.outdegree[v]]
    most, fewer = int(into.max()), np.flatnonzero((tree.indegree > 0) & (tree.indegree < into.max()))
    if len(fewer) > 1:
        return None
    least = int(tree.indegree[fewer[0]]) if len(fewer) else most
    maxima = np.where(steps < least, 0, (steps - least) // (most - 1) + 1)
    return maxima, _outwards(tree, int(fewer[0])) if len(fewer) else [root, *_outwards(tree, root)]


def _outwards(tree: Dag, root: int) -> list[int]:
    """The parents of all sinks, sink by sink, each next to earlier ones, starting from a sink or below a source."""
    ptr, parents = tree.parent_ptr.tolist(), tree.parent.tolist()
    begins, children, degree = tree.child_ptr.tolist(), tree.child.tolist(), tree.outdegree.tolist()
    order: list[int] = []
    stack = [(w, root) for w in children[begins[root] : begins[root + 1]]] or [(root, -1)]
    while stack:
        v, above = stack.pop()
        fresh = [u for u in parents[ptr[v] : ptr[v + 1]] if u != above]
        order += fresh
        for u in fresh:
            if degree[u] > 1:
                stack += [(w, u) for w in children[begins[u] : begins[u + 1]] if w != v]
    return order


def _neighbours(tree: Dag) -> list[list[int]]:
    child, parent = tree.child.tolist(), tree.parent.tolist()
    below, above = pairwise(tree.child_ptr.tolist()), pairwise(tree.parent_ptr.tolist())
    return [child[a:b] + parent[c:d] for (a, b), (c, d) in zip(below, above, strict=True)]


def _preorder(neighbours: list[list[int]], root: int) -> list[tuple[int, int]]:
    order, stack = [], [(root, -1)]
    while stack:
        v, above = stack.pop()
        order.append((v, above))
        stack += ((w, v) for w in neighbours[v] if w != above)
    return order


def _source_tables(below: list[tuple[Profile, Profile]]) -> tuple[Profile, Profile]:
    """The tables of a source, not executed and executed, from its sinks' tables "any" and "all executed"."""
    idle = reduce(convolve, (any_ for any_, _ in below), np.zeros(1, np.int64))
    busy = reduce(convolve, (np.maximum(any_, all_ + 1) for any_, all_ in below), np.zeros(1, np.int64))
    return np.append(idle, NEVER), np.concatenate([[NEVER], busy])


def _sink_tables(below: list[tuple[Profile, Profile]]) -> tuple[Profile, Profile]:
    """The tables of a sink: with its other parents executed or not, and with all of them executed."""
    any_ = reduce(convolve, (np.maximum(*tables) for tables in below), np.zeros(1, np.int64))
    all_ = reduce(convolve, (executed for _, executed in below), np.zeros(1, np.int64))
    return any_, all_


def planar_order(tree: Dag) -> list[int] | None:
    """The sources of a planar bipartite tree in an IC-optimal order; None if the tree is not a caterpillar.

    In a caterpillar the sources form a row in which the parents of every sink are neighbours. Executing a source splits the
    row; a maximal source is executed first, the two sides are solved in the same way, and Sweep interleaves them.

    >>> planar_order(Dag.from_arrays(4, [0, 1, 2], [3, 3, 3]))
    [0, 1, 2]
    """
    row = _source_row(tree)
    if row is None:
        return None
    place = {v: i for i, v in enumerate(row)}
    sinks = np.flatnonzero(tree.outdegree == 0)
    spans = []
    for w in sinks:
        at = [place[u] for u in tree.parents_of(int(w)).tolist()]
        spans.append((min(at), max(at)))
    solved = _solve_row(len(row), spans)
    return None if solved is None else [row[i] for i in solved]


def _source_row(tree: Dag) -> list[int] | None:
    """The sources of a caterpillar from left to right, or None if the inner tasks form no path."""
    degree = tree.indegree + tree.outdegree
    inner = [
        [w for w in np.concatenate([tree.child[a:b], tree.parent[c:d]]).tolist() if degree[w] > 1]
        for a, b, c, d in zip(tree.child_ptr, tree.child_ptr[1:], tree.parent_ptr, tree.parent_ptr[1:], strict=False)
    ]
    spine = [v for v in range(len(tree)) if degree[v] > 1]
    if any(len(inner[v]) > 2 for v in spine):
        return None
    at = next((v for v in spine if len(inner[v]) < 2), int(np.argmax(tree.outdegree > 0)))
    row: list[int] = []
    previous = -1
    while at is not None:
        if tree.outdegree[at]:
            row.append(at)
        else:
            parents = tree.parent[tree.parent_ptr[at] : tree.parent_ptr[at + 1]].tolist()
            row += [u for u in parents if degree[u] == 1]
        previous, at = at, next((w for w in inner[at] if w != previous), None)  # type: ignore[assignment]
    return row


@dataclass(slots=True)
class _TreePart:
    """Sources low..high - 1 of the row, with all others executed; `first` is executed first."""

    low: int
    high: int
    first: int = -1
    gain: int = 0
    sides: tuple[int, int] = (-1, -1)
    order: tuple[int, ...] = ()
    profile: Profile | None = None


def _solve_row(sources: int, spans: list[tuple[int, int]]) -> list[int] | None:
    parts = [_TreePart(0, sources)]
    for part in parts:  # grows during the loop: first all splits, from the whole row down
        if part.high - part.low > 0:
            inside = _clip(spans, part.low, part.high)
            part.first = _maximal_source(part.low, part.high, inside)
            part.gain = sum(span == (part.first, part.first) for span in inside)
            part.sides = len(parts), len(parts) + 1
            parts += [_TreePart(part.low, part.first), _TreePart(part.first + 1, part.high)]
    for part in reversed(parts):  # then all combinations, from the smallest up
        if not _combine(part, parts):
            return None
    return list(parts[0].order)


def _combine(part: _TreePart, parts: list[_TreePart]) -> bool:
    if part.first < 0:
        part.profile = np.zeros(1, np.int64)
        return True
    left, right = (parts[i] for i in part.sides)
    assert left.profile is not None and right.profile is not None  # noqa: S101, PT018
    mixed = sweep_two(left.profile, right.profile)
    if mixed is None:
        return False
    part.order = (part.first, *mixed.merged([left.order, right.order]))
    part.profile = np.concatenate([[0], mixed.profile + part.gain])
    return True


def _clip(spans: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """The sinks that still miss a source in low..high - 1, each as the span of those it misses."""
    return [(max(a, low), min(b, high - 1)) for a, b in spans if a < high and b >= low]


def _maximal_source(low: int, high: int, spans: list[tuple[int, int]]) -> int:
    """The source whose runs gain most: the lexicographically largest gains of 1, 2, 3, ... sources in a row from it."""
    begins: dict[int, list[int]] = {b: sorted(a for a, c in spans if c == b) for b in {b for _, b in spans}}
    gains = [0] * (high - low)  # gains[i]: sinks within the run that begins at low + i and has the present length
    rivals = list(range(low, high))
    for length in range(1, high - low + 1):
        for i in range(high - low - length + 1):
            ending = begins.get(low + i + length - 1, [])
            gains[i] += len(ending) - bisect_left(ending, low + i)
        last = high - low - length
        scores = [max(gains[min(v - low, last)], gains[max(v - low - length + 1, 0)]) for v in rivals]
        rivals = [v for v, score in zip(rivals, scores, strict=True) if score == max(scores)]
        if len(rivals) == 1:
            break
    return rivals[0]
