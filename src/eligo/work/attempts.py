"""An attempt at a task: the lease while it is out, and the one record of what came of it.

Engines make it from what a worker sends, and servers from what a client sends; stores keep it, and pages and JSON are made
from it. A run has one workflow and trusts its workers, so it leaves *workflow*, *secret* and *key* empty; its store numbers
attempts as it keeps them, and until then they have the number of their job. Nothing else of eligo is imported, since workers
import this too.
"""

from typing import NamedTuple

#: the answers that both runs and servers give: the result counts, the task failed, its worker or client was lost
ACCEPTED, FAILED, EXPIRED = "accepted", "failed", "expired"
#: the answers of attempts whose workers or clients were lost: not heard of, or dead
LOSSES = frozenset({EXPIRED, "lost"})


class Lease(NamedTuple):
    """A task that a client has. The number is one more for every lease of its workflow; the secret nobody can guess.

    Those of one grant have one secret, and *first* is the smallest of their numbers.
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
        """How its holder names it."""
        return f"{self.workflow}.{self.number}.{self.secret}"


class Attempt(NamedTuple):
    """One attempt at a task that has ended: who made it, when, and what came of it.

    *number* is unique in its workflow; on a server it is that of the lease. *attempt* counts the attempts at the task.
    Beside `ACCEPTED`, `FAILED` and `EXPIRED`, a server answers "lost" where the client died, "dropped" where the task
    went back for a reason that counts against nobody, and whatever else it told the client.
    """

    workflow: str
    number: int
    task: int
    attempt: int
    client: str
    secret: str
    #: by the clock on the wall
    began: float
    ended: float
    answer: str
    #: why it did not go well, in a few words
    failure: str | None = None
    #: the exit code of a command; negative: the signal that ended it
    code: int | None = None
    #: the most memory that it had, in bytes
    memory: int | None = None
    #: what its result is compared by, the last that it printed, and the bytes of files that did not need to travel
    digest: str | None = None
    tail: str | None = None
    saved: int = 0

    @property
    def lost(self) -> bool:
        """Whether its worker or client was lost, which is not the task's doing."""
        return self.answer in LOSSES

    def failed(self, why: str, *, lost: bool = False) -> "Attempt":
        """The same attempt with another end."""
        return self._replace(answer=answer_to(why, lost), failure=why)


def answer_to(failure: str | None, lost: bool) -> str:
    """What a run makes of an attempt.

    >>> answer_to(None, False), answer_to("exit code 1", False), answer_to("stopped", True)
    ('accepted', 'failed', 'expired')
    """
    if failure is None:
        return ACCEPTED
    return EXPIRED if lost else FAILED
