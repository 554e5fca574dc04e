"""One task: why it stands where it does, what it hangs on, how it was tried, and what it printed."""

from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.kernels.windows import longest_after
from eligo.pages.attempted import NOTHING, UNUSED, VANISHED, WENT_WELL, WENT_WRONG
from eligo.pages.watched import Watched
from eligo.rows import Ints
from eligo.running.looked import reached
from eligo.running.reasons import place_of, why_told

MOST_NAMED, MOST_PATH = 50, 100
ANSWERS = {WENT_WELL: "done", WENT_WRONG: "failed", VANISHED: "lost", UNUSED: "not needed"}


def number_of(watched: Watched, name: str) -> int:
    """The number of a task."""
    found = watched.flow.dag.index.get(name)
    if found is None:
        raise InputError(f"there is no task named {shorten(name)!r}")
    return int(found)


def detail(watched: Watched, name: str) -> dict[str, Any]:
    """All about one task."""
    v, dag = number_of(watched, name), watched.flow.dag
    task = watched.flow.task(dag.tasks[v])
    place = place_of(watched, v, None if watched.place is None else np.argsort(watched.place).astype(np.int32))
    command = task.command or ""
    path = longest_path(watched, v)
    attempts = [_attempt(watched, number) for number in watched.attempts.of(v)]
    trying = watched.trying.get(v)
    tried = trying.attempt if trying is not None else attempts[-1]["attempt"] if attempts else 0
    known = watched.expected
    return {
        "task": watched.labels[v], "kind": watched.kinds[v], "state": watched.state(v),
        "command": command if isinstance(command, str) else " ".join(command),
        "place": None if place is None else place.place, "why": why_told(watched, v, place),
        **_neighbours(watched, "parents", dag.parents_of(v).tolist()),
        **_neighbours(watched, "children", dag.children_of(v).tolist()),
        "above": len(reached(dag, [v], up=True)), "below": len(reached(dag, [v])),
        "path": {
            "tasks": [watched.labels[u] for u in path[:MOST_PATH].tolist()], "total": len(path),
            "seconds": None if known.level == "nothing" else float(known.seconds[path].sum()),
        },
        "attempts": attempts, "log": watched.tail(v, tried) if tried else [],
        "inputs": list(task.inputs), "outputs": list(task.outputs),
    }  # fmt: skip


def _neighbours(watched: Watched, what: str, tasks: list[int]) -> dict[str, Any]:
    named = [[watched.labels[u], watched.state(u)] for u in tasks[:MOST_NAMED]]
    return {what: named, f"{what}_total": len(tasks)}


def _attempt(watched: Watched, place: int) -> dict[str, Any]:
    row, attempts = watched.attempts.rows[place], watched.attempts
    code, memory = (None if row[what] == NOTHING else int(row[what]) for what in ("code", "memory"))
    return {
        "attempt": int(row["attempt"]), "client": watched.name_of(attempts.clients[row["client"]]),
        "began": float(row["began"]), "ended": float(row["ended"]), "answer": ANSWERS[int(row["outcome"])],
        "failure": attempts.failures.get(place), "code": code, "memory": memory,
    }  # fmt: skip


def longest_path(watched: Watched, v: int) -> Ints:
    """The longest path through a task, from a source to a sink: in seconds where they are known, else in tasks."""
    dag, known = watched.flow.dag, watched.expected
    seconds = known.seconds if known.level != "nothing" else np.ones(len(dag))
    above, under = _chain(dag, v, seconds, up=True), _chain(dag, v, seconds, up=False)
    return np.array([*above[::-1], v, *under], np.int32)


def lineage(watched: Watched, name: str) -> dict[str, Any]:
    """Where in the drawing those stand that a task hangs on, those that hang on it, and its longest path."""
    v, dag = number_of(watched, name), watched.flow.dag
    return watched.drawing.lineage(reached(dag, [v], up=True), reached(dag, [v]), longest_path(watched, v), v)


def _chain(dag: Dag, v: int, seconds: "np.ndarray[Any, Any]", up: bool) -> list[int]:
    """The longest way from a task, without itself."""
    near = dag.parents_of if up else dag.children_of
    length = np.zeros(len(dag))
    if up:
        longest_after(dag.parent_ptr, dag.parent, dag.order, seconds, length)
    else:
        longest_after(dag.child_ptr, dag.child, np.ascontiguousarray(dag.order[::-1]), seconds, length)
    found, u = [], v
    while len(further := near(u)):
        u = int(further[np.argmax((length + seconds)[further])])
        found.append(u)
    return found
