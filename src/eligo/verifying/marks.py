"""What marked tasks tell of the area, recomputed: see `deciding.marking`.

An order passes through sets whose marked tasks grow, by one or none a step. With M(t, Q), the most that t tasks render of
which just Q are marked, no order's sum from a step on is above the largest sum of M(t, Q_t) over Q_t that grow like that.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.verifying import modules
from eligo.verifying.positions import Marks
from eligo.verifying.refuting import require

MOST_ENTRIES = 100_000_000  # of a table


def marks_of(dag: Dag, how: Mapping[str, Any] | None) -> Marks | None:
    """The marked tasks of a proof, if it has some, and what can still come for each set of them after each step."""
    if how is None:
        return None
    tasks, nonsinks = sorted({dag.index.get(name, -1) for name in how["tasks"]}), np.flatnonzero(dag.outdegree)
    require(len(tasks) == len(how["tasks"]) > 0 and np.isin(tasks, nonsinks).all(), "no tasks to be marked")
    if (len(nonsinks) + 1) << len(tasks) > MOST_ENTRIES:
        raise OverflowError("there are too many sets of marked tasks")
    roles = modules.roles(dag, how["order"], how["executed_first"])
    kept = [(v, 1) for v in tasks]
    require(sorted([*roles, *kept]) == modules.all_roles(dag), "not every task but the marked is eliminated once")
    maxima = modules.maxima_by_marks(dag, roles, tasks)
    return Marks(tasks, _left(maxima))


def _left(maxima: modules.Profile) -> modules.Profile:
    """For every set and step the largest sum behind it, from the last step on."""
    left, sets = np.zeros_like(maxima), np.arange(len(maxima))
    for t in range(maxima.shape[1] - 1, 0, -1):
        behind = maxima[:, t] + left[:, t]
        grown = [behind[sets | 1 << i] for i in range(len(maxima).bit_length() - 1)]
        left[:, t - 1] = np.maximum(np.max([behind, *grown], axis=0), modules.NONE)
    return left
