"""The state of an execution for the choice of fat tasks: the tasks that can go next, in the order of a ranking.

A task is *gone* if it is executed, failed, or out with a client. Tasks are numbers, and their states are read from the
execution itself; only the ready tasks are kept, in a heap, so that dealing a large dag need not visit all of it each time.

**Rankings** are schedules of the remaining tasks. A small dag is ranked by the planner. A dag too large for it is ranked by
its ▷-chain if it has one, else by a heuristic, and then nothing is claimed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from eligo.clusters.chains import Chain, chain_of
from eligo.dag import Dag
from eligo.deciding.orders import release_order
from eligo.deciding.work import BOUNDED, OPTIMAL
from eligo.execution import ELIGIBLE, Execution
from eligo.planning import Plan, plan
from eligo.rows import Ints, places
from eligo.theory.skeleton import skeleton

# Rankings


LARGEST_PLANNED = 20_000  # tasks, up to which the planner ranks a dag


@dataclass(frozen=True, eq=False)
class Ranking:
    """A schedule of a dag, as numbers, with its verdict."""

    sequence: Ints
    verdict: str
    #: the numbers of executed tasks at which it is known to have the most tasks eligible
    tight: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    #: the number from which on all are such, so that the dag that then remains has an IC-optimal schedule: Theorem 4
    best_from: int
    #: the chain of blocks from which the schedule was made, if it was
    chain: Chain | None = None

    @classmethod
    def of_plan(cls, planned: Plan) -> "Ranking":
        """The ranking by the planner's order."""
        tight = planned.counts == planned.ceiling
        gaps = np.flatnonzero(~tight)
        return cls(planned.sequence, planned.verdict, tight, int(gaps[-1]) + 1 if len(gaps) else 0)

    @classmethod
    def of_chain(cls, chain: Chain) -> "Ranking":
        """The ranking by the schedule of a ▷-chain of blocks, which is IC-optimal."""
        return cls(chain.order, OPTIMAL, np.ones(len(chain.order) + 1, np.bool_), 0, chain)

    def renumbered(self, tasks: Ints) -> "Ranking":
        """The same ranking for a part of a larger dag, in which its tasks have these numbers."""
        chain = None if self.chain is None else replace(self.chain, tasks=tasks[self.chain.tasks])
        return replace(self, sequence=tasks[self.sequence], chain=chain)


def rank_tasks(dag: Dag, effort: str = "normal", largest: int = LARGEST_PLANNED) -> Ranking:
    """The ranking of a dag, by the planner if it has at most *largest* tasks.

    >>> rank_tasks(Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])).sequence.tolist()
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
    return rank_tasks(dag, effort).verdict


class State:
    """An execution in which some tasks are gone.

    >>> game = Execution({"a": [], "b": ["a"], "c": ["a"]})
    >>> state = State(game)
    >>> game.execute("a")
    ('b', 'c')
    >>> state.push([1, 2])
    >>> state.first(5), state.remaining_count
    ([1, 2], 2)
    """

    def __init__(self, execution: Execution) -> None:
        self.execution, self.dag = execution, execution.dag
        #: for every task, the number of its parents that are not executed
        self.missing = execution.missing
        self.rank: list[int] = list(range(len(self.dag)))
        self._codes = execution.codes
        self._children: list[int] = self.dag.child.tolist()
        self._child_ptr: list[int] = self.dag.child_ptr.tolist()
        self._parents: list[int] = self.dag.parent.tolist()
        self._parent_ptr: list[int] = self.dag.parent_ptr.tolist()
        self._heap = [(v, v) for v in sorted(execution.numbers(ELIGIBLE))]

    def children_of(self, v: int) -> list[int]:
        """The tasks that need this one."""
        return self._children[self._child_ptr[v] : self._child_ptr[v + 1]]

    def parents_of(self, v: int) -> list[int]:
        """The tasks that this one needs."""
        return self._parents[self._parent_ptr[v] : self._parent_ptr[v + 1]]

    def out(self, v: int) -> int:
        """The number of children of a task."""
        return self._child_ptr[v + 1] - self._child_ptr[v]

    def gone(self, v: int) -> bool:
        """Whether a task is executed, failed or out."""
        return self._codes[v] > ELIGIBLE

    @property
    def remaining_count(self) -> int:
        """The number of tasks that are not gone."""
        return self.execution.left

    def remaining(self) -> Ints:
        """The tasks that are not gone, ascending."""
        return np.flatnonzero(np.frombuffer(self._codes, np.uint8) <= ELIGIBLE).astype(np.int32)

    def rank_by(self, sequence: Ints) -> None:
        """Rank tasks by their places in *sequence*, which has all remaining tasks."""
        rank = places(len(self.dag), sequence, elsewhere=len(self.dag))
        self.rank = rank.tolist()
        ready = np.fromiter(self.execution.numbers(ELIGIBLE), np.int32)
        ready = ready[np.lexsort((ready, rank[ready]))]
        self._heap = list(zip(rank[ready].tolist(), ready.tolist(), strict=True))  # sorted, so it is a heap

    def is_ready(self, v: int) -> bool:
        """Whether a task can go next by itself."""
        return self._codes[v] == ELIGIBLE

    def top(self) -> tuple[int, int] | None:
        """The rank and the number of the first task that can go next."""
        while self._heap and not self.is_ready(self._heap[0][1]):
            heappop(self._heap)
        return self._heap[0] if self._heap else None

    def pop(self) -> int:
        """Remove and return the first task that can go next; it is passed over until it is pushed again."""
        return heappop(self._heap)[1]

    def push(self, tasks: Iterable[int]) -> None:
        """Add tasks that were passed over, or became ready, to those that can go next."""
        for v in tasks:
            heappush(self._heap, (self.rank[v], v))

    def ready_count(self) -> int:
        """The number of tasks that can go next by themselves: the eligible ones."""
        return len(self.execution.eligible)

    def first(self, count: int) -> list[int]:
        """The first tasks that can go next, at most *count*."""
        tasks: dict[int, None] = {}
        while len(tasks) < count and self.top() is not None:
            tasks[self.pop()] = None
        self.push(tasks)
        return list(tasks)

    def last_ones(self) -> list[int]:
        """All tasks that can go next, the last first."""
        return sorted(self.execution.numbers(ELIGIBLE), key=self.rank.__getitem__, reverse=True)
