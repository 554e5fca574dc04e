"""Hooks: commands and webhooks at the start and end of a run, which know the facts and cannot fail the run."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import eligo
from eligo.additions import read_addition
from eligo.cli import run
from eligo.errors import FormatError, InputError, UnhonouredError
from eligo.formats import generate, lost, parse
from eligo.formats.fidelity import as_runnable

TELL = 'echo "$ELIGO_EVENT $ELIGO_STATUS $ELIGO_TASKS $ELIGO_DONE $ELIGO_FAILED $ELIGO_BLOCKED" >> told'
EVENTS = ("on_start", "on_success", "on_failure", "on_end")


def flow_with(folder: Path, hooks: dict[str, Any], command: str = "true") -> Path:
    path = folder / "flow.yaml"
    tasks = [{"name": "a", "run": command}, {"name": "b", "run": "true", "after": ["a"]}]
    path.write_text(yaml.safe_dump({"name": "small", "tasks": tasks, "hooks": hooks}))
    return path


def told(folder: Path) -> list[str]:
    return (folder / "told").read_text().splitlines()


@pytest.mark.parametrize(
    ("command", "code", "end"),
    [
        ("true", 0, ["on_success done 2 2 0 0", "on_end done 2 2 0 0"]),
        ("false", 1, ["on_failure failed 2 0 1 1", "on_end failed 2 0 1 1"]),
    ],
)
def test_hooks_are_called_with_the_facts(command: str, code: int, end: list[str], tmp_path: Path) -> None:
    flow = flow_with(tmp_path, dict.fromkeys(EVENTS, TELL), command)
    assert run(["run", str(flow), "--retries", "0", "--quiet"]) == code
    assert told(tmp_path) == ["on_start started 2 0 0 0", *end]


def test_options_replace_the_hooks_of_the_file_and_are_remembered(tmp_path: Path) -> None:
    flow = flow_with(tmp_path, {"on_end": "echo file >> told"})
    assert run(["run", str(flow), "--hook", "on_end=echo $ELIGO_RUN $ELIGO_WORKFLOW >> told", "--quiet"]) == 0
    assert run(["run", "--resume", f"{flow}.run", "--quiet"]) == 0  # nothing to do, so no hook is called
    assert run(["run", "--resume", f"{flow}.run", "--fresh", "--quiet"]) == 0
    assert told(tmp_path) == [f"{flow}.run small"] * 2


@pytest.mark.parametrize("hook", ["exit 7", "/no/such/program", "http://127.0.0.1:9/nobody", "http://[bad/"])
def test_a_failing_hook_warns_and_changes_nothing(hook: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flow = flow_with(tmp_path, {"on_start": hook})
    assert run(["run", str(flow), "--quiet", "--json"]) == 0
    out, err = capfd.readouterr()
    assert "eligo: warning: hook on_start failed: " in err
    assert json.loads(out)["done"] == 2


def test_a_hook_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("eligo.running.hooks.LONGEST", 0.2)
    assert run(["run", str(flow_with(tmp_path, {"on_end": "sleep 600"})), "--quiet"]) == 0
    assert "it took longer than 0.2 s" in capfd.readouterr().err


def test_what_a_hook_prints_is_no_part_of_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(flow_with(tmp_path, {"on_end": ["echo", "$HOME"]})), "--quiet", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["done"] == 2
    assert "$HOME" in err


@pytest.fixture
def posts() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a server, and what it was sent."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path == "/broken" else 204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_gets_the_facts_as_json(
    posts: tuple[str, list[dict[str, Any]]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, received = posts
    flow = flow_with(tmp_path, {"on_start": f"{url}/broken", "on_success": f"{url}/ok"})
    assert run(["run", str(flow), "--quiet"]) == 0
    assert "hook on_start failed: HTTPError: HTTP Error 500" in capfd.readouterr().err
    first, last = received
    assert (first["event"], first["status"], first["done"]) == ("on_start", "started", 0)
    seconds = last.pop("seconds")
    assert seconds > 0
    assert last == {
        "event": "on_success", "status": "done", "run": f"{flow}.run", "workflow": "small", "tasks": 2, "done": 2,
        "failed": 0, "blocked": 0,
    }  # fmt: skip


def test_python_calls_the_hooks_of_a_file(tmp_path: Path) -> None:
    assert eligo.run(str(flow_with(tmp_path, {"on_end": TELL}))).ok
    assert told(tmp_path) == ["on_end done 2 2 0 0"]


def test_nothing_is_called_by_a_dry_run_or_a_rehearsal(tmp_path: Path) -> None:
    flow = flow_with(tmp_path, dict.fromkeys(EVENTS, TELL))
    flow.write_text(flow.read_text().replace("name: a", "name: a\n  seconds: 1"))
    assert run(["run", str(flow), "--dry-run"]) == 0
    assert run(["run", str(flow), "--rehearse", "0.1"]) == 0
    assert not (tmp_path / "told").exists()


@pytest.mark.parametrize(("labels", "dispatched"), [(None, True), ((), False)])
def test_hooks_are_refused_where_nobody_calls_them(
    labels: tuple[str, ...] | None, dispatched: bool, tmp_path: Path
) -> None:
    flow = eligo.read(str(flow_with(tmp_path, {"on_end": TELL, "on_start": "http://10.0.0.1/"})))
    with pytest.raises(UnhonouredError, match=r"unsupported in a run: hooks \(on_end, on_start\)"):
        as_runnable(flow, labels=labels, dispatched=dispatched)
    assert not as_runnable(flow, "hooks", labels=labels, dispatched=dispatched).hooks


@pytest.mark.parametrize(
    ("hooks", "why"),
    [
        ('{"on_pause": "x"}', "unknown key 'on_pause' (known keys: on_start, on_success, on_failure, on_end)"),
        ('{"on_end": 3}', "\"on_end\" of 'hooks' must be a list of strings, got a number"),
        ('{"on_end": ""}', "must be a command or an address, got nothing"),
        ('"x"', '"hooks" must be an object'),
    ],
)
def test_wrong_hooks_are_refused(hooks: str, why: str) -> None:
    with pytest.raises(FormatError) as error:
        parse(f'{{"tasks": [{{"name": "a"}}], "hooks": {hooks}}}')
    assert why in str(error.value)


def test_a_wrong_option_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(flow_with(tmp_path, {})), "--hook", "end=true"]) == 2
    assert "--hook must be EVENT=COMMAND with EVENT from on_start, " in capsys.readouterr().err


def test_formats_keep_hooks_or_say_that_they_cannot() -> None:
    flow = parse('{"tasks": [{"name": "a", "run": "true"}], "hooks": {"on_end": ["echo", "x"]}}')
    assert parse(generate(flow, "yaml")).hooks == flow.hooks == {"on_end": ("echo", "x")}
    assert "hooks" in lost(flow, "dagman")
    assert "hooks" not in lost(flow, "yaml")


def test_added_tasks_bring_no_hooks() -> None:
    with pytest.raises(InputError, match='new tasks have no "hooks" of their own'):
        read_addition('{"tasks": [{"name": "x", "run": "true"}], "hooks": {"on_end": "true"}}')
