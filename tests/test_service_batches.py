"""Many tasks in one call: kept in few rows, and judged as if each had come alone."""

import inspect
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.server import schema as words
from eligo.server.http.handlers import Api
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import Answering, endpoints_of
from eligo.server.operations import Operations
from eligo.server.schema import DeliverWords, ResultWords
from eligo.stores.database import steps_after
from eligo.stores.service import Changes
from eligo.stores.service_sqlite import STEPS, SqliteServiceStore
from eligo.work.attempts import Attempt, Lease
from eligo.work.tries import Tried
from eligo.workflow import Task, Workflow
from service_parts import Scene, many
from store_writing import WORKFLOW, submitted

BATCH = 300


def rows_in(store: SqliteServiceStore, table: str) -> int:
    ((count,),) = store._rows(f"SELECT count(*) FROM {table}")
    return int(count)


def chains(number: int) -> Workflow:
    names = [f"t{i}" for i in range(2 * number)]
    tasks = {name: Task(name=name, command="true") for name in names}
    return Workflow(Dag.from_arrays(2 * number, range(number), range(number, 2 * number), names), tasks)


def test_a_batch_takes_few_rows_and_what_is_out_of_it_is_known_after_a_restart(tmp_path: Path) -> None:
    scene = Scene(first_quota=1000.0)
    with closing(SqliteServiceStore(tmp_path / "server.db")) as file:
        scene.twins.append(file)
        workflow, ann = scene.submit(many(BATCH)), scene.enrol("ann")
        leases = scene.leases(ann, key="k", size=BATCH)
        assert (len(leases), rows_in(file, "lease"), rows_in(file, "outcome")) == (BATCH, 1, 0)
        brought, left = leases[::3], [lease for i, lease in enumerate(leases) if i % 3]
        scene.tell(ann, *(ResultWords(lease.id, "done") for lease in brought))
        assert (rows_in(file, "lease"), rows_in(file, "outcome")) == (1, 2), "a row for each page that was written on"
        assert file.leases(workflow) == scene.store.leases(workflow) == left
        scene.restart()
        assert scene.leases(ann, key="k", size=BATCH) == left, "the same request gets what is left of what it got"
        assert scene.tell(ann, *(ResultWords(lease.id, "done") for lease in leases)) == ["accepted"] * BATCH
        assert (rows_in(file, "lease"), rows_in(file, "outcome")) == (0, 4)
        assert [end.number for end in file.outcomes(workflow)] == [lease.number for lease in leases]
        assert scene.state(workflow) == "done"


@pytest.mark.parametrize("files", [False, True])
def test_results_of_one_call_are_judged_as_if_each_came_alone(files: bool) -> None:
    answers, thoughts, states = list[list[str]](), list[Any](), list[Any]()
    for together in (True, False):
        scene = Scene(first_quota=1000.0)
        workflow, ann = scene.submit(chains(20), files=files), scene.enrol("ann")
        scene.enrol("bob")
        leases = scene.leases(ann, size=40)
        told = [ResultWords(lease.id, "done", seconds=0.5 * i, tail=str(i % 3)) for i, lease in enumerate(leases)]
        told[7] = ResultWords(leases[7].id, "failed", code=1)
        told[11] = ResultWords(leases[11].id, "returned")
        told.insert(5, ResultWords(leases[4].id, "done", tail="another"))  # the same lease again, with something else
        told.append(ResultWords("no.1.lease", "done"))
        scene.now += 100.0
        calls = [told] if together else [[one] for one in told]
        answers.append([answer for call in calls for answer in scene.tell(ann, *call)])
        thoughts.append(scene.client(ann).row(0.0)._replace(id=""))
        served = scene.served(workflow)
        states.append(
            (
                bytes(served.codes),
                served.tries.failures,
                served.tries.begun,
                served.digests,
                served.allocator.speeds.results,
            )
        )
        assert scene.client(ann).holds == len(served.leases) == 0
    assert answers[0] == answers[1]
    assert thoughts[0] == thoughts[1]
    assert states[0] == states[1]
    assert set(answers[0]) == {"accepted", "failed", "returned", "refused"}


def test_what_came_of_a_lease_last_counts_and_is_found_by_its_number(tmp_path: Path) -> None:
    def end(number: int, answer: str) -> Attempt:
        return Attempt(WORKFLOW, number, number, 1 + number % 2, "c", "s", 1.5, 2.5, answer, digest="d", saved=3)

    with closing(SqliteServiceStore(tmp_path / "server.db")) as store:
        store.commit([submitted(), Changes(outcomes=[end(number, "expired") for number in (1, 255, 256, 20_000)])])
        store.commit([Changes(outcomes=[end(256, "accepted")])])
        assert [store.outcome(WORKFLOW, number) for number in (256, 257)] == [end(256, "accepted"), None]
        assert [one.number for one in store.outcomes_from(WORKFLOW, 255, 2)] == [255, 256]
        assert store.last_number(WORKFLOW) == 20_000
        upshot = store.upshot(WORKFLOW)
        assert (upshot.accepted, upshot.repeated, upshot.saved) == (1, 2, 12)
        assert upshot.tallies == {number: Tried(1, 0, 1) for number in (1, 255, 20_000)}
        for text in ("a\0b", "\ud800"):
            with pytest.raises(InputError, match="cannot be stored"):
                store.commit([Changes(outcomes=[end(9, "failed")._replace(tail=text)])])
        store.commit([Changes(outcomes=[end(9, "failed")._replace(tail="\\u0000")])])
        assert store.outcomes_from(WORKFLOW, 9, 1)[0].tail == "\\u0000"


def test_leases_and_outcomes_of_before_are_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old:
        for number, text in list(steps_after(STEPS, 0))[:2]:
            old.executescript(text)
            old.execute(f"PRAGMA user_version = {number}")
        out = [
            ("w", number, number % 7, 1, "ann", "5e", "k", part, 1e9 + 0.1) for number, part in ((3, 0), (5, 0), (6, 1))
        ]
        old.executemany(f"INSERT INTO lease VALUES ({', '.join('?' * 9)})", out)
        facts = ("accepted", None, 1, None, "d", '"\\ \n', 0)
        over = [n for n in range(600) if n not in {3, 5, 6}]
        ends = [("w", n, n % 7, 1, "ann", "5e", 1e9 + n / 3, 2e9, *facts) for n in over]
        old.executemany(f"INSERT INTO outcome VALUES ({', '.join('?' * 15)})", ends)
        old.commit()
    with closing(SqliteServiceStore(path)) as store:
        first = {3: 3, 5: 3, 6: 6}
        assert store.leases("w") == [Lease(*row[:7], first=first[row[1]], since=row[8]) for row in out]
        assert list(store.outcomes("w")) == [Attempt(*end) for end in ends]
        assert (rows_in(store, "lease"), rows_in(store, "outcome"), store.last_number("w")) == (2, 3, 599)


def test_words_that_are_taken_say_nothing_that_was_not_said() -> None:
    """Else a name that is given twice could be overlooked: they are counted against what the words say."""
    taken = [each for each in vars(words).values() if inspect.isclass(each) and issubclass(each, msgspec.Struct)]
    api = Api(None, None, None)  # type: ignore[arg-type]
    known = {one.takes for one in (*endpoints_of(api), *endpoints_of(Operations(api)))} & set(taken)
    inside = {words.AskWords, words.ResultWords, words.FileWords}
    assert {words.DeliverWords, words.InputsWords} <= known
    for each in known | inside:
        assert each.__struct_config__.omit_defaults or not each.__struct_defaults__, each


@pytest.mark.parametrize(
    ("result", "refused"),
    [
        ('"outcome":"done"', False),
        ('"outcome":"done","code":null,"tail":null', False),
        ('"outcome":"done","unknown":{"a":1}', False),
        ('"outcome":"done","tail":":"', False),
        ('"outcome":"done","outcome":"done"', True),
        ('"outcome":"done","code":null,"code":null', True),
        ('"outcome":"done","code" :1,"code":1', True),
        ('"outcome":"done","tail":":","code":1,"code":1', True),
        ('"outcome":"done","unknown":{"a":1,"a":2}', True),
    ],
)
def test_a_name_that_is_given_twice_is_refused(result: str, refused: bool) -> None:
    endpoints = endpoints_of(Api(None, None, None))  # type: ignore[arg-type]
    endpoint = next(one for one in endpoints if one.takes is DeliverWords)
    answering = Answering(endpoint, lambda headers: None)  # type: ignore[arg-type, return-value]
    body = f'{{"results":[{{"lease":"w.1.s",{result}}}]}}'
    assert len(json.loads(body)["results"]) == 1
    if refused:
        with pytest.raises(RefusedError, match="given twice"):
            answering._words(body.encode())
    else:
        assert len(answering._words(body.encode()).results) == 1
