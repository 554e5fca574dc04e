"""Fingerprints of Python functions: they reveal that a function was edited since its result was stored."""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType
from typing import Any

PLAIN = (str, bytes, int, float, complex, type(None), type(...))


def fingerprint(function: Callable[..., Any]) -> str:
    """A digest of a function's code, defaults and captured values, and of the functions among them.

    The functions that it calls by a global name are not part of it, and neither is the state of objects.

    >>> def add(step): return lambda x: x + step
    >>> fingerprint(add(1)) == fingerprint(add(1)), fingerprint(add(1)) == fingerprint(add(2))
    (True, False)
    """
    return sha256(repr(_content(function, ())).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function for people.

    >>> function_name(len), function_name(partial(int, base=2))
    ('len', 'int')
    """
    inner = function.func if isinstance(function, partial) else function
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


def _content(value: object, above: tuple[object, ...]) -> object:
    """What a value consists of, the same in every process; a function inside itself is named only."""
    if isinstance(value, PLAIN) or any(value is each for each in above):
        return type(value).__name__, repr(value) if isinstance(value, PLAIN) else ""
    return type(value).__qualname__, _parts(value, (*above, value))


def _parts(value: object, above: tuple[object, ...]) -> object:
    if isinstance(value, tuple | list):
        return [_content(part, above) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_content(part, above)) for part in value)
    if isinstance(value, Mapping):
        return [(_content(key, above), _content(part, above)) for key, part in value.items()]
    if isinstance(value, CodeType):
        return value.co_code.hex(), value.co_names, _content(value.co_consts, above)
    if isinstance(value, partial):
        return [_content(part, above) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, MethodType):
        return [_content(part, above) for part in (value.__func__, value.__self__)]
    if isinstance(value, FunctionType):
        captured = [_cell(cell) for cell in value.__closure__ or ()]
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, captured)
        return value.__qualname__, [_content(part, above) for part in parts]
    return getattr(value, "__qualname__", "")


def _cell(cell: Any) -> object:
    """The captured value; an empty cell belongs to a function that is still being defined."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
