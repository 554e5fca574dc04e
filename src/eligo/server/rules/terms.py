"""What a server promises its clients, and what it asks of them."""

from dataclasses import dataclass, field

from eligo.work.tries import Retries

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class ServerTerms:
    """The settings of a server; times are in seconds."""

    #: how long a client keeps a task without a sign of life, and how much longer nobody else gets it
    lease: float = 60.0
    grace: float = 20.0
    #: how often a task is tried again after failures, and after its client was lost
    retries: Retries = field(default_factory=Retries)
    #: how many tasks a client may have at once: at first, and when it has shown what it can
    first_quota: float = 4.0
    most_quota: float = 1024.0
    #: after so many failures in a row a client is left without work for a while, longer each time
    most_streak: int = 3
    first_pause: float = 60.0
    longest_pause: float = 900.0
    #: after so many good results in a row a client is trusted: its results need nobody who agrees
    trusted: int = 10
    #: this share of its results does nevertheless: who is honest until it is trusted, and then lies, is found
    spot_checks: float = 0.05
    #: so many results beyond the quorum may disagree before a task is set aside
    most_disputes: int = 5
    #: how long a request may wait for work
    longest_wait: float = 60.0
    #: how many workflows at most
    most_workflows: int = 10_000
    #: limits of preparing a workflow: seconds of processor time, and a second more for each MiB; bytes of memory
    prepare_seconds: float = 30.0
    prepare_memory: int = 4 * 2**30
    #: how many workflows may wait to be prepared, a quarter of them of one owner
    most_preparing: int = 64
    #: how large a workflow may be, so that nobody waits long while it is taken in
    most_tasks: int = 1_000_000
    most_arcs: int = 20_000_000
    #: names of files, over all tasks; bytes of it as it is kept
    most_names: int = 2_000_000
    most_document: int = 64 * 2**20
    #: after so long nobody remembers a client that may not have work or a token that is worthless, and a client that may
    forget_strangers: float = DAY
    forget_clients: float = 30 * DAY
    #: how long the files are kept that a workflow made which has ended
    keep_results: float = 7 * DAY
