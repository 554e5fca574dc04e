"""Compressed rows and single passes over them.

A dag over tasks 0..n-1 is a pair of arrays: the children of task u are `rows[ptr[u]:ptr[u + 1]]`. All arrays are int32
and come from the caller, who also allocates the results; see `eligo.dag` for the shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]
    Bits = NDArray[np.uint64]


def scatter(key: Ints, value: Ints, place: Ints, rows: Ints) -> None:
    """Put value[i] into the row of key[i]; place[k] is where row k begins, and is moved to where it ends."""
    for i in range(key.shape[0]):
        k = key[i]
        rows[place[k]] = value[i]
        place[k] += 1


def transpose(ptr: Ints, rows: Ints, begin: Ints, place: Ints, out: Ints) -> int:
    """Transpose the rows: row u of *out* lists, ascending and once each, the v whose row has u.

    Returns how many repetitions were dropped; row u of *out* then fills begin[u]..place[u].
    """
    dropped = 0
    for v in range(ptr.shape[0] - 1):
        for i in range(ptr[v], ptr[v + 1]):
            u = rows[i]
            j = place[u]
            if j > begin[u] and out[j - 1] == v:
                dropped += 1
            else:
                out[j] = v
                place[u] = j + 1
    return dropped


def compact(begin: Ints, end: Ints, ptr: Ints, rows: Ints) -> None:
    """Close the holes between rows, in place: row u moves from begin[u]..end[u] to ptr[u]..ptr[u + 1]."""
    for u in range(begin.shape[0]):
        shift = begin[u] - ptr[u]
        if shift > 0:
            for i in range(begin[u], end[u]):
                rows[i - shift] = rows[i]


def kahn(ptr: Ints, child: Ints, level: Ints, order: Ints, scratch: Ints) -> int:
    """One first-in-first-out pass: a topological order and, since that order rises by level, every task's level.

    *level* comes in as the numbers of parents; each task's entry counts down and, once at zero, holds its level: one
    array instead of two halves the cache misses. Rows about to be needed are read ahead, which hides the memory's delay
    (twice as fast on random labels); *scratch* only keeps those reads from being optimised away. Returns how many tasks
    were reached: fewer than all means a cycle.
    """
    tail = 0
    ahead = 0
    for v in range(level.shape[0]):
        if level[v] == 0:
            order[tail] = v
            tail += 1
    head = 0
    below = 0
    while head < tail:
        below += 1
        end = tail
        while head < end:
            if head + 16 < tail:
                ahead ^= ptr[order[head + 16]]
                i = ptr[order[head + 8]]
                if i < child.shape[0]:
                    ahead ^= child[i]
            u = order[head]
            head += 1
            for i in range(ptr[u], ptr[u + 1]):
                v = child[i]
                level[v] -= 1
                if level[v] == 0:
                    level[v] = below
                    order[tail] = v
                    tail += 1
    scratch[0] = ahead
    return tail


def heights(ptr: Ints, child: Ints, order: Ints, height: Ints) -> None:
    """The number of arcs on the longest path from each task down to a sink; *order* is topological."""
    for k in range(order.shape[0] - 1, -1, -1):
        u = order[k]
        tallest = 0
        for i in range(ptr[u], ptr[u + 1]):
            if height[child[i]] >= tallest:
                tallest = height[child[i]] + 1
        height[u] = tallest


def longest_after(ptr: Ints, rows: Ints, order: Ints, seconds: Floats, after: Floats) -> None:
    """The longest path after each task, excluding the task; *rows* are its neighbours there, which *order* has first."""
    for k in range(order.shape[0]):
        u = order[k]
        longest = 0.0
        for i in range(ptr[u], ptr[u + 1]):
            w = rows[i]
            longest = max(longest, after[w] + seconds[w])
        after[u] = longest


def join(first: Ints, second: Ints, root: Ints) -> None:
    """Union-find over the pairs (first[i], second[i]): afterwards root[v] is the smallest member of v's class."""
    for i in range(first.shape[0]):
        a = first[i]
        b = second[i]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a < b:
            root[b] = a
        else:
            root[a] = b
    for v in range(root.shape[0]):
        root[v] = root[root[v]]


def eligible_steps(ptr: Ints, parent: Ints, position: Ints, step: Ints) -> int:
    """The step after which each task is eligible: one more than the largest position among its parents, else 0.

    Returns a task that stands before one of its parents, or -1.
    """
    offender = -1
    for v in range(step.shape[0]):
        latest = 0
        for i in range(ptr[v], ptr[v + 1]):
            if position[parent[i]] >= latest:
                latest = position[parent[i]] + 1
        step[v] = latest
        if latest > position[v]:
            offender = v
    return offender


def soonest(ptr: Ints, rows: Ints, position: Ints, out: Ints, empty: int) -> None:
    """The smallest position in every row, or *empty*."""
    for v in range(out.shape[0]):
        least = empty
        for i in range(ptr[v], ptr[v + 1]):
            least = min(least, position[rows[i]])
        out[v] = least


def extremes(owner: Ints, value: Ints, low: Ints, high: Ints) -> None:
    """The smallest and largest value among the tasks that each owner has; -1 owns nothing. *high* comes in as zeros."""
    for v in range(owner.shape[0]):
        b = owner[v]
        if b >= 0:
            high[b] = max(high[b], value[v])
            low[b] = min(low[b], value[v])


def strong_components(ptr: Ints, child: Ints, index: Ints, low: Ints, stack: Ints, path: Ints, cursor: Ints) -> int:
    """Tarjan's algorithm without recursion; afterwards low[v] numbers v's strong component. Returns how many there are.

    *index* and *low* come in as zeros; *stack*, *path* and *cursor* are scratch, all of one length. Components are
    numbered in reverse topological order.
    """
    n = index.shape[0]
    clock = 0
    count = 0
    held = 0
    for root in range(n):
        if index[root] != 0:
            continue
        depth = 0
        path[0] = root
        clock += 1
        index[root] = clock
        low[root] = clock
        cursor[root] = ptr[root]
        stack[held] = root
        held += 1
        while depth >= 0:
            u = path[depth]
            if cursor[u] < ptr[u + 1]:
                v = child[cursor[u]]
                cursor[u] += 1
                if index[v] == 0:
                    clock += 1
                    index[v] = clock
                    low[v] = clock
                    cursor[v] = ptr[v]
                    stack[held] = v
                    held += 1
                    depth += 1
                    path[depth] = v
                elif index[v] > 0 and index[v] < low[u]:
                    low[u] = index[v]
            else:
                depth -= 1
                if depth >= 0 and low[u] < low[path[depth]]:
                    low[path[depth]] = low[u]
                if low[u] == index[u]:
                    v = -1
                    while v != u:
                        held -= 1
                        v = stack[held]
                        index[v] = -1
                        low[v] = count
                    count += 1
    return count


# Shortcut arcs: from both ends of one arc, or along the whole dag for many tails at once


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
    outcome: Ints,
) -> None:
    """Set outcome[i] to 1 if a path of two arcs or more leads from tail[i] to head[i], to 0 if none does.

    It is set to -1 if the search would visit more than *budget* arcs.

    Tasks on such a path lie strictly between the two ends both in level and in height. The search grows from both ends,
    always on the side that will then have visited fewer arcs, so that a hub is opened only if nothing is cheaper. *mark*
    holds for each task the number of the last search that visited it, 2 i + 2 from above and 2 i + 3 from below; the two
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
        outcome[i] = met


def sweep(begin: int, end: int, order: Ints, parent_ptr: Ints, parent: Ints, reached: Bits, twice: Bits) -> None:
    """Carry sets of tasks, as rows of bits, from parents to children along places begin, ..., end - 1 of a schedule.

    A task gets in *reached* the bits that any of its parents has and in *twice* those that two of them have. If a task comes
    in with a bit of its own, an arc from it is a shortcut exactly if the head has that bit twice: from the tail and from
    another way.
    """
    for i in range(begin, end):
        v = order[i]
        for j in range(parent_ptr[v], parent_ptr[v + 1]):
            p = parent[j]
            for k in range(reached.shape[1]):
                bits = reached[p, k]
                twice[v, k] |= reached[v, k] & bits
                reached[v, k] |= bits
