"""DOT: the whole language is read as Graphviz reads it, and what engines draw becomes their tasks."""

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError
from eligo.formats import dot
from eligo.formats.dot import generate, parse, sniff
from eligo.formats.shared import drawings as drawing
from eligo.workflow import Workflow
from format_cases import accepts_or_refuses, dags

nasty = st.sampled_from(["", " ", "\\", "\\\\", '\\"', '"', "a\\", "\\n", "\\N", "<b>", "{", "a->b", "node", "1", "-.5",
                         "//", "/*", "#", "a b", "é", "😀", "\u2028", "+", "x" * 2000])  # fmt: skip
names = nasty | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=6)


def arcs(text: str) -> set[tuple[str, str]]:
    return set(parse(text).dag.arcs())


# The language


@given(dag=dags(names), title=st.none() | names)
@example(dag=Dag.from_arcs([], ["a\\\\b", "a\\b"]), title="\\")
def test_what_is_written_is_read_back(dag: Dag, title: str | None) -> None:
    text = generate(Workflow(dag, name=title))
    assert sniff(text)
    back = parse(text)
    assert (back.dag, back.name) == (dag, title)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digraph { a -> b -> c }", {("a", "b"), ("b", "c")}),
        ("STRICT DiGraph g { a -> b; a -> b }", {("a", "b")}),
        ("digraph { a -> {b c} -> d }", {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}),
        ("digraph { a, b -> c, d [color=red] }", {("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")}),
        ("digraph { subgraph s {a b}; subgraph s {} -> c }", {("a", "c"), ("b", "c")}),
        ("digraph { subgraph s {a}; {x -> subgraph s {}} }", set()),
        ("digraph { subgraph p {subgraph q {a}} -> x; subgraph p {subgraph q {b}} -> y }",
         {("a", "x"), ("a", "y"), ("b", "y")}),
        ("digraph { {a {b}} -> {{{c}}} }", {("a", "c"), ("b", "c")}),
        ("digraph { a:p:n -> b:\"x y\" -> c:sw }", {("a", "b"), ("b", "c")}),
        ('digraph { "a" + "b" /* and */ + "c" -> "li\\\nne" }', {("abc", "line")}),
        ('digraph { "say \\"hi\\"" -> <<i>x</i>> }', {('say "hi"', "<i>x</i>")}),
        ("digraph { -.5 -> 1. -> .7 -> -3 }", {("-.5", "1."), ("1.", ".7"), (".7", "-3")}),
        ("digraph { a //x\n -> /* y\n */ b # z\n# w\n}", {("a", "b")}),
        ("digraph { node [shape=box] edge [a=b][c=d;e=f] graph [q=1]; rank=same; x=y a -> b [k=v w=1, ] }", {("a", "b")}),
        ("digraph { a -> b [style=invis]; {edge [style=invis]; c -> d} c -> b }", {("c", "b")}),
        ('digraph { "node" -> "edge"; Edge [x=y] }', {("node", "edge")}),
        ("digraph { é -> ü1; _x -> A9 }", {("é", "ü1"), ("_x", "A9")}),
        ('digraph { "a\\\\b" -> c }', {("a\\b", "c")}),
        ('digraph { "a\\\\b" -> "a\\b" }', {("a\\\\b", "a\\b")}),
    ],
)  # fmt: skip
def test_the_language(text: str, expected: set[tuple[str, str]]) -> None:
    assert arcs(text) == expected


def test_nodes_are_tasks_in_order_of_appearance() -> None:
    flow = parse('digraph "my dag" { z; y -> x; "w"; subgraph { v } }')
    assert flow.dag.tasks == ("z", "y", "x", "w", "v")
    assert flow.name == "my dag"
    assert flow.origin is not None
    assert flow.origin.format == "dot"
    assert len(parse("digraph {}")) == 0


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("graph { a -- b }", 1, "an undirected graph does not say which task depends on which (use digraph)"),
        ("digraph {\na -- b }", 2, "-- has no direction (write -> in a digraph)"),
        ("digraph {\n\n1a -> b }", 3, "1a is not a valid number (put it in quotes)"),
        ("digraph { a -> }", 1, "expected a node, got '}'"),
        ("digraph { a -> node }", 1, "expected a node, got the keyword node (put it in quotes to use it as a name)"),
        ("digraph { a ->\nb", 2, "expected a statement, got the end of the text"),
        ("digraph { a [bold] }", 1, "expected \"=\", got ']'"),
        ("digraph { a:b:c:d }", 1, "expected a statement, got ':'"),
        ('digraph { "a }', 1, "a quoted string has no closing quote"),
        ("digraph { /* }", 1, "a comment is not closed"),
        ("digraph { <a> -> <b<> }", 1, "an HTML string has no closing >"),
        ('digraph { "a" + b }', 1, "+ must be followed by a string"),
        ('digraph { "a" +', 1, "the text ends after +"),
        ("digraph { a } digraph { b }", 1, "the file has a second graph, but only one is allowed"),
        ("digraph { a } b", 1, "unexpected text after the last }"),
        ("a -> b", 1, "expected \"digraph\", got 'a'"),
        ("digraph { a $ b }", 1, "unexpected '$' (put names with special characters in quotes)"),
        ("digraph { a -> subgraph x; }", 1, "expected \"{\", got ';'"),
    ],
)
def test_what_is_wrong_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.message) == (line, message)


def test_cycles_are_refused_with_the_cycle() -> None:
    with pytest.raises(CycleError) as caught:
        parse("digraph { a -> b -> c -> b }")
    assert caught.value.cycle in {("b", "c", "b"), ("c", "b", "c")}


@pytest.mark.parametrize(
    "text",
    [
        "digraph {" + "{" * 40_000,
        "digraph {" + "{" * 40_000 + "}" * 40_000 + "}",
        "digraph { a -> " + "{" * 50_000 + "b" + "}" * 50_000 + "}",
        "digraph { a" + " -> {b" * 20_000 + "}" * 20_000 + "}",
        "digraph { " + "{" * 20_000 + "".join(f"n{i}}} -> {{}}" for i in range(20_000)) + "}",
        "digraph { {"
        + " ".join(f"a{i}" for i in range(6000))
        + "} -> {"
        + " ".join(f"b{i}" for i in range(6000))
        + "}}",
        "digraph { a -> " + "<" * 200_000,
        'digraph { "' + "\\" * 200_001,
        "digraph { " + "/* " * 100_000,
        "digraph { a [" + "x=y " * 100_000,
        "digraph { " + ";" * 200_000,
    ],
    ids=lambda text: text[:20],
)
def test_hostile_texts_are_dealt_with_soon(text: str) -> None:
    start = time.perf_counter()
    accepts_or_refuses(parse, text)
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


def test_groups_stand_for_many_arcs_but_not_for_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_ARCS", 10)
    with pytest.raises(FormatError, match=r"^the drawing represents more than 10 arcs \(use a list of arcs\)$"):
        parse("digraph { {a b c d} -> {e f g} }")


good = (
    'strict digraph "g\\\\h" { node [shape=box]; a:p -> {b "c" + "d"} -> <e>; f [label="x\\ny", style=dashed] /* z */ }'
)


@given(place=st.integers(0, len(good)), cut=st.integers(0, 3), put=st.text('{}[]<>"\\+-:;,=/*# ab\n', max_size=3))
def test_any_change_to_a_good_text(place: int, cut: int, put: str) -> None:
    accepts_or_refuses(parse, good[:place] + put + good[place + cut :])


@pytest.mark.parametrize(
    ("text", "is_dot"),
    [
        ("digraph {", True),
        ('// drawn by hand\n/* x */ strict\tdigraph "a {" {', True),
        ("graph G { a -- b }", True),
        ("graph TD\n  A{decide} --> B", False),
        ("digraph -> graph", False),
        ('{"nodes": []}', False),
        ("/*" * 100_000, False),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_looks_like_dot(text: str, is_dot: bool) -> None:
    assert sniff(text) is is_dot


# What engines draw

SNAKEMAKE = """digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
    node[shape=box, style=rounded, fontname=sans, fontsize=10, penwidth=2];
    edge[penwidth=2, color=grey];
\t0[label = "all", color = "0.13 0.6 0.85", style="rounded"];
\t1[label = "sort", color = "0.00 0.6 0.85", style="rounded"];
\t2[label = "fetch\\nlane: 1\\nsample: a", color = "0.40 0.6 0.85", style="rounded,dashed"];
\t3[label = "sort", color = "0.00 0.6 0.85", style="rounded"];
\t4[label = "fetch\\nlane: 1\\nsample: b", color = "0.40 0.6 0.85", style="rounded"];
\t1 -> 0
\t3 -> 0
\t2 -> 1
\t4 -> 3
}
"""


def test_snakemake_draws_jobs_and_dashes_what_is_done() -> None:
    """The arcs go from the job that comes first.

    (fetch a)  fetch b
        |         |
     sort 1    sort 3
          \\    /
           all
    """
    flow = parse(SNAKEMAKE)
    assert flow.dag.tasks == ("all", "sort 1", "sort 3", "fetch lane: 1 sample: b")
    assert set(flow.dag.arcs()) == {("sort 1", "all"), ("sort 3", "all"), ("fetch lane: 1 sample: b", "sort 3")}
    assert [task.category for task in flow.details.values()] == ["all", "sort", "sort", "fetch"]
    assert flow.origin is not None
    assert flow.origin.done == ("fetch lane: 1 sample: a",)
    assert flow.origin.remarks == ("skipped tasks that are drawn as finished: 1",)


def test_dashes_mean_nothing_in_other_drawings() -> None:
    assert parse("digraph g { a [style=dashed]; a -> b }").dag.tasks == ("a", "b")


def test_snakemake_draws_files_in_tables() -> None:
    text = """digraph snakemake_dag {
0 [ shape=none, label=<<table border="2">
<tr><td>
<b><font point-size="18">all</font></b>
</td></tr>
<tr><td align="left"> <b>&#8618; input</b> </td></tr>
</table>>]
1 [ label=<<table><tr><td><b>a &amp; b</b></td></tr></table>> ]
\t1 -> 0
}"""
    assert arcs(text) == {("a & b", "all")}


NEXTFLOW = """digraph "flowchart" {
rankdir=TB;
v0 [shape=point,label="",fixedsize=true,width=0.1,xlabel="Channel.fromPath"];
v1 [label="FASTQC"];
v0 -> v1 [label="reads"];

v1 [label="FASTQC"];
v2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="map"];
v1 -> v2;

v2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="map"];
v3 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="mix"];
v2 -> v3;

v3 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="mix"];
v4 [label="QC:MULTIQC"];
v3 -> v4;

v4 [label="QC:MULTIQC"];
v5 [shape=point];
v4 -> v5;
}
"""


def test_nextflow_draws_processes_and_arcs_pass_through_the_rest() -> None:
    flow = parse(NEXTFLOW)
    assert list(flow.dag.arcs()) == [("FASTQC", "QC:MULTIQC")]
    assert flow.dag.tasks == ("FASTQC", "QC:MULTIQC")
    assert flow.task("FASTQC").category == "FASTQC"


def test_a_drawing_of_operators_alone_is_taken_as_it_is() -> None:
    text = "digraph { v0 [shape=point]; v1 [shape=point]; v0 -> v1 }"
    assert arcs(text) == {("v0", "v1")}


def test_circles_with_names_are_tasks() -> None:
    text = "digraph { node [shape=circle]; v0; v1; v2 [shape=box]; v0 -> v1 -> v2 }"
    assert arcs(text) == {("v0", "v1"), ("v1", "v2")}


def test_a_circle_of_operators_is_passed_through() -> None:
    text = 'digraph { v0 [label=A]; v3 [label=B]; node [shape=circle label=""]; v0 -> v1 -> v2 -> v1; v2 -> v3 }'
    assert arcs(text) == {("A", "B")}


def test_many_arcs_through_few_operators_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_ARCS", 15)
    text = "digraph { v9 [shape=point]; {v0 v1 v2 v3} -> v9 -> {v4 v5 v6 v7} }"
    with pytest.raises(FormatError, match="represents more than 15 arcs"):
        parse(text)


@pytest.mark.parametrize("letter", ["p", "v"])
def test_nextflow_calls_its_nodes_by_either_letter(letter: str) -> None:
    """Before 23.10 they were p0, p1, ...; processes have no shape, and two of the same name stay two."""
    text = """digraph "old" {
p0 [shape=point,label="",fixedsize=true,width=0.1,xlabel="Channel.fromPath"];
p1 [label="FASTQC"];
p0 -> p1 [label="reads"];
p2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="map"];
p1 -> p2;
p3 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="mix"];
p2 -> p3;
p4 [label="MULTIQC"];
p3 -> p4;
p5 [label="MULTIQC"];
p3 -> p5;
p6 [shape=point];
p4 -> p6 [label="report"];
}
"""
    flow = parse(re.sub(r"\bp(?=\d)", letter, text))
    last = {f"MULTIQC {letter}4", f"MULTIQC {letter}5"}
    assert set(flow.dag.arcs()) == {("FASTQC", name) for name in last}
    assert flow.task(f"MULTIQC {letter}4").category == "MULTIQC"


CWLTOOL = """digraph G {
bgcolor="#eeeeee";
"first" [fillcolor=lightgoldenrodyellow, style=filled, label=first, shape=record];
"second" [fillcolor=lightgoldenrodyellow, style=filled, label=second, shape=record];
"first" -> "second";
subgraph cluster_inputs {
label="Workflow Inputs";
"message" [fillcolor="#94DDF4", style=filled, label=message, shape=record];
}
"message" -> "first";
subgraph cluster_outputs {
label="Workflow Outputs";
"out" [fillcolor="#94DDF4", style=filled, label=out, shape=record];
}
"second" -> "out";
}
"""


def test_what_cwltool_draws_as_inputs_and_outputs_is_no_task() -> None:
    flow = parse(CWLTOOL)
    assert flow.dag.tasks == ("first", "second")
    assert len(parse(CWLTOOL.replace("Workflow Inputs", "mine").replace("Workflow Outputs", "mine")).dag) == 4


#: printed by cwltool 3.3.20260925135507 (--print-dot): six steps, one of them scattered, one a workflow of its own
CWL_STEPS = """digraph G {
bgcolor="#eeeeee";
clusterrank=local;
labelloc=bottom;
labeljust=right;
"index" [fillcolor=lightgoldenrodyellow, style=filled, label=index, shape=record];
"align" [fillcolor=lightgoldenrodyellow, style=filled, label=align, shape=record];
"index" -> "align";
"align" [fillcolor=lightgoldenrodyellow, style=filled, label=align, shape=record];
"deeper" [fillcolor="#F3CEA1", style=filled, label=deeper, shape=record];
"align" -> "deeper";
"deeper" [fillcolor="#F3CEA1", style=filled, label=deeper, shape=record];
"inline" [fillcolor=lightgoldenrodyellow, style=filled, label=inline, shape=record];
"deeper" -> "inline";
"align" [fillcolor=lightgoldenrodyellow, style=filled, label=align, shape=record];
"report" [fillcolor=lightgoldenrodyellow, style=filled, label=report, shape=record];
"align" -> "report";
"inline" [fillcolor=lightgoldenrodyellow, style=filled, label=inline, shape=record];
"report" [fillcolor=lightgoldenrodyellow, style=filled, label=report, shape=record];
"inline" -> "report";
subgraph cluster_inputs {
rank=same;
style=dashed;
label="Workflow Inputs";
"reads" [fillcolor="#94DDF4", style=filled, label=reads, shape=record];
"reference" [fillcolor="#94DDF4", style=filled, label=reference, shape=record];
"many" [fillcolor="#94DDF4", style=filled, label=many, shape=record];
}
"reads" -> "align";
"reference" -> "index";
"many" -> "clean_each";
subgraph cluster_outputs {
rank=same;
style=dashed;
label="Workflow Outputs";
labelloc=b;
"also" [fillcolor="#94DDF4", style=filled, label=also, shape=record];
"table" [fillcolor="#94DDF4", style=filled, label=table, shape=record];
}
"clean_each" -> "also";
"report" -> "table";
}
"""


def test_steps_that_cwltool_draws_are_tasks() -> None:
    flow = parse(CWL_STEPS)
    assert flow.dag.tasks == ("index", "align", "deeper", "inline", "report", "clean_each")
    assert ("inline", "report") in flow.dag.arcs()
    assert flow.dag.parents("clean_each") == ()
    assert flow.origin is not None
    assert flow.origin.engine == "cwltool"


#: printed by wdlviz 1.0.0 of miniwdl 1.16.0 (--no-render --inputs --outputs): calls, declarations, two scatters, a condition
WDL_CALLS = """digraph {
  compound=true fontname=Roboto label=<<B>survey</B>> labelloc=t rankdir=LR splines=compound
  node [fontname=Roboto]
  edge [color="#00000080"]
  140000000000000 [label="" height=0 margin=0 style=invis width=0]
  140000000000016 [label=reference shape=plaintext]
  140000000000000 -> 140000000000016 [style=invis]
  140000000000032 [label=index shape=cds]
  140000000000000 -> 140000000000032 [style=invis]
  subgraph "cluster-140000000000048" {
    fontname=Roboto label=<<I>scatter</I>(lanes)> rank=same
    140000000000064 [label=title shape=plaintext]
    140000000000000 -> 140000000000064 [style=invis]
    140000000000080 [label=align shape=cds]
    140000000000000 -> 140000000000080 [style=invis]
    140000000000096 [label=count shape=cds]
    140000000000000 -> 140000000000096 [style=invis]
    140000000000048 [label="" height=0 margin=0 style=invis width=0]
  }
  140000000000000 -> 140000000000048 [style=invis]
  140000000000112 [label=aligned shape=plaintext]
  140000000000000 -> 140000000000112 [style=invis]
  subgraph "cluster-140000000000128" {
    fontname=Roboto label=<<I>if</I>(thorough &amp;&amp; length(aligned) &gt; 0)> rank=same
    140000000000144 [label=inspect shape=cds]
    140000000000000 -> 140000000000144 [style=invis]
    subgraph "cluster-140000000000160" {
      fontname=Roboto label=<<I>scatter</I>(aligned)> rank=same
      140000000000176 [label=redo shape=cds]
      140000000000000 -> 140000000000176 [style=invis]
      140000000000160 [label="" height=0 margin=0 style=invis width=0]
    }
    140000000000000 -> 140000000000160 [style=invis]
    140000000000128 [label="" height=0 margin=0 style=invis width=0]
  }
  140000000000000 -> 140000000000128 [style=invis]
  140000000000192 [label=merge shape=cds]
  140000000000000 -> 140000000000192 [style=invis]
  140000000000208 [label=publish shape=cds]
  140000000000000 -> 140000000000208 [style=invis]
  subgraph "cluster-inputs-140000000000000" {
    140000000000224 [label=reads shape=plaintext]
    140000000000240 [label=lanes shape=plaintext]
    140000000000256 [label=thorough shape=plaintext]
    fontname=Roboto label=<<I>input</I>>
  }
  subgraph "cluster-outputs-140000000000000" {
    140000000000272 [label=report shape=plaintext]
    fontname=Roboto label=<<I>output</I>>
  }
  140000000000224 -> 140000000000016
  140000000000016 -> 140000000000032
  140000000000240 -> 140000000000048 [lhead="cluster-140000000000048"]
  140000000000032 -> 140000000000064
  140000000000064 -> 140000000000080
  140000000000080 -> 140000000000112
  140000000000112 -> 140000000000128 [lhead="cluster-140000000000128"]
  140000000000256 -> 140000000000128 [lhead="cluster-140000000000128"]
  140000000000224 -> 140000000000144
  140000000000112 -> 140000000000160 [lhead="cluster-140000000000160"]
  140000000000112 -> 140000000000192
  140000000000224 -> 140000000000208
  140000000000144 -> 140000000000208
  140000000000192 -> 140000000000208
  140000000000208 -> 140000000000272
}
"""
#: the same without options: a workflow that calls another one twice; what is in that one is drawn once
WDL_CALLED = """digraph {
  compound=true fontname=Roboto label=<<B>outer</B>> labelloc=t rankdir=LR splines=compound
  node [fontname=Roboto]
  edge [color="#00000080"]
  140000000000000 [label="" height=0 margin=0 style=invis width=0]
  140000000000016 [label=begin shape=cds]
  140000000000000 -> 140000000000016 [style=invis]
  subgraph "cluster-140000000000032" {
    fontname=Roboto label=<<B>inner</B>>
    140000000000032 [label="" height=0 margin=0 style=invis width=0]
    140000000000048 [label=one shape=cds]
    140000000000032 -> 140000000000048 [style=invis]
    140000000000064 [label=two shape=cds]
    140000000000032 -> 140000000000064 [style=invis]
    140000000000048 -> 140000000000064
  }
  subgraph "cluster-140000000000080" {
    fontname=Roboto label=<<I>scatter</I>(lanes)> rank=same
    140000000000000 -> 140000000000032 [style=invis]
    140000000000096 -> 140000000000032 [arrowhead=none lhead="cluster-140000000000032" style=dotted]
    140000000000096 [label=<<B>inner</B> <I>as</I> each> shape=cds]
    140000000000000 -> 140000000000096 [style=invis]
    140000000000080 [label="" height=0 margin=0 style=invis width=0]
  }
  140000000000000 -> 140000000000080 [style=invis]
  140000000000000 -> 140000000000032 [style=invis]
  140000000000112 -> 140000000000032 [arrowhead=none lhead="cluster-140000000000032" style=dotted]
  140000000000112 [label=<<B>inner</B> <I>as</I> again> shape=cds]
  140000000000000 -> 140000000000112 [style=invis]
  140000000000128 [label=end shape=cds]
  140000000000000 -> 140000000000128 [style=invis]
  140000000000016 -> 140000000000096
  140000000000096 -> 140000000000112
  140000000000112 -> 140000000000128
}
"""


def test_calls_that_wdlviz_draws_are_tasks_and_wait_for_what_their_section_waits_for() -> None:
    flow = parse(WDL_CALLS)
    assert flow.dag.tasks == ("index", "align", "count", "inspect", "redo", "merge", "publish")
    assert sorted(flow.dag.arcs()) == [
        ("align", "inspect"),  # for the condition around it
        ("align", "merge"),
        ("align", "redo"),
        ("index", "align"),
        ("inspect", "publish"),
        ("merge", "publish"),
    ]
    assert flow.origin is not None
    assert flow.origin.engine == "wdlviz"
    assert len(flow.origin.remarks) == 1


def test_a_workflow_that_is_called_is_one_task() -> None:
    flow = parse(WDL_CALLED)
    each, again = "inner as each", "inner as again"
    assert list(flow.dag.arcs()) == [("begin", each), (each, again), (again, "end")]
    drawn_by_hand = WDL_CALLED.replace("shape=cds", "shape=box")
    assert len(parse(drawn_by_hand).dag) == 9


#: written as the source of womtool has it, not printed by it: calls, a declaration, two scatters within a condition
WOM_CALLS = """digraph survey {
  compound=true;
  "call index" -> "call align"
  "call align" -> "Array[File] aligned"
  "Array[File] aligned" -> "call merge"
  "call align" -> "if (length(align.out) > 0)" [lhead=cluster_0]
  "call merge" -> "scatter (merge.parts)" [lhead=cluster_1]
  "call index"
  "call align"
  "call merge"
  "Array[File] aligned"

subgraph cluster_0 {
  "call inspect"

subgraph cluster_1 {
  "call redo"
  "scatter (merge.parts)" [shape=plaintext]
}

subgraph cluster_2 {
  "call count"
  "if (length(align.out) > 0)" [shape=plaintext]
}

  "if (length(align.out) > 0)" [shape=plaintext]
}

}
"""


def test_calls_that_womtool_draws_are_tasks_and_wait_for_what_their_section_waits_for() -> None:
    flow = parse(WOM_CALLS)
    assert flow.dag.tasks == tuple(f"call {name}" for name in ("index", "align", "merge", "inspect", "redo", "count"))
    assert sorted(flow.dag.arcs()) == [
        ("call align", "call count"),
        ("call align", "call inspect"),
        ("call align", "call merge"),
        ("call align", "call redo"),
        ("call index", "call align"),
        ("call merge", "call redo"),
    ]
    assert flow.origin is not None
    assert flow.origin.engine == "womtool"
    by_hand = parse('digraph { "call a" -> "then b"; "then b" -> "call c" }')
    assert len(by_hand.dag) == 3


@pytest.mark.parametrize(
    ("text", "maker"),
    [
        ('digraph {subgraph "root" {"[root] aws_instance.web (expand)" -> "[root] aws_vpc.main (expand)"}}', "terraform"),
        ('digraph G {\n  rankdir = "RL";\n  node [shape = rect, fontname = "sans-serif"];\n  "a.b" -> "c.d"}', "terraform"),
        ('digraph mygraph {\n  node [shape=box];\n  "//a:b" -> "@c//d:e"\n}', "Bazel"),
        ('digraph compile {\n":build" -> ":a:compileJava" [color=1];\n}', "Gradle's VisTEG"),
        ("// Makefile\ndigraph {\n\trankdir=BT\n\tall -> a\n}", "makefile2dot"),
        ("digraph { a -> b }", None),
        ("digraph mygraph { a -> b }", None),
        ("digraph compile { a -> b }", None),
        ("digraph { }", None),
    ],
)  # fmt: skip
def test_who_draws_arcs_backwards(text: str, maker: str | None) -> None:
    origin = parse(text).origin
    assert origin is not None
    assert origin.backward == maker


def test_arcs_that_are_not_drawn_are_told() -> None:
    flow = parse('digraph { a -> {b c} [style="dashed, invis"]; a -> b; edge [style=invis]; b -> c -> d }')
    assert list(flow.dag.arcs()) == [("a", "b")]
    assert flow.origin is not None
    assert flow.origin.remarks == ("ignored invisible arcs: 4",)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('digraph { n1 [shape=record label="{fetch|in}"]; n2 [shape=Mrecord label="<f0> x"]; n1 -> n2 }', ("n1", "n2")),
        ('digraph { node [shape=record]; n1 [label="fetch"]; n2 [label="x \\| y"]; n1 -> n2 }', ("fetch", "x | y")),
        ('digraph { n1 [label="a|b"]; n2 [label="{c}"]; n1 -> n2 }', ("a|b", "{c}")),
    ],
)
def test_the_fields_of_a_record_are_no_name(text: str, names: tuple[str, ...]) -> None:
    assert parse(text).dag.tasks == names


def test_a_graph_that_is_drawn_after_the_run_says_so() -> None:
    text = 'digraph snakemake_dag { 0 [label="all", style="rounded,dashed"]; 1 [label="a", style="rounded,dashed"]; 1 -> 0 }'
    flow = parse(text)
    assert len(flow.dag) == 0
    assert flow.origin is not None
    assert flow.origin.remarks == ("every task of this graph is done (draw it before the run, or with --forceall)",)


# What tasks are called


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('digraph { 1 [label=x]; 2 [label=y] }', ("x", "y")),
        ('digraph { 1 [label=x]; 2 [label=x] }', ("x 1", "x 2")),
        ('digraph { 1 [label=x]; 2 [label=x]; 3 [label="x 1"] }', ("x 1", "x 2", "x 1 3")),
        ('digraph { 1 [label=x]; 2 }', ("1", "2")),
        ('digraph { 1 [label=x]; n2 [label=y] }', ("1", "n2")),
        ('digraph { a [label="Fetch\\lit"]; b [label="\\N \\G\\\\"] }', ("Fetch it", "b \\")),
        ('digraph { fetch [label="Fetch it"]; b [label=y] }', ("fetch", "b")),
        ('digraph { node [label=""]; 1 2 }', ("1", "2")),
        ('digraph { 1 [label="a\tb"]; 2 [label=y] }', ("a b", "y")),
    ],
)  # fmt: skip
def test_labels_are_names_where_ids_say_nothing(text: str, expected: tuple[str, ...]) -> None:
    tasks = parse(text).dag.tasks
    assert set(tasks) == set(expected) if len(set(expected)) < len(expected) else tasks == expected


def test_what_it_cannot_represent_is_left_out() -> None:
    assert "category" in dot.CANNOT
    assert "name" not in dot.CANNOT


def test_heads_elsewhere_and_invisible_nodes_are_told() -> None:
    origin = parse(
        "digraph { a -> b -> c [dir=back]; c -> d [dir=none]; d -> e [dir=forward]; e [style=invis] }"
    ).origin
    assert origin is not None
    assert origin.remarks == (
        "arcs with dir=back, read from left to right: 2",
        "arcs with dir=none, read from left to right: 1",
        "invisible nodes, read as tasks: 1",
    )
