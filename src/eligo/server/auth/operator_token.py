"""The operator's token: in a file beside the store that only its user can read, and offered to that user's commands."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eligo.client.options import offer, read_token
from eligo.errors import InputError
from eligo.server.auth.admission import Entrance
from eligo.server.http.refusals import RefusedError


class OperatorToken:
    """The file with the operator token; it is written if it is missing, or if no valid admin token exists."""

    def __init__(self, entrance: Entrance, folder: str) -> None:
        self._entrance = entrance
        self.path = os.path.abspath(f"{Path(folder).with_suffix('')}.token")
        gate = entrance.gate
        self.is_new = gate is not None and not (os.path.exists(self.path) and gate.has_operator(time.time()))
        if self.is_new:
            self._write(entrance.make("operator", ["admin"]))

    def _write(self, token: str) -> None:
        """Replace the file by a new one: what lies there may be a link, or a file of another user."""
        try:
            descriptor, part = tempfile.mkstemp(prefix=".token-", dir=os.path.dirname(self.path))  # of mode 600
            try:
                with open(descriptor, "w") as file:
                    file.write(token + "\n")
                    file.flush()
                    os.fsync(descriptor)
                os.replace(part, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part)
                raise
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot write the operator token: {error.strerror} (remove the file, or put the"
                " store in a folder that only you can write to)"
            ) from None

    @contextmanager
    def offered(self, address: str) -> Iterator[None]:
        """Commands of the same user that call this address find the token meanwhile, if it is good."""
        if not self._is_good():
            yield
            return
        with offer(address, self.path):
            yield

    def _is_good(self) -> bool:
        gate = self._entrance.gate
        if gate is None:
            return False
        try:
            return "admin" in gate.bearer(f"Bearer {read_token(self.path)}".encode(), time.time()).scopes
        except (InputError, RefusedError):
            return False
