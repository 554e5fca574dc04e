"""A picture of why no order is best at every step."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.conflicts import Conflict
from eligo.plotting.anatomy import NEUTRAL
from eligo.plotting.grouping import Limits, grouped
from eligo.plotting.labels import counted, elided, stem
from eligo.plotting.sketches import BOLD, SMALL, Sketch, members_of, sizes_by_level
from eligo.rows import Ints

FIRST, SECOND = 0, 1  # colours
NAME = 84.0  # points for a name
LIMITS = Limits(width=9, depth=10**6, nodes=150, arcs=600)
Mask = NDArray[np.bool_]


def sketch_of_conflict(conflict: Conflict) -> Sketch:
    """What must be done by the one step, by the other, and by both; and, white, the tasks that become ready by it.

    Tasks of a row that play the same part are one node where there are many.
    """
    done = [_mask(conflict.part, chosen) for chosen in conflict.sets]
    ready = [_rendered(conflict.part, mask) & ~done[0] & ~done[1] for mask in done]
    shown = np.flatnonzero(done[0] | done[1] | ready[0] | ready[1]).astype(np.int32)
    colour = np.where(done[0] | done[1], _told_apart(*done), _told_apart(*ready))[shown].astype(np.int32)
    hollow = ~(done[0] | done[1])[shown]
    dag = conflict.part.induced(shown)
    part = (2 * (colour - NEUTRAL) + hollow).astype(np.int32)
    groups = grouped(dag, part, np.arange(len(dag), dtype=np.int32), LIMITS)
    members = members_of(groups)
    first = np.array([group[0] for group in members], np.int32)
    lines = [_lines(dag, group) for group in members]
    width, height = sizes_by_level(groups.dag, lines)
    one, two = conflict.steps
    return Sketch(
        name="conflict",
        title=f"Why no order is best at every step: steps {one} and {two}",
        legend=_legend(conflict, done, len(members) < len(dag)),
        dag=groups.dag,
        lines=lines,
        tips=[", ".join(map(str, dag.labelled().named(group))) for group in members],
        width=width,
        height=height,
        colour=colour[first],
        hollow=hollow[first],
        arc_colour=colour[first][groups.dag.child],
        rank=np.arange(len(members), dtype=np.int32),
    )


def _legend(conflict: Conflict, done: Sequence[Mask], merged: bool) -> str:
    """What the colours mean; of the second step nothing, where what would be best after it was not found."""
    (one, two), found = conflict.steps, len(conflict.sets[1]) > 0
    beside = f", beside the first {counted(conflict.before, 'task')}" if conflict.before else ""
    gains = [_gain(conflict, mask) for mask in done[: 1 + found]]
    second = f"vermilion: after step {two} · grey: for both" if found else f"for step {two} no such tasks were found"
    told = [
        f"blue: done to be best after step {one}{beside if not found else ''}",
        f"{second}{beside if found else ''}",
        f"white: tasks that are ready then ({' and '.join(map(str, gains))} of them)",
        *(["×n: n tasks drawn as one"] if merged else []),
    ]
    return " · ".join(told)


def _lines(dag: Dag, group: Ints) -> tuple[str, ...]:
    """What a node is called: the name of its task, or how many it stands for and what they have in common."""
    names = [dag.labels[v] for v in group.tolist()]
    if len(names) == 1:
        return (elided(names[0], NAME, BOLD),)
    return f"×{len(names):,}", elided(stem(names) or f"{names[0]} … {names[-1]}", NAME, SMALL)


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
