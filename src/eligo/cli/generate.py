"""From the words after `eligo generate` to a call of the family's function."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.families import FAMILIES


def family_usages() -> Iterator[tuple[str, str]]:
    """Every family with its parameters and the first line of its definition."""
    for name, function in FAMILIES.items():
        summary = (function.__doc__ or "").partition("\n")[0]
        yield f"{name} {_usage(function)}".rstrip(), summary


def make(family: str, words: Sequence[str], seed: int) -> Dag:
    """The dag that the words ask for."""
    if family not in FAMILIES:
        raise InputError(f"there is no family named {family!r}").cured_by("family")
    function = FAMILIES[family]
    signature = inspect.signature(function)
    positional = [word for word in words if "=" not in word]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    if "seed" in signature.parameters:
        named.setdefault("seed", str(seed))
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        raise InputError(f"{family} takes {_usage(function)}: {error}") from None
    for name, value in bound.arguments.items():
        bound.arguments[name] = _converted(signature.parameters[name], value)
    return function(*bound.args, **bound.kwargs)


def _usage(function: Callable[..., Dag]) -> str:
    parameters = (p for p in inspect.signature(function).parameters.values() if p.name != "seed")
    return " ".join(_usage_of(p) for p in parameters)


def _usage_of(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"{parameter.name.upper()}..."
    return parameter.name.upper() if parameter.default is parameter.empty else f"[{parameter.name}={parameter.default}]"


def _converted(parameter: inspect.Parameter, value: Any) -> Any:
    kinds: dict[Any, Callable[[str], Any]] = {int: int, float: float}
    convert = kinds.get(parameter.annotation)
    if convert is None:
        return value
    try:
        return convert(value)
    except ValueError:
        raise InputError(f"{parameter.name} must be a number, got {value!r}") from None
