"""Estimates the remaining time of a run as a range, from known run times and those of finished tasks."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.estimating import all_kinds, estimate, lasting, stem
from eligo.kernels.graph import longest_after
from eligo.workflow import Workflow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 3  # finished tasks required for an estimate if no run times were known
#: relative errors of run times: of a task itself, of tasks of its kind and name, of its kind, and of all tasks
OWN, ALIKE, KIND, ANY = 0.1, 0.2, 0.4, 0.5
LATE = 0.1  # minimum remaining time of a task that exceeds its estimate, as a share of its time so far


class Left(NamedTuple):
    """Lower and upper estimate of the remaining seconds of a run."""

    least: float
    most: float


class Forecast:
    """Learns run times while a workflow runs.

    >>> from eligo.dag import Dag
    >>> from eligo.workflow import Task
    >>> flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, seconds=10.0) for name in "ab"})
    >>> Forecast(flow).left([0, 1], {0: 4.0}, 2)
    Left(least=14.4, most=17.6)
    """

    def __init__(self, flow: Workflow) -> None:
        self._flow = flow
        self._learned: list[tuple[int, float]] = []

    @cached_property
    def _stated(self) -> Floats:
        """The stated run times of tasks; NaN where there is none."""
        estimates = estimate(self._flow)
        return np.where(estimates.own, estimates.seconds, np.nan)

    @cached_property
    def _groups(self) -> tuple[Ints, Ints]:
        """For every task, the number of its kind and name without digits, and that of its kind."""
        alike, kinds = dict[tuple[str, str], int](), dict[str, int]()
        pairs = zip(all_kinds(self._flow), map(stem, self._flow.dag.tasks), strict=True)
        numbers = [(alike.setdefault(pair, len(alike)), kinds.setdefault(pair[0], len(kinds))) for pair in pairs]
        first, second = np.array(numbers, np.int64).reshape(-1, 2).T
        return first, second

    def grown(self, dag: Dag) -> "Forecast":
        """The forecast for the workflow with a grown dag; run times that were learned are kept."""
        if dag is self._flow.dag:
            return self
        forecast = Forecast(self._flow.grown(dag))
        forecast._learned = self._learned
        return forecast

    def learn(self, took: Iterable[tuple[int, float]]) -> None:
        """Record run times in seconds, by task number."""
        self._learned += took

    @property
    def learned(self) -> int:
        """The number of recorded run times."""
        return len(self._learned)

    def believed(self) -> tuple[Floats, Floats]:
        """For every task, its estimated run time and the relative error; NaN if there is no estimate."""
        done = np.array([v for v, _ in self._learned], np.int64)
        took = np.array([seconds for _, seconds in self._learned], np.float64)
        stated = self._stated
        timed = ~np.isnan(stated[done])
        pace = (
            took[timed].sum() / stated[done][timed].sum()
            if timed.sum() >= FEWEST and stated[done][timed].any()
            else 1.0
        )
        mean = took.mean() if len(took) >= FEWEST else np.nan
        ways = [
            (stated * pace, OWN),
            *zip((_means(group, done, took) for group in self._groups), (ALIKE, KIND), strict=True),
        ]
        seconds, off = np.full(len(stated), mean), np.full(len(stated), ANY)
        for times, share in reversed(ways):
            seconds, off = np.where(np.isnan(times), seconds, times), np.where(np.isnan(times), off, share)
        return seconds, off

    def left(self, tasks: Iterable[int], running: Mapping[int, float], workers: int) -> Left | None:
        """Estimate the remaining time of these tasks; *running* has the elapsed seconds of those that run. None: unknown.

        At least the longest path, and at least the work divided by the workers; at most the sum of both.
        """
        dag, rest = self._flow.dag, np.array(list(tasks), np.int64)
        believed, off = self.believed()
        seconds = np.zeros(len(dag))
        seconds[rest] = believed[rest]
        for v, elapsed in running.items():
            seconds[v] = max(seconds[v] - elapsed, LATE * max(seconds[v], elapsed))
        if not len(rest) or np.isnan(seconds).any():
            return Left(0.0, 0.0) if not len(rest) else None
        path = np.zeros(len(dag))
        longest_after(dag.child_ptr, dag.child, np.ascontiguousarray(dag.order[::-1]), seconds, path)
        work, longest = float(seconds.sum()) / workers, float((path + seconds).max())
        error = float((off[rest] * seconds[rest]).sum() / seconds.sum()) if seconds.any() else ANY
        most = work + longest * (1 - 1 / workers)
        return Left(round(max(work, longest) * (1 - error), 3), round(min(most, float(seconds.sum())) * (1 + error), 3))


def _means(group: Ints, done: Ints, took: Floats) -> Floats:
    """For every task, the mean run time of the finished tasks of its group; NaN if there is none."""
    size = int(group.max(initial=-1)) + 1
    count, total = np.bincount(group[done], minlength=size), np.bincount(group[done], took, minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)[group]


def time_left(remaining: Sequence[float] | None) -> str:
    """A range of time in words, with the lower end rounded down and the upper end up.

    >>> time_left(None), time_left(Left(50, 63)), time_left(Left(100, 260))
    ('time left not known yet', '50 s to 1 min 3 s left', '1 min 40 s to 4 min 20 s left')
    >>> time_left(Left(0.2, 0.7)), time_left(Left(3.0, 3.0)), time_left(Left(3000.2, 6599))
    ('at most 1 s left', 'about 3 s left', '50 min to 1 h 50 min left')
    """
    if remaining is None:
        return "time left not known yet"
    least, most = (
        sign * (sign * seconds // _unit(seconds)) * _unit(seconds)
        for sign, seconds in zip((1, -1), remaining, strict=True)
    )
    if least == most:
        return f"about {lasting(most)} left"
    return f"{lasting(least)} to {lasting(most)} left" if least else f"at most {lasting(most)} left"


def _unit(seconds: float) -> int:
    """The unit for rounding: seconds, ten seconds, minutes or ten minutes, since estimates are no more precise."""
    return 1 if seconds < 120 else 10 if seconds < 600 else 60 if seconds < 7200 else 600
