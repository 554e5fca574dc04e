"""Lists of a server come a page at a time, and nobody waits long while one is made."""

from collections.abc import Iterator

import pytest

from eligo.server.view.answers import state_words
from eligo.server.view.followed import WatchedServed
from measured_server import MeasuredServer
from service_parts import Scene, flow_of

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


def test_tasks_have_their_state_in_the_common_words_too(server: MeasuredServer) -> None:
    """The list of tasks says the same as the page, and keeps the words of the theory beside it."""
    flow, scene = {"a": [], "b": ["a"], "c": ["b"], "d": [], "e": [], "f": [], "g": ["f"]}, Scene()
    workflow, ann = scene.submit(flow_of(flow), retries=1), scene.enrol()
    by_task = {}
    for _ in range(3):
        lease = scene.lease(ann)
        by_task[scene.served(workflow).flow.dag.tasks[lease.task]] = lease
    assert by_task.keys() == {"a", "e", "f"}
    scene.bring(by_task["f"])
    scene.bring(by_task["a"], "failed", failure="exit code 1")
    expected = {
        "a": ("failed", "retrying"), "b": ("waiting", "pending"), "c": ("waiting", "pending"), "d": ("eligible", "ready"),
        "e": ("allocated", "running"), "f": ("executed", "done"), "g": ("eligible", "ready"),
    }  # fmt: skip
    assert states_of(scene, workflow) == expected
    scene.later(600.0, ann)
    again = next(one for one in iter(lambda: scene.lease(ann), None) if one.task == by_task["a"].task)
    scene.bring(again, "failed", failure="exit code 1")
    blocked = {"a": ("failed", "failed"), "b": ("waiting", "blocked"), "c": ("waiting", "blocked")}
    assert states_of(scene, workflow).items() >= blocked.items()
    page = server.get(f"/v1/workflows/{server.get('/v1/workflows?limit=1').words['workflows'][0]['workflow']}/tasks")
    assert [(one["state"], one["status"]) for one in page.words["tasks"]] == [("eligible", "ready")]


def states_of(scene: Scene, workflow: str) -> dict[str, tuple[str, str]]:
    """The states of all tasks in both words; the common ones are those of the page."""
    served = scene.served(workflow)
    words, page = state_words(served, range(len(served.flow))), WatchedServed(served, scene.service)
    assert [one.status for one in words] == [page.state(v) for v in range(len(words))]
    return {one.task: (one.state, one.status) for one in words}
