"""How long the search may look, by the name of the effort."""

from dataclasses import dataclass, field
from typing import NamedTuple

from eligo.deciding.clock import FOREVER, Clock
from eligo.errors import check_choice
from eligo.theory.profiles import Profile


class Stuck(NamedTuple):
    """The most that can be rendered after each step of a part, and what was executed and rendered where no move went on."""

    maxima: Profile
    executed: int
    rendered: int


@dataclass(frozen=True)
class Effort:
    """Seconds to look: in all, and for one dynamic program, one search for an order, one for an area, one round of probes."""

    total: float
    maxima: float
    search: float
    area: float
    probes: float
    widths: tuple[int, ...] = (30, 3_000)
    area_widths: tuple[int, ...] = (30, 30_000)
    clock: Clock = FOREVER
    #: where the search for an order got stuck in parts that have none, by their tasks: why, for whoever asks
    stuck: dict[tuple[str, ...], Stuck] = field(default_factory=dict)


def check_effort(name: str) -> None:
    """Refuse an effort that there is not."""
    check_choice("effort", name, EFFORTS)


EFFORTS = {
    "quick": Effort(0.0, 0.0, 0.0, 0.0, 0.0),
    "normal": Effort(8.0, 5.0, 5.0, 4.0, 2.0),
    "thorough": Effort(600.0, 200.0, 200.0, 200.0, 100.0, (30, 3_000, 300_000), (30, 3_000, 1_000_000)),
}
