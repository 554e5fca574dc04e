"""Which order is written as fixed priorities, and what it gives beside the other, so that nothing is given up silently."""

from eligo.planning import Plan
from eligo.prioritising import ORDERS, order_to_follow
from eligo.simulation.figures import order_figures
from eligo.workflow import Workflow


def order_to_export(flow: Workflow, plan: Plan, wanted: str) -> tuple[tuple[str, ...], list[str]]:
    """The order of that name, and what to tell of it and of the other ones."""
    written = order_to_follow(flow, wanted, plan)
    told = [f"order written: {wanted}, with {_figures(flow, written)}"]
    for other in ORDERS:
        if other != wanted:
            told.append(f"  instead, --order {other} has {_figures(flow, order_to_follow(flow, other, plan))}")
    return written, told


def _figures(flow: Workflow, order: tuple[str, ...]) -> str:
    ready, polls = order_figures(flow.dag, order)
    shown = ", ".join(f"{mean:,.1f}" for mean in polls)
    return f"{ready:,.2f} tasks ready on average and {shown} polls of about 4, 16, 64 requests"
