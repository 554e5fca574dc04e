"""Who did what when: the attempts of a stretch of time by worker, those too short to be seen joined."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.pages.attempts import ROW, UNUSED, WENT_WELL
from eligo.pages.dag_drawing import numbered
from eligo.pages.watched import Watched

MOST_BARS = 2_000
MIXED = -1


def gantt(
    watched: Watched, begin: float | None = None, end: float | None = None, most: int = MOST_BARS
) -> dict[str, Any]:
    """The bars of each worker; where there are more than so many attempts, neighbours share a bar."""
    rows, clients = _rows(watched)
    begin = (watched.spans[0][0] if watched.spans else watched.at) if begin is None else begin
    last = watched.at if watched.under_way else float(rows["ended"].max(initial=begin))
    end = max(begin, last if end is None else end)
    rows = rows[(rows["ended"] >= begin) & (rows["began"] <= end)]
    names = [watched.name_of(client) for client in clients]
    ranked = sorted(range(len(names)), key=lambda place: (len(names[place]), names[place]))
    worker = np.zeros(len(names), np.int64)
    worker[ranked] = np.arange(len(names))
    kinds, kind = numbered(watched.kinds)
    bars = _bars(watched, rows, worker[rows["client"]], kind[rows["task"]], (begin, end, most))
    worked = np.minimum(rows["ended"], end) - np.maximum(rows["began"], begin)
    busy = np.bincount(worker[rows["client"]], worked, len(names)) / max(end - begin, 1e-9)
    workers = [
        {"name": names[place], "busy": round(min(1.0, float(share)), 4)}
        for place, share in zip(ranked, busy, strict=True)
    ]
    merged = sum(bar[5] for bar in bars if bar[5] > 1)
    return {
        "begin": begin, "end": end, "workers": workers, "kinds": kinds, "bars": bars, "attempts": len(rows),
        "merged": merged,
    }  # fmt: skip


def _rows(watched: Watched) -> tuple[NDArray[np.void], list[str]]:
    """Every attempt, those under way among them, and who the clients are."""
    attempts = watched.attempts
    rows, clients = attempts.rows, list(attempts.clients)  # in this order: more may come meanwhile
    numbers = {client: place for place, client in enumerate(clients)}
    running = []
    for one in watched.trying.values():
        if one.client not in numbers:
            numbers[one.client] = len(clients)
            clients.append(one.client)
        running.append((one.task, one.attempt, numbers[one.client], WENT_WELL, 0, 0, one.since, watched.at))
    return np.concatenate([rows, np.array(running, ROW)]), clients


def _bars(
    watched: Watched, rows: NDArray[np.void], worker: NDArray[np.int64], kind: NDArray[np.int64],
    bounds: tuple[float, float, int],
) -> list[list[Any]]:  # fmt: skip
    if not len(rows):
        return []
    begin, end, most = bounds
    order = np.lexsort((rows["began"], worker))
    rows, worker, kind = rows[order], worker[order], kind[order]
    first = np.ones(len(rows), np.bool_)
    if len(rows) > most:
        columns = max(1, most // (int(worker.max()) + 1))
        column = (rows["began"] - begin) * columns // max(end - begin, 1e-9)
        first[1:] = (np.diff(worker) != 0) | (np.diff(column) != 0)
    starts = np.flatnonzero(first)
    low, high = np.minimum.reduceat(kind, starts), np.maximum.reduceat(kind, starts)
    bad = np.maximum.reduceat((rows["outcome"] != WENT_WELL) & (rows["outcome"] != UNUSED), starts)
    bars = zip(
        worker[starts].tolist(), rows["began"][starts].tolist(), np.maximum.reduceat(rows["ended"], starts).tolist(),
        np.where(low == high, low, MIXED).tolist(), bad.astype(int).tolist(),
        np.diff(np.append(starts, len(rows))).tolist(), rows["task"][starts].tolist(), strict=True,
    )  # fmt: skip
    return [[*fields, watched.labels[task]] for *fields, task in bars]
