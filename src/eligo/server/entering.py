"""Who may come in: everybody on an open server, else whoever has a token, or asks for one and is approved."""

import time

from eligo.server.clients import Client
from eligo.server.http import Caller
from eligo.server.refusing import RefusedError
from eligo.server.service import Service
from eligo.server.tokens import SCOPES, Gate, Token, unknown
from eligo.stores.serving import TokenRow

ALL = frozenset(SCOPES)
DAY = 86_400.0


class Entrance:
    """Says of every call who it is. *gate* is None on an open server, where clients name themselves."""

    def __init__(self, service: Service, gate: Gate | None = None, approving: bool = False) -> None:
        self.service, self.gate, self.approving = service, gate, approving

    def who(self, headers: dict[bytes, bytes]) -> Caller:
        """Who calls; 401 where that is not known."""
        if self.gate is None:
            id = headers.get(b"eligo-client", b"").decode("latin-1")
            return Caller(id or "anybody", ALL, self._client(id) if id else None)
        bearer = self.gate.bearer(headers.get(b"authorization"), time.time())
        scopes = ALL if "admin" in bearer.scopes else bearer.scopes
        client = self._client(bearer.client) if bearer.client else None
        return Caller(bearer.client or bearer.name, scopes, client)

    def _client(self, id: str) -> Client:
        client = self.service.clients.get(id)
        if client is None:
            raise unknown("this client is not known here: POST /v1/clients makes a new one")
        return client

    # Enrolling

    def admits(self, caller: Caller) -> bool:
        """Whether a new client may have work at once; 401 where it may not come in at all."""
        if self.gate is None or "work" in caller.scopes:
            return True
        if not self.approving:
            raise unknown("a new client needs a token with the scope work")
        return False

    def token_for(self, client: Client, approved: bool) -> str | None:
        """The token of a new client, which is told only here; None where none is needed."""
        if self.gate is None:
            return None
        now = time.time()
        if approved:
            token, row = self.gate.make(client.name, ["work"], now, client=client.id)
        else:
            token, row = self.gate.ask(client.name, client.id, now)
        self.keep([row])
        return token

    def make(self, name: str, scopes: list[str], days: float | None = None) -> str:
        """A new token, which is told only here."""
        if self.gate is None:
            raise RefusedError(409, "this server lets everybody in: there are no tokens")
        token, row = self.gate.make(name, scopes, time.time(), lasting=None if days is None else days * DAY)
        self.keep([row])
        return token

    def revoke(self, name: str) -> int:
        """Make the tokens of a name worthless; how many there were."""
        if self.gate is None:
            raise RefusedError(409, "this server lets everybody in: there are no tokens")
        rows = self.gate.revoke(time.time(), name=name)
        self.keep(rows)
        return len(rows)

    def decide(self, client: str, approved: bool) -> None:
        """A client that waits is let in, or refused; one that was let in loses its tokens."""
        if self.gate is None:
            return
        now = time.time()
        waits = any(row.client == client for row in self.gate.waiting(now))
        if waits:
            self.keep(self.gate.approve(client, now) if approved else self.gate.refuse(client, now))
        elif approved:
            raise RefusedError(409, "this client does not wait for approval")
        else:
            self.keep(self.gate.revoke(now, client=client))

    def keep(self, rows: list[Token]) -> None:
        """Rows of tokens that changed are kept with whatever is kept next."""
        self.service.books.changes.tokens += [as_row(row) for row in rows]


def as_row(token: Token) -> TokenRow:
    """A token as it is kept."""
    scopes = " ".join(token.scopes)
    return TokenRow(token.hash, scopes, token.client, token.name, token.made, token.expires, token.revoked, token.state)


def as_token(row: TokenRow) -> Token:
    """A token as it was kept."""
    return Token(
        row.hash, tuple(row.scopes.split()), row.client, row.name, row.made, row.expires, row.revoked, row.state
    )
