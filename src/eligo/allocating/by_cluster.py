"""Fat tasks as large as the client that asks."""

from collections.abc import Sequence
from dataclasses import dataclass

from eligo.allocating.asks import Ask, Grant, Refusals, all_or_none
from eligo.clusters.fat import FatTask
from eligo.clusters.fat_tasks import Clusters
from eligo.execution import Execution


@dataclass(frozen=True, slots=True)
class FatGrant(Grant):
    """A fat task for a client, with its cut arcs and the remaining dag."""

    fat: FatTask


class ByCluster:
    """Gives each client one fat task of about the requested size or seconds, or of what can run now if that is less.

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
                fat = self._clusters.best(size, ask.work, fits=ask.fits, modest=ask.modest)
                if fat is None:
                    refusals.note(ask)
                    continue
                self.execution.take(*fat.tasks)
                grants.append(FatGrant(ask, fat.tasks, fat.why, fat))
        return grants
