"""eligo's own format in JSON.

The smallest file is a list of arcs, each a pair of a parent and a child. `nodes` lists all tasks in order; it may be omitted
if each task has an arc and the order of appearance is right:

    {"arcs": [["a", "b"]], "nodes": ["a", "b", "c"]}

A larger file is a list of tasks: see `eligo.formats.shared.document`, which YAML shares.

>>> flow = parse('{"tasks": [{"name": "a", "seconds": 2}, {"name": "b", "after": ["a"]}]}')
>>> flow.dag.parents("b"), flow.task("a").seconds
(('a',), 2.0)
>>> print(generate(flow), end="")
{
  "tasks": [
    {"name": "a", "seconds": 2},
    {"name": "b", "after": ["a"]}
  ]
}
"""

import re
from collections.abc import Mapping
from typing import Any

from eligo.formats.shared import json_text
from eligo.formats.shared.document import document_of
from eligo.formats.shared.edits import apply_edits, json_elements, json_place, put_in_object
from eligo.formats.shared.files import Beside
from eligo.formats.shared.templates import may_use_templates, uses_templates, workflow_of_template
from eligo.workflow import Workflow

NAME = "json"
TAKES = ("beside", "arguments")
PRIORITIES = True
CANNOT = ()

#: The maximum number of arcs and nodes in a document on one line.
ONE_LINE = 12


def parse(text: str, beside: Beside | None = None, arguments: Mapping[str, Any] | None = None) -> Workflow:
    """The workflow that a JSON text describes."""
    return workflow_of_template(json_text.load(text), text, NAME, beside, arguments)


def generate(flow: Workflow) -> str:
    """The JSON text of a workflow, one task or arc per line."""
    document = document_of(flow)
    small = "arcs" in document and len(flow.dag) + flow.dag.arc_count <= ONE_LINE
    return json_text.dump(document, levels=0 if small else 2)


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The text with these priorities; None if it lists arcs, or a row stands for several tasks."""
    tasks = json_place(text, "tasks")
    if tasks is None or (may_use_templates(text) and uses_templates(json_text.load(text))):
        return None
    starts = zip(flow.dag.tasks, json_elements(text, tasks), strict=True)
    return apply_edits(text, [put_in_object(text, start, "priority", numbers[name]) for name, start in starts])


def sniff(text: str) -> bool:
    """Whether the text begins like a JSON object."""
    return re.match(r"\s*\{", text) is not None
