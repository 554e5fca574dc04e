"""A run over time: the attempts of each worker, the critical path, and the report that shows both."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.errors import counted
from eligo.estimates import lasting
from eligo.pages.lost_time import lost_time_words
from eligo.pages.tables import Query, Stand, stand, table
from eligo.pages.views import last_lines, view
from eligo.pages.watched import ROW, UNUSED, WENT_WELL, Watched
from eligo.plotting.layout import numbered

MOST_LOGS = 1_000  # failed tasks whose last lines of output are in the page
MOST_BARS, MOST_BARS_OF_REPORT = 2_000, 20_000
MIXED = -1


def run_document(watched: Watched) -> dict[str, Any]:
    """All data of the page of a run."""
    return completed(watched, view(watched), stand(watched))


def completed(watched: Watched, summary: dict[str, Any], stood: Stand) -> dict[str, Any]:
    """All data of the page of a run, from its view and the states of its tasks; it may be called in another thread."""
    summary["order"]["words"] += [*chain_words(watched), *lost_time_words(watched)]
    logs = {watched.labels[v]: {"log": last_lines(watched, v)} for v in watched.failed[:MOST_LOGS]}
    return {
        "kind": "run", "title": watched.title, "headline": [summary["headline"]], "view": summary,
        "dag": watched.drawing.document(stood.states), "gantt": gantt(watched, most=MOST_BARS_OF_REPORT),
        "table": table(watched, stood, Query(most=None)), "details": logs,
    }  # fmt: skip


# The attempts of each worker over time


class Window(NamedTuple):
    """The part of a run that is drawn: its begin and end, and the maximum number of bars."""

    begin: float
    end: float
    most: int


def gantt(
    watched: Watched, begin: float | None = None, end: float | None = None, most: int = MOST_BARS
) -> dict[str, Any]:
    """The bars of each worker; if there are more than *most* attempts, neighbours share a bar."""
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
    bars = _bars(watched, rows, worker[rows["client"]], kind[rows["task"]], Window(begin, end, most))
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
    """Every attempt, including those under way, and the names of the clients."""
    attempts = watched.attempts
    rows, clients = attempts.rows, list(attempts.clients)  # in this order, since another thread may add more
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
    window: Window,
) -> list[list[Any]]:  # fmt: skip
    if not len(rows):
        return []
    begin, end, most = window
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


# The critical path


class Link(NamedTuple):
    """An attempt of the chain, by its place, and what it had waited for: "parent", "worker" or "" for nothing."""

    place: int
    after: str


def deciding_chain(watched: Watched) -> list[Link]:
    """The attempts that determined when the last task ended, first to last.

    It goes back from the attempt that ended last, each time to the last end before: of a parent, or on the same worker.
    """
    rows, ends = watched.attempts.rows, watched.attempts.rows["ended"].tolist()
    good = {int(task): place for place, task in enumerate(rows["task"]) if rows["outcome"][place] == WENT_WELL}
    before, links, passed = _before(watched), list[Link](), set[int]()
    last = max(good.values(), key=ends.__getitem__, default=None)
    while last is not None:
        parents = watched.flow.dag.parents_of(int(rows["task"][last])).tolist()
        waits = [("parent", good[u]) for u in parents if u in good]
        waits += [("worker", before[last])] if last in before else []
        passed.add(last)  # a clock that was set back could make the chain a cycle
        waits = [(what, other) for what, other in waits if other not in passed and ends[other] <= ends[last]]
        what, cause = max(waits, key=lambda wait: (ends[wait[1]], wait[0] == "parent"), default=("", None))
        links.append(Link(last, what))
        last = cause
    return links[::-1]


def _before(watched: Watched) -> dict[int, int]:
    """For every attempt, the previous attempt of its worker in the same session."""
    rows, latest, before = watched.attempts.rows, dict[int, int](), dict[int, int]()
    starts = [begin for begin, _ in watched.spans]
    for place in rows["began"].argsort(kind="stable").tolist():
        client, began = int(rows["client"][place]), rows["began"][place]
        other = latest.get(client)
        if other is not None and not any(rows["began"][other] < start <= began for start in starts):
            before[place] = other
        latest[client] = place
    return before


def chain_words(watched: Watched) -> list[str]:
    """What determined the end of a workflow that has ended, in sentences."""
    links = [] if watched.under_way else deciding_chain(watched)
    if not links:
        return []
    rows = watched.attempts.rows[[link.place for link in links]]
    share = f"{lasting(float((rows['ended'] - rows['began']).sum()))} of {lasting(watched.seconds)}"
    sentence = f"The critical path has {counted(len(links), 'task')}, which took {share}."
    waits = sum(link.after == "worker" for link in links)
    if not waits:
        return [sentence, "None of them waited for a worker: only shorter tasks would have saved time."]
    few = " slightly" if 2 * waits < len(links) else ""
    return [sentence, f"{counted(waits, 'task')} waited for a worker while ready: more workers would have helped{few}."]
