"""How a client becomes known to a server, once: after that it is known by its token, or by its name there."""

import random
from collections.abc import Callable
from typing import Any

from eligo.client.calling import Calls, ServerRefusedError, pause
from eligo.client.keeping import WorkFolder
from eligo.client.options import WorkOptions
from eligo.errors import InputError
from eligo.version import __version__

SHORTEST_WAIT, LONGEST_WAIT = 1.0, 5.0  # seconds between two looks whether somebody has approved
NOT_FOR_ENROLLING = frozenset({403, 409})  # codes for a token of a client that is known already


def enrol(
    calls: Calls, folder: WorkFolder, options: WorkOptions, say: Callable[[str], None], until: Callable[[], bool]
) -> None:
    """Have the server know us, and every call say who we are."""
    given = read_token(options.token)
    known = folder.identity
    if "client" not in known:
        calls.identity = _bearer(given)
        folder.remember(_enrolled(calls, options, given is not None, until))
    token, client = known.get("token") or given, known.get("client")
    calls.identity = _bearer(token) if token else {"Eligo-Client": str(client)}
    if known.get("approved") is False:
        say(f"{client} waits for somebody to approve it")
        _wait_for_approval(calls, str(client), until)
        folder.remember({"approved": True})


def read_token(path: str | None) -> str | None:
    """The token in a file."""
    if path is None:
        return None
    try:
        with open(path, encoding="ascii") as file:
            token = file.read(10_000).strip()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"{path}: the token cannot be read: {why}") from None
    if not token or not token.isprintable() or " " in token:
        raise InputError(f"{path}: there is no token in this file")
    return token


def _enrolled(calls: Calls, options: WorkOptions, has_token: bool, until: Callable[[], bool]) -> dict[str, Any]:
    words = {"name": options.name, "cores": options.cores, "version": __version__}
    try:
        reply = calls.post("/v1/clients", words, until)
    except ServerRefusedError as error:
        if has_token and error.code in NOT_FOR_ENROLLING:
            return {"client": None, "approved": True}
        raise
    if not isinstance(reply.get("client"), str):
        raise InputError(f"{calls.url} is no eligo server: it gave us no name")
    return {name: reply.get(name) for name in ("client", "approved", "token")}


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
