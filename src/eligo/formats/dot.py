"""The DOT language of Graphviz, to be drawn: `dot -Tsvg`. It is written; it cannot be read yet.

>>> from eligo.formats import arcs
>>> print(generate(arcs.parse('a "b \\\\"c\\\\""')), end="")
digraph {
  "a";
  "b \\"c\\"";
  "a" -> "b \\"c\\"";
}
"""

import re

from eligo.errors import FormatError
from eligo.workflow import Workflow

NAME = "dot"
SUFFIXES = (".dot", ".gv")
PRIORITIES = False
CANNOT = ("anything known of a task beside its name", "sizes of files")

_DIGRAPH = re.compile(r"\s*(?:strict\s+)?(?:di)?graph\b[^{:]{0,1000}\{", re.IGNORECASE)


def parse(text: str) -> Workflow:
    """Not yet: refuses."""
    raise FormatError("DOT can be written but not read yet: give JSON, YAML or a list of arcs")


def generate(flow: Workflow) -> str:
    """The DOT text of a workflow: every task, then every arc."""
    names = [_quoted(name) for name in flow.dag.tasks]
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    title = "" if flow.name is None else _quoted(flow.name) + " "
    nodes = (f"  {name};\n" for name in names)
    return "".join([f"digraph {title}{{\n", *nodes, *(f"  {names[u]} -> {names[v]};\n" for u, v in arcs), "}\n"])


def sniff(text: str) -> bool:
    """Whether the text begins as a graph in DOT does."""
    return _DIGRAPH.match(text) is not None


def _quoted(name: str) -> str:
    """In double quotes; the backslashes are doubled because labels take them for escapes."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
