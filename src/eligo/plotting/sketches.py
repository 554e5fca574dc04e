"""Sketches of pictures, before anything is drawn: nodes with their texts, sizes and colours, and arcs.

They show a planned dag with places in the plan, shortcuts, blocks, their kinds and colours; and why no order is best at
every step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.conflicts import Conflict
from eligo.errors import InputError, counted
from eligo.names import without_shared_path
from eligo.planning import Plan
from eligo.plotting.labels import elide, kinds, stem, text_width
from eligo.plotting.labels import places as places_in_words
from eligo.plotting.layout import Floats, Groups, Layout, Limits, group_nodes, layered, numbered
from eligo.rows import Ints, places
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.skeleton import shortcut_mask, skeleton
from eligo.theory.solutions import recognise

# The plan taken apart


COLOURS = 8  # of the palette
NEUTRAL = -1  # the colour of blocks that are a single arc, and of tasks without arcs


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What the pictures of one plan share, computed once."""

    dag: Dag
    plan: Plan

    def __post_init__(self) -> None:
        if self.plan.dag is not self.dag and self.plan.dag != self.dag:
            raise InputError("the plan belongs to another workflow")

    @cached_property
    def position(self) -> Ints:
        """The place of every task in the plan, from 0."""
        return places(len(self.dag), self.plan.sequence)

    @cached_property
    def shortcuts(self) -> NDArray[np.bool_]:
        """For every arc, whether it is a shortcut."""
        return shortcut_mask(self.dag)

    @cached_property
    def lonely(self) -> int:
        """The number of tasks without arcs, which are in no block."""
        return int(((self.dag.indegree == 0) & (self.dag.outdegree == 0)).sum())

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of the skeleton."""
        return decompose(skeleton(self.dag))

    @cached_property
    def kinds(self) -> list[str]:
        """Each block's kind: W(3,2) if it has a name, else for example 5→3 for 5 sources and 3 sinks."""
        counts = np.column_stack([np.diff(rows[0]) for rows in (self.blocks.source_rows, self.blocks.sink_rows)])
        kinds = [f"{sources}→{sinks}" for sources, sinks in counts.tolist()]
        for kind, members in recognise(self.blocks):
            for block in members.tolist():
                kinds[block] = str(kind)
        return kinds

    @cached_property
    def turn(self) -> Ints:
        """Each block's place, from 1, in the order in which the plan starts them."""
        ptr, sources = self.blocks.source_rows
        begin = np.minimum.reduceat(self.position[sources], ptr[:-1]) if len(self.blocks) else sources
        return places(len(self.blocks), np.argsort(begin)) + np.int32(1)

    @cached_property
    def colours(self) -> Ints:
        """Each block's colour, different from those of neighbouring blocks; NEUTRAL for single arcs."""
        superdag = self.blocks.superdag
        colours = np.full(len(self.blocks), NEUTRAL, np.int32)
        beside = np.full(superdag.depth, NEUTRAL, np.int32)  # the colour given last on each level
        following = 0
        for b in np.argsort(self.turn).tolist():
            if self.kinds[b] == "N(1)":
                continue
            near = (
                superdag.parent[slice(*superdag.parent_ptr[b : b + 2])],
                superdag.child[slice(*superdag.child_ptr[b : b + 2])],
            )
            taken = {*colours[np.concatenate(near)].tolist(), int(beside[superdag.level[b]])}
            free = (c % COLOURS for c in range(following, following + COLOURS))
            colours[b] = beside[superdag.level[b]] = next((c for c in free if c not in taken), following)
            following = (int(colours[b]) + 1) % COLOURS
        return colours


# Sketches of plans


TASK_LIMITS = Limits(width=60, depth=40, nodes=300, arcs=1500)
BLOCK_LIMITS = Limits(width=14, depth=16, nodes=150, arcs=400)
SHORTCUT = -2  # the colour of shortcuts

ROOMS = (1000.0, 700.0, 450.0, 250.0)  # points for the names of a row, in the order in which they are tried
WIDEST = 1250.0  # points; names must not make a drawing wider than this
BOLD, SMALL = 7.5, 6.0  # sizes of type, in points
LINE = 8.5  # points from a text of a node to the next
LEAST_NAME, MOST_NAME, MOST_STEM = 42.0, 96.0, 76.0  # points for a name; a row with less room goes without
AREA, MOST_AREA = 60.0, 6_000.0  # square points for each task of a block, and for the largest block


@dataclass(frozen=True, eq=False)
class Sketch:
    """Nodes and arcs to draw. Sizes are in points; `arc_colour` goes with the dag's arcs.

    `lines` holds each node's texts, the first one bold; `tips` holds each node's tooltip.
    """

    #: what its nodes are: task, block or level
    name: str
    title: str
    legend: str
    dag: Dag
    lines: Sequence[tuple[str, ...]]
    tips: list[str]
    width: Floats
    height: Floats
    colour: Ints
    hollow: NDArray[np.bool_]
    arc_colour: Ints
    #: nodes with lower ranks tend to the left
    rank: Ints
    #: the points below the texts of nodes that are reserved for something else
    kept_free: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def layout(self) -> Layout:
        """The layout of its nodes."""
        return layered(self.dag, self.width, self.height, self.rank, self.arc_colour == SHORTCUT)

    @cached_property
    def size(self) -> tuple[float, float]:
        """Its total width and height, in points."""
        if not len(self.dag):
            return 0.0, 0.0
        bends = np.concatenate([self.layout.x[:0], *(b[:, 0] for b in self.layout.bends)])
        right = max(float((self.layout.x + self.width / 2).max()), float(bends.max(initial=0.0)))
        top, bottom = (self.layout.y + self.height / 2).max(), (self.layout.y - self.height / 2).min()
        return right, float(top - bottom)


def sketch_of_dag(parts: Anatomy) -> Sketch:
    """The tasks if a picture of them is legible; else the blocks; else, if these show nothing, the levels."""
    if not TASK_LIMITS.exceeded(parts.dag):
        return sketch_of_tasks(parts)
    return sketch_of_levels(parts) if _is_lump(parts) else sketch_of_blocks(parts)


def _is_lump(parts: Anatomy) -> bool:
    """Whether nearly all tasks are in one block without a name, or in none."""
    sources = np.diff(parts.blocks.source_rows[0])
    if not len(sources):
        return True
    largest = int(sources.argmax())
    return bool(sources[largest] > 0.9 * sources.sum()) and "→" in parts.kinds[largest]


def sketch_of_tasks(parts: Anatomy) -> Sketch:
    """Every task, with its place in the plan, its name if there is room, and the colour of the block that it opens."""
    without_names = _tasks(parts, 0.0)
    widest = max(WIDEST, without_names.size[0])
    for room in ROOMS:
        sketch = _tasks(parts, room)
        if sketch.size[0] <= widest:
            return sketch
    return without_names


def _tasks(parts: Anatomy, room: float) -> Sketch:
    dag, blocks = parts.dag, parts.blocks
    numbers = [f"{place + 1:,}" for place in parts.position.tolist()]
    names = fitting_names(dag, room)
    lines = [(number, name) if name else (number,) for number, name in zip(numbers, names, strict=True)]
    width, height = sizes_by_level(dag, lines)
    sinks = dag.outdegree == 0
    colours = np.append(parts.colours, np.int32(NEUTRAL))
    return Sketch(
        name="task", title=f"{counted(len(dag), 'task')}, numbered in the order of the plan",
        legend=_task_legend(parts), dag=dag, lines=lines,
        tips=[f"{name}: number {number} of the plan" for name, number in zip(dag.labels, numbers, strict=True)],
        width=width, height=height, colour=colours[np.where(sinks, blocks.sink_of, blocks.source_of)], hollow=sinks,
        arc_colour=np.where(parts.shortcuts, SHORTCUT, colours[blocks.source_of[dag.tails]]).astype(np.int32),
        rank=parts.position,
    )  # fmt: skip


def sizes_by_level(dag: Dag, lines: Sequence[tuple[str, ...]]) -> tuple[Floats, Floats]:
    """The width and height of every node: the room for the texts of its level."""
    room = np.array([needed_size(texts) for texts in lines]).reshape(-1, 2)
    width, height = np.full(dag.depth, 18.0), np.zeros(dag.depth)
    np.maximum.at(width, dag.level, room[:, 0])
    np.maximum.at(height, dag.level, room[:, 1])
    return width[dag.level], height[dag.level]


def _task_legend(parts: Anatomy) -> str:
    notes = {
        "colour: the arcs of one block and the tasks they start from": (parts.colours != NEUTRAL).any(),
        "grey: single arcs": (parts.colours == NEUTRAL).any(),
        "dotted: shortcuts": parts.shortcuts.any(),
        "white: tasks that no other task depends on": len(parts.dag) > 0,
    }
    return " · ".join(text for text, applies in notes.items() if applies)


def fitting_names(dag: Dag, room: float) -> list[str]:
    """The tasks' names, shortened to share *room* with the others of their row; empty if that is too little."""
    share = np.minimum(room / np.maximum(dag.level_sizes, 1) - 18.0, MOST_NAME)[dag.level]
    named = zip(without_shared_path(dag.labels), share.tolist(), strict=True)
    return [elide(name, space, SMALL) if space >= LEAST_NAME else "" for name, space in named]


class Bubble(NamedTuple):
    """A node that stands for several tasks."""

    lines: tuple[str, ...]
    tasks: int
    rank: int
    colour: int = NEUTRAL


def sketch_of_blocks(parts: Anatomy) -> Sketch:
    """The super-dag: every block, or several equal ones, with its kind, when the plan starts it, and what it runs."""
    families = [kind[0] if "→" not in kind else "→" for kind in parts.kinds]
    groups = group_nodes(parts.blocks.superdag, numbered(parts.kinds)[1], numbered(families)[1], BLOCK_LIMITS)
    bubbles = [_block_bubble(parts, group) for group in groups.members]
    merged = len(bubbles) < len(parts.kinds)
    grouping = f" in {counted(len(bubbles), 'group')}" if merged else ""
    title = f"{counted(len(parts.kinds), 'block')}{grouping}, in the order the plan starts them"
    notes = {
        "×n: n blocks drawn as one": merged,
        "W M N C Q: kinds that have a name": bool({*families} - {"→"}),
        "5→3: another block, of 5 sources and 3 sinks": "→" in families,
        "larger: more tasks": max((b.tasks for b in bubbles), default=0) * AREA > 1000,
        f"not drawn: {counted(parts.lonely, 'task')} without arcs": parts.lonely,
    }
    legend = " · ".join(text for text, applies in notes.items() if applies)
    return _bubbles("block", title, legend, skeleton(groups.dag) if merged else groups.dag, bubbles)


def _block_bubble(parts: Anatomy, group: Ints) -> Bubble:
    blocks, first = parts.blocks, int(group[0])
    group = group[np.argsort(parts.turn[group])]
    members, turns = group.tolist(), parts.turn[group].tolist()
    sources = [blocks.sources(b) for b in members]
    runs = elide(stem(parts.dag.labelled().named(np.concatenate(sources))), MOST_STEM, SMALL)
    tasks = sum(len(s) + len(blocks.sinks(b)) for s, b in zip(sources, members, strict=True))
    label = kinds([parts.kinds[b] for b in members])
    return Bubble((label, places_in_words(turns), runs), tasks, turns[0], int(parts.colours[first]))


def sketch_of_levels(parts: Anatomy) -> Sketch:
    """The levels of the dag; neighbouring ones are merged if there are many."""
    dag = parts.dag
    groups = Groups(dag, np.arange(len(dag), dtype=np.int32), dag.level, dag.level).merged(dag.level)
    while BLOCK_LIMITS.too_deep(groups.dag):
        groups = groups.merged(groups.dag.level // 2)
    bubbles = []
    for group in groups.members:
        first, last = int(dag.level[group].min()) + 1, int(dag.level[group].max()) + 1
        row = f"level {first}" if first == last else f"levels {first} to {last}"
        names = elide(stem(dag.labelled().named(group)), MOST_STEM, SMALL)
        bubbles.append(Bubble((counted(len(group), "task"), row, names), len(group), first))
    title = f"{counted(len(dag), 'task')} in {counted(dag.depth, 'level')}"
    legend = "levels are drawn, because nearly all tasks are in one block" if len(parts.blocks) else ""
    return _bubbles("level", title, legend, skeleton(groups.dag), bubbles)


def _bubbles(name: str, title: str, legend: str, dag: Dag, bubbles: Sequence[Bubble]) -> Sketch:
    """Nodes whose areas grow with their numbers of tasks, and are large enough for their texts."""
    lines = [tuple(text for text in bubble.lines if text) for bubble in bubbles]
    room = np.array([needed_size(texts) for texts in lines]).reshape(-1, 2)
    tasks = np.array([bubble.tasks for bubble in bubbles], np.float64)
    area = tasks * min(AREA, MOST_AREA / tasks.max(initial=1.0))
    return Sketch(
        name=name, title=title, legend=legend, dag=dag, lines=lines,
        tips=[f"{', '.join(b.lines)}: {counted(b.tasks, 'task')}" for b in bubbles],
        width=np.maximum(room[:, 0], np.sqrt(1.6 * area)), height=np.maximum(room[:, 1], np.sqrt(area / 1.6)),
        colour=np.array([bubble.colour for bubble in bubbles], np.int32), hollow=np.zeros(len(dag), np.bool_),
        arc_colour=np.full(dag.arc_count, NEUTRAL, np.int32),
        rank=np.array([bubble.rank for bubble in bubbles], np.int32),
    )  # fmt: skip


def needed_size(texts: Sequence[str]) -> tuple[float, float]:
    """The width and height that a node needs for its texts."""
    widths = [text_width(text, SMALL if i else 1.1 * BOLD) for i, text in enumerate(texts)]
    return max(widths, default=0.0) + 9.0, LINE * len(texts) + 7.0


# A sketch of a conflict


FIRST, SECOND = 0, 1  # colours
CONFLICT_NAME = 84.0  # points for a name
CONFLICT_LIMITS = Limits(width=9, depth=10**6, nodes=150, arcs=600)
Mask = NDArray[np.bool_]


def sketch_of_conflict(conflict: Conflict) -> Sketch:
    """The tasks that must be done for one step, for the other, and for both; in white, the tasks that then become ready.

    Tasks of a row with the same role are one node if there are many.
    """
    done = [_mask(conflict.part, chosen) for chosen in conflict.sets]
    ready = [_rendered(conflict.part, mask) & ~done[0] & ~done[1] for mask in done]
    visible = np.flatnonzero(done[0] | done[1] | ready[0] | ready[1]).astype(np.int32)
    colour = np.where(done[0] | done[1], _step_colours(*done), _step_colours(*ready))[visible].astype(np.int32)
    hollow = ~(done[0] | done[1])[visible]
    dag = conflict.part.induced(visible)
    part = (2 * (colour - NEUTRAL) + hollow).astype(np.int32)
    groups = group_nodes(dag, part, np.arange(len(dag), dtype=np.int32), CONFLICT_LIMITS)
    members = groups.members
    first = np.array([group[0] for group in members], np.int32)
    lines = [_lines(dag, group) for group in members]
    width, height = sizes_by_level(groups.dag, lines)
    one, two = conflict.steps
    return Sketch(
        name="conflict", title=f"Why no order is best at every step: steps {one} and {two}",
        legend=_conflict_legend(conflict, done, len(members) < len(dag)), dag=groups.dag, lines=lines,
        tips=[", ".join(map(str, dag.labelled().named(group))) for group in members], width=width, height=height,
        colour=colour[first], hollow=hollow[first], arc_colour=colour[first][groups.dag.child],
        rank=np.arange(len(members), dtype=np.int32),
    )  # fmt: skip


def _conflict_legend(conflict: Conflict, done: Sequence[Mask], merged: bool) -> str:
    """The meaning of the colours; the second step is left out if no best set of tasks was found for it."""
    (one, two), has_second = conflict.steps, len(conflict.sets[1]) > 0
    beside = f", beside the first {counted(conflict.before, 'task')}" if conflict.before else ""
    gains = [int((_rendered(conflict.part, mask) & ~mask).sum()) for mask in done[: 1 + has_second]]
    second = (
        f"vermilion: after step {two} · grey: for both" if has_second else f"for step {two} no such tasks were found"
    )
    notes = [
        f"blue: done to be best after step {one}{beside if not has_second else ''}",
        f"{second}{beside if has_second else ''}",
        f"white: tasks that are ready then ({' and '.join(map(str, gains))} of them)",
        *(["×n: n tasks drawn as one"] if merged else []),
    ]
    return " · ".join(notes)


def _lines(dag: Dag, group: Ints) -> tuple[str, ...]:
    """The texts of a node: the name of its task, or the number of its tasks and the common part of their names."""
    names = [dag.labels[v] for v in group.tolist()]
    if len(names) == 1:
        return (elide(names[0], CONFLICT_NAME, BOLD),)
    return f"×{len(names):,}", elide(stem(names) or f"{names[0]} … {names[-1]}", CONFLICT_NAME, SMALL)


def _mask(dag: Dag, chosen: Ints) -> Mask:
    mask = np.zeros(len(dag), np.bool_)
    mask[chosen] = True
    return mask


def _rendered(dag: Dag, done: Mask) -> Mask:
    """The tasks with parents, all of which are done."""
    missing = np.bincount(dag.child, ~done[dag.tails], minlength=len(dag))
    rendered: Mask = (missing == 0) & (dag.indegree > 0)
    return rendered


def _step_colours(one: Mask, two: Mask) -> NDArray[np.int64]:
    return np.where(one & two, NEUTRAL, np.where(one, FIRST, SECOND))
