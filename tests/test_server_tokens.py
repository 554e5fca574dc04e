"""Tokens: who is let in, for what, until when; and how a client without one gets it."""

import hashlib

import pytest

from eligo.errors import InputError
from eligo.server.auth.tokens import (
    MOST_OF_ADDRESS,
    MOST_WAITING,
    PATIENCE,
    WORTHLESS,
    Gate,
    demand,
    hash_token,
)
from eligo.server.http.refusals import RefusedError
from eligo.stores.service import TokenRow


def header(token: str) -> bytes:
    return f"Bearer {token}".encode()


def refused(gate: Gate, token: str, now: float = 0.0) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        gate.bearer(header(token), now)
    return caught.value.status, caught.value.sentence


def test_a_token_is_known_and_not_kept() -> None:
    gate = Gate()
    token, row = gate.make("host-1", ["work"], 5.0, client="c-1")
    bearer = gate.bearer(header(token), 6.0)
    assert (bearer.client, bearer.allows, bearer.name) == ("c-1", frozenset({"work"}), "host-1")
    assert row == TokenRow(hashlib.sha256(token.encode()).hexdigest(), "work", "c-1", "host-1", 5.0)
    assert token not in repr(gate.rows())
    assert len(token) == 43
    assert gate.make("host-1", ["work"], 5.0)[0] != token


def test_rows_come_back_after_a_restart() -> None:
    token, row = Gate().make("a", ["read"], 0.0)
    assert Gate([row]).bearer(header(token), 1.0).name == "a"


@pytest.mark.parametrize(
    "given",
    [None, b"", b"Bearer", b"Bearer ", b"Basic abc", b"Bearer a b", b"Bearer \xff", b"Bearer " + b"x" * 200, b"x"],
)
def test_what_is_no_token_is_refused(given: bytes | None) -> None:
    with pytest.raises(RefusedError, match="missing bearer token") as caught:
        Gate().bearer(given, 0.0)
    assert caught.value.status == 401
    assert caught.value.headers["www-authenticate"].startswith("Bearer")


def test_stolen_hashes_open_nothing() -> None:
    gate = Gate()
    _, row = gate.make("a", ["admin"], 0.0)
    assert refused(gate, row.hash)[0] == 401
    assert refused(gate, "guessed") == (401, "unknown or revoked token")


def test_it_ends() -> None:
    gate = Gate()
    token, _ = gate.make("a", ["work"], 100.0, lasting=50.0)
    assert gate.bearer(header(token), 149.9)
    assert refused(gate, token, 150.0) == (401, "this token has expired")


def test_revoked_is_revoked_at_once() -> None:
    gate = Gate()
    token, row = gate.make("a", ["work"], 0.0, client="c-1")
    other, _ = gate.make("a", ["work"], 0.0, client="c-2")
    changed = gate.revoke(7.0, client="c-1")
    assert changed == [row._replace(revoked=7.0)]
    assert refused(gate, token)[0] == 401
    assert gate.bearer(header(other), 7.0)
    assert gate.revoke(8.0, client="c-1") == []
    assert len(gate.revoke(8.0, name="a")) == 1
    elsewhere = Gate([row])  # another process learns of it by the row
    elsewhere.load(changed)
    assert refused(elsewhere, token)[0] == 401
    with pytest.raises(InputError, match="give a client or a name"):
        gate.revoke(9.0)


def test_scopes_are_demanded() -> None:
    gate = Gate()
    worker = gate.bearer(header(gate.make("a", ["work"], 0.0)[0]), 0.0)
    admin = gate.bearer(header(gate.make("b", ["admin"], 0.0)[0]), 0.0)
    demand(worker.allows, "work")
    demand(worker.allows, "read", "work")
    demand(admin.allows, "submit")
    with pytest.raises(RefusedError, match="needs a token with the scope submit or read") as caught:
        demand(worker.allows, "submit", "read")
    assert caught.value.status == 403
    for wrong in (["root"], []):
        with pytest.raises(InputError, match="unknown scope"):
            gate.make("a", wrong, 0.0)


def test_a_client_asks_and_is_approved() -> None:
    gate = Gate()
    token, row = gate.ask("host-1", "c-1", 0.0)
    assert refused(gate, token) == (403, "this token is waiting for an operator's approval")
    assert gate.waits("c-1", 1.0)
    assert gate.waiting(1.0) == [row]
    (changed,) = gate.approve("c-1", 2.0)
    assert gate.bearer(header(token), 3.0).client == "c-1"
    assert Gate([changed]).bearer(header(token), 3.0).allows == {"work"}
    with pytest.raises(RefusedError, match="client 'c-1' is not waiting") as caught:
        gate.approve("c-1", 4.0)
    assert caught.value.status == 404


def test_a_client_is_refused_or_waits_too_long() -> None:
    gate = Gate()
    token, _ = gate.ask("host-1", "c-1", 0.0)
    gate.refuse("c-1", 1.0)
    assert refused(gate, token)[0] == 401
    gate.ask("host-2", "c-2", 0.0)
    assert gate.waiting(PATIENCE) == []
    with pytest.raises(RefusedError):
        gate.approve("c-2", PATIENCE)


def test_an_address_may_ask_so_often() -> None:
    gate = Gate()
    asked = [gate.ask("host", f"c-{number}", 0.0, "192.0.2.1")[1] for number in range(MOST_OF_ADDRESS)]
    with pytest.raises(RefusedError, match="20 clients at your address are already waiting for approval") as caught:
        gate.ask("host", "c", 0.0, "192.0.2.1")
    assert caught.value.status == 429
    gate.ask("host", "c", 0.0, "192.0.2.2")
    gate.approve(str(asked[0].client), 1.0)
    gate.ask("host", "d", 1.0, "192.0.2.1")
    gate.ask("host", "e", PATIENCE, "192.0.2.1")  # nobody answered the others
    behind_a_proxy = Gate(by_address=False)
    for number in range(2 * MOST_OF_ADDRESS):
        behind_a_proxy.ask("host", f"c-{number}", 0.0, "127.0.0.1")


def test_where_too_many_ask_the_oldest_of_the_address_with_most_go() -> None:
    gate = Gate()
    rows = [gate.ask("host", f"c-{n}", float(n), f"192.0.2.{n % 60}")[1] for n in range(MOST_WAITING - 1)]
    assert gate.crowded_out(999.0) == []
    gate.ask("host", "again", 999.0, "192.0.2.7")
    assert gate.crowded_out(999.0) == [rows[7]]
    gate.ask("host", "more", 999.0, "192.0.2.30")
    assert gate.crowded_out(999.0) == [rows[7], rows[30]]
    restarted = Gate(gate.rows())  # where nobody knows their addresses any more: they count as one
    row = restarted.ask("host", "new", 0.0, "192.0.2.1")[1]
    assert row not in restarted.crowded_out(999.0)


def test_what_is_worthless_for_long_is_forgotten() -> None:
    gate = Gate()
    for lasting in (10.0, None):
        gate.make("a", ["work"], 0.0, lasting=lasting)
    gate.make("b", ["work"], 0.0)
    gate.revoke(5.0, name="b")
    gate.ask("c", "c-1", 0.0)
    assert gate.forget(12.0, 100.0) == []
    assert len(gate.forget(5000.0, 100.0)) == 3
    assert [row.name for row in gate.rows()] == ["a"]


def test_a_token_ends_with_the_one_it_was_made_with() -> None:
    gate = Gate()
    pool, above = gate.make("pool", ["work"], 0.0, lasting=100.0)
    mine, row = gate.make("ann", ["work"], 1.0, client="c-1", parent=above.hash)
    assert gate.bearer(header(mine), 99.0).client == "c-1"
    assert refused(gate, mine, 101.0) == (401, "the token that issued this one has expired")
    gate = Gate([above._replace(expires=None), row])
    gate.revoke(5.0, name="pool")
    assert {refused(gate, token, 6.0) for token in (pool, mine)} == {(401, WORTHLESS)}
    assert set(gate.forget(1000.0, 10.0)) == {above.hash, row.hash}


def test_a_token_whose_maker_is_forgotten_is_worthless() -> None:
    gate = Gate()
    _, above = gate.make("pool", ["work"], 0.0)
    mine, row = gate.make("ann", ["work"], 1.0, parent=above.hash)
    assert refused(Gate([row]), mine, 2.0) == (401, WORTHLESS)
    assert Gate([row]).forget(100.0, 10.0) == [row.hash]


def test_the_name_of_a_revoked_token_that_owned_workflows_is_not_given_again() -> None:
    gate = Gate()
    gate.make("ann", ["submit"], 0.0)
    gate.make("pool", ["work"], 0.0)
    gate.make("renewed", ["submit"], 0.0, lasting=5.0)
    gate.check_name("ann", ["submit"])
    gate.revoke(1.0, name="ann")
    gate.revoke(1.0, name="pool")
    assert gate.forget(1e9, 10.0), "the others are forgotten in time"
    with pytest.raises(RefusedError, match="is reserved by the workflows of a revoked token") as refusal:
        gate.check_name("ann", ["submit"])
    assert refusal.value.status == 409
    gate.check_name("ann", ["work"])
    for name in ("pool", "renewed"):
        gate.check_name(name, ["submit"])


def test_the_last_admin_token_cannot_be_revoked() -> None:
    gate = Gate()
    first, row = gate.make("operator", ["admin"], 0.0)
    gate.make("helper", ["admin"], 1.0, parent=row.hash)
    with pytest.raises(
        RefusedError, match="cannot revoke the last admin token"
    ):  # the helper's ends with the operator's
        gate.revoke(2.0, name="operator")
    assert gate.bearer(header(first), 3.0).name == "operator"
    gate.make("other", ["admin"], 4.0)
    gate.revoke(5.0, name="operator")
    assert gate.has_operator(6.0)


def test_the_hash_is_that_of_the_text() -> None:
    assert hash_token("abc") == hashlib.sha256(b"abc").hexdigest()
