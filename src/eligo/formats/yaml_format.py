"""eligo's own format in YAML: see `eligo.formats.shared.document`, which JSON shares.

    name: two steps
    tasks:
    - {name: a, run: make a, seconds: 2}
    - name: b
      after: [a]

A document has lists, mappings, strings and numbers. Aliases, anchors and tags are refused, and so are words that YAML reads
as booleans or dates (`no`, `on`, `2024-01-01`); in quotes they are strings.

>>> flow = parse("tasks:\\n- {name: a, seconds: 1e3}\\n- {name: b, after: [a]}")
>>> print(generate(flow), end="")
tasks:
- {name: a, seconds: 1000}
- {name: b, after: [a]}
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eligo.formats.shared.document import document_of
from eligo.formats.shared.edits import apply_edits, put_in_mapping, yaml_rows
from eligo.formats.shared.files import Beside
from eligo.formats.shared.json_text import quote
from eligo.formats.shared.templates import may_use_templates, uses_templates, workflow_of_template
from eligo.formats.shared.yaml_text import load
from eligo.workflow import Workflow

NAME = "yaml"
TAKES = ("beside", "arguments")
PRIORITIES = True
CANNOT = ()

_TOP_KEY = re.compile(r"^(?:name|params|defaults|tasks|arcs|nodes|files)[ \t]*:(?:\s|$)", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_LONGEST_KEY = 1000  # in YAML, a key of more than 1024 characters needs a question mark


def parse(text: str, beside: Beside | None = None, arguments: Mapping[str, Any] | None = None) -> Workflow:
    """The workflow that a YAML text describes."""
    return workflow_of_template(load(text), text, NAME, beside, arguments)


def generate(flow: Workflow) -> str:
    """The YAML text of a workflow, one task or arc per line."""
    return "".join(_lines(document_of(flow)))


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The text with these priorities; None if it lists arcs, or a row stands for several tasks."""
    tasks = yaml_rows(text, "tasks")
    if not tasks or (may_use_templates(text) and uses_templates(load(text))):
        return None
    pairs = zip(flow.dag.tasks, tasks, strict=True)
    return apply_edits(text, [put_in_mapping(text, node, ["priority"], numbers[name]) for name, node in pairs])


def sniff(text: str) -> bool:
    """Whether a line begins with a key of eligo's own documents."""
    return _TOP_KEY.search(text) is not None


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        if not value or isinstance(value, str):
            yield f"{key}: {_flow(value)}\n"
        elif isinstance(value, dict):
            yield f"{key}:\n"
            for name, item in value.items():
                text = _flow(name)
                yield f"  {'? ' if len(text) > _LONGEST_KEY else ''}{text}"
                yield f"{chr(10) + '  ' if len(text) > _LONGEST_KEY else ''}: {_flow(item)}\n"
        else:
            yield f"{key}:\n"
            yield from (f"- {_flow(item)}\n" for item in value)


def _flow(value: object) -> str:
    """A value on one line."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else quote(value)
    if isinstance(value, float):
        return re.sub(r"^(-?\d+)e", r"\1.0e", repr(float(value)))  # YAML 1.1 wants the point
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return quote(value)
