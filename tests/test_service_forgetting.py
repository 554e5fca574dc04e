"""What a server does not keep in mind for ever, and what it must: memory, tallies, retries, clients and tokens."""

import gc
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

import pytest

from eligo.execution import EXECUTED, Execution
from eligo.running.retrying import Retries
from eligo.stores.serving import Sums
from eligo.stores.serving_sql import steps_after
from eligo.stores.serving_sqlite import STEPS, SqliteServiceStore
from service_parts import Scene, check, flow_of, many

QUICK = Retries(most=0, lost=1, first=1.0, longest=1.0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


# Memory


def test_nothing_of_a_workflow_stays_in_memory_once_it_is_done(scene: Scene) -> None:
    workflow, ann = scene.submit(many(3)), scene.enrol()
    served = weakref.ref(scene.served(workflow))
    key = "k"
    for lease in [grant.leases[0] for grant in scene.get(ann, key, grants=3)]:
        assert scene.bring(lease) == "accepted"
    gc.collect()
    assert served() is None
    assert scene.get(ann, key) == []  # the request is remembered nevertheless: it gets nothing else


def test_a_request_whose_tasks_have_come_back_keeps_no_leases(scene: Scene) -> None:
    scene.submit(many(10))
    ann = scene.enrol()
    for i in range(4):
        for lease in scene.leases(ann, key=f"k{i}", size=2):
            scene.bring(lease)
    known = [got for grants in scene.service.requests._keys.values() for got in grants]
    assert sum(len(got.numbers) for got in known) == 8
    assert not any(scene.service.requests._still_out(got) for got in known)


def test_what_is_done_is_told_in_order_and_takes_four_bytes_a_task() -> None:
    game = Execution({"a": [], "b": ["a"], "c": ["a"]})
    for task in ("a", "c"):
        game.execute(task)
    assert list(game.executed) == ["a", "c"]
    assert ("a" in game.executed, "b" in game.executed) == (True, False)
    assert list(game.numbers(EXECUTED)) == [0, 2]
    assert game._inside[EXECUTED]._order.itemsize == 4  # type: ignore[attr-defined]


# Tallies


def test_a_lease_that_was_lost_counts_whatever_came_of_it_later(scene: Scene) -> None:
    workflow, ann, bob = scene.submit(many(2)), scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    for lease in scene.leases(bob, grants=2):
        if lease.task == late.task:
            assert scene.bring(lease) == "accepted"
        else:
            last = lease
    assert scene.bring(late) == "duplicate"  # its outcome is no longer that it expired
    scene.restart()
    assert scene.served(workflow).lost == 1
    assert scene.served(workflow).repeated == 1
    assert scene.bring(last) == "accepted"
    row = scene.service.books.ended[workflow]
    assert row.tally is not None
    assert Sums.read(row.tally) == Sums(tasks=2, done=2, lost=1, repeated=1, saved=0)
    assert scene.store.rows[workflow].tally == row.tally
    assert scene.store.rows[workflow].ended == scene.now + scene.ahead


def test_what_was_saved_is_known_after_a_restart(scene: Scene) -> None:
    workflow, ann = scene.submit(many(2)), scene.enrol()
    scene.bring(scene.lease(ann), saved=7)
    scene.restart()
    assert scene.served(workflow).saved == 7
    scene.bring(scene.lease(ann), saved=5)
    assert Sums.read(scene.service.books.ended[workflow].tally or "").saved == 12


# Retries


def test_a_task_that_was_retried_by_hand_is_as_new_after_a_restart_too() -> None:
    scene = Scene(retries=Retries(most=1, lost=1, first=1.0, longest=1.0))
    workflow, ann = scene.submit(flow_of({"a": []})), scene.enrol()
    for _ in range(2):
        assert scene.bring(scene.lease(ann), "failed") == "failed"
        scene.now += 120.0
    assert scene.state(workflow) == "failed"
    assert scene.service.retry(scene.now, workflow) == 1
    scene.keep()
    scene.restart()
    assert (scene.served(workflow).failures[0], scene.served(workflow).tries[0]) == (0, 2)
    assert scene.bring(scene.lease(ann), "failed") == "failed"
    assert scene.state(workflow) == "running"  # one failure since then: it is tried once more
    scene.restart()
    assert scene.served(workflow).failures[0] == 1
    check(scene)


def test_votes_of_before_a_retry_do_not_come_back_with_a_restart() -> None:
    scene = Scene(most_disputes=0)
    workflow = scene.submit(flow_of({"a": []}), quorum=2)
    for name in ("ann", "bob"):
        assert scene.bring(scene.lease(scene.enrol(name)), tail=name) == "voted"
    assert scene.state(workflow) == "failed"
    scene.service.retry(scene.now, workflow)
    scene.keep()
    scene.restart()
    assert scene.served(workflow).votes == {}


# Stores of before


def test_a_store_of_before_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    (_, text), *_ = steps_after(STEPS, 0)
    with closing(sqlite3.connect(path)) as old:
        old.executescript(text)
        old.execute("PRAGMA user_version = 1")
        for id, state in (("w-1", "running"), ("w-2", "done")):
            values = (id, id, "n", "o", 1.0, "fifo", "{}", state, 5.0, b"", None)
            old.execute(f"INSERT INTO workflow VALUES ({', '.join('?' * 11)})", values)
        for number, answer in ((1, "expired"), (2, "accepted")):
            ended = ("w-1", number, 0, 1, "c-1", "s", 1.0, 2.0, answer, None, None, None, None, None, 0)
            old.execute(f"INSERT INTO outcome VALUES ({', '.join('?' * 15)})", ended)
        client = ("c-1", "ann", 2.0, 1.0, 2.0, 1, 4.0, 0, 0, 0.0, 3, 9, 1, 1, 0.0, 8.5)
        old.execute(f"INSERT INTO client VALUES ({', '.join('?' * 16)})", client)
        old.execute("INSERT INTO file VALUES ('w-1', 'f', 'abc', 3)")
        old.commit()
    with closing(SqliteServiceStore(path)) as store:
        first, second = store.workflows()
        assert (first.lost, first.ended, second.lost) == (1, None, 0)
        assert second.ended is not None
        assert second.ended > 1e9
        (ann,) = store.clients()
        assert (ann.name, ann.done, ann.lost, ann.seconds, ann.approved) == ("ann", 9, 1, 8.5, True)
        assert not hasattr(ann, "work")
        assert [row.given for row in store.files("w-1")] == [0]
