"""Drawings in pages for a browser, such as the dag.html and pipeline_dag_*.html of Nextflow: only their text is read.

Such a page of a newer Nextflow holds a Mermaid flowchart, of an older one the nodes and edges for Cytoscape, a line each.

>>> flowchart("<html><pre class='mermaid'>flowchart TD\\na --&gt; b</pre></html>")
'flowchart TD\\na --> b'
"""

import html
import re
from collections.abc import Iterator

from eligo.errors import FormatError, UnknownTaskError, shorten
from eligo.formats.mermaid.chart import Chart, begins

_BLOCK = re.compile(
    r"""<(?P<tag>pre|div|code)\s[^<>]{0,1000}?\bclass\s*=\s*["']?[^"'<>]{0,200}?\bmermaid\b[^<>]{0,1000}>""",
    re.IGNORECASE,
)
_ELEMENTS = re.compile(r"^elements: \{\s*nodes: \[\r?\n", re.MULTILINE)
_NODE = re.compile(r"\{ data: \{ id: '([^']*)'(?:, label: '(.*)')?\}, classes: '(\w+)' \},?")
_EDGE = re.compile(r"\{ data: \{ source: '([^']*)', target: '([^']*)'(?:, label: '.*' )?\} \},?")
#: what stands between the nodes and the edges, and after them
_SIGNS = frozenset(("", "],", "edges: ["))
_END = "},"


def holds_drawing(page: str) -> bool:
    """Whether a page holds a drawing that is read."""
    return _BLOCK.search(page) is not None or _ELEMENTS.search(page) is not None


def flowchart(page: str) -> str | None:
    """The text of the flowchart in a page, in its place; None where the page holds a drawing for Cytoscape instead."""
    blocks = [text for text in _blocks(page) if begins(text)]
    if len(blocks) > 1:
        raise FormatError(f"the page holds {len(blocks)} flowcharts: save the one to read as a .mmd file")
    if not blocks and not _ELEMENTS.search(page):
        raise FormatError("the page holds no flowchart: draw the dag as .mmd or .dot")
    return blocks[0] if blocks else None


def _blocks(page: str) -> Iterator[str]:
    """The texts of the diagrams in a page, each behind as many empty lines as the page has lines before it."""
    place = 0
    while block := _BLOCK.search(page, place):
        place = page.find(f"</{block['tag']}", block.end())
        place = len(page) if place < 0 else place
        yield "\n" * page.count("\n", 0, block.end()) + html.unescape(page[block.end() : place])


def cytoscape(page: str) -> tuple[Chart, set[int]]:
    """The nodes and arcs that Nextflow drew for Cytoscape, and those of the nodes that are no processes."""
    chart, others = Chart(), set[int]()
    ends: list[tuple[str, str, int]] = []
    for line, number in _data(page):
        if node := _NODE.fullmatch(line):
            place = chart.nodes.setdefault(node[1], len(chart.nodes))
            chart.labels |= {place: node[2]} if node[2] else {}
            others |= {place} if node[3] != "PROCESS" else set()
        elif edge := _EDGE.fullmatch(line):
            ends.append((edge[1], edge[2], number))
        elif line not in _SIGNS:
            raise FormatError(f"a node or an edge of the drawing was expected, not {shorten(line)!r}", line=number)
    chart.arcs = [(_place(chart, tail, line), _place(chart, head, line)) for tail, head, line in ends]
    return chart, others


def _data(page: str) -> Iterator[tuple[str, int]]:
    """The lines of the drawing's data, with their numbers."""
    begin = _ELEMENTS.search(page)
    place = begin.end() if begin else len(page)
    for number, line in enumerate(page[place:].split("\n"), page.count("\n", 0, place) + 1):
        if line.strip() == _END:
            return
        yield line.strip(), number
    raise FormatError("the data of the drawing have no end: the page is cut off")


def _place(chart: Chart, name: str, line: int) -> int:
    if name not in chart.nodes:
        raise UnknownTaskError(name).at(line)
    return chart.nodes[name]
