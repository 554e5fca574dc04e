"""What lists of arcs share, whatever stands between the names."""

import numpy as np

from eligo.dag import Dag


def shown_in_order(dag: Dag) -> int | None:
    """How many tasks the arcs show, if they show them first to last and leave only the last ones out."""
    shown, first = np.unique(np.column_stack((dag.tails, dag.child)), return_index=True)
    return len(shown) if np.array_equal(shown[np.argsort(first)], np.arange(len(shown))) else None
