"""A server's store in a PostgreSQL database, which several servers may share: each writes only the workflows that it holds.

Each commit stores its number. If the connection is lost during a commit, the number shows whether it succeeded. A commit of
any size costs two round trips: one for all statements, each with all its rows, and one for COMMIT.
"""

import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eligo.errors import InputError, NotHeldError
from eligo.stores.database import newest, steps_after
from eligo.stores.service import HELD, Changes
from eligo.stores.service_sql import KEEPING, Keeping, ServiceStore, to_keep

STEPS = "postgres_steps"
#: connection settings that the address may override; with them, a dead database server is noticed within half a minute
PATIENCE: dict[str, str | int] = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000, "application_name": "eligo",
}  # fmt: skip
#: limits of waiting for a lock, and of a transaction whose eligo server is dead
SETTINGS = """SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = warning;
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"""
#: errors that a retry would not cure
REFUSED = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError)
#: parts of documents that were never submitted; another server may be about to submit newer ones
UNUSED_PARTS = """DELETE FROM document_part WHERE made < now() - interval '1 day'
    AND workflow NOT IN (SELECT id FROM workflow)"""
MIGRATING = 0x656C69676F  # the lock of the server that upgrades a database
TABLES = ("eligo_schema", "writer", "holding", *sorted({keeping.table for keeping in KEEPING.values()}))

GOES_ON = "state NOT IN ('done', 'cancelled')"
HOLD = """INSERT INTO holding VALUES (%s, %s, %s, 1, now() + make_interval(secs => %s))
    ON CONFLICT (workflow) DO UPDATE SET holder = excluded.holder, address = excluded.address, until = excluded.until,
        epoch = holding.epoch + CASE WHEN holding.holder = excluded.holder THEN 0 ELSE 1 END
    WHERE holding.holder = excluded.holder OR holding.until < now()
        OR (holding.address = excluded.address AND excluded.address <> '')
    RETURNING epoch"""
HOLD_NEW = """INSERT INTO holding SELECT id, %s, %s, 1, now() + make_interval(secs => %s) FROM unnest(%s::text[]) AS new (id)
    ON CONFLICT DO NOTHING"""
KEEP_HOLDING = f"""UPDATE holding SET until = now() + make_interval(secs => %s) FROM workflow
    WHERE holder = %s AND id = holding.workflow AND {GOES_ON} RETURNING holding.workflow, epoch"""  # noqa: S608
UNHELD = f"""SELECT id FROM workflow LEFT JOIN holding ON id = holding.workflow WHERE {GOES_ON} AND holder IS DISTINCT FROM ?
    AND (until IS NULL OR until < now() OR (address = ? AND address <> '')) ORDER BY made, id"""  # noqa: S608
LET_GO = "UPDATE holding SET holder = '', address = '', until = '-infinity' WHERE holder = %s"
STILL_HELD = """SELECT workflow FROM holding
    JOIN unnest(%s::text[], %s::bigint[]) AS mine (workflow, epoch) USING (workflow, epoch)
    WHERE holder = %s ORDER BY workflow FOR UPDATE OF holding"""


class PostgresServiceStore(ServiceStore):
    """The state of servers in a database; clients and other servers reach this one at its *address*."""

    shared = True

    def __init__(self, where: str, address: str = "") -> None:
        self.address, self.holder = address, uuid.uuid4().hex
        self._where, self.path = _parse_address(where)
        self._held: dict[str, int] = {}
        self._number, self._doubted = 0, tuple[Changes, ...]()
        self._writing, self._reading = _Connection(self._where), _Connection(self._where, read_only=True)
        try:
            self.remark = self._begin(self._writing.database())
        except BaseException as error:
            self._writing.close()
            if not isinstance(error, psycopg.Error | OSError):
                raise
            raise InputError(f"{self.path}: cannot be used as the store of a server: {_first_line(error)}") from None

    def _begin(self, database: "psycopg.Connection[Any]") -> str | None:
        """Upgrade the database and register this server; returns a warning for the operator, if any."""
        _upgrade(database, self.path)
        self._statements = _statements(database)
        database.execute("INSERT INTO writer VALUES (%s, 0)", (self.holder,))
        lasts = database.execute("SELECT current_setting('fsync')").fetchone() == ("on",)
        database.commit()
        return (
            None
            if lasts
            else f"{self.path}: fsync is off in this database, so a power failure can lose acknowledged results"
        )

    # Writing

    def prepare(self, changes: Sequence[Changes]) -> None:
        """Only remember the changes: every step of writing them waits for the network."""
        self._prepared = changes

    def finish(self) -> None:
        """Write and commit the changes, and wait for the disk."""
        changes = self._prepared
        with self._using(self._writing) as database:
            pending = self._not_stored(database, changes)
            if not pending:
                return
            epochs = self._epochs(pending)
            try:
                held = self._send(database, pending, epochs)
            except REFUSED as error:
                database.rollback()
                self._check_held(self._held.keys() & epochs.keys(), self._still_held(database, epochs))
                raise InputError(f"{self.path}: cannot be stored: {_first_line(error)}") from None
            self._check_held(epochs, held)
            self._doubted = tuple(pending)
            database.commit()
            self._doubted = ()
            self._number += 1
            self._held.update((row.id, epochs[row.id]) for one in pending for row in one.workflows)

    def _not_stored(self, database: "psycopg.Connection[Any]", changes: Sequence[Changes]) -> list[Changes]:
        """The changes that are not stored yet, after a check whether a commit in doubt succeeded."""
        if not self._doubted:
            return list(changes)
        # a commit in progress locks this row until it succeeds or fails
        number = database.execute("SELECT number FROM writer WHERE id = %s FOR UPDATE", (self.holder,)).fetchone()
        database.rollback()
        doubted, self._doubted = self._doubted, ()
        if number is None or number[0] <= self._number:
            return list(changes)
        self._number += 1
        self._held.update((row.id, self._held.get(row.id, 1)) for one in doubted for row in one.workflows)
        return [one for one in changes if one not in doubted]

    def _epochs(self, changes: Sequence[Changes]) -> dict[str, int]:
        """The workflows with changes, and the epoch in which this server holds each."""
        new = {row.id: self._held.get(row.id, 1) for one in changes for row in one.workflows}
        touched = set[str]().union(*(one.workflows_touched() for one in changes))
        self._check_held(touched, new.keys() | self._held.keys())
        return new | {workflow: self._held[workflow] for workflow in touched - new.keys()}

    def _send(
        self, database: "psycopg.Connection[Any]", changes: Sequence[Changes], epochs: dict[str, int]
    ) -> set[str]:
        """Send everything except COMMIT in one round trip; returns the workflows that this server still holds."""
        written = [(self._statements[kind], _columns(rows)) for kind, rows in to_keep(changes)]
        new = [row.id for one in changes for row in one.workflows]
        cursor = database.cursor()
        with database.pipeline():
            database.execute("UPDATE writer SET number = %s WHERE id = %s", (self._number + 1, self.holder))
            if new:
                database.execute(HOLD_NEW, (self.holder, self.address, HELD, new))
            cursor.execute(STILL_HELD, (list(epochs), list(epochs.values()), self.holder))
            for statement, columns in written:
                database.execute(statement, columns)
        return {workflow for (workflow,) in cursor.fetchall()}

    def _still_held(self, database: "psycopg.Connection[Any]", epochs: dict[str, int]) -> set[str]:
        rows = database.execute(STILL_HELD, (list(epochs), list(epochs.values()), self.holder)).fetchall()
        database.rollback()
        return {workflow for (workflow,) in rows}

    def _check_held(self, expected: Iterable[str], held: Iterable[str]) -> None:
        if missing := set(expected) - set(held):
            raise NotHeldError(missing)

    # Holding

    def hold(self, workflow: str) -> int | None:
        """Take a workflow if no other server holds it; returns its epoch, or None."""
        with self._using(self._writing) as database:
            row = database.execute(HOLD, (workflow, self.holder, self.address, HELD)).fetchone()
            database.commit()
            if row is None:
                self._held.pop(workflow, None)
                return None
            self._held[workflow] = int(row[0])
            return self._held[workflow]

    def keep_holding(self, seconds: float) -> set[str]:
        """Extend the hold on all unfinished workflows of this server; returns them."""
        with self._using(self._writing) as database:
            self._held = dict(database.execute(KEEP_HOLDING, (seconds, self.holder)).fetchall())
            database.commit()
            return set(self._held)

    def let_go(self) -> None:
        """Release all holds, so that other servers can take the workflows at once."""
        with self._using(self._writing) as database:
            database.execute(LET_GO, (self.holder,))
            database.commit()
            self._held.clear()

    def unheld(self) -> list[str]:
        """The unfinished workflows that this server does not hold, but could take over."""
        return [id for (id,) in self._rows(UNHELD, (self.holder, self.address))]

    def holders(self) -> dict[str, str]:
        """The address of the server that holds each workflow."""
        return dict(self._rows("SELECT workflow, address FROM holding WHERE until > now()"))

    # Reading

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        query = statement.replace("?", "%s")
        with self._using(self._reading) as database:
            try:
                return database.execute(query, values).fetchall()
            except psycopg.OperationalError:
                if not database.closed:
                    raise
            return self._reading.database().execute(query, values).fetchall()  # the database was restarted meanwhile

    def backup(self, path: str | Path) -> None:
        """Copy a consistent snapshot into a file for pg_restore."""
        (schema,) = next(iter(self._rows("SELECT current_schema()")))
        dump(self._where, [f'"{schema}".{table}' for table in TABLES], path)

    def close(self) -> None:
        """Close the connections, and release all holds."""
        with suppress(OSError):
            self.let_go()
            with self._using(self._writing) as database:
                if not self._doubted:
                    database.execute("DELETE FROM writer WHERE id = %s", (self.holder,))
                    database.commit()
        self._writing.close()
        self._reading.close()

    @contextmanager
    def _using(self, line: "_Connection") -> "Iterator[psycopg.Connection[Any]]":
        """A connection, for one thread at a time; uncommitted changes are rolled back."""
        with line.lock:
            try:
                yield line.database()
            except psycopg.Error as error:
                raise OSError(f"{self.path}: cannot be reached or written now: {_first_line(error)}") from error
            finally:
                line.undo()


class _Connection:
    """A connection that is reopened when it is lost; *read_only* or not."""

    def __init__(self, where: str, *, read_only: bool = False) -> None:
        self.lock = threading.Lock()
        self._where, self._read_only = where, read_only
        self._database: psycopg.Connection[Any] | None = None

    def database(self) -> "psycopg.Connection[Any]":
        """The connection."""
        if self._database is None or self._database.closed:
            self._database = psycopg.connect(self._where, autocommit=True)
            self._database.execute(SETTINGS)
            self._database.autocommit, self._database.read_only = self._read_only, self._read_only
        return self._database

    def undo(self) -> None:
        """Roll back an open transaction; a connection that cannot do so is dropped."""
        if self._database is None or self._database.closed:
            return
        try:
            self._database.rollback()
        except psycopg.Error:
            self._database.close()

    def close(self) -> None:
        """Close the connection."""
        if self._database is not None:
            self._database.close()


def dump(where: str, tables: Iterable[str], copy: str | Path) -> None:
    """Copy a consistent snapshot of tables with pg_dump; an existing file is never overwritten."""
    program = shutil.which("pg_dump")
    if program is None:
        raise InputError("copying a PostgreSQL database needs pg_dump, which is not installed")
    if Path(copy).exists():
        raise InputError(f"{copy}: file already exists")
    part = f"{copy}.part"
    settings = conninfo_to_dict(where)
    secret = {"PGPASSWORD": str(settings.pop("password"))} if "password" in settings else {}
    words = [program, "--format=custom", f"--file={part}", f"--dbname={make_conninfo('', **settings)}"]
    chosen = [f"--table={table}" for table in tables]
    done = subprocess.run([*words, *chosen], check=False, capture_output=True, text=True, env=os.environ | secret)  # noqa: S603
    if done.returncode:
        Path(part).unlink(missing_ok=True)
        raise InputError(f"{copy}: cannot write the copy: {_first_line(done.stderr)}")
    os.replace(part, copy)


def check_reached(where: str) -> None:
    """Refuse a database that cannot be reached, without changing anything."""
    how, label = _parse_address(where)
    try:
        psycopg.connect(how).close()
    except psycopg.Error as error:
        raise InputError(f"{label}: cannot reach the database: {_first_line(error)}") from None


def _parse_address(where: str) -> tuple[str, str]:
    """The connection settings of a database, and its name for messages, which has no password."""
    try:
        settings = conninfo_to_dict(where)
    except psycopg.ProgrammingError as error:
        raise InputError(f"not the address of a PostgreSQL database: {_first_line(error)}") from None
    port = f":{settings['port']}" if settings.get("port") else ""
    label = f"postgresql://{settings.get('host') or ''}{port}/{settings.get('dbname') or ''}"
    return make_conninfo(where, **{name: value for name, value in PATIENCE.items() if name not in settings}), label


def _upgrade(database: "psycopg.Connection[Any]", path: str) -> None:
    """Apply missing upgrade steps, each in one transaction, by one server at a time."""
    while True:
        with database.transaction():
            database.execute("SET LOCAL lock_timeout = 0")
            database.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
            database.execute("CREATE TABLE IF NOT EXISTS eligo_schema (version BIGINT NOT NULL)")
            version = max((row[0] for row in database.execute("SELECT version FROM eligo_schema")), default=0)
            if version > newest(STEPS):
                raise InputError(f"{path}: this database was written by a newer version of eligo (upgrade eligo)")
            step = next(iter(steps_after(STEPS, version)), None)
            if step is None:
                database.execute(UNUSED_PARTS)
                return
            database.execute(step[1])
            database.execute("INSERT INTO eligo_schema VALUES (%s)", (step[0],))


def _statements(database: "psycopg.Connection[Any]") -> dict[str, str]:
    """The statement that writes each kind of change, for any number of rows."""
    columns = """SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = ANY (%s::text[]::regclass[]) AND attnum > 0 AND NOT attisdropped"""
    tables = list({keeping.table for keeping in KEEPING.values()})
    types = {(table, column): kind for table, column, kind in database.execute(columns, (tables,))}
    database.rollback()
    return {kind: _statement(keeping, types) for kind, keeping in KEEPING.items()}


def _statement(keeping: Keeping, types: Mapping[tuple[str, str], str]) -> str:
    """The statement for rows that are passed as one array per column."""
    table, columns = keeping.table, ", ".join(keeping.columns)
    arrays = ", ".join(f"%s::{types[table, column]}[]" for column in keeping.columns)
    source = f"unnest({arrays}) AS given ({columns})"
    same = " AND ".join(f"{table}.{key} = given.{key}" for key in keeping.keys)
    if keeping.verb == "delete":
        return f"DELETE FROM {table} USING {source} WHERE {same}"  # noqa: S608 - our own words, here and below
    if keeping.verb == "update":
        changed = ", ".join(f"{column} = given.{column}" for column in keeping.columns if column not in keeping.keys)
        return f"UPDATE {table} SET {changed} FROM {source} WHERE {same}"  # noqa: S608
    return f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {source}{keeping.otherwise()}"  # noqa: S608


def _columns(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows as one array per column, each in PostgreSQL's text format."""
    return [f"{{{_array_text(column)}}}" for column in zip(*rows, strict=True)]


def _array_text(column: tuple[Any, ...]) -> str:
    """The values of an array as text; values of one type, the usual case, are converted together."""
    kinds = set(map(type, column))
    if kinds == {str}:  # texts have no NUL
        return '","'.join(_literal("\0".join(column)).split("\0"))
    return ",".join(map(str if kinds <= {int, float} else _literal, column))


def _literal(value: Any) -> str:
    """A value in an array, as text."""
    match value:
        case None:
            return "NULL"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case bytes():
            return f'"\\\\x{value.hex()}"'
    return str(value)


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
