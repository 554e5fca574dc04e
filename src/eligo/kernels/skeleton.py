"""The search for shortcut arcs: from both ends of one arc, or along the whole dag for many tails at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Bits = NDArray[np.uint64]


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
    budget: int,
    found: Ints,
) -> None:
    """Set found[i] to 1 where a path of two arcs or more leads from tail[i] to head[i], to 0 where none does.

    It is set to -1 where more than *budget* arcs would have to be looked at.

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
            if down_cost + up_cost > budget:
                met = -1
            elif next_down <= next_up:
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


def sweep(begin: int, end: int, order: Ints, parent_ptr: Ints, parent: Ints, reached: Bits, twice: Bits) -> None:
    """Carry sets of tasks, as rows of bits, from parents to children along places begin, ..., end - 1 of a schedule.

    A task gets in *reached* what any of its parents has and in *twice* what two of them have. If a task comes in with a bit
    of its own, an arc from it is a shortcut exactly where the head has that bit twice: from the tail and from another way.
    """
    for i in range(begin, end):
        v = order[i]
        for j in range(parent_ptr[v], parent_ptr[v + 1]):
            p = parent[j]
            for k in range(reached.shape[1]):
                bits = reached[p, k]
                twice[v, k] |= reached[v, k] & bits
                reached[v, k] |= bits
