"""What the workers of a run spent their time on, how far the run was from a lower bound, and what would have been faster."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from eligo.errors import counted, shorten
from eligo.estimates import lasting
from eligo.finishing import window_bound
from eligo.pages.choices import begins_of, ready_times_of
from eligo.pages.lanes import all_attempts, lanes_of
from eligo.pages.watched import WENT_WELL, WENT_WRONG, Watched
from eligo.pools import Floats, Pool
from eligo.prioritising import numbered_order
from eligo.schedules import Terms, terms_of
from eligo.workflow import Task, Workflow

MOST_SIMULATED = 20_000  # tasks for which other schedules are simulated
MORE = 2  # workers that are added in one of them


class LostTime(NamedTuple):
    """The seconds of all workers: on results and failures, on attempts without use, and idle for three reasons."""

    useful: float
    failed: float
    #: attempts that were lost with their worker, or no longer needed
    unused: float
    #: no task was ready
    starved: float
    #: all tasks had started, and the last ones were running
    ending: float
    #: tasks were ready, but did not start
    dispatch: float

    @property
    def total(self) -> float:
        """The time for which workers were present."""
        return sum(self)


#: what each part is, in words
PARTS = (
    "on results", "on failed attempts", "on lost or unneeded attempts", "idle, because no task was ready",
    "idle at the end, while the last tasks ran", "idle between a task becoming ready and its start",
)  # fmt: skip


def lost_time(watched: Watched) -> LostTime:
    """What the workers spent their time on."""
    rows = watched.attempts.rows
    took, outcomes = rows["ended"] - rows["began"], rows["outcome"]
    useful, failed = (float(took[outcomes == outcome].sum()) for outcome in (WENT_WELL, WENT_WRONG))
    return LostTime(useful, failed, float(took.sum()) - useful - failed, *_idle_time(watched))


def _idle_time(watched: Watched) -> tuple[float, float, float]:
    """The idle seconds of workers: without a ready task, after the last start, and beside ready tasks."""
    rows, crews = watched.attempts.rows, crews_of(watched)
    if not len(rows) or not crews:
        return 0.0, 0.0, 0.0
    came, left, counts = np.array(crews, np.float64).T
    ready, start = _waits(watched)
    times = np.concatenate([came, left, rows["began"], rows["ended"], ready, start])
    ones, idle_change = np.ones(len(rows)), np.zeros(2 * len(ready))
    idle_change = np.concatenate([counts, -counts, -ones, ones, idle_change])
    queue_change = np.concatenate([np.zeros(2 * (len(counts) + len(rows))), np.ones(len(ready)), -np.ones(len(ready))])
    order = np.argsort(times, kind="stable")
    length = np.diff(times[order], append=times.max())
    idle, queue = np.maximum(0.0, np.cumsum(idle_change[order])), np.cumsum(queue_change[order])
    dispatch = np.minimum(idle, np.maximum(0.0, queue))
    at_end = times[order] >= rows["began"].max()
    starved = (idle - dispatch) * length
    return float(starved[~at_end].sum()), float(starved[at_end].sum()), float((dispatch * length).sum())


def _waits(watched: Watched) -> tuple[Floats, Floats]:
    """For every task that started, when it became ready and when it first started, within one session."""
    ready, start = ready_times_of(watched), begins_of(watched)
    started = np.isfinite(start) & np.isfinite(ready)
    ready, start = ready[started], start[started]
    sessions = np.array([begin for begin, _ in watched.spans] or [0.0])
    latest = sessions[np.maximum(0, np.searchsorted(sessions, start, "right") - 1)]
    return np.minimum(np.maximum(ready, latest), start), start


def crews_of(watched: Watched) -> list[tuple[float, float, int]]:
    """From when to when there were how many workers: each client as often as it ran tasks at a time, if no more is known."""
    if watched.crews is not None:
        return list(watched.crews)
    rows, _ = all_attempts(watched)
    lanes, order = lanes_of(rows), np.argsort(rows["client"], kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(rows["client"][order])) + 1) if len(rows) else []
    return [
        (float(rows["began"][group].min()), float(rows["ended"][group].max()), int(lanes[group].max()) + 1)
        for group in groups
    ]


def workers_of(watched: Watched) -> int:
    """The largest number of workers at a time; if they came and went, of all."""
    counts = [count for *_, count in crews_of(watched)]
    return (sum(counts) if watched.crews is None else max(counts, default=0)) if counts else 0


def lost_time_words(watched: Watched) -> list[str]:
    """The same for a workflow that has ended, and what would have been faster, in sentences."""
    if watched.under_way or not len(watched.attempts):
        return []
    parts = lost_time(watched)
    shares = [f"{100 * part / parts.total:.0f} % {words}" for part, words in _largest_first(parts)]
    return [f"Of {lasting(parts.total)} of workers' time: {', '.join(shares)}.", *_alternative_words(watched)]


def _largest_first(parts: LostTime) -> Iterator[tuple[float, str]]:
    """The parts that are at least half a per cent, the largest first."""
    ranked = sorted(zip(parts, PARTS, strict=True), key=lambda pair: -pair[0])
    return ((part, words) for part, words in ranked if part >= 0.005 * parts.total)


def actual_seconds(watched: Watched) -> Floats | None:
    """The run time of each task, by its successful attempt; None if some task has none, or comes from a cache."""
    rows = watched.attempts.rows
    good = (rows["outcome"] == WENT_WELL) & (rows["client"] != watched.cache_client)
    seconds = np.full(len(watched.flow), np.nan)
    seconds[rows["task"][good]] = (rows["ended"] - rows["began"])[good]
    return None if np.isnan(seconds).any() or not len(seconds) else seconds


def actual_terms(watched: Watched) -> Terms | None:
    """The run times and the workers of a run in which every task was executed; None for any other."""
    seconds, workers = actual_seconds(watched), workers_of(watched)
    return None if seconds is None or not workers else terms_of(watched.flow.dag, seconds, workers)


def _alternative_words(watched: Watched) -> Iterator[str]:
    """How far the run was from the lower bound, and simulated finishes with another order, more workers and a faster task."""
    terms = actual_terms(watched)
    if terms is None:
        return
    bound, workers = window_bound(terms.dag, terms.seconds, terms.pool).seconds, terms.pool.size
    on = f"on {counted(workers, 'worker')} with these run times"
    yield f"It took {lasting(watched.seconds)}; no order {on} can take less than {lasting(bound)}."
    if len(terms.dag) > MOST_SIMULATED:
        return
    longest = int(
        (terms.seconds * (terms.dag.longest_paths(terms.seconds, up=True) + terms.seconds + terms.tails)).argmax()
    )
    half = np.where(np.arange(len(terms.dag)) == longest, terms.seconds / 2, terms.seconds)
    ends = (
        ("`finish`", played_finish(terms, "finish")),
        ("`fifo`", played_finish(terms, "fifo")),
        (f"{MORE} more workers", played_finish(Terms(terms.dag, terms.seconds, Pool.of(workers + MORE)), "finish")),
        (
            f"{shorten(watched.labels[longest])} in half the time",
            played_finish(Terms(terms.dag, half, terms.pool), "finish"),
        ),
    )
    yield f"Simulated without failures and dispatch: {', '.join(f'{name} {lasting(end)}' for name, end in ends)}."


def played_finish(terms: Terms, name: str) -> float:
    """The finish of a policy that knows these run times."""
    details = {v: Task(name=v, seconds=float(time)) for v, time in zip(terms.dag.tasks, terms.seconds, strict=True)}
    return terms.listed(numbered_order(Workflow(terms.dag, details), name)).makespan
