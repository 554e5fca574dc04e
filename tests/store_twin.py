"""A server's store as slow and plain as can be, in memory; and changes at random, for it and a real one to keep."""

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from eligo.stores.service import Changes, ClientRow, FileRow, Moves, TokenRow, Upshot, WorkflowRow
from eligo.stores.service_sql import ServiceStore
from eligo.work.attempts import Attempt, Lease
from eligo.work.tries import Tried


@dataclass
class TwinStore:
    """What a store must tell, from all that it was given one after another."""

    rows: dict[str, WorkflowRow] = field(default_factory=dict)
    journal: dict[str, list[int]] = field(default_factory=dict)
    out: dict[tuple[str, int], Lease] = field(default_factory=dict)
    came: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    there: dict[tuple[str, str], FileRow] = field(default_factory=dict)
    signed: dict[tuple[str, str], str] = field(default_factory=dict)
    known: dict[str, ClientRow] = field(default_factory=dict)
    given: dict[str, TokenRow] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    pardons: dict[tuple[str, int], int] = field(default_factory=dict)

    def commit(self, changes: Sequence[Changes]) -> None:
        before = dict(self.known)
        for one in changes:
            self._keep_workflows(one)
            self.pardons |= {(workflow, task): number for workflow, task, number in one.retried}
            for moves in one.moves:
                self.journal.setdefault(moves.workflow, []).extend(moves.moves)
            self.out |= {(row.workflow, row.number): row for row in one.leases}
            over = set(one.ended)
            self.out = {place: row for place, row in self.out.items() if (row.workflow, row.first) not in over}
            self.came |= {(row.workflow, row.number): row for row in one.outcomes}
            self.there |= {(row.workflow, row.name): row for row in one.files}
            self.signed |= {(workflow, task): signature for workflow, task, signature in one.signatures}
            for row in one.clients:
                old = before.get(row.id, row)
                self.known[row.id] = row._replace(approved=old.approved, held=old.held, tags=old.tags)
            self.given |= {row.hash: row for row in one.tokens}
            self.said |= dict(one.facts)
        for client, approved in (each for one in changes for each in one.approvals):
            if client in self.known:
                self.known[client] = self.known[client]._replace(approved=approved)
        for client, held, tags in (each for one in changes for each in one.client_notes):
            if client in self.known:
                self.known[client] = self.known[client]._replace(held=held, tags=tags)
        self._forget(changes)

    def _keep_workflows(self, one: Changes) -> None:
        self.rows |= {row.id: row for row in one.workflows}
        for workflow, state in one.states:
            self.rows[workflow] = self.rows[workflow]._replace(state=state)
        for workflow, plan in one.plans:
            self.rows[workflow] = self.rows[workflow]._replace(plan=plan)
        for workflow, lost in one.losses:
            self.rows[workflow] = self.rows[workflow]._replace(lost=lost)
        for workflow, ended, tally in one.endings:
            self.rows[workflow] = self.rows[workflow]._replace(ended=ended, tally=tally)

    def _forget(self, changes: Sequence[Changes]) -> None:
        for one in changes:
            for (client,) in one.clients_gone:
                self.known.pop(client, None)
            for (hash,) in one.tokens_gone:
                self.given.pop(hash, None)
            for place in one.files_gone:
                self.there.pop(place, None)
            gone = set(one.pages_gone)
            self.came = {place: row for place, row in self.came.items() if (place[0], place[1] // 256) not in gone}
            for (workflow,) in one.purged:
                self._purge(workflow)

    def _purge(self, workflow: str) -> None:
        self.rows.pop(workflow, None)
        self.journal.pop(workflow, None)
        tables: list[dict[Any, Any]] = [self.out, self.came, self.there, self.signed, self.pardons]
        for rows in tables:
            for place in [place for place in rows if place[0] == workflow]:
                del rows[place]

    def needed(self, hashes: Collection[str], since: float) -> set[str]:
        """Those of the files that somebody needs still."""
        final = {id for id, row in self.rows.items() if row.state in {"done", "cancelled"}}
        recent = {id for id in final if (ended := self.rows[id].ended) is not None and ended > since}
        found = [row for row in self.there.values() if row.workflow not in final or row.workflow in recent]
        return {row.sha256 for row in found if not (row.given and row.workflow in final)} & set(hashes)

    def outdated(self, before: float) -> set[tuple[str, str]]:
        """Files of workflows that ended before a time."""
        rows = [self.rows[workflow] for workflow, _ in self.there]
        old = {
            row.id
            for row in rows
            if row.state in {"done", "cancelled"} and row.ended is not None and row.ended < before
        }
        return {place for place in self.there if place[0] in old}

    def _counting(self, rows: list[Attempt]) -> list[Attempt]:
        return [row for row in rows if row.number > self.pardons.get((row.workflow, row.task), 0)]

    def told(self, workflow: str) -> dict[str, Any]:
        """All that a store is asked of a workflow."""
        came = sorted((row for row in self.came.values() if row.workflow == workflow), key=lambda row: row.number)
        given = sorted((row for row in self.out.values() if row.workflow == workflow), key=lambda row: row.number)
        other = [row for row in came if row.answer != "accepted"]
        return {
            "document": self.rows[workflow].document if workflow in self.rows else b"",
            "moves": array("q", self.journal.get(workflow, [])),
            "leases": [row for row in given if (workflow, row.number) not in self.came],
            "last_number": max([0, *(row.number for row in came), *(row.number for row in given)]),
            "upshot": Upshot(
                {row.task: self._tally([same for same in other if same.task == row.task]) for row in other},
                [(r.task, r.number, r.client, r.digest or "") for r in self._counting(came) if r.answer == "voted"],
                len(came) - len(other), sum(row.attempt > 1 for row in came), sum(row.saved for row in came),
                {task: number for (owner, task), number in self.pardons.items() if owner == workflow},
                {r.task: r.failure for r in self._counting(came) if r.answer == "failed" and r.failure},
            ),
            "accepted": sorted((row.task, str(row.digest)) for row in came if row.answer == "accepted"),
            "outcomes": came,
            "outcome": [*came, None],
            "outcomes_from": [row for row in came if row.number >= 2][:2],
            "files": sorted(row for row in self.there.values() if row.workflow == workflow),
            "signatures": {task: signature for (owner, task), signature in self.signed.items() if owner == workflow},
        }  # fmt: skip

    def _tally(self, rows: list[Attempt]) -> Tried:
        answers = [row.answer for row in self._counting(rows)]
        return Tried(len(rows), answers.count("failed"), answers.count("expired") + answers.count("lost"))

    def told_of_all(self) -> dict[str, Any]:
        """All else that a store is asked."""
        rows = [r if r.state in {"running", "paused", "held"} else r._replace(document=b"") for r in self.rows.values()]
        return {
            "workflows": sorted(rows, key=lambda row: (row.made, row.id)),
            "clients": sorted(self.known.values(), key=lambda row: (row.made, row.id)),
            "tokens": sorted(self.given.values(), key=lambda row: (row.made, row.hash)),
            "facts": self.said,
            "states": {row.id: row.state for row in sorted(rows, key=lambda row: (row.made, row.id))},
        }


def told_by(store: ServiceStore, workflow: str) -> dict[str, Any]:
    """What a store tells of a workflow."""
    came = list(store.outcomes(workflow))
    unknown = max((row.number for row in came), default=0) + 1
    return {
        "document": store.document(workflow),
        "moves": store.moves(workflow),
        "leases": store.leases(workflow),
        "last_number": store.last_number(workflow),
        "upshot": store.upshot(workflow),
        "accepted": sorted((task, str(digest)) for task, digest in store.accepted(workflow)),
        "outcomes": came,
        "outcome": [store.outcome(workflow, number) for number in (*(row.number for row in came), unknown)],
        "outcomes_from": store.outcomes_from(workflow, 2, 2),
        "files": store.files(workflow),
        "signatures": store.signatures(workflow),
    }


def check_same(store: ServiceStore, twin: TwinStore) -> None:
    """A store tells what its twin tells."""
    for name, told in twin.told_of_all().items():
        assert getattr(store, name)() == told, name
    assert [store.client(id) for id in (*twin.known, "nobody's id")] == [*twin.known.values(), None]
    assert [store.token(hash) for hash in (*twin.given, "nobody's hash")] == [*twin.given.values(), None]
    assert [store.workflow(id) for id in (*twin.rows, "no workflow's")] == [*twin.rows.values(), None]
    assert [store.submitted(row.key) for row in twin.rows.values()] == list(twin.rows)
    for workflow in twin.rows:
        assert told_by(store, workflow) == twin.told(workflow)
        names = [row.name for row in twin.there.values() if row.workflow == workflow]
        assert [store.file(workflow, name) for name in (*names, "no file's")] == [
            *(twin.there[workflow, name] for name in names),
            None,
        ]
    hashes = {row.sha256 for row in twin.there.values()}
    assert store.needed(hashes, 0.0) == twin.needed(hashes, 0.0)
    assert set(store.outdated(0.0, 1000)) == twin.outdated(0.0)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
TEXTS = st.one_of(TEXT, st.sampled_from(['"', "\\", "NULL", "{}", ",", "?", "%s", "'", " ", "\\x00", "é\U0001f600"]))
NUMBER = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 5)
LEASE = st.one_of(SMALL, st.sampled_from([255, 256, 257, 300, 20_000]))
REAL = st.floats(allow_nan=False)
TIME = st.floats(allow_nan=False, allow_infinity=False)
BYTES = st.binary(max_size=12)
ANSWER = st.sampled_from(["accepted", "failed", "expired", "lost", "voted", "returned"])
MAYBE = st.one_of(st.none(), TEXTS)
MAYBE_REAL = st.one_of(st.none(), REAL)
MAYBE_NUMBER = st.one_of(st.none(), NUMBER)


def workflow_rows(ids: Sequence[str]) -> st.SearchStrategy[list[WorkflowRow]]:
    """A row for every workflow."""
    state = st.sampled_from(["running", "paused", "held", "done", "cancelled"])
    plan = st.one_of(st.none(), BYTES)
    return st.tuples(*(
        st.builds(WorkflowRow, st.just(id), st.just(f"key {id}"), TEXTS, TEXTS, REAL, TEXTS, TEXTS, state, REAL, BYTES, plan,
                  SMALL, MAYBE_REAL, MAYBE)
        for id in ids
    )).map(list)  # fmt: skip


@st.composite
def groups(draw: st.DrawFn) -> list[list[Changes]]:
    """Groups of changes as a server makes them: workflows first, leases under new numbers, moves one after another."""
    ids = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
    which = st.sampled_from(ids)
    first, number, out = dict.fromkeys(ids, 0), iter(range(1, 10_000)), list[tuple[str, int]]()

    grants = st.tuples(
        which, st.lists(st.tuples(SMALL, NUMBER), min_size=1, max_size=3), st.tuples(TEXTS, TEXTS, TEXTS), REAL
    )

    def some(row: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(row, max_size=2))

    def granted(workflow: str, tasks: list[tuple[int, int]], who: tuple[str, str, str], since: float) -> list[Lease]:
        numbers = [next(number) for _ in tasks]
        known = zip(numbers, tasks, strict=True)
        return [Lease(workflow, n, v, attempt, *who, numbers[0], since) for n, (v, attempt) in known]

    def one() -> Changes:
        moves = [Moves(w, 0, array("q", found)) for w, found in some(st.tuples(which, st.lists(NUMBER, min_size=1)))]
        placed = []
        for row in moves:
            placed.append(row._replace(first=first[row.workflow]))
            first[row.workflow] += len(row.moves)
        ended = [out.pop() for _ in range(min(len(out), draw(st.integers(0, 2))))]
        leases = [lease for grant in some(grants) for lease in granted(*grant)]
        out.extend({(row.workflow, row.first): None for row in leases})
        return Changes(
            states=some(st.tuples(which, st.sampled_from(["running", "done"]))), plans=some(st.tuples(which, BYTES)),
            moves=placed, leases=leases, ended=ended,
            outcomes=some(st.builds(Attempt, which, LEASE, SMALL, NUMBER, TEXTS, TEXTS, TIME, TIME, ANSWER, MAYBE,
                                    MAYBE_NUMBER, MAYBE_NUMBER, MAYBE, MAYBE, SMALL)),
            losses=some(st.tuples(which, SMALL)), endings=some(st.tuples(which, REAL, TEXTS)),
            retried=some(st.tuples(which, SMALL, SMALL)),
            files=some(st.builds(FileRow, which, TEXTS, TEXTS, NUMBER, st.integers(0, 1))),
            signatures=some(st.tuples(which, TEXTS, TEXTS)),
            clients=some(st.builds(ClientRow, TEXTS, TEXTS, REAL, REAL, REAL, st.booleans(), REAL, *[NUMBER] * 2, REAL,
                                   *[NUMBER] * 4, REAL, st.booleans(), TEXTS)),
            approvals=some(st.tuples(TEXTS, st.booleans())), client_notes=some(st.tuples(TEXTS, st.booleans(), TEXTS)),
            tokens=some(st.builds(TokenRow, TEXTS, TEXTS, MAYBE, TEXTS, REAL, MAYBE_REAL, MAYBE_REAL, TEXTS, MAYBE)),
            facts=some(st.tuples(TEXTS, TEXTS)), clients_gone=some(st.tuples(TEXTS)), tokens_gone=some(st.tuples(TEXTS)),
            files_gone=some(st.tuples(which, TEXTS)),
        )  # fmt: skip

    begun = [[Changes(workflows=draw(workflow_rows(ids)))]]
    moved = [[one() for _ in range(draw(st.integers(1, 3)))] for _ in range(draw(st.integers(0, 3)))]
    return begun + moved + [[Changes(pages_gone=some(st.tuples(which, SMALL)), purged=some(st.tuples(which)))]]
