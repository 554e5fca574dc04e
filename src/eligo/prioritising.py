"""The order to follow, and the same as a number for every task: what an engine is given.

| order | what it is |
|---|---|
| `finish` | the default: what ends soonest, as far as is known: the policy of that name, or for a pool the soonest found |
| `ready` | the plan's own: the most tasks ready, proved |
| `fifo` | first come, first served, and of those that come together the first in the workflow |
| a policy's name | that policy, played once |
| a file, or a list of tasks | itself |

Where tasks have priorities, larger ones go first, and the order decides among equals, as in a run.
"""

from collections.abc import Mapping, Sequence
from os.path import isfile

from eligo.border import as_workflow
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.names import Name
from eligo.planning import Plan
from eligo.planning import plan as make_plan
from eligo.policies import POLICIES, Policy, from_order, in_classes, policy
from eligo.pools import Pool
from eligo.rows import Ints
from eligo.scheduling import Soonest, Terms, soonest, terms_of
from eligo.theory.eligibility import check_schedule
from eligo.workflow import Workflow, priority_numbers


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
    sequence = None if plan is None else plan.sequence
    if pool is not None and order == "finish" and is_promised(known):
        best = soonest_on(terms_of(known, estimate(known).seconds, pool), finishing_rules(known, sequence))
        return known.dag.named(best.schedule.sequence)
    return known.dag.named(numbered_order(known, order, sequence))


def is_promised(flow: Workflow) -> bool:
    """Whether an order can be made for a pool: the own time of every task is known, and no priority comes before it."""
    return estimate(flow).level == "seconds" and not has_classes(flow)


def has_classes(flow: Workflow) -> bool:
    """Whether the tasks' own priorities part them, so that those of larger ones go first."""
    return len({priority or 0 for priority in flow.column("priority")}) > 1


def rule_to_follow(flow: Workflow, name: str, sequence: Ints | None = None) -> Policy:
    """The rule of that name by which tasks are handed out, larger priorities first; *sequence* is that of their plan."""
    return in_classes(policy(name, flow, sequence), flow.column("priority"))


def numbered_order(flow: Workflow, name: str, sequence: Ints | None = None) -> Ints:
    """The order of that name as numbers; *sequence* is that of the plan by which it goes, where it is known."""
    check_order(name)
    if name == "fifo":
        return in_classes(from_order(flow.dag, flow.dag.order), flow.column("priority")).order()
    return rule_to_follow(flow, name, sequence).order()


def finishing_rules(flow: Workflow, ready: Ints | None = None, ties: Ints | None = None) -> dict[str, Policy]:
    """The rules of which a pool gets what ends soonest, by name, the first where they tie.

    *ready* is the order of the plan, and *ties* the one by which `finish` breaks ties, where they are known.
    """
    sequence = make_plan(flow).sequence if ready is None else ready
    rules = {"ready": from_order(flow.dag, sequence, "ready"), "fifo": from_order(flow.dag, flow.dag.order, "fifo")}
    return {"finish": policy("finish", flow, ties)} | rules


def soonest_on(terms: Terms, rules: Mapping[str, Policy]) -> Soonest:
    """The schedule found to end soonest on a pool: never later than any of the rules by itself."""
    return soonest(terms, {name: terms.played(rule.board()) for name, rule in rules.items()})


def check_order(name: str) -> None:
    """Refuse what is no order, before any work is done."""
    if name not in POLICIES and not isfile(name):
        raise InputError(f"there is no order {name!r}, nor a file of that name; there are {', '.join(POLICIES)}")
