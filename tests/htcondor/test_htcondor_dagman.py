"""A whole workflow handed to DAGMan, in a real pool."""

import json
import shlex
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

import eligo
from eligo.cli import run as run_command_line
from eligo.errors import InputError
from eligo.running import Commands, RunFolder
from eligo.running.dagman import DagmanJob, Fate, run_dagman
from eligo.workflow import Workflow
from engine_contract import PARENTS, Bench, flow_of, lines, noted

pytest_plugins = ["condor_fixtures"]


def play(place: Path, flow: Workflow, workers: int = 2, stop: bool = False, retries: int = 1) -> dict[str, Fate]:
    """Run a workflow in a folder, and stop it once something of it runs, if asked to."""
    folder = RunFolder(place / "run")
    work = Commands(flow, str(place), folder.logs, (("ELIGO_RUN", folder.mark),))
    work.make_folders()
    order = tuple(eligo.priorities(flow, "ready"))
    until = time.monotonic() + 150

    def watch(happened: Mapping[str, int]) -> bool:
        assert time.monotonic() < until, happened
        return stop and bool(lines(place / "ran"))

    try:
        whole = DagmanJob(flow, folder, workers, order, work, retries, python="/usr/bin/python3")
        return {str(task): fate for task, fate in run_dagman(whole, watch).items()}
    finally:
        folder.close()


def test_dagman_keeps_the_order_and_words_are_as_they_are(bench: Bench) -> None:
    place = bench.folder("dagman")
    hostile = "$(JOB) $$(X) \"'\n%"
    parents = {"two words": [], "+": ["two words"], "lone": [], "ALL_NODES": ["+"], "CHILD": ["two words"]}
    flow = flow_of(
        parents, lambda name: ("/bin/sh", "-c", 'printf "%s\\n" "$1" >> ran; echo "$2"', "sh", name, hostile)
    )
    fates = play(place, flow, workers=1)
    assert {fate.state for fate in fates.values()} == {"done"}
    assert lines(place / "ran") == list(eligo.priorities(flow, "ready"))
    assert (place / "run/logs/000/lone.out").read_text() == f"{hostile}\n"


def test_failures_are_told_and_a_second_run_goes_on_from_the_rescue_file(bench: Bench) -> None:
    place = bench.folder("rescue")

    def command(name: str) -> str:
        return f"{noted(name)} && {{ test {shlex.quote(name)} != d || test -e go || exit 4; }}"

    flow = flow_of(PARENTS, command)
    fates = play(place, flow)
    assert (fates["d"].state, fates["d"].failure, fates["d"].code) == ("failed", "exit code 4", 4)
    assert {name for name, fate in fates.items() if fate.state == "blocked"} == set("fhjkl")
    assert {name for name, fate in fates.items() if fate.state == "done"} == set("abcegi")
    assert list((place / "run/dagman").glob("flow.dag.rescue*"))
    before = lines(place / "ran")
    assert sorted(before) == sorted("abcegidd")  # tried twice
    (place / "go").touch()
    fates = play(place, flow)
    assert {fate.state for fate in fates.values()} == {"done"}
    assert sorted(lines(place / "ran")[len(before) :]) == sorted("dfhjkl")
    assert {fate.state for fate in play(place, flow).values()} == {"done"}


def test_what_goes_on_without_us_is_followed_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = bench.folder("followed")
    flow = flow_of({"a": [], "b": ["a"]}, lambda name: f"echo {name} >> ran; sleep 3")

    def leave(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr("eligo.running.dagman._follow", leave)
        with pytest.raises(InterruptedError):
            play(place, flow)
    fates = play(place, flow)
    assert {fate.state for fate in fates.values()} == {"done"}
    assert all(3 <= fate.seconds < 10 for fate in fates.values())
    assert lines(place / "ran") == ["a", "b"]


def test_dagman_is_stopped_and_goes_on(bench: Bench) -> None:
    place = bench.folder("stopped dag")
    flow = flow_of({"a": [], "b": ["a"]}, lambda name: f"echo {name} >> ran; test -e go || sleep 60")
    fates = play(place, flow, stop=True)
    assert {fate.state for fate in fates.values()} == {"pending"}
    (place / "go").touch()
    assert {fate.state for fate in play(place, flow).values()} == {"done"}
    changed = flow_of({"a": [], "b": ["a"]}, lambda name: f"echo {name} >> ran; test -e go || sleep {len(name)}")
    assert {fate.state for fate in play(place, changed).values()} == {"done"}
    assert lines(place / "ran") == ["a", "a", "b", "a", "b"]


def test_what_dagman_complains_of_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = bench.folder("refused dag")
    monkeypatch.setattr("eligo.running.dagman._lines", lambda _: ["NONSENSE\n"])
    with pytest.raises(InputError, match=r"DAGMan ran nothing: .*NONSENSE"):
        play(place, flow_of({"a": []}, lambda _: "true"))


def test_the_command_hands_a_workflow_to_dagman(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = bench.folder("command")
    monkeypatch.setattr("eligo.cli.run_text.DagmanJob", partial(DagmanJob, python="/usr/bin/python3"))
    flow = place / "flow.json"
    tasks = [{"name": "a", "run": "echo a >> ran"}, {"name": "b", "run": "exit 3", "after": ["a"]}]
    flow.write_text(json.dumps({"tasks": [*tasks, {"name": "c", "run": "true", "after": ["b"]}]}))
    words = ["run", str(flow), "--on", "htcondor-dagman", "--workers", "2", "--retries", "0", "--json"]
    assert run_command_line(words) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["tasks"], told["done"], told["failed"], told["blocked"]) == (3, 1, {"b": "exit code 3"}, ["c"])
    assert lines(place / "ran") == ["a"]
