"""Probing: a lower bound of M(t) than that of the shares, by asking of one task after another whether it is executed.

Every set of t tasks has task v or has it not. In the one case v and its ancestors are executed, and what is left is a dag of
its own; in the other none of its descendants is. Both dags have shares, so M(t) is at most the larger of the two bounds,
whichever task is asked about: the least of these is taken at every step.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import Shares, best_shares, shares_proof
from eligo.deciding.limits import MOST_PROBED
from eligo.deciding.work import Work
from eligo.rows import Ints
from eligo.theory.profiles import Profile

NEVER = -(1 << 40)  # rendered by sets that do not exist: whatever is added to it stays below all areas
PROBE, PROBE_ARC = 300_000, 600  # units of work for a probe besides its cuts, and for each arc


@dataclass(frozen=True, eq=False)
class Probe:
    """What follows from asking about one task: a bound, and the shares of the two dags that prove it."""

    task: int
    bound: Profile
    executed: tuple[Dag, Shares]
    waiting: tuple[Dag, Shares]


def probed(dag: Dag, bound: Profile, work: Work | None = None) -> tuple[Profile, list[Probe]]:
    """A bound of M(0..k) that is nowhere above *bound*, and the probes that lower it, as far as the work may go.

    >>> seven = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> rough = best_shares(seven).bound
    >>> rough.tolist(), probed(seven, rough)[0].tolist()
    ([0, 3, 4, 5, 6], [0, 3, 4, 5, 6])
    """
    work = work or Work()
    rough, probes = bound, list[Probe]()
    for v in np.flatnonzero(dag.outdegree > 0).tolist() if len(dag) <= MOST_PROBED else ():
        if work.over():
            break
        work.spend(PROBE + PROBE_ARC * dag.arc_count)
        probe = probe_task(dag, v, len(bound) - 1, work)
        if (probe.bound < bound).any():
            probes.append(probe)
            bound = np.minimum(bound, probe.bound)
    return bound, _needed(probes, bound, bound < rough)


def _needed(probes: list[Probe], bound: Profile, lowered: NDArray[np.bool_]) -> list[Probe]:
    """As few of the probes as one walk backwards finds to suffice for the bound where it was lowered."""
    chosen = []
    for probe in reversed(probes):
        hit = lowered & (probe.bound == bound)
        if hit.any():
            chosen.append(probe)
            lowered = lowered & ~hit
    return chosen


def probes_proof(dag: Dag, probes: list[Probe]) -> list[dict[str, Any]]:
    """The probes as plain data: the task asked about, and the shares of the two dags."""
    return [
        {
            "task": dag.tasks[probe.task],
            "executed": shares_proof(*probe.executed),
            "waiting": shares_proof(*probe.waiting),
        }
        for probe in probes
    ]


def probe_task(dag: Dag, v: int, k: int, work: Work | None = None) -> Probe:
    """Ask about nonsink v of a dag with k nonsinks."""
    needed, lost = _reached(v, dag.parent_ptr, dag.parent), _reached(v, dag.child_ptr, dag.child)
    missing = np.bincount(dag.child, ~needed[dag.tails], minlength=len(dag))
    rendered = int(((missing == 0) & (dag.indegree > 0)).sum())
    possible = k - int((lost & (dag.outdegree > 0)).sum())
    lost[v] = False  # it can be rendered still
    executed, waiting = (_shared(dag.induced(np.flatnonzero(~mask).astype(np.int32)), work) for mask in (needed, lost))
    with_it, without_it = np.full(k + 1, NEVER), np.full(k + 1, NEVER)
    done = int(needed.sum())
    with_it[done:] = rendered + executed[1].bound[: k + 1 - done]
    least = waiting[1].bound
    without_it[: possible + 1] = least[np.minimum(np.arange(possible + 1), len(least) - 1)]
    return Probe(v, np.maximum(with_it, without_it), executed, waiting)


def _shared(dag: Dag, work: Work | None) -> tuple[Dag, Shares]:
    return dag, best_shares(dag, work)


def _reached(v: int, ptr: Ints, rows: Ints) -> NDArray[np.bool_]:
    """Task v and all that can be walked to from it."""
    reached = np.zeros(len(ptr) - 1, np.bool_)
    reached[v] = True
    waiting = [v]
    while waiting:
        u = waiting.pop()
        fresh = [w for w in rows[ptr[u] : ptr[u + 1]].tolist() if not reached[w]]
        reached[fresh] = True
        waiting += fresh
    return reached
