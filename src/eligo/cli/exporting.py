"""Which order to write as fixed priorities: the plan's own, or the default policy's, played once."""

from collections.abc import Sequence

from eligo.cli.plans import ORDERS
from eligo.planning import Plan
from eligo.policies import from_order
from eligo.simulation import batched, static_order
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

REQUESTS = (4.0, 16.0, 64.0)
MOST_RUNS, MOST_TASKS = 30, 300_000  # games, and tasks in all of them


def order_to_export(flow: Workflow, plan: Plan, wanted: str) -> tuple[Sequence[str], list[str]]:
    """The order of that name, and what it gives beside the other, so that nothing is given up silently."""
    orders = {"eligible": plan.order, "balanced": flow.dag.named(static_order(flow, plan))}
    told = [f"order written: {wanted}, with {_figures(flow, orders[wanted])}"]
    other = ORDERS[1 - ORDERS.index(wanted)]
    return orders[wanted], [*told, f"  instead, --order {other} has {_figures(flow, orders[other])}"]


def _figures(flow: Workflow, order: Sequence[str]) -> str:
    """Ready tasks on average, and polls where requests come a few or many at a time."""
    ready = eligible_counts(flow.dag, order).sum() / max(1, len(flow))
    policy, runs = from_order(flow.dag, order), max(1, min(MOST_RUNS, MOST_TASKS // max(1, len(flow))))
    polls = [f"{batched(policy, mean, runs).mean():,.1f}" for mean in REQUESTS]
    return f"{ready:,.2f} tasks ready on average and {', '.join(polls)} polls of about 4, 16, 64 requests"
