"""Allocators by name."""

from collections.abc import Callable
from typing import NamedTuple, overload

from eligo.allocating.asks import Allocator
from eligo.allocating.by_batch import ByBatch
from eligo.allocating.by_cluster import ByCluster
from eligo.allocating.by_policy import ByPolicy
from eligo.allocating.prudent import PRUDENT, Prudent, Rules, informed
from eligo.border import as_workflow
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.execution import Execution
from eligo.policies import order_grown, policy, rank_of
from eligo.theory.eligibility import Order
from eligo.workflow import Workflow


class _Wanted(NamedTuple):
    """What an allocator is to be made for."""

    flow: Workflow
    execution: Execution
    order: Order | None
    seed: int
    goal: str


def _by_policy(name: str, wanted: _Wanted) -> Allocator:
    estimates = estimate(wanted.flow)
    rule = policy(name, wanted.flow, wanted.order)
    seconds = estimates.seconds if estimates.level == "seconds" else None
    return ByPolicy(rule, wanted.execution, wanted.seed, seconds, wanted.flow)


#: the allocators that are no policies; of these, each name and each file with an order is one too
ALLOCATORS: dict[str, Callable[[_Wanted], Allocator]] = {
    "batch-optimal": lambda wanted: ByBatch(wanted.execution),
    "cluster": lambda wanted: ByCluster(wanted.flow, wanted.execution, goal=wanted.goal),
}


@overload
def allocator(
    name: str,
    flow: object,
    execution: Execution | None = None,
    *,
    rules: None,
    order: Order | None = None,
    seed: int = 0,
    goal: str = "productive",
) -> Allocator: ...
@overload
def allocator(
    name: str,
    flow: object,
    execution: Execution | None = None,
    *,
    rules: Rules = PRUDENT,
    order: Order | None = None,
    seed: int = 0,
    goal: str = "productive",
) -> Prudent: ...
def allocator(  # noqa: PLR0913
    name: str,
    flow: object,
    execution: Execution | None = None,
    *,
    rules: Rules | None = PRUDENT,
    order: Order | None = None,
    seed: int = 0,
    goal: str = "productive",
) -> Allocator:
    """Create the allocator with this name for a workflow that is being executed.

    A name is that of a policy, such as "finish", the default for runs, or of a file with an order;
    "batch-optimal"; or "cluster", for fat tasks that serve the *goal*. *rules* go around it, by default those for slow
    clients with what is known of the tasks' times; None turns them off.
    *order* is that of the workflow's plan, if known. The execution may have grown since the workflow was made.

    >>> flow = {"a": [], "b": ["a"], "c": ["a"]}
    >>> allocator("finish", flow, rules=None)
    <eligo.allocating.by_policy.ByPolicy object at ...>
    >>> allocator("roulette", flow)
    Traceback (most recent call last):
    eligo.errors.InputError: unknown policy 'roulette' (choose from finish, balanced, ready, ...
    """
    workflow = as_workflow(flow)
    if not isinstance(name, str):
        raise InputError(f"the name of an allocator must be a string, got {name!r}")
    game = Execution(workflow) if execution is None else execution
    if not isinstance(game, Execution):
        raise InputError(f"an allocator needs an eligo.Execution, got {execution!r}")
    wanted = _Wanted(*_grown(workflow, game, order), seed, goal)
    plain = ALLOCATORS[name](wanted) if name in ALLOCATORS else _by_policy(name, wanted)
    if rules is None:
        return plain
    return Prudent(plain, informed(rules, wanted.flow) if rules is PRUDENT else rules)


def _grown(flow: Workflow, game: Execution, order: Order | None) -> tuple[Workflow, Execution, Order | None]:
    """The workflow and the order as the execution has them: it may have grown since they were made."""
    if game.dag is flow.dag or game.dag == flow.dag:
        return flow, game, order
    if not game.additions or (game.begun is not flow.dag and game.begun != flow.dag):
        raise InputError("this execution belongs to another workflow")
    return flow.grown(game.dag), game, None if order is None else order_grown(game.dag, rank_of(flow.dag, order))
