"""The whole explanation as one picture."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from eligo.border import dag_of
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.planning import VERDICTS, Plan, percent
from eligo.plotting.canvas import new_axes, new_figure, png_of, svg_of
from eligo.plotting.dags import paint, panel_size
from eligo.plotting.profiles import HEIGHT, paint_profile
from eligo.plotting.sketches import Anatomy, Sketch, sketch_of_blocks, sketch_of_conflict, sketch_of_dag
from eligo.theory.eligibility import profile
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDEST = 1180.0  # points: what is wider stands one below the other
SUFFIXES = (".svg", ".png", ".html")

Panel = tuple[Sketch, float, float]  # with its width and height


def draw_explanation(plan: Plan, flow: object) -> "Figure":
    """One figure: the profile on top, below it the dag, its super-dag and a conflict, side by side where there is room."""
    dag = dag_of(flow)
    panels = [(sketch, *panel_size(sketch)) for sketch in _sketches(Anatomy(dag, plan))]
    rows = shelves(panels, max(WIDEST, *(width for _, width, _ in panels)))
    total = max(640.0, *(sum(width for _, width, _ in row) for row in rows))
    figure = new_figure(total, HEIGHT + sum(max(height for _, _, height in row) for row in rows))
    paint_profile(plan, fifo_profile(dag), figure)
    top = HEIGHT
    for row in rows:
        left, spare = 0.0, (total - sum(width for _, width, _ in row)) / len(row)
        for sketch, width, height in row:
            paint(sketch, new_axes(figure, left, top, width + spare, height))
            left += width + spare
        top += max(height for _, _, height in row)
    return figure


def shelves(panels: Iterable[Panel], most: float) -> list[list[Panel]]:
    """The panels in rows that are at most so wide."""
    rows: list[list[Panel]] = [[]]
    for panel in panels:
        if rows[-1] and sum(width for _, width, _ in rows[-1]) + panel[1] > most:
            rows.append([])
        rows[-1].append(panel)
    return rows


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, as SVG or PNG by its suffix; the same figure gives the same bytes."""
    write_picture(path, svg_of(figure).encode() if picture_suffix(path, SUFFIXES[:2]) == ".svg" else png_of(figure))


def save_explanation(plan: Plan, flow: object, path: str | os.PathLike[str]) -> None:
    """Write the explanation of a plan to a file, as a picture (.svg, .png)."""
    picture_suffix(path, SUFFIXES[:2])
    save_figure(draw_explanation(plan, flow), path)


def title_of(flow: Workflow) -> str:
    """What to call a workflow: its name, or the name of the file that it was read from."""
    path = flow.origin.path if flow.origin else None
    return flow.name or (os.path.basename(path) if path else "A workflow")


def facts(plan: Plan) -> list[tuple[str, str]]:
    """What the page's table tells of a plan."""
    steps, arcs = len(plan), f"{plan.dag.arc_count:,}"
    return [
        ("tasks", f"{len(plan):,}"),
        ("arcs", f"{arcs}, of which {plan.shortcuts:,} are shortcuts" if plan.shortcuts else arcs),
        ("blocks", f"{plan.blocks:,}"),
        ("verdict", VERDICTS[plan.verdict]),
        ("found by", plan.method),
        ("ready on average", f"{plan.average:,.2f}"),
        ("first come, first served", f"{sum(plan.first_come) / max(1, steps):,.2f}"),
        ("share of the largest possible average", _at_least(plan)),
        ("steps at which it is proved best", f"{plan.tight_steps:,} of {steps:,} ({percent(plan.tight_steps, steps)})"),
    ]


def _at_least(plan: Plan) -> str:
    share = percent(plan.area, plan.area_bound)
    return share if share == "100 %" else f"at least {share}"


def fifo_profile(dag: Dag) -> tuple[int, ...]:
    """E(t) where tasks are executed in the order in which they become eligible: that is how a dag's own order is made."""
    return profile(dag, dag.order)


def _sketches(parts: Anatomy) -> list[Sketch]:
    """The dag and its super-dag, or one of them where that is all there is to see; and the conflict."""
    first, conflict = sketch_of_dag(parts), parts.plan.conflict
    blocks = [] if first.name == "block" or not len(parts.blocks) else [sketch_of_blocks(parts)]
    return [first, *blocks, *([] if conflict is None else [sketch_of_conflict(conflict)])]


def picture_suffix(path: str | os.PathLike[str], allowed: Sequence[str]) -> str:
    """How a picture's name ends; refused where that is none of those allowed."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in allowed:
        names = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise InputError(f"{os.fspath(path)}: the suffix of a picture must be {names}")
    return suffix


def write_picture(path: str | os.PathLike[str], data: bytes) -> None:
    """Write the bytes of a picture or page."""
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: cannot be written: {(error.strerror or str(error)).lower()}") from None
