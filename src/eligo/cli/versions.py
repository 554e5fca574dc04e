"""What `eligo --version` prints, from next to nothing: it is answered before anything else is imported."""

from eligo.version import __version__


def version_line() -> str:
    """What `eligo --version` prints."""
    from eligo.kernels import compiled

    return f"eligo {__version__} ({'compiled' if compiled() else 'interpreted'} kernels)\n"
