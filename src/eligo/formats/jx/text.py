"""JX text: JSON with comments, commas before a closing bracket, and escapes of any sign. Expressions are not evaluated.

Every object knows the line that it begins in.

>>> value = load('{\\n  # two\\n  "b": [1, "it\\\\\\'s",],\\n}')
>>> value, value.line
({'b': [1, "it's"]}, 1)
>>> load('["a" + b]')
Traceback (most recent call last):
eligo.errors.FormatError: line 1: '+' begins an expression, which is not evaluated: `jx2json` turns the file into JSON
"""

import re
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.shared.json_text import check_text

#: How deep lists and objects may nest
DEEPEST = 64

_BLANK = re.compile(r"(?:\s|#[^\n]*)++")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(
    r"""\"(?P<string>(?:[^"\\]|\\.)*+)\"|(?P<number>[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?)(?![\w.])"""
    r"""|(?P<word>(?:true|false|null)\b)""",
    re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CODES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}


class Object(dict[str, Any]):
    """An object, and the line that it begins in."""

    line = 0


def load(text: str) -> object:
    """The value that a JX text describes."""
    reader = _JxReader(text)
    value = reader.value(1)
    reader.skip()
    if reader.where < len(text):
        raise reader.refused()
    return value


class _JxReader:
    """A place in the text, and what can be read from there."""

    def __init__(self, text: str) -> None:
        self.text, self.where, self.line = text, 0, 1

    def skip(self) -> None:
        """Pass over blanks and comments."""
        blank = _BLANK.match(self.text, self.where)
        if blank:
            self.line += blank[0].count("\n")
            self.where = blank.end()

    def found(self, mark: str) -> bool:
        """Pass over this mark, if it comes next."""
        self.skip()
        if not self.text.startswith(mark, self.where):
            return False
        self.where += 1
        return True

    def value(self, depth: int) -> Any:
        """The next value."""
        if depth > DEEPEST:
            raise FormatError("the JX is nested too deeply", line=self.line)
        if self.found("{"):
            return self.object(depth)
        if self.found("["):
            return self.list(depth)
        token = _TOKEN.match(self.text, self.where)
        if token is None:
            raise self.refused()
        line = self.line
        self.line += token[0].count("\n")
        self.where = token.end()
        if token["string"] is not None:
            return _string(token["string"], line)
        return _WORDS[token[0]] if token["word"] else _number(token[0], line)

    def list(self, depth: int) -> list[Any]:
        """The items of a list that has just begun."""
        items: list[Any] = []
        while not self.found("]"):
            items.append(self.value(depth + 1))
            self.next("]")
        return items

    def object(self, depth: int) -> Object:
        """The keys and values of an object that has just begun."""
        row = Object()
        row.line = self.line
        while not self.found("}"):
            line, key = self.line, self.value(DEEPEST)
            if not isinstance(key, str) or key in row:
                what = (
                    f"the key {shorten(key)!r} appears twice in one object"
                    if isinstance(key, str)
                    else "a key is no string"
                )
                raise FormatError(what, line=line)
            if not self.found(":"):
                raise self.refused()
            row[key] = self.value(depth + 1)
            self.next("}")
        return row

    def next(self, end: str) -> None:
        """Pass over the comma after an item; none is needed after the last."""
        if not self.found(",") and not self.text.startswith(end, self.where):
            raise self.refused()

    def refused(self) -> FormatError:
        """Why nothing can be read from here."""
        if self.where >= len(self.text):
            return FormatError("the text ends too early", line=self.line)
        word = _WORD.match(self.text, self.where)
        sign = word[0] if word else self.text[self.where]
        if _TOKEN.match(self.text, self.where) and not word:
            return FormatError("a value is out of place: a comma or colon is missing before it", line=self.line)
        if sign == '"':
            return FormatError("a string has no end", line=self.line)
        if not word and sign not in "+-*/%!<>=&|(.[":
            return FormatError(f"{sign!r} is out of place", line=self.line)
        message = f"{shorten(sign)!r} begins an expression, which is not evaluated: `jx2json` turns the file into JSON"
        return FormatError(message, line=self.line)


def _string(text: str, line: int) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _CODES.get(found[2], found[2]), text)
    check_text(text, line)
    return text


def _number(word: str, line: int) -> float:
    if len(word) > 100:
        raise FormatError("a number has too many digits", line=line)
    return int(word) if word.lstrip("-+").isdecimal() else float(word)
