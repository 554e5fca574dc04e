"""How far the search looks: the effort by its name, and limits of single steps, measured with `benchmarks/planner.py`."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from eligo.deciding.work import FOREVER, SECOND, Clock, Outlook, Work
from eligo.errors import check_choice
from eligo.rows import Ints
from eligo.theory.profiles import Profile

# Bounds
LARGEST_CONVOLUTION = 200_000_000  # products of lengths: about a second
LARGEST_DUAL = 20_000  # tasks: beyond, the dual's modules are not worth their cuts
MOST_TRADES = 10_000_000  # steps of two modules, multiplied, between which sets that surpass them are looked for
MOST_SURPASSING = 20  # steps at which they are
MOST_SPLITS = 300_000_000  # steps of a module times those before it, in all: some tenths of a second
MOST_SUMMANDS = 200  # components that are solved one by one and swept together
PART, PART_TASK = 2_000_000, 20_000  # units of work for a component and each of its tasks, beside its cuts
MOST_PROBED = 400  # tasks: beyond, the probes would make up most of a plan
# units of work for a set of items, and for a closed one that orders of largest area go through
SET, CLOSED_SET = 30, 220

# Exact maxima by elimination
MOST_STATES = 1_000_000_000_000  # combinations in a bag, most of which its arcs rule out
LARGEST_BAG = 400  # tasks
FEW_STATES = 20_000  # up to here symmetry is not worth looking for
TABLE_BYTES = 150_000_000  # of all tables at a time, but for thorough effort
LEAST_ALIKE = 3  # members of a symmetry: a pair is not worth the search
MOST_ROUNDS = 60  # of refining colours until a canonical order
MOST_SETTLED = 20  # tasks that are told apart from those that look alike

# Orders
ITEMS_IN_A_HURRY = 10  # what is enumerated when time is up
MOST_FOR_AREA = 400  # tasks, those with equal parents and children once: no larger module is closed in reasonable time
MOST_PIECES = 200  # different ones of a module, each of which is solved by itself
CLOSE = 4  # tasks rendered more or less: beyond, it is clear whether the best sets have a task
MOST_MARKED, MARKED_AT_ONCE = 16, 4  # tasks whose sets have rows of their own, and how many more of them at a time
FIRST_WIDTH, WIDER = 30, 10  # positions kept by the first search, and how many times more by the next
FIRST_LOOK = 1 / 20  # of the work for a largest area: where it is soon found nothing else need be
MOST_CHECKED = 2_000_000_000  # positions times tasks and arcs: about a minute for the checker
MOST_FOR_MOVES = 400  # tasks: move by move play takes quadratic time
REACHES = (100, 1_000)  # tasks that one is moved past at once: at first, and in the end
MOST_STARTS = 4  # orders that are improved: the best of the heuristics is not always what the best comes of
IMPROVED_AT_ONCE = 100_000_000  # units of work between two looks at the clock
MOST_PREFERRED = 20_000  # tasks among which ties are broken by preference

# What is left

# Why no order is best
CONFLICT_WORK = 10_000_000_000
BEST_SET_WORK = 500_000_000  # what is found at all is found soon
CONFLICT_BEAMS = (30, 300, 3_000)


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
