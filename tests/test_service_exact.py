"""Retries are exact whatever else is out, and an answer that was given stays."""

from typing import Any

import pytest

from eligo.work.attempts import Lease
from eligo.work.tries import Retries, Tries
from service_parts import Scene, check, flow_of, many

ONCE = Retries(most=0, lost=5, first=1.0, longest=1.0)


def with_copy(**terms: Any) -> tuple[Scene, Lease, Lease]:
    """A task that two clients have."""
    scene = Scene(**terms)
    scene.submit(many(2), copies=2)
    ann, bob = scene.enrol("ann"), scene.enrol("bob")
    quick, slow = scene.lease(bob), scene.lease(ann)
    scene.now += 1.0
    scene.bring(quick, seconds=1.0)
    scene.now += 5.0
    copy = scene.lease(bob)
    assert slow.task == copy.task
    return scene, slow, copy


def never_again(scene: Scene, workflow: str) -> bool:
    """Whether nobody gets anything more of a workflow, and it has failed."""
    scene.later(200.0)
    check(scene)
    return not scene.get(scene.enrol("eve")) and scene.state(workflow) == "failed"


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("end", ["returned", "lost", "released"])
def test_a_copy_that_comes_back_is_not_tried_beyond_the_retries(end: str, restart: bool) -> None:
    scene, slow, copy = with_copy(retries=ONCE)
    assert scene.bring(copy, "failed", failure="exit code 1") == "failed"
    if restart:
        scene.restart()
    if end == "returned":
        assert scene.bring(slow, "returned") == "returned"
    elif end == "released":
        scene.service.release(scene.now, slow.workflow, ["t1"])
    assert never_again(scene, slow.workflow)
    assert scene.served(slow.workflow).tries.failures[slow.task] == 1


@pytest.mark.parametrize("restart", [False, True])
def test_a_task_that_failed_too_often_gets_no_more_copies(restart: bool) -> None:
    scene, slow, copy = with_copy(retries=ONCE)
    scene.bring(copy, "failed")
    if restart:
        scene.restart()
    scene.now += 50.0
    assert not scene.get(scene.enrol("eve"))
    assert scene.bring(slow) == "accepted"
    assert scene.state(slow.workflow) == "done"


@pytest.mark.parametrize("out", [False, True])
def test_a_late_failure_counts_as_one_before_and_after_a_restart(out: bool) -> None:
    scene = Scene(retries=Retries(most=1, lost=5, first=1.0, longest=1.0))
    workflow, ann, bob = scene.submit(many(1)), scene.enrol("ann"), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    other = scene.lease(bob) if out else None
    assert scene.bring(late, "failed") == "failed"
    for _ in range(2):
        assert (scene.served(workflow).tries.failures[0], scene.served(workflow).tries.losses[0]) == (1, 0)
        scene.restart()
    assert scene.bring(other or scene.lease(bob), "failed") == "failed"
    assert never_again(scene, workflow)


def test_late_failures_beyond_the_retries_take_the_task_away() -> None:
    scene = Scene(retries=ONCE)
    workflow, ann = scene.submit(many(1)), scene.enrol("ann")
    late = scene.lease(ann)
    scene.later(100.0)
    assert scene.bring(late, "failed", failure="exit code 3") == "failed"
    assert scene.served(workflow).tries.causes == {0: "exit code 3"}
    assert never_again(scene, workflow)
    assert scene.service.retry(scene.now, workflow) == 1
    assert scene.bring(scene.lease(ann)) == "accepted"


def test_failures_of_before_a_retry_do_not_count_however_late() -> None:
    scene = Scene(retries=ONCE)
    workflow, ann, bob = scene.submit(many(1)), scene.enrol("ann"), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    scene.bring(scene.lease(bob), "failed")
    scene.service.retry(scene.now, workflow)
    scene.keep()
    assert scene.bring(late, "failed") == "failed"
    for _ in range(2):
        assert scene.served(workflow).tries.failures[0] == 0
        scene.restart()
    assert scene.bring(scene.lease(bob)) == "accepted"


def test_a_restart_schedules_each_retry_without_a_search_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes time with the number of scheduled retries: one for each failed task would be quadratic."""
    scene = Scene(retries=Retries(most=3, first=1000.0, longest=1000.0))
    workflow, ann = scene.submit(many(3)), scene.enrol("ann")
    leases = [scene.lease(ann) for _ in range(3)]
    for lease in leases:
        scene.bring(lease, "failed")
    searches = list[object]()
    monkeypatch.setattr(Tries, "wait_no_more", lambda tries, tasks: searches.append(tasks))
    scene.restart()
    assert sorted(v for _, v in scene.served(workflow).tries.later) == [0, 1, 2]
    assert searches == []


def test_a_result_in_place_of_a_loss_lets_the_task_go_on() -> None:
    scene = Scene(retries=Retries(most=3, lost=0, first=1.0, longest=1.0))
    workflow, ann = scene.submit(many(1)), scene.enrol("ann")
    late = scene.lease(ann)
    scene.later(100.0)
    assert scene.state(workflow) == "failed"
    assert scene.bring(late, "failed") == "failed"
    assert scene.state(workflow) == "running"
    scene.later(100.0)
    assert scene.bring(scene.lease(ann)) == "accepted"


# Answers that stay


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_a_result_before_what_it_needs_is_refused_for_good(lost: bool, restart: bool) -> None:
    scene = Scene()
    workflow, ann = scene.submit(flow_of({"a": [], "b": ["a"]})), scene.enrol("ann")
    first, second = scene.leases(ann, size=2)
    if lost:
        scene.later(100.0)
    assert scene.bring(second) == "refused"
    check(scene)
    if restart:
        scene.restart()
    assert scene.bring(first) == "accepted"
    assert scene.bring(second) == "refused"
    assert scene.bring(scene.lease(ann)) == "accepted"
    assert scene.state(workflow) == "done"
    assert scene.bring(second) == "refused"


def test_what_was_returned_late_stays_returned() -> None:
    scene = Scene()
    workflow, ann = scene.submit(many(1)), scene.enrol("ann")
    late = scene.lease(ann)
    scene.later(100.0)
    assert scene.bring(late, "returned") == "returned"
    assert scene.bring(late) == "returned"
    assert scene.bring(scene.lease(ann)) == "accepted"
    scene.restart()
    assert scene.bring(late, "returned") == "returned"
    assert scene.state(workflow) == "done"


def test_after_the_end_each_result_is_judged_by_itself_also_after_a_restart() -> None:
    scene = Scene()
    workflow, ann, bob = scene.submit(many(1)), scene.enrol("ann"), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    scene.bring(scene.lease(bob), tail="right")
    assert scene.state(workflow) == "done"
    for _ in range(2):
        assert scene.bring(late, tail="right") == "duplicate"
        assert scene.bring(late, tail="wrong") == "conflict"
        scene.restart()


def test_the_votes_of_a_client_are_the_same_after_a_restart() -> None:
    scene = Scene()
    workflow, ann = scene.submit(many(1), quorum=2), scene.enrol("ann")
    early = scene.lease(ann)
    scene.later(100.0)
    later = scene.lease(ann)
    assert scene.bring(later, tail="x") == "voted"
    assert scene.bring(early, tail="y") == "voted"
    before = scene.served(workflow).votes
    scene.restart()
    assert scene.served(workflow).votes == before
