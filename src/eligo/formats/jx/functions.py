"""The functions of JX, except those that read files or the network, which are refused.

>>> call("format", ["%s.%d", "out", 3]), call("join", [["a", "b"]]), call("basename", ["/tmp/a.txt", ".txt"])
('out.3', 'a b', 'a')

Integers have 64 bits, division rounds towards zero, and numbers can be appended to strings.

>>> compute(-7, "/", 2), compute(-7, "%", 2), compute("a", "+", 1.5), compute([1], "+", [2])
(-3, -1, 'a1.5', [1, 2])

The patterns of like() are POSIX extended regular expressions that can be searched in reasonable time.

>>> like("apple", "pp.*e"), like("apple", "^pp")
(True, False)
"""

import operator
import re
from collections.abc import Callable, Sequence
from math import ceil, floor, inf, isfinite, trunc
from typing import Any

from eligo.errors import FormatError, shorten

# Arithmetic

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_KINDS: dict[type, str] = {
    bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", type(None): "null",
}  # fmt: skip


def kind(value: object) -> str:
    """The type of a value, in words."""
    return _KINDS.get(type(value), "an object")


def is_number(value: object) -> bool:
    """Whether a value is a number, and not a boolean."""
    return type(value) is int or type(value) is float


def literal_text(value: object) -> str:
    """The text of a literal; a string has no quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.16g}"
    return "null" if value is None else str(value)


def compute(left: Any, sign: str, right: Any) -> Any:
    """The result of + - * / or % between two values."""
    if is_number(left) and is_number(right):
        return _number(left, sign, right)
    if sign == "+" and type(left) is type(right) is list:
        return left + right
    if sign == "+" and isinstance(left, str) and isinstance(right, str | int | float):
        return left + literal_text(right)
    if sign == "+" and isinstance(right, str) and isinstance(left, str | int | float):
        return literal_text(left) + right
    raise FormatError(f"{sign!r} cannot be applied to {kind(left)} and {kind(right)}")


def _number(left: float, sign: str, right: float) -> float:
    integers = type(left) is type(right) is int
    if sign in "/%" and (right == 0 or (sign == "%" and trunc(right) == 0)):
        raise FormatError("division by zero")
    try:
        result = _sum(left, sign, right) if sign in "+-*" else _quotient(left, sign, right, integers)
    except OverflowError:
        result = inf
    if not isfinite(result) or (integers and not -(2**63) <= result < 2**63):
        raise FormatError(f"number too large: {literal_text(left)} {sign} {literal_text(right)}")
    return result if integers else float(result)


def _sum(left: float, sign: str, right: float) -> float:
    return left + right if sign == "+" else left - right if sign == "-" else left * right


def _quotient(left: float, sign: str, right: float, integers: bool) -> float:
    if sign == "/" and not integers:
        return left / right
    first, second = trunc(left), trunc(right)
    quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
    return quotient if sign == "/" else first - quotient * second


def compare(left: Any, sign: str, right: Any) -> bool:
    """The result of == != < <= > or >= between two values."""
    numbers = is_number(left) and is_number(right)
    if sign in {"==", "!="}:
        if isinstance(left, dict) and isinstance(right, dict):
            raise FormatError("objects cannot be compared")
        alike = left == right if numbers else type(left) is type(right) and repr(left) == repr(right)
        return alike == (sign == "==")
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        raise FormatError(f"{sign!r} cannot compare {kind(left)} with {kind(right)}")
    return _ORDER[sign](left, right)


# Patterns

_PART = re.compile(
    r"(?P<many>[*+?]|\{\d{1,3}(?:,\d{0,3})?\})|(?P<open>\()|(?P<close>\))|(?P<either>\|)|(?P<end>\$)"
    r"|\\(?P<escaped>[^A-Za-z0-9])|\[(?P<not>\^?)(?P<class>\]?[^\]\[]*+)\]|(?P<plain>[^\\\[])",
    re.DOTALL,
)


def pattern_cost(text: str, pattern: str) -> int:
    """The maximum number of steps to search a pattern, which every choice in it multiplies."""
    choices = sum(part.lastgroup in {"many", "either"} for part in _PART.finditer(pattern))
    return 2**62 if choices > 60 else max(2, len(text)) ** (choices + 1) >> 4


def like(text: str, pattern: str) -> bool:
    """Whether the pattern occurs in the text."""
    try:
        return re.search(_translate(pattern), text, re.DOTALL) is not None
    except (re.error, OverflowError):
        raise _refused_pattern(pattern) from None


def _translate(pattern: str) -> str:
    parts: list[str] = []
    end, before = 0, ""
    for part in _PART.finditer(pattern):
        group = str(part.lastgroup)
        if part.start() != end or (group == "many" and before in {"", "open", "close", "either", "many"}):
            break
        end, before = part.end(), group
        if group == "class":
            inside = re.sub(r"[\\&~|\[]", r"\\\g<0>", part["class"])
            parts.append(f"[{part['not']}{inside}]")
        elif group == "escaped":
            parts.append(re.escape(part["escaped"]))
        else:
            parts.append(r"\Z" if group == "end" else "(?:" if group == "open" else part[0])
    if end != len(pattern):
        raise _refused_pattern(pattern)
    return "".join(parts)


def _refused_pattern(pattern: str) -> FormatError:
    return FormatError(f"like() does not support the pattern {shorten(pattern)!r}")


# Functions

_OUTSIDE = {"listdir": "folders", "fetch": "other files"}
_FIELD = re.compile(r"\{\{|\}\}|\{\s*([A-Za-z_][A-Za-z_0-9]*)\s*\}|([{}])")
_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "float", str: "string", list: "array"}

Values = list[Any]


def unknown(name: str) -> str:
    """The message for an unknown function."""
    if name in _OUTSIDE:
        return f"{name}() reads {_OUTSIDE[name]}, which eligo does not (evaluate the file with `jx2json` first)"
    return f"unknown function {shorten(name)!r}"


def call(name: str, values: Values) -> Any:
    """The result of a function for these values."""
    if name == "format":
        return _format(values)
    function, usages = FUNCTIONS[name]
    if not any(_fit(values, types) for types in usages):
        usage = " or ".join(f"{name}({', '.join(map(_kind_name, types))})" for types in usages if types)
        raise FormatError(f"wrong arguments: got {name}({', '.join(map(kind, values))}), expected {usage}")
    return function(*values)


def cost(name: str, values: Values) -> int:
    """The number of steps of a call, in addition to those for the size of its result."""
    if name == "range" and all(type(value) is int for value in values):
        return len(range(*values)) if 0 < len(values) < 4 and values[2:] != [0] else 0
    if name == "like" and len(values) == 2 and all(isinstance(value, str) for value in values):
        return pattern_cost(values[0], values[1])
    return 0


def _fit(values: Sequence[Any], types: Sequence[type]) -> bool:
    actual = [dict if isinstance(value, dict) else type(value) for value in values]
    return actual == list(types)


def _kind_name(type_: type) -> str:
    return kind({} if type_ is dict else type_())


def _range(*bounds: int) -> list[int]:
    if bounds[2:] == (0,):
        raise FormatError("the step of range() must not be 0")
    return list(range(*bounds))


def _format(values: Values) -> str:
    """The text with the values in place of %d, %s and other fields."""
    text, *rest = values or [None]
    if not isinstance(text, str):
        raise FormatError(f"the first argument of format() must be a string, got {kind(text)}")
    rest.reverse()
    parts = [part if part[0] != "%" else _field(part, rest) for part in re.findall(r"%.?|[^%]+", text, re.DOTALL)]
    if rest:
        raise FormatError("format() got more values than its string has fields")
    return "".join(parts)


def _field(spec: str, rest: Values) -> str:
    if spec == "%%":
        return "%"
    type_ = {"d": int, "i": int, "s": str}.get(spec[1:]) or (float if spec[1:] in tuple("eEfFgG") else None)
    if type_ is None:
        raise FormatError(f"format() supports %d %i %s %e %f %g, got {spec!r}")
    value = rest.pop() if rest else None
    if type(value) is not type_:
        raise FormatError(f"format() got {kind(value) if value is not None else 'nothing'} for {spec!r}")
    return spec % value


def template_values(values: Values, lookup: Callable[[str], Any]) -> Values:
    """The arguments of template(), with values for the names in its text."""
    if not values or not isinstance(values[0], str) or len(values) > 2 or not isinstance(values[-1], str | dict):
        actual = ", ".join(map(kind, values)) or "nothing"
        raise FormatError(f"template() takes a string and optionally an object, got {actual}")
    own = values[1] if len(values) == 2 else {}
    names = {match[1] for match in _FIELD.finditer(values[0]) if match[1]}
    return [values[0], {name: own[name] if name in own else lookup(name) for name in sorted(names)}]


def _template(text: str, values: dict[str, Any]) -> str:
    def fill(match: re.Match[str]) -> str:
        if match[2]:
            raise FormatError(f"template() has an unmatched {match[2]!r} (a field is one name in braces)")
        if not match[1]:
            return match[0][0]
        value = values[match[1]]
        if not is_number(value) and not isinstance(value, str):
            raise FormatError(f"template() takes numbers and strings, but {match[1]!r} is {kind(value)}")
        return literal_text(value)

    return _FIELD.sub(fill, text)


def _join(words: list[Any], between: str = " ") -> str:
    if not all(isinstance(word, str) for word in words):
        raise FormatError("join() takes a list of strings")
    return between.join(words)


def _basename(path: str, suffix: str = "") -> str:
    last = path.rstrip("/").rpartition("/")[2] or ("/" if path else ".")
    return last.removesuffix(suffix)


def _dirname(path: str) -> str:
    parent = path.rstrip("/").rpartition("/")
    return parent[0].rstrip("/") or ("/" if path.startswith("/") else ".")


def _escape(text: str) -> str:
    return '"' + re.sub(r'["\\$`]', r"\\\g<0>", text) + '"'


def _schema(rows: list[Any]) -> dict[str, str]:
    if not all(isinstance(row, dict) for row in rows):
        raise FormatError("schema() takes a list of objects")
    schema: dict[str, str] = {}
    for row in rows:
        for key, value in row.items():
            schema.setdefault(key, _TYPES.get(type(value), "object"))
    return dict(reversed(schema.items()))


#: The functions, with the types of their possible arguments; objects are listed from their last key to the first.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[Sequence[type]]]] = {
    "format": (_format, ()),
    "range": (_range, ((int,), (int, int), (int, int, int))), "template": (_template, ((str, dict),)),
    "join": (_join, ((list,), (list, str))), "len": (len, ((list,),)),
    "ceil": (lambda x: x if type(x) is int else float(ceil(x)), ((int,), (float,))),
    "floor": (lambda x: x if type(x) is int else float(floor(x)), ((int,), (float,))),
    "basename": (_basename, ((str,), (str, str))), "dirname": (_dirname, ((str,),)), "escape": (_escape, ((str,),)),
    "schema": (_schema, ((list,),)), "like": (like, ((str, str),)),
    "keys": (lambda row: list(reversed(row)), ((dict,),)),
    "values": (lambda row: list(reversed(row.values())), ((dict,),)),
    "items": (lambda row: [[key, value] for key, value in reversed(row.items())], ((dict,),)),
}  # fmt: skip
