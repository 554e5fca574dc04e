"""The folder of a client: its identity, and the results it owes the server, so that a crash loses no finished work.

lock           held while a client uses the folder
client.json    the server, the client's name there, and its token
owed/          one file per lease: the result to deliver if the client ends now
files/         files by hash
scratch/       where tasks run
processes.bin  the sessions of running tasks
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
    """A client's folder, locked until it is closed."""

    def __init__(self, path: str, url: str) -> None:
        self.path = path
        try:
            for name in ("", "owed", "files", "scratch"):  # parents get the user's default mode, these are private
                os.makedirs(os.path.join(path, name), mode=0o700, exist_ok=True)
            self._lock = _lock_file(os.path.join(path, "lock"), path)
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
        """The mark in the environment of this client's task processes."""
        return str(self._identity["mark"])

    @property
    def identity(self) -> dict[str, Any]:
        """The client's identity: `client` and `token`, if it has them."""
        return self._identity

    def remember(self, identity: Mapping[str, Any]) -> None:
        """Store the client's identity."""
        self._identity |= identity
        self._write("client.json", self._identity, durable=True)

    def owe(self, lease: str, result: Mapping[str, Any], durable: bool) -> None:
        """Store the result to deliver for a lease; *durable* results also survive a failure of the machine."""
        self._write(_place(lease), result, durable)

    def settle(self, lease: str) -> None:
        """Remove the result of a lease that the server has acknowledged."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, _place(lease)))

    def owed(self) -> list[dict[str, Any]]:
        """All results that are not delivered yet."""
        folder = os.path.join(self.path, "owed")
        results = (self._read(f"owed/{name}") for name in sorted(os.listdir(folder)) if name.endswith(".json"))
        return [result for result in results if result and isinstance(result.get("lease"), str)]

    def scratch(self) -> str:
        """A path for a new scratch folder."""
        self._count += 1
        return os.path.join(self.path, "scratch", f"{os.getpid()}-{self._count}")

    def clean(self) -> None:
        """Remove the scratch folders and unfinished files of an earlier client."""
        for name in os.listdir(os.path.join(self.path, "scratch")):
            remove(os.path.join(self.path, "scratch", name))
        for folder, ending in (("owed", ".part"), ("files", ".new")):
            for name in os.listdir(os.path.join(self.path, folder)):
                if name.endswith(ending):
                    os.unlink(os.path.join(self.path, folder, name))

    def close(self) -> None:
        """Release the folder."""
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
    """The file for a lease; hashed, since the server may use any characters in its name."""
    return f"owed/{hashlib.sha256(lease.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.json"


def _synchronise(folder: str) -> None:
    """Sync the entries of a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock_file(path: str, folder: str) -> int:
    """Hold a lock file for the life of the process; raises if another client holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(f"{folder}: in use by another client").cured_by("folder") from None
    return descriptor
