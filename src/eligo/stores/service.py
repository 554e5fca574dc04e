"""What a server keeps: the rows, what changes of them at once, and what a store of them does.

A server's answer is sent once the changes behind it are kept. What is kept is all that a server needs to go on after its
death: the journal of every workflow, who has what, what came of it, and who the clients are.
"""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from eligo.stores.packing import Added
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


class ServiceStore(Protocol):
    """Keeps what a server must not forget. One thread writes; the others only look.

    Several servers may be at one database. Each then holds workflows, by the clock of the database and no other: what a
    server keeps of a workflow is refused once another one holds that. What lies in a file is held by the one server there.
    """

    #: what its user should know of it, if anything
    remark: str | None
    #: whether other servers may be at it
    shared: bool
    #: where the server that is at it is found
    address: str

    def commit(self, changes: Sequence[Changes]) -> None:
        """Keep all of it or nothing; on the disk when this returns. New workflows are held by who submits them.

        `OSError` where that cannot be done now: the same changes may be given again, also with others, and are never kept
        twice. `InputError` where it never can: a row that is there already, or a text with a NUL character in it.
        `NotHeldError` where another server holds one of the workflows.
        """
        ...

    def prepare(self, changes: Sequence[Changes]) -> None:
        """The first half of `commit`: what is done without much waiting."""
        ...

    def finish(self) -> None:
        """The second half: wait until what was prepared is on the disk."""
        ...

    def hold(self, workflow: str) -> int | None:
        """Take a workflow for `HELD` seconds if no server holds it; returns its epoch, or None if another has it.

        A server that is at the address of the one that holds it comes after that one, and takes it at once.
        """
        ...

    def keep_holding(self, seconds: float) -> set[str]:
        """Extend the hold on all unfinished workflows of this server; returns them."""
        ...

    def let_go(self) -> None:
        """Hold nothing any more: others may take it at once."""
        ...

    def holders(self) -> dict[str, str]:
        """The address of the server that holds a workflow, by workflow."""
        ...

    def unheld(self) -> list[str]:
        """The workflows that go on and that `hold` would give this server, who does not hold them."""
        ...

    def workflow(self, id: str) -> WorkflowRow | None:
        """One workflow, with its document unless that is kept in parts."""
        ...

    def submitted(self, key: str) -> str | None:
        """The workflow that was submitted by the request of this key."""
        ...

    def states(self) -> dict[str, str]:
        """The state of every workflow, the first submitted first."""
        ...

    def workflows(self) -> list[WorkflowRow]:
        """Every workflow, the first submitted first; documents in parts, and of those that have ended, are empty."""
        ...

    def document(self, workflow: str) -> bytes:
        """The document of a workflow."""
        ...

    def additions(self, workflow: str) -> list[Added]:
        """What was added to a workflow, in order."""
        ...

    def moves(self, workflow: str) -> "array[int]":
        """Every move of a workflow."""
        ...

    def leases(self, workflow: str) -> list[Lease]:
        """Who has what of a workflow."""
        ...

    def last_number(self, workflow: str) -> int:
        """The largest number that a lease of a workflow ever had."""
        ...

    def upshot(self, workflow: str) -> Upshot:
        """The outcomes of ended leases."""
        ...

    def accepted(self, workflow: str) -> Iterator[tuple[int, str | None]]:
        """The digest of every result that was accepted, by task."""
        ...

    def outcome(self, workflow: str, number: int) -> Attempt | None:
        """The outcome of a lease."""
        ...

    def outcomes(self, workflow: str) -> Iterator[Attempt]:
        """Everything that came of a workflow's leases, in order of their numbers."""
        ...

    def pages(self, workflow: str) -> list[int]:
        """The pages on which outcomes of a workflow are kept."""
        ...

    def outcomes_from(self, workflow: str, first: int, most: int) -> list[Attempt]:
        """Outcomes from a lease number on, up to a limit."""
        ...

    def files(self, workflow: str) -> list[FileRow]:
        """The files of a workflow that are there."""
        ...

    def file(self, workflow: str, name: str) -> FileRow | None:
        """One of them."""
        ...

    def needed(self, hashes: Collection[str], since: float) -> set[str]:
        """Those of the files, by hash, that an unfinished workflow needs, or that one which ended since then has written."""
        ...

    def outdated(self, before: float, most: int) -> list[tuple[str, str]]:
        """Files of workflows that ended before a time, up to a limit: workflow and name."""
        ...

    def signatures(self, workflow: str) -> dict[str, str]:
        """The signatures of a workflow's tasks, by task."""
        ...

    def clients(self) -> list[ClientRow]:
        """Every client."""
        ...

    def client(self, id: str) -> ClientRow | None:
        """One client."""
        ...

    def token(self, hash: str) -> TokenRow | None:
        """One token."""
        ...

    def tokens(self) -> list[TokenRow]:
        """Every token."""
        ...

    def facts(self) -> dict[str, str]:
        """What else is known."""
        ...

    def backup(self, path: str | Path) -> None:
        """A copy as of one moment, while the store is used."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
