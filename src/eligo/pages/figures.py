"""Figures of pages: a drawing as SVG, with what one sees for whoever does not."""

from typing import TYPE_CHECKING

from eligo.plotting.canvas import svg_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_of(drawn: "Figure", title: str, alt: str) -> dict[str, str]:
    """A drawing as part of a document."""
    svg = svg_of(drawn)
    return {"title": title, "svg": svg[svg.index("<svg") :], "alt": alt}
