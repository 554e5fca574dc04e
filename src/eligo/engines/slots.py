"""The slots of an engine: which are free, within its resources, and how many jobs it takes ahead of them."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

from eligo.allocating import Ask
from eligo.allocating.rooms import Needs, Room
from eligo.engines.jobs import ALIKE, Ending, Job
from eligo.engines.worker import STOPPED

BRIEF = 0.02  # seconds: jobs shorter than this wait longer for their turn than they run
OLD = 0.8  # weight of the past in the moving average of job times
Each = TypeVar("Each")


class SlotEngine:
    """The part of an engine that offers its free slots.

    *room* limits the resources of tasks. No more jobs are accepted than can start, because a job in an engine's own queue
    would start before a better task that becomes ready meanwhile. *ahead* is the number of additional jobs if tasks take less
    than *brief* seconds, several run at once, and none needs more than its slot.
    """

    def __init__(self, slots: int, name: str, room: Room | None = None, ahead: int = 0, brief: float = BRIEF) -> None:
        self.name = name
        self.room = Room(slots) if room is None else room
        #: maximum number of tasks that may start out of order
        self.slack = ahead if slots > 1 and self.room.admits is None else 0
        self.slots, self.brief = slots, brief
        self._usual = math.inf  # moving average of the seconds per job
        self._clients = tuple(f"{name} {number}" for number in range(slots + self.slack, 0, -1))
        self._free = dict.fromkeys(self._clients)  # the last one is used first
        self._asks = self._possible_asks()

    def asks(self) -> Sequence[Ask]:
        """One ask per free slot; if tasks differ in their needs, only one."""
        most = len(self._free) - (0 if self._usual < self.brief else self.slack)
        free = [self._asks[client] for client in islice(reversed(self._free), max(0, most))]
        return self.room.one_at_a_time(free)

    def _possible_asks(self) -> dict[str, Ask]:
        return {client: Ask(client, speed=ALIKE, fits=self.room.admits) for client in self._clients}

    def heed(self, needs: Needs) -> None:
        """See `Heeding`."""
        self.room.heed(needs)
        self._asks = self._possible_asks()

    def occupy(self, job: Job) -> None:
        """Give a job the slot of its client."""
        del self._free[str(job.client)]
        self.room.enter(job)

    def vacate(self, job: Job, ended: Sequence[Ending]) -> None:
        """Free the slot of a job with these endings."""
        if (client := str(job.client)) in self._asks:  # else there are fewer slots now
            self._free[client] = None
        self.room.leave(job)
        took = sum(max(0.0, each.attempt.ended - each.attempt.began) for each in ended)
        self._usual = min(self._usual, 1.0) * OLD + took * (1.0 - OLD)


def arrivals(queue: "SimpleQueue[Each]", seconds: float | None) -> Iterator[Each]:
    """What is in a queue; if it is empty, the first that arrives within these seconds."""
    with suppress(Empty):
        yield queue.get(timeout=seconds)
        while True:
            yield queue.get_nowait()


def cancelled_endings(endings: Sequence[Ending]) -> list[Ending]:
    """The endings of a cancelled job: tasks that did not succeed are lost."""
    return [each if each.attempt.failure is None else each.failed(STOPPED, lost=True) for each in endings]
