"""Pegasus, as YAML and as DAX: what it says is read, what is written is read back, bombs are refused."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eligo
from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError
from eligo.formats import dax, pegasus, write_priorities
from eligo.formats.shared import data_arcs
from eligo.workflow import Task, Workflow
from format_cases import MEGABYTE, accepts_or_refuses, damaged, names, plain_names, workflows

both = pytest.mark.parametrize("module", [pegasus, dax], ids=["pegasus", "dax"])

YAML = """
x-pegasus: {apiLang: python, createdOn: 11-15-26T11:38:59Z}
pegasus: 5.0.4
name: demo
replicaCatalog:
  replicas:
  - {lfn: f.a, pfns: [{site: local, pfn: /x/f.a}]}
jobs:
- type: job
  namespace: ns
  version: '1.0'
  name: cut
  id: A
  nodeLabel: first
  arguments: [-i, {lfn: f.a}, -n, 3, 010]
  uses:
  - {lfn: f.a, metadata: {size: 12}, size: 12, type: input}
  - {lfn: f.b, type: output, stageOut: true, registerReplica: false}
  profiles:
    dagman: {PRIORITY: 7}
    condor: {priority: 3, request_cpus: '9'}
    pegasus: {runtime: 60, cores: 2, memory: 2048}
- type: job
  name: sort
  id: B
  stdout: f c
  arguments: [f.b]
  uses:
  - {lfn: f.b, type: input}
  - {lfn: f c, type: output}
  - {lfn: log, type: inout}
  profiles:
    condor: {priority: 3, request_cpus: '4', request_memory: ifThenElse(x, 1, 2)}
- {type: pegasusWorkflow, file: inner.yml, id: C, arguments: [--sites, local], uses: [{lfn: log, type: inout}]}
- {type: condorWorkflow, file: x.dag, id: D, arguments: [], uses: []}
jobDependencies:
- {id: B, children: [C, D]}
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- by hand -->
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.4" name="demo">
  <file name="f.a"><pfn url="file:///x/f.a" site="local"/></file>
  <executable namespace="ns" name="cut" version="1.0"/>
  <job id="A" namespace="ns" name="cut" version="1.0" node-label="first">
    <argument>-i <file name="f.a"/> -n 3
      010</argument>
    <profile namespace="dagman" key="PRIORITY"> 7 </profile>
    <profile namespace="condor" key="priority">3</profile>
    <profile namespace="condor" key="request_cpus">9</profile>
    <profile namespace="pegasus" key="runtime">60</profile>
    <profile namespace="pegasus" key="cores">2</profile>
    <profile namespace="pegasus" key="memory">2048</profile>
    <uses name="f.a" link="input" size="12"/>
    <uses name="f.b" link="output" register="false" transfer="true"><metadata key="k">v</metadata></uses>
  </job>
  <job id="B" name="sort">
    <argument><file name="f.b"/></argument>
    <profile namespace="condor" key="priority">3</profile>
    <profile namespace="condor" key="request_cpus">4</profile>
    <profile namespace="condor" key="request_memory">ifThenElse(x, 1, 2)</profile>
    <stdout name="f c" link="output"/>
    <uses name="f.b" link="input"/>
    <uses name="log" link="inout"/>
  </job>
  <dax id="C" file="inner.yml"><argument>--sites local</argument><uses name="log" link="inout"/></dax>
  <dag id="D" file="x.dag"/>
  <child ref="C"><parent ref="B"/></child>
  <child ref="D"><parent ref="B" edge-label="x"/></child>
</adag>
"""
OLD = """<adag version="2.1" name="old" jobCount="2">
  <filename file="f" link="inout"/>
  <job id="ID1" namespace="m" name="make" version="1.0" runtime="13.59">
    <argument>-o <filename file="f"/></argument><uses file="f" link="output" size="100.0"/></job>
  <job id="ID2" name="use" runtime="0"><argument>"two words" <filename file="a b"/></argument></job>
  <child ref="ID2"><parent ref="ID1"/></child>
</adag>
"""


@pytest.mark.parametrize(("module", "text", "version"), [(pegasus, YAML, "5.0.4"), (dax, XML, "3.4")])
def test_all_that_a_job_says(module: ModuleType, text: str, version: str) -> None:
    """A writes f.b, which B reads, so A comes before B although nobody says so; who changes log makes no arc.

    A -> B -> C, D
    """
    flow: Workflow = module.parse(text)
    assert module.sniff(text)
    assert flow.name == "demo"
    assert flow.origin is not None
    assert (flow.origin.format, flow.origin.version) == (module.NAME, version)
    assert flow.dag == Dag.from_arcs([("A", "B"), ("B", "C"), ("B", "D")], "ABCD")
    assert flow.file_sizes == {"f.a": 12}
    assert dict(flow.details) == {
        "A": Task(name="A", command=("cut", "-i", "f.a", "-n", "3", "010"), inputs=("f.a",), outputs=("f.b",),
                  seconds=60.0, cores=2, memory=2048 * MEGABYTE, category="cut", priority=7),
        "B": Task(name="B", command="sort f.b > 'f c'", inputs=("f.b", "log"), cores=4, category="sort", priority=3,
                  outputs=("f c", "log")),
        "C": Task(name="C", command=("pegasus-plan", "--sites", "local", "inner.yml"), category="pegasusWorkflow",
                  inputs=("log",), outputs=("log",)),
        "D": Task(name="D", command=("condor_submit_dag", "x.dag"), category="condorWorkflow"),
    }  # fmt: skip


def test_old_dax() -> None:
    flow = dax.parse(OLD)
    assert list(flow.dag.arcs()) == [("ID1", "ID2")]
    assert flow.task("ID1") == Task(
        name="ID1", command=("make", "-o", "f"), outputs=("f",), seconds=13.59, category="make"
    )
    assert flow.task("ID2").command == ("use", "two words", "a b")
    assert flow.file_sizes == {"f": 100}


@pytest.mark.parametrize("line", ["a 'b", 'a "b\\"', "a b\\"])
def test_arguments_whose_quotes_are_not_closed_are_parted_at_blanks(line: str) -> None:
    assert pegasus.split(line) == line.split()


@both
def test_tasks_of_which_nothing_is_known(module: ModuleType) -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]))
    assert replace(module.parse(module.generate(flow)), origin=None, name=None) == flow


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
commands = st.lists(words, min_size=1, max_size=3).map(tuple) | words
known = {
    "command": commands.filter(lambda command: command[:2] != ("sh", "-c")),
    "seconds": st.floats(0, 1e9),
    "cores": st.integers(0, 64) | st.sampled_from([0.5, 1.5]),
    "memory": st.integers(0, 2**20).map(lambda n: n * MEGABYTE),
    "category": names,
    "priority": st.integers(-(2**31), 2**31),
}
xml_words = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=6)


@both
@settings(max_examples=60)
@given(flow=workflows(plain_names, xml_words, **known))
def test_everything_is_read_back(module: ModuleType, flow: Workflow) -> None:
    try:
        text = module.generate(flow)
    except FormatError as error:
        assert "which XML cannot represent" in error.message  # noqa: PT017
        return
    back = module.parse(text)
    assert replace(back, origin=None, name=None) == flow
    assert module.sniff(text)
    assert module.generate(replace(back, name=None)) == text


@both
@given(name=names)
def test_names_survive_or_are_refused_by_name(module: ModuleType, name: str) -> None:
    flow = Workflow(Dag.from_arcs([], [name]))
    try:
        text = module.generate(flow)
    except FormatError as error:
        assert repr(name)[1:20] in error.message or len(name) > 60  # noqa: PT017
    else:
        assert module.parse(text).dag == flow.dag


@both
def test_files_that_would_make_another_arc_are_refused(module: ModuleType) -> None:
    tasks = {"a": Task(name="a", outputs=("f",)), "b": Task(name="b", inputs=("f",))}
    with pytest.raises(FormatError, match="task 'b' reads 'f', which 'a' writes, but there is no arc between them"):
        module.generate(Workflow(Dag.from_arcs([], "ab"), tasks))


@both
def test_no_jobs_are_no_pegasus(module: ModuleType) -> None:
    with pytest.raises(FormatError, match="at least one job"):
        module.generate(Workflow(Dag.from_arcs([])))


Uses = dict[str, tuple[str, str]]


def as_dax(uses: Uses, arcs: list[str]) -> str:
    links = {"i": "input", "o": "output"}
    jobs = [
        f'<job id="{name}" name="x">'
        + "".join(
            f'<uses name="{file}" link="{links[way]}"/>'
            for way, files in zip("io", used, strict=True)
            for file in files
        )
        + "</job>"
        for name, used in uses.items()
    ]
    children = (f'<child ref="{b}"><parent ref="{a}"/></child>' for a, b in map(tuple, arcs))
    return f"<adag>{''.join(jobs)}{''.join(children)}</adag>"


def as_yaml(uses: Uses, arcs: list[str]) -> str:
    jobs = [
        {"id": name, "name": "x", "arguments": [], "uses": [{"lfn": f, "type": "input"} for f in reads]
         + [{"lfn": f, "type": "output"} for f in writes]}
        for name, (reads, writes) in uses.items()
    ]  # fmt: skip
    return json.dumps(
        {"pegasus": "5.0", "jobs": jobs, "jobDependencies": [{"id": arc[0], "children": [arc[1]]} for arc in arcs]}
    )


@pytest.mark.parametrize(("module", "written"), [(dax, as_dax), (pegasus, as_yaml)], ids=["dax", "pegasus"])
@pytest.mark.parametrize(
    ("uses", "declared", "arcs", "left_out"),
    [
        # b reads what a wrote, and c writes the file anew behind b
        ({"a": ("", "f"), "b": ("f", ""), "c": ("", "f")}, ["bc"], {"ab", "bc"}, ["fcb"]),
        # an update in place, said as an input and an output, of a file that a later job writes
        ({"a": ("f", "f"), "b": ("", "f")}, ["ab"], {"ab"}, ["fba"]),
        # one file against the declared arc, one with it
        ({"a": ("g", "f"), "b": ("f", "g")}, ["ab"], {"ab"}, ["gba"]),
        # neither file alone goes against the declared arcs
        ({"a": ("g", ""), "b": ("", "f"), "c": ("f", ""), "d": ("", "g")}, ["ab", "cd"], {"ab", "cd"}, ["gda", "fbc"]),
        # what is not on the circle stays, though it may stand in any order
        (
            {"y": ("h", ""), "a": ("g", ""), "b": ("", "f"), "c": ("f", ""), "d": ("", "g"), "x": ("", "h")},
            ["ab", "cd"],
            {"ab", "cd", "xy"},
            ["gda", "fbc"],
        ),
        # other files make arcs as ever
        ({"a": ("", "f"), "b": ("fg", ""), "c": ("", "g"), "d": ("f", "")}, ["bc"], {"ab", "bc", "ad"}, ["gcb"]),
    ],
)
def test_where_files_and_declared_arcs_go_round_in_a_circle_the_declared_arcs_stand(  # noqa: PLR0913, PLR0917
    module: ModuleType, written: Callable[[Uses, list[str]], str], uses: Uses, declared: list[str], arcs: set[str],
    left_out: list[str],
) -> None:  # fmt: skip
    flow = module.parse(written(uses, declared))
    assert {a + b for a, b in flow.dag.arcs()} == arcs
    assert list(flow.origin.remarks) == [
        f"ignored the arc from {tail} to {head} through '{file}', which contradicts declared arcs"
        for file, tail, head in map(tuple, left_out)
    ]


@pytest.mark.parametrize(("module", "written"), [(dax, as_dax), (pegasus, as_yaml)], ids=["dax", "pegasus"])
def test_circles_of_files_alone_or_of_declared_arcs_are_refused(
    module: ModuleType, written: Callable[[Uses, list[str]], str]
) -> None:
    with pytest.raises(CycleError):
        module.parse(written({"a": ("g", "f"), "b": ("f", "g")}, []))
    with pytest.raises(CycleError):
        module.parse(written({"a": ("g", "f"), "b": ("f", "g")}, ["ab", "ba"]))


def test_many_files_against_the_declared_arcs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    uses: Uses = {"a": ("uvwxyz12", ""), "b": ("", "uvwxyz12")}
    for most in (data_arcs.MOST_STEPS, 0):  # and where looking along the arcs takes too long
        monkeypatch.setattr(data_arcs, "MOST_STEPS", most)
        flow = dax.parse(as_dax(uses, ["ab"]))
        assert list(flow.dag.arcs()) == [("a", "b")]
        assert flow.origin is not None
        assert len(flow.origin.remarks) == data_arcs.MOST_NAMED + 1
        assert flow.origin.remarks[-1] == "more arcs ignored for the same reason: 3"


def test_the_last_writer_counts() -> None:
    tails, heads = data_arcs.file_arcs([(), (), ("f",), ("g",)], [("f",), ("f",), ("g",), ("g",)])
    assert list(zip(tails.tolist(), heads.tolist(), strict=True)) == [(1, 2), (2, 3)]


def job(id_: str, more: str = "") -> str:
    return f"- {{id: {id_}, name: x, arguments: [], uses: []{more}}}\n"


WRONG = {
    "jobs:\n" + job("a") * 2: (DuplicateTaskError, "duplicate task 'a'"),
    "jobs:\n" + job("a") + "jobDependencies: [{id: a, children: [b]}]": (UnknownTaskError, "no task named 'b'"),
    "jobs:\n" + job("a") + "jobDependencies: [{id: a, children: [a]}]": (CycleError, "depends on itself: a -> a"),
    "jobs: {}": (FormatError, '"jobs" must be a list, got an object'),
    "name: x": (FormatError, 'no jobs (a Pegasus workflow lists them under "jobs")'),
    "[]": (FormatError, "the document must be an object, got a list"),
    "jobs: [a]": (FormatError, "job 1 must be an object, got a string"),
    "jobs: [{name: x}]": (FormatError, "the id of job 1 is missing"),
    "jobs: [{id: x}]": (FormatError, "the transformation of 'x' is missing"),
    "jobs: [{id: x, type: pegasusWorkflow}]": (FormatError, "the file of 'x' is missing"),
    "jobs: [{id: x, name: y, uses: [{lfn: f, type: both}]}]": (
        FormatError,
        "\"type\" of file 'f' must be one of input",
    ),
    "jobs: [{id: x, name: y, uses: [{type: input}]}]": (FormatError, "the lfn of a file in \"uses\" of 'x' is missing"),
    "jobs: [{id: x, name: y, profiles: [a]}]": (FormatError, "\"profiles\" of 'x' must be an object, got a list"),
    "jobs: &a [*a]": (FormatError, "anchors and aliases are not allowed, got 'a'"),
}


@pytest.mark.parametrize("text", WRONG)
def test_yaml_that_does_not_fit(text: str) -> None:
    kind, message = WRONG[text]
    with pytest.raises(kind) as caught:
        pegasus.parse(text)
    assert message in str(caught.value)


WRONG_XML = {
    "<adag>\n<job id='a' name='x'/>\n<job id='a' name='x'/></adag>": "line 3: duplicate task 'a'",
    "<adag>\n<job id='a' name='x'/>\n<child ref='a'><parent ref='b'/></child></adag>": "line 3: there is no task named 'b'",
    "<adag>\n<job id='a' name='x'/>\n<child ref='a'><parent ref='a'/></child></adag>": "depends on itself: a -> a",
    "<adag>\n<job name='x'/></adag>": "line 2: <job> has no attribute id",
    "<adag>\n<job id='x'/></adag>": "line 2: <job> has no attribute name",
    "<adag>\n<dax id='x'/></adag>": "line 2: <dax> has no attribute name",
    "<adag>\n<job id='x' name='y'><uses link='input'/></job></adag>": "line 2: <uses> has no attribute name",
    "<adag>\n<job id='x' name='y'><uses name='f' link='i'/></job></adag>": "line 2: the link of file 'f' must be one of",
    "<adag>\n<job id='x' name='y'><job id='z' name='y'/></job></adag>": "line 2: <job> inside <job> is not supported",
    "<adag>\n<child><parent ref='a'/></child></adag>": "line 2: <child> has no attribute ref",
    "<dag/>": "line 1: not a DAX: no <adag> element",
    "<html/>": "line 1: not a DAX: the root element must be <adag>, got <html>",
    "<adag>\n<job>": "line 2: not valid XML: no element found",
    "<adag>\n&x;</adag>": "line 2: not valid XML: undefined entity",
    "": "line 1: not valid XML: no element found",
    "<adag name='\0'/>": "line 1: not valid XML: not well-formed (invalid token)",
    "<adag>\n\ud800</adag>": "line 2: '\\ud800' is not a valid character",
    "\n" + "<adag>" * 100: "line 2: the XML is nested more than 32 levels deep",
    "<adag><job id='a' name='b'>\n" + "<a>" * 100: "line 2: the XML is nested more than 32 levels deep",
}


@pytest.mark.parametrize("text", WRONG_XML)
def test_xml_that_does_not_fit(text: str) -> None:
    with pytest.raises(InputError) as caught:
        dax.parse(text)
    assert WRONG_XML[text] in str(caught.value)


LAUGHS = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
BOMBS = {
    "laughs": f"<!DOCTYPE adag [{LAUGHS}]><adag name='&l9;'/>",
    "blow-up": f'<!DOCTYPE adag [<!ENTITY a "{"x" * 50_000}">]><adag>{"&a;" * 50_000}</adag>',
    "file": '<!DOCTYPE adag [<!ENTITY x SYSTEM "file:///etc/passwd">]><adag>&x;</adag>',
    "parameter": '<!DOCTYPE adag [<!ENTITY % x SYSTEM "http://localhost/x.dtd"> %x;]><adag/>',
    "attributes": f'<!DOCTYPE adag [<!ATTLIST job id CDATA "{"x" * 50_000}">]><adag>{"<job/>" * 50_000}</adag>',
    "skipped": '<!DOCTYPE adag SYSTEM "adag.dtd"><adag>&x;</adag>',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_at_once(bomb: str) -> None:
    start = time.perf_counter()
    with pytest.raises(FormatError) as caught:
        dax.parse(BOMBS[bomb])
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks
    assert caught.value.line == 1
    expected = {
        "attributes": "declares attributes, which are not supported",
        "skipped": "the entity 'x' is not defined",
    }
    assert expected.get(bomb, "the document declares entities, which are not supported") in str(caught.value)


@pytest.mark.parametrize("start", ['<!DOCTYPE adag SYSTEM "adag.dtd">', "<!DOCTYPE adag>", "<!DOCTYPE adag []>"])
def test_a_document_type_without_declarations_is_fine(start: str) -> None:
    assert dax.parse(f"{start}\n<adag><job id='a' name='b'/></adag>").dag.tasks == ("a",)
    assert dax.sniff(f"{start}\n<adag>")


def test_many_jobs_are_read_soon() -> None:
    jobs = "".join(f'<job id="j{i}" name="x"><uses name="f{i}" link="output"/></job>\n' for i in range(20_000))
    arcs = "".join(f'<child ref="j{i + 1}"><parent ref="j{i}"/></child>\n' for i in range(19_999))
    start = time.perf_counter()
    assert dax.parse(f"<adag>{jobs}{arcs}</adag>").dag.arc_count == 19_999
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


PIECES = [
    "<job>",
    "</job>",
    "<!DOCTYPE x [",
    "<!ENTITY",
    "&lt;",
    "]]>",
    "<![CDATA[",
    '"',
    "'",
    "<dax ",
    "{",
    "}",
    "[",
    "]",
]


@given(text=damaged([XML, OLD], [*PIECES, "link='x'", "\0", "<child ref='A'>"]))
def test_damaged_dax(text: str) -> None:
    accepts_or_refuses(dax.parse, text)


@given(
    text=damaged([YAML], ["- ", ": ", "{", "}", "[", "]", "&a ", "*a", "id: A", "'", '"', "1e999", "\0", "~", "!!int "])
)
def test_damaged_yaml(text: str) -> None:
    accepts_or_refuses(pegasus.parse, text)


@both
@given(text=st.text(max_size=30))
def test_any_text(module: ModuleType, text: str) -> None:
    module.sniff(text)
    accepts_or_refuses(module.parse, text)


def test_a_priority_is_written_for_dagman_and_for_the_job_itself(tmp_path: Path) -> None:
    """Where a job has no condor priority, Pegasus gives it one by its depth, and HTCondor goes by that."""
    text = 'pegasus: "5.0.4"\nname: w\njobs:\n- {type: job, id: A, name: a, arguments: [], uses: []}\njobDependencies: []\n'
    (tmp_path / "w.yml").write_text(text)
    (tmp_path / "w.dax").write_text('<adag name="w"><job id="A" name="a"></job></adag>')
    for name, wanted in (
        ("w.yml", "profiles: {condor: {priority: -1}, dagman: {PRIORITY: -1}}"),
        (
            "w.dax",
            '<profile namespace="condor" key="priority">-1</profile><profile namespace="dagman" key="PRIORITY">-1<',
        ),
    ):
        flow = eligo.read(tmp_path / name)
        told = write_priorities(flow, ["A"], tmp_path / f"out-{name}")
        assert wanted in re.sub(r"\s+<", "<", (tmp_path / f"out-{name}").read_text())
        assert any("run first" in line for line in told)
    (tmp_path / "both.yml").write_text(text.replace("uses: []", "uses: [], profiles: {condor: {priority: 9}}"))
    write_priorities(eligo.read(tmp_path / "both.yml"), ["A"], tmp_path / "new.yml", override=True, first=5)
    assert "{condor: {priority: 5}, dagman: {PRIORITY: 5}}" in (tmp_path / "new.yml").read_text()
