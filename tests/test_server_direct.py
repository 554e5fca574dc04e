"""Requests that come whole are answered without ASGI's messages: the same answers, behind the same guards."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import uvicorn_thread as live
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.protocol import Patience
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall, Application, Caller, Endpoint
from eligo.server.schema import DoneWords, NameWords
from uvicorn_thread import post, status

# of places, one caller gets half
BOUNDS = Bounds(body=1000, patience=0.5, quick=4, polls=4, header_bytes=2000)
PATIENCE = Patience(head=5.0, idle=0.4, stall=1.0, each=40, all=60)
KEY = {"Idempotency_Key": "k-1"}
Place = tuple[str, int]
gone: list[str] = []
seen: list[tuple[str, int, int, int]] = []


async def take(call: ApiCall) -> Any:
    if call.words.name == "broken":
        raise ZeroDivisionError("a secret")
    if call.words.name == "refused":
        raise RefusedError(429, "over quota", after=3, connection="close")
    return DoneWords()


async def wait(call: ApiCall) -> Any:
    with suppress(TimeoutError):
        async with asyncio.timeout(float(call.words.name)):
            while (await call.gone())["type"] != "http.disconnect":
                pass
            gone.append(call.key)
    return DoneWords()


async def look(call: ApiCall) -> bytes:
    return b"figures"


def who(headers: dict[bytes, bytes]) -> Caller:
    scopes = headers.get(b"authorization", b"work").decode()
    if scopes == "nobody":
        raise RefusedError(401, "who is that?", www_authenticate="Bearer")
    return Caller("ann", frozenset({scopes}))


def enter(scope: Any, headers: dict[bytes, bytes]) -> None:
    who(headers)


def guard() -> Guard:
    addresses = [
        Endpoint(method="POST", path="/v1/deliver", scopes=("work",), answer=take, takes=NameWords),
        Endpoint(method="POST", path="/v1/request", scopes=("work",), answer=wait, takes=NameWords),
        Endpoint(method="GET", path="/metrics", answer=look, gives=bytes),
    ]
    return Guard(
        Application(addresses, who, []),
        BOUNDS,
        enter=enter,
        seen=lambda scope, status, seconds, taken, sent: seen.append((scope["path"], status, taken, sent)),
    )


@pytest.fixture(scope="module")
def address() -> Iterator[Place]:
    with live.served(guard(), PATIENCE) as address:
        yield address


def answered(address: Place, whole: bytes, *, apart: bool) -> bytes:
    """What is answered, but for the request's id and what says that the connection ends."""
    head, end, body = whole.partition(b"\r\n\r\n")
    with live.connected(address) as connection:
        if apart:
            connection.sendall(head + end + body[:1])
            time.sleep(0.03)
            connection.sendall(body[1:])
        else:
            connection.sendall(whole)
        answer = live.rest(connection)
    lines = answer.partition(b"\r\n\r\n")[0].splitlines()
    kept = sorted(line for line in lines if not re.match(b"connection|eligo-request|content-length|date|server", line))
    told = re.sub(rb"[0-9a-f]{8}-[0-9a-f]+", b"ID", answer.partition(b"\r\n\r\n")[2])
    assert len(re.findall(b"eligo-request: [0-9a-f-]+\r", answer)) == 1
    return b"\n".join([*kept, told])


CASES = {
    "fine": (200, post(body=b'{"name": "a"}', **KEY)),
    "refused": (429, post(body=b'{"name": "refused"}', **KEY)),
    "broken": (500, post(body=b'{"name": "broken"}', **KEY)),
    "no key": (200, post(body=b'{"name": "a"}')),
    "no words": (400, post(body=b'{"name": 7}', **KEY)),
    "a name twice": (400, post(body=b'{"name": "a", "name": "b"}', **KEY)),
    "a name twice, in other letters": (400, post(body=b'{"name": "a", "\\u006eame": "b"}', **KEY)),
    "another host": (421, post(body=b'{"name": "a"}', Host="evil.org", **KEY)),
    "another site": (403, post(body=b'{"name": "a"}', Origin="https://evil.org", **KEY)),
    "nobody": (401, post(body=b'{"name": "a"}', Authorization="nobody", **KEY)),
    "not allowed": (403, post(body=b'{"name": "a"}', Authorization="read", **KEY)),
    "too large": (413, post(body=b'{"name": "%s"}' % (b"a" * 1000), **KEY)),
    "compressed": (415, post(body=b'{"name": "a"}', Content_Encoding="gzip", **KEY)),
    "a header twice": (400, post(body=b'{"name": "a"}', **KEY).replace(b"Host:", b"Host: localhost\r\nHost:")),
    "large headers": (431, post(body=b'{"name": "a"}', X="a" * 3000, **KEY)),
    "many headers": (431, post(body=b'{"name": "a"}', **KEY, **{f"X{i}": "a" for i in range(70)})),
    "no such method": (405, post(body=b'{"name": "a"}', **KEY).replace(b"POST", b"PUT", 1)),
    "a question mark": (200, post("/v1/deliver?a=b", b'{"name": "a"}', **KEY)),
    "another way to write it": (200, post("/v1/%64eliver", b'{"name": "a"}', **KEY)),
    "no such address": (404, post("/v1/nothing", b'{"name": "a"}', **KEY)),
}


@pytest.mark.parametrize("case", CASES)
def test_whole_or_in_parts_a_request_is_answered_alike(address: Place, case: str) -> None:
    expected, whole = CASES[case]
    found = [answered(address, whole, apart=apart) for apart in (False, True)]
    assert found[0] == found[1]
    assert f"HTTP/1.1 {expected} ".encode() in found[0]
    assert b"secret" not in found[0]


def test_a_chunked_body_that_comes_whole_is_bounded_too(address: Place) -> None:
    for size, expected in ((900, 200), (990, 413)):
        body = b'{"name": "a", "x": "%s"}' % (b"a" * size)
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        whole = post(body=b"", Content_Length="", Transfer_Encoding="chunked", **KEY) + chunks
        assert status(live.said(address, whole)) == expected


def test_what_is_only_looked_at_is_answered_so_too(address: Place) -> None:
    whole = post("/metrics", b"", Content_Length="").replace(b"POST", b"GET", 1)
    answer = live.said(address, whole)
    assert answer.endswith(b"\r\n\r\nfigures")
    assert b"text/plain" in answer
    old = live.said(address, whole.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert old.endswith(b"\r\n\r\nfigures")
    assert b"connection: close" in old


def test_a_connection_stays_open_and_answers_in_order(address: Place) -> None:
    slow = post("/v1/request", b'{"name": "0.2"}', **KEY).replace(b"Connection: close\r\n", b"")
    quick = post(body=b'{"name": 7}', **KEY).replace(b"Connection: close\r\n", b"")
    with live.connected(address) as connection:
        connection.sendall(slow + quick + slow + post(body=b'{"name": "refused"}', **KEY))
        answers = live.rest(connection)
    assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"200", b"400", b"200", b"429"]


def test_who_wants_to_be_told_to_continue_is(address: Place) -> None:
    head, end, body = post(body=b'{"name": "a"}', Expect="100-continue", **KEY).partition(b"\r\n\r\n")
    with live.connected(address) as connection:
        connection.sendall(head + end)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert status(live.rest(connection)) == 200


def test_a_quiet_connection_is_closed_in_its_time(address: Place) -> None:
    with live.connected(address) as connection:
        for _ in range(4):
            connection.sendall(post(body=b'{"name": "a"}', **KEY).replace(b"Connection: close\r\n", b""))
            assert status(connection.recv(1000)) == 200
            time.sleep(0.2)
        began = time.monotonic()
        assert live.rest(connection) == b""
        assert time.monotonic() - began > 0.1


def test_who_waits_for_long_is_not_quiet(address: Place) -> None:
    whole = post("/v1/request", b'{"name": "1.2"}', **KEY)
    assert status(live.said(address, whole)) == 200


def test_who_hangs_up_is_noticed_by_whoever_answers(address: Place) -> None:
    gone.clear()
    with live.connected(address) as connection:
        connection.sendall(post("/v1/request", b'{"name": "5"}', **KEY))
        time.sleep(0.1)
    time.sleep(0.3)
    assert gone == ["k-1"]


def test_so_many_at_a_time_and_no_more(address: Place) -> None:
    whole = post("/v1/request", b'{"name": "0.4"}', **KEY)
    many = [live.connected(address) for _ in range(4)]
    for connection in many:
        connection.sendall(whole)
    assert sorted(status(live.rest(connection)) for connection in many) == [200, 200, 503, 503]
    for connection in many:
        connection.close()
    assert status(live.said(address, whole)) == 200


def test_what_is_under_way_when_the_server_stops_is_told_so() -> None:
    app = guard()
    with live.served(app, PATIENCE) as address:
        connection = live.connected(address)
        connection.sendall(post("/v1/request", b'{"name": "30"}', **KEY))
        time.sleep(0.1)
    with connection:
        answer = live.rest(connection)
    assert status(answer) == 503
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == "the server is shutting down; try again"
    assert all(one.free == one.total for one in (app.bodies, *app.places.values()))


def test_it_is_counted_like_any_other(address: Place) -> None:
    seen.clear()
    for apart in (False, True):
        answered(address, CASES["fine"][1], apart=apart)
    time.sleep(0.05)
    assert seen == [("/v1/deliver", 200, 13, 13)] * 2


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("POST", "/v1/deliver", "work", None), ("POST", "/v1/deliver", "read", 403), ("POST", "/v1/deliver", "nobody", 401),
        ("PUT", "/v1/files/ab", "submit", None), ("PUT", "/v1/files/ab", "read", 403), ("GET", "/metrics", "nobody", None),
        ("POST", "/v1/workflows/w-1/cancel", "nobody", 401), ("POST", "/v1/workflows/w-1/cancel", "read", None),
    ],
)  # fmt: skip
def test_a_caller_is_admitted_by_the_table_before_its_body_is_read(
    method: str, path: str, token: str, status: int | None
) -> None:
    """Scopes of paths with parts are checked when the endpoint is called; whoever calls must be known before."""
    app, scope = guard().app, {"method": method, "path": path, "state": {}}
    assert isinstance(app, Application)
    if status is None:
        app.admit(scope, {b"authorization": token.encode()})
        return
    with pytest.raises(RefusedError) as caught:
        app.admit(scope, {b"authorization": token.encode()})
    assert caught.value.status == status
