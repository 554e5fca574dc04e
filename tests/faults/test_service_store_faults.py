"""A server's file when its server is killed, the power goes, or the disk is full."""

import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from eligo.stores.service import Changes
from hardship_scenarios import small_disk
from sqlite_place import SqlitePlace
from store_contract import KilledContract, writer
from store_writing import commit_of, commits_in, fill, submitted

COPIES = 200
PAGE = 4096


@pytest.fixture
def place(tmp_path: Path) -> SqlitePlace:
    return SqlitePlace(tmp_path)


class TestKilledSqlite(KilledContract):
    """Its server killed."""


def test_the_power_goes_at_any_moment(place: SqlitePlace, tmp_path: Path) -> None:
    """What lies on the disk at some moment, as it is copied while the writer is stopped, in the middle of anything.

    Behind what was synced there may be anything after a power cut: every other copy ends with a page of nonsense.
    """
    rng, moved = random.Random(20261116), 0
    with writer(place, rows=40) as child:
        assert child.stdout is not None
        pipe = child.stdout.fileno()
        acknowledged = _told(pipe)
        os.set_blocking(pipe, False)
        for number in range(COPIES):
            time.sleep(rng.uniform(0.0, 0.01))
            child.send_signal(signal.SIGSTOP)
            _wait_until_stopped(child.pid)
            for suffix in ("", "-wal"):
                shutil.copyfile(place.where + suffix, tmp_path / f"copy.db{suffix}")
            acknowledged += _told(pipe)
            child.send_signal(signal.SIGCONT)
            if number % 2:
                with (tmp_path / "copy.db-wal").open("ab") as log:
                    log.write(rng.randbytes(rng.randrange(2 * PAGE)))
            assert acknowledged[-1] <= _checked(tmp_path) <= acknowledged[-1] + 1
            moved += (tmp_path / "copy.db").stat().st_size > 20 * PAGE
    assert len(acknowledged) > COPIES
    assert moved, "the log was never moved into the file"


def _told(pipe: int) -> list[int]:
    """What the writer told since this was asked before."""
    try:
        return [int(number) for number in os.read(pipe, 2**16).split()]
    except BlockingIOError:
        return []


def _wait_until_stopped(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.0005)


def _checked(folder: Path) -> int:
    """How many commits a copy has, which is whole."""
    (folder / "copy.db-shm").unlink(missing_ok=True)
    copy = SqlitePlace(folder, "copy.db")
    with closing(sqlite3.connect(copy.where)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(copy.open()) as store:
        return commits_in(store) if store.workflows() else 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "2m") as place:
        yield place


def test_a_full_disk_heals_once_there_is_room(disk: Path) -> None:
    with closing(SqlitePlace(disk).open()) as store:
        store.commit([submitted()])
        filler = disk / "filler"
        filler.write_bytes(b"x" * (1024 * 1024))
        with pytest.raises(OSError, match=r"server\.db: cannot be written: .*(full|disk)"):
            fill(store)
        kept = commits_in(store)
        for _ in range(3):
            with pytest.raises(OSError, match="cannot be written"):
                store.commit(commit_of(kept + 1, rows=5000))
            assert commits_in(store) == kept
        filler.unlink()
        for number in range(kept + 1, kept + 20):
            store.commit(commit_of(number))
        assert commits_in(store) == kept + 19
    with closing(SqlitePlace(disk).open()) as again:
        assert commits_in(again) == kept + 19
        assert again._writing.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        again.commit([Changes(facts=[("healed", "yes")])])
