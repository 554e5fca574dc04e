"""Whatever is sent to an address of the API, nobody else waits long: a real server, and the steps of its event loop.

The addresses are those of the API's own table: a new one is picked up by itself. Each gets the largest bodies that it takes,
valid ones and such as are made to cost more than their length says, while another client asks. What may be large must be
listed in `VALID`: whoever adds a message that may be says there what a large one looks like.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from eligo.server.http.json_body import SMALL
from eligo.server.schema import DeliverWords, InputsWords, ReleaseWords, RenewWords, RetryWords
from measured_server import MeasuredServer
from test_server_scopes import TABLE, words_for
from test_server_security import bearer, client, token

#: seconds of processor time that one step of the event loop may take; a quiet machine needs a third
MOST = 0.25
TASKS = 20_000
#: left out, and why
ELSEWHERE = {
    ("POST", "/v1/workflows"): "it is read in a process of its own (tests/test_preparation.py, benchmarks/stalls.py)",
    ("POST", "/v1/workflows/{workflow}/tasks"): "adding tasks is limited and measured apart",
}
LARGEST = {("POST", "/v1/request"): 16_384, ("POST", "/v1/clients"): 4_096}
JSON = {place: one for place, one in TABLE.items() if place[0] == "POST" and place not in ELSEWHERE}


def filled(before: str, unit: str, after: str, size: int) -> bytes:
    """A body of nearly so many bytes, mostly of one unit again and again; a comma after the last is left out."""
    count = max(1, (size - len(before) - len(after)) // len(unit))
    return (before + (unit * count).removesuffix(",") + after).encode()


def numbered(before: str, unit: Callable[[int], str], after: str, size: int, most: int = 10**9) -> bytes:
    """The same of units that differ."""
    count = min(most, (size - len(before) - len(after)) // (len(unit(10**6)) + 1))
    return (before + ",".join(map(unit, range(count))) + after).encode()


#: how what nobody knows may look: it is sent beside what an address must be told
STRANGE: dict[str, tuple[str, str, str]] = {
    "newlines": ('"', "\\n", '"'), "quotes": ('"', '\\"', '"'), "backslashes": ('"', "\\\\", '"'),
    "letters": ('"', "\\u003a", '"'), "texts": ("[", '"",', "]"), "objects": ("[", "{},", "]"), "lists": ("[", "[],", "]"),
    "odd objects": ('[{"a" :"\\n"},', "{},", "]"), "same names": ("[", '{"a":0},', "]"), "colons": ("[", '":",', "]"),
    "odd names": ('[{"a" :"\\n"},', '{"a":0},', "]"), "lists in a list": ("[", "[[[[]]]],", "]"),
    "blanks": ('{"a" :0', " ", "}"), "commas": ('"\\n', ",", '"'),
    "deep": ("[", "[" * 300 + "]" * 300 + ",", "]"), "deep objects": ("[", '{"a":' * 100 + "0" + "}" * 100 + ",", "]"),
}  # fmt: skip


def strange(base: dict[str, Any], size: int) -> Iterator[tuple[str, bytes]]:
    """Bodies that say what they must, and something strange."""
    base = {name: [] if isinstance(value, list) else value for name, value in base.items()}
    head = json.dumps(base)[:-1] + (', "x": ' if base else '"x": ')
    for name, (before, unit, after) in STRANGE.items():
        yield name, filled(head + before, unit, after + "}", size)
    yield "names", numbered(head + "{", lambda i: f'"{i:07}":0', "}}", size)
    yield "odd names in one", numbered(head + "{", lambda i: f'"\\u0061{i:07}" :0', "}}", size)


HASHED = '{"sha256":"%064d","size":1}'
RESULT = '{{"lease":"WORKFLOW.{}.x","outcome":"done","seconds":0.1,"code":0{}}}'
Made = Callable[[int], bytes]
#: what is large and valid, or would be if it were less; WORKFLOW stands for the id of one
VALID: dict[Any, dict[str, Made]] = {
    DeliverWords: {
        "results": lambda size: numbered('{"results":[', lambda i: RESULT.format(i, ""), "]}", size, 10_000),
        "tails": lambda size: numbered(
            '{"results":[', lambda i: RESULT.format(i, ',"tail":"' + "a\\n,:" * 120 + '"'), "]}", size, 10_000
        ),
        "spaced": lambda size: numbered(
            '{"results":[', lambda i: RESULT.format(i, "").replace(":", " : ", 1), "]}", size, 10_000
        ),
        "nothing said": lambda size: numbered(
            '{"results":[', lambda i: RESULT.format(i, ',"memory":null,"tail":null'), "]}", size, 10_000
        ),
        "too many": lambda size: filled('{"results":[', '{"lease":"","outcome":"done"},', "]}", size),
        "files": lambda size: numbered(
            '{"results":[{"lease":"WORKFLOW.1.x","outcome":"done","outputs":{',
            lambda i: f'"{i:07}":{HASHED % i}', "}}]}", size, 43_000,
        ),
        "labels": lambda size: filled('{"results":[],"ask":{"labels":[', '"a",', "]}}", size),
        "few labels": lambda size: filled('{"results":[],"ask":{"labels":[', '"a",', "]}}", 500_000),
        "prefixes": lambda size: filled('{"results":[],"ask":{"files":[', f'"{"0" * 16}",', "]}}", 2_000_000),
    },
    RenewWords: {
        "leases": lambda size: numbered('{"leases":[', lambda i: f'"WORKFLOW.{i}.x"', "]}", size, 10_000),
        "too many": lambda size: filled('{"leases":[', '"",', "]}", 390_000),
    },
    InputsWords: {
        "files": lambda size: numbered('{"files":{', lambda i: f'"{i:07}":{HASHED % i}', "}}", size, 43_000),
        "signatures": lambda size: numbered('{"signatures":{', lambda i: f'"t{i}":"{"x" * 99}"', "}}", size),
        "short ones": lambda size: numbered('{"signatures":{', lambda i: f'"t{i}":""', "}}", size, 130_000),
    },
    RetryWords: {
        "tasks": lambda size: numbered('{"tasks":[', lambda i: f'"t{i}"', "]}", size, TASKS),
        "many": lambda size: numbered('{"tasks":[', lambda i: f'"t{i}"', "]}", size, 130_000),
    },
    ReleaseWords: {
        "tasks": lambda size: numbered('{"tasks":[', lambda i: f'"t{i}"', "]}", size, TASKS),
        "many": lambda size: numbered('{"tasks":[', lambda i: f'"t{i}"', "]}", size, 130_000),
    },
}  # fmt: skip


class Scene:
    """A server with a workflow, whoever calls, and a client that asks again and again."""

    def __init__(self, server: MeasuredServer) -> None:
        self.server, self.admin = server, bearer((server.folder / "served.token").read_text().strip())
        self.client, self.asking = client(server, self.admin), client(server, self.admin)
        who = token(server, self.admin, "submit", name="owner") | {"Idempotency-Key": "large"}
        tasks = [{"name": f"t{i}", "run": "true"} for i in range(TASKS)]
        reply = server.call("POST", "/v1/workflows?files=false&retries=0", {"tasks": tasks}, who, timeout=120.0)
        self.workflow = reply.words["workflow"]

    def longest(self, path: str, body: bytes) -> tuple[int, float, float]:
        """Send it; the status, the longest step of the loop, and the longest that a client waited for an answer."""
        path = path.format(workflow=self.workflow, client="c-1")
        who = self.client if path in {"/v1/deliver", "/v1/renew", "/v1/request"} else self.admin
        body = body.replace(b"WORKFLOW", self.workflow.encode())
        over, waits = threading.Event(), list[float]()
        asker = threading.Thread(target=self._ask, args=(over, waits))
        self.server.longest()
        asker.start()
        try:
            status = self.server.call("POST", path, body, who, timeout=240.0).status
        finally:
            over.set()
            asker.join()
        return status, self.server.longest(), max(waits, default=0.0)

    def _ask(self, over: threading.Event, waits: list[float]) -> None:
        with closing(HTTPConnection(*self.server.address, timeout=240)) as line:
            while not over.is_set():
                began = time.perf_counter()
                line.request("POST", "/v1/request", b"{}", self.asking | {"Idempotency-Key": secrets.token_hex(8)})
                line.getresponse().read()
                waits.append(time.perf_counter() - began)
                time.sleep(0.01)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with MeasuredServer(tmp_path_factory.mktemp("served"), "--approve", "-q") as server:
        yield Scene(server)


#: sent to every address, while the others go to one: all large bodies are read by the same reader
EVERYWHERE = {"newlines", "names", "deep"}


def bodies(place: tuple[str, str]) -> Iterator[tuple[str, bytes]]:
    """All that is sent to an address."""
    address = JSON[place]
    size = LARGEST.get(place, getattr(address.takes, "most", 2**16))
    base = words_for(address) if address.takes is not None else {}
    for name, body in strange(base if isinstance(base, dict) else {}, size):
        if name in EVERYWHERE or address.takes is DeliverWords:
            yield name, body
    for name, made in VALID.get(address.takes, {}).items():
        yield name, made(size)


def test_every_large_message_is_tried() -> None:
    large = {one.takes for place, one in JSON.items() if getattr(one.takes, "most", 0) > 2**16}
    assert large == set(VALID)
    assert min(one.takes.most for one in JSON.values() if one.takes is not None) >= SMALL


@pytest.mark.parametrize("place", sorted(JSON), ids=" ".join)
def test_no_body_holds_the_others_up(scene: Scene, place: tuple[str, str]) -> None:
    found = {}
    for name, body in bodies(place):
        status, step, wait = scene.longest(place[1], body)
        assert status < 500, (name, status)
        found[name] = step
        print(f"{place[1]:40} {name:18} {len(body):>9,} B {status} {1e3 * step:6.0f} ms, asks {1e3 * wait:6.0f} ms")  # noqa: T201
    assert {name: step for name, step in found.items() if step > MOST} == {}
