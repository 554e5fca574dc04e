"""GraphML, as written by networkx, igraph and yEd (http://graphml.graphdrawing.org).

    <graphml>
      <key id="s" for="node" attr.name="seconds" attr.type="double"/>
      <graph edgedefault="directed">
        <node id="a"><data key="s">2.5</data></node> <node id="b"/>
        <edge source="a" target="b"/>
      </graph>
    </graphml>

A task is named by the node's data "name" if all nodes have distinct ones, else by such data "label", else by its label in yEd
(with the node's id if several nodes share the label), else by its id. A label of several lines becomes one line. Data of a
node with the name of a detail (command, inputs, outputs, seconds, cores, memory, category, priority) are that detail. Inputs
and outputs are JSON lists of names, and so is `argv`, a command given as words. Data of the graph may be "name", and
"files", a JSON object of sizes in bytes. Other data are ignored, and remarks list them. Ports and the drawings of yEd are
ignored, too.

A node that contains a graph, such as a group or folder of yEd, is not a task. An edge to or from it represents edges to or
from all tasks in it, and a remark counts these. Edges that yEd draws without an arrowhead, or with one only at the source,
still go from source to target; remarks count them.

Undirected edges, edges between a group and its own members, hyperedges, and a second graph are errors.

In the output, the tasks' names are the ids of nodes if XML allows all of them.

>>> nodes = '<node id="a"/><node id="b"/>'
>>> flow = parse(f'<graphml><graph edgedefault="directed">{nodes}<edge source="b" target="a"/></graph></graphml>')
>>> flow.dag.tasks, list(flow.dag.arcs())
(('a', 'b'), [('b', 'a')])
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import DuplicateTaskError, FormatError, InputError, UnknownTaskError, shorten
from eligo.formats.shared import json_text, xml_text
from eligo.formats.shared.document import MisfitError, short, size, strings
from eligo.formats.shared.drawings import Group, check_count
from eligo.formats.shared.edits import Edit, Placed, apply_edits, parse_places
from eligo.formats.shared.names import unread
from eligo.formats.shared.xml_text import Element, escape
from eligo.workflow import Origin, Task, Workflow

NAME = "graphml"
PRIORITIES = True
CANNOT = ("labels",)

#: The names of a node's data, and the type that is written for each
TYPES = {
    "name": "string", "command": "string", "argv": "string", "inputs": "string", "outputs": "string",
    "seconds": "double", "cores": "double", "memory": "long", "category": "string", "priority": "long",
}  # fmt: skip

#: the names of data that no remark lists
_KEYS = frozenset((*TYPES, "label", "files"))

_ID = re.compile(r"[\w.:-]+", re.ASCII)
_INTEGER = re.compile(r"[-+]?\d{1,40}(?:\.0*)?")
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""


def sniff(text: str) -> bool:
    """Whether the first element is <graphml>."""
    return xml_text.begins_with(text, ("graphml",))


# Reading


def parse(text: str) -> Workflow:
    """The workflow that a GraphML text describes."""
    reader = _GraphmlReader()
    takers: dict[str, xml_text.Taker] = {"node": reader.node, "edge": reader.edge, "hyperedge": reader.hyperedge}
    xml_text.scan(text, {**takers, "data": reader.data, "key": reader.key}, reader.enter)
    if not reader.graphs:
        raise FormatError("not GraphML: no <graph> element")
    names = reader.names()
    ends = np.array(list(reader.arcs()), np.int32).reshape(-1, 2)
    dag = Dag.from_arrays(len(names), ends[:, 0], ends[:, 1], names)
    details = {}
    for name, (data, line) in zip(names, reader.nodes.values(), strict=True):
        task = _task(name, data, line)
        if task.details():
            details[name] = task
    origin = Origin(format=NAME, remarks=tuple(reader.remarks()))
    return Workflow(dag, details, reader.own.get("name"), origin, _sizes(reader.own))


class _GraphmlReader:
    """The parts of a GraphML text, collected while it is parsed; yEd's label is the data "NodeLabel"."""

    def __init__(self) -> None:
        self.graphs = 0
        self.directed = False
        self.keys: dict[str, tuple[str, str | None]] = {}
        self.nodes: dict[str, tuple[dict[str, str], int]] = {}
        self.edges: list[tuple[str, str, int]] = []
        self.own: dict[str, str] = {}
        self.groups: dict[str, Group] = {}
        self.counts: Counter[str] = Counter()
        #: the keys of drawings of yEd, and the names of other data that are ignored
        self.drawn: set[str] = set()
        self.unread: dict[str, None] = {}

    def enter(self, element: Element) -> None:
        """Record the root element or the graph."""
        if not self.keys and not self.graphs and element.tag not in {"graphml", "graph"}:
            raise FormatError(
                f"not GraphML: the root element must be <graphml>, got <{shorten(element.tag)}>", line=element.line
            )
        if element.tag == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise FormatError("the file has a second graph, but only one is allowed", line=element.line)
            self.directed = element.attributes.get("edgedefault") == "directed"

    def key(self, element: Element) -> None:
        """Record the name and the default value of an attribute of tasks or arcs."""
        name = element.attributes.get("attr.name") or element.attributes.get("yfiles.type") or ""
        if "yfiles.type" in element.attributes:
            self.drawn.add(element.need("id"))
        default = next((item.all_text() for item in element.content if isinstance(item, Element)), None)
        self.keys[element.need("id")] = name, default if element.attributes.get("for") in {"node", "all"} else None

    def node(self, element: Element, parent: Group | None = None) -> None:
        """Add a node, or the nodes and edges of a group; *parent* is the group that contains it."""
        name = element.need("id")
        if name in self.nodes or name in self.groups:
            raise DuplicateTaskError(name).at(element.line)
        data: dict[str, str] = {}
        for item in element.content:
            if isinstance(item, Element):
                self._datum(item, data, "nodes")
        graphs = list(element.children("graph"))
        if graphs:
            self._group(element, graphs, data, parent)
            return
        if parent is not None:
            parent.nodes.append(len(self.nodes))
        usual = {key: default for key, default in self.keys.values() if default is not None}
        self.nodes[name] = usual | data, element.line

    def _group(self, element: Element, graphs: list[Element], data: Mapping[str, str], parent: Group | None) -> None:
        """Add the nodes and edges of a node that contains graphs."""
        name, group = element.need("id"), Group()
        if detail := next((key for key in data if key in _READERS), None):
            cure = "move it to a node inside, or remove the group"
            raise FormatError(
                f"node {shorten(name)!r} contains a graph and cannot have {detail!r} ({cure})", line=element.line
            )
        self.groups[name] = group
        if parent is not None:
            parent.parts[id(group)] = group
        for graph in graphs:
            for item in graph.content:
                if isinstance(item, Element):
                    self._member(item, graph, group)

    def _member(self, item: Element, graph: Element, group: Group) -> None:
        match item.tag:
            case "node":
                self.node(item, group)
            case "edge":
                self.edge(item, graph.attributes.get("edgedefault") == "directed")
            case "hyperedge":
                self.hyperedge(item)

    def _datum(self, item: Element, data: dict[str, str], of: str) -> None:
        if item.tag != "data":
            return
        key, _ = self.keys.get(item.attributes.get("key", ""), (None, None))
        if key == "nodegraphics":
            label = item.inside("NodeLabel")
            if label is not None:
                data["NodeLabel"] = label.all_text().strip()
        elif key is not None:
            data[key] = text = item.all_text()
            if key not in _KEYS and text.strip() and item.attributes.get("key") not in self.drawn:
                self.unread[f"{key} ({of})"] = None

    def edge(self, element: Element, directed: bool | None = None) -> None:
        """Add an arc; *directed* is the default of the graph that contains it."""
        direction = element.attributes.get("directed")
        usual = self.directed if directed is None else directed
        if direction == "false" or (not usual and direction != "true"):
            message = "an undirected edge does not say which task depends on which (make the graph directed)"
            raise FormatError(message, line=element.line)
        self.edges.append((element.need("source"), element.need("target"), element.line))
        for item in element.children("data"):
            self._datum(item, {}, "edges")
        arrows = element.inside("Arrows")
        if arrows is not None and arrows.attributes.get("target", "none") == "none":
            self.counts["headless" if arrows.attributes.get("source", "none") == "none" else "backward"] += 1

    def hyperedge(self, element: Element) -> None:
        """Raise, because an arc has two ends."""
        raise FormatError("hyperedges are not supported (use an edge for each pair of nodes)", line=element.line)

    def data(self, element: Element) -> None:
        """Record data of the graph itself."""
        self._datum(element, self.own, "graph")

    def names(self) -> tuple[str, ...]:
        """The names of the tasks; the docstring of the module describes the choice."""
        for key in ("name", "label"):
            values = [data.get(key) for data, _ in self.nodes.values()]
            words = tuple(name if key == "name" else _one_line(name) for name in values if name is not None)
            if len(set(words)) == len(values):
                return words
        drawn = [_one_line(data.get("NodeLabel", "")) for data, _ in self.nodes.values()]
        times = Counter(drawn)
        named = tuple(
            id if not label else label if times[label] == 1 else f"{label} {id}"
            for id, label in zip(self.nodes, drawn, strict=True)
        )
        return named if len(set(named)) == len(named) else tuple(self.nodes)

    def arcs(self) -> Iterator[tuple[int, int]]:
        """The tail and the head of every arc."""
        index = {name: i for i, name in enumerate(self.nodes)}
        steps = 0
        for source, target, line in self.edges:
            if not self.groups.keys() & {source, target}:
                yield self._end(source, index, line)[0], self._end(target, index, line)[0]
                continue
            self.counts["grouped"] += 1
            tails, heads = self._end(source, index, line), self._end(target, index, line)
            if not {*tails}.isdisjoint(heads):
                ends = f"{shorten(source)!r} and {shorten(target)!r}"
                raise FormatError(
                    f"an edge joins {ends}, but one contains the other (join nodes inside instead)", line=line
                )
            steps += len(tails) * len(heads)
            check_count(steps)
            yield from ((tail, head) for tail in tails for head in heads)

    def _end(self, name: str, index: Mapping[str, int], line: int) -> list[int]:
        """The tasks that the end of an edge represents."""
        if name in index:
            return [index[name]]
        if name not in self.groups:
            raise UnknownTaskError(name).at(line)
        members = self.groups[name].members()
        if not members:
            message = f"an edge ends at the empty group {shorten(name)!r} (add a node to it, or remove the edge)"
            raise FormatError(message, line=line)
        return members

    def remarks(self) -> Iterator[str]:
        """The remarks on elements that are not read as drawn."""
        if self.groups:
            yield f"groups of nodes, not read as tasks: {len(self.groups):,}"
        if count := self.counts["grouped"]:
            yield f"edges of groups, read as edges of all tasks in them: {count:,}"
        yield from unread(self.unread)
        if count := self.counts["headless"]:
            yield f"edges without an arrowhead, read from source to target: {count:,}"
        if count := self.counts["backward"]:
            yield f"edges with an arrowhead only at the source, read from source to target: {count:,}"


def _one_line(label: str) -> str:
    """A label with a space for each line break."""
    return " ".join(filter(None, (line.strip() for line in label.splitlines())))


def _task(name: str, data: Mapping[str, str], line: int) -> Task:
    details: dict[str, Any] = {}
    try:
        for key, text in data.items():
            if key in _READERS:
                field, read = _READERS[key]
                details[field] = read(text, name, key)
        return Task(name=name, **details)
    except MisfitError as error:
        raise FormatError(error.message, line=line) from None
    except InputError as error:
        raise error.at(line) from None


def _list(text: str, name: str, key: str) -> tuple[str, ...]:
    return tuple(strings(_json(text, name, key), name, key))


def _json(text: str, name: str, key: str) -> object:
    try:
        return json_text.load(text)
    except FormatError as error:
        raise MisfitError(f'"{key}" of {shorten(name)!r}: {error.message}') from None


def _text(text: str, name: str, key: str) -> str:
    return text


def _real(text: str, name: str, key: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise MisfitError(f'"{key}" of {shorten(name)!r} must be a number, got {shorten(text)!r}') from None


def _cores(text: str, name: str, key: str) -> float:
    return _integer(text, name, key) if _INTEGER.fullmatch(text.strip()) else _real(text, name, key)


def _integer(text: str, name: str, key: str) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise MisfitError(f'"{key}" of {shorten(name)!r} must be an integer, got {shorten(text)!r}')
    return int(text.strip().partition(".")[0])


def _bytes(text: str, name: str, key: str) -> int:
    return size(_integer(text, name, key), name, key)


_READERS: dict[str, tuple[str, Callable[[str, str, str], Any]]] = {
    "command": ("command", _text), "argv": ("command", _list), "inputs": ("inputs", _list), "outputs": ("outputs", _list),
    "seconds": ("seconds", _real), "cores": ("cores", _cores), "memory": ("memory", _bytes),
    "category": ("category", _text), "priority": ("priority", _integer),
}  # fmt: skip


def _sizes(own: Mapping[str, str]) -> dict[str, int]:
    try:
        files = _json(own.get("files", "{}"), "the graph", "files")
        return {name: size(n, name, "size") for name, n in files.items()} if isinstance(files, dict) else {}
    except MisfitError as error:
        raise FormatError(error.message) from None


# Writing


def generate(flow: Workflow) -> str:
    """The GraphML text of a workflow: every task, then every arc."""
    named = not all(map(_ID.fullmatch, flow.dag.tasks))
    ids = [f"n{i}" if named else name for i, name in enumerate(flow.dag.tasks)]
    rows = [dict(_data(flow.task(name), named)) for name in flow.dag.tasks]
    used = {key for row in rows for key in row}
    lines = [_HEAD]
    lines += (f'  <key id="{k}" for="node" attr.name="{k}" attr.type="{TYPES[k]}"/>\n' for k in TYPES if k in used)
    own = {"name": flow.name, "files": json_text.quote(dict(flow.file_sizes)) if flow.file_sizes else None}
    texts = {key: text for key, text in own.items() if text is not None}
    lines += (f'  <key id="graph-{key}" for="graph" attr.name="{key}" attr.type="string"/>\n' for key in texts)
    lines.append('  <graph edgedefault="directed">\n')
    lines += (
        f'    <data key="graph-{k}">{escape(text, f"the workflow: its {k}")}</data>\n' for k, text in texts.items()
    )
    for name, id_, row in zip(flow.dag.tasks, ids, rows, strict=True):
        what = f"task {shorten(name)!r}: its "
        inside = "".join(f'<data key="{key}">{escape(text, what + key)}</data>' for key, text in row.items())
        lines.append(f'    <node id="{id_}">{inside}</node>\n' if inside else f'    <node id="{id_}"/>\n')
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    lines += (f'    <edge source="{ids[u]}" target="{ids[v]}"/>\n' for u, v in arcs)
    return "".join([*lines, "  </graph>\n</graphml>\n"])


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The text with these priorities, as data of the nodes."""
    top = parse_places(text)
    elements = list(top.walk())
    keys = [e for e in elements if e.tag.endswith("key") and e.attributes.get("for", "node") in {"node", "all"}]
    old_id = next((e.attributes["id"] for e in keys if e.attributes.get("attr.name", "").lower() == "priority"), None)
    taken = {key.attributes.get("id") for key in keys}
    names = ("priority", *(f"priority{i}" for i in range(len(keys) + 1)))
    key = old_id or next(name for name in names if name not in taken)
    graph = next(e for e in top.children if e.tag.endswith("graph"))
    edits = [_node_edit(node, key, numbers[name]) for name, node in zip(flow.dag.tasks, _nodes(elements), strict=True)]
    if old_id is None:
        declared = f'<key id="{key}" for="node" attr.name="priority" attr.type="long"/>\n  '
        edits.append(Edit(graph.start, graph.start, declared))
    return apply_edits(text, edits)


def _nodes(elements: list[Placed]) -> list[Placed]:
    nodes = (element for element in elements if element.tag.rpartition(":")[2] == "node")
    return [node for node in nodes if not any(child.tag.rpartition(":")[2] == "graph" for child in node.children)]


def _node_edit(node: Placed, key: str, number: int) -> Edit:
    for child in node.children:
        if child.tag.endswith("data") and child.attributes.get("key") == key:
            return child.fill(str(number))
    return node.put(f'<data key="{key}">{number}</data>')


def _data(task: Task, named: bool) -> Iterator[tuple[str, str]]:
    """The names and texts of a node's data."""
    if named:
        yield "name", task.name
    for key, value in task.details().items():
        if isinstance(value, tuple):
            yield "argv" if key == "command" else key, json_text.quote(list(value))
        else:
            yield key, value if isinstance(value, str) else str(short(value))
