"""The work of a search, counted, and its outcome.

Work is limited by counting, so that the result is the same on every machine, however fast or busy. A unit is about what
compiled code does in a nanosecond: a cell of a table, a word of a mask, an arc pushed. A clock can also end the work early,
if the user asks for that; the result then says that it was cut short.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints
from eligo.theory.eligibility import eligible_steps
from eligo.theory.profiles import Profile


@dataclass(eq=False)
class Clock:
    """A deadline for the work: after some seconds, or at once when it is stopped.

    >>> clock = Clock(3600.0)
    >>> clock.over()
    False
    >>> clock.stop()
    >>> clock.over(), clock.part(10.0).over()
    (True, True)
    """

    seconds: float = math.inf
    whole: "Clock | None" = None
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.end or (self.whole is not None and self.whole.over())

    @property
    def left(self) -> float:
        """The seconds until then."""
        own = max(0.0, self.end - time.monotonic())
        return own if self.whole is None else min(own, self.whole.left)

    def stop(self) -> None:
        """Let time be up now, for this clock and its parts."""
        self.end = -math.inf

    def part(self, seconds: float) -> "Clock":
        """A clock for a part of the work, which ends with the whole at the latest."""
        return Clock(seconds, self)


FOREVER = Clock()


SECOND = 1_000_000_000  # units: what a machine of today does in about a second


class Outlook(NamedTuple):
    """The progress of the work: the current step, its time limit in seconds, and the area so far as a share of its bound."""

    trying: str
    seconds: float
    best: float


@dataclass(eq=False)
class Work:
    """How much work may be done, in how much memory, and how much of it was.

    >>> whole = Work(100)
    >>> part = whole.part(70)
    >>> part.spend(60)
    >>> part.left, whole.left, part.over()
    (10, 40, False)
    >>> whole.spend(50)
    >>> part.over(), whole.cut
    (True, False)
    """

    units: float = math.inf
    clock: Clock = FOREVER
    whole: "Work | None" = None
    #: bytes that tables may take at a time
    memory: float = math.inf
    spent: float = 0
    #: whether the clock ended something that would have gone on
    cut: bool = False
    #: who is told how it goes on
    watch: Callable[[Outlook], None] | None = None
    #: the area that was found so far, as a share of its bound
    best: float = 0.0

    @property
    def left(self) -> float:
        """How much may still be done here."""
        own = max(0, self.units - self.spent)
        return own if self.whole is None else min(own, self.whole.left)

    def spend(self, units: float) -> None:
        """Count work that was done, or is about to be."""
        self.spent += units
        if self.whole is not None:
            self.whole.spend(units)

    def over(self) -> bool:
        """Whether no more is to be done."""
        return not self.left or self.stopped()

    def stopped(self) -> bool:
        """Whether the clock ended it; only to be asked where there is more to do."""
        if not self.clock.over():
            return False
        self._cut_short()
        return True

    def _cut_short(self) -> None:
        self.cut = True
        if self.whole is not None:
            self.whole._cut_short()

    def tell(self, trying: str, best: float = 0.0) -> None:
        """Say what is tried next and, where it is known, how good the best is so far."""
        root = self
        while root.whole is not None:
            root = root.whole
        root.best = best or root.best
        if root.watch is not None:
            seconds = min(root.left / SECOND, root.clock.left)
            root.watch(Outlook(trying, seconds, root.best))

    def part(self, units: float) -> "Work":
        """A part of the work, of at most so much."""
        return Work(units, self.clock, self, self.memory)


# Outcomes


OPTIMAL, IMPOSSIBLE, BOUNDED = "optimal", "impossible", "bounded"


class Segment(NamedTuple):
    """A part of an order that was decided by itself: from where to where it goes, and what was found."""

    begin: int
    end: int
    outcome: "Outcome"

    @property
    def slack(self) -> int:
        """By how much the area of every order is at least below the sum of the bound."""
        return int(self.outcome.bound.sum()) - self.outcome.area_bound


@dataclass(frozen=True, eq=False)
class Outcome:
    """The nonsinks of a dag in an order, with a bound U(t) of every cumulative profile and what follows."""

    order: Ints
    bound: Profile
    verdict: str
    method: str
    proof: dict[str, Any] = field(default_factory=dict)
    #: no order's cumulative profile sums to more than this
    area_bound: int = -1

    def __post_init__(self) -> None:
        if self.area_bound < 0:
            object.__setattr__(self, "area_bound", int(self.bound.sum()))


def cumulative(dag: Dag, nonsinks: Ints) -> Profile:
    """The nonsources rendered after each of the nonsinks is executed in this order."""
    schedule = np.concatenate([nonsinks, np.flatnonzero(dag.outdegree == 0)]).astype(np.int32)
    steps = eligible_steps(dag, schedule)[dag.indegree > 0]
    return np.cumsum(np.bincount(steps, minlength=len(nonsinks) + 1))


def worst(verdicts: set[str]) -> str:
    """The verdict of a whole whose parts must all be optimal."""
    return next((v for v in (IMPOSSIBLE, BOUNDED) if v in verdicts), OPTIMAL)
