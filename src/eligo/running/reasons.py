"""Why a task stands where it stands: what it waits for, what keeps it from ever running, and its place in the order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.allocating import ALLOCATORS
from eligo.errors import InputError, shorten
from eligo.estimating import estimate, lasting
from eligo.execution import EXECUTED, HELD
from eligo.execution import WAITING as NOT_READY
from eligo.kernels.windows import longest_after
from eligo.policies import in_classes, policy
from eligo.rows import Ints, gathered, places
from eligo.running.looked import AGAIN, BAD, DONE, FUTILE, READY, RUNNING, WAITING, Looked, Trying

MOST_NAMES = 6  # tasks in a sentence


class Place(NamedTuple):
    """Where a task stands in the order that a policy follows, from 1, and what speaks for it."""

    policy: str
    place: int
    #: how many tasks are on the longest path from it to an end, itself included, and the most that there are anywhere
    path: int
    longest: int
    #: how many seconds that path takes, where run times are known
    seconds: float | None
    #: how many tasks wait for it, and how many of these for nothing else any more
    children: int
    releases: int


def order_of(looked: Looked) -> Ints | None:
    """The order that its policy follows, which takes a moment; None where it has none, or is a file that is gone."""
    if looked.policy in ALLOCATORS:
        return None
    order = looked.curve("order")
    try:
        rule = policy(looked.policy, looked.flow, None if order is None else order.astype(np.int32))
    except InputError:
        return None
    return in_classes(rule, looked.flow.column("priority")).order()


def place_of(looked: Looked, v: int, order: Ints | None) -> Place | None:
    """Where a task stands in an order; None where there is none."""
    if order is None:
        return None
    dag = looked.flow.dag
    children = dag.children_of(v).tolist()
    known = estimate(looked.flow)
    return Place(
        policy=looked.policy,
        place=int(places(len(dag), order)[v]) + 1,
        path=int(dag.height[v]) + 1,
        longest=dag.depth,
        seconds=_path_seconds(looked, v, known.seconds) if known.level != "nothing" else None,
        children=len(children),
        releases=sum(looked.execution.missing[w] == 1 for w in children) if looked.state(v) != DONE else 0,
    )


def _path_seconds(looked: Looked, v: int, seconds: NDArray[np.float64]) -> float:
    """The longest path from a task to an end."""
    dag, after = looked.flow.dag, np.zeros(len(looked.flow))
    longest_after(dag.child_ptr, dag.child, np.ascontiguousarray(dag.order[::-1]), seconds, after)
    return float(after[v] + seconds[v])


def waits_for(looked: Looked, v: int) -> list[int]:
    """The parents of a task that are not done."""
    return [u for u in looked.flow.dag.parents_of(v).tolist() if looked.execution.codes[u] != EXECUTED]


def nearest(looked: Looked, v: int) -> list[int]:
    """Above a task, the nearest that are neither done nor waiting themselves: what has to happen next."""
    dag, codes = looked.flow.dag, np.frombuffer(looked.execution.codes, np.uint8)
    passed = codes == NOT_READY if looked.under_way else (codes == NOT_READY) | (codes == HELD)
    known, found, level = np.zeros(len(dag), np.bool_), list[Ints](), np.array([v], np.int32)
    known[v] = True
    while len(level):
        above = np.unique(gathered(dag.parent_ptr, dag.parent, level)[0])
        fresh = above[~known[above] & (codes[above] != EXECUTED)]
        known[fresh] = True
        level = fresh[passed[fresh]]
        found.append(fresh[~passed[fresh]])
    return [int(u) for part in found for u in part]


def to_blame(looked: Looked, v: int) -> list[int]:
    """The tasks whose failure keeps a task from ever running."""
    return [u for u in nearest(looked, v) if looked.state(u) in {BAD, AGAIN}] if looked.state(v) == FUTILE else []


# In words


def why_told(looked: Looked, v: int, place: Place | None) -> list[str]:
    """Why a task stands where it does, in sentences."""
    obstacles = looked.obstacles(v) if looked.state(v) in {READY, WAITING, AGAIN} else []
    state = "It is ready." if obstacles and looked.state(v) == READY else state_told(looked, v)
    return [state, *obstacles, *_waits_told(looked, v), *_place_told(looked, place)]


def state_told(looked: Looked, v: int) -> str:
    """Where a task stands, in a sentence."""
    state, trying = looked.state(v), looked.trying.get(v)
    if state == RUNNING:
        if trying is None:
            return "A worker has it, and is only beginning it or at another one first."
        return f"It runs for {since(looked, trying)}, by {looked.name_of(trying.client)}."
    if state == AGAIN:
        return f"It failed, and is tried again in {lasting(max(0.0, round(looked.again[v] - looked.at)))}."
    ready = "It is ready, and waits for a worker." if looked.under_way else "It is ready, but nobody is at this run."
    if v in looked.interrupted:
        ready = "It was running when the run was killed, and starts again when the run is resumed."
    told = {
        DONE: "It is done.",
        READY: ready,
        WAITING: "It waits for others.",
        BAD: "It failed, and is not tried again.",
    }
    return told.get(state, "It cannot run, since it needs what failed.")


def since(looked: Looked, trying: Trying) -> str:
    """For how long a task has run."""
    return lasting(round(max(0.0, looked.at - trying.since), 1))


def _waits_told(looked: Looked, v: int) -> list[str]:
    blamed = to_blame(looked, v)
    told = [f"Because of {shorten(looked.labels[u])}: {looked.failure(u)}." for u in blamed[:MOST_NAMES]]
    told += [f"... and {len(blamed) - MOST_NAMES:,} more that failed."] if len(blamed) > MOST_NAMES else []
    parents = waits_for(looked, v)
    if parents:
        told.append(f"It needs {_listed(looked, parents)}.")
    nexts = [u for u in nearest(looked, v) if u not in parents]
    return told + ([f"Before these come, next: {_listed(looked, nexts)}."] if nexts else [])


def _listed(looked: Looked, tasks: list[int]) -> str:
    more = f" and {len(tasks) - MOST_NAMES:,} more" if len(tasks) > MOST_NAMES else ""
    return ", ".join(f"{shorten(looked.labels[u])} ({looked.state(u)})" for u in tasks[:MOST_NAMES]) + more


def _place_told(looked: Looked, place: Place | None) -> list[str]:
    if place is None:
        return ["It has no place in an order: what is ready is chosen together."]
    length = f"{place.path:,} task{'' if place.path == 1 else 's'}, itself included"
    seconds = f", {lasting(place.seconds)}" if place.seconds is not None else ""
    most = "no path here is longer" if place.path == place.longest else f"the longest of all is {place.longest:,}"
    hangs = f"{place.children:,} task{' needs' if place.children == 1 else 's need'} it"
    only = f", {'and' if place.releases == place.children else f'{place.releases:,} of them'} nothing else any more"
    only = only if place.releases else ""
    classes = "priority, then " if any(looked.flow.column("priority")) else ""
    return [
        f"Place {place.place:,} of {len(looked.flow):,} in the order by {classes}{place.policy}."
        f" The longest path from it to the end is {length}{seconds} ({most});"
        f" {hangs if place.children else 'no task needs it'}{only}."
    ]
