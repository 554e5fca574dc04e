"""The state of a server: what is served, who has what until when, and what of it is still to be kept."""

import hmac
from collections.abc import KeysView, Sequence
from dataclasses import dataclass, field
from random import Random

from eligo.execution import HELD
from eligo.server.clients import Client
from eligo.server.deadlines import Deadlines
from eligo.server.remembering import Digests, Recent, Remembered
from eligo.server.served import BROKEN, ENDED, FINAL, RUNNING, Served
from eligo.server.terms import ServerTerms
from eligo.server.words import ResultWords
from eligo.stores.serving import Changes, Lease, LeaseEnd, Moves, WorkflowRow

MOST_DIGITS = 19  # of the number of a lease: more fit no database
SELDOM = 1.0  # seconds between two times that what is thought of clients is kept
MOST_RECENT = 10_000  # outcomes that are remembered at least, up to twice as many, beside those that are not kept yet
#: what a client brought of a lease
Brought = tuple[Lease, ResultWords]


@dataclass(eq=False)
class Books:
    """Everything that is served, to whom, and on what terms; every part of the rules writes in the same books."""

    terms: ServerTerms = field(default_factory=ServerTerms)
    #: how far the clock on the wall is ahead of `now`
    ahead: float = 0.0
    now: float = 0.0
    served: dict[str, Served] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    #: workflows that have ended, as they were then
    ended: dict[str, WorkflowRow] = field(default_factory=dict)
    random: Random = field(default_factory=Random)
    #: whether something may be ready for those who wait
    awake: bool = False
    #: leases that were lost, since the server began
    expired: int = 0
    #: leases that ended, since then
    ends: int = 0

    def __post_init__(self) -> None:
        self.changes = Changes()
        self._touched: set[str] = set()
        self._dirty: set[str] = set()
        self._urgent, self._told = False, 0.0
        self._over: set[str] = set()  # workflows that have ended just now
        self.due = Deadlines(self._out)
        self.recent = Recent()
        self._remembered = Remembered()

    # What is kept

    def take_changes(self) -> Changes | None:
        """What is to be kept of all that happened since this was asked before."""
        for workflow in self._touched:
            served = self.served[workflow]
            moves = served.execution.since(served.kept)
            if moves:
                self.changes.moves.append(Moves(workflow, served.kept, moves))
                served.kept += len(moves)
        if self._dirty and (self._urgent or self.now >= self._told + SELDOM):
            for client in self._dirty:
                self.changes.clients.append(self.clients[client].row(self.ahead))
                self.clients[client].kept = self.clients[client].seen
            self._dirty, self._urgent, self._told = set(), False, self.now
        self._touched = set()
        for workflow in [key for key in self._over if self.served[key].state in FINAL]:
            self._leave(self.served.pop(workflow))
        self._over = set()
        self.recent.age(MOST_RECENT)  # what was taken before is kept
        if not self.changes:
            return None
        found, self.changes = self.changes, Changes()
        return found

    def _leave(self, served: Served) -> None:
        self.ended[served.id] = served.row._replace(document=b"", plan=None)
        if served.digests is not None:
            self._remembered.add(served.id, served.digests)

    def digests_of(self, workflow: str) -> "Digests[int] | None":
        """The digests of the results of a workflow that were accepted; None where they must be read first."""
        served = self.served.get(workflow)
        return self._remembered.get(workflow) if served is None else served.digests

    def learn_digests(self, workflow: str, digests: "Digests[int]") -> None:
        """The same, as they were read."""
        served = self.served.get(workflow)
        if served is not None and served.digests is None:
            digests.frombytes(bytes(8 * (len(served.flow) - len(digests))))
            served.digests = digests
        elif workflow in self.ended:
            self._remembered.add(workflow, digests)

    def touch(self, served: Served) -> None:
        """A workflow's execution has moved."""
        self._touched.add(served.id)

    def note(self, client: str, urgent: bool = False) -> None:
        """What is thought of a client has changed; that is kept now and then, or, where *urgent*, with the next changes."""
        if client in self.clients:
            self._dirty.add(client)
            self._urgent |= urgent

    def forget_client(self, client: str) -> None:
        """A client is remembered no longer."""
        if client in self._dirty:
            self.changes.clients.append(self.clients[client].row(self.ahead))
            self._dirty.discard(client)
        del self.clients[client]

    def forget(self, workflow: str) -> None:
        """Another server holds a workflow: nothing that is known of it here counts, and nothing is written of it."""
        served = self.served.pop(workflow, None)
        self.ended.pop(workflow, None)
        self._remembered.forget(workflow)
        for lease in () if served is None else served.leases.values():
            if lease.client in self.clients:
                self.clients[lease.client].holds -= 1
        self.recent.forget(workflow)
        self.due.forget(workflow)
        self._touched.discard(workflow)
        self._over.discard(workflow)
        self.changes = self.changes.without({workflow})

    # Leases

    @property
    def wall(self) -> float:
        """What the clock on the wall shows."""
        return self.now + self.ahead

    @property
    def until(self) -> float:
        """When a lease ends that is given or renewed now."""
        return self.now + self.terms.lease + self.terms.grace

    def _out(self, workflow: str) -> KeysView[int]:
        """The numbers of the leases of a workflow."""
        return (self.served[workflow].leases if workflow in self.served else {}).keys()

    def find(self, parts: tuple[str, int, str], client: str) -> Lease | None:
        """A lease that this client has, by the parts of its id."""
        workflow, number, secret = parts
        served = self.served.get(workflow)
        lease = None if served is None else served.leases.get(number)
        return lease if lease is not None and lease.client == client and same(lease.secret, secret) else None

    def lose(self, served: Served, lease: Lease) -> None:
        """A client was not heard of for too long: what it has comes back."""
        client = self.clients.get(lease.client)
        begun = served.codes[lease.task] != HELD  # what waited for others was not tried
        self.end(served, [lease], "expired" if begun else "dropped", "its client was not heard of")
        served.lost += 1
        self.changes.losses.append((served.id, served.lost))
        if client is not None:
            client.vanished(self.terms)
            self.note(client.id)
            if not client.holds:
                served.allocator.gone(client.id)
        served.losses[lease.task] += begun
        if begun and served.losses[lease.task] > self.terms.retries.lost:
            self.set_aside(served, lease, "its clients were lost too often")
        else:
            served.come_back(lease.task)
        self.came_back(served)

    def end(self, served: Served, leases: Sequence[Lease], answer: str, failure: str | None = None) -> None:
        """Leases are no more, and nobody brought anything."""
        self._drop(served, leases)
        wall = self.wall
        self._keep([LeaseEnd(*lease[:6], lease.since, wall, answer, failure) for lease in leases])

    def bring(
        self, served: Served, came: Sequence[Brought], answer: str, failure: str | None = None
    ) -> tuple[list[LeaseEnd], float]:
        """Leases are no more; what their clients brought is kept under their numbers. Also how long the tasks took."""
        self._drop(served, [lease for lease, _ in came])
        ends, took = self._ends(came, answer, failure)
        self._keep(ends)
        return ends, took

    def recall(self, came: Brought, answer: str) -> None:
        """What a client was told of a result that came after its workflow had ended, in case it comes again."""
        self._remember(self._ends([came], answer, None)[0])

    def _drop(self, served: Served, leases: Sequence[Lease]) -> None:
        had, over = served.drop(leases)
        self.due.drop(served.id, [lease.number for lease in had])
        clients = self.clients
        for lease in had:
            if lease.client in clients:
                clients[lease.client].holds -= 1
        self.changes.ended += [(served.id, first) for first in over]

    def _ends(self, came: Sequence[Brought], answer: str, failure: str | None) -> tuple[list[LeaseEnd], float]:
        """What came of leases; and the seconds that clients say their tasks took, as far as they can be true."""
        wall, made, found, whole = self.wall, tuple.__new__, list[LeaseEnd](), 0.0  # by its name it takes twice as long
        for lease, told in came:
            took = told.seconds if told.seconds <= wall - lease.since else max(0.0, wall - lease.since)
            rest = (told.code, told.memory, told.digest, told.tail, told.saved)
            found.append(made(LeaseEnd, (*lease[:6], wall - took, wall, answer, failure, *rest)))
            whole += took
        return found, whole

    def _keep(self, ends: list[LeaseEnd]) -> None:
        self.changes.outcomes += ends
        self._remember(ends)

    def _remember(self, ends: list[LeaseEnd]) -> None:
        self.recent.add(ends)
        self.ends += len(ends)

    def came_back(self, served: Served) -> None:
        """A task came back undone: what waited for it has ended too, whoever had that."""
        self.end(served, served.orphans(), "dropped", "what it waits for came back")
        self.after(served)

    def after(self, served: Served) -> None:
        """Something may be ready now, or all may be over."""
        self._touched.add(served.id)
        self.awake = True
        if served.state != RUNNING or served.execution.idle:
            self.settle(served)

    # What becomes of tasks and workflows

    def enter(self, served: Served, state: str) -> None:
        """A workflow is in another state now."""
        served.state = state
        served.row = served.row._replace(state=state)
        self.changes.states.append((served.id, state))

    def settle(self, served: Served) -> None:
        """A workflow whose tasks are all done, or cannot be, has ended; one that can go on again does."""
        verdict = served.verdict
        if served.state == BROKEN and verdict != BROKEN:
            self.enter(served, RUNNING)
        if verdict is not None and served.state not in ENDED:
            self.close(served, verdict)

    def close(self, served: Served, state: str) -> None:
        """A workflow has ended: nobody needs what is out."""
        self.end(served, list(served.leases.values()), "dropped", f"the workflow is {state}")
        self.touch(served)
        self._over.add(served.id)
        self.enter(served, state)
        if state in FINAL:
            served.row = served.row._replace(lost=served.lost, ended=self.wall, tally=served.tally.text())
            self.changes.endings.append((served.id, self.wall, served.tally.text()))

    def set_aside(self, served: Served, lease: Lease, why: str) -> None:
        """A task waits, or is set aside for good; its descendants are futile then."""
        others = served.holding.get(lease.task)
        served.set_aside(lease.task)
        if not others:
            self.again_or_never(served, lease.task, why)

    def again_or_never(self, served: Served, task: int, why: str) -> None:
        """A task that failed is tried again later, unless it has been tried often enough."""
        retries = served.retries(self.terms.retries)
        failures, losses = served.failures[task], served.losses[task]
        disputed = len(served.votes.get(task, ())) >= served.wishes.quorum + self.terms.most_disputes
        if failures <= retries.most and losses <= retries.lost and not disputed:
            served.wait(task, self.now + retries.wait(max(1, failures), self.random))
        else:
            served.causes[task] = why


def parts_of(lease: str) -> tuple[str, int, str]:
    """The workflow, the number and the secret in the id of a lease; -1 for what is no number."""
    try:
        workflow, number, secret = lease.split(".", 2)
    except ValueError:
        return lease, -1, ""
    return workflow, int(number) if number.isdecimal() and len(number) < MOST_DIGITS else -1, secret


def same(secret: str, told: str) -> bool:
    """Whether two secrets are the same; how long that takes tells nothing of them."""
    return told.isascii() and hmac.compare_digest(secret, told)
