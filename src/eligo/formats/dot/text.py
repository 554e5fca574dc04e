"""The words of the DOT language: identifiers in their four spellings, keywords, signs and comments.

>>> [(word.kind, word.text) for word in words('a -> "b \\\\"c\\\\"" + "d" // and so on')]
[('name', 'a'), ('->', '->'), ('name', 'b "c"d')]
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, cast

from eligo.errors import FormatError, shorten

KEYWORDS = frozenset({"strict", "graph", "digraph", "subgraph", "node", "edge"})

_BLANK = r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n]*+)*+"
_WORD = re.compile(
    _BLANK
    + r"""(?: (?P<plain>[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*+)
            | (?P<quoted>"(?:[^"\\]++|\\.)*+")
            | (?P<sign>->|--|[{}\[\]:;,=+])
            | (?P<number>-?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)) (?P<badly>[A-Za-z_\x80-\U0010ffff.])?
            | (?P<html><)
            | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_PLUS = re.compile(_BLANK + r"\+" + _BLANK, re.DOTALL)
_SPACE = re.compile(_BLANK, re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BRACKET = re.compile("[<>]")
_SPLICE = re.compile(r'\\(\\|"|\r?\n)')


class Word(NamedTuple):
    """A word of a DOT text: its kind is "name", a keyword or a sign; "end" after the last one."""

    kind: str
    text: str
    place: int
    #: whether it stood in <>
    html: bool = False


def words(text: str) -> Iterator[Word]:
    """The words of a DOT text; strings joined by + are one."""
    place, match_at = 0, _WORD.match
    while True:
        match = match_at(text, place)
        if match is None:
            raise _unreadable(text, place)
        kind, place = match.lastgroup, match.end()
        if kind == "sign":
            yield Word(match["sign"], match["sign"], place - 1)
        elif kind == "plain":
            lower = match["plain"].lower()
            yield Word(lower if lower in KEYWORDS else "name", match["plain"], place - len(lower))
        elif kind == "number":
            yield Word("name", match["number"], place - 1)
        elif kind == "badly":
            start = shorten(match["number"] + match["badly"])
            raise error(text, place, f"{start} begins as a number does and goes on: put it in quotes")
        elif kind == "end":
            return
        else:
            word, place = _string(text, match.start(cast(str, kind)))
            yield word


def _string(text: str, begin: int) -> tuple[Word, int]:
    """The string in quotes or <> that begins at this place, with what + joins to it, and where it ends."""
    parts, html, place = [], text[begin] == "<", begin
    while True:
        if text.startswith("<", place):
            end = _html_end(text, place)
            parts.append(text[place + 1 : end - 1])
        elif match := _QUOTED.match(text, place):
            end = match.end()
            parts.append(_spliced(match[0][1:-1]))
        else:
            wrong = "the text ends after +" if place == len(text) else "+ joins strings, and what follows is none"
            raise error(text, place, wrong)
        plus = _PLUS.match(text, end)
        if plus is None:
            return Word("name", "".join(parts), begin, html), end
        place = plus.end()


def error(text: str, place: int, message: str) -> FormatError:
    """The error of this message at a place in the text."""
    return FormatError(message, line=text.count("\n", 0, place) + 1)


def _spliced(body: str) -> str:
    """What stands between quotes, with quotes and line ends freed of their backslash; others stay."""
    if "\\" not in body:
        return body
    return _SPLICE.sub(lambda found: {"\\": "\\\\", '"': '"'}.get(found[1], ""), body)


def _html_end(text: str, begin: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, begin):
        depth += 1 if bracket[0] == "<" else -1
        if not depth:
            return bracket.end()
    raise error(text, begin, "a string in <> has no end")


def _unreadable(text: str, place: int) -> FormatError:
    """What to say of a text that goes on with no word."""
    place = cast(re.Match[str], _SPACE.match(text, place)).end()
    if text[place] == '"':
        return error(text, place, "a string in quotes has no end")
    if text.startswith("/*", place):
        return error(text, place, "a comment has no end")
    return error(text, place, f"{text[place]!a} has no meaning here: put names with signs in quotes")
