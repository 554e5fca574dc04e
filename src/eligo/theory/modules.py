"""Modules: the decision taken apart at the corners of the concave hull.

At a strict corner t of the hull of M the best set of size t is unique, so every IC-optimal schedule passes through it, and
some schedule of largest area does. The modules between corners are the densest closed sets of `theory.bounds`. With Mmod(t)
the maximum over sets that agree with the corners, found for each module by itself:

* the dag admits exactly when every module admits with respect to Mmod and Mmod = M everywhere;
* a module that does not admit, or one t with M(t) > Mmod(t), proves that the dag does not;
* no schedule has a larger area than the sum of Mmod.
"""

import numpy as np

from eligo.dag import Dag
from eligo.theory.bounds import Module


def module_dag(dag: Dag, module: Module) -> Dag:
    """A module as a dag by itself: its tasks, numbered first, and what they render; the earlier modules are executed."""
    place = np.full(len(dag), -1, np.int32)
    place[module.tasks] = np.arange(len(module.tasks))
    others = module.renders[place[module.renders] < 0]
    place[others] = len(module.tasks) + np.arange(len(others))
    rendered = np.zeros(len(dag), np.bool_)
    rendered[module.renders] = True
    ptr = dag.child_ptr
    heads = np.concatenate([dag.child[ptr[u] : ptr[u + 1]] for u in module.tasks.tolist()])
    tails = np.repeat(module.tasks, dag.outdegree[module.tasks])
    inside = rendered[heads]
    members = np.concatenate([module.tasks, others])
    return Dag.from_checked(len(members), place[tails[inside]], place[heads[inside]], lambda: dag.named(members))
