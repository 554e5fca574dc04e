"""The store of a run: what was kept stays kept, whoever dies."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from eligo.errors import InputError
from eligo.execution import Execution
from eligo.stores import Store, read_facts, read_run
from eligo.stores.run_store import GONE
from eligo.work.attempts import Attempt, answer_to

TASKS = {name: name.encode() for name in "abcd"}


def attempt(task: int, failure: str | None = None) -> Attempt:
    return Attempt("", 0, task, 1, "slot 1", "", 1.0, 2.5, answer_to(failure, False), failure, 0, 4096)


def test_moves_and_attempts_come_back_in_order(tmp_path: Path) -> None:
    game = Execution({"a": [], "b": ["a"], "c": ["a"], "d": ["b"]})
    with closing(Store(tmp_path / "run.db")) as store:
        store.begin(TASKS)
        for task in "abc":
            seen = len(game.journal)
            game.execute(task)
            store.add(game.since(seen), [attempt(game.dag.number(task))])
        store.flush()
        assert store.kept == len(game.journal)
    with closing(Store(tmp_path / "run.db")) as again:
        assert list(again.moves()) == list(game.journal)
        assert [(found.number, found.task) for found in read_run(again.path).attempts] == [(1, 0), (2, 1), (3, 2)]
        assert list(again.attempted()) == [0, 1, 2]
        assert again.kept == len(game.journal)
        assert Execution.replay(game.dag, again.moves()).executed == game.executed


def test_a_journal_begun_anew_keeps_the_attempts_under_the_new_numbers(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "run.db")) as store:
        store.begin(TASKS)
        store.add([], [attempt(number) for number in (0, 1, 2, 3)])
        store.flush()
        store.begin(dict.fromkeys(("new", "d", "b", "c"), b""), [5, 6])
        assert list(store.attempted()) == [GONE, 2, 3, 1]
        assert (list(store.moves()), store.kept, list(store.tasks())) == ([5, 6], 2, ["new", "d", "b", "c"])


def test_facts_are_kept_and_can_be_read_while_somebody_writes(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "run.db")) as store:
        store.remember(file="x.yaml", policy="fifo")
        store.remember(policy="finish")
        assert store.facts() == read_facts(tmp_path / "run.db") == {"file": "x.yaml", "policy": "finish"}


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "run.db")), pytest.raises(InputError, match="already executing"):
        Store(tmp_path / "run.db")
    Store(tmp_path / "run.db").close()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to be looked at as one " * 20)
    with pytest.raises(InputError, match="a run"):
        Store(tmp_path / "text.db")
    with pytest.raises(InputError, match="a run"):
        read_facts(tmp_path / "text.db")
    with pytest.raises(InputError, match="a run"):
        read_facts(tmp_path / "absent.db")
    with closing(sqlite3.connect(tmp_path / "newer.db")) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="newer version of eligo"):
        Store(tmp_path / "newer.db")


WRITER = """
import sys
from eligo.stores import Store
store = Store(sys.argv[1])
store.begin({"a": b""})
for number in range(10**9):
    store.add([number])
    if number % 50 == 0:
        store.flush()
        print(number, flush=True)
"""


def test_what_was_flushed_survives_the_death_of_the_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "run.db")
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        flushed = [int(writer.stdout.readline()) for _ in range(20)][-1]
        os.kill(writer.pid, signal.SIGKILL)
    with closing(Store(path)) as store:
        moves = list(store.moves())
        assert moves == list(range(len(moves)))
        assert len(moves) > flushed
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
