"""Who made a graph, and what follows from that: which of its nodes are no tasks, and whether its arcs point backwards.

Nextflow draws channels and operators, cwltool the inputs and outputs of a workflow; these are no tasks. What terraform,
Bazel, Gradle's VisTEG and makefile2dot draw points from what needs to what is needed. Only what is certain is said.

>>> from eligo.formats.dot.graph import read
>>> text = 'digraph { "[root] aws_instance.web" -> "[root] aws_vpc.main" }'
>>> backward(read(text), text)
'terraform'
"""

import re

from eligo.formats.dot.graph import Graph

_NEXTFLOW = re.compile(r"v\d+|p\d+")
_RESOURCES = re.compile(r'\s*+digraph G \{\s*+rankdir = "RL";\s*+node \[shape = rect, fontname = "sans-serif"\];')
_MAKEFILE = re.compile(r"\s*+// Makefile\r?\n")
_CWL = {"cluster_inputs": "Workflow Inputs", "cluster_outputs": "Workflow Outputs"}


def no_tasks(graph: Graph) -> set[int]:
    """The nodes that are no tasks but what tasks hand on; none where an unknown hand drew the graph."""
    if all(map(_NEXTFLOW.fullmatch, graph.nodes)):
        drawn = {i: (known.get("shape"), known.get("label")) for i, known in graph.attributes.items()}
        found = {i for i, (shape, label) in drawn.items() if shape == "point" or (shape == "circle" and label == "")}
    else:
        data = (group for name, group in graph.groups.items() if group.label and _CWL.get(name) == group.label)
        found = {node for group in data for node in group.members()}
    return found if len(found) < len(graph.nodes) else set()


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
