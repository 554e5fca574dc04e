"""What is found for a dag or a part of it, and the rules by which a part's bound is known."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints
from eligo.theory.eligibility import eligible_steps
from eligo.theory.profiles import Profile

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
