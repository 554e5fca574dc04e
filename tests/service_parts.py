"""What the tests of the server's rules share: a store that is a few dictionaries, and a service with a clock to turn."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import count
from typing import Any

from eligo.additions import NewTasks, read_addition
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import ALLOCATED, HELD
from eligo.server.rules.clients import Client, ServerTerms
from eligo.server.rules.outcomes import Archive
from eligo.server.rules.prepared import Wishes, prepare
from eligo.server.rules.requests import Granted, Ticket
from eligo.server.rules.served import Served
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, Outcome, ResultWords
from eligo.stores.database import Added, unpacked_addition
from eligo.stores.service import Changes, ClientRow, FileRow, TokenRow, Upshot, WorkflowRow, upshot_of
from eligo.stores.service_sql import ServiceStore
from eligo.work.attempts import Attempt, Lease
from eligo.workflow import Task, Workflow


class MemoryStore(ServiceStore):
    """Keeps what a server must not forget in dictionaries."""

    remark: str | None = None
    shared, address = False, ""

    def __init__(self) -> None:
        self.rows: dict[str, WorkflowRow] = {}
        self.journals: dict[str, array[int]] = {}
        self.added: dict[str, list[Added]] = {}
        self.out: dict[tuple[str, int], Lease] = {}
        self.ends: dict[tuple[str, int], Attempt] = {}
        self.there: dict[tuple[str, str], FileRow] = {}
        self.signed: dict[tuple[str, str], str] = {}
        self.known: dict[str, ClientRow] = {}
        self.pardons: dict[tuple[str, int], int] = {}

    def prepare(self, changes: Sequence[Changes]) -> None:
        for one in changes:
            self._keep(one)

    def _keep(self, one: Changes) -> None:
        for row in one.workflows:
            assert row.id not in self.rows
            self.rows[row.id] = row
            self.journals[row.id] = array("q")
        for workflow, state in one.states:
            self.rows[workflow] = self.rows[workflow]._replace(state=state)
        for workflow, order in one.plans:
            self.rows[workflow] = self.rows[workflow]._replace(plan=order)
        for workflow, lost in one.losses:
            self.rows[workflow] = self.rows[workflow]._replace(lost=lost)
        for workflow, ended, tally in one.endings:
            self.rows[workflow] = self.rows[workflow]._replace(ended=ended, tally=tally)
        self.pardons.update(((workflow, task), number) for workflow, task, number in one.retried)
        for added in one.additions:
            assert added.number == len(self.added.setdefault(added.workflow, []))
            self.added[added.workflow].append(unpacked_addition(added.tasks, added.arcs))
        for moves in one.moves:
            assert moves.first == len(self.journals[moves.workflow])
            self.journals[moves.workflow] += moves.moves
        for lease in one.leases:
            assert lease[:2] not in self.out
            self.out[lease[:2]] = lease
        self.ends.update((end[:2], end) for end in one.outcomes)
        for workflow, first in one.ended:
            grant = [place for place, lease in self.out.items() if (lease.workflow, lease.first) == (workflow, first)]
            assert grant
            for place in grant:
                assert place in self.ends
                del self.out[place]
        self.there.update((row[:2], row) for row in one.files)
        self.signed.update(((workflow, task), signature) for workflow, task, signature in one.signatures)
        self._keep_clients(one)
        for file in one.files_gone:
            self.there.pop(file, None)
        for (workflow,) in one.purged:
            del self.rows[workflow], self.journals[workflow]

    def _keep_clients(self, one: Changes) -> None:
        for row in one.clients:
            old = self.known.get(row.id, row)
            self.known[row.id] = row._replace(approved=old.approved, held=old.held, tags=old.tags)
        for client, may in one.approvals:
            self.known[client] = self.known[client]._replace(approved=may)
        for client, held, tags in one.client_notes:
            self.known[client] = self.known[client]._replace(held=held, tags=tags)
        for (client,) in one.clients_gone:
            self.known.pop(client, None)

    def pages(self, workflow: str, first: int = 0) -> list[int]:
        return sorted({number // 256 for id, number in self.ends if id == workflow})

    def finish(self) -> None:
        pass

    def hold(self, workflow: str) -> int | None:
        return 1

    def keep_holding(self, seconds: float) -> set[str]:
        return set(self.rows)

    def holders(self) -> dict[str, str]:
        return dict.fromkeys(self.rows, "")

    def unheld(self) -> list[str]:
        return []

    def workflow(self, id: str) -> WorkflowRow | None:
        return self.rows.get(id)

    def submitted(self, key: str) -> str | None:
        return next((row.id for row in self.rows.values() if row.key == key), None)

    def states(self) -> dict[str, str]:
        return {row.id: row.state for row in self.rows.values()}

    def workflows(self) -> list[WorkflowRow]:
        return list(self.rows.values())

    def document(self, workflow: str) -> bytes:
        return self.rows[workflow].document

    def additions(self, workflow: str) -> list[Added]:
        return list(self.added.get(workflow, ()))

    def moves(self, workflow: str) -> "array[int]":
        return copy(self.journals[workflow])

    def leases(self, workflow: str) -> list[Lease]:
        return [lease for place, lease in self.out.items() if lease.workflow == workflow and place not in self.ends]

    def last_number(self, workflow: str) -> int:
        return max((number for known in (self.out, self.ends) for at, number in known if at == workflow), default=0)

    def upshot(self, workflow: str) -> Upshot:
        pardons = {task: number for (owner, task), number in self.pardons.items() if owner == workflow}
        return upshot_of(self.outcomes(workflow), pardons)

    def outcome(self, workflow: str, number: int) -> Attempt | None:
        return self.ends.get((workflow, number))

    def outcomes(self, workflow: str) -> Iterator[Attempt]:
        return (self.ends[place] for place in sorted(self.ends) if place[0] == workflow)

    def outcomes_from(self, workflow: str, first: int, most: int) -> list[Attempt]:
        return [end for end in self.outcomes(workflow) if end.number >= first][:most]

    def files(self, workflow: str) -> list[FileRow]:
        return [row for row in self.there.values() if row.workflow == workflow]

    def file(self, workflow: str, name: str) -> FileRow | None:
        return self.there.get((workflow, name))

    def signatures(self, workflow: str) -> dict[str, str]:
        return {task: signature for (at, task), signature in self.signed.items() if at == workflow}

    def clients(self) -> list[ClientRow]:
        return list(self.known.values())

    def client(self, id: str) -> ClientRow | None:
        return self.known.get(id)

    def token(self, hash: str) -> TokenRow | None:
        return None

    def tokens(self) -> list[TokenRow]:
        return []

    def facts(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        pass


def flow_of(
    dag: Mapping[str, Iterable[str]],
    files: Mapping[str, tuple[list[str], list[str]]] | None = None,
    temporary: Collection[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> Workflow:
    """A workflow by the parents of its tasks; *files* are what tasks read and write, and which of that is temporary."""
    known = {name: (files or {}).get(name, ([], [])) for name in dag}
    tasks = {
        name: Task(
            name=name,
            command="true",
            inputs=tuple(reads),
            outputs=tuple(writes),
            temporary=tuple(file for file in writes if file in temporary),
        )
        for name, (reads, writes) in known.items()
    }
    return Workflow(Dag.from_parents(dag), tasks, file_sizes=sizes or {})


def many(number: int) -> Workflow:
    """So many tasks that wait for nothing."""
    return flow_of({f"t{i}": [] for i in range(number)})


class Scene:
    """A service, its store and its clock; every move is kept at once unless told otherwise."""

    def __init__(self, keeping: bool = True, **terms: Any) -> None:
        self.terms = ServerTerms(**terms)
        self.store, self.now, self.ahead, self.keeping = MemoryStore(), 0.0, 1e9, keeping
        self.uploaded: set[str] | None = None  # None: every file is there
        self.twins: list[ServiceStore] = []  # that keep the same
        self.owners: dict[str, str] = {}  # of clients' tokens; others are their own
        self.keys = map(str, count())
        self.service = self._begun()

    def _begun(self) -> Service:
        found = Service(
            self.terms,
            ahead=self.ahead,
            archive=Archive.of(self.store),
            has_file=lambda sha256: self.uploaded is None or sha256 in self.uploaded,
        )
        found.books.random.seed(0)
        found.books.token_owner = lambda client: self.owners.get(client, client)
        return found

    def keep(self) -> None:
        changes = self.service.take_changes()
        if changes is not None:
            for store in (self.store, *self.twins):
                store.commit([changes])

    def kept(self) -> None:
        if self.keeping:
            self.keep()

    def restart(self) -> None:
        """The server dies, and what was not kept with it."""
        self.service = self._begun()
        self.service.restore(self.now, self.store)

    def submit(self, flow: Workflow, key: str | None = None, **wishes: Any) -> str:
        ready = prepare(flow, Wishes(**{"copies": 1, "files": False, "policy": "fifo", **wishes}))
        found = self.service.submit(self.now, ready, next(self.keys) if key is None else key)
        self.kept()
        return found

    def enrol(self, name: str = "ann", owner: str | None = None) -> str:
        found = self.service.enrol(self.now, name).id
        if owner is not None:
            self.owners[found] = owner
        self.kept()
        return found

    def client(self, id: str) -> Client:
        return self.service.clients[id]

    def served(self, workflow: str) -> Served:
        return self.service.served[workflow]

    def state(self, workflow: str) -> str:
        ended = self.service.books.ended
        return ended[workflow].state if workflow in ended else self.served(workflow).state

    def ask(self, client: str, key: str | None = None, **request: Any) -> Ticket:
        return self.service.ask(
            self.now, self.client(client), next(self.keys) if key is None else key, AskWords(**request)
        )

    def serve(self) -> list[Ticket]:
        found = self.service.serve(self.now)
        self.kept()
        return found

    def get(self, client: str, key: str | None = None, **request: Any) -> list[Granted]:
        """What a client gets at once."""
        ticket = self.ask(client, key, **request)
        self.serve()
        assert not self.service.requests.pending(ticket)
        return ticket.grants

    def lease(self, client: str, key: str | None = None, **request: Any) -> Lease:
        """The one task that a client gets."""
        ((_, (lease,), _),) = self.get(client, key, **request)
        return lease

    def leases(self, client: str, **request: Any) -> list[Lease]:
        return [lease for grant in self.get(client, **request) for lease in grant.leases]

    def tell(self, client: str, *brought: ResultWords) -> list[str]:
        found = self.service.deliver(self.now, self.client(client), brought, read_all(brought))
        self.kept()
        return found

    def bring(self, lease: Lease, outcome: Outcome = "done", client: str | None = None, **facts: Any) -> str:
        (answer,) = self.tell(client or lease.client, ResultWords(lease.id, outcome, **facts))
        return answer

    def later(self, seconds: float, *alive: str) -> int:
        """Time passes; those that live renew all they have. How many leases were lost."""
        lost = 0
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 20.0)
            for client in alive:
                self.service.renew(self.now, self.client(client), [lease.id for lease in self.held(client)])
            lost += self.service.expire(self.now)
            self.kept()
        return lost

    def held(self, client: str) -> list[Lease]:
        known = self.service.served.values()
        return [lease for served in known for lease in served.leases.values() if lease.client == client]

    def tasks(self, leases: Iterable[Lease]) -> list[Any]:
        return [self.served(lease.workflow).flow.dag.tasks[lease.task] for lease in leases]


def read_all(brought: Iterable[ResultWords]) -> dict[str, NewTasks | InputError]:
    """What is read of the tasks that results add, as a server's process reads it."""
    return {one.added: read_addition(one.added) for one in brought if one.added is not None}


def check(scene: Scene) -> None:
    """What holds at any moment."""
    service = scene.service
    out = [lease for served in service.served.values() for lease in served.leases.values()]
    assert {lease[:2] for lease in out} == set(service.books.due)
    for client in service.clients.values():
        assert client.holds == sum(lease.client == client.id for lease in out)
    for served in service.served.values():
        _check_served(served)


def _check_served(served: Served) -> None:
    game = served.execution
    if served.state != "cancelled":
        for v, name in enumerate(game.dag.tasks):
            assert game.holders(name) == len(served.holding.get(v, ())), name
            assert (game.codes[v] in {ALLOCATED, HELD}) == (v in served.holding), name
    assert sorted(n for numbers in served.holding.values() for n in numbers) == sorted(served.leases)
    assert sum(served.counts().values()) == len(game.dag)
