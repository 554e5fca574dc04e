"""How much the search may look at, by the name of the effort."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from eligo.deciding.clock import Clock
from eligo.deciding.work import Work
from eligo.errors import check_choice
from eligo.theory.profiles import Profile


class Stuck(NamedTuple):
    """The most that can be rendered after each step of a part, and what was executed and rendered where no move went on."""

    maxima: Profile
    executed: int
    rendered: int


@dataclass(frozen=True)
class Effort:
    """Units of work: in all; for a dynamic program, a search for an order, one for an area, a round of probes; besides, cuts.

    The improvement of orders has work of its own, for there is an order to improve also where all else took too long.
    """

    total: float
    maxima: float
    search: float
    area: float
    probes: float
    cuts: float
    orders: float = 0
    widths: tuple[int, ...] = (30, 3_000)
    area_widths: tuple[int, ...] = (30, 30_000)
    work: Work = field(default_factory=Work)
    improving: Work = field(default_factory=Work)
    #: where the search for an order got stuck in parts that have none, by their tasks: why, for whoever asks
    stuck: dict[tuple[str, ...], Stuck] = field(default_factory=dict)


def check_effort(name: str) -> None:
    """Refuse an effort that there is not."""
    check_choice("effort", name, EFFORTS)


SECOND = 1_000_000_000  # units: what a machine of today does in about a second

EFFORTS = {
    "quick": Effort(0, 0, 0, 0, 0, 2 * SECOND),
    "normal": Effort(4 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND, SECOND, 2 * SECOND, 1.5 * SECOND),
    "thorough": Effort(
        600 * SECOND,
        200 * SECOND,
        200 * SECOND,
        200 * SECOND,
        100 * SECOND,
        20 * SECOND,
        60 * SECOND,
        (30, 3_000, 300_000),
        (30, 3_000, 1_000_000),
    ),
}


def begun(name: str, clock: Clock) -> Effort:
    """The effort of this name, of which nothing is spent yet."""
    effort = EFFORTS[name]
    return replace(effort, work=Work(effort.total, clock), improving=Work(effort.orders, clock), stuck={})
