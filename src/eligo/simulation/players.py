"""Who plays: a policy, which the compiled games know, or any other allocator, which is played live.

Policies and best batches go by name, orders by their file; either can be had as an allocator for an execution.
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

#: what can be compared by name
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
    """The player with this name for a workflow; *order* is that of its plan, if known.

    >>> scheduler("fifo", {"a": [], "b": ["a"]})
    Policy('fifo', 2 tasks)
    >>> scheduler("batch-optimal", {"a": [], "b": ["a"]}).name
    'batch-optimal'
    """
    if name not in SCHEDULERS or name in POLICIES:
        return policy(name, flow, order)
    from eligo.allocating import allocator  # with batches and clusters, which policies do without

    workflow = as_workflow(flow)
    return Live(name, workflow.dag, lambda game, seed: allocator(name, workflow, game, rules=None, seed=seed))


def playing(player: Player, execution: Execution, seed: int = 0) -> Allocator:
    """The player as an allocator of an execution."""
    return ByPolicy(player, execution, seed) if isinstance(player, Policy) else player.make(execution, seed)


def name_of(scheduler: str) -> str:
    """A scheduler's name, that of a file without folders, and short enough for a table.

    >>> name_of("critical-path"), name_of("orders/what-i-did-last-year.txt")
    ('critical-path', 'what-i-…ar.txt')
    """
    name = os.path.basename(scheduler)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2 - 1) :]}"
