"""Rescue files: what is done of a DAGMan file, so that DAGMan, or eligo, goes on from there."""

from collections.abc import Iterable

from eligo.formats.dagman.joining import is_join
from eligo.formats.dagman.reading import rescue_file
from eligo.formats.shared.files import Beside
from eligo.workflow import Workflow

#: What decides when, where and how often a node is run, and nothing of what a node is that has ended well.
PLACING = frozenset(
    {"concurrency_limits", "hold", "maxjobs", "periodic_hold", "periodic_release", "periodic_remove", "request_cpus"}
    | {"request_gpus", "request_memory", "requirements", "retry", "weak"}
)


def rescue_text(flow: Workflow, done: Iterable[str]) -> str:
    """What DAGMan has to be told: the nodes that were done when the file was read, and those that are now."""
    before = flow.origin.done if flow.origin else ()
    names = dict.fromkeys(name for name in (*before, *done) if not is_join(name))
    return "".join([f"# {len(names)} nodes that are done\n", *(f"DONE {name}\n" for name in names)])


def doubtful(flow: Workflow, executed: Iterable[str]) -> set[str]:
    """The executed nodes that DAGMan may not count as done, because a run ignored something of them or of what they need.

    A node whose POST script did not run is one, and so is a node that read what such a node wrote.
    """
    asked = flow.origin.unhonoured if flow.origin else ()
    found = {str(task) for each in asked if each.key.lower() not in PLACING for task in each.tasks}
    if not found:
        return set()
    labels = flow.dag.labels
    for v in flow.dag.order.tolist():
        if any(labels[u] in found for u in flow.dag.parents_of(v).tolist()):
            found.add(labels[v])
    return found.intersection(executed)


def next_rescue(path: str) -> str:
    """The name under which DAGMan takes a rescue file of this file for the last one.

    >>> next_rescue("nowhere/x.dag")
    'nowhere/x.dag.rescue001'
    """
    last = rescue_file(Beside(path))
    return f"{path}.rescue{1 + int(last.rpartition('rescue')[2]) if last else 1:03}"
