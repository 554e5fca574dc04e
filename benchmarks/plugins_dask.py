"""Dask with its own order and with eligo's: real workflows as sleeps; without any, what ranking a large graph costs.

`python -m benchmarks.plugins_dask FILE ...` takes files of workflows whose seconds are known.
"""

import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dask.order
import distributed

import eligo
from benchmarks.plugins_turns import compare
from benchmarks.timing import heading, row
from eligo.plugins.dask import EligoPriorities, prioritise

WORKERS, SECONDS = 4, 30.0  # workers of one thread; of work for each of them
LARGE = 100_000
#: the kind, the seconds and the needs of every task
Tasks = dict[str, tuple[str, float, list[str]]]


def tasks_of(file: str) -> Tasks:
    """The seconds of a workflow's tasks, scaled to a given amount of work per worker."""
    flow = eligo.as_workflow(file)
    seconds = [found or 0.0 for found in flow.column("seconds")]
    scale, names = WORKERS * SECONDS / sum(seconds), [str(name) for name in flow.dag.tasks]
    needs: dict[str, list[str]] = {name: [] for name in names}
    for tail, head in flow.dag.arcs():
        needs[str(head)].append(str(tail))
    kinds = [str(kind or "task") for kind in flow.column("category")]
    return {name: (kinds[i], seconds[i] * scale, needs[name]) for i, name in enumerate(names)}


def nap(seconds: float, *_parents: object) -> None:
    """The function of a task: it sleeps."""
    time.sleep(seconds)


def makespan(client: Any, plugged: bool, ranked: bool, tasks: Tasks) -> float:
    """Seconds from the submission of the graph to its end."""
    if plugged:
        client.register_plugin(EligoPriorities())
    key = {name: (kind, random.getrandbits(60)) for name, (kind, _, _) in tasks.items()}
    graph: dict[Any, Any] = {key[name]: (nap, s, *(key[n] for n in needs)) for name, (_, s, needs) in tasks.items()}
    graph["end"] = (nap, 0.0, *key.values())
    begin = time.perf_counter()
    client.get(prioritise(graph) if ranked else graph, "end")
    found = time.perf_counter() - begin
    if plugged:
        client.unregister_scheduler_plugin("eligo")
    return found


def cluster(workers: int = WORKERS) -> Any:
    """Workers that are threads of this process."""
    places = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(processes=False, n_workers=workers, threads_per_worker=1, **places)  # type: ignore[no-untyped-call]


def run(files: Sequence[str] = ()) -> None:
    """Print the figures."""
    if not files:
        large()
    rehearse(files, "Dask", ("by itself", "plug-in", "prioritise"), dask_seconds)


def dask_seconds(tasks: Tasks, way: str) -> float:
    """The makespan of one run on a fresh cluster."""
    with cluster() as own, distributed.Client(own) as client:  # type: ignore[no-untyped-call]
        return makespan(client, way == "plug-in", way == "prioritise", tasks)


def rehearse(files: Sequence[str], engine: str, ways: Sequence[str], seconds: Callable[[Tasks, str], float]) -> None:
    """The makespans of every workflow in every way."""
    known = ((file.rpartition("/")[2], tasks_of(file)) for file in files)
    title = f"Makespans on {engine}, {WORKERS} workers, {SECONDS:g} s of work each"
    compare(title, ((name, len(tasks), partial(seconds, tasks)) for name, tasks in known), ways)


class Timed(EligoPriorities):
    """A plug-in that reports how long ranking took."""

    def update_graph(self, scheduler: Any, **told: Any) -> None:
        """See `EligoPriorities`."""
        begin = time.perf_counter()
        super().update_graph(scheduler, **told)
        row(("the plug-in", time.perf_counter() - begin), (20, 10))


def large() -> None:
    """The time that the plug-in adds to the submission of a large graph, beside that of `dask.order`."""
    heading(f"A graph of {LARGE:,} tasks", ("ranked by", "seconds"), (20, 10))
    graph: dict[Any, Any] = {("a", i): (nap, 0.0) for i in range(LARGE // 2)}
    graph |= {("b", i): (nap, 0.0, ("a", i), ("a", i // 2)) for i in range(LARGE // 2)}
    graph["end"] = (nap, 0.0, *graph)
    begin = time.perf_counter()
    dask.order.order(graph)
    row(("dask.order", time.perf_counter() - begin), (20, 10))
    with cluster(0) as own, distributed.Client(own) as client:  # type: ignore[no-untyped-call]
        client.register_plugin(Timed())
        future = client.get(graph, "end", sync=False)
        while len(own.scheduler.tasks) < LARGE:
            time.sleep(0.1)
        client.run_on_scheduler(lambda: None)  # which waits its turn
        del future


if __name__ == "__main__":
    run(sys.argv[1:])
