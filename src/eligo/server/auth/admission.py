"""Admission: identifies callers, enrols clients, issues tokens, and keeps the operator's token in a file.

On an open server clients name themselves. Otherwise every caller needs a token; a client may ask for one, and then waits for
approval.
"""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from eligo.client.options import offer, read_token
from eligo.errors import InputError
from eligo.server.auth.tokens import SCOPES, Gate, unknown
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import Caller
from eligo.server.rules.clients import Client
from eligo.server.rules.service import Service
from eligo.stores.service import TokenRow
from eligo.stores.service_sql import ServiceStore

T = TypeVar("T")

ALL = frozenset(SCOPES)
DAY = 86_400.0
MARK = "who may come in has changed"
FORGOTTEN = 1.0  # seconds after which an unknown caller is looked up again
MOST_UNKNOWN = 10_000


class Entrance:
    """Identifies callers and decides who may enrol; *gate* is None on an open server, where clients name themselves."""

    def __init__(
        self, service: Service, gate: Gate | None = None, approving: bool = False, learning: "Learning | None" = None
    ) -> None:
        self.service, self.gate, self.approving, self.learning = service, gate, approving, learning

    def who(self, headers: dict[bytes, bytes]) -> Caller:
        """The caller; 401 if unknown."""
        if self.gate is None:
            id = headers.get(b"eligo-client", b"").decode("latin-1")
            return Caller(id or "anybody", ALL, self._client(id) if id else None)
        token = self.gate.bearer(headers.get(b"authorization"), time.time())
        scopes = ALL if "admin" in token.allows else token.allows
        if not token.client:
            return Caller(token.name, scopes, None, token.hash)
        client, owner = self._client(token.client), self.gate.owner_of(token.client)
        return Caller(token.client, scopes, client, token.hash, owner)

    def _client(self, id: str) -> Client:
        client = self.service.clients.get(id)
        if client is None:
            raise unknown("unknown client (enrol with POST /v1/clients)")
        return client

    def access_of(self, client: Client) -> str:
        """Whether a client is "approved", "waiting" for approval, "revoked", or "void" if its request expired."""
        if client.approved:
            return "approved"
        waits = self.gate is not None and self.gate.waits(client.id, time.time())
        return "void" if waits is None else "waiting" if waits else "revoked"

    # Enrolling

    def admits(self, caller: Caller, address: str = "") -> bool:
        """Whether a new client at an *address* is approved at once; 401 if it may not enrol at all."""
        if self.gate is None:
            return True
        if caller.client is not None:
            raise RefusedError(403, "a client's token cannot enrol another client (use a token with the scope work)")
        if "work" in caller.scopes:
            return True
        if not self.approving:
            raise unknown("enrolling a client needs a token with the scope work")
        self.gate.check_room(time.time(), address)
        return False

    def token_for(self, client: Client, approved: bool, parent: str | None = None, address: str = "") -> str | None:
        """Issue the token of a new client, with its *parent*; None if the server uses no tokens."""
        if self.gate is None:
            return None
        now = time.time()
        if approved:
            token, row = self.gate.make(client.name, ["work"], now, client=client.id, parent=parent)
        else:
            for old in self.gate.crowded_out(now):
                self._forget(self.gate, old)
            token, row = self.gate.ask(client.name, client.id, now, address)
        self._keep([row])
        return token

    def _forget(self, gate: Gate, stranger: TokenRow) -> None:
        """Forget a request for approval and its client; otherwise a flood of requests would fill the store."""
        self.service.books.changes.tokens_gone += [(hash,) for hash in gate.drop({stranger.client or ""})]
        if stranger.client in self.service.clients:
            self.service.forget_client(stranger.client)

    def make(self, name: str, scopes: list[str], days: float | None = None, parent: str | None = None) -> str:
        """Issue a token, with the *parent* token that issued it."""
        lasting, gate = None if days is None else days * DAY, self._guarded()
        gate.check_name(name, scopes)
        token, row = gate.make(name, scopes, time.time(), lasting=lasting, parent=parent)
        self._keep([row])
        return token

    def revoke(self, name: str) -> int:
        """Revoke the tokens of a name and all that they issued; returns their number."""
        gate, now = self._guarded(), time.time()
        before = gate.count_good(now)
        rows = gate.revoke(now, name=name)
        self.mark()
        self._keep(rows)
        for client in gate.revoked_clients():
            if client in self.service.clients and self.service.clients[client].approved:
                self.service.approve(client, False)
        return before - gate.count_good(now)

    def tokens(self) -> list[tuple[TokenRow, str, str | None]]:
        """All tokens, each with its state and the reason why it is invalid, or None."""
        gate, now = self._guarded(), time.time()
        return [(row, *gate.standing(row, now)) for row in gate.rows()]

    def _guarded(self) -> Gate:
        if self.gate is None:
            raise RefusedError(409, "this server does not use tokens")
        return self.gate

    def decide(self, client: str, approved: bool) -> None:
        """Approve or refuse a waiting client, or revoke the tokens of an approved one."""
        self.mark()
        if self.gate is None:
            return
        now = time.time()
        waits = any(row.client == client for row in self.gate.waiting(now))
        if waits:
            self._keep(self.gate.approve(client, now) if approved else self.gate.refuse(client, now))
        elif approved:
            raise RefusedError(409, "this client is not waiting for approval")
        else:
            self._keep(self.gate.revoke(now, client=client))

    def mark(self) -> None:
        """Mark clients or tokens as changed, which other servers see within a second."""
        if self.learning is not None:
            self.service.books.changes.facts.append((MARK, secrets.token_hex(8)))

    def _keep(self, rows: list[TokenRow]) -> None:
        self.service.books.changes.tokens += rows


class Learning:
    """Reads clients and tokens that other servers on the same store have made or changed."""

    def __init__(self, service: Service, gate: Gate | None, store: ServiceStore) -> None:
        self.service, self.gate, self.store = service, gate, store
        self._mark = store.facts().get(MARK)
        self._unknown: dict[str, float] = {}  # for unknown callers, when they may be looked up again

    def lacks(self, headers: dict[bytes, bytes]) -> bool:
        """Whether the store may know a caller that this server does not."""
        hash, client = self._missing(headers)
        return bool(hash or client) and self._unknown.get(hash or client, 0.0) < time.monotonic()

    def _missing(self, headers: dict[bytes, bytes]) -> tuple[str, str]:
        """The hash of the token, and the id of the client, if this server does not know them; else empty."""
        hash, client = "", headers.get(b"eligo-client", b"").decode("latin-1")
        if self.gate is not None:
            hash, row = self.gate.named(headers.get(b"authorization"))
            client = "" if row is None else row.client or ""
            hash = hash if row is None else ""
        return hash, "" if client in self.service.clients else client

    async def learn(self, headers: dict[bytes, bytes]) -> None:
        """Look up a caller in the store."""
        hash, client = self._missing(headers)
        if hash and self.gate is not None:
            rows = await self._query(lambda: self._token_and_parents(hash))
            self.gate.load(rows)
            client = "" if not rows else rows[0].client or ""
        learned = await self.learn_client(client) if client else False
        if not learned and (hash or client):
            if len(self._unknown) >= MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[hash or client] = time.monotonic() + FORGOTTEN

    def _token_and_parents(self, hash: str) -> list[TokenRow]:
        """The token with a hash, the token that issued it, and so on to the first."""
        rows, next_hash = list[TokenRow](), hash
        while next_hash and (row := self.store.token(next_hash)) is not None:
            rows.append(row)
            next_hash = row.parent or ""
        return rows

    async def learn_client(self, id: str) -> bool:
        """Look up a client in the store; returns whether it exists."""
        if id not in self.service.clients:
            row = await self._query(lambda: self.store.client(id))
            if row is not None:
                self.service.learn(row)
        return id in self.service.clients

    async def refresh(self) -> None:
        """Load the changes of other servers, if any."""
        mark = (await asyncio.to_thread(self.store.facts)).get(MARK)
        if mark != self._mark:
            await self.catch_up()
            self._mark = mark

    async def catch_up(self) -> None:
        """Reload all clients and tokens from the store."""
        tokens, clients = await self._query(lambda: (self.store.tokens(), self.store.clients()))
        if self.gate is not None:
            self.gate.load(tokens)
        for row in clients:
            self.service.learn(row)

    async def _query(self, question: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(question)
        except OSError:
            raise RefusedError(503, "cannot look up the caller in the store now", after=1) from None


class OperatorToken:
    """The file with the operator token; it is written if it is missing, or if no valid admin token exists."""

    def __init__(self, entrance: Entrance, folder: str) -> None:
        self._entrance = entrance
        self.path = os.path.abspath(f"{Path(folder).with_suffix('')}.token")
        gate = entrance.gate
        self.is_new = gate is not None and not (os.path.exists(self.path) and gate.has_operator(time.time()))
        if self.is_new:
            self._write(entrance.make("operator", ["admin"]))

    def _write(self, token: str) -> None:
        """Replace the file by a new one: the old one may be a link, or a file of another user."""
        try:
            descriptor, part = tempfile.mkstemp(prefix=".token-", dir=os.path.dirname(self.path))  # of mode 600
            try:
                with open(descriptor, "w") as file:
                    file.write(token + "\n")
                    file.flush()
                    os.fsync(descriptor)
                os.replace(part, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part)
                raise
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot write the operator token: {error.strerror} (remove the file, or put the"
                " store in a folder that only you can write to)"
            ) from None

    @contextmanager
    def offered(self, address: str) -> Iterator[None]:
        """Offer the token, if it is valid, to commands of the same user that call this address."""
        if not self._is_good():
            yield
            return
        with offer(address, self.path):
            yield

    def _is_good(self) -> bool:
        gate = self._entrance.gate
        if gate is None:
            return False
        try:
            return "admin" in gate.bearer(f"Bearer {read_token(self.path)}".encode(), time.time()).allows
        except (InputError, RefusedError):
            return False
