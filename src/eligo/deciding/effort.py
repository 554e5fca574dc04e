"""The search budget: efforts by name, and the limits of single steps.

The limits were chosen with `benchmarks/planner.py`, on real workflows and generated dags, so that normal effort takes a few
seconds. They bound the work and never affect a claim: a dag that is not decided within them gets the verdict "bounded".
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from eligo.deciding.work import FOREVER, SECOND, Clock, Outlook, Work
from eligo.errors import check_choice
from eligo.rows import Ints
from eligo.theory.profiles import Profile

# Bounds
LARGEST_CONVOLUTION = 200_000_000  # product of lengths: about a second
LARGEST_DUAL = 20_000  # tasks: in larger dags the modules of the dual are not worth their cuts
MOST_TRADES = 10_000_000  # steps of one module times steps of the next, if sets that surpass them are searched
MOST_SURPASSING = 20  # steps at which such sets are tried
MOST_SPLITS = 300_000_000  # sum of each module's steps times the steps before it: some tenths of a second
MOST_SUMMANDS = 200  # components that are solved one by one and swept together
PART, PART_TASK = 2_000_000, 20_000  # units of work for a component and for each of its tasks, besides its cuts
MOST_PROBED = 400  # tasks: in larger dags most of the planning time would go into probes
# units of work for a set of items, and for each closed one in the search for an order of largest area
SET, CLOSED_SET = 30, 220

# Exact maxima by elimination
MOST_STATES = 1_000_000_000_000  # combinations in a bag, most of which its arcs rule out
LARGEST_BAG = 400  # tasks
FEW_STATES = 20_000  # up to this many combinations, symmetry is not worth looking for
TABLE_BYTES = 150_000_000  # of all tables at a time, except with thorough effort
LEAST_ALIKE = 3  # members of a symmetry: a pair is not worth the search
MOST_ROUNDS = 60  # of colour refinement, for a canonical order
MOST_SETTLED = 20  # tasks that get a colour of their own because others of equal colour differ from them

# Orders
ITEMS_IN_A_HURRY = 10  # items that are enumerated when time is up
MOST_FOR_AREA = 400  # tasks, those with equal parents and children counted once: larger modules take too long
MOST_PIECES = 200  # different pieces of a module, each solved by itself
CLOSE = 4  # rendered tasks of difference: beyond it, it is clear whether the best sets have a task
MOST_MARKED, MARKED_AT_ONCE = 16, 4  # marked tasks at most, and how many are added at a time
FIRST_WIDTH, WIDER = 30, 10  # positions kept by the first search, and the factor for each following one
FIRST_LOOK = 1 / 20  # of the work for a largest area: if one is found soon, no other search is needed
MOST_CHECKED = 2_000_000_000  # positions times tasks and arcs: about a minute for the checker
MOST_FOR_MOVES = 400  # tasks: play move by move takes quadratic time
REACHES = (100, 1_000)  # how many others a task is moved past at most: at first, and in the end
MOST_STARTS = 4  # orders that are improved: the best heuristic order does not always lead to the best result
IMPROVED_AT_ONCE = 100_000_000  # units of work between two checks of the clock
MOST_PREFERRED = 20_000  # tasks, up to which ties are broken by preference

# Why no order is best
CONFLICT_WORK = 10_000_000_000
BEST_SET_WORK = 500_000_000  # a best set that can be found is found soon
CONFLICT_BEAMS = (30, 300, 3_000)


class Stuck(NamedTuple):
    """The maxima of a part, and the tasks that were executed when the search found no further move that attains them."""

    maxima: Profile
    executed: Ints


@dataclass(frozen=True)
class Effort:
    """The search budget in units of work: in all, and at most for each kind of search.

    The improvement of orders has a budget of its own, because there is an order to improve even if everything else took too
    long. So do the bounds by cuts and the parts of sums, without which nothing could be said of an order.
    """

    total: float
    #: units of work for a dynamic program, for a search for an order, and for a search for a largest area
    maxima: float
    search: float
    area: float
    #: units of work for the choice of marked tasks, which precedes a search for a largest area
    marks: float
    #: units of work for a round of probes
    probes: float
    #: units of work for cuts and for the parts of sums
    cuts: float
    #: bytes that tables may take at a time
    memory: float
    #: units of work for the improvement of orders
    orders: float
    work: Work = field(default_factory=Work)
    improving: Work = field(default_factory=Work)
    cutting: Work = field(default_factory=Work)
    #: where the search got stuck in parts that no order is best for, by their tasks: `conflicts` explains them with it
    stuck: dict[tuple[str, ...], Stuck] = field(default_factory=dict)
    #: solutions of blocks, by their shapes
    solved: dict[object, Any] | None = None


def check_effort(name: str) -> None:
    """Raise an error for an unknown effort."""
    check_choice("effort", name, EFFORTS)


EFFORTS = {
    "quick": Effort(total=0, maxima=0, search=0, area=0, marks=0, probes=0, cuts=2 * SECOND, memory=0, orders=0),
    "normal": Effort(
        total=4 * SECOND, maxima=1.5 * SECOND, search=0.5 * SECOND, area=0.4 * SECOND, marks=0, probes=0.5 * SECOND,
        cuts=2 * SECOND, memory=TABLE_BYTES, orders=SECOND,
    ),
    "thorough": Effort(
        total=600 * SECOND, maxima=200 * SECOND, search=200 * SECOND, area=200 * SECOND, marks=100 * SECOND,
        probes=100 * SECOND, cuts=20 * SECOND, memory=2_500_000_000, orders=60 * SECOND,
    ),
}  # fmt: skip


def new_effort(name: str, clock: Clock = FOREVER, watch: Callable[[Outlook], None] | None = None) -> Effort:
    """The effort of this name, with nothing spent yet."""
    effort = EFFORTS[name]
    work = Work(effort.total, clock, memory=effort.memory, watch=watch)
    improving, cutting = Work(effort.orders, clock), Work(effort.cuts)
    return replace(effort, work=work, improving=improving, cutting=cutting, stuck={}, solved={})
