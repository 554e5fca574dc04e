"""The statements of a Mermaid flowchart: which nodes, labels and arcs a text describes.

>>> chart = read('flowchart LR\\n  a["the start"] --> b & c\\n')
>>> list(chart.nodes), chart.arcs, chart.labels
(['a', 'b', 'c'], [(0, 1), (0, 2)], {0: 'the start'})
"""

import re
from dataclasses import dataclass, field

from eligo.errors import FormatError, shorten
from eligo.formats.shared.drawing import Group, check_count

_FRONT = re.compile(r"\s*+---[ \t\r]*+\n(.*?)\n[ \t]*+---[ \t\r]*+(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"%%[^\n]*+")
_HEADER = re.compile(r"\s*+(?:flowchart(?:-elk)?|graph)(?![\w-])[ \t]*+(?:TB|TD|BT|RL|LR|[<>^v])?[ \t\r]*+(?:;|\n|\Z)")
_BLANK = re.compile(r"[\s;]*+")
_ASIDE = re.compile(
    r"accDescr[ \t]*+\{[^}]*+\} | (?:direction|classDef|class|click|linkStyle|accTitle|accDescr)(?=[ \t:])[^\n]*+",
    re.VERBOSE,
)
_STYLE = re.compile(r"style[ \t]++([^\s;]++)([^\n]*+)")
_SUBGRAPH = re.compile(r'subgraph(?=\s)[ \t]*+(?:([^\s\["]++)[ \t]*+\[[^\n]*+|"([^"\n]*+)"[^\n]*+|([^\n;]*+))')
_END = re.compile(r"end(?=[\s;]|\Z)")
_ID = re.compile(r"(?:[^\s\[\](){}<>|;&@\"~=:.-]|-(?![-.>])|=(?!=)|\.(?!-|\.+-)|:(?!::))++")
_AND = re.compile(r"\s*+&\s*+")
_CLASS = re.compile(r":::[\w-]++")
_DATA = re.compile(r'@\{((?:"[^"]*+"|[^"}]++)*+)\}')
_DATA_LABEL = re.compile(r'\blabel\s*+:\s*+"([^"]*+)"')
_LINK = re.compile(
    r"""[ \t]*+ (?:(?P<id>\w++)@)?+ (?P<back><?) (?:
          [xo]? (?: --+(?P<thin>[-xo>]) | ==+(?P<thick>[=xo>]) | -?\.++-(?P<dotted>[xo>]?) )
        | (?P<hidden>~~~++)
        | [xo]? (?: --(?:[ \t]*+"[^"]*+"|[^\n]*?)--+(?P<thin_after>[-xo>])
                  | ==(?:[ \t]*+"[^"]*+"|[^\n]*?)==+(?P<thick_after>[=xo>])
                  | -\.(?:[ \t]*+"[^"]*+"|[^\n]*?)\.++-(?P<dotted_after>[xo>]?) ) )
        \s*+ (?:\|(?:"[^"]*+"|[^|\n]*+)\|)?+ \s*+""",
    re.VERBOSE,
)
_QUOTED = re.compile(r'\s*+"([^"]*+)"\s*+')
#: how a shape begins, the longer ones first, and how it ends
_SHAPES = {
    "(((": (")))",), "([": ("])",), "((": ("))",), "[[": ("]]",), "[(": (")]",), "{{": ("}}",),
    "[/": ("/]", "\\]"), "[\\": ("\\]", "/]"), "(": (")",), "[": ("]",), "{": ("}",), ">": ("]",),
}  # fmt: skip


@dataclass
class Chart:
    """What a flowchart describes: the number of each node, arcs, and by number labels and how shapes begin."""

    nodes: dict[str, int] = field(default_factory=dict)
    arcs: list[tuple[int, int]] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    shapes: dict[int, str] = field(default_factory=dict)
    #: the nodes whose outline is dashed
    dashed: set[int] = field(default_factory=set)
    #: what stands before the chart between lines of dashes
    front: str = ""


def begins(text: str) -> bool:
    """Whether the text begins as a flowchart does."""
    front = _FRONT.match(text)
    return _HEADER.match(_cleared(text[front.end() if front else 0 :][:10_000])) is not None


def read(text: str) -> Chart:
    """The flowchart that a text describes."""
    return _ChartReader(text).chart()


def _cleared(text: str) -> str:
    """The text with blanks for comments and directives."""
    parts, place = [], 0
    while (begin := text.find("%%{", place)) >= 0 and (end := text.find("}%%", begin)) >= 0:
        parts += [text[place:begin], "\n" * text.count("\n", begin, end)]
        place = end + 3
    return _COMMENT.sub("", "".join([*parts, text[place:]]))


class _ChartReader:
    """Reads statements one after the other; a node may turn out to stand for a subgraph, so arcs are made at the end."""

    def __init__(self, text: str) -> None:
        front = _FRONT.match(text)
        self.front = front[1] if front else ""
        lead = "\n" * text.count("\n", 0, front.end()) if front else ""  # so that lines keep their numbers
        self.text, self.place = lead + _cleared(text[front.end() :] if front else text), 0
        self.nodes: dict[str, int] = {}
        self.labels: dict[int, str] = {}
        self.shapes: dict[int, str] = {}
        self.links: list[tuple[list[int], list[int]]] = []
        self.link_ids: set[str] = set()
        self.dashed: list[str] = []
        self.groups: dict[str, Group] = {}
        self.stack = [Group()]
        self._run()

    def _run(self) -> None:
        if not self._match(_HEADER):
            raise self._error('a flowchart begins with "flowchart" or "graph" and a direction such as TD')
        while self._match(_BLANK) and self.place < len(self.text):
            if found := self._match(_SUBGRAPH):
                self._open(next(name for name in found.groups() if name is not None).strip())
            elif self._match(_END):
                self.stack.pop()
                if not self.stack:
                    raise self._error('there is an "end" without a subgraph')
            elif found := self._match(_STYLE):
                self.dashed += found[1].split(",") if "stroke-dasharray" in found[2] else ()
            elif not self._match(_ASIDE):
                self._chain()
        if len(self.stack) > 1:
            raise self._error('a subgraph has no "end"')

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern finds at this place; then the place is after it."""
        found = pattern.match(self.text, self.place)
        if found:
            self.place = found.end()
        return found

    def _error(self, message: str) -> FormatError:
        return FormatError(message, line=self.text.count("\n", 0, self.place) + 1)

    def _open(self, name: str) -> None:
        group = self.groups.setdefault(name, Group())
        self.stack[-1].parts[id(group)] = group
        self.stack.append(group)

    def _chain(self) -> None:
        """Nodes, and perhaps links to further nodes."""
        tails = self._nodes()
        while link := self._match(_LINK):
            if link["id"]:
                self.link_ids.add(link["id"])
            heads = self._nodes()
            end = next((link[kind] for kind in _ENDS if link[kind] is not None), "")
            if not link["hidden"]:
                if end not in {">", "x", "o"}:
                    raise self._error("a line without a head does not say which task comes first: write -->")
                self.links.append((tails, heads))
                if link["back"]:
                    self.links.append((heads, tails))
            tails = heads
        if not re.compile(r"[ \t\r]*+(?:[;\n]|\Z)").match(self.text, self.place):
            rest = self.text[self.place :].split("\n", 1)[0].strip()
            raise self._error(f"an arrow or the end of the line was expected, not {shorten(rest)!r}")

    def _nodes(self) -> list[int]:
        found = self._node()
        while self._match(_AND):
            found += self._node()
        return found

    def _node(self) -> list[int]:
        name = self._match(_ID)
        if not name:
            rest = self.text[self.place :].split("\n", 1)[0].strip()
            raise self._error(f"a node was expected, not {shorten(rest)!r}" if rest else "a node is missing")
        if name[0] in self.link_ids and self._match(_DATA):  # it says how the link is drawn
            return []
        number = self.nodes.setdefault(name[0], len(self.nodes))
        self.stack[-1].nodes.append(number)
        shape = next((opening for opening in _SHAPES if self.text.startswith(opening, self.place)), None)
        if shape:
            self.place += len(shape)
            self.shapes[number], self.labels[number] = shape, self._label(_SHAPES[shape])
        if (data := self._match(_DATA)) and (label := _DATA_LABEL.search(data[1])):
            self.labels[number] = label[1]
        self._match(_CLASS)
        return [number]

    def _label(self, closings: tuple[str, ...]) -> str:
        """The text up to the sign that ends a shape."""
        quoted = _QUOTED.match(self.text, self.place)
        if quoted and self.text.startswith(closings, quoted.end()):
            self.place = quoted.end() + len(closings[0])
            return quoted[1]
        line = self.text.find("\n", self.place)
        limit = len(self.text) if line < 0 else line
        ends = [end for closing in closings if (end := self.text.find(closing, self.place, limit)) >= 0]
        if not ends:
            raise self._error(f"a label has no end: {closings[0]} is missing")
        label = self.text[self.place : min(ends)]
        self.place = min(ends) + len(closings[0])
        return label

    def chart(self) -> Chart:
        """What was read, with the nodes of each subgraph in place of the node that is called like it."""
        kept = [name for name in self.nodes if name not in self.groups]
        place = {self.nodes[name]: i for i, name in enumerate(kept)}
        stand = {self.nodes[name]: group for name, group in self.groups.items() if name in self.nodes}
        chart = Chart({name: i for i, name in enumerate(kept)}, front=self.front)
        steps = 0
        for sides in self.links:
            tails, heads = (
                [place[i] for end in side for i in (stand[end].members() if end in stand else [end]) if i in place]
                for side in sides
            )
            steps += len(tails) * len(heads) + len(tails) + len(heads) - 3  # an arc between two nodes is no matter
            check_count(steps)
            chart.arcs += [(tail, head) for tail in tails for head in heads]
        chart.labels = {place[i]: label for i, label in self.labels.items() if i in place}
        chart.shapes = {place[i]: shape for i, shape in self.shapes.items() if i in place}
        chart.dashed = {chart.nodes[name] for name in self.dashed if name in chart.nodes}
        return chart


_ENDS = ("thin", "thick", "dotted", "thin_after", "thick_after", "dotted_after")
