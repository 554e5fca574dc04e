"""Arithmetic and comparisons of JX: whole numbers of 64 bits, division towards zero, and strings that take in numbers.

>>> computed(-7, "/", 2), computed(-7, "%", 2), computed("a", "+", 1.5), computed([1], "+", [2])
(-3, -1, 'a1.5', [1, 2])
"""

import operator
from collections.abc import Callable
from math import inf, isfinite, trunc
from typing import Any

from eligo.errors import FormatError

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KINDS: dict[type, str] = {
    bool: "a truth value",
    int: "a whole number",
    float: "a number with a fraction",
    str: "a string",
    list: "a list",
    type(None): "null",
}


def kind(value: object) -> str:
    """What a value is, in words."""
    return _KINDS.get(type(value), "an object")


def is_number(value: object) -> bool:
    """Whether a value is a number, which truth values are not."""
    return type(value) is int or type(value) is float


def shown(value: object) -> str:
    """A literal as text, a string without its quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.16g}"
    return "null" if value is None else str(value)


def computed(left: Any, sign: str, right: Any) -> Any:
    """The value of two values with + - * / or % between them."""
    if is_number(left) and is_number(right):
        return _number(left, sign, right)
    if sign == "+" and type(left) is type(right) is list:
        return left + right
    if sign == "+" and isinstance(left, str) and isinstance(right, str | int | float):
        return left + shown(right)
    if sign == "+" and isinstance(right, str) and isinstance(left, str | int | float):
        return shown(left) + right
    raise FormatError(f"{sign!r} stands between {kind(left)} and {kind(right)}")


def _number(left: float, sign: str, right: float) -> float:
    whole = type(left) is type(right) is int
    if sign in "/%" and (right == 0 or (sign == "%" and trunc(right) == 0)):
        raise FormatError("a number is divided by zero")
    try:
        found = _sum(left, sign, right) if sign in "+-*" else _quotient(left, sign, right, whole)
    except OverflowError:
        found = inf
    if not isfinite(found) or (whole and not -(2**63) <= found < 2**63):
        raise FormatError(f"{shown(left)} {sign} {shown(right)} is too large a number")
    return found if whole else float(found)


def _sum(left: float, sign: str, right: float) -> float:
    return left + right if sign == "+" else left - right if sign == "-" else left * right


def _quotient(left: float, sign: str, right: float, whole: bool) -> float:
    if sign == "/" and not whole:
        return left / right
    first, second = trunc(left), trunc(right)
    quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
    return quotient if sign == "/" else first - quotient * second


def compared(left: Any, sign: str, right: Any) -> bool:
    """Whether two values are as == != < <= > or >= between them says."""
    numbers = is_number(left) and is_number(right)
    if sign in {"==", "!="}:
        if isinstance(left, dict) and isinstance(right, dict):
            raise FormatError("objects cannot be compared")
        alike = left == right if numbers else type(left) is type(right) and repr(left) == repr(right)
        return alike == (sign == "==")
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        raise FormatError(f"{sign!r} compares numbers or strings, not {kind(left)} with {kind(right)}")
    return _ORDER[sign](left, right)
