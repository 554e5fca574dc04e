"""Figures of pages: a drawing as SVG, with what one sees for whoever does not."""


def figure_of(svg: str, title: str, alt: str) -> dict[str, str]:
    """A drawing as part of a document, without what stands before it in a file."""
    return {"title": title, "svg": svg[svg.index("<svg") :], "alt": alt}
