"""Folders of runs and files of servers that the version before made: they are read as they are, and brought up to date."""

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from eligo.cli import run
from eligo.formats import read_history
from eligo.pages.folder_source import WatchedRun, looked_at
from eligo.stores import Attempt, Store, read_news, read_run
from eligo.stores.database import newest, version_of
from eligo.stores.run_reader import STEPS
from eligo.stores.service_sqlite import SqliteServiceStore

DATA = Path(__file__).parent / "data"
TASKS = ["fetch", "flaky", "broken", "blocked", "last"]
#: task, which attempt at it, answer, exit code
TRIED = [
    ("fetch", 1, "accepted", 0), ("flaky", 1, "failed", 1), ("broken", 1, "failed", 3), ("broken", 2, "failed", 3),
    ("flaky", 2, "accepted", 0), ("last", 1, "expired", -15), ("broken", 3, "failed", 3), ("last", 2, "accepted", 0),
    ("broken", 4, "failed", 3),
]  # fmt: skip


@pytest.fixture
def older_run(tmp_path: Path) -> Path:
    """A run of version 3, stopped once and resumed, with a task that failed."""
    place = tmp_path / "flow.yaml.run"
    place.mkdir()
    shutil.copy(DATA / "run_of_version_3" / "workflow.json", place)
    (place / "run.db").write_bytes(gzip.decompress((DATA / "run_of_version_3" / "run.db.gz").read_bytes()))
    (place / "run.db.lock").touch()
    return place


def told(attempts: list[Attempt]) -> list[tuple[str, int, str, int | None]]:
    return [(TASKS[one.task], one.attempt, one.answer, one.code) for one in attempts]


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return version_of(database)


def test_a_reader_of_an_older_run_sees_all_of_it_and_leaves_it_as_it_is(older_run: Path) -> None:
    before = (older_run / "run.db").read_bytes()
    kept = read_run(older_run / "run.db")
    assert told(kept.attempts) == TRIED
    assert [one.lost for one in kept.attempts].count(True) == 1
    assert WatchedRun(older_run).counts["done"] == 3
    assert len(read_history(str(older_run)).records) == 3
    assert (older_run / "run.db").read_bytes() == before


def test_an_older_run_that_does_not_change_is_not_read_again(older_run: Path) -> None:
    watched = looked_at(older_run)
    assert looked_at(older_run, watched) is watched
    assert [row["attempt"] for row in watched.attempts.rows] == [attempt for _, attempt, _, _ in TRIED]


def test_an_older_run_that_is_resumed_meanwhile_is_read_anew(older_run: Path) -> None:
    position = read_run(older_run / "run.db").position
    Store(older_run / "run.db").close()
    assert read_news(older_run / "run.db", position) is None


def test_a_writer_brings_an_older_run_up_to_date_with_its_check_sums(older_run: Path) -> None:
    path, before = older_run / "run.db", read_run(older_run / "run.db")
    with closing(Store(path)) as store:
        assert told(read_run(path).attempts) == TRIED
        assert store.kept == len(before.moves)
    after = read_run(path)
    assert version(path) == newest(STEPS) > 3
    assert (after.attempts, after.moves, after.tasks) == (before.attempts, before.moves, before.tasks)
    assert after.sessions[: len(before.sessions)] == before.sessions


def test_a_damaged_older_run_is_refused_and_not_brought_up_to_date(older_run: Path) -> None:
    with closing(sqlite3.connect(older_run / "run.db")) as database:
        database.execute("UPDATE attempt SET task = 0 WHERE number = 5")
        database.commit()
    with pytest.raises(Exception, match="the checksum of table 'attempt' is wrong"):
        Store(older_run / "run.db")
    assert version(older_run / "run.db") == 3


def test_an_older_run_goes_on(older_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--resume", str(older_run), "--retries", "0"]) == 1
    assert "3 of 5 tasks done" in (printed := capsys.readouterr()).out + printed.err
    assert told(read_run(older_run / "run.db").attempts) == [*TRIED, ("broken", 5, "failed", 3)]


def test_the_file_of_an_older_server_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "served.db"
    path.write_bytes(gzip.decompress((DATA / "served_of_version_5.db.gz").read_bytes()))
    with closing(SqliteServiceStore(path)) as store:
        ((workflow, state),) = store.states().items()
        (lease,) = store.leases(workflow)
        ends = list(store.outcomes(workflow))
        assert (state, lease.task, store.last_number(workflow)) == ("running", 2, 3)
        assert [(end.task, end.answer, end.failure, end.code) for end in ends] == [
            (0, "accepted", None, 0),
            (1, "failed", "exit code 3", 3),
        ]
