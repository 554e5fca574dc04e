"""Explains the state of a task: its unfinished parents, the failures that block it, and its position in the order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.allocating import ALLOCATORS
from eligo.errors import InputError, shorten
from eligo.estimating import estimate, lasting
from eligo.execution import EXECUTED, HELD
from eligo.execution import WAITING as NOT_READY
from eligo.kernels.graph import longest_after
from eligo.policies import in_classes, policy
from eligo.rows import Ints, gathered, places
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING, RUNNING, Looked, Trying

MOST_NAMES = 6  # most tasks named in one sentence


class Place(NamedTuple):
    """The position of a task in the order of a policy, from 1, and the criteria behind it."""

    policy: str
    place: int
    #: number of tasks on the longest path from it to an end, including it, and the largest such number in the workflow
    path: int
    longest: int
    #: duration of that path, if run times are known
    seconds: float | None
    #: number of tasks that depend on it, and number of those that wait only for it
    children: int
    releases: int


def order_of(looked: Looked) -> Ints | None:
    """The order of its policy, which takes a moment to compute; None if it has none, or its file is gone."""
    if looked.policy in ALLOCATORS:
        return None
    order = looked.curve("order")
    try:
        rule = policy(looked.policy, looked.flow, None if order is None else order.astype(np.int32))
    except InputError:
        return None
    return in_classes(rule, looked.flow.column("priority")).order()


def place_of(looked: Looked, v: int, order: Ints | None) -> Place | None:
    """The position of a task in an order; None if there is no order."""
    if order is None:
        return None
    dag = looked.flow.dag
    children = dag.children_of(v).tolist()
    estimates = estimate(looked.flow)
    return Place(
        policy=looked.policy,
        place=int(places(len(dag), order)[v]) + 1,
        path=int(dag.height[v]) + 1,
        longest=dag.depth,
        seconds=_path_seconds(looked, v, estimates.seconds) if estimates.level != "nothing" else None,
        children=len(children),
        releases=sum(looked.execution.missing[w] == 1 for w in children) if looked.state(v) != DONE else 0,
    )


def _path_seconds(looked: Looked, v: int, seconds: NDArray[np.float64]) -> float:
    """The length in seconds of the longest path from a task to an end."""
    dag, after = looked.flow.dag, np.zeros(len(looked.flow))
    longest_after(dag.child_ptr, dag.child, np.ascontiguousarray(dag.order[::-1]), seconds, after)
    return float(after[v] + seconds[v])


def waits_for(looked: Looked, v: int) -> list[int]:
    """The parents of a task that are not done."""
    return [u for u in looked.flow.dag.parents_of(v).tolist() if looked.execution.codes[u] != EXECUTED]


def nearest(looked: Looked, v: int) -> list[int]:
    """The nearest tasks above this one that are neither done nor pending: those that must happen next."""
    dag, codes = looked.flow.dag, np.frombuffer(looked.execution.codes, np.uint8)
    passed = codes == NOT_READY if looked.under_way else (codes == NOT_READY) | (codes == HELD)
    visited, parts, level = np.zeros(len(dag), np.bool_), list[Ints](), np.array([v], np.int32)
    visited[v] = True
    while len(level):
        above = np.unique(gathered(dag.parent_ptr, dag.parent, level)[0])
        fresh = above[~visited[above] & (codes[above] != EXECUTED)]
        visited[fresh] = True
        level = fresh[passed[fresh]]
        parts.append(fresh[~passed[fresh]])
    return [int(u) for part in parts for u in part]


def blocking_failures(looked: Looked, v: int) -> list[int]:
    """The failed tasks that block a task."""
    return [u for u in nearest(looked, v) if looked.state(u) in {BAD, RETRYING}] if looked.state(v) == BLOCKED else []


# In words


def explain_state(looked: Looked, v: int, place: Place | None) -> list[str]:
    """Sentences that explain the state of a task."""
    obstacles = looked.obstacles(v) if looked.state(v) in {READY, PENDING, RETRYING} else []
    state = "Ready." if obstacles and looked.state(v) == READY else state_sentence(looked, v)
    return [state, *obstacles, *_dependency_sentences(looked, v), *_place_sentences(looked, place)]


def state_sentence(looked: Looked, v: int) -> str:
    """The state of a task, in a sentence."""
    state, trying = looked.state(v), looked.trying.get(v)
    if state == RUNNING:
        if trying is None:
            return "Assigned to a worker that has not started it yet."
        return f"Running for {since(looked, trying)} on {looked.name_of(trying.client)}."
    if state == RETRYING:
        return f"Failed; retrying in {lasting(max(0.0, round(looked.again[v] - looked.at)))}."
    ready = "Ready, waiting for a worker." if looked.under_way else "Ready, but the run is not running."
    if v in looked.interrupted:
        ready = "Was running when the run was killed; starts again when the run is resumed."
    sentences = {
        DONE: "Done.",
        READY: ready,
        PENDING: "Pending: waits for other tasks.",
        BAD: "Failed permanently.",
    }
    return sentences.get(state, "Blocked: depends on a failed task.")


def since(looked: Looked, trying: Trying) -> str:
    """The time for which a task has been running, in words."""
    return lasting(round(max(0.0, looked.at - trying.since), 1))


def _dependency_sentences(looked: Looked, v: int) -> list[str]:
    blamed = blocking_failures(looked, v)
    sentences = [f"Blocked by {shorten(looked.labels[u])}: {looked.failure(u)}." for u in blamed[:MOST_NAMES]]
    sentences += [f"... and {len(blamed) - MOST_NAMES:,} more failed tasks."] if len(blamed) > MOST_NAMES else []
    parents = waits_for(looked, v)
    if parents:
        sentences.append(f"Waits for {_list_tasks(looked, parents)}.")
    nexts = [u for u in nearest(looked, v) if u not in parents]
    return sentences + ([f"These wait in turn for {_list_tasks(looked, nexts)}."] if nexts else [])


def _list_tasks(looked: Looked, tasks: list[int]) -> str:
    more = f" and {len(tasks) - MOST_NAMES:,} more" if len(tasks) > MOST_NAMES else ""
    return ", ".join(f"{shorten(looked.labels[u])} ({looked.state(u)})" for u in tasks[:MOST_NAMES]) + more


def _place_sentences(looked: Looked, place: Place | None) -> list[str]:
    if place is None:
        return ["No fixed position: this policy chooses among all ready tasks together."]
    length = f"{place.path:,} task{'' if place.path == 1 else 's'} long, itself included"
    seconds = f", {lasting(place.seconds)}" if place.seconds is not None else ""
    most = (
        "the longest in this workflow"
        if place.path == place.longest
        else f"the longest in this workflow has {place.longest:,}"
    )
    hangs = f"{place.children:,} task{' depends' if place.children == 1 else 's depend'} on it"
    only = f" ({'' if place.releases == place.children else f'{place.releases:,} of them '}on it alone)"
    only = only if place.releases else ""
    classes = "priority, then " if any(looked.flow.column("priority")) else ""
    return [
        f"Position {place.place:,} of {len(looked.flow):,} in the order of policy {classes}{place.policy}."
        f" The longest path from it to the end is {length}{seconds} ({most});"
        f" {hangs if place.children else 'no task depends on it'}{only}."
    ]
