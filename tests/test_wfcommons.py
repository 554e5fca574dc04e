"""WfCommons: every version is read for what it says, and what is written is valid and read back."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo import formats
from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError
from eligo.formats import generate, wfcommons
from eligo.workflow import Task, Workflow

DATA = Path(__file__).parents[2] / "shared" / "data" / "wfinstances"


def parse(document: object) -> Workflow:
    return wfcommons.parse(json.dumps(document))


def document(version: str | None, **workflow: Any) -> dict[str, Any]:
    return {"name": "mine", "schemaVersion": version, "workflow": workflow}


def specified(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return document("1.5", specification={"tasks": list(tasks)}, **more)


# One workflow, a then b and c, as the versions say it
#
#     a
#    / \
#   b   c

OLD = document(
    "1.0",
    makespan=9,
    jobs=[
        {"name": "a", "type": "compute", "runtime": 1, "parents": [], "memory": 3.5, "arguments": ["-x"],
         "files": [{"link": "output", "name": "f", "size": 7}]},
        {"name": "b", "type": "compute", "runtime": 2.5, "parents": ["a"], "cores": 2,
         "files": [{"link": "input", "name": "f", "size": 7}, {"link": "output", "name": "g", "size": 0}]},
        {"name": "c", "type": "compute", "runtime": 0, "parents": ["a"], "files": []},
    ],
)  # fmt: skip
MIDDLE = document(
    "1.4",
    tasks=[
        {"name": "a_ID1", "id": "ID1", "category": "a", "children": ["b_ID2"], "runtimeInSeconds": 1,
         "memoryInBytes": 3500, "memory": 999, "files": [{"link": "Output", "name": "f", "sizeInBytes": 7}]},
        {"name": "b_ID2", "id": "ID2", "category": "b", "parents": ["ID1"], "runtimeInSeconds": 2.5, "cores": 2,
         "command": {"program": "b", "arguments": ["-v", "1"]},
         "files": [{"link": "input", "name": "f", "path": "", "sizeInBytes": 7}]},
        {"name": "c_ID3", "id": "ID3", "category": "c", "parents": ["a_ID1"], "runtime": 0},
    ],
)  # fmt: skip
NEW = specified(
    {"name": "a", "id": "a_1", "parents": [], "children": ["b_1", "b_2"], "outputFiles": ["f"]},
    {"name": "b", "id": "b_1", "parents": ["a_1"], "children": [], "inputFiles": ["f"]},
    {"name": "b", "id": "b_2", "parents": ["a_1"], "children": []},
    execution={
        "makespanInSeconds": 9,
        "executedAt": "2020-12-30T02:24:13Z",
        "tasks": [
            {
                "id": "b_1",
                "runtimeInSeconds": 2.5,
                "coreCount": 2,
                "command": {"program": "cat x | wc", "arguments": []},
            },
            {"id": "a_1", "runtimeInSeconds": 1, "memoryInBytes": 3500.4},
        ],
    },
)
NEW["workflow"]["specification"]["files"] = [{"id": "f", "sizeInBytes": 7}, {"id": "unused", "sizeInBytes": 1}]


def test_version_1_0() -> None:
    """Memory is in thousands of bytes; arguments without their program are no command."""
    flow = parse(OLD)
    assert flow.name == "mine"
    assert flow.origin is not None
    assert flow.origin.version == "1.0"
    assert flow.dag == Dag.from_arcs([("a", "b"), ("a", "c")], "abc")
    assert flow.task("a") == Task(name="a", seconds=1, memory=3500, outputs=("f",))
    assert flow.task("b") == Task(name="b", seconds=2.5, cores=2, inputs=("f",), outputs=("g",))
    assert flow.task("c") == Task(name="c", seconds=0)
    assert flow.file_sizes == {"f": 7, "g": 0}


def test_version_1_4() -> None:
    """References by name and by id, parents and children, taken together."""
    flow = parse(MIDDLE)
    assert list(flow.dag.arcs()) == [("a_ID1", "b_ID2"), ("a_ID1", "c_ID3")]
    assert flow.dag.duplicates == 0
    assert flow.task("a_ID1") == Task(name="a_ID1", seconds=1, memory=3500, outputs=("f",), category="a")
    assert flow.task("b_ID2").command == ("b", "-v", "1")
    assert flow.task("c_ID3") == Task(name="c_ID3", seconds=0, category="c")


def test_version_1_5() -> None:
    """Ids name the tasks, names are their categories; what ran may stand in any order."""
    flow = parse(NEW)
    assert list(flow.dag.arcs()) == [("a_1", "b_1"), ("a_1", "b_2")]
    assert flow.dag.duplicates == 0
    assert flow.task("a_1") == Task(name="a_1", seconds=1, memory=3500, outputs=("f",), category="a")
    assert flow.task("b_1") == Task(name="b_1", seconds=2.5, cores=2, inputs=("f",), category="b", command="cat x | wc")
    assert flow.task("b_2") == Task(name="b_2", category="b")
    assert flow.file_sizes == {"f": 7, "unused": 1}


def test_repeated_names_before_1_5_are_told_apart_by_id_and_arcs_come_from_files() -> None:
    """So are the first files of nf-core's runs: no parents, no children, and paths that make files differ.

    FASTQC_1   FASTQC_2
         \\     /
         MULTIQC_3
    """

    def file(link: str, path: str) -> dict[str, Any]:
        return {"link": link, "name": "out.html", "path": path, "sizeInBytes": 5}

    flow = parse(
        document(
            "1.4",
            tasks=[
                {"name": "FASTQC", "id": "1", "parents": [], "children": [], "files": [file("output", "/1/")]},
                {"name": "FASTQC", "id": "2", "parents": [], "children": [], "files": [file("output", "/2/")]},
                {"name": "MULTIQC", "id": "3", "parents": [], "children": [],
                 "files": [file("input", "/1/"), file("input", "/2/"), file("output", "/3/"), file("input", "/3/")]},
            ],
        )
    )  # fmt: skip
    assert list(flow.dag.arcs()) == [("FASTQC_1", "MULTIQC_3"), ("FASTQC_2", "MULTIQC_3")]
    assert flow.task("FASTQC_2") == Task(name="FASTQC_2", category="FASTQC", outputs=("/2/out.html",))


def test_arguments_that_are_no_strings_are_written_as_json() -> None:
    """WfCommons' own benchmarks have objects there."""
    run = {"id": "a", "command": {"program": "p", "arguments": ["x", 1, {"out": [2]}]}}
    flow = parse(specified({"id": "a"}, execution={"tasks": [run]}))
    assert flow.task("a").command == ("p", "x", "1", '{"out": [2]}')


REFUSED: list[tuple[type[InputError], Any, str]] = [
    (FormatError, document("2.0", tasks=[]), "unsupported WfFormat version 2.0 (supported: 1.0 to 1.6)"),
    (
        FormatError,
        {"workflow": {}},
        "no tasks in workflow.specification.tasks, or in workflow.tasks of old files",
    ),
    (FormatError, {"workflow": []}, '"workflow" must be an object, got a list'),
    (FormatError, {"workflow": {"jobs": {}}}, '"jobs" must be a list, got an object'),
    (FormatError, specified({"id": 1}), "the id of task 1 must be a string, got a number (put it in quotes)"),
    (FormatError, specified({}), "the id of task 1 is missing"),
    (
        FormatError,
        document("1.5", specification={"tasks": ["a"]}),
        'an item of "tasks" must be an object, got a string',
    ),
    (
        FormatError,
        specified({"id": "a", "parents": "b"}),
        "\"parents\" of 'a' must be a list of strings, got a string",
    ),
    (
        FormatError,
        specified({"id": "a", "children": [None]}),
        "an item of \"children\" of 'a' is missing",
    ),
    (UnknownTaskError, specified({"id": "a", "parents": ["b"]}), "there is no task named 'b'"),
    (
        FormatError,
        specified({"id": "1", "name": "a"}, {"id": "2", "name": "a"}, {"id": "3", "name": "b", "parents": ["a"]}),
        "several tasks are named 'a' (refer to one by its id)",
    ),
    (DuplicateTaskError, specified({"id": "a"}, {"id": "a"}), "duplicate task 'a'"),
    (DuplicateTaskError, document("1.0", jobs=[{"name": "a"}, {"name": "a"}]), "duplicate task 'a'"),
    (CycleError, specified({"id": "a", "parents": ["a"]}), "a task depends on itself: a -> a"),
    (UnknownTaskError, specified({"id": "a"}, execution={"tasks": [{"id": "b"}]}), "there is no task named 'b'"),
    (
        FormatError,
        specified({"id": "a"}, execution={"tasks": [{"id": "a"}, {"id": "a"}]}),
        "task 'a' is listed twice in the execution",
    ),
    (
        FormatError,
        specified({"id": "a"}, execution={"tasks": [{"id": "a", "runtimeInSeconds": "1"}]}),
        "\"runtime\" of 'a' must be a number, got a string",
    ),
    (
        InputError,
        specified({"id": "a"}, execution={"tasks": [{"id": "a", "runtimeInSeconds": -1}]}),
        "task 'a': seconds must be non-negative and finite, got -1.0",
    ),
    (
        FormatError,
        specified({"id": "a"}, execution={"tasks": [{"id": "a", "command": "ls"}]}),
        "the command of 'a' must be an object, got a string",
    ),
    (
        FormatError,
        document("1.4", tasks=[{"name": "a", "files": [{"name": "f", "link": "inout"}]}]),
        '"link" of file \'f\' must be "input" or "output", got \'inout\'',
    ),
    (
        FormatError,
        document("1.4", tasks=[{"name": "a", "files": [{"name": "f", "link": "input", "size": -1}]}]),
        "\"size\" of 'f' must be an integer number of bytes, or text such as 2G, got -1",
    ),
]


@pytest.mark.parametrize(("error", "wrong", "message"), REFUSED)
def test_what_is_wrong_is_refused(error: type[InputError], wrong: object, message: str) -> None:
    with pytest.raises(error) as caught:
        parse(wrong)
    assert str(caught.value).removeprefix("line 1: ") == message


# Writing


def test_version_1_5_is_written() -> None:
    """In order of appearance, and with the makespan of one worker."""
    expected = json.loads(json.dumps(NEW))
    second, first = expected["workflow"]["execution"]["tasks"]
    expected["workflow"]["execution"] = {
        "makespanInSeconds": 3.5,
        "executedAt": "1970-01-01T00:00:00Z",
        "tasks": [first | {"memoryInBytes": 3500}, second],
    }
    assert json.loads(generate(parse(NEW), "wfcommons")) == expected


def test_what_never_ran_has_no_execution() -> None:
    text = generate(Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", cores=2)}), "wfcommons")
    assert json.loads(text)["name"] == "workflow"
    assert "execution" not in text


task_names = st.text("abcXYZ019-_.#", min_size=1, max_size=6)
file_names = st.lists(st.text("ab/:.#-_0", min_size=1, max_size=6), min_size=1, max_size=3).map(tuple)
words = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)
details: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"seconds": st.floats(0, 1e9)},
    optional={
        "command": words | st.lists(words, min_size=2, max_size=4).map(tuple),
        "inputs": file_names,
        "outputs": file_names,
        "cores": st.integers(1, 64) | st.floats(1, 64),
        "memory": st.integers(0, 2**62),
        "category": st.text("abc", min_size=1),
    },
)


@given(data=st.data(), ordered=st.lists(task_names, min_size=1, max_size=7, unique=True))
def test_what_is_written_is_read_back(data: st.DataObject, ordered: list[str]) -> None:
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    arcs = data.draw(st.lists(st.sampled_from(pairs))) if pairs else []
    dag = Dag.from_arcs(arcs, data.draw(st.permutations(ordered)))
    tasks = {name: Task(name=name, **data.draw(details)) for name in ordered if data.draw(st.booleans())}
    tasks = {name: replace(task, category=None) if task.category == name else task for name, task in tasks.items()}
    flow = Workflow(
        dag, tasks, "mine", file_sizes=data.draw(st.dictionaries(st.text("ab/", min_size=1), st.integers(0, 9)))
    )
    assert replace(formats.parse(generate(flow, "wfcommons")), origin=None) == flow


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (Dag.from_arcs([]), "a WfCommons file must have at least one task, got an empty workflow"),
        (
            Dag.from_arcs([("a b", "c")]),
            "WfCommons cannot represent the task name 'a b': only letters, digits and -_.# are allowed",
        ),
        (
            Dag.from_arcs([("", "c")]),
            "WfCommons cannot represent the task name '': only letters, digits and -_.# are allowed",
        ),
        (
            Workflow(Dag.from_arcs([], "a"), {"a": Task(name="a", inputs=("my file",))}),
            "WfCommons cannot represent the file name 'my file': only letters, digits and -_./:# are allowed",
        ),
        (
            Workflow(Dag.from_arcs([], "a"), file_sizes={"é": 1}),
            "WfCommons cannot represent the file name 'é': only letters, digits and -_./:# are allowed",
        ),
    ],
)
def test_what_the_schema_does_not_allow_is_not_written(flow: Dag | Workflow, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        generate(flow, "wfcommons")
    assert str(caught.value).removeprefix("line 1: ") == message


def test_words_that_the_schema_does_not_allow_go_through_a_shell() -> None:
    def command(*words: str) -> object:
        flow = Workflow(Dag.from_arcs([], "a"), {"a": Task(name="a", seconds=1, command=words)})
        return formats.parse(generate(flow, "wfcommons")).task("a").command

    assert command("echo", "") == "echo ''"
    assert command("my program") == "'my program'"
    assert command("echo", "a b") == ("echo", "a b")


# Whatever the document, nothing but our own errors comes out

KEYS = [
    *("tasks", "jobs", "specification", "execution", "files", "name", "id", "category", "parents", "children"),
    *(
        "runtime",
        "runtimeInSeconds",
        "memory",
        "memoryInBytes",
        "cores",
        "coreCount",
        "command",
        "program",
        "arguments",
    ),
    *("inputFiles", "outputFiles", "link", "path", "size", "sizeInBytes"),
]
keys = st.sampled_from(KEYS)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["a", "b", "a_1", "input"])
)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=4), max_leaves=16)


def accepts_or_refuses(wrong: object) -> None:
    """Any other exception than an InputError of one line fails the test."""
    message = ""
    try:
        parse(wrong)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


@given(workflow=values)
def test_any_workflow(workflow: object) -> None:
    accepts_or_refuses({"workflow": workflow})


@pytest.mark.parametrize("good", [OLD, MIDDLE, NEW], ids=["1.0", "1.4", "1.5"])
@given(data=st.data())
def test_any_change_to_a_good_workflow(good: dict[str, Any], data: st.DataObject) -> None:
    value = json.loads(json.dumps(good))
    place = value
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    place[key] = data.draw(values)
    accepts_or_refuses(value)


# Real workflows, where they are at hand


def indexed() -> list[list[str]]:
    """The rows of INDEX.md: app, file, kind, schema, tasks, arcs, depth, width, sources, sinks, max in, max out, ..."""
    index = DATA / "INDEX.md"
    lines = index.read_text("utf-8").splitlines() if index.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if ".json" in line]
    return [row for row in rows if len(row) == 15 and re.fullmatch(r"\d+", row[4])]


ROWS = indexed()
#: INDEX.md counts no runtimes in this file; each of its 176 tasks has a runtimeInSeconds.
CORRECTED = {"soykb-chameleon-20fastq-10ch-001.schema1.4.json.gz": 176}

needs_data = pytest.mark.skipif(not ROWS, reason=f"the sample of WfInstances is not in {DATA}")


@needs_data
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_real_workflows_have_the_counts_of_the_index(row: list[str]) -> None:
    flow = formats.read(DATA / row[1])
    dag = flow.dag
    timed = sum(task.seconds is not None for task in flow.details.values())
    assert flow.origin is not None
    assert [flow.origin.format, flow.origin.version] == ["wfcommons", row[3]]
    assert [len(dag), dag.arc_count, dag.depth] == [int(cell) for cell in row[4:7]]
    assert [max(dag.level_sizes), len(dag.sources), len(dag.sinks)] == [int(cell) for cell in row[7:10]]
    assert [max(dag.indegree), max(dag.outdegree)] == [int(cell) for cell in row[10:12]]
    assert timed == CORRECTED.get(row[1], int(row[13]))


@needs_data
@pytest.mark.parametrize("row", [row for row in ROWS if int(row[4]) < 1000], ids=lambda row: row[1])
@pytest.mark.parametrize("format", ["wfcommons", "json", "yaml"])
def test_real_workflows_survive_every_format(row: list[str], format: str) -> None:
    flow = replace(formats.read(DATA / row[1]), origin=None)
    assert replace(formats.parse(generate(flow, format), format), origin=None) == flow
    assert formats.parse(generate(flow, "arcs"), "arcs").dag == flow.dag


@needs_data
def test_a_real_task_with_all_that_is_known() -> None:
    flow = formats.read(DATA / "blast-chameleon-small-001.json")
    task = flow.task("split_fasta_ID000001")
    assert flow.name == "makeflow-blast-small"
    assert task.command == ("split_fasta", "./split_fasta", "5", "small.fasta")
    assert (task.seconds, task.cores, task.memory) == (0.054023, 1, 3_000_000)
    assert task.inputs == ("small.fasta", "split_fasta")
    assert flow.file_sizes["small.fasta.0"] == 6


def test_without_parents_and_children_files_make_the_arcs_in_every_layout() -> None:
    rows = [{"id": "a", "name": "a", "outputFiles": ["f"]}, {"id": "b", "name": "b", "inputFiles": ["f"]}]
    old = [
        {"name": "a", "files": [{"name": "f", "link": "output"}]},
        {"name": "b", "files": [{"name": "f", "link": "input"}]},
    ]
    stated = [row | {"parents": [], "children": []} for row in rows]
    for parts, arcs in (
        ({"specification": {"tasks": rows}}, 1),
        ({"tasks": old}, 1),
        ({"specification": {"tasks": stated}}, 0),
    ):
        flow = formats.parse(json.dumps({"name": "w", "workflow": parts}))
        assert list(flow.dag.arcs()) == [("a", "b")][:arcs]
        assert flow.origin is not None
        told = "no task lists parents or children: dependencies were derived from files"
        assert flow.origin.remarks == (told,) * arcs
