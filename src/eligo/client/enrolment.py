"""Enrols a client at a server, once: later calls identify it by its token, or by its name there."""

import random
import threading
from collections.abc import Callable
from typing import Any

from eligo.client.assignment import plain_word
from eligo.client.calls import Calls, ServerRefusedError, pause
from eligo.client.folder import WorkFolder
from eligo.client.options import WorkOptions, token_for
from eligo.errors import InputError
from eligo.version import __version__

SHORTEST_WAIT, LONGEST_WAIT = 1.0, 5.0  # seconds between two checks for approval
UNKNOWN = 401
NOT_FOR_ENROLLING = frozenset({403, 409})  # codes for a token of an enrolled client


class Enrolment:
    """The client's identity at its server; if an open server has forgotten it, it enrols again, once."""

    def __init__(
        self,
        calls: Calls,
        folder: WorkFolder,
        options: WorkOptions,
        say: Callable[[str], None],
        until: Callable[[], bool],
    ) -> None:
        self._calls, self._folder, self._options, self._say, self._until = calls, folder, options, say, until
        #: forgets what only the previous server may know
        self.forget: Callable[[], None] = lambda: None
        self._lock, self._again = threading.Lock(), True

    def enrol(self) -> None:
        """Enrol at the server, and identify the client in every call."""
        supplied, identity = token_for(self._options.url, self._options.token), self._folder.identity
        if "client" not in identity:
            self._calls.identity = _bearer(supplied)
            self._folder.remember(self._request_identity(supplied is not None))
        token, client = identity.get("token") or supplied, identity.get("client")
        self._calls.identity = _bearer(token) if token else {"Eligo-Client": str(client)}
        if identity.get("approved") is False:
            self._say(f"{client} is waiting for approval: eligo clients {self._options.url} --approve {client}")
            self._wait_for_approval(str(client))
            self._folder.remember({"approved": True})

    def _request_identity(self, has_token: bool) -> dict[str, Any]:
        words = {"name": self._options.name, "cores": self._options.cores, "version": __version__}
        try:
            reply = self._calls.post("/v1/clients", words, self._until)
        except ServerRefusedError as error:
            if has_token and error.code in NOT_FOR_ENROLLING:
                return {"client": None, "approved": True}
            supplied = token_for(self._options.url, self._options.token)
            if has_token or error.code != UNKNOWN or supplied is None:
                raise
            self._calls.identity = _bearer(supplied)  # offered only now by a server that started after this client
            return self._request_identity(True)
        if not isinstance(reply.get("client"), str):
            raise InputError(f"{self._calls.url} is not an eligo server: it assigned no client name")
        client, token = plain_word(reply["client"], "client"), reply.get("token")
        token = None if token is None else plain_word(token, "token")
        return {"client": client, "approved": reply.get("approved"), "token": token}

    def _wait_for_approval(self, client: str) -> None:
        while not self._until():
            try:
                if self._calls.get(f"/v1/clients/{client}", self._until).get("approved"):
                    return
            except ServerRefusedError as error:
                if error.code not in {401, 403}:
                    raise
            pause(random.uniform(SHORTEST_WAIT, LONGEST_WAIT), self._until)  # noqa: S311 - no secret

    def call(self, function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Make a call; if an open server does not know the client, enrol again and retry."""
        before = self._calls.identity
        try:
            return function()
        except ServerRefusedError as error:
            if error.code not in {401, 404} or "Authorization" in before:
                raise
            with self._lock:
                if self._calls.identity is before:
                    if not self._again:
                        raise
                    self._again = False
                    self._folder.identity.pop("client")
                    self.forget()
                    self.enrol()
        return function()


def _bearer(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
