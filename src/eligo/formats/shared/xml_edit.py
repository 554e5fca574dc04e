"""XML text changed in place: where elements begin and end, so that something can be put inside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from eligo.formats.shared.editing import Edit
from eligo.formats.shared.xml_text import without_declaration


@dataclass(eq=False)
class Placed:
    """An element with the places of its tags in the text."""

    tag: str
    attributes: Mapping[str, str]
    start: int
    #: where its start tag ends, and where its end tag begins; the same where it is written `<a/>`
    inside: int = 0
    end: int = 0
    empty: bool = False
    children: list["Placed"] = field(default_factory=list)

    def walked(self) -> Iterator["Placed"]:
        """The element, and all that are in it, in the order of the text."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def filled(self, text: str) -> Edit:
        """What puts this text in place of what is inside."""
        return Edit(self.inside, self.end, text) if not self.empty else self.put(text)

    def put(self, text: str, behind: "Placed | None" = None) -> Edit:
        """What puts this text inside, first or behind one of the children."""
        if self.empty:
            return Edit(self.inside - 2, self.inside, f">{text}</{self.tag}>")
        at = self.inside if behind is None else _closed(behind)
        return Edit(at, at, text)


def _closed(element: Placed) -> int:
    return element.inside if element.empty else element.end + len(f"</{element.tag}>")


def placed(text: str) -> Placed:
    """The outermost element of a text that was read before, with places in it; its names as they are written."""
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
    """Where the tag that begins there ends: at the first > outside quotes."""
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
    """Places in bytes become places in characters: in one pass, as they rise."""
    elements: list[Any] = list(top.walked())
    places = sorted({at for e in elements for at in (e.start, e.inside, e.end)})
    found, seen, count = {}, 0, 0
    for at in places:
        count += len(data[seen:at].decode())
        found[at], seen = count, at
    for e in elements:
        e.start, e.inside, e.end = found[e.start], found[e.inside], found[e.end]
