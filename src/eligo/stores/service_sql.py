"""What the databases of servers have in common: the statements, and the store that is made of them.

The statements are written with `?` for values; a database that wants another sign puts that in.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from eligo.errors import InputError
from eligo.stores.packing import Added, unpacked_addition, unpacked_numbers
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
from eligo.stores.service_packing import (
    GRANT,
    HALF,
    NUL,
    packed_ends,
    packed_leases,
    page_of,
    unpacked_ends,
    unpacked_leases,
)
from eligo.work.attempts import Attempt, Lease


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


class SqlStore:
    """A store in a database that speaks SQL: what it is asked; `_rows` and all that writes are the database's own."""

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows that a question is answered with."""
        raise NotImplementedError

    def _row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        return next(iter(self._rows(statement, values)), None)

    def prepare(self, changes: Sequence[Changes]) -> None:
        """See `ServiceStore`."""
        raise NotImplementedError

    def finish(self) -> None:
        """See `ServiceStore`."""
        raise NotImplementedError

    def commit(self, changes: Sequence[Changes]) -> None:
        """See `ServiceStore`."""
        self.prepare(changes)
        self.finish()

    def workflows(self) -> list[WorkflowRow]:
        """See `ServiceStore`."""
        return [_workflow_row(row) for row in self._rows(WORKFLOWS)]

    def workflow(self, id: str) -> WorkflowRow | None:
        """See `ServiceStore`."""
        row = self._row(f"SELECT {', '.join(WorkflowRow._fields)} FROM workflow WHERE id = ?", (id,))  # noqa: S608
        return None if row is None else _workflow_row(row)

    def submitted(self, key: str) -> str | None:
        """See `ServiceStore`."""
        row = self._row("SELECT id FROM workflow WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def states(self) -> dict[str, str]:
        """See `ServiceStore`."""
        return dict(self._rows("SELECT id, state FROM workflow ORDER BY made, id"))

    def document(self, workflow: str) -> bytes:
        """See `ServiceStore`."""
        row = self._row("SELECT document FROM workflow WHERE id = ?", (workflow,))
        if row is None or row[0]:
            return bytes(row[0]) if row else b""
        parts = self._rows("SELECT content FROM document_part WHERE workflow = ? ORDER BY part", (workflow,))
        return b"".join(bytes(part) for (part,) in parts)

    def additions(self, workflow: str) -> list[Added]:
        """See `ServiceStore`."""
        rows = self._rows("SELECT tasks, arcs FROM addition WHERE workflow = ? ORDER BY number", (workflow,))
        return [unpacked_addition(tasks, bytes(arcs)) for tasks, arcs in rows]

    def moves(self, workflow: str) -> "array[int]":
        """See `ServiceStore`."""
        rows = self._rows("SELECT moves FROM journal WHERE workflow = ? ORDER BY first", (workflow,))
        return unpacked_numbers(b"".join(bytes(row) for (row,) in rows))

    def leases(self, workflow: str) -> list[Lease]:
        """See `ServiceStore`."""
        leases = self._unpack_leases(workflow)
        pages = sorted({page_of(lease.number) for lease in leases})
        over = {end.number for page in pages for end in chain.from_iterable(self._ends(workflow, page, page))}
        return [lease for lease in leases if lease.number not in over]

    def _unpack_leases(self, workflow: str) -> list[Lease]:
        """The leases of all grants of which something is out."""
        statement = f"SELECT {', '.join(GRANT)} FROM lease WHERE workflow = ? ORDER BY first"  # noqa: S608
        return unpacked_leases(self._rows(statement, (workflow,)))

    def last_number(self, workflow: str) -> int:
        """See `ServiceStore`."""
        row = self._row("SELECT max(page) FROM outcome WHERE workflow = ?", (workflow,))
        last = () if row is None or row[0] is None else next(self._ends(workflow, row[0], row[0]))
        return max((one.number for one in (*last, *self._unpack_leases(workflow))), default=0)

    def upshot(self, workflow: str) -> Upshot:
        """See `ServiceStore`."""
        rows = self._rows("SELECT task, number FROM retried WHERE workflow = ?", (workflow,))
        return upshot_of(self.outcomes(workflow), dict(rows))

    def accepted(self, workflow: str) -> Iterator[tuple[int, str | None]]:
        """See `ServiceStore`."""
        return ((end.task, end.digest) for end in self.outcomes(workflow) if end.answer == "accepted")

    def outcome(self, workflow: str, number: int) -> Attempt | None:
        """See `ServiceStore`."""
        page = page_of(number)
        ends = chain.from_iterable(self._ends(workflow, page, page))
        return next((end for end in ends if end.number == number), None)

    def outcomes(self, workflow: str) -> Iterator[Attempt]:
        """See `ServiceStore`."""
        return self._since(workflow, 0)

    def outcomes_from(self, workflow: str, first: int, most: int) -> list[Attempt]:
        """See `ServiceStore`."""
        return list(islice((end for end in self._since(workflow, page_of(first)) if end.number >= first), most))

    def pages(self, workflow: str) -> list[int]:
        """See `ServiceStore`."""
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
            yield unpacked_ends(workflow, (ends for _, ends in rows))

    def files(self, workflow: str) -> list[FileRow]:
        """See `ServiceStore`."""
        return list(map(FileRow._make, self._table(FileRow, "file", workflow, "name")))

    def file(self, workflow: str, name: str) -> FileRow | None:
        """See `ServiceStore`."""
        columns = ", ".join(FileRow._fields)
        row = self._row(f"SELECT {columns} FROM file WHERE workflow = ? AND name = ?", (workflow, name))  # noqa: S608
        return None if row is None else FileRow._make(row)

    def needed(self, hashes: Collection[str], since: float) -> set[str]:
        """See `ServiceStore`."""
        if not hashes:
            return set()
        return {sha256 for (sha256,) in self._rows(NEEDED.format(", ".join("?" * len(hashes))), (since, *hashes))}

    def outdated(self, before: float, most: int) -> list[tuple[str, str]]:
        """See `ServiceStore`."""
        return [(workflow, name) for workflow, name in self._rows(OUTDATED, (before, most))]

    def signatures(self, workflow: str) -> dict[str, str]:
        """See `ServiceStore`."""
        rows = self._rows("SELECT task, signature FROM signature WHERE workflow = ?", (workflow,))
        return dict(rows)

    def clients(self) -> list[ClientRow]:
        """See `ServiceStore`."""
        return self._clients("ORDER BY made, id")

    def client(self, id: str) -> ClientRow | None:
        """See `ServiceStore`."""
        return next(iter(self._clients("WHERE id = ?", (id,))), None)

    def _clients(self, rest: str, values: Sequence[object] = ()) -> list[ClientRow]:
        statement = f"SELECT {', '.join(ClientRow._fields)} FROM client {rest}"  # noqa: S608
        rows = map(ClientRow._make, self._rows(statement, values))
        return [row._replace(approved=bool(row.approved), held=bool(row.held)) for row in rows]

    def tokens(self) -> list[TokenRow]:
        """See `ServiceStore`."""
        return self._tokens("ORDER BY made, hash")

    def token(self, hash: str) -> TokenRow | None:
        """See `ServiceStore`."""
        return next(iter(self._tokens("WHERE hash = ?", (hash,))), None)

    def _tokens(self, rest: str, values: Sequence[object] = ()) -> list[TokenRow]:
        statement = f"SELECT {', '.join(TokenRow._fields)} FROM token {rest}"  # noqa: S608
        return list(map(TokenRow._make, self._rows(statement, values)))

    def facts(self) -> dict[str, str]:
        """See `ServiceStore`."""
        return dict(self._rows("SELECT name, value FROM fact"))

    def _table(self, kind: Any, table: str, workflow: str, order: str = "number") -> Iterable[tuple[Any, ...]]:
        columns = ", ".join(kind._fields)
        statement = f"SELECT {columns} FROM {table} WHERE workflow = ? ORDER BY {order}"  # noqa: S608
        return self._rows(statement, (workflow,))


def _workflow_row(row: Sequence[Any]) -> WorkflowRow:
    workflow = WorkflowRow._make(row)
    return workflow._replace(
        document=bytes(workflow.document or b""), plan=None if workflow.plan is None else bytes(workflow.plan)
    )


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


def _joined(rows: Iterable[Moves]) -> list[tuple[str, int, bytes]]:
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


#: kinds of which several become one row
PACKED: dict[str, Callable[[list[Any]], list[Any]]] = {
    "moves": _joined, "leases": packed_leases, "outcomes": packed_ends,
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
