"""Key figures of an order: the mean number of ready tasks and the polls to completion."""

from typing import NamedTuple

from eligo.dag import Dag
from eligo.policies import from_order
from eligo.simulation.batched import batched
from eligo.theory.eligibility import Order, eligible_counts

REQUESTS = (4.0, 16.0, 64.0)
MOST_RUNS, MOST_PLAYED = 30, 300_000  # games, and tasks in all games: about 0.1 s


class OrderFigures(NamedTuple):
    """The mean number of ready tasks, and the polls for about 4, 16 or 64 simultaneous requests; large dags have no polls."""

    ready: float
    polls: tuple[float, ...]


def order_figures(dag: Dag, order: Order) -> OrderFigures:
    """The figures of an order.

    >>> order_figures(Dag.from_arcs([("a", "b"), ("a", "c")]), "abc").ready
    1.3333333333333333
    """
    ready = float(eligible_counts(dag, order).sum()) / max(1, len(dag))
    runs = min(MOST_RUNS, MOST_PLAYED // max(1, len(dag)))
    if not runs:
        return OrderFigures(ready, ())
    policy = from_order(dag, order)
    return OrderFigures(ready, tuple(float(batched(policy, mean, runs).mean()) for mean in REQUESTS))
