"""The stored state of a server: the rows, the changes that are written together, and totals of outcomes.

A server answers once the changes behind the answer are stored. They contain everything that it needs to resume after a
crash: the journal of every workflow, the leases and their outcomes, and the clients.
"""

import json
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

from eligo.work.attempts import ACCEPTED, FAILED, Attempt, Lease
from eligo.work.tries import Tried


class WorkflowRow(NamedTuple):
    """A submitted workflow."""

    id: str
    key: str
    name: str
    owner: str
    share: float
    policy: str
    settings: str
    state: str
    made: float
    document: bytes
    plan: bytes | None
    #: number of lost leases; when it ended, and its `Sums` as text
    lost: int = 0
    ended: float | None = None
    tally: str | None = None


class Sums(NamedTuple):
    """The totals of an ended workflow: tasks, finished tasks, lost leases, reassigned tasks, bytes saved."""

    tasks: int
    done: int
    lost: int
    repeated: int
    saved: int

    def text(self) -> str:
        """The totals as stored.

        >>> Sums.read(Sums(3, 2, 1, 0, 0).text())
        Sums(tasks=3, done=2, lost=1, repeated=0, saved=0)
        """
        return json.dumps(self)

    @classmethod
    def read(cls, text: str) -> "Sums":
        """The totals that `text` wrote."""
        return cls(*json.loads(text))


class FileRow(NamedTuple):
    """A file of a workflow that the server has."""

    workflow: str
    name: str
    sha256: str
    size: int
    #: 1 if the owner uploaded it; 0 if a task wrote it
    given: int = 0


class ClientRow(NamedTuple):
    """A client, with its record of results."""

    id: str
    name: str
    cores: float
    made: float
    seen: float
    approved: bool
    quota: float
    streak: int
    pauses: int
    paused: float
    valid: int
    done: int
    failed: int
    lost: int
    seconds: float
    #: set by an operator: whether it gets no tasks for now, and its tags, separated by spaces
    held: bool = False
    tags: str = ""


class TokenRow(NamedTuple):
    """A token, by its SHA-256 in hexadecimal; the token itself is never stored."""

    hash: str
    #: what it allows, separated by spaces
    scopes: str
    #: the client to which it belongs, if any; its name for people
    client: str | None
    name: str
    #: when it was made, expires and was revoked, in seconds since 1970
    made: float
    expires: float | None = None
    revoked: float | None = None
    #: whether it waits for approval, is approved or refused
    state: str = "approved"
    #: the hash of the token that issued it; None if the server itself issued it, or a client asked for it
    parent: str | None = None

    @property
    def allows(self) -> frozenset[str]:
        """What it allows."""
        return frozenset(self.scopes.split())


class AdditionRow(NamedTuple):
    """Tasks that were added to a workflow together; see `packed_addition`."""

    workflow: str
    number: int
    tasks: str
    arcs: bytes


class Moves(NamedTuple):
    """Consecutive moves of one workflow; *first* is the place of the first one in its journal."""

    workflow: str
    first: int
    moves: "array[int]"


@dataclass(slots=True)
class Changes:
    """Changes that are written in one transaction, in this order."""

    #: deleted pages of outcomes: workflow, page; and deleted workflows, before one with the same key may be submitted
    pages_gone: list[tuple[str, int]] = field(default_factory=list)
    purged: list[tuple[str]] = field(default_factory=list)
    workflows: list[WorkflowRow] = field(default_factory=list)
    #: the state of a workflow, and its plan
    states: list[tuple[str, str]] = field(default_factory=list)
    plans: list[tuple[str, bytes]] = field(default_factory=list)
    #: the number of lost leases of a workflow
    losses: list[tuple[str, int]] = field(default_factory=list)
    #: when a workflow ended, and its tally
    endings: list[tuple[str, float, str]] = field(default_factory=list)
    additions: list[AdditionRow] = field(default_factory=list)
    moves: list[Moves] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    #: grants without active leases: workflow and first number; each of their leases has an outcome
    ended: list[tuple[str, int]] = field(default_factory=list)
    outcomes: list[Attempt] = field(default_factory=list)
    files: list[FileRow] = field(default_factory=list)
    #: manual retries: workflow, task, and the lease number up to which its outcomes no longer count
    retried: list[tuple[str, int, int]] = field(default_factory=list)
    #: workflow, task, signature
    signatures: list[tuple[str, str, str]] = field(default_factory=list)
    clients: list[ClientRow] = field(default_factory=list)
    #: whether a client is approved; the rows above do not change this for stored clients
    approvals: list[tuple[str, bool]] = field(default_factory=list)
    #: whether an operator holds a client, and its tags; the rows above do not change these either
    client_notes: list[tuple[str, bool, str]] = field(default_factory=list)
    tokens: list[TokenRow] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    #: deleted clients and tokens, and deleted files of ended workflows: workflow, name
    clients_gone: list[tuple[str]] = field(default_factory=list)
    tokens_gone: list[tuple[str]] = field(default_factory=list)
    files_gone: list[tuple[str, str]] = field(default_factory=list)
    #: parts of the document of a workflow that will be submitted: workflow, part, content
    parts: list[tuple[str, int, bytes]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in KINDS)

    def workflows_touched(self) -> set[str]:
        """The workflows with changes other than their submission."""
        return {row[0] for kind in OF_WORKFLOWS if kind != "workflows" for row in getattr(self, kind)}

    def without(self, workflows: Collection[str]) -> "Changes":
        """The changes without those of these workflows."""
        remaining = {kind: [row for row in getattr(self, kind) if row[0] not in workflows] for kind in OF_WORKFLOWS}
        return replace(self, **remaining)


#: seconds for which a server holds a workflow unless it extends the hold
HELD = 30.0
#: the kinds of changes, in the order in which they are written
KINDS = tuple(each.name for each in fields(Changes))
#: the kinds whose rows begin with the id of their workflow
OF_WORKFLOWS = KINDS[KINDS.index("workflows") : KINDS.index("clients")]


class Upshot(NamedTuple):
    """The outcomes of a workflow's ended leases."""

    #: the attempts at each task that has an outcome other than an accepted result
    tallies: dict[int, Tried]
    #: results that wait for others to agree: task, lease, client, digest; none from before a manual retry of the task
    votes: list[tuple[int, int, str, str]]
    #: numbers of accepted results and of leases after the first attempt, and the bytes of files that were not sent
    accepted: int
    repeated: int
    saved: int
    #: by task, the lease number up to which its outcomes no longer count, because the task was retried manually
    retried: dict[int, int]
    #: the last failure of each task that has failed since its last manual retry
    reasons: dict[int, str]


def upshot_of(ends: Iterable[Attempt], retried: dict[int, int]) -> Upshot:
    """A summary of these outcomes; outcomes up to the lease number that *retried* has for their task no longer count."""
    tallies, votes, reasons = dict[int, Tried](), list[tuple[int, int, str, str]](), dict[int, str]()
    accepted = repeated = saved = 0
    for end in ends:
        repeated += end.attempt > 1
        saved += end.saved
        if end.answer == ACCEPTED:
            accepted += 1
            continue
        counts = end.number > retried.get(end.task, 0)
        tallies[end.task] = tallies.get(end.task, Tried()).after(end.answer, counts)
        if counts and end.answer == FAILED and end.failure:
            reasons[end.task] = end.failure
        if counts and end.answer == "voted":
            votes.append((end.task, end.number, end.client, end.digest or ""))
    return Upshot(tallies, votes, accepted, repeated, saved, retried, reasons)
