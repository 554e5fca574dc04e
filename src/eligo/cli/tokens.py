"""Tokens as operators make, list and revoke them: over HTTP, or in the store itself on the server's own machine."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from eligo.cli.operator import NONE
from eligo.cli.output import harmless, print_json, print_lines, print_table
from eligo.cli.plan_text import tell
from eligo.cli.server_door import SERVER, URL, ServerDoor, full_address
from eligo.errors import InputError


class TokenRequest(NamedTuple):
    """What is asked of `eligo token`."""

    scopes: list[str]
    days: float | None
    revoke: bool
    list: bool
    json: bool


def place_and_name(place: str | None, name: str | None, listed: bool) -> tuple[str, str | None]:
    """The server or store, and the name of the token, where ELIGO_URL may say the former."""
    if name is None and not listed and place is not None and not _is_place(place):
        place, name = None, place
    return (full_address(None) if place is None else place), name


def _is_place(text: str) -> bool:
    return "://" in text or text.endswith(".db") or not os.environ.get(URL)


def answer(place: str, token_file: str | None, ca: str | None, name: str | None, request: TokenRequest) -> int:
    """Make, list or revoke tokens, with the token and the certificates that are known."""
    if not place.startswith(SERVER):
        return _make_locally(place, name, request)
    owner = ServerDoor(place, token_file, ca).owner()
    if request.list:
        tokens = owner.get("/v1/tokens")["tokens"]
        print_json({"tokens": tokens}) if request.json else _print(tokens)
    elif request.revoke:
        return _revoked(str(name), owner.post("/v1/tokens/revoke", {"name": name})["count"], request.json)
    else:
        wanted = {"name": name, "scopes": request.scopes, "days": request.days}
        _print_made(owner.post("/v1/tokens", wanted)["token"], str(name), request)
    return 0


def _revoked(name: str, count: int, json: bool) -> int:
    """Say how many tokens were revoked; exit code 1 where there was none."""
    if json:
        print_json({"name": name, "count": count})
    elif count:
        print_lines([f"{count:,} token{'' if count == 1 else 's'} revoked"])
    else:
        tell([f"no valid token has the name {harmless(name)}"])
    return 0 if count else NONE


def _print_made(token: str, name: str, request: TokenRequest) -> None:
    if request.json:
        print_json({"token": token, "name": name, "scopes": request.scopes, "days": request.days})
    else:
        print_lines([token])


def _make_locally(store: str, name: str | None, request: TokenRequest) -> int:
    """A token for whoever may write the store: the way back where no admin token is left."""
    from eligo.server.auth.admission import DAY, as_row
    from eligo.server.auth.tokens import Gate
    from eligo.stores.database import locked
    from eligo.stores.service import Changes
    from eligo.stores.service_names import service_store

    if request.list or request.revoke:
        raise InputError("--list and --revoke need a running server: give its URL")
    if "://" not in store and not os.path.exists(store):
        raise InputError(f"{store}: no such store")
    if "://" not in store:
        os.close(locked(f"{store}.lock", f"{store} is in use by a server: give the server's URL, or stop it first"))
    lasting = None if request.days is None else request.days * DAY
    token, row = Gate().make(str(name), request.scopes, time.time(), lasting=lasting)
    with closing(service_store(store)) as database:
        database.prepare([Changes(tokens=[as_row(row)])])
        database.finish()
    tell([f"added a token to {store}; a running server accepts it after its next start"])
    _print_made(token, str(name), request)
    return 0


def _print(tokens: Sequence[dict[str, Any]]) -> None:
    rows = [
        [
            "  " * depth + harmless(one["name"]), one["id"], " ".join(one["scopes"]), one["client"] or "",
            _date(one["made"]), _date(one["expires"]), one["state"], one["fault"] or "",
        ]
        for depth, one in _tree(tokens)
    ]  # fmt: skip
    titles = ["name", "token", "scopes", "client", "created", "expires", "state", "reason"]
    print_table(titles, rows, uncut=["token", "state"])


def _tree(tokens: Sequence[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every token below the one with which it was made, and how deep; those whose maker is forgotten stand first."""
    ids = {one["id"] for one in tokens}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for one in tokens:
        below.setdefault(one["parent"] if one["parent"] in ids else None, []).append(one)
    waiting = [(0, one) for one in reversed(below.get(None, []))]
    while waiting:
        depth, one = waiting.pop()
        yield depth, one
        waiting += [(depth + 1, each) for each in reversed(below.get(one["id"], []))]


def _date(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d", time.localtime(moment))
