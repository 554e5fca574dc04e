"""Fingerprints of Python functions: they reveal that a function was edited since its result was stored."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType
from typing import Any

from eligo.errors import InputError

PLAIN = (str, int, float, complex, type(None), type(...))


def fingerprint(function: Callable[..., Any]) -> str:
    """A digest of a function's code and defaults, of the values it captured, and of what it uses of its own module.

    Of its module, these are other functions and plain values that it uses by name. Other modules are not part of it.

    >>> def add(step): return lambda x: x + step
    >>> fingerprint(add(1)) == fingerprint(add(1)), fingerprint(add(1)) == fingerprint(add(2))
    (True, False)
    """
    try:
        return _Digests().of(function)[:16]
    except RecursionError:
        cure = "let a task return it, so that it is not part of the function"
        raise InputError(
            f"function {function_name(function)!r} captures a value that is nested too deeply: {cure}"
        ) from None


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function for people.

    >>> function_name(len), function_name(partial(int, base=2))
    ('len', 'int')
    """
    inner = function.func if isinstance(function, partial) else function
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


class _Digests:
    """The digests of values, the same in every process; where a value contains itself, the inner occurrence is left out."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[object, str]
        ] = {}  # by identity, with the value, so that no other gets its identity

    def of(self, value: object) -> str:
        """The digest of a value."""
        if id(value) not in self._known:
            self._known[id(value)] = value, ""
            self._known[id(value)] = value, self._computed(value)
        return self._known[id(value)][1]

    def _computed(self, value: object) -> str:
        if isinstance(value, bytes):
            return sha256(value).hexdigest()
        if isinstance(value, PLAIN):
            content: object = value
        else:
            digests = [self.of(part) for part in _parts(value)]
            content = sorted(digests) if isinstance(value, set | frozenset) else digests
        return sha256(repr((type(value).__qualname__, content)).encode("utf-8", "backslashreplace")).hexdigest()


def _parts(value: object) -> Iterator[object]:
    """What a value consists of; for an object, what pickle would store, or nothing if it cannot be pickled."""
    if isinstance(value, tuple | list | set | frozenset):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, CodeType):
        yield from (value.co_code, value.co_exceptiontable, value.co_names, value.co_consts)
    elif isinstance(value, FunctionType):
        yield from (value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__)
        yield from (_cell(cell) for cell in value.__closure__ or ())
        yield from _globals(value)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, type):
        yield value.__qualname__
    else:
        yield getattr(type(value), "__call__", None)  # noqa: B004 - its code
        with suppress(Exception):  # what cannot be pickled raises anything
            yield from _reduced(value.__reduce_ex__(4))


def _reduced(state: Any) -> Iterator[object]:
    """The parts of an object, by the protocol of pickle: a name, or a tuple that ends with iterators over contents."""
    if isinstance(state, str):
        yield state
    else:
        yield from state[:3]
        yield from (list(contents or ()) for contents in state[3:5])


def _globals(function: FunctionType) -> Iterator[object]:
    """What a function uses of its own module: functions, and plain values."""
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, PLAIN) or (isinstance(value, FunctionType) and value.__module__ == function.__module__):
            yield name, value


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function uses, also in functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _cell(cell: Any) -> object:
    """The captured value; an empty cell belongs to a function that is still being defined."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
