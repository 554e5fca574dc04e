"""Whatever looks at a run looks at a server's workflow too, with the same options, and says the same."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eligo.cli import run
from running_cases import started
from serving_cases import dismissed, serving, told, worked, working

PATIENCE = 120.0
Captured = pytest.CaptureFixture[str]
#: long enough that tasks wait while others run, here and at a server
BROKEN: tuple[dict[str, Any], ...] = (
    {"name": "get", "run": "sleep 0.1; echo got it"},
    {
        "name": "fit_1",
        "run": "sleep 0.1; echo first; echo oops >&2; echo 'row 17 is bad' >&2; exit 3",
        "after": ["get"],
    },
    {"name": "fit_2", "run": "sleep 0.1; exit 4", "after": ["get"]},
    {
        "name": "flaky",
        "run": 'sleep 0.1; test "$ELIGO_ATTEMPT" != 1 || { echo not yet >&2; exit 5; }',
        "after": ["get"],
    },
    {"name": "join", "run": "true", "after": ["fit_1"]},
    {"name": "never", "run": "true", "after": ["join"]},
)
WISHES = ("--retries", "1")
#: what differs between a folder and a server: times, workers, and where things are
VARYING = (
    (r"\bPLACE/logs/\S*[^\s.,)]", "LOG"),
    (r"eligo log PLACE \w+ --attempt \d( --err)?", "LOG"),
    (r"\(eligo log PLACE \w+ --err\)", "(LOG)"),
    (r"eligo (run --resume|retry) PLACE", "ONWARD"),
    (r"(\d[\d.]* (ms|s|min|h)|now(?= \d))\b( 1\.00\b)?", "TIME"),
    (r"(?<=ended after TIME).*?(?=DDD)", " "),  # how much more of this line there is room for depends on the time
    (r"[\u2800-\u28ff ]*[\u2800-\u28ff][\u2800-\u28ff ]*", " "),  # the curve depends on when tasks were tried again
    (r"\b(seen|fifo) \d+\b", r"\1"),
    (r"\b(slot 1|ann)\b", "WORKER"),
    (r"paused for a[^…]*…", ""),  # a server leaves a client alone for a while, a run does not
)
TIMES = {"seconds", "began", "ended", "running", "after"}
#: what only a server has; what a folder and a server have each of their own
SERVERS = {
    "workflow",
    "owner",
    "made",
    "submitted",
    "lost",
    "repeated",
    "reassigned",
    "saved",
    "missing",
    "notes",
    "reason",
}
OWN = {"run", "engine", "workers", "worker", "client", "log", "out", "err", "left"}


class Places(NamedTuple):
    """A run's folder, and the same workflow on a server."""

    folder: str
    url: str


def flow_in(folder: Path, tasks: tuple[dict[str, Any], ...]) -> Path:
    path = folder / "flow.json"
    path.write_text(json.dumps({"name": "looked", "tasks": tasks}))
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """The same workflow in the same state: run here, and by the client of a server."""
    place = tmp_path_factory.mktemp("looking")
    path = flow_in(place, BROKEN)
    assert run(["run", str(path), *WISHES, "--workers", "1", "--quiet"]) == 1
    (place / "flow.json.run/report.html").unlink(missing_ok=True)
    with serving(place) as (url, _):
        _, said, _ = told("submit", url, str(path), *WISHES)
        worked(place, url, "ann")
        yield Places(f"{path}.run", f"{url}/{said.strip()}")


def both(places: Places, capsys: Captured, verb: str, *words: str) -> list[tuple[int, str, str]]:
    """What a verb says of the folder, and of the server: exit code, standard output, standard error."""
    capsys.readouterr()
    answers = []
    for place in places:
        code = run([verb, place, *words])
        said = capsys.readouterr()
        answers.append((code, said.out.replace(place, "PLACE"), said.err.replace(place, "PLACE")))
    return answers


def same(said: tuple[int, str, str]) -> tuple[int, str, str]:
    """What is said, without what differs by its nature."""
    code, out, err = said
    return code, plain(out), plain(err)


def plain(text: str) -> str:
    text = " ".join(text.split())
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text


@pytest.mark.parametrize(
    "words",
    [
        "status",
        *(f"why {task}" for task in ("get", "fit_1", "flaky", "join", "never")),
        "why fit_9",
        "log get",
        "log fit_1",
        "log fit_1 --err",
        "log fit_1 --err --attempt 1",
        "log fit_1 --attempt 7",
        "log flaky --err --attempt 1",
        "log get --err",
        "log fit_2",
        "log never",
        "top --once",
    ],
)
def test_a_folder_and_a_server_are_told_in_the_same_words(places: Places, words: str, capsys: Captured) -> None:
    folder, server = both(places, capsys, *words.split())
    assert same(folder) == same(server)


@pytest.mark.parametrize("words", ["status", "why fit_1", "why never", "why get"])
def test_a_folder_and_a_server_have_the_same_document(places: Places, words: str, capsys: Captured) -> None:
    folder, server = (json.loads(out) for _, out, _ in both(places, capsys, *words.split(), "--json"))
    assert server.keys() - SERVERS == folder.keys()
    assert _comparable(folder) == _comparable({key: server[key] for key in folder})


def _comparable(document: Any) -> Any:
    if isinstance(document, list):
        return [_comparable(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {key: _comparable(value) for key, value in document.items() if key not in TIMES | OWN}


def test_what_is_printed_of_a_failure_names_the_command_that_shows_all(places: Places, capsys: Captured) -> None:
    _, (_, out, _) = both(places, capsys, "status")
    assert "eligo log PLACE fit_1 --err" in " ".join(out.split())


def test_the_report_of_a_server_is_that_of_a_folder(places: Places, tmp_path: Path, capsys: Captured) -> None:
    documents = []
    for name, place in zip(("a", "b"), places, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("eligo.pages.html.asset", lambda name: b"/* built */")
            assert run(["report", place, "-o", str(tmp_path / name)]) == 0
        text = (tmp_path / name).read_text("utf-8")
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        assert found
        documents.append(json.loads(found[1]))
    folder, server = documents
    assert folder.keys() == server.keys()
    assert folder["view"].keys() == server["view"].keys()
    assert folder["view"]["counts"] == server["view"]["counts"]
    assert folder["details"] == server["details"]
    folders, servers = ([row[1:4] for row in one["table"]["rows"]] for one in documents)
    assert folders == servers
    assert all("The critical path has" in str(one["view"]["order"]) for one in documents)


# While it runs

GATED: tuple[dict[str, Any], ...] = (
    {"name": "get", "run": "true"},
    {"name": "long", "run": "echo so far; while [ ! -e GO ]; do sleep 0.05; done", "after": ["get"]},
    {"name": "short", "run": "true", "after": ["get"]},
    {"name": "last", "run": "true", "after": ["long"]},
)


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Places]:
    """The same workflow, with one worker each that is at the same task, until all has been looked at."""
    go = str(tmp_path / "go")
    path = flow_in(tmp_path, tuple(task | {"run": task["run"].replace("GO", go)} for task in GATED))
    with serving(tmp_path) as (url, _):
        _, said, _ = told("submit", url, str(path))
        places = Places(f"{path}.run", f"{url}/{said.strip()}")
        client = working(tmp_path, url, "ann")
        with started(path, "--workers", "1") as process:
            try:
                _wait_for(lambda: all(_running(place) == ["long"] for place in places))
                yield places
            finally:
                Path(go).touch()
                process.communicate(timeout=PATIENCE)
                dismissed(client)


def _running(place: str) -> list[str]:
    code, out, _ = told("status", place, "--json")
    return [] if code else [one["task"] for one in json.loads(out)["running"] if one["worker"]]


def _wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_what_runs_is_told_in_the_same_words(gated: Places, capsys: Captured) -> None:
    for words in ("status", "why get", "why long", "why short", "why last", "log short"):
        folder, server = both(gated, capsys, *words.split())
        assert same(folder) == same(server)


def test_an_option_for_servers_is_refused_for_a_folder(places: Places, capsys: Captured) -> None:
    for words in (["status"], ["why"], ["log"], ["report"]):
        task = ["get"] if words[0] in {"why", "log"} else []
        assert run([*words, places.folder, *task, "--ca", "x.pem"]) == 2
        assert "--ca has no effect with a run folder" in capsys.readouterr().err
