"""Pictures of a dag, of its super-dag, and of a whole explanation; and pictures as files."""

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from eligo.border import as_workflow, dag_of
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats.shared.files import save_bytes
from eligo.planning import Plan
from eligo.plotting.labels import legible, wrapped
from eligo.plotting.layout import Floats
from eligo.plotting.profiles import (
    FAINT,
    GREY,
    HEIGHT,
    INK,
    PALETTE,
    look,
    new_axes,
    new_figure,
    note,
    paint_profile,
    png_of,
    svg_of,
)
from eligo.plotting.sketches import (
    BOLD,
    LINE,
    SHORTCUT,
    SMALL,
    Anatomy,
    Sketch,
    sketch_of_blocks,
    sketch_of_conflict,
    sketch_of_dag,
)
from eligo.plotting.space import paint_space
from eligo.space.footprint import Footprint
from eligo.theory.eligibility import profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path

MARGIN = 18.0
RIM = 1.0  # points: the width of a node's edge outside it
ARROW = (2.2, 5.0)  # half the width and the length of an arrow's head
TITLE, LEGEND = 9.0, 6.8  # sizes of type, in points
LEAST_WIDTH, MOST_WIDTH = 300.0, 1180.0  # points; a wider drawing is made smaller, wider rows of them are broken
LARGEST, ROOMY = 1.7, (460.0, 420.0)  # times, and points: a small drawing is made larger, up to these
SUFFIXES = (".svg", ".png", ".html")

Panel = tuple[Sketch, float, float]  # with its width and height


def picture_of(sketch: Sketch) -> "Figure":
    """A figure with one sketch in it."""
    width, height = panel_size(sketch)
    figure = new_figure(width, height)
    paint(sketch, new_axes(figure, 0, 0, width, height))
    return figure


def panel_size(sketch: Sketch) -> tuple[float, float]:
    """The width and height, in points, of the panel for a sketch."""
    across, down = sketch.size
    scale = _scale(sketch, MOST_WIDTH)
    width = max(across * scale + 2 * MARGIN, LEAST_WIDTH)
    return width, down * scale + 2 * MARGIN + _heading(sketch, width)[2]


def _scale(sketch: Sketch, width: float) -> float:
    """The scale of a sketch: a small one is enlarged, and none is wider than the room."""
    across, down = (max(side, 1.0) for side in sketch.size)
    grown = max(1.0, min(LARGEST, ROOMY[0] / across, ROOMY[1] / down))
    return min(grown, (width - 2 * MARGIN) / across)


def _heading(sketch: Sketch, width: float) -> tuple[str, str, float]:
    """Title and legend in lines, and the height they take."""
    title = wrapped(sketch.title, width - 2 * MARGIN, TITLE * 1.08)
    legend = wrapped(sketch.legend, width - 2 * MARGIN, LEGEND)
    height = (title.count("\n") + 1) * TITLE * 1.25 + (legend.count("\n") + 1) * LEGEND * 1.35
    return title, legend, height + 16.0


def paint(sketch: Sketch, axes: "Axes") -> None:
    """Draw a sketch into axes of the size that `panel_size` returns."""
    box = axes.get_window_extent()
    width, height = (72 * side / axes.figure.dpi for side in (box.width, box.height))
    scale = _scale(sketch, width)
    title, legend, heading = _heading(sketch, width)
    indent, top = (width - sketch.size[0] * scale) / 2, MARGIN + heading
    highest = float((sketch.layout.y + sketch.height / 2).max(initial=0.0))
    axes.set_xlim(-indent / scale, (width - indent) / scale)
    axes.set_ylim(highest - (height - top) / scale, highest + top / scale)
    axes.set_axis_off()
    with look():
        below = (title.count("\n") + 1) * TITLE * 1.25 + 4.0
        for text, size, weight, ink, y in ((title, TITLE, "bold", INK, 0.0), (legend, LEGEND, "normal", GREY, below)):
            note(axes, text, MARGIN, -MARGIN - y, size=size, weight=weight, color=ink)
        _paint_arcs(sketch, axes, scale)
        _paint_nodes(sketch, axes, scale)


def paint_within(sketch: Sketch, node: int, inner: Sketch, axes: "Axes", inset: float) -> None:
    """Draw another sketch into a node of a sketch in these axes, *inset* points above the node's lower edge."""
    scale = _scale(sketch, 72 * axes.get_window_extent().width / axes.figure.dpi)
    (wide, high), (x, y) = inner.size, (float(side[node]) for side in (sketch.layout.x, sketch.layout.y))
    low = y - float(sketch.height[node]) / 2 + inset
    corners = axes.transData.transform([(x - wide / 2 - RIM, low - RIM), (x + wide / 2 + RIM, low + high + RIM)])
    (x0, y0), (x1, y1) = axes.figure.transFigure.inverted().transform(corners)
    highest = float((inner.layout.y + inner.height / 2).max(initial=0.0))
    with look():
        within = axes.figure.add_axes((x0, y0, x1 - x0, y1 - y0))
        within.set_xlim(-RIM, wide + RIM)
        within.set_ylim(highest - high - RIM, highest + RIM)
        within.set_axis_off()
        _paint_arcs(inner, within, scale)
        _paint_nodes(inner, within, scale)


def _paint_arcs(sketch: Sketch, axes: "Axes", scale: float) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import PathPatch

    ways = _ways(sketch)
    for colour in np.unique(sketch.arc_colour).tolist():
        chosen = np.flatnonzero(sketch.arc_colour == colour)
        dotted = colour == SHORTCUT
        ink, width, style = (FAINT, 0.8, (0, (1.0, 2.0))) if dotted else (shade(colour), 0.9, "solid")
        layer = 1.0 if dotted else 2.0
        way = _curve([ways[i] for i in chosen.tolist()])
        axes.add_patch(
            PathPatch(way, fill=False, edgecolor=ink, linewidth=width * scale, linestyle=style, zorder=layer)
        )
        heads = np.unique(sketch.dag.child[chosen])
        tips = np.column_stack([sketch.layout.x[heads], (sketch.layout.y + sketch.height / 2)[heads]])
        arrow = np.array([[0.0, 0.0], [-ARROW[0], ARROW[1]], ARROW])
        arrows = PolyCollection(list(tips[:, None, :] + arrow), facecolors=ink, linewidths=0, zorder=layer + 0.5)
        axes.add_collection(arrows, autolim=False)


def _ways(sketch: Sketch) -> list[Floats]:
    """The stops of each arc, two for each row that it leaves, passes or enters."""
    place, dag = sketch.layout, sketch.dag
    tall = np.zeros(dag.depth)
    np.maximum.at(tall, dag.level, sketch.height)
    low = np.column_stack([place.x, place.y - sketch.height / 2])
    high = np.column_stack([place.x, place.y + sketch.height / 2 + ARROW[1]])
    bottom = np.column_stack([place.x, place.y - tall[dag.level] / 2])
    top = np.column_stack([place.x, np.maximum(high[:, 1], place.y + tall[dag.level] / 2)])
    ways = []
    for tail, head, bends in zip(dag.tails.tolist(), dag.child.tolist(), place.bends, strict=True):
        passed = tall[dag.level[tail] + 1 : dag.level[head], None] / 2 * [0, 1]
        through = np.stack([bends + passed, bends - passed], axis=1).reshape(-1, 2)
        ways.append(np.concatenate([[low[tail], bottom[tail]], through, [top[head], high[head]]]))
    return ways


def _curve(ways: Sequence[Floats]) -> "Path":
    """One path along all ways, with shared parts once: straight within rows, and leaving and entering them vertically."""
    from matplotlib.path import Path

    drawn: dict[tuple[float, ...], None] = {}
    for way in ways:
        drawn.update(((*before, *after, i % 2), None) for i, (before, after) in enumerate(pairwise(way.tolist())))
    points: list[tuple[float, float]] = []
    codes = []
    for x0, y0, x1, y1, bent in drawn:
        lean = 0.3 * (y0 - y1)
        points += [(x0, y0), (x0, y0 - lean), (x1, y1 + lean), (x1, y1)] if bent else [(x0, y0), (x1, y1)]
        codes += [Path.MOVETO, *([Path.CURVE4] * 3 if bent else [Path.LINETO])]
    return Path(points, codes)


def _paint_nodes(sketch: Sketch, axes: "Axes", scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    place = sketch.layout
    boxes = zip(place.x.tolist(), place.y.tolist(), sketch.width.tolist(), sketch.height.tolist(), strict=True)
    for i, (x, y, width, height) in enumerate(boxes):
        colour = int(sketch.colour[i])
        box = FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=4",
            facecolor="white" if sketch.hollow[i] else tint(colour), edgecolor=shade(colour), linewidth=0.9 * scale,
            zorder=3, label=sketch.tips[i], gid=f"{sketch.name}-{i}",
        )  # fmt: skip
        axes.add_patch(box)
        texts, lift = sketch.lines[i], sketch.kept_free.get(i, 0.0) / 2
        for k, text in enumerate(texts):
            middle = y + lift + LINE * ((len(texts) - 1) / 2 - k)
            size, weight, ink = (SMALL, "normal", "#3E4C59") if k else (BOLD, "bold", INK)
            axes.text(
                x, middle, legible(text), size=size * scale, weight=weight, color=ink, ha="center", va="center",
                zorder=4,
            )  # fmt: skip


def shade(colour: int) -> str:
    """The colour of lines."""
    return PALETTE[colour] if colour >= 0 else GREY


def tint(colour: int) -> str:
    """A light tint of the same colour, as a background for text."""
    parts = (int(shade(colour)[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * 0.22):02X}" for part in parts)


# The whole explanation


def draw_explanation(plan: Plan, flow: object) -> "Figure":
    """One figure: the profile on top, then the files between tasks, the dag, its super-dag and a conflict.

    The last three are side by side if they fit; files are drawn if their sizes are known.
    """
    dag, footprint = dag_of(flow), Footprint.of(as_workflow(flow))
    panels = [(sketch, *panel_size(sketch)) for sketch in _sketches(Anatomy(dag, plan))]
    rows = shelves(panels, max(MOST_WIDTH, *(width for _, width, _ in panels)))
    total = max(640.0, *(sum(width for _, width, _ in row) for row in rows))
    top = HEIGHT * (1 + footprint.sized)
    figure = new_figure(total, top + sum(max(height for _, _, height in row) for row in rows))
    paint_profile(plan, fifo_profile(dag), figure)
    if footprint.sized:
        paint_space(plan, footprint, figure, HEIGHT)
    for row in rows:
        offset, spare = 0.0, (total - sum(width for _, width, _ in row)) / len(row)
        for sketch, width, height in row:
            paint(sketch, new_axes(figure, offset, top, width + spare, height))
            offset += width + spare
        top += max(height for _, _, height in row)
    return figure


def shelves(panels: Iterable[Panel], most: float) -> list[list[Panel]]:
    """The panels in rows of at most this width."""
    rows: list[list[Panel]] = [[]]
    for panel in panels:
        if rows[-1] and sum(width for _, width, _ in rows[-1]) + panel[1] > most:
            rows.append([])
        rows[-1].append(panel)
    return rows


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, as SVG or PNG by its suffix; the same figure gives the same bytes."""
    data = svg_of(figure).encode() if picture_suffix(path, SUFFIXES[:2]) == ".svg" else png_of(figure)
    save_bytes(data, os.fspath(path))


def fifo_profile(dag: Dag) -> tuple[int, ...]:
    """E(t) if tasks are executed in the order in which they become eligible, which is the dag's own order."""
    return profile(dag, dag.order)


def _sketches(parts: Anatomy) -> list[Sketch]:
    """The dag and its super-dag, or one of them if the other shows nothing more; and the conflict."""
    first, conflict = sketch_of_dag(parts), parts.plan.conflict
    blocks = [] if first.name == "block" or not len(parts.blocks) else [sketch_of_blocks(parts)]
    return [first, *blocks, *([] if conflict is None else [sketch_of_conflict(conflict)])]


def picture_suffix(path: str | os.PathLike[str], allowed: Sequence[str]) -> str:
    """The suffix of a picture's name; raises if it is not allowed."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in allowed:
        names = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise InputError(f"{os.fspath(path)}: the suffix of a picture must be {names}")
    return suffix
