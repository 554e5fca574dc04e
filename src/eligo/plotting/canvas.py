"""The one way to matplotlib: figures without global state, one look, and bytes that do not change from run to run."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from eligo.errors import InputError
from eligo.plotting.labels import legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: blue, vermilion, green, purple, orange, sky, wine, olive: after Okabe and Ito (2008) and Tol, told apart by everybody
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#C98A00", "#3D9BD1", "#882255", "#7A7A2A")
INK, GREY, FAINT = "#1F2933", "#6B7785", "#8592A0"

DPI = 160
_LOOK: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,  # a task may be called $x$
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
    """Whether there is what pictures need."""
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


def new_axes(figure: "Figure", left: float, top: float, width: float, height: float) -> "Axes":
    """Axes of this size, this far from the figure's left and top, all in points."""
    across, down = (72 * inches for inches in figure.get_size_inches())
    with look():
        return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


@contextmanager
def look() -> Iterator[None]:
    """Within it, the look of our pictures, whatever the user's settings are."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script that the font lacks
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK)
        yield


def svg_of(figure: "Figure") -> str:
    """The figure as SVG; an artist with a gid and a label tells the label when it is pointed at."""
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
