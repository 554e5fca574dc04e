"""Ed25519 keys and signatures of the owners of workflows, so that a compromised server cannot run tasks of its own."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from stat import S_IRWXG, S_IRWXO

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from eligo.client.transfers import HashedFile
from eligo.client.trust import Seal, signed_task
from eligo.errors import InputError
from eligo.workflow import Workflow

MOST = 10_000  # bytes of a key file that are read


def new_key(path: str | Path) -> Path:
    """Make a pair of keys: the private one in this file, readable only by its owner, the public one in PATH.pub."""
    private = Ed25519PrivateKey.generate()
    public = Path(f"{path}.pub")
    _write(Path(path), private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _write(public, private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    return public


def private_key(path: str | Path) -> Ed25519PrivateKey:
    """A private key from its file, in PEM or as 32 bytes in base64; other users must not be able to read the file."""
    text = _read(path)
    if os.stat(path).st_mode & (S_IRWXG | S_IRWXO):
        raise InputError(f"{path}: other users can read this private key (run chmod 600)")
    try:
        pem = text.startswith(b"-----")
        key: object = (
            load_pem_private_key(text, None)
            if pem
            else Ed25519PrivateKey.from_private_bytes(base64.b64decode(text, validate=True))
        )
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: must be an Ed25519 private key that has no password")
    return key


def signatures(
    flow: Workflow, nonce: str, key: Ed25519PrivateKey, files: Mapping[str, HashedFile], expires: int
) -> dict[str, str]:
    """The signature of every task that has a command, by its name.

    *nonce* is the name given at submission; *files* are the owner's input files by name.
    """
    flow = flow.labelled()
    signed = {}
    for name in flow.dag.tasks:
        task = flow.task(name)
        if task.command is not None:
            digests = {each: files[each].sha256 for each in task.inputs if each in files}
            message = signed_task(
                nonce, str(name), task.command, expires=expires, given=digests, inputs=task.inputs, outputs=task.outputs,
                launch=task.launch,
            )  # fmt: skip
            signed[str(name)] = Seal(expires, frozenset(digests), key.sign(message)).text(task.inputs)
    return signed


def _write(path: Path, text: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InputError(f"{path}: file already exists; a key is never overwritten") from None
    except OSError as error:
        raise InputError(f"{path}: cannot write the key: {error.strerror}") from None
    with open(handle, "wb") as file:
        file.write(text)


def _read(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MOST).strip()
    except OSError as error:
        raise InputError(f"{path}: cannot read the key: {error.strerror}") from None
