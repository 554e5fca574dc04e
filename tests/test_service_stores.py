"""A server's store in SQLite, and stores by name."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from eligo.errors import InputError
from eligo.stores.database import steps_after
from eligo.stores.service import Changes
from eligo.stores.service_sqlite import STEPS, SqliteServiceStore, back_up, service_store
from sqlite_place import SqlitePlace
from store_contract import StoreContract, check_client_of_before
from store_writing import WORKFLOW, commit_of, commits_in, submitted


@pytest.fixture
def place(tmp_path: Path) -> SqlitePlace:
    return SqlitePlace(tmp_path)


class TestSqlite(StoreContract):
    """The contract."""


def test_a_second_server_is_refused_and_may_come_once_the_first_is_gone(place: SqlitePlace) -> None:
    with closing(place.open()):
        opening = "import sys; from eligo.stores.service_sqlite import SqliteServiceStore as S; S(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", opening, place.where], check=False, capture_output=True, text=True)
        assert "server.db: another server is using this file" in done.stderr
    place.open().close()


def test_a_file_that_is_no_store_is_refused_in_clear_words(place: SqlitePlace) -> None:
    Path(place.where).write_bytes(b"no database" * 100)
    for _ in range(2):
        with pytest.raises(InputError, match="cannot be used as the store of a server: file is not a database"):
            place.open()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be used as the store of a server"):
        service_store(str(tmp_path / "no" / "server.db"))


def test_only_the_writer_moves_the_log_into_the_file(place: SqlitePlace) -> None:
    with closing(place.open()) as store:
        assert store._writing.execute("PRAGMA wal_autocheckpoint").fetchone() == (1000,)
        assert store._writing.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._reading.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
        store.commit([submitted()])
        with pytest.raises(OSError, match="readonly"):
            list(store._rows("DELETE FROM fact"))


def test_a_backup_of_a_server_that_was_killed_has_all(place: SqlitePlace, tmp_path: Path) -> None:
    with closing(place.open()) as store:
        store.commit([submitted()])
        for number in range(1, 20):
            store.commit(commit_of(number))
        for suffix in ("", "-wal"):
            (tmp_path / f"dead.db{suffix}").write_bytes(Path(place.where + suffix).read_bytes())
    back_up(tmp_path / "dead.db", tmp_path / "copy.db")
    with closing(SqliteServiceStore(tmp_path / "copy.db")) as copy:
        assert commits_in(copy) == 19
    with pytest.raises(InputError, match="no such store"):
        back_up(tmp_path / "none.db", tmp_path / "other.db")


def test_a_backup_that_cannot_be_made_leaves_nothing(place: SqlitePlace, tmp_path: Path) -> None:
    with closing(place.open()) as store, pytest.raises(InputError, match="cannot write the copy"):
        store.backup(tmp_path / "no" / "copy.db")


def test_stores_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(service_store(str(tmp_path / "a.db"), "http://b")) as store:
        store.commit([submitted()])
        assert store.holders() == {WORKFLOW: "http://b"}
    for wrong in ("a.txt", "mysql://a.db", "a"):
        with pytest.raises(InputError, match=r"must be FILE\.db or postgresql://"):
            service_store(wrong)
    monkeypatch.setitem(sys.modules, "eligo.stores.service_postgres", None)
    with pytest.raises(InputError, match=r'PostgreSQL needs psycopg \(pip install "eligo\[postgres\]"'):
        service_store("postgresql://somewhere/eligo")


@pytest.mark.parametrize(("version", "old"), [((3, 51, 2), True), ((3, 51, 3), False), ((4, 0, 0), False)])
def test_an_sqlite_with_a_fault_is_remarked(
    place: SqlitePlace, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], old: bool
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    with closing(place.open()) as store:
        assert (store.remark is not None) == old


def test_clients_of_before_are_held_by_nobody_and_have_no_tags(place: SqlitePlace) -> None:
    with closing(sqlite3.connect(place.where)) as old:
        for number, text in list(steps_after(STEPS, 0))[:4]:
            old.executescript(f"{text} PRAGMA user_version = {number};")
        old.execute("INSERT INTO client VALUES ('c-1', 'ann', 1, 2, 3, 1, 4, 0, 0, 0, 5, 6, 7, 8, 9)")
        old.commit()
    with closing(place.open()) as store:
        check_client_of_before(store)


def test_parts_of_a_document_that_was_never_submitted_are_gone_at_the_next_start(place: SqlitePlace) -> None:
    with closing(place.open()) as store:
        store.commit([Changes(parts=[(WORKFLOW, 0, b"part")])])
    with closing(place.open()):
        pass
    with closing(sqlite3.connect(place.where)) as database:
        assert database.execute("SELECT count(*) FROM document_part").fetchone() == (0,)


def test_parts_of_a_document_go_with_their_workflow(place: SqlitePlace) -> None:
    with closing(place.open()) as store:
        store.commit([Changes(parts=[(WORKFLOW, 0, b"part")])])
        store.commit([Changes(workflows=[submitted().workflows[0]._replace(document=b"")])])
        store.commit([Changes(purged=[(WORKFLOW,)])])
    with closing(sqlite3.connect(place.where)) as database:
        assert database.execute("SELECT count(*) FROM document_part").fetchone() == (0,)
