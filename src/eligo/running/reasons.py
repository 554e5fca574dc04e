"""Why a task stands where it stands: what it waits for, what keeps it from ever running, and its place in the order."""

from typing import NamedTuple

import numpy as np

from eligo.allocating import ALLOCATORS
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.execution import EXECUTED
from eligo.policies import policy
from eligo.prioritising import ORDERS
from eligo.rows import places
from eligo.running.seen import AGAIN, BAD, DONE, FUTILE, WAITING, Seen


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


def place_of(seen: Seen, v: int) -> Place | None:
    """Where a task stands in the order; None where the policy has none, or is a file that is gone."""
    dag = seen.flow.dag
    name = seen.sessions[-1].policy if seen.sessions else "finish"
    if name in ALLOCATORS:
        return None
    order = seen.curve("order")
    try:
        rule = policy(ORDERS.get(name, name), seen.flow, None if order is None else order.astype(np.int32))
    except InputError:
        return None
    children = dag.children_of(v).tolist()
    known = estimate(seen.flow)
    return Place(
        policy=name,
        place=int(places(len(dag), rule.order())[v]) + 1,
        path=int(dag.height[v]) + 1,
        longest=dag.depth,
        seconds=_path_seconds(seen, v, known.seconds.tolist()) if known.level != "nothing" else None,
        children=len(children),
        releases=sum(seen.execution.missing[w] == 1 for w in children) if seen.state(v) != DONE else 0,
    )


def _path_seconds(seen: Seen, v: int, seconds: list[float]) -> float:
    """The longest path from a task to an end."""
    dag, found = seen.flow.dag, dict[int, float]()
    stack = [v]
    while stack:
        u = stack[-1]
        missing = [w for w in dag.children_of(u).tolist() if w not in found]
        if missing:
            stack += missing
            continue
        stack.pop()
        found[u] = seconds[u] + max((found[w] for w in dag.children_of(u).tolist()), default=0.0)
    return found[v]


def waits_for(seen: Seen, v: int) -> list[int]:
    """The parents of a task that are not done."""
    return [u for u in seen.flow.dag.parents_of(v).tolist() if seen.execution.codes[u] != EXECUTED]


def nearest(seen: Seen, v: int) -> list[int]:
    """Above a task, the nearest that are neither done nor waiting themselves: what has to happen next."""
    found, known, waiting = list[int](), {v}, [v]
    while waiting:
        for u in waits_for(seen, waiting.pop(0)):
            if u not in known:
                known.add(u)
                (waiting if seen.state(u) in {WAITING, FUTILE} else found).append(u)
    return found


def to_blame(seen: Seen, v: int) -> list[int]:
    """The tasks whose failure keeps a task from ever running."""
    return [u for u in nearest(seen, v) if seen.state(u) in {BAD, AGAIN}] if seen.state(v) == FUTILE else []
