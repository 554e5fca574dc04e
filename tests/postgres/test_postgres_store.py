"""A server's store in a real PostgreSQL: the contract, and what becomes of it where servers or PostgreSQL die."""

import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer

from eligo.errors import InputError, NotHeldError
from eligo.stores.database import newest, steps_after
from eligo.stores.service import HELD, Changes
from eligo.stores.service_postgres import STEPS, PostgresServiceStore
from eligo.stores.service_sqlite import service_store
from eligo.work.attempts import Attempt, Lease
from store_contract import KilledContract, StoreContract, check_client_of_before, last_told, program, writer
from store_writing import ADDRESS, WORKFLOW, commit_of, commits_in, fill, keep, submitted

pytest_plugins = ["postgres_fixtures"]

EXTRA = "CREATE TABLE extra_1 (n INT); SELECT pg_sleep(0.3); CREATE TABLE extra_2 (n INT);"
LAST = newest(STEPS)
MIGRATING = """
from eligo.stores import service_postgres as home
real = home.steps_after
home.steps_after = lambda folder, version: [*real(folder, version), *([({last} + 1, {extra!r})] if version == {last} else [])]
home.newest = lambda folder: {last} + 1
print("begins", flush=True)
store = home.PostgresServiceStore({where!r})
print(store.facts()["n"], flush=True)
"""


@dataclass(frozen=True)
class PostgresPlace:
    """A database with nothing in it at first."""

    server: PostgresServer
    where: str

    @property
    def name(self) -> str:
        return self.where.partition("///")[2].partition("?")[0]

    def open(self, address: str = "http://a") -> PostgresServiceStore:
        return PostgresServiceStore(self.where, address)

    def another(self) -> "PostgresPlace":
        return PostgresPlace(self.server, self.server.new_database())

    def asked(self, question: str) -> Any:
        with psycopg.connect(self.where, autocommit=True) as database:
            found = database.execute(question)
            return found.fetchall() if found.description else None

    def make_newer(self) -> None:
        self.asked("INSERT INTO eligo_schema VALUES (99)")

    def restored(self, copy: Path) -> "PostgresPlace":
        fresh = self.another()
        subprocess.run(["pg_restore", "--no-owner", f"--dbname={fresh.where}", str(copy)], check=True)
        return fresh

    def migrating(self) -> str:
        return MIGRATING.format(extra=EXTRA, where=self.where, last=LAST)

    def has_extra(self) -> bool:
        ((version, tables),) = self.asked(
            "SELECT (SELECT max(version) FROM eligo_schema), (SELECT count(*) FROM pg_tables WHERE tablename LIKE 'extra%')"
        )
        assert (version, tables) in {(LAST, 0), (LAST + 1, 2)}
        return bool(version > LAST)


@pytest.fixture
def place(postgres: PostgresServer) -> PostgresPlace:
    return PostgresPlace(postgres, postgres.new_database())


class TestPostgres(StoreContract):
    """The contract."""


class TestKilledPostgres(KilledContract):
    """Its server killed."""


# Commits in doubt


@pytest.mark.parametrize("made", [True, False])
def test_a_commit_whose_answer_was_lost_is_made_once(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    with closing(place.open()) as store:
        store.commit([submitted()])
        real = psycopg.Connection.commit

        def lost(self: "psycopg.Connection[Any]") -> None:
            if made:
                real(self)
            self.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        first, second = commit_of(1), commit_of(2)
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "commit", lost)
            with pytest.raises(OSError, match="cannot be reached or written now: server closed the connection"):
                store.commit(first)
        assert commits_in(store) == (1 if made else 0)
        store.commit([*first, *second])
        assert commits_in(store) == 2


@pytest.mark.parametrize("made", [True, False])
def test_a_workflow_whose_submission_was_in_doubt_is_held(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    with closing(place.open()) as store:
        real = psycopg.Connection.commit

        def lost(self: "psycopg.Connection[Any]") -> None:
            if made:
                real(self)
            self.close()
            raise psycopg.OperationalError("gone")

        new = [submitted()]
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "commit", lost)
            with pytest.raises(OSError, match="gone"):
                store.commit(new)
        store.commit(new)
        store.commit(commit_of(1))
        assert commits_in(store) == 1


def test_a_commit_that_somebody_still_makes_is_waited_for(place: PostgresPlace) -> None:
    """The connection was lost, but the other end does not know yet, and makes the commit later."""
    with closing(place.open()) as store:
        store.commit([submitted()])
        first = commit_of(1)
        with psycopg.connect(place.where) as other:  # the other end of a connection that was lost
            other.execute("UPDATE writer SET number = number + 1 WHERE id = %s", (store.holder,))
            other.execute("UPDATE fact SET value = 'late'")
            store._doubted = tuple(first)
            late = threading.Timer(0.5, other.commit)
            late.start()
            store.commit(first)
            late.join()
        assert store.facts() == {"n": "late"}
        assert len(store.moves(WORKFLOW)) == 0


def _kill_backends(place: PostgresPlace, how: str) -> None:
    """End the connections that write."""
    with psycopg.connect(place.server.address(), autocommit=True) as database:
        found = database.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s AND application_name = 'eligo'", (place.name,)
        ).fetchall()
        for (pid,) in found:
            if how == "terminate":
                database.execute("SELECT pg_terminate_backend(%s)", (pid,))
            else:
                subprocess.run(["kill", "-9", str(pid)], check=False)


@pytest.mark.parametrize(("how", "times"), [("terminate", 150), ("kill", 6)])
def test_connections_that_end_at_any_moment_lose_and_repeat_nothing(place: PostgresPlace, how: str, times: int) -> None:
    rng, enough, kept, failed, doubts = random.Random(3), threading.Event(), [0], [0], [0]
    for setting in ("commit_delay = 5000", "commit_siblings = 0"):  # so that more of them end while a commit is made
        place.asked(f"ALTER DATABASE {place.name} SET {setting}")
    with closing(place.open()) as store:
        store.commit([submitted()])

        def write() -> None:
            while not enough.is_set():
                changes = commit_of(kept[0] + 1, 20)
                while True:
                    try:
                        store.commit(changes)
                        break
                    except OSError:
                        failed[0] += 1
                        doubts[0] += bool(store._doubted)
                        time.sleep(0.005)
                kept[0] += 1

        thread = threading.Thread(target=write)
        thread.start()
        ended, wanted = 0, 3 if how == "terminate" else 0  # whether one ends within a commit is chance
        while thread.is_alive() and (ended < times or (doubts[0] < wanted and ended < 20 * times)):
            ended += 1
            time.sleep(rng.uniform(0.002, 0.03) if how == "terminate" else rng.uniform(0.2, 0.5))
            try:
                _kill_backends(place, how)
            except psycopg.OperationalError:
                time.sleep(0.1)  # PostgreSQL makes itself whole again
        assert thread.is_alive(), "what was written failed with something that is no OSError"
        enough.set()
        thread.join()
        _wait_for(place)
        assert commits_in(store) == kept[0]
        assert failed[0] > 0


def _wait_for(place: PostgresPlace) -> None:
    for _ in range(200):
        try:
            place.asked("SELECT 1")
            return
        except psycopg.OperationalError:
            time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
def test_postgresql_started_anew_in_the_middle(place: PostgresPlace, how: signal.Signals) -> None:
    with writer(place) as child:
        assert child.stdout is not None
        child.stdout.readline()
        for _ in range(2):
            time.sleep(0.3)
            place.server.stop(how)
            time.sleep(0.2)
            place.server.start()
        before, until = _commits(place), time.monotonic() + 30
        while _commits(place) < before + 5 and time.monotonic() < until:
            time.sleep(0.05)
        child.kill()
        acknowledged = last_told(child)
    with closing(place.open(ADDRESS)) as store:
        assert before < acknowledged <= commits_in(store) <= acknowledged + 1


def _commits(place: PostgresPlace) -> int:
    return int(place.asked("SELECT value FROM fact WHERE name = 'n'")[0][0])


def test_looking_goes_on_after_postgresql_was_started_anew(place: PostgresPlace) -> None:
    with closing(place.open()) as store:
        store.commit([submitted()])
        place.server.stop()
        with pytest.raises(OSError, match="cannot be reached"):
            store.workflows()
        with pytest.raises(OSError, match="cannot be reached"):
            store.commit(commit_of(1))
        place.server.start()
        assert [row.id for row in store.workflows()] == [WORKFLOW]
        keep(store, commit_of(1))
        assert commits_in(store) == 1


@pytest.fixture
def small_place(postgres: PostgresServer, tmp_path: Path) -> Iterator[PostgresPlace]:
    """A database on a disk of few bytes; only the administrator can make one."""
    disk = postgres.folder / "small"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip(f"A FULL DISK WAS NOT TESTED: no disk can be made here: {made.stderr.decode().strip()}")
    space = disk / "space"
    space.mkdir()
    shutil.chown(space, (postgres.folder / "data").stat().st_uid)
    place = PostgresPlace(postgres, postgres.address("small"))
    with psycopg.connect(postgres.address(), autocommit=True) as database:
        database.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        database.execute("CREATE DATABASE small TABLESPACE small")
        yield place
        database.execute("DROP DATABASE small WITH (FORCE)")
        database.execute("DROP TABLESPACE small")
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_heals_once_there_is_room(small_place: PostgresPlace) -> None:
    filler = small_place.server.folder / "small" / "filler"
    with closing(small_place.open()) as store:
        store.commit([submitted()])
        filler.write_bytes(b"x" * (8 * 2**20))
        with pytest.raises(OSError, match=r"cannot be reached or written now: .*No space left on device"):
            fill(store)
        kept = commits_in(store)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                store.commit(commit_of(kept + 1, rows=20_000))
            assert commits_in(store) == kept
        filler.unlink()
        for number in range(kept + 1, kept + 20):
            store.commit(commit_of(number))
        assert commits_in(store) == kept + 19


# Several servers


def test_two_servers_that_start_at_once_make_the_database_once(place: PostgresPlace) -> None:
    wrong: list[BaseException] = []

    def open_it() -> None:
        try:
            place.open().close()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert place.asked("SELECT * FROM eligo_schema") == [(version,) for version in range(1, LAST + 1)]


def test_a_workflow_that_another_holds_can_be_neither_taken_nor_written(place: PostgresPlace) -> None:
    with closing(place.open("http://a")) as a, closing(place.open("http://b")) as b:
        a.commit([submitted()])
        assert b.hold(WORKFLOW) is None
        assert b.holders() == {WORKFLOW: "http://a"}
        with pytest.raises(NotHeldError, match="another server holds w-1") as refused:
            b.commit([Changes(facts=[("n", "7")]), *commit_of(1)])
        assert refused.value.workflows == (WORKFLOW,)
        assert a.facts() == {"n": "0"}
        b.commit([Changes(facts=[("m", "1")])])
        a.let_go()
        assert b.holders() == {}
        assert b.hold(WORKFLOW) == 2
        b.commit(commit_of(1))
        with pytest.raises(NotHeldError):
            a.commit(commit_of(2))
        assert a.keep_holding(HELD) == set()
        assert b.keep_holding(HELD) == {WORKFLOW}


def test_whoever_comes_after_a_dead_server_at_its_address_takes_over_at_once(place: PostgresPlace) -> None:
    with closing(place.open("http://a")) as dead:
        dead.commit([submitted()])
        with closing(place.open("http://a")) as after:
            assert after.hold(WORKFLOW) == 2
            after.commit(commit_of(1))
            with pytest.raises(NotHeldError):
                dead.commit(commit_of(1))
            assert commits_in(after) == 1


def test_what_is_wrong_and_not_held_is_said_to_be_not_held(place: PostgresPlace) -> None:
    """The other server's rows have the numbers that this one would have given."""
    with closing(place.open("http://a")) as a, closing(place.open("http://b")) as b:
        a.commit([submitted()])
        a.keep_holding(0.0)
        assert b.hold(WORKFLOW) == 2
        b.commit(commit_of(1))
        with pytest.raises(NotHeldError):
            a.commit(commit_of(1))
        assert commits_in(b) == 1


SLEEPER = """
import sys
from eligo.errors import NotHeldError
from eligo.stores.service_sqlite import service_store
from store_writing import commit_of
store = service_store(sys.argv[1], "http://sleeper")
print(store.hold("w-1"), store.keep_holding(3.0), flush=True)
sys.stdin.readline()
try:
    store.commit(commit_of(1))
    print("kept", flush=True)
except NotHeldError as error:
    print(error, flush=True)
"""


def test_a_server_that_slept_beyond_its_hold_can_write_no_more(place: PostgresPlace) -> None:
    with closing(place.open()) as store:
        store.commit([submitted()])
        store.let_go()
        with program("-c", SLEEPER, place.where) as sleeper:
            assert sleeper.stdin is not None
            assert sleeper.stdout is not None
            assert sleeper.stdout.readline() == "2 {'w-1'}\n"
            sleeper.send_signal(signal.SIGSTOP)
            assert store.hold(WORKFLOW) is None
            time.sleep(3.2)
            taken = store.hold(WORKFLOW)
            store.commit(commit_of(1))
            sleeper.send_signal(signal.SIGCONT)
            sleeper.stdin.write("go\n")
            sleeper.stdin.flush()
            assert "another server holds w-1" in sleeper.stdout.readline()
        assert taken == 3
        assert commits_in(store) == 1


def test_nobody_holds_what_another_holds(place: PostgresPlace) -> None:
    """Servers that take, write, let go and oversleep at random: the numbers of leases have neither gaps nor repetitions."""
    names = [f"w-{i}" for i in range(3)]
    with closing(place.open("http://0")) as store:
        store.commit([submitted(name) for name in names])
        store.let_go()
    until, epochs, wrong = time.monotonic() + 6.0, list[tuple[str, int, str]](), list[BaseException]()

    def serve(number: int) -> None:
        rng = random.Random(number)
        with closing(place.open(f"http://{number}")) as store:
            while time.monotonic() < until:
                name = rng.choice(names)
                epoch = store.hold(name)
                if epoch is None:
                    time.sleep(0.002)
                    continue
                epochs.append((name, epoch, store.holder))
                store.keep_holding(rng.choice([0.01, 0.05, 5.0]))
                try:
                    for _ in range(rng.randrange(4)):
                        last = store.last_number(name)
                        time.sleep(rng.choice([0.0, 0.005, 0.02]))
                        store.commit([Changes(leases=[Lease(name, last + 1, epoch, 1, "c", "s", "k", last + 1, 0.0)])])
                except NotHeldError:
                    refused.append(name)
                if rng.random() < 0.7:
                    store.let_go()

    def guarded(number: int) -> None:
        try:
            serve(number)
        except BaseException as error:
            wrong.append(error)

    refused: list[str] = []
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len({(name, epoch) for name, epoch, _ in epochs}) == len(set(epochs))
    assert len(epochs) > 50
    assert refused
    with closing(place.open()) as store:
        for name in names:
            found = store.leases(name)
            assert [row.number for row in found] == list(range(1, len(found) + 1))
            assert [row.task for row in found] == sorted(row.task for row in found)


# Databases of before


def test_leases_and_outcomes_of_before_are_brought_up_to_date(place: PostgresPlace) -> None:
    out = [("w", number, number % 7, 1, "ann", "5e", "k", part, 1e9 + 0.1) for number, part in ((3, 0), (5, 0), (6, 1))]
    facts = ("accepted", None, 1, None, "d", '"\\ \n', 0)
    over = [n for n in range(600) if n not in {3, 5, 6}]
    ends = [("w", n, n % 7, 1, "ann", "5e", 1e9 + n / 3, 2e9, *facts) for n in over]
    with psycopg.connect(place.where) as old:
        old.execute("CREATE TABLE eligo_schema (version BIGINT NOT NULL)")
        for number, text in list(steps_after(STEPS, 0))[:2]:
            old.execute(text)
            old.execute("INSERT INTO eligo_schema VALUES (%s)", (number,))
        old.cursor().executemany(f"INSERT INTO lease VALUES ({', '.join(['%s'] * 9)})", out)
        old.cursor().executemany(f"INSERT INTO outcome VALUES ({', '.join(['%s'] * 15)})", ends)
    with closing(place.open()) as store:
        first = {3: 3, 5: 3, 6: 6}
        assert store.leases("w") == [Lease(*row[:7], first=first[row[1]], since=row[8]) for row in out]
        assert list(store.outcomes("w")) == [Attempt(*end) for end in ends]
        assert store.last_number("w") == 599
    assert place.asked("SELECT count(*) FROM outcome") == [(3,)]


def test_clients_of_before_are_held_by_nobody_and_have_no_tags(place: PostgresPlace) -> None:
    with psycopg.connect(place.where) as old:
        old.execute("CREATE TABLE eligo_schema (version BIGINT NOT NULL)")
        for number, text in list(steps_after(STEPS, 0))[:4]:
            old.execute(text)
            old.execute("INSERT INTO eligo_schema VALUES (%s)", (number,))
        old.execute("INSERT INTO client VALUES ('c-1', 'ann', 1, 2, 3, true, 4, 0, 0, 0, 5, 6, 7, 8, 9)")
    with closing(place.open()) as store:
        check_client_of_before(store)


# Names and programs


def test_a_store_by_name_tells_where_it_is_without_the_password(postgres: PostgresServer) -> None:
    with pytest.raises(InputError, match="cannot be used as the store of a server") as refused:
        service_store("postgresql://eligo:secret@127.0.0.1:1/nothing")
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="not the address of a PostgreSQL database"):
        service_store("postgresql://a/b?no=option")
    with closing(service_store(postgres.new_database())) as store:
        assert store.remark is None


def test_a_database_that_does_not_sync_is_remarked(place: PostgresPlace) -> None:
    place.server.stop(signal.SIGINT)
    place.server.start("fsync=off")
    try:
        with closing(place.open()) as store:
            assert "fsync is off" in str(store.remark)
    finally:
        place.server.stop(signal.SIGINT)
        place.server.start()


def test_a_backup_needs_pg_dump(place: PostgresPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(place.open()) as store:
        monkeypatch.setattr(shutil, "which", lambda name: None)
        with pytest.raises(InputError, match="pg_dump, which is not installed"):
            store.backup(tmp_path / "copy")


def test_what_nobody_holds_can_be_seen(place: PostgresPlace) -> None:
    with closing(place.open("http://a")) as one, closing(place.open("http://b")) as other:
        one.commit([submitted("w-1"), submitted("w-2"), submitted("w-3")])
        assert (one.unheld(), other.unheld()) == ([], [])
        one.commit([Changes(states=[("w-2", "done")])])
        assert one.keep_holding(60.0) == {"w-1", "w-3"}
        with closing(place.open("http://a")) as next_one:
            assert next_one.unheld() == ["w-1", "w-3"]
        one.let_go()
        assert (one.unheld(), other.unheld()) == (["w-1", "w-3"], ["w-1", "w-3"])
        assert other.hold("w-1") == 2
        assert (one.unheld(), other.unheld()) == (["w-3"], ["w-3"])
