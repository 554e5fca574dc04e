"""What a server lets go of in time, and what it must not: clients, tokens, results, remarks and what it said of an end."""

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from eligo.server.app import Server, Setup
from eligo.server.cleanup import MOST, Tidying
from eligo.server.rules.clients import DAY
from eligo.server.rules.prepared import Wishes, prepare
from eligo.server.rules.results import BRIEFLY_UNUSED, UNUSED
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, FileWords, ResultWords
from eligo.stores.service_sqlite import service_store
from eligo.workflow import Workflow
from running_cases import written
from service_parts import Scene, flow_of, many
from serving_cases import PATIENCE, got, posted, serving, told, worked


def played(folder: Path, play: Callable[[Server, Tidying], Awaitable[Any]], **settings: Any) -> Any:
    """What comes of a play with a server that listens to nobody."""

    async def run() -> Any:
        setup = Setup(store=str(folder / "s.db"), **settings)
        server = Server(setup, service_store(setup.store))
        try:
            await server.desk.settle()
            return await play(server, Tidying(server.service, server.gate, server.store, server.keeper, server.blobs))
        finally:
            await server.close()

    return asyncio.run(run())


# Clients and tokens


def test_strangers_that_nobody_approved_are_forgotten_after_a_day(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        stranger = server.service.enrol(time.monotonic(), "eve", approved=False)
        ann = server.service.enrol(time.monotonic(), "ann")
        assert server.entrance.token_for(stranger, False)
        assert server.entrance.token_for(ann, True)
        await tidying.turn()
        assert set(server.service.clients) == {stranger.id, ann.id}
        for one in (stranger, ann):
            one.seen -= 2 * DAY
        await tidying.turn()
        assert set(server.service.clients) == {ann.id}
        assert [row.id for row in server.store.clients()] == [ann.id]
        assert {row.client for row in server.store.tokens()} == {None, ann.id}
        assert server.gate is not None
        assert {row.client for row in server.gate.rows()} == {None, ann.id}
        ann.seen -= 30 * DAY
        await tidying.turn()
        assert server.store.clients() == []

    played(tmp_path, play, tokens=True, approving=True)


def test_who_did_something_keeps_its_name_and_who_has_something_its_place(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        service = server.service
        service.submit(time.monotonic(), prepare(many(2), Wishes(files=False)), "k")
        done, busy = (service.enrol(time.monotonic(), name) for name in ("done", "busy"))
        for client in (done, busy):
            ticket = service.ask(time.monotonic(), client, "k", AskWords())
            service.serve(time.monotonic())
        assert service.deliver(time.monotonic(), done, [ResultWords(_lease(service, done.id), "done")]) == ["accepted"]
        assert ticket.grants
        done.seen = busy.seen = time.monotonic() - 31 * DAY
        await tidying.turn()
        assert set(service.clients) == {busy.id}
        row = server.store.client(done.id)
        assert row is not None
        assert row.name == "done"
        call: Any = type("Call", (), {})()
        call.parts, call.caller = {"client": done.id}, type("Caller", (), {"client": None, "scopes": {"read"}})()
        assert (await server.api.client(call)).name == "done"

    played(tmp_path, play)


def test_who_works_for_another_server_is_not_forgotten_by_the_store(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        here, there = (server.service.enrol(time.monotonic(), name) for name in ("here", "there"))
        for one in (here, there):
            assert server.entrance.token_for(one, True)
        await server.desk.settle()
        server.store.shared = True
        for one in (here, there):
            one.seen -= 31 * DAY
        with sqlite3.connect(tmp_path / "s.db") as database:
            database.execute("UPDATE client SET seen = seen - ? WHERE id = ?", (31 * DAY, here.id))
        await tidying.turn()
        assert server.service.clients == {}
        assert [row.id for row in server.store.clients()] == [there.id]
        assert {row.client for row in server.store.tokens()} == {None, there.id}

    played(tmp_path, play, tokens=True)


def _lease(service: Service, client: str) -> str:
    (served,) = service.served.values()
    return next(lease.id for lease in served.leases.values() if lease.client == client)


def test_worthless_tokens_are_forgotten_a_day_later_and_no_others(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        assert server.gate is not None
        for name in ("old", "revoked", "good"):
            server.entrance.make(name, ["work"], days=1.0 if name == "old" else None)
        server.entrance.revoke("revoked")
        now = time.time()
        for row in server.gate.rows():
            ends: dict[str, Any] = {"expires": now - 1.5 * DAY} if row.name == "old" else {}
            ends |= {"revoked": now - 0.5 * DAY} if row.name == "revoked" else {}
            server.service.books.changes.tokens.append(server.gate._insert(row._replace(**ends)))
        await tidying.turn()
        assert {row.name for row in server.store.tokens()} == {"operator", "revoked", "good"}
        assert {row.name for row in server.gate.rows()} == {"operator", "revoked", "good"}

    played(tmp_path, play, tokens=True)


def test_some_clients_are_looked_at_in_a_turn(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> list[int]:
        for _ in range(2 * MOST + 10):
            server.service.enrol(time.monotonic(), "eve", approved=False).seen = time.monotonic() - 2 * DAY
        left = []
        for _ in range(3):
            await tidying.turn()
            left.append(len(server.service.clients))
        return left

    assert played(tmp_path, play) == [MOST + 10, 10, 0]


def test_a_client_that_only_asks_is_kept_as_seen() -> None:
    scene = Scene()
    ann = scene.enrol()
    for _ in range(40):
        scene.now += DAY
        scene.client(ann).seen = scene.now
        assert scene.service.away(scene.now, [ann]) == []
        scene.keep()
    assert scene.store.known[ann].seen > scene.ahead + 39 * DAY


# Files


def made(name: str) -> bytes:
    return f"content of {name}".encode()


def flow_with_files() -> Workflow:
    return flow_of({"a": []}, {"a": (["in"], ["out"])})


def put(server: Server, data: bytes, age: float = 0.0) -> str:
    hash = sha256(data).hexdigest()
    if server.blobs.size(hash) is None:
        incoming = server.blobs.begin(hash, 0, len(data))
        incoming.write(data)
        incoming.finish()
    used = time.time() - age
    os.utime(server.blobs.path(hash), (used, used))
    return hash


def ended(server: Server, key: str) -> tuple[str, str, str]:
    """A workflow that is done; its id, and the hashes of its input and output."""
    service, now = server.service, time.monotonic()
    given, found = put(server, made(f"in {key}")), put(server, made(f"out {key}"))
    workflow = service.submit(now, prepare(flow_with_files(), Wishes()), key)
    assert service.provide(now, workflow, [("in", given, 1)]) == []
    client = service.enrol(now, "ann")
    service.ask(now, client, key, AskWords())
    service.serve(now)
    told = ResultWords(_lease(service, client.id), "done", outputs={"out": FileWords(found, 1)})
    assert service.deliver(now, client, [told]) == ["accepted"]
    for hash in (given, found):
        used = time.time() - 2 * DAY
        os.utime(server.blobs.path(hash), (used, used))
    return workflow, given, found


async def round_of(tidying: Tidying) -> None:
    tidying._began = float("-inf")
    while await tidying.turn():
        pass


def test_inputs_of_what_has_ended_go_and_results_stay_for_their_days(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        workflow, given, found = ended(server, "k")
        await server.desk.settle()
        loose = put(server, b"nobody's", 2 * DAY)
        fresh = put(server, b"just sent")
        await round_of(tidying)
        assert [server.blobs.size(one) is not None for one in (given, found, loose, fresh)] == [
            False,
            True,
            False,
            True,
        ]
        assert [row.name for row in server.store.files(workflow)] == ["in", "out"]

    played(tmp_path, play)


def test_a_temporary_file_goes_soon_after_its_last_use_unless_another_workflow_needs_its_content(
    tmp_path: Path,
) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        _, _, needed = ended(server, "k")
        await server.desk.settle()
        used, unused = put(server, b"used", UNUSED - 60), put(server, b"unused", UNUSED + 60)
        brief = put(server, b"of a workflow with a limit of space", BRIEFLY_UNUSED + 60)
        spent = dict.fromkeys((used, unused, needed, sha256(b"gone").hexdigest()), UNUSED)
        server.service.books.spent.update(spent | {brief: BRIEFLY_UNUSED})
        await tidying.turn()
        assert [server.blobs.size(one) is not None for one in (used, unused, needed)] == [True, False, True]
        assert server.blobs.size(brief) is None
        assert server.service.books.spent == {used: UNUSED}

    played(tmp_path, play)


def test_results_go_when_their_days_are_over_also_after_a_restart(tmp_path: Path) -> None:
    async def first(server: Server, tidying: Tidying) -> tuple[str, str, str]:
        return ended(server, "k")

    async def second(server: Server, tidying: Tidying) -> None:
        assert server.blobs.size(found) is not None
        await round_of(tidying)
        assert server.store.files(workflow) != []
        with sqlite3.connect(tmp_path / "s.db") as database:
            database.execute("UPDATE workflow SET ended = ended - ?", (8 * DAY,))
        os.utime(server.blobs.path(found), (0, 0))
        await round_of(tidying)
        assert server.store.files(workflow) == []
        assert server.blobs.size(found) is None

    workflow, _, found = played(tmp_path, first)
    played(tmp_path, second)


def test_what_goes_on_or_failed_keeps_its_files(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        given = put(server, made("in"))
        workflow = server.service.submit(time.monotonic(), prepare(flow_with_files(), Wishes()), "k")
        server.service.provide(time.monotonic(), workflow, [("in", given, 1)])
        await server.desk.settle()
        put(server, made("in"), 30 * DAY)
        await round_of(tidying)
        assert server.blobs.path(given).exists()
        server.service.cancel(time.monotonic(), workflow)
        await server.desk.settle()
        await round_of(tidying)
        assert not server.blobs.path(given).exists()

    played(tmp_path, play)


def test_a_folder_of_another_store_is_left_alone(tmp_path: Path) -> None:
    async def play(server: Server, tidying: Tidying) -> None:
        loose = put(server, b"perhaps somebody else's", 2 * DAY)
        (server.blobs.folder / "owner").write_text("another")
        await round_of(tidying)
        assert server.blobs.path(loose).exists()

    played(tmp_path, play)


def test_the_days_of_results_are_an_option(tmp_path: Path) -> None:
    code, _, said = told("serve", "--check", "--port", "0", "--store", str(tmp_path / "s.db"), "--keep-results", "-1")
    assert code == 2
    assert "--keep-results must be at least 0" in said
    assert told("serve", "--check", "--port", "0", "--store", str(tmp_path / "s.db"), "--keep-results", "0.5")[0] == 0


# What is said


def test_what_is_to_be_known_of_a_store_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def remark(server: Server, tidying: Tidying) -> str | None:
        return server.remark

    monkeypatch.setattr("eligo.stores.service_sqlite.SOUND", (99, 0, 0))
    first, second = played(tmp_path, remark), played(tmp_path, remark)
    assert "your data is safe as long as no other program writes" in first
    assert second is None
    monkeypatch.setattr("eligo.stores.service_sqlite.OLD", "another version of SQLite {}")
    assert "another version" in played(tmp_path, remark)


def test_the_end_of_what_was_retried_is_told_as_it_is(tmp_path: Path) -> None:
    tasks = [{"name": "a", "run": f"test -e {tmp_path}/there && echo x > made", "outputs": ["made"]}]
    flow = written(tmp_path, tasks)
    with serving(tmp_path, "--json") as (url, server):
        _, said, _ = told("submit", url, str(flow), "--retries", "0")
        workflow = said.strip()
        worked(tmp_path, url)
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "failed"
        (tmp_path / "there").touch()
        assert posted(f"{url}/v1/workflows/{workflow}/retry", {}) == (200, {"count": 1})
        worked(tmp_path, url, "bob")
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "done"
        server.terminate()
        assert server.stdout is not None
        document = json.loads(server.stdout.read())
        assert server.wait(PATIENCE) == 0
    (one,) = document["workflows"]
    assert (one["state"], one["counts"]["done"], one["failures"]) == ("done", 1, [])


def test_a_workflow_is_made_ready_before_the_rules_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    built = scene.service.built(scene.now, prepare(many(3), Wishes(files=False)), "k")
    monkeypatch.setattr("eligo.server.rules.service.Served.__init__", None)
    monkeypatch.setattr("eligo.server.rules.service.Execution", None)
    workflow = scene.service.submit(scene.now, built, "k")
    assert scene.served(workflow) is built
    assert scene.service.submit(scene.now, built, "k") == workflow
