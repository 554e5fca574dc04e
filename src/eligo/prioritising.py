"""The order to follow, and the same as a number for every task: what an engine is given.

| order | what it is |
|---|---|
| `finish` | the default: what ends soonest, as far as is known: the policy of that name, or for a pool the soonest found |
| `ready` | the plan's own: the most tasks ready, proved |
| `fifo` | first come, first served, and of those that come together the first in the workflow |
| a policy's name | that policy, played once |
| a file, or a list of tasks | itself |
"""

from collections.abc import Mapping, Sequence
from os.path import isfile

from eligo.border import as_workflow
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.names import Name
from eligo.planning import Plan
from eligo.planning import plan as make_plan
from eligo.policies import POLICIES, Policy, from_order, policy
from eligo.pools import Pool
from eligo.rows import Ints
from eligo.scheduling import Soonest, Terms, soonest, terms_of
from eligo.theory.eligibility import check_schedule
from eligo.workflow import Workflow, priority_numbers

#: the orders that eligo chooses between by itself, by the policies that they are; `finish` is the default
ORDERS = {"finish": "finish", "ready": "plan"}


def priorities(
    flow: object, order: str | Sequence[Name] = "finish", plan: Plan | None = None, pool: Pool | None = None
) -> dict[Name, int]:
    """A priority for every task, the larger the sooner: n, n - 1, ..., 1 along the order.

    >>> priorities({"a": [], "b": [], "c": ["b"], "d": ["b"]})
    {'b': 4, 'a': 3, 'c': 2, 'd': 1}
    >>> priorities({1: [], 2: [1]}, order=[1, 2])
    {1: 2, 2: 1}
    """
    return priority_numbers(order_to_follow(flow, order, plan, pool))


def order_to_follow(
    flow: object, order: str | Sequence[Name] = "finish", plan: Plan | None = None, pool: Pool | None = None
) -> tuple[Name, ...]:
    """The order of that name, in that file, or as given, which must be a schedule; *plan* is the workflow's, where known.

    With a *pool*, and where it is known how long every task runs, "finish" is the order found to end soonest on that pool.

    >>> order_to_follow({"a": [], "b": [], "c": ["b"], "d": ["b"]}, "ready")
    ('b', 'a', 'c', 'd')
    """
    known = as_workflow(flow)
    if not isinstance(order, str):
        check_schedule(known.dag, order)
        return tuple(order)
    check_order(order)
    if order == "ready":
        return (make_plan(known) if plan is None else plan).order
    if order == "fifo":
        return known.dag.named(known.dag.order)
    times = estimate(known) if pool is not None and order == "finish" else None
    if times is not None and times.level == "seconds":
        best = soonest_on(
            terms_of(known, times.seconds, pool), finishing_rules(known, None if plan is None else plan.sequence)
        )
        return known.dag.named(best.schedule.sequence)
    return known.dag.named(policy(ORDERS.get(order, order), known, None if plan is None else plan.sequence).order())


def finishing_rules(flow: Workflow, ready: Ints | None = None) -> dict[str, Policy]:
    """The rules of which a pool gets what ends soonest, by name, the first where they tie; *ready* is the plan's order."""
    sequence = make_plan(flow).sequence if ready is None else ready
    rules = {"ready": from_order(flow.dag, sequence, "ready"), "fifo": from_order(flow.dag, flow.dag.order, "fifo")}
    return {"finish": policy("finish", flow, sequence)} | rules


def soonest_on(terms: Terms, rules: Mapping[str, Policy]) -> Soonest:
    """The schedule found to end soonest on a pool: never later than any of the rules by itself."""
    return soonest(terms, {name: terms.played(rule.board()) for name, rule in rules.items()})


def check_order(name: str) -> None:
    """Refuse what is no order, before any work is done."""
    if name not in ORDERS and name not in POLICIES and not isfile(name):
        names = ", ".join(dict.fromkeys((*ORDERS, *POLICIES)))
        raise InputError(f"there is no order {name!r}, nor a file of that name; there are {names}")
