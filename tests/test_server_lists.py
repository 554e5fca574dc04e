"""Lists of a server come a page at a time, and nobody waits long while one is made."""

from collections.abc import Iterator

import pytest

from measured_server import MeasuredServer

WORKFLOWS, CLIENTS = 30, 7
MOST = 0.25  # seconds of processor time of one step of the event loop
FLOW = b'{"tasks": [{"name": "a", "run": "true"}]}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredServer]:
    with MeasuredServer(tmp_path_factory.mktemp("served"), "-q") as running:
        for _ in range(WORKFLOWS):
            assert running.call("POST", "/v1/workflows?files=false", FLOW).status == 201
        for i in range(CLIENTS):
            assert running.call("POST", "/v1/clients", {"name": f"c{i}"}).status == 201
        yield running


def test_pages_of_workflows_are_the_whole_list(server: MeasuredServer) -> None:
    every = server.get("/v1/workflows").words
    assert (len(every["workflows"]), every["before"]) == (WORKFLOWS, None)
    assert [one["made"] for one in every["workflows"]] == sorted(
        (one["made"] for one in every["workflows"]), reverse=True
    )
    page = server.get("/v1/workflows?limit=20").words
    rest = server.get(f"/v1/workflows?limit=20&before={page['before']}").words
    ids = [one["workflow"] for one in [*page["workflows"], *rest["workflows"]]]
    assert (ids, rest["before"]) == ([one["workflow"] for one in every["workflows"]], None)


def test_pages_of_clients_are_the_whole_list(server: MeasuredServer) -> None:
    page = server.get("/v1/clients?limit=4").words
    rest = server.get(f"/v1/clients?limit=4&after={page['after']}").words
    names = {one["name"] for one in [*page["clients"], *rest["clients"]]}
    assert (names, rest["after"]) == ({f"c{i}" for i in range(CLIENTS)}, None)


def test_a_list_holds_nobody_up(server: MeasuredServer) -> None:
    server.longest()
    for _ in range(5):
        assert server.get("/v1/workflows").status == server.get("/v1/clients").status == 200
    assert server.longest() < MOST
