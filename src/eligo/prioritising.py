"""The order to follow, also as a priority for every task, for engines.

| order | meaning |
|---|---|
| `finish` | the default: aims to finish soonest, by the policy of that name, or for a pool by a schedule |
| `ready` | the plan's own: the most tasks ready, proved |
| `fifo` | first come, first served; tasks that become ready together in the order of the workflow |
| a policy's name | that policy, played once |
| a file, or a list of tasks | the given order |

Tasks with larger priorities go first, and the order decides among equals, as in a run.
"""

from collections.abc import Mapping, Sequence
from os.path import isfile

from eligo.border import as_workflow
from eligo.errors import InputError
from eligo.estimates import estimate
from eligo.names import Name
from eligo.planning import Plan
from eligo.planning import plan as make_plan
from eligo.policies import POLICIES, Policy, from_order, in_classes, policy, present_name
from eligo.pools import Pool
from eligo.rows import Ints
from eligo.schedules import Soonest, Terms, soonest, terms_of
from eligo.theory.eligibility import check_schedule
from eligo.workflow import Workflow, priority_numbers


def priorities(
    flow: object, order: str | Sequence[Name] = "finish", plan: Plan | None = None, pool: Pool | None = None
) -> dict[Name, int]:
    """The priority of every task, larger is earlier: n, n - 1, ..., 1 along the order.

    >>> priorities({"a": [], "b": [], "c": ["b"], "d": ["b"]})
    {'b': 4, 'a': 3, 'c': 2, 'd': 1}
    >>> priorities({1: [], 2: [1]}, order=[1, 2])
    {1: 2, 2: 1}
    """
    return priority_numbers(order_to_follow(flow, order, plan, pool))


def order_to_follow(
    flow: object, order: str | Sequence[Name] = "finish", plan: Plan | None = None, pool: Pool | None = None
) -> tuple[Name, ...]:
    """The order by name, from a file, or as given, which must be a schedule; *plan* is the workflow's, if known.

    With a *pool*, and if every run time is known, "finish" is the order found to finish soonest on that pool.

    >>> order_to_follow({"a": [], "b": [], "c": ["b"], "d": ["b"]}, "ready")
    ('b', 'a', 'c', 'd')
    """
    workflow = as_workflow(flow)
    if not isinstance(order, str):
        check_schedule(workflow.dag, order)
        return tuple(order)
    sequence = None if plan is None else plan.sequence
    if pool is not None and order == "finish" and is_promised(workflow):
        best = soonest_on(terms_of(workflow, estimate(workflow).seconds, pool), finishing_rules(workflow, sequence))
        return workflow.dag.named(best.schedule.sequence)
    return workflow.dag.named(numbered_order(workflow, order, sequence))


def is_promised(flow: Workflow) -> bool:
    """Whether an order can be computed for a pool: all run times are known, and there are no priorities."""
    return estimate(flow).level == "seconds" and not has_classes(flow)


def has_classes(flow: Workflow) -> bool:
    """Whether the tasks have different priorities, so that larger ones run first."""
    return len({priority or 0 for priority in flow.column("priority")}) > 1


def rule_to_follow(flow: Workflow, name: str, sequence: Ints | None = None) -> Policy:
    """The policy with this name, larger priorities first; *sequence* is the order of the plan."""
    return in_classes(policy(name, flow, sequence), flow.column("priority"))


def numbered_order(flow: Workflow, name: str, sequence: Ints | None = None) -> Ints:
    """The order with this name as task numbers; *sequence* is the order of the plan, if known."""
    name = present_name(name)
    check_order(name)
    if name == "fifo":
        return in_classes(from_order(flow.dag, flow.dag.order), flow.column("priority")).order()
    return rule_to_follow(flow, name, sequence).order()


def finishing_rules(flow: Workflow, ready: Ints | None = None, ties: Ints | None = None) -> dict[str, Policy]:
    """The candidate policies by name, of which a pool gets the one that finishes soonest; ties go to the first.

    *ready* is the order of the plan, and *ties* the one by which `finish` breaks ties, if they are known.
    """
    sequence = make_plan(flow).sequence if ready is None else ready
    rules = {"ready": from_order(flow.dag, sequence, "ready"), "fifo": from_order(flow.dag, flow.dag.order, "fifo")}
    return {"finish": policy("finish", flow, ties)} | rules


def soonest_on(terms: Terms, rules: Mapping[str, Policy]) -> Soonest:
    """The earliest finishing schedule found on a pool: never later than any single policy."""
    return soonest(terms, {name: terms.played(rule.board()) for name, rule in rules.items()})


def check_order(name: str) -> None:
    """Raise if a name is not an order."""
    if name not in POLICIES and not isfile(name):
        raise InputError(f"unknown policy {name!r} (choose from {', '.join(POLICIES)}, or give a file with an order)")
