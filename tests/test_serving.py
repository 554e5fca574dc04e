"""The server and its clients as people use them: real processes, the command, files that travel."""

import json
import signal
import time
from pathlib import Path

import pytest

from client_server import certificate
from eligo.cli import run
from running_cases import written
from serving_cases import PATIENCE, dismissed, got, posted, serving, told, worked, working

CHAIN = [
    {"name": "make", "run": "sort given.txt > sorted.txt", "inputs": ["given.txt"], "outputs": ["sorted.txt"]},
    {"name": "head", "run": "head -n 1 sorted.txt > first.txt", "after": ["make"], "inputs": ["sorted.txt"],
     "outputs": ["first.txt"]},
    {"name": "tail", "run": "tail -n 1 sorted.txt > last.txt", "after": ["make"], "inputs": ["sorted.txt"],
     "outputs": ["last.txt"]},
    {"name": "both", "run": "cat first.txt last.txt > both.txt", "after": ["head", "tail"],
     "inputs": ["first.txt", "last.txt"], "outputs": ["both.txt"]},
]  # fmt: skip


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    (tmp_path / "given.txt").write_text("pear\napple\nfig\n")
    return written(tmp_path, CHAIN)


def nothing(count: int) -> list[dict[str, str]]:
    return [{"name": f"t{i}", "run": "true"} for i in range(count)]


def test_a_workflow_is_served_until_it_is_done(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path, str(flow), "--until-done") as (url, server):
        said = worked(tmp_path, url)
        assert server.wait(PATIENCE) == 0
    assert "4 tasks done" in said
    assert (tmp_path / "both.txt").read_text() == "apple\npear\n"  # what it made is beside its file
    assert (tmp_path / "both.txt").stat().st_mode == flow.stat().st_mode


def test_a_fat_task_keeps_its_inner_files_to_itself(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path, str(flow), "--until-done", "--json") as (url, server):
        worked(tmp_path, url, "ann", "--size", "4")
        assert server.stdout is not None
        document = json.loads(server.stdout.read())
    (workflow,) = document["workflows"]
    assert workflow["state"] == "done"
    assert workflow["counts"]["done"] == 4
    assert document["saved"] == sum(len(text) for text in ("apple\nfig\npear\n", "apple\n", "pear\n"))
    assert (tmp_path / "both.txt").read_text() == "apple\npear\n"
    assert not (tmp_path / "sorted.txt").exists()


def test_submit_prints_the_id_and_the_same_file_is_not_served_twice(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path) as (url, _):
        code, first, _ = told("submit", url, str(flow))
        assert code == 0
        assert told("submit", url, str(flow))[1] == first
        assert len(got(f"{url}/v1/workflows")["workflows"]) == 1
        worked(tmp_path, url)
        _, said, _ = told("status", f"{url}/{first.strip()}")
        assert "done" in said
        assert told("submit", url, str(flow), "--wait")[0] == 0
    assert (tmp_path / "both.txt").read_text() == "apple\npear\n"


def test_run_on_a_server_is_run_by_its_clients(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path) as (url, _):
        client = working(tmp_path, url, "ann")
        code, said, _ = told("run", str(flow), "--on", url, "--json")
        dismissed(client)
    document = json.loads(said)
    assert (code, document["tasks"], document["done"], document["failed"]) == (0, 4, 4, {})
    assert (tmp_path / "both.txt").read_text() == "apple\npear\n"


def test_a_server_keeps_a_limit_of_space_and_removes_what_no_task_needs(tmp_path: Path, flow: Path) -> None:
    flow.write_text(f"files: {{sorted.txt: 15, first.txt: 6, last.txt: 5}}\n{flow.read_text()}")
    with serving(tmp_path) as (url, _):
        code, _, said = told("submit", url, str(flow), "--clean", "--space", "20")
        assert code == 2
        assert "no order of the tasks fits in 20 B: every order needs at least 26 B" in said
        code, _, said = told("submit", url, str(flow), "--space", "26")
        assert (code, "submit it with --clean" in said) == (2, True)
        clients = [working(tmp_path, url, name) for name in ("ann", "bob")]
        assert told("submit", url, str(flow), "--clean", "--space", "26", "--wait")[0] == 0
        for client in clients:
            dismissed(client)
    assert {path.name for path in tmp_path.glob("*.txt")} == {"given.txt", "both.txt"}


def test_run_on_a_server_removes_files_if_it_is_asked_to(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path) as (url, _):
        client = working(tmp_path, url, "ann")
        assert told("run", str(flow), "--on", url, "--clean")[0] == 0
        dismissed(client)
    assert {path.name for path in tmp_path.glob("*.txt")} == {"given.txt", "both.txt"}


def test_the_workflows_of_a_server_have_its_limit_of_space(tmp_path: Path, flow: Path) -> None:
    code, _, said = told(
        "serve", str(flow), "--store", str(tmp_path / "s.db"), "--port", "0", "--clean", "--space", "1"
    )
    assert (code, "no sizes are known" in said) == (2, True)
    with serving(tmp_path, str(flow), "--until-done", "--clean") as (url, server):
        worked(tmp_path, url)
        assert server.wait(PATIENCE) == 0
    assert {path.name for path in tmp_path.glob("*.txt")} == {"given.txt", "both.txt"}


def test_files_among_the_values_of_a_command_are_sent_with_their_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a b.txt").write_text("pear\n")
    with serving(tmp_path) as (url, _):
        client = working(tmp_path, url, "ann")
        code, said, _ = told(
            "run", "cat {}", "--on", url, "--json", "--retries", "0", ":::", "a b.txt", "/dev/null", "away"
        )
        dismissed(client)
        assert (code, json.loads(said)["failed"]) == (1, {"away": "exit code 1"})
        assert told("log", f"{json.loads(said)['run']}", "a b.txt")[1] == "pear\n"


def test_failures_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    tasks: list[dict[str, object]] = [
        {"name": "good", "run": "true"},
        {"name": "bad", "run": "echo it broke >&2; exit 3"},
        {"name": "below", "run": "true", "after": ["bad"]},
    ]
    path = written(tmp_path, tasks)
    with serving(tmp_path) as (url, _):
        _, said, _ = told("submit", url, str(path), "--retries", "0")
        place = f"{url}/{said.strip()}"
        worked(tmp_path, url)
        status = json.loads(told("status", place, "--json")[1])
        assert status["state"] == "failed"
        assert (status["counts"]["done"], status["counts"]["failed"], status["counts"]["blocked"]) == (1, 1, 1)
        assert status["failures"] == [{"cause": "exit code 3", "count": 1, "tasks": ["bad"]}]
        assert "exit code 3" in told("why", place, "bad")[1]
        assert told("log", place, "bad", "--err")[1] == "it broke\n"
        assert posted(f"{url}/v1/workflows/{said.strip()}/retry", {}) == (200, {"count": 1})
        assert "ann" in told("clients", url)[1]


def test_what_was_done_stays_done_when_the_server_is_killed(tmp_path: Path) -> None:
    path = written(tmp_path, nothing(30))
    with serving(tmp_path, str(path)) as (url, server):
        worked(tmp_path, url, "ann", "--once")
        server.kill()
        server.wait()
    with serving(tmp_path, str(path), "--until-done", "--json") as (url, server):
        worked(tmp_path, url, "bob")
        assert server.stdout is not None
        document = json.loads(server.stdout.read())
    assert document["workflows"][0]["counts"]["done"] == 30
    assert document["repeated"] == 0


def test_a_client_that_dies_loses_only_what_it_had(tmp_path: Path) -> None:
    path = written(tmp_path, [{"name": f"t{i}", "run": "sleep 0.05"} for i in range(20)])
    with serving(tmp_path, str(path), "--until-done", "--lease", "1", "--json") as (url, server):
        dying = working(tmp_path, url, "dying")
        while not any(client["done"] for client in got(f"{url}/v1/clients")["clients"]):
            time.sleep(0.02)
        dying.kill()
        dying.communicate()
        client = working(tmp_path, url, "ann")
        assert server.stdout is not None
        document = json.loads(server.stdout.read())
        dismissed(client)
    assert document["workflows"][0]["counts"]["done"] == 20
    assert document["lost"] <= 1


def test_two_servers_on_one_file_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path):
        code, _, said = told("serve", "--store", str(tmp_path / "s.db"), "--port", "0")
    assert code == 2
    assert "another server is using this file" in said


def test_a_backup_of_a_server_at_work_can_be_served(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path, str(flow)) as (url, _):
        worked(tmp_path, url, "ann", "--once")
        code, _, _ = told("backup", str(tmp_path / "s.db"), str(tmp_path / "copy.db"))
        assert code == 0
        assert told("backup", str(tmp_path / "s.db"), str(tmp_path / "copy.db"))[0] == 2  # nothing is overwritten
    with serving(tmp_path, "--store", "copy.db", "--until-done") as (url, server):
        assert "done" in worked(tmp_path, url, "bob")
        assert server.wait(PATIENCE) == 0


def test_a_server_that_strangers_reach_needs_tokens_and_tls(tmp_path: Path) -> None:
    code, _, said = told("serve", "--host", "0.0.0.0", "--port", "0", "--store", str(tmp_path / "s.db"))
    assert code == 2
    assert "needs TLS: enable TLS with --cert FILE" in said
    place = ("--host", "0.0.0.0", "--port", "0", "--store", str(tmp_path / "s.db"))
    code, _, said = told("serve", *place, "--open", "--cert", "ca", "--key", "key")
    assert (code, "needs tokens: leave --open out" in said) == (2, True)
    code, said, _ = told("serve", "--check", *place)
    assert (code, "needs TLS" in said) == (1, True)
    code, said, _ = told("serve", "--check", *place, "--open", "--insecure")
    assert (code, "anyone may use this server" in said) == (1, True)


def test_clients_and_owners_come_by_tls(tmp_path: Path, flow: Path) -> None:
    """With tokens, files that travel, and a client that was told whose certificates to trust, and others that were not."""
    certificate(tmp_path)
    proof = ("--ca", str(tmp_path / "ca"))
    operator = ("--token-file", str(tmp_path / "s.token"))
    with serving(tmp_path, "--tokens", "--cert", "ca", "--key", "key") as (url, _):
        assert url.startswith("https://")
        code, said, told_why = told("submit", url, str(flow), *operator, *proof)
        assert (code, said[:2]) == (0, "w-"), told_why
        workflow = f"{url}/{said.strip()}"
        for words in (("status", url, *operator), ("work", url, "--folder", str(tmp_path / "bob"), *operator)):
            code, _, said = told(*words)
            assert (code, said.count("\n")) == (2, 1)
            assert "is not trusted" in said
        (tmp_path / "work.token").write_text(told("token", url, "pool", *operator, *proof)[1])
        words = ("--token-file", str(tmp_path / "work.token"), "--idle-exit", "4", *proof)
        assert "4 tasks done" in worked(tmp_path, url, "ann", *words)
        assert told("submit", url, str(flow), "--wait", *operator, *proof)[0] == 0
        assert (tmp_path / "both.txt").read_text() == "apple\npear\n"
        assert run(["report", workflow, "-o", str(tmp_path / "report.html"), *operator, *proof]) == 0
        plain = told("status", url.replace("https", "http"), *operator)
        assert (plain[0], plain[2].count("\n"), "Traceback" in plain[2]) == (2, 1, False)
    assert "Traceback" not in (tmp_path / "server.err").read_text()


def test_without_a_token_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, nothing(2))
    with serving(tmp_path, str(path)) as (url, _):
        operator = tmp_path / "s.token"
        assert operator.stat().st_mode & 0o077 == 0
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user's"))
        code, _, said = told("status", url)
        assert (code, said.count("\n"), "Authorization" in said) == (2, 1, False)
        assert "give a token with --token-file FILE or ELIGO_TOKEN_FILE" in said
        assert told("status", url, "--token-file", str(operator))[0] == 0
        (tmp_path / "work.token").write_text(told("token", url, "pool", "--token-file", str(operator))[1])
        assert told("status", url, "--token-file", str(tmp_path / "work.token"))[0] == 2  # it is good for work only
        assert "2 tasks done" in worked(tmp_path, url, "ann", "--token-file", str(tmp_path / "work.token"))


def test_only_what_a_trusted_owner_signed_is_run(tmp_path: Path) -> None:
    path = written(tmp_path, [{"name": "a", "run": "touch ran"}])
    assert told("key", str(tmp_path / "mine"))[0] == 0
    assert told("key", str(tmp_path / "mine"))[0] == 2  # a key is not written over
    assert told("key", str(tmp_path / "other"))[0] == 0
    with serving(tmp_path) as (url, _):
        signed = ("--sign", str(tmp_path / "mine"), "--sign-days", "1", "--name", "signed")
        told("submit", url, str(path), *signed, "--retries", "0")
        assert "1 tasks done" in worked(tmp_path, url, "ann", "--trust", str(tmp_path / "mine.pub"))
        told("submit", url, str(path), "--name", "unsigned", "--retries", "0")
        told("submit", url, str(path), "--sign", str(tmp_path / "other"), "--name", "wrong", "--retries", "0")
        assert "0 tasks done, 0 failed, 2 returned" in worked(
            tmp_path, url, "bob", "--trust", str(tmp_path / "mine.pub")
        )


@pytest.mark.parametrize(
    "words", [["work", "nowhere"], ["submit", "ftp://x", "flow.yaml"], ["cancel", "http://127.0.0.1:1"]]
)
def test_wrong_addresses_are_told_in_one_line(words: list[str], flow: Path) -> None:
    code, _, said = told(*[str(flow) if word == "flow.yaml" else word for word in words])
    assert code == 2
    assert said.startswith("eligo: ")
    assert said.count("\n") == 1


def test_a_missing_input_is_named(tmp_path: Path, flow: Path) -> None:
    (tmp_path / "given.txt").unlink()
    code, _, said = told("serve", str(flow), "--port", "0", "--store", str(tmp_path / "s.db"))
    assert code == 2
    assert "given.txt" in said


def test_the_same_call_again_makes_no_second_client(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, _):
        first = posted(f"{url}/v1/clients", {"name": "ann"}, "key")
        assert first[0] == 201
        assert posted(f"{url}/v1/clients", {"name": "ann"}, "key") == first
        assert posted(f"{url}/v1/clients", {"name": "ann"}, "other")[1] != first[1]
        assert len(got(f"{url}/v1/clients")["clients"]) == 2


def test_sigterm_ends_a_server_in_order(tmp_path: Path) -> None:
    path = written(tmp_path, nothing(3))
    with serving(tmp_path, str(path)) as (_, server):
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
        assert server.stdout is not None
        assert "3 ready" in server.stdout.read()


def test_what_the_user_has_is_never_overwritten_and_new_inputs_are_new_work(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path) as (url, _):
        client = working(tmp_path, url, "ann")
        assert told("run", str(flow), "--on", url)[0] == 0
        (tmp_path / "given.txt").write_text("zebra\nyak\n")
        assert told("run", str(flow), "--on", url)[0] == 0
        dismissed(client)
    assert (tmp_path / "given.txt").read_text() == "zebra\nyak\n"
    assert (tmp_path / "both.txt").read_text() == "yak\nzebra\n"


def test_a_name_that_cannot_be_kept_is_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, server):
        body = {"tasks": [{"name": "a", "run": "true"}]}
        assert posted(f"{url}/v1/workflows?name=a%00b", body)[0] == 422
        assert posted(f"{url}/v1/workflows?name=good", body)[0] == 201
        assert server.poll() is None


def test_a_client_that_was_approved_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, nothing(3))
    with serving(tmp_path, "--approve") as (url, _):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user's"))
        operator = ("--token-file", str(tmp_path / "s.token"))
        client = working(tmp_path, url, "ann")
        while not (found := json.loads(told("clients", url, *operator, "--json")[1])["clients"]):
            time.sleep(0.1)
        assert not found[0]["approved"]
        assert told("clients", url, "--approve", found[0]["client"], *operator)[0] == 0
        assert told("submit", url, str(path), "--wait", *operator)[0] == 0
        said = dismissed(client)
    assert "3 tasks done" in said


def test_signatures_are_there_before_anything_is_handed_out(tmp_path: Path) -> None:
    path = written(tmp_path, nothing(60))
    told("key", str(tmp_path / "mine"))
    with serving(tmp_path) as (url, _):
        client = working(tmp_path, url, "ann", "--trust", str(tmp_path / "mine.pub"))
        while not got(f"{url}/v1/clients")["clients"]:
            time.sleep(0.05)
        told("submit", url, str(path), "--sign", str(tmp_path / "mine"), "--retries", "0", "--wait")
        said = dismissed(client)
    assert "60 tasks done, 0 failed" in said


def test_owners_command_their_own_workflows_only(tmp_path: Path) -> None:
    path = written(tmp_path, nothing(2))
    with serving(tmp_path, "--tokens") as (url, _):
        operator = ("--token-file", str(tmp_path / "s.token"))
        for name in ("ann", "bob"):
            made = told("token", url, name, "--scope", "submit", *operator)[1]
            (tmp_path / f"{name}.token").write_text(made)
        ann, bob = (("--token-file", str(tmp_path / f"{name}.token")) for name in ("ann", "bob"))
        place = f"{url}/{told('submit', url, str(path), *ann)[1].strip()}"
        assert told("status", place, *ann)[0] == 0
        assert told("cancel", place, *bob)[0] == 2
        assert told("cancel", place, *ann)[0] == 0


def test_what_was_made_is_brought_by_the_next_server_too(tmp_path: Path, flow: Path) -> None:
    with serving(tmp_path, str(flow), "--until-done") as (url, server):
        worked(tmp_path, url)
        server.wait(PATIENCE)
    (tmp_path / "both.txt").unlink()
    with serving(tmp_path, str(flow), "--until-done") as (_, server):
        assert server.wait(PATIENCE) == 0
    assert (tmp_path / "both.txt").read_text() == "apple\npear\n"


@pytest.mark.parametrize(
    "words", [["work", "http://h:abc"], ["status", "http://h:99999"], ["work", "http://h", "--memory", "x"]]
)
def test_nothing_of_a_wrong_word_is_an_internal_error(words: list[str]) -> None:
    code, _, said = told(*words)
    assert code == 2
    assert "internal error" not in said


def test_a_file_whose_name_fits_on_no_line_is_submitted_under_another(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"name": "N" * 2**20, "tasks": nothing(1)}))
    with serving(tmp_path) as (url, _):
        code, _, why = told("submit", url, str(path))
        assert (code, why.count("\n"), "give another name" in why) == (2, 1, True)
        assert told("submit", url, str(path), "--name", "good")[0] == 0
