"""The files between tasks while a workflow runs one task at a time: their size under some orders, and its lower bound."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from eligo.planning import Plan
from eligo.plotting.labels import wrapped
from eligo.plotting.profiles import (
    CEILING,
    HEIGHT,
    LEFT,
    MARGIN,
    PALETTE,
    PLAN,
    TITLE,
    Curve,
    look,
    new_axes,
    new_figure,
    note,
    paint_frame,
    paint_legend,
    thin,
)
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.work.demands import byte_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 640.0  # points
STYLES: dict[str, Any] = {
    "space": {"color": PALETTE[2], "linewidth": 1.9},
    "this plan": {"color": PLAN, "linewidth": 1.2},
    "first come, first served": {"color": PALETTE[1], "linewidth": 1.2, "linestyle": (0, (3.5, 2.5))},
}


def picture_of_space(plan: Plan, footprint: Footprint) -> "Figure":
    """A figure of its own with the bytes that exist; see `paint_space`."""
    figure = new_figure(WIDTH, HEIGHT)
    paint_space(plan, footprint, figure, 0.0)
    return figure


def paint_space(plan: Plan, footprint: Footprint, figure: "Figure", top: float) -> None:
    """Draw the bytes that exist under the plan, `space` and first come, first served, HEIGHT points high below *top*."""
    best = space_order(footprint)
    bound = space_bound(footprint, best)
    orders = {"space": best, "this plan": plan.sequence, "first come, first served": plan.dag.order}
    curves = {name: footprint.during(order) for name, order in orders.items()}
    width = 72 * float(figure.get_size_inches()[0])
    least = byte_words(bound.bytes)
    title = wrapped(f"No order needs less than {least} for files between tasks.", width - 2 * MARGIN, TITLE * 1.08)
    heading = 20.0 + TITLE * 1.25 * (title.count("\n") + 1)
    axes = new_axes(figure, LEFT, top + MARGIN + heading, width - LEFT - MARGIN, HEIGHT - heading - MARGIN - 44.0)
    with look():
        _paint(axes, curves, bound.bytes)
        note(axes, title, MARGIN - LEFT, heading, size=TITLE, weight="bold")
        paint_legend(axes, None, (MARGIN - LEFT) / (width - LEFT - MARGIN))


def _paint(axes: Any, curves: Mapping[str, Curve], bound: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    steps = thin(list(curves.values()))
    last = max(1, len(next(iter(curves.values()))))
    for name, curve in curves.items():
        peak = byte_words(int(curve.max(initial=0)))
        axes.plot(steps + 1, curve[steps], label=f"{name}: {peak}", zorder=4, **STYLES[name])
    axes.axhline(bound, color=CEILING, linewidth=4.0, label="lower bound on every peak", zorder=3)
    axes.set_xlim(-0.012 * last, 1.012 * last)
    axes.set_ylim(0, 1.06 * max(1, *(int(np.max(curve, initial=0)) for curve in curves.values())))
    paint_frame(axes, "task that runs, one at a time", "", 9, 8)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: byte_words(value)))
