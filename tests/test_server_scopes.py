"""Every address with every kind of token, by a real server: the addresses are those of the API's own table.

A new address is picked up by itself. What may not come by itself is listed here: addresses for anybody, addresses for
clients, and addresses outside the table. Whoever adds one of these has to say so here.
"""

import secrets
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from eligo.server.files import routes
from eligo.server.http.handlers import Api
from eligo.server.http.routes import Endpoint, endpoints_of
from eligo.server.operations import Operations
from eligo.server.view.page_data import Views, page_routes
from server_faults import Reply, ServerProcess
from test_server_security import ONE, bearer, client, token

SCOPES = ("work", "submit", "read", "admin")
#: for anybody, and for clients
OPEN = {("POST", "/v1/clients"), ("GET", "/health"), ("GET", "/ready"), ("GET", "/v1/openapi.json")}
WORK = {("POST", "/v1/request"), ("POST", "/v1/deliver"), ("POST", "/v1/renew"), ("GET", "/v1/clients/{client}")}
#: what is not in the table, and the scopes for it; empty: anybody
OTHERS = {
    ("HEAD", "/v1/files/{sha256}"): ("work", "submit"), ("GET", "/v1/files/{sha256}"): ("work", "submit"),
    ("PUT", "/v1/files/{sha256}"): ("work", "submit"), ("GET", "/"): (), ("GET", "/page/page.js"): (),
    ("GET", "/page/page.css"): (),
}  # fmt: skip
#: tokens that open nothing, and how that is told
WORTHLESS = {"no token": 401, "unknown": 401, "expired": 401, "revoked": 401, "revoked client": 401, "waiting": 403}
FILE = b"some file"
UNREADABLE = "a b"  # as an idempotency key: whoever may call is told so, and nothing is done


def table() -> dict[tuple[str, str], Endpoint]:
    nothing: Any = None
    api = Api(nothing, nothing, nothing)
    known = [*endpoints_of(api), *endpoints_of(Operations(api)), *Views(nothing, nothing).endpoints()]
    return {(address.method, address.path): address for address in known}


TABLE = table()
SCOPED = {place: address.scopes for place, address in TABLE.items()} | OTHERS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("served"), "--approve", "-q") as running:
        yield running


class Cast:
    """Everybody who calls, by the headers that they send, and what they call about."""

    def __init__(self, server: ServerProcess) -> None:
        self.server, admin = server, bearer((server.folder / "served.token").read_text().strip())
        self.who: dict[str, dict[str, str]] = {"no token": {}, "unknown": bearer("x" * 43)}
        self.who |= {scope: token(server, admin, scope, name=scope) for scope in SCOPES}
        self.who |= {"client": client(server, admin), "other client": client(server, admin)}
        self.who["other owner"] = token(server, admin, "submit", name="other owner")
        self.who["revoked"] = token(server, admin, "admin", name="revoked")
        parent = token(server, admin, "work", name="parent")
        told = server.call("POST", "/v1/clients", {"name": "gone"}, parent).words
        self.who["revoked client"] = bearer(told["token"])
        for name in ("revoked", "parent"):
            assert server.call("POST", "/v1/tokens/revoke", {"name": name}, admin).status == 200
        self.who["waiting"] = bearer(server.call("POST", "/v1/clients", {"name": "stranger"}).words["token"])
        self.who["expired"] = token(server, admin, "admin", name="expired", days=1e-9)
        self.workflow = server.call("POST", "/v1/workflows?files=false", ONE, self.who["submit"]).words["workflow"]
        self.client = server.call("GET", "/v1/clients", None, admin).words["clients"][0]["client"]

    def call(self, who: str, place: tuple[str, str], key: str = "", workflow: str = "w-0") -> Reply:
        """One call; the workflow is one that is not there, unless another is said."""
        method, path = place
        parts = {"workflow": workflow, "client": self.client, "sha256": sha256(FILE).hexdigest()}
        address = TABLE.get(place)
        body = FILE if method == "PUT" else None if method in {"GET", "HEAD"} else words_for(address)
        headers = self.who[who] | ({"Idempotency-Key": key or secrets.token_hex(8)} if method == "POST" else {})
        return self.server.call(method, path.format(**parts), body, headers)


def words_for(address: Endpoint | None) -> Any:
    """The least that an address takes."""
    if address is None or address.takes in (None, bytes):
        return b""
    info = msgspec.inspect.type_info(address.takes)
    assert isinstance(info, msgspec.inspect.StructType)
    return {field.encode_name: _least(field.type) for field in info.fields if field.required}


def _least(kind: msgspec.inspect.Type) -> Any:
    if isinstance(kind, msgspec.inspect.ListType):
        return [_least(kind.item_type)]
    if isinstance(kind, msgspec.inspect.DictType | msgspec.inspect.StructType):
        return {}
    return "x" if isinstance(kind, msgspec.inspect.StrType) else 1


@pytest.fixture(scope="module")
def cast(server: ServerProcess) -> Cast:
    return Cast(server)


def test_the_table_is_all_there_is(server: ServerProcess) -> None:
    """What the server describes is the table, and what else it has is listed here."""
    paths = server.get("/v1/openapi.json").words["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == set(TABLE)
    nothing: Any = None
    others = {(method, route.path) for route in [*routes(nothing), *page_routes()] for method in route.methods or ()}
    assert others - {("HEAD", path) for _, path in OTHERS} == set(OTHERS) - {("HEAD", "/v1/files/{sha256}")}


def test_what_each_scope_may_do_is_narrow() -> None:
    """Nothing new is for anybody or for clients by itself; who only reads changes nothing; tokens are the operator's."""
    assert {place for place, scopes in SCOPED.items() if not scopes} == OPEN | {p for p, s in OTHERS.items() if not s}
    scopes = {place: set(address.scopes) for place, address in TABLE.items() if address.scopes}
    assert {place for place, allowed in scopes.items() if "work" in allowed} == WORK
    assert set().union(*scopes.values()) <= set(SCOPES)
    for (method, path), allowed in scopes.items():
        assert method == "GET" or "read" not in allowed, path
        if method != "GET" and "submit" in allowed:
            assert path.startswith("/v1/workflows"), path
        if path.startswith("/v1/tokens"):
            assert allowed == {"admin"}, path


@pytest.mark.parametrize("place", sorted(SCOPED), ids=" ".join)
def test_every_token_opens_what_its_scope_says_and_nothing_else(cast: Cast, place: tuple[str, str]) -> None:
    scopes = SCOPED[place]
    if not scopes:  # for anybody: a token that is good for nothing changes nothing
        assert all(cast.call(who, place, UNREADABLE).status not in {401, 403} for who in (*WORTHLESS, *SCOPES))
        return
    assert {who: cast.call(who, place).status for who in WORTHLESS} == WORTHLESS
    for who in SCOPES:
        good = who == "admin" or who in scopes
        if place == ("GET", "/v1/clients/{client}") and who == "work":
            good = False  # a client sees itself alone, and this token is of none
        told = cast.call(who, place, UNREADABLE if good else "")
        assert (told.status not in {401, 403}) == good, (who, told)
        assert not good or place[0] != "POST" or told.status == 400, (
            who,
            told,
        )  # or the key would not keep it harmless


@pytest.mark.parametrize(
    "place", sorted(place for place in TABLE if place[0] != "GET" and "{workflow}" in place[1]), ids=" ".join
)
def test_another_owners_workflow_is_not_touched(cast: Cast, place: tuple[str, str]) -> None:
    reply = cast.call("other owner", place, workflow=cast.workflow)
    assert (reply.status, reply.words["detail"]) == (403, "this workflow belongs to another owner")


@pytest.mark.parametrize("verb", ["pause", "resume", "retry", "cancel", "purge"])
def test_another_owners_ended_workflow_is_not_touched_either(cast: Cast, verb: str) -> None:
    body, key = {"tasks": [{"name": "a", "run": "true"}]}, {"Idempotency-Key": f"ended-{verb}"}
    id = cast.server.call("POST", "/v1/workflows", body, cast.who["submit"] | key).words["workflow"]
    assert cast.server.call("POST", f"/v1/workflows/{id}/cancel", {}, cast.who["submit"]).status == 200
    reply = cast.server.call("POST", f"/v1/workflows/{id}/{verb}", {}, cast.who["other owner"])
    assert (reply.status, reply.words["detail"]) == (403, "this workflow belongs to another owner")


def test_a_client_sees_itself_and_no_other_client(cast: Cast) -> None:
    rows = cast.server.call("GET", "/v1/clients", None, cast.who["admin"]).words["clients"]
    statuses = {who: [cast.server.call("GET", f"/v1/clients/{row['client']}", None, cast.who[who]).status for row in rows]
                for who in ("client", "other client")}  # fmt: skip
    for found in statuses.values():
        assert sorted(found) == [200] + [403] * (len(rows) - 1)
    assert statuses["client"] != statuses["other client"]


def test_an_expired_token_was_good_before(server: ServerProcess, cast: Cast) -> None:
    """So that the table above does not pass by a token that never was one."""
    brief = token(server, cast.who["admin"], "read", name="brief", days=5 / 86_400)
    assert server.get("/v1/workflows", **brief).status == 200
    until = time.monotonic() + 60
    while server.get("/v1/workflows", **brief).status != 401:
        assert time.monotonic() < until
        time.sleep(0.1)
