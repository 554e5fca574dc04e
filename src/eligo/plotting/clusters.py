"""Pictures of fat tasks: the dag with each of them outlined, and beside one the residual."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eligo.border import dag_of
from eligo.clusters import FatTask
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.names import Name
from eligo.plotting.anatomy import COLOURS, NEUTRAL
from eligo.plotting.canvas import PALETTE, new_axes, new_figure
from eligo.plotting.dags import paint, panel_size, tint
from eligo.plotting.labels import counted
from eligo.plotting.sketches import TASK_LIMITS, Sketch, fitting_names, sizes_by_level
from eligo.rows import Ints
from eligo.simulation import Dealing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOM = 700.0  # points that the names of a row may take
WIDEST = 1180.0  # points: a residual beside a wider dag stands below it
SHORT = 4  # letters of a name that is shown whatever the room
HALO, RIM = 5.0, 1.2  # points around the outlined tasks, and the width of the outline
CUT = 1  # the colour of cut arcs


def draw_fat_task(flow: object, fat: FatTask) -> "Figure":
    """The dag with the fat task outlined, its tasks numbered in the client's order, and the residual beside it.

    The arcs that it cuts have a colour. Of a dag too large to be drawn, the fat task and what is next to it are shown.
    """
    shown, why = _shown(dag_of(flow), fat)
    sketch = _sketch(shown, [fat.tasks], _title(fat) + why)
    rest = [] if why else [_sketch(fat.residual, [], _residual_title(fat))]
    return _side_by_side([sketch, *rest], [[shown.indices(fat.tasks)], *([[]] if rest else [])])


def draw_dealing(flow: object, dealing: Dealing) -> "Figure":
    """The dag with all fat tasks outlined, tasks numbered by the fat task that they are in."""
    dag = dag_of(flow)
    if TASK_LIMITS.exceeded(dag):
        raise InputError(f"{len(dag):,} tasks are too many to draw each of them")
    groups = [fat.tasks[:done] for fat, done in zip(dealing.fat_tasks, dealing.done, strict=True) if done]
    title = f"{counted(len(dag), 'task')} in {counted(len(groups), 'fat task')}, {dealing.cut_arcs:,} arcs cut"
    sketch = _sketch(dag, groups, title)
    return _side_by_side([sketch], [[dag.indices(group) for group in groups]])


def _shown(dag: Dag, fat: FatTask) -> tuple[Dag, str]:
    """What is drawn: the dag, or where it is too large the fat task with what is next to it."""
    if not TASK_LIMITS.exceeded(dag):
        return dag, ""
    near = dict.fromkeys([*fat.tasks, *(u for u, _ in fat.inputs), *(v for _, v in fat.cut)])
    part = dag.subdag(near)
    if TASK_LIMITS.exceeded(part):
        raise InputError(f"a fat task of {len(fat):,} tasks with what is next to it is too large to draw")
    return part, f"; of {len(dag):,} tasks those next to it are drawn"


def _title(fat: FatTask) -> str:
    return f"A fat task of {counted(len(fat), 'task')} ({fat.strategy}), {counted(fat.cut_arcs, 'cut arc')}"


def _residual_title(fat: FatTask) -> str:
    verdict = {
        "optimal": "one order is best at every moment",
        "impossible": "no order is best at every moment",
        "bounded": "whether one order is best at every moment is not decided",
    }[fat.residual_verdict]
    return f"What is left, {counted(len(fat.residual), 'task')}: {verdict}"


def _sketch(dag: Dag, groups: Sequence[Sequence[Name]], title: str) -> Sketch:
    group, numbers = _numbered(dag, groups)
    names = [
        fit or task[: SHORT * (len(task) <= SHORT)]
        for fit, task in zip(fitting_names(dag, ROOM), dag.labels, strict=True)
    ]
    lines = [tuple(text for text in (names[v] or numbers[v], names[v] and numbers[v]) if text) for v in range(len(dag))]
    width, height = sizes_by_level(dag, lines)
    cut = (group[dag.tails] >= 0) & (group[dag.tails] != group[dag.child])
    told = {
        "outlined: what one client runs, in the order of the numbers": len(groups) == 1,
        "red arcs: results that it sends back": len(groups) == 1 and cut.any(),
        "outlined: what one client runs at a time": len(groups) > 1,
        "grey arcs: results that are sent back": len(groups) > 1 and cut.any(),
    }
    sent = CUT if len(groups) == 1 else NEUTRAL
    colour = np.where(group >= 0, group % COLOURS, NEUTRAL).astype(np.int32)
    return Sketch(
        name="task",
        title=title,
        legend=" · ".join(text for text, seen in told.items() if seen),
        dag=dag,
        lines=lines,
        tips=list(dag.labels),
        width=width,
        height=height,
        colour=colour,
        hollow=(dag.outdegree == 0) & (group < 0),
        arc_colour=np.where(cut, sent, np.where(group[dag.tails] >= 0, colour[dag.tails], NEUTRAL)).astype(np.int32),
        rank=np.arange(len(dag), dtype=np.int32),
    )


def _numbered(dag: Dag, groups: Sequence[Sequence[Name]]) -> tuple[Ints, list[str]]:
    """Each task's group, and its number: in the only group, or of its group."""
    group, numbers = np.full(len(dag), NEUTRAL, np.int32), [""] * len(dag)
    for i, tasks in enumerate(groups):
        for place, v in enumerate(dag.indices(tasks).tolist(), 1):
            group[v] = i
            numbers[v] = f"({place})" if len(groups) == 1 else f"fat {i + 1}"
    return group, numbers


def _side_by_side(sketches: Sequence[Sketch], groups: Sequence[Sequence[Ints]]) -> "Figure":
    sizes = [panel_size(sketch) for sketch in sketches]
    beside = sum(width for width, _ in sizes) <= WIDEST
    across = sum(width for width, _ in sizes) if beside else max(width for width, _ in sizes)
    down = max(height for _, height in sizes) if beside else sum(height for _, height in sizes)
    figure = new_figure(across, down)
    left = top = 0.0
    for sketch, outlined, (width, height) in zip(sketches, groups, sizes, strict=True):
        axes = new_axes(figure, left, top, width if beside else across, height)
        paint(sketch, axes)
        for i, tasks in enumerate(outlined):
            _outline(sketch, axes, tasks, i % COLOURS)
        left, top = (left + width, top) if beside else (left, top + height)
    return figure


def _outline(sketch: Sketch, axes: "Axes", tasks: Ints, colour: int) -> None:
    """Draw around some tasks and the arcs between them: first all of it a little larger in the colour of the rim."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyBboxPatch

    inside = np.zeros(len(sketch.dag), np.bool_)
    inside[tasks] = True
    place, dag = sketch.layout, sketch.dag
    arcs = np.flatnonzero(inside[dag.tails] & inside[dag.child])
    points = np.column_stack([place.x, place.y])
    rows = np.lexsort((place.x, dag.level))
    beside = inside[rows[:-1]] & inside[rows[1:]] & (dag.level[rows[:-1]] == dag.level[rows[1:]])
    ways = np.stack([points[dag.tails[arcs]], points[dag.child[arcs]]], axis=1)
    gaps = np.stack([points[rows[:-1][beside]], points[rows[1:][beside]]], axis=1)
    tall = sketch.height[rows[:-1][beside]]
    scale = float(axes.transData.transform((1, 0))[0] - axes.transData.transform((0, 0))[0]) * 72 / axes.figure.dpi
    for margin, ink, layer in ((HALO + RIM, PALETTE[colour], 0.3), (HALO, tint(colour), 0.5)):
        for v in tasks.tolist():
            corner = (place.x[v] - sketch.width[v] / 2, place.y[v] - sketch.height[v] / 2)
            style = f"round,pad={margin},rounding_size={margin + 4}"
            box = FancyBboxPatch(
                corner, sketch.width[v], sketch.height[v], boxstyle=style, facecolor=ink, linewidth=0, zorder=layer
            )
            axes.add_patch(box)
        width = (26.0 + 2 * (margin - HALO)) * scale
        for lines, widths in ((ways, np.full(len(ways), width)), (gaps, (tall + 2 * margin) * scale)):
            strokes = LineCollection(list(lines), colors=ink, linewidths=widths, capstyle="butt", zorder=layer)
            axes.add_collection(strokes, autolim=False)
