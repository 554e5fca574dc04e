"""Series cuts: steps at which it is certain what was executed before.

Where the nonsinks fall into two sets of which all of the one precede all of the other, every schedule executes the one
before the other. The dag falls into *segments* that are solved one by one: a schedule is IC-optimal exactly when it is so on
every segment. A task that every other must precede or follow is a segment of its own.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.kernels import graph
from eligo.rows import Ints, distinct, gathered, places


def segments(dag: Dag) -> Ints:
    """For every nonsink the number of its segment, for sinks -1. Needs a skeleton.

    >>> neck = Dag.from_arcs([("a", "c"), ("b", "c"), ("c", "d"), ("d", "f"), ("c", "e"), ("e", "f"), ("f", "g")])
    >>> dict(zip(neck.tasks, segments(neck).tolist()))
    {'a': 0, 'c': 1, 'b': 0, 'd': 2, 'f': 3, 'e': 2, 'g': -1}
    """
    working = dag.outdegree > 0
    label = np.cumsum(_begins(dag, working), dtype=np.int32)[dag.level] if len(dag) else np.zeros(0, np.int32)
    label[~working] = -1
    return label


def _begins(dag: Dag, working: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """At which levels a segment begins behind another.

    All nonsinks above precede all others exactly when those above that have no child there are, each of them, parents of all
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
