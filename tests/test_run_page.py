"""The page beside a run: how it ends, and at which address it is."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from eligo.cli import run as eligo
from eligo.cli.run_page import port_of
from eligo.pages.html import is_built

pytestmark = pytest.mark.skipif(not is_built(), reason="the page is not built")
LONGEST = 60.0


def flow_in(folder: Path, seconds: float = 0.5) -> Path:
    path = folder / "flow.json"
    path.write_text(json.dumps({"tasks": [{"name": "a", "run": f"sleep {seconds}"}, {"name": "b", "run": "true"}]}))
    return path


@contextmanager
def process(folder: Path, *words: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "eligo", *map(str, words)]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as begun:  # fmt: skip
        try:
            yield begun
        finally:
            with suppress(ProcessLookupError):
                begun.kill()


def line_of(begun: "subprocess.Popen[str]", pattern: str) -> str:
    """The part of a line of standard error that a pattern names."""
    assert begun.stderr is not None
    for line in begun.stderr:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"nothing fits {pattern}")


def events_of(stream: Any) -> Iterator[tuple[str, Any]]:
    """The events of a stream as they arrive."""
    name = ""
    for line in stream:
        kind, _, rest = line.decode().strip().partition(": ")
        if kind == "event":
            name = rest
        elif kind == "data":
            yield name, json.loads(rest)


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_reader_gets_the_last_view_then_the_end_and_the_report(tmp_path: Path) -> None:
    with process(tmp_path, "run", flow_in(tmp_path, 2), "--page", "--workers", 1) as run:
        address = line_of(run, r"page: ([^\s#]+)")
        with urllib.request.urlopen(f"{address}v1/workflows/run/events", timeout=LONGEST) as stream:
            events = list[tuple[str, Any]]()
            for event in events_of(stream):
                events.append(event)
                if event[0] == "ended":
                    break
            assert events[-2][1]["headline"].startswith("All 2 tasks done in ")
            path = Path(events[-1][1]["report"])
            with urllib.request.urlopen(f"{address}report.html", timeout=LONGEST) as report:
                assert report.read() == path.read_bytes()
            assert path == tmp_path / "flow.json.run" / "report.html"
            assert run.poll() is None  # as long as the reader is there
        assert run.wait(LONGEST) == 0


def test_without_readers_the_run_ends_at_once(tmp_path: Path) -> None:
    with process(tmp_path, "run", flow_in(tmp_path), "--page") as run:
        assert run.wait(LONGEST) == 0
        assert run.stderr is not None
        assert "not informed" not in run.stderr.read()


def test_a_reader_that_does_not_leave_can_be_left(tmp_path: Path) -> None:
    with process(tmp_path, "run", flow_in(tmp_path, 2), "--page") as run:
        address = line_of(run, r"page: ([^\s#]+)")
        with urllib.request.urlopen(f"{address}v1/workflows/run/events", timeout=LONGEST):
            line_of(run, "(1 open tab not informed of the end yet)")
            run.send_signal(signal.SIGINT)
            assert run.wait(LONGEST) == 0


def test_a_page_that_is_held_stays_until_it_is_closed(tmp_path: Path) -> None:
    with process(tmp_path, "run", flow_in(tmp_path), "--page", "--hold") as run:
        address = line_of(run, r"page: ([^\s#]+)")
        line_of(run, "(its page stays)")
        with urllib.request.urlopen(f"{address}v1/workflows/run/view", timeout=LONGEST) as view:
            assert json.load(view)["state"] == "done"
        run.send_signal(signal.SIGINT)
        assert run.wait(LONGEST) == 0
    assert address == f"http://127.0.0.1:{port_of(tmp_path / 'flow.json.run')}/"


def test_the_page_survives_the_first_interrupt(tmp_path: Path) -> None:
    """A terminal sends it to all processes of the run."""
    with process(tmp_path, "run", flow_in(tmp_path, 3), "--page", "--workers", 1) as run:
        address = line_of(run, r"page: ([^\s#]+)")
        with urllib.request.urlopen(f"{address}v1/workflows/run/events", timeout=LONGEST) as stream:
            events = events_of(stream)
            next(event for name, event in events if name == "view" and event["counts"]["running"])
            run.send_signal(signal.SIGINT)
            names = list[str]()
            for name, event in events:
                names.append(name)
                if name == "ended":
                    break
                state = event["state"]
            assert state == "stopped"
        assert run.wait(LONGEST) == 130


def test_a_run_that_is_killed_takes_its_page_with_it(tmp_path: Path) -> None:
    with process(tmp_path, "run", flow_in(tmp_path, 60), "--page") as run:
        address = line_of(run, r"page: ([^\s#]+)")
        with urllib.request.urlopen(f"{address}v1/workflows/run/events", timeout=LONGEST) as stream:
            run.kill()
            names = [name for name, _ in events_of(stream)]
        assert "ended" in names

        def is_gone() -> bool:
            try:
                urllib.request.urlopen(address, timeout=5).close()
            except OSError:
                return True
            return False

        eventually(is_gone)


def test_a_rehearsal_has_a_page(tmp_path: Path) -> None:
    tasks = [{"name": name, "run": "true", "seconds": 10} for name in "abc"]
    (tmp_path / "flow.json").write_text(json.dumps({"tasks": tasks}))
    with process(tmp_path, "run", "flow.json", "--rehearse", 2, "--page", "--workers", 1) as run:
        address = line_of(run, r"page: ([^\s#]+)")
        with urllib.request.urlopen(f"{address}v1/workflows/run/events", timeout=LONGEST) as stream:
            for name, event in events_of(stream):
                if name == "ended":
                    break
                headline = event["headline"]
            assert headline.startswith("All 3 tasks done in")
        assert run.wait(LONGEST) == 0


def test_a_port_that_is_taken_is_replaced(tmp_path: Path) -> None:
    with process(tmp_path, "run", flow_in(tmp_path), "--page", "--hold") as run:
        address = line_of(run, r"page: ([^\s#]+)")
        line_of(run, "(its page stays)")
        command = [sys.executable, "-m", "eligo", "page", "flow.json.run"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as page:
            assert page.stdout is not None
            other = page.stdout.readline().split()[-1]
            assert other != address
            page.terminate()


def test_hold_needs_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert eligo(["run", str(flow_in(tmp_path)), "--hold"]) == 2
    assert "--hold has no effect without --page" in capsys.readouterr().err


def test_a_page_changes_its_run_only_with_the_token_of_its_link(tmp_path: Path) -> None:
    def post(verb: str, words: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"{address}v1/workflows/run/{verb}", json.dumps(words).encode(), headers, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=LONGEST) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    with process(tmp_path, "run", flow_in(tmp_path, 60), "--page", "--workers", 1) as run:
        link = line_of(run, r"page: (\S+)")
        address, _, token = link.partition("#token=")
        owner = {"Authorization": f"Bearer {token}"}
        for headers in ({}, {"Authorization": "Bearer x"}):
            for verb in ("pause", "cancel", "retry", "workers"):
                assert post(verb, {"workers": 2}, headers)[0] == 403
        assert post("workers", {"workers": 0}, owner)[0] == 400
        assert post("workers", {"workers": 2}, owner)[1]["before"] == 1
        assert post("pause", {}, owner)[1]["changed"]
        assert not post("pause", {}, owner)[1]["changed"]
        request = urllib.request.Request(f"{address}v1/workflows/run/view", headers=owner)
        with urllib.request.urlopen(request, timeout=LONGEST) as view:
            document = json.load(view)
        assert (document["state"], document["can"]["cancel"], document["workers"]) == ("held", True, 2)
        assert post("cancel", {}, owner)[0] == 200
        assert run.wait(LONGEST) == 130
