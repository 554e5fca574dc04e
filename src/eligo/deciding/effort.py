"""How much the search may look at, by the name of the effort."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    """Units of work: in all; for a dynamic program, a search for an order, one for an area, a round of probes, and cuts."""

    total: float
    maxima: float
    search: float
    area: float
    probes: float
    cuts: float
    widths: tuple[int, ...] = (30, 3_000)
    area_widths: tuple[int, ...] = (30, 30_000)
    work: Work = field(default_factory=Work)
    #: where the search for an order got stuck in parts that have none, by their tasks: why, for whoever asks
    stuck: dict[tuple[str, ...], Stuck] = field(default_factory=dict)
    #: modules that were solved before, by what they are, for those who plan what is left of a dag
    solved: dict[object, Any] | None = None


def check_effort(name: str) -> None:
    """Refuse an effort that there is not."""
    check_choice("effort", name, EFFORTS)


SECOND = 1_000_000_000  # units: what a machine of today does in about a second

EFFORTS = {
    "quick": Effort(0, 0, 0, 0, 0, 2 * SECOND),
    "normal": Effort(4 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND, SECOND, 2 * SECOND),
    "thorough": Effort(
        600 * SECOND,
        200 * SECOND,
        200 * SECOND,
        200 * SECOND,
        100 * SECOND,
        20 * SECOND,
        (30, 3_000, 300_000),
        (30, 3_000, 1_000_000),
    ),
}
