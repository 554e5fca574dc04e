"""A quorum: who is believed, who is looked at anyway, and how soon a liar is seen."""

import pytest

from service_parts import Scene, check, many


def trusted(scene: Scene, name: str) -> str:
    client = scene.enrol(name)
    scene.client(client).valid = scene.terms.trusted
    return client


@pytest.fixture
def scene() -> Scene:
    return Scene(spot_checks=1.0)


def test_a_task_with_a_vote_goes_before_those_with_none(scene: Scene) -> None:
    scene.submit(many(5), quorum=2)
    ann, bob = scene.enrol(), scene.enrol("bob")
    first = scene.lease(ann)
    assert scene.bring(first, tail="x") == "voted"
    assert scene.lease(ann).task != first.task  # not twice to the same client
    assert scene.lease(bob).task == first.task
    assert scene.lease(bob).task != first.task
    check(scene)


@pytest.mark.parametrize("policy", ["finish", "fifo", "batch-optimal"])
def test_all_is_done_whoever_chooses(policy: str) -> None:
    scene = Scene()
    workflow = scene.submit(many(30), quorum=2, policy=policy)
    clients = [scene.enrol(name) for name in ("ann", "bob", "eve")]
    for _ in range(100):
        for client in clients:
            for lease in scene.leases(client, grants=2):
                scene.bring(lease, tail="x")
        if scene.state(workflow) == "done":
            return
        check(scene)
    raise AssertionError("this never ends")


def test_a_trusted_client_is_looked_at_now_and_then(scene: Scene) -> None:
    workflow = scene.submit(many(1), quorum=2)
    ann, bob = trusted(scene, "ann"), scene.enrol("bob")
    assert scene.bring(scene.lease(ann), tail="x") == "voted"
    assert scene.bring(scene.lease(bob), tail="x") == "accepted"
    assert scene.state(workflow) == "done"
    assert scene.client(ann).valid == scene.terms.trusted + 1


def test_who_lies_once_it_is_trusted_loses_its_trust(scene: Scene) -> None:
    scene.submit(many(2), quorum=2)
    liar, ann, bob = trusted(scene, "liar"), trusted(scene, "ann"), scene.enrol("bob")
    task = (lie := scene.lease(liar)).task
    assert scene.bring(lie, tail="wrong") == "voted"
    truth = scene.lease(ann)
    assert truth.task == task
    assert scene.bring(truth, tail="right") == "voted"  # two that are trusted, and differ: a third decides
    last = scene.lease(bob)
    assert last.task == task
    assert scene.bring(last, tail="right") == "accepted"
    assert scene.client(liar).valid == 0
    assert scene.client(ann).valid == scene.terms.trusted + 1


def test_nobody_is_looked_at_where_there_is_nobody_else(scene: Scene) -> None:
    workflow = scene.submit(many(1), quorum=2)
    assert scene.bring(scene.lease(trusted(scene, "ann")), tail="x") == "accepted"
    assert scene.state(workflow) == "done"


def test_one_in_twenty_is_looked_at() -> None:
    scene = Scene()
    scene.submit(many(1000), quorum=2)
    ann, _ = trusted(scene, "ann"), scene.enrol("bob")
    answers = [scene.bring(scene.lease(ann), tail="x") for _ in range(1000)]
    assert 30 <= answers.count("voted") <= 75
    assert answers.count("voted") + answers.count("accepted") == 1000
