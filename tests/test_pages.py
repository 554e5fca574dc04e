"""Static pages: documents as agreed with the page, one file that loads nothing and lets nothing in its data run."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eligo import families
from eligo.cli import run
from eligo.clusters import cluster
from eligo.dag import Dag
from eligo.errors import NotBuiltError
from eligo.explaining import explain
from eligo.pages.dag_picture import Drawn
from eligo.pages.html import NO_SCRIPT, data_text, save_page, static_page
from eligo.pages.plans import plan_page, reasons
from eligo.pages.reports import cluster_report, report_page
from eligo.pages.views import Sampled
from eligo.planning import plan
from eligo.simulation import deal
from eligo.simulation.reports import Curve, Panel, Picture, Report, Section, Table
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Task, Workflow

draws = pytest.mark.skipif(find_spec("matplotlib") is None, reason="figures need matplotlib: pip install 'eligo[plot]'")

AWKWARD = (
    "</script><script>alert(1)</script>",
    "<!--",
    "a\u2028b\u2029c",
    "]]>",
    'say "hi"',
    "任务\ud800",
    "<img src=x onerror=alert(1)>",
)
SCRIPT = 'const a="</script>",b="<!-- <script>";\r\ndocument.title=a+b;'
STYLE = 'body::after{content:"</style>"}\r\n'


def fake(name: str) -> bytes | None:
    """A page that is built."""
    return {"page.js": SCRIPT.encode(), "page.css": STYLE.encode(), "index.html": b"<!doctype html>"}[name]


def absent(name: str) -> bytes | None:
    """No page."""
    return None


class Read(HTMLParser):
    """The elements of a page with their attributes and what is directly in them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"after {tag}", {}, []))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1][2].append(data)

    def text_of(self, tag: str, **wanted: str) -> list[str]:
        return ["".join(text) for name, attrs, text in self.found if name == tag and wanted.items() <= attrs.items()]


# Files


def test_a_page_is_one_document_whose_policy_names_its_own_program_and_style() -> None:
    page = static_page({"kind": "report", "title": "t"}, "a <b>", fake)
    assert page is not None
    read = Read(page)
    (policy,) = [
        attrs["content"] for tag, attrs, _ in read.found if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    programs = [text for text in read.text_of("script") if not text.startswith("{")]
    (style,) = read.text_of("style")
    assert len(programs) == 1
    for text, kind in ((programs[0], "script-src"), (style, "style-src")):
        assert "\r" not in text
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in str(policy)
    rules = ("default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'")
    assert all(rule in str(policy) for rule in rules)
    assert "unsafe" not in str(policy)
    assert read.text_of("title") == ["a <b>"]
    assert NO_SCRIPT in page
    assert not [attrs for _, attrs, _ in read.found if {"src", "href"} & {*attrs}]


def test_neither_the_program_nor_the_data_can_end_the_element_that_they_are_in() -> None:
    document = {"title": AWKWARD[0], "names": AWKWARD}
    page = static_page(document, AWKWARD[0], fake)
    assert page is not None
    assert page.lower().count("</script") == page.lower().count("<script") == 2
    assert page.lower().count("</style") == 1
    assert "<!--" not in page
    (data,) = Read(page).text_of("script", id="data")
    assert json.loads(data) == {"title": AWKWARD[0], "names": [name.replace("\ud800", "\ufffd") for name in AWKWARD]}
    assert not set(data) & {"<", "\u2028", "\u2029"}
    assert r"\x3c/script>" in page  # the program means what it meant
    page.encode()


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        data_text({"a": float("nan")})


def test_a_page_is_written_only_where_it_is_built(tmp_path: Path) -> None:
    document = {"kind": "report", "title": "t", "headline": ["All is well."]}
    with pytest.raises(NotBuiltError, match="make page"):
        static_page(document, "t", absent)
    with pytest.raises(NotBuiltError, match="the page is not built"):
        save_page(tmp_path / "a.html", lambda: document, absent)
    assert not (tmp_path / "a.html").exists()
    save_page(tmp_path / "b.html", lambda: document, fake)
    page = (tmp_path / "b.html").read_text("utf-8")
    assert 'id="data"' in page
    assert "<title>t: All is well.</title>" in page


# Curves and dags


def test_samples_keep_the_least_and_the_most_of_every_column_and_the_mean_of_all() -> None:
    rng = np.random.default_rng(3)
    for points, most in ((5, 9), (480, 480), (481, 480), (10_007, 480)):
        values = rng.integers(0, 1000, points)
        columns = Sampled(points, most)
        line, ends = columns.line(values), [*columns.starts.tolist(), points]
        assert len(line["y"]) == min(points, most)
        assert columns.sampled == (points > most)
        if columns.sampled:
            parts = [values[a:b] for a, b in pairwise(ends)]
            assert line["least"] == [part.min() for part in parts]
            assert line["most"] == [part.max() for part in parts]
            assert np.allclose(line["y"], [part.mean() for part in parts], atol=0.01)


LARGE: dict[str, Any] = {
    "layers": lambda: families.random_layered(20, 5_000, seed=1),
    "mesh": lambda: families.out_mesh(446),
    "chain": lambda: families.grid(1, 100_000),
    "scattered": lambda: families.random_dag(100_000, 0.00003, seed=1),
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_dag_of_a_hundred_thousand_tasks_is_drawn_with_few_nodes(kind: str) -> None:
    flow = Workflow(LARGE[kind]())
    drawn = Drawn(flow)
    check_dag(drawn.document(), flow, drawn)
    assert len(drawn.document()["nodes"]) <= 2_000


@pytest.mark.parametrize("dag", [families.out_mesh(9), Dag.from_arcs([]), Dag.from_arcs([], tasks="abc")])
def test_a_small_dag_is_drawn_task_by_task(dag: Dag) -> None:
    flow = Workflow(dag)
    drawn = Drawn(flow)
    document = drawn.document()
    check_dag(document, flow, drawn)
    assert not document["aggregated"]
    assert [node["label"] for node in document["nodes"]] == [*dag.labels]


def check_dag(document: dict[str, Any], flow: Workflow, drawn: Drawn) -> None:
    """As agreed: every task in one node, every arc between nodes, everything within the picture."""
    nodes, arcs = document["nodes"], document["arcs"]
    assert {*document} == {"aggregated", "tasks", "width", "height", "kinds", "nodes", "arcs"}
    wanted = {"id", "label", "kind", "x", "y", "w", "h", "count", "tasks", "counts"}
    assert all({*node} == wanted and len(node["tasks"]) <= 10 for node in nodes)
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    assert [node["count"] for node in nodes] == np.bincount(drawn.of, minlength=len(nodes)).tolist()
    assert all(-1 <= node["kind"] < len(document["kinds"]) for node in nodes)
    assert all(0 <= node["x"] <= document["width"] and 0 <= node["y"] <= document["height"] for node in nodes)
    assert all({tail, head} <= {*range(len(nodes))} for tail, head, _, _ in arcs)
    between = drawn.of[flow.dag.tails] != drawn.of[flow.dag.child]
    assert sum(count for _, _, count, _ in arcs) == between.sum()
    level = {node["id"]: node["y"] for node in nodes}
    assert all(level[tail] < level[head] for tail, head, _, _ in arcs)


# Plans


def page_of(flow: Workflow) -> dict[str, Any]:
    found = plan(flow)
    return plan_page(found, flow, explain(flow, found))


@draws
def test_the_document_of_a_plan_is_as_agreed() -> None:
    dag = families.random_layered(4, 6, seed=2)
    flow = Workflow(dag, {name: Task(name=name, seconds=2.5) for name in dag.tasks}, name="layers")
    document, found = page_of(flow), plan(flow)
    keys = {"kind", "title", "headline", "facts", "words", "curve", "dag", "figures", "table"}
    assert {*document} == keys
    assert (document["kind"], document["title"]) == ("plan", "layers")
    assert json.loads(json.dumps(document)) == document
    assert document["headline"][0] not in document["words"]
    curve = document["curve"]
    assert {*curve} == {"steps", "lines", "starved", "averages", "sampled", "remark"}
    assert {*curve["lines"]} == {*curve["averages"]} == {"seen", "plan", "bound", "fifo"}
    assert curve["lines"]["seen"] is None
    assert curve["lines"]["plan"]["y"] == [*found.profile]
    assert curve["averages"]["plan"] == round(found.average, 2)
    assert all({*node["counts"]} == set() for node in document["dag"]["nodes"])
    assert document["table"]["columns"] == ["place", "task", "kind", "why", "seconds"]
    rows = document["table"]["rows"]
    assert [row[:2] for row in rows] == [[place, name] for place, name in enumerate(found.order, 1)]
    assert {row[4] for row in rows} == {2.5}
    for figure in document["figures"]:
        assert {*figure} == {"title", "svg", "alt"}
        assert figure["svg"].startswith("<svg")
        assert 'xmlns="http://www.w3.org/2000/svg"' in figure["svg"]
        assert figure["alt"]


@draws
def test_a_plan_with_a_conflict_has_a_figure_of_it() -> None:
    arcs = [("hub", f"leaf_{i}") for i in range(12)] + [(f"up_{i}", f"down_{j}") for i in range(4) for j in range(40)]
    titles = [figure["title"] for figure in page_of(Workflow(Dag.from_arcs(arcs)))["figures"]]
    assert len(titles) == 2
    assert titles[1].startswith("Why no order is best at every step")


def test_without_matplotlib_there_is_a_page_without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.pages.plans.can_draw", lambda: False)
    assert page_of(Workflow(families.out_mesh(4)))["figures"] == []
    assert page_of(Workflow(Dag.from_arcs([])))["table"]["rows"] == []


@draws
def test_a_long_curve_is_sampled() -> None:
    dag = families.fork_join(100, 5, 10)
    curve = page_of(Workflow(dag))["curve"]
    assert curve["sampled"]
    assert len(curve["steps"]) == len(curve["lines"]["plan"]["y"]) == len(curve["lines"]["bound"]["most"]) == 480
    assert max(curve["lines"]["plan"]["most"]) == max(plan(dag).profile)


def test_why_a_task_has_its_place_is_what_it_makes_ready_there() -> None:
    """By a slow count: as many as become ready by it, among these the ones that are named."""
    for dag in (families.out_mesh(7), families.random_layered(5, 9, seed=4), families.butterfly(3)):
        found = plan(dag)
        told = reasons(dag, found.sequence)
        counts = eligible_counts(dag, found.sequence)
        for place, v in enumerate(found.sequence.tolist()):
            made = int(counts[place + 1] - counts[place]) + 1
            many = re.match(r"Makes (\d+) tasks ready", told[v])
            shown = int(many[1]) if many else int(told[v].startswith("Makes "))
            assert shown == made
            if not made:
                assert told[v] == "No task depends on it." if not dag.outdegree[v] else told[v].startswith("One of ")


# Reports


def sample() -> Report:
    marked = Table(
        title="", head=["", "agrees", "why"], rows=[["w", "NO", "because"]], marked={(0, 1): "no", (0, 2): "why"}
    )
    curves = [Curve(label="plan", x=[1.0, 2.0], y=[1.0, 1.5])]
    panels = [Panel(title="a", across="x", up="y", curves=curves), Panel(title="b", words="Nothing differs.")]
    table = Table(
        title="t", head=["", "n", "word"], rows=[["*p", "1,200", "a"], [" q", "+3%", "b"]], marked={(0, 0): "best"}
    )
    pictures = [Picture(name="n", title="T", panels=panels)]
    section = Section(title="s", answer="This.", words=["Words."], tables=[marked, table], pictures=pictures)
    return Report(title="r", words=["* best", "other"], sections=[section])


@draws
def test_the_document_of_a_report_is_as_agreed() -> None:
    document = report_page(sample(), [("runs", 5)])
    assert {*document} == {"kind", "title", "headline", "facts", "sections"}
    assert document["kind"] == "report"
    assert document["headline"] == ["This."]
    assert document["facts"] == [["runs", 5]]
    section, notes = document["sections"]
    assert {*section} == {*notes} == {"title", "words", "tables", "figures"}
    assert section["words"] == ["Words.", "Nothing differs."]  # the answer is the headline
    marked, table = section["tables"]
    assert marked["rows"][0][1:] == [{"text": "NO", "mark": "no"}, {"text": "because", "mark": "why"}]
    assert table["rows"] == [[{"text": "p", "mark": "best"}, "1,200", "a"], ["q", "+3%", "b"]]
    assert table["numbers"] == [False, True, False]
    assert len(section["figures"]) == 1
    assert notes["words"] == ["★ best", "other"]
    assert json.loads(json.dumps(document)) == document


@draws
@pytest.mark.parametrize("several", [False, True])
def test_fat_tasks_have_a_page(several: bool) -> None:
    mesh = families.out_mesh(5)
    found = deal(mesh, [4, 2]) if several else cluster(mesh, 5)
    document = report_page(cluster_report(mesh, found), [], ["All of it."])
    (section,) = document["sections"]
    assert len(section["tables"][0]["rows"]) == (len(found) if several else 1)
    assert len(section["figures"]) == 1
    assert document["headline"] == ["All of it."]


# The command


@draws
@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize(
    "words",
    [
        ["explain", "mesh.json"],
        ["compare", "mesh.json", "--runs", "2", "--rates", "2,4", "--clients", "2"],
        ["cluster", "mesh.json", "--sizes", "3,2"],
        ["cluster", "mesh.json", "--size", "4"],
    ],
)
def test_the_command_writes_the_page_or_says_how_to_get_it(
    words: list[str], built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eligo.pages.html.asset", fake if built else absent)
    mesh = families.out_mesh(5)
    Path("mesh.json").write_text(json.dumps({"arcs": [*mesh.arcs()]}), "utf-8")
    assert run([*words, "-o", "page.html"]) == (0 if built else 1)
    said, written = capfd.readouterr(), Path("page.html")
    assert said.out
    if not built:
        assert "page.html: the page is not built" in said.err
        assert not written.exists()
        return
    page = written.read_text("utf-8")
    assert "eligo: wrote page.html" in said.err
    assert page.startswith("<!doctype html>")
    assert 'id="data"' in page
    assert words[0] == "compare" or r"\u003csvg" in page
