"""Mermaid flowcharts: what `nextflow -with-dag x.mmd` and `snakemake --dag mermaid-js` print, and people write.

    flowchart TD
        A[Fetch the data] --> B(Align) & C{Enough?}
        B -->|all of it| D
        subgraph late
            C -. perhaps .-> D
        end

An arc goes along its arrow; `A & B` are both; a subgraph at the end of an arc stands for all nodes in it. Lines without a
head are refused, since they do not say which task comes first; invisible ones (`~~~`) are none, and how many there are is
told. Styles, classes, clicks and directions say nothing of a workflow. Frontmatter gives its title as the workflow's name.
A page for a browser that holds one flowchart is read too: see `eligo.formats.mermaid.pages`.

Of what tasks are called, see `eligo.formats.shared.drawing`. Besides:

- Snakemake (its nodes are id0, id1, ... under the title DAG) draws jobs; those with dashes round them need not run, and
  are left out. What stands before the first " - " of a label is the rule, here the category.
- Nextflow draws processes, and channels and operators, which are no tasks: arcs pass through them. Its nodes are v0, v1,
  ..., and `([name])` is a process; before 23.10 they were p0, p1, ..., and `[name]` was one. With `dag.verbose`, operators
  are drawn as processes are, and are read as such; then tasks that are called like operators are told.

>>> flow = parse('flowchart TD; a --> b & c')
>>> print(generate(flow), end="")
flowchart TD
    t0["a"]
    t1["b"]
    t2["c"]
    t0 --> t1
    t0 --> t2
"""

import html
import re

from eligo.formats.mermaid import pages
from eligo.formats.mermaid.chart import Chart, begins, read
from eligo.formats.shared import json_text
from eligo.formats.shared.drawing import Drawing, Label
from eligo.formats.strangers import is_page
from eligo.formats.tracing import by_tasks
from eligo.workflow import Workflow

NAME = "mermaid"
PRIORITIES = False
TAKES = ("trace",)
CANNOT = ("command", "inputs", "outputs", "seconds", "cores", "memory", "category", "priority", "file_sizes")

_TITLE = re.compile(r"^title:[ \t]*+(.*)$", re.MULTILINE)
_BREAK = re.compile(r"<br\s*+/?>|\\n|\n", re.IGNORECASE)
_CODE = re.compile(r"#(?:(\d{1,7})|([A-Za-z][A-Za-z0-9]{0,30}));")
_CODED = re.compile(r'["#;<>&\\`%]|^ | $|[^\S ]| (?= )')
_SNAKEMAKE = re.compile(r"id\d+")
#: how Nextflow's charts begin, and how they began before 23.10
_NEXTFLOW, _OLD_NEXTFLOW = ("flowchart TB", "flowchart LR"), "flowchart TD"
#: operators of Nextflow's that processes are hardly ever called like
_OPERATORS = frozenset(
    ("branch", "collectFile", "combine", "concat", "cross", "flatMap", "flatten", "groupTuple", "ifEmpty", "join", "map",
     "mix", "multiMap", "set", "splitCsv", "toList", "toSortedList", "transpose", "unique")
)  # fmt: skip


def parse(text: str, trace: str | None = None) -> Workflow:
    """The workflow that a flowchart, or a page that holds one, describes; of Nextflow's, with the tasks in a *trace*."""
    source = pages.flowchart(text) if is_page(text) else text
    drawing = _cytoscape(text) if source is None else _drawing(read(source))
    flow = drawing.workflow()
    return flow if trace is None else by_tasks(flow, trace)


def _drawing(chart: Chart) -> Drawing:
    ids = list(chart.nodes)
    labels = [_label(chart.labels.get(i)) for i in range(len(ids))]
    drawing = Drawing(NAME, ids, labels, chart.arcs, _title(chart.front), hidden=chart.hidden)
    if drawing.name == "DAG" and ids and all(map(_SNAKEMAKE.fullmatch, ids)):
        drawing.engine, drawing.done, drawing.ids = "snakemake", chart.dashed, [id.removeprefix("id") for id in ids]
        drawing.labels = [label and tuple(label[0].split(" - ")) for label in labels]
    elif others := _others(chart):
        drawing.engine, drawing.passed = "nextflow", others
        called = (label for i, label in enumerate(labels) if i not in others and label)
        drawing.operators = sum(label[0] in _OPERATORS for label in called)
    return drawing


def _cytoscape(page: str) -> Drawing:
    chart, others = pages.cytoscape(page)
    labels: list[Label] = [(text,) if (text := chart.labels.get(i)) else None for i in range(len(chart.nodes))]
    return Drawing(NAME, list(chart.nodes), labels, chart.arcs, passed=others, engine="nextflow")


def generate(flow: Workflow) -> str:
    """The flowchart of a workflow: every task, then every arc."""
    front = "" if flow.name is None else f"---\ntitle: {json_text.quote(flow.name)}\n---\n"
    nodes = [f'    t{i}["{_coded(name) or " "}"]\n' for i, name in enumerate(flow.dag.tasks)]
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    return "".join([front, "flowchart TD\n", *nodes, *(f"    t{u} --> t{v}\n" for u, v in arcs)])


def sniff(text: str) -> bool:
    """Whether the text begins as a flowchart does, or is a page that holds a drawing."""
    return begins(text) or (is_page(text) and pages.holds_drawing(text))


def _coded(name: str) -> str:
    """The name with codes for what Mermaid takes for something else, and for spaces that it does not keep."""
    return _CODED.sub(lambda found: f"#{ord(found[0])};", name)


def _label(text: str | None) -> Label:
    """The lines of a label, None where there is none."""
    if text is None:
        return None
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = text[1:-1].strip()
    return tuple(_CODE.sub(_character, line.strip()) for line in _BREAK.split(text))


def _character(code: re.Match[str]) -> str:
    """What a code such as #35; or #quot; stands for."""
    if code[2]:
        known = html.unescape(f"&{code[2]};")
        return code[0] if known.startswith("&") and code[2] != "amp" else known
    number = int(code[1])
    return chr(number) if number < 0x110000 else code[0]


def _title(front: str) -> str | None:
    match = _TITLE.search(front)
    if match is None:
        return None
    title = match[1].strip()
    return json_text.unquote(title, front.count("\n", 0, match.start()) + 1) if title.startswith('"') else title


def _others(chart: Chart) -> set[int]:
    """The nodes of Nextflow's channels and operators; none where the chart is not Nextflow's."""
    shapes = [chart.shapes.get(i) for i in range(len(chart.nodes))]
    if not {*shapes} <= {"[", "([", "(("}:
        return set()
    if chart.header in _NEXTFLOW and all(re.fullmatch(r"v\d+", id) for id in chart.nodes):
        others = {i for i, shape in enumerate(shapes) if shape != "(["}
        plain = all(i in chart.around if shapes[i] == "[" else not chart.labels[i].strip() for i in others)
        return others if plain and len(others) < len(shapes) else set()
    if chart.header == _OLD_NEXTFLOW and list(chart.nodes) == [f"p{i}" for i in range(len(shapes))] and "((" in shapes:
        return {i for i, shape in enumerate(shapes) if shape != "["}
    return set()
