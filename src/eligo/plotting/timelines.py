"""What went on when: how many tasks ran and waited, and what each worker did, drawn from what was seen of a run."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.estimating import kind_of
from eligo.plotting.labels import counted
from eligo.plotting.vectors import Bar, Line, gantt
from eligo.running.seen import Seen
from eligo.workflow import Task

Floats = NDArray[np.float64]

MOST_BARS, MOST_ROWS = 2_000, 40  # tasks and workers that are drawn one by one
CELLS = 300  # of a row, where they are not
COLOURED = 7  # kinds that have a colour each; the others share one
FAILED, OTHERS = "bad", "other"

#: how a length of time is written
Lasting = Callable[[float], str]


class Times(NamedTuple):
    """The attempts of a run in columns, in seconds since it began."""

    task: NDArray[np.int64]
    began: Floats
    ended: Floats
    good: NDArray[np.bool_]
    clients: list[str]


def times_of(seen: Seen) -> Times:
    """The attempts that have ended, and those under way as far as they have come."""
    rows = [(a.task, a.began, a.ended, a.failure is None, a.client) for a in seen.attempts]
    rows += [(t.task, t.since, seen.at, True, t.client) for t in seen.trying.values()]
    task, began, ended, good, clients = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * 5
    columns = (np.array(task, np.int64), seen.moment(began), seen.moment(ended), np.array(good, np.bool_))
    return Times(*columns, clients)


def busy_lines(seen: Seen, times: Times) -> list[Line]:
    """How many tasks ran, and how many were ready and waited for a worker, over time."""
    waited = times.began - _ready_since(seen, times) > 0
    since = _ready_since(seen, times)[waited]
    return [
        Line("running", "seen", *_count(times.began, times.ended), steps=True),
        Line("ready, waiting for a worker", "queue", *_count(since, times.began[waited]), steps=True),
    ]


def _ready_since(seen: Seen, times: Times) -> Floats:
    """For every attempt, since when its task could have run: the end of its last parent, or of the attempt before it."""
    dag, ends = seen.flow.dag, np.zeros(len(seen.flow))
    ends[times.task[times.good]] = times.ended[times.good]
    since = np.zeros(len(dag))
    np.maximum.at(since, dag.child, ends[dag.tails])
    found, last = since[times.task], dict[int, int]()
    for place, task in enumerate(times.task.tolist()):
        if task in last:  # what was tried before waited for a time to be tried again, not for a worker
            found[place] = times.began[place]
        last[task] = place
    return found


def _count(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """How many of the spans are open, whenever that changes."""
    at = np.concatenate([begin, end])
    change = np.concatenate([np.ones(len(begin)), -np.ones(len(end))])
    order = np.lexsort((-change, at))
    moments, first = np.unique(at[order], return_index=True)
    open_now = np.cumsum(change[order])[np.append(first[1:], len(order)) - 1] if len(order) else np.zeros(0)
    return np.concatenate([[0.0], moments]), np.concatenate([[0.0], open_now])


def busy_share(seen: Seen, times: Times) -> float:
    """Which share of their time workers were at tasks."""
    given = sum(
        session.workers * (end - begin) for session, (begin, end) in zip(seen.sessions, seen.spans, strict=True)
    )
    return min(1.0, float((times.ended - times.began).sum()) / given) if given else 0.0


def workers_chart(seen: Seen, times: Times, lasting: Lasting) -> tuple[str, str]:
    """The Gantt chart, and what has to be said of it."""
    names = sorted(set(times.clients), key=_natural)
    row = {name: place for place, name in enumerate(names)}
    rows = np.array([row[client] for client in times.clients], np.int64)
    if len(times.task) <= MOST_BARS and len(names) <= MOST_ROWS:
        styles, legend = _styles(seen, times)
        return gantt(names, _each(seen, times, rows, styles, lasting), seen.seconds, legend, lasting), ""
    merged = -(-len(names) // MOST_ROWS)
    labels = names if merged == 1 else [f"{part[0]} + {len(part) - 1:,}" for part in _chunks(names, merged)]
    bars = _cells(seen, times, rows // merged, np.bincount(np.arange(len(names)) // merged))
    what = f"a row stands for {counted(merged, 'worker')}" if merged > 1 else "a row is a worker"
    said = (
        f"{counted(len(times.task), 'attempt')} by {counted(len(names), 'worker')} are too many to be drawn one by one:"
        f" {what}, the stronger its colour the busier it was."
    )
    legend = [("busy", "seen"), *([] if times.good.all() else [("tasks failed", FAILED)])]
    return gantt(labels, bars, seen.seconds, legend, lasting), said


def _chunks(names: list[str], size: int) -> list[list[str]]:
    return [names[place : place + size] for place in range(0, len(names), size)]


def _natural(name: str) -> tuple[str, int, str]:
    """Slot 10 comes after slot 9."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0), name


def _styles(seen: Seen, times: Times) -> tuple[list[str], list[tuple[str, str]]]:
    """For every task the colour of its kind, where that is one of those that took longest; and what the colours mean."""
    kinds, taken = seen.kinds, Counter[str]()
    if len(set(kinds)) == 1:  # all run one program: their names tell more
        kinds = [kind_of(Task(name=label)) for label in seen.labels]
    for task, seconds in zip(times.task.tolist(), (times.ended - times.began).tolist(), strict=True):
        taken[kinds[task]] += seconds
    most = {kind: f"k{place}" for place, (kind, _) in enumerate(taken.most_common(COLOURED))}
    legend = [*most.items()]
    legend += [(counted(len(taken) - len(most), "other kind"), OTHERS)] if len(taken) > len(most) else []
    legend += [] if times.good.all() else [("failed", FAILED)]
    return [most.get(kind, OTHERS) for kind in kinds], legend


def _each(seen: Seen, times: Times, rows: NDArray[np.int64], styles: list[str], lasting: Lasting) -> Iterator[Bar]:
    columns = (times.task, rows, times.began, times.ended, times.good)
    for task, row, began, ended, good in zip(*(column.tolist() for column in columns), strict=True):
        style = styles[task] if good else FAILED
        when = f"{lasting(round(ended - began, 2))}, from {lasting(round(began, 2))} on"
        said = f"{seen.labels[task]}: {when}{'' if good else ', failed'}"
        yield Bar(row, began, ended, style, said)


def _cells(seen: Seen, times: Times, rows: NDArray[np.int64], workers: NDArray[np.int64]) -> Iterator[Bar]:
    """How busy rows were in each of many short times, and where tasks failed."""
    wide = (seen.seconds or 1.0) / CELLS
    busy, bad = np.zeros((len(workers), CELLS + 1)), np.zeros((len(workers), CELLS), np.bool_)
    first = np.minimum((times.began / wide).astype(np.int64), CELLS - 1)
    last = np.minimum((times.ended / wide).astype(np.int64), CELLS - 1)
    np.add.at(busy, (rows, first), wide * (first + 1) - times.began)  # as if each went on to the end ...
    np.add.at(busy, (rows, first + 1), times.began - wide * first)
    np.add.at(busy, (rows, last), -(wide * (last + 1) - times.ended))  # ... less what came after its own
    np.add.at(busy, (rows, last + 1), -(times.ended - wide * last))
    bad[rows[~times.good], last[~times.good]] = True
    share = np.clip(np.cumsum(busy, axis=1)[:, :CELLS] / (wide * workers[:, None]), 0.0, 1.0)
    for row, cell in zip(*(places.tolist() for places in np.nonzero((share > 0.005) | bad)), strict=True):
        style, full = (FAILED, 1.0) if bad[row, cell] else ("seen", float(share[row, cell]))
        yield Bar(row, cell * wide, (cell + 1) * wide, style, "", round(full, 2))
