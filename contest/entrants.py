"""The orders that take part: Eligo's own policies, and static orders as other tools compute them, each from its rule."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.estimates import estimate
from eligo.formats import read_order
from eligo.policies import Policy, from_order, policy
from eligo.workflow import Workflow

Floats = NDArray[np.float64]
#: computes a policy for a workflow and a number of workers
Entrant = Callable[[Workflow, int], Policy]

#: policies of Eligo under the names with which they take part; those of other tools are written after them
NAMED = {
    "finish": "finish", "ready": "ready", "space": "space", "fifo": "fifo", "lifo": "lifo", "greedy": "greedy",
    "critical path in seconds": "critical-path-seconds", "b-level of HyperQueue": "critical-path", "dask.order": "dask",
}  # fmt: skip


def all_entrants(orders: Mapping[str, Path], policies: Sequence[str]) -> dict[str, Entrant]:
    """The entrants by name: all of this module, policies by name, and orders from files."""
    named = NAMED | {name: name for name in policies}
    own: dict[str, Entrant] = {title: partial(own_policy, name) for title, name in named.items()}
    others: dict[str, Entrant] = {"t-level of HyperQueue": t_level, "ninja without a log": ninja, "HEFT": heft}
    return own | others | {name: partial(listed, path) for name, path in orders.items()}


def own_policy(name: str, flow: Workflow, workers: int) -> Policy:
    """A policy of Eligo, by its name."""
    return policy(name, flow)


def listed(path: Path, flow: Workflow, workers: int) -> Policy:
    """An order in a text file, one task a line."""
    return from_order(flow.dag, read_order(path))


def t_level(flow: Workflow, workers: int) -> Policy:
    """The shortest path from a beginning first, in tasks."""
    return Policy("t-level", flow.dag, -flow.dag.longest_paths(np.ones(len(flow)), up=True))


def ninja(flow: Workflow, workers: int) -> Policy:
    """As ninja 1.12 does without a log: the most tasks on a path to an end; those that became ready first, if equal."""
    path = _ahead(flow.dag, np.ones(len(flow)))
    return Policy("ninja", flow.dag, path, ties="first")


def heft(flow: Workflow, workers: int) -> Policy:
    """HEFT for equal workers without transfers: by falling upward rank into the earliest gap of any worker; then by start."""
    dag, seconds = flow.dag, estimate(flow).seconds
    start, end = np.zeros(len(dag)), np.zeros(len(dag))
    busy: list[list[tuple[float, float]]] = [[] for _ in range(workers)]
    place = np.argsort(dag.order)
    for v in np.lexsort((place, -_ahead(dag, seconds))).tolist():
        ready = max((end[u] for u in dag.parents_of(v).tolist()), default=0.0)
        begins = [_gap(spans, ready, seconds[v]) for spans in busy]
        chosen = int(np.argmin(begins))
        start[v], end[v] = begins[chosen], begins[chosen] + seconds[v]
        busy[chosen] = sorted([*busy[chosen], (start[v], end[v])])
    return from_order(dag, np.lexsort((place, start)).astype(np.int32))


def _gap(spans: list[tuple[float, float]], ready: float, seconds: float) -> float:
    """The earliest time from *ready* on at which a worker is idle for long enough."""
    begin = ready
    for first, last in spans:
        if begin + seconds <= first:
            break
        begin = max(begin, last)
    return begin


def _ahead(dag: Dag, seconds: Floats) -> Floats:
    """The longest path from each task to an end, the task included."""
    return seconds + dag.longest_paths(seconds)
