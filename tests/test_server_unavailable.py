"""A workflow that cannot be restored keeps nobody else waiting: the server starts and says what is wrong with it."""

import json
import shutil
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eligo.server.rules.document import MARK
from eligo.stores.service import Changes
from eligo.stores.service_sqlite import SqliteServiceStore
from eligo.work.attempts import Lease
from serving_cases import got, posted, serving, told, worked

FLOW = {"tasks": [{"name": name, "run": "true", "after": ["a"] if name == "b" else []} for name in "abc"]}
Damage = Callable[[sqlite3.Connection, str], object]


def _settings(name: str, value: object) -> Damage:
    def damage(store: sqlite3.Connection, workflow: str) -> None:
        ((text,),) = store.execute("SELECT settings FROM workflow WHERE id = ?", (workflow,)).fetchall()
        changed = json.dumps(json.loads(text) | {name: value})
        store.execute("UPDATE workflow SET settings = ? WHERE id = ?", (changed, workflow))

    return damage


def _bytes(column: str, change: Callable[[bytes], object]) -> Damage:
    def damage(store: sqlite3.Connection, workflow: str) -> None:
        ((data,),) = store.execute(f"SELECT {column} FROM workflow WHERE id = ?", (workflow,)).fetchall()
        store.execute(f"UPDATE workflow SET {column} = ? WHERE id = ?", (change(data), workflow))

    return damage


def _move(store: sqlite3.Connection, workflow: str) -> None:
    moves = (2**33 + 7).to_bytes(8, "little")
    store.execute("INSERT INTO journal (workflow, first, moves) VALUES (?, 0, ?)", (workflow, moves))


DAMAGE: dict[str, tuple[Damage, str]] = {
    "a policy that is a file": (_settings("policy", "/etc/passwd"), "policy"),
    "a policy that no longer exists": (_settings("policy", "quickest"), "policy"),
    "a setting that is not known": (_settings("colour", "red"), "colour"),
    "settings that are no JSON": (_bytes("settings", lambda data: "{"), "damaged"),
    "a document that was cut off": (_bytes("document", lambda data: data[:-5]), "not a stored workflow"),
    "a document with a byte changed": (
        _bytes("document", lambda data: data[: len(MARK) + 20] + b"\xff" + data[len(MARK) + 21 :]),
        "not a stored workflow",
    ),
    "a document of something else": (_bytes("document", lambda data: b"nothing"), "not a stored workflow"),
    "a plan that was cut off": (_bytes("plan", lambda data: data[:8]), "plan"),
    "a plan of one task": (_bytes("plan", lambda data: bytes(len(data))), "plan"),
    "a move that could not be made": (_move, "move"),
    "a lease of a task that is not there": (lambda store, workflow: None, "task number 99"),
    "a lease of a task below 0": (lambda store, workflow: None, "task number -1"),
}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a server that was stopped, and whose store was damaged in every way, each in its own workflow."""
    folder = tmp_path_factory.mktemp("damaged")
    with serving(folder) as (url, _):
        for what in (*DAMAGE, "whole"):
            status, answer = posted(f"{url}/v1/workflows?name={urllib.parse.quote(what)}", FLOW, what.replace(" ", "-"))
            assert status == 201, answer
        ids = {one["name"]: one["workflow"] for one in got(f"{url}/v1/workflows")["workflows"]}
    with closing(sqlite3.connect(folder / "s.db")) as store:
        for what, (damage, _) in DAMAGE.items():
            damage(store, ids[what])
        store.commit()
    with closing(SqliteServiceStore(str(folder / "s.db"))) as opened:
        for what, task in (("a lease of a task that is not there", 99), ("a lease of a task below 0", -1)):
            opened.commit([Changes(leases=[Lease(ids[what], 1, task, 1, "c-1", "s", "k", 1, 0.0)])])
    return folder


@pytest.fixture
def restarted(damaged: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The same server, started again on a copy of what was damaged."""
    shutil.copytree(damaged, tmp_path, dirs_exist_ok=True)
    with serving(tmp_path) as (url, _):
        yield url, tmp_path


def _by_name(url: str) -> dict[str, Any]:
    return {one["name"]: one for one in got(f"{url}/v1/workflows")["workflows"]}


def test_whatever_is_damaged_is_listed_with_its_reason_and_the_rest_is_served(restarted: tuple[str, Path]) -> None:
    url, folder = restarted
    listed = _by_name(url)
    for what, (_, reason) in DAMAGE.items():
        assert (what, listed[what]["state"]) == (what, "unavailable")
        assert reason in listed[what]["reason"], what
    assert listed["whole"]["state"] == "running"
    worked(folder, url)
    assert _by_name(url)["whole"]["state"] == "done"


def test_the_operator_reads_the_reason_in_one_line(restarted: tuple[str, Path]) -> None:
    url, folder = restarted
    workflow = _by_name(url)["a policy that no longer exists"]["workflow"]
    code, said, _ = told("status", f"{url}/{workflow}")
    assert code == 0
    assert "unavailable; " in said
    assert "quickest" in said
    lines = [line for line in (folder / "server.err").read_text().splitlines() if workflow in line]
    assert len(lines) == 1
    assert "quickest" in lines[0]


def test_what_is_unavailable_can_be_cancelled_and_stays_so(restarted: tuple[str, Path]) -> None:
    url, folder = restarted
    workflow = _by_name(url)["a document of something else"]["workflow"]
    assert posted(f"{url}/v1/workflows/{workflow}/retry", {"tasks": None}, "r")[0] == 409
    assert told("cancel", f"{url}/{workflow}")[0] == 0
    assert got(f"{url}/v1/workflows/{workflow}")["state"] == "cancelled"
    with closing(sqlite3.connect(folder / "s.db")) as store:
        ((state, document),) = store.execute("SELECT state, document FROM workflow WHERE id = ?", (workflow,))
    assert (state, document) == ("cancelled", b"nothing")


def test_nothing_that_is_kept_of_it_changes_and_the_next_start_tries_again(damaged: Path, tmp_path: Path) -> None:
    shutil.copytree(damaged, tmp_path, dirs_exist_ok=True)
    rows = "SELECT id, settings, state, document, plan FROM workflow WHERE name != 'whole' ORDER BY id"
    with closing(sqlite3.connect(tmp_path / "s.db")) as store:
        before = store.execute(rows).fetchall()
    with serving(tmp_path) as (url, _):
        workflow = _by_name(url)["a policy that no longer exists"]["workflow"]
    with closing(sqlite3.connect(tmp_path / "s.db")) as store:
        assert store.execute(rows).fetchall() == before
        _settings("policy", "fifo")(store, workflow)
        store.commit()
    with serving(tmp_path) as (url, _):
        assert got(f"{url}/v1/workflows/{workflow}")["state"] == "running"


HOSTILE = ["", "x" * 200, "'; DROP TABLE workflow; --", "../../etc", "\u202e\u0130\ufdfa", "%00", "null", "\U0001f4a9"]


def test_a_server_starts_whatever_strange_requests_it_took(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, _):
        for number, name in enumerate(HOSTILE):
            seconds = (1e308, 1e300, 5e-324)[number % 3]
            odd = {"name": name or "a", "run": name or "true", "seconds": seconds, "cores": 5e-324, "memory": 2**62}
            flow = {"tasks": [odd | {"priority": -(2**62)}, {"name": "last", "run": "true", "category": name}]}
            for policy in ("finish", "critical-path-seconds"):
                where = f"{url}/v1/workflows?name={urllib.parse.quote(name)}&policy={policy}&share=1e-300&timeout=1e300"
                posted(where, flow, f"w-{number}-{policy}")
            for cores in (5e-324, 1.7e308, -0.0, 1e-9):
                status, client = posted(
                    f"{url}/v1/clients", {"name": name, "cores": cores}, f"c-{number}-{hash(cores)}"
                )
                if status == 201:
                    ask = {"client": client["client"], "cores": cores, "memory": 1e15, "seconds": 1e-300}
                    posted(f"{url}/v1/request", ask | {"count": 1}, f"a-{number}", Eligo_Client=client["client"])
        before = _by_id(url)
    assert before
    with serving(tmp_path) as (url, _):
        assert {id: one["state"] for id, one in _by_id(url).items()} == {id: one["state"] for id, one in before.items()}


def _by_id(url: str) -> dict[str, Any]:
    return {one["workflow"]: one for one in got(f"{url}/v1/workflows")["workflows"]}
