"""The order for an engine that waits for it: planned quickly, since nothing else goes on there meanwhile."""

from eligo.border import as_workflow
from eligo.names import Name
from eligo.planning import plan
from eligo.prioritising import order_to_follow


def quick_order(flow: object, order: str) -> tuple[Name, ...]:
    """The order of that name, with no more than a quick search for the best plan.

    >>> quick_order({"a": [], "b": [], "c": ["b"], "d": ["b"]}, "finish")
    ('b', 'a', 'c', 'd')
    """
    known = as_workflow(flow)
    return order_to_follow(known, order, plan(known, "quick"))
