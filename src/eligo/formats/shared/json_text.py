"""JSON text: read strictly, written one item per line.

Beyond the errors of Python's own reader, these are refused: a key that appears twice in an object, NaN and infinities, and
NUL or half a surrogate pair in a string. All errors are a FormatError, including deep nesting and numbers with too many
digits.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NoReturn

from eligo.errors import FormatError, shorten

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
# Allowed in JSON but not in YAML, or invisible, or not a character
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_BROKEN = re.compile("[\0\ud800-\udfff]")
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def load(text: str) -> object:
    """The value that a JSON text describes.

    >>> load('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    eligo.errors.FormatError: the key 'a' appears twice in one object
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
        if "\\u" in text and _SUSPECT.search(text):
            for string in _strings(value):
                check_text(string)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg.lower()} at column {error.colno}"
        raise FormatError(message, line=error.lineno) from None
    except RecursionError:
        raise FormatError("the JSON is nested too deeply") from None
    except FormatError:
        raise
    except ValueError:  # from int(), for a number with thousands of digits
        raise FormatError("a number has too many digits") from None
    return value


def dump(value: object, levels: int) -> str:
    """The JSON text of *value*, with one item per line in the outermost *levels* of lists and objects.

    >>> print(dump({"a": [1, [2, 3]], "b": []}, levels=2), end="")
    {
      "a": [
        1,
        [2, 3]
      ],
      "b": []
    }
    """
    return "".join(_lines(value, levels, "")) + "\n"


def quote(value: object) -> str:
    """A value as JSON on one line, which is also valid YAML.

    >>> print(quote('say "hi"'))
    "say \\"hi\\""
    """
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", _encode(value))


def unquote(word: str, line: int) -> str:
    """The string of a JSON literal in double quotes."""
    try:
        value = load(word)
    except FormatError:
        value = None
    if not isinstance(value, str):
        raise FormatError(f"{shorten(word)} is not a valid JSON string", line=line)
    return value


def check_text(text: str, line: int | None = None) -> None:
    """Raise if a string contains NUL or half a surrogate pair, which cannot be written to files or passed to programs."""
    broken = _BROKEN.search(text)
    if broken:
        raise FormatError(f"a string contains {broken[0]!a}, which is not a valid character", line=line)


def line_of(text: str, word: str) -> int | None:
    """The number of the line with *word*, if the word occurs in the text exactly once."""
    where = text.find(word)
    if where < 0 or text.find(word, where + 1) >= 0:
        return None
    return text.count("\n", 0, where) + 1


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatError(f"the key {shorten(twice)!r} appears twice in one object")
    return result


def _strings(value: object) -> Iterator[str]:
    """Every string inside a value, including keys."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            waiting += (*item, *item.values())


def _constant(word: str) -> NoReturn:
    raise FormatError(f"{word} is not a valid JSON number")


def _lines(value: object, levels: int, indent: str) -> Iterator[str]:
    if not levels or not value or not isinstance(value, Mapping | list):
        yield quote(value)
        return
    inner = indent + "  "
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    items = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    for i, (key, item) in enumerate(items):
        yield f"{',' if i else opening}\n{inner}" + ("" if key is None else f"{quote(key)}: ")
        yield from _lines(item, levels - 1, inner)
    yield f"\n{indent}{closing}"
