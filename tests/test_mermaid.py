"""Mermaid: flowcharts of people and engines are read as Mermaid reads them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError
from eligo.formats.mermaid import generate, parse, sniff
from eligo.formats.shared import drawing
from eligo.workflow import Workflow
from format_cases import accepts_or_refuses

nasty = st.sampled_from(["", " ", "  ", " x", "x ", "a  b", '"', "#", "#35;", ";", "&quot;", "<br>", "\\n", "\\", "`a`", "%%",
                         "%%{x}%%", "-->", "end", "[x]", "(y)", "{z}", "|", "é", "😀", "\u3000", "\u2028x", "1"])  # fmt: skip
names = nasty | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=6)


def arcs(lines: str) -> set[tuple[str, str]]:
    return set(parse(f"flowchart TD\n{lines}").dag.arcs())


# The language


@given(ordered=st.lists(names, max_size=6, unique=True), data=st.data(), title=st.none() | names)
def test_what_is_written_is_read_back(ordered: list[str], data: st.DataObject, title: str | None) -> None:
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    chosen = data.draw(st.lists(st.sampled_from(pairs))) if pairs else []
    flow = Workflow(Dag.from_arcs(chosen, ordered[::-1]), name=title)
    text = generate(flow)
    assert sniff(text)
    back = parse(text)
    assert (back.dag, back.name) == (flow.dag, flow.name)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("aa --> bb --> cc", {("aa", "bb"), ("bb", "cc")}),
        ("aa-->bb;bb-->cc;", {("aa", "bb"), ("bb", "cc")}),
        ("aa & bb --> cc & dd", {("aa", "cc"), ("aa", "dd"), ("bb", "cc"), ("bb", "dd")}),
        ("aa -.-> bb ==> cc --o dd --x ee ----> ff", {("aa", "bb"), ("bb", "cc"), ("cc", "dd"), ("dd", "ee"), ("ee", "ff")}),
        ("aa -- to --> bb\nbb -. to .-> cc\ncc == to ==> dd", {("aa", "bb"), ("bb", "cc"), ("cc", "dd")}),
        ('aa -->|to| bb -->|"q | r"|cc', {("aa", "bb"), ("bb", "cc")}),
        ('aa -- "x -- y" --> bb', {("aa", "bb")}),
        ("aa[x y] --> bb(z) --> cc{{q}}", {("aa", "bb"), ("bb", "cc")}),
        ("aa>f] --> bb[/p/] --> cc[\\q\\] --> dd[/r\\] --> ee[(db)] --> ff(((o)))",
         {("aa", "bb"), ("bb", "cc"), ("cc", "dd"), ("dd", "ee"), ("ee", "ff")}),
        ('aa["multi\nline ] -->"] --> bb', {("aa", "bb")}),
        ("aa ~~~ bb", set()),
        ("aa:::big --> bb", {("aa", "bb")}),
        ('aa@{ shape: rect, label: "}x" } --> bb', {("aa", "bb")}),
        ("aa e1@--> bb\ne1@{ animate: true }", {("aa", "bb")}),
        ("a-b --> c.d\nx_1-->y/2", {("a-b", "c.d"), ("x_1", "y/2")}),
        ("subgraph one [The first]\naa --> bb\nend\none --> cc", {("aa", "bb"), ("aa", "cc"), ("bb", "cc")}),
        ("one --> two\nsubgraph one\nsubgraph in\naa\nend\nend\nsubgraph two\nbb\nend", {("aa", "bb")}),
        ('subgraph "a title"\ndirection LR\naa --> bb\nend', {("aa", "bb")}),
        ("%% nothing\naa --> bb %% cc --> dd\n%%{init: {\n'x': 1}}%%\n", {("aa", "bb")}),
        ("aa --> bb\nclassDef k fill:#f00\nclass aa k\nclick aa \"u\"\nlinkStyle 0 stroke:red\nstyle aa fill:#fff",
         {("aa", "bb")}),
        ("end1 --> style2 --> classy", {("end1", "style2"), ("style2", "classy")}),
    ],
)  # fmt: skip
def test_the_language(lines: str, expected: set[tuple[str, str]]) -> None:
    assert arcs(lines) == expected


def test_nodes_are_tasks_in_order_of_appearance() -> None:
    flow = parse("---\ntitle: my flow\n---\ngraph LR\n  zz\n  yy --> xx\n")
    assert flow.dag.tasks == ("zz", "yy", "xx")
    assert flow.name == "my flow"
    assert flow.origin is not None
    assert flow.origin.format == "mermaid"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("A[Fetch the data] --> B(Align)", ("Fetch the data", "Align")),
        ("A[Same] --> B[Same]", ("Same A", "Same B")),
        ("A[Named] --> B", ("A", "B")),
        ("fetch[Fetch the data] --> B[Align]", ("fetch", "B")),
        ('A["say #quot;hi#quot; #35;#9829;"] --> B["one<br/>two\\nthree"]', ('say "hi" #♥', "one two three")),
        ('A["`**bold**`"] --> B["#unknown; #99999999;"]', ("**bold**", "#unknown; #99999999;")),
    ],
)
def test_labels_are_names_where_ids_say_nothing(lines: str, expected: tuple[str, ...]) -> None:
    assert parse(f"flowchart TD\n{lines}").dag.tasks == expected


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a --> b", 1, 'a flowchart begins with "flowchart" or "graph" and a direction such as TD'),
        ("flowchart TD\na --- b", 2, "a line without a head does not say which task comes first: write -->"),
        ("flowchart TD\na -->", 2, "a node is missing"),
        ("flowchart TD\n--> a", 2, "a node was expected, not '--> a'"),
        ("flowchart TD\n\na b", 3, "an arrow or the end of the line was expected, not 'b'"),
        ("flowchart TD\na[x", 2, "a label has no end: ] is missing"),
        ("flowchart TD\nsubgraph x\na", 3, 'a subgraph has no "end"'),
        ("flowchart TD\na\nend", 3, 'there is an "end" without a subgraph'),
        ('---\ntitle: "x\n---\nflowchart TD\na', 1, '"x is not a string as JSON writes it'),
        ("%%{init\n}%%\n%% x\nflowchart TD\na b", 5, "an arrow or the end of the line was expected, not 'b'"),
        ("---\ntitle: x\n---\nflowchart TD\na b", 5, "an arrow or the end of the line was expected, not 'b'"),
    ],
)
def test_what_is_wrong_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.message) == (line, message)


def test_heads_at_both_ends_are_a_cycle() -> None:
    with pytest.raises(CycleError):
        arcs("aa <--> bb")


@pytest.mark.parametrize(
    "text",
    [
        "flowchart TD\n" + "subgraph x\n" * 50_000,
        "flowchart TD\n" + "subgraph x\n" * 30_000 + "a\n" + "end\n" * 30_000 + "x --> b",
        "flowchart TD\na -- x" + " " * 300_000,
        "flowchart TD\na " + "-- " * 100_000,
        "flowchart TD\na " + "-" * 300_000,
        "%%{" * 200_000,
        "%%{\n" * 100_000 + "}%%",
        "flowchart TD\n" + "%%{}%%" * 100_000,
        "---\n" * 100_000,
        "flowchart TD\n" + "a[" * 100_000,
        'flowchart TD\na["' + "#" * 300_000 + '"]',
        "flowchart TD\n" + "a & " * 100_000 + "a",
        "flowchart TD\na@{" + '"' * 200_001,
    ],
    ids=lambda text: text[:22],
)
def test_hostile_texts_are_dealt_with_soon(text: str) -> None:
    start = time.perf_counter()
    sniff(text)
    accepts_or_refuses(parse, text)
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


def test_groups_stand_for_many_arcs_but_not_for_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_ARCS", 10)
    with pytest.raises(FormatError, match="the drawing stands for more than 10 arcs"):
        arcs("a & b & c & d --> e & f & g")


good = 'flowchart TD\n A["x #quot;y"] -->|to| B([z]) & C{q}\n subgraph one [t]\n  B -. p .-> D((o))\n  end\n  one ==> E:::k\n'


@given(place=st.integers(0, len(good)), cut=st.integers(0, 3), put=st.text('{}[]()<>"|&;:%@#~=-. abend\n', max_size=3))
def test_any_change_to_a_good_text(place: int, cut: int, put: str) -> None:
    accepts_or_refuses(parse, good[:place] + put + good[place + cut :])


@pytest.mark.parametrize(
    ("text", "is_mermaid"),
    [
        ("flowchart TB\n a", True),
        ("graph TD;a-->b", True),
        ("graph\na", True),
        ("%%{init: {\n}}%%\n%% c\n\nflowchart LR\n", True),
        ("---\ntitle: x\n---\nflowchart TB\n", True),
        ("graph G {a -- b}", False),
        ("graph { a -- b }", False),
        ("graphics are drawn", False),
        ("digraph { a }", False),
        ("sequenceDiagram\n", False),
    ],
)
def test_what_looks_like_a_flowchart(text: str, is_mermaid: bool) -> None:
    assert sniff(text) is is_mermaid


# What engines draw

NEXTFLOW = """flowchart TB
    subgraph " "
    v0["Channel.fromFilePairs"]
    v1["transcriptome"]
    end
    subgraph "RNASEQ [RNASEQ]"
    v2(["INDEX"])
    v4(["QUANT"])
    v5(( ))
    end
    v8([MULTIQC])
    subgraph " "
    v9[" "]
    end
    v0 --> v4
    v1 --> v2
    v2 --> v4
    v4 -->|quant_ch| v5
    v5 --> v8
    v8 --> v9
"""


def test_nextflow_draws_processes_and_arcs_pass_through_the_rest() -> None:
    flow = parse(NEXTFLOW)
    assert list(flow.dag.arcs()) == [("INDEX", "QUANT"), ("QUANT", "MULTIQC")]
    assert flow.task("QUANT").category == "QUANT"


SNAKEMAKE = """---
title: DAG
---
flowchart TB
\tid0[all]
\tid1[sort]
\tid2[fetch - lane: 1 - s: a]
\tid3[sort]
\tid4[fetch - lane: 1 - s: b"c]
\tstyle id0 fill:#57D9D9,stroke-width:2px,color:#333333
\tstyle id2 fill:#D95757,stroke-width:2px,color:#333333,stroke-dasharray: 5 5
\tid1 --> id0
\tid3 --> id0
\tid2 --> id1
\tid4 --> id3
"""


def test_snakemake_draws_jobs_and_dashes_what_is_done() -> None:
    flow = parse(SNAKEMAKE)
    assert flow.dag.tasks == ("all", "sort 1", "sort 3", 'fetch lane: 1 s: b"c')
    assert set(flow.dag.arcs()) == {("sort 1", "all"), ("sort 3", "all"), ('fetch lane: 1 s: b"c', "sort 3")}
    assert [task.category for task in flow.details.values()] == ["all", "sort", "sort", "fetch"]
    assert flow.origin is not None
    assert flow.origin.done == ("fetch lane: 1 s: a",)
