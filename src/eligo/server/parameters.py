"""Parameters of calls: what callers say in a query or a body, as the rules take it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from eligo.server.asking import Request
from eligo.server.http import ApiCall
from eligo.server.preparing import Wishes
from eligo.server.refusing import RefusedError
from eligo.server.words import AskWords

MOST_LISTED = 1_000  # rows in one answer
WISHES = {each.name for each in fields(Wishes)} - {"owner"}


def page_of(call: ApiCall, states: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The workflows that are asked for, of all of them with their states, the first submitted first; how to go on.

    Without a limit it is all of them, in that order; with one the newest come first.
    """
    state, limit, before = call.query.get("state"), call.number("limit", 0, MOST_LISTED), call.query.get("before")
    ids = list(states)
    if before is not None:
        if before not in states:
            raise RefusedError(404, "there is no workflow of the id in 'before': begin with the newest again")
        ids = ids[: ids.index(before)]
    found = [id for id in ids if state is None or states[id] == state]
    if not limit:
        return found, None
    newest = found[: -limit - 1 : -1]
    return newest, newest[-1] if len(found) > limit else None


def read_request(told: AskWords) -> Request:
    """The request for work that a client sent."""
    memory = float("inf") if told.memory is None else told.memory
    labels, files = frozenset(told.labels), frozenset(told.files)
    return Request(told.count, told.size, told.seconds, told.wait, told.cores, memory, labels, files)


def read_wishes(call: ApiCall) -> Wishes:
    """What the owner of a submitted workflow asks for, from the query."""
    kinds = {"share": float, "timeout": float, "quorum": int, "retries": int, "copies": int}
    unknown = set(call.query) - WISHES - {"format"}
    if unknown:
        raise RefusedError(400, f"unknown parameter {min(unknown)!r}")
    found: dict[str, Any] = {name: value for name, value in call.query.items() if name in WISHES}
    for name, kind in kinds.items():
        if name in found:
            try:
                found[name] = kind(found[name])
            except ValueError:
                raise RefusedError(400, f"{name} is a number, and {found[name][:20]!r} is none") from None
    for name in {"files", "inside", "rules", "signed", "locality", "grow"} & found.keys():
        found[name] = found[name] != "false"
    return Wishes(owner=call.caller.name, **found)
