"""Edits of JSON, YAML and XML texts in place: everything else, such as comments, order and spaces, stays as it is.

In JSON, the places of objects and their values are found without building the values between them. In XML, the places of
elements are recorded, so that text can be inserted into them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple
from xml.parsers import expat

from eligo.formats.shared.xml_text import without_declaration
from eligo.formats.shared.yaml_text import compose_nodes


class Edit(NamedTuple):
    """The text from *start* to *end* is replaced by *text*; if both are equal, *text* is inserted."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits, no two of which overlap.

    >>> apply_edits("a: 1", [Edit(3, 4, "2"), Edit(0, 0, "# ")])
    '# a: 2'
    """
    parts, position = [], 0
    for edit in sorted(edits):
        parts += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, text[position:]])


def nest(keys: Iterable[str], value: int | str) -> str:
    """A value nested under keys, on one line, as YAML writes it; with quoted keys, it is JSON.

    >>> nest(["dagman", "PRIORITY"], 3)
    '{dagman: {PRIORITY: 3}}'
    """
    text = str(value)
    for key in reversed(list(keys)):
        text = f"{{{key}: {text}}}"
    return text


# JSON

_SPACE = re.compile(r"[ \t\r\n]*")
_skip = json.JSONDecoder().raw_decode


def json_items(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """The keys of the object that begins at *start*, and where the value of each begins and ends."""
    at = _after(text, start + 1)
    while text[at] != "}":
        at = _after(text, at + 1) if text[at] == "," else at
        key, at = scanstring(text, at + 1)
        begin = _after(text, _after(text, at) + 1)
        _, end = _skip(text, begin)
        yield key, begin, end
        at = _after(text, end)


def json_elements(text: str, start: int) -> Iterator[int]:
    """Where each element begins, of the list that begins at *start*."""
    at = _after(text, start + 1)
    while text[at] != "]":
        at = _after(text, at + 1) if text[at] == "," else at
        yield at
        _, end = _skip(text, at)
        at = _after(text, end)


def json_place(text: str, *keys: str) -> int | None:
    """Where the value under these nested keys begins, outermost key first; None if there is no such value.

    >>> json_place('{"a": {"b": [1]}}', "a", "b")
    12
    """
    at: int | None = _after(text, 0)
    for key in keys:
        if at is None or text[at] != "{":
            return None
        at = next((begin for name, begin, _ in json_items(text, at) if name == key), None)
    return at


def put_in_object(text: str, start: int, key: str, value: int) -> Edit:
    """The edit that sets *key* to *value* in the object that begins at *start*, with the object's own spacing.

    >>> put_in_object('{"a": 1}', 0, "b", 2), put_in_object('{"a":1}', 0, "a", 2)
    (Edit(start=7, end=7, text=', "b": 2'), Edit(start=5, end=6, text='2'))
    """
    last, spans = start, list(json_items(text, start))
    for name, begin, end in spans:
        if name == key:
            return Edit(begin, end, str(value))
        last = end
    if not spans:
        return Edit(start + 1, start + 1, f'"{key}": {value}')
    return Edit(last, last, f",{_gap(text, start)}{json.dumps(key)}: {value}")


def _gap(text: str, start: int) -> str:
    """The white space between an object's brace and its first key, or a space if there is none."""
    space = text[start + 1 : _after(text, start + 1)]
    return space or " "


def _after(text: str, at: int) -> int:
    """The next place that is not white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


# YAML

#: a node of PyYAML, which has its place in the text
Node = Any


def _value_of(node: Node, key: str) -> Node | None:
    """The value under a key of a mapping, ignoring case; None if there is none."""
    pairs = node.value if node is not None and node.id == "mapping" else ()
    return next((value for name, value in pairs if str(name.value).lower() == key.lower()), None)


def yaml_rows(text: str, key: str) -> list[Node]:
    """The items of the list under a key of the document, or none if there is no such list."""
    node = _value_of(compose_nodes(text), key)
    return list(node.value) if node is not None and node.id == "sequence" else []


def put_in_mapping(text: str, node: Node, keys: Sequence[str], value: int | str) -> Edit:
    """The edit that sets a value in a mapping, under nested keys, outermost key first."""
    for depth, key in enumerate(keys):
        inner = _value_of(node, key)
        if inner is None:
            rest = keys[depth + 1 :]
            return _new_key_edit(text, node, key, nest(rest, value) if rest else str(value))
        if depth + 1 < len(keys) and inner.id != "mapping":
            return Edit(inner.start_mark.index, inner.end_mark.index, nest(keys[depth + 1 :], value))
        node = inner
    return Edit(node.start_mark.index, node.end_mark.index, str(value))


def _new_key_edit(text: str, mapping: Node, key: str, value: str) -> Edit:
    """The edit that adds a key: after the last key inside braces, else on its own line before the second or only key."""
    pairs = mapping.value
    if mapping.flow_style:
        at = pairs[-1][1].end_mark.index if pairs else mapping.start_mark.index + 1
        return Edit(at, at, f"{', ' if pairs else ''}{key}: {value}")
    mark = pairs[min(1, len(pairs) - 1)][0].start_mark
    line_end = "\r\n" if "\r\n" in text else "\n"
    return Edit(mark.index, mark.index, f"{key}: {value}{line_end}{' ' * mark.column}")


# XML


@dataclass(eq=False)
class Placed:
    """An element, and where its tags are in the text."""

    tag: str
    attributes: Mapping[str, str]
    start: int
    #: where its start tag ends, and where its end tag begins; equal for `<a/>`
    inside: int = 0
    end: int = 0
    empty: bool = False
    children: list["Placed"] = field(default_factory=list)

    def walk(self) -> Iterator["Placed"]:
        """The element and all elements inside it, in the order of the text."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def fill(self, text: str) -> Edit:
        """The edit that replaces the content by this text."""
        return Edit(self.inside, self.end, text) if not self.empty else self.put(text)

    def put(self, text: str, behind: "Placed | None" = None) -> Edit:
        """The edit that inserts this text, at the start of the content or after one of the children."""
        if self.empty:
            return Edit(self.inside - 2, self.inside, f">{text}</{self.tag}>")
        at = self.inside if behind is None else _end_of(behind)
        return Edit(at, at, text)


def _end_of(element: Placed) -> int:
    return element.inside if element.empty else element.end + len(f"</{element.tag}>")


def parse_places(text: str) -> Placed:
    """The outermost element of a valid XML text, with places; tags keep their prefixes."""
    data = without_declaration(text).encode()
    parser = expat.ParserCreate("utf-8")
    root = Placed("", {}, 0)
    opened = [root]

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        inside = _tag_end(data, at)
        element = Placed(tag, attributes, at, inside, inside, data[inside - 2 : inside] == b"/>")
        opened[-1].children.append(element)
        opened.append(element)

    def end(tag: str) -> None:
        element = opened.pop()
        if not element.empty:
            element.end = parser.CurrentByteIndex

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    top = root.children[0]
    if len(data) != len(text):
        _in_characters(data, top)
    return top


def _tag_end(data: bytes, at: int) -> int:
    """Where the tag that begins at *at* ends: after the first > outside quotes."""
    quote = 0
    for i in range(at, len(data)):
        byte = data[i]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in b"\"'":
            quote = byte
        elif byte == ord(">"):
            return i + 1
    return len(data)


def _in_characters(data: bytes, top: Placed) -> None:
    """Convert the places of all elements from bytes to characters, in one pass."""
    elements: list[Any] = list(top.walk())
    places = sorted({at for e in elements for at in (e.start, e.inside, e.end)})
    offsets, previous, count = {}, 0, 0
    for at in places:
        count += len(data[previous:at].decode())
        offsets[at], previous = count, at
    for e in elements:
        e.start, e.inside, e.end = offsets[e.start], offsets[e.inside], offsets[e.end]
