"""Whose commands are run: only those signed, with Ed25519, by the owner of a key that the client was told to trust."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eligo.client.assigned import Assigned
from eligo.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DISTRUSTED = "not signed by anybody trusted here"
PREFIX = b"eligo task 1\n"


def signed_bytes(assigned: Assigned) -> bytes:
    """What the owner of a task has signed."""
    signed = assigned.signed
    words = {
        "command": assigned.command if isinstance(assigned.command, str) else list(assigned.command),
        "environment": assigned.environment,
        "inputs": sorted(signed.get("inputs", ())),
        "outputs": sorted(signed.get("outputs", ())),
        "task": assigned.task,
        "workflow": signed.get("workflow"),
    }
    text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return PREFIX + text.encode("utf-8", "surrogatepass")


class Trust:
    """The keys that a client trusts; none: everybody is trusted."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._keys = [_key(path) for path in paths]

    def distrusts(self, assigned: Assigned) -> str | None:
        """Why a task is not to be run; None where it may be."""
        if not self._keys:
            return None
        within = set(assigned.inputs) <= set(assigned.signed.get("inputs", ()))
        within = within and set(assigned.makes) <= set(assigned.signed.get("outputs", ()))
        try:
            signature = base64.b64decode(assigned.signature or "", validate=True)
        except (binascii.Error, ValueError):
            signature = b""
        message = signed_bytes(assigned)
        return None if within and any(_holds(key, signature, message) for key in self._keys) else DISTRUSTED


def _holds(key: "Ed25519PublicKey", signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _key(path: str) -> "Ed25519PublicKey":
    """A public key from a file: PEM, a line as of OpenSSH, or 32 bytes in base64."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise InputError("signatures are checked with the package cryptography: pip install cryptography") from None
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
        raise InputError(f"{path}: the key cannot be read: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: this is no public key of Ed25519")
    return key
