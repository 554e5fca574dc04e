"""One task in detail: its state and the reasons, its neighbours, its attempts, and its output."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.grown_dag import reachable_tasks
from eligo.pages.watched import NOTHING, UNUSED, VANISHED, WENT_WELL, WENT_WRONG, Watched
from eligo.rows import Ints
from eligo.running.states import blocking_failures, explain_state, nearest, place_of, waits_for

MOST_NAMED, MOST_PATH, MOST_NEXT = 50, 100, 1_000
MOST_COMPARED, MOST_NEAR = 20_000, 3  # names that are compared with an unknown one, and names that are suggested
STREAMS = (("out", False), ("err", True))
ANSWERS = {WENT_WELL: "done", WENT_WRONG: "failed", VANISHED: "lost", UNUSED: "not needed"}


def number_of(watched: Watched, name: str) -> int:
    """The number of a task; the error for an unknown name suggests similar names."""
    number, labels = watched.flow.dag.index.get(name), watched.labels
    if number is not None:
        return int(number)
    inside = [label for label in labels if name.lower() in label.lower()]
    near = get_close_matches(name, labels[:MOST_COMPARED], MOST_NEAR) or inside[:MOST_NEAR]
    hint = f"; did you mean {', '.join(shorten(label) for label in near)}?" if near else ""
    raise InputError(f"no task named {shorten(name)!r}{hint}")


def detail(watched: Watched, name: str) -> dict[str, Any]:
    """The details of a task."""
    v, dag = number_of(watched, name), watched.flow.dag
    task = watched.flow.task(dag.tasks[v])
    place = place_of(watched, v, None if watched.place is None else np.argsort(watched.place).astype(np.int32))
    command = task.command or ""
    path = longest_path(watched, v)
    attempts = [_attempt(watched, v, number) for number in watched.attempts.of(v)]
    trying = watched.trying.get(v)
    latest = trying or watched.cut_off.get(v)
    tried = latest.attempt if latest is not None else attempts[-1]["attempt"] if attempts else 0
    estimates = watched.expected
    return {
        "task": watched.labels[v], "kind": watched.kinds[v], "state": watched.state(v),
        "command": command if isinstance(command, str) else " ".join(command),
        "policy": watched.policy, "place": None if place is None else place.place, "why": explain_state(watched, v, place),
        "needs": _stated(watched, waits_for(watched, v)[:MOST_NEXT]),
        "next": _stated(watched, nearest(watched, v)[:MOST_NEXT]),
        "because": [watched.labels[u] for u in blocking_failures(watched, v)[:MOST_NEXT]],
        "onward": None if place is None else {
            "tasks": place.path, "seconds": place.seconds, "releases": place.releases,
        },
        "running": None if trying is None else max(0.0, watched.at - trying.since), "tried": tried,
        **_neighbours(watched, "parents", dag.parents_of(v).tolist()),
        **_neighbours(watched, "children", dag.children_of(v).tolist()),
        "above": len(reachable_tasks(dag, [v], up=True)), "below": len(reachable_tasks(dag, [v])),
        "path": {
            "tasks": [watched.labels[u] for u in path[:MOST_PATH].tolist()], "total": len(path),
            "seconds": None if estimates.level == "nothing" else float(estimates.seconds[path].sum()),
        },
        "attempts": attempts, "log": watched.tail(v, tried) if tried else [],
        "inputs": list(task.inputs), "outputs": list(task.outputs),
    }  # fmt: skip


def _neighbours(watched: Watched, what: str, tasks: list[int]) -> dict[str, Any]:
    return {what: _stated(watched, tasks[:MOST_NAMED]), f"{what}_total": len(tasks)}


def _stated(watched: Watched, tasks: list[int]) -> list[list[str]]:
    """Tasks, each with its state."""
    return [[watched.labels[u], watched.state(u)] for u in tasks]


def _attempt(watched: Watched, v: int, place: int) -> dict[str, Any]:
    row, attempts = watched.attempts.rows[place], watched.attempts
    number = int(row["attempt"])
    ends = {stream: watched.printed(v, number, err) for stream, err in STREAMS}
    code, memory = (None if row[what] == NOTHING else int(row[what]) for what in ("code", "memory"))
    return {
        "attempt": number, "client": watched.name_of(attempts.clients[row["client"]]),
        "began": float(row["began"]), "ended": float(row["ended"]), "answer": ANSWERS[int(row["outcome"])],
        "failure": attempts.failures.get(place), "code": code, "memory": memory,
        "after": watched.moment(float(row["began"])), "printed": ends,
        "logs": {stream: (watched.log(v, number, err) or None) if ends[stream] else None for stream, err in STREAMS},
    }  # fmt: skip


def longest_path(watched: Watched, v: int) -> Ints:
    """The longest path through a task, from a source to a sink: in seconds if they are known, else in tasks."""
    dag, estimates = watched.flow.dag, watched.expected
    seconds = estimates.seconds if estimates.level != "nothing" else np.ones(len(dag))
    above, under = _chain(dag, v, seconds, up=True), _chain(dag, v, seconds, up=False)
    return np.array([*above[::-1], v, *under], np.int32)


def lineage(watched: Watched, name: str) -> dict[str, Any]:
    """The places in the drawing of a task's ancestors and descendants, and of its longest path."""
    v, dag = number_of(watched, name), watched.flow.dag
    return watched.drawing.lineage(
        reachable_tasks(dag, [v], up=True), reachable_tasks(dag, [v]), longest_path(watched, v), v
    )


def _chain(dag: Dag, v: int, seconds: "np.ndarray[Any, Any]", up: bool) -> list[int]:
    """The longest path up or down from a task, without the task."""
    near = dag.parents_of if up else dag.children_of
    length, chain, u = dag.longest_paths(seconds, up), [], v
    while len(further := near(u)):
        u = int(further[np.argmax((length + seconds)[further])])
        chain.append(u)
    return chain


#: the keys of an attempt that its short form has too
SHORT_ATTEMPT = ("attempt", "client", "began", "ended", "answer", "failure", "code", "memory")


def why_document(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The short form of a detail, for `eligo why --json`."""
    onward = detail["onward"] or {"tasks": None, "seconds": None, "releases": None}
    return {
        **{key: detail[key] for key in ("task", "state", "kind", "why")},
        **{key: [{"task": task, "state": state} for task, state in detail[key]] for key in ("needs", "next")},
        **{key: detail[key] for key in ("because", "place", "policy")},
        "path": onward["tasks"], "path_seconds": onward["seconds"],
        "children": detail["children_total"], "releases": onward["releases"], "running": detail["running"],
        "attempts": [_short_attempt(one) for one in detail["attempts"]],
    }  # fmt: skip


def _short_attempt(attempt: Mapping[str, Any]) -> dict[str, Any]:
    worker = {"worker": attempt["client"], "seconds": attempt["ended"] - attempt["began"]}
    return {key: attempt[key] for key in SHORT_ATTEMPT} | worker | {"printed": attempt["printed"], **attempt["logs"]}
