"""Clients that a slow one waits for: those that are faster, and can run the task."""

from collections.abc import Iterator
from itertools import chain

from eligo.allocating.asks import Fits
from eligo.names import Name


class FasterClients:
    """Clients that are not slow, looked at only as far as it takes to say whether any of them can run a task."""

    def __init__(self, clients: Iterator[tuple[float, Fits | None]]) -> None:
        self._clients = clients
        self._seen: dict[int, tuple[float, Fits]] = {}  # one for all whom the same fits
        #: when one that can run something may be gone; None where none can
        self.until: float | None = None

    def can_run_all(self) -> bool:
        """Whether the first of them can run every task, which needs no look at tasks."""
        until, fits = next(self._unseen(), (0.0, None))
        if fits is not _everything:
            return False
        self.until = until
        return True

    def can_run(self, task: Name) -> bool:
        """Whether any of them can run a task."""
        until = next((until for until, fits in chain(self._seen.values(), self._unseen()) if fits(task)), None)
        if until is not None:
            self.until = until if self.until is None else min(self.until, until)
        return until is not None

    def _unseen(self) -> Iterator[tuple[float, Fits]]:
        for until, fits in ((until, fits or _everything) for until, fits in self._clients):
            if id(fits) not in self._seen:
                self._seen[id(fits)] = until, fits
                yield until, fits

    def leave(self, fits: Fits | None) -> Fits:
        """The tasks that fit a client but that none of these clients can run."""
        return lambda task: (fits is None or fits(task)) and not self.can_run(task)


def _everything(task: Name) -> bool:
    return True
