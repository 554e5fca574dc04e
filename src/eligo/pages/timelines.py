"""A run over time: the attempts of each worker, the critical path, and the report that shows both."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.errors import counted
from eligo.estimates import lasting
from eligo.pages.lanes import all_attempts, busy_lanes, names_of, whole_span
from eligo.pages.lost_time import lost_time_words
from eligo.pages.tables import Query, Stand, stand, table
from eligo.pages.views import last_lines, view
from eligo.pages.watched import WENT_WELL, Watched
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
    """The bars of each lane; if there are more than *most* attempts, neighbours share a bar."""
    rows, clients = all_attempts(watched)
    first, last = whole_span(watched, rows)
    begin = first if begin is None else begin
    end = max(begin, last if end is None else end)
    busy = busy_lanes(watched, rows, clients, begin, end)
    names = names_of(watched, busy.lanes, clients)
    ranked = sorted(range(len(names)), key=lambda place: (len(names[place]), names[place]))
    row = np.zeros(len(names), np.int64)
    row[ranked] = np.arange(len(names))
    inside = (rows["ended"] >= begin) & (rows["began"] <= end)
    kinds, kind = numbered(watched.kinds)
    attempts = rows[inside]
    bars = _bars(watched, attempts, row[busy.lane][inside], kind[attempts["task"]], Window(begin, end, most))
    workers = [{"name": names[place], "busy": busy.lanes[place].busy} for place in ranked]
    merged = sum(bar[5] for bar in bars if bar[5] > 1)
    return {
        "begin": begin, "end": end, "workers": workers, "kinds": kinds, "bars": bars, "attempts": len(attempts),
        "merged": merged, "busy": busy.share, "path": _path_bars(watched, row[busy.lane]),
    }  # fmt: skip


def _path_bars(watched: Watched, row: NDArray[np.int64]) -> list[list[Any]]:
    """The lane, begin and end of each attempt of the critical path, and what it had waited for, once a workflow has ended."""
    if watched.under_way or len(watched.attempts) > MOST_BARS_OF_REPORT:
        return []
    attempts = watched.attempts.rows
    return [
        [int(row[place]), float(attempts["began"][place]), float(attempts["ended"][place]), after]
        for place, after in deciding_chain(watched)
    ]


#: how a bar is marked, by the outcome of its attempt (done, failed, lost, not needed, running); a bar of several: the highest
MARKS = np.array([0, 3, 2, 0, 1])


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
    bars = zip(
        worker[starts].tolist(), rows["began"][starts].tolist(), np.maximum.reduceat(rows["ended"], starts).tolist(),
        np.where(low == high, low, MIXED).tolist(), np.maximum.reduceat(MARKS[rows["outcome"]], starts).tolist(),
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
