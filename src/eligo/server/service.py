"""The rules of the server, without a network, a disk or a clock: time is passed in, and what must be kept is given out.

Each move changes the state at once and leaves what is to be kept in `take_changes`; whoever speaks for the service answers
nobody before that is kept. `now` is a clock that only goes forward; how far the clock on the wall is ahead of it is fixed
when the service begins, so that nobody loses a task because somebody set a clock.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence

from eligo.errors import InputError
from eligo.execution import FAILED, Execution
from eligo.rows import Ints
from eligo.server.asking import Request, Ticket
from eligo.server.books import Books, parts_of
from eligo.server.clients import Client, remembered
from eligo.server.delivering import Deliveries
from eligo.server.packing import packed_plan
from eligo.server.preparing import Prepared, new_row
from eligo.server.recalling import recalled
from eligo.server.remembering import UNKNOWN, Archive, ForgottenError
from eligo.server.requesting import Requests
from eligo.server.served import CANCELLED, FINAL, PAUSED, RUNNING, Served
from eligo.server.terms import ServerTerms
from eligo.server.words import ResultWords
from eligo.stores.serving import Changes, ClientRow, FileRow, ServiceStore, WorkflowRow

NOTHING = Archive()


class Service:
    """What a server does, one method a move.

    *archive* has what is kept and no longer in memory; *has_file* says whether a file with this hash is there.
    """

    def __init__(
        self,
        terms: ServerTerms | None = None,
        *,
        ahead: float = 0.0,
        archive: Archive = NOTHING,
        has_file: Callable[[str], bool] = lambda sha256: True,
    ) -> None:
        self.books = Books(terms or ServerTerms(), ahead)
        self.requests = Requests(self.books)
        self.results = Deliveries(self.books, has_file)
        self.archive, self.has_file = archive, has_file
        self._submitted: dict[str, str] = {}  # workflows by the keys of their requests

    @property
    def served(self) -> dict[str, Served]:
        """The workflows that are served, by id."""
        return self.books.served

    @property
    def clients(self) -> dict[str, Client]:
        """The clients, by id."""
        return self.books.clients

    def take_changes(self) -> Changes | None:
        """What is to be kept of all that happened since this was asked before."""
        return self.books.take_changes()

    def restore(self, now: float, store: ServiceStore, workflows: Iterable[WorkflowRow] | None = None) -> None:
        """Go on with what was kept; whoever had a task has it for a whole lease more."""
        self.clients.update((row.id, remembered(row, self.books.ahead, now)) for row in store.clients())
        for row in store.workflows() if workflows is None else workflows:
            if row.state in FINAL:
                self.ended(row)
            else:
                self.adopt(now, self.recalled(row, store))

    def recalled(self, row: WorkflowRow, store: ServiceStore) -> Served:
        """A workflow as it was kept, for `adopt`; this may take its time in another thread."""
        return recalled(row, store, lambda: self.books.now)

    def ended(self, row: WorkflowRow) -> None:
        """A workflow has ended, here or elsewhere."""
        self._submitted[row.key] = row.id
        self.books.ended[row.id] = row

    def adopt(self, now: float, served: Served) -> None:
        """Go on with a workflow; whoever had a task has it for a whole lease more."""
        self.books.now = now
        self._submitted[served.row.key] = served.id
        self.served[served.id] = served
        self.requests.recall(served)
        for lease in served.leases.values():
            self.books.due.add(served.id, [lease.number], self.books.until)
            if lease.client in self.clients:
                self.clients[lease.client].holds += 1
        for task in list(served.execution.numbers(FAILED)):
            self.books.again_or_never(served, task, "it failed too often")
        self.books.came_back(served)

    def forget(self, workflows: Iterable[str]) -> None:
        """Other servers hold these workflows: they are no longer served here."""
        lost = set(workflows)
        for workflow in lost:
            self.books.forget(workflow)
            self.requests.forget(workflow)
        self._submitted = {key: id for key, id in self._submitted.items() if id not in lost}

    # Workflows

    def built(self, now: float, ready: Prepared, key: str) -> Served:
        """A workflow for `submit`, with all that takes long; this may take its time in another thread."""
        row = new_row(ready, f"w-{secrets.token_hex(5)}", key, now + self.books.ahead, RUNNING)
        served = Served(row, ready.flow, Execution(ready.flow), ready.order, lambda: self.books.now)
        served.ceiling = ready.ceiling
        served.make_ready()
        return served

    def submit(self, now: float, ready: Prepared | Served, key: str) -> str:
        """Serve a workflow from now on; its id. The same key again is the same workflow."""
        self.books.now = now
        if key in self._submitted:
            return self._submitted[key]
        if len(self.served) >= self.books.terms.most_workflows:
            raise InputError(f"this server serves {len(self.served):,} workflows already")
        served = ready if isinstance(ready, Served) else self.built(now, ready, key)
        row = served.row
        self.served[row.id], self._submitted[key] = served, row.id
        self.books.changes.workflows.append(row)
        if served.waits:
            self.books.enter(served, PAUSED)
        self.books.awake = True
        self.books.settle(served)
        return row.id

    def provide(self, now: float, workflow: str, files: Iterable[tuple[str, str, int]]) -> list[str]:
        """Files that no task makes are there; those that are still missing."""
        self.books.now = now
        served = self._open(workflow)
        if served.files is None:
            return []
        needs = set(served.files.needs)
        for name, sha256, size in files:
            if name not in needs:
                raise InputError(f"no task of this workflow reads {name!r}, or one makes it")
            if not self.has_file(sha256):
                raise InputError(f"{name!r} was not uploaded")
            row = FileRow(workflow, name, sha256, size, given=1)
            if served.files.there.setdefault(name, row).sha256 != sha256:
                raise InputError(f"{name!r} was given already, with something else in it")
            self.books.changes.files.append(row)
        self._go_on(served)
        return served.files.missing

    def _go_on(self, served: Served) -> None:
        """A workflow that waits for files or signatures goes on once all are there."""
        if served.state == PAUSED and not served.waits:
            self.books.enter(served, RUNNING)
            self.books.awake = True

    def sign(self, now: float, workflow: str, signatures: dict[str, str]) -> None:
        """The owner's signatures of tasks."""
        self.books.now = now
        served = self._open(workflow)
        for task, signature in signatures.items():
            served.flow.dag.number(task)
            served.signatures[task] = signature
            self.books.changes.signatures.append((workflow, task, signature))
        self._go_on(served)

    def cancel(self, now: float, workflow: str) -> None:
        """Hand out nothing more of a workflow; what clients bring of it is of no use any more."""
        self.books.now = now
        if not self._has_ended(workflow):
            self.books.close(self._open(workflow), CANCELLED)

    def retry(self, now: float, workflow: str, tasks: Sequence[str] | None = None) -> int:
        """Try tasks again that were set aside; by default all of them. How many that are."""
        self.books.now = now
        served = self._open(workflow)
        numbers = list(served.execution.numbers(FAILED)) if tasks is None else map(served.flow.dag.number, tasks)
        chosen = served.retry(numbers)
        self.books.changes.retried += [(workflow, task, served.number) for task in chosen]
        self.books.after(served)
        return len(chosen)

    def release(self, now: float, workflow: str, tasks: Sequence[str]) -> int:
        """Take tasks back from whoever has them, so that somebody else gets them; how many that are. Nobody is blamed."""
        self.books.now = now
        served = self._open(workflow)
        chosen = [v for v in map(served.flow.dag.number, tasks) if v in served.holding]
        for lease in [served.leases[number] for v in chosen for number in list(served.holding[v])]:
            if lease.number in served.leases:  # else it came back with one that it waited for
                self.books.end(served, [lease], "dropped", "its owner took it back")
                served.come_back(lease.task)
                self.books.came_back(served)
        return len(chosen)

    def replan(self, workflow: str, order: Ints) -> None:
        """Go by another plan of a workflow from now on."""
        self._open(workflow).follow(order)
        self.books.changes.plans.append((workflow, packed_plan(order, self.served[workflow].ceiling)))

    def _open(self, workflow: str) -> Served:
        if self._has_ended(workflow):
            raise InputError(f"the workflow {workflow!r} has ended")
        if workflow not in self.served:
            raise InputError(f"there is no workflow {workflow!r}")
        return self.served[workflow]

    def _has_ended(self, workflow: str) -> bool:
        return workflow in self.books.ended or (workflow in self.served and self.served[workflow].state in FINAL)

    # Clients

    def enrol(self, now: float, name: str, cores: float = 1.0, approved: bool = True) -> Client:
        """A client that was not here before."""
        self.books.now = now
        made, quota = now + self.books.ahead, self.books.terms.first_quota
        client = Client(f"c-{secrets.token_hex(6)}", name, cores, made, approved, quota, seen=now)
        self.clients[client.id] = client
        self.books.note(client.id, urgent=True)
        return client

    def is_away(self, seen: float, approved: bool) -> bool:
        """Whether a client that was seen then for the last time may be forgotten."""
        terms = self.books.terms
        return self.books.now - seen > (terms.forget_clients if approved else terms.forget_strangers)

    def away(self, now: float, clients: Iterable[str]) -> list[str]:
        """Those of some clients that have nothing and may be forgotten; of the others it is kept that they were here."""
        self.books.now = now
        known = [client for id in clients if (client := self.clients.get(id)) is not None]
        for client in known:
            if client.seen - client.kept > self.books.terms.forget_strangers / 4:
                self.books.note(client.id)
        return [client.id for client in known if not client.holds and self.is_away(client.seen, client.approved)]

    def forget_clients(self, now: float, clients: Iterable[str], elsewhere: Collection[str] = ()) -> list[str]:
        """Forget clients, unless they have come meanwhile; which. Other servers know those that are *elsewhere*.

        Of who ever did something, the store still has the name: whoever reads what came of its tasks may want it.
        """
        gone = self.away(now, clients)
        for id in gone:
            client = self.clients[id]
            self.books.forget_client(id)
            for served in self.served.values():
                served.allocator.gone(id)
                served.allocator.speeds.forget(id)
            if id not in elsewhere and not (client.done or client.failures or client.lost):
                self.books.changes.clients_gone.append((id,))
        return gone

    def approve(self, client: str, approved: bool = True) -> None:
        """A client may have work from now on, or no more."""
        self.clients[client].approved = approved
        self.books.changes.approvals.append((client, approved))

    def learn(self, row: ClientRow) -> None:
        """A client that another server knows: as it was kept, but for what it has here."""
        known = self.clients.get(row.id)
        if known is not None:
            known.approved = row.approved
            return
        client = self.clients[row.id] = remembered(row, self.books.ahead, self.books.now)
        client.holds = sum(lease.client == row.id for one in self.served.values() for lease in one.leases.values())

    # Work

    def ask(self, now: float, client: Client, key: str, request: Request) -> Ticket:
        """A client asks for work; `serve` answers. The same key again gets what it got before."""
        return self.requests.ask(now, client, key, request)

    def serve(self, now: float) -> list[Ticket]:
        """Answer those who wait, the first come first, as far as anything is ready; those whose time is over get nothing."""
        return self.requests.serve(now)

    def deliver(self, now: float, client: Client, deliveries: Sequence[ResultWords]) -> list[str]:
        """What a client brings; what it is told of each: the same result again gets the same answer."""
        past = UNKNOWN
        while True:
            try:
                return self.results.deliver(now, client, deliveries, past)
            except ForgottenError:
                wanted = self.results.wanted(client, deliveries)
                past = self.archive.read(wanted, past, self.books.ends)

    def renew(self, now: float, client: Client, ids: Iterable[str]) -> list[str]:
        """A client lives and has these; those that it has no more."""
        self.books.now = client.seen = now
        gone = []
        for id in ids:
            lease = self.books.find(parts_of(id), client.id)
            if lease is None:
                gone.append(id)
            else:
                self.books.due.renew((lease.workflow, lease.number), self.books.until)
        return gone

    def stalled(self, seconds: float) -> None:
        """The server itself stood still for so long: nobody could be heard, so nobody is late."""
        self.books.due.shift(seconds)

    def expire(self, now: float) -> int:
        """Take back what was not heard of for too long; how many leases that were."""
        self.books.now = now
        count = 0
        for workflow, number in self.books.due.late(now):
            self.books.lose(self.served[workflow], self.served[workflow].leases[number])
            count += 1
        self.books.expired += count
        return count
