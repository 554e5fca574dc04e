"""Among orders of one profile, the one that people would rather have.

The profile fixes, for every rise, how many steps lead to it and how high it is. Which of several equal moves is made is free,
and costs nothing in profile: by the longest remaining path, so that long chains begin early, or by what became possible
last, so that branches that were begun are finished.
"""

import numpy as np

from eligo.dag import Dag
from eligo.deciding.limits import MOST_PREFERRED
from eligo.deciding.moves import guided
from eligo.deciding.outcomes import cumulative
from eligo.errors import InputError
from eligo.rows import Ints

PREFERENCES = ("path", "finish")


def preferred(dag: Dag, nonsinks: Ints, preference: str) -> Ints:
    """The nonsinks in another order of the same profile, or in this one where none is found by play.

    >>> two = Dag.from_arcs([("a", "x"), ("b", "y"), ("y", "z")], tasks=["a", "b", "x", "y", "z"])
    >>> two.named(preferred(two, two.indices(["a", "b", "y"]), "path"))
    ('b', 'a', 'y')
    >>> two.named(preferred(two, two.indices(["a", "b", "y"]), "finish"))
    ('b', 'y', 'a')
    """
    if preference not in PREFERENCES:
        raise InputError(f"unknown preference {preference!r} (choose from {', '.join(PREFERENCES)})")
    if not len(nonsinks) or len(dag) > MOST_PREFERRED:
        return nonsinks
    order = guided(dag, cumulative(dag, nonsinks), longest_path=preference == "path")
    return nonsinks if order is None or len(order) < len(nonsinks) else np.array(order, np.int32)
