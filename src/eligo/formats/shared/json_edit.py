"""JSON text changed in place: where objects and their values stand, found without building what lies between."""

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]

from eligo.formats.shared.editing import Edit

_SPACE = re.compile(r"[ \t\r\n]*")
_skip = json.JSONDecoder().raw_decode


def items(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """The keys of the object that begins there, and where the value of each begins and ends."""
    at = _after(text, start + 1)
    while text[at] != "}":
        at = _after(text, at + 1) if text[at] == "," else at
        key, at = scanstring(text, at + 1)
        begin = _after(text, _after(text, at) + 1)
        _, end = _skip(text, begin)
        yield key, begin, end
        at = _after(text, end)


def elements(text: str, start: int) -> Iterator[int]:
    """Where each element of the list that begins there begins."""
    at = _after(text, start + 1)
    while text[at] != "]":
        at = _after(text, at + 1) if text[at] == "," else at
        yield at
        _, end = _skip(text, at)
        at = _after(text, end)


def place_of(text: str, *keys: str) -> int | None:
    """Where the value under these keys begins, from the outermost object inward; None where there is none.

    >>> place_of('{"a": {"b": [1]}}', "a", "b")
    12
    """
    at: int | None = _after(text, 0)
    for key in keys:
        if at is None or text[at] != "{":
            return None
        at = next((begin for found, begin, _ in items(text, at) if found == key), None)
    return at


def put(text: str, start: int, key: str, value: int) -> Edit:
    """What gives the object that begins there this value under a key, in its own style of spaces.

    >>> put('{"a": 1}', 0, "b", 2), put('{"a":1}', 0, "a", 2)
    (Edit(start=7, end=7, text=', "b": 2'), Edit(start=5, end=6, text='2'))
    """
    last, spans = start, list(items(text, start))
    for found, begin, end in spans:
        if found == key:
            return Edit(begin, end, str(value))
        last = end
    if not spans:
        return Edit(start + 1, start + 1, f'"{key}": {value}')
    return Edit(last, last, f",{_gap(text, start)}{json.dumps(key)}: {value}")


def _gap(text: str, start: int) -> str:
    """What stands between an object's brace and its first key, which begins a line or follows at once."""
    space = text[start + 1 : _after(text, start + 1)]
    return space or " "


def _after(text: str, at: int) -> int:
    """The next place that is no white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at
