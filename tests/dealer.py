"""Clients by name around fat tasks: who has which, for tests that deal and take back."""

from collections.abc import Iterable
from typing import Any, cast

from eligo.allocating import Ask, ByCluster, FatGrant
from eligo.clusters import FatTask
from eligo.execution import Execution


class Dealer:
    """Fat tasks dealt to named clients by the product's allocator; what comes back goes to the execution."""

    def __init__(self, flow: Any, execution: Execution | None = None, **how: Any) -> None:
        self.execution = Execution(flow) if execution is None else execution
        self.allocator = ByCluster(flow, self.execution, **how)
        self.held: dict[str, FatTask] = {}

    def deal(self, client: str, size: int | None = None, seconds: float | None = None) -> FatTask | None:
        ask = Ask(client, seconds=seconds) if size is None else Ask(client, size)
        grants = self.allocator.hand_out([ask])
        if not grants:
            return None
        self.held[client] = cast(FatGrant, grants[0]).fat
        return self.held[client]

    def take_back(self, client: str, done: Iterable[str] | None = None) -> tuple[str, ...]:
        """What of a client's fat task is not done is released; returns what is eligible now and was not."""
        fat, game = self.held.pop(client), self.execution
        finished = set(fat.tasks if done is None else done)
        before = set(game.eligible)
        for task in fat.tasks:
            if task in finished:
                game.complete(task)
        for task in fat.tasks:
            if task in game.allocated or task in game.held:
                game.release(task)
        return tuple(task for task in game.eligible if task not in before)

    def lost(self, client: str) -> None:
        self.take_back(client, done=())

    @property
    def left(self) -> int:
        return self.execution.left
