"""Metrics for Prometheus: numbers that are counted as events happen, and formatted when they are requested."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from math import nan
from time import perf_counter
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from starlette.routing import Route

from eligo.running.states import PENDING, READY, RETRYING, RUNNING
from eligo.server.dispatcher import Desk
from eligo.server.rules.served import Served

#: bounds of the histograms, in seconds, and of those of group sizes
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
REMAINING = {READY, PENDING, RUNNING, RETRYING}  # the states of tasks that will be done
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


#: names and meanings of the current values, and of the counts since the server started
GAUGES = {
    "workflows": "Workflows served",
    "leases": "Tasks leased to clients",
    "clients": "Known clients",
    "clients_paused": "Clients paused because too many of their tasks failed",
    "clients_unapproved": "Clients without access: waiting for approval, or revoked",
    "waiting_requests": "Requests for tasks waiting for a ready task",
    "seconds_left": "Estimated seconds until all tasks are done, with as many leases as now; NaN: unknown",
    "ready": "1 if the server hands out tasks and can write to its store, else 0",
}
COUNTERS = {
    "leases_lost": "Leases that ended without a result",
    "duplicates": "Results of tasks that were already finished",
    "conflicts": "Results that differ from the accepted one",
    "retries": "Failed tasks scheduled for a retry",
    "tasks_failed": "Tasks that failed permanently",
    "empty_answers": "Requests for tasks answered without a task",
    "starved_seconds": "Seconds that requests waited while unfinished tasks remained",
    "commit_failures": "Transactions that failed",
}


class Census(NamedTuple):
    """Current values: tasks by state, and some of `GAUGES` and `COUNTERS`."""

    tasks: Mapping[str, int]
    gauges: Mapping[str, float] = {}
    counters: Mapping[str, float] = {}


def census(desk: Desk) -> Census:
    """The current values of a dispatcher."""
    service, keeper, tasks = desk.service, desk.keeper, Counter[str]()
    books, served, clients = service.books, service.served.values(), service.clients.values()
    for one in served:
        tasks.update(one.counts())
    gauges = {
        "workflows": len(served), "leases": sum(len(one.leases) for one in served), "clients": len(clients),
        "clients_paused": sum(one.approved and one.paused > books.now for one in clients),
        "clients_unapproved": sum(not one.approved for one in clients), "waiting_requests": desk.waiting,
        "seconds_left": seconds_left(served),
        "ready": keeper.trouble is None and service.requests.draining is None,
    }  # fmt: skip
    counters = {
        "leases_lost": books.expired, "duplicates": service.results.duplicates, "conflicts": service.results.conflicts,
        "retries": books.retries, "tasks_failed": books.failed, "empty_answers": desk.empty,
        "starved_seconds": desk.starved, "commit_failures": keeper.failures,
    }  # fmt: skip
    return Census(tasks, gauges, counters)


def seconds_left(served: Collection[Served]) -> float:
    """The work that remains, by the mean time of the tasks of each workflow, or of all, over the number of leased tasks."""
    speeds = [one.allocator.speeds for one in served]
    results = sum(each.results for each in speeds)
    usual = sum(each.seconds for each in speeds) / results if results else nan
    rests = [sum(count for state, count in one.counts().items() if state in REMAINING) for one in served]
    means = [each.seconds / each.results if each.results else usual for each in speeds]
    work = sum(rest * mean for rest, mean in zip(rests, means, strict=True) if rest)
    leased = sum(len(one.leases) for one in served)
    return work / leased if leased else nan if any(rests) else 0.0


class Spread:
    """A histogram: the number of values between bounds; cheap to add to, from one thread at a time."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the seconds that the body of a `with` statement takes, also if it raises."""
        began = perf_counter()
        try:
            yield
        finally:
            self.add(perf_counter() - began)

    def buckets(self) -> list[tuple[str, float]]:
        """For each bound, the number of values up to it, as Prometheus needs them."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self.counts)), strict=True))


class Metrics:
    """All metrics of one server; the guard calls `seen`, the writer `committed`, and each scrape `census`."""

    def __init__(self, census: Callable[[], Census] | None = None) -> None:
        self.census = census
        self._paths: dict[Any, str] = {}
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, Spread] = {}
        self._taken = self._sent = 0
        self._commits, self._groups, self.preparing = Spread(SECONDS), Spread(SIZES), Spread(SECONDS)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def know(self, routes: Iterable[Route]) -> None:
        """Count these routes separately; all others count as one."""
        self._paths.update((route.endpoint, route.path) for route in routes)

    def seen(self, scope: Any, status: int, seconds: float, taken: int, sent: int) -> None:
        """Count an answered request."""
        path = self._paths.get(scope.get("endpoint"), "other")
        self._requests[scope["method"] if path != "other" else "any", path, status] += 1
        spread = self._seconds.get(path)
        if spread is None:
            spread = self._seconds[path] = Spread(SECONDS)
        spread.add(seconds)
        self._taken += taken
        self._sent += sent

    def committed(self, seconds: float, group: int) -> None:
        """Record a transaction and its number of changes."""
        self._commits.add(seconds)
        self._groups.add(group)

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All metrics, as the registry requires them."""
        yield from self._of_requests()
        yield from self._of_spreads()
        if self.census is not None:
            yield from _of_census(self.census())

    def _of_requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("eligo_requests", "Requests answered", labels=["method", "path", "status"])
        for (method, path, status), number in list(self._requests.items()):
            requests.add_metric([method, path, str(status)], number)
        yield requests
        seconds = HistogramMetricFamily("eligo_request_seconds", "Seconds from request to response", labels=["path"])
        for path, spread in list(self._seconds.items()):
            seconds.add_metric([path], spread.buckets(), spread.total)
        yield seconds
        yield _counter("eligo_bytes_received", "Bytes of request bodies received", self._taken)
        yield _counter("eligo_bytes_sent", "Bytes of response bodies sent", self._sent)

    def _of_spreads(self) -> Iterator[Metric]:
        for name, says, spread in (
            ("eligo_commit_seconds", "Seconds per transaction", self._commits),
            ("eligo_commit_size", "Changes per transaction", self._groups),
            ("eligo_prepare_seconds", "Seconds to read and plan a submitted workflow", self.preparing),
        ):
            family = HistogramMetricFamily(name, says)
            family.add_metric([], spread.buckets(), spread.total)
            yield family


def _counter(name: str, says: str, value: float) -> Metric:
    return CounterMetricFamily(name, says, value=value)


def _of_census(census: Census) -> Iterator[Metric]:
    tasks = GaugeMetricFamily("eligo_tasks", "Tasks by state", labels=["state"])
    for state, number in census.tasks.items():
        tasks.add_metric([state], number)
    yield tasks
    for name, value in census.gauges.items():
        yield GaugeMetricFamily(f"eligo_{name}", GAUGES[name], value=value)
    for name, value in census.counters.items():
        yield _counter(f"eligo_{name}", COUNTERS[name], value)
