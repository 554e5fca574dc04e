"""Every fat task of a size, where what is left is so small that there are few."""

from collections.abc import Iterator

import numpy as np

from eligo.clusters.growth import Budget, Growth
from eligo.clusters.state import State
from eligo.clusters.traffic import Files
from eligo.theory.exact import down_sets


def every_set(state: State, budget: Budget, files: Files | None = None) -> Iterator[Growth]:
    """Every self-contained set of what is left that is as large as the budget says.

    >>> from eligo.execution import Execution
    >>> state = State(Execution({"a": [], "b": [], "c": ["a", "b"]}))
    >>> [list(growth.inside) for growth in every_set(state, Budget(2, 2))]
    [[0, 1]]
    """
    free = _free(state)
    rest = state.dag.induced(free)
    order = np.argsort(np.array(state.rank)[free]).tolist()
    for layer in down_sets(rest):
        for mask in layer:
            members = [int(free[i]) for i in order if mask >> i & 1]
            size = sum(map(budget.of, members))
            if all(map(budget.allows, members)) and budget.is_reached(size) and budget.has_room(size):
                growth = Growth(state, budget, files)
                for v in members:
                    growth.add(v)
                yield growth


def _free(state: State) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    """The tasks that hang on nothing that is out, ascending."""
    everything = Growth(state, Budget(float("inf"), float("inf")))
    waiting = [v for v in state.remaining().tolist() if state.is_ready(v)]
    for v in waiting:
        waiting += [w for w in everything.add(v) if not state.gone(w)]
    return np.array(sorted(everything.inside), np.int32)
