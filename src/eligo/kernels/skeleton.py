"""The search for shortcut arcs: a bidirectional search for a second way, inside the window of levels and heights."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]


def second_way(
    tail: Ints,
    head: Ints,
    child_ptr: Ints,
    child: Ints,
    parent_ptr: Ints,
    parent: Ints,
    level: Ints,
    height: Ints,
    mark: Ints,
    queue: Ints,
    found: Ints,
) -> None:
    """Set found[i] to 1 where a path of two arcs or more leads from tail[i] to head[i], else to 0.

    Tasks on such a path lie strictly between the two ends both in level and in height. The search grows from both ends,
    always on the side that will then have looked at fewer arcs, so that a hub is opened only where nothing is cheaper.
    *mark* holds for each task the number of the last search that saw it, 2 i + 2 from above and 2 i + 3 from below; the two
    sides share *queue*, of twice as many places as tasks.
    """
    n = level.shape[0]
    for i in range(tail.shape[0]):
        u = tail[i]
        v = head[i]
        above = 2 * i + 2
        below = 2 * i + 3
        down_head = 0
        down_tail = 1
        up_head = n
        up_tail = n + 1
        queue[0] = u
        queue[n] = v
        mark[u] = above
        mark[v] = below
        down_cost = 0
        up_cost = 0
        met = 0
        while met == 0 and down_head < down_tail and up_head < up_tail:
            x = queue[down_head]
            y = queue[up_head]
            next_down = down_cost + child_ptr[x + 1] - child_ptr[x]
            next_up = up_cost + parent_ptr[y + 1] - parent_ptr[y]
            if next_down <= next_up:
                down_head += 1
                down_cost = next_down
                for j in range(child_ptr[x], child_ptr[x + 1]):
                    w = child[j]
                    if mark[w] == below and not (x == u and w == v):
                        met = 1
                        break
                    if mark[w] != above and level[w] < level[v] and height[w] > height[v]:
                        mark[w] = above
                        queue[down_tail] = w
                        down_tail += 1
            else:
                up_head += 1
                up_cost = next_up  # type: ignore[assignment]
                for j in range(parent_ptr[y], parent_ptr[y + 1]):
                    w = parent[j]
                    if mark[w] == above and not (y == v and w == u):
                        met = 1
                        break
                    if mark[w] != below and level[w] > level[u] and height[w] < height[u]:
                        mark[w] = below
                        queue[up_tail] = w
                        up_tail += 1
        found[i] = met
