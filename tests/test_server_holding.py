"""What a server forgets once another one holds a workflow, and how servers speak to one another; without a database."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from eligo.errors import InputError, NotHeldError
from eligo.formats.reader import parse
from eligo.server.cluster.neighbours import Neighbour, Reply
from eligo.server.group_commit import Keeper
from eligo.server.http.refusals import RefusedError
from eligo.server.rules.prepared import Wishes, prepare
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, ResultWords
from eligo.stores.service import Changes
from eligo.stores.service_sql import ServiceStore
from eligo.workflow import Workflow
from uvicorn_thread import served


class FencedStore(ServiceStore):
    """Keeps changes in memory; refuses those of some workflows, and submissions, for a reason."""

    shared = True

    def __init__(self, *lost: str, twice: bool = False) -> None:
        self.lost, self.twice, self.kept = set(lost), twice, list[Changes]()
        self._prepared: Sequence[Changes] = ()

    def prepare(self, changes: Sequence[Changes]) -> None:
        self._prepared = changes

    def finish(self) -> None:
        if self.twice and any(one.workflows for one in self._prepared):
            raise InputError("this cannot be kept: there is one already")
        touched = set[str]().union(*(one.workflows_touched() for one in self._prepared))
        if touched & self.lost:
            raise NotHeldError(touched & self.lost)
        self.kept += self._prepared


def flow(tasks: int = 3) -> Workflow:
    text = "\n".join(f"f{i}:\n\ttrue {i}\n" for i in range(tasks))
    return parse(text, "makeflow").labelled()


def begun() -> tuple[Service, list[str]]:
    """A service of two workflows, all of which is kept."""
    service = Service()
    ids = [service.submit(1.0, prepare(flow(), Wishes(files=False)), f"key {i}") for i in range(2)]
    service.take_changes()
    return service, ids


def granted(service: Service, client: Any, key: str, grants: int = 1) -> list[str]:
    ticket = service.ask(2.0, client, key, AskWords(count=grants))
    service.serve(2.0)
    return [lease.id for grant in ticket.grants for lease in grant.leases]


def test_what_is_forgotten_leaves_nothing_to_keep() -> None:
    service, (first, second) = begun()
    client = service.enrol(2.0, "x")
    leases = [*granted(service, client, "a"), *granted(service, client, "b")]
    mine = [lease for lease in leases if lease.startswith(first)]
    service.deliver(3.0, client, [ResultWords(mine[0], "done")])
    service.forget([first])
    assert list(service.served) == [second]
    assert client.holds == len(leases) - len(mine)
    assert all(workflow == second for workflow, _ in service.books.due)
    changes = service.take_changes()
    assert changes is not None
    assert changes.workflows_touched() <= {second}
    assert service.deliver(4.0, client, [ResultWords(mine[0], "done")]) == ["refused"]
    assert service.renew(4.0, client, leases) == mine
    assert service.expire(1000.0) == len(leases) - len(mine)


def test_what_is_forgotten_can_be_submitted_again() -> None:
    service, (first, _) = begun()
    service.forget([first])
    assert service.submit(5.0, prepare(flow(), Wishes(files=False)), "key 0") != first


def kept_by(store: FencedStore, doing: Callable[[Service, Keeper, list[str]], Awaitable[Any]]) -> None:
    async def run() -> None:
        service, ids = begun()
        store.lost = {ids[0]} if store.lost else set()
        keeper = Keeper(store, service.take_changes, lost=service.forget)
        await doing(service, keeper, ids)
        await keeper.close()

    asyncio.run(run())


def test_the_rest_of_a_group_is_kept_where_one_workflow_was_lost() -> None:
    name = str(flow().dag.tasks[0])

    async def doing(service: Service, keeper: Keeper, ids: list[str]) -> None:
        client = service.enrol(2.0, "x")
        held = [*granted(service, client, "a"), *granted(service, client, "b")]
        assert {lease.partition(".")[0] for lease in held} <= set(ids)
        service.deliver(3.0, client, [ResultWords(lease, "done") for lease in held])
        service.sign(3.0, ids[0], {name: "x"})
        service.sign(3.0, ids[1], {name: "y"})
        with pytest.raises(RefusedError, match="another server") as refused:
            await keeper.kept()
        assert (refused.value.status, refused.value.after) == (503, 1.0)
        assert list(service.served) == [ids[1]]
        await keeper.kept()
        assert keeper.trouble is None

    store = FencedStore("the first")
    kept_by(store, doing)
    assert [signature for one in store.kept for _, _, signature in one.signatures] == ["y"]
    assert all(len(one.clients) == 1 for one in store.kept[:1])


def test_whoever_waits_for_what_was_dropped_comes_again() -> None:
    name = str(flow().dag.tasks[0])

    async def doing(service: Service, keeper: Keeper, ids: list[str]) -> None:
        service.sign(3.0, ids[0], {name: "x"})
        waiter = keeper.kept()
        keeper.drop([ids[0]])
        with pytest.raises(RefusedError, match="another server"):
            await waiter
        await keeper.kept()

    store = FencedStore()
    kept_by(store, doing)
    assert store.kept == []


def test_a_workflow_that_another_server_was_given_too_is_not_submitted_twice() -> None:
    name = str(flow().dag.tasks[0])

    async def doing(service: Service, keeper: Keeper, ids: list[str]) -> None:
        broken = list[BaseException]()
        keeper._broken = broken.append
        service.submit(3.0, prepare(flow(), Wishes(files=False)), "key 3")
        service.sign(3.0, ids[1], {name: "y"})
        with pytest.raises(RefusedError, match="another server"):
            await keeper.kept()
        await keeper.kept()
        assert sorted(service.served) == sorted(ids)
        assert broken == []

    store = FencedStore(twice=True)
    kept_by(store, doing)
    assert [one.signatures for one in store.kept] == [[(store.kept[0].signatures[0][0], name, "y")]]


# How servers speak to one another


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message.get("more_body", False)
    said = scope["path"].encode() + b" " + dict(scope["headers"]).get(b"eligo-client", b"") + b" " + body
    length = [(b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": 201, "headers": length})
    await send({"type": "http.response.body", "body": said})


def test_a_neighbour_is_called_on_a_connection_that_stays_open() -> None:
    with served(echo) as (host, port):

        async def calls() -> list[Reply]:
            neighbour = Neighbour(f"http://{host}:{port}")
            found = [await neighbour.call("POST", "/a", {"Eligo-Client": "c"}, b"x" * size) for size in (0, 100_000)]
            found += await asyncio.gather(*(neighbour.call("POST", "/b", {}, b"%d" % i) for i in range(50)))
            assert 1 <= len(neighbour._idle) <= 8
            for _, writer in neighbour._idle:
                writer.transport.abort()  # as if the other side had closed them
            found.append(await neighbour.call("POST", "/c", {}))
            neighbour.close()
            return found

        answers = asyncio.run(calls())
    assert {answer.status for answer in answers} == {201}
    assert [answer.body for answer in answers[:2]] == [b"/a c ", b"/a c " + b"x" * 100_000]
    assert [answer.body for answer in answers[2:52]] == [b"/b  %d" % i for i in range(50)]


def test_a_neighbour_that_is_away_is_an_error_of_the_system() -> None:
    enough = threading.Event()

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(enough.wait, 10)
        await echo(scope, receive, send)

    with served(silent) as (host, port):
        with pytest.raises(TimeoutError):
            asyncio.run(Neighbour(f"http://{host}:{port}").call("GET", "/", {}, patience=0.2))
        enough.set()
    with pytest.raises(OSError, match=r"refused|failed"):
        asyncio.run(Neighbour(f"http://{host}:{port}").call("GET", "/", {}))
