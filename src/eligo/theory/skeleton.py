"""The skeleton of a dag: what is left when its shortcut arcs are removed.

A *shortcut* is an arc u -> v beside a longer path from u to v. It says nothing that the path does not: a dag and its
skeleton (its transitive reduction) have the same schedules and the same profiles [1]_, section 2.2. Blocks are read off
the skeleton, for no dag with a shortcut is a composition of bipartite blocks.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.kernels import skeleton as kernel
from eligo.rows import Ints, places

WORDS = 8  # of 64 bits, one line of the cache: so many tails are swept at once
KNOWN = "_skeleton"  # under which a dag remembers its skeleton; None: it is its own
LEAST_BUDGET = 30  # arcs that a search from both ends may look at, in a small dag, before a sweep is cheaper


def shortcut_mask(dag: Dag) -> NDArray[np.bool_]:
    """For every arc, whether it is a shortcut.

    Only an arc that jumps a level and a height can be one; each of these few is decided by a search for a second way from
    both its ends. Where the search grows beyond its share of a sweep along the whole dag, the tail waits for such a sweep.
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
        kernel.second_way(tails[candidates], dag.child[candidates], *rows, mark, queue, budget, outcome)
        mask[candidates] = outcome > 0
        undecided = candidates[outcome < 0]
        mask[undecided] = _swept(dag, tails[undecided], dag.child[undecided])
    return mask


def _swept(dag: Dag, tails: Ints, heads: Ints) -> NDArray[np.bool_]:
    """Which of some arcs are shortcuts, by sweeps for 512 of their tails at a time."""
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
        kernel.sweep(int(different[first]) + 1, last, dag.order, dag.parent_ptr, dag.parent, reached, twice)
        shortcuts[batch] = (twice[heads[batch], word] & own) != 0
    return shortcuts


def skeleton(dag: Dag) -> Dag:
    """The dag without its shortcuts; the dag itself where there are none.

    >>> list(skeleton(Dag.from_arcs([("a", "b"), ("b", "c"), ("a", "c")])).arcs())
    [('a', 'b'), ('b', 'c')]
    """
    if KNOWN not in vars(dag):
        know_shortcuts(dag, shortcut_mask(dag))
    bare: Dag | None = vars(dag)[KNOWN]
    return dag if bare is None else bare


def know_shortcuts(dag: Dag, shortcuts: NDArray[np.bool_]) -> None:
    """Remember the skeleton with the dag, which never changes: to find the shortcuts of a dense dag takes seconds."""
    if len(shortcuts) != dag.arc_count:
        raise InputError(f"expected {dag.arc_count:,} shortcut marks, one per arc, got {len(shortcuts):,}")
    bare = None
    if shortcuts.any():
        bare = Dag.from_checked(len(dag), dag.tails[~shortcuts], dag.child[~shortcuts], dag.names)
        vars(bare)[KNOWN] = None
    vars(dag)[KNOWN] = bare
