"""Pictures of comparisons: curves with their intervals, and fat tasks in their workflows."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from eligo.clusters import FatTask
from eligo.errors import InputError
from eligo.plotting.clusters import draw_dealing, draw_fat_task
from eligo.plotting.labels import legible, wrapped
from eligo.plotting.profiles import GREY, INK, PALETTE, look, new_axes, new_figure, note, paint_frame
from eligo.simulation import Dealing
from eligo.simulation.reports import Curve, Panel, Picture, Report, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, ALONE, HIGH = 330.0, 520.0, 190.0  # points: a panel's axes, in company and alone
LEFT, RIGHT, ABOVE, BELOW, MARGIN = 62.0, 16.0, 22.0, 44.0, 12.0
TITLE = 11.0
WORDS, INDENT = 48.0, 50.0  # points: the height of words instead of axes, and how far left of these they begin
MILLION = 1_000_000
MARKS = "osD^vP"


def draw_picture(picture: Picture) -> "Figure":
    """A figure of the panels of a picture, in rows."""
    columns = min(picture.columns, len(picture.panels))
    wide = ALONE if columns == 1 else WIDE
    across, heading = LEFT + wide + RIGHT, 2 * MARGIN + TITLE
    rows = [picture.panels[first : first + columns] for first in range(0, len(picture.panels), columns)]
    heights = [ABOVE + HIGH + BELOW if any(panel.curves for panel in row) else ABOVE + WORDS for row in rows]
    width, height = columns * across + MARGIN, heading + sum(heights)
    figure = new_figure(width, height)
    place = (MARGIN / width, 1 - MARGIN / height)
    with look():
        figure.text(*place, legible(picture.title), size=TITLE, weight="bold", va="top")
    top = heading
    for row, high in zip(rows, heights, strict=True):
        for column, panel in enumerate(row):
            space = (wide, HIGH) if panel.curves else (wide, WORDS)
            axes = new_axes(figure, column * across + LEFT, top + ABOVE, *space)
            (paint_panel if panel.curves else _paint_words)(panel, axes)
        top += high
    return figure


def _paint_words(panel: Panel, axes: "Axes") -> None:
    """Draw the words of a panel whose curves would show nothing."""
    with look():
        axes.set_axis_off()
        width = 72 * axes.get_window_extent().width / axes.figure.dpi
        axes.set_title(legible(panel.title), loc="left", size=9.5, color=INK, pad=6, x=-INDENT / width)
        text = wrapped(legible(panel.words), width + INDENT, 8.5)
        note(axes, text, -INDENT, -2, size=8.5, color=INK)


def paint_panel(panel: Panel, axes: "Axes") -> None:
    """Draw the curves of a panel into axes."""
    with look():
        for curve in panel.curves:
            _paint_curve(curve, axes)
        if panel.level is not None:
            axes.axhline(panel.level, color=GREY, linewidth=0.9, zorder=1)
        _paint_frame(panel, axes)
        if any(curve.label for curve in panel.curves):
            axes.legend(loc="best", frameon=False, fontsize=7.4, handlelength=1.6, borderaxespad=0.3, labelspacing=0.35)


def _paint_curve(curve: Curve, axes: "Axes") -> None:
    colour = PALETTE[curve.colour % len(PALETTE)]
    if curve.style == "fit":
        axes.plot(curve.x, curve.y, color=colour, linewidth=0.9, alpha=0.75, zorder=2)
        return
    if curve.low and any(high > low for low, high in zip(curve.low, curve.high, strict=True)):
        axes.vlines(curve.x, curve.low, curve.high, color=colour, linewidth=1.0, alpha=0.8, zorder=2)
    axes.plot(
        curve.x, curve.y, color=colour, linewidth=1.3, linestyle="-" if curve.style == "line" else "none",
        marker=MARKS[curve.colour % len(MARKS)], markersize=3.4, markeredgewidth=0, label=legible(curve.label) or "_",
        zorder=3, clip_on=False,
    )  # fmt: skip


def _paint_frame(panel: Panel, axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if panel.logarithmic:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=9))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(_plain))
    if panel.level is None:
        axes.set_ylim(bottom=0)
    axes.set_title(legible(panel.title), loc="left", size=9.5, color=INK, pad=6)
    paint_frame(axes, panel.across, panel.up, 8.5, 7.8)


def _plain(value: float, position: Any) -> str:
    """A number on an axis: in millions, with commas, or with few digits.

    >>> _plain(2.5e6, 0), _plain(16384.0, 0), _plain(1.25, 0)
    ('2.5 M', '16,384', '1.25')
    """
    if abs(value) >= MILLION:
        return f"{value / MILLION:g} M"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def first_figure(report: Report) -> "Figure":
    """The first picture of a report."""
    first = next(figures_of(report.sections), None)
    if first is None:
        raise InputError("nothing to draw: use a .html file for the tables")
    return first[1]


def figures_of(sections: Iterable[Section]) -> Iterator[tuple[str, "Figure"]]:
    """Every figure of the sections, with its name."""
    for section in sections:
        for picture in section.pictures:
            yield picture.name, draw_picture(picture)
        for name, fat in section.fat_tasks.items():
            yield name, draw_clusters(section.flow, fat)


def draw_clusters(flow: object, clusters: FatTask | Dealing) -> "Figure":
    """A figure of a fat task, or of all tasks that were dealt, in their workflow."""
    graph = clusters.dag if flow is None else flow
    return draw_dealing(graph, clusters) if isinstance(clusters, Dealing) else draw_fat_task(graph, clusters)
