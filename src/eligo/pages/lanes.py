"""The lanes of a timeline, one for each task that a worker runs at a time, and the share of time in which they were busy."""

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.pages.watched import ROW, UNDERWAY, Watched
from eligo.rows import distinct

Rows = NDArray[np.void]
TOUCHING = 0.001  # seconds by which clocks may let one attempt end after the next one on its lane began


def all_attempts(watched: Watched) -> tuple[Rows, list[str]]:
    """Every attempt, including those under way, and the names of the clients."""
    attempts = watched.attempts
    rows, clients = attempts.rows, list(attempts.clients)  # in this order, since another thread may add more
    numbers = {client: place for place, client in enumerate(clients)}
    running = []
    for one in watched.trying.values():
        if one.client not in numbers:
            numbers[one.client] = len(clients)
            clients.append(one.client)
        running.append((one.task, one.attempt, numbers[one.client], UNDERWAY, 0, 0, one.since, watched.at))
    return np.concatenate([rows, np.array(running, ROW)]), clients


def lanes_of(rows: Rows) -> NDArray[np.int64]:
    """For each attempt, its lane among those of its client, from 0: attempts on one lane do not overlap.

    >>> rows = np.zeros(4, ROW)
    >>> rows["began"], rows["ended"], rows["client"] = [0, 1, 2, 2], [2, 3, 4, 4], [0, 0, 0, 1]
    >>> lanes_of(rows).tolist()
    [0, 1, 0, 0]
    """
    lane, order = np.zeros(len(rows), np.int64), np.lexsort((rows["began"], rows["client"]))
    client, began, ended = (rows[name][order] for name in ("client", "began", "ended"))
    overlaps = (client[1:] == client[:-1]) & (began[1:] < ended[:-1] - TOUCHING)
    for several in distinct(client[1:][overlaps]).tolist():
        places = order[client == several]
        lane[places] = list(
            _first_free(zip(rows["began"][places].tolist(), rows["ended"][places].tolist(), strict=True))
        )
    return lane


def _first_free(spans: Iterable[tuple[float, float]]) -> Iterable[int]:
    """The lane of each span, in the order of their begins: the first one that is free."""
    taken, free, new = list[tuple[float, int]](), list[int](), count()
    for began, ended in spans:
        while taken and taken[0][0] <= began + TOUCHING:
            heappush(free, heappop(taken)[1])
        lane = heappop(free) if free else next(new)
        heappush(taken, (ended, lane))
        yield lane


class Lane(NamedTuple):
    """A lane: the number of its client, its place among those of the client, and the share of time in which it was busy."""

    client: int
    place: int
    busy: float


class Busy(NamedTuple):
    """The lanes of all attempts of a time span, the lane of each attempt, and the share of all lanes' time."""

    lanes: list[Lane]
    lane: NDArray[np.int64]
    share: float | None


def busy_lanes(watched: Watched, rows: Rows, clients: list[str], begin: float, end: float) -> Busy:
    """How busy workers were between two times, with these attempts; workers without any count as far as they are known."""
    place = lanes_of(rows)
    pairs = rows["client"].astype(np.int64) * (int(place.max(initial=0)) + 1) + place
    pair, lane = np.unique(pairs, return_inverse=True)
    first = np.zeros(len(pair), np.int64)
    first[lane[::-1]] = np.arange(len(rows))[::-1]
    worked = np.bincount(
        lane, np.maximum(0.0, np.minimum(rows["ended"], end) - np.maximum(rows["began"], begin)), len(pair)
    )
    there = watched.presence(begin, end)
    owners = rows["client"][first].tolist()
    spans = [there.get(clients[owner], 0.0) for owner in owners]
    lanes = [
        Lane(owner, spot, _share(float(seconds), span))
        for owner, spot, seconds, span in zip(owners, place[first].tolist(), worked, spans, strict=True)
    ]
    several = Counter({clients[owner]: number for owner, number in Counter(owners).items()})
    total = watched.worker_seconds(begin, end, several)
    return Busy(lanes, lane, _share(float(worked.sum()), total) if len(rows) and total > 0 else None)


def _share(seconds: float, span: float) -> float:
    return round(min(1.0, seconds / span), 4) if span > 0 else 0.0


def busy_share(watched: Watched) -> float | None:
    """The share of the workers' time, from the first attempt to now or the end, in which they were running tasks."""
    if not len(watched.attempts):
        return None
    rows, clients = all_attempts(watched)
    return busy_lanes(watched, rows, clients, *whole_span(watched, rows)).share


def whole_span(watched: Watched, rows: Rows) -> tuple[float, float]:
    """From the first attempt to now, or to the last end of a workflow that is not under way."""
    begin = float(rows["began"].min(initial=watched.at))
    return begin, watched.at if watched.under_way else float(rows["ended"].max(initial=begin))


def names_of(watched: Watched, lanes: list[Lane], clients: list[str]) -> list[str]:
    """The names of lanes: those of the clients, with numbers where a client has several."""
    several: Any = Counter(lane.client for lane in lanes)
    return [
        watched.name_of(clients[lane.client]) + (f" / {lane.place + 1}" if several[lane.client] > 1 else "")
        for lane in lanes
    ]
