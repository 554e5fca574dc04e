"""The values of JX expressions, in a limited number of steps, without access to the file system and the network.

The value of a name is in the object "define" at the top, or in the arguments from outside, which take precedence. A name is
evaluated where it is used, so that a definition may use the variable of a `for`.

>>> load('{"define": {"N": 2}, "rules": [format("out.%d", i) for i in range(N)]}', {})
{'rules': ['out.0', 'out.1']}
>>> load('{"rules": [1 - 2 - 3]}', {})
Traceback (most recent call last):
eligo.errors.FormatError: line 1: '1 - 2 - 3' is -4 from left to right and 2 from right to left (add parentheses)

Arguments come from a file of names and values, or one by one:

>>> value_of("range(3)"), value_of("a b"), value_of('"5"')
([0, 1, 2], 'a b', '5')
"""

import json
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from math import isclose
from typing import Any

from eligo.errors import FormatError, InputError, shorten
from eligo.formats.jx import functions
from eligo.formats.jx.expressions import Clause, Item, Node, Operation, Pair, parse_tree
from eligo.formats.jx.functions import compare, compute, kind, literal_text
from eligo.formats.shared import files

#: The maximum depth of expressions and the names in them
DEEPEST = 96
#: The number of steps that every text may take; a longer text may take more
FEWEST_STEPS = 2**21

Scope = MutableMapping[str, Any]


class Object(dict[str, Any]):
    """An object, and the line where it begins."""

    line = 0


def load(text: str, arguments: Mapping[str, Any], used: set[str] | None = None) -> object:
    """The value of a JX text, with the names in "define" and the arguments; the names in it are added to *used*."""
    tree = parse_tree(text)
    definitions: dict[str, Any] = {}
    if _is_object(tree):
        pairs, line = tree.parts
        definitions = {key: value for pair in pairs if pair.key == "define" for key, value in _definitions(pair)}
        tree = tree._replace(parts=([pair for pair in pairs if pair.key != "define"], line))
    evaluation = Evaluation(FEWEST_STEPS + 8 * len(text), set() if used is None else used)
    return evaluation.value(tree, ChainMap({}, _plain(arguments), definitions))


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as JSON values."""
    try:
        return {str(name): json.loads(json.dumps(value, allow_nan=False)) for name, value in arguments.items()}
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"an argument is not a JSON value: {error}") from None


def _is_object(node: Node) -> bool:
    return isinstance(node, Operation) and node.method == "make_object"


def _definitions(define: Pair) -> Iterator[tuple[str, Node]]:
    if not _is_object(define.value):
        raise FormatError('"define" must be an object of names and values', line=define.line)
    for key, value, clauses, line in define.value.parts[0]:
        if not isinstance(key, str) or clauses:
            raise FormatError('a name in "define" must be a plain string', line=line)
        yield key, value


class Evaluation:
    """Evaluates trees, and counts steps."""

    def __init__(self, steps: int, used: set[str]) -> None:
        self.steps, self.depth = steps, 0
        #: the names whose values were used
        self.used = used

    def value(self, node: Node, scope: Scope) -> Any:
        """The value of an expression."""
        if not isinstance(node, Operation):
            return node  # a literal, or evaluated already
        self.steps -= 1
        self.depth += 1
        if self.depth > DEEPEST:
            message = f"expressions are nested more than {DEEPEST} levels deep, or a name refers to itself"
            raise FormatError(message, line=node.line)
        try:
            result = getattr(self, node.method)(scope, *node.parts)
            self.spend(result)
            return result
        except InputError as error:
            raise error.at(node.line) from None
        finally:
            self.depth -= 1

    def spend(self, value: object) -> None:
        """Count the size of a new value; raises if there are too many steps."""
        if isinstance(value, str):
            self.steps -= len(value) >> 4
        elif isinstance(value, list):
            self.steps -= len(value) >> 2
        if self.steps < 0:
            raise FormatError("the expressions take too many steps, or produce too much")

    def symbol(self, scope: Scope, name: str) -> Any:
        """The value of a name in this scope."""
        if name not in scope:
            raise FormatError(f"{shorten(name)!r} is not defined").cured_by("arguments")
        self.used.add(name)
        return self.value(scope[name], scope)

    def unary(self, scope: Scope, sign: str, operand: Node) -> Any:
        """The value of an operand with a sign before it."""
        value = self.value(operand, scope)
        if sign == "not":
            return not self.truth(value, "'not'")
        if type(value) not in {int, float}:
            raise FormatError(f"{sign!r} cannot be applied to {kind(value)}")
        return compute(0, sign, value)

    def chain(self, scope: Scope, operands: Sequence[Node], signs: Sequence[str]) -> Any:
        """The result of arithmetic or concatenation, if evaluation from left to right and from right to left agree."""
        values = [self.value(operand, scope) for operand in operands]
        if len(values) == 2:
            return compute(values[0], signs[0], values[1])
        if all(isinstance(value, str) for value in values) and set(signs) == {"+"}:
            return "".join(values)
        backward = values[-1]
        for value, sign in zip(values[-2::-1], reversed(signs), strict=True):
            backward = compute(value, sign, backward)
            self.spend(backward)
        forward = self.forward(values, signs)
        if forward == backward and type(forward) is type(backward):
            return backward
        if type(forward) is type(backward) is float and isclose(forward, backward):
            return backward
        words = [
            literal_text(values[0]),
            *(f"{sign} {literal_text(v)}" for sign, v in zip(signs, values[1:], strict=True)),
        ]
        raise FormatError(
            f"{shorten(' '.join(words))!r} is {shorten(literal_text(forward))} from left to right and"
            f" {shorten(literal_text(backward))} from right to left (add parentheses)"
        )

    def forward(self, values: list[Any], signs: Sequence[str]) -> Any:
        """The value of a chain from left to right; None if that is not possible."""
        result = values[0]
        try:
            for sign, value in zip(signs, values[1:], strict=True):
                result = compute(result, sign, value)
                self.spend(result)
        except FormatError:
            return None
        return result

    def comparison(self, scope: Scope, left: Node, sign: str, right: Node) -> bool:
        """Whether a comparison is true."""
        return compare(self.value(left, scope), sign, self.value(right, scope))

    def junction(self, scope: Scope, sign: str, operands: Sequence[Node]) -> bool:
        """Whether all ("and") or any ("or") values are true; evaluates no more operands than necessary."""
        test = all if sign == "and" else any
        return test(self.truth(self.value(operand, scope), repr(sign)) for operand in operands)

    def truth(self, value: object, what: str) -> bool:
        """The value; raises if it is not a boolean."""
        if not isinstance(value, bool):
            raise FormatError(f"{what} needs booleans, got {kind(value)}")
        return value

    def lookup(self, scope: Scope, base: Node, place: Node) -> Any:
        """An item of a list or an object."""
        base, place = self.value(base, scope), self.value(place, scope)
        if isinstance(base, dict) and isinstance(place, str):
            if place not in base:
                raise FormatError(f"the object has no key {shorten(place)!r}")
            return base[place]
        if isinstance(base, list) and type(place) is int:
            if not -len(base) <= place < len(base):
                raise FormatError(f"index {place} is out of range in a list of {len(base):,}")
            return base[place]
        raise FormatError(f"cannot index {kind(base)} with {kind(place)}")

    def slice(self, scope: Scope, base: Node, start: Node, stop: Node) -> list[Any]:
        """A part of a list."""
        items = self.value(base, scope)
        first, end = (self.value(place, scope) for place in (start, stop))
        if not isinstance(items, list):
            raise FormatError(f"only a list can be sliced, got {kind(items)}")
        for bound, place in ((start, first), (stop, end)):
            if bound is not None and type(place) is not int:
                raise FormatError(f"the bounds of a slice must be integers, got {kind(place)}")
        return items[first:end]

    def items(self, scope: Scope, items: Sequence[Item]) -> list[Any]:
        """The values of items, each once for every scope of its clauses."""
        return [self.value(item.value, inner) for item in items for inner in self.scopes(item.clauses, scope)]

    def make_object(self, scope: Scope, pairs: Sequence[Pair], line: int) -> Object:
        """An object with its keys and values evaluated."""
        row = Object()
        row.line = line
        for pair in pairs:
            for inner in self.scopes(pair.clauses, scope):
                key = self.value(pair.key, inner)
                if not isinstance(key, str) or key in row:
                    twice = f"the key {shorten(str(key))!r} appears twice in one object"
                    raise FormatError(twice if isinstance(key, str) else "a key must be a string", line=pair.line)
                row[key] = self.value(pair.value, inner)
        return row

    def scopes(self, clauses: tuple[Clause, ...], scope: Scope) -> Iterator[Scope]:
        """The scopes of nested `for` clauses."""
        if not clauses:
            yield scope
            return
        clause, *rest = clauses
        elements = self.value(clause.elements, scope)
        if not isinstance(elements, list):
            raise FormatError(f"'for' needs a list, got {kind(elements)}", line=clause.line)
        for element in elements:
            self.steps -= 1
            self.spend(None)
            inner = ChainMap({clause.variable: element}, *_maps(scope))
            if clause.condition is None or self.truth(self.value(clause.condition, inner), "'if'"):
                yield from self.scopes(tuple(rest), inner)

    def call(self, scope: Scope, name: str, items: Sequence[Item]) -> Any:
        """The result of a function."""
        if name in {"select", "where", "project"}:
            return self.query(scope, name, items)
        if name not in functions.FUNCTIONS:
            raise FormatError(functions.unknown(name))
        arguments = self.items(scope, items)
        if name == "template":
            arguments = functions.template_values(arguments, lambda word: self.symbol(scope, word))
        self.steps -= functions.cost(name, arguments)
        self.spend(None)
        return functions.call(name, arguments)

    def query(self, scope: Scope, name: str, items: Sequence[Item]) -> list[Any]:
        """The objects of a list for which an expression is true, or its values for all objects if *name* is "project"."""
        if len(items) != 2 or any(item.clauses for item in items):
            raise FormatError(f"{name}() takes a list of objects and an expression")
        rows = self.value(items[0].value, scope)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise FormatError(f"{name}() takes a list of objects and an expression")
        values = [(row, self.value(items[1].value, ChainMap(row, *_maps(scope)))) for row in rows]
        if name == "project":
            return [value for _, value in values]
        return [row for row, value in values if self.truth(value, f"{name}()")]


def _maps(scope: Scope) -> list[MutableMapping[str, Any]]:
    return scope.maps if isinstance(scope, ChainMap) else [scope]


# Arguments


def read_arguments(path: str) -> dict[str, Any]:
    """The names and values in a file: one JX object."""
    text = files.load(path)
    try:
        arguments = load(text, {})
    except FormatError as error:
        raise error.located(files.display_path(path)) from None
    if not isinstance(arguments, dict):
        message = f"must be one object of names and values, got {kind(arguments)}"
        raise FormatError(message, files.display_path(path))
    return arguments


def value_of(text: str) -> Any:
    """The value of a JX expression; a text that is not an expression is a string."""
    try:
        return load(text, {})
    except FormatError:
        return text
