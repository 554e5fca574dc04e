"""Series cuts: tasks that every other task must precede or follow.

When all nonsinks but one come either before it or after it, whatever the schedule, then that task is executed at one fixed
step and the set executed before it is fixed too. The dag falls into *segments* that are solved one by one: a schedule is
IC-optimal exactly when it is so on every segment.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.kernels import graph
from eligo.rows import Ints, distinct, gathered, places


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
    position = places(len(dag), sequence, elsewhere=k)
    step, soonest = np.empty(len(dag), np.int32), np.empty(len(dag), np.int32)
    graph.eligible_steps(dag.parent_ptr, dag.parent, position, step)
    graph.soonest(dag.child_ptr, dag.child, position, soonest, k)
    eligible = np.cumsum(np.bincount(step[sequence], minlength=k + 1))[at] - at
    stragglers = np.maximum.accumulate(np.concatenate([[0], soonest[sequence]]))[at]
    cut: NDArray[np.bool_] = (eligible == 1) & (stragglers <= at)
    return cut


FEW = 16  # where a segment has fewer than one in so many tasks, it is not worth marking all


def segment_dag(dag: Dag, tasks: Ints) -> Dag:
    """The tasks of a segment, ascending, numbered first, with their children as sinks."""
    heads, degree = gathered(dag.child_ptr, dag.child, tasks)
    tails = np.repeat(np.arange(len(tasks), dtype=np.int32), degree)
    outside, place = (_marked if len(tasks) * FEW > len(dag) else _sought)(len(dag), tasks, heads)
    members = np.concatenate([tasks, outside])
    return Dag.from_checked(len(members), tails, place, lambda: dag.named(members))


def _marked(n: int, tasks: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """The heads that are not among the tasks, and the place of every head: tasks first, then these. In O(n)."""
    place = places(n, tasks)
    outside = distinct(heads[place[heads] < 0])
    place[outside] = len(tasks) + np.arange(len(outside))
    return outside, place[heads]


def _sought(n: int, tasks: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """The same, in time that does not depend on n."""
    place = np.searchsorted(tasks, heads).astype(np.int32)
    beyond = tasks[np.minimum(place, len(tasks) - 1)] != heads
    outside, rank = np.unique(heads[beyond], return_inverse=True)
    place[beyond] = len(tasks) + rank
    return outside, place
