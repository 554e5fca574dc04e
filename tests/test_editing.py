"""Priorities written back: every byte that is no priority stays, and nobody's file is overwritten unasked."""

import difflib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import formats
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.formats import read, write, write_priorities
from eligo.formats.shared import edits as editing
from eligo.formats.shared.edits import Edit, apply_edits
from eligo.workflow import Task, Workflow

PEGASUS = """\
# a comment that stays
x-pegasus: {apiLang: python, createdBy: somebody}
pegasus: "5.0.4"
name: split   # the name
hooks:
  shell:
    - {_on: end, cmd: "echo done"}
siteCatalog:
  sites: []
jobs:
  - type: job
    name: "preprocess"   # quoted
    id: ID0000001
    stdout: out.txt
    arguments: [-i, f.a]
    uses:
      - {lfn: f.a, type: input, stageOut: false}
      - {lfn: out.txt, type: output, stageOut: true, registerReplica: true}
    profiles:
      condor: {request_cpus: "2"}
    nodeLabel: pre
  - {type: job, name: find, id: ID2, arguments: [], uses: [{lfn: out.txt, type: input}],
     profiles: {dagman: {PRIORITY: "7", RETRY: "2"}}}  # two lines
  - type: job
    name: last
    id: ID3
    profiles:
      dagman:
        retry: "3"
jobDependencies:
  - id: ID2
    children: [ID3]
"""
YAML = """\
name: pie   # café
tasks:
- {name: crust, run: make crust}   # first
- name: apples
  run: |
    peel
    core
- name: fill
  # what it needs
  after: [apples]
  priority: 12    # old
- {"name": "bake", 'after': [crust,
    fill]}
"""
JSON = (
    '{"name": "pie", "tasks": [\n   {"name":"a" , "run": "x"},\n {"name": "b", "priority" : 3, "after": ["a"]} ]\n}\n'
)
WFCOMMONS = json.dumps(
    {
        "name": "one",
        "description": "kept",
        "author": {"name": "A. Person", "email": "a@example.org"},
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {"name": "a", "id": "a_1", "parents": [], "children": ["b_1"], "inputFiles": []},
                    {"name": "b", "id": "b_1", "parents": ["a_1"], "children": []},
                ]
            },
            "execution": {
                "makespanInSeconds": 9,
                "executedAt": "2026-01-01T00:00:00Z",
                "tasks": [
                    {"id": "b_1", "runtimeInSeconds": 4.5, "avgCPU": 98.6, "readBytes": 11, "machines": ["m"]},
                    {"id": "a_1", "runtimeInSeconds": 4.5, "avgCPU": 12.5},
                ],
                "machines": [{"nodeName": "m", "cpu": {"coreCount": 4}}],
            },
        },
    },
    indent=3,
)
DAX = """<?xml version="1.0" encoding="UTF-8"?>
<!-- café: kept -->
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.6" name="x">
  <job id="ID1" namespace="n" name="a" version="1.0">
    <argument>-i <file name="f.a"/></argument>
    <uses name="f.a" link="input" register="false"/>
  </job>
  <job id="ID2" name="b"><profile namespace="dagman" key="priority"> 7 </profile>
    <profile namespace="env" key="A">b</profile></job>
  <job id="ID3" name='c > d' runtime="3"/>
  <child ref="ID3"><parent ref="ID1"/><parent ref="ID2"/></child>
</adag>
"""
GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="colour" attr.type="string"><default>yellow</default></key>
  <graph id="G" edgedefault="directed">
    <node id="é"/> <node id="b"><data key="d0">red</data></node>
    <edge source="é" target="b" label="kept"/>
  </graph>
</graphml>
"""
FILES = {
    "full.yml": PEGASUS, "pie.yaml": YAML, "pie.json": JSON, "one.json": WFCOMMONS, "old.dax": DAX, "g.graphml": GRAPHML,
}  # fmt: skip


def removed(before: str, after: str) -> str:
    """What the second text has not of the first."""
    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return "".join(before[a:b] for kind, a, b, _, _ in steps if kind in {"delete", "replace"})


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", FILES)
def test_every_byte_that_is_no_priority_stays(tmp_path: Path, name: str, mark: str, ends: str) -> None:
    path, out = tmp_path / name, tmp_path / f"out-{name}"
    before = mark + FILES[name].replace("\n", ends)
    path.write_bytes(before.encode())
    flow = read(path)
    order = list(flow.dag.named(flow.dag.order))
    write_priorities(flow, order, out, override=True)
    after = out.read_bytes().decode()
    assert not re.sub(r'[\s"\d]', "", removed(before, after)), "only old numbers, and the quotes of one, may go"
    assert after.startswith(mark)
    again = read(out)
    first = -1 if name in {"full.yml", "old.dax"} else len(order)  # Pegasus' own jobs go before them
    assert {task: again.task(task).priority for task in order} == {task: first - i for i, task in enumerate(order)}
    assert path.read_bytes().decode() == before
    for task in order:
        assert again.task(task).command == flow.task(task).command


@pytest.mark.parametrize("name", FILES)
def test_written_twice_is_written_once(tmp_path: Path, name: str) -> None:
    """A file that has the priorities already stays as it is."""
    path, out, again = tmp_path / name, tmp_path / f"out-{name}", tmp_path / f"again-{name}"
    path.write_text(FILES[name], "utf-8")
    order = read(path).dag.named(read(path).dag.order)
    write_priorities(read(path), order, out, override=True)
    write_priorities(read(out), order, again, override=True)
    assert out.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_in_place_changes_the_file_itself_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / name).write_text(FILES[name], "utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["plan", name, "--in-place", "--override"]) == 0
    assert f"eligo: changed only the priorities of {len(read(name))} tasks in {name}\n" in capfd.readouterr().err
    assert not re.sub(r'[\s"\d]', "", removed(FILES[name], Path(name).read_text("utf-8")))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", FILES)
def test_standard_input_is_written_back_as_it_came(tmp_path: Path, name: str) -> None:
    """What no file holds is kept from reading, and is what goes to standard output."""
    (tmp_path / name).write_text(FILES[name], "utf-8")
    format = read(tmp_path / name).origin.format  # type: ignore[union-attr]
    words = [sys.executable, "-m", "eligo", "plan", "-", "--from", format, "-o", "-", "--override"]
    done = subprocess.run(words, input=FILES[name].encode(), capture_output=True, check=True)
    after = done.stdout.decode()
    assert not re.sub(r'[\s"\d]', "", removed(FILES[name], after))
    assert all(task.priority for task in formats.parse(after, format).details.values())


def _some(rng: np.random.Generator) -> int | None:
    return 5 if rng.random() < 0.3 else None


@pytest.mark.parametrize("suffix", ["json", "yaml", "yml", "dax", "graphml"])
def test_what_eligo_writes_itself_is_edited_too(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(len(suffix))
    for _ in range(15):
        dag = random_small_dag(rng, 12)
        names = [f"t{i}" for i in range(len(dag))]
        flow = Workflow(
            Dag.from_arrays(len(dag), dag.tails, dag.child, names),
            {name: Task(name=name, command=("run", name), seconds=2.0, priority=_some(rng)) for name in names},
        )
        path, out = tmp_path / f"flow.{suffix}", tmp_path / f"out.{suffix}"
        write(flow, path, "pegasus" if suffix == "yml" else None)
        back = read(path)
        order = back.dag.named(back.dag.order)
        write_priorities(back, order, out, override=True)
        first = -1 if suffix in {"yml", "dax"} else len(order)
        assert [read(out).task(name).priority for name in order] == [first - i for i in range(len(order))]


def test_files_that_list_arcs_are_written_anew_and_that_is_told(tmp_path: Path) -> None:
    path = tmp_path / "arcs.yaml"
    path.write_text("# gone\narcs:\n- [a, b]\n")
    told = write_priorities(read(path), ["a", "b"], tmp_path / "out.yaml")
    assert told[1:] == ["the file was rewritten: comments, layout and parts of yaml that eligo does not read are lost"]
    with pytest.raises(FormatError, match="priorities cannot be written into this file"):
        write_priorities(read(path), ["a", "b"], None)


def test_clusters_are_put_into_a_pegasus_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "full.yml").write_text(PEGASUS)
    monkeypatch.chdir(tmp_path)
    assert run(["cluster", "full.yml", "--size", "2", "--export", "pegasus", "-o", "fat.yml"]) == 0
    after = (tmp_path / "fat.yml").read_text()
    assert removed(PEGASUS, after) == ""
    assert after.count("label: fat_1") == 2


def test_a_graph_that_was_turned_round_is_written_back_as_it_came(tmp_path: Path) -> None:
    (tmp_path / "g.graphml").write_text(GRAPHML, "utf-8")
    flow = read(tmp_path / "g.graphml", reverse=True)
    write_priorities(flow, ["b", "é"], tmp_path / "out.graphml")
    assert removed(GRAPHML, (tmp_path / "out.graphml").read_text("utf-8")) == ""
    assert read(tmp_path / "out.graphml").task("b").priority == 2


# Never over somebody's file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "mine.txt").write_text("my notes\nof years\n")
    (tmp_path / "mine.json").write_text('{"my": "settings"}')
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("words", ["plan {} -o {}", "convert {} {}", "plan {} --save {}", "plan {} -o ./{}"])
def test_what_was_read_is_never_written_over(
    folder: Path, capfd: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    assert run(words.replace("{}", name).split()) == 2
    assert "cannot overwrite the file that the workflow was read from" in capfd.readouterr().err
    assert (folder / name).read_text("utf-8") == FILES[name]


@pytest.mark.parametrize(
    "words",
    [
        "plan pie.json -o mine.json",
        "plan pie.json --save mine.json",
        "convert pie.yaml mine.json",
        "convert pie.yaml mine.txt",
        "generate w 3 2 -o mine.json",
        "plan full.yml -o pie.yaml --to pegasus",
        "cluster pie.yaml --size 2 --export snakemake -o mine.txt",
    ],
)
def test_what_somebody_else_wrote_is_written_over_only_when_told_to(
    folder: Path, capfd: pytest.CaptureFixture[str], words: str
) -> None:
    place = folder / [word for word in words.split() if word in {"mine.json", "mine.txt", "pie.yaml"}][-1]
    before = place.read_bytes()
    assert run(words.split()) == 2
    told = f"{place.name}: the file exists and was not written by eligo: --force overwrites it"
    assert told in capfd.readouterr().err
    assert place.read_bytes() == before
    assert run([*words.split(), "--force"]) == 0
    assert place.read_bytes() != before


@pytest.mark.parametrize(
    "words",
    [
        "plan pie.yaml -o out.yaml",
        "plan pie.yaml --save plan.json",
        "convert pie.yaml out.json",
        "generate out-mesh 4 -o mesh.json",
        "plan full.yml -o out.yml",
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_eligo_wrote_may_be_written_again(words: str) -> None:
    assert run(words.split()) == 0
    assert run(words.split()) == 0


def test_a_file_that_knows_more_than_this_one_is_not_given_up(folder: Path) -> None:
    """The same tasks and arcs, but somebody put run times into it."""
    assert run(["convert", "pie.yaml", "out.json"]) == 0
    richer = (folder / "out.json").read_text("utf-8").replace('"name": "crust"', '"name": "crust", "seconds": 5')
    (folder / "out.json").write_text(richer, "utf-8")
    assert run(["convert", "pie.yaml", "out.json"]) == 2
    assert (folder / "out.json").read_text("utf-8") == richer


@pytest.mark.usefixtures("folder")
def test_a_generated_file_may_give_way_to_another() -> None:
    assert run(["generate", "out-mesh", "4", "-o", "mesh.json"]) == 0
    assert run(["generate", "w", "3", "2", "-o", "mesh.json"]) == 0


# The pieces


def test_edits_are_made_where_they_were_meant() -> None:
    text = '{"a": [1, {"b": "}"}], "c":2}'
    assert [text[s:e] for _, s, e in editing.json_items(text, 0)] == ['[1, {"b": "}"}]', "2"]
    assert [text[at] for at in editing.json_elements(text, 6)] == ["1", "{"]
    assert apply_edits(text, [editing.put_in_object(text, 0, "c", 5), editing.put_in_object(text, 10, "d", 1)]) == (
        '{"a": [1, {"b": "}", "d": 1}], "c":5}'
    )
    assert editing.put_in_object("{ }", 0, "a", 1) == Edit(1, 1, '"a": 1')
    assert editing.json_place(text, "a", "x") is None


def test_yaml_edits_keep_indentation() -> None:
    text = "t:\n  - a: 1\n    b: [x]\n"
    (row,) = editing.yaml_rows(text, "t")
    assert (
        apply_edits(text, [editing.put_in_mapping(text, row, ["p", "q"], 3)])
        == "t:\n  - a: 1\n    p: {q: 3}\n    b: [x]\n"
    )
    assert editing.yaml_rows("t: 1", "t") == []
