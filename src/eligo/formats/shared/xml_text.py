"""XML text: read in one pass, element by element, and escaped for writing.

The parser is expat. Features that could expand a small file or refer to other files are refused: declarations of entities
and of attributes in a document type, and deep nesting. Namespace prefixes are removed.

>>> jobs = []
>>> scan('<list xmlns:y="x"><y:job n="1">run <b>a</b>!</y:job></list>', {"job": jobs.append}, lambda element: None)
>>> jobs[0].attributes["n"], jobs[0].line, jobs[0].all_text()
('1', 1, 'run a!')
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NoReturn
from xml.parsers import expat

from eligo.errors import FormatError, shorten

#: The maximum depth of elements; files of yEd need about ten levels.
DEEPEST = 32

_LATE = re.compile(r"((?:\s++|<!--(?:[^-]|-(?!->))*+-->)++)(<\?xml\s(?:[^<>?]|\?(?!>))*+\?>)")
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WRITTEN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_IN_TEXT = re.compile("[&<>\r]")
_IN_ATTRIBUTE = re.compile('[&<>"\t\n\r]')


class Element:
    """An element with its content, texts and elements in order."""

    __slots__ = ("attributes", "content", "line", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.content: list[str | Element] = []

    def children(self, tag: str) -> Iterator["Element"]:
        """The child elements with this tag."""
        return (item for item in self.content if isinstance(item, Element) and item.tag == tag)

    def inside(self, tag: str) -> "Element | None":
        """The first element with this tag at any depth inside; None if there is none."""
        waiting: list[str | Element] = [self]
        while waiting:
            item = waiting.pop()
            if isinstance(item, Element):
                if item.tag == tag:
                    return item
                waiting += reversed(item.content)
        return None

    def all_text(self) -> str:
        """The text of the element and of all elements inside."""
        return "".join(item if isinstance(item, str) else item.all_text() for item in self.content)

    def need(self, attribute: str) -> str:
        """The value of an attribute; raises if it is missing."""
        value = self.attributes.get(attribute)
        if value is None:
            raise FormatError(f"<{self.tag}> has no attribute {attribute}", line=self.line)
        return value


def without_declaration(text: str) -> str:
    """The text, with spaces in place of an XML declaration that is not at the start, where XML does not allow it.

    >>> without_declaration("\\n<?xml version='1.0'?><a/>").strip()
    '<a/>'
    """
    late = _LATE.match(text)
    return text if late is None else f"{late[1]}{' ' * len(late[2])}{text[late.end() :]}"


Taker = Callable[[Element], None]


def scan(text: str, records: Mapping[str, Taker], enter: Taker) -> None:
    """Pass each complete element with a tag in *records* to its function, and the other elements outside these to *enter*.

    *enter* is called at the start tag, so that the element has attributes but no content.
    """
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    reader = _XmlReader(parser, records, enter)
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler = reader.words
    parser.EntityDeclHandler, parser.AttlistDeclHandler = reader.entity, reader.attribute_list
    parser.SkippedEntityHandler = reader.skipped
    try:
        parser.Parse(without_declaration(text).encode(), True)
    except UnicodeEncodeError as error:
        message = f"{error.object[error.start]!a} is not a valid character"
        raise FormatError(message, line=text.count("\n", 0, error.start) + 1) from None
    except expat.ExpatError as error:
        raise FormatError(f"not valid XML: {expat.ErrorString(error.code)}", line=error.lineno) from None


class _XmlReader:
    """The open elements while a text is parsed: elements inside a record, and the number of the others."""

    def __init__(self, parser: expat.XMLParserType, records: Mapping[str, Taker], enter: Taker) -> None:
        self.parser, self.records, self.enter = parser, records, enter
        self.opened: list[Element] = []
        self.outside = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if ":" in tag:
            tag = tag.rpartition(":")[2]
        opened = self.opened
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        if len(opened) + self.outside >= DEEPEST:
            raise FormatError(f"the XML is nested more than {DEEPEST} levels deep", line=element.line)
        if opened:
            opened[-1].content.append(element)
            opened.append(element)
        elif tag in self.records:
            opened.append(element)
        else:
            self.outside += 1
            self.enter(element)

    def end(self, tag: str) -> None:
        if not self.opened:
            self.outside -= 1
            return
        element = self.opened.pop()
        if not self.opened:
            self.records[element.tag](element)

    def words(self, text: str) -> None:
        if self.opened:
            self.opened[-1].content.append(text)

    def entity(self, *_: object) -> NoReturn:
        raise FormatError("the document declares entities, which are not supported", line=self.parser.CurrentLineNumber)

    def attribute_list(self, *_: object) -> NoReturn:
        raise FormatError(
            "the document declares attributes, which are not supported", line=self.parser.CurrentLineNumber
        )

    def skipped(self, name: str, _: bool) -> NoReturn:
        raise FormatError(f"the entity {shorten(name)!r} is not defined", line=self.parser.CurrentLineNumber)


# Writing


def quote(value: str, what: str) -> str:
    """An attribute's value, escaped, in double quotes; *what* names it in the error if XML cannot represent it.

    >>> quote('<a & "b">', "a name")
    '"&lt;a &amp; &quot;b&quot;&gt;"'
    """
    _possible(value, what)
    return '"' + _IN_ATTRIBUTE.sub(lambda match: _WRITTEN[match[0]], value) + '"'


def escape(value: str, what: str) -> str:
    """Text, escaped for use between tags; *what* names it in the error if XML cannot represent it."""
    _possible(value, what)
    return _IN_TEXT.sub(lambda match: _WRITTEN[match[0]], value)


def begins_with(text: str, tags: Collection[str]) -> bool:
    """Whether the first element of a text, after comments and declarations, has one of these tags."""
    match = re.match(
        r"\ufeff?\s*(?:<[?!](?:--(?:[^-]|-(?!->))*-->|[^>]{0,1000}>)\s*){0,20}<(?:[\w.-]+:)?([\w.-]+)", text
    )
    return match is not None and match[1] in tags


def _possible(value: str, what: str) -> None:
    wrong = _IMPOSSIBLE.search(value)
    if wrong:
        raise FormatError(f"{what} contains {wrong[0]!a}, which XML cannot represent")
