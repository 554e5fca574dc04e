"""Duality: a dag admits an IC-optimal schedule exactly when its dual does, and each gives the other [1]_, Theorem 3.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags, after Cordasco, Malewicz, Rosenberg (2007).
"""

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints
from eligo.theory.eligibility import Order, eligible_steps
from eligo.theory.profiles import Profile


def dual_schedule(dag: Dag, order: Order) -> Ints:
    """A schedule of the dual: the packets of tasks that each step renders eligible, last packet first; then the sources.

    It is IC-optimal for the dual where *order* is IC-optimal for the dag.

    >>> vee = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d")])
    >>> vee.dual().named(dual_schedule(vee, ["a", "b", "c", "d"]))
    ('d', 'b', 'c', 'a')
    """
    return np.argsort(-eligible_steps(dag, order), kind="stable").astype(np.int32)


def dual_maxima(maxima: Profile, sinks: int) -> Profile:
    """The maximal profile of the dual of a bipartite block with that many sinks, from its own.

    Rendering j tasks of the dual is leaving unrendered all that touch them: the least number of dual steps that renders j
    is the number of sinks less what the block's other s - j sources can render.

    >>> dual_maxima(np.array([0, 1, 2, 4]), 4).tolist()
    [0, 0, 1, 2, 3]
    """
    s = len(maxima) - 1
    least = sinks - maxima[s - np.arange(s + 1)]
    return np.searchsorted(least, np.arange(sinks + 1), side="right").astype(np.int64) - 1
