"""The complete DOT language of Graphviz, as printed by `snakemake --dag` and `nextflow -with-dag`.

    digraph "two steps" {
      fetch -> {align count} -> report
      report [label="all of it"]
    }

An arc goes from a task to one that depends on it, whatever `dir` says about its head. Invisible arcs (`style=invis`) are
ignored. Remarks count both, and invisible nodes. A subgraph at the end of an arc represents all nodes in it. An undirected
graph is refused.

`eligo.formats.shared.drawings` describes the names of tasks; the fields of a record (`shape=record`) are not a label.

- Snakemake (whose graph is called snakemake_dag) draws jobs. Dashed jobs need not run, and are left out. The first line of a
  label is the rule, here the category; the others are wildcards. `--rulegraph` and `--filegraph` are read, too.
- Nextflow (whose nodes are v0, v1, ..., before 23.10 p0, p1, ...) draws processes, which are the categories. Channels and
  operators are points and small circles; they are not tasks, and arcs pass through them.

Every output is read back unchanged. Graphviz reads a backslash in a name as the start of an escape sequence when it draws the
name. Therefore backslashes are doubled in the output, and halved in the input if all names remain distinct.

>>> flow = parse('digraph { a -> "b \\\\"c\\\\"" }')
>>> print(generate(flow), end="")
digraph {
  "a";
  "b \\"c\\"";
  "a" -> "b \\"c\\"";
}

The words of the DOT language: identifiers in their four spellings, keywords, signs and comments.

>>> [(word.kind, word.text) for word in words('a -> "b \\\\"c\\\\"" + "d" // and so on')]
[('name', 'a'), ('->', '->'), ('name', 'b "c"d')]

The statements of the DOT language: which nodes, arcs and attributes a text describes.

>>> graph = read_graph('digraph "my dag" { node [shape=box]; a -> {b c}; c [label="the end"] }')
>>> graph.name, list(graph.nodes), graph.arcs
('my dag', ['a', 'b', 'c'], [(0, 1), (0, 2)])
>>> graph.attributes[2]
{'shape': 'box', 'label': 'the end'}

The tool that drew a graph determines which nodes are not tasks, and the direction of arcs. Nextflow draws channels and
operators; cwltool draws the inputs and outputs of a workflow. wdlviz draws these, and also a node for each scatter and
condition, and the inside of called workflows. womtool draws scatters, conditions and declarations beside calls. terraform,
Bazel, Gradle's VisTEG and makefile2dot draw arcs from a task to its dependencies. A tool is named only if it is certain.

>>> text = 'digraph { "[root] aws_instance.web" -> "[root] aws_vpc.main" }'
>>> backward(read_graph(text), text)
'terraform'
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, cast

from eligo.errors import FormatError, shorten
from eligo.formats.shared.drawings import Drawing, Group, Label, check_count
from eligo.formats.traces import by_tasks
from eligo.workflow import Workflow

NAME = "dot"
PRIORITIES = False
TAKES = ("trace",)
CANNOT = ("command", "inputs", "outputs", "seconds", "cores", "memory", "labels", "category", "priority", "file_sizes")


# Words

KEYWORDS = frozenset({"strict", "graph", "digraph", "subgraph", "node", "edge"})

_BLANK = r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n]*+)*+"
_WORD = re.compile(
    _BLANK
    + r"""(?: (?P<plain>[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*+)
            | (?P<quoted>"(?:[^"\\]++|\\.)*+")
            | (?P<sign>->|--|[{}\[\]:;,=+])
            | (?P<number>-?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)) (?P<badly>[A-Za-z_\x80-\U0010ffff.])?
            | (?P<html><)
            | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_PLUS = re.compile(_BLANK + r"\+" + _BLANK, re.DOTALL)
_SPACE = re.compile(_BLANK, re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BRACKET = re.compile("[<>]")
_SPLICE = re.compile(r'\\(\\|"|\r?\n)')


class Word(NamedTuple):
    """A word of a DOT text; its kind is "name", a keyword, a sign, or "end" after the last word."""

    kind: str
    text: str
    place: int
    #: whether it was in <>
    html: bool = False


def words(text: str) -> Iterator[Word]:
    """The words of a DOT text; strings joined by + are one word."""
    place, match_at = 0, _WORD.match
    while True:
        match = match_at(text, place)
        if match is None:
            raise _unreadable(text, place)
        kind, place = match.lastgroup, match.end()
        if kind == "sign":
            yield Word(match["sign"], match["sign"], place - 1)
        elif kind == "plain":
            lower = match["plain"].lower()
            yield Word(lower if lower in KEYWORDS else "name", match["plain"], place - len(lower))
        elif kind == "number":
            yield Word("name", match["number"], place - 1)
        elif kind == "badly":
            start = shorten(match["number"] + match["badly"])
            raise error(text, place, f"{start} is not a valid number (put it in quotes)")
        elif kind == "end":
            return
        else:
            word, place = _string(text, match.start(cast(str, kind)))
            yield word


def _string(text: str, begin: int) -> tuple[Word, int]:
    """The string in quotes or <> that begins at this place, with strings that + joins to it, and where it ends."""
    parts, html, place = [], text[begin] == "<", begin
    while True:
        if text.startswith("<", place):
            end = _html_end(text, place)
            parts.append(text[place + 1 : end - 1])
        elif match := _QUOTED.match(text, place):
            end = match.end()
            parts.append(_unescape(match[0][1:-1]))
        else:
            wrong = "the text ends after +" if place == len(text) else "+ must be followed by a string"
            raise error(text, place, wrong)
        plus = _PLUS.match(text, end)
        if plus is None:
            return Word("name", "".join(parts), begin, html), end
        place = plus.end()


def error(text: str, place: int, message: str) -> FormatError:
    """The error with this message at a place in the text."""
    return FormatError(message, line=text.count("\n", 0, place) + 1)


def _unescape(body: str) -> str:
    """The content of a quoted string, without the backslashes before quotes and line ends."""
    if "\\" not in body:
        return body
    return _SPLICE.sub(lambda match: {"\\": "\\\\", '"': '"'}.get(match[1], ""), body)


def _html_end(text: str, begin: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, begin):
        depth += 1 if bracket[0] == "<" else -1
        if not depth:
            return bracket.end()
    raise error(text, begin, "an HTML string has no closing >")


def _unreadable(text: str, place: int) -> FormatError:
    """The error for a text without a valid word at this place."""
    place = cast(re.Match[str], _SPACE.match(text, place)).end()
    if text[place] == '"':
        return error(text, place, "a quoted string has no closing quote")
    if text.startswith("/*", place):
        return error(text, place, "a comment is not closed")
    return error(text, place, f"unexpected {text[place]!a} (put names with special characters in quotes)")


# Statements

#: The attributes that are relevant for a workflow.
ATTRIBUTES = frozenset({"label", "shape", "style", "dir"})


class Html(str):
    """The value of an attribute in <>."""

    __slots__ = ()


@dataclass
class Scope(Group):
    """A graph or subgraph while it is read, with its defaults and the current statement."""

    named: "dict[str, Scope]" = field(default_factory=dict)
    defaults: dict[str, dict[str, str]] = field(default_factory=lambda: {"node": {}, "edge": {}, "graph": {}})
    #: the ends of the arcs of a statement, each a list of nodes or a subgraph
    ends: list[list[int] | Group] = field(default_factory=list)
    #: its label, if a statement sets it
    label: str | None = None


@dataclass
class Graph:
    """The contents of a DOT text: the number of each node, arcs, and the `ATTRIBUTES` of nodes by number."""

    name: str | None = None
    nodes: dict[str, int] = field(default_factory=dict)
    arcs: list[tuple[int, int]] = field(default_factory=list)
    attributes: dict[int, dict[str, str]] = field(default_factory=dict)
    #: the subgraphs directly in the graph, by name
    groups: dict[str, Scope] = field(default_factory=dict)
    #: the number of invisible arcs, which are ignored
    hidden: int = 0
    #: the numbers of arcs whose head is not at their end, by `dir`
    turned: Counter[str] = field(default_factory=Counter)


def read_graph(text: str) -> Graph:
    """The directed graph that a DOT text describes."""
    return _GraphReader(text).graph


class _GraphReader:
    """Reads statements in sequence; subgraphs are on an explicit stack, so that their depth is unlimited."""

    def __init__(self, text: str) -> None:
        self.text, self.graph, self.steps = text, Graph(), 0
        self.words: Iterator[Word] = words(text)
        self.word = self._following()
        self._header()
        self.stack = [Scope(named=self.graph.groups)]
        while self.stack:
            self._statement(self.stack[-1])
        if self.word.kind != "end":
            again = self.word.kind in {"strict", "graph", "digraph"}
            raise self._error(
                "the file has a second graph, but only one is allowed" if again else "unexpected text after the last }"
            )

    # Words

    def _following(self) -> Word:
        return next(self.words, Word("end", "", len(self.text)))

    def _take(self) -> Word:
        word, self.word = self.word, self._following()
        return word

    def _skip(self, kind: str) -> bool:
        """Skip the next word if it is of this kind; returns whether it is."""
        if self.word.kind != kind:
            return False
        self.word = self._following()
        return True

    def _expect(self, kind: str, what: str) -> Word:
        if self.word.kind != kind:
            raise self._error(f"expected {what}, got {self._describe_word()}")
        return self._take()

    def _describe_word(self) -> str:
        if self.word.kind in KEYWORDS:
            return f"the keyword {self.word.text} (put it in quotes to use it as a name)"
        return "the end of the text" if self.word.kind == "end" else shorten(repr(self.word.text))

    def _error(self, message: str) -> FormatError:
        return error(self.text, self.word.place, message)

    # Statements

    def _header(self) -> None:
        self._skip("strict")
        if self.word.kind == "graph":
            raise self._error("an undirected graph does not say which task depends on which (use digraph)")
        self._expect("digraph", '"digraph"')
        if self.word.kind == "name":
            self.graph.name = self._take().text
        self._expect("{", '"{"')

    def _statement(self, scope: Scope) -> None:
        """Read a statement, or its part before a subgraph begins or after one ends."""
        word = self.word
        if word.kind in {"node", "edge", "graph"} and not scope.ends:
            self._take()
            scope.defaults[word.kind] = scope.defaults[word.kind] | self._attributes()
        elif word.kind in {"subgraph", "{"}:
            self._open(scope)
        elif word.kind == "name":
            first = self._take()
            if not scope.ends and self._skip("="):
                value = self._expect("name", "a value").text
                scope.label = value if first.text == "label" else scope.label
            else:
                scope.ends.append(self._node_list(first, scope))
                self._continue_arcs(scope)
        elif word.kind == "}" and not scope.ends:
            self._close()
        elif word.kind != ";" or scope.ends:
            raise self._error(f"expected {'a node' if scope.ends else 'a statement'}, got {self._describe_word()}")
        else:
            self._take()

    def _open(self, scope: Scope) -> None:
        name = self._take().text if self._skip("subgraph") and self.word.kind == "name" else None
        self._expect("{", '"{"')
        inner = scope.named.get(name) if name is not None else None
        if inner is None:
            inner = Scope(defaults=dict(scope.defaults))
            if name is not None:
                scope.named[name] = inner
        scope.parts[id(inner)] = inner
        self.stack.append(inner)

    def _close(self) -> None:
        self._take()
        inner = self.stack.pop()
        if self.stack:
            self.stack[-1].ends.append(inner)
            self._continue_arcs(self.stack[-1])

    def _node_list(self, first: Word, scope: Scope) -> list[int]:
        """One node, or several with commas between them, each optionally with a port and a side."""
        nodes = [self._node(first, scope)]
        while True:
            for _ in range(2):
                if self._skip(":"):
                    self._expect("name", "a port")
            if not self._skip(","):
                return nodes
            nodes.append(self._node(self._expect("name", "a node"), scope))

    def _node(self, word: Word, scope: Scope) -> int:
        number = self.graph.nodes.get(word.text)
        if number is None:
            number = self.graph.nodes[word.text] = len(self.graph.nodes)
            if scope.defaults["node"]:
                self.graph.attributes[number] = dict(scope.defaults["node"])
        scope.nodes.append(number)
        return number

    def _continue_arcs(self, scope: Scope) -> None:
        """After an end of arcs: continue with the next one, or complete the statement."""
        if self.word.kind == "--":
            raise self._error("-- has no direction (write -> in a digraph)")
        if self._skip("->"):
            return
        ends, scope.ends = scope.ends, []
        attributes = self._attributes()
        if len(ends) > 1:
            self._join(ends, scope.defaults["edge"] | attributes)
        elif attributes and isinstance(ends[0], list):
            for number in ends[0]:
                self.graph.attributes.setdefault(number, {}).update(attributes)

    def _join(self, ends: Sequence[list[int] | Group], attributes: dict[str, str]) -> None:
        sides = [end.members() if isinstance(end, Group) else end for end in ends]
        if "invis" in attributes.get("style", "").replace(" ", "").split(","):
            self.graph.hidden += sum(len(tails) * len(heads) for tails, heads in pairwise(sides))
            return
        if any(isinstance(end, Group) or len(end) > 1 for end in ends):
            self.steps += sum(len(a) * len(b) + len(a) + len(b) for a, b in pairwise(sides))
            check_count(self.steps)
        if (way := attributes.get("dir", "forward")) != "forward":
            self.graph.turned[way] += sum(len(tails) * len(heads) for tails, heads in pairwise(sides))
        for tails, heads in pairwise(sides):
            self.graph.arcs += [(tail, head) for tail in tails for head in heads]

    def _attributes(self) -> dict[str, str]:
        """The attributes in the brackets that follow, if any."""
        attributes: dict[str, str] = {}
        while self._skip("["):
            while not self._skip("]"):
                name = self._expect("name", "an attribute").text
                self._expect("=", '"="')
                value = self._expect("name", "a value")
                if name in ATTRIBUTES:
                    attributes[name] = Html(value.text) if value.html else value.text
                if not self._skip(","):
                    self._skip(";")
        return attributes


# Tools

_NEXTFLOW = re.compile(r"v\d+|p\d+")
_RESOURCES = re.compile(r'\s*+digraph G \{\s*+rankdir = "RL";\s*+node \[shape = rect, fontname = "sans-serif"\];')
_MAKEFILE = re.compile(r"\s*+// Makefile\r?\n")
#: the names of womtool for a scatter or a condition, and for a declaration with its type
_SECTION = re.compile(r"(?:scatter|if) \(.*\)", re.DOTALL)
_DECLARED = re.compile(r"[A-Z]\w*+(?:\[[\w\[\], ?+]*\])?[?+]*+ \w+")
_CWL = {"cluster_inputs": "Workflow Inputs", "cluster_outputs": "Workflow Outputs"}


def drawn_by(graph: Graph) -> str | None:
    """The tool that drew a graph in which some nodes are not tasks; None if it is not certain."""
    if all(map(_NEXTFLOW.fullmatch, graph.nodes)):
        return "nextflow"
    if all(map(str.isdecimal, graph.nodes)) and set(map(_wdl_node, graph.attributes.values())) == {True, False}:
        return "wdlviz" if len(graph.attributes) == len(graph.nodes) else None
    if any(map(_is_call, graph.nodes)) and all(_is_call(id) or _is_beside(id) for id in graph.nodes):
        return "womtool"
    return "cwltool" if any(_is_data(name, group) for name, group in graph.groups.items()) else None


def no_tasks(graph: Graph) -> set[int]:
    """The nodes that are not tasks; empty if the tool that drew the graph is unknown."""
    nodes: set[int] = set()
    match drawn_by(graph):
        case "nextflow":
            drawn = {i: (attrs.get("shape"), attrs.get("label")) for i, attrs in graph.attributes.items()}
            nodes = {i for i, (shape, label) in drawn.items() if shape == "point" or (shape, label) == ("circle", "")}
        case "wdlviz":
            nodes = {i for i, attrs in graph.attributes.items() if attrs.get("shape") != "cds"}
            nodes.update(node for group in graph.groups.values() if _is_called(group) for node in group.members())
        case "womtool":
            nodes = {i for id, i in graph.nodes.items() if not _is_call(id)}
        case "cwltool":
            data = (group for name, group in graph.groups.items() if _is_data(name, group))
            nodes = {node for group in data for node in group.members()}
    return nodes if len(nodes) < len(graph.nodes) else set()


def sections(graph: Graph) -> Iterator[tuple[int, int]]:
    """The arcs from the node of each scatter or condition to all nodes in it, which wait for it."""
    waiting, others = list(graph.groups.items()), {i for id, i in graph.nodes.items() if _SECTION.fullmatch(id)}
    while waiting:
        name, group = waiting.pop()
        waiting += group.named.items()
        node = graph.nodes.get(name.removeprefix("cluster-"), next((i for i in group.nodes if i in others), None))
        if node is not None and not _is_called(group):
            yield from ((node, inner) for inner in group.members() if inner != node and inner not in others)


def _is_call(id: str) -> bool:
    """Whether this is a name of womtool for a call."""
    return id.startswith("call ")


def _is_beside(id: str) -> bool:
    """Whether this is a name of womtool for something else."""
    return bool(_SECTION.fullmatch(id) or _DECLARED.fullmatch(id))


def _is_data(name: str, group: Scope) -> bool:
    """Whether this is cwltool's group of inputs or outputs."""
    return group.label is not None and _CWL.get(name) == group.label


def _wdl_node(attributes: dict[str, str]) -> bool | None:
    """Whether wdlviz draws a call with these attributes (True), another node (False), or neither (None)."""
    match attributes:
        case {"shape": "cds"}:
            return True
        case {"shape": "plaintext"} | {"style": "invis", "label": ""}:
            return False
    return None


def _is_called(group: Scope) -> bool:
    """Whether this is wdlviz's group for the inside of a called workflow."""
    return (group.label or "").startswith("<B>")


def backward(graph: Graph, text: str) -> str | None:
    """The tool that drew arcs from a task to its dependencies; None if it is not certain."""
    ids = list(graph.nodes)
    if _RESOURCES.match(text) or (ids and all(id.startswith("[root] ") for id in ids)):
        return "terraform"
    if graph.name == "mygraph" and all(id.startswith(("//", "@")) for id in ids):
        return "Bazel"
    if graph.name == "compile" and all(id.startswith(":") for id in ids):
        return "Gradle's VisTEG"
    return "makefile2dot" if _MAKEFILE.match(text) else None


# Workflows


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
    """The workflow that a DOT text describes; a Nextflow drawing gets the tasks in the file *trace*."""
    graph = read_graph(text)
    ids, title = list(graph.nodes), graph.name
    labels = [_label(graph.attributes.get(i, {}), id, title or "") for i, id in enumerate(ids)]
    name = None if title is None else title.replace("\\\\", "\\")
    drawing = Drawing(
        NAME, _unescaped_ids(ids), labels, graph.arcs, name, hidden=graph.hidden, backward=backward(graph, text)
    )
    drawing.turned = graph.turned
    if title == "snakemake_dag":
        drawing.engine = "snakemake"
        drawing.done = {i for i, attrs in graph.attributes.items() if "dashed" in attrs.get("style", "").split(",")}
    elif passed := no_tasks(graph):
        drawing.engine, drawing.passed = drawn_by(graph), passed
        if drawing.engine in {"wdlviz", "womtool"}:  # invisible arcs only lay out their pictures
            drawing.hidden, drawing.arcs = 0, [*graph.arcs, *sections(graph)]
    styles = (attrs.get("style") for i, attrs in graph.attributes.items() if i not in drawing.passed)
    drawing.unseen = sum(style == "invis" for style in styles)
    flow = drawing.workflow()
    return flow if trace is None else by_tasks(flow, trace)


def generate(flow: Workflow) -> str:
    """The DOT text of a workflow: every task, then every arc."""
    names = [_quote(name) for name in flow.dag.tasks]
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    title = "" if flow.name is None else _quote(flow.name) + " "
    nodes = (f"  {name};\n" for name in names)
    return "".join([f"digraph {title}{{\n", *nodes, *(f"  {names[u]} -> {names[v]};\n" for u, v in arcs), "}\n"])


def sniff(text: str) -> bool:
    """Whether the text begins like a graph in DOT."""
    return _BEGINS.match(text) is not None


def _quote(name: str) -> str:
    """The name in double quotes, with doubled backslashes, because labels read them as escapes."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unescaped_ids(ids: list[str]) -> list[str]:
    halved = [id.replace("\\\\", "\\") for id in ids]
    return halved if len(set(halved)) == len(halved) else ids


def _label(attributes: Mapping[str, str], id: str, title: str) -> Label:
    """The lines of a node's label, or the first line with text of an HTML label; None if there is no text."""
    value = attributes.get("label")
    if value is None or (attributes.get("shape") in {"record", "Mrecord"} and _FIELDS.search(value)):
        return None
    if isinstance(value, Html):
        texts = (html.unescape(line).strip() for line in _TAG.sub("\n", _FACE.sub("", value)).split("\n"))
        first = next(filter(None, texts), None)
        return None if first is None else (first,)
    drawn = {"n": "\n", "l": "\n", "r": "\n", "N": id, "G": title}
    lines = _ESCAPE.sub(lambda match: drawn.get(match[1], match[1]), value).split("\n")
    return tuple(line.strip() for line in lines if line.strip()) or None
