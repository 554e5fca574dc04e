"""Results of tasks: the first good one counts, from any client and however late; no result is lost or counted twice."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from eligo.additions import NewTasks
from eligo.errors import InputError
from eligo.execution import ALLOCATED, EXECUTED, HELD, WAITING
from eligo.server.rules.clients import Client
from eligo.server.rules.outcomes import UNKNOWN, ForgottenError, Lacking, Past, Place, is_of_files, note, short
from eligo.server.rules.served import FINAL, Served, UnreadError, Vote
from eligo.server.rules.state import MOST_RECENT, Books, Brought, LeaseId, parts_of, same
from eligo.server.schema import ResultWords
from eligo.stores.service import FileRow
from eligo.work.attempts import Attempt, Lease

LOST = {"expired", "dropped"}  # the outcomes of leases whose results may still arrive
DIED = "the client died while running the task"
#: seconds for which a temporary file stays after its last use, because another workflow may have the same content: usually,
#: and if the workflow has a limit of space
UNUSED, BRIEFLY_UNUSED = 600.0, 2.0
#: why results are refused: the task cannot have run; its lease had ended, and other tasks have its space
TOO_EARLY = "the result arrived before the results that the task depends on"
NO_SPACE = "the result arrived after its lease had ended, and there is no space for its files now"
#: the tasks that results add, by their text, or why they cannot be read
ReadAdditions = Mapping[str, NewTasks | InputError]


class Deliveries:
    """The processing of results from clients; *has_file* returns whether a file with this hash is stored."""

    def __init__(self, books: Books, has_file: Callable[[str], bool]) -> None:
        self.books, self.has_file = books, has_file
        self._past = UNKNOWN
        self._added: ReadAdditions = {}
        #: another client that was connected; the client that was last found to be alone, and when
        self._other: Client | None = None
        self._alone_at: tuple[str, float] = "", -1.0
        #: repeated results since the server started: those that agree with the accepted ones, and those that differ
        self.duplicates = self.conflicts = 0

    def deliver(
        self,
        now: float,
        client: Client,
        deliveries: Sequence[ResultWords],
        past: Past = UNKNOWN,
        added: ReadAdditions | None = None,
    ) -> list[str]:
        """Process the results of a client; returns the answer to each. A repeated result gets the same answer.

        Raises `ForgottenError` if something must be read first: `wanted` returns what, and *past* is what was read. It raises
        `UnreadError` if tasks that a result adds must be read first: `adding` returns them, and *added* is what was read.
        """
        self._added = added or {}
        for text in self.adding(deliveries):
            if text not in self._added:
                raise UnreadError
        self.books.now = client.seen = now
        self._past = UNKNOWN if past is UNKNOWN else self._update_past(past)
        lease_ids = [parts_of(result.lease) for result in deliveries]
        together = self._together(client, deliveries, lease_ids) if len(lease_ids) > 1 else {}
        answers, numbers = [""] * len(lease_ids), [number for _, number, _ in lease_ids]
        good = list[Brought]()  # plainly good results of one workflow are accepted together
        try:
            for i in sorted(range(len(lease_ids)), key=numbers.__getitem__):  # in the order of execution
                lease, result = self.books.find(lease_ids[i], client.id), deliveries[i]
                if good and (lease is None or lease.workflow != good[0][0].workflow):
                    self._accept(client, good)
                if lease is not None and self._completes(lease, result, together):
                    good.append((lease, result))
                    answers[i] = "accepted"
                else:
                    self._accept(client, good)
                    answers[i] = self._deliver(client, lease_ids[i], result, together)
        finally:
            self._accept(client, good)
        return answers

    def _deliver(self, client: Client, lease_id: LeaseId, result: ResultWords, together: Collection[Place]) -> str:
        """The answer to a result that is not plainly good."""
        lease = self._lease(lease_id, client.id)
        return lease if isinstance(lease, str) else self._answer(client, lease, result, together)

    def _completes(self, lease: Lease, result: ResultWords, together: Collection[Place]) -> bool:
        """Whether a result of an assigned task is complete and needs no agreement; if so, the task is marked as executed."""
        served = self.books.served[lease.workflow]
        if result.outcome != "done" or served.codes[lease.task] != ALLOCATED or served.wishes.quorum > 1:
            return False
        if result.added is not None:
            return False
        if served.files is not None and self._lacking(served, lease.task, result, together) is not None:
            return False
        served.execution.complete_number(lease.task)
        return True

    def _answer(self, client: Client, lease: Lease, result: ResultWords, together: Collection[Place]) -> str:
        served = self.books.served.get(lease.workflow)
        if served is None or served.state in FINAL:
            return self._too_late(lease, result)
        code = served.codes[lease.task]
        unused = result.outcome == "returned" and not result.died
        if code == EXECUTED and not unused:
            return self._duplicate(served, lease, result)
        if lease.number not in served.leases:
            self._take_back_loss(served, lease)
        if unused:
            return self._take_return(served, lease, result)
        if code in {HELD, WAITING}:
            return self._refuse(served, lease, result, TOO_EARLY)
        if result.outcome == "returned":
            return self._take_loss(served, lease, result)
        if result.outcome == "done":
            lacking = None if served.files is None else self._lacking(served, lease.task, result, together)
            if lacking is None and result.added is not None:
                lacking = served.refusal(self._added.get(result.added))
            if lacking is None:
                return self._take_result(client, served, lease, result)
            result = replace(result, failure=lacking)
        return self._take_failure(client, served, lease, result)

    def _lease(self, lease_id: LeaseId, client: str) -> Lease | str:
        """The lease that this client holds or has lost; otherwise the answer to its earlier delivery, or "refused"."""
        lease = self.books.find(lease_id, client)
        if lease is not None:
            return lease
        workflow, number, secret = lease_id
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

    # Data that only the store has

    def _end_of(self, place: Place) -> Attempt | None:
        recent = self.books.recent.get(place)
        if recent is None and place not in self._past.ends:
            raise ForgottenError
        return recent or self._past.ends[place]

    def wanted(self, client: Client, deliveries: Sequence[ResultWords]) -> Lacking:
        """What must be read before these results can be processed."""
        lacking, books = Lacking(), self.books
        for result in deliveries:
            workflow, number, _ = lease_id = parts_of(result.lease)
            exists = workflow in books.served or workflow in books.ended
            if number < 0 or not exists or books.find(lease_id, client.id) is not None:
                continue
            if (workflow, number) not in books.recent:
                lacking.ends.add((workflow, number))
            if books.digests_of(workflow) is None:
                lacking.digests.add(workflow)
            if workflow in books.ended:
                lacking.files.update((workflow, name) for name in result.outputs)
        return lacking

    def adding(self, deliveries: Sequence[ResultWords]) -> list[str]:
        """The documents of added tasks that must be read before these results can be processed."""
        return [result.added for result in deliveries if result.added is not None and self._may_add(result)]

    def _may_add(self, result: ResultWords) -> bool:
        workflow, number, _ = parts_of(result.lease)
        served, past = self.books.served.get(workflow), self.books.recent.get((workflow, number))
        if served is None or not served.wishes.grow or number < 0 or result.outcome != "done":
            return False
        lease = served.leases.get(number)
        return served.codes[lease.task] != EXECUTED if lease is not None else past is None or past.answer in LOST

    def _update_past(self, past: Past) -> Past:
        """The data that were read, with later outcomes; `UNKNOWN` if some of these are no longer in memory."""
        books = self.books
        if books.ends - past.at >= MOST_RECENT:
            return UNKNOWN
        for workflow, digests in past.digests.items():
            for one in books.recent.of(workflow):
                if one.answer == "accepted":
                    note(digests, one.task, one.digest)
            books.learn_digests(workflow, digests)
        return past

    def _too_late(self, lease: Lease, result: ResultWords) -> str:
        """Compare a result of an ended workflow with the accepted one; nothing is stored, since the answer stays the same."""
        digests = self.books.digests_of(lease.workflow) or ()
        accepted = digests[lease.task] if lease.task < len(digests) else 0
        return self._compare(lease.workflow, accepted, result)

    def _compare(self, workflow: str, accepted: int, result: ResultWords) -> str:
        """Compare a result with the accepted digest of its task; returns "duplicate" or "conflict"."""
        alike = result.outcome != "done" or not accepted or accepted == short(result.digest)
        alike = alike or _may_agree(accepted, self._files(workflow, result), result)
        self.duplicates += alike
        self.conflicts += not alike
        return "duplicate" if alike else "conflict"

    def _files(self, workflow: str, result: ResultWords) -> Mapping[str, FileRow | None]:
        """The files of a workflow, at least those that a result names if it has ended."""
        served = self.books.served.get(workflow)
        if served is not None:
            return {} if served.files is None else served.files.there
        if any((workflow, name) not in self._past.files for name in result.outputs):
            raise ForgottenError
        return {name: self._past.files[workflow, name] for name in result.outputs}

    def _together(
        self, client: Client, deliveries: Sequence[ResultWords], lease_ids: Sequence[LeaseId]
    ) -> dict[Place, tuple[Lease, ResultWords]]:
        """The results of one call that count if all of them do, by workflow and task, for workflows whose files are sent."""
        candidates = dict[Place, tuple[Lease, ResultWords]]()
        travelling = {workflow for workflow in {lease_id[0] for lease_id in lease_ids} if self._travels(workflow)}
        for result, lease_id in zip(deliveries, lease_ids, strict=True) if travelling else ():
            lease = self._lease(lease_id, client.id)
            if result.outcome == "done" and isinstance(lease, Lease) and lease.workflow in travelling:
                candidates[lease.workflow, lease.task] = lease, result
        near, doubtful = self._near(candidates), list(candidates)
        while doubtful:
            here = (place for place in doubtful if place in candidates)
            lacking = [place for place in here if not self._counts(*candidates[place], candidates)]
            for place in lacking:
                del candidates[place]
            doubtful = [*dict.fromkeys(chain.from_iterable(near[place] for place in lacking))]
        return candidates

    def _near(self, places: Collection[Place]) -> dict[Place, list[Place]]:
        """For each of these tasks those of them that it depends on or that depend on it, by an arc or by a file."""
        near: dict[Place, list[Place]] = {place: [] for place in places}
        for workflow, v in places:
            served = self.books.served[workflow]
            makers = () if served.files is None else map(served.files.makers.get, served.files.inputs[v])
            for u in {*served.flow.dag.parents_of(v).tolist(), *makers}:
                if (workflow, u) in near:
                    near[workflow, u].append((workflow, v))
                    near[workflow, v].append((workflow, u))
        return near

    def _travels(self, workflow: str) -> bool:
        """Whether results of a workflow have files and count without agreement."""
        served = self.books.served.get(workflow)
        return served is not None and served.files is not None and served.wishes.quorum == 1

    def _counts(self, lease: Lease, result: ResultWords, others: dict[Place, tuple[Lease, ResultWords]]) -> bool:
        """Whether a result will be accepted if all results before it are, which include those that its task depends on."""
        served = self.books.served[lease.workflow]
        for u in served.flow.dag.parents_of(lease.task).tolist():
            before = others.get((served.id, u))
            if served.codes[u] != EXECUTED and (before is None or before[0].number > lease.number):
                return False
        return self._lacking(served, lease.task, result, others) is None

    def _take_back_loss(self, served: Served, lease: Lease) -> None:
        """Uncount the loss of an expired lease whose client has responded: an attempt counts once, by its outcome."""
        past = self._end_of((lease.workflow, lease.number))
        if past is not None:
            served.tries.uncount(lease.task, lease.number, past.answer)

    def _take_loss(self, served: Served, lease: Lease, result: ResultWords) -> str:
        """Record that the client died while it ran the task; this counts like an expired lease."""
        if lease.number in served.leases:
            self.books.lose(served, lease, "lost", DIED)
        else:
            self.books.bring(served, [(lease, result)], "lost", DIED)
            served.tries.count(lease.task, lease.number, "lost")
            self.books.reconsider(served, lease.task)
            self.books.came_back(served)
        return "lost"

    def _take_return(self, served: Served, lease: Lease, result: ResultWords) -> str:
        served.tries.begun[lease.task] -= 1
        if result.distrusted:
            served.shun(lease.client)
        self._give_back(served, lease, result, "returned")
        return "returned"

    def _refuse(self, served: Served, lease: Lease, result: ResultWords, why: str) -> str:
        """Refuse a result that cannot count now; its lease ends."""
        self._discard_files(served, result)
        result = replace(result, failure=why)
        self._give_back(served, lease, result, "refused")
        return "refused"

    def _give_back(self, served: Served, lease: Lease, result: ResultWords, answer: str) -> None:
        """End a lease, active or lost, with a delivery that does not finish its task."""
        live = lease.number in served.leases
        self.books.bring(served, [(lease, result)], answer, result.failure)
        if live:
            self.books.come_back(served, lease.task)
        else:
            self.books.reconsider(served, lease.task)
        self.books.came_back(served)

    def _duplicate(self, served: Served, lease: Lease, result: ResultWords) -> str:
        """Compare a result of a finished task with the accepted one, and store it."""
        accepted = 0 if served.digests is None else served.digests[lease.task]
        answer = self._compare(served.id, accepted, result)
        self._discard_files(served, result)
        self.books.bring(served, [(lease, result)], answer, result.failure)
        self.books.touch(served)
        return answer

    def _discard_files(self, served: Served, result: ResultWords) -> None:
        """Remove the files of a result that does not count soon, if space is limited and nothing else needs them."""
        for file in result.outputs.values() if served.within is not None else ():
            self.books.spent.setdefault(file.sha256, BRIEFLY_UNUSED)

    def _lacking(self, served: Served, task: int, result: ResultWords, together: Collection[Place]) -> str | None:
        """Why a result is incomplete; None if it is complete."""
        outputs = served.flow.task(served.flow.dag.tasks[task]).outputs
        own = set(outputs)  # a set, since there may be very many
        for name, file in result.outputs.items():
            if name not in own:
                return f"{name!r} is not an output of the task"
            if not self.has_file(file.sha256):
                return f"file {file.sha256} was not uploaded"
        for name in outputs:
            if name not in result.outputs and not self._needless(served, name, together):
                return f"the task did not write {name!r}"
        return None

    def _needless(self, served: Served, name: str, together: Collection[Place]) -> bool:
        """Whether a file has readers that are all finished or finish together with its task, so that it is not needed."""
        readers = () if served.files is None else served.files.inside_readers(name)
        codes = served.codes
        return bool(readers) and all(codes[v] == EXECUTED or (served.id, v) in together for v in readers)

    def _take_result(self, client: Client, served: Served, lease: Lease, result: ResultWords) -> str:
        if served.wishes.quorum > 1 and not self._counts_alone(client, served, lease.task, result):
            if served.tries.counts(lease.task, lease.number):
                served.votes.setdefault(lease.task, {})[lease.number] = Vote(client.id, result.digest)
            if len(served.voters(lease.task, result.digest)) < served.wishes.quorum:
                self._give_back(served, lease, result, "voted")
                return "voted"
        if not served.may_end(lease.task):
            return self._refuse(served, lease, result, NO_SPACE)
        served.execution.complete_number(lease.task, late=True)
        self._accept(client, [(lease, result)])
        return "accepted"

    def _counts_alone(self, client: Client, served: Served, task: int, result: ResultWords) -> bool:
        """Whether a result counts alone: its client is trusted, no other result differs, and no spot check is due."""
        if not client.trusted(self.books.terms):
            return False
        owner, voters = self.books.owner_of(client.id), served.voters(task)
        if voters:
            return owner not in voters and served.voters(task, result.digest) == voters
        return self.books.random.random() >= self.books.terms.spot_checks or self.books.owners_here() <= {owner}

    def _alone(self, client: Client) -> bool:
        """Whether no other client is connected; clients that left long ago are not checked for each failure."""
        other, now = self._other, self.books.now
        if other is not None and other is not client and other.approved and self.books.is_alive(other):
            return False
        if self._alone_at != (client.id, now):
            self._alone_at = client.id, now
            self._other = next((one for one in self.books.connected() if one is not client), None)
        return self._other is None

    def _accept(self, client: Client, good: list[Brought]) -> None:
        """Accept the first good results of tasks of a workflow and empty the list; other leases of these tasks end."""
        if not good:
            return
        served, came, good[:] = self.books.served[good[0][0].workflow], good[:], ()
        ends, took = self.books.bring(served, came, "accepted")
        others = [other for end in ends if end.task in served.holding for other in served.holders(end.task)]
        if others:
            self.books.end(served, others, "dropped", "another client finished the task first")
        for _, result in came:
            if result.outputs:
                self._take_files(served, result)
        self._forget_spent(served, [lease.task for lease, _ in came])
        self._credit(client, served, ends, took)
        self.books.after(served)

    def _take_files(self, served: Served, result: ResultWords) -> None:
        for name, file in result.outputs.items():
            row = FileRow(served.id, name, file.sha256, file.size)
            self.books.changes.files.append(row)
            served.take_file(row)

    def _forget_spent(self, served: Served, tasks: Sequence[int]) -> None:
        """Forget the temporary files that no task needs now that these tasks are done."""
        if (files := served.files) is None:
            return
        for name in list(dict.fromkeys(files.spent(tasks, served.codes))):
            row = files.there.pop(name)
            self.books.changes.files_gone.append((served.id, name))
            self.books.spent[row.sha256] = UNUSED if served.within is None else BRIEFLY_UNUSED

    def _credit(self, client: Client, served: Served, ends: Sequence[Attempt], took: float) -> None:
        digests, tasks = served.digests, [end.task for end in ends]
        confirmed = 0
        for end in ends:
            if end.task in served.votes:
                confirmed += 1
                self._judge(client, served.votes.pop(end.task), end.digest)
            if digests is not None:
                digests[end.task] = short(end.digest)
            served.saved += end.saved
        served.forget(tasks)
        served.allocator.learn_numbers(client.id, tasks, took)
        client.seconds += took
        client.succeeded(self.books.terms, len(ends), confirmed)
        self.books.note(client.id)

    def _judge(self, client: Client, votes: Mapping[int, Vote], digest: str | None) -> None:
        """Credit the clients whose votes agree with the accepted digest, and penalise the others."""
        for other, vote_digest in votes.values():
            if other in self.books.clients and other != client.id:
                voter = self.books.clients[other]
                if vote_digest == digest:
                    voter.succeeded(self.books.terms, confirmed=1)
                else:
                    voter.failed(self.books.now, self.books.terms)
                self.books.note(other)

    def _take_failure(self, client: Client, served: Served, lease: Lease, result: ResultWords) -> str:
        live, why = lease.number in served.leases, result.failure or "it failed"
        self.books.bring(served, [(lease, result)], "failed", why)
        served.tries.count(lease.task, lease.number, "failed")
        if live:
            self._blame(client, served, lease.task)
            self.books.come_back(served, lease.task, why)
        else:
            self.books.reconsider(served, lease.task, why)
        self.books.came_back(served)
        return "failed"

    def _blame(self, client: Client, served: Served, task: int) -> None:
        """Blame a client for a failure if the task has failed with no other client and other clients are connected."""
        before = served.failed_with.setdefault(task, set())
        if len(before) == 1 and client.id not in before:  # only the first client was blamed
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


def _may_agree(accepted: int, there: Mapping[str, FileRow | None], result: ResultWords) -> bool:
    """Whether a result may agree with the accepted one although their digests differ.

    If files of one of them stayed inside a grant, only the files that both sent can be compared.
    """
    if is_of_files(accepted) != bool(result.outputs):
        return True
    pairs = ((there.get(name), file.sha256) for name, file in result.outputs.items())
    return bool(there) and bool(result.outputs) and all(row is None or row.sha256 == sha256 for row, sha256 in pairs)
