"""Mermaid flowcharts, as printed by `nextflow -with-dag x.mmd` and `snakemake --dag mermaid-js`, or written by people.

    flowchart TD
        A[Fetch the data] --> B(Align) & C{Enough?}
        B -->|all of it| D
        subgraph late
            C -. perhaps .-> D
        end

An arc has the direction of its arrow; `A & B` means both nodes; a subgraph at the end of an arc represents all nodes in it.
Lines without an arrowhead are refused, because they do not order tasks. Invisible lines (`~~~`) are ignored, and a remark
counts them. Styles, classes, clicks and directions are ignored. The title in the frontmatter is the workflow's name. A web
page with one flowchart is read, too.

`eligo.formats.shared.drawings` describes the names of tasks.

- Snakemake (whose nodes are id0, id1, ... under the title DAG) draws jobs. Those with dashed borders need not run, and are
  left out. The part of a label before the first " - " is the rule, here the category.
- Nextflow draws processes, and also channels and operators, which are not tasks: arcs pass through them. Its nodes are v0,
  v1, ..., and `([name])` is a process; before 23.10 they were p0, p1, ..., and `[name]` was a process. With `dag.verbose`,
  operators look like processes and are read as tasks; a remark counts the tasks with names of operators.

>>> flow = parse('flowchart TD; a --> b & c')
>>> print(generate(flow), end="")
flowchart TD
    t0["a"]
    t1["b"]
    t2["c"]
    t0 --> t1
    t0 --> t2

>>> chart = read_chart('flowchart LR\\n  a["the start"] --> b & c\\n')
>>> list(chart.nodes), chart.arcs, chart.labels
(['a', 'b', 'c'], [(0, 1), (0, 2)], {0: 'the start'})

Web pages with drawings, such as dag.html and pipeline_dag_*.html of Nextflow, are read as text. They contain a Mermaid
flowchart, or in older versions the nodes and edges for Cytoscape, one per line.

>>> flowchart("<html><pre class='mermaid'>flowchart TD\\na --&gt; b</pre></html>")
'flowchart TD\\na --> b'
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from eligo.errors import FormatError, UnknownTaskError, shorten
from eligo.formats.detection import is_page
from eligo.formats.shared import json_text
from eligo.formats.shared.drawings import Drawing, Group, Label, check_count
from eligo.formats.traces import by_tasks
from eligo.workflow import Workflow

# Flowcharts

_FRONT = re.compile(r"\s*+---[ \t\r]*+\n(.*?)\n[ \t]*+---[ \t\r]*+(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"^[ \t]*+%%[^\n]*+", re.MULTILINE)
_HEADER = re.compile(
    r"\s*+(?:flowchart(?:-elk)?|graph)(?![\w-])[ \t]*+(?:TB|TD|BT|RL|LR|BR|[<>^v])?[ \t\r]*+(?:;|(?:%%[^\n]*+)?(?:\n|\Z))"
)
_BLANK = re.compile(r"(?:[\s;]++|%%[^\n]*+)*+")
_OVER = re.compile(r"[ \t\r]*+(?:[;\n]|%%|\Z)")
_ARROW = r"(?![ \t]*+[<xo]?(?:--|==|-\.))"  # a node may have the name of a statement
_ASIDE = re.compile(
    rf"""accDescr[ \t]*+\{{[^}}]*+\}} | (?:accTitle|accDescr)(?=[ \t:])[^\n]*+
      | direction[ \t]++(?:TB|TD|BT|RL|LR)(?!\w)[^\n]*+
      | (?:classDef|class|linkStyle)(?=[ \t]){_ARROW}[^\n;]*+
      | click(?=[ \t]){_ARROW}(?:"[^"]*+"|\([^)]*+\)|[^\n;"(])*+""",
    re.VERBOSE,
)
_STYLE = re.compile(rf"style(?=[ \t]){_ARROW}[ \t]++([^\s;]++)([^\n;]*+)")
_SUBGRAPH = re.compile(
    r"""subgraph(?=[\s;]) [ \t]*+ (?: "(?P<title>[^"]*+)" | (?P<name>(?:[^\n;%\[\](){}<>|"~]++|%(?!%))*+) ) [ \t]*+
        (?:\[(?:"[^"]*+"|[^\[\](){}|"]++)\])?+ (?=[ \t\r]*+(?:[;\n]|%%|\Z))""",
    re.VERBOSE,
)
_END = re.compile(r"end(?=[\s;]|\Z)")
_ID = re.compile(r"(?:[^\s\[\](){}<>|;@\"~=:-]|-(?![-.])|=(?!=)|:(?!::))++")
_KEYWORDS = frozenset(("end", "style", "class", "classDef", "click", "linkStyle", "subgraph"))
_AND = re.compile(r"[ \t]++&[ \t]++")
_CLASS = re.compile(r":::(?:[\w,]|-(?![-.]))++")
_DATA = re.compile(r'@\{((?:"[^"]*+"|[^"}]++)*+)\}')
_DATA_LABEL = re.compile(r'\blabel\s*+:\s*+"([^"]*+)"')
_LINK = re.compile(
    r"""(?: [ \t]*+ (?P<id>\w++)@ | \s*+ ) (?P<back><?) (?:
          [xo]? (?: --+(?P<thin>[-xo>]) | ==+(?P<thick>[=xo>]) | -?\.++-(?P<dotted>[xo>]?) )
        | (?P<hidden>~~~++)
        | [xo]? (?: --(?:\s*+"[^"]*+"\s*+|(?:[^-]++|-(?!-))++)--+(?P<thin_after>[-xo>])
                  | ==(?:\s*+"[^"]*+"\s*+|(?:[^=]++|=(?!=))++)==+(?P<thick_after>[=xo>])
                  | -\.(?:\s*+"[^"]*+"\s*+|(?:[^.]++|\.++(?!-))++)\.++-(?P<dotted_after>[xo>]?) ) )
        \s*+ (?:\|(?:"[^"]*+"|[^|\n]*+)\|)?+ \s*+""",
    re.VERBOSE,
)
#: how a shape begins, longer ones first, and how it may end
_SHAPES = {
    "(((": (")))",), "([": ("])",), "((": ("))",), "(-": ("-)",), "[[": ("]]",), "[(": (")]",), "{{": ("}}",),
    "[/": ("/]", "\\]"), "[\\": ("\\]", "/]"), "(": (")",), "[": ("]",), "{": ("}",), ">": ("]",),
}  # fmt: skip
_BORDERS = re.compile(r"\[\|[^\s\[\]|:]++:[^\s\[\]|:]++\|")
#: the text in a shape, in which brackets must be in quotes
_TEXT = re.compile(r'(?:"([^"]*+)")?+([^\[\](){}|"]*+)')
_TEXTS = {
    "(-": re.compile(r'(?:"([^"]*+)")?+((?:[^\[\](){}"-]++|-(?!\)))*+)'),
    "[/": (slanted := re.compile(r'(?:"([^"]*+)")?+((?:[^\[\](){}"/\\]++|[/\\](?!\]))*+)')),
    "[\\": slanted,
}
#: the titles of the subgraphs that Nextflow draws around inputs and outputs
_AROUND = ("", "params", "take", "publish", "emit")
#: a job as drawn by Snakemake, with an unescaped label
_JOB = re.compile(r"^(\tid\d++\[)(.*)(\]\r?)$", re.MULTILINE)
_JOBS = re.compile(r"^title:[ \t]*+DAG[ \t\r]*+$", re.MULTILINE)
_SIGN = re.compile(r'[\[\](){}|"]')


@dataclass
class Chart:
    """The contents of a flowchart: the number of each node, arcs, and by number labels and the opening signs of shapes."""

    nodes: dict[str, int] = field(default_factory=dict)
    arcs: list[tuple[int, int]] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    shapes: dict[int, str] = field(default_factory=dict)
    #: the nodes with dashed borders
    dashed: set[int] = field(default_factory=set)
    #: the nodes in Nextflow's subgraphs of inputs and outputs
    around: set[int] = field(default_factory=set)
    #: the number of invisible arcs, which are ignored
    hidden: int = 0
    #: the text before the chart between lines of dashes
    front: str = ""
    #: its first words
    header: str = ""


def begins(text: str) -> bool:
    """Whether the text begins like a flowchart."""
    front = _FRONT.match(text)
    return _HEADER.match(_without_comments(text[front.end() if front else 0 :][:10_000])) is not None


def read_chart(text: str) -> Chart:
    """The flowchart that a text describes."""
    return _ChartReader(text).chart()


def _without_comments(text: str) -> str:
    """The text without comments and directives, with the same number of lines."""
    parts, place = [], 0
    while (begin := text.find("%%{", place)) >= 0 and (end := text.find("}%%", begin)) >= 0:
        parts += [text[place:begin], "\n" * text.count("\n", begin, end)]
        place = end + 3
    return _COMMENT.sub("", "".join([*parts, text[place:]]))


def _code(sign: re.Match[str]) -> str:
    return f"#{ord(sign[0])};"


class _ChartReader:
    """Reads statements in sequence; arcs are made at the end, because a node may have the name of a later subgraph."""

    def __init__(self, text: str) -> None:
        front = _FRONT.match(text)
        self.front = front[1] if front else ""
        lead = "\n" * text.count("\n", 0, front.end()) if front else ""  # keeps the numbers of lines
        self.text, self.place = lead + _without_comments(text[front.end() :] if front else text), 0
        if _JOBS.search(self.front):
            self.text = _JOB.sub(lambda job: job[1] + _SIGN.sub(_code, job[2]) + job[3], self.text)
        self.nodes: dict[str, int] = {}
        self.labels: dict[int, str] = {}
        self.shapes: dict[int, str] = {}
        self.links: list[tuple[list[int], list[int]]] = []
        self.link_ids: set[str] = set()
        self.hidden = 0
        self.dashed: list[str] = []
        self.groups: dict[str, Group] = {}
        self.stack = [Group()]
        self._run()

    def _run(self) -> None:
        header = self._match(_HEADER)
        if not header:
            raise self._error('a flowchart must begin with "flowchart" or "graph" and a direction such as TD')
        self.header = header[0].strip()
        while self._match(_BLANK) and self.place < len(self.text):
            if match := self._match(_SUBGRAPH):
                self._open((match["title"] or match["name"] or "").strip())
            elif self._match(_END):
                self.stack.pop()
                if not self.stack:
                    raise self._error('"end" without a subgraph')
            elif match := self._match(_STYLE):
                self.dashed += match[1].split(",") if "stroke-dasharray" in match[2] else ()
            elif not self._match(_ASIDE):
                self._chain()
        if len(self.stack) > 1:
            raise self._error('a subgraph has no "end"')

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip a match of the pattern at this place, and return it."""
        match = pattern.match(self.text, self.place)
        if match:
            self.place = match.end()
        return match

    def _error(self, message: str) -> FormatError:
        return FormatError(message, line=self.text.count("\n", 0, self.place) + 1)

    def _open(self, name: str) -> None:
        group = self.groups.setdefault(name, Group())
        self.stack[-1].parts[id(group)] = group
        self.stack.append(group)

    def _chain(self) -> None:
        """Read nodes, and links to further nodes, if any."""
        tails = self._nodes()
        while link := self._match(_LINK):
            if link["id"]:
                self.link_ids.add(link["id"])
            heads = self._nodes()
            end = next((link[kind] for kind in _ENDS if link[kind] is not None), "")
            if link["hidden"]:
                self.hidden += len(tails) * len(heads)
            else:
                if end not in {">", "x", "o"}:
                    raise self._error("a line without an arrowhead does not say which task comes first (write -->)")
                self.links.append((tails, heads))
                if link["back"]:
                    self.links.append((heads, tails))
            tails = heads
        if not _OVER.match(self.text, self.place):
            rest = self.text[self.place :].split("\n", 1)[0].strip()
            raise self._error(f"expected an arrow or the end of the line, got {shorten(rest)!r}")

    def _nodes(self) -> list[int]:
        nodes = self._node()
        while self._match(_AND):
            nodes += self._node()
        return nodes

    def _node(self) -> list[int]:
        name = self._match(_ID)
        if not name:
            rest = self.text[self.place :].split("\n", 1)[0].strip()
            raise self._error(f"expected a node, got {shorten(rest)!r}" if rest else "a node is missing")
        if name[0] in _KEYWORDS:
            raise self._error(f"{name[0]} is a Mermaid keyword, and this is not a valid statement")
        if name[0] in self.link_ids and self._match(_DATA):  # a style of the link
            return []
        number = self.nodes.setdefault(name[0], len(self.nodes))
        self.stack[-1].nodes.append(number)
        self._shape(number)
        if (data := self._match(_DATA)) and (label := _DATA_LABEL.search(data[1])):
            self.labels[number] = label[1]
        self._match(_CLASS)
        return [number]

    def _shape(self, number: int) -> None:
        """Read the shape and the label of a node, if any."""
        shape = next((opening for opening in _SHAPES if self.text.startswith(opening, self.place)), None)
        if shape is None:
            return
        if not self._match(_BORDERS):
            self.place += len(shape)
        self.shapes[number], self.labels[number] = shape, self._label(shape)

    def _label(self, shape: str) -> str:
        """Read the text up to the end of a shape."""
        begin = self.place
        text = cast(re.Match[str], self._match(_TEXTS.get(shape, _TEXT)))
        closing = next((sign for sign in _SHAPES[shape] if self.text.startswith(sign, self.place)), None)
        if closing and text[0]:
            self.place += len(closing)
            return (text[1] or "") + text[2]
        sign, self.place = self.text[self.place : self.place + 1], begin
        if shape == ">" and self.text.startswith("->", begin - 2):
            raise self._error("an arrow needs two dashes (write -->)")
        if closing:
            raise self._error("a label is empty (write a space, or remove its brackets)")
        if not sign:
            raise self._error(f"a label is not closed: missing {_SHAPES[shape][0]}")
        raise self._error(f"a label that contains {sign} must be in double quotes and end with {_SHAPES[shape][0]}")

    def chart(self) -> Chart:
        """The chart, with the nodes of each subgraph in place of a node with the subgraph's name."""
        names = [name for name in self.nodes if name not in self.groups]
        place = {self.nodes[name]: i for i, name in enumerate(names)}
        stand = {self.nodes[name]: group for name, group in self.groups.items() if name in self.nodes}
        chart = Chart(
            {name: i for i, name in enumerate(names)}, front=self.front, hidden=self.hidden, header=self.header
        )
        around = [node for name in _AROUND if name in self.groups for node in self.groups[name].members()]
        steps = 0
        for sides in self.links:
            tails, heads = (
                [place[i] for end in side for i in (stand[end].members() if end in stand else [end]) if i in place]
                for side in sides
            )
            steps += len(tails) * len(heads) + len(tails) + len(heads) - 3  # 0 for a plain arc
            check_count(steps)
            chart.arcs += [(tail, head) for tail in tails for head in heads]
        chart.labels = {place[i]: label for i, label in self.labels.items() if i in place}
        chart.shapes = {place[i]: shape for i, shape in self.shapes.items() if i in place}
        chart.around = {place[i] for i in around if i in place}
        chart.dashed = {chart.nodes[name] for name in self.dashed if name in chart.nodes}
        return chart


_ENDS = ("thin", "thick", "dotted", "thin_after", "thick_after", "dotted_after")


# Pages

_BLOCK = re.compile(
    r"""<(?P<tag>pre|div|code)\s[^<>]{0,1000}?\bclass\s*=\s*["']?[^"'<>]{0,200}?\bmermaid\b[^<>]{0,1000}>""",
    re.IGNORECASE,
)
_ELEMENTS = re.compile(r"^elements: \{\s*nodes: \[\r?\n", re.MULTILINE)
_NODE = re.compile(r"\{ data: \{ id: '([^']*)'(?:, label: '(.*)')?\}, classes: '(\w+)' \},?")
_EDGE = re.compile(r"\{ data: \{ source: '([^']*)', target: '([^']*)'(?:, label: '.*' )?\} \},?")
#: the lines between the nodes and the edges, and after them
_SIGNS = frozenset(("", "],", "edges: ["))
_CLOSED = "},"


def holds_drawing(page: str) -> bool:
    """Whether a page contains a drawing that can be read."""
    return _BLOCK.search(page) is not None or _ELEMENTS.search(page) is not None


def flowchart(page: str) -> str | None:
    """The text of the flowchart in a page, at its line; None if the page has a drawing for Cytoscape instead."""
    blocks = [text for text in _blocks(page) if begins(text)]
    if len(blocks) > 1:
        raise FormatError(f"the page has {len(blocks)} flowcharts (save the one to read as a .mmd file)")
    if not blocks and not _ELEMENTS.search(page):
        raise FormatError("the page has no flowchart (draw the dag as .mmd or .dot)")
    return blocks[0] if blocks else None


def _blocks(page: str) -> Iterator[str]:
    """The texts of the diagrams in a page, each after as many empty lines as precede it in the page."""
    place = 0
    while block := _BLOCK.search(page, place):
        place = page.find(f"</{block['tag']}", block.end())
        place = len(page) if place < 0 else place
        yield "\n" * page.count("\n", 0, block.end()) + html.unescape(page[block.end() : place])


def cytoscape(page: str) -> tuple[Chart, set[int]]:
    """The nodes and arcs of Nextflow's drawing for Cytoscape, and the nodes that are not processes."""
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
            raise FormatError(f"expected a node or an edge of the drawing, got {shorten(line)!r}", line=number)
    chart.arcs = [(_place(chart, tail, line), _place(chart, head, line)) for tail, head, line in ends]
    return chart, others


def _data(page: str) -> Iterator[tuple[str, int]]:
    """The lines of the drawing's data, with their numbers."""
    begin = _ELEMENTS.search(page)
    place = begin.end() if begin else len(page)
    for number, line in enumerate(page[place:].split("\n"), page.count("\n", 0, place) + 1):
        if line.strip() == _CLOSED:
            return
        yield line.strip(), number
    raise FormatError("the page is incomplete: the data of the drawing have no end")


def _place(chart: Chart, name: str, line: int) -> int:
    if name not in chart.nodes:
        raise UnknownTaskError(name).at(line)
    return chart.nodes[name]


# Workflows

NAME = "mermaid"
PRIORITIES = False
TAKES = ("trace",)
CANNOT = ("command", "inputs", "outputs", "seconds", "cores", "memory", "labels", "category", "priority", "file_sizes")

_TITLE = re.compile(r"^title:[ \t]*+(.*)$", re.MULTILINE)
_BREAK = re.compile(r"<br\s*+/?>|\\n|\n", re.IGNORECASE)
_CODE = re.compile(r"#(?:(\d{1,7})|([A-Za-z][A-Za-z0-9]{0,30}));")
_CODED = re.compile(r'["#;<>&\\`%]|^ | $|[^\S ]| (?= )')
_SNAKEMAKE = re.compile(r"id\d+")
#: the first words of Nextflow's charts, and those before 23.10
_NEXTFLOW, _OLD_NEXTFLOW = ("flowchart TB", "flowchart LR"), "flowchart TD"
#: Nextflow operators whose names are unlikely for processes
_OPERATORS = frozenset(
    ("branch", "collectFile", "combine", "concat", "cross", "flatMap", "flatten", "groupTuple", "ifEmpty", "join", "map",
     "mix", "multiMap", "set", "splitCsv", "toList", "toSortedList", "transpose", "unique")
)  # fmt: skip


def parse(text: str, trace: str | None = None) -> Workflow:
    """The workflow of a flowchart, or of a page with one; a Nextflow drawing gets the tasks in the file *trace*."""
    source = flowchart(text) if is_page(text) else text
    drawing = _cytoscape(text) if source is None else _drawing(read_chart(source))
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
    chart, others = cytoscape(page)
    labels: list[Label] = [(text,) if (text := chart.labels.get(i)) else None for i in range(len(chart.nodes))]
    return Drawing(NAME, list(chart.nodes), labels, chart.arcs, passed=others, engine="nextflow")


def generate(flow: Workflow) -> str:
    """The flowchart of a workflow: all tasks, then all arcs."""
    front = "" if flow.name is None else f"---\ntitle: {json_text.quote(flow.name)}\n---\n"
    nodes = [f'    t{i}["{_encode(name) or " "}"]\n' for i, name in enumerate(flow.dag.tasks)]
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    return "".join([front, "flowchart TD\n", *nodes, *(f"    t{u} --> t{v}\n" for u, v in arcs)])


def sniff(text: str) -> bool:
    """Whether the text begins like a flowchart, or is a page with a drawing."""
    return begins(text) or (is_page(text) and holds_drawing(text))


def _encode(name: str) -> str:
    """The name with codes for characters that Mermaid would interpret, and for spaces that it would remove."""
    return _CODED.sub(_code, name)


def _label(text: str | None) -> Label:
    """The lines of a label; None if there is none."""
    if text is None:
        return None
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = text[1:-1].strip()
    return tuple(_CODE.sub(_character, line.strip()) for line in _BREAK.split(text))


def _character(code: re.Match[str]) -> str:
    """The character for a code such as #35; or #quot;."""
    if code[2]:
        character = html.unescape(f"&{code[2]};")
        return code[0] if character.startswith("&") and code[2] != "amp" else character
    number = int(code[1])
    return chr(number) if number < 0x110000 else code[0]


def _title(front: str) -> str | None:
    match = _TITLE.search(front)
    if match is None:
        return None
    title = match[1].strip()
    return json_text.unquote(title, front.count("\n", 0, match.start()) + 1) if title.startswith('"') else title


def _others(chart: Chart) -> set[int]:
    """The nodes of Nextflow's channels and operators; empty if Nextflow did not draw the chart."""
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
