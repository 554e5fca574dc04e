"""Our own document as YAML: see `eligo.formats.document`, which JSON shares.

    name: two steps
    tasks:
    - {name: a, run: make a, seconds: 2}
    - name: b
      after: [a]

Only what the document needs is read: lists, mappings, strings and numbers. Aliases, anchors and tags are refused, and so are
words that YAML takes for truth values or dates (`no`, `on`, `2024-01-01`): in quotes they are strings.

>>> flow = parse("tasks:\\n- {name: a, seconds: 1e3}\\n- {name: b, after: [a]}")
>>> print(generate(flow), end="")
tasks:
- {name: a, seconds: 1000}
- {name: b, after: [a]}
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.document import document_of, workflow_of
from eligo.formats.json_text import check_text, quote
from eligo.workflow import Workflow

NAME = "yaml"
PRIORITIES = True
CANNOT = ()

#: How deep lists and mappings may nest: four times what a document needs.
DEEPEST = 16
#: A longer plain word is a string, whatever it looks like.
LONGEST_NUMBER = 100

_TOP_KEY = re.compile(r"^(?:name|tasks|arcs|nodes|files)[ \t]*:(?:\s|$)", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_LONGEST_KEY = 1000  # YAML itself: a key of more than 1024 characters needs a question mark


def parse(text: str) -> Workflow:
    """The workflow that a YAML text describes."""
    return workflow_of(load(text), text, NAME)


def generate(flow: Workflow) -> str:
    """The YAML text of a workflow, one task or arc a line."""
    return "".join(_lines(document_of(flow)))


def sniff(text: str) -> bool:
    """Whether a line begins with a key of our document."""
    return _TOP_KEY.search(text) is not None


# Reading: the parser's events, taken one by one, so that nothing is built of what is refused


def load(text: str, words: bool = False) -> object:
    """The value that a YAML text describes; where *words*, 010 and true are the strings they look like.

    >>> load("{size: 010, kept: true, gone: ~}", words=True)
    {'size': '010', 'kept': 'true', 'gone': None}
    """
    import yaml

    try:
        return _document((_word_loader() if words else _loader())(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FormatError(f"not valid YAML: {error.problem}", line=line) from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise FormatError(f"not valid YAML: {getattr(error, 'reason', error)}") from None


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where it can be had, that also knows 1e3 for a number."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    number = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")
    Loader.add_implicit_resolver(_tag("float"), number, list("-+.0123456789"))
    return Loader


@cache
def _word_loader() -> Any:
    """The same for formats where the place tells what is meant: scalars are strings or None."""

    class Words(_loader()):  # type: ignore[misc]
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            null = _tag("null")
            return null if super().resolve(kind, value, implicit) == null else _tag("str")

    return Words


def _document(loader: Any) -> object:
    import yaml

    tree = _Tree()
    while loader.check_event():
        event = loader.get_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.NodeEvent):
            _refuse_references(event, line)
        if isinstance(event, yaml.ScalarEvent):
            tree.put(_scalar(loader, event, line), line)
        elif isinstance(event, yaml.SequenceStartEvent):
            tree.open([], line)
        elif isinstance(event, yaml.MappingStartEvent):
            tree.open({}, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            tree.close(line)
        elif isinstance(event, yaml.DocumentStartEvent) and tree.documents:
            raise FormatError("a second document begins: only one is read", line=line)
    return tree.documents[0] if tree.documents else None


class _Tree:
    """The lists and mappings that are not closed yet, outermost first."""

    def __init__(self) -> None:
        self.documents: list[object] = []
        self.opened: list[list[object] | dict[str, object]] = [self.documents]
        self.keys: list[str | None] = [None]  # of each mapping the key that waits for its value

    def open(self, container: list[object] | dict[str, object], line: int) -> None:
        """Begin a list or mapping."""
        self.opened.append(container)
        self.keys.append(None)
        if len(self.opened) > DEEPEST:
            raise FormatError("the YAML is nested too deeply", line=line)

    def close(self, line: int) -> None:
        """End the innermost list or mapping."""
        self.keys.pop()
        self.put(self.opened.pop(), line)

    def put(self, value: object, line: int) -> None:
        """Put a value where it belongs: as an item, as a key, or as the value of the key before it."""
        container, key = self.opened[-1], self.keys[-1]
        if isinstance(container, list):
            container.append(value)
        elif key is not None:
            container[key] = value
            self.keys[-1] = None
        elif not isinstance(value, str):
            raise FormatError("a key is not a string: put it in quotes", line=line)
        elif value in container:
            raise FormatError(f"the key {shorten(value)!r} appears twice in one mapping", line=line)
        else:
            self.keys[-1] = value


def _refuse_references(event: Any, line: int) -> None:
    if event.anchor is not None:
        message = f"an anchor or alias, {shorten(event.anchor)!r}, is not allowed: write out what it stands for"
        raise FormatError(message, line=line)
    if event.tag is not None:
        raise FormatError(f"the tag {shorten(event.tag)!r} is not allowed", line=line)


def _scalar(loader: Any, event: Any, line: int) -> object:
    import yaml

    text: str = event.value
    if event.style == '"':
        check_text(text, line)
    if not event.implicit[0] or len(text) > LONGEST_NUMBER:
        return text
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if tag in {_tag("bool"), _tag("timestamp")}:
        what = "a truth value" if tag == _tag("bool") else "a date"
        raise FormatError(f"YAML takes {text} for {what}: put it in quotes", line=line)
    if tag in {_tag("int"), _tag("float"), _tag("null")}:
        return loader.yaml_constructors[tag](loader, yaml.ScalarNode(tag, text))
    return text


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"


# Writing


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        if not value or isinstance(value, str):
            yield f"{key}: {_flow(value)}\n"
        elif isinstance(value, dict):
            yield f"{key}:\n"
            for name, item in value.items():
                shown = _flow(name)
                yield f"  {'? ' if len(shown) > _LONGEST_KEY else ''}{shown}"
                yield f"{chr(10) + '  ' if len(shown) > _LONGEST_KEY else ''}: {_flow(item)}\n"
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
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return quote(value)
