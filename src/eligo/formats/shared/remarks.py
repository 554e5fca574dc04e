"""What is told of a file besides the workflow in it: the parts that are not read.

>>> unread(["weight (edges)", "colour (nodes)"])
('data that are not read: weight (edges), colour (nodes)',)
"""

from collections.abc import Iterable

from eligo.errors import shorten

#: The most characters of a list of names.
LONGEST = 200


def unread(names: Iterable[str]) -> tuple[str, ...]:
    """The remark that names what is not read, each once; none where there is nothing."""
    listed = ", ".join(dict.fromkeys(names))
    return (f"data that are not read: {shorten(listed, LONGEST)}",) if listed else ()
