"""The store of a server in a database that speaks SQL: what it is asked, the statements, and leases as they are stored.

Statements are written with `?` for values; a database that wants another sign replaces it.

The leases of a grant are one row. Outcomes of leases are stored by the page, for so many lease numbers of one workflow; each
commit adds a row to its pages. Both are JSON. Where a lease has several outcomes, the last one counts.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from eligo.errors import InputError
from eligo.stores.database import Added, unpacked_addition, unpacked_numbers
from eligo.stores.service import (
    KINDS,
    AdditionRow,
    Changes,
    ClientRow,
    FileRow,
    Moves,
    TokenRow,
    Upshot,
    WorkflowRow,
    upshot_of,
)
from eligo.work.attempts import Attempt, Lease

PAGE = 256  # numbers of leases
NUL = "a text with a NUL character cannot be stored"
HALF = "a text with an unpaired surrogate cannot be stored"
#: the row of a grant
GRANT = ("workflow", "first", "client", "secret", "key", "since", "tasks")
#: what came of a lease, but for its workflow
_End = tuple[
    int, int, int, str, str, float, float, str, str | None, int | None, int | None, str | None, str | None, int
]
_encode = msgspec.json.Encoder().encode
_tasks = msgspec.json.Decoder(list[tuple[int, int, int]]).decode
_task = itemgetter(1, 2, 3)
_ends = msgspec.json.Decoder(list[_End]).decode


class Keeping(NamedTuple):
    """How a kind of change is kept: in which table, what of it, and by which columns a row is known.

    Rows are inserted where *verb* says so; "put" also changes those that are there already.
    """

    verb: str
    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    #: what "put" leaves as it is in rows that are there already
    steady: tuple[str, ...] = ()

    def statement(self) -> str:
        """The statement for one row."""
        condition = " AND ".join(f"{key} = ?" for key in self.keys)
        if self.verb == "delete":
            return f"DELETE FROM {self.table} WHERE {condition}"  # noqa: S608 - our own words, here and below
        if self.verb == "update":
            changed = ", ".join(f"{column} = ?" for column in self.columns if column not in self.keys)
            return f"UPDATE {self.table} SET {changed} WHERE {condition}"  # noqa: S608
        values = ", ".join("?" * len(self.columns))
        return f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({values}){self.otherwise()}"  # noqa: S608

    def otherwise(self) -> str:
        """What becomes of a row that is there already: it becomes as this one."""
        if self.verb != "put":
            return ""
        unchanged = self.keys + self.steady
        changed = ", ".join(f"{column} = excluded.{column}" for column in self.columns if column not in unchanged)
        return f" ON CONFLICT ({', '.join(self.keys)}) DO UPDATE SET {changed}"

    def last(self, rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """Of rows that are known by the same values only the last, which is what would be left of them."""
        if self.verb in {"insert", "delete"}:
            return list(rows)
        where = [self.columns.index(key) for key in self.keys]
        return list({tuple(row[i] for i in where): row for row in rows}.values())


#: how each kind of change is kept
KEEPING = {
    "workflows": Keeping("insert", "workflow", WorkflowRow._fields),
    "states": Keeping("update", "workflow", ("state", "id"), ("id",)),
    "plans": Keeping("update", "workflow", ("plan", "id"), ("id",)),
    "losses": Keeping("update", "workflow", ("lost", "id"), ("id",)),
    "endings": Keeping("update", "workflow", ("ended", "tally", "id"), ("id",)),
    "additions": Keeping("insert", "addition", AdditionRow._fields),
    "moves": Keeping("insert", "journal", Moves._fields),
    "leases": Keeping("insert", "lease", GRANT),
    "ended": Keeping("delete", "lease", ("workflow", "first"), ("workflow", "first")),
    "outcomes": Keeping("insert", "outcome", ("workflow", "page", "ends")),
    "files": Keeping("put", "file", FileRow._fields, ("workflow", "name")),
    "retried": Keeping("put", "retried", ("workflow", "task", "number"), ("workflow", "task")),
    "signatures": Keeping("put", "signature", ("workflow", "task", "signature"), ("workflow", "task")),
    "clients": Keeping("put", "client", ClientRow._fields, ("id",), ("approved", "held", "tags")),
    "approvals": Keeping("update", "client", ("approved", "id"), ("id",)),
    "client_notes": Keeping("update", "client", ("held", "tags", "id"), ("id",)),
    "tokens": Keeping("put", "token", TokenRow._fields, ("hash",)),
    "facts": Keeping("put", "fact", ("name", "value"), ("name",)),
    "clients_gone": Keeping("delete", "client", ("id",), ("id",)),
    "tokens_gone": Keeping("delete", "token", ("hash",), ("hash",)),
    "files_gone": Keeping("delete", "file", ("workflow", "name"), ("workflow", "name")),
    "pages_gone": Keeping("delete", "outcome", ("workflow", "page"), ("workflow", "page")),
    "purged": Keeping("delete", "workflow", ("id",), ("id",)),
    "parts": Keeping("put", "document_part", ("workflow", "part", "content"), ("workflow", "part")),
}
#: what else goes with a workflow that is purged, by its table
PURGED = {
    f"purged {table}": Keeping("delete", table, ("workflow",), ("workflow",))
    for table in ("addition", "journal", "lease", "outcome", "file", "signature", "retried", "document_part")
}
KEEPING |= PURGED
_ENDED = "state NOT IN ('running', 'paused', 'held')"
_FINAL = "state IN ('done', 'cancelled')"
WORKFLOWS = f"""SELECT id, key, name, owner, share, policy, settings, state, made,
    CASE WHEN {_ENDED} THEN NULL ELSE document END, plan, lost, ended, tally FROM workflow ORDER BY made, id"""  # noqa: S608
PAGES = "SELECT DISTINCT page FROM outcome WHERE workflow = ? AND page >= ? ORDER BY page"
ENDS = "SELECT page, ends FROM outcome WHERE workflow = ? AND page BETWEEN ? AND ? ORDER BY page, id"
MOST_PAGES = 40  # that are in memory at a time
NEEDED = f"""SELECT DISTINCT sha256 FROM file JOIN workflow ON id = workflow
    WHERE (NOT {_FINAL} OR (given = 0 AND ended > ?)) AND sha256 IN ({{}})"""  # noqa: S608
OUTDATED = f"""SELECT file.workflow, file.name FROM workflow JOIN file ON file.workflow = workflow.id
    WHERE {_FINAL} AND ended < ? LIMIT ?"""  # noqa: S608


class ServiceStore:
    """Stores what a server must not forget. One thread writes; the others only read.

    Several servers may use one database. Each then holds workflows, by the clock of the database and no other: a server's
    changes to a workflow are refused once another one holds it. A file has one server, which holds every workflow.

    The questions are answered here. `_rows` and all that writes or holds are the database's own.
    """

    #: what its user should know of it, if anything
    remark: str | None
    #: whether other servers may be at it
    shared: bool
    #: where the server that is at it is found
    address: str

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows that a question is answered with."""
        raise NotImplementedError

    def _row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        return next(iter(self._rows(statement, values)), None)

    def _select(self, kind: str, rest: str = "", values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of one kind of change, with the columns that are stored of it."""
        keeping = KEEPING[kind]
        return self._rows(f"SELECT {', '.join(keeping.columns)} FROM {keeping.table} {rest}", values)  # noqa: S608

    def commit(self, changes: Sequence[Changes]) -> None:
        """Keep all of it or nothing; on the disk when this returns. New workflows are held by who submits them.

        `OSError` where that cannot be done now: the same changes may be given again, also with others, and are never kept
        twice. `InputError` where it never can: a row that is there already, or a text with a NUL character in it.
        `NotHeldError` where another server holds one of the workflows.
        """
        self.prepare(changes)
        self.finish()

    def prepare(self, changes: Sequence[Changes]) -> None:
        """The first half of `commit`: what is done without much waiting."""
        raise NotImplementedError

    def finish(self) -> None:
        """The second half: wait until what was prepared is on the disk."""
        raise NotImplementedError

    def hold(self, workflow: str) -> int | None:
        """Take a workflow for `HELD` seconds if no server holds it; returns its epoch, or None if another has it.

        A server that is at the address of the one that holds it comes after that one, and takes it at once.
        """
        raise NotImplementedError

    def keep_holding(self, seconds: float) -> set[str]:
        """Extend the hold on all unfinished workflows of this server; returns them."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Hold nothing any more: others may take it at once."""
        raise NotImplementedError

    def holders(self) -> dict[str, str]:
        """The address of the server that holds a workflow, by workflow."""
        raise NotImplementedError

    def unheld(self) -> list[str]:
        """The workflows that go on and that `hold` would give this server, who does not hold them."""
        raise NotImplementedError

    def backup(self, path: str | Path) -> None:
        """A copy as of one moment, while the store is used."""
        raise NotImplementedError

    def close(self) -> None:
        """Close its connections; nothing is held any more."""
        raise NotImplementedError

    def workflows(self) -> list[WorkflowRow]:
        """Every workflow, the first submitted first; documents in parts, and of those that have ended, are empty."""
        return [_workflow_row(row) for row in self._rows(WORKFLOWS)]

    def workflow(self, id: str) -> WorkflowRow | None:
        """One workflow, with its document unless that is kept in parts."""
        return next(map(_workflow_row, self._select("workflows", "WHERE id = ?", (id,))), None)

    def submitted(self, key: str) -> str | None:
        """The workflow that was submitted by the request of this key."""
        row = self._row("SELECT id FROM workflow WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def states(self) -> dict[str, str]:
        """The state of every workflow, the first submitted first."""
        return dict(self._rows("SELECT id, state FROM workflow ORDER BY made, id"))

    def document(self, workflow: str) -> bytes:
        """The document of a workflow."""
        row = self._row("SELECT document FROM workflow WHERE id = ?", (workflow,))
        if row is None or row[0]:
            return bytes(row[0]) if row else b""
        parts = self._rows("SELECT content FROM document_part WHERE workflow = ? ORDER BY part", (workflow,))
        return b"".join(bytes(part) for (part,) in parts)

    def additions(self, workflow: str) -> list[Added]:
        """What was added to a workflow, in order."""
        rows = self._rows("SELECT tasks, arcs FROM addition WHERE workflow = ? ORDER BY number", (workflow,))
        return [unpacked_addition(tasks, bytes(arcs)) for tasks, arcs in rows]

    def moves(self, workflow: str) -> "array[int]":
        """Every move of a workflow."""
        rows = self._rows("SELECT moves FROM journal WHERE workflow = ? ORDER BY first", (workflow,))
        return unpacked_numbers(b"".join(bytes(row) for (row,) in rows))

    def leases(self, workflow: str) -> list[Lease]:
        """Who has what of a workflow."""
        leases = self._unpack_leases(workflow)
        pages = sorted({page_of(lease.number) for lease in leases})
        over = {end.number for page in pages for end in chain.from_iterable(self._ends(workflow, page, page))}
        return [lease for lease in leases if lease.number not in over]

    def _unpack_leases(self, workflow: str) -> list[Lease]:
        """The leases of all grants of which something is out."""
        return unpack_leases(self._select("leases", "WHERE workflow = ? ORDER BY first", (workflow,)))

    def last_number(self, workflow: str) -> int:
        """The largest number that a lease of a workflow ever had."""
        row = self._row("SELECT max(page) FROM outcome WHERE workflow = ?", (workflow,))
        last = () if row is None or row[0] is None else next(self._ends(workflow, row[0], row[0]))
        return max((one.number for one in (*last, *self._unpack_leases(workflow))), default=0)

    def upshot(self, workflow: str) -> Upshot:
        """The outcomes of ended leases."""
        rows = self._rows("SELECT task, number FROM retried WHERE workflow = ?", (workflow,))
        return upshot_of(self.outcomes(workflow), dict(rows))

    def accepted(self, workflow: str) -> Iterator[tuple[int, str | None]]:
        """The digest of every result that was accepted, by task."""
        return ((end.task, end.digest) for end in self.outcomes(workflow) if end.answer == "accepted")

    def outcome(self, workflow: str, number: int) -> Attempt | None:
        """The outcome of a lease."""
        page = page_of(number)
        ends = chain.from_iterable(self._ends(workflow, page, page))
        return next((end for end in ends if end.number == number), None)

    def outcomes(self, workflow: str) -> Iterator[Attempt]:
        """Everything that came of a workflow's leases, in order of their numbers."""
        return self._since(workflow, 0)

    def outcomes_from(self, workflow: str, first: int, most: int) -> list[Attempt]:
        """Outcomes from a lease number on, up to a limit."""
        return list(islice((end for end in self._since(workflow, page_of(first)) if end.number >= first), most))

    def pages(self, workflow: str) -> list[int]:
        """The pages on which outcomes of a workflow are kept."""
        return self._pages(workflow, 0)

    def _pages(self, workflow: str, first: int) -> list[int]:
        return [page for (page,) in self._rows(PAGES, (workflow, first))]

    def _since(self, workflow: str, page: int) -> Iterator[Attempt]:
        """What came of leases, from a page on."""
        pages = self._pages(workflow, page)
        for i in range(0, len(pages), MOST_PAGES):
            some = pages[i : i + MOST_PAGES]
            yield from chain.from_iterable(self._ends(workflow, some[0], some[-1]))

    def _ends(self, workflow: str, first: int, last: int) -> Iterator[list[Attempt]]:
        """What came of leases, page after page."""
        for _, rows in groupby(self._rows(ENDS, (workflow, first, last)), itemgetter(0)):
            yield unpack_ends(workflow, (ends for _, ends in rows))

    def files(self, workflow: str) -> list[FileRow]:
        """The files of a workflow that are there."""
        return list(map(FileRow._make, self._select("files", "WHERE workflow = ? ORDER BY name", (workflow,))))

    def file(self, workflow: str, name: str) -> FileRow | None:
        """One of them."""
        rows = self._select("files", "WHERE workflow = ? AND name = ?", (workflow, name))
        return next(map(FileRow._make, rows), None)

    def needed(self, hashes: Collection[str], since: float) -> set[str]:
        """Those of the files, by hash, that an unfinished workflow needs, or that one which ended since then has written."""
        if not hashes:
            return set()
        return {sha256 for (sha256,) in self._rows(NEEDED.format(", ".join("?" * len(hashes))), (since, *hashes))}

    def outdated(self, before: float, most: int) -> list[tuple[str, str]]:
        """Files of workflows that ended before a time, up to a limit: workflow and name."""
        return [(workflow, name) for workflow, name in self._rows(OUTDATED, (before, most))]

    def signatures(self, workflow: str) -> dict[str, str]:
        """The signatures of a workflow's tasks, by task."""
        rows = self._rows("SELECT task, signature FROM signature WHERE workflow = ?", (workflow,))
        return dict(rows)

    def clients(self) -> list[ClientRow]:
        """Every client."""
        return list(map(_client_row, self._select("clients", "ORDER BY made, id")))

    def client(self, id: str) -> ClientRow | None:
        """One client."""
        return next(map(_client_row, self._select("clients", "WHERE id = ?", (id,))), None)

    def tokens(self) -> list[TokenRow]:
        """Every token."""
        return list(map(TokenRow._make, self._select("tokens", "ORDER BY made, hash")))

    def token(self, hash: str) -> TokenRow | None:
        """One token."""
        return next(map(TokenRow._make, self._select("tokens", "WHERE hash = ?", (hash,))), None)

    def facts(self) -> dict[str, str]:
        """What else is known."""
        return dict(self._select("facts"))


def _workflow_row(row: Sequence[Any]) -> WorkflowRow:
    workflow = WorkflowRow._make(row)
    return workflow._replace(
        document=bytes(workflow.document or b""), plan=None if workflow.plan is None else bytes(workflow.plan)
    )


def _client_row(row: Sequence[Any]) -> ClientRow:
    client = ClientRow._make(row)
    return client._replace(approved=bool(client.approved), held=bool(client.held))


def to_keep(changes: Sequence[Changes]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    """What is to be written, in order: each kind with its rows, their values in the order of its columns."""
    for kind in KINDS:
        rows: list[Any] = list(chain.from_iterable(getattr(one, kind) for one in changes))
        if rows:
            values = KEEPING[kind].last(_column_values(kind, rows))
            _check_texts(values)
            yield kind, values
            yield from ((part, values) for part in (PURGED if kind == "purged" else ()))


def _column_values(kind: str, rows: list[Any]) -> list[Any]:
    """The values of rows in the order of their columns."""
    if kind in PACKED:
        return PACKED[kind](rows)
    if KEEPING[kind].verb == "update":
        return [(*values, id) for id, *values in rows]
    return rows


def _join_moves(rows: Iterable[Moves]) -> list[tuple[str, int, bytes]]:
    """Moves that follow one another in one row."""
    last: dict[str, tuple[int, array[int]]] = {}
    done = []
    for workflow, first, moves in rows:
        start, together = last.get(workflow, (first, array("q")))
        if start + len(together) != first:
            done.append((workflow, start, together.tobytes()))
            start, together = first, array("q")
        together.extend(moves)
        last[workflow] = start, together
    return done + [(workflow, start, together.tobytes()) for workflow, (start, together) in last.items() if together]


def page_of(number: int) -> int:
    """The page for the number of a lease."""
    return number // PAGE


def pack_leases(leases: Iterable[Lease]) -> list[tuple[Any, ...]]:
    """One row a grant; its leases follow one another.

    >>> grant = [Lease("w", number, task, 1, "ann", "5ec7e7", "k", 7, 2.0) for number, task in ((7, 0), (8, 3))]
    >>> pack_leases(grant)
    [('w', 7, 'ann', '5ec7e7', 'k', 2.0, '[[7,0,1],[8,3,1]]')]
    >>> unpack_leases(pack_leases(grant)) == grant
    True
    """
    grants = [[*grant] for _, grant in groupby(leases, itemgetter(0, 7))]
    return [
        (one.workflow, one.first, one.client, one.secret, one.key, one.since, _text([*map(_task, grant)]))
        for grant in grants
        for one in grant[:1]
    ]


def unpack_leases(rows: Iterable[tuple[Any, ...]]) -> list[Lease]:
    """The leases in the rows of grants, including ended ones."""
    return [
        Lease(workflow, number, task, attempt, client, secret, key, first, since)
        for workflow, first, client, secret, key, since, tasks in rows
        for number, task, attempt in _tasks(tasks)
    ]


def pack_ends(ends: Iterable[Attempt]) -> list[tuple[str, int, str]]:
    """One row a page."""
    pages: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    last, current = ("", -1), list[tuple[Any, ...]]()
    for end in ends:
        if end[1] // PAGE != last[1] or end[0] != last[0]:  # mostly it is the page of the one before
            last = end[0], end[1] // PAGE
            current = pages.setdefault(last, [])
        current.append(end[1:])
    return [(workflow, page, _text(rows)) for (workflow, page), rows in pages.items()]


def unpack_ends(workflow: str, rows: Iterable[str]) -> list[Attempt]:
    """The outcomes of the leases of one page, from its rows, by lease number."""
    by_number = {end[0]: end for row in rows for end in _ends(row)}
    return [Attempt(workflow, *by_number[number]) for number in sorted(by_number)]


def _text(rows: list[tuple[Any, ...]]) -> str:
    try:
        packed = _encode(rows)
    except UnicodeEncodeError:
        raise InputError(HALF) from None
    if b"\\u0000" in packed and any("\0" in value for row in rows for value in row if type(value) is str):
        raise InputError(NUL)
    return packed.decode()


#: kinds of which several become one row
PACKED: dict[str, Callable[[list[Any]], list[Any]]] = {
    "moves": _join_moves, "leases": pack_leases, "outcomes": pack_ends,
}  # fmt: skip


def _check_texts(rows: list[Sequence[Any]]) -> None:
    """Refuse a text that not every database keeps."""
    texts = "".join([value for row in rows for value in row if type(value) is str])
    if "\0" in texts:
        raise InputError(NUL)
    try:
        texts.encode()
    except UnicodeEncodeError:
        raise InputError(HALF) from None
