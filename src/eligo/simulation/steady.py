"""A steady pool: workers who stay, or cores that tasks share, and tasks that take as long as is known. When is all done?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from eligo.border import as_workflow
from eligo.finishing import FinishBound, own_seconds, window_bound
from eligo.planning import Plan
from eligo.policies import Policy, from_order, policy
from eligo.pools import Floats, Pool
from eligo.prioritising import ORDERS, finishing_rules, soonest_on
from eligo.scheduling import Schedule, Terms, improved_schedule, terms_of
from eligo.simulation.pebble import run_seeds
from eligo.simulation.players import Player
from eligo.simulation.volatile import Clients, volatile
from eligo.theory.eligibility import Order
from eligo.workflow import Workflow


class Finish(NamedTuple):
    """When all is done on a pool if tasks take as long as is known, and before when no order can be done."""

    makespan: float
    bound: FinishBound

    @property
    def gap(self) -> float:
        """How much later than the bound it ends, as a share of the bound."""
        return self.makespan / self.bound.seconds - 1 if self.bound.seconds else 0.0


@dataclass(frozen=True, eq=False)
class Steady:
    """A workflow and the rule that it follows, on any pool; *improve* where its order is to be bettered for each.

    With *rules*, every pool gets what ends soonest of these, each of them bettered.
    """

    flow: Workflow
    seconds: Floats
    rule: Policy
    improve: bool = False
    rules: Mapping[str, Policy] = field(default_factory=dict)

    @classmethod
    def following(
        cls, flow: object, order: str | Order = "finish", plan: Plan | None = None, improve: bool | None = None
    ) -> Self:
        """The workflow under the order or policy of that name, or in the order given.

        Unless *improve* is False, "finish" is what ends soonest on each pool; others are improved only where it is True.
        """
        known = as_workflow(flow)
        seconds = own_seconds(known)
        if not isinstance(order, str):
            return cls(known, seconds, from_order(known.dag, order), bool(improve))
        if order == "finish" and improve is not False:
            rules = finishing_rules(known, None if plan is None else plan.sequence)
            return cls(known, seconds, rules["finish"], rules=rules)
        rule = policy(ORDERS.get(order, order), known, None if plan is None else plan.sequence)
        return cls(known, seconds, rule, bool(improve))

    def schedule(self, workers: object) -> Schedule:
        """Who runs what from when to when."""
        return self._schedule(terms_of(self.flow, self.seconds, workers))

    def finish(self, workers: object) -> Finish:
        """When all is done, and before when it cannot be."""
        terms = terms_of(self.flow, self.seconds, workers)
        bound = window_bound(terms.dag, terms.seconds, terms.pool, terms.cores)
        return Finish(self._schedule(terms).makespan, bound)

    def _schedule(self, terms: Terms) -> Schedule:
        if self.rules:
            return soonest_on(terms, self.rules).schedule
        played = terms.played(self.rule.board(), run_seeds(1, 0)[0])
        return improved_schedule(terms, played) if self.improve else played


def finish_on(
    flow: object, workers: object, order: str | Order = "finish", plan: Plan | None = None, improve: bool | None = None
) -> Finish:
    """When a workflow is done on a pool, whose workers get the ready task that the order or policy says.

    *workers* is their number, their speeds, or whatever else `Pool.of` takes; *order* is a name, or the tasks themselves, of
    which each worker gets the first that is ready. With *improve* the order is bettered forward and backward for this pool.
    Unless *improve* is False, "finish" is the order found to end soonest on this pool, never later than "ready" or the
    tasks as they come in the workflow.

    >>> from eligo import Dag, Task, Workflow
    >>> fork = Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["a"]})
    >>> flow = Workflow(fork, {name: Task(name=name, seconds=3.0, cores=2) for name in "abcd"})
    >>> found = finish_on(flow, 2)
    >>> found.makespan, round(found.bound.seconds, 6)
    (9.0, 9.0)
    >>> finish_on(flow, "2x1,2x0.5").makespan, finish_on(flow, Pool(cores=3)).makespan
    (9.0, 12.0)
    """
    pool = Pool.of(workers)
    return Steady.following(flow, order, plan, improve).finish(pool)


def makespans(player: Player, workers: int, seconds: Floats, runs: int = 1, seed: int = 0) -> Floats:
    """When all is done on so many equal workers, run by run; played once where chance decides nothing."""
    pool = Clients(count=min(workers, len(seconds)), spread=1.0, stay=math.inf)
    played = runs if isinstance(player, Policy) and player.drawn else 1
    return np.resize(volatile(player, pool, played, seed, seconds).makespan, runs)
