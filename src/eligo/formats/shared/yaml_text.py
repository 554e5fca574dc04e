"""YAML text: lists, mappings, strings and numbers; anchors, tags and ambiguous words are refused."""

import re
from contextlib import suppress
from functools import cache
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.shared.json_text import check_text

#: The maximum depth of lists and mappings, four times what a document needs.
DEEPEST = 16
#: Other words that YAML reads as booleans, such as no, are refused.
BOOLEANS = {"true": True, "false": False}
#: A longer plain word is a string, whatever it looks like.
LONGEST_NUMBER = 100


def load(text: str, words: bool = False) -> object:
    """The value that a YAML text describes; with *words*, all scalars but null are strings, such as 010 and true.

    The parser's events are read one by one, so that nothing is built from input that is refused.

    >>> load("{size: 010, kept: true, gone: ~}", words=True)
    {'size': '010', 'kept': 'true', 'gone': None}
    """
    import yaml

    try:
        return _document((_word_loader() if words else _loader())(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        hint = " (put a command with ': ', ',' or '#' in quotes)" if "expected ','" in str(error.problem) else ""
        raise FormatError(f"not valid YAML: {error.problem}{hint}", line=line) from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise FormatError(f"not valid YAML: {getattr(error, 'reason', error)}") from None


def compose_nodes(text: str) -> Any:
    """The nodes of a YAML text with their places; the text must be valid."""
    import yaml

    return yaml.compose(text, _loader())


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C if available, which also reads 1e3 as a number."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    # with \Z, because PyYAML only matches at the beginning
    number = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+\Z")
    Loader.add_implicit_resolver(_tag("float"), number, list("-+.0123456789"))
    return Loader


@cache
def _word_loader() -> Any:
    """A loader for formats where the place determines the type: all scalars are strings or None."""

    class WordLoader(_loader()):  # type: ignore[misc]
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            null = _tag("null")
            return null if super().resolve(kind, value, implicit) == null else _tag("str")

    return WordLoader


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
            raise FormatError("the file has a second document, but only one is allowed", line=line)
    return tree.documents[0] if tree.documents else None


class _Tree:
    """The open lists and mappings while a text is parsed, outermost first."""

    def __init__(self) -> None:
        self.documents: list[object] = []
        self.opened: list[list[object] | dict[str, object]] = [self.documents]
        self.keys: list[str | None] = [None]  # for each mapping, the key whose value comes next

    def open(self, container: list[object] | dict[str, object], line: int) -> None:
        """Start a list or mapping."""
        self.opened.append(container)
        self.keys.append(None)
        if len(self.opened) > DEEPEST:
            raise FormatError(f"the YAML is nested more than {DEEPEST} levels deep", line=line)

    def close(self, line: int) -> None:
        """End the innermost list or mapping."""
        self.keys.pop()
        self.put(self.opened.pop(), line)

    def put(self, value: object, line: int) -> None:
        """Add a value to the innermost list or mapping: as an item, as a key, or as the value of the last key."""
        container, key = self.opened[-1], self.keys[-1]
        if isinstance(container, list):
            container.append(value)
        elif key is not None:
            container[key] = value
            self.keys[-1] = None
        elif not isinstance(value, str):
            raise FormatError(f"a key must be a string, got {shorten(str(value))} (put it in quotes)", line=line)
        elif value in container:
            raise FormatError(f"the key {shorten(value)!r} appears twice in one mapping", line=line)
        else:
            self.keys[-1] = value


def _refuse_references(event: Any, line: int) -> None:
    if event.anchor is not None:
        message = f"anchors and aliases are not allowed, got {shorten(event.anchor)!r} (write out the value)"
        raise FormatError(message, line=line)
    if event.tag is not None:
        raise FormatError(f"the tag {shorten(event.tag)!r} is not allowed", line=line)


#: integers that look decimal, but that YAML reads with another base: octal numbers, minutes and seconds
_NOT_DECIMAL = re.compile(r"[-+]?(?:0[0-9]|[^:]*:)")


def _scalar(loader: Any, event: Any, line: int) -> object:
    import yaml

    text: str = event.value
    if event.style == '"':
        check_text(text, line)
    if not event.implicit[0] or len(text) > LONGEST_NUMBER:
        return text
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if tag == _tag("bool") and text in BOOLEANS:
        return BOOLEANS[text]
    if tag in {_tag("bool"), _tag("timestamp")}:
        what = "a boolean" if tag == _tag("bool") else "a date"
        raise FormatError(f"YAML reads {text} as {what} (put it in quotes)", line=line)
    if tag == _tag("int") and _NOT_DECIMAL.match(text):
        raise FormatError(f"YAML does not read {text} as a decimal number (put it in quotes)", line=line)
    if tag in {_tag("int"), _tag("float"), _tag("null")}:
        with suppress(ValueError):  # YAML's pattern matches 0x_, which is not a number
            return loader.yaml_constructors[tag](loader, yaml.ScalarNode(tag, text))
    return text


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"
