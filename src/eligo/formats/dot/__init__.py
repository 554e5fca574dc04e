"""The DOT language of Graphviz, all of it: what `dot -Tsvg` draws, `snakemake --dag` and `nextflow -with-dag` print.

    digraph "two steps" {
      fetch -> {align count} -> report
      report [label="all of it"]
    }

An arc goes from the task that comes first to the one that needs it, whatever `dir` says of its head (how many there are with
another head, and how many invisible nodes, is told); arcs that are not drawn
(`style=invis`) are none, and how many there are is told. A subgraph at the end of an arc stands for all nodes in it. An
undirected graph is refused.

Of what tasks are called, see `eligo.formats.shared.drawing`; the fields of a record (`shape=record`) are no label. Besides,
see `eligo.formats.dot.makers` and:

- Snakemake (its graph is called snakemake_dag) draws jobs, and dashed those that need not run: these are left out. The first
  line of a label is the rule, here the category; the others are wildcards. `--rulegraph` and `--filegraph` are read too.
- Nextflow (its nodes are v0, v1, ..., before 23.10 p0, p1, ...) draws processes, and as points and small circles channels
  and operators, which are no tasks: arcs pass through them. The process is the category.

What is written is read back letter by letter. Graphviz takes a backslash in a name for the beginning of an escape when it
draws the name, so it is doubled; where doubled ones are read, they are halved, if all names still differ then.

>>> flow = parse('digraph { a -> "b \\\\"c\\\\"" }')
>>> print(generate(flow), end="")
digraph {
  "a";
  "b \\"c\\"";
  "a" -> "b \\"c\\"";
}
"""

import html
import re
from collections.abc import Mapping

from eligo.formats.dot.graph import Html, read
from eligo.formats.dot.makers import backward, drawn_by, no_tasks, sections
from eligo.formats.shared.drawing import Drawing, Label
from eligo.formats.tracing import by_tasks
from eligo.workflow import Workflow

NAME = "dot"
PRIORITIES = False
TAKES = ("trace",)
CANNOT = ("command", "inputs", "outputs", "seconds", "cores", "memory", "category", "priority", "file_sizes")

_BEGINS = re.compile(
    r"""(?>\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n]*+)*+
        (?:strict\s++)?+ (?:di)?graph \s*+ (?:[\w.-]++|"(?:[^"\\]++|\\.)*+")?+ \s*+ \{""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FACE = re.compile(r"</?(?:b|i|u|o|s|sub|sup|font)(?:\s[^>]*+)?+>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*+>")
_FIELDS = re.compile(r"(?<!\\)[{}|<>]")


def parse(text: str, trace: str | None = None) -> Workflow:
    """The workflow that a DOT text describes; of Nextflow's, with the tasks in the file of a *trace*."""
    graph = read(text)
    ids, title = list(graph.nodes), graph.name
    labels = [_label(graph.attributes.get(i, {}), id, title or "") for i, id in enumerate(ids)]
    name = None if title is None else title.replace("\\\\", "\\")
    drawing = Drawing(NAME, _halved(ids), labels, graph.arcs, name, hidden=graph.hidden, backward=backward(graph, text))
    drawing.turned = graph.turned
    if title == "snakemake_dag":
        drawing.engine = "snakemake"
        drawing.done = {i for i, known in graph.attributes.items() if "dashed" in known.get("style", "").split(",")}
    elif passed := no_tasks(graph):
        drawing.engine, drawing.passed = drawn_by(graph), passed
        if drawing.engine in {"wdlviz", "womtool"}:
            drawing.hidden, drawing.arcs = (
                0,
                [*graph.arcs, *sections(graph)],
            )  # what is hidden only lays out the picture
    drawing.unseen = sum(
        known.get("style") == "invis" for i, known in graph.attributes.items() if i not in drawing.passed
    )
    flow = drawing.workflow()
    return flow if trace is None else by_tasks(flow, trace)


def generate(flow: Workflow) -> str:
    """The DOT text of a workflow: every task, then every arc."""
    names = [_quoted(name) for name in flow.dag.tasks]
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    title = "" if flow.name is None else _quoted(flow.name) + " "
    nodes = (f"  {name};\n" for name in names)
    return "".join([f"digraph {title}{{\n", *nodes, *(f"  {names[u]} -> {names[v]};\n" for u, v in arcs), "}\n"])


def sniff(text: str) -> bool:
    """Whether the text begins as a graph in DOT does."""
    return _BEGINS.match(text) is not None


def _quoted(name: str) -> str:
    """In double quotes; the backslashes are doubled because labels take them for escapes."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _halved(ids: list[str]) -> list[str]:
    halved = [id.replace("\\\\", "\\") for id in ids]
    return halved if len(set(halved)) == len(halved) else ids


def _label(known: Mapping[str, str], id: str, title: str) -> Label:
    """The lines of a node's label; of one in HTML the first that has text; None where there is nothing to read."""
    value = known.get("label")
    if value is None or (known.get("shape") in {"record", "Mrecord"} and _FIELDS.search(value)):
        return None
    if isinstance(value, Html):
        texts = (html.unescape(line).strip() for line in _TAG.sub("\n", _FACE.sub("", value)).split("\n"))
        first = next(filter(None, texts), None)
        return None if first is None else (first,)
    drawn = {"n": "\n", "l": "\n", "r": "\n", "N": id, "G": title}
    lines = _ESCAPE.sub(lambda found: drawn.get(found[1], found[1]), value).split("\n")
    return tuple(line.strip() for line in lines if line.strip()) or None
