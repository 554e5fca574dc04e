"""The words of a Makeflow file: lines, quotes, escapes, and variables that are put in where they are used.

A backslash takes the meaning from the sign after it and joins a line with the next. In quotes, blanks are kept; in single
quotes, $ is kept too. $X, $(X) and ${X} stand for the value of X, which is read again as what it stands in: as names of
files, or as part of a command, where the quotes stay. A # that is neither quoted nor escaped begins a comment.

>>> budget = Allowance(1000)
>>> files(r"a\\ b $(X):'c d'", {"X": "x y"}.get, budget, 1)
['a b', 'x', 'y', <Sign.COLON: 1>, 'c d']
>>> command("cat  $(X) > '$Y'", {"X": "x y"}.get, budget, 1)
"cat x y > '$Y'"
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import chain

from eligo.errors import FormatError, shorten
from eligo.formats.shared.allowance import Allowance

Lookup = Callable[[str], str | None]

_NAME = r"""[^\\"'$#\s,.\-(){}\[\]<>=+!?/:]+"""
_VARIABLE = rf"\$(?:\(({_NAME})\)|\{{({_NAME})\}}|({_NAME}))"
_SINGLE, _DOUBLE = r"'((?:[^'\\]|\\.)*+)'", r'"((?:[^"\\]|\\.)*+)"'
_FILES = re.compile(
    rf"""(?P<blank>[ \t]+)|(?P<colon>:)|(?P<arrow>->)|(?P<name>{_VARIABLE})|(?P<single>{_SINGLE})|(?P<double>{_DOUBLE})"""
    r"""|(?P<word>(?:[^ \t"'$:\\-]|\\.|-(?!>))++)""",
    re.DOTALL,
)
_WORDS = re.compile(
    rf"""(?P<blank>[ \t]+)|(?P<name>{_VARIABLE})|(?P<single>{_SINGLE})|(?P<double>{_DOUBLE})"""
    r"""|(?P<word>(?:[^ \t"'$\\]|\\.)++)|(?P<dollar>\$)""",
    re.DOTALL,
)
_INSIDE = re.compile(rf"(?P<name>{_VARIABLE})|\\(?P<escape>.)|(?P<plain>[^\\$]+|.)", re.DOTALL)
_COMMENT = re.compile(rf"""\\.|{_SINGLE}|{_DOUBLE}|(#)""", re.DOTALL)
_LOOK = re.compile(r"""\\.|"[^"]*"|'[^']*'|([:=])""", re.DOTALL)
_SPECIAL = re.compile(r"""["'$\\]|->""")
_PLAIN = re.compile(r":|[^: \t]+")
_BLANKS = re.compile(r"[ \t]+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CODES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Sign(Enum):
    """What stands between names of files."""

    COLON = 1
    ARROW = 2


class UnsetError(FormatError):
    """A variable that nothing sets stands where its value is needed."""


def lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, joined where a backslash ends one, without comments; empty ones are left out."""
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r")
        code = without_comment(line) if "#" in line else line
        first = first if parts else number
        if code == line and (len(line) - len(line.rstrip("\\"))) % 2:
            parts.append(line[:-1])
            continue
        if parts:
            code = without_comment(" ".join([*parts, line]))
            parts = []
        if code and not code.isspace():
            yield first, code
    rest = " ".join(parts)
    if rest and not rest.isspace():
        yield first, rest


def without_comment(line: str) -> str:
    """The line up to the first # that is neither quoted nor escaped."""
    return next((line[: found.start()] for found in _COMMENT.finditer(line) if found[3]), line)


def sign_of(line: str) -> str:
    """What comes first in a line, unquoted: ":" of a rule, "=" of a variable, or neither."""
    if not _special(line):
        colon, equals = line.find(":"), line.find("=")
        return "" if colon == equals else ":" if equals < 0 or 0 <= colon < equals else "="
    return next((found[1] for found in _LOOK.finditer(line) if found[1]), "")


def files(line: str, lookup: Lookup, budget: Allowance, number: int) -> list[str | Sign]:
    """The names of files in a line, and the colons and arrows between them."""
    if not _special(line):
        return [Sign.COLON if word == ":" else word for word in _PLAIN.findall(line)]
    tokens: list[str | Sign] = []
    parts: list[str] = []
    for piece in chain(_file_pieces(line, lookup, budget, number, 1), (None,)):
        if isinstance(piece, str):
            parts.append(piece)
            continue
        word = "".join(parts)
        parts = []
        tokens += ((word,) if word else ()) + (() if piece is None else (piece,))
    return tokens


def _file_pieces(line: str, lookup: Lookup, budget: Allowance, number: int, depth: int) -> Iterator[str | Sign | None]:
    """Parts of names, signs, and None for a blank."""
    for token in _tokens(_FILES, line, number):
        kind, text = str(token.lastgroup), token[0]
        if kind == "blank":
            yield None
        elif kind in {"colon", "arrow"}:
            yield Sign[kind.upper()]
        elif kind == "name":
            value = _value(token, lookup, number)
            budget.spend(len(value), depth, number)
            yield from _file_pieces(value, lookup, budget, number, depth + 1)
        elif kind == "double":
            yield expanded(text[1:-1], lookup, budget, number)
        else:
            yield _ESCAPED.sub(r"\1", text[1:-1] if kind == "single" else text)


def command(line: str, lookup: Lookup, budget: Allowance, number: int) -> str:
    """A command with its variables put in; those that are not known stay for the shell."""
    if not _special(line):
        return _BLANKS.sub(" ", line.strip(" \t"))
    pieces = list(_command_pieces(line.lstrip(" \t"), lookup, budget, number, 1))
    while pieces and pieces[-1] is None:
        pieces.pop()
    return "".join(" " if piece is None else piece for piece in pieces)


def _command_pieces(line: str, lookup: Lookup, budget: Allowance, number: int, depth: int) -> Iterator[str | None]:
    """Parts of a command, and None for a blank."""
    for token in _tokens(_WORDS, line, number):
        kind, text = token.lastgroup, token[0]
        if kind == "blank":
            yield None
        elif kind == "name":
            value = lookup(_variable(token))
            if value is None:
                yield text
            else:
                budget.spend(len(value), depth, number)
                yield from _command_pieces(value, lookup, budget, number, depth + 1)
        elif kind == "double":
            yield f'"{expanded(text[1:-1], lookup, budget, number, strict=False)}"'
        else:
            yield _ESCAPED.sub(r"\1", text)


def expanded(text: str, lookup: Lookup, budget: Allowance, number: int, strict: bool = True) -> str:
    """What stands in double quotes or after a =, with variables put in and escapes such as \\n undone."""
    parts = []
    for token in _INSIDE.finditer(text):
        if token["escape"] is not None:
            parts.append(_CODES.get(token["escape"], token["escape"]))
        elif token["name"] is not None:
            value = lookup(_variable(token))
            if value is None and strict:
                raise _unknown(token, number)
            budget.spend(len(value or ""), 1, number)
            parts.append(token[0] if value is None else value)
        else:
            parts.append(token["plain"])
    return "".join(parts)


def _tokens(pattern: re.Pattern[str], line: str, number: int) -> Iterator[re.Match[str]]:
    end = 0
    for token in pattern.finditer(line):
        if token.start() != end:
            break
        end = token.end()
        yield token
    if end != len(line):
        what = (
            "a quote that has no end"
            if line[end] in "\"'"
            else f"{shorten(line[end:], 20)!r}, which means nothing here"
        )
        raise FormatError(f"the line has {what}", line=number)


def _variable(token: re.Match[str]) -> str:
    return token["name"].strip("${}()")


def _value(token: re.Match[str], lookup: Lookup, number: int) -> str:
    value = lookup(_variable(token))
    if value is None:
        raise _unknown(token, number)
    return value


def _unknown(token: re.Match[str], number: int) -> FormatError:
    name = shorten(_variable(token))
    message = f"the variable {name!r} is set neither above nor in an environment that was given"
    return UnsetError(message, line=number).cured_by("environment")


def _special(line: str) -> bool:
    return _SPECIAL.search(line) is not None


# Writing

_IMPOSSIBLE = re.compile(r"[\0-\x08\x0a-\x1f]")


def written_file(name: str, what: str) -> str:
    """The name of a file, escaped; *what* names it where a Makeflow file has no place for it.

    >>> print(written_file("a-b -> c", "a file"))
    a-b\\ \\->\\ c
    """
    if not name:
        raise FormatError(f"{what} has no name, which Makeflow does not allow").cured_by("file_names")
    if not fitted_file(name):
        wrong = _IMPOSSIBLE.findall(name)[0]
        message = f"{what}, {shorten(name)!a}, holds {wrong!a}, for which Makeflow has no place"
        raise FormatError(message).cured_by("file_names")
    return re.sub(r"""[\\"'$# \t:=]|^@|(?<![\w./])-|-(?![\w./])""", r"\\\g<0>", name)


def fitted_file(name: str) -> str | None:
    """The name of a file, where a Makeflow file has a place for it."""
    return name if name and not _IMPOSSIBLE.search(name) else None


def written_command(line: str, what: str) -> str:
    """A command, escaped."""
    return re.sub(r"""[\\"'$#\t]|^ | (?= )| $""", r"\\\g<0>", _possible(line, what))


def written_value(value: str, what: str) -> str:
    """The value of a variable, escaped."""
    return re.sub(r"""[\\"'$#]|^[ \t]|[ \t]$""", r"\\\g<0>", _possible(value, what))


def _possible(text: str, what: str) -> str:
    wrong = _IMPOSSIBLE.search(text)
    if wrong:
        raise FormatError(f"{what} holds {wrong[0]!a}, for which Makeflow has no place")
    return text
