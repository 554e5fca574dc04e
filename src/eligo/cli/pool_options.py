"""What the options of `eligo plan` state about pools, prices and assumed run times."""

import math
import re

from eligo.cli.requests import PlanRequest
from eligo.errors import InputError
from eligo.formats.histories import seconds_in
from eligo.pools import MOST_WORKERS, Pool
from eligo.scaling import sizes_between
from eligo.times import RunTimes, with_assumptions

MOST_COMPARED = 256  # workers, if no range is given
HOURLY = {"s": 3600.0, "min": 60.0, "h": 1.0, "d": 1 / 24}  # how many of these are an hour


def pool_in(asked: PlanRequest) -> Pool | None:
    """The requested pool; None if none or several are requested."""
    if asked.cores is not None:
        return Pool(cores=_whole_cores(asked.cores))
    return Pool.parse(asked.workers) if asked.workers else None


def compared_pools(asked: PlanRequest) -> list[Pool]:
    """The pools of the sizes that are compared; none unless a range, a price or a deadline is given."""
    text = asked.workers if asked.cores is None else asked.cores
    priced = asked.price is not None or asked.deadline is not None
    match = re.fullmatch(r"(\d{1,7})\.\.(\d{1,7})", text.strip()) if text else None
    if match is None:
        if text and priced:
            raise InputError("--price and --deadline compare sizes of the pool: give a range, as in --workers 1..64")
        return list(map(Pool.of, sizes_between(1, MOST_COMPARED))) if priced else []
    first, last = map(int, match.groups())
    if not 1 <= first <= last <= MOST_WORKERS:
        raise InputError(f"a range must rise, from 1 to at most {MOST_WORKERS:,}, got {text}")
    return [Pool.of(size) if asked.cores is None else Pool(cores=size) for size in sizes_between(first, last)]


def _whole_cores(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,15}", text.strip()):
        raise InputError(f"--cores must be an integer, or a range such as 1..64, got {text!r}")
    return int(text)


def price_in(text: str) -> float:
    """A price for an hour.

    >>> price_in("0.04/h"), price_in("2"), price_in("24/d"), price_in("0.001/min")
    (0.04, 2.0, 1.0, 0.06)
    """
    amount, slash, unit = text.partition("/")
    try:
        price = float(amount) * HOURLY[unit if slash else "h"]
    except (KeyError, ValueError):
        price = math.nan
    if not 0 <= price < math.inf:
        raise InputError(f"--price must be an amount for an h, min, s or d, such as 0.04/h, got {text!r}")
    return price


def with_assumed(times: RunTimes, asked: PlanRequest) -> RunTimes:
    """The run times with those that --assume and --seconds-per-task give."""
    if asked.assume is None and asked.seconds_per_task is None:
        return times
    return with_assumptions(times, dict(map(_assumption, asked.assume or ())), asked.seconds_per_task)


def _assumption(text: str) -> tuple[str, float]:
    kind, _, time = text.rpartition("=")
    if not kind:
        raise InputError(f"--assume must be KIND=TIME, such as align=5m, got {text!r}")
    return kind, seconds_in(time)
