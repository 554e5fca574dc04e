"""The store of a server in an SQL database: its queries, the statements that write changes, and the format of leases.

Statements have `?` for values; a database that needs another placeholder replaces it.

The leases of a grant are one row. Outcomes are stored in pages of `PAGE` lease numbers of a workflow; each commit adds a row
to its pages. Both are JSON. If a lease has several outcomes, the last one counts.
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

PAGE = 256  # lease numbers per page of outcomes
NUL = "a text with a NUL character cannot be stored"
HALF = "a text with an unpaired surrogate cannot be stored"
#: the columns of a grant
GRANT = ("workflow", "first", "client", "secret", "key", "since", "tasks")
#: an outcome of a lease, without its workflow
_End = tuple[
    int, int, int, str, str, float, float, str, str | None, int | None, int | None, str | None, str | None, int
]
_encode = msgspec.json.Encoder().encode
_tasks = msgspec.json.Decoder(list[tuple[int, int, int]]).decode
_task, _grant = itemgetter(1, 2, 3), itemgetter(0, 7, 4, 5, 6, 8)  # of a lease: as in the list and the row of a grant
_ends = msgspec.json.Decoder(list[_End]).decode


class Keeping(NamedTuple):
    """How a kind of change is written: the table, the columns, and the columns that identify a row.

    *verb* is "insert", "update", "delete" or "put", which inserts rows and updates existing ones.
    """

    verb: str
    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    #: columns that "put" does not update in existing rows
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
        """The clause for "put" that updates a row if it exists."""
        if self.verb != "put":
            return ""
        unchanged = self.keys + self.steady
        changed = ", ".join(f"{column} = excluded.{column}" for column in self.columns if column not in unchanged)
        return f" ON CONFLICT ({', '.join(self.keys)}) DO UPDATE SET {changed}"

    def last(self, rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """The rows without those that a later row with the same keys replaces."""
        if self.verb in {"insert", "delete"}:
            return list(rows)
        where = [self.columns.index(key) for key in self.keys]
        return list({tuple(row[i] for i in where): row for row in rows}.values())


#: how each kind of change is written
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
#: what else is deleted with a purged workflow, by table
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
MOST_PAGES = 40  # maximum number of pages in memory
NEEDED = f"""SELECT DISTINCT sha256 FROM file JOIN workflow ON id = workflow
    WHERE (NOT {_FINAL} OR (given = 0 AND ended > ?)) AND sha256 IN ({{}})"""  # noqa: S608
OUTDATED = f"""SELECT file.workflow, file.name FROM workflow JOIN file ON file.workflow = workflow.id
    WHERE {_FINAL} AND ended < ? LIMIT ?"""  # noqa: S608


class ServiceStore:
    """Stores the state of servers. One thread writes; the others only read.

    Several servers may use one database. Each holds some of the workflows for limited times, by the database's clock. The
    store refuses changes to a workflow that another server holds. An SQLite file has one server, which holds every workflow.

    Queries are implemented here; `_rows`, writing and, for a shared database, holding are implemented by subclasses.
    """

    #: a warning about it for the operator, if any
    remark: str | None
    #: whether several servers may use it
    shared = False
    #: the address of the server that uses this object
    address: str

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows that a query returns."""
        raise NotImplementedError

    def _row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        return next(iter(self._rows(statement, values)), None)

    def _select(self, kind: str, rest: str = "", values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The stored rows of one kind of change, with its columns."""
        keeping = KEEPING[kind]
        return self._rows(f"SELECT {', '.join(keeping.columns)} FROM {keeping.table} {rest}", values)  # noqa: S608

    def commit(self, changes: Sequence[Changes]) -> None:
        """Write changes in one transaction, which is on disk when this returns. This server then holds new workflows.

        Raises `OSError` if the database cannot be written now: the caller may commit the same changes again, also with
        others, and they are never written twice. Raises `InputError` if they can never be written: a row exists already, or
        a text has a NUL character. Raises `NotHeldError` if another server holds one of the workflows.
        """
        self.prepare(changes)
        self.finish()

    def prepare(self, changes: Sequence[Changes]) -> None:
        """The first half of `commit`, which hardly waits."""
        raise NotImplementedError

    def finish(self) -> None:
        """The second half of `commit`: wait until the prepared changes are on disk."""
        raise NotImplementedError

    def hold(self, workflow: str) -> int | None:
        """Take a workflow for `HELD` seconds if no server holds it; returns its epoch, or None if another has it.

        A server with the address of the holder is its successor, and takes the workflow at once.
        """
        return 1

    def keep_holding(self, seconds: float) -> set[str]:
        """Extend the hold on all unfinished workflows of this server; returns them."""
        return set(self.holders())

    def holders(self) -> dict[str, str]:
        """The address of the server that holds each workflow."""
        return {workflow: self.address for (workflow,) in self._rows("SELECT id FROM workflow")}

    def unheld(self) -> list[str]:
        """The unfinished workflows that this server does not hold, but could take over."""
        return []

    def backup(self, path: str | Path) -> None:
        """Copy a consistent snapshot, also while the store is used."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections, and release all holds."""
        raise NotImplementedError

    def workflows(self) -> list[WorkflowRow]:
        """All workflows, in order of submission; documents that are stored in parts or have ended are empty."""
        return [_workflow_row(row) for row in self._rows(WORKFLOWS)]

    def workflow(self, id: str) -> WorkflowRow | None:
        """One workflow, with its document unless that is stored in parts."""
        return next(map(_workflow_row, self._select("workflows", "WHERE id = ?", (id,))), None)

    def submitted(self, key: str) -> str | None:
        """The workflow that was submitted with this key."""
        row = self._row("SELECT id FROM workflow WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def states(self) -> dict[str, str]:
        """The state of every workflow, in order of submission."""
        return dict(self._rows("SELECT id, state FROM workflow ORDER BY made, id"))

    def document(self, workflow: str) -> bytes:
        """The document of a workflow."""
        row = self._row("SELECT document FROM workflow WHERE id = ?", (workflow,))
        if row is None or row[0]:
            return bytes(row[0]) if row else b""
        parts = self._rows("SELECT content FROM document_part WHERE workflow = ? ORDER BY part", (workflow,))
        return b"".join(bytes(part) for (part,) in parts)

    def additions(self, workflow: str) -> list[Added]:
        """The additions to a workflow, in order."""
        rows = self._rows("SELECT tasks, arcs FROM addition WHERE workflow = ? ORDER BY number", (workflow,))
        return [unpacked_addition(tasks, bytes(arcs)) for tasks, arcs in rows]

    def moves(self, workflow: str) -> "array[int]":
        """Every move of a workflow."""
        rows = self._rows("SELECT moves FROM journal WHERE workflow = ? ORDER BY first", (workflow,))
        return unpacked_numbers(b"".join(bytes(row) for (row,) in rows))

    def leases(self, workflow: str) -> list[Lease]:
        """The active leases of a workflow."""
        leases = self._unpack_leases(workflow)
        pages = sorted({page_of(lease.number) for lease in leases})
        over = {end.number for page in pages for end in chain.from_iterable(self._ends(workflow, page, page))}
        return [lease for lease in leases if lease.number not in over]

    def _unpack_leases(self, workflow: str) -> list[Lease]:
        """All leases of the grants that have active leases."""
        return unpack_leases(self._select("leases", "WHERE workflow = ? ORDER BY first", (workflow,)))

    def last_number(self, workflow: str) -> int:
        """The largest lease number of a workflow so far."""
        row = self._row("SELECT max(page) FROM outcome WHERE workflow = ?", (workflow,))
        last = () if row is None or row[0] is None else next(self._ends(workflow, row[0], row[0]))
        return max((one.number for one in (*last, *self._unpack_leases(workflow))), default=0)

    def upshot(self, workflow: str) -> Upshot:
        """The totals of the outcomes of a workflow."""
        rows = self._rows("SELECT task, number FROM retried WHERE workflow = ?", (workflow,))
        return upshot_of(self.outcomes(workflow), dict(rows))

    def accepted(self, workflow: str) -> Iterator[tuple[int, str | None]]:
        """The task and digest of every accepted result."""
        return ((end.task, end.digest) for end in self.outcomes(workflow) if end.answer == "accepted")

    def outcome(self, workflow: str, number: int) -> Attempt | None:
        """The outcome of a lease."""
        page = page_of(number)
        ends = chain.from_iterable(self._ends(workflow, page, page))
        return next((end for end in ends if end.number == number), None)

    def outcomes(self, workflow: str) -> Iterator[Attempt]:
        """The outcomes of a workflow's leases, in order of their numbers."""
        return self._since(workflow, 0)

    def outcomes_from(self, workflow: str, first: int, most: int) -> list[Attempt]:
        """At most *most* outcomes, from a lease number on."""
        return list(islice((end for end in self._since(workflow, page_of(first)) if end.number >= first), most))

    def pages(self, workflow: str, first: int = 0) -> list[int]:
        """The pages with outcomes of a workflow, from one on."""
        return [page for (page,) in self._rows(PAGES, (workflow, first))]

    def _since(self, workflow: str, page: int) -> Iterator[Attempt]:
        """The outcomes from a page on."""
        pages = self.pages(workflow, page)
        for i in range(0, len(pages), MOST_PAGES):
            some = pages[i : i + MOST_PAGES]
            yield from chain.from_iterable(self._ends(workflow, some[0], some[-1]))

    def _ends(self, workflow: str, first: int, last: int) -> Iterator[list[Attempt]]:
        """The outcomes of these pages, page by page."""
        for _, rows in groupby(self._rows(ENDS, (workflow, first, last)), itemgetter(0)):
            yield unpack_ends(workflow, (ends for _, ends in rows))

    def files(self, workflow: str) -> list[FileRow]:
        """The files of a workflow that the server has."""
        return list(map(FileRow._make, self._select("files", "WHERE workflow = ? ORDER BY name", (workflow,))))

    def file(self, workflow: str, name: str) -> FileRow | None:
        """One file of a workflow."""
        rows = self._select("files", "WHERE workflow = ? AND name = ?", (workflow, name))
        return next(map(FileRow._make, rows), None)

    def needed(self, hashes: Collection[str], since: float) -> set[str]:
        """The hashes, among these, of files of unfinished workflows, and of outputs of workflows that ended after a time."""
        if not hashes:
            return set()
        return {sha256 for (sha256,) in self._rows(NEEDED.format(", ".join("?" * len(hashes))), (since, *hashes))}

    def outdated(self, before: float, most: int) -> list[tuple[str, str]]:
        """At most *most* files, as workflow and name, of workflows that ended before a time."""
        return [(workflow, name) for workflow, name in self._rows(OUTDATED, (before, most))]

    def signatures(self, workflow: str) -> dict[str, str]:
        """The signature of each signed task of a workflow."""
        rows = self._rows("SELECT task, signature FROM signature WHERE workflow = ?", (workflow,))
        return dict(rows)

    def clients(self) -> list[ClientRow]:
        """All clients."""
        return list(map(_client_row, self._select("clients", "ORDER BY made, id")))

    def client(self, id: str) -> ClientRow | None:
        """One client."""
        return next(map(_client_row, self._select("clients", "WHERE id = ?", (id,))), None)

    def tokens(self) -> list[TokenRow]:
        """All tokens."""
        return list(map(TokenRow._make, self._select("tokens", "ORDER BY made, hash")))

    def token(self, hash: str) -> TokenRow | None:
        """One token."""
        return next(map(TokenRow._make, self._select("tokens", "WHERE hash = ?", (hash,))), None)

    def facts(self) -> dict[str, str]:
        """Facts about this store, by name."""
        return dict(self._select("facts"))


def _workflow_row(row: Sequence[Any]) -> WorkflowRow:
    workflow = WorkflowRow._make(row)
    plan = None if workflow.plan is None else bytes(workflow.plan)
    return workflow._replace(document=bytes(workflow.document or b""), plan=plan)


def _client_row(row: Sequence[Any]) -> ClientRow:
    client = ClientRow._make(row)
    return client._replace(approved=bool(client.approved), held=bool(client.held))


def to_keep(changes: Sequence[Changes]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    """The rows to write, by kind, in the order of writing; values are in the order of the columns."""
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
    """One row for consecutive moves of a workflow."""
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
    """The page of a lease number."""
    return number // PAGE


def pack_leases(leases: Iterable[Lease]) -> list[tuple[Any, ...]]:
    """One row per grant; the leases of a grant are consecutive.

    >>> grant = [Lease("w", number, task, 1, "ann", "5ec7e7", "k", 7, 2.0) for number, task in ((7, 0), (8, 3))]
    >>> pack_leases(grant)
    [('w', 7, 'ann', '5ec7e7', 'k', 2.0, '[[7,0,1],[8,3,1]]')]
    >>> unpack_leases(pack_leases(grant)) == grant
    True
    """
    grants = ([*grant] for _, grant in groupby(leases, itemgetter(0, 7)))
    return [(*_grant(grant[0]), _text([*map(_task, grant)])) for grant in grants]


def unpack_leases(rows: Iterable[tuple[Any, ...]]) -> list[Lease]:
    """The leases in the rows of grants, including ended ones."""
    return [
        Lease(workflow, number, task, attempt, client, secret, key, first, since)
        for workflow, first, client, secret, key, since, tasks in rows
        for number, task, attempt in _tasks(tasks)
    ]


def pack_ends(ends: Iterable[Attempt]) -> list[tuple[str, int, str]]:
    """One row per page."""
    pages: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    last, current = ("", -1), list[tuple[Any, ...]]()
    for end in ends:
        if end[1] // PAGE != last[1] or end[0] != last[0]:  # consecutive outcomes are mostly on one page
            last = end[0], end[1] // PAGE
            current = pages.setdefault(last, [])
        current.append(end[1:])
    return [(workflow, page, _text(rows)) for (workflow, page), rows in pages.items()]


def unpack_ends(workflow: str, rows: Iterable[str]) -> list[Attempt]:
    """The outcomes in the rows of one page, in order of lease numbers."""
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


#: kinds of which several changes become one row
PACKED: dict[str, Callable[[list[Any]], list[Any]]] = {
    "moves": _join_moves, "leases": pack_leases, "outcomes": pack_ends,
}  # fmt: skip


def _check_texts(rows: list[Sequence[Any]]) -> None:
    """Refuse texts that some databases cannot store."""
    texts = "".join([value for row in rows for value in row if type(value) is str])
    if "\0" in texts:
        raise InputError(NUL)
    try:
        texts.encode()
    except UnicodeEncodeError:
        raise InputError(HALF) from None
