"""What an operator does to a real server with the command: tokens that are found, and every verb."""

import json
import os
import sqlite3
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eligo.cli import run
from eligo.client.options import place_of, token_for
from eligo.client.owner import Owner, hash_files
from running_cases import COMMAND, written
from serving_cases import PATIENCE, got, posted, serving

Captured = pytest.CaptureFixture[str]
TWO: list[dict[str, Any]] = [{"name": "a", "run": "true"}, {"name": "b", "run": "true", "after": ["a"]}]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operated")


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    with serving(place) as (address, _):
        yield address


@pytest.fixture
def say(capsys: Captured) -> Any:
    """The exit code of a command, and its document or what it says."""

    def said(*words: str) -> tuple[int, Any]:
        code = run(list(words))
        out, err = capsys.readouterr()
        if "--json" not in words or code == 2:
            return code, out + err
        return code, {name: value for name, value in json.loads(out).items() if name != "schema"}

    return said


class HandClient:
    """A client that asks when it is told to, and says what it wants to."""

    def __init__(self, url: str, name: str) -> None:
        self.url, self.asked = url, 0
        self.words = posted(f"{url}/v1/clients", {"name": name}, f"enrol-{name}")[1]
        self.id = self.words["client"]

    def post(self, path: str, words: Any) -> dict[str, Any]:
        self.asked += 1
        code, answer = posted(
            f"{self.url}{path}", words, f"{self.id}-{self.asked}", Authorization=f"Bearer {self.words['token']}"
        )
        assert code == 200, answer
        return dict(answer)

    def ask(self, count: int = 4) -> list[dict[str, Any]]:
        grants = self.post("/v1/request", {"count": count})["grants"]
        return [task for grant in grants for task in grant["tasks"]]

    def deliver(self, task: dict[str, Any], outcome: str = "done") -> str:
        result = {"lease": task["lease"], "outcome": outcome, "code": 0 if outcome == "done" else 3}
        return str(self.post("/v1/deliver", {"results": [result]})["answers"][0])


def submitted(say: Any, url: str, folder: Path, name: str, tasks: list[dict[str, Any]], *words: str) -> str:
    path = written(folder, tasks, f"{name}.yaml")
    code, told = say("submit", url, str(path), "--json", *words)
    assert code == 0, told
    return str(told["workflow"])


def test_commands_of_the_same_user_find_the_token(
    url: str, place: Path, tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (place / "s.token").read_text().strip()
    note = Path(os.environ["XDG_STATE_HOME"], "eligo", "servers", place_of(url))
    assert note.stat().st_mode & 0o777 == 0o600
    assert note.parent.stat().st_mode & 0o777 == 0o700
    assert token not in note.read_text()
    assert (say("list", url)[0], token_for(url)) == (0, token)
    assert token_for(url.replace("127.0.0.1", "localhost")) is None  # where somebody else may listen
    note.chmod(0o644)
    assert token_for(url) is None
    note.chmod(0o600)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, told = say("list", url)
    assert (code, told.count("\n"), "Authorization" in told) == (2, 1, False)
    assert "--token-file FILE or ELIGO_TOKEN_FILE" in told
    monkeypatch.setenv("ELIGO_TOKEN_FILE", str(place / "s.token"))
    assert say("list", url)[0] == 0


def test_a_token_is_good_for_what_it_is_and_the_option_is_named(url: str, tmp_path: Path, say: Any) -> None:
    path = tmp_path / "read.token"
    path.write_text(say("token", url, "reader", "--scope", "read")[1])
    code, told = say("drain", url, "--token-file", str(path))
    assert (code, "needs a token with the scope admin (HTTP 403): give a token with --token-file FILE" in told) == (
        2,
        True,
    )
    assert say("list", url, "--token-file", str(path))[0] == 0


def test_a_server_at_a_name_is_called_by_its_number(tmp_path: Path, say: Any) -> None:
    """A name may lead to another address, where somebody else listens who would get the token."""
    with serving(tmp_path, "--host", "localhost") as (url, _):
        assert url.startswith("http://127.0.0.1:")
        assert say("list", url)[0] == 0


def test_no_token_goes_to_the_address_of_a_server_that_was_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as (address, server):
        assert token_for(address)
        server.kill()
        server.wait(PATIENCE)
        note = Path(os.environ["XDG_STATE_HOME"], "eligo", "servers", place_of(address))
        assert (note.exists(), token_for(address)) == (True, None)


def test_an_open_server_asks_for_no_token(tmp_path: Path, say: Any) -> None:
    with serving(tmp_path, "--open") as (address, _):
        assert token_for(address) is None
        assert got(f"{address}/v1/workflows", "") == {"workflows": [], "before": None}
        assert "page:" not in say("list", address)[1]
    assert run(["serve", "--open", "--tokens"]) == 2


def test_workflows_are_listed_newest_first_and_a_page_at_a_time(url: str, tmp_path: Path, say: Any) -> None:
    ids = [submitted(say, url, tmp_path, f"flow{i}", TWO) for i in range(5)]
    assert say("cancel", f"{url}/{ids[2]}")[0] == 0
    told = say("list", url, "--limit", "3", "--json")[1]
    assert [one["workflow"] for one in told["workflows"]] == ids[:1:-1]
    assert [one["name"] for one in told["workflows"]] == ["flow4", "flow3", "flow2"]  # after their files
    assert told["more"]
    page = got(f"{url}/v1/workflows?limit=2&before={ids[3]}")
    assert [one["workflow"] for one in page["workflows"]] == [ids[2], ids[1]]
    assert page["before"] == ids[1]
    everything = [one["workflow"] for one in say("list", url, "--limit", "0", "--json")[1]["workflows"]]
    assert everything[:5] == ids[::-1]
    assert everything == [one["workflow"] for one in got(f"{url}/v1/workflows")["workflows"]]
    cancelled = say("list", url, "--state", "cancelled", "--json")[1]["workflows"]
    assert [one["workflow"] for one in cancelled] == [ids[2]]
    for id in ids:
        assert say("cancel", f"{url}/{id}")[0] == 0


def test_a_paused_workflow_is_not_handed_out_until_it_is_resumed(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "pause", [{"name": "a", "run": "true"}, {"name": "b", "run": "true"}])
    client = HandClient(url, "pausing")
    (task,) = client.ask(1)
    assert say("pause", f"{url}/{id}", "--json") == (0, {"workflow": id, "done": "pause", "changed": True})
    assert client.ask() == []
    assert client.deliver(task) == "accepted"  # what runs counts
    assert got(f"{url}/v1/workflows/{id}")["state"] == "held"
    assert say("resume", f"{url}/{id}")[0] == 0
    (other,) = client.ask()
    assert client.deliver(other) == "accepted"
    assert got(f"{url}/v1/workflows/{id}")["state"] == "done"
    assert say("pause", f"{url}/{id}")[0] == 2


def test_a_paused_workflow_stays_paused_when_its_files_arrive(url: str, tmp_path: Path, say: Any) -> None:
    (tmp_path / "given.txt").write_text("pear\n")
    tasks = [{"name": "a", "run": "cat given.txt", "inputs": ["given.txt"]}]
    body = {"tasks": tasks}
    id = posted(f"{url}/v1/workflows?name=lacking", body, "lacking")[1]["workflow"]
    assert got(f"{url}/v1/workflows/{id}")["state"] == "paused"
    assert say("pause", f"{url}/{id}")[0] == 0
    assert say("resume", f"{url}/{id}")[0] == 0
    assert got(f"{url}/v1/workflows/{id}")["state"] == "paused"  # it still waits for its file
    assert say("pause", f"{url}/{id}")[0] == 0
    assert Owner(url).provide(id, hash_files(["given.txt"], tmp_path), tmp_path) == []
    assert got(f"{url}/v1/workflows/{id}")["state"] == "held"
    assert say("resume", f"{url}/{id}")[0] == 0
    assert got(f"{url}/v1/workflows/{id}")["state"] == "running"
    assert say("cancel", f"{url}/{id}")[0] == 0


def test_a_verb_that_has_nothing_to_change_succeeds_and_says_so(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "unchanged", [{"name": "a", "run": "true"}])
    assert say("resume", f"{url}/{id}") == (0, f"{id} is running: nothing changed\n")
    assert say("pause", f"{url}/{id}")[1] == f"{id} is paused: eligo resume continues it\n"
    assert say("pause", f"{url}/{id}") == (0, f"{id} is held: nothing changed\n")
    assert say("cancel", f"{url}/{id}")[1] == f"{id} is cancelled\n"
    assert say("cancel", f"{url}/{id}", "--json") == (0, {"workflow": id, "done": "cancel", "changed": False})


def test_what_is_done_is_not_cancelled(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "done", [{"name": "a", "run": "true"}])
    client = HandClient(url, "doing")
    assert client.deliver(client.ask()[0]) == "accepted"
    assert say("cancel", f"{url}/{id}") == (0, f"{id} is done: nothing changed\n")


def test_revoking_a_token_that_is_not_there_fails(url: str, say: Any) -> None:
    code, told = say("token", url, "pool", "--scope", "read", "--days", "2", "--json")
    assert (code, told | {"token": ""}) == (0, {"token": "", "name": "pool", "scopes": ["read"], "days": 2.0})
    assert say("token", url, "pool", "--revoke", "--json") == (0, {"name": "pool", "count": 1})
    assert say("token", url, "pool", "--revoke") == (1, "eligo: no valid token has the name pool\n")
    assert say("token", url, "pool", "--revoke", "--json") == (1, {"name": "pool", "count": 0})


def test_tokens_that_open_nothing_say_since_when_and_why(url: str, say: Any) -> None:
    assert say("token", url, "short", "--scope", "read", "--days", str(0.01 / 86_400))[0] == 0
    time.sleep(0.05)
    assert say("token", url, "gone", "--scope", "read")[0] == say("token", url, "gone", "--revoke")[0] == 0
    told = {one["name"]: one for one in say("token", url, "--list", "--json")[1]["tokens"]}
    today = time.strftime("%Y-%m-%d at ", time.gmtime())
    assert (told["operator"]["state"], told["operator"]["fault"]) == ("approved", None)
    assert told["gone"]["state"] == "revoked"
    assert told["gone"]["fault"].startswith(f"it was revoked on {today}")
    assert told["short"]["state"] == "expired"
    assert told["short"]["fault"].startswith(f"it expired on {today}")


def test_tables_are_cut_for_terminals_only(url: str, say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a-token-with-a-name-that-is-far-too-long-for-a-line-of-a-terminal-of-the-usual-width"
    assert say("token", url, name, "--scope", "read", "--scope", "submit")[0] == 0
    assert say("token", url, name, "--revoke")[0] == 0
    said = say("token", url, "--list")[1]
    assert "…" not in said
    (row,) = [line for line in said.splitlines() if name in line]
    assert " revoked " in row
    monkeypatch.setattr("eligo.cli.output.sys.stdout.isatty", lambda: True)
    assert "…" in say("token", url, "--list")[1]


def test_a_token_is_not_made_in_the_store_of_a_running_server(url: str, place: Path, say: Any) -> None:
    code, told = say("token", str(place / "s.db"), "more")
    assert url
    assert (code, "is in use by a server: give the server's URL, or stop it first" in " ".join(told.split())) == (
        2,
        True,
    )


def test_tags_are_given_with_either_spelling(url: str, say: Any) -> None:
    client = HandClient(url, "tagged")
    for option in ("--tag", "--tags"):
        code, told = say("clients", url, option, f"{client.id}={option[2:]}", "--json")
        assert (code, [one["tags"] for one in told["clients"] if one["client"] == client.id]) == (0, [[option[2:]]])
    assert "--tags" in say("clients", "--help")[1]


def test_a_token_is_made_only_in_a_store_that_is_there(tmp_path: Path, say: Any) -> None:
    code, told = say("token", str(tmp_path / "none.db"), "operator", "--scope", "admin")
    assert (code, "no such store" in told) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_why_names_what_keeps_a_task_from_running(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "obstacles", [{"name": "a", "run": "true"}])
    assert say("pause", f"{url}/{id}")[0] == 0
    assert say("drain", url)[0] == 0
    said = say("why", f"{url}/{id}", "a")[1]
    assert "a: ready.\nThe server is draining and hands out no tasks.\n" in said
    assert "The workflow is held (continue it with eligo resume)." in said
    assert say("drain", url, "--stop")[0] == say("cancel", f"{url}/{id}")[0] == 0


def test_why_names_missing_signatures_and_files(url: str, say: Any) -> None:
    body = {"tasks": [{"name": "a", "run": "cat given.txt", "inputs": ["given.txt"]}]}
    id = posted(f"{url}/v1/workflows?name=unsigned&signed=true", body, "unsigned")[1]["workflow"]
    said = say("why", f"{url}/{id}", "a")[1]
    assert "The owner's signature is missing for 1 task." in said
    assert "Input files are missing, for example 'given.txt'." in said
    assert say("cancel", f"{url}/{id}")[0] == 0


def test_clients_that_wait_and_clients_that_were_revoked_are_told_apart(tmp_path: Path, say: Any) -> None:
    with serving(tmp_path, "--approve") as (url, _):
        ids = [posted(f"{url}/v1/clients", {"name": name}, name, Authorization="")[1]["client"] for name in "ab"]
        assert say("clients", url, "--revoke", ids[0])[0] == 0
        known = {one["client"]: one["access"] for one in say("clients", url, "--json")[1]["clients"]}
        assert known == {ids[0]: "revoked", ids[1]: "waiting"}
        titles, *rows = [line.split() for line in say("clients", url)[1].splitlines()]
        assert {row[0]: row[titles.index("state") - 1] for row in rows} == {ids[0]: "revoked", ids[1]: "unapproved"}


@pytest.mark.parametrize("junk", ["this is no database\n" * 100, "", "CREATE TABLE other (x)"])
def test_a_check_refuses_a_store_that_no_server_made(tmp_path: Path, say: Any, junk: str) -> None:
    store = tmp_path / "s.db"
    if junk.startswith("CREATE"):
        with closing(sqlite3.connect(store)) as database:
            database.execute(junk)
    else:
        store.write_text(junk)
    code, said = say("serve", "--check", "--port", "0", "--store", str(store))
    assert (code, "s.db:" in said) == ((1, True) if junk else (0, False)), said


def test_nothing_but_the_log_is_written_where_it_goes_to_standard_error(tmp_path: Path) -> None:
    with serving(tmp_path, "--log", "-") as (url, _):
        got(f"{url}/health")
    lines = (tmp_path / "server.err").read_text().splitlines()
    assert {"server_started", "message"} <= {json.loads(line)["event"] for line in lines}


def test_failed_tasks_are_retried_and_running_ones_released(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "retry", [{"name": "a", "run": "true"}], "--retries", "0")
    client, other = HandClient(url, "failing"), HandClient(url, "other")
    assert say("retry", f"{url}/{id}") == (1, "0 failed tasks will be retried\n")
    assert client.deliver(client.ask()[0], "failed") == "failed"
    assert say("retry", f"{url}/{id}", "nobody", "--json")[0] == 2
    assert say("retry", f"{url}/{id}", "a", "--json") == (0, {"workflow": id, "count": 1})
    (task,) = other.ask()
    assert say("release", f"{url}/{id}", "a") == (0, "1 running task taken back\n")
    assert say("release", f"{url}/{id}", "a", "--json") == (1, {"workflow": id, "count": 0})
    assert [one["task"] for one in client.ask()] == [task["task"]]
    assert say("cancel", f"{url}/{id}", "--json") == (0, {"workflow": id, "done": "cancel", "changed": True})


def test_results_are_fetched_again_and_checked(url: str, tmp_path: Path, say: Any) -> None:
    (tmp_path / "given.txt").write_text("pear\nfig\n")
    tasks = [
        {
            "name": "a",
            "run": "mkdir -p out; sort given.txt > out/sorted.txt",
            "inputs": ["given.txt"],
            "outputs": ["out/sorted.txt"],
        }
    ]
    id = submitted(say, url, tmp_path, "results", tasks)
    assert run(["work", url, "--cores", "1", "--name", "maker", "--folder", str(tmp_path / "maker"), "--once"]) == 0
    target = tmp_path / "fetched"
    code, told = say("results", f"{url}/{id}", str(target), "--json")
    assert (code, told["state"], told["files"], told["fetched"]) == (0, "done", ["out/sorted.txt"], 1)
    assert (target / "out" / "sorted.txt").read_text() == "fig\npear\n"
    assert not (target / "given.txt").exists()
    assert "1 already there" in " ".join(say("results", f"{url}/{id}", str(target))[1].split())
    (target / "out" / "sorted.txt").write_text("mine")
    code, words = say("results", f"{url}/{id}", str(target))
    assert (code, "--force overwrites it" in words) == (2, True)
    assert say("results", f"{url}/{id}", str(target), "--force")[0] == 0
    assert (target / "out" / "sorted.txt").read_text() == "fig\npear\n"
    assert os.listdir(target) == ["out"]


def test_what_has_ended_is_purged_and_what_runs_is_not(url: str, place: Path, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "purge", TWO)
    client = HandClient(url, "purging")
    (task,) = client.ask()
    code, told = say("purge", f"{url}/{id}")
    assert (code, "has not ended (cancel it first)" in told) == (2, True)
    assert say("cancel", f"{url}/{id}")[0] == 0
    assert say("purge", f"{url}/{id}", "--json") == (0, {"workflow": id, "done": "purge", "changed": True})
    assert say("status", f"{url}/{id}")[0] == 2
    assert client.deliver(task) in {"unknown", "gone", "refused", "stale", "dropped", "late"}
    with closing(sqlite3.connect(place / "s.db")) as database:
        for table in ("journal", "lease", "outcome", "file", "signature", "retried"):
            rows = database.execute(f"SELECT count(*) FROM {table} WHERE workflow = ?", (id,)).fetchone()
            assert rows == (0,), table
        assert database.execute("SELECT count(*) FROM workflow WHERE id = ?", (id,)).fetchone() == (0,)
    again = submitted(say, url, tmp_path, "purge", TWO)
    assert again != id
    assert say("cancel", f"{url}/{again}")[0] == 0


def test_a_drained_server_hands_out_nothing_new(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "drain", [{"name": "a", "run": "true"}, {"name": "b", "run": "true"}])
    client = HandClient(url, "draining")
    (task,) = client.ask(1)
    assert say("drain", url, "--json")[1]["status"] == "draining"
    assert client.ask() == []
    assert client.deliver(task) == "accepted"
    assert "hands out tasks" in say("drain", url, "--stop")[1]
    assert len(client.ask()) == 1
    assert say("cancel", f"{url}/{id}")[0] == 0


def test_what_an_operator_holds_stays_so_after_a_restart(tmp_path: Path, say: Any) -> None:
    with serving(tmp_path) as (url, server):
        id = submitted(say, url, tmp_path, "kept", TWO)
        client = HandClient(url, "kept")
        told = say("clients", url, "--pause", client.id, "--tag", f"{client.id}=gpu,rack:3", "--json")[1]["clients"]
        assert [(one["held"], one["tags"]) for one in told] == [(True, ["gpu", "rack:3"])]
        assert client.ask() == []
        assert say("pause", f"{url}/{id}")[0] == 0
        assert say("clients", url, "--tag", client.id)[0] == 2
        server.kill()
        server.wait(PATIENCE)
    with serving(tmp_path) as (url, _):
        client.url = url
        (one,) = say("clients", url, "--json")[1]["clients"]
        assert (one["held"], one["tags"]) == (True, ["gpu", "rack:3"])
        assert got(f"{url}/v1/workflows/{id}")["state"] == "held"
        assert client.ask() == []
        assert say("resume", f"{url}/{id}")[0] == 0
        assert client.ask() == []
        assert "gpu rack:3" in say("clients", url, "--resume", client.id)[1]
        assert len(client.ask()) == 1


def began(url: str, path: Path, known: set[str]) -> tuple["subprocess.Popen[str]", str]:
    """`eligo run` on a server, and the workflow that it waits for, which was not there before."""
    process = subprocess.Popen([*COMMAND, "run", str(path), "--on", url, "-q"], stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + PATIENCE
    while not (new := {one["workflow"] for one in got(f"{url}/v1/workflows")["workflows"]} - known):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.05)
    return process, new.pop()


def test_running_a_file_again_after_its_workflow_was_cancelled(url: str, tmp_path: Path, say: Any) -> None:
    path = written(tmp_path, [{"name": "a", "run": "true"}], "again.yaml")
    known = {one["workflow"] for one in got(f"{url}/v1/workflows")["workflows"]}
    waiting, first = began(url, path, known)
    assert say("cancel", f"{url}/{first}")[0] == 0
    said, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, said.startswith(f"{url}/{first} was cancelled after ")) == (1, True), said
    waiting, second = began(url, path, known | {first})
    assert say("pause", f"{url}/{second}")[0] == 0
    code, told = say("run", str(path), "--on", url)
    assert (code, f"eligo resume {url}/{second}" in told) == (2, True)
    assert say("resume", f"{url}/{second}")[0] == 0
    assert run(["work", url, "--cores", "1", "--folder", str(tmp_path / "again"), "--once"]) == 0
    waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 0
    assert say("run", str(path), "--on", url)[0] == 0  # it is done: nothing runs again


def test_a_workflow_that_failed_is_tried_again_by_the_same_command(url: str, tmp_path: Path, say: Any) -> None:
    path = written(tmp_path, [{"name": "a", "run": f"test -e {tmp_path}/mended"}], "broken.yaml")
    words = ["work", url, "--cores", "1", "--folder", str(tmp_path / "mender"), "--once"]
    told = []
    for expected in (1, 0):
        client = threading.Thread(target=run, args=(words,))
        client.start()
        code, said = say("run", str(path), "--on", url, "--retries", "0")
        client.join(PATIENCE)
        told.append(said)
        assert code == expected, said
        (tmp_path / "mended").touch()
    assert "1 failed task will be retried" not in told[0]
    assert "1 failed task will be retried" in told[1]


def test_submitting_what_failed_says_how_it_is_tried_again(url: str, tmp_path: Path, say: Any) -> None:
    id = submitted(say, url, tmp_path, "sad", [{"name": "a", "run": "true"}], "--retries", "0")
    client = HandClient(url, "saddening")
    client.deliver(client.ask()[0], "failed")
    assert got(f"{url}/v1/workflows/{id}")["state"] == "failed"
    code, told = say("submit", url, str(tmp_path / "sad.yaml"), "--retries", "0")
    assert (code, f"eligo retry {url}/{id}" in " ".join(told.split())) == (0, True)
    assert say("purge", f"{url}/{id}")[0] == 0  # what failed has ended, too


def test_the_server_may_be_named_once(url: str, tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, told = say("list")
    assert (code, "ELIGO_URL" in told) == (2, True)
    monkeypatch.setenv("ELIGO_URL", url)
    path = written(tmp_path, TWO, "named.yaml")
    code, told = say("submit", str(path), "--json")
    assert code == 0, told
    id = told["workflow"]
    assert say("status", id, "--json")[1]["name"] == "named"
    assert say("list", "--json")[1]["workflows"][0]["workflow"] == id
    assert id in [one["workflow"] for one in say("status", "--json")[1]["workflows"]]
    assert say("why", id, "a", "--json")[0] == 0
    assert say("token", "--list", "--json")[0] == 0
    assert len(say("token", "pool", "--scope", "work")[1].strip()) > 30
    assert say("clients", "--json")[0] == 0
    assert say("cancel", id)[0] == 0


def test_a_post_needs_no_idempotency_key(url: str) -> None:
    headers = {"Authorization": f"Bearer {token_for(url)}", "Content-Type": "application/json"}
    told = []
    for _ in range(2):
        request = urllib.request.Request(
            f"{url}/v1/workflows?name=keyless", b'{"tasks": [{"name": "a", "run": "true"}]}', headers
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            told.append(json.loads(reply.read())["workflow"])
    assert told[0] != told[1]  # without a key every call counts
    for id in told:
        assert posted(f"{url}/v1/workflows/{id}/cancel", {}, id)[0] == 200


def test_the_link_to_the_page_has_the_token_behind_its_hash(
    url: str, place: Path, tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (place / "s.token").read_text().strip()
    assert say("page", url) == (0, f"{url}/#token={token}\n")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert say("page", f"{url}/w-1a2b", "--open")[0] == 0
    (address,) = opened
    assert (address.startswith("file://"), token in address) == (True, False)
    page = Path(address.removeprefix("file://"))
    assert page.stat().st_mode & 0o777 == 0o600
    assert f"{url}/#token={token}&amp;workflow=w-1a2b" in page.read_text()
    assert token not in (place / "server.err").read_text()


def test_a_link_to_the_page_without_a_token_comes_with_a_warning(
    url: str, say: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, told = say("page", url)
    assert (code, told.splitlines()[0]) == (0, f"{url}/")
    assert f"warning: no token for {url} was found" in " ".join(told.split())


def test_signatures_expire_after_a_time_that_is_some(url: str, tmp_path: Path, say: Any) -> None:
    path, key = str(written(tmp_path, TWO, "signed.yaml")), str(tmp_path / "owner")
    assert say("key", key)[0] == 0
    code, told = say("submit", url, path, "--sign-days", "3")
    assert (code, "without --sign" in told) == (2, True), told
    code, told = say("submit", url, path, "--sign", key, "--sign-days", "0")
    assert (code, "--sign-days must be more than 0" in told) == (2, True), told
    code, told = say("submit", url, path, "--sign", key, "--sign-days", "3", "--json")
    assert code == 0, told
    assert got(f"{url}/v1/workflows/{told['workflow']}")["state"] == "running"
    assert say("cancel", f"{url}/{told['workflow']}")[0] == 0
