"""Allocators choose the tasks for each client: by policy, in batches or as fat tasks, with rules for slow ones.

| notion | where |
|---|---|
| ask, grant, allocator | `asks` |
| the ready task of the highest score | `by_policy` |
| the tasks that together leave the most ready (BICSO); fat tasks | `by_batch` |
| slow clients, long tasks, copies of overdue tasks, around any of these | `prudent` |
| a limit on the files between tasks, around any of these | `within` |
| an allocator by its name | `allocator` |

Several allocators may serve one execution: each follows its journal. docs/howto/hand-out-tasks.md shows how.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from eligo.allocating.asks import Allocator, Ask, Grant
from eligo.allocating.by_policy import ByPolicy
from eligo.allocating.prudent import PRUDENT, Prudent, Rules, rules_with_times
from eligo.allocating.speeds import Speeds
from eligo.allocating.within import Space, Within
from eligo.border import as_workflow
from eligo.errors import InputError
from eligo.estimates import estimate
from eligo.execution import Execution
from eligo.policies import order_grown, policy, rank_of
from eligo.theory.eligibility import Order
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.allocating.by_batch import ByBatch, ByCluster, FatGrant

__all__ = [
    "ALLOCATORS",
    "PRUDENT",
    "Allocator",
    "Ask",
    "ByBatch",
    "ByCluster",
    "ByPolicy",
    "FatGrant",
    "Grant",
    "Prudent",
    "Rules",
    "Space",
    "Speeds",
    "Within",
    "allocator",
    "rules_with_times",
]


#: the allocators by name, apart from policies: every policy and every file with an order also names an allocator
ALLOCATORS = ("batch-optimal", "cluster")


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
    space: Space | None = None,
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
    space: Space | None = None,
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
    space: Space | None = None,
) -> Allocator:
    """Create the allocator with this name for a workflow that is being executed.

    The name is that of a policy, such as "finish", the default for runs, or of a file with an order; "batch-optimal"; or
    "cluster", for fat tasks that serve the *goal*. *rules* are applied around it, by default those for slow clients, with the
    known times of tasks; None turns them off. *space* limits the bytes of the files between tasks. *order* is that of the
    workflow's plan, if known. The execution may have grown since the workflow was made.

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
    workflow, order = _for_execution(workflow, game, order)

    def plain(game: Execution) -> Allocator:
        if name in ALLOCATORS:
            from eligo.allocating.by_batch import ByBatch, ByCluster

            return ByBatch(game) if name == "batch-optimal" else ByCluster(workflow, game, goal=goal)
        estimates, rule = estimate(workflow), policy(name, workflow, order)
        return ByPolicy(rule, game, seed, estimates.seconds if estimates.level == "seconds" else None, workflow)

    inner = plain(game) if space is None else space.around(plain, workflow, game, free=name == "finish")
    if rules is None:
        return inner
    return Prudent(inner, rules_with_times(rules, workflow) if rules is PRUDENT else rules)


def _for_execution(flow: Workflow, game: Execution, order: Order | None) -> tuple[Workflow, Order | None]:
    """The workflow and the order with the tasks of the execution, which may have grown since they were made."""
    if game.dag is flow.dag or game.dag == flow.dag:
        return flow, order
    if not game.additions or (game.begun is not flow.dag and game.begun != flow.dag):
        raise InputError("this execution belongs to another workflow")
    return flow.grown(game.dag), None if order is None else order_grown(game.dag, rank_of(flow.dag, order))


def __getattr__(name: str) -> Any:
    """Import the allocators of `by_batch` on first use, because they import `eligo.batches` and `eligo.clusters`."""
    if name not in {"ByBatch", "ByCluster", "FatGrant"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("eligo.allocating.by_batch"), name)
