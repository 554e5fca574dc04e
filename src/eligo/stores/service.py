"""What a server keeps: the rows, what changes of them at once, and what a store of them does.

A server's answer is sent once the changes behind it are kept. What is kept is all that a server needs to go on after its
death: the journal of every workflow, who has what, what came of it, and who the clients are.
"""

import json
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

from eligo.work.attempts import ACCEPTED, FAILED, LOSSES, Attempt, Lease


class WorkflowRow(NamedTuple):
    """A workflow that was submitted."""

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
    #: leases that were lost so far; when it ended, and its `Sums` as a text
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
        """As it is kept.

        >>> Sums.read(Sums(3, 2, 1, 0, 0).text())
        Sums(tasks=3, done=2, lost=1, repeated=0, saved=0)
        """
        return json.dumps(self)

    @classmethod
    def read(cls, text: str) -> "Sums":
        """As it was kept."""
        return cls(*json.loads(text))


class FileRow(NamedTuple):
    """A file of a workflow that is there."""

    workflow: str
    name: str
    sha256: str
    size: int
    #: 1 where it was given with the workflow, and not made by a task
    given: int = 0


class ClientRow(NamedTuple):
    """A client, and what is thought of it."""

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
    #: what an operator says of it: whether it gets no tasks for now, and its tags, with blanks between
    held: bool = False
    tags: str = ""


class TokenRow(NamedTuple):
    """What is known of a token: never the token itself."""

    hash: str
    scopes: str
    client: str | None
    name: str
    made: float
    expires: float | None
    revoked: float | None
    #: whether it waits for approval, is approved or refused
    state: str
    #: the hash of the token with which it was made, if any
    parent: str | None = None


class AdditionRow(NamedTuple):
    """Tasks that were added to a workflow at once; see `packed_addition`."""

    workflow: str
    number: int
    tasks: str
    arcs: bytes


class Moves(NamedTuple):
    """Moves of one workflow, from the first of them on."""

    workflow: str
    first: int
    moves: "array[int]"


@dataclass(slots=True)
class Changes:
    """What is to be kept at once, all or nothing, in this order."""

    #: pages of outcomes that are forgotten: workflow, page; and workflows of which nothing is kept any more, before
    #: another one may be submitted with the same key
    pages_gone: list[tuple[str, int]] = field(default_factory=list)
    purged: list[tuple[str]] = field(default_factory=list)
    workflows: list[WorkflowRow] = field(default_factory=list)
    #: the state of a workflow, and the order of its plan
    states: list[tuple[str, str]] = field(default_factory=list)
    plans: list[tuple[str, bytes]] = field(default_factory=list)
    #: how many leases of a workflow were lost so far
    losses: list[tuple[str, int]] = field(default_factory=list)
    #: when a workflow ended, and its tally
    endings: list[tuple[str, float, str]] = field(default_factory=list)
    additions: list[AdditionRow] = field(default_factory=list)
    moves: list[Moves] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    #: grants of which nothing is out any more: workflow and first number; each of their leases has an outcome
    ended: list[tuple[str, int]] = field(default_factory=list)
    outcomes: list[Attempt] = field(default_factory=list)
    files: list[FileRow] = field(default_factory=list)
    #: workflow, task, and the number up to which what came of its leases does not count any more
    retried: list[tuple[str, int, int]] = field(default_factory=list)
    #: workflow, task, signature
    signatures: list[tuple[str, str, str]] = field(default_factory=list)
    clients: list[ClientRow] = field(default_factory=list)
    #: whether a client may have work, which rows of clients that are there already do not change
    approvals: list[tuple[str, bool]] = field(default_factory=list)
    #: whether an operator holds a client, and its tags; rows of clients do not change these either
    client_notes: list[tuple[str, bool, str]] = field(default_factory=list)
    tokens: list[TokenRow] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    #: clients and tokens that are forgotten, and files of workflows that have ended: workflow, name
    clients_gone: list[tuple[str]] = field(default_factory=list)
    tokens_gone: list[tuple[str]] = field(default_factory=list)
    files_gone: list[tuple[str, str]] = field(default_factory=list)
    #: parts of the document of a workflow that is about to be submitted: workflow, part, content
    parts: list[tuple[str, int, bytes]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in KINDS)

    def workflows_touched(self) -> set[str]:
        """The workflows that something is kept of."""
        return {row[0] for kind in OF_WORKFLOWS if kind != "workflows" for row in getattr(self, kind)}

    def without(self, workflows: Collection[str]) -> "Changes":
        """All of it but what is of these workflows."""
        remaining = {kind: [row for row in getattr(self, kind) if row[0] not in workflows] for kind in OF_WORKFLOWS}
        return replace(self, **remaining)


#: seconds for which a server holds a workflow that it takes
HELD = 30.0
#: the kinds of changes, in the order in which they are kept
KINDS = tuple(each.name for each in fields(Changes))
#: those whose rows begin with the workflow that they are of
OF_WORKFLOWS = KINDS[KINDS.index("workflows") : KINDS.index("clients")]


class Tried(NamedTuple):
    """The attempts at a task so far, and its failures and lost leases since its last manual retry."""

    tries: int = 0
    failures: int = 0
    losses: int = 0


class Upshot(NamedTuple):
    """The outcomes of a workflow's ended leases."""

    #: how often each task was tried that has any outcome but one that was accepted
    tallies: dict[int, Tried]
    #: the results that wait for others to agree: task, lease, client, digest; none of before a task was to be tried again
    votes: list[tuple[int, int, str, str]]
    #: how many results were accepted, how many leases were of tasks handed out before, and the bytes that did not travel
    accepted: int
    repeated: int
    saved: int
    #: the numbers up to which what came of a task's leases does not count any more
    retried: dict[int, int]
    #: why each task failed last, of those that failed since somebody had them tried again
    reasons: dict[int, str]


def upshot_of(ends: Iterable[Attempt], retried: dict[int, int]) -> Upshot:
    """The upshot from the outcome of each lease, and the lease numbers up to which outcomes no longer count, by task."""
    tallies, votes, reasons = dict[int, Tried](), list[tuple[int, int, str, str]](), dict[int, str]()
    accepted = repeated = saved = 0
    for end in ends:
        repeated += end.attempt > 1
        saved += end.saved
        if end.answer == ACCEPTED:
            accepted += 1
            continue
        counts = end.number > retried.get(end.task, 0)
        tries, failures, losses = tallies.get(end.task, Tried())
        failed, lost = counts and end.answer == FAILED, counts and end.answer in LOSSES
        tallies[end.task] = Tried(tries + 1, failures + failed, losses + lost)
        if failed and end.failure:
            reasons[end.task] = end.failure
        if counts and end.answer == "voted":
            votes.append((end.task, end.number, end.client, end.digest or ""))
    return Upshot(tallies, votes, accepted, repeated, saved, retried, reasons)
