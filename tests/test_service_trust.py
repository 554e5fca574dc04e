"""A quorum: who is believed, who is looked at anyway, and how soon a liar is seen."""

import numpy as np
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
            for lease in scene.leases(client, count=2):
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


# Owners


def lie(scene: Scene, clients: list[str], rounds: int = 60) -> list[str]:
    """What clients are told that bring the same lie of all that they get."""
    answers = []
    for _ in range(rounds):
        for client in clients:
            answers += [scene.bring(lease, tail="lie") for lease in scene.leases(client, count=4)]
        scene.later(1.0, *clients)
        check(scene)
    return answers


def test_a_client_that_trusts_nobody_who_signed_a_workflow_gets_no_more_of_it() -> None:
    scene = Scene()
    workflow, ann = scene.submit(many(2)), scene.enrol()
    assert scene.bring(scene.lease(ann), "returned", distrusted=True, failure="not signed") == "returned"
    assert scene.leases(ann) == []
    served = scene.served(workflow)
    assert (served.tries.failures.total(), served.tries.losses.total(), scene.client(ann).failures) == (0, 0, 0)
    assert "all connected clients refuse its tasks" in scene.service.notes(served, np.empty(0, np.int32), "task")[0]
    assert len(scene.leases(scene.enrol("bob"), count=2)) == 2


def test_many_clients_of_one_owner_are_one_vote() -> None:
    scene = Scene()
    workflow = scene.submit(many(20), quorum=3)
    liars = [scene.enrol(f"liar{i}", owner="pool") for i in range(8)]
    assert set(lie(scene, liars)) == {"voted"}
    scene.restart()
    assert set(lie(scene, liars)) <= {"voted"}
    assert not scene.served(workflow).counts()["done"]
    assert scene.service.notes(scene.served(workflow), np.empty(0, np.int32), "task") == [
        "the quorum is 3, but only clients of 1 owner are connected: results wait for clients of other owners"
    ]
    honest = [scene.enrol(f"honest{i}", owner=f"token{i}") for i in range(3)]
    for _ in range(200):
        for client in honest:
            for lease in scene.leases(client, count=4):
                scene.bring(lease, tail="right")
        scene.later(1.0, *honest)
        if scene.state(workflow) == "done":
            break
    accepted = [end for end in scene.store.outcomes(workflow) if end.answer == "accepted"]
    assert {end.tail for end in accepted} == {"right"}
    assert len(accepted) == 20


def test_late_votes_of_one_owner_add_nothing() -> None:
    scene = Scene()
    workflow = scene.submit(many(1), quorum=2)
    mine = [scene.enrol(f"c{i}", owner="pool") for i in range(3)]
    late = []
    for client in mine:
        late.append(scene.lease(client))
        scene.later(100.0)
    assert [scene.bring(lease, tail="lie") for lease in late] == ["voted"] * 3
    assert scene.served(workflow).voters(0) == {"pool"}
    assert scene.bring(scene.lease(scene.enrol("bob")), tail="lie") == "accepted"


def test_results_that_nobody_else_looked_at_make_nobody_trusted() -> None:
    scene = Scene()
    scene.submit(many(30), quorum=1)
    liar, _ = scene.enrol("liar", owner="pool"), scene.enrol("bob")
    for _ in range(30):
        assert scene.bring(scene.lease(liar), tail="lie") == "accepted"
    scene.submit(many(20), quorum=3)
    assert set(lie(scene, [liar], rounds=5)) == {"voted"}


def test_a_look_at_a_trusted_client_is_not_settled_by_another_of_its_owner() -> None:
    scene = Scene(spot_checks=1.0)
    scene.submit(many(1), quorum=3)
    first, second = trusted(scene, "first"), trusted(scene, "second")
    scene.owners |= {first: "pool", second: "pool"}
    late = scene.lease(first)
    scene.later(100.0)
    scene.enrol("bob")
    for client in (first, second):
        scene.client(client).valid = scene.terms.trusted
    assert scene.bring(scene.lease(second), tail="lie") == "voted"
    assert scene.bring(late, tail="lie") == "voted"


@pytest.mark.parametrize("restart", [False, True])
def test_votes_of_a_client_that_was_revoked_do_not_count(restart: bool) -> None:
    scene = Scene(most_disputes=0)
    workflow = scene.submit(many(1), quorum=2)
    liar, ann, bob = (scene.enrol(name) for name in ("liar", "ann", "bob"))
    assert scene.bring(scene.lease(liar), tail="lie") == "voted"
    assert scene.bring(scene.lease(ann), tail="right") == "voted"
    assert scene.state(workflow) == "failed"  # no two agree
    scene.service.approve(liar, False)
    scene.keep()
    if restart:
        scene.restart()
    assert scene.state(workflow) == "running"
    scene.later(10.0)
    assert scene.served(workflow).voters(0) == {ann}
    assert scene.bring(scene.lease(bob), tail="right") == "accepted"
