"""How much the search may look at, by the name of the effort."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from eligo.deciding.limits import TABLE_BYTES
from eligo.deciding.work import FOREVER, SECOND, Clock, Outlook, Work
from eligo.errors import check_choice
from eligo.rows import Ints
from eligo.theory.profiles import Profile


class Stuck(NamedTuple):
    """The most that can be rendered after each step of a part, and what was executed where no move went on."""

    maxima: Profile
    executed: Ints


@dataclass(frozen=True)
class Effort:
    """Units of work: in all; for a dynamic program, a search for an order, one for an area, a round of probes; besides, cuts.

    So many of those for an area are for one with marked tasks, which comes first.

    The improvement of orders has work of its own, for there is an order to improve also where all else took too long; and so
    have the bounds by cuts and the parts of sums, without which nothing could be said of an order.
    """

    total: float
    maxima: float
    search: float
    area: float
    marks: float
    probes: float
    cuts: float
    #: bytes that tables may take at a time
    memory: float
    #: units of work for the improvement of orders
    orders: float
    work: Work = field(default_factory=Work)
    improving: Work = field(default_factory=Work)
    cutting: Work = field(default_factory=Work)
    #: where the search for an order got stuck in parts that have none, by their tasks: why, for whoever asks
    stuck: dict[tuple[str, ...], Stuck] = field(default_factory=dict)
    #: blocks that were solved, by their shapes
    solved: dict[object, Any] | None = None


def check_effort(name: str) -> None:
    """Refuse an effort that there is not."""
    check_choice("effort", name, EFFORTS)


EFFORTS = {
    "quick": Effort(total=0, maxima=0, search=0, area=0, marks=0, probes=0, cuts=2 * SECOND, memory=0, orders=0),
    "normal": Effort(
        total=4 * SECOND,
        maxima=1.5 * SECOND,
        search=0.5 * SECOND,
        area=0.4 * SECOND,
        marks=0,
        probes=0.5 * SECOND,
        cuts=2 * SECOND,
        memory=TABLE_BYTES,
        orders=SECOND,
    ),
    "thorough": Effort(
        total=600 * SECOND,
        maxima=200 * SECOND,
        search=200 * SECOND,
        area=200 * SECOND,
        marks=100 * SECOND,
        probes=100 * SECOND,
        cuts=20 * SECOND,
        memory=2_500_000_000,
        orders=60 * SECOND,
    ),
}


def begun(name: str, clock: Clock = FOREVER, watch: Callable[[Outlook], None] | None = None) -> Effort:
    """The effort of this name, of which nothing is spent yet."""
    effort = EFFORTS[name]
    work = Work(effort.total, clock, memory=effort.memory, watch=watch)
    improving, cutting = Work(effort.orders, clock), Work(effort.cuts)
    return replace(effort, work=work, improving=improving, cutting=cutting, stuck={}, solved={})
