"""Values for the names in a JX text that come from outside it: from a file of names and values, or one by one.

>>> value_of("range(3)"), value_of("a b"), value_of('"5"')
([0, 1, 2], 'a b', '5')
"""

from typing import Any

from eligo.errors import FormatError
from eligo.formats.jx import evaluating
from eligo.formats.shared import files


def read_arguments(path: str) -> dict[str, Any]:
    """The names and values in a file: one JX object."""
    text = files.load(path)
    try:
        found = evaluating.load(text, {})
    except FormatError as error:
        raise error.located(files.shown(path)) from None
    if not isinstance(found, dict):
        raise FormatError("should be one object: names and their values", files.shown(path))
    return found


def value_of(text: str) -> Any:
    """The value of a JX expression; what is none is a string as it stands."""
    try:
        return evaluating.load(text, {})
    except FormatError:
        return text
