"""What the databases of servers have in common: the statements, and the store that is made of them.

The statements are written with `?` for values; a database that wants another sign puts that in.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any

from eligo.stores.serving import (
    KINDS,
    Changes,
    ClientRow,
    FileRow,
    Lease,
    Moves,
    Outcome,
    Tally,
    TokenRow,
    WorkflowRow,
)
from eligo.stores.sqlite import unpacked_numbers


def _inserted(table: str, columns: Sequence[str], keys: Sequence[str] = ()) -> str:
    """A statement that inserts rows; where they are there already, by *keys*, they become as these."""
    values = ", ".join("?" * len(columns))
    text = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608 - our own words
    if not keys:
        return text
    changed = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in keys)
    return f"{text} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"


#: how each kind of change is kept
KEEPING = {
    "workflows": _inserted("workflow", WorkflowRow._fields),
    "states": "UPDATE workflow SET state = ? WHERE id = ?",
    "plans": "UPDATE workflow SET plan = ? WHERE id = ?",
    "moves": _inserted("journal", Moves._fields),
    "leases": _inserted("lease", Lease._fields),
    "ended": "DELETE FROM lease WHERE workflow = ? AND number = ?",
    "outcomes": _inserted("outcome", Outcome._fields, ("workflow", "number")),
    "files": _inserted("file", FileRow._fields, ("workflow", "name")),
    "signatures": _inserted("signature", ("workflow", "task", "signature"), ("workflow", "task")),
    "clients": _inserted("client", ClientRow._fields, ("id",)),
    "tokens": _inserted("token", TokenRow._fields, ("hash",)),
    "facts": _inserted("fact", ("name", "value"), ("name",)),
}
_ENDED = "state NOT IN ('running', 'paused')"
WORKFLOWS = f"""SELECT id, key, name, owner, share, policy, settings, state, made,
    CASE WHEN {_ENDED} THEN NULL ELSE document END, plan FROM workflow ORDER BY made, id"""  # noqa: S608
LAST_NUMBER = """SELECT max(number) FROM (
    SELECT max(number) AS number FROM outcome WHERE workflow = ?
    UNION ALL SELECT max(number) FROM lease WHERE workflow = ?) AS numbers"""
TALLIES = """SELECT task, count(*), sum(CASE WHEN answer = 'failed' THEN 1 ELSE 0 END),
    sum(CASE WHEN answer = 'expired' THEN 1 ELSE 0 END)
    FROM outcome WHERE workflow = ? AND answer <> 'accepted' GROUP BY task"""
VOTES = "SELECT task, client, digest FROM outcome WHERE workflow = ? AND answer = 'voted' ORDER BY number"


class SqlStore:
    """A store in a database that speaks SQL; `_rows` and `_write` are the database's own."""

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows that a question is answered with."""
        raise NotImplementedError

    def _row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        return next(iter(self._rows(statement, values)), None)

    def workflows(self) -> list[WorkflowRow]:
        """See `ServiceStore`."""
        return [
            WorkflowRow._make((*known, bytes(document or b""), None if plan is None else bytes(plan)))
            for *known, document, plan in self._rows(WORKFLOWS)
        ]

    def document(self, workflow: str) -> bytes:
        """See `ServiceStore`."""
        row = self._row("SELECT document FROM workflow WHERE id = ?", (workflow,))
        return bytes(row[0]) if row else b""

    def moves(self, workflow: str) -> "array[int]":
        """See `ServiceStore`."""
        rows = self._rows("SELECT moves FROM journal WHERE workflow = ? ORDER BY first", (workflow,))
        return unpacked_numbers(b"".join(bytes(row) for (row,) in rows))

    def leases(self, workflow: str) -> list[Lease]:
        """See `ServiceStore`."""
        return list(map(Lease._make, self._table(Lease, "lease", workflow)))

    def last_number(self, workflow: str) -> int:
        """See `ServiceStore`."""
        row = self._row(LAST_NUMBER, (workflow, workflow))
        return int(row[0] or 0) if row else 0

    def tallies(self, workflow: str) -> dict[int, Tally]:
        """See `ServiceStore`."""
        return {task: Tally(*map(int, counts)) for task, *counts in self._rows(TALLIES, (workflow,))}

    def votes(self, workflow: str) -> list[tuple[int, str, str]]:
        """See `ServiceStore`."""
        return [(task, client, digest or "") for task, client, digest in self._rows(VOTES, (workflow,))]

    def accepted(self, workflow: str) -> Iterator[tuple[int, str | None]]:
        """See `ServiceStore`."""
        statement = "SELECT task, digest FROM outcome WHERE workflow = ? AND answer = 'accepted'"
        return ((task, digest) for task, digest in self._rows(statement, (workflow,)))

    def outcome(self, workflow: str, number: int) -> Outcome | None:
        """See `ServiceStore`."""
        columns = ", ".join(Outcome._fields)
        statement = f"SELECT {columns} FROM outcome WHERE workflow = ? AND number = ?"  # noqa: S608
        row = self._row(statement, (workflow, number))
        return None if row is None else Outcome._make(row)

    def outcomes(self, workflow: str) -> Iterator[Outcome]:
        """See `ServiceStore`."""
        return map(Outcome._make, self._table(Outcome, "outcome", workflow))

    def outcomes_from(self, workflow: str, first: int, most: int) -> list[Outcome]:
        """See `ServiceStore`."""
        columns = ", ".join(Outcome._fields)
        order = "workflow = ? AND number >= ? ORDER BY number LIMIT ?"
        statement = f"SELECT {columns} FROM outcome WHERE {order}"  # noqa: S608
        return list(map(Outcome._make, self._rows(statement, (workflow, first, most))))

    def files(self, workflow: str) -> list[FileRow]:
        """See `ServiceStore`."""
        return list(map(FileRow._make, self._table(FileRow, "file", workflow, "name")))

    def signatures(self, workflow: str) -> dict[str, str]:
        """See `ServiceStore`."""
        rows = self._rows("SELECT task, signature FROM signature WHERE workflow = ?", (workflow,))
        return dict(rows)

    def clients(self) -> list[ClientRow]:
        """See `ServiceStore`."""
        statement = f"SELECT {', '.join(ClientRow._fields)} FROM client ORDER BY made, id"  # noqa: S608
        return list(map(ClientRow._make, self._rows(statement)))

    def tokens(self) -> list[TokenRow]:
        """See `ServiceStore`."""
        statement = f"SELECT {', '.join(TokenRow._fields)} FROM token ORDER BY made, hash"  # noqa: S608
        return list(map(TokenRow._make, self._rows(statement)))

    def facts(self) -> dict[str, str]:
        """See `ServiceStore`."""
        return dict(self._rows("SELECT name, value FROM fact"))

    def _table(self, kind: Any, table: str, workflow: str, order: str = "number") -> Iterable[tuple[Any, ...]]:
        columns = ", ".join(kind._fields)
        statement = f"SELECT {columns} FROM {table} WHERE workflow = ? ORDER BY {order}"  # noqa: S608
        return self._rows(statement, (workflow,))


def statements(changes: Sequence[Changes]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    """What is to be written, in order: each statement with its rows."""
    for kind in KINDS:
        rows: list[Any] = list(chain.from_iterable(getattr(one, kind) for one in changes))
        if rows:
            yield KEEPING[kind], _told(kind, rows)


def _told(kind: str, rows: list[Any]) -> list[Any]:
    """The values of rows in the order of their statement."""
    if kind == "moves":
        return [(row.workflow, row.first, row.moves.tobytes()) for row in rows]
    if kind in {"states", "plans"}:
        return [(value, workflow) for workflow, value in rows]
    if kind == "clients":
        return list({row.id: row for row in rows}.values())
    return rows


def steps_after(folder: str, version: int) -> Iterator[tuple[int, str]]:
    """The numbered steps, each a text of statements, that bring a database from a version to the present one."""
    found = sorted(files("eligo.stores").joinpath(folder).iterdir(), key=lambda file: file.name)
    for file in found:
        number = int(file.name.partition("_")[0]) if file.name.endswith(".sql") else 0
        if number > version:
            yield number, file.read_text("utf-8")


def newest(folder: str) -> int:
    """The number of the last step."""
    return max(number for number, _ in steps_after(folder, 0))
