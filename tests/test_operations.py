"""What an operator does to a run while it is running: pause, resume, retry, release, cancel and workers."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.cli import run
from eligo.running.inbox import REQUEST, TAKEN, send
from running_cases import attempts, completed, lines, started, written

PATIENCE = 60.0
#: runs until the file go exists, and says that it has begun
GATED = "echo $ELIGO_TASK >> begun; while [ ! -e go ]; do sleep 0.02; done; echo $ELIGO_TASK >> ended"
Say = Callable[..., tuple[int, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """The exit code of a command, and what it prints, in one line."""

    def said(*words: str) -> tuple[int, str]:
        code = run(list(words))
        return code, " ".join("".join(capsys.readouterr()).split())

    return said


def wait_for(condition: Callable[[], Any]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def running(flow: Path, *options: str, begun: int = 1) -> Iterator["subprocess.Popen[str]"]:
    """A run in a process of its own, after this number of its tasks have begun; it is ended in any case."""
    process = started(flow, "--workers", "1", *options)
    try:
        wait_for(lambda: process.poll() is not None or len(lines(flow.parent / "begun")) >= begun)
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def gated(folder: Path, number: int, **details: Any) -> Path:
    return written(folder, [{"name": f"t{i}", "run": GATED, **details} for i in range(number)])


def test_a_paused_run_starts_nothing_until_it_is_resumed(tmp_path: Path, say: Say) -> None:
    flow = gated(tmp_path, 2)
    place = f"{flow}.run"
    with running(flow) as process:
        assert say("pause", str(flow)) == (0, f"{place} is paused: eligo resume continues it")
        assert say("pause", place) == (0, f"{place} is held: nothing changed")
        (tmp_path / "go").touch()
        wait_for((tmp_path / "ended").exists)
        wait_for(lambda: completed(Path(place)) == {"t0": 1})
        out = say("status", place)[1]
        assert "paused" in out
        assert f"eligo resume {place}" in out
        assert json.loads(say("status", place, "--json")[1])["state"] == "held"
        assert "paused" in say("top", place, "--once")[1]
        assert len(lines(tmp_path / "begun")) == 1
        changed = json.loads(say("resume", place, "--json")[1])
        assert {key: changed[key] for key in ("run", "done", "changed")} == {
            "run": place, "done": "resume", "changed": True,
        }  # fmt: skip
        assert process.wait(PATIENCE) == 0
    assert completed(Path(place)) == {"t0": 1, "t1": 1}


def test_a_run_starts_paused(tmp_path: Path, say: Say) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch made"}])
    with running(flow, "--pause", "--quiet", begun=0) as process:
        wait_for(lambda: "now paused" in say("status", str(flow))[1])
        assert not (tmp_path / "made").exists()
        assert say("resume", str(flow))[0] == 0
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "made").exists()


def test_a_cancelled_run_has_stopped_and_can_be_resumed(tmp_path: Path, say: Say) -> None:
    flow = gated(tmp_path, 3)
    with running(flow) as process:
        assert say("cancel", str(flow)) == (0, f"{flow}.run is cancelled")
        assert process.poll() == 130 or process.wait(PATIENCE) == 130
    assert not (tmp_path / "ended").exists()
    assert say("cancel", str(flow)) == (0, f"{flow}.run is not running: nothing changed")
    (tmp_path / "go").touch()
    assert say("run", "--resume", f"{flow}.run", "--quiet")[0] == 0
    assert completed(Path(f"{flow}.run")) == {"t0": 1, "t1": 1, "t2": 1}


def test_a_failed_task_and_what_it_blocks_are_tried_again(tmp_path: Path, say: Say) -> None:
    tasks: list[dict[str, Any]] = [
        {"name": "bad", "run": "test -e cured", "priority": 1}, {"name": "after", "run": "true", "after": ["bad"]},
        {"name": "gate", "run": GATED},
    ]  # fmt: skip
    flow = written(tmp_path, tasks)
    with running(flow, "--retries", "0") as process:
        wait_for(lambda: any(one["failure"] for one in attempts(Path(f"{flow}.run"))))
        (tmp_path / "cured").touch()
        assert say("retry", str(flow), "nobody")[0] == 2
        assert say("retry", str(flow), "bad") == (0, "1 failed task will be retried")
        assert say("retry", str(flow)) == (1, "0 failed tasks will be retried")
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 0
    assert completed(Path(f"{flow}.run")) == {"bad": 1, "after": 1, "gate": 1}


def test_a_released_task_starts_again_and_counts_no_failure(tmp_path: Path, say: Say) -> None:
    flow = gated(tmp_path, 1)
    with running(flow, "--retries", "0") as process:
        assert say("release", str(flow), "t0") == (0, "1 running task taken back")
        wait_for(lambda: len(lines(tmp_path / "begun")) == 2)
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 0
    assert lines(tmp_path / "ended") == ["t0"]


def test_the_number_of_workers_grows_and_shrinks(tmp_path: Path, say: Say) -> None:
    flow = gated(tmp_path, 6)
    place = f"{flow}.run"
    with running(flow) as process:
        assert say("workers", str(flow), "3") == (0, f"{place} runs at most 3 tasks at once (before: 1)")
        wait_for(lambda: len(lines(tmp_path / "begun")) == 3)
        assert json.loads(say("status", place, "--json")[1])["workers"] == 3
        assert json.loads(say("workers", place, "1", "--json")[1])["changed"]
        assert say("release", place, "t0", "t1", "t2")[0] == 0
        wait_for(lambda: len(lines(tmp_path / "begun")) == 4)
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 0
    spans = sorted((one["began"], one["ended"]) for one in attempts(Path(place)) if one["failure"] is None)
    assert all(ended <= began for (_, ended), (began, _) in pairwise(spans))  # one at a time


def test_workers_that_a_task_needs_are_kept(tmp_path: Path, say: Say) -> None:
    flow = gated(tmp_path, 1, cores=2)
    with running(flow, "--workers", "2"):
        code, out = say("workers", str(flow), "1")
        assert (code, "task 't0' needs 2 cores, but only 1 are available" in out) == (2, True)
        assert say("workers", str(flow), "0")[0] == 2


@pytest.mark.parametrize(
    ("verb", "words", "cure"),
    [
        ("pause", (), "eligo run --resume {} --pause"),
        ("resume", (), "eligo run --resume {}"),
        ("retry", (), "eligo run --resume {} retries"),
        ("release", ("a",), "none of its tasks is running"),
        ("workers", ("2",), "--workers to eligo run --resume {}"),
    ],
)
def test_a_run_that_is_not_running_is_left_alone(
    verb: str, words: tuple[str, ...], cure: str, tmp_path: Path, say: Say
) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert say("run", str(flow), "--quiet")[0] == 0
    code, out = say(verb, str(flow), *words)
    assert (code, out.startswith(f"eligo: {flow}.run: not running: ")) == (2, True)
    assert cure.format(f"{flow}.run") in out
    assert not any((Path(f"{flow}.run") / "inbox").glob("*"))


def test_requests_to_an_earlier_process_have_no_effect(tmp_path: Path, say: Say) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert say("run", str(flow), "--pause", "--except", "a")[0] == 2
    assert say("run", str(flow), "--quiet")[0] == 0
    for kind in (REQUEST, TAKEN):
        send(f"{flow}.run", '{"verb": "cancel"}', kind)
    assert say("run", str(flow), "--fresh", "--quiet")[0] == 0
    assert not os.listdir(f"{flow}.run/inbox")


def test_a_run_of_functions_is_paused_and_resumed(tmp_path: Path, say: Say) -> None:
    begun, go, folder = threading.Event(), threading.Event(), str(tmp_path / "functions")

    def first() -> int:
        begun.set()
        assert go.wait(PATIENCE)
        return 1

    with ThreadPoolExecutor(1) as threads:
        graph = {"a": (first, []), "b": (lambda a: a + 1, ["a"])}
        result = threads.submit(eligo.run, graph, workers=1, folder=folder)
        assert begun.wait(PATIENCE)
        assert say("pause", folder)[0] == 0
        go.set()
        wait_for(lambda: json.loads(say("status", folder, "--json")[1])["done"] == 1)
        assert json.loads(say("status", folder, "--json")[1])["state"] == "held"
        assert say("resume", folder)[0] == 0
        assert result.result(PATIENCE).values == {"b": 2}


def test_a_server_has_no_number_of_workers(say: Say) -> None:
    code, out = say("workers", "http://127.0.0.1:9/w-1a", "3")
    assert (code, "a server has no number of workers" in out) == (2, True)


def test_an_unknown_id_asks_for_the_server(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELIGO_URL", raising=False)
    assert "give its URL/w-1a" in say("pause", "w-1a")[1]


def test_other_engines_keep_their_workers(tmp_path: Path, say: Say) -> None:
    pytest.importorskip("distributed")
    flow = gated(tmp_path, 1)
    with running(flow, "--on", "dask"):
        code, out = say("workers", str(flow), "2")
        assert (code, "engine dask cannot change its workers while it runs" in out) == (2, True)
        assert say("pause", str(flow))[0] == 0
        assert say("cancel", str(flow))[0] == 0
