"""List scheduling: always execute the eligible task of the largest score."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]


def list_order(
    child_ptr: Ints,
    child: Ints,
    parent_ptr: Ints,
    parent: Ints,
    missing: Ints,
    score: Floats,
    gain: Floats,
    state: Ints,
    key: Floats,
    heap: Ints,
    order: Ints,
) -> int:
    """Play the whole game with a heap; returns the number of tasks executed.

    A task's score is what *score* holds, which comes in as its static part plus gain[missing(c)] for each child c, and is
    kept up to date as parents are executed: gain[k] is the worth of a child that still misses k parents, 0 from the last
    entry on. Equal scores go by number. *missing* counts parents and is used up; *state* comes in as zeros (1: eligible,
    2: executed); *key* and *heap* hold at most one entry a task and one more for every change of a score.
    """
    n = missing.shape[0]
    kinds = gain.shape[0]
    size = 0
    for v in range(n):
        if missing[v] == 0:
            state[v] = 1
            size = push(heap, key, size, v, score[v])
    done = 0
    while size > 0:
        u = heap[0]
        stale = key[0] != score[u] or state[u] == 2
        size = pop(heap, key, size)
        if stale:
            continue
        state[u] = 2
        order[done] = u
        done += 1
        for i in range(child_ptr[u], child_ptr[u + 1]):
            w = child[i]
            missing[w] -= 1
            before = missing[w] + 1
            change = 0.0
            if before < kinds:
                change -= gain[before]
            if missing[w] < kinds:
                change += gain[missing[w]]
            if missing[w] == 0:
                state[w] = 1
                size = push(heap, key, size, w, score[w])
            elif change != 0.0:
                for j in range(parent_ptr[w], parent_ptr[w + 1]):
                    v = parent[j]
                    if state[v] < 2:
                        score[v] += change
                        if state[v] == 1:
                            size = push(heap, key, size, v, score[v])
    return done


def push(heap: Ints, key: Floats, size: int, v: int, k: float) -> int:
    """Add task v with key k to the heap; returns its new size."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if key[up] > k or (key[up] == k and heap[up] <= v):
            break
        heap[i] = heap[up]
        key[i] = key[up]
        i = up
    heap[i] = v
    key[i] = k
    return size + 1


def pop(heap: Ints, key: Floats, size: int) -> int:
    """Remove the top of the heap; returns its new size."""
    size -= 1
    v = heap[size]
    k = key[size]
    i = 0
    while True:
        j = 2 * i + 1
        if j >= size:
            break
        if j + 1 < size and (key[j + 1] > key[j] or (key[j + 1] == key[j] and heap[j + 1] < heap[j])):
            j += 1
        if k > key[j] or (k == key[j] and v <= heap[j]):
            break
        heap[i] = heap[j]
        key[i] = key[j]
        i = j
    heap[i] = v
    key[i] = k
    return size
