"""The speeds of clients, estimated from their results, and the faster clients to which a slow one leaves tasks."""

from collections.abc import Hashable, Iterator, KeysView
from itertools import chain

from eligo.allocating.asks import Fits
from eligo.names import Name


class Speeds:
    """The speeds of clients relative to the mean, estimated from their results.

    >>> speeds = Speeds()
    >>> for client, seconds in (("ann", 10.0), ("bob", 30.0), ("ann", 10.0)):
    ...     speeds.record(client, seconds)
    >>> speeds.of("ann"), round(speeds.of("bob"), 2), speeds.of("eve")
    (1.6666666666666667, 0.56, None)
    >>> speeds.is_slow("bob", 0.6), speeds.is_slow("eve", 0.6)
    (True, False)
    """

    def __init__(self) -> None:
        self._past: dict[Hashable, tuple[float, float]] = {}  # the work and the seconds of each client
        self.work = self.seconds = 0.0
        self.results = 0

    def record(self, client: Hashable, seconds: float, work: float = 1.0, results: int = 1) -> None:
        """Record how long a client took for tasks; *work* is the expected time, if known."""
        self.introduce(client, seconds, work)
        self.results += results

    def introduce(self, client: Hashable, seconds: float, work: float) -> None:
        """Record the known speed of a client: work per seconds."""
        done, spent = self._past.get(client, (0.0, 0.0))
        self._past[client] = done + work, spent + seconds
        self.work += work
        self.seconds += seconds

    @property
    def clients(self) -> KeysView[Hashable]:
        """The clients with results."""
        return self._past.keys()

    def forget(self, client: Hashable) -> None:
        """Forget a client whose name will be reused; its times still count for the mean."""
        self._past.pop(client, None)

    def of(self, client: Hashable) -> float | None:
        """The speed of a client as a share of the mean, or None if it has no results."""
        work, seconds = self._past.get(client, (0.0, 0.0))
        return work / seconds * self.seconds / self.work if seconds and self.work else None

    def is_slow(self, client: Hashable, share: float) -> bool:
        """Whether a client is known to be slower than this share of the mean."""
        work, seconds = self._past.get(client, (0.0, 0.0))
        return seconds > 0 and work * self.seconds < share * self.work * seconds


class FasterClients:
    """Clients that are not slow, visited only until it is clear whether any of them can run a task."""

    def __init__(self, clients: Iterator[tuple[float, Fits | None]]) -> None:
        self._clients = clients
        self._seen: dict[int, tuple[float, Fits]] = {}  # one client for each `fits`
        #: when a client that can run a task may be gone; None if none can run one
        self.until: float | None = None

    def can_run_all(self) -> bool:
        """Whether the first of them can run every task, so that no task need be checked."""
        until, fits = next(self._next_clients(), (0.0, None))
        if fits is not _everything:
            return False
        self.until = until
        return True

    def can_run(self, task: Name) -> bool:
        """Whether any of them can run a task."""
        until = next((until for until, fits in chain(self._seen.values(), self._next_clients()) if fits(task)), None)
        if until is not None:
            self.until = until if self.until is None else min(self.until, until)
        return until is not None

    def _next_clients(self) -> Iterator[tuple[float, Fits]]:
        for until, fits in ((until, fits or _everything) for until, fits in self._clients):
            if id(fits) not in self._seen:
                self._seen[id(fits)] = until, fits
                yield until, fits

    def leave(self, fits: Fits | None) -> Fits:
        """The tasks that fit a client but that none of these clients can run."""
        return lambda task: (fits is None or fits(task)) and not self.can_run(task)


def _everything(task: Name) -> bool:
    return True
