"""Refusals: a status, one sentence and the id of the request, as RFC 9457 has problems; made nowhere else."""

import json
import re
from http import HTTPStatus

from eligo.errors import EligoError, shorten

PROBLEM = "application/problem+json"
MOST_SAID = 300  # characters of a fault
#: the types of JSON as msgspec calls them, and as people do
TYPES = {
    "int": "an integer", "float": "a number", "str": "a string", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
#: what msgspec says of the length of a list or text
LENGTH = re.compile(r"of length (<=|>=) (\d+)")
BOUND = re.compile(r"^`(\w+)` (<=|>=|<|>) (\S+)$")
COMPARED = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
TITLES = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}


class RefusedError(EligoError):
    """A request is refused with an HTTP status and a sentence; `after` says in how many seconds to come again."""

    def __init__(self, status: int, sentence: str, after: float | None = None, **headers: str) -> None:
        self.status, self.sentence, self.after = status, sentence, after
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if after is not None:
            self.headers["retry-after"] = str(max(1, round(after)))
        super().__init__(sentence)

    def problem(self, request: str) -> bytes:
        """The body of the answer; `error` and `request` are for clients from before it was a problem of RFC 9457.

        >>> RefusedError(404, "there is no task 'x'").problem("7f-1")[:50]
        b'{"type":"about:blank","title":"Not Found","status"'
        """
        words = {
            "type": "about:blank", "title": TITLES.get(self.status, "Refused"), "status": self.status,
            "detail": self.sentence, "instance": request, "error": self.sentence, "request": request,
        }  # fmt: skip
        return json.dumps(words, separators=(",", ":")).encode()

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The headers of the answer, but for its length."""
        headers = {"content-type": PROBLEM, **self.headers}
        good = ((name, value) for name, value in headers.items() if value.isascii() and value.isprintable())
        return [(name.encode(), value.encode()) for name, value in good]


def explain_fault(fault: str) -> str:
    """What is wrong with a body, in plain words, from what msgspec says of it.

    >>> explain_fault("Expected `int`, got `str` - at `$.count`")
    'count must be an integer, got a string'
    >>> explain_fault("Expected `int` >= 1 - at `$.count`")
    'count must be an integer of at least 1'
    >>> explain_fault("Expected `str` of length <= 200 - at `$.results[...].lease`")
    'results[...].lease must be a string of length at most 200'
    >>> explain_fault("Object missing required field `lease` - at `$.results[...]`")
    'results[...] lacks the field lease'
    >>> explain_fault("JSON is malformed: invalid character (byte 1)")
    'the body is not JSON: invalid character (byte 1)'
    """
    said, _, place = fault.partition(" - at `")
    where = place.removesuffix("`").removeprefix("$").removeprefix(".").replace("key in ", "a name in ") or "the body"
    return shorten(_explained(said, where), MOST_SAID)


def _explained(said: str, where: str) -> str:
    wrong, _, rest = said.partition(" ")
    if said.startswith("Object missing required field"):
        return f"{where} lacks the field {said.split('`')[1]}"
    if said.startswith("Invalid enum value"):
        return f"{where} cannot be {said.removeprefix('Invalid enum value ')}"
    if wrong == "Expected":
        return f"{where} must be {_demand(rest)}"
    if said.startswith(("JSON is malformed: ", "Input data was truncated")):
        return f"the body is not JSON: {said.removeprefix('JSON is malformed: ')}"
    return f"{where} is wrong: {said}"


def _demand(wanted: str) -> str:
    """A type, its bounds and what came instead."""
    wanted, _, came = wanted.partition(", got ")
    bound = BOUND.match(wanted)
    if bound is not None:
        wanted = f"`{bound[1]}` of {COMPARED[bound[2]]} {bound[3]}"
    wanted = LENGTH.sub(lambda found: f"of length {COMPARED[found[1]]} {found[2]}", wanted)
    wanted = wanted.replace("matching regex", "that matches")
    return _typed(wanted) + (f", got {_typed(came)}" if came else "")


def _typed(words: str) -> str:
    """The names of types, in plain words."""
    plain = re.sub(
        r"`([\w |]+)`", lambda found: " or ".join(TYPES.get(each, each) for each in found[1].split(" | ")), words
    )
    return plain.replace("`", "")
