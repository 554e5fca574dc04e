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
Until = Callable[[], bool]
NOT_FOR_ENROLLING = frozenset({403, 409})  # codes for a token of an enrolled client


class Enrolment:
    """The client's identity at its server; if an open server has forgotten it, it enrols again, once."""

    def __init__(
        self, calls: Calls, folder: WorkFolder, options: WorkOptions, say: Callable[[str], None], until: Until
    ) -> None:
        self._calls, self._folder, self._options, self._say, self._until = calls, folder, options, say, until
        #: forgets what only the previous server may know
        self.forget: Callable[[], None] = lambda: None
        self._lock, self._again = threading.Lock(), True

    def enrol(self) -> None:
        """Enrol at the server, and identify the client in every call."""
        enrol(self._calls, self._folder, self._options, self._say, self._until)

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


def enrol(
    calls: Calls, folder: WorkFolder, options: WorkOptions, say: Callable[[str], None], until: Callable[[], bool]
) -> None:
    """Enrol at the server, and identify the client in every call."""
    supplied = token_for(options.url, options.token)
    identity = folder.identity
    if "client" not in identity:
        calls.identity = _bearer(supplied)
        folder.remember(_request_identity(calls, options, supplied is not None, until))
    token, client = identity.get("token") or supplied, identity.get("client")
    calls.identity = _bearer(token) if token else {"Eligo-Client": str(client)}
    if identity.get("approved") is False:
        say(f"{client} is waiting for approval: eligo clients {options.url} --approve {client}")
        _wait_for_approval(calls, str(client), until)
        folder.remember({"approved": True})


def _request_identity(calls: Calls, options: WorkOptions, has_token: bool, until: Callable[[], bool]) -> dict[str, Any]:
    words = {"name": options.name, "cores": options.cores, "version": __version__}
    try:
        reply = calls.post("/v1/clients", words, until)
    except ServerRefusedError as error:
        if has_token and error.code in NOT_FOR_ENROLLING:
            return {"client": None, "approved": True}
        supplied = token_for(options.url, options.token)
        if has_token or supplied is None or error.code != UNKNOWN:
            raise
        calls.identity = _bearer(supplied)  # a server that started after this client offers its token only now
        return _request_identity(calls, options, True, until)
    if not isinstance(reply.get("client"), str):
        raise InputError(f"{calls.url} is not an eligo server: it assigned no client name")
    token = reply.get("token")
    return {
        "client": plain_word(reply["client"], "client"),
        "approved": reply.get("approved"),
        "token": None if token is None else plain_word(token, "token"),
    }


def _wait_for_approval(calls: Calls, client: str, until: Callable[[], bool]) -> None:
    while not until():
        try:
            if calls.get(f"/v1/clients/{client}", until).get("approved"):
                return
        except ServerRefusedError as error:
            if error.code not in {401, 403}:
                raise
        pause(random.uniform(SHORTEST_WAIT, LONGEST_WAIT), until)  # noqa: S311 - no secret


def _bearer(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
