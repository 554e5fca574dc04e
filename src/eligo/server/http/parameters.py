"""Parameters of calls: what callers say in a query or a body, as the rules take it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from eligo.errors import shorten
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall
from eligo.server.rules.prepared import Wishes
from eligo.server.rules.tickets import Request
from eligo.server.schema import AskWords

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
            raise RefusedError(404, f"unknown workflow {shorten(before)!r} in 'before' (start again without it)")
        ids = ids[: ids.index(before)]
    matching = [id for id in ids if state is None or states[id] == state]
    if not limit:
        return matching, None
    newest = matching[: -limit - 1 : -1]
    return newest, newest[-1] if len(matching) > limit else None


def read_request(ask: AskWords) -> Request:
    """The request for work that a client sent."""
    memory = float("inf") if ask.memory is None else ask.memory
    labels, files = frozenset(ask.labels), frozenset(ask.files)
    return Request(ask.count, ask.size, ask.seconds, ask.wait, ask.cores, memory, labels, files)


def read_wishes(call: ApiCall) -> Wishes:
    """What the owner of a submitted workflow asks for, from the query."""
    kinds = {"share": float, "timeout": float, "quorum": int, "retries": int, "copies": int}
    unknown = set(call.query) - WISHES - {"format"}
    if unknown:
        raise RefusedError(400, f"unknown parameter {min(unknown)!r}")
    settings: dict[str, Any] = {name: value for name, value in call.query.items() if name in WISHES}
    for name, kind in kinds.items():
        if name in settings:
            try:
                settings[name] = kind(settings[name])
            except ValueError:
                raise RefusedError(400, f"{name} must be a number, got {settings[name][:20]!r}") from None
    for name in {"files", "inside", "rules", "signed", "locality", "grow"} & settings.keys():
        settings[name] = settings[name] != "false"
    return Wishes(owner=call.caller.name, **settings)
