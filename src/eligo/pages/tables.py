"""The tasks of a workflow as a table: searched, sorted, one part at a time."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError
from eligo.execution import ALLOCATED, ELIGIBLE, EXECUTED, FAILED, HELD
from eligo.pages.watched import NOTHING, Watched
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING, RUNNING, STATES

COLUMNS = ("place", "task", "kind", "state", "client", "began", "took", "expected", "tries", "code", "memory")
MOST_ROWS = 1_000


class Query(NamedTuple):
    """A request for tasks: which ones, in which order, and which part of them; *most* None: all."""

    search: str = ""
    state: str = ""
    kind: str = ""
    sort: str = "place"
    descending: bool = False
    offset: int = 0
    most: int | None = 100


class Stand(NamedTuple):
    """The states of all tasks at one moment, so that another thread can make a table."""

    states: NDArray[np.int8]
    last: NDArray[np.int64]
    rows: NDArray[np.void]
    tries: dict[int, int]


def stand(watched: Watched) -> Stand:
    """The current states."""
    attempts = watched.attempts
    tries = {task: len(places) for task, places in attempts.tries.items()}
    return Stand(states_of(watched), attempts.last_places(len(watched.flow)), attempts.rows, tries)


def states_of(watched: Watched) -> NDArray[np.int8]:
    """The index in `STATES` of every task's state."""
    codes = np.frombuffer(bytes(watched.execution.codes), np.uint8)
    states = np.full(len(codes), STATES.index(PENDING), np.int8)
    out = RUNNING if watched.under_way else READY
    for code, state in ((ELIGIBLE, READY), (ALLOCATED, out), (EXECUTED, DONE), (FAILED, BAD)):
        states[codes == code] = STATES.index(state)
    if watched.under_way:
        states[codes == HELD] = STATES.index(RUNNING)
    again = [v for v in watched.again if codes[v] == FAILED]
    states[again] = STATES.index(RETRYING)
    states[watched.blocked] = STATES.index(BLOCKED)
    return states


def table(watched: Watched, stood: Stand, query: Query) -> dict[str, Any]:
    """The requested part of the table."""
    chosen = _sorted(watched, stood, query, _matching(watched, stood, query))
    most = len(chosen) if query.most is None else query.most
    page = chosen[query.offset : query.offset + most].tolist()
    rows = [_row(watched, stood, v) for v in page]
    return {"total": len(chosen), "tasks": len(watched.flow), "columns": list(COLUMNS), "rows": rows}


def _matching(watched: Watched, stood: Stand, query: Query) -> NDArray[np.int64]:
    wanted = np.ones(len(watched.flow), np.bool_)
    if query.state:
        if query.state not in STATES:
            raise InputError(f"unknown state {query.state!r}: choose one of {', '.join(STATES)}")
        wanted &= stood.states == STATES.index(query.state)
    matches = np.flatnonzero(wanted)
    if query.kind:
        matches = np.array([v for v in matches.tolist() if watched.kinds[v] == query.kind], np.int64)
    if query.search:
        part, labels = query.search.casefold(), watched.labels
        matches = np.array([v for v in matches.tolist() if part in labels[v].casefold()], np.int64)
    return matches


def _sorted(watched: Watched, stood: Stand, query: Query, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The chosen tasks in the requested order; those without a value come last."""
    if query.sort not in COLUMNS:
        raise InputError(f"unknown column {query.sort!r}: choose one of {', '.join(COLUMNS)}")
    if query.sort in {"task", "kind", "client"}:
        texts = [_text(watched, stood, query.sort, v) for v in chosen.tolist()]
        order = sorted(range(len(texts)), key=lambda place: texts[place] or "", reverse=query.descending)
        unknown = np.array([texts[place] is None for place in order], np.bool_)
        placed = chosen[np.array(order, np.int64)]
    else:
        values = _values(watched, stood, query.sort)[chosen]
        order_of = np.argsort(-values if query.descending else values, kind="stable")
        placed, unknown = chosen[order_of], np.isnan(values[order_of])
    return np.concatenate([placed[~unknown], placed[unknown]])


def _text(watched: Watched, stood: Stand, column: str, v: int) -> str | None:
    if column == "client":
        place = int(stood.last[v])
        return None if place < 0 else watched.attempts.clients[stood.rows["client"][place]]
    return watched.labels[v] if column == "task" else watched.kinds[v]


def _values(watched: Watched, stood: Stand, column: str) -> NDArray[np.float64]:
    """A column of numbers; NaN if there is no value."""
    size, estimates = len(watched.flow), watched.expected
    if column == "place":
        return np.arange(size, dtype=np.float64) if watched.place is None else watched.place.astype(np.float64)
    if column == "state":
        return stood.states.astype(np.float64)
    if column == "expected":
        return np.where(estimates.own, estimates.seconds, np.nan)
    tried = stood.last >= 0
    result = np.full(size, 0.0 if column == "tries" else np.nan)
    rows = stood.rows[stood.last[tried]]
    if column == "tries":
        result[tried] = 1.0
        result[list(stood.tries)] = list(stood.tries.values())
    elif column == "took":
        result[tried] = rows["ended"] - rows["began"]
    else:
        values = rows[column].astype(np.float64)
        result[tried] = np.where(values == NOTHING, np.nan, values)
    return result


def _row(watched: Watched, stood: Stand, v: int) -> list[Any]:
    place = None if watched.place is None else int(watched.place[v]) + 1
    estimates, last = watched.expected, int(stood.last[v])
    expected = float(estimates.seconds[v]) if estimates.own[v] else None
    first = [place, watched.labels[v], watched.kinds[v], STATES[stood.states[v]]]
    if last < 0:
        return [*first, None, None, None, expected, 0, None, None]
    row = stood.rows[last]
    client = watched.name_of(watched.attempts.clients[row["client"]])
    took = round(max(0.0, float(row["ended"] - row["began"])), 3)
    code, memory = (None if row[what] == NOTHING else int(row[what]) for what in ("code", "memory"))
    return [*first, client, float(row["began"]), took, expected, stood.tries.get(v, 1), code, memory]
