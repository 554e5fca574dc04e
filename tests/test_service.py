"""The rules of the server, one reason each: no network, no disk, and a clock that the test turns."""

import json
from collections import Counter

import pytest

from eligo.additions import read_addition
from eligo.allocating import Ask, Rules, allocator, rules_with_times
from eligo.allocating.prudent import PRUDENT, Prudent
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.families import random_layered
from eligo.policies import POLICIES, policy
from eligo.server.rules.agenda import TurnQueue, Turns
from eligo.server.rules.clients import Client, ServerTerms
from eligo.server.rules.document import unpack_plan
from eligo.server.rules.requests import Ticket
from eligo.server.rules.results import UNUSED
from eligo.server.schema import FileWords, Outcome, ResultWords
from eligo.work.attempts import Lease
from eligo.work.tries import Retries
from service_parts import Scene, check, flow_of, many

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
QUICK = Retries(most=2, lost=3, first=1.0, longest=4.0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_task_is_handed_out_and_its_result_makes_the_next_one_ready(scene: Scene) -> None:
    workflow, ann = scene.submit(flow_of({"a": [], "b": ["a"]})), scene.enrol()
    assert scene.bring(scene.lease(ann)) == "accepted"
    assert scene.bring(scene.lease(ann)) == "accepted"
    assert scene.state(workflow) == "done"


def test_what_is_renewed_is_not_lost(scene: Scene) -> None:
    scene.submit(many(1))
    ann = scene.enrol()
    lease = scene.lease(ann)
    assert scene.later(500.0, ann) == 0
    assert scene.service.renew(scene.now, scene.client(ann), [lease.id, "w-1.2.3"]) == ["w-1.2.3"]


def test_what_is_not_renewed_comes_back_and_counts_as_a_loss(scene: Scene) -> None:
    workflow, ann = scene.submit(many(1)), scene.enrol()
    scene.lease(ann)
    assert scene.later(79.0) == 0
    assert scene.later(2.0) == 1
    served = scene.served(workflow)
    assert (served.tries.losses[0], served.tries.failures[0], served.ready) == (1, 0, 1)
    assert scene.client(ann).holds == 0


def test_what_is_returned_comes_back_at_once_and_is_nobodys_fault(scene: Scene) -> None:
    workflow, ann = scene.submit(many(1)), scene.enrol()
    assert scene.bring(scene.lease(ann), "returned") == "returned"
    assert (scene.client(ann).quota, scene.served(workflow).tries.failures.total()) == (4.0, 0)
    assert scene.lease(ann).attempt == 1


def test_a_late_result_counts_as_long_as_the_task_is_not_done(scene: Scene) -> None:
    workflow, ann, bob = scene.submit(many(1)), scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    soon = scene.lease(bob)
    assert scene.bring(late) == "accepted"
    assert scene.service.renew(scene.now, scene.client(bob), [soon.id]) == [soon.id]
    assert scene.state(workflow) == "done"
    assert scene.bring(soon) == "duplicate"


@pytest.mark.parametrize(("tail", "answer"), [("1", "duplicate"), ("2", "conflict")])
def test_a_result_of_what_is_done_is_a_duplicate_or_differs(scene: Scene, tail: str, answer: str) -> None:
    scene.submit(many(2))
    ann, bob = scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    other = next(one for one in scene.leases(bob, count=2) if one.task == late.task)
    assert scene.bring(other, tail="1") == "accepted"
    for _ in range(2):
        assert scene.bring(late, tail=tail) == answer
    scene.restart()
    assert scene.bring(late, tail=tail) == answer


@pytest.mark.parametrize("outcome", ["done", "failed", "returned"])
def test_the_same_result_again_gets_the_same_answer_also_after_a_restart(scene: Scene, outcome: Outcome) -> None:
    scene.submit(many(2))
    ann = scene.enrol()
    lease = scene.lease(ann)
    first = scene.bring(lease, outcome)
    assert scene.bring(lease, outcome) == first
    scene.restart()
    assert scene.bring(lease, outcome) == first
    check(scene)


def test_a_result_brought_after_a_restart_is_taken(scene: Scene) -> None:
    scene.submit(many(1))
    lease = scene.lease(scene.enrol())
    scene.restart()
    assert scene.bring(lease) == "accepted"


def test_what_was_not_kept_is_as_if_it_never_was() -> None:
    scene = Scene(keeping=False)
    workflow, ann = scene.submit(many(1)), scene.enrol()
    scene.keep()
    lease = scene.lease(ann)
    scene.restart()
    assert scene.bring(lease) == "refused"
    assert scene.served(workflow).ready == 1


def test_a_lease_of_somebody_else_is_refused(scene: Scene) -> None:
    scene.submit(many(1))
    ann, bob = scene.enrol(), scene.enrol("bob")
    lease = scene.lease(ann)
    assert scene.bring(lease, client=bob) == "refused"
    assert scene.service.renew(scene.now, scene.client(bob), [lease.id]) == [lease.id]
    assert scene.bring(lease) == "accepted"
    assert scene.bring(lease, client=bob) == "refused"


@pytest.mark.parametrize("secret", ["", "0" * 16, "é", "\udc80"])
def test_a_wrong_secret_is_refused(scene: Scene, secret: str) -> None:
    scene.submit(many(2))
    lease = scene.lease(scene.enrol())
    assert scene.bring(lease._replace(secret=secret)) == "refused"
    assert scene.bring(lease) == "accepted"
    assert scene.bring(lease._replace(secret=secret)) == "refused"


@pytest.mark.parametrize("number", ["", "-1", "x", "9" * 5000, "²"])
def test_what_is_no_lease_is_refused(scene: Scene, number: str) -> None:
    workflow, ann = scene.submit(many(1)), scene.enrol()
    told = f"{workflow}.{number}.ab"
    assert scene.tell(ann, ResultWords(told, "done")) == ["refused"]
    assert scene.service.renew(scene.now, scene.client(ann), [told]) == [told]


# Failures


def test_what_fails_is_tried_again_after_a_while_and_then_set_aside() -> None:
    scene = Scene(retries=QUICK)
    workflow, ann = scene.submit(flow_of(CHAIN)), scene.enrol()
    for wait in (1.0, 2.0, None):
        assert scene.bring(scene.lease(ann), "failed", failure="exit code 1") == "failed"
        assert not scene.get(ann)
        if wait:
            assert wait / 2 <= scene.served(workflow).tries.later[0][0] - scene.now <= wait
            scene.later(wait)
    assert scene.state(workflow) == "failed"
    assert scene.served(workflow).counts() == {
        "done": 0, "running": 0, "ready": 0, "failed": 1, "blocked": 2, "pending": 0, "retrying": 0,
    }  # fmt: skip
    assert scene.served(workflow).tries.causes == {0: "exit code 1"}


def broken(scene: Scene) -> tuple[str, str]:
    """A workflow whose first task has failed for good, and a client."""
    workflow, ann = scene.submit(flow_of(CHAIN), retries=0), scene.enrol()
    scene.bring(scene.lease(ann), "failed")
    assert scene.state(workflow) == "failed"
    return workflow, ann


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_set_aside_can_be_tried_again(scene: Scene, restart: bool) -> None:
    workflow, ann = broken(scene)
    if restart:
        scene.restart()
        assert scene.state(workflow) == "failed"
    assert not scene.get(ann)
    assert scene.service.retry(scene.now, workflow) == 1
    for _ in CHAIN:
        assert scene.bring(scene.lease(ann)) == "accepted"
    assert scene.state(workflow) == "done"


def test_why_a_task_failed_is_known_also_after_a_restart(scene: Scene) -> None:
    workflow, ann = scene.submit(flow_of(CHAIN), retries=0), scene.enrol()
    scene.bring(scene.lease(ann), "failed", failure="exit code 7")
    before = scene.served(workflow).tries.causes
    scene.restart()
    assert scene.served(workflow).tries.causes == before == {0: "exit code 7"}


def test_a_workflow_that_failed_has_ended(scene: Scene) -> None:
    workflow, _ = broken(scene)
    assert scene.served(workflow).verdict == "failed"


def test_a_late_result_of_what_was_set_aside_for_good_lets_the_workflow_go_on() -> None:
    scene = Scene(retries=Retries(lost=0))
    workflow, ann = scene.submit(flow_of(CHAIN)), scene.enrol()
    lease = scene.lease(ann)
    scene.later(100.0)
    assert scene.state(workflow) == "failed"
    assert scene.bring(lease) == "accepted"
    assert scene.state(workflow) == "running"
    assert scene.bring(scene.lease(ann)) == "accepted"


def test_a_workflow_fails_also_where_a_late_result_came_for_what_waited_to_be_tried_again(scene: Scene) -> None:
    workflow = scene.submit(many(2), retries=1)
    ann, bob = scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    leases = {lease.task: lease for lease in scene.leases(bob, count=2)}
    scene.bring(leases[1 - late.task], "failed")
    scene.later(10.0, bob)
    scene.bring(scene.lease(bob), "failed")
    scene.bring(leases[late.task], "failed")
    assert scene.bring(late) == "accepted"
    scene.later(10.0)
    scene.serve()
    assert scene.state(workflow) == "failed"


def test_a_task_that_kills_every_client_is_set_aside() -> None:
    scene = Scene(retries=QUICK)
    workflow = scene.submit(many(1))
    for i in range(4):
        scene.lease(scene.enrol(f"c{i}"))
        assert scene.later(100.0) == 1
    assert scene.state(workflow) == "failed"
    served = scene.served(workflow)
    assert (served.tries.causes[0], served.tries.failures[0]) == ("its clients were lost too often", 0)


def test_a_client_that_died_has_lost_its_task_once_however_often_it_says_so(scene: Scene) -> None:
    workflow, ann = scene.submit(many(1)), scene.enrol()
    lease = scene.lease(ann)
    for _ in range(2):
        assert scene.bring(lease, "returned", died=True) == "lost"
        assert (scene.served(workflow).tries.losses[0], scene.served(workflow).tries.failures[0]) == (1, 0)
        scene.restart()
    assert scene.lease(ann).attempt == 2, "it is ready at once"


def test_a_death_that_is_reported_after_its_lease_expired_counts_once(scene: Scene) -> None:
    workflow, lease = scene.submit(many(1)), scene.lease(scene.enrol())
    scene.later(100.0)
    for _ in range(2):
        assert scene.bring(lease, "returned", died=True) == "lost"
        assert scene.served(workflow).tries.losses[0] == 1
        scene.restart()


def test_a_task_that_killed_a_client_too_often_is_set_aside() -> None:
    scene = Scene(retries=QUICK)
    workflow, ann = scene.submit(many(1)), scene.enrol()
    for _ in range(4):
        scene.bring(scene.lease(ann), "returned", died=True)
    assert scene.state(workflow) == "failed"
    assert scene.served(workflow).tries.causes[0] == "its clients were lost too often"


def test_a_client_that_dies_three_times_fails_no_task_that_another_can_run(scene: Scene) -> None:
    workflow, ann = scene.submit(many(1)), scene.enrol()
    for _ in range(3):
        scene.bring(scene.lease(ann), "returned", died=True)
    assert scene.bring(scene.lease(scene.enrol("bob"))) == "accepted"
    assert scene.state(workflow) == "done"


def test_a_death_is_answered_alike_after_the_end_of_the_workflow(scene: Scene) -> None:
    scene.submit(many(1))
    lease = scene.lease(scene.enrol())
    scene.bring(lease, "returned", died=True)
    scene.bring(scene.lease(scene.enrol("bob")))
    assert scene.bring(lease, "returned", died=True) == "lost"


def test_a_restart_counts_no_failure_again(scene: Scene) -> None:
    scene.submit(many(2), retries=0)
    scene.submit(many(1), retries=5)
    ann, _ = scene.enrol(), scene.enrol("bob")
    for lease in scene.leases(ann, count=3) + scene.leases(ann, count=3):
        scene.bring(lease, "failed")
    assert (scene.service.books.failed, scene.service.books.retries) == (2, 1)
    scene.restart()
    assert (scene.service.books.failed, scene.service.books.retries) == (0, 0)


def test_a_late_failure_that_ends_the_retries_counts_once(scene: Scene) -> None:
    workflow, ann = scene.submit(many(1), retries=1), scene.enrol()
    late = scene.lease(ann)
    scene.later(100.0)
    scene.bring(scene.lease(scene.enrol("bob")), "failed")
    for _ in range(2):
        scene.bring(late, "failed")
        assert (scene.service.books.failed, scene.service.books.retries) == (1, 1)
    assert scene.state(workflow) == "failed"


def test_a_client_is_connected_until_it_would_lose_its_tasks(scene: Scene) -> None:
    scene.enrol()
    for share in (0.5, 1.0):
        scene.now = scene.terms.lease + share * scene.terms.grace
        scene.serve()
        assert len(scene.service.books.owners_here()) == len([*scene.service.books.connected()]) == (share < 1.0)


def test_losses_and_failures_are_counted_apart_also_after_a_restart() -> None:
    scene = Scene(retries=QUICK)
    workflow, ann, _ = scene.submit(many(1)), scene.enrol(), scene.enrol("bob")
    for _ in range(2):
        scene.lease(ann)
        scene.later(100.0)
    scene.bring(scene.lease(ann), "failed")
    for _ in range(2):
        assert (scene.served(workflow).tries.losses[0], scene.served(workflow).tries.failures[0]) == (2, 1)
        scene.restart()


# Clients


def test_a_quota_doubles_with_good_results_and_halves_with_failures(scene: Scene) -> None:
    scene.submit(many(100))
    ann, _ = scene.enrol(), scene.enrol("bob")
    leases = scene.leases(ann, count=50)
    assert len(leases) == 4
    scene.bring(leases.pop())
    assert scene.client(ann).quota == 8
    scene.bring(leases.pop(), "failed")
    assert scene.client(ann).quota == 4


def test_requests_at_once_get_no_more_than_one_would(scene: Scene) -> None:
    scene.submit(many(100))
    ann = scene.enrol()
    tickets = [scene.ask(ann, size=3) for _ in range(5)]
    scene.serve()
    assert sum(len(grant.leases) for ticket in tickets for grant in ticket.grants) == 4


def test_a_client_that_fails_everything_harms_little_and_the_others_finish(scene: Scene) -> None:
    workflow = scene.submit(many(600))
    hole, honest = scene.enrol("hole"), [scene.enrol(f"c{i}") for i in range(3)]
    failed = []  # when
    while workflow in scene.service.served:
        for lease in scene.leases(hole, count=1000):
            scene.bring(lease, "failed")
            failed.append(scene.now)
        for client in honest:
            for lease in scene.leases(client):
                scene.bring(lease)
        scene.later(1.0, *honest)
    assert scene.state(workflow) == "done"
    assert sum(at < 60 for at in failed) <= 5
    for minute in range(1, int(scene.now // 60)):
        assert sum(60 * minute <= at < 60 * (minute + 1) for at in failed) <= 1


def test_a_task_that_fails_everywhere_is_no_fault_of_the_clients(scene: Scene) -> None:
    scene.submit(many(3), policy="fifo")
    clients = [scene.enrol(f"c{i}") for i in range(4)]
    for _ in range(60):
        for client in clients:
            for lease in scene.leases(client):
                scene.bring(lease, "failed")
        scene.later(1.0, *clients)
    assert all(scene.client(client).room(scene.now) for client in clients)
    assert max(scene.client(client).quota for client in clients) <= 16


def test_a_client_that_is_alone_is_never_left_without_work(scene: Scene) -> None:
    scene.submit(many(20))
    ann = scene.enrol()
    for _ in range(20):
        assert scene.bring(scene.lease(ann), "failed") == "failed"
    assert scene.client(ann).paused == 0


def test_a_pause_is_not_longer_because_the_clock_on_the_wall_was_set_back(scene: Scene) -> None:
    scene.submit(many(20))
    ann, _ = scene.enrol(), scene.enrol("bob")
    for lease in scene.leases(ann, count=3):
        scene.bring(lease, "failed")
    assert scene.client(ann).paused == 60
    scene.ahead -= 1e8
    scene.restart()
    assert scene.client(ann).paused <= scene.terms.longest_pause
    assert scene.client(ann).seen <= scene.now


# Quorum


def test_results_of_strangers_count_when_two_agree(scene: Scene) -> None:
    workflow = scene.submit(many(1), quorum=2)
    ann, bob, eve = (scene.enrol(name) for name in ("ann", "bob", "eve"))
    assert scene.bring(scene.lease(ann), tail="right") == "voted"
    assert not scene.get(ann)
    scene.restart()
    assert not scene.get(ann)
    assert scene.bring(scene.lease(eve), tail="wrong") == "voted"
    assert scene.bring(scene.lease(bob), tail="right") == "accepted"
    assert [scene.client(one).valid for one in (ann, bob, eve)] == [1, 1, 0]
    assert scene.client(eve).failures == 1
    assert scene.state(workflow) == "done"


def test_a_tenth_of_the_clients_lies_and_no_wrong_result_counts(scene: Scene) -> None:
    workflow = scene.submit(many(300), quorum=2, policy="finish")
    honest = [scene.enrol(f"c{i}") for i in range(18)]
    liars = [scene.enrol(f"liar{i}") for i in range(2)]
    told: Counter[str] = Counter()
    accepted = []
    while workflow in scene.service.served:
        for client in honest + liars:
            for lease in scene.leases(client):
                tail = client if client in liars else "right"
                told[client] += 1
                if scene.bring(lease, tail=tail) == "accepted":
                    accepted.append(tail)
        scene.later(1.0, *honest, *liars)
    assert set(accepted) == {"right"}
    assert sum(scene.client(one).trusted(scene.terms) for one in honest) > 9
    assert all(told[one] <= 3 for one in liars)
    assert all(scene.client(one).paused > scene.now for one in liars)
    assert sum(told.values()) < 2 * 300


def test_who_dissents_three_times_is_left_without_work() -> None:
    client, terms = Client("c-1", "eve", quota=1024.0), ServerTerms()
    for _ in range(3):
        client.failed(0.0, terms)
    assert client.room(1.0) == 0


def test_a_task_on_whose_result_no_two_agree_is_set_aside(scene: Scene) -> None:
    workflow = scene.submit(many(1), quorum=2)
    for i in range(7):
        assert scene.state(workflow) == "running"
        assert scene.bring(scene.lease(scene.enrol(f"c{i}")), tail=str(i)) == "voted"
    assert scene.state(workflow) == "failed"
    assert "no two" in scene.served(workflow).tries.causes[0]


@pytest.mark.parametrize("taken", [False, True])
def test_a_late_vote_takes_nothing_from_anybody(scene: Scene, taken: bool) -> None:
    scene.submit(many(1), quorum=2)
    ann, bob = scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    other = scene.lease(bob) if taken else None
    assert scene.bring(late) == "voted"
    check(scene)
    assert scene.bring(other or scene.lease(bob)) == "accepted"


def test_the_last_of_too_many_votes_may_be_late(scene: Scene) -> None:
    scene.submit(many(1), quorum=2)
    late = scene.lease(scene.enrol())
    scene.later(100.0)
    for i in range(6):
        scene.bring(scene.lease(scene.enrol(f"c{i}")), tail=str(i))
    assert scene.bring(late, tail="late") == "voted"
    check(scene)


# Copies


def copied(scene: Scene) -> tuple[Lease, Lease]:
    """Two leases of one task."""
    scene.submit(many(2), copies=2)
    ann, bob = scene.enrol(), scene.enrol("bob")
    first, slow = scene.lease(bob), scene.lease(ann)
    scene.now += 1.0
    scene.bring(first, seconds=1.0)
    scene.now += 5.0
    return slow, scene.lease(bob)


def test_at_the_end_a_second_client_gets_what_is_overdue_and_the_first_result_wins(scene: Scene) -> None:
    slow, copy = copied(scene)
    assert slow.task == copy.task
    check(scene)
    assert scene.bring(copy) == "accepted"
    assert scene.state(copy.workflow) == "done"
    assert scene.bring(slow) == "duplicate"


def test_a_copy_that_fails_leaves_the_other_one(scene: Scene) -> None:
    slow, copy = copied(scene)
    assert scene.bring(copy, "failed") == "failed"
    check(scene)
    assert scene.bring(slow) == "accepted"


def test_nobody_gets_a_copy_of_what_it_has_itself_after_a_restart(scene: Scene) -> None:
    workflow, ann = scene.submit(many(2), copies=2), scene.enrol()
    first, _ = scene.leases(ann, count=2)
    scene.restart()
    scene.now += 1.0
    scene.bring(first, seconds=1.0)
    scene.now += 10.0
    assert not scene.get(ann)
    assert scene.served(workflow).leases


# Shares


def handed(scene: Scene, client: str, times: int, wide: str) -> int:
    """How many of so many tasks are of a workflow."""
    leases = [scene.lease(client) for _ in range(times)]
    for lease in leases:
        scene.bring(lease)
    return sum(lease.workflow == wide for lease in leases)


def test_owners_get_what_they_have_a_share_in() -> None:
    scene = Scene(first_quota=1000.0)
    scene.submit(many(500), owner="one", share=1.0)
    wide, ann = scene.submit(many(500), owner="two", share=3.0), scene.enrol()
    assert handed(scene, ann, 200, wide) == pytest.approx(150, abs=2)


def test_who_was_away_does_not_save_up() -> None:
    scene = Scene(first_quota=1000.0)
    ann = scene.enrol()
    scene.submit(many(1), owner="two")
    scene.submit(many(500), owner="one")
    handed(scene, ann, 100, "")
    again = scene.submit(many(500), owner="two")
    assert handed(scene, ann, 100, again) == pytest.approx(50, abs=2)


def test_turns_begin_for_a_new_owner_where_the_others_are() -> None:
    turns = Turns()
    queue = TurnQueue(turns)
    queue.add("one", 1)
    queue.add("two", 2)
    turns.charge("one", 100.0)
    assert list(queue) == [2, 1]
    turns.charge("two", 1.0)
    turns.charge("one", 1.0)
    assert list(queue) == [2, 1]


# Fat tasks


def test_members_of_a_fat_task_are_acknowledged_one_by_one_and_the_rest_comes_back(scene: Scene) -> None:
    workflow, ann = scene.submit(flow_of(CHAIN)), scene.enrol()
    first, *_ = scene.leases(ann, size=3)
    assert scene.bring(first) == "accepted"
    scene.later(100.0)
    check(scene)
    assert scene.served(workflow).counts()["done"] == 1
    assert scene.tasks(scene.leases(ann, size=3)) == ["b", "c"]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("outcome", ["failed", "returned"])
def test_a_member_that_does_not_come_releases_what_waits_for_it(scene: Scene, restart: bool, outcome: Outcome) -> None:
    workflow, ann = scene.submit(flow_of({"a": [], "b": ["a"], "c": ["b"], "x": []})), scene.enrol()
    leases = scene.leases(ann, size=4)
    if restart:
        scene.restart()
    scene.bring(next(lease for lease in leases if lease.task == 0), outcome)
    check(scene)
    assert scene.tasks(scene.held(ann)) == ["x"]
    assert not scene.served(workflow).tries.losses


def test_what_only_waited_is_not_lost_to_a_task_however_often() -> None:
    scene = Scene(first_quota=2.0**20)
    workflow, ann = scene.submit(flow_of(CHAIN)), scene.enrol()
    for _ in range(15):
        first, second = scene.leases(ann, size=2)
        scene.service.renew(scene.now + 1.0, scene.client(ann), [first.id])
        scene.now += 80.5
        assert scene.service.expire(scene.now) == 1
        check(scene)
        assert scene.bring(first, "returned") == "returned"
    assert not scene.served(workflow).tries.losses[second.task]


def test_two_clients_may_use_the_same_key(scene: Scene) -> None:
    scene.submit(flow_of({"r": [], "x": ["r"], "y": ["x"], "a": [], "b": ["a"]}))
    ann, bob, eve = (scene.enrol(name) for name in ("ann", "bob", "eve"))
    root = next(lease for lease in scene.leases(eve, count=2) if lease.task == 0)
    scene.later(100.0, eve)
    scene.bring(next(lease for lease in scene.held(eve) if lease is not root), "returned")
    first = scene.get(ann, key="1", size=2)[0].leases
    scene.bring(root)
    second = scene.get(bob, key="1", size=2)[0].leases
    assert (scene.tasks(first), scene.tasks(second)) == (["a", "b"], ["x", "y"])
    scene.bring(first[0], "failed")
    check(scene)


def test_a_copy_that_comes_back_releases_what_waits_with_the_other_client(scene: Scene) -> None:
    scene.submit(flow_of({"z": [], "a": ["z"], "b": ["a"]}), copies=2)
    ann, bob = scene.enrol(), scene.enrol("bob")
    short = scene.lease(bob)
    scene.now += 1.0
    scene.bring(short, seconds=1.0)
    assert scene.tasks(scene.leases(ann, size=2)) == ["a", "b"]
    scene.now += 5.0
    copy = scene.lease(bob)
    assert scene.tasks([copy]) == ["a"]
    scene.bring(copy, "returned")
    check(scene)
    assert scene.tasks(scene.held(ann)) == ["a"]


INSIDE = {"a": ([], ["x"]), "b": (["x"], ["y"]), "c": (["y"], ["z"])}


def file(name: str) -> tuple[str, str, int]:
    return name, f"hash of {name}", 1


def brought(*names: str) -> dict[str, FileWords]:
    return {name: FileWords(sha256, size) for name, sha256, size in map(file, names)}


def inside(scene: Scene) -> tuple[str, list[Lease]]:
    """A client that has a, b and c, whose files x and y nobody else reads."""
    scene.submit(flow_of(CHAIN, INSIDE), files=True)
    ann = scene.enrol()
    return ann, scene.leases(ann, size=3)


def done(lease: Lease, *names: str) -> ResultWords:
    return ResultWords(lease.id, "done", outputs=brought(*names))


def test_a_file_that_stays_inside_is_not_missed_if_its_readers_come_in_the_same_call(scene: Scene) -> None:
    ann, (a, b, c) = inside(scene)
    assert scene.tell(ann, done(c, "z"), done(b), done(a)) == ["accepted"] * 3


def test_a_file_that_stays_inside_is_missed_if_its_reader_did_not_come(scene: Scene) -> None:
    ann, (a, _, _) = inside(scene)
    assert scene.tell(ann, done(a)) == ["failed"]


def test_a_file_that_stays_inside_is_missed_if_its_reader_is_not_good(scene: Scene) -> None:
    ann, (a, b, _) = inside(scene)
    assert scene.tell(ann, done(a), done(b))[0] == "failed"
    check(scene)


def test_a_file_that_was_not_uploaded_is_missed(scene: Scene) -> None:
    ann, (a, b, _) = inside(scene)
    scene.uploaded = {"hash of x"}
    assert scene.tell(ann, done(a, "x"), done(b, "y")) == ["accepted", "failed"]


def test_a_file_that_the_task_does_not_make_is_refused(scene: Scene) -> None:
    ann, (a, _, _) = inside(scene)
    assert scene.tell(ann, done(a, "x", "z")) == ["failed"]
    assert not scene.served(a.workflow).files.there  # type: ignore[union-attr]


def test_late_results_of_a_whole_grant_count_together(scene: Scene) -> None:
    ann, (a, b, c) = inside(scene)
    scene.later(100.0)
    assert scene.tell(ann, done(a), done(b), done(c, "z")) == ["accepted"] * 3


def test_a_reader_that_is_refused_does_not_stand_for_its_file(scene: Scene) -> None:
    """It was handed out before its parent was, and is therefore looked at before that."""
    ann, (_, reader, _) = inside(scene)
    scene.later(100.0)
    maker = scene.lease(ann)
    assert scene.tell(ann, done(maker), done(reader, "y")) == ["failed", "refused"]


def test_a_late_result_whose_file_stayed_inside_is_no_conflict(scene: Scene) -> None:
    ann, (a, b, c) = inside(scene)
    scene.later(100.0)
    bob = scene.enrol("bob")
    assert scene.tell(bob, done(scene.lease(bob), "x")) == ["accepted"]
    assert scene.tell(ann, done(a), done(b), done(c, "z"))[0] == "duplicate"
    assert scene.state(a.workflow) == "done"


def test_a_temporary_file_is_forgotten_with_its_last_reader(scene: Scene) -> None:
    files = {"a": ([], ["x"]), "b": (["x"], ["y"]), "c": (["x", "y"], ["z"])}
    workflow = scene.submit(flow_of(CHAIN, files, temporary="xz"), files=True)
    ann, there = scene.enrol(), list[set[str]]()
    for name in "xyz":
        assert scene.tell(ann, done(scene.lease(ann), name)) == ["accepted"]
        there.append({row.name for row in scene.store.files(workflow)})
    assert there == [{"x"}, {"x", "y"}, {"y", "z"}], "x when both readers are done; z is a result"
    assert scene.service.books.spent == {"hash of x": UNUSED}


def test_a_task_that_is_added_cannot_read_a_temporary_file_that_is_gone(scene: Scene) -> None:
    files = {"a": ([], ["x"]), "b": (["x"], ["y"]), "c": (["y"], ["z"])}
    workflow = scene.submit(flow_of(CHAIN, files, temporary="x"), files=True, grow=True)
    ann = scene.enrol()
    for name in "xy":
        assert scene.tell(ann, done(scene.lease(ann), name)) == ["accepted"]
    served = scene.served(workflow)
    for file, refusal in (("x", "a temporary file that was removed"), ("y", None)):
        new = read_addition(json.dumps({"tasks": [{"name": f"late {file}", "run": "true", "inputs": [file]}]}))
        assert (refusal or "None") in str(served.refusal(new))


@pytest.mark.parametrize(("content", "answer"), [("hash of z", "duplicate"), ("a lie", "conflict")])
def test_a_late_result_is_compared_by_the_files_that_both_sent(scene: Scene, content: str, answer: str) -> None:
    ann, leases = inside(scene)
    scene.later(100.0)
    bob = scene.enrol("bob")
    a, b, c = scene.leases(bob, size=3)
    assert scene.tell(bob, done(a), done(b), done(c, "z")) == ["accepted"] * 3
    late = ResultWords(leases[2].id, "done", outputs={"z": FileWords(content, 1)})
    assert scene.tell(ann, done(leases[0], "x"), late) == ["duplicate", answer]


# Waiting


def test_those_who_wait_get_what_becomes_ready_the_first_come_first(scene: Scene) -> None:
    scene.submit(flow_of({"a": [], "b": ["a"], "c": ["a"]}))
    ann, bob, eve = (scene.enrol(name) for name in ("ann", "bob", "eve"))
    first = scene.lease(ann)
    tickets = [scene.ask(bob, wait=30.0), scene.ask(eve, wait=30.0), scene.ask(ann, wait=30.0)]
    assert scene.serve() == []
    scene.bring(first)
    assert scene.serve() == tickets[:2]
    assert [scene.tasks(ticket.grants[0].leases) for ticket in tickets[:2]] == [["b"], ["c"]]
    scene.now += 30.0
    assert scene.serve() == tickets[2:]
    assert not tickets[2].grants


def test_who_asks_again_under_the_same_key_while_it_waits_gets_one_answer(scene: Scene) -> None:
    ann = scene.enrol()
    older, newer = (scene.ask(ann, key="1", wait=30.0) for _ in range(2))
    scene.submit(many(3))
    assert set(scene.serve()) == {older, newer}
    assert (len(older.grants), len(newer.grants)) == (0, 1)


def test_who_hung_up_gets_nothing(scene: Scene) -> None:
    ticket = scene.ask(scene.enrol(), wait=30.0)
    scene.service.requests.withdraw(ticket)
    workflow = scene.submit(many(1))
    assert scene.serve() == []
    assert scene.served(workflow).ready == 1


@pytest.mark.parametrize("restart", [False, True])
def test_the_same_key_gets_the_same_leases(scene: Scene, restart: bool) -> None:
    scene.submit(many(9))
    scene.submit(flow_of(CHAIN), owner="two")
    ann = scene.enrol()
    first = scene.get(ann, key="1", count=2, size=2)
    if restart:
        scene.restart()
    again = scene.get(ann, key="1", count=2, size=2)
    assert [grant.leases for grant in again] == [grant.leases for grant in first]
    check(scene)


def test_who_may_have_nothing_more_waits_until_it_may(scene: Scene) -> None:
    scene.submit(many(9))
    ann = scene.enrol()
    leases = scene.leases(ann, count=4)
    ticket = scene.ask(ann, wait=30.0)
    assert scene.serve() == []
    scene.bring(leases[0])
    assert scene.serve() == [ticket]
    assert ticket.grants


def paused(scene: Scene) -> tuple[str, Ticket]:
    """A client that was left out after failures, and its request, which waits."""
    ann, _ = scene.enrol(), scene.enrol("bob")
    for _ in range(3):
        scene.bring(scene.lease(ann), "failed")
    ticket = scene.ask(ann, wait=600.0)
    assert scene.serve() == []
    return ann, ticket


def test_a_client_that_is_left_out_for_a_while_gets_a_task_as_soon_as_that_is_over() -> None:
    scene = Scene(longest_wait=600.0)
    scene.submit(many(9))
    ann, ticket = paused(scene)
    scene.now = scene.client(ann).paused - 0.1
    assert scene.serve() == []
    scene.now = scene.client(ann).paused
    assert scene.serve() == [ticket]
    assert ticket.grants


def test_a_client_that_is_forgiven_gets_a_task_at_once() -> None:
    scene = Scene(longest_wait=600.0)
    scene.submit(many(9))
    ann, ticket = paused(scene)
    bob = next(client for client in scene.service.clients if client != ann)
    scene.now += 30.0
    while not scene.client(bob).failures:
        lease = scene.lease(bob)
        scene.bring(lease, "failed" if ann in scene.served(lease.workflow).failed_with.get(lease.task, ()) else "done")
    assert scene.serve() == [ticket]
    assert ticket.grants


def test_a_client_that_an_operator_resumes_gets_a_task_at_once(scene: Scene) -> None:
    scene.submit(many(9))
    ann = scene.enrol()
    scene.service.mark_client(ann, held=True)
    ticket = scene.ask(ann, wait=30.0)
    assert scene.serve() == []
    scene.service.mark_client(ann, held=False)
    assert scene.serve() == [ticket]
    assert ticket.grants


@pytest.mark.parametrize("how", ["pause", "stop"])
def test_a_server_that_is_drained_hands_out_nothing_more(scene: Scene, how: str) -> None:
    ann, bob = scene.enrol(), scene.enrol("bob")
    waiting = scene.ask(ann, wait=30.0)
    workflow = scene.submit(many(2))
    scene.service.requests.draining = how  # type: ignore[assignment]
    assert scene.serve() == [waiting]
    late = scene.ask(bob, wait=30.0)
    for ticket in (waiting, late):
        assert (ticket.grants, ticket.stop, ticket.away > 0) == ([], how == "stop", True)
    assert scene.served(workflow).ready == 2


# Workflows


def test_a_workflow_that_is_cancelled_is_handed_out_no_more(scene: Scene) -> None:
    workflow, ann = scene.submit(many(2)), scene.enrol()
    lease = scene.lease(ann)
    scene.service.cancel(scene.now, workflow)
    assert scene.bring(lease) == "duplicate"
    assert scene.service.renew(scene.now, scene.client(ann), [lease.id]) == [lease.id]
    assert not scene.get(ann)
    scene.keep()
    assert scene.state(workflow) == "cancelled"
    assert not scene.store.out
    with pytest.raises(InputError, match="has ended"):
        scene.service.retry(scene.now, workflow)


def test_what_is_done_is_not_cancelled() -> None:
    scene = Scene(keeping=False)
    workflow, ann = scene.submit(many(1)), scene.enrol()
    scene.bring(scene.lease(ann))
    scene.service.cancel(scene.now, workflow)
    scene.keep()
    assert scene.store.rows[workflow].state == "done"


@pytest.mark.parametrize("restart", [False, True])
def test_the_same_submission_again_is_the_same_workflow(scene: Scene, restart: bool) -> None:
    workflow = scene.submit(many(1), key="k")
    if restart:
        scene.restart()
    assert scene.submit(many(1), key="k") == workflow
    assert len(scene.store.rows) == 1


def test_an_empty_workflow_is_done(scene: Scene) -> None:
    assert scene.state(scene.submit(flow_of({}))) == "done"


def test_a_workflow_waits_for_its_files_also_after_a_restart(scene: Scene) -> None:
    workflow = scene.submit(flow_of({"a": []}, {"a": (["in"], [])}), files=True)
    ann = scene.enrol()
    assert scene.state(workflow) == scene.served(workflow).row.state == "paused"
    scene.restart()
    assert not scene.get(ann)
    assert scene.service.provide(scene.now, workflow, [file("in")]) == []
    scene.keep()
    scene.restart()
    assert scene.bring(scene.lease(ann)) == "accepted"


# Clocks


def test_a_server_that_stood_still_blames_nobody(scene: Scene) -> None:
    scene.submit(many(1))
    lease = scene.lease(scene.enrol())
    scene.now += 1000.0
    scene.service.stalled(1000.0)
    assert scene.service.expire(scene.now) == 0
    assert scene.bring(lease) == "accepted"


@pytest.mark.parametrize("jump", [-1e8, 1e8])
def test_who_has_a_task_when_the_server_dies_keeps_it_whatever_the_wall_shows(scene: Scene, jump: float) -> None:
    scene.submit(many(1))
    ann = scene.enrol()
    lease = scene.lease(ann)
    scene.ahead += jump
    scene.restart()
    assert scene.later(79.0) == 0
    assert scene.bring(lease, seconds=5.0) == "accepted"


# The same as its parts


@pytest.mark.parametrize("policy", ["finish", "fifo"])
def test_single_tasks_are_handed_out_as_the_allocator_alone_would(policy: str) -> None:
    """Event by event: who asks, what it gets, who brings what back, and in what order."""
    dag: dict[str, list[str]] = {f"t{i}": [f"t{j}" for j in (i // 2 - 1, i // 3 - 1) if 0 <= j < i] for i in range(60)}
    dag = {name: sorted(set(parents)) for name, parents in dag.items()}
    scene = Scene(first_quota=100.0)
    workflow = scene.submit(flow_of(dag), policy=policy, copies=2)
    served = scene.served(workflow)
    game = Execution(served.flow)
    plan = scene.store.rows[workflow].plan
    order = None if plan is None else unpack_plan(plan, len(served.flow))[0]
    rules = rules_with_times(Rules(slow=PRUDENT.slow, copies=2, overdue=PRUDENT.overdue), served.flow)
    inner = allocator(policy, served.flow, game, rules=None, order=order)
    twin = Prudent(inner, rules, clock=lambda: scene.now)
    clients, out = [scene.enrol(f"c{i}") for i in range(5)], list[Lease]()
    for step in range(400):
        scene.now += 0.5
        client = clients[step * 7 % 5]
        mine, theirs = scene.leases(client), twin.hand_out([Ask(client)])
        assert scene.tasks(mine) == [task for grant in theirs for task in grant.tasks]
        out += mine
        for lease in [one for one in out if (one.number * 5 + step) % 4 == 0]:
            out.remove(lease)
            name = served.flow.dag.tasks[lease.task]
            if scene.bring(lease, seconds=scene.now + scene.ahead - lease.since) == "accepted":
                game.complete(name)
                twin.learn(lease.client, name, scene.now + scene.ahead - lease.since)
        if workflow not in scene.service.served:
            break
    assert game.finished


def test_nobody_gets_a_copy_of_what_it_gets_in_the_same_moment(scene: Scene) -> None:
    scene.submit(many(2), copies=2)
    ann = scene.enrol()
    scene.bring(scene.lease(ann), seconds=0.0)
    assert len(scene.leases(ann, count=4)) == 1


# Taken back


def test_what_an_owner_takes_back_goes_to_somebody_else_and_is_nobodys_fault(scene: Scene) -> None:
    workflow = scene.submit(flow_of({"a": [], "b": ["a"]}), copies=1)
    ann, bob = scene.enrol("ann"), scene.enrol("bob")
    quota = scene.client(ann).quota
    lease = scene.lease(ann)
    assert not scene.get(bob)
    assert scene.service.release(scene.now, workflow, ["a", "b"]) == 1
    scene.keep()
    check(scene)
    assert (scene.client(ann).quota, scene.client(ann).lost, scene.client(ann).holds) == (quota, 0, 0)
    again = scene.lease(bob)
    assert (again.task, again.attempt) == (lease.task, 2)
    assert scene.bring(lease) == "accepted"  # it comes late, but it comes first
    assert scene.bring(again) == "duplicate"
    with pytest.raises(InputError, match="no task"):
        scene.service.release(scene.now, workflow, ["c"])


def test_a_grant_of_several_comes_back_whole(scene: Scene) -> None:
    workflow = scene.submit(flow_of({"a": [], "b": ["a"], "c": ["b"]}), copies=1)
    ann = scene.enrol("ann")
    assert len(scene.leases(ann, size=3)) == 3
    assert scene.service.release(scene.now, workflow, ["a"]) == 1
    scene.keep()
    check(scene)
    assert scene.client(ann).holds == 0
    assert scene.served(workflow).counts()["ready"] == 1


def test_a_tiny_share_does_not_end_the_turns_of_others() -> None:
    turns = Turns()
    turns.charge("tiny", 3 / 1e-300)
    places = list[str]()
    for _ in range(6):
        owner = min(("ann", "bob"), key=turns.place)
        turns.charge(owner, 1.0)
        places.append(owner)
    assert places == ["ann", "bob"] * 3


def test_the_order_of_dask_is_made_beforehand_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask")
    dag = random_layered(5, 6, seed=3)
    expected = policy("dask", dag).order().tolist()
    scene = Scene()
    scene.submit(flow_of({str(name): map(str, dag.parents(name)) for name in dag.tasks}), policy="dask")
    monkeypatch.setitem(POLICIES, "dask", lambda *_: pytest.fail("it is made while clients wait"))
    client, tasks = scene.enrol(), list[int]()
    while len(tasks) < len(dag):
        if len(tasks) == len(dag) // 2:
            scene.restart()
        lease = scene.lease(client)
        tasks.append(lease.task)
        scene.bring(lease)
    assert tasks == expected
