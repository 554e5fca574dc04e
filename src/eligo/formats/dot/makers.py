"""Who made a graph, and what follows from that: which of its nodes are no tasks, and whether its arcs point backwards.

Nextflow draws channels and operators, cwltool the inputs and outputs of a workflow, wdlviz besides these a node for each
scatter and condition, and the inside of workflows that are called, womtool scatters, conditions and declarations beside
calls; these are no tasks. What terraform, Bazel, Gradle's VisTEG and makefile2dot draw points from what needs to what is
needed. Only what is certain is said.

>>> from eligo.formats.dot.graph import read
>>> text = 'digraph { "[root] aws_instance.web" -> "[root] aws_vpc.main" }'
>>> backward(read(text), text)
'terraform'
"""

import re
from collections.abc import Iterator

from eligo.formats.dot.graph import Graph, Scope

_NEXTFLOW = re.compile(r"v\d+|p\d+")
_RESOURCES = re.compile(r'\s*+digraph G \{\s*+rankdir = "RL";\s*+node \[shape = rect, fontname = "sans-serif"\];')
_MAKEFILE = re.compile(r"\s*+// Makefile\r?\n")
#: a scatter or a condition, and a declaration with its type, as womtool calls them
_SECTION = re.compile(r"(?:scatter|if) \(.*\)", re.DOTALL)
_DECLARED = re.compile(r"[A-Z]\w*+(?:\[[\w\[\], ?+]*\])?[?+]*+ \w+")
_CWL = {"cluster_inputs": "Workflow Inputs", "cluster_outputs": "Workflow Outputs"}


def drawn_by(graph: Graph) -> str | None:
    """The engine that drew a graph in which some nodes may be no tasks; None where that is not certain."""
    if all(map(_NEXTFLOW.fullmatch, graph.nodes)):
        return "nextflow"
    if all(map(str.isdecimal, graph.nodes)) and set(map(_wdl_node, graph.attributes.values())) == {True, False}:
        return "wdlviz" if len(graph.attributes) == len(graph.nodes) else None
    if any(map(_is_call, graph.nodes)) and all(_is_call(id) or _is_beside(id) for id in graph.nodes):
        return "womtool"
    return "cwltool" if any(_is_data(name, group) for name, group in graph.groups.items()) else None


def no_tasks(graph: Graph) -> set[int]:
    """The nodes that are no tasks but what tasks hand on; none where an unknown hand drew the graph."""
    found: set[int] = set()
    match drawn_by(graph):
        case "nextflow":
            drawn = {i: (known.get("shape"), known.get("label")) for i, known in graph.attributes.items()}
            found = {i for i, (shape, label) in drawn.items() if shape == "point" or (shape, label) == ("circle", "")}
        case "wdlviz":
            found = {i for i, known in graph.attributes.items() if known.get("shape") != "cds"}
            found.update(node for group in graph.groups.values() if _is_called(group) for node in group.members())
        case "womtool":
            found = {i for id, i in graph.nodes.items() if not _is_call(id)}
        case "cwltool":
            data = (group for name, group in graph.groups.items() if _is_data(name, group))
            found = {node for group in data for node in group.members()}
    return found if len(found) < len(graph.nodes) else set()


def sections(graph: Graph) -> Iterator[tuple[int, int]]:
    """The arcs from the node of each scatter or condition to all in it, for that is held up with it."""
    waiting, others = list(graph.groups.items()), {i for id, i in graph.nodes.items() if _SECTION.fullmatch(id)}
    while waiting:
        name, group = waiting.pop()
        waiting += group.named.items()
        node = graph.nodes.get(name.removeprefix("cluster-"), next((i for i in group.nodes if i in others), None))
        if node is not None and not _is_called(group):
            yield from ((node, inner) for inner in group.members() if inner != node and inner not in others)


def _is_call(id: str) -> bool:
    """Whether womtool calls a call like this."""
    return id.startswith("call ")


def _is_beside(id: str) -> bool:
    """Whether womtool calls something else like this."""
    return bool(_SECTION.fullmatch(id) or _DECLARED.fullmatch(id))


def _is_data(name: str, group: Scope) -> bool:
    """Whether cwltool drew this around the inputs or the outputs."""
    return group.label is not None and _CWL.get(name) == group.label


def _wdl_node(known: dict[str, str]) -> bool | None:
    """Whether wdlviz draws a call like this, or something else; None where it draws nothing like it."""
    match known:
        case {"shape": "cds"}:
            return True
        case {"shape": "plaintext"} | {"style": "invis", "label": ""}:
            return False
    return None


def _is_called(group: Scope) -> bool:
    """Whether wdlviz drew this as the inside of a workflow that others call."""
    return (group.label or "").startswith("<B>")


def backward(graph: Graph, text: str) -> str | None:
    """Who drew the arcs from what needs to what is needed, where that is certain."""
    ids = list(graph.nodes)
    if _RESOURCES.match(text) or (ids and all(id.startswith("[root] ") for id in ids)):
        return "terraform"
    if graph.name == "mygraph" and all(id.startswith(("//", "@")) for id in ids):
        return "Bazel"
    if graph.name == "compile" and all(id.startswith(":") for id in ids):
        return "Gradle's VisTEG"
    return "makefile2dot" if _MAKEFILE.match(text) else None
