"""Bearer tokens, without I/O: the time is passed in, and methods that change rows return them for the store.

A token is 256 random bits. Only its SHA-256 is stored, so the store cannot be used to log in. A client without a token may
ask for one. It gets the token at once, but the token is not valid until an operator approves it (as in HTCondor's token
requests), so the approval sends no secret.

Tokens form a tree. A token that another one issued, such as that of a client which enrolled with a pool's token, is invalid
as soon as the issuing one has expired or is revoked.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from eligo.errors import InputError, shorten
from eligo.server.http.refusals import RefusedError
from eligo.stores.service import TokenRow

#: what a token may allow: to run tasks, to submit workflows, to read, and everything
SCOPES = ("work", "submit", "read", "admin")
OWNING = frozenset({"submit", "admin"})  # the scopes of tokens whose names own workflows
LONGEST = 128  # characters of a token
WAITING, APPROVED, REFUSED = "waiting", "approved", "refused"
REVOKED, EXPIRED = "revoked", "expired"  # later states of an approved token
PATIENCE = 3600.0  # seconds after which an unanswered request for a token expires
MOST_WAITING, MOST_OF_ADDRESS = 1000, 20  # waiting requests for tokens: in total, and from one address
WORTHLESS = "unknown or revoked token"
BEARER = re.compile(rb"[Bb]earer +([\x21-\x7e]+) *")


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d at %H:%M UTC", time.gmtime(seconds))


def hash_token(token: str) -> str:
    """The hash of a token, which is what is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


class Gate:
    """All tokens in memory: `bearer` identifies the caller of a request, other methods change rows and return them."""

    def __init__(self, rows: Iterable[TokenRow] = (), by_address: bool = True) -> None:
        #: whether addresses distinguish clients; behind a proxy they do not
        self.by_address = by_address
        self._rows: dict[str, TokenRow] = {}
        self._clients: dict[str, str] = {}  # the hash of each client's token
        # the hashes of tokens that wait for an operator, with the address of each; "" if it asked before the start
        self._asked: dict[str, str] = {}
        self.load(rows)

    def load(self, rows: Iterable[TokenRow]) -> None:
        """Add or replace rows as the store has them, such as those that another process changed."""
        for row in rows:
            self._insert(row)

    def rows(self) -> list[TokenRow]:
        """All rows."""
        return list(self._rows.values())

    # Authentication

    def bearer(self, authorization: bytes | None, now: float) -> TokenRow:
        """The token in a header; 401 if it is missing or invalid, 403 if it waits for approval."""
        row = self._find(authorization)
        fault = WORTHLESS if row is None else self.fault(row, now)
        if row is None or fault is not None:
            raise unknown(str(fault))
        if row.state == WAITING:
            raise RefusedError(403, "this token is waiting for an operator's approval", after=10)
        return row

    def fault(self, row: TokenRow, now: float) -> str | None:
        """Why a token is invalid, itself or through a parent; None if it is valid or waiting."""
        for each in self._with_parents(row):
            if each is None or each.revoked is not None or each.state == REFUSED:
                return WORTHLESS
            if each.expires is not None and now >= each.expires:
                return "this token has expired" if each is row else "the token that issued this one has expired"
        return None

    def standing(self, row: TokenRow, now: float) -> tuple[str, str | None]:
        """The state of a token, and for operators the reason why it is invalid; None if it is valid or waiting."""
        for each in self._with_parents(row):
            whose = "it" if each is row else "the token with which it was made"
            if each is None:
                return REVOKED, f"{whose} is no longer known"
            if each.revoked is not None:
                return REVOKED, f"{whose} was revoked on {_moment(each.revoked)}"
            if each.state == REFUSED:
                return REFUSED, f"an operator refused {whose}"
            if each.expires is not None and now >= each.expires:
                return EXPIRED, f"{whose} expired on {_moment(each.expires)}"
        return row.state, None

    def _with_parents(self, row: TokenRow) -> Iterator[TokenRow | None]:
        """A token, the token that issued it, and so on to the first; ends with None if one of them is missing."""
        yield row
        while row.parent is not None:
            above = self._rows.get(row.parent)
            yield above
            if above is None:
                return
            row = above

    def owner_of(self, client: str) -> str | None:
        """The owner of a client, as the hash of a token; None if unknown.

        It is the topmost token above the client's that is not an operator's, or else the one with which the client enrolled.
        A client that an operator approved without a token is its own owner.
        """
        row = self._rows.get(self._clients.get(client, ""))
        if row is None or row.parent is None:
            return None if row is None else client
        owner, above = row.parent, self._rows.get(row.parent)
        for each in () if above is None else self._with_parents(above):
            if each is None or "admin" in each.allows:
                break
            owner = each.hash
        return owner

    def revoked_clients(self) -> list[str]:
        """The clients whose tokens were revoked, themselves or through a parent."""
        return [
            client
            for client, hash in self._clients.items()
            if any(each is not None and each.revoked is not None for each in self._with_parents(self._rows[hash]))
        ]

    def waits(self, client: str, now: float) -> bool | None:
        """Whether a client waits for an operator; None if its request expired."""
        row = self._rows.get(self._clients.get(client, ""))
        if row is None or row.state != WAITING or row.revoked is not None:
            return False
        return True if now < row.made + PATIENCE else None

    def _find(self, authorization: bytes | None) -> TokenRow | None:
        hash, row = self.named(authorization)  # the time that a look-up by hash takes reveals nothing about the token
        if not hash:
            raise unknown("missing bearer token")
        return row if row is not None and hmac.compare_digest(row.hash, hash) else None

    def named(self, authorization: bytes | None) -> tuple[str, TokenRow | None]:
        """The hash of the token in a header, or "" if there is none, and its row, if there is one."""
        match = BEARER.fullmatch(authorization or b"")
        if match is None or len(match[1]) > LONGEST:
            return "", None
        hash = hashlib.sha256(match[1]).hexdigest()
        return hash, self._rows.get(hash)

    # Changes by operators

    def make(  # noqa: PLR0913
        self,
        name: str,
        scopes: Collection[str],
        now: float,
        *,
        client: str | None = None,
        lasting: float | None = None,
        parent: str | None = None,
    ) -> tuple[str, TokenRow]:
        """A new token and its row; *parent* is the hash of the token that issues it."""
        if wrong := sorted({*scopes}.difference(SCOPES)) or ([] if scopes else ["none"]):
            raise InputError(f"unknown scope {wrong[0]!r} (choose from {', '.join(SCOPES)})")
        return self._create(TokenRow("", " ".join(sorted(scopes)), client, name, now, parent=parent), lasting)

    def has_operator(self, now: float, but: Collection[str] = ()) -> bool:
        """Whether a valid admin token would remain if those with the hashes *but* were revoked."""
        admins = (row for row in self._rows.values() if "admin" in row.allows and row.state == APPROVED)
        return any(
            self.fault(row, now) is None and not any(each and each.hash in but for each in self._with_parents(row))
            for row in admins
        )

    def revoke(self, now: float, *, client: str | None = None, name: str | None = None) -> list[TokenRow]:
        """Revoke the tokens of a client or a name; returns the changed rows."""
        if client is None and name is None:
            raise InputError("give a client or a name of the tokens to revoke")
        valid = (row for row in self._rows.values() if row.revoked is None)
        hit = [row for row in valid if client in {None, row.client} and name in {None, row.name}]
        if self.has_operator(now) and not self.has_operator(now, {row.hash for row in hit}):
            raise RefusedError(409, "cannot revoke the last admin token (make another one first)")
        return [self._insert(row._replace(revoked=now)) for row in hit]

    def count_good(self, now: float) -> int:
        """The number of tokens that are valid or waiting."""
        return sum(self.fault(row, now) is None for row in self._rows.values())

    def forget(self, now: float, older: float, most: int | None = None) -> list[str]:
        """Drop rows that have been invalid for *older* seconds, at most *most*; returns their hashes. Reserved names stay."""
        old = (row for row in self._rows.values() if self._end(row) + older < now and not self._reserves(row))
        return self._remove(list(islice(old, most)))

    def check_name(self, name: str, scopes: Collection[str]) -> None:
        """Raise if the name belongs to a revoked token whose workflows it would inherit."""
        if OWNING.intersection(scopes) and any(row.name == name and self._reserves(row) for row in self._rows.values()):
            sentence = (
                f"token name {shorten(name)!r} is reserved by the workflows of a revoked token (choose another name)"
            )
            raise RefusedError(409, sentence)

    def _reserves(self, row: TokenRow) -> bool:
        """Whether a token that may own workflows was revoked, itself or through a parent."""
        owns = row.client is None and not OWNING.isdisjoint(row.allows)
        return owns and any(each is not None and each.revoked is not None for each in self._with_parents(row))

    def drop(self, clients: Collection[str]) -> list[str]:
        """Drop the rows of these clients; returns their hashes."""
        return self._remove([row for row in self._rows.values() if row.client in clients])

    def _remove(self, rows: list[TokenRow]) -> list[str]:
        for row in rows:
            del self._rows[row.hash]
            self._clients.pop(row.client or "", None)
            self._asked.pop(row.hash, None)
        return [row.hash for row in rows]

    def _end(self, row: TokenRow) -> float:
        """The time at which a token became or becomes invalid, itself or through a parent."""
        return min(0.0 if each is None else _own_end(each) for each in self._with_parents(row))

    # Requests by clients

    def ask(self, name: str, client: str, now: float, address: str = "") -> tuple[str, TokenRow]:
        """A token for a new client, not valid before approval, and its row."""
        self.check_room(now, address)
        token, row = self._create(TokenRow("", "work", client, name, now, state=WAITING), None)
        self._asked[row.hash] = address
        return token, row

    def check_room(self, now: float, address: str) -> None:
        """Raise if too many requests from this address are waiting."""
        if self.by_address and self._addresses(now)[address] >= MOST_OF_ADDRESS:
            sentence = f"{MOST_OF_ADDRESS} clients at your address are already waiting for approval"
            raise RefusedError(429, sentence, after=60)

    def crowded_out(self, now: float) -> list[TokenRow]:
        """The requests to drop before one more may wait: the oldest ones of the addresses with the most requests."""
        waiting, addresses = self.waiting(now), self._addresses(now)
        waiting.sort(key=lambda row: (-addresses[self._asked[row.hash]], row.made))
        return waiting[: max(0, len(waiting) + 1 - MOST_WAITING)]

    def _addresses(self, now: float) -> Counter[str]:
        return Counter(self._asked[row.hash] for row in self.waiting(now))

    def waiting(self, now: float) -> list[TokenRow]:
        """The unanswered requests."""
        rows = [self._rows[hash] for hash in self._asked]
        return [row for row in rows if now < row.made + PATIENCE]

    def approve(self, client: str, now: float) -> list[TokenRow]:
        """Approve a waiting client; returns the changed rows."""
        return [self._insert(row._replace(state=APPROVED)) for row in self._of(client, now)]

    def refuse(self, client: str, now: float) -> list[TokenRow]:
        """Refuse a waiting client; returns the changed rows."""
        return [self._insert(row._replace(state=REFUSED)) for row in self._of(client, now)]

    def _of(self, client: str, now: float) -> list[TokenRow]:
        rows = [row for row in self.waiting(now) if row.client == client]
        if not rows:
            raise RefusedError(404, f"client {shorten(client)!r} is not waiting for approval")
        return rows

    def _create(self, row: TokenRow, lasting: float | None) -> tuple[str, TokenRow]:
        token = secrets.token_urlsafe(32)
        expires = None if lasting is None else row.made + lasting
        return token, self._insert(row._replace(hash=hash_token(token), expires=expires))

    def _insert(self, row: TokenRow) -> TokenRow:
        self._rows[row.hash] = row
        if row.client is not None:
            self._clients[row.client] = row.hash
        if row.state == WAITING and row.revoked is None:
            self._asked.setdefault(row.hash, "")
        else:
            self._asked.pop(row.hash, None)
        return row


def _own_end(row: TokenRow) -> float:
    ends = [end for end in (row.expires, row.revoked) if end is not None]
    if row.state != APPROVED:
        ends.append(row.made + PATIENCE)
    return min(ends, default=float("inf"))


def demand(scopes: Collection[str], *wanted: str) -> None:
    """Raise 403 unless one of the wanted scopes is present; `admin` includes all."""
    if not {"admin", *wanted}.intersection(scopes):
        raise RefusedError(403, f"this call needs a token with the scope {' or '.join(wanted)}")


def unknown(sentence: str) -> RefusedError:
    """A 401 refusal."""
    return RefusedError(401, sentence, www_authenticate='Bearer realm="eligo"')
