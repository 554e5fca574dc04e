"""GraphML, as networkx, igraph and yEd write it (http://graphml.graphdrawing.org).

    <graphml>
      <key id="s" for="node" attr.name="seconds" attr.type="double"/>
      <graph edgedefault="directed">
        <node id="a"><data key="s">2.5</data></node> <node id="b"/>
        <edge source="a" target="b"/>
      </graph>
    </graphml>

A task is named by the data called "name" where every node has one of its own, else by such data called "label", else by
its label in yEd, else by its id. Data of a node that are called like a detail of a task (command, inputs, outputs, seconds,
cores, memory, category, priority) are taken for it: inputs and outputs are JSON lists of names, and so is `argv`,
a command that is given as words. The graph's own data may be its "name", and "files": a JSON object of sizes in bytes.
All other data are passed over, with ports and what yEd draws.

Refused are edges without direction, hyperedges, several graphs in a file, and graphs inside of nodes, such as the groups of
yEd: dissolve them first. What is written has the tasks' names as ids where XML allows all of them there.

>>> nodes = '<node id="a"/><node id="b"/>'
>>> flow = parse(f'<graphml><graph edgedefault="directed">{nodes}<edge source="b" target="a"/></graph></graphml>')
>>> flow.dag.tasks, list(flow.dag.arcs())
(('a', 'b'), [('b', 'a')])
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import DuplicateTaskError, FormatError, InputError, UnknownTaskError, shorten
from eligo.formats.shared import json_text, xml_text
from eligo.formats.shared.document import MisfitError, short, size, strings
from eligo.formats.shared.editing import Edit, applied
from eligo.formats.shared.xml_edit import Placed, placed
from eligo.formats.shared.xml_text import Element, escaped
from eligo.workflow import Origin, Task, Workflow

NAME = "graphml"
PRIORITIES = True
CANNOT: tuple[str, ...] = ()

#: What the data of a node may be called, and the type that is written for it
TYPES = {
    "name": "string", "command": "string", "argv": "string", "inputs": "string", "outputs": "string",
    "seconds": "double", "cores": "double", "memory": "long", "category": "string", "priority": "long",
}  # fmt: skip

_ID = re.compile(r"[\w.:-]+", re.ASCII)
_WHOLE = re.compile(r"[-+]?\d{1,40}(?:\.0*)?")
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
    takers = {"node": reader.node, "edge": reader.edge, "hyperedge": reader.hyperedge, "data": reader.data}
    xml_text.scan(text, {**takers, "key": reader.key}, reader.enter)
    if not reader.graphs:
        raise FormatError("there is no <graph>, so this is no GraphML")
    names = reader.names()
    ends = np.array(list(reader.arcs()), np.int32).reshape(-1, 2)
    dag = Dag.from_arrays(len(names), ends[:, 0], ends[:, 1], names)
    details = {}
    for name, (data, line) in zip(names, reader.nodes.values(), strict=True):
        task = _task(name, data, line)
        if task.details():
            details[name] = task
    return Workflow(dag, details, reader.own.get("name"), Origin(format=NAME), _sizes(reader.own))


class _GraphmlReader:
    """What has been read so far. Data are by their name; yEd's label goes under "NodeLabel"."""

    def __init__(self) -> None:
        self.graphs = 0
        self.directed = False
        self.keys: dict[str, tuple[str, str | None]] = {}
        self.nodes: dict[str, tuple[dict[str, str], int]] = {}
        self.edges: list[tuple[str, str, int]] = []
        self.own: dict[str, str] = {}

    def enter(self, element: Element) -> None:
        """Note the root and the graph."""
        if not self.keys and not self.graphs and element.tag not in {"graphml", "graph"}:
            raise FormatError(f"the file begins with <{shorten(element.tag)}>, not <graphml>", line=element.line)
        if element.tag == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise FormatError("a second graph begins: only one is read", line=element.line)
            self.directed = element.attributes.get("edgedefault") == "directed"

    def key(self, element: Element) -> None:
        """Take the name of some data, and what they are where nothing else is said."""
        name = element.attributes.get("attr.name") or element.attributes.get("yfiles.type") or ""
        default = next((item.all_text() for item in element.content if isinstance(item, Element)), None)
        self.keys[element.needed("id")] = name, default if element.attributes.get("for") in {"node", "all"} else None

    def node(self, element: Element) -> None:
        """Take a node."""
        name = element.needed("id")
        if name in self.nodes:
            raise DuplicateTaskError(name).at(element.line)
        if next(element.children("graph"), None):
            message = f"node {shorten(name)!r} holds a graph of its own, which is not read: dissolve the group"
            raise FormatError(message, line=element.line)
        data = {key: default for key, default in self.keys.values() if default is not None}
        for item in element.content:
            if isinstance(item, Element):
                self._datum(item, data)
        self.nodes[name] = data, element.line

    def _datum(self, item: Element, data: dict[str, str]) -> None:
        if item.tag != "data":
            return
        key, _ = self.keys.get(item.attributes.get("key", ""), (None, None))
        if key == "nodegraphics":
            label = item.inside("NodeLabel")
            if label is not None:
                data["NodeLabel"] = label.all_text().strip()
        elif key is not None:
            data[key] = item.all_text()

    def edge(self, element: Element) -> None:
        """Take an arc."""
        direction = element.attributes.get("directed")
        if direction == "false" or (not self.directed and direction != "true"):
            message = "an edge has no direction, so it does not say which task comes first: make the graph directed"
            raise FormatError(message, line=element.line)
        self.edges.append((element.needed("source"), element.needed("target"), element.line))

    def hyperedge(self, element: Element) -> None:
        """Refuse."""
        raise FormatError("a hyperedge is no arc between two tasks", line=element.line)

    def data(self, element: Element) -> None:
        """Take what is said of the graph itself."""
        self._datum(element, self.own)

    def names(self) -> tuple[str, ...]:
        """The names of the tasks: see the top of the file."""
        for key in ("name", "label", "NodeLabel"):
            found = [data.get(key) for data, _ in self.nodes.values()]
            words = tuple(name for name in found if name is not None)
            if len(set(words)) == len(found):
                return words
        return tuple(self.nodes)

    def arcs(self) -> Iterator[tuple[int, int]]:
        """The numbers of the two ends of every arc."""
        index = {name: i for i, name in enumerate(self.nodes)}
        for source, target, line in self.edges:
            for name in (source, target):
                if name not in index:
                    raise UnknownTaskError(name).at(line)
            yield index[source], index[target]


def _task(name: str, data: Mapping[str, str], line: int) -> Task:
    known: dict[str, Any] = {}
    try:
        for key, text in data.items():
            if key in _READERS:
                field, read = _READERS[key]
                known[field] = read(text, name, key)
        return Task(name=name, **known)
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
        raise MisfitError(f'"{key}" of {shorten(name)!r} is {error.message}') from None


def _text(text: str, name: str, key: str) -> str:
    return text


def _real(text: str, name: str, key: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise MisfitError(f'"{key}" of {shorten(name)!r} is {shorten(text)!r}, and should be a number') from None


def _cores(text: str, name: str, key: str) -> float:
    return _whole(text, name, key) if _WHOLE.fullmatch(text.strip()) else _real(text, name, key)


def _whole(text: str, name: str, key: str) -> int:
    if not _WHOLE.fullmatch(text.strip()):
        raise MisfitError(f'"{key}" of {shorten(name)!r} is {shorten(text)!r}, and should be a whole number')
    return int(text.strip().partition(".")[0])


def _bytes(text: str, name: str, key: str) -> int:
    return size(_whole(text, name, key), name, key)


_READERS: dict[str, tuple[str, Callable[[str, str, str], Any]]] = {
    "command": ("command", _text),
    "argv": ("command", _list),
    "inputs": ("inputs", _list),
    "outputs": ("outputs", _list),
    "seconds": ("seconds", _real),
    "cores": ("cores", _cores),
    "memory": ("memory", _bytes),
    "category": ("category", _text),
    "priority": ("priority", _whole),
}


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
    said = {key: text for key, text in own.items() if text is not None}
    lines += (f'  <key id="graph-{key}" for="graph" attr.name="{key}" attr.type="string"/>\n' for key in said)
    lines.append('  <graph edgedefault="directed">\n')
    lines += (
        f'    <data key="graph-{k}">{escaped(text, f"the workflow: its {k}")}</data>\n' for k, text in said.items()
    )
    for name, id_, row in zip(flow.dag.tasks, ids, rows, strict=True):
        what = f"task {shorten(name)!r}: its "
        inside = "".join(f'<data key="{key}">{escaped(text, what + key)}</data>' for key, text in row.items())
        lines.append(f'    <node id="{id_}">{inside}</node>\n' if inside else f'    <node id="{id_}"/>\n')
    arcs = zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True)
    lines += (f'    <edge source="{ids[u]}" target="{ids[v]}"/>\n' for u, v in arcs)
    return "".join([*lines, "  </graph>\n</graphml>\n"])


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The same text with these priorities as data of the nodes."""
    top = placed(text)
    elements = list(top.walked())
    keys = [e for e in elements if e.tag.endswith("key") and e.attributes.get("for", "node") in {"node", "all"}]
    known = next((e.attributes["id"] for e in keys if e.attributes.get("attr.name", "").lower() == "priority"), None)
    key = known or next(k for k in ("priority", *(f"priority{i}" for i in range(len(keys) + 1))) if k not in _ids(keys))
    graph = next(e for e in top.children if e.tag.endswith("graph"))
    edits = [_node_edit(node, key, numbers[name]) for name, node in zip(flow.dag.tasks, _nodes(elements), strict=True)]
    if known is None:
        declared = f'<key id="{key}" for="node" attr.name="priority" attr.type="long"/>\n  '
        edits.append(Edit(graph.start, graph.start, declared))
    return applied(text, edits)


def _ids(keys: list[Placed]) -> set[str]:
    return {key.attributes.get("id", "") for key in keys}


def _nodes(elements: list[Placed]) -> list[Placed]:
    return [element for element in elements if element.tag.rpartition(":")[2] == "node"]


def _node_edit(node: Placed, key: str, number: int) -> Edit:
    for child in node.children:
        if child.tag.endswith("data") and child.attributes.get("key") == key:
            return child.filled(str(number))
    return node.put(f'<data key="{key}">{number}</data>')


def _data(task: Task, named: bool) -> Iterator[tuple[str, str]]:
    """The data of a node: their names and texts."""
    if named:
        yield "name", task.name
    for key, value in task.details().items():
        if isinstance(value, tuple):
            yield "argv" if key == "command" else key, json_text.quote(list(value))
        else:
            yield key, value if isinstance(value, str) else str(short(value))
