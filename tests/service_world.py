"""Clients that do anything in any order with a server that may die at any moment, and what must hold all the while."""

from collections.abc import Callable
from functools import partial
from typing import Any

from eligo.errors import InputError
from eligo.execution import ALLOCATED, ELIGIBLE, EXECUTED, FAILED, HELD, Execution
from eligo.server.rules.document import unpack_workflow
from eligo.server.rules.prepared import Wishes, footprint_of
from eligo.server.rules.requests import Ticket
from eligo.server.rules.served import Served
from eligo.server.schema import FileWords, Outcome, ResultWords
from eligo.space.orders import space_order
from eligo.stores.service_sql import ServiceStore
from eligo.work.attempts import Lease
from eligo.work.tries import Retries
from eligo.workflow import Workflow
from service_model import Given, Promises, counted
from service_parts import Scene, check, flow_of

MOST_TASKS, MOST_CLIENTS, MOST_WORKFLOWS = 7, 6, 4
RETRIES = Retries(most=1, lost=2, first=1.0, longest=4.0)


class World:
    """A server and all that its clients were told. A move has three numbers, from 0 to 999, to make of what it likes."""

    def __init__(self, *twins: ServiceStore) -> None:
        self.scene = Scene(keeping=False, retries=RETRIES, trusted=4, most_disputes=2)
        self.promises = Promises(RETRIES.most, RETRIES.lost)
        self.scene.twins += twins
        self.scene.enrol("first")
        self.known: list[Lease] = []  # what clients were told that they have
        self.states: dict[str, str] = {}
        self.sizes: dict[str, dict[str, int]] = {}  # of the files of each workflow
        self.regained = set[str]()  # workflows in which a permanently failed task was retried after all
        self.requests: list[tuple[str, str]] = []
        self._waiting: list[Ticket] = []
        self._leases: list[Lease] = []  # not kept yet, so nobody knows
        self._pending: list[Callable[[], None]] = []  # what is true once it is kept
        self._last: dict[str, Any] = {}  # how everything stood when it was kept last
        self.keep(0, 0, 0)

    # Moves

    def submit(self, a: int, b: int, c: int) -> None:
        if len(self.scene.service.served) >= MOST_WORKFLOWS:
            return
        size = 1 + a % MOST_TASKS
        dag = {f"t{i}": [f"t{j}" for j in range(i) if (a * 31 + b * 17 + i * 7 + j * 5) % 3 == 0] for i in range(size)}
        files = {name: ([f"of {parent}" for parent in parents], [f"of {name}"]) for name, parents in dag.items()}
        wishes: dict[str, Any] = {"quorum": 2 if b % 4 == 0 else 1, "copies": 1 + b % 2, "files": c % 2 == 0}
        wishes |= {"policy": "finish" if c % 3 == 0 else "fifo", "owner": str(c % 3), "share": 1.0 + c % 2}
        temporary = [f"of {name}" for i, name in enumerate(dag) if (a + i * b) % 3 == 0]
        sizes = {f"of {name}": (a + 3 * i + b) % 5 for i, name in enumerate(dag)}
        flow = flow_of(dag, files, temporary, sizes)
        if wishes["files"] and b % 3:  # the size of what clients bring is that which was stated
            wishes |= self._limit(flow, {"clean": b % 5 == 0}, a + b)
        workflow = self.scene.submit(flow, **wishes)
        self.promises.parents[workflow] = dag
        self.sizes[workflow] = sizes

    def _limit(self, flow: Workflow, wishes: dict[str, Any], more: int) -> dict[str, Any]:
        """The settings with the least limit of space that is known to do, or a little more."""
        try:
            footprint = footprint_of(Wishes(**wishes), flow)
        except InputError:  # nothing is temporary
            return wishes
        return wishes | {"space": footprint.peak(space_order(footprint)) + more % 2}

    def enrol(self, a: int, b: int, c: int) -> None:
        if len(self.scene.service.clients) < MOST_CLIENTS:
            self.scene.enrol(f"c{a}", f"token {b % 2}" if b % 4 < 2 else None)

    def revoke(self, a: int, b: int, c: int) -> None:
        if b % 9 == 0:
            self.scene.service.approve(self._client(a), False)

    def ask(self, a: int, b: int, c: int) -> None:
        client = self._client(a)
        key = next(self.scene.keys)
        if b % 5 == 0 and self.requests:
            client, key = self.requests[c % len(self.requests)]
            if client not in self.scene.service.clients:
                return
        self.requests.append((client, key))
        request = {"count": 1 + b % 3, "size": 1 + c % 4, "wait": float(b % 40)}
        ticket = self.scene.ask(client, key, **request)
        if self.scene.service.requests.pending(ticket):
            self._waiting.append(ticket)
        else:
            self._learn(ticket)

    def work(self, a: int, b: int, c: int) -> None:
        """A client asks and hears at once what it got."""
        self.ask(a, b, c)
        self.serve(a, b, c)
        self.keep(a, b, c)

    def serve(self, a: int, b: int, c: int) -> None:
        for ticket in self.scene.serve():
            self._learn(ticket)
        self._waiting = [ticket for ticket in self._waiting if self.scene.service.requests.pending(ticket)]

    def deliver(self, a: int, b: int, c: int) -> None:
        if self.known:
            first = self.known[-1 - a % min(len(self.known), 12)]
            others = [lease for lease in self.known if lease.client == first.client and lease is not first]
            chosen = [first, *others[-(b % 4) :]] if b % 4 else [first]
            self._deliver(first.client, [self._brought(lease, b + i, c) for i, lease in enumerate(chosen)])

    def finish(self, a: int, b: int, c: int) -> None:
        """A client brings good results of all that it has, in the order that it was told or in another."""
        client = self._client(a)
        mine = [lease for lease in self.known if lease.client == client and lease.id not in self.promises.ended]
        if mine:
            ordered = mine[::-1] if b % 5 == 0 else mine
            self._deliver(client, [self._brought(lease, 0, c if c % 3 else 0) for lease in ordered])

    def bring_again(self, a: int, b: int, c: int) -> None:
        """Any result of any lease that ever was."""
        if self.known:
            lease = self.known[a % len(self.known)]
            self._deliver(lease.client, [self._brought(lease, b, c)])

    def steal(self, a: int, b: int, c: int) -> None:
        """A client brings a result of another's lease, or of one whose secret it guesses."""
        if self.known:
            lease, client = self.known[a % len(self.known)], self._client(b)
            if client == lease.client:
                lease = lease._replace(secret="0" * 16)
            brought = self._brought(lease, b, c)
            assert self.scene.tell(client, brought) == ["refused"]

    def release(self, a: int, b: int, c: int) -> None:
        """The owner of a workflow takes tasks back."""
        known = [one for one in self.scene.service.served.values() if one.state not in {"done", "cancelled"}]
        if known:
            served = known[a % len(known)]
            self.scene.service.release(self.scene.now, served.id, served.flow.dag.tasks[b % 3 :: 1 + c % 3])

    def renew(self, a: int, b: int, c: int) -> None:
        client = self._client(a)
        mine = [lease.id for lease in self.known if lease.client == client]
        self.scene.service.renew(self.scene.now, self.scene.client(client), mine[b % 2 :: 1 + c % 2])

    def wait(self, a: int, b: int, c: int) -> None:
        self.scene.now += (a % 100) / 10.0 if b % 3 else 75.0 + a % 30
        if c % 2:
            self.expire(a, b, c)

    def expire(self, a: int, b: int, c: int) -> None:
        self.scene.service.expire(self.scene.now)

    def stall(self, a: int, b: int, c: int) -> None:
        if b % 8 == 0:
            self.scene.now += float(a)
            self.scene.service.stalled(float(a))

    def withdraw(self, a: int, b: int, c: int) -> None:
        if self._waiting:
            self.scene.service.requests.withdraw(self._waiting.pop(a % len(self._waiting)))

    def cancel(self, a: int, b: int, c: int) -> None:
        known = list(self.scene.service.served)
        if known and b % 8 == 0:
            self.scene.service.cancel(self.scene.now, known[a % len(known)])

    def retry(self, a: int, b: int, c: int) -> None:
        known = [one.id for one in self.scene.service.served.values() if one.state not in {"done", "cancelled"}]
        if known:
            self._retry(known[a % len(known)])

    def _retry(self, workflow: str) -> None:
        served = self.scene.served(workflow)
        tasks = [str(task) for task in served.execution.failed]
        if served.tries.causes:
            self.regained.add(workflow)
        self._pending.append(partial(self.promises.retry, workflow, tasks))
        assert self.scene.service.retry(self.scene.now, workflow) == len(tasks)

    def drain(self, a: int, b: int, c: int) -> None:
        self.scene.service.requests.draining = "pause" if a % 9 == 0 else None

    def keep(self, a: int, b: int, c: int) -> None:
        """All that happened is kept, and those who wait for it are told."""
        self.scene.keep()
        self.known += self._leases
        for happen in self._pending:
            happen()
        assert self.promises.wrong == []
        self._leases, self._pending = [], []
        self._last = self._snapshot()
        self.states.update((row.id, row.state) for row in self.scene.store.workflows())
        self._check_kept()

    def crash(self, a: int, b: int, c: int) -> None:
        """What was not kept is gone, and nobody was told of it."""
        self._leases, self._pending, self._waiting = [], [], []
        if b % 2:
            self.scene.ahead += float(a - 500)
        self.scene.restart()
        assert self._snapshot() == self._last

    def _client(self, a: int) -> str:
        known = list(self.scene.service.clients)
        return known[a % len(known)]

    def _learn(self, ticket: Ticket) -> None:
        seen, asked = {lease.id for lease in (*self.known, *self._leases)}, self.promises.now()
        fresh = [lease for grant in ticket.grants for lease in grant.leases if lease.id not in seen]
        self._leases += fresh
        for lease in fresh:
            given = Given(lease.workflow, f"t{lease.task}", lease.client)
            self._pending.append(partial(self.promises.grant, lease.id, given, asked))

    def _brought(self, lease: Lease, b: int, c: int) -> ResultWords:
        outcome: Outcome = "done" if c % 4 or c == 0 else "returned" if c % 8 else "failed"
        tail = "wrong" if b % 7 == 6 else "right"
        outputs = self._outputs(lease, tail) if b % 3 or c % 5 else {}
        died = outcome == "returned" and b % 2 == 1
        return ResultWords(lease.id, outcome, seconds=float(c % 9), outputs=outputs, tail=tail, died=died)

    def _outputs(self, lease: Lease, content: str) -> dict[str, FileWords]:
        name = f"of t{lease.task}"
        return {name: FileWords(content, self.sizes[lease.workflow][name])}

    def _deliver(self, client: str, brought: list[ResultWords]) -> None:
        for told, answer in zip(brought, self.scene.tell(client, *brought), strict=True):
            result = told.outcome, told.tail, told.died, tuple(told.outputs)
            self.promises.send(told.lease, told.tail)
            self._pending.append(partial(self.promises.hear, told.lease, result, answer))

    # What holds

    def check(self) -> None:
        """At any moment."""
        check(self.scene)
        for served in self.scene.service.served.values():
            codes = served.execution.codes
            assert served.counts() == served._count()
            for holders in served.holding.values():
                assert len(holders) <= served.wishes.copies
                clients = [served.leases[number].client for number in holders]
                assert len(set(clients)) == len(clients)
            if served.files is not None:
                for name, v in served.files.makers.items():
                    readers = served.files.inside_readers(name)
                    there = name in served.files.there or (readers and all(codes[u] == EXECUTED for u in readers))
                    assert codes[v] != EXECUTED or there, "a file is gone that somebody needs"
            self._check_space(served)
            if served.state == "running":
                assert served.verdict is None
        for workflow, state in self.states.items():
            if state in {"done", "cancelled"}:
                assert self.scene.state(workflow) == state

    def _check_space(self, served: Served) -> None:
        """The files that may be removed, with those that may be on their way, are within the limit."""
        files, within, codes = served.files, served.within, served.execution.codes
        if within is None or files is None or served.state in {"done", "cancelled"}:
            return
        removable = files.removable()
        there = {name for name in removable if name in files.there}
        there |= {name for name in removable if codes[files.makers[name]] in {ALLOCATED, HELD}}
        total = sum(self.sizes[served.id][name] for name in there)
        assert total <= within.live, "files are not counted"
        failed = bool(served.tries.causes) or served.id in self.regained
        if not failed:  # what a permanently failed task needs stays
            assert total <= within.limit, "the limit of space was exceeded"
            assert within.needed <= within.limit

    def _check_kept(self) -> None:
        store, service = self.scene.store, self.scene.service
        accepted = [(end.workflow, end.task) for end in store.ends.values() if end.answer == "accepted"]
        assert len(set(accepted)) == len(accepted), "a result was accepted twice"
        assert {lease for workflow in store.rows for lease in store.leases(workflow)} == {
            lease for served in service.served.values() for lease in served.leases.values()
        }
        for lease, answer in self.promises.ended.items():
            workflow, number, _ = lease.split(".")
            assert store.ends[workflow, int(number)].answer == answer
        for served in service.served.values():
            again = Execution.replay(unpack_workflow(store.document(served.id)), store.moves(served.id))
            assert bytes(again.codes) == bytes(served.execution.codes)
            self._check_tries(served)
            self._check_counts(served)
            done = {end.task for end in store.ends.values() if end.workflow == served.id and end.answer == "accepted"}
            assert done == {v for v, code in enumerate(again.codes) if code == EXECUTED}

    def _snapshot(self) -> dict[str, Any]:
        """How everything stands that a restart must not change."""
        return {one.id: self._stands(one) for one in self.scene.service.served.values()}

    def _stands(self, served: Served) -> tuple[Any, ...]:
        codes = bytes(served.execution.codes)
        open = [v for v, code in enumerate(codes) if code != EXECUTED]
        counts = [(served.tries.failures[v], served.tries.losses[v], dict(served.votes.get(v, {}))) for v in open]
        later = {v for _, v in served.tries.later if codes[v] == FAILED}
        return served.state, codes, counts, set(served.tries.causes), later, dict(served.leases)

    def _check_counts(self, served: Served) -> None:
        """Failures and losses are those that clients know of; what had too many of them is ready for nobody."""
        retried = {v: self.promises.retried.get((served.id, f"t{v}"), 0) for v in range(len(served.flow))}
        ends = [end for end in self.scene.store.outcomes(served.id) if end.number > retried[end.task]]
        losses = counted(ends, "expired", "lost")
        for v, code in enumerate(served.execution.codes):
            failures = self.promises.failures[served.id, f"t{v}"]
            if code != EXECUTED:
                assert (served.tries.failures[v], served.tries.losses[v]) == (failures, losses[v])
                spent = failures > RETRIES.most or losses[v] > RETRIES.lost
                assert not (spent and code == ELIGIBLE)
                assert (v in served.tries.causes) == (
                    code == FAILED and (spent or (v in served.votes and v in served.tries.causes))
                )

    def _check_tries(self, served: Served) -> None:
        """A task is handed out once, and once more for each time that it came back or was copied."""
        ends = [end for end in self.scene.store.ends.values() if end.workflow == served.id]
        for v in range(len(served.flow.dag)):
            back = sum(end.task == v and end.answer != "accepted" for end in ends)
            tries = sum(end.task == v for end in ends) + len(served.holding.get(v, ()))
            assert tries <= back + (1 if served.execution.codes[v] == EXECUTED else served.wishes.copies)

    def finish_all(self) -> None:
        """Nothing goes wrong any more: then everything that was not cancelled is done, soon."""
        scene = self.scene
        scene.service.requests.draining = None
        honest = [scene.enrol(f"honest{i}") for i in range(3)]
        for _ in range(600):
            self.keep(0, 0, 0)
            if not scene.service.served:
                self._judge()
                return
            for served in list(scene.service.served.values()):
                if served.state == "failed":
                    self._retry(served.id)
            for client in honest:
                for lease in scene.leases(client):
                    outputs = self._outputs(lease, "right")
                    self.promises.grant(lease.id, Given(lease.workflow, f"t{lease.task}", client), 0)
                    self.promises.send(lease.id, "right")
                    answer = scene.bring(lease, outputs=outputs, tail="right", seconds=1.0)
                    self.promises.hear(lease.id, "honest", answer)
            scene.now += 5.0
            scene.service.expire(scene.now)
            self.check()
        raise AssertionError(f"this never ends: {[one.counts() for one in scene.service.served.values()]}")

    def _judge(self) -> None:
        for row in self.scene.store.workflows():
            tasks = list(map(str, unpack_workflow(row.document).dag.tasks))
            assert self.promises.judge(row.id, tasks, list(self.scene.store.outcomes(row.id)), row.state) == []


#: the moves, the frequent ones more than once
MOVES = [
    *(
        "submit",
        "enrol",
        "ask",
        "ask",
        "serve",
        "serve",
        "keep",
        "keep",
        *["work"] * 6,
        *["deliver"] * 6,
        *["finish"] * 2,
    ),
    *("renew", "wait", "wait", "wait", "expire", "expire", "stall", "withdraw", "cancel", "retry", "drain", "crash"),
    *("bring_again", "bring_again", "steal", "release", "revoke", "crash"),
]
