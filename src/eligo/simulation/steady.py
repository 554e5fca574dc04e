"""Finish times on a steady pool: workers that stay, or cores that tasks share, and known run times."""

import math
from typing import NamedTuple

import numpy as np

from eligo.border import as_workflow
from eligo.finishing import FinishBound, own_seconds, window_bound
from eligo.policies import Policy, from_order
from eligo.pools import Floats, Pool
from eligo.prioritising import finishing_rules, is_promised, rule_to_follow, soonest_on
from eligo.schedules import improved_schedule, terms_of
from eligo.simulation.pebble import Player, run_seeds
from eligo.simulation.volatile import Clients, volatile
from eligo.theory.eligibility import Order


class Finish(NamedTuple):
    """The predicted finish on a pool with known run times, and its lower bound."""

    makespan: float
    bound: FinishBound

    @property
    def gap(self) -> float:
        """The time by which the finish exceeds the bound, as a share of the bound."""
        return self.makespan / self.bound.seconds - 1 if self.bound.seconds else 0.0


def finish_on(flow: object, workers: object, order: str | Order = "finish", improve: bool | None = None) -> Finish:
    """The finish of a workflow on a pool, with tasks chosen by an order or policy.

    *workers* is their number, their speeds, or anything else that `Pool.of` takes. *order* is a name, or a sequence of tasks,
    from which each worker gets the first ready one. With *improve* the order is improved forward and backward for this pool.
    Unless *improve* is False, "finish" is the order found to finish first on this pool. It never finishes later than "ready"
    or the order of the tasks in the workflow.

    >>> from eligo import Dag, Task, Workflow
    >>> fork = Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["a"]})
    >>> flow = Workflow(fork, {name: Task(name=name, seconds=3.0, cores=2) for name in "abcd"})
    >>> found = finish_on(flow, 2)
    >>> found.makespan, round(found.bound.seconds, 6)
    (9.0, 9.0)
    >>> finish_on(flow, "2x1,2x0.5").makespan, finish_on(flow, Pool(cores=3)).makespan
    (9.0, 12.0)
    """
    pool, workflow = Pool.of(workers), as_workflow(flow)
    terms = terms_of(workflow, own_seconds(workflow), pool)
    if isinstance(order, str) and order == "finish" and improve is not False and is_promised(workflow):
        schedule = soonest_on(terms, finishing_rules(workflow)).schedule
    else:
        rule = rule_to_follow(workflow, order) if isinstance(order, str) else from_order(workflow.dag, order)
        schedule = terms.played(rule.board(), run_seeds(1, 0)[0])
        schedule = improved_schedule(terms, schedule) if improve else schedule
    return Finish(schedule.makespan, window_bound(terms.dag, terms.seconds, terms.pool, terms.cores))


def makespans(player: Player, workers: int, seconds: Floats, runs: int = 1, seed: int = 0) -> Floats:
    """The finish time on equal workers for each run; a player without random choices is played once."""
    pool = Clients(count=min(workers, len(seconds)), spread=1.0, stay=math.inf)
    played = runs if isinstance(player, Policy) and player.drawn else 1
    return np.resize(volatile(player, pool, played, seed, seconds).makespan, runs)
