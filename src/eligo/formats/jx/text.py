"""The words of a JX text: strings, numbers, names and signs, with comments and blanks between them.

>>> scanner = Scanner('# two\\n"it\\\\\\'s" <= x')
>>> scanner.literal(), scanner.sign(), scanner.line
("it's", '<=', 2)
"""

import re
from math import isfinite
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.shared.json_text import check_text

_BLANK = re.compile(r"(?:\s|#[^\n]*)++")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*+")
_LITERAL = re.compile(
    r"""\"(?P<string>(?:[^"\\]|\\.)*+)\"|(?P<number>(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?)(?![\w.])"""
    r"""|(?P<word>(?:true|false|null)\b)""",
    re.DOTALL | re.ASCII,
)
_SIGN = re.compile(r"==|!=|<=|>=|&&|\|\||[<>+\-*/%!]|(?:and|or|not)\b")
_SAME = {"&&": "and", "||": "or", "!": "not"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CODES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
#: words that are no names
_KEPT = {"and", "or", "not", "for", "in", "if", "error", *_WORDS}


class Scanner:
    """A place in the text, and what can be read from there."""

    def __init__(self, text: str) -> None:
        self.text, self.where, self.line = text, 0, 1

    def skip(self) -> None:
        """Pass over blanks and comments."""
        blank = _BLANK.match(self.text, self.where)
        if blank:
            self.line += blank[0].count("\n")
            self.where = blank.end()

    def at_end(self) -> bool:
        """Whether nothing follows."""
        self.skip()
        return self.where >= len(self.text)

    def found(self, mark: str) -> bool:
        """Pass over this mark or word, if it comes next."""
        self.skip()
        if not self.text.startswith(mark, self.where):
            return False
        word = _WORD.match(self.text, self.where) if mark.isalpha() else None
        if word and word[0] != mark:
            return False
        self.where += len(mark)
        return True

    def need(self, mark: str) -> None:
        """Pass over this mark, which has to come next."""
        if not self.found(mark):
            raise self.refused()

    def name(self) -> str | None:
        """Pass over a name, if one comes next."""
        self.skip()
        word = _WORD.match(self.text, self.where)
        if word is None or word[0] in _KEPT:
            return None
        self.where = word.end()
        return word[0]

    def sign(self) -> str | None:
        """Pass over the sign of an operation, if one comes next."""
        self.skip()
        sign = _SIGN.match(self.text, self.where)
        if sign is None:
            return None
        self.where = sign.end()
        return _SAME.get(sign[0], sign[0])

    def literal(self) -> Any:
        """The string, number, truth value or null that has to come next."""
        self.skip()
        token = _LITERAL.match(self.text, self.where)
        if token is None:
            raise self.refused()
        line = self.line
        self.line += token[0].count("\n")
        self.where = token.end()
        if token["string"] is not None:
            return _string(token["string"], line)
        return _WORDS[token[0]] if token["word"] else _number(token[0], line)

    def refused(self) -> FormatError:
        """Why nothing can be read from here."""
        if self.at_end():
            return FormatError("the text ends too early", line=self.line)
        word = _WORD.match(self.text, self.where)
        sign = word[0] if word else self.text[self.where]
        if not word and _LITERAL.match(self.text, self.where):
            return FormatError("a value is out of place: a comma or colon is missing before it", line=self.line)
        if sign == '"':
            return FormatError("a string has no end", line=self.line)
        return FormatError(f"{shorten(sign)!r} is out of place", line=self.line)


def _string(text: str, line: int) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _CODES.get(found[2], found[2]), text)
    check_text(text, line)
    return text


def _number(word: str, line: int) -> float:
    if len(word) > 100:
        raise FormatError("a number has too many digits", line=line)
    number = int(word) if word.isdecimal() else float(word)
    if not isfinite(number) or (type(number) is int and number >= 2**63):
        raise FormatError(f"{word} is too large a number", line=line)
    return number
