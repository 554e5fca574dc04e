"""The folder of a client: who it is, and what it owes the server, so that a crash costs no finished work.

lock        held while a client uses the folder
client.json the server, the client's name there, and its token
owed/       one file a lease: what to deliver of it, should the client be gone now
files/      files by their hashes
scratch/    where tasks run
"""

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from eligo.client.scratch import remove
from eligo.errors import InputError


class WorkFolder:
    """A client's folder, which it has alone until it is closed."""

    def __init__(self, path: str, url: str) -> None:
        self.path = path
        try:
            for name in (
                "",
                "owed",
                "files",
                "scratch",
            ):  # its parent has the mode that the user wants, these are private
                os.makedirs(os.path.join(path, name), mode=0o700, exist_ok=True)
            self._lock = _locked(os.path.join(path, "lock"), path)
        except OSError as error:
            raise InputError(f"{path}: cannot write the files of the client: {error.strerror}") from None
        self._identity = self._read("client.json") or {"mark": secrets.token_hex(16)}
        if self._identity.setdefault("url", url) != url:
            os.close(self._lock)
            owner = self._identity["url"]
            raise InputError(f"{path}: this folder belongs to a client of {owner}: choose another").cured_by("folder")
        self._count = 0
        self.remember({})

    @property
    def mark(self) -> str:
        """What the processes of this client's tasks have in their environment."""
        return str(self._identity["mark"])

    @property
    def identity(self) -> dict[str, Any]:
        """Who the client is: `client` and `token`, where it has them."""
        return self._identity

    def remember(self, identity: Mapping[str, Any]) -> None:
        """Keep who the client is."""
        self._identity |= identity
        self._write("client.json", self._identity, durable=True)

    def owe(self, lease: str, result: Mapping[str, Any], durable: bool) -> None:
        """Keep what is to be delivered of a lease; *durable*: even should the machine fail now."""
        self._write(_place(lease), result, durable)

    def settle(self, lease: str) -> None:
        """The server has its answer."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, _place(lease)))

    def owed(self) -> list[dict[str, Any]]:
        """All that is to be delivered still."""
        folder = os.path.join(self.path, "owed")
        results = (self._read(f"owed/{name}") for name in sorted(os.listdir(folder)) if name.endswith(".json"))
        return [result for result in results if result and isinstance(result.get("lease"), str)]

    def scratch(self) -> str:
        """Where a new scratch folder may be."""
        self._count += 1
        return os.path.join(self.path, "scratch", f"{os.getpid()}-{self._count}")

    def clean(self) -> None:
        """Take away the scratch folders of a client that is gone, and what it had not finished writing."""
        for name in os.listdir(os.path.join(self.path, "scratch")):
            remove(os.path.join(self.path, "scratch", name))
        for folder, ending in (("owed", ".part"), ("files", ".new")):
            for name in os.listdir(os.path.join(self.path, folder)):
                if name.endswith(ending):
                    os.unlink(os.path.join(self.path, folder, name))

    def close(self) -> None:
        """Let others have the folder."""
        os.close(self._lock)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            with open(os.path.join(self.path, name), encoding="utf-8") as file:
                words = json.load(file)
        except (OSError, ValueError):
            return None
        return words if isinstance(words, dict) else None

    def _write(self, name: str, words: Mapping[str, Any], durable: bool) -> None:
        path = os.path.join(self.path, name)
        descriptor = os.open(f"{path}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(words, file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(f"{path}.part", path)
        if durable:
            _synchronise(os.path.dirname(path))


def _place(lease: str) -> str:
    """Where a lease is kept; the server may have put anything into its name."""
    return f"owed/{hashlib.sha256(lease.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.json"


def _synchronise(folder: str) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked(path: str, folder: str) -> int:
    """Hold a lock file as long as the process lives; whoever comes second is refused."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(f"{folder}: in use by another client").cured_by("folder") from None
    return descriptor
