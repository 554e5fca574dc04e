"""Checks Ed25519 signatures: only commands signed with a trusted key are run."""

import base64
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eligo.client.assignment import Assigned
from eligo.engines.signatures import EARLIER, Seal, signed_task
from eligo.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DISTRUSTED = "not signed by a trusted key"
EXPIRED = "the signature has expired: submit the workflow again"
OUTDATED = "the signature has an old format without expiry and inputs: submit the workflow again"


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
        inputs=signed.get("inputs", ()), outputs=signed.get("outputs", ()), environment=assigned.environment,
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
