"""Figures for Prometheus: plain numbers that are counted as things happen, and made into its text when it asks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

#: seconds at which the histograms are divided, and sizes of groups
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Census(NamedTuple):
    """How things stand: tasks by their state, and how many workflows, leases and clients there are."""

    tasks: Mapping[str, int]
    workflows: int = 0
    leases: int = 0
    clients: int = 0


class Spread:
    """How often values fell between bounds; cheap to add to, from one thread at a time."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """One more value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """How many values are at most each bound, as Prometheus wants it."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self.counts)), strict=True))


class Metrics:
    """All figures of one server; `seen` is for the guard, `committed` for whoever writes, `census` is asked at each look."""

    def __init__(self, routes: Iterable[Route] = (), census: Callable[[], Census] | None = None) -> None:
        self.census = census
        self.lost_leases = self.duplicates = 0
        self._paths = {route.endpoint: route.path for route in routes}
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, Spread] = {}
        self._taken = self._sent = 0
        self._commits, self._groups = Spread(SECONDS), Spread(SIZES)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def know(self, routes: Iterable[Route]) -> None:
        """Tell these routes apart, too; whatever else is asked for counts as one."""
        self._paths.update((route.endpoint, route.path) for route in routes)

    def seen(self, scope: Any, status: int, seconds: float, taken: int, sent: int) -> None:
        """One request was answered."""
        path = self._paths.get(scope.get("endpoint"), "other")
        self._requests[scope["method"] if path != "other" else "any", path, status] += 1
        spread = self._seconds.get(path)
        if spread is None:
            spread = self._seconds[path] = Spread(SECONDS)
        spread.add(seconds)
        self._taken += taken
        self._sent += sent

    def committed(self, seconds: float, group: int) -> None:
        """One transaction was written, with so many changes in it."""
        self._commits.add(seconds)
        self._groups.add(group)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)

    def route(self) -> Route:
        """GET /metrics, for Starlette."""

        async def metrics(request: Request) -> Response:
            return Response(self.text(), headers={"content-type": TEXT})

        return Route("/metrics", metrics, methods=["GET"])

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        yield from self._of_requests()
        yield from self._of_commits()
        yield _counter("eligo_leases_lost", "Leases that ended without a result", self.lost_leases)
        yield _counter("eligo_duplicates", "Results that came more than once", self.duplicates)
        if self.census is not None:
            yield from _of_census(self.census())

    def _of_requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("eligo_requests", "Requests answered", labels=["method", "path", "status"])
        for (method, path, status), number in list(self._requests.items()):
            requests.add_metric([method, path, str(status)], number)
        yield requests
        seconds = HistogramMetricFamily("eligo_request_seconds", "Seconds until the answer", labels=["path"])
        for path, spread in list(self._seconds.items()):
            seconds.add_metric([path], spread.buckets(), spread.total)
        yield seconds
        yield _counter("eligo_bytes_received", "Bytes of bodies that came in", self._taken)
        yield _counter("eligo_bytes_sent", "Bytes of bodies that went out", self._sent)

    def _of_commits(self) -> Iterator[Metric]:
        for name, says, spread in (
            ("eligo_commit_seconds", "Seconds that a transaction took", self._commits),
            ("eligo_commit_size", "Changes that were written in one transaction", self._groups),
        ):
            family = HistogramMetricFamily(name, says)
            family.add_metric([], spread.buckets(), spread.total)
            yield family


def _counter(name: str, says: str, value: float) -> Metric:
    return CounterMetricFamily(name, says, value=value)


def _of_census(census: Census) -> Iterator[Metric]:
    tasks = GaugeMetricFamily("eligo_tasks", "Tasks by their state", labels=["state"])
    for state, number in census.tasks.items():
        tasks.add_metric([state], number)
    yield tasks
    yield GaugeMetricFamily("eligo_workflows", "Workflows that are served", value=census.workflows)
    yield GaugeMetricFamily("eligo_leases", "Tasks that are out", value=census.leases)
    yield GaugeMetricFamily("eligo_clients", "Clients that are known", value=census.clients)
