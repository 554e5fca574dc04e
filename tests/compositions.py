"""Every composition of small blocks, and the fat tasks that spoil one, slowly: an oracle for claims about chains."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import numpy as np

from eligo import families
from eligo.dag import Dag

Arcs = list[tuple[int, int]]
Shape = tuple[int, Arcs]


def blocks(letters: str, most: int) -> list[Dag]:
    """The named blocks of these families of at most so many tasks; of the M-dags only those that a donor may have."""
    found = [families.w_dag(s, d) for s in range(1, most) for d in (2, 3, 4) if "W" in letters]
    found += [families.m_dag(s, 2) for s in range(1, most) if "M" in letters]
    found += [families.m_dag(1, d) for d in (3, 4) if "M" in letters]
    found += [families.cycle_dag(s) for s in range(2, most) if "C" in letters]
    found += [families.n_dag(s) for s in range(1, most) if "N" in letters]
    return [block for block in found if len(block) <= most]


def compositions(letters: str, most: int, count: int) -> list[Dag]:
    """Every composition of at most *count* blocks of at most *most* tasks, once or a few times up to renaming, and sums."""
    pieces = blocks(letters, most)
    layer = dict(_key(len(block), arcs_of(block)) for block in pieces)
    everything = dict(layer)
    for _ in range(count - 1):
        layer = dict(
            _key(*new) for n, arcs in layer.values() for block in pieces for new in _joined(n, arcs, block, most)
        )
        layer = {key: shape for key, shape in layer.items() if key not in everything}
        everything |= layer
    return [Dag.from_arrays(n, *np.array(arcs, np.int32).T) for n, arcs in everything.values()]


def arcs_of(dag: Dag) -> Arcs:
    """The arcs as pairs of numbers."""
    return list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))


def _joined(n: int, arcs: Arcs, block: Dag, most: int) -> Iterator[Shape]:
    """Every way of merging some sources of a block with sinks of a dag."""
    sinks = sorted(set(range(n)) - {u for u, _ in arcs})
    sources = np.flatnonzero(block.indegree == 0).tolist()
    for k in range(max(0, n + len(block) - most), min(len(sinks), len(sources)) + 1):
        for merged in combinations(sources, k):
            for image in permutations(sinks, k):
                place = dict(zip(merged, image, strict=True))
                fresh = [v for v in range(len(block)) if v not in place]
                place |= dict(zip(fresh, range(n, n + len(fresh)), strict=True))
                yield n + len(fresh), arcs + [(place[u], place[v]) for u, v in arcs_of(block)]


def _key(n: int, arcs: Arcs) -> tuple[object, Shape]:
    """A dag with its arcs renamed: dags that differ have different keys, and nearly all equal ones have the same."""
    colour = [0] * n
    while True:
        colour = _refined(n, arcs, colour)
        if len(set(colour)) == n:
            renamed = sorted((colour[u], colour[v]) for u, v in arcs)
            return (n, tuple(renamed)), (n, renamed)
        tied = min(c for c in colour if colour.count(c) > 1)
        colour = [2 * c + 1 for c in colour]
        colour[colour.index(2 * tied + 1)] -= 1


def _refined(n: int, arcs: Arcs, colour: list[int]) -> list[int]:
    """Colours that tell tasks apart by the colours of their parents and children, until that tells no more."""
    while True:
        near: dict[tuple[int, int], list[int]] = defaultdict(list)
        for u, v in arcs:
            near[u, 0].append(colour[v])
            near[v, 1].append(colour[u])
        signs = [(colour[v], sorted(near[v, 0]), sorted(near[v, 1])) for v in range(n)]
        ranks = {str(sign): rank for rank, sign in enumerate(sorted(signs))}
        found = [ranks[str(sign)] for sign in signs]
        if len(set(found)) == len(set(colour)):
            return found
        colour = found


def spoiling(dag: Dag) -> tuple[list[list[int]], list[list[int]]]:
    """All fat tasks without sinks, and those of them that leave no IC-optimal schedule, by enumeration."""
    inner = np.flatnonzero(dag.outdegree > 0).tolist()
    number = {v: i for i, v in enumerate(inner)}
    needs = [sum(1 << number[u] for u in dag.parents_of(v).tolist()) for v in range(len(dag))]
    after: dict[int, list[int]] = {}
    layer = [0]
    while layer:
        for mask in layer:
            free = [i for i, v in enumerate(inner) if not mask >> i & 1 and not needs[v] & ~mask]
            after[mask] = [mask | 1 << i for i in free]
        layer = list(dict.fromkeys(mask for before in layer for mask in after[before]))
    rendered = {mask: sum(not need & ~mask for need in needs) for mask in after}
    members = {mask: [v for i, v in enumerate(inner) if mask >> i & 1] for mask in after}
    return list(members.values()), [members[mask] for mask in after if not _admits(mask, after, rendered)]


def _admits(begin: int, after: dict[int, list[int]], rendered: dict[int, int]) -> bool:
    """Whether some way from a set on has at each step the most rendered tasks of all ways from it."""
    every, best = [begin], [begin]
    while every := list({mask for before in every for mask in after[before]}):
        most = max(map(rendered.__getitem__, every))
        best = list({mask for before in best for mask in after[before] if rendered[mask] == most})
        if not best:
            return False
    return True


def residual(dag: Dag, inside: Sequence[int]) -> Dag:
    """The dag without these tasks."""
    return dag.induced(np.setdiff1d(np.arange(len(dag), dtype=np.int32), np.array(inside, np.int32)))
