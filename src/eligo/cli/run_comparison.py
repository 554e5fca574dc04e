"""`eligo compare RUN1 RUN2`: two runs side by side, with what their workers spent time on and the times of kinds."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from eligo.cli.output import harmless, print_json, print_lines, table_lines
from eligo.errors import InputError
from eligo.estimates import lasting
from eligo.finishing import window_bound
from eligo.pages.folder_source import WatchedRun
from eligo.pages.lost_time import PARTS, LostTime, actual_terms, lost_time, workers_of
from eligo.pages.sources import run_folder
from eligo.pages.watched import WENT_WELL, Watched
from eligo.running.states import DONE

MOST_KINDS = 20


class RunFigures(NamedTuple):
    """What is compared of one run."""

    run: str
    policy: str
    tasks: int
    done: int
    seconds: float
    #: the lower bound on its workers with its run times; None if not every task was executed
    bound: float | None
    #: the largest number of workers at a time
    workers: int
    parts: LostTime
    #: the mean seconds of a successful attempt at a task of each kind
    kinds: dict[str, float]

    def document(self) -> dict[str, Any]:
        """The same as plain data."""
        return {**self._asdict(), "parts": self.parts._asdict()}


def run_figures(watched: Watched, name: str) -> RunFigures:
    """The figures of a run."""
    terms = actual_terms(watched)
    bound = None if terms is None else window_bound(terms.dag, terms.seconds, terms.pool).seconds
    workers = workers_of(watched)
    done, tasks = watched.counts[DONE], len(watched.flow)
    return RunFigures(
        name, watched.policy, tasks, done, watched.seconds, bound, workers, lost_time(watched), _kind_seconds(watched)
    )


def _kind_seconds(watched: Watched) -> dict[str, float]:
    rows = watched.attempts.rows[watched.attempts.rows["outcome"] == WENT_WELL]
    took: dict[str, list[float]] = {}
    for v, seconds in zip(rows["task"].tolist(), (rows["ended"] - rows["began"]).tolist(), strict=True):
        took.setdefault(watched.kinds[v], []).append(seconds)
    return {kind: float(np.mean(times)) for kind, times in took.items()}


def compare_runs(places: Sequence[str], json: bool) -> None:
    """Print two runs side by side."""
    if len(places) != 2:
        raise InputError(f"two runs can be compared, got {len(places)}")
    one, other = (run_figures(WatchedRun(run_folder(place)), place) for place in places)
    if json:
        print_json({"runs": [one.document(), other.document()]})
    else:
        print_lines(map(harmless, [headline(one, other), ""]))
        print_lines(map(harmless, table_lines([*rows_of(one, other)])))


def headline(one: RunFigures, other: RunFigures) -> str:
    """Which run was faster, and which part of the workers' time changed most."""
    if not one.seconds or not other.seconds:
        return "One of the runs has not started."
    changes = [after - before for before, after in zip(one.parts, other.parts, strict=True)]
    largest = max(range(len(changes)), key=lambda place: abs(changes[place]))
    share = f"{100 * abs(other.seconds / one.seconds - 1):.0f} %"
    than = f"{share} {'longer' if other.seconds > one.seconds else 'less'} than"
    more = "more" if changes[largest] > 0 else "less"
    return (
        f"{other.run} took {than} {one.run}. Largest change: {lasting(abs(changes[largest]))} {more} of workers' time "
        f"{PARTS[largest]}."
    )


def rows_of(one: RunFigures, other: RunFigures) -> Iterator[list[str]]:
    """The rows of the table."""
    yield ["", one.run, other.run]
    yield ["policy", one.policy, other.policy]
    yield ["tasks done", *(f"{run.done:,} of {run.tasks:,}" for run in (one, other))]
    yield ["workers", *(f"{run.workers:,}" for run in (one, other))]
    yield ["time", *(lasting(run.seconds) for run in (one, other))]
    yield ["lower bound", *("unknown" if run.bound is None else lasting(run.bound) for run in (one, other))]
    for place, part in enumerate(PARTS):
        yield [part, *(lasting(run.parts[place]) for run in (one, other))]
    kinds = sorted(
        {*one.kinds} | {*other.kinds}, key=lambda kind: -max(run.kinds.get(kind, 0.0) for run in (one, other))
    )
    for kind in kinds[:MOST_KINDS]:
        yield [f"mean of {kind}", *(lasting(run.kinds[kind]) if kind in run.kinds else "-" for run in (one, other))]
