"""Small changes to a text that stays as it is otherwise: what is put where, and all of it at once."""

from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    """What stands from *start* to *end* becomes *text*; nothing is lost where the two are equal."""

    start: int
    end: int
    text: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text with every edit made; no two touch the same place.

    >>> applied("a: 1", [Edit(3, 4, "2"), Edit(0, 0, "# ")])
    '# a: 2'
    """
    parts, seen = [], 0
    for edit in sorted(edits):
        parts += [text[seen : edit.start], edit.text]
        seen = edit.end
    return "".join([*parts, text[seen:]])


def nested(keys: Iterable[str], value: int | str) -> str:
    """A value under keys, on one line, as YAML and, with quoted keys, JSON write it.

    >>> nested(["dagman", "PRIORITY"], 3)
    '{dagman: {PRIORITY: 3}}'
    """
    text = str(value)
    for key in reversed(list(keys)):
        text = f"{{{key}: {text}}}"
    return text
