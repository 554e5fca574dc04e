"""How what is left of a segment goes on: in which order, as of when that was decided, and how far it was followed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from eligo.deciding.linear import LinearSegment
from eligo.deciding.outcomes import OPTIMAL, Outcome
from eligo.rows import Ints
from eligo.theory.profiles import Profile

Marks = NDArray[np.bool_]


@dataclass(eq=False)
class Continuation:
    """An order that is written down, with its profile, its bound, and what proves it: the order that the proof speaks of."""

    begin: int
    end: int
    #: what gives the order; where ties are to be broken it takes as long as the rest, so nobody asks in vain
    made: Callable[[], Ints]
    own: Profile
    proved: Outcome
    _followed: int = 0

    @cached_property
    def order(self) -> Ints:
        """All tasks, in order."""
        return self.made()

    @property
    def verdict(self) -> str:
        """What is known of the order."""
        return self.proved.verdict

    def holds(self, executed: Marks, steps: int) -> bool:
        """Whether what is known holds after so many steps: none was made since, or they were the first of a best order."""
        since = steps - self.begin
        if since and self.verdict == OPTIMAL and self._followed < since:
            self._followed += int(np.append(executed[self.order[self._followed : since]], False).argmin())
        return self._followed == since

    def next(self, count: int) -> list[int]:
        """The next so many tasks."""
        found: list[int] = self.order[self._followed :][:count].tolist()
        return found

    def rest(self) -> Ints:
        """All tasks that are left, in order."""
        return self.order[self._followed :]

    def sums(self) -> tuple[int, int]:
        """The sum of the profile from here on, and what no order's can be more than."""
        at = self._followed
        own = int(self.own[at:].sum()) - (len(self.own) - at) * int(self.own[at])
        return own, own if at else self.proved.area_bound


@dataclass(eq=False)
class LinearContinuation:
    """The order of a ▷-linear composition, block by block as it is asked for."""

    begin: int
    end: int
    chain: LinearSegment
    verdict: str = OPTIMAL
    _known: list[int] = field(default_factory=list)
    _followed: int = 0

    def __post_init__(self) -> None:
        self._coming = (v for row in self.chain.rows() for v in row.tolist())

    def holds(self, executed: Marks, steps: int) -> bool:
        """See `Continuation`."""
        since = steps - self.begin
        self._look_ahead(since)
        while self._followed < since and executed[self._known[self._followed]]:
            self._followed += 1
        return self._followed == since

    def next(self, count: int) -> list[int]:
        """See `Continuation`."""
        self._look_ahead(self._followed + count)
        return self._known[self._followed :][:count]

    def rest(self) -> Ints:
        """See `Continuation`."""
        return np.array(self.next(self.end - self.begin), np.int32)

    def sums(self) -> tuple[int, int]:
        """See `Continuation`; only as long as nobody has followed it."""
        area = self.chain.types.area()
        return area, area

    def _look_ahead(self, count: int) -> None:
        self._known += islice(self._coming, max(0, count - len(self._known)))
