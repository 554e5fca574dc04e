"""What a plan says of its finish, checked: orders are played again, independent of the schedules that the plan comes from."""

import math
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from eligo.errors import shorten
from eligo.estimating import estimate, lasting
from eligo.pools import Pool, cores_of
from eligo.verifying.finishes import finish_holds
from eligo.verifying.refuting import require
from eligo.workflow import Workflow

PARTS = 1_000  # of a core: the unit in which cores are counted, rounded up


def check_finish(flow: Workflow, claim: Mapping[str, Any]) -> None:
    """Refuse a plan's document whose bound on the finish does not hold, or whose orders do not end when they are said to."""
    if claim.get("certificate") is None:
        claimed = [claim.get("bound"), *(entry.get("makespan") for entry in claim.get("orders", ()))]
        require(all(end is None for end in claimed), "the finish has no certificate")
        return
    bound, ends = claim["certificate"], {entry["name"]: entry.get("makespan") for entry in claim.get("orders", ())}
    whole = estimate(flow).own.all()
    why = "does not hold" if whole else "cannot be checked: how long every task runs is not known"
    require(finish_holds(flow, bound), f"the bound on the finish {why}")
    pool = Pool(tuple(bound["workers"]), bound.get("cores"))
    require(Pool.of(claim.get("workers", pool)) == pool, "the workers are not those of the certificate")
    require(claim.get("bound", bound["seconds"]) == bound["seconds"], "the bound is not that of the certificate")
    used = ends.get(claim.get("used"), claim.get("makespan"))
    require(claim.get("makespan") == used, "the makespan is not that of the order used")
    soon = any(end is not None and end < bound["seconds"] for end in ends.values())
    require(not soon, "an order is done before any can be")
    _check_ends(flow, claim.get("orders", ()), pool)


def makespan(flow: Workflow, order: list[int], pool: Pool) -> float:
    """When the last task ends, if every free worker, the fastest first, takes the first ready task of an order.

    All tasks that end at one moment are finished before any begins. Of cores, the first ready task begins that enough are
    free for.
    """
    run = _Run(flow, order, pool)
    while run.begin_tasks():
        run.finish_tasks()
    require(run.done == len(order), "an order cannot be played to its end")
    return run.now


def _check_ends(flow: Workflow, entries: Sequence[Mapping[str, Any]], pool: Pool) -> None:
    """Refuse orders of a plan's document that do not end when they are said to."""
    index = flow.dag.labelled().index
    for entry in entries:
        if (claimed := entry.get("makespan")) is None:
            continue
        end = makespan(flow, [index[name] for name in entry["order"]], pool)
        said = f"is said to end after {lasting(claimed)}, and ends after {lasting(end)}"
        require(end == claimed, f"the order {shorten(entry['name'])!r} {said}")


class _Run:
    """A pool at work: tasks are known by their places in the order, workers by theirs among the speeds."""

    def __init__(self, flow: Workflow, order: list[int], pool: Pool) -> None:
        times, taken, dag = estimate(flow), cores_of(flow, pool), flow.dag
        require(bool(times.own.all()), "how long every task runs is not known")
        place = {v: i for i, v in enumerate(order)}
        self.seconds = times.seconds[order].tolist()
        self.cores = [0] * len(order) if taken is None else [math.ceil(taken[v] * PARTS - 1e-6) for v in order]
        self.children = [[place[w] for w in dag.children_of(v).tolist()] for v in order]
        self.missing = dag.indegree[order].tolist()
        self.speeds = pool.speeds or (1.0,) * len(order)
        self.idle, self.free = list(range(len(self.speeds))), (pool.cores or 0) * PARTS
        self.ready: dict[int, list[int]] = {cores: [] for cores in self.cores}
        self.running: list[tuple[float, int, int]] = []
        self.now, self.done = 0.0, 0
        for task, count in enumerate(self.missing):
            if not count:
                self.ready[self.cores[task]].append(task)
        for queue in self.ready.values():
            heapify(queue)

    def begin_tasks(self) -> bool:
        """Begin what can begin now; returns whether anything runs."""
        while self.idle and (heads := [queue[0] for queue in self.ready.values() if queue and self._fits(queue[0])]):
            task, worker = min(heads), heappop(self.idle)
            heappop(self.ready[self.cores[task]])
            self.free -= self.cores[task]
            heappush(self.running, (self.now + self.seconds[task] / self.speeds[worker], worker, task))
        return bool(self.running)

    def _fits(self, task: int) -> bool:
        return self.cores[task] <= self.free

    def finish_tasks(self) -> None:
        """Go on to the next moment at which tasks end, and finish all of them."""
        self.now = self.running[0][0]
        while self.running and self.running[0][0] == self.now:
            _, worker, task = heappop(self.running)
            heappush(self.idle, worker)
            self.free += self.cores[task]
            self.done += 1
            for child in self.children[task]:
                self.missing[child] -= 1
                if not self.missing[child]:
                    heappush(self.ready[self.cores[child]], child)
