"""Allocators that choose several tasks together: batches for simultaneous requests, and fat tasks for single clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from eligo.allocating.asks import Ask, Grant, Refusals, all_or_none
from eligo.batches import Batches
from eligo.batches.component_solver import FULL, Limits
from eligo.batches.states import Batch
from eligo.clusters.fat import FatTask
from eligo.clusters.fat_tasks import Clusters
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.names import Name

SECONDS = 1.0  # time limit for a batch with hard components


class ByBatch:
    """Serves simultaneous requests with the batch that leaves the most tasks ready once all are executed (BICSO).

    Of the batch, the tasks with the longest remaining paths go to the clients that asked first, the others to modest clients.

    >>> game = Execution({"a": [], "b": [], "x": [], "c": ["a", "b"], "d": ["a", "b"], "y": ["x"]})
    >>> allocator = ByBatch(game)
    >>> [grant.tasks for grant in allocator.hand_out([Ask("ann"), Ask("bob")])]
    [('a',), ('b',)]
    """

    def __init__(self, execution: Execution, seconds: float = SECONDS, limits: Limits = FULL) -> None:
        self.execution = execution
        self._batches = Batches(execution, limits)
        self._seconds = seconds

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`."""
        asks = list(asks)
        if any(ask.seconds is not None for ask in asks):
            raise InputError("a batch is measured in tasks, not seconds (give a size instead)")
        if not asks or not self.execution.eligible:
            return []
        best = self._batches.best(sum(ask.size for ask in asks), seconds=self._seconds)
        dag = self.execution.dag
        remaining = dict.fromkeys(sorted(best.tasks, key=lambda task: (-dag.height[dag.index[task]], dag.index[task])))
        grants, granted, refusals = dict[int, Grant](), list[Grant](), Refusals()
        with all_or_none(self.execution, granted):
            for i in sorted(range(len(asks)), key=lambda i: asks[i].modest):
                tasks = () if refusals.covers(asks[i]) else tuple(self._tasks_for(asks[i], remaining))
                if not tasks:
                    refusals.note(asks[i])
                    continue
                self.execution.take(*tasks)
                grants[i] = Grant(asks[i], tasks, _why(best))
                granted.append(grants[i])
        return [grants[i] for i in sorted(grants)]

    def _tasks_for(self, ask: Ask, remaining: dict[Name, None]) -> list[Name]:
        """The tasks of the batch that a client can run; if it can run none of them, other ready tasks."""
        ordered = reversed(remaining) if ask.modest else iter(remaining)
        chosen = list(islice(filter(ask.admits, ordered), ask.size))
        for task in chosen:
            del remaining[task]
        return chosen or self._others(ask, remaining)

    def _others(self, ask: Ask, remaining: dict[Name, None]) -> list[Name]:
        dag = self.execution.dag
        others = [task for task in self.execution.eligible if task not in remaining and ask.admits(task)]
        return sorted(others, key=lambda task: -dag.height[dag.index[task]])[: ask.size]


def _why(best: Batch) -> str:
    most = "no choice leaves more" if best.exact else f"no choice leaves more than {best.upper_bound:,}"
    return f"one of {len(best.tasks):,} tasks that together leave {best.eligible_after:,} ready; {most}"


@dataclass(frozen=True, slots=True)
class FatGrant(Grant):
    """A fat task for a client, with its cut arcs and the remaining dag."""

    fat: FatTask


class ByCluster:
    """Gives each client one fat task of about the requested size or seconds, or of all tasks that can run if these are fewer.

    >>> game = Execution({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    >>> allocator = ByCluster(game.dag, game)
    >>> [grant.tasks for grant in allocator.hand_out([Ask("laptop", 2), Ask("phone")])]
    [('a', 'b')]
    >>> game.complete("a"), game.release("b")
    (('c',), None)
    >>> [grant.tasks for grant in allocator.hand_out([Ask("phone")])]
    [('b',)]
    """

    def __init__(  # noqa: PLR0913
        self,
        flow: object,
        execution: Execution,
        *,
        goal: str = "productive",
        strategy: str = "auto",
        weight: float = 0.5,
        effort: str = "quick",
    ) -> None:
        self.execution = execution
        self._clusters = Clusters(flow, execution, goal=goal, strategy=strategy, weight=weight, effort=effort)

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`."""
        refusals, grants = Refusals(), list[Grant]()
        with all_or_none(self.execution, grants):
            for ask in asks:
                if refusals.covers(ask):
                    continue
                size = ask.size if ask.seconds is None else None
                fat = self._clusters.best(size, ask.work, fits=ask.fits and ask.admits, modest=ask.modest)
                if fat is None:
                    refusals.note(ask)
                    continue
                self.execution.take(*fat.tasks)
                grants.append(FatGrant(ask, fat.tasks, fat.why, fat))
        return grants
