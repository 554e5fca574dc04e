"""The operations of a server, and workflows restored from its store, without a network, a disk or a clock.

The caller passes in the time and stores the changes. Each method changes the state at once, and `take_changes` returns what
must be stored; the caller answers clients only after it has stored that. `now` is a monotonic clock. The lead of the wall
clock over it is fixed when the service starts, so that no client loses a task because a clock was set.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from eligo.additions import NewTasks
from eligo.errors import EligoError, InputError, counted, shorten
from eligo.execution import ALLOCATED, FAILED, HELD, Execution
from eligo.names import Name
from eligo.rows import Ints
from eligo.server.auth.tokens import Gate
from eligo.server.rules.clients import Client, ServerTerms, restore_client
from eligo.server.rules.document import StoredPlan, unpack_plan, unpack_workflow
from eligo.server.rules.needs import MOST_MISSING
from eligo.server.rules.outcomes import UNKNOWN, Archive, ForgottenError
from eligo.server.rules.prepared import Prepared, new_row
from eligo.server.rules.requests import Requests, Ticket
from eligo.server.rules.results import Deliveries, ReadAdditions
from eligo.server.rules.served import BROKEN, CANCELLED, ENDED, FINAL, HELD_BACK, PAUSED, RUNNING, Served, Vote
from eligo.server.rules.state import Books, Unavailable, parts_of
from eligo.server.schema import AskWords, ResultWords
from eligo.stores.database import added_names
from eligo.stores.service import Changes, ClientRow, FileRow, Sums, WorkflowRow
from eligo.stores.service_sql import ServiceStore
from eligo.work.attempts import Lease

NOTHING = Archive()
MOST_SAID = 300  # characters of the reason why a workflow cannot be restored


class Service:
    """The operations of a server, one method each.

    *gate* knows the owner of each client if clients need tokens. *archive* reads what is stored and no longer in memory.
    *has_file* returns whether a file with this hash is stored.
    """

    def __init__(
        self,
        terms: ServerTerms | None = None,
        gate: Gate | None = None,
        *,
        ahead: float = 0.0,
        archive: Archive = NOTHING,
        has_file: Callable[[str], bool] = lambda sha256: True,
    ) -> None:
        self.books = Books(terms or ServerTerms(), ahead)
        if gate is not None:
            self.books.token_owner = gate.owner_of
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
        """The changes to store since the last call; None if there are none."""
        return self.books.take_changes()

    def restore(
        self, now: float, store: ServiceStore, workflows: Iterable[WorkflowRow] | None = None
    ) -> list[Unavailable]:
        """Resume from the store; leases are extended by a full term. Returns what cannot be restored, and why."""
        faults = list[Unavailable]()
        self.clients.update((row.id, restore_client(row, self.books.ahead, now)) for row in store.clients())
        for row in store.workflows() if workflows is None else workflows:
            if row.state in FINAL:
                self.ended(row)
            elif (fault := self.adopt(now, self.recalled(row, store))) is not None:
                faults.append(fault)
        return faults

    def recalled(self, row: WorkflowRow, store: ServiceStore) -> Served | Unavailable:
        """Restore a stored workflow for `adopt`, or return why that is impossible; this may run in another thread."""
        try:
            return restore_workflow(row, store, lambda: self.books.now)
        except Exception as error:
            if isinstance(error, OSError) and store.shared:  # the connection failed, not this workflow
                raise
            return Unavailable(row._replace(document=b"", plan=None), fault_of(error))

    def ended(self, row: WorkflowRow) -> None:
        """Record a workflow that has ended, here or on another server."""
        self._submitted[row.key] = row.id
        self.books.ended[row.id] = row

    def adopt(self, now: float, restored: Served | Unavailable) -> Unavailable | None:
        """Resume a workflow; its leases are extended by a full term.

        A workflow that cannot be restored is listed with the reason and returned; its stored state is not changed.
        """
        self.books.now = now
        self._submitted[restored.row.key] = restored.row.id
        if isinstance(restored, Served):
            try:
                self._adopt(restored)
                return None
            except Exception as error:
                self.books.forget(restored.id)
                self.requests.forget(restored.id)
                restored = Unavailable(restored.row._replace(document=b"", plan=None), fault_of(error))
        self.books.unavailable[restored.row.id] = restored
        return restored

    def _adopt(self, served: Served) -> None:
        self.served[served.id] = served
        self.requests.recall(served)
        for lease in served.leases.values():
            self.books.due.add(served.id, [lease.number], self.books.until)
            self.books.hold(lease.client, 1)
        self.books.connect(served)
        failed = {*served.execution.numbers(FAILED)}
        for task in failed:
            self.books.restore_retry(served, task)
        for task in {*served.tries.failures, *served.tries.losses, *served.votes} - failed:
            self.books.reconsider(served, task)
        served.resume_space()
        self.books.came_back(served)

    def forget(self, workflows: Iterable[str]) -> None:
        """Stop serving workflows that other servers hold."""
        lost = set(workflows)
        for workflow in lost:
            self.books.forget(workflow)
            self.requests.forget(workflow)
        self._submitted = {key: id for key, id in self._submitted.items() if id not in lost}

    def forget_purged(self, key: str) -> None:
        """Forget the ended workflow of this key, if there is one, because another server has purged it."""
        if self._submitted.get(key) in self.books.ended:
            self.forget([self._submitted[key]])

    # Workflows

    def built(self, now: float, ready: Prepared, key: str) -> Served:
        """Build a workflow for `submit`, with everything that takes long; this may run in another thread."""
        row = new_row(ready, f"w-{secrets.token_hex(5)}", key, now + self.books.ahead, RUNNING)
        plan = StoredPlan(ready.order, ready.ceiling, ready.reference)
        served = Served(row, ready.flow, Execution(ready.flow), plan, lambda: self.books.now)
        served.make_ready()
        return served

    def submitted(self, key: str) -> str | None:
        """The workflow that was submitted with a key."""
        return self._submitted.get(key)

    def submit(self, now: float, ready: Prepared | Served, key: str) -> str:
        """Serve a workflow; returns its id. A repeated key returns the same workflow."""
        self.books.now = now
        if key in self._submitted:
            return self._submitted[key]
        self._check_room(ready.wishes.owner)
        served = ready if isinstance(ready, Served) else self.built(now, ready, key)
        row = served.row
        self.books.connect(served)
        self.served[row.id], self._submitted[key] = served, row.id
        self.books.changes.workflows.append(row)
        if served.waits:
            self.books.enter(served, PAUSED)
        self.books.agenda.stir(served)
        self.books.settle(served)
        return row.id

    def _check_room(self, owner: str) -> None:
        """Refuse a workflow beyond the maximum, unless its owner has less than an equal share of the places."""
        count, most = len(self.served), self.books.terms.most_workflows
        if count < most:
            return
        owners = Counter(served.wishes.owner for served in self.served.values())
        owners[owner] += 1
        if count >= 2 * most or owners[owner] * len(owners) > most:
            many = f"{count:,} workflows, its maximum, and {owners[owner] - 1:,} of them are yours"
            raise InputError(f"this server already serves {many}")

    def add(self, now: float, workflow: str, new: NewTasks) -> tuple[str, ...]:
        """Add tasks to a workflow; returns the new ones. It pauses if input files are missing for them."""
        self.books.now = now
        served = self._open(workflow)
        names = served.grow(new)
        if names and served.state == RUNNING and served.waits:
            self.books.enter(served, PAUSED)
        self.books.after(served)
        return names

    def provide(self, now: float, workflow: str, files: Iterable[tuple[str, str, int]]) -> list[str]:
        """Record uploaded input files; returns some of those still missing."""
        self.books.now = now
        served = self._open(workflow)
        if served.files is None:
            return []
        for name, sha256, size in files:
            if not served.files.is_need(name):
                raise InputError(f"{name!r} is not an input file of this workflow")
            if not self.has_file(sha256):
                raise InputError(f"{name!r} was not uploaded")
            row = FileRow(workflow, name, sha256, size, given=1)
            if served.files.there.setdefault(name, row).sha256 != sha256:
                raise InputError(f"{name!r} was already uploaded with different content")
            self.books.changes.files.append(row)
        self._continue(served)
        return served.files.some_missing(MOST_MISSING)

    def _continue(self, served: Served) -> None:
        """Resume a workflow that was waiting for files or signatures if none is missing any more."""
        if served.state == PAUSED and not served.waits:
            self.books.enter(served, RUNNING)

    def sign(self, now: float, workflow: str, signatures: dict[str, str]) -> None:
        """Store the owner's signatures of tasks."""
        self.books.now = now
        served = self._open(workflow)
        for task, signature in signatures.items():
            served.flow.dag.number(task)
            served.signatures[task] = signature
            self.books.changes.signatures.append((workflow, task, signature))
        self._continue(served)

    def cancel(self, now: float, workflow: str) -> bool:
        """Cancel a workflow, so that no more of its tasks are handed out; returns False if it had already ended."""
        self.books.now = now
        if workflow in self.books.unavailable:
            self._cancel_unavailable(self.books.unavailable.pop(workflow).row)
            return True
        if self._has_ended(workflow):
            return False
        self.books.close(self._open(workflow), CANCELLED)
        return True

    def _cancel_unavailable(self, row: WorkflowRow) -> None:
        """Cancel a workflow that cannot be restored; its tally counts no tasks, since their states are unknown."""
        tally = Sums(0, 0, row.lost, 0, 0).text()
        self.ended(row._replace(state=CANCELLED, ended=self.books.wall, tally=tally))
        self.books.changes.states.append((row.id, CANCELLED))
        self.books.changes.endings.append((row.id, self.books.wall, tally))

    def retry(self, now: float, workflow: str, tasks: Sequence[str] | None = None) -> int:
        """Retry failed tasks, by default all; returns their number."""
        self.books.now = now
        served = self._open(workflow)
        numbers = list(served.execution.numbers(FAILED)) if tasks is None else map(served.flow.dag.number, tasks)
        chosen = served.retry(numbers)
        self.books.changes.retried += [(workflow, task, served.number) for task in chosen]
        self.books.after(served)
        return len(chosen)

    def release(self, now: float, workflow: str, tasks: Sequence[str]) -> int:
        """Take tasks back from their clients without counting a failure; returns their number."""
        self.books.now = now
        served = self._open(workflow)
        chosen = [v for v in map(served.flow.dag.number, tasks) if v in served.holding]
        for lease in [served.leases[number] for v in chosen for number in list(served.holding[v])]:
            if lease.number in served.leases:  # otherwise it was returned with a task that it waited for
                self.books.end(served, [lease], "dropped", "its owner released it")
                self.books.come_back(served, lease.task)
                self.books.came_back(served)
        return len(chosen)

    def pause(self, now: float, workflow: str) -> bool:
        """Pause a workflow until it is resumed; running tasks finish and count. Returns whether the state changed."""
        self.books.now = now
        served = self._open(workflow)
        if served.state == BROKEN:
            raise InputError(f"workflow {workflow!r} has failed and cannot be paused")
        changed = served.state != HELD_BACK
        if changed:
            self.books.enter(served, HELD_BACK)
        return changed

    def resume(self, now: float, workflow: str) -> bool:
        """Resume a paused workflow, once no file or signature is missing; returns whether it was paused."""
        self.books.now = now
        served = self._open(workflow)
        changed = served.state == HELD_BACK
        if changed:
            self.books.enter(served, PAUSED if served.waits else RUNNING)
            self.books.after(served)
        return changed

    def purge(self, workflow: str) -> None:
        """Delete a workflow that has ended; its key can be reused."""
        if workflow not in self.books.ended:
            raise InputError(f"workflow {workflow!r} is unknown or has not ended")
        self.forget([workflow])
        self.books.changes.purged.append((workflow,))

    def notes(self, served: Served, tasks: Ints, what: str) -> list[str]:
        """Notes for the owner of a workflow; *what* is the word for its tasks."""
        unmet = [one.sentence(what) for one in self.books.unmet(served, tasks)]
        unmet += [] if served.state in ENDED else served.space_notes()
        here = {client.id for client in self.books.connected()} if served.distrusted_by else set()
        if here and here <= served.distrusted_by:
            unmet.append("all connected clients refuse its tasks because they do not trust its signatures")
        quorum, owners = served.wishes.quorum, self.books.owners_here() if served.wishes.quorum > 1 else set()
        if quorum <= len(owners) or quorum == 1 or served.state in ENDED:
            return unmet
        few = "1 owner" if len(owners) == 1 else f"{len(owners)} owners"
        few = f"the quorum is {quorum}, but only clients of {few} are connected"
        return [*unmet, f"{few}: results wait for clients of other owners"]

    def closed(self, served: Served) -> list[str]:
        """Why an unfinished workflow hands out no tasks now, one sentence each."""
        reasons = []
        if self.requests.draining is not None:
            reasons.append("The server is draining and hands out no tasks.")
        if served.state == HELD_BACK:
            reasons.append("The workflow is held (continue it with eligo resume).")
        if served.state in {PAUSED, HELD_BACK}:
            unsigned, missing = served.unsigned, [] if served.files is None else served.files.some_missing(1)
            reasons += [f"The owner's signature is missing for {counted(unsigned, 'task')}."] if unsigned else []
            reasons += [f"Input files are missing, for example {shorten(missing[0])!r}."] if missing else []
        return reasons

    def _open(self, workflow: str) -> Served:
        if self._has_ended(workflow):
            raise InputError(f"workflow {workflow!r} has ended")
        if workflow in self.books.unavailable:
            raise InputError(f"workflow {workflow!r} is unavailable: {self.books.unavailable[workflow].reason}")
        if workflow not in self.served:
            raise InputError(f"unknown workflow {workflow!r}")
        return self.served[workflow]

    def _has_ended(self, workflow: str) -> bool:
        return workflow in self.books.ended or (workflow in self.served and self.served[workflow].state in FINAL)

    # Clients

    def enrol(self, now: float, name: str, cores: float = 1.0, approved: bool = True) -> Client:
        """Create a new client."""
        self.books.now = now
        created, quota = now + self.books.ahead, self.books.terms.first_quota
        client = Client(f"c-{secrets.token_hex(6)}", name, cores, created, approved, quota, seen=now)
        self.clients[client.id] = client
        self.books.note(client.id, urgent=True)
        return client

    def is_away(self, seen: float, approved: bool) -> bool:
        """Whether a client that was last seen at the time *seen* may be forgotten."""
        terms = self.books.terms
        return self.books.now - seen > (terms.forget_clients if approved else terms.forget_strangers)

    def away(self, now: float, clients: Iterable[str]) -> list[str]:
        """The clients, among these, that hold no tasks and may be forgotten; stores when the others were last seen."""
        self.books.now = now
        present = [client for id in clients if (client := self.clients.get(id)) is not None]
        for client in present:
            if client.seen - client.kept > self.books.terms.forget_strangers / 4:
                self.books.note(client.id)
        return [client.id for client in present if not client.holds and self.is_away(client.seen, client.approved)]

    def forget_clients(self, now: float, clients: Iterable[str], elsewhere: Collection[str] = ()) -> list[str]:
        """Forget clients unless they have called meanwhile; returns which. Other servers know the clients in *elsewhere*.

        The store keeps the row of a client that ever finished, failed or lost a task: readers of outcomes may need its name.
        """
        forgotten = self.away(now, clients)
        for served in self.served.values() if forgotten else ():
            served.allocator.forget(frozenset(forgotten))
        for id in forgotten:
            self.forget_client(id, id in elsewhere)
        return forgotten

    def forget_client(self, id: str, elsewhere: bool = False) -> None:
        """Forget a client that has no task."""
        client = self.clients[id]
        self.books.forget_client(id)
        if not elsewhere and not (client.done or client.failures or client.lost):
            self.books.changes.clients_gone.append((id,))

    def approve(self, client: str, approved: bool = True) -> None:
        """Approve a client for work, or revoke its approval."""
        self.books.changes.approvals.append((client, approved))
        self._set_approval(self.clients[client], approved)

    def _set_approval(self, client: Client, approved: bool) -> None:
        """Set the approval of a client; the votes of a revoked client no longer count."""
        revoked, client.approved = client.approved and not approved, approved
        for served in self.served.values() if revoked else ():
            for task in served.votes:
                self.books.reconsider(served, task)
            if served.votes:
                self.books.after(served)

    def mark_client(self, client: str, held: bool | None = None, tags: Sequence[str] | None = None) -> None:
        """Set an operator's marks of a client: whether it is held and gets no tasks, and its tags; None changes nothing."""
        record = self.clients[client]
        record.held = record.held if held is None else held
        self.books.roomier.add(client)
        self._tag(record, record.tags if tags is None else tuple(tags))
        self.books.changes.client_notes.append((client, record.held, " ".join(record.tags)))

    def _tag(self, client: Client, tags: tuple[str, ...]) -> None:
        changed, client.tags = tags != client.tags, tags
        if changed:
            self.requests.renew_offers(client)

    def learn(self, row: ClientRow) -> None:
        """Add or update a client from its row, which another server wrote; the tasks that it holds here still count."""
        existing = self.clients.get(row.id)
        if existing is not None:
            self._set_approval(existing, bool(row.approved))
            existing.held = row.held
            self.books.roomier.add(row.id)
            self._tag(existing, tuple(row.tags.split()))
            return
        client = self.clients[row.id] = restore_client(row, self.books.ahead, self.books.now)
        client.holds = self.books.strangers.pop(row.id, 0)

    # Work

    def ask(self, now: float, client: Client, key: str, request: AskWords) -> Ticket:
        """Add a client's request for work, which `serve` answers; a repeated key gets the same tasks again."""
        return self.requests.ask(now, client, key, request)

    def serve(self, now: float) -> list[Ticket]:
        """Answer waiting requests in order of arrival, as far as tasks are ready; requests that have timed out get none."""
        return self.requests.serve(now)

    def deliver(
        self, now: float, client: Client, deliveries: Sequence[ResultWords], added: ReadAdditions | None = None
    ) -> list[str]:
        """Process the results of a client; returns the answer to each. A repeated result gets the same answer."""
        past = UNKNOWN
        while True:
            try:
                return self.results.deliver(now, client, deliveries, past, added)
            except ForgottenError:
                lacking = self.results.wanted(client, deliveries)
                past = self.archive.read(lacking, past, self.books.ends)

    def renew(self, now: float, client: Client, ids: Iterable[str]) -> list[str]:
        """Renew the leases of a client; returns the ids of those that it no longer holds."""
        self.books.now = client.seen = now
        lost = []
        for id in ids:
            lease = self.books.find(parts_of(id), client.id)
            if lease is None:
                lost.append(id)
            else:
                self.books.due.renew((lease.workflow, lease.number), self.books.until)
        return lost

    def stalled(self, seconds: float) -> None:
        """Extend all leases by a time in which the server itself was stalled."""
        self.books.due.shift(seconds)

    def expire(self, now: float) -> int:
        """Expire overdue leases; returns their number."""
        self.books.now = now
        count = 0
        for workflow, number in self.books.due.late(now):
            served = self.served[workflow]
            self.books.lose(served, served.leases[number], "expired", "its client stopped responding")
            count += 1
        return count


def restore_workflow(row: WorkflowRow, store: ServiceStore, clock: Callable[[], float]) -> Served:
    """Restore a workflow from the store; `Service.adopt` decides whether its failed tasks are retried."""
    flow = unpack_workflow(row.document or store.document(row.id))
    moves, additions = store.moves(row.id), store.additions(row.id)
    size = len(flow) + len(added_names(additions))
    served = Served(row, flow, Execution.replay(flow, moves, additions), unpack_plan(row.plan, size), clock)
    flow, served.kept = served.flow, len(moves)
    served.number = store.last_number(row.id)
    if served.files is not None:
        served.files.there.update((file.name, file) for file in store.files(row.id))
    served.signatures = store.signatures(row.id)
    upshot = store.upshot(row.id)
    _check_tasks("outcome", (*upshot.tallies, *(vote[0] for vote in upshot.votes)), len(flow))
    causes = {task: why for task, why in upshot.reasons.items() if served.execution.codes[task] == FAILED}
    served.tries.restore(upshot.tallies, upshot.retried, causes)
    served.repeated, served.saved = upshot.repeated, upshot.saved
    for task, number, client, digest in upshot.votes:
        served.votes.setdefault(task, {})[number] = Vote(client, digest)
    _recall_leases(served, store.leases(row.id))
    return served


def task_names(workflow: str, store: ServiceStore) -> tuple[Name, ...]:
    """The names of the tasks of a stored workflow, including added ones."""
    return (*unpack_workflow(store.document(workflow)).dag.tasks, *added_names(store.additions(workflow)))


def _recall_leases(served: Served, leases: Iterable[Lease]) -> None:
    """Restore the leases; assigned tasks without a lease become ready again."""
    restored = list(leases)
    _check_tasks("lease", (lease.task for lease in restored), len(served.flow))
    served.add(restored)
    for lease in restored:
        served.tries.begun[lease.task] = max(served.tries.begun[lease.task], lease.attempt)
        served.allocator.has(lease.client, served.flow.dag.tasks[lease.task])
    codes = served.execution.codes
    for v in [v for v in range(len(codes)) if codes[v] in {ALLOCATED, HELD} and v not in served.holding]:
        served.come_back(v)


def _check_tasks(what: str, tasks: Iterable[int], size: int) -> None:
    """Refuse rows of tasks that the workflow does not have; negative numbers would index other tasks."""
    strange = next((v for v in tasks if not 0 <= v < size), None)
    if strange is not None:
        raise InputError(f"the store has a {what} of task number {strange}, but the workflow has {size:,} tasks")


def fault_of(error: Exception) -> str:
    """One line on why a workflow cannot be restored."""
    message = str(error) if isinstance(error, EligoError) else f"its stored state is damaged ({error!r})"
    return shorten(message.replace("\n", " "), MOST_SAID)
