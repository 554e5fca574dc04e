"""The state of a server: its workflows, clients and leases, and the changes that are not stored yet."""

import hmac
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, KeysView, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import Random
from typing import NamedTuple

from eligo.execution import ALLOCATED, ELIGIBLE, FAILED, HELD
from eligo.rows import Ints
from eligo.server.rules.agenda import Agenda, Deadlines
from eligo.server.rules.clients import Client, ServerTerms
from eligo.server.rules.document import pack_plan
from eligo.server.rules.needs import Offer, Unmet
from eligo.server.rules.outcomes import Digests, Recent, Remembered
from eligo.server.rules.served import BROKEN, ENDED, FINAL, RUNNING, Served
from eligo.server.schema import ResultWords
from eligo.stores.database import packed_addition
from eligo.stores.service import AdditionRow, Changes, Moves, WorkflowRow
from eligo.work.attempts import Attempt, Lease
from eligo.work.tries import Next, Retries

MOST_DIGITS = 19  # lease numbers have fewer digits: longer ones do not fit into a database column
SELDOM = 1.0  # seconds between two writes of changed client records
MOST_RECENT = 10_000  # outcomes in memory, up to twice as many, besides those that are not stored yet
#: a lease, and the result that its client delivered
Brought = tuple[Lease, ResultWords]


class LeaseId(NamedTuple):
    """The parts of a lease id, as a client sends them; the number is -1 if it is invalid."""

    workflow: str
    number: int
    secret: str


class Unavailable(NamedTuple):
    """A workflow that could not be restored from the store, and why."""

    row: WorkflowRow
    reason: str


@dataclass(eq=False)
class Books:
    """The shared state that every part of the rules reads and writes: workflows, clients, leases and settings."""

    terms: ServerTerms = field(default_factory=ServerTerms)
    #: seconds by which the wall clock is ahead of `now`
    ahead: float = 0.0
    now: float = 0.0
    served: dict[str, Served] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    #: workflows that have ended, as they were then
    ended: dict[str, WorkflowRow] = field(default_factory=dict)
    #: workflows that could not be restored; the next start tries again
    unavailable: dict[str, Unavailable] = field(default_factory=dict)
    random: Random = field(default_factory=Random)
    #: the owner of a client's token, None if unknown; without tokens, each client is its own owner
    token_owner: Callable[[str], str | None] = lambda client: client
    #: since the server started: lost leases, scheduled retries of failed tasks, and permanently failed tasks
    expired: int = 0
    retries: int = 0
    failed: int = 0
    #: leases that have ended since the server started
    ends: int = 0

    def __post_init__(self) -> None:
        self.changes = Changes()
        self.agenda = Agenda()
        self._touched: set[str] = set()
        self._dirty: set[str] = set()
        self._urgent, self._clients_at = False, 0.0  # `_clients_at`: when client records were last written
        self._over: set[str] = set()  # workflows that have ended since the last `take_changes`
        self.due = Deadlines(self._active)
        self.recent = Recent()
        self._remembered = Remembered()
        # when the offers of connected clients were last collected, and the offers
        self._offers: tuple[float, frozenset[Offer | None]] = (-inf, frozenset())
        #: clients whose room for tasks may have changed since their waiting requests were last checked
        self.roomier = set[str]()
        #: the number of tasks of each client that only other servers know
        self.strangers: Counter[str] = Counter()
        #: the hashes of temporary files that no task needs any more, and after how many seconds without use each is removed
        self.spent = dict[str, float]()

    # Changes to store

    @property
    def moved(self) -> list[Served]:
        """The workflows with changes that are not stored yet."""
        return [self.served[workflow] for workflow in self._touched | self._over]

    def take_changes(self) -> Changes | None:
        """The changes to store since the last call; None if there are none."""
        for workflow in self._touched:
            served = self.served[workflow]
            for number, added in enumerate(served.execution.additions[served.grown :], served.grown):
                self.changes.additions.append(AdditionRow(workflow, number, *packed_addition(*added)))
            plan = pack_plan(served.order, None, served.reference) if served.has_grown else None
            if plan is not None:
                self.changes.plans.append((workflow, plan))
            served.grown = len(served.execution.additions)
            moves = served.execution.since(served.kept)
            if moves:
                self.changes.moves.append(Moves(workflow, served.kept, moves))
                served.kept += len(moves)
        if self._dirty and (self._urgent or self.now >= self._clients_at + SELDOM):
            for client in self._dirty:
                self.changes.clients.append(self.clients[client].row(self.ahead))
                self.clients[client].kept = self.clients[client].seen
            self._dirty, self._urgent, self._clients_at = set(), False, self.now
        self._touched = set()
        for workflow in [key for key in self._over if self.served[key].state in FINAL]:
            self._leave(self.served.pop(workflow))
        self._over = set()
        self.recent.age(MOST_RECENT)  # the changes of earlier calls are stored by now
        if not self.changes:
            return None
        changes, self.changes = self.changes, Changes()
        return changes

    def _leave(self, served: Served) -> None:
        self.agenda.forget(served.id)
        self.ended[served.id] = served.row._replace(document=b"", plan=None)
        if served.digests is not None:
            self._remembered.add(served.id, served.digests)

    def digests_of(self, workflow: str) -> "Digests[int] | None":
        """The digests of a workflow's accepted results; None if they must be read from the store first."""
        served = self.served.get(workflow)
        return self._remembered.get(workflow) if served is None else served.digests

    def learn_digests(self, workflow: str, digests: "Digests[int]") -> None:
        """Set the digests of a workflow's accepted results, as read from the store."""
        served = self.served.get(workflow)
        if served is not None and served.digests is None:
            digests.frombytes(bytes(8 * (len(served.flow) - len(digests))))
            served.digests = digests
        elif workflow in self.ended:
            self._remembered.add(workflow, digests)

    def row_of(self, workflow: str) -> WorkflowRow | None:
        """The row of a workflow in any state; None if it is unknown here."""
        present = self.served.get(workflow) or self.unavailable.get(workflow)
        return self.ended.get(workflow) if present is None else present.row

    def touch(self, served: Served) -> None:
        """Mark a workflow whose execution has changed."""
        self._touched.add(served.id)

    def note(self, client: str, urgent: bool = False) -> None:
        """Mark a client record as changed; it is stored with the next changes if *urgent*, else at most once per second."""
        if client in self.clients:
            self.roomier.add(client)
            self._dirty.add(client)
            self._urgent |= urgent

    def forget_client(self, client: str) -> None:
        """Remove a client from memory."""
        if client in self._dirty:
            self.changes.clients.append(self.clients[client].row(self.ahead))
            self._dirty.discard(client)
        del self.clients[client]

    def forget(self, workflow: str) -> None:
        """Drop a workflow, such as one that another server holds, with all its changes that are not stored yet."""
        served = self.served.pop(workflow, None)
        self.ended.pop(workflow, None)
        self.unavailable.pop(workflow, None)
        self._remembered.forget(workflow)
        for lease in () if served is None else served.leases.values():
            self.hold(lease.client, -1)
        self.agenda.forget(workflow)
        self.recent.forget(workflow)
        self.due.forget(workflow)
        self._touched.discard(workflow)
        self._over.discard(workflow)
        self.changes = self.changes.without({workflow})

    # Clients

    def gone_at(self, client: Client) -> float:
        """When a client counts as gone unless it calls again: when its leases expire."""
        return client.seen + self.terms.lease + self.terms.grace

    def is_alive(self, client: Client) -> bool:
        """Whether a client has called within the term of a lease."""
        return self.now < self.gone_at(client)

    def connected(self) -> Iterator[Client]:
        """The approved clients that have called within the term of a lease."""
        return (client for client in self.clients.values() if client.approved and self.is_alive(client))

    def here_until(self, id: Hashable) -> float:
        """Until when a client counts as alive if it does not call again; -inf if it gets no tasks."""
        client = self.clients.get(str(id))
        if client is None:  # a client that only another server knows is lost when its lease expires
            return inf if id in self.strangers else -inf
        works = client.approved and not client.held and client.paused <= self.now
        return self.gone_at(client) if works else -inf

    def unmet(self, served: Served, tasks: Ints) -> list[Unmet]:
        """The needs of these tasks that no connected client meets; empty while a connected client has sent no offer."""
        if not served.needs.demanding or served.state in ENDED:
            return []
        offers = self._offers_here()
        declared = {offer for offer in offers if offer is not None}
        return served.needs.unmet(declared, tasks) if len(declared) == len(offers) else []

    def learn_offer(self, client: Client, offer: Offer) -> None:
        """Record the offer of a client."""
        if client.offer != offer:
            client.offer, self._offers = offer, (-inf, frozenset())

    def _offers_here(self) -> frozenset[Offer | None]:
        """The offers of connected clients, at most a second old, because many workflows are described at once."""
        if self.now - self._offers[0] >= SELDOM:
            self._offers = self.now, frozenset(client.offer for client in self.connected())
        return self._offers[1]

    # Leases

    @property
    def wall(self) -> float:
        """The time of the wall clock."""
        return self.now + self.ahead

    @property
    def until(self) -> float:
        """When a lease that is granted or renewed now expires."""
        return self.now + self.terms.lease + self.terms.grace

    def hold(self, client: str, tasks: int) -> None:
        """Change the number of tasks that a client holds, whether it is known here or not."""
        if client in self.clients:
            self.clients[client].holds += tasks
            self.roomier.add(client)
        else:
            self.strangers[client] += tasks
            if not self.strangers[client]:
                del self.strangers[client]

    def _active(self, workflow: str) -> KeysView[int]:
        """The numbers of the active leases of a workflow."""
        return (self.served[workflow].leases if workflow in self.served else {}).keys()

    def find(self, id: LeaseId, client: str) -> Lease | None:
        """The lease with this id, if this client holds it."""
        served = self.served.get(id.workflow)
        lease = None if served is None else served.leases.get(id.number)
        return lease if lease is not None and lease.client == client and same(lease.secret, id.secret) else None

    def lose(self, served: Served, lease: Lease, answer: str, why: str) -> None:
        """Return a task whose client stopped responding or died."""
        client = self.clients.get(lease.client)
        if served.codes[lease.task] == HELD:  # a task that waited for others was not attempted
            answer = "dropped"
        self.end(served, [lease], answer, why)
        served.lost += 1
        self.expired += 1
        self.changes.losses.append((served.id, served.lost))
        if client is not None:
            client.vanished(self.terms)
            self.note(client.id)
            if not client.holds:
                served.allocator.gone(client.id)
        served.tries.count(lease.task, lease.number, answer)
        self.come_back(served, lease.task)
        self.came_back(served)

    def end(self, served: Served, leases: Sequence[Lease], answer: str, failure: str | None = None) -> None:
        """End leases without results."""
        self._drop(served, leases)
        wall = self.wall
        self._keep([Attempt(*lease[:6], lease.since, wall, answer, failure) for lease in leases])

    def bring(
        self, served: Served, came: Sequence[Brought], answer: str, failure: str | None = None
    ) -> tuple[list[Attempt], float]:
        """End leases with results, which are stored by lease number; returns the attempts and their total run time."""
        self._drop(served, [lease for lease, _ in came])
        ends, took = self._ends(came, answer, failure)
        self._keep(ends)
        return ends, took

    def _drop(self, served: Served, leases: Sequence[Lease]) -> None:
        had, over = served.drop(leases)
        self.due.drop(served.id, [lease.number for lease in had])
        for lease in had:
            self.hold(lease.client, -1)
        self.changes.ended += [(served.id, first) for first in over]

    def _ends(self, came: Sequence[Brought], answer: str, failure: str | None) -> tuple[list[Attempt], float]:
        """The attempts of leases, and the total seconds that clients report, each limited to the age of its lease."""
        wall, attempts, total = self.wall, list[Attempt](), 0.0
        make = tuple.__new__  # calling the class by its name takes twice as long
        for lease, result in came:
            took = result.seconds if result.seconds <= wall - lease.since else max(0.0, wall - lease.since)
            rest = (result.code, result.memory, result.digest, result.tail, result.saved)
            attempts.append(make(Attempt, (*lease[:6], wall - took, wall, answer, failure, *rest)))
            total += took
        return attempts, total

    def _keep(self, ends: list[Attempt]) -> None:
        self.changes.outcomes += ends
        self.recent.add(ends)
        self.ends += len(ends)

    def came_back(self, served: Served) -> None:
        """End the leases of tasks that waited for a returned task."""
        self.end(served, served.orphans(), "dropped", "a task that it depends on was returned")
        self.after(served)

    def after(self, served: Served) -> None:
        """Update a workflow after a change that may have made tasks ready or ended it."""
        self._touched.add(served.id)
        self.agenda.stir(served)
        if served.state != RUNNING or served.execution.idle:
            self.settle(served)

    # States of tasks and workflows

    def enter(self, served: Served, state: str) -> None:
        """Change the state of a workflow."""
        served.state = state
        served.row = served.row._replace(state=state)
        self.agenda.stir(served)
        self.changes.states.append((served.id, state))

    def settle(self, served: Served) -> None:
        """End a workflow whose tasks are all finished or can no longer run; resume a failed one that can run again."""
        verdict = served.verdict
        if served.state == BROKEN and verdict != BROKEN:
            self.enter(served, RUNNING)
        if verdict is not None and served.state not in ENDED:
            self.close(served, verdict)

    def close(self, served: Served, state: str) -> None:
        """Close a workflow and drop its leases."""
        self.end(served, list(served.leases.values()), "dropped", f"the workflow is {state}")
        self.touch(served)
        self._over.add(served.id)
        self.enter(served, state)
        if state in FINAL:
            served.row = served.row._replace(lost=served.lost, ended=self.wall, tally=served.tally.text())
            self.changes.endings.append((served.id, self.wall, served.tally.text()))

    def come_back(self, served: Served, task: int, failure: str | None = None) -> None:
        """Return a task of a client, after a *failure* or not: it becomes ready, retrying or permanently failed."""
        following = served.tries.after(task, failure, self._retries_of(served))
        if following is Next.READY:
            served.come_back(task)
            return
        served.fail(task)
        if task not in served.holding:
            self._again_or_never(served, task, failure)
        elif following is Next.FAIL:
            served.allocator.copy_no_more(task)

    def _retries_of(self, served: Served) -> Retries:
        return served.retries(self.terms.retries)

    def _is_disputed(self, served: Served, task: int) -> bool:
        """Whether results of a task disagree so often that it fails permanently."""
        return task in served.votes and len(served.voters(task)) >= served.wishes.quorum + self.terms.most_disputes

    def _again_or_never(self, served: Served, task: int, failure: str | None) -> None:
        """Schedule the retry of a failed task, unless its retries are used up; *failure* is its last one."""
        until = served.tries.again_or_never(task, failure, self.now, self._retries_of(served), self.random)
        again = self._set_alarm(served, until)
        self.retries += again
        self.failed += not again

    def restore_retry(self, served: Served, task: int) -> None:
        """Schedule the retry of a failed task of a restored workflow, unless its retries are used up."""
        # no retry is scheduled yet: `reconsider` would search them all for each task
        cause = served.tries.take_up(task)
        until = served.tries.again_or_never(task, cause, self.now, self._retries_of(served), self.random)
        self._set_alarm(served, until)

    def _set_alarm(self, served: Served, until: float | None) -> bool:
        """Set the alarm for a retry; returns whether there is one."""
        if until is not None:
            self.agenda.alarms.set(served.id, until)
        return until is not None

    def reconsider(self, served: Served, task: int, failure: str | None = None) -> None:
        """Update a task that was returned earlier, because the outcome of one of its attempts has changed."""
        code = served.codes[task]
        if code in {ELIGIBLE, ALLOCATED} and served.tries.spent(task, self._retries_of(served)) is None:
            return
        if code == ALLOCATED:
            served.allocator.copy_no_more(task)
        elif code == ELIGIBLE:
            served.execution.take_numbers([task])
            served.fail(task)
            self._again_or_never(served, task, failure)
        elif code == FAILED:
            newly = task not in served.tries.causes
            until = served.tries.reconsider(task, failure, self.now, self._retries_of(served), self.random)
            again = self._set_alarm(served, until)
            self.failed += newly and not again

    def connect(self, served: Served) -> None:
        """Give a workflow the owners of clients, and the limit of disagreeing results."""
        served.owner_of = self.owner_of
        served.tries.is_disputed = partial(self._is_disputed, served)

    def owner_of(self, client: str) -> str | None:
        """The owner for whom a client's result counts as a vote; None if it does not count, as for a revoked client."""
        record = self.clients.get(client)
        return self.token_owner(client) if record is not None and record.approved else None

    def owners_here(self) -> set[str]:
        """The owners of the connected clients."""
        owners = {self.owner_of(client.id) for client in self.connected()}
        return {owner for owner in owners if owner is not None}


def parts_of(lease: str) -> LeaseId:
    """The parts of a lease id."""
    try:
        workflow, number, secret = lease.split(".", 2)
    except ValueError:
        return LeaseId(lease, -1, "")
    valid = number.isdecimal() and len(number) < MOST_DIGITS
    return tuple.__new__(LeaseId, (workflow, int(number) if valid else -1, secret))  # a call by its name takes longer


def same(secret: str, other: str) -> bool:
    """Whether two secrets are equal, in constant time."""
    return other.isascii() and hmac.compare_digest(secret, other)
