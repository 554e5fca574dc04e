"""Mermaid: flowcharts of people and engines are read as Mermaid reads them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError
from eligo.formats.mermaid import generate, parse, sniff
from eligo.formats.shared import drawings as drawing
from eligo.workflow import Workflow
from format_cases import accepts_or_refuses, dags

nasty = st.sampled_from(["", " ", "  ", " x", "x ", "a  b", '"', "#", "#35;", ";", "&quot;", "<br>", "\\n", "\\", "`a`", "%%",
                         "%%{x}%%", "-->", "end", "[x]", "(y)", "{z}", "|", "é", "😀", "\u3000", "\u2028x", "1"])  # fmt: skip
names = nasty | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=6)


def arcs(lines: str) -> set[tuple[str, str]]:
    return set(parse(f"flowchart TD\n{lines}").dag.arcs())


# The language


@given(dag=dags(names), title=st.none() | names)
def test_what_is_written_is_read_back(dag: Dag, title: str | None) -> None:
    text = generate(Workflow(dag, name=title))
    assert sniff(text)
    back = parse(text)
    assert (back.dag, back.name) == (dag, title)


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
        # what Mermaid's own grammar makes of these was compared with it
        ("subgraph one; aa --> bb; end", {("aa", "bb")}),
        ("subgraph one [The first]; aa --> bb; end; one --> cc", {("aa", "bb"), ("aa", "cc"), ("bb", "cc")}),
        ('subgraph "a title"; aa --> bb; end', {("aa", "bb")}),
        ("subgraph; aa --> bb; end", {("aa", "bb")}),
        ("aa\n  --> bb\n\n-->|x| cc\n-- y --> dd", {("aa", "bb"), ("bb", "cc"), ("cc", "dd")}),
        ("aa -- x\ny --> bb", {("aa", "bb")}),
        ('click aa "u" "a tip\nover two --> lines"\naa --> bb', {("aa", "bb")}),
        ('click aa call cb(1,\n2) "tip\nmore"\naa --> bb', {("aa", "bb")}),
        ("style aa fill:#fff; aa --> bb; class aa k; bb --> cc; click aa cb; cc --> dd; linkStyle 0 x:y; dd --> ee",
         {("aa", "bb"), ("bb", "cc"), ("cc", "dd"), ("dd", "ee")}),
        ("odd->x] --> bb", {("odd-", "bb")}),
        ("aa(-x-) --> bb[|borders:lt|y] --> cc[two\nlines]", {("aa", "bb"), ("bb", "cc")}),
        ("aa&bb --> cc", {("aa&bb", "cc")}),
        ("aa[50 %% off] --> bb:::k,m %% as said", {("aa", "bb")}),
        ("a.-b --> c", {("a.-b", "c")}),
        ("aa:::k-->bb:::m-n-.->cc", {("aa", "bb"), ("bb", "cc")}),
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
        ("A(-round-) --> B[|borders:lt|framed]", ("round", "framed")),
        ("A[/slanted / text/] --> B[two\nlines]", ("slanted / text", "two lines")),
        ('A["q" and more] --> B[x > y]', ("q and more", "x > y")),
    ],
)
def test_labels_are_names_where_ids_say_nothing(lines: str, expected: tuple[str, ...]) -> None:
    assert parse(f"flowchart TD\n{lines}").dag.tasks == expected


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a --> b", 1, 'a flowchart must begin with "flowchart" or "graph" and a direction such as TD'),
        ("flowchart TD\na --- b", 2, "a line without an arrowhead does not say which task comes first (write -->)"),
        ("flowchart TD\na -->", 2, "a node is missing"),
        ("flowchart TD\n--> a", 2, "expected a node, got '--> a'"),
        ("flowchart TD\n\na b", 3, "expected an arrow or the end of the line, got 'b'"),
        ("flowchart TD\na[x", 2, "a label is not closed: missing ]"),
        ("flowchart TD\nsubgraph x\na", 3, 'a subgraph has no "end"'),
        ("flowchart TD\na\nend", 3, '"end" without a subgraph'),
        ("flowchart TD\na[b(c)]", 2, "a label that contains ( must be in double quotes and end with ]"),
        ("flowchart TD\na(b]", 2, "a label that contains ] must be in double quotes and end with )"),
        ('flowchart TD\na[b"c]', 2, 'a label that contains " must be in double quotes and end with ]'),
        ("flowchart TD\na{b|c}", 2, "a label that contains | must be in double quotes and end with }"),
        ("flowchart TD\na[]", 2, "a label is empty (write a space, or remove its brackets)"),
        ("flowchart TD\na[|x]", 2, "a label that contains | must be in double quotes and end with ]"),
        ("flowchart TD\na->b", 2, "an arrow needs two dashes (write -->)"),
        ("flowchart TD\na --> end", 2, "end is a Mermaid keyword, and this is not a valid statement"),
        ("flowchart TD\nstyle --> a", 2, "style is a Mermaid keyword, and this is not a valid statement"),
        ("flowchart TD\nsubgraph s(x)\nend", 2, "subgraph is a Mermaid keyword, and this is not a valid statement"),
        ("flowchart TD\na -- x--y --> b", 2, "expected an arrow or the end of the line, got '-- x--y --> b'"),
        ('---\ntitle: "x\n---\nflowchart TD\na', 1, '"x is not a valid JSON string'),
        ("%%{init\n}%%\n%% x\nflowchart TD\na b", 5, "expected an arrow or the end of the line, got 'b'"),
        ("---\ntitle: x\n---\nflowchart TD\na b", 5, "expected an arrow or the end of the line, got 'b'"),
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
    with pytest.raises(FormatError, match="the drawing represents more than 10 arcs"):
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


def test_nextflow_may_draw_from_left_to_right() -> None:
    flow = parse(NEXTFLOW.replace("flowchart TB", "flowchart LR"))
    assert list(flow.dag.arcs()) == [("INDEX", "QUANT"), ("QUANT", "MULTIQC")]


@pytest.mark.parametrize(
    "above",
    [
        "%%{ init: { 'theme': 'base' } }%%\n",
        "%%{\n  init: {\n    'theme': 'base',\n    'themeVariables': {'lineColor': '#545555'}\n  }\n}%%\n",
        "---\nconfig:\n  theme: base\n---\n",
        "---\nconfig:\n  theme: base\n---\n%%{init: {'x': 1}}%%\n%% drawn by Nextflow\n\n",
        "%% a comment\n",
    ],
)
def test_a_directive_does_not_change_what_is_read(above: str) -> None:
    flow, plain = parse(above + NEXTFLOW), parse(NEXTFLOW)
    assert (flow.dag, flow.origin, flow.details) == (plain.dag, plain.origin, plain.details)
    assert sniff(above + NEXTFLOW)
    assert parse(above + OLD_NEXTFLOW).dag == parse(OLD_NEXTFLOW).dag


def test_inputs_and_outputs_that_nextflow_draws_in_an_editor_are_no_tasks() -> None:
    text = """flowchart TB
    subgraph RNASEQ
      subgraph take
        v1["reads"]
      end
      v2([FASTQC])
      v3([MULTIQC])
      subgraph emit
        v4["report"]
      end
        v1 --> v2
        v2 --> v3
        v3 --> v4
    end"""
    assert list(parse(text).dag.arcs()) == [("FASTQC", "MULTIQC")]


def test_operators_that_nextflow_draws_as_processes_are_told() -> None:
    flow = parse(NEXTFLOW.replace("v5(( ))", 'v5(["mix"])'))
    assert list(flow.dag.arcs()) == [("INDEX", "QUANT"), ("QUANT", "mix"), ("mix", "MULTIQC")]
    assert flow.origin is not None
    assert "tasks named like Nextflow operators: 1 (draw the dag without dag.verbose)" in flow.origin.remarks


OLD_NEXTFLOW = """flowchart TD
    p0((Channel.fromFilePairs))
    p1[INDEX]
    p2(( ))
    p3[QUANT]
    p4([map])
    p5([mix])
    p6[QUANT]
    p7(( ))
    p0 -->|reads| p3
    p2 -->|transcriptome| p1
    p1 -->|index| p3
    p3 --> p4
    p4 --> p5
    p1 --> p5
    p5 -->|all| p6
    p6 --> p7
"""


def test_nextflow_before_23_10_drew_processes_as_boxes() -> None:
    flow = parse(OLD_NEXTFLOW)
    assert set(flow.dag.arcs()) == {("INDEX", "QUANT p3"), ("QUANT p3", "QUANT p6"), ("INDEX", "QUANT p6")}
    assert flow.task("QUANT p6").category == "QUANT"


@pytest.mark.parametrize(
    "text",
    [
        "flowchart TD\np0[a] --> p1([b]) --> p2[c]",  # no channel: somebody's own chart
        "flowchart TD\np1((a)) --> p2[b] --> p3[c]",
        "flowchart LR\nv0([a]) --> v1[b] --> v2([c])",
        "flowchart LR\nv0([a]) --> v1((b)) --> v2([c])",
        "flowchart TB\nv0([a]) --> v1{b} --> v2([c])",
    ],
)
def test_a_chart_of_ones_own_loses_no_task(text: str) -> None:
    assert len(parse(text).dag) == 3


def test_links_that_are_not_drawn_are_told() -> None:
    flow = parse("flowchart TD\naa ~~~ bb & cc\naa --> bb")
    assert list(flow.dag.arcs()) == [("aa", "bb")]
    assert flow.origin is not None
    assert flow.origin.remarks == ("ignored invisible arcs: 2",)


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
