"""Results: the first good one counts, whoever brings it and however late; none is lost, and none counts twice."""

import hmac
from collections.abc import Callable, Iterable, Sequence

from eligo.execution import ALLOCATED, EXECUTED, HELD, WAITING
from eligo.server.asking import Brought
from eligo.server.books import Books
from eligo.server.clients import Client
from eligo.server.served import Served
from eligo.stores.serving import FileRow, Lease, LeaseEnd


class Deliveries:
    """What clients bring.

    *recall* says what came of a lease that is no more, *recall_digests* which results of a workflow were accepted, from
    what is kept; *has_file* whether a file with this hash is there.
    """

    def __init__(
        self,
        books: Books,
        recall: Callable[[str, int], LeaseEnd | None],
        recall_digests: Callable[[str], Iterable[tuple[int, str | None]]],
        has_file: Callable[[str], bool],
    ) -> None:
        self.books = books
        self.recall, self.recall_digests, self.has_file = recall, recall_digests, has_file
        #: results that came again, and those of them that differ, since the server began
        self.duplicates = self.conflicts = 0

    def deliver(self, now: float, client: Client, deliveries: Sequence[Brought]) -> list[str]:
        """What a client brings; what it is told of each: the same result again gets the same answer."""
        self.books.now = client.seen = now
        return [self._deliver(client, told, deliveries) for told in deliveries]

    def _deliver(self, client: Client, told: Brought, together: Sequence[Brought]) -> str:
        lease = self.books.find(told.lease, client.id)
        if lease is None:
            past = self._past(told.lease, client.id)
            if past is None:
                return "refused"
            if past.answer != "expired":
                return past.answer
            lease = Lease(*past[:6], key="", part=0, since=past.began)
        served = self.books.served.get(lease.workflow)
        if served is None:
            return "duplicate"
        if told.outcome == "returned":
            return self._returned(served, lease, told)
        if served.execution.codes[lease.task] == EXECUTED:
            return self._duplicate(served, lease, told)
        if served.execution.codes[lease.task] in {HELD, WAITING}:
            return "early"
        if told.outcome == "done":
            lacking = None if served.files is None else self._lacking(served, lease, told, together)
            if lacking is None:
                return self._done(client, served, lease, told)
            told = told._replace(failure=lacking)
        return self._failed(client, served, lease, told)

    def _past(self, id: str, client: str) -> LeaseEnd | None:
        """What came of a lease that this client had."""
        workflow, _, rest = id.partition(".")
        number, _, secret = rest.partition(".")
        if (
            not number.isdecimal()
            or len(number) > 18
            or not (workflow in self.books.served or workflow in self.books.ended)
        ):
            return None
        past = self.books.recent.get((workflow, int(number))) or self.recall(workflow, int(number))
        if past is None or past.client != client or not hmac.compare_digest(past.secret, secret):
            return None
        return past

    def _returned(self, served: Served, lease: Lease, told: Brought) -> str:
        if lease.number in served.leases:
            self.books.end(served, lease, "returned", told.failure, told)
            served.tries[lease.task] -= 1
            if served.execution.codes[lease.task] in {ALLOCATED, HELD}:
                served.come_back(lease.task)
            self.books.came_back(served, lease)
        return "returned"

    def _duplicate(self, served: Served, lease: Lease, told: Brought) -> str:
        """The task is done already: is this what was accepted?"""
        if served.digests is None:
            served.digests = dict(self.recall_digests(served.id))
            recent = (one for one in self.books.recent.values() if one.workflow == served.id)
            served.digests.update((one.task, one.digest) for one in recent if one.answer == "accepted")
        accepted = served.digests.get(lease.task)
        same = told.outcome != "done" or accepted is None or accepted == told.digest
        answer = "duplicate" if same else "conflict"
        self.duplicates += same
        self.conflicts += not same
        self.books.end(served, lease, answer, told.failure, told)
        self.books.touch(served)
        return answer

    def _lacking(self, served: Served, lease: Lease, told: Brought, together: Sequence[Brought]) -> str | None:
        """Why a result is not whole: None where it is."""
        brought = {name for name, _, _ in told.outputs}
        missing = next((sha256 for _, sha256, _ in told.outputs if not self.has_file(sha256)), None)
        if missing is not None:
            return f"the file {missing} was not uploaded"
        for name in served.flow.task(served.flow.dag.tasks[lease.task]).outputs:
            if name not in brought and not self._needless(served, name, lease.client, together):
                return f"it did not make {name!r}"
        return None

    def _needless(self, served: Served, name: str, client: str, together: Sequence[Brought]) -> bool:
        """Whether whoever reads a file has read it, be it with what is brought together with it."""
        readers = [] if served.files is None else served.files.readers.get(name, [])
        codes = served.execution.codes
        left = {v for v in readers if codes[v] != EXECUTED}
        if left:
            found = (self.books.find(told.lease, client) for told in together if told.outcome == "done")
            left -= {lease.task for lease in found if lease is not None and lease.workflow == served.id}
        return bool(readers) and not left

    def _done(self, client: Client, served: Served, lease: Lease, told: Brought) -> str:
        if served.wishes.quorum > 1 and not client.trusted(self.books.terms):
            votes = served.votes.setdefault(lease.task, {})
            votes[client.id] = told.digest
            agreeing = [one for one, digest in votes.items() if digest == told.digest]
            if len(agreeing) < served.wishes.quorum:
                return self._voted(served, lease, told)
        self._accept(client, served, lease, told)
        return "accepted"

    def _voted(self, served: Served, lease: Lease, told: Brought) -> str:
        """A result that waits for others to agree: somebody else gets the task too."""
        self.books.end(served, lease, "voted", None, told)
        if len(served.votes[lease.task]) >= served.wishes.quorum + self.books.terms.most_disputes:
            self.books.set_aside(served, lease, "no two clients agree on its result")
        elif served.execution.codes[lease.task] in {ALLOCATED, HELD}:
            served.come_back(lease.task)
        self.books.came_back(served, lease)
        return "voted"

    def _accept(self, client: Client, served: Served, lease: Lease, told: Brought) -> None:
        """The first good result counts; whoever else is at it may stop."""
        name = served.flow.dag.tasks[lease.task]
        self.books.end(served, lease, "accepted", None, told)
        served.execution.complete(name, late=True)
        for other in served.others(lease):
            self.books.end(served, other, "expired", "somebody else was sooner")
        for file, sha256, size in told.outputs:
            row = FileRow(served.id, file, sha256, size)
            self.books.changes.files.append(row)
            if served.files is not None:
                served.files.there[file] = row
        self._credit(client, served, lease, told)
        self.books.after(served)

    def _credit(self, client: Client, served: Served, lease: Lease, told: Brought) -> None:
        if lease.task in served.votes:
            self._judge(client, served.votes.pop(lease.task), told.digest)
        if served.digests is not None:
            served.digests[lease.task] = told.digest
        served.forget(lease.task)
        served.saved += told.saved
        took = self.books.took(lease, told)
        served.allocator.learn(client.id, served.flow.dag.tasks[lease.task], took)
        client.seconds += took
        client.succeeded(self.books.terms)
        self.books.note(client.id)

    def _judge(self, client: Client, votes: dict[str, str], digest: str) -> None:
        """Those who said the same were right, and those who did not were not."""
        for other, said in votes.items():
            if other in self.books.clients and other != client.id:
                known = self.books.clients[other]
                if said == digest:
                    known.succeeded(self.books.terms)
                else:
                    known.dissented(self.books.now, self.books.terms)
                self.books.note(other)

    def _failed(self, client: Client, served: Served, lease: Lease, told: Brought) -> str:
        live = lease.number in served.leases
        self.books.end(served, lease, "failed", told.failure or "it failed", told)
        if live:
            self._blame(client, served, lease.task)
            served.failures[lease.task] += 1
            if served.execution.codes[lease.task] in {ALLOCATED, HELD}:
                self.books.set_aside(served, lease, told.failure or "it failed")
            self.books.came_back(served, lease)
        return "failed"

    def _blame(self, client: Client, served: Served, task: int) -> None:
        """A failure is its client's, as long as the task has failed with nobody else and there are other clients."""
        before = served.failed_with.setdefault(task, set())
        for other in before - {client.id}:
            if other in self.books.clients:
                self.books.clients[other].forgiven(self.books.terms)
                self.books.note(other)
        recent = self.books.now - self.books.terms.lease
        alone = not any(one.seen >= recent and one is not client for one in self.books.clients.values())
        if before <= {client.id} and not alone:
            client.failed(self.books.now, self.books.terms)
        else:
            client.failures += 1
        before.add(client.id)
        self.books.note(client.id)
