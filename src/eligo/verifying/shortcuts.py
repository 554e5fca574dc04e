"""Which arcs stand beside a longer path, as the checker finds them."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag

Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]

LEAST_ARCS, ARCS_FOR_A_SEARCH = 300, 500  # looked at in one search: so many, or one in so many of a large dag's
MOST_BITS = 10**9  # of one sweep: tasks times arcs asked about


def shortcut_mask(dag: Dag) -> Mask:
    """For every arc u -> v, whether another path leads from u to v: looked for from both ends, else by sweeps for many."""
    tails, heads, mask = dag.tails, dag.child, np.zeros(dag.arc_count, np.bool_)
    jumps = (dag.level[heads] - dag.level[tails] > 1) & (dag.height[tails] - dag.height[heads] > 1)
    suspects, unsure = np.flatnonzero(jumps), list[int]()
    if not len(suspects):
        return mask
    search = _Search(dag)
    for arc in suspects.tolist():
        second_way = search.second_way(tails.item(arc), heads.item(arc))
        mask[arc] = second_way is True
        unsure += [arc] if second_way is None else []
    mask[unsure] = _swept(dag, np.array(unsure, np.intp))
    return mask


class _Search:
    """Searches for a second way between two ends: its tasks lie strictly between them, in level and in height."""

    def __init__(self, dag: Dag) -> None:
        self.level, self.height = dag.level.tolist(), dag.height.tolist()
        self.below, self.above = (dag.child_ptr.tolist(), dag.child), (dag.parent_ptr.tolist(), dag.parent)
        self.most = max(LEAST_ARCS, (len(dag) + dag.arc_count) // ARCS_FOR_A_SEARCH)

    def second_way(self, u: int, v: int) -> bool | None:
        """Whether there is one, from both ends, always where fewer arcs were looked at; None where that are too many."""
        sides = [([u], {u}, *self.below), ([v], {v}, *self.above)]
        arcs, met = [0, 0], {u, v}
        while all(queue for queue, *_ in sides):
            costs = [arcs[i] + ptr[queue[0] + 1] - ptr[queue[0]] for i, (queue, _, ptr, _) in enumerate(sides)]
            i = costs.index(min(costs))
            arcs[i] = costs[i]
            if sum(arcs) > self.most:
                return None
            (queue, seen, ptr, rows), x = sides[i], sides[i][0].pop(0)
            near = {w for w in rows[ptr[x] : ptr[x + 1]].tolist() if not (x in met and w in met)}
            if not near.isdisjoint(sides[1 - i][1]):
                return True
            fresh = [w for w in near - seen if self._between(u, w, v)]
            queue += fresh
            seen.update(fresh)
        return False

    def _between(self, u: int, w: int, v: int) -> bool:
        level, height = self.level, self.height
        return bool(level[u] < level[w] < level[v] and height[u] > height[w] > height[v])


def _swept(dag: Dag, suspects: Numbers) -> Mask:
    """Whether v is reached from a child of u, for many arcs u -> v at once: a bit for the head of each."""
    tails, heads, place = dag.tails[suspects], dag.child[suspects], np.argsort(dag.order)
    mask, sequence = np.zeros(len(suspects), np.bool_), np.argsort(place[heads])
    for some in np.array_split(sequence, 1 + len(suspects) * len(dag) // MOST_BITS) if len(suspects) else ():
        bit = {v: 1 << b for b, v in enumerate(set(heads[some].tolist()))}
        reached, beyond = dict[int, int](), dict[int, int]()  # from a task; from its children
        for u in dag.order[place[tails[some]].min() : place[heads[some]].max()][::-1].tolist():
            row = dag.children_of(u).tolist()
            beyond[u] = reduce(int.__or__, [reached.get(c, 0) for c in row], 0)
            reached[u] = reduce(int.__or__, [bit.get(c, 0) for c in row], beyond[u])
        mask[some] = [beyond[u] & bit[v] > 0 for u, v in zip(tails[some].tolist(), heads[some].tolist(), strict=True)]
    return mask
