"""The content of a task's signature by the owner of its workflow; needs only the standard library.

A signature is transmitted as text, `2.EXPIRES.GIVEN.SIGNATURE`: its expiry in seconds since 1970; the task's inputs that
the owner gave (not written by another task), as a hexadecimal bit mask of their names in order; and the 64 bytes of the
signature in base64. The first two are part of the signed content.
"""

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

PREFIX = b"eligo task 2\n"
TEXT = re.compile(r"2\.(\d{1,15})\.([0-9a-f]+)\.([A-Za-z0-9+/]{86}==)")
EARLIER = re.compile(r"[A-Za-z0-9+/]{86}==")


class Seal(NamedTuple):
    """A signature, its expiry, and the inputs whose content it covers."""

    expires: int
    given: frozenset[str]
    signature: bytes

    def text(self, inputs: Collection[str]) -> str:
        """The text that is sent with a task that reads these inputs.

        >>> Seal(7, frozenset({"y"}), bytes(64)).text(["y", "x"])[:8]
        '2.7.2.AA'
        """
        mask = sum(1 << place for place, name in enumerate(sorted(set(inputs))) if name in self.given)
        return f"2.{self.expires}.{mask:x}.{base64.b64encode(self.signature).decode()}"

    @staticmethod
    def parsed(text: str, inputs: Collection[str]) -> "Seal | None":
        """The seal of a task that reads these inputs; None if the text is invalid.

        >>> Seal.parsed(Seal(7, frozenset({"y"}), bytes(64)).text("xyz"), "xyz").given
        frozenset({'y'})
        """
        names, parts = sorted(set(inputs)), TEXT.fullmatch(text)
        if parts is None or len(parts[2]) > len(names) // 4 + 1 or int(parts[2], 16) >> len(names):
            return None
        mask = int(parts[2], 16)
        given = frozenset(name for place, name in enumerate(names) if mask >> place & 1)
        try:
            return Seal(int(parts[1]), given, base64.b64decode(parts[3], validate=True))
        except (binascii.Error, ValueError):
            return None


def signed_task(  # noqa: PLR0913  the eight fields of the protocol
    workflow: str, task: str, command: str | Sequence[str] | None, *, expires: int, given: Mapping[str, str],
    inputs: Iterable[str] = (), outputs: Iterable[str] = (), environment: Mapping[str, str] | None = None,
) -> bytes:  # fmt: skip
    """The signed bytes: *workflow* is the name given at submission, *given* maps inputs to their SHA-256.

    >>> signed_task("survey", "a", ["sort", "x"], expires=7, given={"x": "e3b0"}, inputs=["x"])[13:95]
    b'{"command":["sort","x"],"environment":{},"expires":7,"given":{"x":"e3b0"},"inputs"'
    """
    words = {
        "command": command if command is None or isinstance(command, str) else list(command),
        "environment": dict(environment or {}),
        "expires": expires,
        "given": dict(given),
        "inputs": sorted(inputs),
        "outputs": sorted(outputs),
        "task": task,
        "workflow": workflow,
    }
    text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return PREFIX + text.encode("utf-8", "surrogatepass")
