"""Callers who hold as much as they can, for as long as they can: everybody else is served all the same."""

import http.client
import random
import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Router

import uvicorn_thread as live
from eligo.server.files import Blobs, routes
from eligo.server.http.budgets import Account, Capacity
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.routes import ApiCall, Application, Caller, Endpoint
from eligo.server.schema import DoneWords
from server_faults import Reply, ServerProcess
from uvicorn_thread import post, status

MEGABYTE = 2**20
SOON = 120.0  # seconds in which whatever must happen has happened, on any machine
KEY = {"Idempotency_Key": "k-1"}
FILE = random.Random(1).randbytes(24 * MEGABYTE)  # more than the buffers of a connection hold
HASH = sha256(FILE).hexdigest()
Place = tuple[str, int]


async def take(call: ApiCall) -> Any:
    return DoneWords()


def enter(scope: Any, headers: dict[bytes, bytes]) -> None:
    """Whoever shows a token is known by it."""
    if token := headers.get(b"authorization"):
        owner = headers.get(b"owner", b"").decode() or None
        scope["state"]["caller"] = Caller("x", frozenset({"work"}), token=token.decode(), owner=owner)


@contextmanager
def served(bounds: Bounds) -> Iterator[tuple[Guard, Place]]:
    """A server with one address that needs a token, and one that does not; at the end nothing is held."""
    addresses = [
        Endpoint(method="POST", path="/v1/deliver", scopes=("work",), answer=take, takes=bytes),
        Endpoint(method="POST", path="/v1/clients", answer=take, takes=bytes),
    ]
    app = Application(addresses, lambda headers: Caller("x", frozenset({"work"})), [])
    with guarded(Guard(app, bounds, enter=enter)) as both:
        yield both


@contextmanager
def guarded(app: Guard) -> Iterator[tuple[Guard, Place]]:
    with live.served(app) as address:
        yield app, address
        until(lambda: all(one.free == one.total and not one.held for one in (app.bodies, *app.places.values())))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def begun(address: Place, size: int, path: str = "/v1/deliver", **headers: str) -> socket.socket:
    """A connection with a body of which the last byte never comes."""
    connection = live.connected(address, SOON)
    with suppress(OSError):  # it may be refused
        connection.sendall(post(path, b"", **{**KEY, "Content_Length": str(size + 1), **headers}))
        connection.sendall(bytes(size))
    return connection


def answered(address: Place, size: int, **headers: str) -> int:
    """The status of the answer to a whole body that comes in parts."""
    with live.connected(address, SOON) as connection:
        connection.sendall(post(body=b"", **{**KEY, "Content_Length": str(size), **headers}))
        connection.sendall(bytes(size))
        return status(live.rest(connection))


# What is counted


def account(caller: str) -> Account:
    one = Account("r")
    one.caller = caller
    return one


def test_nobody_can_use_up_an_capacity() -> None:
    """Whatever others hold, a caller who holds nothing gets half of what is free; and no amount is lost."""
    rng, accounts = random.Random(3), list[Account]()
    capacity = Capacity(1_000_000)
    for _ in range(5_000):
        if accounts and rng.random() < 0.3:
            accounts.pop(rng.randrange(len(accounts))).close()
        else:
            accounts.append(account(f"c{rng.randrange(12)}"))
            if not capacity.take(accounts[-1], rng.randrange(1, 100_000)):
                assert accounts.pop().holds == {}
        assert capacity.free + sum(capacity.held.values()) == capacity.total
        newcomer = account("new")
        assert capacity.free > 0
        assert capacity.take(newcomer, capacity.free // 2)
        newcomer.close()
    for one in accounts:
        one.close()
    assert (capacity.free, capacity.held) == (capacity.total, {})


# Bodies


SMALL = Bounds(held=3_000_000, body=1_000_000, patience=SOON, stall=SOON)


def test_a_caller_with_many_bodies_stops_nobody_else() -> None:
    with served(SMALL) as (app, address), ExitStack() as hogs:
        for _ in range(40):
            hogs.enter_context(begun(address, 100_000, Authorization="hog"))
        until(lambda: app.bodies.held.get("hog", 0) == 1_500_000)
        assert app.bodies.free == 1_500_000
        for size in (2, 50_000, 900_000):
            assert answered(address, size, Authorization="other") == 200
        assert answered(address, 10_000) == 200  # also without a token
        assert answered(address, 10_000, Authorization="hog") == 200  # and its own smaller ones


def test_strangers_at_the_address_of_a_proxy_do_not_stop_those_with_a_token() -> None:
    with served(SMALL) as (app, address), ExitStack() as hogs:
        for _ in range(40):
            hogs.enter_context(begun(address, 100_000))
        until(lambda: app.bodies.held.get("127.0.0.1", 0) == 1_500_000)
        assert answered(address, 900_000, Authorization="one") == 200
        assert answered(address, 900_000, Authorization="two") == 200


def test_many_callers_with_a_body_each_give_way_to_smaller_ones() -> None:
    """Also where one person has many tokens, nothing that others send is refused."""
    with served(SMALL) as (app, address), ExitStack() as hogs:
        bodies = [hogs.enter_context(begun(address, 100_000, Authorization=f"hog {i}")) for i in range(40)]
        until(lambda: app.bodies.free <= 200_000)
        assert answered(address, 95_000, Authorization="other") == 200
        assert app.bodies.free > 0
        dropped = select.select(bodies, [], [], SOON)[0][0]
        answer = live.rest(dropped)
        assert status(answer) == 503
        assert b"retry-after: 5" in answer


def test_clients_of_one_owner_share_room_for_bodies_and_have_places_of_their_own() -> None:
    with served(SMALL) as (app, address), ExitStack() as hogs:
        for number in range(40):
            hogs.enter_context(begun(address, 100_000, Authorization=f"client {number}", Owner="hog"))
        until(lambda: app.bodies.held == {"hog": 1_500_000})
        assert answered(address, 900_000, Authorization="other") == 200
        for each in (one := account("client 1")), (other := account("client 2")):
            each.owner = "hog"
        assert app.places["files"].take(one, 32)
        assert app.places["files"].take(other, 16)
        one.close()
        other.close()


def at_once(connection: socket.socket) -> bytes:
    """What has come on a connection so far."""
    connection.setblocking(False)
    try:
        return connection.recv(1000)
    except BlockingIOError:
        return b""
    finally:
        connection.settimeout(SOON)


def test_requests_on_one_connection_are_counted_one_by_one() -> None:
    """The first comes whole, the second in parts, and the third before the second is answered."""
    with served(SMALL) as (_, address), live.connected(address, SOON) as connection:
        small, large = (post(body=bytes(size), **KEY) for size in (10, 900_000))
        for request in (small, large):
            connection.sendall(request.replace(b"Connection: close\r\n", b""))
        connection.sendall(small)
        assert re.findall(rb"HTTP/1.1 (\d+) ", live.rest(connection)) == [b"200"] * 3


def test_what_needs_no_token_takes_4_kib() -> None:
    with served(Bounds()) as (app, address):
        assert [answered_open(address, size) for size in (4096, 4097, 8 * MEGABYTE - 1)] == [200, 413, 413]
        head = post("/v1/clients", b"", Content_Length="", Transfer_Encoding="chunked", **KEY)
        for chunk, code in ((4096, 200), (4097, 413)):
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (chunk, bytes(chunk))
            assert status(live.said(address, head + body)) == code  # whole
            with live.connected(address, SOON) as connection:
                connection.sendall(head)
                connection.sendall(body)
                assert status(live.rest(connection)) == code  # in parts
        expecting = post("/v1/clients", b"", Content_Length="5000", Expect="100-continue", **KEY)
        assert status(live.said(address, expecting)) == 413  # without being told to continue
        assert app.bodies.free == app.bodies.total


def answered_open(address: Place, size: int) -> int:
    with live.connected(address, SOON) as connection, suppress(ConnectionError):
        connection.sendall(post("/v1/clients", b"", Content_Length=str(size), **KEY))
        connection.sendall(bytes(size))
        return status(live.rest(connection))
    return 0


def test_a_body_that_makes_no_progress_is_dropped_however_much_came_before() -> None:
    """At 1 byte a second, what came would earn it ten days."""
    with served(Bounds(patience=0.2, stall=0.4, rate=1.0)) as (app, address):
        with begun(address, 900_000) as connection:
            assert status(live.rest(connection)) == 408
        until(lambda: app.bodies.free == app.bodies.total)


def test_one_caller_does_not_get_all_places() -> None:
    """Of any kind: streams of events, for instance, last as long as their reader likes."""
    capacity = Capacity(10)
    assert [capacity.take(account("a")) for _ in range(7)] == [True] * 5 + [False] * 2
    assert capacity.take(account("b"))


# Files


@contextmanager
def shelf(folder: Path, **bounds: Any) -> Iterator[tuple[Guard, Place]]:
    """A server of files that has one."""
    blobs = Blobs(folder / "files", 64 * MEGABYTE, 1024 * MEGABYTE)
    incoming = blobs.begin(HASH, 0, len(FILE))
    incoming.write(FILE)
    incoming.finish()
    app = Router([*routes(blobs)])
    with guarded(Guard(app, Bounds(files=16, patience=SOON, **bounds), enter=enter)) as both:
        yield both


def slow_download(address: Place, caller: str) -> socket.socket:
    """A connection that asks for a file and takes nothing of it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SOON)
    connection.connect(address)
    head = post(f"/v1/files/{HASH}", b"", Content_Length="", Authorization=caller).replace(b"POST", b"GET", 1)
    connection.sendall(head)
    return connection


def slow_upload(address: Place, caller: str, data: bytes) -> socket.socket:
    """A connection that sends half of a file."""
    connection = live.connected(address, SOON)
    head = post(f"/v1/files/{sha256(data).hexdigest()}", b"", Content_Length=str(len(data)), Authorization=caller)
    connection.sendall(head.replace(b"POST", b"PUT", 1) + data[: len(data) // 2])
    return connection


def call(address: Place, method: str, caller: str, data: bytes = b"", **headers: str) -> tuple[int, Any, bytes]:
    """The answer to a request for a file, once it is not refused for lack of a place."""
    end, name = time.monotonic() + SOON, sha256(data).hexdigest() if data else HASH
    while True:
        connection = http.client.HTTPConnection(*address, timeout=SOON)
        body = data if method == "PUT" else None
        connection.request(method, f"/v1/files/{name}", body, {"Authorization": caller, **headers})
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        if found[0] != 503:
            return found
        assert time.monotonic() < end
        time.sleep(0.05)


def test_slow_transfers_of_one_caller_leave_places_for_others(tmp_path: Path) -> None:
    with shelf(tmp_path, turn=10 * SOON) as (app, address), ExitStack() as hogs:
        for number in range(16):
            hogs.enter_context(slow_download(address, "hog"))
            hogs.enter_context(slow_upload(address, "hog", b"%d" % number * 1000))
        until(lambda: app.places["files"].held.get("hog", 0) == 8)
        assert call(address, "GET", "other")[::2] == (200, FILE)
        assert call(address, "PUT", "other", b"mine")[0] == 201


def test_slow_transfers_of_many_callers_give_way_and_can_be_resumed(tmp_path: Path) -> None:
    with shelf(tmp_path, turn=0.2) as (app, address), ExitStack() as hogs:
        data = [b"%d" % number * 1000 for number in range(7)]
        slow = [hogs.enter_context(slow_download(address, f"down {number}")) for number in range(8)]
        sent = [hogs.enter_context(slow_upload(address, f"up {i}", data[i])) for i in range(7)]
        until(lambda: app.places["files"].free == 1)
        with ExitStack() as more:  # as many again, each of which gets a place
            for number in range(15):
                until(lambda number=number: entered(address, f"other {number}", more))  # type: ignore[misc]
        assert call(address, "GET", "another")[::2] == (200, FILE)
        for one, text in zip(sent, data, strict=True):
            assert status(live.rest(one)) == 503
            assert call(address, "HEAD", "x", text)[1]["eligo-offset"] == str(len(text) // 2)
        got = min((live.rest(one).partition(b"\r\n\r\n")[2] for one in slow), key=len)
        assert len(got) < len(FILE)
        assert got + call(address, "GET", "x", Range=f"bytes={len(got)}-")[2] == FILE


def entered(address: Place, caller: str, more: ExitStack) -> bool:
    """Whether a caller has a place now, having asked for one."""
    connection = slow_download(address, caller)
    answer = connection.recv(12)
    if answer.endswith(b"200"):
        more.enter_context(connection)
        return True
    connection.close()
    return False


# A real server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One with tokens."""
    with ServerProcess(tmp_path_factory.mktemp("hogs"), "--tokens", "-q") as running:
        yield running


def token(server: ServerProcess, *scopes: str) -> str:
    operator = {"Authorization": f"Bearer {(server.folder / 'served.token').read_text().strip()}"}
    reply = server.call("POST", "/v1/tokens", {"name": "x", "scopes": scopes}, operator)
    assert reply.status == 201, reply
    return f"Bearer {reply.words['token']}"


def submitted(server: ServerProcess, by: str, size: int = 0) -> Reply:
    flow = b'{"tasks": [{"name": "a", "run": "true"}]}' + b" " * size
    return server.call("POST", "/v1/workflows?format=json&files=false", flow, {"Authorization": by})


def test_bodies_without_end_at_the_open_address(server: ServerProcess) -> None:
    """150 connections, each with a body of 8 MiB less a byte, or of no length, to which strangers may send."""
    chunked = {"Content_Length": "", "Transfer_Encoding": "chunked"}

    def refused(number: int) -> int:
        more = chunked if number % 2 else {}
        with begun(server.address, 8 * MEGABYTE - 1, "/v1/clients", **more) as hog:
            return status(live.rest(hog))

    with ExitStack() as hogs, ThreadPoolExecutor(50) as pool:
        codes = Counter(pool.map(refused, range(150)))
        held = [hogs.enter_context(begun(server.address, 4000, "/v1/clients")) for _ in range(150)]
        assert submitted(server, token(server, "submit"), MEGABYTE).status == 201
        assert [at_once(one) for one in held] == [b""] * 150
    assert set(codes) <= {0, 400, 413}  # 0: reset, since more came than was read; 400: no chunk
    assert "unexpected" not in server.log()


def test_unfinished_submits_of_1_gib(server: ServerProcess) -> None:
    """What one token cannot finish takes at most half of the room; others submit, and so does it."""
    hog, other = token(server, "submit"), token(server, "submit")
    with ExitStack() as hogs:
        bodies = [Pour(server.address, hog, 204 * MEGABYTE) for _ in range(5)]
        for body in bodies:
            hogs.callback(body.close)
            body.start()
        until(lambda: sum(body.sent for body in bodies) > 480 * MEGABYTE or all(body.over for body in bodies))
        assert submitted(server, other, 6 * MEGABYTE).status == 201
        assert submitted(server, hog).status == 201
        until(lambda: all(body.over for body in bodies))
        assert submitted(server, other, 6 * MEGABYTE).status == 201
        until(lambda: sum(body.sent for body in bodies if not body.refused) <= 512 * MEGABYTE)
    assert "unexpected" not in server.log()


LARGEST_ASK = {"labels": [f"{i:064}" for i in range(64)], "files": [f"{i:016x}" for i in range(256)]}


def test_polls_of_one_token_hold_no_room_for_bodies(server: ServerProcess) -> None:
    """60 clients of one token send the largest bodies that are taken, and wait: others submit and deliver."""
    pool, owner, other = token(server, "work"), token(server, "submit"), token(server, "work")
    clients = [enrolled_with(server, pool) for _ in range(60)]
    honest = {"Authorization": enrolled_with(server, other)}
    with ExitStack() as hogs:
        for size in (8 * MEGABYTE - 64, 2**17, 2**14 + 1):
            large = [hogs.enter_context(padded_poll(server.address, client, size)) for client in clients]
            codes = Counter(status(live.rest(one)) for one in large)
            assert set(codes) <= {0, 413}  # 0: reset, since more came than was read
            assert codes[413]
        waiting = [hogs.enter_context(padded_poll(server.address, client, 2**14)) for client in clients * 4]
        assert submitted(server, owner, 135_000).status == 201
        results = {"results": [{"lease": "w-x.1.abc", "outcome": "done", "tail": "x" * 8_000}]}
        assert server.call("POST", "/v1/deliver", results, honest).status == 200
        assert server.call("POST", "/v1/request", LARGEST_ASK, honest).status == 200
        assert {at_once(one)[:12] for one in waiting} <= {b"", b"HTTP/1.1 200"}  # some got what was submitted
    assert "unexpected" not in server.log()


def enrolled_with(server: ServerProcess, by: str) -> str:
    reply = server.call("POST", "/v1/clients", {"name": "c"}, {"Authorization": by})
    assert reply.status == 201, reply
    return f"Bearer {reply.words['token']}"


def padded_poll(address: Place, by: str, size: int) -> socket.socket:
    """A connection that waits for work, having sent a body of this size; or that is refused."""
    head, end = b'{"wait": 60, "labels": ["none"], "x": "', b'"}'
    connection = live.connected(address, SOON)
    with suppress(OSError):
        whole = head + b"A" * (size - len(head) - len(end)) + end
        connection.sendall(post("/v1/request", whole, Authorization=by))
    return connection


class Pour(threading.Thread):
    """A submit that sends much and does not end."""

    def __init__(self, address: Place, by: str, size: int) -> None:
        super().__init__(daemon=True)
        self.connection, self.size, self.sent, self.over = live.connected(address, SOON), size, 0, False
        self.head = post("/v1/workflows", b"", Content_Length=str(size + 1), Authorization=by, **KEY)

    def run(self) -> None:
        with suppress(OSError):
            self.connection.sendall(self.head)
            while self.sent < self.size and not self.refused:
                self.connection.sendall(bytes(MEGABYTE))
                self.sent += MEGABYTE
        self.over = True

    @property
    def refused(self) -> bool:
        """Whether an answer has come, or the connection has ended."""
        return bool(select.select([self.connection], [], [], 0)[0])

    def close(self) -> None:
        self.connection.close()
        self.join(SOON)


def test_64_slow_downloads(server: ServerProcess) -> None:
    hog, other = token(server, "work"), {"Authorization": token(server, "work")}
    assert server.call("PUT", f"/v1/files/{HASH}", FILE, other).status == 201
    with ExitStack() as hogs:
        slow = [hogs.enter_context(slow_download(server.address, hog)) for _ in range(64)]
        codes = Counter(one.recv(12)[-3:] for one in slow)
        assert codes == {b"200": 32, b"503": 32}
        assert server.call("GET", f"/v1/files/{HASH}", headers=other).body == FILE


def test_an_upload_that_is_broken_off_is_nobodys_fault(server: ServerProcess) -> None:
    by, read = token(server, "work"), {"Authorization": token(server, "read")}
    slow_upload(server.address, by, b"cut" * 100_000).close()

    def counted() -> dict[str, str]:
        lines = server.call("GET", "/metrics", headers=read).body.decode()
        return dict(re.findall(r'eligo_requests_total\{method="PUT",path="[^"]*",status="(\d+)"\} (\S+)', lines))

    until(lambda: "499" in counted())
    assert "500" not in counted()
    assert "unexpected" not in server.log()


# The waiting room


def enrolled(address: Place, at: str = "127.0.0.1", count: int = 1) -> list[int]:
    """The statuses of the answers to so many strangers at an address."""
    codes = []
    with socket.create_connection(address, SOON, (at, 0)) as connection:
        for number in range(count):
            ask = post("/v1/clients", b'{"name": "s"}', Idempotency_Key=f"{at.replace('.', '-')}-{number}")
            connection.sendall(ask.replace(b"Connection: close\r\n", b""))
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            codes.append(status(answer))
    return codes


def test_an_address_has_its_share_of_the_waiting_room(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--approve", "-q", "--host", "0.0.0.0", "--insecure") as server:
        assert enrolled(server.address, "127.0.0.2", 25) == [201] * 20 + [429] * 5
        assert enrolled(server.address, "127.0.0.3") == [201]


def test_1000_strangers_keep_nobody_out_of_the_waiting_room(tmp_path: Path) -> None:
    """Behind a proxy all have its address: those go that have waited longest, and nothing is left of them."""
    with ServerProcess(tmp_path, "--approve", "-q") as server:
        with ThreadPoolExecutor(8) as pool:
            codes = pool.map(lambda i: enrolled(server.address, f"127.0.0.{i}", 126), range(1, 9))
        assert list(codes) == [[201] * 126] * 8
        operator = {"Authorization": f"Bearer {(server.folder / 'served.token').read_text().strip()}"}
        for _ in range(2):
            clients = server.call("GET", "/v1/clients", headers=operator).words["clients"]
            assert len(clients) == 1000
            tokens = server.call("GET", "/v1/tokens", headers=operator).words["tokens"]
            assert len(tokens) == 1001
            waiting = next(one["client"] for one in clients if not one["approved"])
            assert server.call("POST", f"/v1/clients/{waiting}/approve", b"{}", operator).status == 200
            server.kill()
            server.start()
