"""Parameters of calls: what callers say in a query or a body, as the rules take it."""

from collections.abc import Collection, Iterable
from dataclasses import fields
from heapq import nlargest, nsmallest
from typing import Any, NamedTuple

from eligo.errors import shorten
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall
from eligo.server.rules.prepared import Wishes
from eligo.server.rules.requests import Request
from eligo.server.schema import AskWords

MOST_LISTED = 1_000  # rows in one answer
WISHES = {each.name for each in fields(Wishes)} - {"owner"}


class Row(NamedTuple):
    """A workflow in a list, by which it is sorted and chosen."""

    made: float
    id: str
    state: str


def page_of(call: ApiCall, rows: Collection[Row]) -> tuple[list[str], str | None]:
    """The workflows that are asked for, of all of them, the newest first; the last one, if older ones follow."""
    state, limit = call.query.get("state"), call.number("limit", MOST_LISTED, MOST_LISTED) or MOST_LISTED
    before, last = call.query.get("before"), None
    if before is not None and (last := next((row for row in rows if row.id == before), None)) is None:
        raise RefusedError(404, f"unknown workflow {shorten(before)!r} in 'before' (start again without it)")
    matching = (row for row in rows if (state is None or row.state == state) and (last is None or row[:2] < last[:2]))
    ids = [row.id for row in nlargest(limit + 1, matching)]
    return ids[:limit], ids[limit - 1] if len(ids) > limit else None


def clients_after(call: ApiCall, ids: Iterable[str]) -> tuple[list[str], str | None]:
    """The clients that are asked for, by their ids; where the next page begins."""
    after, limit = call.query.get("after", ""), call.number("limit", MOST_LISTED, MOST_LISTED) or MOST_LISTED
    some = nsmallest(limit + 1, (id for id in ids if id > after))
    return some[:limit], some[limit - 1] if len(some) > limit else None


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
