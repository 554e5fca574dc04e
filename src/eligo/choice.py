"""The choice of an order: the one that `eligo plan` writes and `eligo run` follows, compared with alternatives.

A run follows the rule behind the order, so that it adapts to when tasks really end; with one worker it starts the tasks in
exactly this order. For a pool of workers, if every run time is known, the order is the one found to finish soonest on that
pool.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eligo.allocating import Space, allocator
from eligo.allocating.within import Within, finish
from eligo.border import as_workflow
from eligo.deciding.work import Clock, Outlook
from eligo.errors import InputError
from eligo.estimates import without_seconds
from eligo.execution import EXECUTED, Execution
from eligo.finishing import FinishBound, window_bound
from eligo.names import Name
from eligo.planning import Plan
from eligo.planning import plan as make_plan
from eligo.policies import PLAN_EFFORT, Policy, present_name
from eligo.pools import Pool, cores_of
from eligo.predictions import Prediction, predicted_finish
from eligo.prioritising import check_order, finishing_rules, has_classes, is_promised, numbered_order, soonest_on
from eligo.rows import Ints
from eligo.scaling import ScalingCurve, ScalingPoint, scaling_point, size_between
from eligo.schedules import Schedule, Soonest, Terms, terms_of
from eligo.simulation.batched import MOST_PLAYED, REQUESTS, order_figures
from eligo.simulation.steady import Finish
from eligo.space.bounds import SpaceBound, space_bound
from eligo.space.footprint import Footprint
from eligo.theory.eligibility import Counts, eligible_counts
from eligo.times import RunTimes, times_of
from eligo.work.demands import byte_words
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.times import Histories

#: orders that are always compared
SHOWN = ("ready", "finish", "fifo")
PLAIN = ("ready", "fifo")
SHARES = (1.0, 1.25, 1.5, 2.0)  # limits on space, as multiples of the peak of the order `space`
MOST_LIMITED = 2_000  # tasks for which the finish within these limits is simulated
SPACE = "space"
ALIKE = 0.005  # two orders that differ by at most this share count as equally good


@dataclass(frozen=True, eq=False)
class Candidate:
    """An order and its measures."""

    name: str
    #: the tasks by number
    sequence: Ints
    #: E(0..n)
    counts: Counts
    #: rounds to completion with about 4, 16, 64 requests each; empty for a large dag
    rounds: tuple[float, ...]
    #: the finish on the pool in seconds, and its distance from the bound as a share
    seconds: float | None = None
    gap: float | None = None
    #: the peak size of files between tasks in bytes: on the pool if there is one, else one task at a time
    peak: int | None = None
    #: why it is the order used; empty if it is not
    why: str = ""

    @property
    def area(self) -> int:
        """The sum of E(t)."""
        return int(self.counts.sum())

    @property
    def average(self) -> float:
        """The mean number of ready tasks."""
        return self.area / max(1, len(self.sequence))


class Limited(NamedTuple):
    """A workflow played within a limit on space: the order in which tasks end, the finish on a pool, and the peak."""

    limit: int
    sequence: Ints
    seconds: float | None
    peak: int


@dataclass(frozen=True, eq=False)
class ChosenOrder:
    """The order used and the alternatives; each part is computed on access."""

    times: RunTimes
    #: the requested policy, or a file with an order
    policy: str = "finish"
    asked_pool: Pool | None = None
    _: KW_ONLY
    #: a limit on the bytes of files between tasks, which the order keeps if one task runs at a time
    space: int | None = None
    effort: str = "normal"
    prefer: str = "path"
    #: whether the order of a large dag is left out of the candidates
    brief: bool = False
    clock: Clock | None = None
    watch: Callable[[Outlook], None] | None = None

    def __post_init__(self) -> None:
        check_order(self.policy)
        if self.asked_pool is not None:
            if self.space is not None:
                only = f"an order keeps a limit on space only if one task runs at a time, got {self.asked_pool}"
                raise InputError(f"{only}: leave the workers out, or use `eligo run --space`, which keeps it with any")
            cores_of(self.flow, self.asked_pool)

    def __repr__(self) -> str:
        return f"ChosenOrder({self.used!r}, {len(self.flow)} tasks)"

    @property
    def flow(self) -> Workflow:
        """The workflow, with the known run times."""
        return self.times.flow

    @property
    def used(self) -> str:
        """The name of the order used, which says whether it has a limit on space.

        It is `ready by priority` instead of `ready`, and so for `fifo`, if priorities differ.
        """
        if self.space is not None:
            return f"{self.policy} within {byte_words(self.space)}"
        return f"{self.policy} by priority" if self.policy in PLAIN and has_classes(self.flow) else self.policy

    @property
    def pool(self) -> Pool | None:
        """The requested pool, if the run time of every task is known; else None, since no finish can be predicted."""
        return self.asked_pool if self.asked_pool is not None and self.times.complete else None

    @cached_property
    def order(self) -> tuple[Name, ...]:
        """The tasks in the order used."""
        return self.flow.dag.named(self._followed)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the workflow: the order `ready`, and its upper bound."""
        return make_plan(self.flow, self.effort, self.prefer, self.clock, self.watch)

    @cached_property
    def bound(self) -> FinishBound | None:
        """A lower bound on the finish on the pool."""
        terms = self._terms
        return None if terms is None else window_bound(terms.dag, terms.seconds, terms.pool, terms.cores)

    @cached_property
    def footprint(self) -> Footprint | None:
        """The files between tasks; None if no sizes are known, and the order is not made for space."""
        footprint = Footprint.of(self.flow)
        return footprint if footprint.sized or self.policy == SPACE else None

    @cached_property
    def space_bound(self) -> SpaceBound | None:
        """A lower bound on the peak size of files between tasks, for every order and every number of workers."""
        if self.footprint is None or (self._is_large and self.policy != SPACE):
            return None
        return space_bound(self.footprint, self.sequence(SPACE), self.effort)

    @cached_property
    def front(self) -> tuple[Limited, ...]:
        """The finish on the pool under some limits on space, from the peak of the order `space` to no limit."""
        pool, footprint, free = self.pool, self.footprint, self.candidates["finish"].peak
        if pool is None or not pool.speeds or not pool.equal or footprint is None or free is None:
            return ()
        if len(self.flow) > MOST_LIMITED or not footprint.sized:
            return ()
        least = footprint.peak(self.sequence(SPACE))
        limits = [math.ceil(least * share) for share in SHARES]
        return tuple(self._within(limit, pool.size) for limit in limits if limit < free)

    def _within(self, limit: int, workers: int = 1) -> Limited:
        """The policy within a limit on space, on equal workers."""
        game, timed = Execution(self.flow.dag), self.times.complete
        space = Space(limit, workers=workers if timed else None)
        chosen = allocator(self.policy, self.flow, game, rules=None, space=space, order=self._planned(self.policy))
        end = finish(chosen, self.times.estimate.seconds, workers)
        sequence = np.array(list(game.numbers(EXECUTED)), np.int32)
        return Limited(limit, sequence, end if timed else None, chosen.most if isinstance(chosen, Within) else 0)

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """The compared orders by name, including the one used unless it is large and `brief`."""
        names = ("ready", "fifo") if self._is_large else (*self.compared, self.used)
        return {name: self._candidate(name) for name in dict.fromkeys(names)}

    @property
    def compared(self) -> tuple[str, ...]:
        """The orders that are compared, besides the one used."""
        return SHOWN if self.space_bound is None else (*SHOWN, SPACE)

    @property
    def _sized(self) -> bool:
        return self.footprint is not None and self.footprint.sized

    @property
    def _is_large(self) -> bool:
        return self.brief and len(self.flow) > MOST_PLAYED

    @property
    def chosen(self) -> Candidate | None:
        """The order used, if it is among the candidates."""
        return self.candidates.get(self.used)

    @property
    def finish(self) -> Finish | None:
        """The finish of the order used on the pool, if a pool was requested and run times are known."""
        seconds = None if self.chosen is None else self.chosen.seconds
        return None if seconds is None or self.bound is None else Finish(seconds, self.bound)

    @cached_property
    def prediction(self) -> Prediction | None:
        """The finish of the order used on the requested pool, with a range; None if no run time is known."""
        return None if self.asked_pool is None else self.predict(self.asked_pool)

    def predict(self, pool: Pool) -> Prediction | None:
        """The finish of the order used on any pool, with a range; None if no run time is known."""
        return predicted_finish(self.flow, self.times.estimate, pool, self._followed)

    @property
    def proved(self) -> bool:
        """Whether no order can have more tasks ready on average than the plan's."""
        return self.plan.area == self.plan.area_bound

    @property
    def origin(self) -> str | None:
        """For an order made for the pool, the name of the order it was made from."""
        return None if self.used != "finish" or self._soonest is None else self._soonest.origin

    @cached_property
    def untimed(self) -> tuple[float, ...]:
        """The rounds that `finish` would take without run times; empty if none are known, or `finish` is not used."""
        if self.used != "finish" or len(self.flow) > MOST_PLAYED or self.times.estimate.level == "nothing":
            return ()
        sequence = numbered_order(without_seconds(self.flow), "finish", self._ties)
        return order_figures(self.flow.dag, sequence).polls

    @property
    def extra_rounds(self) -> tuple[float, float]:
        """The largest share of rounds that using run times costs, and the requests per round there; 0 if it costs none."""
        used = () if self.chosen is None else self.chosen.rounds
        costs = [(own / other - 1, mean) for own, other, mean in zip(used, self.untimed, REQUESTS, strict=False)]
        return max([(0.0, 0.0), *costs])

    def share(self, candidate: Candidate) -> float:
        """The mean number of ready tasks as a share of its upper bound."""
        return candidate.area / max(1, self.plan.area_bound)

    def usual_does(self, name: str) -> bool:
        """Whether first come, first served is as good as the order with this name, in every measure of the candidates."""
        usual, other = self.candidates["fifo"], self.candidates[name]
        less = [(other.area, usual.area), *zip(usual.rounds, other.rounds, strict=True)]
        less += [] if usual.seconds is None or other.seconds is None else [(usual.seconds, other.seconds)]
        less += [] if usual.peak is None or other.peak is None else [(usual.peak, other.peak)]
        return all(one <= most * (1 + ALIKE) for one, most in less)

    def ends(self, sizes: Sequence[int]) -> dict[int, float]:
        """The finish on other numbers of workers or cores than the pool's, all of one speed."""
        if self.pool is None:
            return {}
        return {size: self._schedule(self._terms_on(self.pool.resized(size))).makespan for size in sizes}

    def curve(self, pools: Sequence[Pool], price: float | None = None, deadline: float | None = None) -> ScalingCurve:
        """The finish of the policy against the size of the pool, if every task takes its estimated time.

        With a deadline, the smallest pool that meets it is searched between the sizes given.
        """
        points = [self._point(pool, price) for pool in pools]
        while (size := size_between(points, deadline)) is not None:
            points = sorted([*points, self._point(pools[0].resized(size), price)])
        return ScalingCurve(tuple(points), price, deadline)

    def _point(self, pool: Pool, price: float | None) -> ScalingPoint:
        terms = self._terms_on(pool)
        return scaling_point(terms, self._schedule(terms), price)

    def _schedule(self, terms: Terms) -> Schedule:
        """The schedule that is followed on a pool of another size."""
        if self._is_made_for_pools:
            return soonest_on(terms, self._rules).schedule
        return terms.listed(self._followed)

    @cached_property
    def _is_made_for_pools(self) -> bool:
        return self.used == "finish" and is_promised(self.flow)

    @cached_property
    def _followed(self) -> Ints:
        """The order used, as `sequence` gives it."""
        return self.sequence(self.used)

    def _terms_on(self, pool: Pool) -> Terms:
        return terms_of(self.flow, self.times.estimate.seconds, pool)

    def document(self, kept: Sequence[str] = ()) -> dict[str, Any]:
        """The orders as plain data: all of them, or those in *kept*, with everything that a checker can recompute."""
        entries = [each for name, each in self.candidates.items() if not kept or name in kept]
        space = {} if self.space_bound is None or not self._sized else {"space": self.space_bound.document()}
        return {"used": self.used, "orders": [self._entry(each, bool(kept)) for each in entries]} | space

    def _entry(self, candidate: Candidate, checked: bool) -> dict[str, Any]:
        order = self.flow.dag.labelled().named(candidate.sequence)
        entry = {"name": candidate.name, "order": order, "average": candidate.average, "share": self.share(candidate)}
        polls = {} if checked else {"rounds": candidate.rounds, "polls": candidate.rounds}
        if self.untimed and not checked and candidate.name == self.used:
            polls |= {"rounds_without_seconds": self.untimed, "polls_without_seconds": self.untimed}
        peak = {"peak": candidate.peak} if self._sized and self.space_bound is not None else {}
        return entry | polls | peak | ({} if candidate.seconds is None else {"makespan": candidate.seconds})

    # The orders

    def sequence(self, name: str) -> Ints:
        """The tasks by number in the order with this name, as it is followed here."""
        if self.space is not None and name == self.used:
            return self._within(self.space).sequence
        if name == "finish" and self._soonest is not None:
            return self._soonest.schedule.sequence
        if name in PLAIN:
            return self.plan.sequence if name == "ready" else self.flow.dag.order
        policy = self.policy if name == self.used else name
        return numbered_order(self.flow, policy, self._planned(policy))

    def _planned(self, policy: str) -> Ints | None:
        """The order of the plan that a policy follows, or by which it breaks ties."""
        effort = PLAN_EFFORT.get(policy)
        return None if effort is None else self._ties if effort == "quick" else self.plan.sequence

    @cached_property
    def _ties(self) -> Ints:
        """The order by which rules break ties, that of a quick plan, as in a run."""
        return self.plan.sequence if self.effort == "quick" else make_plan(self.flow, "quick", self.prefer).sequence

    @cached_property
    def _terms(self) -> Terms | None:
        return None if self.pool is None else self._terms_on(self.pool)

    @cached_property
    def _rules(self) -> dict[str, Policy]:
        return finishing_rules(self.flow, self.plan.sequence, self._ties)

    @cached_property
    def _soonest(self) -> Soonest | None:
        """The schedule found to finish soonest on the pool; None if there is no pool, or priorities decide."""
        return None if self._terms is None or not is_promised(self.flow) else soonest_on(self._terms, self._rules)

    def _candidate(self, name: str) -> Candidate:
        dag, sequence = self.flow.dag, self.sequence(name)
        same = np.array_equal(sequence, self.plan.sequence)
        counts = self.plan.counts if same else eligible_counts(dag, sequence)
        schedule = None if self._terms is None else self._terms.listed(sequence)
        seconds = None if schedule is None else schedule.makespan
        peak = None if self.footprint is None else self._peak(self.footprint, sequence, schedule)
        gap = None if seconds is None or self.bound is None else Finish(seconds, self.bound).gap
        why = self._why() if name == self.used else ""
        return Candidate(name, sequence, counts, order_figures(dag, sequence).polls, seconds, gap, peak, why)

    @staticmethod
    def _peak(footprint: Footprint, sequence: Ints, schedule: Schedule | None) -> int:
        return footprint.peak(sequence) if schedule is None else footprint.peak_in_time(schedule.begin, schedule.end)

    def _why(self) -> str:
        if self.space is not None:
            return f"keeps files between tasks within {byte_words(self.space)}"
        if self.used != "finish":
            return "requested"
        if self.pool is None or self.origin is None:
            return "aims to finish soonest"
        reason = f"made for {self.pool.head}"
        return (
            reason
            if self.origin == "finish"
            else f"{reason}, based on {self.origin}, which finishes sooner than the rule of finish"
        )


def order(  # noqa: PLR0913
    flow: object,
    workers: object = None,
    *,
    policy: str = "finish",
    history: "Histories" = (),
    effort: str = "normal",
    prefer: str = "path",
    override: bool = False,
) -> ChosenOrder:
    """The order in which to hand out the tasks of a workflow, with the measures of the alternatives.

    *flow* is anything that `eligo.plan` accepts. `order` is what `eligo plan` writes; `eligo run` and `eligo.run` follow the
    same rule. Run times come from the workflow, else from *history* or from an earlier run, FILE.run. With *workers*, a
    number or anything else that `Pool.of` accepts, the order is made for these. Tasks of larger priority go first unless
    *override*.
    *effort* and *prefer* are those of the plan, `ready`; other orders break ties by a quick plan.

    >>> chosen = order({"a": [], "b": [], "c": ["b"], "d": ["b"]})
    >>> chosen.order, list(chosen.candidates)
    (('b', 'a', 'c', 'd'), ['ready', 'finish', 'fifo'])
    >>> timed = {"a": 1.0, "b": 4.0, "c": 4.0, "d": 1.0}
    >>> on_two = order({"a": [], "b": [], "c": ["a"], "d": ["b"]}, 2, history=[(name, None, timed[name]) for name in timed])
    >>> on_two.finish.makespan, round(on_two.bound.seconds, 6), on_two.chosen.why
    (5.0, 5.0, 'made for 2 workers')
    """
    pool = None if workers is None else Pool.of(workers)
    return choose(times_of(as_workflow(flow), history), policy, pool, override, effort=effort, prefer=prefer)


def choose(times: RunTimes, policy: str, pool: Pool | None, override: bool, **search: Any) -> ChosenOrder:
    """The order chosen by a policy for a workflow with its run times; *search* has the other fields of the result."""
    return ChosenOrder(without_priorities(times) if override else times, present_name(policy), pool, **search)


def without_priorities(times: RunTimes) -> RunTimes:
    """The run times with the workflow's priorities removed, so that the order alone decides."""
    details = {name: replace(task, priority=None) for name, task in times.flow.details.items()}
    return replace(times, flow=replace(times.flow, details=details))
