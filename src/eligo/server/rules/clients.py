"""Clients, and the terms on which a server works with them: quotas, pauses and trust."""

from dataclasses import dataclass, field

from eligo.server.rules.needs import Offer
from eligo.stores.service import ClientRow
from eligo.work.tries import Retries

DAY = 86_400.0
LEAST = 0.5  # the smallest quota, with which a client gets one task at a time


@dataclass(frozen=True, kw_only=True)
class ServerTerms:
    """The settings of a server; times are in seconds."""

    #: term of a lease without renewal, and the time after it in which the task is still kept for its client
    lease: float = 60.0
    grace: float = 20.0
    #: number of retries after failures and after lost clients
    retries: Retries = field(default_factory=Retries)
    #: maximum number of tasks that a client holds: initially, and after enough good results
    first_quota: float = 4.0
    most_quota: float = 1024.0
    #: number of consecutive failures after which a client gets no tasks for a while; each pause is longer than the last
    most_streak: int = 3
    first_pause: float = 60.0
    longest_pause: float = 900.0
    #: number of consecutive confirmed results after which a client is trusted: its results count without agreement
    trusted: int = 10
    #: share of a trusted client's results that need agreement nevertheless, to detect clients that turn dishonest
    spot_checks: float = 0.05
    #: number of disagreeing results beyond the quorum after which a task fails permanently
    most_disputes: int = 5
    #: maximum time that a request waits for work
    longest_wait: float = 60.0
    #: maximum number of workflows
    most_workflows: int = 10_000
    #: limits of preparing a workflow: seconds of processor time, plus one second per MiB; bytes of memory
    prepare_seconds: float = 30.0
    prepare_memory: int = 4 * 2**30
    #: maximum number of workflows that wait to be prepared; one owner may have a quarter of them
    most_preparing: int = 64
    #: maximum size of a workflow, so that its submission does not delay other requests
    most_tasks: int = 1_000_000
    most_arcs: int = 20_000_000
    #: maximum number of file names over all tasks; maximum bytes of the stored document
    most_names: int = 2_000_000
    most_document: int = 64 * 2**20
    #: time after which the server forgets unapproved clients and worthless tokens, and approved clients
    forget_strangers: float = DAY
    forget_clients: float = 30 * DAY
    #: time for which the server keeps files written by a workflow that has ended
    keep_results: float = 7 * DAY


@dataclass(slots=True)
class Client:
    """A client of the server. Each good result doubles its quota, the maximum number of its tasks; each failure halves it.

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
    #: by the wall clock
    created: float = 0.0
    approved: bool = True
    quota: float = 4.0
    #: numbers of consecutive failures, pauses, and results that other clients confirmed
    streak: int = 0
    pauses: int = 0
    valid: int = 0
    #: end of its pause, and time of its last call, by the server's monotonic clock
    paused: float = 0.0
    seen: float = 0.0
    #: time of its last call, as stored
    kept: float = float("-inf")
    done: int = 0
    failures: int = 0
    lost: int = 0
    #: total run time of its results
    seconds: float = 0.0
    #: number of tasks that it holds
    holds: int = 0
    #: its offer in its last request; None if it has sent none since the server started
    offer: Offer | None = None
    #: whether the server has answered that all work is finished
    dismissed: bool = False
    #: set by an operator: whether it gets no tasks until it is resumed, and its tags
    held: bool = False
    tags: tuple[str, ...] = ()

    def room(self, now: float, holds: int | None = None) -> int:
        """The number of tasks that it may get now, beside those that it holds."""
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
        """Record a failure of a task that has failed with no other client so far, or a result that others disagreed with."""
        self.failures += 1
        self.valid = 0
        self.streak += 1
        self.quota = max(LEAST, self.quota / 2)
        if self.streak >= terms.most_streak or self.quota < 1:
            self._pause(now, terms)

    def vanished(self, terms: ServerTerms) -> None:
        """Record the loss of a task that it held."""
        self.lost += 1
        self.valid = 0
        self.quota = max(1.0, self.quota / 2)

    def forgiven(self, terms: ServerTerms) -> None:
        """Undo the penalty for a failure, because the task has failed with another client too."""
        self.streak = max(0, self.streak - 1)
        self.quota = min(terms.most_quota, max(1.0, 2 * self.quota))
        self.paused = self.pauses = 0

    def _pause(self, now: float, terms: ServerTerms) -> None:
        self.quota = LEAST
        self.paused = now + min(terms.longest_pause, terms.first_pause * 2.0**self.pauses)
        self.pauses = min(self.pauses + 1, 30)

    def row(self, ahead: float) -> ClientRow:
        """Its row for the store; *ahead* is the lead of the wall clock over the server's monotonic clock."""
        return ClientRow(
            self.id, self.name, self.cores, self.created, self.seen + ahead, self.approved, self.quota, self.streak,
            self.pauses, self.paused + ahead, self.valid, self.done, self.failures, self.lost, self.seconds,
            self.held, " ".join(self.tags),
        )  # fmt: skip


def restore_client(row: ClientRow, ahead: float, now: float) -> Client:
    """The client of a stored row. Even if the wall clock was set meanwhile, its pause does not get longer.

    >>> row = Client("c-1", "ann", seen=500.0).row(ahead=1000.0)
    >>> restore_client(row, -80_000.0, 600.0).room(600.0)
    4
    """
    fields = row._asdict()
    remaining = min(row.paused - row.seen, row.paused - ahead - now)
    fields |= {
        "created": row.made,
        "seen": min(row.seen - ahead, now),
        "kept": row.seen - ahead,
        "paused": now + max(0.0, remaining),
        "failures": row.failed,
        "approved": bool(row.approved),
        "tags": tuple(row.tags.split()),
    }
    del fields["failed"], fields["made"]
    return Client(**fields)
