"""The statements of the DOT language: which nodes, arcs and attributes a text describes.

>>> graph = read('digraph "my dag" { node [shape=box]; a -> {b c}; c [label="the end"] }')
>>> graph.name, list(graph.nodes), graph.arcs
('my dag', ['a', 'b', 'c'], [(0, 1), (0, 2)])
>>> graph.attributes[2]
{'shape': 'box', 'label': 'the end'}
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from eligo.errors import FormatError, shorten
from eligo.formats.dot.text import KEYWORDS, Word, error, words
from eligo.formats.shared.drawing import Group, check_count

#: The attributes that say something of a workflow.
ATTRIBUTES = frozenset({"label", "shape", "style", "dir"})


class Html(str):
    """The value of an attribute that stood in <>."""

    __slots__ = ()


@dataclass
class Scope(Group):
    """A graph or subgraph while it is read, with its defaults and the statement that is being read."""

    named: "dict[str, Scope]" = field(default_factory=dict)
    defaults: dict[str, dict[str, str]] = field(default_factory=lambda: {"node": {}, "edge": {}, "graph": {}})
    #: the ends of the arcs of a statement, each some nodes or a subgraph
    ends: list[list[int] | Group] = field(default_factory=list)
    #: its label, where a statement of its own says so
    label: str | None = None


@dataclass
class Graph:
    """What a DOT text describes: the number of each node, arcs, and what `ATTRIBUTES` its nodes have, by number."""

    name: str | None = None
    nodes: dict[str, int] = field(default_factory=dict)
    arcs: list[tuple[int, int]] = field(default_factory=list)
    attributes: dict[int, dict[str, str]] = field(default_factory=dict)
    #: the subgraphs that stand in the graph itself, by name
    groups: dict[str, Scope] = field(default_factory=dict)
    #: how many arcs are not drawn, and so are none
    hidden: int = 0
    #: how many arcs are drawn with their head elsewhere than at their end, by their `dir`
    turned: Counter[str] = field(default_factory=Counter)


def read(text: str) -> Graph:
    """The directed graph that a DOT text describes."""
    return _GraphReader(text).graph


class _GraphReader:
    """Reads statements one after the other; subgraphs are kept on a stack of our own, so that none is too deep."""

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
            raise self._error("a second graph begins: only one is read" if again else "there is more after the last }")

    # Words

    def _following(self) -> Word:
        return next(self.words, Word("end", "", len(self.text)))

    def _take(self) -> Word:
        word, self.word = self.word, self._following()
        return word

    def _took(self, kind: str) -> bool:
        """Whether the next word is of this kind; then it is taken."""
        if self.word.kind != kind:
            return False
        self.word = self._following()
        return True

    def _expect(self, kind: str, what: str) -> Word:
        if self.word.kind != kind:
            raise self._error(f"{what} was expected, not {self._shown()}")
        return self._take()

    def _shown(self) -> str:
        if self.word.kind in KEYWORDS:
            return f"the keyword {self.word.text}: a name that is one goes in quotes"
        return "the end of the text" if self.word.kind == "end" else shorten(repr(self.word.text))

    def _error(self, message: str) -> FormatError:
        return error(self.text, self.word.place, message)

    # Statements

    def _header(self) -> None:
        self._took("strict")
        if self.word.kind == "graph":
            raise self._error("a graph without directions does not say which task needs which: give a digraph")
        self._expect("digraph", '"digraph"')
        if self.word.kind == "name":
            self.graph.name = self._take().text
        self._expect("{", '"{"')

    def _statement(self, scope: Scope) -> None:
        """Read one statement, or as much of it as stands before a subgraph begins or after one ends."""
        word = self.word
        if word.kind in {"node", "edge", "graph"} and not scope.ends:
            self._take()
            scope.defaults[word.kind] = scope.defaults[word.kind] | self._attributes()
        elif word.kind in {"subgraph", "{"}:
            self._open(scope)
        elif word.kind == "name":
            first = self._take()
            if not scope.ends and self._took("="):
                value = self._expect("name", "a value").text
                scope.label = value if first.text == "label" else scope.label
            else:
                scope.ends.append(self._node_list(first, scope))
                self._go_on(scope)
        elif word.kind == "}" and not scope.ends:
            self._close()
        elif word.kind != ";" or scope.ends:
            raise self._error(f"{'a node' if scope.ends else 'a statement'} was expected, not {self._shown()}")
        else:
            self._take()

    def _open(self, scope: Scope) -> None:
        name = self._take().text if self._took("subgraph") and self.word.kind == "name" else None
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
            self._go_on(self.stack[-1])

    def _node_list(self, first: Word, scope: Scope) -> list[int]:
        """One node or several with commas between, each perhaps with a port and a side of it."""
        found = [self._node(first, scope)]
        while True:
            for _ in range(2):
                if self._took(":"):
                    self._expect("name", "a port")
            if not self._took(","):
                return found
            found.append(self._node(self._expect("name", "a node"), scope))

    def _node(self, word: Word, scope: Scope) -> int:
        number = self.graph.nodes.get(word.text)
        if number is None:
            number = self.graph.nodes[word.text] = len(self.graph.nodes)
            if scope.defaults["node"]:
                self.graph.attributes[number] = dict(scope.defaults["node"])
        scope.nodes.append(number)
        return number

    def _go_on(self, scope: Scope) -> None:
        """After an end of arcs: go on to the next, or end the statement."""
        if self.word.kind == "--":
            raise self._error("-- has no direction: in a digraph arcs are written ->")
        if self._took("->"):
            return
        ends, scope.ends = scope.ends, []
        given = self._attributes()
        if len(ends) > 1:
            self._join(ends, scope.defaults["edge"] | given)
        elif given and isinstance(ends[0], list):
            for number in ends[0]:
                self.graph.attributes.setdefault(number, {}).update(given)

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
        """The attributes in the brackets that follow, if any do."""
        found: dict[str, str] = {}
        while self._took("["):
            while not self._took("]"):
                name = self._expect("name", "an attribute").text
                self._expect("=", '"="')
                value = self._expect("name", "a value")
                if name in ATTRIBUTES:
                    found[name] = Html(value.text) if value.html else value.text
                if not self._took(","):
                    self._took(";")
        return found
