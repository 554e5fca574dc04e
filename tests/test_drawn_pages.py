"""Pages for a browser that hold a drawing, as Nextflow and nf-core pipelines leave them behind, are read like the drawing."""

import time
from pathlib import Path

import pytest

import eligo
from eligo.errors import FormatError
from eligo.formats import detect, parse
from test_mermaid import NEXTFLOW

TOP = "<!--\n  ~ A licence, which is -- not -> read\n  -->\n<html>\n<head>\n<meta name='viewport'>\n</head>\n<body>\n"
INIT = "%%{\n  init: {\n    'theme': 'base'\n  }\n}%%\n"
END = "</body>\n</html>\n"


def page(*charts: str) -> str:
    blocks = (f'<pre class="mermaid" style="text-align: center;">\n{INIT}{chart}\n</pre>\n' for chart in charts)
    return f"{TOP}{''.join(blocks)}<script>mermaid.initialize({{}});</script>\n{END}"


CYTOSCAPE = f"""{TOP}<script>
    $(function(){{ var cy = cytoscape({{
elements: {{
nodes: [
{{ data: {{ id: 'p0', label: 'Channel.fromPath'}}, classes: 'ORIGIN' }},
{{ data: {{ id: 'p1', label: 'INDEX'}}, classes: 'PROCESS' }},
{{ data: {{ id: 'p2'}}, classes: 'NODE' }},
{{ data: {{ id: 'p3', label: 'it's a map'}}, classes: 'OPERATOR' }},
{{ data: {{ id: 'p4', label: 'QUANT'}}, classes: 'PROCESS' }},
],
edges: [
{{ data: {{ source: 'p0', target: 'p1', label: 'reads' }} }},
{{ data: {{ source: 'p1', target: 'p3'}} }},
{{ data: {{ source: 'p3', target: 'p4'}} }},
{{ data: {{ source: 'p4', target: 'p2'}} }},
],
}},

    }}); }});
</script>
{END}"""


def test_a_page_with_a_flowchart_is_read_like_the_flowchart(tmp_path: Path) -> None:
    path = tmp_path / "pipeline_dag_2025-01-01_12-00-00.html"
    path.write_text(page(NEXTFLOW), "utf-8")
    flow, plain = eligo.read(path), parse(NEXTFLOW, "mermaid")
    assert (flow.dag, flow.details) == (plain.dag, plain.details)
    assert flow.origin is not None
    assert plain.origin is not None
    assert (flow.origin.engine, flow.origin.remarks) == ("nextflow", plain.origin.remarks)


def test_what_is_escaped_in_a_page_is_text() -> None:
    text = "<!doctype html><div id=x class='big mermaid'>flowchart TD\nA[&lt;x&gt; &amp;amp; y] --&gt; B[z]</div>"
    assert list(parse(text).dag.arcs()) == [("<x> &amp; y", "z")]


def test_other_diagrams_of_a_page_are_passed_over() -> None:
    assert list(parse(page("pie\n 'a': 1", "flowchart TD\naa --> bb")).dag.arcs()) == [("aa", "bb")]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (page("flowchart TD\naa --> bb", "graph LR\ncc --> dd"), "the page has 2 flowcharts", None),
        (page("pie\n 'a': 1"), "the page has no flowchart", None),
        (page("flowchart TD\naa --- bb"), "a line without an arrowhead", 16),
        (CYTOSCAPE.replace("id: 'p1'", "id: f(1)"), "expected a node or an edge of the drawing", 14),
        (CYTOSCAPE.replace("target: 'p3'", "target: 'p9'"), "p9", 21),
        (CYTOSCAPE.partition("],\n}")[0], "the page is incomplete", None),
        ("<html><body>hello</body></html>", "this looks like an HTML page, which eligo cannot read", None),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, message: str, line: int | None) -> None:
    with pytest.raises(eligo.InputError, match=message) as caught:
        parse(text)
    assert caught.value.line == line


def test_a_page_for_cytoscape_is_read_too() -> None:
    assert detect("dag.html", CYTOSCAPE) == "mermaid"
    flow = parse(CYTOSCAPE)
    assert list(flow.dag.arcs()) == [("INDEX", "QUANT")]
    assert flow.origin is not None
    assert flow.origin.engine == "nextflow"
    assert flow.task("QUANT").category == "QUANT"


def test_a_page_may_be_made_finer_by_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("name\tstatus\trealtime\nINDEX (a)\tCOMPLETED\t2s\nQUANT (a)\tCOMPLETED\t3s\n", "utf-8")
    assert list(parse(CYTOSCAPE, trace=str(trace)).dag.arcs()) == [("INDEX (a)", "QUANT (a)")]


@pytest.mark.parametrize(
    "piece", ["<pre ", "<pre class=", '<pre class="mermaid">', "<!--", "<div class='mermaid' ", "<"]
)
def test_large_pages_are_read_in_time_in_proportion(piece: str) -> None:
    begin = time.process_time()
    with pytest.raises(FormatError):
        parse("<html>" + piece * 100_000)
    assert time.process_time() - begin < 30
