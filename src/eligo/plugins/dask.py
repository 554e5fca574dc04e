"""Dask: its own scheduler follows eligo's order, for all graphs of a cluster or for one collection.

`client.register_plugin(EligoPriorities())` ranks every graph that the cluster receives from then on; its scheduler needs
eligo. `prioritise(collection)` returns a collection with ranks, for a cluster that does not have eligo.
"""

import pickle
import time
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.engines.registry import absent
from eligo.errors import InputError
from eligo.interop.dask import from_dask
from eligo.plugins.numbers import quick_order
from eligo.prioritising import check_order
from eligo.rows import Ints
from eligo.schedules import terms_of
from eligo.space.footprint import Footprint
from eligo.space.orders import as_numbered, space_order
from eligo.theory.eligibility import peak_results
from eligo.workflow import Task, Workflow, priority_numbers

try:
    import dask.base
    import dask.order
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
    from distributed import SchedulerPlugin
except ModuleNotFoundError:
    raise absent("dask.distributed", "dask") from None

#: a task in Dask's scheduler
State = Any
#: the ratio of results in memory, compared with Dask's own order, from which a warning is issued
MANY_TIMES = 1.5
#: the number of tasks at a time for which `space` compares itself with Dask's own order, besides one
WORKERS = 4


class ResultsInMemoryWarning(UserWarning):
    """An order keeps many more results in memory than Dask's own order would."""


class EligoPriorities(SchedulerPlugin):
    """A plug-in of Dask's scheduler that ranks the tasks of every graph that it receives.

    As with Dask's own order, users' priorities and the age of a graph take precedence. A client gets a warning if its graph
    keeps many more results in memory than with Dask's own order.
    """

    #: the key of the plug-in in a cluster; a plug-in that is registered later with this name replaces this one
    name = "eligo"

    def __init__(self, order: str = "finish") -> None:
        check_order(order)
        self.order = order

    def update_graph(self, scheduler: Any, *, client: str, keys: Collection[Any], stimulus_id: str, **_: Any) -> None:
        """Rank the tasks to be computed for these keys, and pass ready tasks to Dask in that order.

        Otherwise, Dask would start with the first tasks that it encounters, before it has seen the others.
        """
        states = tasks_to_rank(scheduler.tasks[key] for key in keys if key in scheduler.tasks)
        if len(states) < 2:
            return
        flow = workflow_of(states)
        order = order_of(flow, self.order)
        for place, key in enumerate(order):
            state = scheduler.tasks[key]
            state.priority = (*state.priority[:2], place)
        ready = [state for state in states if all(parent.state == "memory" for parent in state.dependencies)]
        ready.sort(key=attrgetter("priority"), reverse=True)  # Dask takes the last one first
        scheduler.transitions({state.key: "waiting" for state in ready}, stimulus_id)
        remark = memory_remark(flow.dag, order)
        if remark is not None:
            _warn_client(scheduler, client, f"{remark} (client.unregister_scheduler_plugin('eligo'))")


def order_of(flow: Workflow, order: str) -> tuple[Any, ...]:
    """The order of a graph by a policy; its tasks are numbered by Dask's order.

    By `space`, no more results exist at once than by Dask's own order, with one task at a time and with WORKERS at a time.
    """
    if order != "space":
        return quick_order(flow, order)
    footprint = Footprint.of_results(flow.dag)
    return flow.dag.named(space_order(footprint, measure=partial(peak_on, footprint, WORKERS)))


def peak_on(footprint: Footprint, workers: int, order: Ints) -> int:
    """The most results at once if workers run the first ready tasks of an order, each for the same time."""
    schedule = terms_of(footprint.dag, np.ones(len(footprint.dag)), workers).listed(order)
    return footprint.peak_in_time(schedule.begin, schedule.end)


def memory_remark(dag: Dag, order: Sequence[Any]) -> str | None:
    """A warning if an order keeps many more results in memory than Dask's own order; else None.

    The tasks of the dag are numbered by Dask's order.
    """
    ours, theirs = peak_results(dag, order), peak_results(dag, as_numbered(dag))
    if ours < MANY_TIMES * theirs:
        return None
    figures = f"eligo's order keeps up to {ours:,} results of these {len(dag):,} tasks in memory, dask.order {theirs:,}"
    return f"{figures} (one task at a time); if they do not fit into memory, keep Dask's order"


def _warn_client(scheduler: Any, client: str, message: str) -> None:
    """Make a client warn its user, as Dask's workers do; the client may not have eligo with its types of warnings."""
    event = {"message": pickle.dumps(message), "category": pickle.dumps(UserWarning)}
    scheduler.report({"op": "event", "topic": "warn", "event": (time.time(), event)}, client=client)


def tasks_to_rank(wanted: Iterator[State]) -> list[State]:
    """The wanted tasks and their dependencies that are not queued yet, in Dask's order, which breaks ties."""
    states, waiting = dict[State, None](), [state for state in wanted if is_new(state)]
    while waiting:
        state = waiting.pop()
        if state not in states:
            states[state] = None
            waiting += [parent for parent in state.dependencies if is_new(parent)]
    return sorted(states, key=attrgetter("priority"))


def is_new(state: State) -> bool:
    """Whether a task is not queued yet, so that its priority can be changed, and no ancestor has failed."""
    return bool(state.state == "released" and state.priority and state.run_spec and not state.exception_blame)


def workflow_of(states: Sequence[State]) -> Workflow:
    """The tasks as a workflow, with run times if the cluster has run tasks of all kinds."""
    index = {state: i for i, state in enumerate(states)}
    arcs = [(index[parent], i) for i, state in enumerate(states) for parent in state.dependencies if parent in index]
    tails, heads = np.array(arcs, np.int32).reshape(-1, 2).T
    dag = Dag.from_arrays(len(states), tails, heads, [state.key for state in states])
    seconds = {prefix: prefix.duration_average for prefix in {state.prefix for state in states}}
    if any(mean < 0 for mean in seconds.values()):
        return Workflow(dag)
    return Workflow(dag, {state.key: Task(name=state.key, seconds=seconds[state.prefix]) for state in states})


def prioritise(source: Any, order: str = "finish") -> Any:
    """The collection, optimised by Dask, with a priority for each task; or a graph with priorities.

    >>> import dask
    >>> one = dask.delayed(1)
    >>> total = prioritise(dask.delayed(sum)([one + 1, one + 2]))
    >>> total.compute(scheduler="sync")
    5

    Warns if the order keeps many more results in memory than Dask's own order (`ResultsInMemoryWarning`).
    """
    if isinstance(source, Mapping):
        return _annotated(source, "eligo", order)
    if not hasattr(source, "__dask_layers__"):
        raise InputError(
            f"cannot attach priorities to an object of type {type(source).__name__} (register the plug-in EligoPriorities)"
        )
    (done,) = dask.base.optimize(source)  # type: ignore[no-untyped-call]
    rebuild, arguments = done.__dask_postpersist__()
    (layer, *_) = done.__dask_layers__()
    result = rebuild(_annotated(done.__dask_graph__(), layer, order), *arguments)
    with suppress(AttributeError, TypeError):  # a Delayed has no such attribute, and keeps its annotations anyway
        result.__dask_optimize__ = dask.base.dont_optimize  # another optimisation would lose the annotations
    return result


def _annotated(graph: Mapping[Any, Any], layer: str, order: str) -> HighLevelGraph:
    """The graph in one layer; priorities are looked up with Python's own types, for schedulers without eligo."""
    place = dask.order.order(dict(graph))  # breaks ties
    tasks = {key: graph[key] for key in sorted(graph, key=place.__getitem__)}
    flow = from_dask(tasks)
    sequence = order_of(flow, order)
    remark = memory_remark(flow.dag, sequence)
    if remark is not None:
        warnings.warn(f"{remark} (without prioritise)", ResultsInMemoryWarning, stacklevel=3)
    ranks = defaultdict(int, priority_numbers(sequence))
    return HighLevelGraph({layer: MaterializedLayer(tasks, {"priority": ranks.__getitem__})}, {layer: set()})
