"""JX expressions as trees: a literal stands for itself; everything else is an operation, with its line number.

Makeflow's manual and its program disagree on precedence without parentheses. In the manual, `and` precedes `or`, `not`
follows comparisons, and evaluation is from left to right; in the program, it is the opposite. Expressions whose value would
depend on this are refused: here if the signs show it, and in `evaluation` if only the values do.

>>> parse_tree('a + 1')
Operation(method='chain', parts=((Operation(method='symbol', parts=('a',), line=1), 1), ('+',)), line=1)
>>> parse_tree("a or b and c")
Traceback (most recent call last):
eligo.errors.FormatError: line 1: 'and' next to 'or' is ambiguous (add parentheses)

A `Scanner` reads the words of a JX text: strings, numbers, names and signs, with comments and blanks between them.

>>> scanner = Scanner('# two\\n"it\\\\\\'s" <= x')
>>> scanner.literal(), scanner.sign(), scanner.line
("it's", '<=', 2)
"""

import re
from math import isfinite
from typing import Any, NamedTuple

from eligo.errors import FormatError, shorten
from eligo.formats.shared.json_text import check_text

# Words

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
#: words that cannot be names
_RESERVED = {"and", "or", "not", "for", "in", "if", "error", *_WORDS}


class Scanner:
    """Reads words from a place in the text."""

    def __init__(self, text: str) -> None:
        self.text, self.where, self.line = text, 0, 1

    def skip(self) -> None:
        """Skip blanks and comments."""
        blank = _BLANK.match(self.text, self.where)
        if blank:
            self.line += blank[0].count("\n")
            self.where = blank.end()

    def at_end(self) -> bool:
        """Whether nothing follows."""
        self.skip()
        return self.where >= len(self.text)

    def take(self, mark: str) -> bool:
        """Skip this mark or word if it comes next; returns whether it does."""
        self.skip()
        if not self.text.startswith(mark, self.where):
            return False
        word = _WORD.match(self.text, self.where) if mark.isalpha() else None
        if word and word[0] != mark:
            return False
        self.where += len(mark)
        return True

    def need(self, mark: str) -> None:
        """Skip this mark; raises if it does not come next."""
        if not self.take(mark):
            raise self.syntax_error()

    def name(self) -> str | None:
        """Read a name; returns None if none comes next."""
        self.skip()
        word = _WORD.match(self.text, self.where)
        if word is None or word[0] in _RESERVED:
            return None
        self.where = word.end()
        return word[0]

    def sign(self) -> str | None:
        """Read the sign of an operation; returns None if none comes next."""
        self.skip()
        sign = _SIGN.match(self.text, self.where)
        if sign is None:
            return None
        self.where = sign.end()
        return _SAME.get(sign[0], sign[0])

    def literal(self) -> Any:
        """Read a string, number, boolean or null; raises if none comes next."""
        self.skip()
        token = _LITERAL.match(self.text, self.where)
        if token is None:
            raise self.syntax_error()
        line = self.line
        self.line += token[0].count("\n")
        self.where = token.end()
        if token["string"] is not None:
            return _string(token["string"], line)
        return _WORDS[token[0]] if token["word"] else _number(token[0], line)

    def syntax_error(self) -> FormatError:
        """The error for the text at this place."""
        if self.at_end():
            return FormatError("unexpected end of the text", line=self.line)
        word = _WORD.match(self.text, self.where)
        sign = word[0] if word else self.text[self.where]
        if not word and _LITERAL.match(self.text, self.where):
            return FormatError("unexpected value (a comma or colon is missing before it)", line=self.line)
        if sign == '"':
            return FormatError("a string has no closing quote", line=self.line)
        return FormatError(f"unexpected {shorten(sign)!r}", line=self.line)


def _string(text: str, line: int) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _CODES.get(match[2], match[2]), text)
    check_text(text, line)
    return text


def _number(word: str, line: int) -> float:
    if len(word) > 100:
        raise FormatError("a number has too many digits", line=line)
    number = int(word) if word.isdecimal() else float(word)
    if not isfinite(number) or (type(number) is int and number >= 2**63):
        raise FormatError(f"number too large: {word}", line=line)
    return number


# Trees

#: The maximum depth of lists, objects and parentheses
DEEPEST = 64

#: An operation, or a literal
Node = Any

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")


class Operation(NamedTuple):
    """An operation: the name of a method of `evaluation.Evaluation`, and its arguments after the scope."""

    method: str
    parts: tuple[Any, ...]
    line: int


class Clause(NamedTuple):
    """`for VARIABLE in ELEMENTS if CONDITION`, which is optional and then None."""

    variable: str
    elements: Node
    condition: Node
    line: int


class Item(NamedTuple):
    """An item of a list, evaluated once for every combination of the elements in its clauses."""

    value: Node
    clauses: tuple[Clause, ...]


class Pair(NamedTuple):
    """A key of an object and its value, evaluated once for every combination of the elements in the clauses."""

    key: Node
    value: Node
    clauses: tuple[Clause, ...]
    line: int


def parse_tree(text: str) -> Node:
    """The tree of a JX text."""
    reader = _TreeReader(text)
    tree = reader.expression(1)
    if not reader.at_end():
        raise reader.syntax_error()
    return tree


class _TreeReader(Scanner):
    """Reads trees from a place in the text."""

    def expression(self, depth: int) -> Node:
        """Read an expression."""
        if depth > DEEPEST:
            raise _depth_error(self.line)
        self.skip()
        line = self.line
        value, is_negated = self.operand(depth)
        operands, signs = [value], []
        while sign := self.sign():
            if sign == "not":
                raise self.syntax_error()
            if is_negated and sign not in {"and", "or"}:
                raise _unclear("not", sign, self.line)
            signs.append(sign)
            value, is_negated = self.operand(depth)
            operands.append(value)
        return group(operands, signs, line)

    def operand(self, depth: int) -> tuple[Node, bool]:
        """Read a value with the signs before it and the lookups after it; also returns whether it begins with `not`."""
        self.skip()
        line, before = self.line, []
        while sign := self.sign():
            if sign not in {"-", "+", "not"}:
                raise FormatError(f"unexpected {sign!r}", line=self.line)
            before.append(sign)
        value = self.suffixes(self.atom(depth), depth)
        for sign in reversed(before):
            if sign != "not" and type(value) in {int, float}:
                value = -value if sign == "-" else value
            else:
                value = Operation("unary", (sign, value), line)
        return value, before[:1] == ["not"]

    def atom(self, depth: int) -> Node:
        """Read a literal, a list, an object, a name, a call, or an expression in parentheses."""
        self.skip()
        line = self.line
        if self.take("{"):
            return Operation("make_object", (tuple(self.pairs(depth + 1)), line), line)
        if self.take("["):
            return Operation("items", (self.items("]", depth + 1),), line)
        if self.take("("):
            inner = self.expression(depth + 1)
            self.need(")")
            return inner
        name = self.name()
        if name is None:
            return self.literal()
        if self.take("("):
            return Operation("call", (name, self.items(")", depth + 1)), line)
        return Operation("symbol", (name,), line)

    def suffixes(self, base: Node, depth: int) -> Node:
        """Read any [PLACE] and .function() after a value; returns the resulting value."""
        for step in range(1, DEEPEST):
            if self.take("["):
                base = self.lookup(base, depth + step)
            elif self.take("."):
                name, line = self.name(), self.line
                if name is None:
                    raise self.syntax_error()
                self.need("(")
                base = Operation("call", (name, [Item(base, ()), *self.items(")", depth + step)]), line)
            else:
                return base
        raise _depth_error(self.line)

    def lookup(self, base: Node, depth: int) -> Node:
        """Read a lookup or slice after its opening bracket."""
        line = self.line
        start = None if self.take(":") else self.expression(depth)
        if start is not None and self.take("]"):
            return Operation("lookup", (base, start), line)
        if start is not None:
            self.need(":")
        stop = None
        if not self.take("]"):
            stop = self.expression(depth)
            self.need("]")
        return Operation("slice", (base, start, stop), line)

    def items(self, end: str, depth: int) -> list[Item]:
        """Read the items of a list, or the arguments of a function, after the opening bracket."""
        items = []
        while not self.take(end):
            items.append(Item(self.expression(depth), self.clauses(depth)))
            self.next(end)
        return items

    def pairs(self, depth: int) -> list[Pair]:
        """Read the keys and values of an object after the opening brace."""
        pairs = []
        while not self.take("}"):
            line, key = self.line, self.expression(depth)
            self.need(":")
            value = self.expression(depth)
            pairs.append(Pair(key, value, self.clauses(depth), line))
            self.next("}")
        return pairs

    def next(self, end: str) -> None:
        """Skip the comma after an item, which is optional after the last item."""
        if not self.take(",") and not self.text.startswith(end, self.where):
            raise self.syntax_error()

    def clauses(self, depth: int) -> tuple[Clause, ...]:
        """Read the `for` clauses of an item."""
        clauses: list[Clause] = []
        while self.take("for"):
            line, variable = self.line, self.name()
            if variable is None or not self.take("in"):
                raise FormatError("'for' must be followed by a name, 'in' and a list", line=line)
            if depth + len(clauses) > DEEPEST:
                raise _depth_error(line)
            elements = self.expression(depth)
            clauses.append(Clause(variable, elements, self.expression(depth) if self.take("if") else None, line))
        return tuple(clauses)


def group(operands: list[Node], signs: list[str], line: int) -> Node:
    """The tree of operands with signs between them."""
    if not signs:
        return operands[0]
    if "and" in signs and "or" in signs:
        raise _unclear("and", "or", line)
    for sign in ("and", "or"):
        if sign in signs:
            parts = _split_at(operands, signs, (sign,), line)[0]
            return Operation("junction", (sign, parts), line)
    parts, between = _split_at(operands, signs, COMPARISONS, line)
    if len(between) > 1:
        raise FormatError(f"{between[0]!r} and {between[1]!r} follow each other (add parentheses)", line=line)
    if between:
        return Operation("comparison", (parts[0], between[0], parts[1]), line)
    terms, between = _split_at(operands, signs, ("+", "-"), line)
    return Operation("chain", (terms, between) if between else (tuple(operands), tuple(signs)), line)


def _split_at(
    operands: list[Node], signs: list[str], at: tuple[str, ...], line: int
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The trees between the signs in *at*, and these signs."""
    cuts = [i for i, sign in enumerate(signs) if sign in at]
    if not cuts:
        return tuple(operands[:1]), ()
    ends = zip([-1, *cuts], [*cuts, len(signs)], strict=True)
    parts = tuple(group(operands[a + 1 : b + 1], signs[a + 1 : b], line) for a, b in ends)
    return parts, tuple(signs[i] for i in cuts)


def _depth_error(line: int) -> FormatError:
    return FormatError(f"the JX is nested more than {DEEPEST} levels deep", line=line)


def _unclear(sign: str, other: str, line: int) -> FormatError:
    message = f"{sign!r} next to {other!r} is ambiguous (add parentheses)"
    return FormatError(message, line=line)
