"""Pictures of fat tasks: each is one box in the dag, with its contents; beside a single one, the residual."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eligo.border import as_workflow
from eligo.clusters import FatTask
from eligo.dag import Dag
from eligo.errors import counted
from eligo.estimates import kind_of
from eligo.planning import VERDICT_CLAUSES
from eligo.plotting.dags import paint, paint_within, panel_size
from eligo.plotting.labels import elide
from eligo.plotting.layout import Groups, Limits, group_nodes, numbered
from eligo.plotting.profiles import new_axes, new_figure
from eligo.plotting.sketches import COLOURS, NEUTRAL, SMALL, Sketch, needed_size
from eligo.plotting.sketches import sizes_by_level as level_sizes
from eligo.rows import Ints
from eligo.simulation import Dealing
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST = 1180.0  # points; if the dag and the residual are wider, the residual is drawn below the dag
NAME, KINDS = 64.0, 130.0  # points for a name in a box, and for a line of kinds
FEW, LISTED = 16, 8  # up to this number, the tasks of a box are drawn in it, or listed if none depends on another
BESIDE = 4  # maximum number of them side by side
MOST_KINDS = 4  # that a box lists
INSET = 5.0  # points between a box and what is drawn in it
CUT = 1  # the colour of cut arcs
BOX_LIMITS = Limits(width=12, depth=40, nodes=120, arcs=500)


def draw_fat_task(flow: object, fat: FatTask) -> "Figure":
    """A figure of the dag with the fat task as one box, its tasks numbered in the client's order, and of the residual.

    The arcs that it cuts have a colour. Similar tasks are drawn as one if there are many; if that is not enough, only the
    neighbours of the fat task are drawn.
    """
    workflow = as_workflow(flow)
    parcels, why = _drawable(workflow, fat)
    sketch, inside = _sketch(parcels, _title(fat) + why)
    residual = Workflow(fat.residual, {name: workflow.task(name) for name in fat.residual.tasks})
    rest = [] if why else [_sketch(Parcels(residual, []), _residual_title(fat))[0]]
    return _side_by_side([sketch, *rest], inside)


def draw_dealing(flow: object, dealing: Dealing) -> "Figure":
    """A figure of the dag with every fat task as one box that lists its contents; similar ones are merged if many."""
    workflow = as_workflow(flow)
    pairs = zip(dealing.fat_tasks, dealing.done, strict=True)
    groups = [workflow.dag.indices(fat.tasks[:done]) for fat, done in pairs if done]
    title = f"{counted(len(workflow), 'task')} in {counted(len(groups), 'fat task')}, {dealing.cut_arcs:,} arcs cut"
    sketch, inside = _sketch(Parcels(workflow, groups), title)
    return _side_by_side([sketch], inside)


def _drawable(flow: Workflow, fat: FatTask) -> tuple["Parcels", str]:
    """What is drawn: the dag, or if the fat task cannot be distinguished there, only the fat task and its neighbours."""
    parcels = Parcels(flow, [flow.dag.indices(fat.tasks)])
    if parcels.is_distinct:
        return parcels, ""
    part = flow.dag.subdag(dict.fromkeys([*fat.tasks, *(u for u, _ in fat.inputs), *(v for _, v in fat.cut)]))
    near = Parcels(Workflow(part, {name: flow.task(name) for name in part.tasks}), [part.indices(fat.tasks)])
    return near, f"; only neighbours among {len(flow):,} tasks are drawn"


def _title(fat: FatTask) -> str:
    return f"A fat task of {counted(len(fat), 'task')} ({fat.strategy}), {counted(fat.cut_arcs, 'cut arc')}"


def _residual_title(fat: FatTask) -> str:
    verdict = VERDICT_CLAUSES[fat.residual_verdict]
    return f"Remaining workflow, {counted(len(fat.residual), 'task')}: {verdict}"


@dataclass(frozen=True, eq=False)
class Parcels:
    """A workflow and groups of its tasks, each in the order in which it is run; a task may be in no group."""

    flow: Workflow
    groups: Sequence[Ints]

    @cached_property
    def boxed(self) -> Groups:
        """The dag with every group as one node; no path leaves a group and returns to it."""
        n = len(self.flow)
        label = np.arange(len(self.groups), len(self.groups) + n, dtype=np.int32)
        for number, members in enumerate(self.groups):
            label[members] = number
        return Groups(self.flow.dag, np.arange(n, dtype=np.int32), label, label).merged(label)

    @cached_property
    def number(self) -> Ints:
        """The group of every node of `boxed`; NEUTRAL for a task without a group."""
        numbers = np.full(len(self.boxed.dag), NEUTRAL, np.int32)
        for number, members in enumerate(self.groups):
            numbers[self.boxed.of[members[:1]]] = number
        return numbers

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of each task."""
        return [kind_of(self.flow.task(name)) for name in self.flow.dag.tasks]

    @cached_property
    def drawn_nodes(self) -> Groups:
        """The nodes that are drawn: those of `boxed`, with similar ones merged if there are too many."""
        pairs = zip(self.boxed.members, self.number.tolist(), strict=True)
        only = "fat " if len(self.groups) == 1 else ""  # the only one is merged with nothing
        named = [only * (number >= 0) + " ".join(self.kind_lines(tasks)) for tasks, number in pairs]
        return group_nodes(self.boxed.dag, kind := numbered(named)[1], kind, BOX_LIMITS)

    @property
    def is_distinct(self) -> bool:
        """Whether the first group is drawn as a node of its own."""
        group = self.boxed.of[self.groups[0][:1]]
        return int((self.drawn_nodes.of == self.drawn_nodes.of[group]).sum()) == 1

    def kind_lines(self, tasks: Ints) -> list[str]:
        """The number of tasks of each kind, the most frequent first."""
        counts = Counter(self.kinds[v] for v in tasks.tolist())
        lines = [f"{count:,} × {kind}" if len(tasks) > 1 else kind for kind, count in counts.most_common(MOST_KINDS)]
        return [
            *lines,
            *([f"and {counted(len(counts) - MOST_KINDS, 'other kind')}"] if len(counts) > MOST_KINDS else []),
        ]


class Box(NamedTuple):
    """A node of the picture: its texts, what is drawn in it below the first text, its colour, and its tooltip."""

    lines: tuple[str, ...]
    inside: Sketch | None
    colour: int
    tip: str


def _sketch(parcels: Parcels, title: str) -> tuple[Sketch, dict[int, Sketch]]:
    """The picture with a box for each group, and the pictures in its boxes."""
    dag, alone = parcels.drawn_nodes.dag, len(parcels.groups) == 1
    boxes = [_box(parcels, nodes) for nodes in parcels.drawn_nodes.members]
    inside = {place: box.inside for place, box in enumerate(boxes) if box.inside is not None}
    sizes = np.array([_size(box) for box in boxes]).reshape(-1, 2)
    colour = np.array([box.colour for box in boxes], np.int32)
    texts = [
        text for box in boxes for lines in (box.lines, *(box.inside.lines if box.inside else ())) for text in lines
    ]
    several, merged, outside = len(parcels.groups) > 1, len(dag) < len(parcels.boxed.dag), (colour == NEUTRAL).any()
    notes = {
        "coloured box: tasks of one client": alone,
        "(n): position in the order": alone and any(text.startswith("(1)") for text in texts),
        "box: tasks that one client runs together": several,
        "red arcs: results sent back": alone and len(parcels.boxed.dag) > 1,
        "arcs: results sent back": several and dag.arc_count > 0,
        "×n: n fat tasks drawn as one": several and merged,
        "white: tasks in no cluster": len(parcels.groups) and outside,
        "similar tasks are drawn as one": not several and merged,
    }
    sent = CUT if alone else NEUTRAL
    sketch = Sketch(
        name="fat", title=title, legend=" · ".join(text for text, applies in notes.items() if applies), dag=dag,
        lines=[box.lines for box in boxes], tips=[box.tip for box in boxes], width=sizes[:, 0], height=sizes[:, 1],
        colour=colour, hollow=colour == NEUTRAL,
        arc_colour=np.where(colour[dag.tails] == NEUTRAL, NEUTRAL, sent).astype(np.int32),
        rank=np.arange(len(dag), dtype=np.int32),
        kept_free={place: inner.size[1] + INSET for place, inner in inside.items()},
    )  # fmt: skip
    return sketch, inside


def _box(parcels: Parcels, nodes: Ints) -> Box:
    """The box of a fat task, of several similar ones, or of tasks without a group."""
    tasks = np.flatnonzero(np.isin(parcels.boxed.of, nodes)).astype(np.int32)
    fats = np.sort(parcels.number[nodes])
    fats, labels = fats[fats >= 0], parcels.flow.dag.labels
    if not len(fats) and len(tasks) == 1:
        return Box((elide(labels[tasks[0]], NAME, SMALL),), None, NEUTRAL, labels[tasks[0]])
    alone, size = len(parcels.groups) == 1, counted(len(tasks), "task")
    head = size if alone or not len(fats) else f"fat {fats[0] + 1}: {size}"
    head = f"×{len(fats):,} fat: {size}" if len(fats) > 1 else head
    lines = parcels.kind_lines(tasks)
    tip = f"{head}: {', '.join(lines)}"
    lines, inside = [elide(line, KINDS, SMALL) for line in lines], None
    if len(fats) == 1 and len(tasks) <= FEW:
        lines, inside = _contents(parcels, int(fats[0]), lines)
    return Box((head, *lines), inside, int(fats[0]) % COLOURS if len(fats) else NEUTRAL, tip)


def _contents(parcels: Parcels, number: int, lines: list[str]) -> tuple[list[str], Sketch | None]:
    """The contents of a box with few tasks: a picture, or names if no task depends on another."""
    tasks, dag = parcels.groups[number], parcels.flow.dag
    part = dag.induced(np.sort(tasks))
    mark = "({}) " if len(parcels.groups) == 1 else ""
    names = [mark.format(place) + elide(dag.labels[v], NAME, SMALL) for place, v in enumerate(tasks.tolist(), 1)]
    if len(tasks) == 1:
        return names, None
    if not part.arc_count and len(names) <= LISTED:
        return [", ".join(names[i : i + 2]) for i in range(0, len(names), 2)], None
    if not part.arc_count or int(part.level_sizes.max()) > BESIDE:
        return lines, None
    return [], _members(part, [(names[i],) for i in np.argsort(tasks).tolist()], f"fat{number}")


def _size(box: Box) -> tuple[float, float]:
    """The size of a box, with what is drawn in it below its first text."""
    wide, high = needed_size(box.lines)
    if box.inside is None:
        return wide, high
    return max(wide, box.inside.size[0] + 2 * INSET), high + box.inside.size[1] + INSET


def _members(dag: Dag, lines: Sequence[tuple[str, ...]], name: str) -> Sketch:
    """The picture in a box."""
    width, height = level_sizes(dag, lines)
    return Sketch(
        name=name, title="", legend="", dag=dag, lines=lines, tips=list(dag.labels), width=width, height=height,
        colour=np.full(len(dag), NEUTRAL, np.int32), hollow=np.ones(len(dag), np.bool_),
        arc_colour=np.full(dag.arc_count, NEUTRAL, np.int32), rank=np.arange(len(dag), dtype=np.int32),
    )  # fmt: skip


def _side_by_side(sketches: Sequence[Sketch], inside: Mapping[int, Sketch]) -> "Figure":
    """A figure with the sketches side by side if they fit, else in a column; *inside* is drawn in boxes of the first."""
    sizes = [panel_size(sketch) for sketch in sketches]
    beside = sum(width for width, _ in sizes) <= WIDEST
    across = sum(width for width, _ in sizes) if beside else max(width for width, _ in sizes)
    down = max(height for _, height in sizes) if beside else sum(height for _, height in sizes)
    figure = new_figure(across, down)
    x = y = 0.0
    for place, (sketch, (width, height)) in enumerate(zip(sketches, sizes, strict=True)):
        axes = new_axes(figure, x, y, width if beside else across, height)
        paint(sketch, axes)
        for node, inner in inside.items() if place == 0 else ():
            paint_within(sketch, node, inner, axes, INSET)
        x, y = (x + width, y) if beside else (x, y + height)
    return figure
