"""What comes to the server from outside: too large, too slow, too many, from elsewhere, or not HTTP at all."""

import asyncio
import json
import logging
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

import uvicorn_thread as live
from eligo.errors import InputError
from eligo.server.http import protocol as protocols
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.protocol import MOST, SPARE, Door, Patience, check_hooks, most_connections, protocol
from eligo.server.http.refusals import TITLES, RefusedError
from eligo.server.logs import JsonLines
from uvicorn_thread import post, said, status

BOUNDS = Bounds(
    body=1000, workflow=5000, file=3000, patience=0.5, rate=100.0, quick=4, polls=6
)  # of places, one caller gets half
PATIENCE = Patience(head=1.0, head_bytes=20_000, idle=1.0, stall=1.0, each=40, all=60)
Address = tuple[str, int]


async def deliver(request: Request) -> Response:
    body = await request.body()
    assert body == request.scope["state"]["body"]
    request.scope["state"]["client"] = "c-1"
    return JSONResponse({"bytes": len(body)})


async def broken(request: Request) -> Response:
    raise ZeroDivisionError("a secret")


async def refusing(request: Request) -> Response:
    raise RefusedError(429, "over quota", after=3)


async def slow(request: Request) -> Response:
    await asyncio.sleep(0.6)
    return JSONResponse({})


async def long(request: Request) -> Response:
    await asyncio.sleep(60)
    return JSONResponse({})


async def upload(request: Request) -> Response:
    size = 0
    async for part in request.stream():
        size += len(part)
    return JSONResponse({"bytes": size})


async def unread(request: Request) -> Response:
    return JSONResponse({"error": "no"}, 507)


async def endless(request: Request) -> Response:
    return Response(b"x" * 50_000_000)


def application(**options: Any) -> Guard:
    routes = [
        Route("/v1/deliver", deliver, methods=["GET", "POST", "DELETE"]), Route("/v1/workflows", deliver, methods=["POST"]),
        Route("/broken", broken), Route("/refusing", refusing), Route("/slow", slow, methods=["GET", "POST"]),
        Route("/v1/request", slow, methods=["POST"]), Route("/v1/files/a", upload, methods=["PUT"]),
        Route("/v1/files/full", unread, methods=["PUT"]), Route("/endless", endless), Route("/long", long),
    ]  # fmt: skip
    return Guard(Router(routes), BOUNDS, **options)


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with live.served(application(), PATIENCE) as address:
        yield address


def refusal(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    told = json.loads(body)
    assert b"content-type: application/problem+json" in head
    assert (told["type"], told["status"], told["title"]) == ("about:blank", status(answer), TITLES[status(answer)])
    assert (told["detail"], told["instance"]) == (told["error"], told["request"])  # the latter for older clients
    assert f"eligo-request: {told['request']}".encode() in head or told["request"].startswith("connection-")
    return status(answer), told["error"]


def get(path: str, **headers: str) -> bytes:
    return post(path, b"", Content_Length="", **headers).replace(b"POST", b"GET", 1)


def put(path: str, body: bytes, **headers: str) -> bytes:
    return post(path, body, **headers).replace(b"POST", b"PUT", 1)


# Sizes


def test_what_is_within_bounds_is_answered_with_its_id(address: Address) -> None:
    answer = said(address, post(body=b"x" * 1000))
    assert status(answer) == 200
    assert b'{"bytes":1000}' in answer
    assert b"eligo-request: " in answer
    assert status(said(address, post("/v1/workflows", b"x" * 5000))) == 200
    assert b'{"bytes":3000}' in said(address, put("/v1/files/a", b"x" * 3000))


def test_a_body_in_parts_comes_whole(address: Address) -> None:
    with live.connected(address) as connection:
        whole = post(body=b"abc" * 100)
        for start in range(0, len(whole), 100):
            connection.sendall(whole[start : start + 100])
            time.sleep(0.01)
        assert b'{"bytes":300}' in live.rest(connection)
    chunked = post(body=b"", Content_Length="", Transfer_Encoding="chunked")
    assert b'{"bytes":6}' in said(address, chunked, b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")


@pytest.mark.parametrize("length", [1001, 2**30, 10**25])
def test_too_large_by_its_own_account_is_refused_at_once(address: Address, length: int) -> None:
    answer = said(address, post(Content_Length=str(length)))
    assert status(answer) in {400, 413}  # the largest is no length at all
    assert b"connection: close" in answer


def test_files_and_workflows_have_bounds_of_their_own(address: Address) -> None:
    assert refusal(said(address, put("/v1/files/a", b"x" * 3001))) == (413, "the body exceeds the limit of 3000 bytes")
    assert refusal(said(address, post("/v1/workflows", b"x" * 5001))) == (
        413,
        "the body exceeds the limit of 5000 bytes",
    )


def test_an_endless_body_is_refused_when_it_is_too_large(address: Address) -> None:
    with live.connected(address) as connection:
        connection.sendall(post(body=b"", Content_Length="", Transfer_Encoding="chunked"))
        try:
            for _ in range(100_000):
                connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
        except OSError:
            return
    pytest.fail("100 MB were taken")


def test_the_refusal_of_a_large_body_is_seen_by_whoever_goes_on_sending(address: Address) -> None:
    with live.connected(address) as connection:
        connection.sendall(post(body=b"", Content_Length=str(10**6)))
        connection.sendall(b"x" * 400_000)
        assert refusal(live.rest(connection)) == (413, "the body exceeds the limit of 1000 bytes")


def test_nothing_compressed_is_taken(address: Address) -> None:
    assert refusal(said(address, post(Content_Encoding="gzip"))) == (415, "compressed request bodies are not supported")
    assert status(said(address, post(Content_Encoding="identity"))) == 200


def test_headers_have_their_bounds(address: Address) -> None:
    assert refusal(said(address, get("/v1/deliver", **{f"X{i}": "y" for i in range(70)})))[0] == 431
    assert refusal(said(address, get("/v1/deliver?" + "x" * 9000)))[0] == 414
    assert refusal(said(address, get("/v1/deliver", X="y" * 40_000))) == (431, "the request headers are too large")
    with live.connected(address) as connection:  # and are not gathered for ever
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"X: yyyyyyyyyyyyyyyyyy\r\n" * 1500)
        assert status(live.rest(connection)) == 431


def test_what_must_be_said_once_is_not_said_twice(address: Address) -> None:
    twice = get("/v1/deliver").replace(b"\r\n", b"\r\nHost: other\r\n", 1)
    assert refusal(said(address, twice)) == (400, "header host is given twice")


# Time


def test_a_body_that_drips_is_refused(address: Address) -> None:
    with live.connected(address) as connection:
        connection.sendall(post(body=b"", Content_Length="500"))
        connection.settimeout(0.05)
        answer = dripped(connection, b"x")
    assert refusal(answer) == (408, "the body arrived too slowly")


def test_a_file_that_drips_is_refused_but_a_slow_one_is_not(address: Address) -> None:
    with live.connected(address) as connection:
        connection.sendall(put("/v1/files/a", b"", Content_Length="3000"))
        connection.settimeout(0.05)
        assert refusal(dripped(connection, b"x"))[0] == 408
    with live.connected(address) as connection:  # longer than the patience, but fast enough
        connection.sendall(put("/v1/files/a", b"x" * 500, Content_Length="3000"))
        for _ in range(5):
            time.sleep(0.12)
            connection.sendall(b"x" * 500)
        assert b'{"bytes":3000}' in live.rest(connection)


def dripped(connection: Any, drop: bytes, seconds: float = 40.0) -> bytes:
    """What a server says at last to somebody who sends a drop now and then."""
    end, answer = time.monotonic() + seconds, b""
    while time.monotonic() < end:
        try:
            connection.sendall(drop)
            part = connection.recv(65536)
            if not part:
                return answer
            answer += part
        except TimeoutError:
            continue
        except OSError:
            return answer
    raise AssertionError("it waits for ever")


def test_headers_that_drip_are_cut_off(address: Address) -> None:
    for begin in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n", get("/v1/deliver").replace(b"close", b"keep-alive")):
        with live.connected(address) as connection:
            connection.sendall(begin)
            connection.settimeout(0.05)
            answer = dripped(connection, b"X-A: b\r\n" if begin else b"G")
        assert answer == b"" or status(answer) in {200, 400, 408}


def test_a_connection_that_says_nothing_is_closed(address: Address) -> None:
    began = time.monotonic()
    with live.connected(address) as connection:
        assert status(live.rest(connection)) in {0, 408}
    assert time.monotonic() - began > 0.9
    with live.connected(address) as connection:  # also after a request
        connection.sendall(get("/v1/deliver").replace(b"close", b"keep-alive"))
        assert status(live.rest(connection)) == 200


def test_whoever_goes_on_sending_after_the_answer_is_left(address: Address) -> None:
    with live.connected(address) as connection:
        connection.sendall(put("/v1/files/full", b"", Content_Length="3000").replace(b"close", b"keep-alive"))
        connection.settimeout(0.05)
        assert status(dripped(connection, b"x", 4)) == 507


def test_whoever_does_not_take_the_answer_is_left() -> None:
    with live.served(application(), PATIENCE) as address, live.connected(address) as connection:
        connection.sendall(get("/endless"))
        time.sleep(2.5)
        got = live.rest(connection)
    assert 0 < len(got) < 50_000_000


# How many


def test_so_many_connections_of_one_address_and_no_more() -> None:
    with live.served(application(), PATIENCE) as address:
        many = [live.connected(address) for _ in range(60)]
        time.sleep(0.2)
        closed = 0
        for connection in many:
            connection.settimeout(0.01)
            try:
                closed += connection.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionResetError:
                closed += 1
        for connection in many:
            connection.close()
        assert closed == 20
        time.sleep(0.2)
        assert status(said(address, post())) == 200  # they left, so there is room


@pytest.mark.parametrize(("soft", "hard", "most", "raised"), [
    (1024, 20_000, 20_000 - SPARE, 20_000), (1024, -1, MOST, MOST + SPARE), (-1, -1, MOST, None),
    (1024, 1024, 1024 - SPARE, 1024), (100_000, 100_000, MOST, None), (100, 100, 1, 100),
])  # fmt: skip
def test_no_more_connections_than_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int, raised: int | None
) -> None:
    """Else the server could not open its own files while too many clients are there."""
    told = list[tuple[int, int]]()
    monkeypatch.setattr("resource.getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr("resource.setrlimit", lambda which, limits: told.append(limits))
    assert most_connections() == most
    assert told == ([] if raised is None else [(raised, hard)])


def test_the_door_counts() -> None:
    door = Door(Patience(each=2, all=3))
    assert [door.enter(a) for a in "aaabb"] == [True, True, False, True, False]
    door.leave("a")
    assert door.enter("b")
    for address in "abb":
        door.leave(address)
    assert (door.total, door.inside) == (0, {})
    assert all(Door(Patience(each=None)).enter("proxy") for _ in range(1000))


def together(address: Address, *requests: bytes) -> list[int]:
    found: list[int] = []
    threads = [threading.Thread(target=lambda r=r: found.append(status(said(address, r)))) for r in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def test_so_many_requests_at_a_time_and_long_polls_apart(address: Address) -> None:
    assert together(address, *[get("/slow")] * 5) == [200, 200, 503, 503, 503]
    assert together(address, *[post("/v1/request")] * 4, *[get("/slow")] * 2) == [200] * 5 + [503]
    assert b"retry-after: 3" in said(address, get("/refusing"))


def test_a_body_that_drips_takes_nobodys_place(address: Address) -> None:
    slow = [live.connected(address) for _ in range(10)]
    for connection in slow:
        connection.sendall(post(body=b"", Content_Length="500"))
    time.sleep(0.1)
    assert status(said(address, post())) == 200
    for connection in slow:
        connection.close()


def test_bodies_together_are_bounded_too() -> None:
    guard = Guard(application().app, Bounds(body=1000, held=1200))  # of which one caller gets half

    async def held() -> list[int]:
        return [await asked(guard, b"x" * size) for size in (500, 700, 500)]

    assert asyncio.run(held()) == [200, 503, 200]
    assert all(one.free == one.total and not one.held for one in (guard.bodies, *guard.places.values()))


async def asked(guard: Guard, body: bytes, path: str = "/v1/deliver") -> int:
    """The status of a request without any network."""
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http",
        "headers": [(b"host", b"localhost"), (b"content-length", b"%d" % len(body))], "root_path": "", "http_version": "1.1",
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    return int(sent[0]["status"])


# From elsewhere


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.2", "localhost:80:80", "[::2]"]
)
def test_by_another_name_nothing_is_answered(address: Address, host: str) -> None:
    for verb in (b"GET", b"POST", b"DELETE"):
        request = post(Host="").replace(b"POST", verb, 1).replace(b"\r\n", f"\r\nHost: {host}\r\n".encode(), 1)
        assert refusal(said(address, request)) == (
            421,
            f"unknown Host header {host!r} (add it with --allow-host)",
        )


@pytest.mark.parametrize("host", ["localhost", "LocalHost:99", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_by_its_names_it_is(address: Address, host: str) -> None:
    assert status(said(address, post(Host=host))) == 200


def test_pages_of_other_sites_are_refused_whatever_the_verb(address: Address) -> None:
    for wrong in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
        for verb in (b"GET", b"POST", b"DELETE"):
            assert refusal(said(address, post("/v1/deliver", b"", **wrong).replace(b"POST", verb, 1)))[0] == 403
    for right in ({"Origin": "http://localhost"}, {"Sec_Fetch_Site": "same-origin"}):
        assert status(said(address, post("/v1/deliver", b"", **right))) == 200


def test_whoever_may_not_enter_is_refused_before_he_is_read() -> None:
    def enter(scope: Any, headers: dict[bytes, bytes]) -> None:
        if b"authorization" not in headers:
            raise RefusedError(401, "missing bearer token", www_authenticate="Bearer")

    with live.served(application(enter=enter), PATIENCE) as address:
        answer = said(address, post(body=b"", Content_Length="900"))
        assert refusal(answer) == (401, "missing bearer token")
        assert b"www-authenticate: Bearer" in answer
        assert status(said(address, post(Authorization="Bearer x"))) == 200


# What goes wrong


def test_nothing_unexpected_is_told_but_written_down(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    code, sentence = refusal(said(address, get("/broken")))
    assert code == 500
    assert "secret" not in sentence
    assert "ZeroDivisionError: a secret" in caplog.text


def test_whoever_waits_when_the_server_stops_is_told_so() -> None:
    answers: list[bytes] = []
    with live.served(application(), PATIENCE) as address:
        waiting = threading.Thread(target=lambda: answers.append(said(address, get("/long"))))
        waiting.start()
        time.sleep(0.2)
    waiting.join()
    assert refusal(answers[0]) == (503, "the server is shutting down; try again")
    assert b"retry-after: 1" in answers[0]


def test_what_is_not_there_is_told_as_everything_else(address: Address) -> None:
    assert refusal(said(address, get("/nothing"))) == (404, "no such URL")
    assert refusal(said(address, post("/broken"))) == (405, "method not allowed for this URL")


def test_each_request_is_one_line_without_secrets(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "eligo.server.requests"):
        said(address, post("/v1/deliver?token=hidden", b"hidden", Authorization="Bearer hidden"))
        said(address, get("/%22%0a"))
        time.sleep(0.1)
    records = [record for record in caplog.records if record.name == "eligo.server.requests"]
    lines = [json.loads(JsonLines().format(record)) for record in records]
    assert [(line["method"], line["path"], line["status"], line["client"]) for line in lines] == [
        ("POST", "/v1/deliver", 200, "c-1"), ("GET", '/"\n', 404, None),
    ]  # fmt: skip
    assert "hidden" not in str(lines) + caplog.text
    assert len({line["request"] for line in lines}) == 2


def test_what_is_told_of_each_request_counts_its_bytes() -> None:
    seen: list[Any] = []
    guard = application(seen=lambda scope, *rest: seen.append((scope["path"], rest[0], *rest[2:])))
    asyncio.run(asked(guard, b"x" * 10))
    assert seen == [("/v1/deliver", 200, 10, len('{"bytes":10}'))]


def test_a_hundred_malformed_requests_harm_nobody(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(5)
    good = post(body=b'{"a": 1}')
    for number in range(100):
        wrong = bytearray(good)
        for _ in range(chance.randint(1, 8)):
            wrong[chance.randrange(len(wrong))] = chance.randrange(256)
        if number % 3 == 0:
            wrong = bytearray(chance.randbytes(200))
        with live.connected(address) as connection:
            connection.sendall(bytes(wrong))
            connection.shutdown(1)
            assert status(live.rest(connection)) < 500
    assert status(said(address, good)) == 200
    assert "Traceback" not in caplog.text


def test_rubbish_after_requests_that_are_being_answered(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    slow = get("/slow").replace(b"close", b"keep-alive")
    for requests in (slow + b"rubbish\r\n\r\n", slow + slow + b"rubbish\r\n\r\n"):
        assert status(said(address, requests)) == 400
    with live.connected(address) as connection:
        connection.sendall(slow + slow)
    time.sleep(1)
    assert "Traceback" not in caplog.text


def test_nobody_speaks_websocket(address: Address) -> None:
    upgrade = get("/v1/deliver", Upgrade="websocket", Sec_WebSocket_Key="AAAA", Sec_WebSocket_Version="13")
    assert status(said(address, upgrade.replace(b"Connection: close", b"Connection: Upgrade"))) in {200, 400, 408, 426}


def test_a_host_is_a_name_without_its_port() -> None:
    with pytest.raises(InputError, match="a host must be a name without scheme and port, got 'a:80'"):
        Guard(application().app, Bounds(hosts=("a:80",)))


# uvicorn itself


def test_a_uvicorn_that_changed_is_refused() -> None:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    check_hooks(HttpToolsProtocol)

    class Changed:
        data_received = HttpToolsProtocol.data_received

    with pytest.raises(InputError, match=r"uvicorn .* is not supported: it lacks connection_made"):
        check_hooks(Changed)


def test_what_is_extended_is_what_uvicorn_calls() -> None:
    """The parser takes its callbacks from the protocol by name, and all that is extended calls what it extends."""
    made = protocol(PATIENCE)
    assert made.door is not protocol(PATIENCE).door  # type: ignore[attr-defined]
    for name in protocols.METHODS:
        assert getattr(made, name).__module__ == "eligo.server.http.protocol"
