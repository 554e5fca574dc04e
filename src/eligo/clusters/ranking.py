"""The order in which what is left would be handed out task by task, and how good it is known to be.

It is the planner's where that is quick. A dag too large for it is ranked by its ▷-chain where it has one, else by a
heuristic, and then nothing is claimed.
"""

from dataclasses import dataclass, replace

import numpy as np

from eligo.clusters.chains import Chain, chain_of
from eligo.dag import Dag
from eligo.deciding.orders import release_order
from eligo.deciding.outcomes import BOUNDED, OPTIMAL
from eligo.planning import Plan, plan
from eligo.rows import Ints
from eligo.theory.skeleton import skeleton

LARGEST_PLANNED = 20_000  # tasks


@dataclass(frozen=True, eq=False)
class Ranking:
    """A schedule of a dag, as numbers, with its verdict."""

    sequence: Ints
    verdict: str
    #: at these numbers of executed tasks it is known to have the most tasks eligible
    tight: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    #: from this number on it is so at all of them, so that what is then left has an IC-optimal schedule: Theorem 4
    best_from: int
    #: the chain of blocks that it is the schedule of, where it was made so
    chain: Chain | None = None

    @classmethod
    def of_plan(cls, planned: Plan) -> "Ranking":
        """The planner's order."""
        tight = planned.counts == planned.ceiling
        gaps = np.flatnonzero(~tight)
        return cls(planned.sequence, planned.verdict, tight, int(gaps[-1]) + 1 if len(gaps) else 0)

    @classmethod
    def of_chain(cls, chain: Chain) -> "Ranking":
        """The schedule of a ▷-chain of blocks, which is IC-optimal."""
        return cls(chain.order, OPTIMAL, np.ones(len(chain.order) + 1, np.bool_), 0, chain)

    def renumbered(self, tasks: Ints) -> "Ranking":
        """The same for a part of a larger dag, where the tasks of the part have these numbers."""
        chain = None if self.chain is None else replace(self.chain, tasks=tasks[self.chain.tasks])
        return replace(self, sequence=tasks[self.sequence], chain=chain)


def ranked(dag: Dag, effort: str = "normal", largest: int = LARGEST_PLANNED) -> Ranking:
    """Rank the tasks of a dag, by the planner where it has at most *largest* tasks.

    >>> ranked(Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])).sequence.tolist()
    [2, 0, 1, 3, 4]
    """
    if len(dag) <= largest:
        return Ranking.of_plan(plan(dag, effort))
    chain = chain_of(dag)
    if chain is not None:
        return Ranking.of_chain(chain)
    return Ranking(release_order(skeleton(dag)), BOUNDED, np.zeros(len(dag) + 1, np.bool_), len(dag) + 1)


def verdict_of(dag: Dag, effort: str = "normal") -> str:
    """Whether a dag has an IC-optimal schedule: "optimal", "impossible" or "bounded"."""
    return ranked(dag, effort).verdict
