"""Steady pools: workers that stay, each with a speed and one task at a time, or a number of cores that tasks share."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError, counted, is_amount, shorten
from eligo.workflow import Workflow

Floats = NDArray[np.float64]

MOST_WORKERS = 1_000_000
#: the forms of a pool, for errors
FORMS = 'a number of workers ("16"), workers with speeds ("4x1.0,2x0.5") or cores ("64 cores")'


@dataclass(frozen=True)
class Pool:
    """A set of workers by their speeds, the fastest first, or a number of cores.

    >>> Pool.parse("4x1.0,2x0.5"), str(Pool.parse("4x1.0,2x0.5"))
    (Pool('4x1.0,2x0.5'), '6 workers (4 of speed 1, 2 of 0.5)')
    >>> str(Pool.of(16)), str(Pool.of([2.0, 2.0])), str(Pool(cores=64))
    ('16 workers', '2 workers of speed 2', '64 cores')
    """

    #: the speed of every worker; empty for a pool of cores
    speeds: tuple[float, ...] = ()
    cores: int | None = None

    def __post_init__(self) -> None:
        if self.cores is not None:
            if self.speeds:
                raise InputError("a pool must have either workers or cores, got both")
            if not _is_whole(self.cores) or not 1 <= self.cores <= MOST_WORKERS:
                raise InputError(f"cores must be an integer from 1 to {MOST_WORKERS:,}, got {self.cores!r}")
            object.__setattr__(self, "cores", int(self.cores))
        else:
            _check_count(len(self.speeds))
            _check_speeds(self.speeds)
        object.__setattr__(self, "speeds", tuple(sorted(map(float, self.speeds), reverse=True)))

    @classmethod
    def of(cls, workers: object) -> Self:
        """The pool of a number of workers, a speed for each, a text as for `parse`, or a pool."""
        if isinstance(workers, cls):
            return workers
        if isinstance(workers, str):
            return cls.parse(workers)
        if _is_whole(workers):
            _check_count(count := int(workers))  # type: ignore[call-overload]
            return cls((1.0,) * count)
        if isinstance(workers, Iterable):
            return cls(tuple(workers))
        raise InputError(f"workers must be a number, or a speed for each worker, got {shorten(repr(workers))}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a pool such as "16", "4x1.0,2x0.5" or "64 cores"."""
        if match := re.fullmatch(r"(\d{1,15}) ?cores?", text.strip()):
            return cls(cores=int(match[1]))
        speeds: list[float] = []
        for part in text.split(","):
            group = re.fullmatch(r"(\d{1,15})(?:x((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?))?", part.strip())
            if not group:
                raise InputError(f"invalid pool {shorten(text)!r} (write {FORMS})")
            _check_count(int(group[1]), len(speeds))
            speeds += [float(group[2] or 1)] * int(group[1])
        return cls(tuple(speeds))

    @property
    def fastest(self) -> float:
        """The greatest speed; cores have speed 1."""
        return self.speeds[0] if self.speeds else 1.0

    @property
    def size(self) -> int:
        """The number of workers or cores."""
        return len(self.speeds) if self.cores is None else self.cores

    @property
    def equal(self) -> bool:
        """Whether all workers have the same speed."""
        return not self.speeds or self.speeds[-1] == self.speeds[0]

    def resized(self, size: int) -> "Pool":
        """A pool of another size with the same speed."""
        return Pool(cores=size) if self.cores is not None else Pool((self.fastest,) * size)

    @property
    def written(self) -> int | str:
        """The pool as a number or a text that `of` accepts.

        >>> Pool.of(16).written, Pool.of([1, 1, 0.5]).written, Pool(cores=64).written
        (16, '2x1.0,1x0.5', '64 cores')
        """
        if self.cores is not None:
            return f"{self.cores} cores"
        groups = ",".join(f"{n}x{speed}" for speed, n in Counter(self.speeds).items())
        return self.size if self.equal and self.fastest == 1 else groups

    @property
    def head(self) -> str:
        """The size in words."""
        what = "worker" if self.cores is None else "core"
        return counted(self.size, what)

    def __str__(self) -> str:
        groups = [f"{n:,} of {_speed_text(speed)}" for speed, n in Counter(self.speeds).items()]
        if len(groups) > 1:
            return f"{self.head} ({groups[0].replace(' of ', ' of speed ')}, {', '.join(groups[1:])})"
        return self.head if self.fastest == 1 else f"{self.head} of speed {_speed_text(self.fastest)}"

    def __repr__(self) -> str:
        return f"Pool({self.written!r})"


def _check_count(workers: int, others: int = 0) -> None:
    if workers < 1:
        raise InputError(f"workers must be a positive integer, got {workers}")
    if workers + others > MOST_WORKERS:
        raise InputError(f"workers must be at most {MOST_WORKERS:,}, got {workers + others:,}")


def _check_speeds(speeds: Iterable[object]) -> None:
    wrong = [speed for speed in speeds if not is_amount(speed) or not speed]
    if wrong:
        raise InputError(f"the speed of a worker must be positive, got {shorten(repr(wrong[0]))}")


def cores_of(flow: Workflow, pool: Pool) -> Floats | None:
    """The cores of every task, 1 if unknown; None if the pool has workers, which run one task each.

    >>> from eligo.dag import Dag
    >>> from eligo.workflow import Task
    >>> flow = Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", cores=8)})
    >>> cores_of(flow, Pool(cores=16)), cores_of(flow, Pool.of(16))
    (array([8., 1.]), None)
    >>> cores_of(flow, Pool(cores=4))
    Traceback (most recent call last):
    eligo.errors.InputError: 'a' needs 8 cores, but only 4 are available
    """
    if pool.cores is None:
        return None
    if not flow.details:
        return np.ones(len(flow))
    requests = [flow.task(name).cores for name in flow.dag.tasks]
    demands = np.array([1.0 if cores is None else cores for cores in requests], np.float64)
    for v in np.flatnonzero(demands > pool.cores)[:1]:
        needed = f"{shorten(flow.dag.tasks[v])!r} needs {demands[v]:g} cores"
        raise InputError(f"{needed}, but only {pool.cores:,} {'is' if pool.cores == 1 else 'are'} available")
    return demands


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _speed_text(speed: float) -> str:
    return f"{speed:g}"
