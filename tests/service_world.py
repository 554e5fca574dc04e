"""Clients that do anything in any order with a server that may die at any moment, and what must hold all the while."""

from typing import Any

from eligo.execution import EXECUTED, Execution
from eligo.running.retrying import Retries
from eligo.server.asking import Ticket
from eligo.server.packing import unpacked_flow
from eligo.server.served import Served
from eligo.server.words import FileWords, Outcome, ResultWords
from eligo.stores.serving import Lease, ServiceStore
from service_parts import Scene, check, flow_of

MOST_TASKS, MOST_CLIENTS, MOST_WORKFLOWS = 7, 6, 4
REPEATED = {"duplicate", "conflict"}
FINAL = {"accepted", "duplicate", "conflict", "voted", "failed"}  # what is told of a lease once and for all


class World:
    """A server and all that its clients were told. A move has three numbers, from 0 to 999, to make of what it likes."""

    def __init__(self, *twins: ServiceStore) -> None:
        self.scene = Scene(
            keeping=False, retries=Retries(most=1, lost=2, first=1.0, longest=4.0), trusted=4, most_disputes=2
        )
        self.scene.twins += twins
        self.scene.enrol("first")
        self.known: list[Lease] = []  # what clients were told that they have
        self.told: dict[str, str] = {}  # what they were told of their results
        self.states: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []
        self._waiting: list[Ticket] = []
        self._leases: list[Lease] = []  # not kept yet, so nobody knows
        self._answers: list[tuple[str, str]] = []
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
        self.scene.submit(flow_of(dag, files), **wishes)

    def enrol(self, a: int, b: int, c: int) -> None:
        if len(self.scene.service.clients) < MOST_CLIENTS:
            self.scene.enrol(f"c{a}")

    def ask(self, a: int, b: int, c: int) -> None:
        client = self._client(a)
        key = next(self.scene.keys)
        if b % 5 == 0 and self.requests:
            client, key = self.requests[c % len(self.requests)]
            if client not in self.scene.service.clients:
                return
        self.requests.append((client, key))
        request = {"grants": 1 + b % 3, "size": 1 + c % 4, "wait": float(b % 40)}
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
        mine = [lease for lease in self.known if lease.client == client and lease.id not in self.told]
        if mine:
            ordered = mine[::-1] if b % 5 == 0 else mine
            self._deliver(client, [self._brought(lease, 0, c if c % 3 else 0) for lease in ordered])

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
            self.scene.service.retry(self.scene.now, known[a % len(known)])

    def drain(self, a: int, b: int, c: int) -> None:
        self.scene.service.requests.draining = "pause" if a % 9 == 0 else None

    def keep(self, a: int, b: int, c: int) -> None:
        """All that happened is kept, and those who wait for it are told."""
        self.scene.keep()
        self.known += self._leases
        for lease, answer in self._answers:
            if answer in FINAL:
                self._check_told(lease, self.told.setdefault(lease, answer), answer)
        self._leases, self._answers = [], []
        self.states.update((row.id, row.state) for row in self.scene.store.workflows())
        self._check_kept()

    def crash(self, a: int, b: int, c: int) -> None:
        """What was not kept is gone, and nobody was told of it."""
        self._leases, self._answers, self._waiting = [], [], []
        if b % 2:
            self.scene.ahead += float(a - 500)
        self.scene.restart()

    def _client(self, a: int) -> str:
        known = list(self.scene.service.clients)
        return known[a % len(known)]

    def _learn(self, ticket: Ticket) -> None:
        seen = {lease.id for lease in (*self.known, *self._leases)}
        self._leases += [lease for grant in ticket.grants for lease in grant.leases if lease.id not in seen]

    def _brought(self, lease: Lease, b: int, c: int) -> ResultWords:
        outcome: Outcome = "done" if c % 4 or c == 0 else "returned" if c % 8 else "failed"
        tail = "wrong" if b % 7 == 6 else "right"
        name = f"of t{lease.task}"
        outputs = {name: FileWords(tail, 1)} if b % 3 or c % 5 else {}
        return ResultWords(lease.id, outcome, seconds=float(c % 9), outputs=outputs, tail=tail)

    def _deliver(self, client: str, brought: list[ResultWords]) -> None:
        answers = self.scene.tell(client, *brought)
        self._answers += [(told.lease, answer) for told, answer in zip(brought, answers, strict=True)]
        for told, answer in zip(brought, answers, strict=True):
            self._check_told(told.lease, self.told.get(told.lease, answer), answer)

    def _check_told(self, lease: str, before: str, answer: str) -> None:
        """Of a lease the same is told each time; of what comes after the end, whatever that is, nothing is kept."""
        ended = lease.partition(".")[0] in self.scene.service.books.ended
        assert before == answer or (ended and {before, answer} == REPEATED)

    # What holds

    def check(self) -> None:
        """At any moment."""
        check(self.scene)
        for served in self.scene.service.served.values():
            codes = served.execution.codes
            for holders in served.holding.values():
                assert len(holders) <= served.wishes.copies
                clients = [served.leases[number].client for number in holders]
                assert len(set(clients)) == len(clients)
            if served.files is not None:
                for name, v in served.files.makers.items():
                    readers = served.files.readers.get(name, ())
                    there = name in served.files.there or (readers and all(codes[u] == EXECUTED for u in readers))
                    assert codes[v] != EXECUTED or there, "a file is gone that somebody needs"
            if served.state == "running":
                assert served.verdict is None
        for workflow, state in self.states.items():
            if state in {"done", "cancelled"}:
                assert self.scene.state(workflow) == state

    def _check_kept(self) -> None:
        store, service = self.scene.store, self.scene.service
        accepted = [(end.workflow, end.task) for end in store.ends.values() if end.answer == "accepted"]
        assert len(set(accepted)) == len(accepted), "a result was accepted twice"
        assert {lease for workflow in store.rows for lease in store.leases(workflow)} == {
            lease for served in service.served.values() for lease in served.leases.values()
        }
        for lease, answer in self.told.items():
            workflow, number, _ = lease.split(".")
            assert store.ends[workflow, int(number)].answer == answer or answer in REPEATED
        for served in service.served.values():
            again = Execution.replay(unpacked_flow(store.document(served.id)), store.moves(served.id))
            assert bytes(again.codes) == bytes(served.execution.codes)
            self._check_tries(served)
            done = {end.task for end in store.ends.values() if end.workflow == served.id and end.answer == "accepted"}
            assert done == {v for v, code in enumerate(again.codes) if code == EXECUTED}

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
                return
            for served in list(scene.service.served.values()):
                if served.state == "failed":
                    scene.service.retry(scene.now, served.id)
            for client in honest:
                for lease in scene.leases(client):
                    outputs = {f"of t{lease.task}": FileWords("right", 1)}
                    scene.bring(lease, outputs=outputs, tail="right", seconds=1.0)
            scene.now += 5.0
            scene.service.expire(scene.now)
            self.check()
        raise AssertionError(f"this never ends: {[one.counts() for one in scene.service.served.values()]}")


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
]
