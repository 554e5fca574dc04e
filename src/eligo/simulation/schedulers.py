"""Schedulers by name, and from files: each is made into a policy for one workflow.

Shortcuts are removed first: they change nothing about which tasks are ready, and would count as children.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats import orders
from eligo.planning import Plan
from eligo.planning import plan as plan_of
from eligo.policies import (
    Policy,
    balanced,
    batch_optimal,
    critical_path,
    fifo,
    from_order,
    greedy,
    lifo,
    random,
    rank_of,
)
from eligo.rows import Ints
from eligo.simulation.pebble import play
from eligo.theory.skeleton import skeleton
from eligo.workflow import Workflow, dag_of

Flow = Dag | Workflow


def task_seconds(flow: Flow) -> NDArray[np.float64]:
    """How long every task runs, the mean of the others where it is not known; 1 where none is."""
    known = [] if isinstance(flow, Dag) else [flow.task(name).seconds for name in flow.dag.tasks]
    times = np.array([np.nan if s is None else s for s in known] or [np.nan] * len(dag_of(flow)), np.float64)
    found = times[~np.isnan(times)]
    return np.where(np.isnan(times), found.mean() if found.any() else 1.0, times)


def kind_seconds(flow: Flow) -> NDArray[np.float64]:
    """The mean time of every task's kind: what a history of earlier runs tells. Tasks without a kind are one kind."""
    times = task_seconds(flow)
    if isinstance(flow, Dag):
        return times
    kinds = [flow.task(name).category or "" for name in flow.dag.tasks]
    _, which = np.unique(np.array(kinds), return_inverse=True)
    means = np.bincount(which, times) / np.maximum(np.bincount(which), 1)
    return np.asarray(means[which], np.float64)


def _balanced(flow: Flow, bare: Dag, plan: Plan | None) -> Policy:
    return balanced(bare, rank_of(bare, _planned(flow, plan).sequence))


def _plan(flow: Flow, bare: Dag, plan: Plan | None) -> Policy:
    return from_order(bare, _planned(flow, plan).sequence, "plan")


def _planned(flow: Flow, plan: Plan | None) -> Plan:
    return plan_of(flow) if plan is None else plan


def _dask(flow: Flow, bare: Dag, plan: Plan | None) -> Policy:
    from eligo.interop.dask import dask_rank

    return Policy("dask", bare, np.zeros(len(bare)), rank=dask_rank(bare))


Make = Callable[[Flow, Dag, Plan | None], Policy]

#: every scheduler by name
SCHEDULERS: dict[str, Make] = {
    "balanced": _balanced,
    "plan": _plan,
    "fifo": lambda flow, bare, plan: fifo(bare),
    "lifo": lambda flow, bare, plan: lifo(bare),
    "greedy": lambda flow, bare, plan: greedy(bare),
    "greedy-fifo": lambda flow, bare, plan: greedy(bare, "first"),
    "random": lambda flow, bare, plan: random(bare),
    "critical-path": lambda flow, bare, plan: critical_path(bare),
    "critical-path-seconds": lambda flow, bare, plan: critical_path(bare, task_seconds(flow)),
    "dask": _dask,
    "batch-optimal": lambda flow, bare, plan: batch_optimal(bare),
}


def scheduler(name: str, flow: Flow, plan: Plan | None = None) -> Policy:
    """The policy of that name for a workflow, or one that follows the order in a file of that name.

    "balanced" and "plan" need a plan, which is made where none is given.

    >>> dag = Dag.from_arcs([("a", "b"), ("a", "c")])
    >>> scheduler("fifo", dag)
    Policy('fifo', 3 tasks)
    >>> scheduler("quickest", dag)
    Traceback (most recent call last):
    eligo.errors.InputError: there is no scheduler 'quickest', nor a file of that name; there are balanced, plan, fifo, ...
    """
    bare = skeleton(dag_of(flow))
    if name in SCHEDULERS:
        return SCHEDULERS[name](flow, bare, plan)
    if not Path(name).is_file():
        raise InputError(f"there is no scheduler {name!r}, nor a file of that name; there are {', '.join(SCHEDULERS)}")
    return from_order(bare, _order_in(Path(name)), Path(name).stem)


def _order_in(path: Path) -> tuple[str, ...]:
    try:
        return orders.parse(path.read_text("utf-8"))
    except InputError as error:
        raise error.located(str(path)) from None


def static_order(flow: Flow, plan: Plan | None = None) -> Ints:
    """The order to export as fixed priorities: the default policy played once, as task numbers."""
    return play(scheduler("balanced", flow, plan))
