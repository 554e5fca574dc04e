"""Rescue files: what is done of a DAGMan file, so that DAGMan, or eligo, goes on from there."""

from collections.abc import Iterable

from eligo.formats.dagman.joining import is_join
from eligo.formats.dagman.reading import rescue_file
from eligo.formats.shared.files import Beside
from eligo.workflow import Workflow


def rescue_text(flow: Workflow, done: Iterable[str]) -> str:
    """What DAGMan has to be told: the nodes that were done when the file was read, and those that are now."""
    before = flow.origin.done if flow.origin else ()
    names = dict.fromkeys(name for name in (*before, *done) if not is_join(name))
    return "".join([f"# {len(names)} nodes that are done\n", *(f"DONE {name}\n" for name in names)])


def next_rescue(path: str) -> str:
    """The name under which DAGMan takes a rescue file of this file for the last one.

    >>> next_rescue("nowhere/x.dag")
    'nowhere/x.dag.rescue001'
    """
    last = rescue_file(Beside(path))
    return f"{path}.rescue{1 + int(last.rpartition('rescue')[2]) if last else 1:03}"
