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

    letter[b]: 1 for W and cycle, 2 for N, 3 for M, 4 for any order; other blocks are left alone. *seen* comes in as zeros.
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
                u = sources[i]
                shared = 0
                for j in range(child_ptr[u], child_ptr[u + 1]):
                    if parent_ptr[child[j] + 1] - parent_ptr[child[j]] == 2:
                        shared += 1
                private = child_ptr[u + 1] - child_ptr[u] - shared
                if shared == 1 and (kind == 1 or private == 1):
                    at = u
                    break
            i = begin
            while at >= 0:
                out[i] = at
                i += 1
                seen[at] = 1
                following = -1
                for j in range(child_ptr[at], child_ptr[at + 1]):
                    w = child[j]
                    for k in range(parent_ptr[w], parent_ptr[w + 1]):
                        if seen[parent[k]] == 0 and following < 0:
                            following = parent[k]
                at = following
        elif kind == 3:
            at = sinks[sink_ptr[b]]
            for i in range(sink_ptr[b], sink_ptr[b + 1]):
                w = sinks[i]
                shared = 0
                for j in range(parent_ptr[w], parent_ptr[w + 1]):
                    if child_ptr[parent[j] + 1] - child_ptr[parent[j]] == 2:
                        shared += 1
                if shared <= 1:
                    at = w
                    break
            i = begin
            while at >= 0:
                link = -1
                for j in range(parent_ptr[at], parent_ptr[at + 1]):
                    u = parent[j]
                    if seen[u] == 0:
                        if child_ptr[u + 1] - child_ptr[u] == 2:
                            link = u
                        else:
                            seen[u] = 1
                            out[i] = u
                            i += 1
                following = -1
                if link >= 0:
                    seen[link] = 1
                    out[i] = link
                    i += 1
                    following = child[child_ptr[link]]
                    if following == at:
                        following = child[child_ptr[link] + 1]
                at = following
