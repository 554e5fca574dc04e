"""Refusals: a status, one sentence and the id of the request, as a problem document of RFC 9457."""

import json
import re
from http import HTTPStatus

from eligo.errors import EligoError, shorten

PROBLEM = "application/problem+json"
MOST_SAID = 300  # characters of an explanation
#: the types of JSON, as msgspec calls them and in plain words
TYPES = {
    "int": "an integer", "float": "a number", "str": "a string", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
#: msgspec's words for the length of a list or string
LENGTH = re.compile(r"of length (<=|>=) (\d+)")
NAMED = re.compile(r"`([\w |]+)`")
BOUND = re.compile(r"^`(\w+)` (<=|>=|<|>) (\S+)$")
COMPARED = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
TITLES = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}


class RefusedError(EligoError):
    """A refusal with an HTTP status and a sentence; `after` is the number of seconds to wait before a retry."""

    def __init__(self, status: int, sentence: str, after: float | None = None, **headers: str) -> None:
        self.status, self.sentence, self.after = status, sentence, after
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if after is not None:
            self.headers["retry-after"] = str(max(1, round(after)))
        super().__init__(sentence)

    def problem(self, request: str) -> bytes:
        """The body of the answer; `error` and `request` are for older clients, which do not know RFC 9457.

        >>> RefusedError(404, "there is no task 'x'").problem("7f-1")[:50]
        b'{"type":"about:blank","title":"Not Found","status"'
        """
        words = {
            "type": "about:blank", "title": TITLES.get(self.status, "Refused"), "status": self.status,
            "detail": self.sentence, "instance": request, "error": self.sentence, "request": request,
        }  # fmt: skip
        return json.dumps(words, separators=(",", ":")).encode()

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The headers of the answer, except its length."""
        headers = {"content-type": PROBLEM, **self.headers}
        good = ((name, value) for name, value in headers.items() if value.isascii() and value.isprintable())
        return [(name.encode(), value.encode()) for name, value in good]


def unknown_workflow(workflow: str) -> RefusedError:
    """The refusal (404) for an unknown workflow id."""
    return RefusedError(404, f"unknown workflow {shorten(workflow)!r}")


def explain_fault(fault: str) -> str:
    """A plain explanation of what is wrong with a body, made from msgspec's message.

    >>> explain_fault("Expected `int`, got `str` - at `$.count`")
    'count must be an integer, got a string'
    >>> explain_fault("Expected `int` >= 1 - at `$.count`")
    'count must be an integer of at least 1'
    >>> explain_fault("Expected `str` of length <= 200 - at `$.results[...].lease`")
    'results[...].lease must be a string of length at most 200'
    >>> explain_fault("Object missing required field `lease` - at `$.results[...]`")
    'results[...] needs the field lease'
    >>> explain_fault("JSON is malformed: invalid character (byte 1)")
    'the body is not JSON: invalid character (byte 1)'
    """
    message, _, place = fault.partition(" - at `")
    where = place.removesuffix("`").removeprefix("$").removeprefix(".").replace("key in ", "a key in ") or "the body"
    return shorten(_explain(message, where), MOST_SAID)


def _explain(message: str, where: str) -> str:
    wrong, _, rest = message.partition(" ")
    if message.startswith("Object missing required field"):
        return f"{where} needs the field {message.split('`')[1]}"
    if message.startswith("Invalid enum value"):
        return f"{where} cannot be {message.removeprefix('Invalid enum value ')}"
    if wrong == "Expected":
        return f"{where} must be {_demand(rest)}"
    if message.startswith(("JSON is malformed: ", "Input data was truncated")):
        return f"the body is not JSON: {message.removeprefix('JSON is malformed: ')}"
    return f"{where} is invalid: {message}"


def _demand(expected: str) -> str:
    """The expected type, its bounds, and the actual type."""
    expected, _, actual = expected.partition(", got ")
    bound = BOUND.match(expected)
    if bound is not None:
        expected = f"`{bound[1]}` of {COMPARED[bound[2]]} {bound[3]}"
    expected = LENGTH.sub(lambda match: f"of length {COMPARED[match[1]]} {match[2]}", expected)
    expected = expected.replace("matching regex", "that matches")
    return _in_plain_words(expected) + (f", got {_in_plain_words(actual)}" if actual else "")


def _in_plain_words(words: str) -> str:
    """A message of msgspec with the names of types in plain words."""
    names = {words: " or ".join(TYPES.get(each, each) for each in words.split(" | ")) for words in NAMED.findall(words)}
    return NAMED.sub(lambda match: names[match[1]], words).replace("`", "")
