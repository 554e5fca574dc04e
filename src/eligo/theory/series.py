"""Series cuts: tasks that every other task must precede or follow.

When all nonsinks but one come either before it or after it, whatever the schedule, then that task is executed at one fixed
step and the set executed before it is fixed too. The dag falls into *segments* that are solved one by one: a schedule is
IC-optimal exactly when it is so on every segment.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag, Ints


def segments(dag: Dag) -> Ints:
    """For every nonsink the number of its segment, for sinks -1; a cut task is a segment of its own. Needs a skeleton.

    >>> neck = Dag.from_arcs([("a", "c"), ("b", "c"), ("c", "d"), ("d", "f"), ("c", "e"), ("e", "f"), ("f", "g")])
    >>> dict(zip(neck.tasks, segments(neck).tolist()))
    {'a': 0, 'c': 1, 'b': 0, 'd': 2, 'f': 3, 'e': 2, 'g': -1}
    """
    working = dag.outdegree > 0
    sequence = dag.order[working[dag.order]]
    label = np.full(len(dag), -1, np.int32)
    label[sequence] = 0
    alone = np.bincount(dag.level[sequence], minlength=dag.depth) == 1
    if alone.any():
        cut = np.zeros(len(sequence), np.bool_)
        candidates = np.flatnonzero(alone[dag.level[sequence]])
        cut[candidates] = _is_cut(dag, sequence, candidates)
        steps = cut.astype(np.int32)
        label[sequence] = np.cumsum(steps) + np.concatenate([[0], np.cumsum(steps)[:-1]])
    return label


def _is_cut(dag: Dag, sequence: Ints, at: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which places of the topological sequence hold a task that all before lead to and that leads to all after.

    All after: nobody but it is eligible when it is executed. All before: each has a working child no later than it.
    """
    k = len(sequence)
    position = np.full(len(dag), k, np.int32)
    position[sequence] = np.arange(k, dtype=np.int32)
    latest = _reduced(np.maximum, position[dag.parent], dag.parent_ptr, -1)[sequence]
    eligible = np.cumsum(np.bincount(latest + 1, minlength=k + 1))[at] - at
    soonest = _reduced(np.minimum, position[dag.child], dag.child_ptr, k)[sequence]
    stragglers = np.maximum.accumulate(np.concatenate([[0], soonest]))[at]
    cut: NDArray[np.bool_] = (eligible == 1) & (stragglers <= at)
    return cut


def _reduced(ufunc: np.ufunc, values: Ints, ptr: Ints, empty: int) -> Ints:
    """ufunc over each row; *empty* where a row has nothing."""
    if not len(values):
        return np.full(len(ptr) - 1, empty, np.int32)
    full = np.flatnonzero(np.diff(ptr))
    result = np.full(len(ptr) - 1, empty, np.int32)
    result[full] = ufunc.reduceat(values, ptr[full])
    return result
