"""Predicted finishes with a range, for run times that are known of tasks or kinds, or only assumed.

A task without its own time takes what a random earlier task of its kind took; one of an unknown kind, what a task of
a random other kind took. The finish of each such draw is simulated. Runs also differ as a whole, by their inputs and
machines: every finish is spread by a lognormal factor, which is the same for all workflows. Its size was fitted to
traces; docs/howto/how-long.md reports how often the range held on others.
"""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from eligo.estimates import Estimate, all_kinds
from eligo.pools import Floats, Pool
from eligo.rows import Ints
from eligo.schedules import terms_of
from eligo.workflow import Workflow

SHARE = 0.8  # of finishes that the range holds
#: lognormal spread between two runs: of one workflow on the same inputs, and on other inputs
AGAIN, ELSEWHERE = 0.3, 0.8
MOST_DRAWS, MOST_TASKS = 40, 1_000_000  # draws, and tasks in all of them
FACTORS = 101  # quantiles of the spread between runs


class Prediction(NamedTuple):
    """The finish if every task takes its estimated time, and the range that holds 80 % of finishes."""

    seconds: float
    low: float
    high: float

    def document(self) -> dict[str, float]:
        """The same as plain data."""
        return {**self._asdict(), "share": SHARE}


def predicted_finish(flow: Workflow, times: Estimate, pool: Pool, sequence: Ints, seed: int = 0) -> Prediction | None:
    """The finish of an order on a pool with its range; None if no run time is known.

    >>> from eligo.dag import Dag
    >>> from eligo.estimates import estimate
    >>> from eligo.workflow import Timed
    >>> flow = Workflow(Dag.from_parents({"a_1": [], "a_2": [], "a_3": []}), history=(Timed(None, "a", 4.0),))
    >>> found = predicted_finish(flow, estimate(flow), Pool.of(2), flow.dag.order)
    >>> found.seconds, round(found.low, 1), round(found.high, 1)
    (8.0, 2.9, 21.9)
    """
    if times.level == "nothing":
        return None
    terms = terms_of(flow, times.seconds, pool)
    middle = terms.listed(sequence).makespan
    ends = [middle] if times.own.all() else _drawn_finishes(flow, times, pool, sequence, seed)
    spread = AGAIN if times.own.all() else ELSEWHERE
    factors = [NormalDist(0.0, spread).inv_cdf((place + 0.5) / FACTORS) for place in range(FACTORS)]
    low, high = np.quantile(np.outer(ends, np.exp(factors)), ((1 - SHARE) / 2, (1 + SHARE) / 2)).tolist()
    return Prediction(middle, min(low, middle), max(high, middle))


def _drawn_finishes(flow: Workflow, times: Estimate, pool: Pool, sequence: Ints, seed: int) -> list[float]:
    """The finishes of an order with run times drawn from those of kinds."""
    count = max(1, min(MOST_DRAWS, MOST_TASKS // max(1, len(flow))))
    draws = drawn_times(all_kinds(flow), times, count, seed)
    return [terms_of(flow, seconds, pool).listed(sequence).makespan for seconds in draws]


def drawn_times(kinds: Sequence[str], times: Estimate, count: int, seed: int) -> list[Floats]:
    """Several draws of the run time of every task; own times stay."""
    random, members = np.random.default_rng(seed), _members(kinds, times)
    means = [float(np.mean(records)) for records in times.records.values()] or [float(times.seconds.mean())]
    draws = [times.seconds.copy() for _ in range(count)]
    for seconds in draws:
        for kind, tasks in members.items():
            records = times.records.get(kind)
            if records is None:
                seconds[tasks] = random.choice(means)
            else:
                seconds[tasks] = random.choice(records, len(tasks))
    return draws


def _members(kinds: Sequence[str], times: Estimate) -> Mapping[str, Sequence[int]]:
    """The tasks of each kind that have no own time."""
    members: dict[str, list[int]] = {}
    for v, kind in enumerate(kinds):
        if not times.own[v]:
            members.setdefault(kind, []).append(v)
    return members
