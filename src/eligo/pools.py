"""Steady pools: workers who stay, each of some speed with one task at a time, or a number of cores that tasks share."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError, is_amount, shorten
from eligo.workflow import Workflow

Floats = NDArray[np.float64]

MOST_WORKERS = 1_000_000
SOME = f"there must be from 1 to {MOST_WORKERS:,} workers, each of a speed above 0"
#: what can be written of a pool, as errors say it
FORMS = 'so many workers ("16"), workers of some speeds ("4x1.0,2x0.5") or cores ("64 cores")'


@dataclass(frozen=True)
class Pool:
    """Workers by their speeds, the fastest first, or so many cores in all: never both.

    >>> Pool.parse("4x1.0,2x0.5"), str(Pool.parse("4x1.0,2x0.5"))
    (Pool('4x1.0,2x0.5'), '6 workers (4 of speed 1, 2 of .5)')
    >>> str(Pool.of(16)), str(Pool.of([2.0, 2.0])), str(Pool(cores=64))
    ('16 workers', '2 workers of speed 2', '64 cores')
    """

    #: of every worker; none where cores count
    speeds: tuple[float, ...] = ()
    cores: int | None = None

    def __post_init__(self) -> None:
        if self.cores is not None:
            if self.speeds or not _is_whole(self.cores) or not 1 <= self.cores <= MOST_WORKERS:
                raise InputError(f"there must be from 1 to {MOST_WORKERS:,} cores, a whole number of them")
            object.__setattr__(self, "cores", int(self.cores))
        elif not 1 <= len(self.speeds) <= MOST_WORKERS or not all(is_amount(speed) and speed for speed in self.speeds):
            raise InputError(SOME)
        object.__setattr__(self, "speeds", tuple(sorted(map(float, self.speeds), reverse=True)))

    @classmethod
    def of(cls, workers: object) -> Self:
        """The pool that is meant: a number of workers, a speed for each, a text as `parse` has it, or a pool itself."""
        if isinstance(workers, cls):
            return workers
        if isinstance(workers, str):
            return cls.parse(workers)
        if _is_whole(workers):
            return cls((1.0,) * max(0, min(int(workers), MOST_WORKERS + 1)))  # type: ignore[call-overload]
        if isinstance(workers, Iterable):
            return cls(tuple(workers))
        raise InputError(f"workers are a number, or a speed for each, and {shorten(repr(workers))} is neither")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The pool that a text says: "16", "4x1.0,2x0.5" or "64 cores"."""
        if found := re.fullmatch(r"(\d{1,15}) ?cores?", text.strip()):
            return cls(cores=int(found[1]))
        speeds: list[float] = []
        for part in text.split(","):
            group = re.fullmatch(r"(\d{1,15})(?:x((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?))?", part.strip())
            if not group:
                raise InputError(f"{shorten(text)!r} is no pool: it is {FORMS}")
            if not 1 <= int(group[1]) <= MOST_WORKERS - len(speeds):
                raise InputError(SOME)
            speeds += [float(group[2] or 1)] * int(group[1])
        return cls(tuple(speeds))

    @property
    def fastest(self) -> float:
        """The greatest speed; cores are all of speed 1."""
        return self.speeds[0] if self.speeds else 1.0

    @property
    def size(self) -> int:
        """How many workers, or cores, there are."""
        return len(self.speeds) if self.cores is None else self.cores

    @property
    def equal(self) -> bool:
        """Whether all is of one speed."""
        return not self.speeds or self.speeds[-1] == self.speeds[0]

    def resized(self, size: int) -> "Pool":
        """So many workers or cores of the same speed."""
        return Pool(cores=size) if self.cores is not None else Pool((self.fastest,) * size)

    @property
    def written(self) -> int | str:
        """The pool as data, which `of` reads again: how many there are, or a text.

        >>> Pool.of(16).written, Pool.of([1, 1, 0.5]).written, Pool(cores=64).written
        (16, '2x1.0,1x0.5', '64 cores')
        """
        if self.cores is not None:
            return f"{self.cores} cores"
        groups = ",".join(f"{n}x{speed}" for speed, n in Counter(self.speeds).items())
        return self.size if self.equal and self.fastest == 1 else groups

    @property
    def head(self) -> str:
        """How many there are, in words."""
        what = "worker" if self.cores is None else "core"
        return f"{self.size:,} {what}{'' if self.size == 1 else 's'}"

    def __str__(self) -> str:
        groups = [f"{n:,} of {_told(speed)}" for speed, n in Counter(self.speeds).items()]
        if len(groups) > 1:
            return f"{self.head} ({groups[0].replace(' of ', ' of speed ')}, {', '.join(groups[1:])})"
        return self.head if self.fastest == 1 else f"{self.head} of speed {_told(self.fastest)}"

    def __repr__(self) -> str:
        return f"Pool({self.written!r})"


def cores_of(flow: Workflow, pool: Pool) -> Floats | None:
    """How many cores every task takes, 1 where that is not known; None where the pool is of workers, who take one task each.

    >>> from eligo.dag import Dag
    >>> from eligo.workflow import Task
    >>> flow = Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", cores=8)})
    >>> cores_of(flow, Pool(cores=16)), cores_of(flow, Pool.of(16))
    (array([8., 1.]), None)
    >>> cores_of(flow, Pool(cores=4))
    Traceback (most recent call last):
    eligo.errors.InputError: 'a' needs 8 cores, and there are 4
    """
    if pool.cores is None:
        return None
    if not flow.details:
        return np.ones(len(flow))
    told = [flow.task(name).cores for name in flow.dag.tasks]
    found = np.array([1.0 if cores is None else cores for cores in told], np.float64)
    for v in np.flatnonzero(found > pool.cores)[:1]:
        needed = f"{shorten(flow.dag.tasks[v])!r} needs {found[v]:g} cores"
        raise InputError(f"{needed}, and there {'is' if pool.cores == 1 else 'are'} {pool.cores:,}")
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _told(speed: float) -> str:
    return f"{speed:g}".removeprefix("0") if speed < 1 else f"{speed:g}"
