"""Arcs that files make in our own format: whoever reads what another task writes comes after it."""

import json
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.errors import EligoError
from eligo.formats import generate, parse, read
from eligo.workflow import Task, Workflow
from running_cases import lines, ran, written

DATA = Path(__file__).parents[2] / "shared" / "data" / "wfinstances"
PAIR = [{"name": "use", "inputs": ["x"]}, {"name": "make", "outputs": ["x"]}]


def parsed(tasks: list[dict[str, Any]], **top: Any) -> Workflow:
    """The workflow of such tasks."""
    return parse(json.dumps({**top, "tasks": tasks}), "json")


def test_a_reader_comes_after_the_writer() -> None:
    assert list(parsed(PAIR).dag.arcs()) == [("make", "use")]
    assert list(parse("tasks:\n- {name: use, inputs: [x]}\n- {name: make, outputs: [x]}", "yaml").dag.arcs()) == [
        ("make", "use")
    ]


def test_an_arc_that_after_gives_too_is_taken_once() -> None:
    flow = parsed([{**PAIR[0], "after": ["make"]}, PAIR[1], {"name": "last", "after": ["use"], "inputs": ["x"]}])
    assert sorted(flow.dag.arcs()) == [("make", "last"), ("make", "use"), ("use", "last")]
    assert flow.dag.duplicates == 0


def test_a_task_that_reads_what_it_writes_comes_after_nobody_for_that() -> None:
    flow = parsed([{"name": "append", "inputs": ["log"], "outputs": ["log"]}, {"name": "show", "inputs": ["log"]}])
    assert list(flow.dag.arcs()) == [("append", "show")]


def test_two_names_of_one_file_are_seen_as_such() -> None:
    assert list(parsed([{"name": "use", "inputs": ["d/../x"]}, {"name": "make", "outputs": ["./x"]}]).dag.arcs()) == [
        ("make", "use")
    ]


def test_a_reader_does_not_start_with_the_writer(tmp_path: Path) -> None:
    tasks = [
        {"name": "use", "run": "cat x > y", "inputs": ["x"], "outputs": ["y"]},
        {"name": "make", "run": "sleep 0.3; echo made > x", "outputs": ["x"]},
    ]
    assert ran(written(tmp_path, tasks), "--retries", "0") == 0
    assert lines(tmp_path / "y") == ["made"]


def test_two_writers_of_a_file_are_refused_with_their_names_and_the_line() -> None:
    text = "tasks:\n- {name: a, outputs: [x]}\n- name: b\n  inputs: [y]\n  outputs: [x]\n"
    with pytest.raises(eligo.FormatError, match="line 3: tasks 'a' and 'b' both write 'x': list it in"):
        parse(text, "yaml")
    with pytest.raises(eligo.FormatError, match="both write 'x'"):
        parse(json.dumps({"tasks": [{"name": "a", "outputs": ["x"]}, {"name": "b", "outputs": ["x"]}]}), "json")
    assert not list(parse("arcs_from: after\n" + text, "yaml").dag.arcs())


def test_a_cycle_through_files_is_refused_with_the_files() -> None:
    text = "tasks:\n- {name: a, inputs: [y], outputs: [x]}\n- {name: b, inputs: [x], outputs: [y]}\n"
    with pytest.raises(EligoError) as told:
        parse(text, "yaml")
    assert "a cycle, so no order exists" in str(told.value)
    assert "'b' reads 'x', which 'a' writes" in str(told.value)
    assert "'a' reads 'y', which 'b' writes" in str(told.value)
    assert "line 3" in str(told.value)


def test_a_cycle_of_after_and_a_file_is_refused_too() -> None:
    with pytest.raises(EligoError, match="'b' reads 'x', which 'a' writes"):
        parsed([{"name": "a", "after": ["b"], "outputs": ["x"]}, {"name": "b", "inputs": ["x"]}])


@pytest.mark.parametrize("wrong", ["both", 7, ["after"]])
def test_what_arcs_from_says_is_checked(wrong: object) -> None:
    with pytest.raises(eligo.FormatError, match=r'"arcs_from" must be "after" or "files", got .*'):
        parsed(PAIR, arcs_from=wrong)


def test_arcs_from_has_no_meaning_without_tasks() -> None:
    with pytest.raises(eligo.FormatError, match='"arcs_from" needs "tasks"'):
        parse('{"arcs": [["a", "b"]], "arcs_from": "after"}', "json")


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize(
    "files",
    [
        {"a": ((), ("x",)), "b": (("x",), ()), "c": (("x",), ())},
        {"a": ((), ("x",)), "b": ((), ("x",)), "c": (("x",), ())},
        {"a": (("y",), ("x",)), "b": (("x",), ("y",)), "c": ((), ())},
    ],
)
def test_a_workflow_that_is_written_and_read_keeps_its_arcs(format: str, files: dict[str, Any]) -> None:
    """Also where its files would make others: workflows of other formats and of Python have the arcs that they have."""
    details = {name: Task(name=name, inputs=reads, outputs=writes) for name, (reads, writes) in files.items()}
    flow = Workflow(eligo.Dag.from_arcs([("a", "b")], ["a", "b", "c"]), details)
    again = parse(generate(flow, format), format)
    assert again.dag == flow.dag
    assert [again.task(name) for name in "abc"] == [flow.task(name) for name in "abc"]


def test_priorities_are_put_into_a_file_whose_arcs_are_of_files(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text("tasks: # mine\n- {name: use, inputs: [x]}\n- {name: make, outputs: [x]}\n", "utf-8")
    eligo.formats.write_priorities(read(path), ["make", "use"], None)
    assert path.read_text("utf-8") == (
        "tasks: # mine\n- {name: use, inputs: [x], priority: 1}\n- {name: make, outputs: [x], priority: 2}\n"
    )


@pytest.mark.skipif(not DATA.exists(), reason="the recorded workflows are not here")
@pytest.mark.parametrize("path", sorted(DATA.glob("*.json*")), ids=lambda path: path.name)
def test_recorded_workflows_come_back_from_our_format_as_they_are(path: Path) -> None:
    flow = read(path)
    text = generate(flow, "json")
    assert parse(text, "json").dag == flow.labelled().dag
    assert '"arcs_from"' not in text
