"""The check of a bound on the finish: recomputed in exact fractions, relying only on the proofs of its rules.

Orders are played again, independently of the schedules from which the plan was made.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.estimates import estimate, lasting
from eligo.pools import Pool, cores_of
from eligo.verifying.documents import require
from eligo.workflow import Workflow

# The bound


READ = 1e-6  # relative error allowed in the work that is shown to people


class Claim(NamedTuple):
    """The claim of a bound, in exact numbers; *cores* is None for a pool of workers."""

    seconds: Fraction
    t: Fraction
    u: Fraction
    least: Fraction
    speeds: tuple[Fraction, ...]
    cores: int | None
    rule: str
    j: int
    tasks: float | None
    work: float | None


def finish_holds(flow: object, bound: Mapping[str, Any]) -> bool:
    """Whether no order can finish a workflow before the seconds that a bound claims, for the reason that it gives.

    *bound* has the keys `seconds`, `workers` (the speed of each), `rule`, `t`, `u` and `j`. For a pool of cores, `workers` is
    empty and `cores` is their number; if `least` is above 0, only tasks that take at least that many cores count. `tasks` and
    `work`, which are shown to people, must be right too.
    """
    workflow, claim = as_workflow(flow), _claim(bound)
    seconds = _own_seconds(workflow)
    heads, tails = _longest(workflow.dag, seconds, before=True), _longest(workflow.dag, seconds, before=False)
    rows = zip(heads, tails, seconds, _cores(workflow, claim), strict=True)
    inside = [(s, c) for r, q, s, c in rows if r >= claim.t and q >= claim.u and c >= claim.least]
    if claim.rule == "path":
        work = max((r + s + q for r, s, q in zip(heads, seconds, tails, strict=True)), default=Fraction(0))
        return claim.seconds <= work / max(claim.speeds) and _reads(claim, len(inside), work)
    if claim.rule == "succession":
        among = zip(heads, seconds, tails, _cores(workflow, claim), strict=True)
        meant = [(r, s, q) for r, s, q, c in among if r >= claim.t and q >= claim.u and c >= claim.least]
        return _by_succession(claim, meant)
    most = (_by_work if claim.rule == "work" else _by_crowding)(claim, inside)
    return bool(inside) and claim.seconds <= most and _reads(claim, len(inside), _work(claim, inside))


def _own_seconds(flow: Workflow) -> list[Fraction]:
    """The seconds of every task, or 0 if its own time is unknown."""
    times = estimate(flow)
    return [Fraction(time) if own else Fraction(0) for time, own in zip(times.seconds, times.own, strict=True)]


def _reads(claim: Claim, tasks: int, work: Fraction) -> bool:
    """Whether the claim's `tasks` and `work`, if present, are right."""
    counted = tasks if claim.tasks is None else claim.tasks
    return counted == tasks and (claim.work is None or math.isclose(claim.work, work, rel_tol=READ))


def _claim(bound: Mapping[str, Any]) -> Claim:
    """The claim of a bound. Raises `InputError` if it is malformed."""
    try:
        fields = {"least": 0.0, "cores": None, "tasks": None, "work": None} | dict(bound)
        seconds, t, u, least = (Fraction(float(fields[key])) for key in ("seconds", "t", "u", "least"))
        cores = None if fields["cores"] is None else int(fields["cores"])
        speeds = tuple(Fraction(float(speed)) for speed in fields["workers"]) if cores is None else (Fraction(1),)
        read = tuple(None if fields[key] is None else float(fields[key]) for key in ("tasks", "work"))
        claim = Claim(seconds, t, u, least, speeds, cores, fields["rule"], int(fields["j"]), *read)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"not a bound on a finish: {error}") from None
    if min(claim.speeds, default=0) <= 0 or claim.j < 0 or claim.least < 0 or (cores is not None and cores < 1):
        raise InputError("not a bound on a finish: workers must be at least 1, with positive speeds")
    if claim.rule not in {"path", "work", "pigeonhole", "succession"}:
        raise InputError(f"not a bound on a finish: unknown rule {claim.rule!r}")
    return claim


def _cores(flow: Workflow, claim: Claim) -> list[Fraction]:
    """The cores that every task takes; 1 if that is unknown or the pool has workers."""
    requested = [flow.task(name).cores if claim.cores is not None else None for name in flow.dag.tasks]
    return [Fraction(1 if cores is None else cores) for cores in requested]


def _at_once(claim: Claim) -> int:
    """The maximum number of the claim's tasks that run at once; 0 if it does not depend on that."""
    if claim.cores is None:
        return len(claim.speeds)
    return int(claim.cores // claim.least) if claim.least else 0


def _counts_cores(claim: Claim) -> bool:
    """Whether the work is counted in core-seconds, not in seconds of tasks."""
    return claim.cores is not None and not claim.least and claim.rule == "work"


def _work(claim: Claim, inside: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The work of these tasks, in seconds or core-seconds."""
    return sum((s * c if _counts_cores(claim) else s for s, c in inside), Fraction(0))


def _by_work(claim: Claim, inside: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The time that the work of these tasks takes, plus the time before and after them."""
    outside = (claim.t + claim.u) / max(claim.speeds)
    rate = sum(claim.speeds) if claim.cores is None else claim.cores if _counts_cores(claim) else _at_once(claim)
    return outside + _work(claim, inside) / rate if rate else Fraction(0)


def _by_crowding(claim: Claim, inside: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The time of a worker that must run j + 1 of these tasks, plus the time before and after them."""
    first = claim.j * _at_once(claim) + 1
    if first > len(inside) or not _at_once(claim):
        return Fraction(0)
    longest = sorted((s for s, _ in inside), reverse=True)[:first]
    return (claim.t + claim.u + sum(longest[-(claim.j + 1) :], Fraction(0))) / max(claim.speeds)


def _by_succession(claim: Claim, meant: list[tuple[Fraction, Fraction, Fraction]]) -> bool:
    """Whether j of the longest of these tasks that follow another prove the claim; each has its head, seconds and tail."""
    count, k = _at_once(claim) + claim.j, claim.j
    if k < 1 or count == k or count > len(meant):
        return False
    chosen = sorted(meant, key=lambda task: -task[1])[:count]
    first, last = sorted(r + s for r, s, _ in chosen)[:k], sorted(s + q for _, s, q in chosen)[:k]
    most = max(x + y for x, y in zip(first, reversed(last), strict=True)) / max(claim.speeds)
    return claim.seconds <= most and _reads(claim, count, sum((s for _, s, _ in chosen), Fraction(0)))


def _longest(dag: Dag, seconds: list[Fraction], before: bool) -> list[Fraction]:
    """The longest path before, or after, every task, excluding the task."""
    longest = [Fraction(0)] * len(dag)
    order = dag.order.tolist() if before else dag.order[::-1].tolist()
    for v in order:
        beside = (dag.parents_of(v) if before else dag.children_of(v)).tolist()
        longest[v] = max((longest[w] + seconds[w] for w in beside), default=Fraction(0))
    return longest


# The orders


PARTS = 1_000  # of a core: the unit in which cores are counted, rounded up


def check_finish(flow: Workflow, claim: Mapping[str, Any]) -> None:
    """Raise an error if the bound on the finish in a plan's document does not hold, or an order does not end as claimed."""
    if claim.get("certificate") is None:
        claimed = [claim.get("bound"), *(entry.get("makespan") for entry in claim.get("orders", ()))]
        require(all(end is None for end in claimed), "the finish has no certificate")
        return
    bound, ends = claim["certificate"], {entry["name"]: entry.get("makespan") for entry in claim.get("orders", ())}
    timed = estimate(flow).own.all()
    why = "does not hold" if timed else "cannot be checked: run times are missing"
    require(finish_holds(flow, bound), f"the bound on the finish {why}")
    pool = Pool(tuple(bound["workers"]), bound.get("cores"))
    require(Pool.of(claim.get("workers", pool)) == pool, "the workers are not those of the certificate")
    require(claim.get("bound", bound["seconds"]) == bound["seconds"], "the bound is not that of the certificate")
    used = ends.get(claim.get("used"), claim.get("makespan"))
    require(claim.get("makespan") == used, "the makespan is not that of the order used")
    soon = any(end is not None and end < bound["seconds"] for end in ends.values())
    require(not soon, "an order finishes before the lower bound")
    _check_ends(flow, claim.get("orders", ()), pool)


def makespan(flow: Workflow, order: list[int], pool: Pool) -> float:
    """The time at which the last task ends if every free worker, the fastest first, takes the first ready task of an order.

    All tasks that end at one moment are finished before any begins. In a pool of cores, the first ready task begins for which
    enough cores are free.
    """
    run = _Run(flow, order, pool)
    while run.begin_tasks():
        run.finish_tasks()
    require(run.done == len(order), "an order cannot be completed")
    return run.now


def _check_ends(flow: Workflow, entries: Sequence[Mapping[str, Any]], pool: Pool) -> None:
    """Raise an error if an order of a plan's document does not end as claimed."""
    index = flow.dag.labelled().index
    for entry in entries:
        if (claimed := entry.get("makespan")) is None:
            continue
        end = makespan(flow, [index[name] for name in entry["order"]], pool)
        discrepancy = f"is claimed to finish after {lasting(claimed)}, but finishes after {lasting(end)}"
        require(end == claimed, f"the order {shorten(entry['name'])!r} {discrepancy}")


class _Run:
    """A simulated pool: tasks are numbered by their places in the order, workers by theirs among the speeds."""

    def __init__(self, flow: Workflow, order: list[int], pool: Pool) -> None:
        times, taken, dag = estimate(flow), cores_of(flow, pool), flow.dag
        require(bool(times.own.all()), "run times are missing")
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
        """Begin the tasks that can begin now; returns whether any task runs."""
        while self.idle and (heads := [queue[0] for queue in self.ready.values() if queue and self._fits(queue[0])]):
            task, worker = min(heads), heappop(self.idle)
            heappop(self.ready[self.cores[task]])
            self.free -= self.cores[task]
            heappush(self.running, (self.now + self.seconds[task] / self.speeds[worker], worker, task))
        return bool(self.running)

    def _fits(self, task: int) -> bool:
        return self.cores[task] <= self.free

    def finish_tasks(self) -> None:
        """Advance to the next moment at which tasks end, and finish all of these."""
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
