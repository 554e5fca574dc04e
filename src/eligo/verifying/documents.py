"""What a plan's document is made of: the kind of every key, those with a question mark where they are there.

A list has entries of one kind, or as many kinds as entries; a tuple names kinds of which one will do.

How the checker says no.
"""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from eligo.errors import InputError, shorten


class Refuted(Exception):  # noqa: N818 - an answer, not an error
    """Why a proof does not hold."""


def require(condition: bool | np.bool_, reason: str, error: type[Exception] = Refuted) -> None:
    """Go on only where the condition holds."""
    if not condition:
        raise error(reason)


PLAN: dict[str, Any] = {
    "order": [str], "profile": [int], "verdict": str, "method": str, "upper_bound": [int], "area": int, "area_bound": int,
    "proof": {"rule": str, "order?": [str]}, "fingerprint": str, "tasks": int, "arcs": int, "shortcuts": int, "blocks": int,
    "seconds": float, "cut_short?": bool, "schema?": int, "average?": float, "average_first_come?": float, "gain?": float,
    "orders?": [{"name": str, "order": [str], "average": float, "share": float, "polls?": [float], "rounds?": [float],
                 "polls_without_seconds?": [float], "rounds_without_seconds?": [float], "makespan?": float}],
    "used?": str, "workers?": (int, str), "makespan?": (float, NoneType), "bound?": (float, NoneType),
    "certificate?": (dict, NoneType), "seconds_from?": (str, NoneType),
    "known?": dict,
}  # fmt: skip
SHARES = {"modules": [{"tasks": [str], "renders": [str], "p": int, "q": int}], "flow": [[str, str, int]]}
PROBE = {"task": str, "executed": SHARES, "waiting": SHARES}
ELIMINATION: dict[str, Any] = {
    "order": [str], "executed_first?": [str], "alike": [{"tasks": [str], "swaps": [[[str, str]]]}],
}  # fmt: skip
PIECES: list[Any] = [{"rule": str, "order": [str]}]
RULES: dict[str, dict[str, Any]] = {
    "chain": {"segments?": [{"rule": str, "first": int, "last": int}]},
    "units": {"units": [int]}, "exact": {"conflict?": [int]},
    "sum": {"parts": [{"rule": str, "order": [str]}], "modules?": {"rule": str}},
    "bound": {"probes?": [PROBE], "area?": int, "pieces?": PIECES},
    "elimination": {
        "elimination": ELIMINATION, "refuted?": bool, "area?": int, "swaps?": [[[str, str]]], "pieces?": PIECES,
        "marked?": {"tasks": [str], "order": [str], "executed_first": [str]},
    },
    "modules": {
        "shares": SHARES, "blocks": bool, "modules": [{"rule": str, "order": [str]}], "elimination?": ELIMINATION,
        "probes?": [PROBE], "split?": bool, "better?": [str],
    },
}  # fmt: skip
NOUNS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    dict: "an object",
    NoneType: "null",
}


def check_document(value: Any, kind: Any, what: str) -> None:
    """Refuse what is not of that kind: `PLAN`, or a part of it."""
    if isinstance(kind, dict):
        require(isinstance(value, Mapping), f"{what} must be an object", InputError)
        rule = value.get("rule")
        require(
            "rule" not in kind or rule in list(RULES), f"{what} has the unknown rule {shorten(repr(rule))}", InputError
        )
        kind = kind | RULES[rule] if "rule" in kind else kind
        kinds = {key.rstrip("?"): inner for key, inner in kind.items()}
        for key in kinds:
            require(key in value or key not in kind, f"{what} needs the key {key!r}", InputError)
        for key, one in value.items():
            require(key in kinds, f"{what} has the unknown key {shorten(repr(key))}", InputError)
            check_document(one, kinds[key], f"{key!r} in {what}")
    elif isinstance(kind, list):
        fits = isinstance(value, list | tuple) and len(kind) in {1, len(value)}
        require(fits, f"{what} must be a list{f' of {len(kind)}' if len(kind) > 1 else ''}", InputError)
        if len(kind) > 1 or not _at_once(value, kind[0], what):
            for one, inner in zip(value, kind * len(value), strict=False):
                check_document(one, inner, what)
    else:
        several = kind if isinstance(kind, tuple) else (kind,)
        nouns = " or ".join(NOUNS[one] for one in several)
        require(any(_is(value, one) for one in several), f"{what} must be {nouns}", InputError)


def _at_once(values: Sequence[Any], kind: Any, what: str) -> bool:
    """Whether entries of one plain kind, or rows of such, are seen to be right without a look at each by itself."""
    types = set(map(type, values))
    if isinstance(kind, list) and types <= {list, tuple} and set(map(len, values)) <= {len(kind)} and len(kind) > 1:
        for i, inner in enumerate(kind):
            check_document([row[i] for row in values], [inner], what)
        return True
    return isinstance(kind, type) and types <= {kind}


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, int | float if kind is float else kind) and (type(value) is not bool or kind is bool)
