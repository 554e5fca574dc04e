"""A steady pool: so many equal workers who stay, and tasks that take as long as is known. When is all done?"""

import math
from typing import NamedTuple

import numpy as np

from eligo.border import as_workflow
from eligo.errors import InputError
from eligo.finishing import FinishBound, Floats, earliest_finish, own_seconds
from eligo.planning import Plan
from eligo.policies import Policy, from_order, policy
from eligo.prioritising import ORDERS
from eligo.simulation.players import Player
from eligo.simulation.volatile import Clients, volatile
from eligo.theory.eligibility import Order


class Finish(NamedTuple):
    """When all is done on equal workers if tasks take as long as is known, and before when no order can be done."""

    makespan: float
    bound: FinishBound

    @property
    def gap(self) -> float:
        """By which share the finish is above the bound."""
        return self.makespan / self.bound.seconds - 1 if self.bound.seconds else 0.0


def finish_on(flow: object, workers: int, order: str | Order = "finish", plan: Plan | None = None) -> Finish:
    """When a workflow is done on so many workers, each of whom gets the ready task that the order or policy says.

    *order* is a name, or the tasks themselves, of which each worker gets the first that is ready.

    >>> from eligo import Dag, Task, Workflow
    >>> fork = Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["a"]})
    >>> found = finish_on(Workflow(fork, {name: Task(name=name, seconds=3.0) for name in "abcd"}), 2)
    >>> found.makespan, round(found.bound.seconds, 6)
    (9.0, 9.0)
    """
    if type(workers) is not int or workers < 1:
        raise InputError(f"there is at least one worker, a whole number of them, and {workers!r} is none")
    known = as_workflow(flow)
    bound, seconds = earliest_finish(known, workers), own_seconds(known)
    if not len(seconds) or not seconds.any():
        return Finish(0.0, bound)
    if isinstance(order, str):
        rule = policy(ORDERS.get(order, order), known, None if plan is None else plan.sequence)
    else:
        rule = from_order(known.dag, order)
    return Finish(float(makespans(rule, workers, seconds)[0]), bound)


def makespans(player: Player, workers: int, seconds: Floats, runs: int = 1, seed: int = 0) -> Floats:
    """When all is done on so many workers, run by run; played once where chance decides nothing."""
    pool = Clients(count=min(workers, len(seconds)), spread=1.0, stay=math.inf)
    played = runs if isinstance(player, Policy) and player.drawn else 1
    return np.resize(volatile(player, pool, played, seed, seconds).makespan, runs)
