"""The orders that a plan chooses between, side by side in numbers that people understand, and the one that is used."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eligo.estimating import estimate, lasting, without_seconds
from eligo.finishing import FinishBound, earliest_finish, own_seconds
from eligo.names import Name
from eligo.planning import Plan
from eligo.pools import Pool
from eligo.prioritising import ORDERS, finishing_rules, order_to_follow, soonest_on
from eligo.rows import Ints
from eligo.scheduling import terms_of
from eligo.simulation.figures import MOST_PLAYED, REQUESTS, order_figures
from eligo.simulation.players import name_of
from eligo.simulation.steady import Finish, Steady
from eligo.theory.eligibility import Counts, eligible_counts
from eligo.workflow import Workflow

SHOWN = ("ready", "finish", "fifo")
ALIKE = 0.005  # two orders within this share of one another do equally well
WIDTH = 80  # characters
USED = "*"
UNCOUNTED = "not counted: too many tasks"


class Phrases(NamedTuple):
    """What the table's heads say, and what is said of an order that has the most possible."""

    ready: str
    of_possible: str
    rounds: str
    most: str


LONG = Phrases(
    "ready on average", "ready on average, of possible", "rounds if {} ask at a time", "most possible (proved)"
)
SHORT = LONG._replace(rounds="rounds if {} ask")
SHORTEST = SHORT._replace(of_possible="ready, of possible", most="most (proved)")


@dataclass(frozen=True, eq=False)
class Candidate:
    """An order and what it comes to."""

    name: str
    #: the tasks by number
    sequence: Ints
    #: E(0..n)
    counts: Counts
    #: rounds of about 4, 16, 64 requests until all is done; none of a large dag
    polls: tuple[float, ...]
    #: when all is done on the workers asked about
    makespan: float | None
    #: of an order that was chosen for these workers, what it was made from
    origin: str | None = None

    @property
    def area(self) -> int:
        """The sum of E(t)."""
        return int(self.counts.sum())

    @property
    def average(self) -> float:
        """How many tasks are ready on average."""
        return self.area / max(1, len(self.sequence))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The orders to choose from, one of them used; of a large dag only those that are known anyway."""

    plan: Plan
    used: str
    known: dict[str, Candidate]
    #: where it is asked when all is done on some pool, and no order can be done before
    bound: FinishBound | None
    #: where run times are known and `finish` is used: the rounds of the same order made without them
    untimed: tuple[float, ...] = ()

    @property
    def extra_rounds(self) -> tuple[float, float]:
        """The largest share of rounds that run times cost, and how many ask at a time there; 0 where they cost none."""
        used = () if self.chosen is None else self.chosen.polls
        costs = [(own / other - 1, mean) for own, other, mean in zip(used, self.untimed, REQUESTS, strict=False)]
        return max([(0.0, 0.0), *costs])

    @property
    def chosen(self) -> Candidate | None:
        """The order used, where it is known."""
        return self.known.get(self.used)

    @property
    def order(self) -> tuple[Name, ...]:
        """The tasks in the order used."""
        return self.plan.dag.named(self.known[self.used].sequence)

    @property
    def finish(self) -> Finish | None:
        """When the order used is done, where that is asked for and known."""
        ended = None if self.chosen is None else self.chosen.makespan
        return None if ended is None or self.bound is None else Finish(ended, self.bound)

    @property
    def proved(self) -> bool:
        """Whether no order can have more tasks ready on average than the plan's."""
        return self.plan.area == self.plan.area_bound

    def share(self, candidate: Candidate) -> float:
        """Which share of what no order can exceed is ready on average."""
        return candidate.area / max(1, self.plan.area_bound)

    def usual_does(self, name: str) -> bool:
        """Whether first come, first served is as good as the order of that name, in every number shown."""
        usual, other = self.known["fifo"], self.known[name]
        less = [(other.area, usual.area), *zip(usual.polls, other.polls, strict=True)]
        less += [] if usual.makespan is None or other.makespan is None else [(usual.makespan, other.makespan)]
        return all(one <= most * (1 + ALIKE) for one, most in less)

    def document(self, kept: Sequence[str] = ()) -> dict[str, Any]:
        """The orders as plain data: all of them, or those *kept*, with what a checker can recompute."""
        return {
            "used": self.used,
            "orders": [self._entry(each, bool(kept)) for name, each in self.known.items() if not kept or name in kept],
        }

    def _entry(self, candidate: Candidate, checked: bool) -> dict[str, Any]:
        order = self.plan.dag.labelled().named(candidate.sequence)
        found = {"name": candidate.name, "order": order, "average": candidate.average, "share": self.share(candidate)}
        polls = {} if checked else {"polls": candidate.polls}
        if self.untimed and not checked and candidate.name == self.used:
            polls |= {"polls_without_seconds": self.untimed}
        return found | polls | ({} if candidate.makespan is None else {"makespan": candidate.makespan})


def candidates(flow: Workflow, plan: Plan, used: str, pool: Pool | None, whole: bool) -> Candidates:
    """The orders worth a look and the one used; of a large dag those that cost nothing, but for *whole* all of them.

    With a *pool* it is known how long every task runs: `finish` is then the order found to end soonest on that pool, so
    that neither `ready` nor `fifo` ends sooner.
    """
    used = next((name for name, policy in ORDERS.items() if policy == used), used)
    names = dict.fromkeys((*SHOWN, used))
    if len(flow) > MOST_PLAYED and not whole:
        names = dict.fromkeys(("ready", "fifo"))
    found = {name: _candidate(flow, plan, name, pool) for name in names}
    untimed = _untimed_polls(flow, plan) if used in found and used == "finish" else ()
    return Candidates(plan, used, found, None if pool is None else earliest_finish(flow, pool), untimed)


def _candidate(flow: Workflow, plan: Plan, name: str, pool: Pool | None) -> Candidate:
    dag, (sequence, origin) = flow.dag, _order(flow, plan, name, pool)
    counts = plan.counts if name == "ready" else eligible_counts(dag, sequence)
    makespan = None if pool is None else Steady.following(flow, sequence).schedule(pool).makespan
    return Candidate(name, sequence, counts, order_figures(dag, sequence).polls, makespan, origin)


def _order(flow: Workflow, plan: Plan, name: str, pool: Pool | None) -> tuple[Ints, str | None]:
    """The tasks by number, and for an order that was chosen for a pool, what it was made from."""
    if name == "finish" and pool is not None:
        rules = finishing_rules(flow, plan.sequence)
        best = soonest_on(terms_of(flow, own_seconds(flow), pool), rules)
        return best.schedule.sequence, best.origin
    known = {"ready": plan.sequence, "fifo": flow.dag.order}
    return (known[name] if name in known else flow.dag.indices(order_to_follow(flow, name, plan))), None


def _untimed_polls(flow: Workflow, plan: Plan) -> tuple[float, ...]:
    """The rounds of the order that `finish` would be without run times; none where none are known, or of a large dag."""
    if len(flow) > MOST_PLAYED or estimate(flow).level == "nothing":
        return ()
    order = order_to_follow(without_seconds(flow), "finish", plan)
    return order_figures(flow.dag, flow.dag.indices(order)).polls


# As people see it


def table(found: Candidates) -> Iterator[str]:
    """A row for every order, the one used marked; within the width of a screen."""
    names, whole = dict.fromkeys((*SHOWN, found.used)), os.path.basename
    for phrases, called in ((LONG, whole), (SHORT, whole), (SHORTEST, whole), (SHORTEST, name_of)):
        rows = [_head(found, phrases), *(_row(found, name, called(name), phrases) for name in names)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        if sum(widths) + 2 * len(widths) - 2 <= WIDTH:
            break
    for row in rows:
        yield "  ".join(f"{word:{wide}}" for word, wide in zip(row, widths, strict=True)).rstrip()


def _head(found: Candidates, phrases: Phrases) -> list[str]:
    asked = ", ".join(f"{mean:g}" for mean in REQUESTS)
    polls = [phrases.rounds.format(asked)] if found.known["ready"].polls else []
    pool = [] if found.bound is None else [found.bound.pool.head]
    return ["  order", phrases.ready if found.proved else phrases.of_possible, *polls, *pool]


def _row(found: Candidates, name: str, called: str, phrases: Phrases) -> list[str]:
    label = f"{USED if name == found.used else ' '} {called}"
    each = found.known.get(name)
    if each is None:
        return [label, UNCOUNTED, *[""] * (len(_head(found, phrases)) - 2)]
    averages = [number(other.average) for other in found.known.values()]
    ready = f"{number(each.average):>{max(map(len, averages))}}  {_share(found, each, phrases.most)}"
    shown = [[number(value) for value in other.polls] for other in found.known.values()]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    polls = ["  ".join(f"{number(value):>{wide}}" for value, wide in zip(each.polls, widths, strict=True))]
    return [label, ready, *(polls if each.polls else []), *([] if each.makespan is None else [lasting(each.makespan)])]


def _share(found: Candidates, candidate: Candidate, most: str) -> str:
    """Which share of the most possible it is, never rounded up, and whether that is known or at least so much."""
    if candidate.area == found.plan.area_bound:
        return most
    tenths = math.floor(1000 * candidate.area / max(1, found.plan.area_bound)) / 10
    return f"{'' if found.proved else 'at least '}{tenths:g} %"


def number(value: float) -> str:
    """A number with as many digits as people want to see.

    >>> [number(value) for value in (1.8333, 62.917, 12345.6)]
    ['1.83', '62.9', '12,346']
    """
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def told_name(name: str) -> str:
    """An order as it is called within a sentence; a file without its folder."""
    return f"`{os.path.basename(name)}`"
