"""What is left gets a plan of its own where reality has left the plan."""

import asyncio

import numpy as np
import pytest

from conftest import random_small_dag
from eligo.execution import Execution
from eligo.planning import plan
from eligo.server import replan as replanning
from eligo.server.replan import Course, Standing, order_of_rest, standing
from eligo.server.schema import ResultWords
from eligo.theory.eligibility import check_schedule
from service_parts import Scene, flow_of

FORK = {"a": [], "b": [], **{f"a{i}": ["a"] for i in range(3)}, **{f"b{i}": ["b"] for i in range(5)}}


def failed(lease: str) -> ResultWords:
    return ResultWords(lease, "failed", 0.1, 1, failure="exit code 1")


def test_the_rest_is_planned_as_it_would_be_by_itself() -> None:
    for case in range(40):
        rng = np.random.default_rng(case)
        dag = random_small_dag(rng, 12)
        game = Execution(dag)
        for _ in range(int(rng.integers(0, len(dag)))):
            ready = list(game.eligible)
            game.execute(ready[int(rng.integers(len(ready)))])
        done = np.frombuffer(game.codes, np.uint8) == 5
        order = order_of_rest(Standing(dag, done, np.zeros(len(dag), np.bool_)))
        names = [dag.tasks[v] for v in order]
        check_schedule(dag, names)
        left = dag.induced(np.flatnonzero(~done).astype(np.int32))
        assert names[int(done.sum()) :] == list(plan(left, "quick").order)


def test_what_failed_for_good_goes_last_with_all_below_it() -> None:
    scene = Scene(keeping=False)
    workflow = scene.submit(flow_of(FORK), policy="ready", retries=0)
    served, ann = scene.served(workflow), scene.enrol()
    course = Course(served)
    assert not course.has_deviated(served)
    first = scene.lease(ann)
    scene.tell(ann, failed(first.id))
    assert course.has_deviated(served)
    assert not course.has_deviated(served)
    names = [served.flow.dag.tasks[v] for v in order_of_rest(standing(served))]
    bad = served.flow.dag.tasks[first.task]
    below = {bad, *served.flow.dag.children(bad)}
    assert {*names[-len(below) :]} == below


def test_another_plan_is_followed_and_kept() -> None:
    scene = Scene()
    workflow = scene.submit(flow_of({"a": [], "b": [], "c": []}), policy="ready")
    served = scene.served(workflow)
    scene.service.replan(workflow, np.array([2, 1, 0], np.int32))
    scene.keep()
    assert served.flow.dag.tasks[scene.lease(scene.enrol()).task] == "c"
    scene.keep()
    scene.restart()
    order = scene.served(workflow).order
    assert order is not None
    assert order.tolist() == [2, 1, 0]


def test_a_server_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(keeping=False)
    workflow = scene.submit(flow_of(FORK), policy="ready", retries=0)
    ann = scene.enrol()
    scene.tell(ann, failed(scene.lease(ann).id))
    before = scene.served(workflow).order
    monkeypatch.setattr(replanning, "EVERY", 0.01)

    async def look() -> None:
        task = asyncio.create_task(replanning.replan_for_ever(scene.service))
        while scene.served(workflow).order is before:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(look(), 20))
