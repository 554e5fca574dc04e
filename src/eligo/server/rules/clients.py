"""What is thought of a client: how much it may have at once, whether it is left out for a while, whether it is trusted."""

from dataclasses import dataclass

from eligo.server.rules.needs import Offer
from eligo.server.rules.terms import ServerTerms
from eligo.stores.service import ClientRow

LEAST = 0.5  # of a task: nothing


@dataclass(slots=True)
class Client:
    """A client of the server. Each good result doubles what it may have at once, each failure halves it.

    >>> client, terms = Client("c-1", "ann", quota=4.0), ServerTerms()
    >>> for _ in range(3):
    ...     client.failed(0.0, terms)
    >>> client.quota, client.paused
    (0.5, 60.0)
    >>> client.room(30.0, 0), client.room(61.0, 0), client.room(61.0, 1)
    (0, 1, 0)
    """

    id: str
    name: str
    cores: float = 1.0
    #: by the clock on the wall
    made: float = 0.0
    approved: bool = True
    quota: float = 4.0
    #: failures, and pauses, in a row; results that others agreed with, in a row
    streak: int = 0
    pauses: int = 0
    valid: int = 0
    #: left without work until then, and last heard of, by the server's own clock
    paused: float = 0.0
    seen: float = 0.0
    #: when it was last heard of, as it is kept
    kept: float = float("-inf")
    done: int = 0
    failures: int = 0
    lost: int = 0
    #: what its results took
    seconds: float = 0.0
    #: how many tasks it has
    holds: int = 0
    #: what it has for tasks, as of its last request; None: it has not asked since the server began
    offer: Offer | None = None
    #: whether it was told that nothing more comes
    dismissed: bool = False
    #: what an operator says of it: whether it gets no tasks until it is resumed, and its tags
    held: bool = False
    tags: tuple[str, ...] = ()

    def room(self, now: float, holds: int | None = None) -> int:
        """How many tasks it may get now beside those it has."""
        if not self.approved or self.held or now < self.paused:
            return 0
        return max(0, int(max(1.0, self.quota)) - (self.holds if holds is None else holds))

    def trusted(self, terms: ServerTerms) -> bool:
        """Whether its results count without others that agree."""
        return self.valid >= terms.trusted

    def succeeded(self, terms: ServerTerms, results: int = 1, confirmed: int = 0) -> None:
        """Record good results; only those that other clients agreed with make it trusted."""
        self.done += results
        self.valid += confirmed
        self.streak = self.pauses = 0
        while results and self.quota < terms.most_quota:
            self.quota = min(terms.most_quota, max(1.0, 2 * self.quota))
            results -= 1

    def failed(self, now: float, terms: ServerTerms) -> None:
        """Record a failure of a task that has failed with no other client so far."""
        self.failures += 1
        self.valid = 0
        self.streak += 1
        self.quota = max(LEAST, self.quota / 2)
        if self.streak >= terms.most_streak or self.quota < 1:
            self._pause(now, terms)

    def dissented(self, now: float, terms: ServerTerms) -> None:
        """Its result was not what others agreed on."""
        self.failed(now, terms)

    def vanished(self, terms: ServerTerms) -> None:
        """A task that it had was lost."""
        self.lost += 1
        self.valid = 0
        self.quota = max(1.0, self.quota / 2)

    def forgiven(self, terms: ServerTerms) -> None:
        """A task that had failed with it failed elsewhere too: it was the task."""
        self.streak = max(0, self.streak - 1)
        self.quota = min(terms.most_quota, max(1.0, 2 * self.quota))
        self.paused = self.pauses = 0

    def _pause(self, now: float, terms: ServerTerms) -> None:
        self.quota = LEAST
        self.paused = now + min(terms.longest_pause, terms.first_pause * 2.0**self.pauses)
        self.pauses = min(self.pauses + 1, 30)

    def row(self, ahead: float) -> ClientRow:
        """As it is kept; *ahead* is how far the clock on the wall is ahead of the server's own."""
        return ClientRow(
            self.id, self.name, self.cores, self.made, self.seen + ahead, self.approved, self.quota, self.streak,
            self.pauses, self.paused + ahead, self.valid, self.done, self.failures, self.lost, self.seconds,
            self.held, " ".join(self.tags),
        )  # fmt: skip


def remembered(row: ClientRow, ahead: float, now: float) -> Client:
    """A client as it was kept; whatever was done to the clock on the wall, it is paused for no longer than it was then.

    >>> row = Client("c-1", "ann", seen=500.0).row(ahead=1000.0)
    >>> remembered(row, -80_000.0, 600.0).room(600.0)
    4
    """
    fields = row._asdict()
    remaining = min(row.paused - row.seen, row.paused - ahead - now)
    fields |= {
        "seen": min(row.seen - ahead, now),
        "kept": row.seen - ahead,
        "paused": now + max(0.0, remaining),
        "failures": row.failed,
        "approved": bool(row.approved),
        "tags": tuple(row.tags.split()),
    }
    del fields["failed"]
    return Client(**fields)
