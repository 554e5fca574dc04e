"""What a server does not keep in mind for ever, and what it must: memory, tallies, retries, clients and tokens."""

import asyncio
import gc
import sqlite3
import weakref
from array import array
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eligo.execution import EXECUTED, Execution
from eligo.server.http.handlers import Api
from eligo.server.rules.outcomes import ForgottenError, Lacking, Past, Recent
from eligo.server.rules.state import MOST_RECENT
from eligo.server.schema import FileWords, ResultWords
from eligo.stores.database import steps_after
from eligo.stores.service import Sums
from eligo.stores.service_sqlite import STEPS, SqliteServiceStore
from eligo.work.attempts import Lease
from eligo.work.tries import Retries
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
    for lease in [grant.leases[0] for grant in scene.get(ann, key, count=3)]:
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
    for lease in scene.leases(bob, count=2):
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


# What comes after the end


def late_and_accepted(scene: Scene, **wishes: Any) -> tuple[str, Lease]:
    """A workflow that is done, and a lease of it that was lost and may still be delivered."""
    files: dict[str, tuple[list[str], list[str]]] = {"a": ([], ["f"])} if wishes else {}
    workflow, ann, bob = scene.submit(flow_of({"a": []}, files), **wishes), scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    outputs = {"f": FileWords("1" * 64, 1)} if wishes else {}
    assert scene.bring(scene.lease(bob), tail="right", outputs=outputs) == "accepted"
    assert scene.state(workflow) == "done"
    return workflow, late


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("tail", "answer"), [("right", "duplicate"), ("wrong", "conflict")])
def test_a_result_that_differs_is_a_conflict_after_the_end_too(
    scene: Scene, restarted: bool, tail: str, answer: str
) -> None:
    _, late = late_and_accepted(scene)
    if restarted:
        scene.restart()
    for _ in range(3):
        assert scene.bring(late, tail=tail) == answer
    results = scene.service.results
    assert (results.duplicates, results.conflicts) == ((3, 0) if answer == "duplicate" else (0, 3))


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("hash", "answer"), [("1", "duplicate"), ("2", "conflict")])
def test_files_of_what_has_ended_are_compared_by_name(scene: Scene, restarted: bool, hash: str, answer: str) -> None:
    _, late = late_and_accepted(scene, files=True)
    if restarted:
        scene.restart()
    assert scene.bring(late, tail="other words", outputs={"f": FileWords(hash * 64, 1)}) == answer


def test_what_comes_of_a_cancelled_workflow_is_of_no_use_and_no_conflict(scene: Scene) -> None:
    workflow, ann = scene.submit(many(1)), scene.enrol()
    lease = scene.lease(ann)
    scene.service.cancel(scene.now, workflow)
    scene.keep()
    assert scene.bring(lease, tail="whatever") == "duplicate"
    assert scene.service.results.conflicts == 0


def test_the_rules_read_nothing_themselves(scene: Scene) -> None:
    """What only the store knows is read between two looks at the rules, which say so before they change anything."""
    workflow, ann, bob = scene.submit(many(2)), scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    assert scene.bring(next(one for one in scene.leases(bob, count=2) if one.task == late.task)) == "accepted"
    scene.restart()
    results, client = scene.service.results, scene.client(ann)
    told = [ResultWords(late.id, "done", tail="x")]
    with pytest.raises(ForgottenError):
        results.deliver(scene.now, client, told)
    assert results.wanted(client, told) == Lacking({late[:2]}, {workflow})
    past = scene.service.archive.read(results.wanted(client, told), Past(), scene.service.books.ends)
    assert results.deliver(scene.now, client, told, past) == ["conflict"]
    assert isinstance(scene.served(workflow).digests, array)


def test_what_happens_while_the_store_is_read_counts(scene: Scene) -> None:
    scene.submit(many(2))
    ann, bob = scene.enrol(), scene.enrol("bob")
    late = scene.lease(ann)
    scene.later(100.0)
    scene.restart()
    results, told = scene.service.results, [ResultWords(late.id, "done", tail="x")]
    past = scene.service.archive.read(results.wanted(scene.client(ann), told), Past(), scene.service.books.ends)
    soon = next(one for one in scene.leases(bob, count=2) if one.task == late.task)
    assert scene.bring(soon, tail="y") == "accepted"
    assert results.deliver(scene.now, scene.client(ann), told, past) == ["conflict"]
    assert scene.service.deliver(scene.now, scene.client(bob), [ResultWords(soon.id, "done", tail="y")]) == ["accepted"]
    scene.service.books.ends += MOST_RECENT  # so much that what was read may be out of date
    scene.service.books.recent = Recent()
    with pytest.raises(ForgottenError):
        results.deliver(scene.now, scene.client(ann), told, past)


def test_what_is_not_kept_yet_is_remembered_however_much_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.server.rules.state.MOST_RECENT", 3)
    scene = Scene(keeping=False)
    scene.submit(many(8))
    ann = scene.enrol()
    scene.client(ann).quota = 8.0
    scene.keep()
    leases = scene.leases(ann, count=8)
    scene.keep()
    for lease in leases:
        assert scene.bring(lease) == "accepted"
    assert [scene.bring(lease) for lease in leases] == ["accepted"] * 8
    scene.keep()
    scene.submit(many(4))
    later = scene.leases(ann, count=4)
    for lease in later:
        assert scene.bring(lease) == "accepted"
    scene.keep()
    assert all(lease[:2] in scene.service.books.recent for lease in later)
    assert not any(lease[:2] in scene.service.books.recent for lease in leases)


def test_a_workflow_that_has_ended_is_told_of_without_reading_its_outcomes(scene: Scene) -> None:
    workflow, ann = scene.submit(many(2)), scene.enrol()
    for lease in scene.leases(ann, count=2):
        scene.bring(lease)
    scene.restart()
    nothing: Any = object()
    desk: Any = SimpleNamespace(service=scene.service)
    words = asyncio.run(Api(desk, nothing, nothing).state_of(workflow))
    assert (words.state, words.tasks, words.counts) == ("done", 2, {"done": 2})


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
    assert (scene.served(workflow).tries.failures[0], scene.served(workflow).tries.begun[0]) == (0, 2)
    assert scene.bring(scene.lease(ann), "failed") == "failed"
    assert scene.state(workflow) == "running"  # one failure since then: it is tried once more
    scene.restart()
    assert scene.served(workflow).tries.failures[0] == 1
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
