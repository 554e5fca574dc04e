"""A picture of why no order is best at every step."""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.conflicts import Conflict
from eligo.plotting.anatomy import NEUTRAL
from eligo.plotting.labels import counted
from eligo.plotting.sketches import ROOMS, Sketch, fitting_names, sizes_by_level
from eligo.rows import Ints

FIRST, SECOND = 0, 1  # colours
Mask = NDArray[np.bool_]


def sketch_of_conflict(conflict: Conflict) -> Sketch:
    """What must be done by the one step, by the other, and by both; and, white, the tasks that become ready by it."""
    done = [_mask(conflict.part, chosen) for chosen in conflict.sets]
    ready = [_rendered(conflict.part, mask) & ~done[0] & ~done[1] for mask in done]
    shown = np.flatnonzero(done[0] | done[1] | ready[0] | ready[1]).astype(np.int32)
    dag = conflict.part.induced(shown)
    colour = np.where(done[0] | done[1], _told_apart(*done), _told_apart(*ready))[shown].astype(np.int32)
    lines = [(name,) for name in fitting_names(dag, ROOMS[0])]
    width, height = sizes_by_level(dag, lines)
    one, two = conflict.steps
    beside = f", beside the first {counted(conflict.before, 'task')}" if conflict.before else ""
    return Sketch(
        name="conflict",
        title=f"Why no order is best at every step: steps {one} and {two}",
        legend=f"blue: done to be best after step {one} · vermilion: after step {two} · grey: for both{beside} · "
        f"white: tasks that are ready then ({_gain(conflict, done[0])} and {_gain(conflict, done[1])} of them)",
        dag=dag,
        lines=lines,
        tips=list(dag.tasks),
        width=width,
        height=height,
        colour=colour,
        hollow=~(done[0] | done[1])[shown],
        arc_colour=colour[dag.child],
        rank=np.arange(len(dag), dtype=np.int32),
    )


def _mask(dag: Dag, chosen: Ints) -> Mask:
    mask = np.zeros(len(dag), np.bool_)
    mask[chosen] = True
    return mask


def _rendered(dag: Dag, done: Mask) -> Mask:
    """The tasks all of whose parents are done, and that have some."""
    missing = np.bincount(dag.child, ~done[dag.tails], minlength=len(dag))
    rendered: Mask = (missing == 0) & (dag.indegree > 0)
    return rendered


def _told_apart(one: Mask, two: Mask) -> NDArray[np.int64]:
    return np.where(one & two, NEUTRAL, np.where(one, FIRST, SECOND))


def _gain(conflict: Conflict, done: Mask) -> int:
    return int((_rendered(conflict.part, done) & ~done).sum())
