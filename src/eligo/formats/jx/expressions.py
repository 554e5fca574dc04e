"""JX expressions as trees: literals stand for themselves, everything else is a node that knows its line.

Makeflow's manual and its program disagree about what comes first where parentheses are missing: the one has `and` before
`or`, `not` after comparisons, and goes from left to right; the other the other way round. What would depend on it is refused:
here where the signs tell, and in `evaluating` where the values do.

>>> parsed('a + 1')
Arithmetic(operands=(Symbol(name='a', line=1), 1), signs=('+',), line=1)
>>> parsed("a or b and c")
Traceback (most recent call last):
eligo.errors.FormatError: line 1: 'and' stands beside 'or': which comes first is not agreed upon, so put parentheses
"""

from typing import Any, NamedTuple

from eligo.errors import FormatError
from eligo.formats.jx.text import Scanner

#: How deep lists, objects and parentheses may nest
DEEPEST = 64

#: Any node below, or a literal
Node = Any

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")


class Symbol(NamedTuple):
    """A name that stands for a value."""

    name: str
    line: int


class Unary(NamedTuple):
    """A sign before a value."""

    sign: str
    operand: Node
    line: int


class Arithmetic(NamedTuple):
    """Values with signs of arithmetic between them, all + and - or all *, / and %."""

    operands: tuple[Node, ...]
    signs: tuple[str, ...]
    line: int


class Comparison(NamedTuple):
    """Two values with a sign between them."""

    left: Node
    sign: str
    right: Node
    line: int


class Junction(NamedTuple):
    """Truth values with `and`, or with `or`, between them."""

    sign: str
    operands: tuple[Node, ...]
    line: int


class Lookup(NamedTuple):
    """The item of a list, or of an object, at a place."""

    base: Node
    place: Node
    line: int


class Slice(NamedTuple):
    """The items of a list from a place up to another one; None is an end of the list."""

    base: Node
    start: Node
    stop: Node
    line: int


class Clause(NamedTuple):
    """`for VARIABLE in ELEMENTS if CONDITION`; a condition of None is left out."""

    variable: str
    elements: Node
    condition: Node
    line: int


class Item(NamedTuple):
    """An item of a list, made once for every combination of what its clauses go through."""

    value: Node
    clauses: tuple[Clause, ...]


class Pair(NamedTuple):
    """A key of an object and its value, likewise."""

    key: Node
    value: Node
    clauses: tuple[Clause, ...]
    line: int


class Items(NamedTuple):
    """A list."""

    items: tuple[Item, ...]
    line: int


class Pairs(NamedTuple):
    """An object."""

    pairs: tuple[Pair, ...]
    line: int


class Call(NamedTuple):
    """A function and what it is given."""

    function: str
    items: tuple[Item, ...]
    line: int


def parsed(text: str) -> Node:
    """The tree of a JX text."""
    reader = _TreeReader(text)
    tree = reader.expression(1)
    if not reader.at_end():
        raise reader.refused()
    return tree


class _TreeReader(Scanner):
    """Reads trees from a place in the text."""

    def expression(self, depth: int) -> Node:
        """The next expression."""
        if depth > DEEPEST:
            raise FormatError("the JX is nested too deeply", line=self.line)
        self.skip()
        line = self.line
        operands, signs = [self.operand(depth)], []
        while sign := self.sign():
            if sign == "not":
                raise self.refused()
            if isinstance(operands[-1], _Not) and sign not in {"and", "or"}:
                raise _unclear("not", sign, self.line)
            signs.append(sign)
            operands.append(self.operand(depth))
        return grouped([Unary(*node) if isinstance(node, _Not) else node for node in operands], signs, line)

    def operand(self, depth: int) -> Node:
        """A value with the signs before it and what is asked of it after it."""
        self.skip()
        line, before = self.line, []
        while sign := self.sign():
            if sign not in {"-", "+", "not"}:
                raise FormatError(f"{sign!r} is out of place", line=self.line)
            before.append(sign)
        value = self.followed(self.atom(depth), depth)
        for sign in reversed(before):
            if sign != "not" and type(value) in {int, float}:
                value = -value if sign == "-" else value
            else:
                value = Unary(sign, value, line)
        return _Not(*value) if before[:1] == ["not"] else value

    def atom(self, depth: int) -> Node:
        """A literal, a list, an object, a name, a call, or an expression in parentheses."""
        self.skip()
        line = self.line
        if self.found("{"):
            return Pairs(tuple(self.pairs(depth + 1)), line)
        if self.found("["):
            return Items(tuple(self.items("]", depth + 1)), line)
        if self.found("("):
            inner = self.expression(depth + 1)
            self.need(")")
            return inner
        name = self.name()
        if name is None:
            return self.literal()
        return Call(name, tuple(self.items(")", depth + 1)), line) if self.found("(") else Symbol(name, line)

    def followed(self, base: Node, depth: int) -> Node:
        """The value with any [PLACE] and .function() after it."""
        for step in range(1, DEEPEST):
            if self.found("["):
                base = self.looked_up(base, depth + step)
            elif self.found("."):
                name, line = self.name(), self.line
                if name is None:
                    raise self.refused()
                self.need("(")
                base = Call(name, (Item(base, ()), *self.items(")", depth + step)), line)
            else:
                return base
        raise FormatError("the JX is nested too deeply", line=self.line)

    def looked_up(self, base: Node, depth: int) -> Node:
        """The lookup or slice that has just begun."""
        line = self.line
        start = None if self.found(":") else self.expression(depth)
        if start is not None and self.found("]"):
            return Lookup(base, start, line)
        if start is not None:
            self.need(":")
        if self.found("]"):
            return Slice(base, start, None, line)
        stop = self.expression(depth)
        self.need("]")
        return Slice(base, start, stop, line)

    def items(self, end: str, depth: int) -> list[Item]:
        """The items of a list, or of what a function is given, that has just begun."""
        items = []
        while not self.found(end):
            items.append(Item(self.expression(depth), self.clauses(depth)))
            self.next(end)
        return items

    def pairs(self, depth: int) -> list[Pair]:
        """The keys and values of an object that has just begun."""
        pairs = []
        while not self.found("}"):
            line, key = self.line, self.expression(depth)
            self.need(":")
            value = self.expression(depth)
            pairs.append(Pair(key, value, self.clauses(depth), line))
            self.next("}")
        return pairs

    def next(self, end: str) -> None:
        """Pass over the comma after an item; none is needed after the last."""
        if not self.found(",") and not self.text.startswith(end, self.where):
            raise self.refused()

    def clauses(self, depth: int) -> tuple[Clause, ...]:
        """What an item is made for, again and again."""
        clauses: list[Clause] = []
        while self.found("for"):
            line, variable = self.line, self.name()
            if variable is None or not self.found("in"):
                raise FormatError("'for' is followed by a name, 'in' and a list", line=line)
            if depth + len(clauses) > DEEPEST:
                raise FormatError("the JX is nested too deeply", line=line)
            elements = self.expression(depth)
            clauses.append(Clause(variable, elements, self.expression(depth) if self.found("if") else None, line))
        return tuple(clauses)


class _Not(NamedTuple):
    """A `not` that no parentheses enclose; a `Unary` once it is clear what it stands before."""

    sign: str
    operand: Node
    line: int


def grouped(operands: list[Node], signs: list[str], line: int) -> Node:
    """The tree of values and the signs between them."""
    if not signs:
        return operands[0]
    if "and" in signs and "or" in signs:
        raise _unclear("and", "or", line)
    for sign in ("and", "or"):
        if sign in signs:
            parts = _split(operands, signs, (sign,), line)[0]
            return Junction(sign, parts, line)
    parts, between = _split(operands, signs, COMPARISONS, line)
    if len(between) > 1:
        raise FormatError(f"{between[0]!r} and {between[1]!r} follow each other: put parentheses", line=line)
    if between:
        return Comparison(parts[0], between[0], parts[1], line)
    terms, between = _split(operands, signs, ("+", "-"), line)
    return Arithmetic(terms, between, line) if between else Arithmetic(tuple(operands), tuple(signs), line)


def _split(
    operands: list[Node], signs: list[str], at: tuple[str, ...], line: int
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The trees between these signs, and the signs."""
    cuts = [i for i, sign in enumerate(signs) if sign in at]
    if not cuts:
        return tuple(operands[:1]), ()
    ends = zip([-1, *cuts], [*cuts, len(signs)], strict=True)
    parts = tuple(grouped(operands[a + 1 : b + 1], signs[a + 1 : b], line) for a, b in ends)
    return parts, tuple(signs[i] for i in cuts)


def _unclear(sign: str, other: str, line: int) -> FormatError:
    message = f"{sign!r} stands beside {other!r}: which comes first is not agreed upon, so put parentheses"
    return FormatError(message, line=line)
