"""What `make page` has built from the page's sources: it comes with the wheel, and is no part of the repository."""

from importlib.resources import files

ASSETS = {"index.html": "text/html; charset=utf-8", "page.js": "text/javascript", "page.css": "text/css"}
ABSENT = "the page is not built: run `make page` (needs Node 20 or later); released packages include it"


def asset(name: str) -> bytes | None:
    """A file of the page; None where it was not built."""
    try:
        return files("eligo.pages").joinpath("built", name).read_bytes()
    except OSError:
        return None


def is_built() -> bool:
    """Whether there is a page."""
    return all(asset(name) is not None for name in ASSETS)
