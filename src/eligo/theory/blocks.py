"""Every dag is a composition of blocks.

Split each task into an out-role, as parent of its children, and an in-role, as child of its parents. Arcs that share a tail
or a head belong together; the connected components are the *blocks*, bipartite from out-roles (the block's sources) to
in-roles (its sinks). Block B precedes block B' in the *super-dag* if a sink of B is a source of B'. The dag is a
composition of its bipartite blocks exactly when the super-digraph has no cycle [1]_, section 2.2.2; if it has one, the
blocks on it are merged into one general block, so that every dag decomposes. Blocks are computed from a skeleton.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import CycleError
from eligo.kernels import graph
from eligo.rows import Ints, gather_rows, places, pointers, rows


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a dag, numbered so that sources of lower blocks appear first, and their super-dag.

    `source_of[v]` is the block in which task v is a source, -1 for sinks of the dag; `sink_of[v]` likewise. A block is
    `bipartite` unless several components were merged into it; `parse_failure` then says what prevented a composition.
    """

    dag: Dag
    source_of: Ints
    sink_of: Ints
    superdag: Dag
    bipartite: NDArray[np.bool_]
    parse_failure: str | None = None

    def __len__(self) -> int:
        return len(self.bipartite)

    @cached_property
    def source_rows(self) -> tuple[Ints, Ints]:
        """Compressed rows: the sources of each block, ascending."""
        return _rows_by_owner(self.source_of, len(self))

    @cached_property
    def sink_rows(self) -> tuple[Ints, Ints]:
        """Compressed rows: the sinks of each block, ascending."""
        return _rows_by_owner(self.sink_of, len(self))

    @cached_property
    def arc_counts(self) -> Ints:
        """The number of arcs of each block."""
        ptr, sources = self.source_rows
        return _sums(self.dag.outdegree[sources], ptr)

    def sources(self, block: int) -> Ints:
        """The sources of one block."""
        ptr, tasks = self.source_rows
        return tasks[ptr[block] : ptr[block + 1]]

    def sinks(self, block: int) -> Ints:
        """The sinks of one block."""
        ptr, tasks = self.sink_rows
        return tasks[ptr[block] : ptr[block + 1]]

    @cached_property
    def _place(self) -> Ints:
        """Scratch space for the places of tasks in a block, overwritten for each, because clearing it takes time."""
        return np.empty(len(self.dag), np.int32)

    def shapes(self, chosen: Sequence[int]) -> list[bytes]:
        """The arcs of each of these blocks as bytes, between places in its `block_dag`: equal bytes mean equal blocks."""
        if not chosen:
            return []
        ptr, sources = self.source_rows
        sink_ptr, sinks = self.sink_rows
        pure = np.cumsum(self.source_of[sinks] != self.sink_of[sinks], dtype=np.int32)
        before = np.concatenate([np.zeros(1, np.int32), pure])[sink_ptr[:-1]]
        lower, upper = np.full(len(self.dag), -1, np.int32), np.full(len(self.dag), -1, np.int32)
        upper[sources] = np.arange(len(sources), dtype=np.int32) - np.repeat(ptr[:-1], np.diff(ptr))
        lower[sinks] = pure - 1 + np.repeat(np.diff(ptr) - before, np.diff(sink_ptr))
        both = (self.source_of == self.sink_of) & (self.source_of >= 0)
        lower[both] = upper[both]
        heads, degree = gather_rows(self.dag.child_ptr, self.dag.child, sources)
        arcs, ends = np.stack([np.repeat(upper[sources], degree), lower[heads]], axis=1), pointers(self.arc_counts)
        return [arcs[ends[b] : ends[b + 1]].tobytes() for b in chosen]

    def block_dag(self, block: int) -> Dag:
        """One block as a dag: its sources first, then its other sinks."""
        sources = self.sources(block)
        pure = self.sinks(block)[self.source_of[self.sinks(block)] != block]
        tasks = np.concatenate([sources, pure])
        place = self._place
        place[tasks] = np.arange(len(tasks), dtype=np.int32)
        heads, degree = gather_rows(self.dag.child_ptr, self.dag.child, sources)
        tails = np.repeat(sources, degree)
        return Dag.from_arrays(len(tasks), place[tails], place[heads])


def decompose(dag: Dag) -> Blocks:
    """The blocks of a dag without shortcuts, in time almost linear in its size.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> blocks = decompose(mesh)
    >>> [(mesh.named(blocks.sources(b)), mesh.named(blocks.sinks(b))) for b in range(len(blocks))]
    [(('a',), ('b', 'c')), (('b', 'c'), ('d', 'e', 'f'))]
    """
    n = len(dag)
    role = np.arange(2 * n, dtype=np.int32)  # v: the out-role of task v; n + v: its in-role
    graph.join(dag.tails, dag.child + np.int32(n), role)
    parents, children = dag.outdegree > 0, dag.indegree > 0
    firsts = np.flatnonzero(parents & (role[:n] == np.arange(n)))
    number = places(n, firsts)
    source_of = np.where(parents, number[role[:n]], -1).astype(np.int32)
    sink_of = np.full(n, -1, np.int32)
    sink_of[children] = number[role[n:][children]]
    return _with_superdag(dag, source_of, sink_of, len(firsts))


def _with_superdag(dag: Dag, source_of: Ints, sink_of: Ints, count: int) -> Blocks:
    inner = np.flatnonzero((source_of >= 0) & (sink_of >= 0)).astype(np.int32)
    tails, heads = sink_of[inner], source_of[inner]
    try:
        return Blocks(dag, source_of, sink_of, Dag.from_arrays(count, tails, heads), np.ones(count, np.bool_))
    except CycleError as error:
        failure = _failure(dag, inner, tails, heads, error)
    label, merged = _strong_labels(count, tails, heads)
    sizes = np.bincount(label, minlength=merged)
    bipartite = sizes == 1
    bipartite[label[tails[tails == heads]]] = False
    across = label[tails] != label[heads]
    superdag = Dag.from_arrays(merged, label[tails[across]], label[heads[across]])
    relabel = np.append(label, np.int32(-1))
    return Blocks(dag, relabel[source_of], relabel[sink_of], superdag, bipartite, failure)


def _failure(dag: Dag, inner: Ints, tails: Ints, heads: Ints, error: CycleError) -> str:
    own = np.flatnonzero(tails == heads)
    if len(own):
        return f"{dag.tasks[inner[own[0]]]!r} is both a source and a sink of one block"
    return f"{len(error.cycle) - 1} blocks depend on each other in a cycle"


def _strong_labels(count: int, tails: Ints, heads: Ints) -> tuple[Ints, int]:
    """The strong components of the super-digraph, numbered by their first block."""
    child_ptr, child, _, _, _ = rows(count, tails, heads)
    index, low = np.zeros(count, np.int32), np.zeros(count, np.int32)
    scratch = (np.empty(count, np.int32) for _ in range(3))
    merged = graph.strong_components(child_ptr, child, index, low, *scratch)
    _, first = np.unique(low, return_index=True)
    return places(merged, np.argsort(first))[low], merged


def _rows_by_owner(owner: Ints, count: int) -> tuple[Ints, Ints]:
    members = np.flatnonzero(owner >= 0).astype(np.int32)
    ptr = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(owner[members], minlength=count), out=ptr[1:])
    grouped = np.empty(len(members), np.int32)
    graph.scatter(owner[members], members, ptr[:-1].copy(), grouped)
    return ptr, grouped


def _sums(values: Ints, ptr: Ints) -> Ints:
    return np.add.reduceat(values, ptr[:-1]) if len(ptr) > 1 else values[:0]
