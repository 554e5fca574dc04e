"""A search for the dag on which `finish` loses most to another entrant: small changes, kept if the loss does not shrink."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contest.entrants import Entrant
from eligo.dag import Dag
from eligo.pools import Pool
from eligo.schedules import terms_of
from eligo.simulation.pebble import run_seeds
from eligo.workflow import Task, Workflow

TASKS, WORKERS, LONGEST = 12, 3, 9  # of each dag; seconds are whole numbers up to LONGEST
BEGINNINGS = 4  # from which a search starts


class Loss(NamedTuple):
    """A workflow on which `finish` ends later than another entrant by this share."""

    share: float
    flow: Workflow


def worst_losses(entrants: Mapping[str, Entrant], steps: int, seed: int = 0) -> dict[str, Loss]:
    """For each other entrant, the worst workflow of a search of so many steps."""
    ours, seeds = entrants["finish"], range(seed, seed + BEGINNINGS)
    return {
        name: max((_search(ours, rival, steps // BEGINNINGS, each) for each in seeds), key=lambda loss: loss.share)
        for name, rival in entrants.items()
        if name != "finish"
    }


def _search(ours: Entrant, rival: Entrant, steps: int, seed: int) -> Loss:
    rng = np.random.default_rng(seed)
    arcs = np.triu(rng.random((TASKS, TASKS)) < 0.2, 1)
    seconds = rng.integers(1, LONGEST + 1, TASKS)
    best = _loss(ours, rival, _flow(arcs, seconds))
    for _ in range(steps):
        other, times = arcs.copy(), seconds.copy()
        for _ in range(rng.integers(1, 4)):
            u, v = sorted(rng.choice(TASKS, 2, replace=False).tolist())
            if rng.random() < 0.6:
                other[u, v] = not other[u, v]
            else:
                times[v] = rng.integers(1, LONGEST + 1)
        found = _loss(ours, rival, _flow(other, times))
        if found.share >= best.share:
            best, arcs, seconds = found, other, times
    return best


def _flow(arcs: np.ndarray, seconds: np.ndarray) -> Workflow:
    tails, heads = np.nonzero(arcs)
    dag = Dag.from_arrays(TASKS, tails, heads)
    return Workflow(dag, {name: Task(name=name, seconds=float(seconds[int(str(name))])) for name in dag.tasks})


def _loss(ours: Entrant, rival: Entrant, flow: Workflow) -> Loss:
    return Loss(makespan(ours, flow) / makespan(rival, flow) - 1, flow)


def makespan(entrant: Entrant, flow: Workflow) -> float:
    """The finish on the workers of the search."""
    terms = terms_of(flow, flow.column("seconds"), Pool.of(WORKERS))
    return float(terms.played(entrant(flow, WORKERS).board(), run_seeds(1, 0)[0]).makespan)
