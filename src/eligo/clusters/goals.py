"""What a fat task is to be good at: rendering tasks eligible, travelling light, or some of both.

A goal gives every growing set a value, the less the better, and every task that could join a score by which the search
grows. With seconds instead of tasks the sizes of two sets may differ, so productivity is what remains eligible after all.
"""

from dataclasses import dataclass

from eligo.clusters.growth import Growth
from eligo.clusters.limits import MOST_CHILDREN, NEAR
from eligo.errors import InputError, check_choice, is_amount

GOALS = ("productive", "communication", "mixed")


@dataclass(frozen=True)
class Goal:
    """One of `GOALS`; *weight*, from 0 to 1, says how much a cut arc counts against an eligible task when mixed."""

    name: str = "productive"
    weight: float = 0.5

    def __post_init__(self) -> None:
        check_choice("goal", self.name, GOALS)
        if not is_amount(self.weight) or self.weight > 1:
            raise InputError(f"a weight is from 0 to 1, and {self.weight} is not")

    def value(self, growth: Growth) -> tuple[float, ...]:
        """How bad a set is, by what matters most first."""
        eligible, travels = growth.rendered - len(growth.inside), self._travels(growth)
        match self.name:
            case "productive":
                return (-eligible, *travels)
            case "communication":
                return (*travels, -eligible)
            case _:
                return (self.weight * growth.cut - (1 - self.weight) * eligible, *travels)

    def _travels(self, growth: Growth) -> tuple[float, ...]:
        return (growth.cut,) if growth.files is None else (growth.bytes, growth.cut)

    def score(self, growth: Growth, v: int) -> float:
        """How well a task would join: what it adds to the cut and renders, now or soon."""
        match self.name:
            case "productive":
                return -_releases(growth, v)
            case "communication":
                return _lightness(growth, v)
            case _:
                return self.weight * _lightness(growth, v) - (1 - self.weight) * _releases(growth, v)


def _lightness(growth: Growth, v: int) -> float:
    """What is cut more, less what the children will save once they can join: the sooner, the more."""
    state, saved = growth.state, 0.0
    for w in state.children_of(v)[:MOST_CHILDREN]:
        missing = growth.missing(w)
        if missing <= NEAR:
            saved += max(0, state.missing[w] - state.out(w) + 1) / 4 ** (missing - 1)
    return growth.delta(v) - saved * (1.0 if growth.files is None else growth.files.mean)


def _releases(growth: Growth, v: int) -> float:
    """The children, each counted the less the more other parents it misses."""
    missing = (growth.missing(w) for w in growth.state.children_of(v)[:MOST_CHILDREN])
    return sum(0.25 ** (m - 1) for m in missing if m <= NEAR)
