"""Longest paths in seconds, and the window with the most work for its length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]


def longest_after(ptr: Ints, rows: Ints, order: Ints, seconds: Floats, after: Floats) -> None:
    """The longest path behind each task, itself left out; *rows* are its neighbours there, *order* meets them first."""
    for k in range(order.shape[0]):
        u = order[k]
        longest = 0.0
        for i in range(ptr[u], ptr[u + 1]):
            w = rows[i]
            longest = max(longest, after[w] + seconds[w])
        after[u] = longest


def best_window(
    heads: Floats, places: Ints, loads: Floats, tails: Floats, tree: Floats, sums: Floats, found: Floats
) -> None:
    """Over all thresholds t and u, the largest t + u + the loads of tasks whose head is at least t and whose tail at least u.

    Tasks come by falling head; places[i] is the place of a task's tail among the different *tails*, which rise. *tree* and
    *sums* have twice as many entries as there are leaves, a power of 2: of each stretch of tails, the best u plus the loads
    inside it from u on, and all loads inside it. *found* gets the best value, its t and its u.
    """
    leaves = tree.shape[0] // 2
    found[0] = -1.0
    for i in range(tree.shape[0]):
        tree[i] = -1.0
        sums[i] = 0.0
    for i in range(heads.shape[0]):
        k = leaves + places[i]
        sums[k] += loads[i]
        tree[k] = tails[places[i]] + sums[k]
        k >>= 1
        while k >= 1:
            left = tree[2 * k]
            if left >= 0.0:
                left += sums[2 * k + 1]
            tree[k] = max(left, tree[2 * k + 1])
            sums[k] = sums[2 * k] + sums[2 * k + 1]
            k >>= 1
        if i + 1 < heads.shape[0] and heads[i + 1] == heads[i]:
            continue
        if heads[i] + tree[1] > found[0]:
            found[0] = heads[i] + tree[1]
            found[1] = heads[i]
            found[2] = tails[best_leaf(tree, sums, leaves)]


def best_leaf(tree: Floats, sums: Floats, leaves: int) -> int:
    """Where the best value of the whole tree comes from."""
    k = 1
    while k < leaves:
        left = tree[2 * k]
        if left >= 0.0:
            left += sums[2 * k + 1]
        k = 2 * k if left >= tree[2 * k + 1] else 2 * k + 1
    return k - leaves
