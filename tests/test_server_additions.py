"""Additions hold nobody up: they are read in processes with limits, are small, and are added one at a time."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from eligo import additions
from eligo.errors import InputError
from eligo.server import dispatcher, files, preparation
from eligo.server.http import bodies, handlers
from eligo.server.http.bodies import in_file_thread
from eligo.server.preparation import MOST_ADDED_BYTES, Preparation
from eligo.server.rules import results, served, service
from eligo.server.rules.served import MOST_ADDED, MOST_GROWN, MOST_GROWN_ARCS, UnreadError
from eligo.server.schema import ResultWords
from running_cases import written
from service_parts import Scene, flow_of
from serving_cases import got, posted, serving, told

ONE = (
    b"tasks:\n- {name: x, after: [a], run: make x, inputs: [f], labels: [gpu]}\n- {name: y, after: [x], run: make y}\n"
)


def _many(tasks: int) -> bytes:
    return json.dumps({"tasks": [{"name": f"n{i}", "run": "true"} for i in range(tasks)]}).encode()


def _read(body: bytes, format: str | None = None) -> additions.NewTasks:
    async def run() -> additions.NewTasks:
        found = Preparation()
        try:
            return await found.read_addition("ann", body, format)
        finally:
            found.close()

    return asyncio.run(run())


def test_an_addition_comes_back_from_the_process_as_it_is_read() -> None:
    found, alone = _read(ONE), additions.read_addition(ONE)
    assert (dict(found.tasks), list(found.rows)) == (dict(alone.tasks), list(alone.rows))
    assert (found.after, found.linked) == (alone.after, alone.linked)
    assert list(found.flow.dag.arcs()) == list(alone.flow.dag.arcs())


@pytest.mark.parametrize(
    ("body", "format", "why"),
    [
        (_many(MOST_ADDED + 1), None, "at most 1,000 tasks, got 1,001"),
        (b" " * (MOST_ADDED_BYTES + 1), None, "at most 1 MiB"),
        (ONE, "json", "must be sent as JSON"),
        (b"\xff", None, "UTF-8"),
    ],
)
def test_an_addition_that_is_too_much_is_refused_before_it_reaches_the_loop(
    body: bytes, format: str | None, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        _read(body, format)


@pytest.mark.parametrize("module", [handlers, dispatcher, preparation, results, served, service])
def test_no_module_that_runs_in_the_server_can_read_an_addition(module: Any) -> None:
    assert not hasattr(module, "read_addition")


def test_a_result_whose_added_tasks_were_not_read_changes_nothing() -> None:
    scene = Scene()
    workflow, ann = scene.submit(flow_of({"a": []}), grow=True), scene.enrol()
    result = ResultWords(scene.lease(ann).id, "done", added='{"tasks": []}')
    with pytest.raises(UnreadError):
        scene.service.deliver(scene.now, scene.client(ann), [result])
    assert len(scene.served(workflow).leases) == 1


def test_a_large_workflow_grows_no_more() -> None:
    scene = Scene()
    workflow = scene.submit(flow_of({f"t{i}": [] for i in range(MOST_GROWN)}))
    with pytest.raises(InputError, match=f"at most {MOST_GROWN:,} tasks"):
        scene.service.add(scene.now, workflow, additions.read_addition(_many(1)))


def test_a_dense_workflow_grows_no_more() -> None:
    size = int((2 * MOST_GROWN_ARCS) ** 0.5) + 2
    scene = Scene()
    workflow = scene.submit(flow_of({f"t{i}": [f"t{j}" for j in range(i)] for i in range(size)}))
    with pytest.raises(InputError, match=f"at most {MOST_GROWN_ARCS:,} dependencies"):
        scene.service.add(scene.now, workflow, additions.read_addition(_many(1)))


@pytest.mark.parametrize("module", [files, bodies])
def test_files_and_bodies_have_threads_of_their_own(module: Any) -> None:
    assert module.in_file_thread is in_file_thread
    assert "to_thread(" not in Path(module.__file__).read_text()


def test_a_server_refuses_a_large_addition_and_takes_a_small_one(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    with serving(tmp_path) as (url, _):
        workflow = told("submit", url, str(flow))[1].strip()
        status, _ = posted(f"{url}/v1/workflows/{workflow}/tasks", json.loads(_many(95_000)))
        assert status == 422
        status, _ = posted(f"{url}/v1/workflows/{workflow}/tasks", json.loads(_many(10)))
        assert status == 200
        assert got(f"{url}/v1/workflows/{workflow}")["tasks"] == 11
