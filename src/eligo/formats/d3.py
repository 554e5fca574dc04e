"""Graphs in JSON for D3.js: the output of `snakemake --d3dag` and of networkx's `node_link_data`, and d3-dag's own.

    {"nodes": [{"id": 0, "value": {"jobid": 0, "label": "all", "rule": "all"}}, ...],
     "edges": [{"u": 1, "v": 0}, ...]}

An arc goes from u to v, or from source to target; the list may also be called links. The ids of nodes are strings or
integers. `eligo.formats.shared.drawings` describes the names of tasks. The rule is the category. Other keys are ignored, and
remarks list them.

d3-dag itself reads a list, in which each task lists its parents, if any:

    [{"id": "fetch"}, {"id": "align", "parentIds": ["fetch"]}]

Snakemake lists jobs that need not run among the others, without the arcs from them; they cannot be recognised, and stay.

>>> flow = parse('{"nodes": [{"id": 0, "value": {"rule": "all"}}, {"id": 1, "value": {"rule": "sort"}}],'
...              ' "edges": [{"u": 1, "v": 0}]}')
>>> list(flow.dag.arcs()), flow.task("sort").category
([('sort', 'all')], 'sort')
>>> print(generate(flow), end="")
{
  "nodes": [
    {"id": "all", "value": {"label": "all", "rule": "all"}},
    {"id": "sort", "value": {"label": "sort", "rule": "sort"}}
  ],
  "edges": [
    {"u": "sort", "v": "all"}
  ]
}
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, cast

from eligo.errors import UnknownTaskError, shorten
from eligo.formats.shared import json_text
from eligo.formats.shared.document import MisfitError, array, kind, misfits_in, string
from eligo.formats.shared.drawings import Drawing, Label
from eligo.formats.shared.names import unread
from eligo.workflow import Origin, Task, Workflow

NAME = "d3dag"
PRIORITIES = False
CANNOT = ("name", "command", "inputs", "outputs", "seconds", "cores", "memory", "labels", "priority", "file_sizes")

_BEGINS = re.compile(r'\s*+\{\s*+(?:"(?:directed|multigraph)"\s*+:\s*+\w++\s*+,\s*+|"graph"\s*+:\s*+\{[^{}]*+\}\s*+,\s*+)*+'
                     r'"(?:nodes|edges|links)"\s*+:\s*+\[\s*+\{')  # fmt: skip
_LIST = re.compile(r"\s*+\[\s*+\{")
#: the keys of nodes, of their values and of edges that are read, or are irrelevant for a workflow
_NODE, _VALUE, _EDGE = {"id", "value"}, {"label", "rule", "jobid"}, {"u", "v", "source", "target", "key"}


def parse(text: str) -> Workflow:
    """The workflow that a list of nodes and one of edges describe."""
    with misfits_in(text):
        document = json_text.load(text)
        if isinstance(document, list) and document:
            return _workflow_of_list(document)
        top = _object(document, "the document")
        if top.get("directed") is False:
            message = "an undirected graph does not say which task depends on which (make the graph directed)"
            raise MisfitError(message, '"directed"')
        rows = [_object(row, "an item of nodes") for row in array(top.get("nodes"), '"nodes"')]
        ids = [_name(row.get("id"), f"the id of node {i}") for i, row in enumerate(rows, 1)]
        index = {id: i for i, id in enumerate(ids)}
        edges = "edges" if top.get("edges") is not None else "links"
        arcs = [_arc(row, index) for row in array(top.get(edges), f'"{edges}"')]
        values = [_object(row.get("value") or {}, "the value of a node") for row in rows]
        ruled = any(isinstance(value.get("rule"), str) for value in values)
        drawing = Drawing(NAME, ids, [_label(value) for value in values], arcs, engine="snakemake" if ruled else None)
        flow = drawing.workflow()
        more = [
            *_keys(rows, _NODE, "nodes"),
            *_keys(values, _VALUE, "nodes"),
            *_keys(top.get(edges) or [], _EDGE, "edges"),
        ]
        flow = _with_remark(flow, more)
        rules = {name: value.get("rule") for name, value in zip(flow.dag.tasks, values, strict=True)}
        return replace(flow, details={n: Task(name=n, category=r) for n, r in rules.items() if isinstance(r, str)})


def generate(flow: Workflow) -> str:
    """The nodes and edges of a workflow, as Snakemake writes them but with names as ids."""
    nodes = [_node(flow.task(name)) for name in flow.dag.tasks]
    return json_text.dump({"nodes": nodes, "edges": [{"u": u, "v": v} for u, v in flow.dag.arcs()]}, levels=2)


def sniff(text: str) -> bool:
    """Whether the text begins like a graph of D3, with nodes or edges that are objects, or like a list of d3-dag."""
    return _BEGINS.match(text) is not None or (_LIST.match(text) is not None and '"parentIds"' in text)


def _workflow_of_list(rows: list[Any]) -> Workflow:
    """The workflow of a list of tasks with their parents."""
    tasks = [_object(row, "an item of the list") for row in rows]
    ids = [_name(task.get("id"), f"the id of task {i}") for i, task in enumerate(tasks, 1)]
    index = {id: i for i, id in enumerate(ids)}
    parents = (array(task.get("parentIds"), '"parentIds"') for task in tasks)
    arcs = [(_place(_name(end, "a parent"), index), i) for i, ends in enumerate(parents) for end in ends]
    flow = Drawing(NAME, ids, [None] * len(ids), arcs).workflow()
    return _with_remark(flow, _keys(tasks, {"id", "parentIds"}, "tasks"))


def _keys(rows: Iterable[Mapping[str, Any]], known_keys: Set[str], of: str) -> list[str]:
    """The keys of rows that are ignored."""
    return [f"{key} ({of})" for key in dict.fromkeys(key for row in rows for key in row) if key not in known_keys]


def _with_remark(flow: Workflow, keys: list[str]) -> Workflow:
    origin = cast(Origin, flow.origin)
    return replace(flow, origin=replace(origin, remarks=(*origin.remarks, *unread(keys))))


def _node(task: Task) -> dict[str, Any]:
    value = {"label": task.name} | ({} if task.category is None else {"rule": task.category})
    return {"id": task.name, "value": value}


def _label(value: Mapping[str, Any]) -> Label:
    label = value.get("label", value.get("rule"))
    return (label,) if isinstance(label, str) else None


def _arc(row: object, index: Mapping[str, int]) -> tuple[int, int]:
    edge = _object(row, "an edge")
    ends = [
        _name(edge.get(key, edge.get(other)), "the end of an edge") for key, other in (("u", "source"), ("v", "target"))
    ]
    return _place(ends[0], index), _place(ends[1], index)


def _place(name: str, index: Mapping[str, int]) -> int:
    """The number of the node with this name."""
    if name not in index:
        raise UnknownTaskError(name)
    return index[name]


def _name(value: object, what: str) -> str:
    """The name of a node, which may be an integer in the text."""
    if type(value) is int and value.bit_length() < 64:
        return str(value)
    return string(value, what)


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} must be an object, got {kind(value)}: {shorten(str(value))}")
    return value
