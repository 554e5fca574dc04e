"""Signatures of tasks by the owners of workflows (Ed25519): only commands signed with a trusted key are run.

A signature is transmitted as text, `2.EXPIRES.GIVEN.SIGNATURE`: its expiry in seconds since 1970; the task's inputs that
the owner gave (not written by another task), as a hexadecimal bit mask of their names in order; and the 64 bytes of the
signature in base64. The first two are part of the signed content. Forming the signed content needs only the standard
library; checking signatures needs the package cryptography.
"""

import base64
import binascii
import json
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from eligo.client.assignment import Assigned
from eligo.errors import InputError
from eligo.launch import Launch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DISTRUSTED = "not signed by a trusted key"
EXPIRED = "the signature has expired: submit the workflow again"
OUTDATED = "the signature has an old format without expiry and inputs: submit the workflow again"
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
        """The seal in the text that came with a task that reads these inputs; None if the text is invalid.

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


def signed_task(  # noqa: PLR0913  the nine fields of the protocol
    workflow: str, task: str, command: str | Sequence[str] | None, *, expires: int, given: Mapping[str, str],
    inputs: Iterable[str] = (), outputs: Iterable[str] = (), environment: Mapping[str, str] | None = None,
    launch: Launch | None = None,
) -> bytes:  # fmt: skip
    """The signed bytes: *workflow* is the name given at submission, *given* maps inputs to their SHA-256.

    How the command is run is part of them only if the task states it.

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
    words |= {"launch": content} if launch and (content := launch.content()) else {}
    text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return PREFIX + text.encode("utf-8", "surrogatepass")


class Trust:
    """The keys that a client trusts; empty: all commands are trusted."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._keys = [_key(path) for path in paths]

    def distrusts(self, assigned: Assigned) -> str | None:
        """Why a task must not be run; None if it may be."""
        if not self._keys:
            return None
        inputs, text = assigned.signed.get("inputs", ()), assigned.signature or ""
        seal = Seal.parsed(text, inputs)
        if seal is None:
            return OUTDATED if EARLIER.fullmatch(text) else DISTRUSTED
        within = set(assigned.inputs) <= set(inputs)
        within = within and set(assigned.makes) <= set(assigned.signed.get("outputs", ()))
        message = _message(assigned, seal)
        if not within or message is None or not any(_holds(key, seal.signature, message) for key in self._keys):
            return DISTRUSTED
        return EXPIRED if time.time() >= seal.expires else None


def _message(assigned: Assigned, seal: Seal) -> bytes | None:
    """The message that the owner of a task has signed; None if an input that the owner gave is missing."""
    digests = {name: file.sha256 for name in seal.given if (file := assigned.inputs.get(name)) is not None}
    if len(digests) < len(seal.given):
        return None
    signed = assigned.signed
    return signed_task(
        str(signed.get("workflow", "")), assigned.task, assigned.command, expires=seal.expires, given=digests,
        inputs=signed.get("inputs", ()), outputs=signed.get("outputs", ()),
        environment=signed.get("environment"), launch=assigned.launch,
    )  # fmt: skip


def _holds(key: "Ed25519PublicKey", signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _key(path: str) -> "Ed25519PublicKey":
    """A public key from a file: PEM, OpenSSH, or 32 bytes in base64."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise InputError("checking signatures needs cryptography: pip install cryptography") from None
    try:
        with open(path, "rb") as file:
            text = file.read(10_000).strip()
        if text.startswith(b"-----"):
            key: object = serialization.load_pem_public_key(text)
        elif text.startswith(b"ssh-"):
            key = serialization.load_ssh_public_key(text)
        else:
            key = Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except OSError as error:
        raise InputError(f"{path}: cannot read the key: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: not an Ed25519 public key")
    return key
