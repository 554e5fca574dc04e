"""Results: the first good one counts, whoever brings it and however late; none is lost, and none counts twice."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from eligo.execution import ALLOCATED, EXECUTED, HELD, WAITING
from eligo.server.books import MOST_RECENT, Books, Brought, parts_of, same
from eligo.server.clients import Client
from eligo.server.remembering import UNKNOWN, ForgottenError, Lacking, Past, Place, note, short
from eligo.server.served import FINAL, Served, Vote
from eligo.server.words import ResultWords
from eligo.stores.serving import FileRow
from eligo.work.attempts import Attempt, Lease

LOST = {"expired", "dropped"}  # the ends of leases whose results may still come
DIED = "its client died while it ran"
#: of the id of a lease
Parts = tuple[str, int, str]


class Deliveries:
    """What clients bring; *has_file* says whether a file with this hash is there."""

    def __init__(self, books: Books, has_file: Callable[[str], bool]) -> None:
        self.books, self.has_file = books, has_file
        self._past = UNKNOWN
        #: results that came again, and those of them that differ, since the server began
        self.duplicates = self.conflicts = 0

    def deliver(self, now: float, client: Client, deliveries: Sequence[ResultWords], past: Past = UNKNOWN) -> list[str]:
        """What a client brings; what it is told of each: the same result again gets the same answer.

        `ForgottenError` where something must be read first: `wanted` says what, and *past* is what was read.
        """
        self.books.now = client.seen = now
        self._past = self._absorbed(past)
        parts = [parts_of(told.lease) for told in deliveries]
        together = self._together(client, deliveries, parts) if len(parts) > 1 else {}
        answers, numbers = [""] * len(parts), [number for _, number, _ in parts]
        good = list[Brought]()  # those of one workflow that are simply good are accepted together
        try:
            for i in sorted(range(len(parts)), key=numbers.__getitem__):  # as they were to be run
                lease, told = self.books.find(parts[i], client.id), deliveries[i]
                if good and (lease is None or lease.workflow != good[0][0].workflow):
                    self._accept(client, good)
                if lease is not None and self._completes(lease, told, together):
                    good.append((lease, told))
                    answers[i] = "accepted"
                else:
                    self._accept(client, good)
                    answers[i] = self._deliver(client, parts[i], told, together)
        finally:
            self._accept(client, good)
        return answers

    def _deliver(self, client: Client, parts: Parts, told: ResultWords, together: Collection[Place]) -> str:
        """What is told of a result that is not simply good."""
        known = self._lease(parts, client.id)
        return known if isinstance(known, str) else self._judged(client, known, told, together)

    def _completes(self, lease: Lease, told: ResultWords, together: Collection[Place]) -> bool:
        """Whether a result of a task that is out needs nobody who agrees, and is whole; then the task is executed."""
        served = self.books.served[lease.workflow]
        if told.outcome != "done" or served.codes[lease.task] != ALLOCATED or served.wishes.quorum > 1:
            return False
        if told.added is not None:
            return False
        if served.files is not None and self._lacking(served, lease.task, told, together) is not None:
            return False
        served.execution.complete_number(lease.task)
        return True

    def _judged(self, client: Client, lease: Lease, told: ResultWords, together: Collection[Place]) -> str:
        served = self.books.served.get(lease.workflow)
        if served is None or served.state in FINAL:
            return self._too_late(lease, told)
        code = served.codes[lease.task]
        unused = told.outcome == "returned" and not told.died
        if code == EXECUTED and not unused:
            return self._duplicate(served, lease, told)
        if lease.number not in served.leases:
            self._take_back_loss(served, lease)
        if unused:
            return self._returned(served, lease, told)
        if code in {HELD, WAITING}:
            return self._refused(served, lease, told)
        if told.outcome == "returned":
            return self._lost(served, lease, told)
        if told.outcome == "done":
            lacking = None if served.files is None else self._lacking(served, lease.task, told, together)
            if lacking is None and told.added is not None:
                lacking = served.refusal(told.added)
            if lacking is None:
                return self._done(client, served, lease, told)
            told = replace(told, failure=lacking)
        return self._failed(client, served, lease, told)

    def _lease(self, parts: Parts, client: str) -> Lease | str:
        """A lease that this client has, or has lost; else what it was told when it brought the result before."""
        lease = self.books.find(parts, client)
        if lease is not None:
            return lease
        workflow, number, secret = parts
        if number < 0 or not (workflow in self.books.served or workflow in self.books.ended):
            return "refused"
        past = self._end_of((workflow, number))
        if past is None or past.client != client or not same(past.secret, secret):
            return "refused"
        if past.answer not in LOST:
            return past.answer
        if self.books.digests_of(workflow) is None:
            raise ForgottenError
        return Lease(*past[:6], key="", first=number, since=past.began)

    # What only the store knows

    def _end_of(self, place: Place) -> Attempt | None:
        recent = self.books.recent.get(place)
        if recent is None and place not in self._past.ends:
            raise ForgottenError
        return recent or self._past.ends[place]

    def wanted(self, client: Client, deliveries: Sequence[ResultWords]) -> Lacking:
        """What must be read before these can be delivered."""
        found, books = Lacking(), self.books
        for told in deliveries:
            workflow, number, _ = parts = parts_of(told.lease)
            known = workflow in books.served or workflow in books.ended
            if number < 0 or not known or books.find(parts, client.id) is not None:
                continue
            if (workflow, number) not in books.recent:
                found.ends.add((workflow, number))
            if books.digests_of(workflow) is None:
                found.digests.add(workflow)
            if workflow in books.ended:
                found.files.update((workflow, name) for name in told.outputs)
        return found

    def _absorbed(self, past: Past) -> Past:
        """What was read, with what happened since; nothing where that is so much that some of it is forgotten again."""
        books = self.books
        if past is UNKNOWN or books.ends - past.at >= MOST_RECENT:
            return UNKNOWN
        for workflow, digests in past.digests.items():
            for one in books.recent.of(workflow):
                if one.answer == "accepted":
                    note(digests, one.task, one.digest)
            books.learn_digests(workflow, digests)
        return past

    def _too_late(self, lease: Lease, told: ResultWords) -> str:
        """Its workflow has ended: is this what was accepted? Nothing is kept of it, since the answer stays the same."""
        digests = self.books.digests_of(lease.workflow) or ()
        accepted = digests[lease.task] if lease.task < len(digests) else 0
        alike = told.outcome != "done" or not accepted or accepted == short(told.digest)
        alike = alike or _same_files(self._files(lease.workflow, told), told)
        self.duplicates += alike
        self.conflicts += not alike
        return "duplicate" if alike else "conflict"

    def _files(self, workflow: str, told: ResultWords) -> Mapping[str, FileRow | None]:
        """The files of a workflow that has ended, as far as a result has any of these names."""
        served = self.books.served.get(workflow)
        if served is not None:
            return {} if served.files is None else served.files.there
        if any((workflow, name) not in self._past.files for name in told.outputs):
            raise ForgottenError
        return {name: self._past.files[workflow, name] for name in told.outputs}

    def _together(
        self, client: Client, deliveries: Sequence[ResultWords], parts: Sequence[Parts]
    ) -> dict[Place, tuple[Lease, ResultWords]]:
        """The results of one call that count if all of them do, by workflow and task, where files travel."""
        found = dict[Place, tuple[Lease, ResultWords]]()
        travelling = {workflow for workflow in {part[0] for part in parts} if self._travels(workflow)}
        for told, part in zip(deliveries, parts, strict=True) if travelling else ():
            lease = self._lease(part, client.id)
            if told.outcome == "done" and isinstance(lease, Lease) and lease.workflow in travelling:
                found[lease.workflow, lease.task] = lease, told
        while lacking := [place for place, (lease, told) in found.items() if not self._counts(lease, told, found)]:
            for place in lacking:
                del found[place]
        return found

    def _travels(self, workflow: str) -> bool:
        """Whether results of a workflow have files, and count by themselves."""
        served = self.books.served.get(workflow)
        return served is not None and served.files is not None and served.wishes.quorum == 1

    def _counts(self, lease: Lease, told: ResultWords, others: dict[Place, tuple[Lease, ResultWords]]) -> bool:
        """Whether a result will be accepted if these others are, those that it waits for before it."""
        served = self.books.served[lease.workflow]
        for u in served.flow.dag.parents_of(lease.task).tolist():
            before = others.get((served.id, u))
            if served.codes[u] != EXECUTED and (before is None or before[0].number > lease.number):
                return False
        return self._lacking(served, lease.task, told, others) is None

    def _take_back_loss(self, served: Served, lease: Lease) -> None:
        """A client that was not heard of is: an attempt counts once, as what came of it."""
        past = self._end_of((lease.workflow, lease.number))
        if past is not None and past.answer == "expired" and served.counts_for(lease):
            served.tries.losses[lease.task] -= 1

    def _lost(self, served: Served, lease: Lease, told: ResultWords) -> str:
        """The client died while it ran the task, which counts like a lease that expired."""
        if lease.number in served.leases:
            self.books.lose(served, lease, "lost", DIED)
        else:
            self.books.bring(served, [(lease, told)], "lost", DIED)
            served.tries.losses[lease.task] += served.counts_for(lease)
            self.books.reconsider(served, lease.task)
            self.books.came_back(served)
        return "lost"

    def _returned(self, served: Served, lease: Lease, told: ResultWords) -> str:
        served.tries.begun[lease.task] -= 1
        if told.distrusted:
            served.shun(lease.client)
        self._give_back(served, lease, told, "returned")
        return "returned"

    def _refused(self, served: Served, lease: Lease, told: ResultWords) -> str:
        """What the task needs is not done, so nobody can have run it: who has it has it no more."""
        told = replace(told, failure="it came before the results that it depends on")
        self._give_back(served, lease, told, "refused")
        return "refused"

    def _give_back(self, served: Served, lease: Lease, told: ResultWords, answer: str) -> None:
        """A lease ends by something that is not a result, be it out or lost before."""
        live = lease.number in served.leases
        self.books.bring(served, [(lease, told)], answer, told.failure)
        if live:
            self.books.come_back(served, lease.task)
        else:
            self.books.reconsider(served, lease.task)
        self.books.came_back(served)

    def _duplicate(self, served: Served, lease: Lease, told: ResultWords) -> str:
        """The task is done already: is this what was accepted?"""
        accepted = 0 if served.digests is None else served.digests[lease.task]
        there = {} if served.files is None else served.files.there
        alike = told.outcome != "done" or not accepted or accepted == short(told.digest) or _same_files(there, told)
        answer = "duplicate" if alike else "conflict"
        self.duplicates += alike
        self.conflicts += not alike
        self.books.bring(served, [(lease, told)], answer, told.failure)
        self.books.touch(served)
        return answer

    def _lacking(self, served: Served, task: int, told: ResultWords, together: Collection[Place]) -> str | None:
        """Why a result is not whole: None where it is."""
        made = served.flow.task(served.flow.dag.tasks[task]).outputs
        for name, file in told.outputs.items():
            if name not in made:
                return f"it is not to make {name!r}"
            if not self.has_file(file.sha256):
                return f"the file {file.sha256} was not uploaded"
        for name in made:
            if name not in told.outputs and not self._needless(served, name, together):
                return f"it did not make {name!r}"
        return None

    def _needless(self, served: Served, name: str, together: Collection[Place]) -> bool:
        """Whether whoever reads a file has read it."""
        readers = [] if served.files is None else served.files.readers.get(name, [])
        codes = served.codes
        return bool(readers) and all(codes[v] == EXECUTED or (served.id, v) in together for v in readers)

    def _done(self, client: Client, served: Served, lease: Lease, told: ResultWords) -> str:
        if served.wishes.quorum > 1 and not self._believed(client, served, lease.task, told):
            if served.counts_for(lease):
                served.votes.setdefault(lease.task, {})[lease.number] = Vote(client.id, told.digest)
            if len(served.voters(lease.task, told.digest)) < served.wishes.quorum:
                self._give_back(served, lease, told, "voted")
                return "voted"
        served.execution.complete_number(lease.task, late=True)
        self._accept(client, [(lease, told)])
        return "accepted"

    def _believed(self, client: Client, served: Served, task: int, told: ResultWords) -> bool:
        """Whether a result counts without others: its client is trusted, nobody said otherwise, and no spot check is due."""
        if not client.trusted(self.books.terms):
            return False
        owner, voters = self.books.owner_of(client.id), served.voters(task)
        if voters:
            return owner not in voters and served.voters(task, told.digest) == voters
        return self.books.random.random() >= self.books.terms.spot_checks or self.books.owners_here() <= {owner}

    def _alone(self, client: Client) -> bool:
        """Whether nobody else is here."""
        return all(one is client for one in self.books.connected())

    def _accept(self, client: Client, good: list[Brought]) -> None:
        """The first good results of tasks of a workflow count, and are gathered no longer; whoever else is at it may stop."""
        if not good:
            return
        served, came, good[:] = self.books.served[good[0][0].workflow], good[:], ()
        ends, took = self.books.bring(served, came, "accepted")
        others = [other for end in ends if end.task in served.holding for other in served.holders(end.task)]
        if others:
            self.books.end(served, others, "dropped", "somebody else was sooner")
        for name, file in chain.from_iterable(told.outputs.items() for _, told in came if told.outputs):
            row = FileRow(served.id, name, file.sha256, file.size)
            self.books.changes.files.append(row)
            if served.files is not None:
                served.files.there[name] = row
        self._credit(client, served, ends, took)
        self.books.after(served)

    def _credit(self, client: Client, served: Served, ends: Sequence[Attempt], took: float) -> None:
        digests, tasks = served.digests, [end.task for end in ends]
        confirmed = 0
        for end in ends:
            if end.task in served.votes:
                confirmed += 1
                self._judge(client, served.votes.pop(end.task), end.digest)
            if digests is not None:
                digests[end.task] = short(end.digest)
        served.forget(tasks)
        served.saved += sum(end.saved for end in ends)
        served.allocator.learn_numbers(client.id, tasks, took)
        client.seconds += took
        client.succeeded(self.books.terms, len(ends), confirmed)
        self.books.note(client.id)

    def _judge(self, client: Client, votes: Mapping[int, Vote], digest: str | None) -> None:
        """Those who said the same were right, and those who did not were not."""
        for other, said in votes.values():
            if other in self.books.clients and other != client.id:
                known = self.books.clients[other]
                if said == digest:
                    known.succeeded(self.books.terms, confirmed=1)
                else:
                    known.dissented(self.books.now, self.books.terms)
                self.books.note(other)

    def _failed(self, client: Client, served: Served, lease: Lease, told: ResultWords) -> str:
        live, why = lease.number in served.leases, told.failure or "it failed"
        self.books.bring(served, [(lease, told)], "failed", why)
        served.tries.failures[lease.task] += served.counts_for(lease)
        if live:
            self._blame(client, served, lease.task)
            self.books.come_back(served, lease.task, why)
        else:
            self.books.reconsider(served, lease.task, why)
        self.books.came_back(served)
        return "failed"

    def _blame(self, client: Client, served: Served, task: int) -> None:
        """A failure is its client's, as long as the task has failed with nobody else and there are other clients."""
        before = served.failed_with.setdefault(task, set())
        if len(before) == 1 and client.id not in before:  # only the first of all was blamed
            self._forgive(*before)
        if before <= {client.id} and not self._alone(client):
            client.failed(self.books.now, self.books.terms)
        else:
            client.failures += 1
        before.add(client.id)
        self.books.note(client.id)

    def _forgive(self, client: str) -> None:
        if client in self.books.clients:
            self.books.clients[client].forgiven(self.books.terms)
            self.books.note(client)


def _same_files(there: Mapping[str, FileRow | None], told: ResultWords) -> bool:
    """Whether a result has the files that are there; what stayed inside a grant cannot be compared otherwise."""
    known = ((there.get(name), file.sha256) for name, file in told.outputs.items())
    return bool(there and told.outputs) and all(row is not None and row.sha256 == sha256 for row, sha256 in known)
