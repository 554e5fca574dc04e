"""Players of the games: policies, which the compiled games can run, and other allocators, which are called live.

Policies and best batches are given by name, orders by their file. `playing` turns any player into an allocator for an
execution.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from eligo.allocating import Allocator, ByPolicy
from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.execution import Execution
from eligo.policies import POLICIES, Policy, policy
from eligo.theory.eligibility import Order

#: the schedulers that can be compared by name
SCHEDULERS = (*POLICIES, "batch-optimal")
LONGEST = 14  # characters of a scheduler's name


@dataclass(frozen=True, eq=False)
class Live:
    """An allocator that is not a policy: a function that creates it for an execution and a seed."""

    name: str
    dag: Dag
    make: Callable[[Execution, int], Allocator]


Player = Policy | Live


def scheduler(name: str, flow: object, order: Order | None = None) -> Player:
    """The player with this name for a workflow; *order* is the order of its plan, if known.

    >>> scheduler("fifo", {"a": [], "b": ["a"]})
    Policy('fifo', 2 tasks)
    >>> scheduler("batch-optimal", {"a": [], "b": ["a"]}).name
    'batch-optimal'
    """
    if name not in SCHEDULERS or name in POLICIES:
        return policy(name, flow, order)
    from eligo.allocating import allocator  # imports batches and clusters, which policies do not need

    workflow = as_workflow(flow)
    return Live(name, workflow.dag, lambda game, seed: allocator(name, workflow, game, rules=None, seed=seed))


def playing(player: Player, execution: Execution, seed: int = 0) -> Allocator:
    """Return the player as an allocator for an execution."""
    return ByPolicy(player, execution, seed) if isinstance(player, Policy) else player.make(execution, seed)


def name_of(scheduler: str) -> str:
    """A scheduler's name, shortened to fit a table; for a file, its name without folders.

    >>> name_of("critical-path"), name_of("orders/what-i-did-last-year.txt")
    ('critical-path', 'what-i-…ar.txt')
    """
    name = os.path.basename(scheduler)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2 - 1) :]}"
