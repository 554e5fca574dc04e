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
    """A deadline for the work: after some seconds, or now once it is stopped.

    >>> clock = Clock(3600.0)
    >>> clock.over()
    False
    >>> clock.stop()
    >>> clock.over(), clock.part(10.0).over()
    (True, True)
    """

    seconds: float = math.inf
    parent: "Clock | None" = None
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.end or (self.parent is not None and self.parent.over())

    @property
    def remaining(self) -> float:
        """The seconds until the deadline."""
        own = max(0.0, self.end - time.monotonic())
        return own if self.parent is None else min(own, self.parent.remaining)

    def stop(self) -> None:
        """Set the deadline of this clock and its parts to now."""
        self.end = -math.inf

    def part(self, seconds: float) -> "Clock":
        """A clock for a part of the work, with a deadline no later than this one."""
        return Clock(seconds, self)


FOREVER = Clock()
SECOND = 1_000_000_000  # units of work, which take a current machine about a second


class Outlook(NamedTuple):
    """The progress of the work: the current step, its time limit in seconds, and the area so far as a share of its bound."""

    trying: str
    seconds: float
    best: float


@dataclass(eq=False)
class Work:
    """A budget of work and memory, and how much of the work is done; a part of a budget spends from its parent as well.

    >>> parent = Work(100)
    >>> part = parent.part(70)
    >>> part.spend(60)
    >>> part.remaining, parent.remaining, part.over()
    (10, 40, False)
    >>> parent.spend(50)
    >>> part.over(), parent.cut
    (True, False)
    """

    units: float = math.inf
    clock: Clock = FOREVER
    parent: "Work | None" = None
    #: bytes that tables may take at a time
    memory: float = math.inf
    spent: float = 0
    #: whether the clock ended a search before its budget was spent
    cut: bool = False
    #: called with the progress before each step
    watch: Callable[[Outlook], None] | None = None
    #: the largest area so far, as a share of its bound
    best: float = 0.0

    @property
    def remaining(self) -> float:
        """The units that may still be spent here."""
        own = max(0, self.units - self.spent)
        return own if self.parent is None else min(own, self.parent.remaining)

    def spend(self, units: float) -> None:
        """Count work that is done or about to be done."""
        self.spent += units
        if self.parent is not None:
            self.parent.spend(units)

    def over(self) -> bool:
        """Whether the budget is spent or time is up."""
        return not self.remaining or self.stopped()

    def stopped(self) -> bool:
        """Whether time is up, which is then noted as cutting the work short: call this only if there is more to do."""
        if not self.clock.over():
            return False
        self._cut_short()
        return True

    def _cut_short(self) -> None:
        self.cut = True
        if self.parent is not None:
            self.parent._cut_short()

    def tell(self, trying: str, best: float = 0.0) -> None:
        """Report the next step and, if given, the best area so far as a share of its bound."""
        root = self
        while root.parent is not None:
            root = root.parent
        root.best = best or root.best
        if root.watch is not None:
            seconds = min(root.remaining / SECOND, root.clock.remaining)
            root.watch(Outlook(trying, seconds, root.best))

    def part(self, units: float) -> "Work":
        """A part of this budget, of at most these units."""
        return Work(units, self.clock, self, self.memory)


# Outcomes


OPTIMAL, IMPOSSIBLE, BOUNDED = "optimal", "impossible", "bounded"


class Segment(NamedTuple):
    """A part of an order that was decided separately: its steps *begin* to *end*, and the outcome."""

    begin: int
    end: int
    outcome: "Outcome"

    @property
    def slack(self) -> int:
        """How far the area of every order is below the sum of the bound, at least."""
        return int(self.outcome.bound.sum()) - self.outcome.area_bound


@dataclass(frozen=True, eq=False)
class Outcome:
    """The nonsinks of a dag in an order, with a bound U(t) of every cumulative profile, the verdict and its proof."""

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
    """The cumulative profile: the number of nonsources rendered after 0, 1, ... of the nonsinks, in this order."""
    schedule = np.concatenate([nonsinks, np.flatnonzero(dag.outdegree == 0)]).astype(np.int32)
    steps = eligible_steps(dag, schedule)[dag.indegree > 0]
    return np.cumsum(np.bincount(steps, minlength=len(nonsinks) + 1))


def worst(verdicts: set[str]) -> str:
    """The verdict of a dag that is optimal only if all its parts are."""
    return next((v for v in (IMPOSSIBLE, BOUNDED) if v in verdicts), OPTIMAL)
