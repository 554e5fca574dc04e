"""The orders of the named blocks: from one end to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]


def end_to_end(
    letter: Ints,
    source_ptr: Ints,
    sources: Ints,
    sink_ptr: Ints,
    sinks: Ints,
    child_ptr: Ints,
    child: Ints,
    parent_ptr: Ints,
    parent: Ints,
    seen: Ints,
    out: Ints,
) -> None:
    """Write the sources of every named block to its places in *out*, in an order that is optimal for its family.

    letter[b]: 1 for W and cycle, 2 for N, 3 for M, 4 for any order; other blocks are skipped. *seen* comes in as zeros.
    """
    for b in range(letter.shape[0]):
        kind = letter[b]
        begin = source_ptr[b]
        end = source_ptr[b + 1]
        if kind == 4 or (kind > 0 and end - begin == 1):
            for i in range(begin, end):
                out[i] = sources[i]
        elif kind == 1 or kind == 2:
            at = sources[begin]
            for i in range(begin, end):
                shared = shared_count(sources[i], child_ptr, child, parent_ptr)
                private = child_ptr[sources[i] + 1] - child_ptr[sources[i]] - shared
                if shared == 1 and (kind == 1 or private == 1):  # an end of W, the anchor of N; a cycle has neither
                    at = sources[i]
                    break
            along_sources(at, begin, child_ptr, child, parent_ptr, parent, seen, out)
        elif kind == 3:
            at = sinks[sink_ptr[b]]
            for i in range(sink_ptr[b], sink_ptr[b + 1]):
                if shared_count(sinks[i], parent_ptr, parent, child_ptr) <= 1:
                    at = sinks[i]
                    break
            along_sinks(at, begin, child_ptr, child, parent_ptr, parent, seen, out)


def shared_count(u: int, ptr: Ints, rows: Ints, back_ptr: Ints) -> int:
    """The number of neighbours in the row of u that have another neighbour on u's side."""
    count = 0
    for i in range(ptr[u], ptr[u + 1]):
        if back_ptr[rows[i] + 1] - back_ptr[rows[i]] > 1:
            count += 1
    return count


def along_sources(
    at: int, place: int, child_ptr: Ints, child: Ints, parent_ptr: Ints, parent: Ints, seen: Ints, out: Ints
) -> None:
    """Walk from source *at* on, each time to a source that shares a sink with the last."""
    while at >= 0:
        out[place] = at
        place += 1
        seen[at] = 1
        following = -1
        for i in range(child_ptr[at], child_ptr[at + 1]):
            w = child[i]
            for j in range(parent_ptr[w], parent_ptr[w + 1]):
                if seen[parent[j]] == 0 and following < 0:
                    following = parent[j]
        at = following


def along_sinks(
    at: int, place: int, child_ptr: Ints, child: Ints, parent_ptr: Ints, parent: Ints, seen: Ints, out: Ints
) -> None:
    """Walk from sink *at* on: the parents of one sink, the one it shares with the next sink last."""
    while at >= 0:
        link = -1
        for i in range(parent_ptr[at], parent_ptr[at + 1]):
            u = parent[i]
            if seen[u] == 0 and child_ptr[u + 1] - child_ptr[u] == 2:
                link = u
            elif seen[u] == 0:
                seen[u] = 1
                out[place] = u
                place += 1
        following = -1
        if link >= 0:
            seen[link] = 1
            out[place] = link
            place += 1
            following = child[child_ptr[link]]
            if following == at:
                following = child[child_ptr[link] + 1]
        at = following
