"""The skeleton of a dag, which has no shortcut arcs, and its series cuts.

A *shortcut* is an arc u -> v beside a longer path from u to v, which implies it: a dag and its skeleton (its transitive
reduction) have the same schedules and the same profiles [1]_, section 2.2. Blocks are computed from the skeleton, because no
dag with a shortcut is a composition of bipartite blocks.

**Series cuts** are steps at which it is certain which tasks are executed. If the nonsinks fall into two sets such that all of
the one precede all of the other, every schedule executes the one before the other. So the dag falls into *segments* that are
solved one by one: a schedule is IC-optimal exactly when it is so on every segment. A task that every other must precede or
follow is a segment of its own.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.kernels import graph
from eligo.rows import Ints, distinct, gather_rows, places

WORDS = 8  # of 64 bits, one line of the cache: a sweep handles one tail per bit
REMEMBERED = "_skeleton"  # the attribute of a dag that holds its skeleton; None if the dag is its own skeleton
LEAST_BUDGET = 30  # arcs that a search from both ends may visit, in a small dag, before a sweep is cheaper


def shortcut_mask(dag: Dag) -> NDArray[np.bool_]:
    """For every arc, whether it is a shortcut.

    Only an arc that jumps a level and a height can be one. Each of these few is decided by a search for a second way from
    both its ends. If the search grows beyond its share of a sweep along the whole dag, the arc is left to such a sweep.
    """
    tails = dag.tails
    mask = np.zeros(dag.arc_count, np.bool_)
    if dag.depth < 3:
        return mask
    jumps = dag.level[dag.child] - dag.level[tails] > 1
    candidates = np.flatnonzero(jumps)
    candidates = candidates[dag.height[tails[candidates]] - dag.height[dag.child[candidates]] > 1]
    if len(candidates):
        outcome = np.empty(len(candidates), np.int32)
        mark, queue = np.zeros(len(dag), np.int32), np.empty(2 * len(dag), np.int32)
        rows = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, dag.level, dag.height)
        budget = max(LEAST_BUDGET, dag.arc_count // (256 * WORDS))
        graph.second_way(tails[candidates], dag.child[candidates], *rows, mark, queue, budget, outcome)
        mask[candidates] = outcome > 0
        undecided = candidates[outcome < 0]
        mask[undecided] = _sweep(dag, tails[undecided], dag.child[undecided])
    return mask


def _sweep(dag: Dag, tails: Ints, heads: Ints) -> NDArray[np.bool_]:
    """The mask of shortcuts among some arcs, by sweeps for 512 of their tails at a time."""
    place = places(len(dag), dag.order)
    different, which = np.unique(place[tails], return_inverse=True)
    shortcuts = np.zeros(len(tails), np.bool_)
    for first in range(0, len(different), 64 * WORDS):
        batch = np.flatnonzero((which >= first) & (which < first + 64 * WORDS))
        word, bit = np.divmod(which[batch] - first, 64)
        reached, twice = np.zeros((2, len(dag), WORDS), np.uint64)
        own = np.uint64(1) << bit.astype(np.uint64)
        reached[tails[batch], word] = own
        last = int(place[heads[batch]].max()) + 1
        graph.sweep(int(different[first]) + 1, last, dag.order, dag.parent_ptr, dag.parent, reached, twice)
        shortcuts[batch] = (twice[heads[batch], word] & own) != 0
    return shortcuts


def skeleton(dag: Dag) -> Dag:
    """The dag without its shortcuts; the dag itself if it has none.

    >>> list(skeleton(Dag.from_arcs([("a", "b"), ("b", "c"), ("a", "c")])).arcs())
    [('a', 'b'), ('b', 'c')]
    """
    if REMEMBERED not in vars(dag):
        know_shortcuts(dag, shortcut_mask(dag))
    bare: Dag | None = vars(dag)[REMEMBERED]
    return dag if bare is None else bare


def know_shortcuts(dag: Dag, shortcuts: NDArray[np.bool_]) -> None:
    """Store the skeleton with the dag, which never changes: finding the shortcuts of a dense dag takes seconds."""
    if len(shortcuts) != dag.arc_count:
        raise InputError(f"expected {dag.arc_count:,} shortcut marks, one per arc, got {len(shortcuts):,}")
    bare = None
    if shortcuts.any():
        bare = Dag.from_checked(len(dag), dag.tails[~shortcuts], dag.child[~shortcuts], dag.names)
        vars(bare)[REMEMBERED] = None
    vars(dag)[REMEMBERED] = bare


# Series cuts


def segments(dag: Dag) -> Ints:
    """The segment of every nonsink of a dag without shortcuts; -1 for sinks.

    >>> neck = Dag.from_arcs([("a", "c"), ("b", "c"), ("c", "d"), ("d", "f"), ("c", "e"), ("e", "f"), ("f", "g")])
    >>> dict(zip(neck.tasks, segments(neck).tolist()))
    {'a': 0, 'c': 1, 'b': 0, 'd': 2, 'f': 3, 'e': 2, 'g': -1}
    """
    working = dag.outdegree > 0
    label = np.cumsum(_begins(dag, working), dtype=np.int32)[dag.level] if len(dag) else np.zeros(0, np.int32)
    label[~working] = -1
    return label


def _begins(dag: Dag, working: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask of levels at which a segment begins after another.

    All nonsinks above a level precede all others exactly when each of those above without a child above is a parent of all
    nonsinks of the level: any other path between them would make a shortcut of an arc.
    """
    depth = dag.depth
    level = np.where(working, dag.level, np.int32(depth))
    soonest = np.empty(len(dag), np.int32)
    graph.soonest(dag.child_ptr, dag.child, level, soonest, depth)
    last = np.bincount(soonest[working], minlength=depth + 1)  # by the level of their first child
    above = np.cumsum(np.bincount(level[working] + 1, minlength=depth + 2)[: depth + 1] - np.append(0, last[:-1]))
    next_level = soonest[dag.tails] == level[dag.child]
    meeting = np.bincount(level[dag.child[next_level]], minlength=depth + 1)
    here = np.bincount(level[working], minlength=depth + 1)
    begins: NDArray[np.bool_] = (meeting == above * here)[:depth] & (here[:depth] > 0) & (np.arange(depth) > 0)
    return begins


FEW = 16  # for a segment with less than 1 / FEW of the tasks, marking all tasks takes longer than searching


def segment_dag(dag: Dag, tasks: Ints) -> Dag:
    """A segment as a dag of its own: its tasks, ascending, numbered first, with their children as sinks."""
    heads, degree = gather_rows(dag.child_ptr, dag.child, tasks)
    tails = np.repeat(np.arange(len(tasks), dtype=np.int32), degree)
    outside, place = (_mark if len(tasks) * FEW > len(dag) else _search)(len(dag), tasks, heads)
    members = np.concatenate([tasks, outside])
    return Dag.from_checked(len(members), tails, place, lambda: dag.named(members))


def _mark(n: int, tasks: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """The heads that are not among the tasks, and the place of every head: tasks first, then these heads. In O(n)."""
    place = places(n, tasks)
    outside = distinct(heads[place[heads] < 0])
    place[outside] = len(tasks) + np.arange(len(outside))
    return outside, place[heads]


def _search(n: int, tasks: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """The result of `_mark`, in time that does not depend on n."""
    place = np.searchsorted(tasks, heads).astype(np.int32)
    beyond = tasks[np.minimum(place, len(tasks) - 1)] != heads
    outside, rank = np.unique(heads[beyond], return_inverse=True)
    place[beyond] = len(tasks) + rank
    return outside, place
