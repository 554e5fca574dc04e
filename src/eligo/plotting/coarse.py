"""A dag too large to draw, made smaller: nodes are merged, the most alike first, until the rest can be read.

Twins have the same kind, parents and children; a run is a chain of one kind. Both are merged round by round as long as
the drawing is too large. Where that does not do, runs of one family (all W(s,d), say) are halved in length, then a level's
nodes of one kind, or of one family, become one, and at last whole levels are joined.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints, places

MIXED = -1


@dataclass(frozen=True)
class Limits:
    """What is still readable: nodes beside one another, nodes below one another, nodes, arcs."""

    width: int
    depth: int
    nodes: int
    arcs: int

    def too_wide(self, dag: Dag) -> bool:
        """Whether something must be merged sideways."""
        widest = int(dag.level_sizes.max(initial=0))
        return widest > self.width or len(dag) > self.nodes or dag.arc_count > self.arcs

    def too_deep(self, dag: Dag) -> bool:
        """Whether something must be merged downwards."""
        return dag.depth > self.depth

    def exceeded(self, dag: Dag) -> bool:
        """Whether a drawing of the dag, node by node, could not be read."""
        return self.too_wide(dag) or self.too_deep(dag)


@dataclass(frozen=True, eq=False)
class Groups:
    """A dag whose nodes are groups of another's: `of[v]` is the group of node v, `kind` and `family` what its nodes share.

    Kinds and families are numbers; MIXED where a group has several.
    """

    dag: Dag
    of: Ints
    kind: Ints
    family: Ints

    def merged(self, label: Ints) -> "Groups":
        """The groups with equal labels joined; numbered by their first members."""
        _, first, which = np.unique(label, return_index=True, return_inverse=True)
        label = places(len(first), np.argsort(first))[which]
        tails, heads = label[self.dag.tails], label[self.dag.child]
        crossing = tails != heads
        small = Dag.from_arrays(len(first), tails[crossing], heads[crossing])
        return Groups(small, label[self.of], _shared(self.kind, label), _shared(self.family, label))


def grouped(dag: Dag, kind: Ints, family: Ints, limits: Limits) -> Groups:
    """The dag's nodes in as many groups as can be drawn: each by itself where they all can.

    >>> chain = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d"), ("c", "e"), ("c", "f")])
    >>> same = np.zeros(6, np.int32)
    >>> grouped(chain, same, same, Limits(2, 9, 9, 9)).of.tolist()
    [0, 1, 2, 3, 3, 3]
    """
    groups = Groups(dag, np.arange(len(dag), dtype=np.int32), kind, family)
    for trouble, merge in (
        (limits.exceeded, _alike),
        (limits.too_deep, _half_runs),
        (limits.too_wide, lambda g: _level_and(g, g.kind)),
        (limits.too_wide, lambda g: _level_and(g, g.family)),
        (limits.too_deep, _half_runs),
        (limits.too_deep, lambda g: g.dag.level // 2),
    ):
        groups = _repeated(groups, trouble, merge)
    return groups


def _repeated(groups: Groups, trouble: Callable[[Dag], bool], merge: Callable[[Groups], Ints]) -> Groups:
    while trouble(groups.dag):
        smaller = groups.merged(merge(groups))
        if len(smaller.dag) == len(groups.dag):
            break
        groups = smaller
    return groups


def _alike(groups: Groups) -> Ints:
    """Twins joined; where there are none, runs of one kind."""
    dag = groups.dag
    ends = zip(dag.parent_ptr[:-1], dag.parent_ptr[1:], dag.child_ptr[:-1], dag.child_ptr[1:], strict=True)
    rows = ((dag.parent[a:b].tobytes(), dag.child[c:d].tobytes()) for a, b, c, d in ends)
    representatives: dict[tuple[int, tuple[bytes, bytes]], int] = {}
    keys = zip(groups.kind.tolist(), rows, strict=True)
    label = np.array([representatives.setdefault(key, v) for v, key in enumerate(keys)], np.int32)
    return label if len(representatives) < len(dag) else _runs(dag, groups.kind, np.zeros(len(dag), np.int32))


def _half_runs(groups: Groups) -> Ints:
    """Each two neighbours of a run of one family joined."""
    return _runs(groups.dag, groups.family, groups.dag.level // 2)


def _runs(dag: Dag, kind: Ints, band: Ints) -> Ints:
    """Each node joined with its only parent where it is that one's only child, both of one kind and band."""
    label = np.arange(len(dag), dtype=np.int32)
    only = np.flatnonzero(dag.indegree == 1)
    parent = dag.parent[dag.parent_ptr[only]]
    joined = (dag.outdegree[parent] == 1) & (kind[parent] == kind[only]) & (band[parent] == band[only])
    up = dict(zip(only[joined].tolist(), parent[joined].tolist(), strict=True))
    for v in dag.order.tolist():
        if v in up:
            label[v] = label[up[v]]
    return label


def _level_and(groups: Groups, kind: Ints) -> Ints:
    return (groups.dag.level * (int(kind.max(initial=0)) + 2) + kind + 1).astype(np.int32)


def _shared(values: Ints, label: Ints) -> Ints:
    """What the members of each group have in common, or MIXED."""
    low = np.full(int(label.max(initial=-1)) + 1, np.iinfo(np.int32).max, np.int32)
    high = np.full(len(low), MIXED, np.int32)
    np.minimum.at(low, label, values)
    np.maximum.at(high, label, values)
    return np.where(low == high, low, MIXED).astype(np.int32)
