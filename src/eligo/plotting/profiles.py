"""Figures in one style and with reproducible bytes, and the first of them: the profile of a plan."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError
from eligo.planning import Plan
from eligo.plotting.labels import legible, wrapped

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Figures


#: blue, vermilion, green, purple, orange, sky, wine, olive: after Okabe and Ito (2008) and Tol, safe for colour-blind readers
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#C98A00", "#3D9BD1", "#882255", "#7A7A2A")
INK, GREY, FAINT = "#1F2933", "#6B7785", "#8592A0"

DPI = 160
_LOOK: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,  # the name of a task may be $x$
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.fonttype": "none",  # text stays text: it can be searched, copied and read aloud
    "svg.hashsalt": "eligo",
}


def can_draw() -> bool:
    """Whether matplotlib, which pictures need, is installed."""
    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size, in points."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "matplotlib":
            raise
        raise InputError("pictures need matplotlib: pip install 'eligo[plot]'") from None
    with look():
        return Figure(figsize=(width / 72, height / 72), dpi=DPI, facecolor="white")


def new_axes(figure: "Figure", x: float, y: float, width: float, height: float) -> "Axes":
    """Axes of this size, this far from the figure's left and top edges, all in points."""
    across, down = (72 * inches for inches in figure.get_size_inches())
    with look():
        return figure.add_axes((x / across, 1 - (y + height) / down, width / across, height / down))


@contextmanager
def look() -> Iterator[None]:
    """Within this block, pictures have eligo's style, whatever the user's settings are."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script that the font lacks
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK)
        yield


def note(axes: "Axes", text: str, right: float, up: float, **style: Any) -> None:
    """Write a text below a point that is this far, in points, from the upper left corner of the axes."""
    axes.annotate(text, (0, 1), (right, up), "axes fraction", "offset points", va="top", **style)


def paint_frame(axes: "Axes", across: str, up: str, size: float, small: float) -> None:
    """Draw the labels of both axes, and a grid; *size* is that of labels, and *small* that of numbers."""
    axes.set_xlabel(across, size=size, color=INK)
    axes.set_ylabel(up, size=size, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3, labelsize=small)
    axes.grid(axis="y", color="#EEF1F4", linewidth=0.8)
    axes.set_axisbelow(True)


def svg_of(figure: "Figure") -> str:
    """The figure as SVG; the label of an artist with a gid becomes its tooltip."""
    tips = {artist.get_gid(): str(artist.get_label()) for artist in figure.findobj() if artist.get_gid()}
    text = io.StringIO()
    with look():
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))

    def with_tip(match: re.Match[str]) -> str:
        tip = tips.get(match[1])
        return match[0] if tip is None else f"{match[0]}<title>{escape(legible(tip))}</title>"

    return re.sub(r'<g id="([^"]*)">', with_tip, text.getvalue())


def png_of(figure: "Figure") -> bytes:
    """The figure as PNG."""
    data = io.BytesIO()
    with look():
        figure.savefig(data, format="png")
    return data.getvalue()


Curve = NDArray[np.int64]

HEIGHT = 260.0  # points
MARGIN, LEFT = 18.0, 54.0
TITLE = 11.0
FEW_STEPS = 40  # up to this number, every step gets a mark
STRETCHES = 600  # of many steps, only the least and the most of this many stretches are drawn
CEILING, GAP = "#B4C0CC", "#E3E9EF"
PLAN = PALETTE[0]
FIFO_LINE: Any = {
    "color": PALETTE[1],
    "linewidth": 1.2,
    "linestyle": (0, (3.5, 2.5)),
    "label": "first come, first served",
    "zorder": 5,
}


def paint_profile(plan: Plan, fifo_profile: Sequence[int] | None, figure: "Figure") -> None:
    """Draw E(t) of the plan, the proved bound U(t), and first come, first served at the top of a figure, HEIGHT points high.

    The grey area between plan and bound is undecided: where it vanishes, the plan is proved best. The title is the verdict.
    """
    width = 72 * float(figure.get_size_inches()[0])
    title = wrapped(str(plan), width - 2 * MARGIN, TITLE * 1.08)
    heading = 20.0 + TITLE * 1.25 * (title.count("\n") + 1)
    inner = width - LEFT - MARGIN
    axes = new_axes(figure, LEFT, MARGIN + heading, inner, HEIGHT - heading - MARGIN - 44.0)
    both = [np.asarray(plan.profile, np.int64), np.asarray(plan.upper_bound, np.int64)]
    curves = both if fifo_profile is None else [*both, np.asarray(fifo_profile, np.int64)]
    with look():
        lines = _paint_curves(axes, thin(curves), curves)
        _paint_frame(axes, len(plan.profile) - 1, max(int(curve.max()) for curve in curves))
        note(axes, title, MARGIN - LEFT, heading, size=TITLE, weight="bold")
        paint_legend(axes, lines, (MARGIN - LEFT) / inner)


def paint_legend(axes: "Axes", lines: Sequence["Artist"] | None, left: float) -> None:
    """Write the legend in one row above the axes, from this place on; None: of all lines with a label."""
    axes.legend(
        handles=axes.get_legend_handles_labels()[0] if lines is None else lines, loc="lower left",
        bbox_to_anchor=(left, 1.02), ncols=4, frameon=False, fontsize=7.8, borderaxespad=0.0, borderpad=0.0,
        handlelength=1.8, columnspacing=1.8,
    )  # fmt: skip


def thin(curves: Sequence[Curve]) -> Curve:
    """The steps to draw: all, or if there are many, the least and the most of every stretch of every curve."""
    n = len(curves[0])
    if n <= 4 * STRETCHES:
        return np.arange(n)
    cuts = np.linspace(0, n, STRETCHES + 1).astype(np.int64)
    steps = [np.array([0, n - 1])]
    for curve in curves:
        for pick in (np.argmin, np.argmax):
            steps.append(np.array([a + pick(curve[a:b]) for a, b in pairwise(cuts.tolist())]))
    return np.unique(np.concatenate(steps))


def _paint_curves(axes: "Axes", steps: Curve, curves: Sequence[Curve]) -> list["Artist"]:
    """Draw the curves; returns the artists for the legend, the most important first."""
    eligible, ceiling, *others = (curve[steps] for curve in curves)
    mark = "o" if len(curves[0]) <= FEW_STEPS + 1 else None
    drawn: list[Artist] = [
        *axes.plot(
            steps, eligible, color=PLAN, linewidth=1.9, marker=mark, markersize=3.4, label="this plan", zorder=4
        ),
        *(line for fifo in others for line in axes.plot(steps, fifo, **FIFO_LINE)),
        *axes.plot(
            steps,
            ceiling,
            color=CEILING,
            linewidth=4.0,
            label="bound at each step: no order can have more ready",
            zorder=3,
        ),
    ]
    for line in drawn:
        line.set_clip_on(False)  # else half of a line along the frame is cut off
    if (curves[0] < curves[1]).any():
        label = "gap between plan and bound"
        drawn.append(axes.fill_between(steps, eligible, ceiling, color=GAP, linewidth=0, label=label, zorder=2))
    return drawn


def _paint_frame(axes: "Axes", last: int, highest: int) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_xlim(-0.012 * max(last, 1), 1.012 * max(last, 1))
    axes.set_ylim(0, 1.06 * max(highest, 1))
    paint_frame(axes, "tasks executed", "tasks ready", 9, 8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=9 if axis is axes.xaxis else 5, integer=True))
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.spines[["left", "bottom"]].set_color(GREY)
