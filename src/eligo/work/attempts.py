"""An attempt at a task: its lease while it runs, the record of its result, and the end of its output.

Engines create the record from a worker's message, and servers from a client's; stores keep it, and pages and JSON derive
from it. A run has one workflow and trusts its workers, so it leaves *workflow*, *secret* and *key* empty. Its store numbers
attempts when it writes them; until then, *number* is that of the job. This module imports nothing else of eligo, since
workers import it too.
"""

from typing import NamedTuple

#: answers that runs and servers share: the result counts, the task failed, its worker or client was lost
ACCEPTED, FAILED, EXPIRED = "accepted", "failed", "expired"
#: answers for attempts whose worker or client was lost: not responding, or dead
LOSSES = frozenset({EXPIRED, "lost"})
#: the client of an attempt of a run whose outputs were taken from a cache
CACHE = "cache"


class Lease(NamedTuple):
    """A task assigned to a client. Numbers increase by one per lease of a workflow; the secret cannot be guessed.

    The leases of one grant share a secret, and *first* is the smallest of their numbers.
    """

    workflow: str
    number: int
    task: int
    attempt: int
    client: str
    secret: str
    key: str
    first: int
    since: float

    @property
    def id(self) -> str:
        """The lease as clients refer to it."""
        return f"{self.workflow}.{self.number}.{self.secret}"


class Attempt(NamedTuple):
    """An attempt at a task that has ended: its client, its times and its result.

    *number* is unique in its workflow; on a server it is that of the lease. *attempt* counts the attempts at the task.
    Besides `ACCEPTED`, `FAILED` and `EXPIRED`, a server answers "lost" if the client died, "dropped" if the task was released
    without a failure, and other answers that it gave the client.
    """

    workflow: str
    number: int
    task: int
    attempt: int
    client: str
    secret: str
    #: wall-clock times
    began: float
    ended: float
    answer: str
    #: the reason of the failure, in a few words
    failure: str | None = None
    #: the exit code of a command; negative: the signal that ended it
    code: int | None = None
    #: peak memory in bytes
    memory: int | None = None
    #: the digest that results are compared by, the end of the output, and the bytes of files that need not be sent
    digest: str | None = None
    tail: str | None = None
    saved: int = 0

    @property
    def lost(self) -> bool:
        """Whether its worker or client was lost, which is not a failure of the task."""
        return self.answer in LOSSES

    def failed(self, why: str, *, lost: bool = False) -> "Attempt":
        """This attempt with a different outcome."""
        return self._replace(answer=answer_to(why, lost), failure=why)


def answer_to(failure: str | None, lost: bool) -> str:
    """The word that a run records for the outcome of an attempt.

    >>> answer_to(None, False), answer_to("exit code 1", False), answer_to("stopped", True)
    ('accepted', 'failed', 'expired')
    """
    if failure is None:
        return ACCEPTED
    return EXPIRED if lost else FAILED


# The ends of standard output and standard error, combined into one text for transfer and storage

BETWEEN = "\x1e"  # the record separator of ASCII


def join_tails(out: str, err: str) -> str:
    """One text from both streams; standard output alone is unchanged.

    >>> join_tails("got it", ""), join_tails("", "oops")
    ('got it', '\\x1eoops')
    """
    out, err = (text.replace(BETWEEN, "\ufffd") for text in (out, err))
    return f"{out}{BETWEEN}{err}" if err else out


def split_tails(text: str) -> tuple[str, str]:
    """The standard output and the standard error in a combined text.

    >>> split_tails(join_tails("got it", "oops")), split_tails("got it")
    (('got it', 'oops'), ('got it', ''))
    """
    out, _, err = text.partition(BETWEEN)
    return out, err


def last_of(text: str) -> str:
    """The standard error in a combined text, or the standard output if that is empty.

    >>> last_of(join_tails("got it", "oops")), last_of("got it")
    ('oops', 'got it')
    """
    out, err = split_tails(text)
    return err or out
