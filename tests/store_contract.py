"""What every store of a server must do, whatever it is made of: the classes of tests that each store is put to."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings

from eligo.errors import InputError
from eligo.stores.database import packed_addition
from eligo.stores.service import AdditionRow, Changes, FileRow, Moves
from eligo.stores.service_sql import ServiceStore
from store_twin import TwinStore, check_same, groups
from store_writing import WORKFLOW, commit_of, commits_in, submitted

HERE = Path(__file__).parent
KILLS = 30


class Place(Protocol):
    """Where a store can be made: nothing is there at first."""

    @property
    def where(self) -> str:
        """What `service_store` is given."""
        ...

    def open(self, address: str = "http://a") -> ServiceStore:
        """The store that is there."""
        ...

    def another(self) -> "Place":
        """A place like this with nothing there."""
        ...

    def make_newer(self) -> None:
        """Make the store look as if a later version had made it."""
        ...

    def restored(self, copy: Path) -> "Place":
        """A place with what a backup has."""
        ...

    def migrating(self) -> str:
        """A program that opens the store with one more step than there is, which takes some time and makes `extra`."""
        ...

    def has_extra(self) -> bool:
        """Whether that step was done, in all its parts; it is wrong that only some were."""
        ...


@contextmanager
def program(*words: str) -> "Iterator[subprocess.Popen[str]]":
    """A Python program, which is killed after."""
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    child = subprocess.Popen(
        [sys.executable, *words], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


def writer(place: Place, rows: int = 0) -> Any:
    """A program that writes commits, and tells of each."""
    return program(str(HERE / "store_writing.py"), place.where, str(rows))


def last_told(child: "subprocess.Popen[str]") -> int:
    """The last commit that a writer told of, once it is gone."""
    assert child.stdout is not None
    told = child.stdout.read().split("\n")[:-1]
    return int(told[-1]) if told else 0


def check_client_of_before(store: ServiceStore) -> None:
    """A client that was kept before there were notes of operators has none, and keeps those that it gets."""
    (row,) = store.clients()
    assert (row.id, row.approved, row.seconds, row.held, row.tags) == ("c-1", True, 9.0, False, "")
    store.commit([Changes(client_notes=[("c-1", True, "gpu fast")])])
    store.commit([Changes(clients=[row._replace(done=9)])])  # as another server writes it, who does not know yet
    assert store.client("c-1") == row._replace(done=9, held=True, tags="gpu fast")


class StoreContract:
    """What a store keeps and what it refuses."""

    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(changes=groups())
    def test_everything_comes_back_as_it_was_given(self, place: Place, changes: list[list[Changes]]) -> None:
        here, twin = place.another(), TwinStore()
        with closing(here.open()) as store:
            for group in changes:
                store.commit(group)
                twin.commit(group)
            check_same(store, twin)
        with closing(here.open()) as again:
            check_same(again, twin)

    def test_all_of_a_group_is_kept_or_nothing(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            store.commit(commit_of(1))
            wrong = [Changes(facts=[("n", "9")]), Changes(moves=[Moves(WORKFLOW, 0, array("q", [1]))])]
            with pytest.raises(InputError, match="cannot be stored"):
                store.commit(wrong)
            assert commits_in(store) == 1
            store.commit(commit_of(2))
            assert commits_in(store) == 2

    @pytest.mark.parametrize("text", ["a\0b", "\ud800"])
    def test_a_text_that_not_every_database_keeps_is_refused(self, place: Place, text: str) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            with pytest.raises(InputError, match="cannot be stored"):
                store.commit([Changes(facts=[("n", "1")], files=[FileRow(WORKFLOW, text, "", 0)])])
            assert (store.facts(), store.files(WORKFLOW)) == ({"n": "0"}, [])

    def test_a_number_that_is_too_large_is_refused(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            with pytest.raises(InputError, match="cannot be stored"):
                store.commit([Changes(files=[FileRow(WORKFLOW, "f", "", 2**63)])])
            assert store.files(WORKFLOW) == []

    def test_a_document_in_parts_is_read_whole(self, place: Place) -> None:
        with closing(place.open()) as store:
            for part, content in enumerate((b"first, ", b"second, ", b"third")):
                store.commit([Changes(parts=[(WORKFLOW, part, content)])])
            row = submitted().workflows[0]._replace(document=b"")
            store.commit([Changes(workflows=[row])])
        with closing(place.open()) as again:
            assert again.document(WORKFLOW) == b"first, second, third"

    def test_additions_come_back_in_order_until_their_workflow_is_purged(self, place: Place) -> None:
        new = [((f"x{i}",), ((0, 1 + i),), ({"name": f"x{i}", "run": "true"},)) for i in range(12)]
        rows = [AdditionRow(WORKFLOW, number, *packed_addition(*added)) for number, added in enumerate(new)]
        with closing(place.open()) as store:
            store.commit([submitted(), Changes(additions=rows[:2])])
            store.commit([Changes(additions=rows[2:])])
        with closing(place.open()) as store:
            assert store.additions(WORKFLOW) == new
            store.commit([Changes(purged=[(WORKFLOW,)])])
            assert store.additions(WORKFLOW) == []

    def test_a_key_is_free_again_in_the_group_that_purges_its_workflow(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            again = submitted().workflows[0]._replace(id="w-again")
            store.commit([Changes(workflows=[again], purged=[(WORKFLOW,)])])
            assert [row.id for row in store.workflows()] == ["w-again"]

    def test_the_same_request_submits_no_second_workflow(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            again = submitted("w-2").workflows[0]._replace(key=f"key of {WORKFLOW}")
            with pytest.raises(InputError, match="cannot be stored"):
                store.commit([Changes(workflows=[again])])
            assert [row.id for row in store.workflows()] == [WORKFLOW]

    def test_nothing_to_keep_is_kept(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([])
            store.commit([Changes()])
            assert store.workflows() == []

    def test_who_submits_a_workflow_holds_it(self, place: Place) -> None:
        with closing(place.open("http://a")) as store:
            store.commit([submitted()])
            assert store.holders() == {WORKFLOW: "http://a"}
            assert store.hold(WORKFLOW) == 1
            assert store.keep_holding(60.0) == {WORKFLOW}
            store.commit(commit_of(1))

    def test_a_newer_store_is_refused(self, place: Place) -> None:
        place.open().close()
        place.make_newer()
        for _ in range(2):
            with pytest.raises(InputError, match="was written by a newer version of eligo"):
                place.open()

    def test_a_backup_made_while_somebody_writes_is_one_moment(self, place: Place, tmp_path: Path) -> None:
        with closing(place.open()) as store:
            large = [FileRow(WORKFLOW, f"{i:0200}", "", i) for i in range(40_000)]
            store.commit([submitted(), Changes(files=large)])
            kept, enough = [0], threading.Event()

            def write() -> None:
                while not enough.is_set():
                    store.commit(commit_of(kept[0] + 1, rows=300))
                    kept[0] += 1

            thread = threading.Thread(target=write)
            thread.start()
            found = []
            try:
                for i in range(3):
                    least = kept[0]
                    store.backup(tmp_path / f"copy {i}")
                    found.append((i, least, kept[0] + 1))
            finally:
                enough.set()
                thread.join()
            with pytest.raises(InputError, match="file already exists"):
                store.backup(tmp_path / "copy 0")
        for i, least, most in found:
            with closing(place.restored(tmp_path / f"copy {i}").open()) as copy:
                assert least <= commits_in(copy) <= most

    def test_many_may_look_while_one_writes(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            wrong: list[BaseException] = []

            def look() -> None:
                try:
                    for _ in range(30):
                        assert len(store.moves(WORKFLOW)) <= int(store.facts()["n"])
                except BaseException as error:
                    wrong.append(error)

            threads = [threading.Thread(target=look) for _ in range(4)]
            for thread in threads:
                thread.start()
            for number in range(1, 60):
                store.commit(commit_of(number))
            for thread in threads:
                thread.join()
            assert wrong == []
            assert commits_in(store) == 59


class KilledContract:
    """What a store has after its server was killed."""

    def test_what_was_acknowledged_survives_kills(self, place: Place) -> None:
        rng, acknowledged, most = random.Random(20261116), 0, 0
        for cycle in range(KILLS):
            with writer(place, rows=20) as child:
                assert child.stdout is not None
                first = int(child.stdout.readline()) if cycle % 5 else 0  # each fifth is killed as it begins
                time.sleep(rng.uniform(0.0, 0.2))
                child.kill()
                acknowledged = max(acknowledged, first, last_told(child))
            with closing(place.open("http://writer")) as store:
                if store.workflows():
                    most = commits_in(store)
                assert acknowledged <= most <= acknowledged + 1
        assert acknowledged > KILLS

    def test_a_step_to_a_newer_version_that_is_killed_begins_again(self, place: Place) -> None:
        with closing(place.open()) as store:
            store.commit([submitted()])
            store.commit(commit_of(1))
        rng, done = random.Random(7), 0
        for _ in range(8):
            with program("-c", place.migrating()) as child:
                assert child.stdout is not None
                child.stdout.readline()
                time.sleep(rng.uniform(0.0, 0.15))
                child.send_signal(signal.SIGKILL)
            if place.has_extra():
                done += 1
                break
        assert not done, "the step was never killed in its middle"
        with program("-c", place.migrating()) as child:
            assert child.stdout is not None
            assert child.stdout.read().split() == ["begins", "1"]
        assert place.has_extra()
