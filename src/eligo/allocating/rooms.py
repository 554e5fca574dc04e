"""The room for tasks: cores, memory and other resources that running tasks share, with a reservation for the first to wait.

A task that needs many cores would starve if every core that becomes free went to a smaller task at once. So the first ready
task that does not fit reserves what it needs. Until it starts, another task may start only if it leaves the reserved part
free, or is expected to end before the reserved task could start (this is the EASY rule of batch systems [1]_). Where no run
times are known, others may overtake it until they have taken `ROUNDS` times the total.

.. [1] Lifka (1995): The ANL/IBM SP scheduling system. JSSPP.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from eligo.allocating.asks import Ask, NothingFits
from eligo.names import Name
from eligo.work.demands import CORES, MEMORY, PLAIN, Amounts, Demand

ROUNDING = 1e-6  # of a core: sums of thirds must add up
#: tasks that may not overtake the one that waits, after which no others are tried
LOOK = 100
#: the totals that others may take while a task waits, if no run times are known; less costs throughput on average
ROUNDS = 8.0
ONE = {CORES: 1.0}  # the share of a task that states no needs
#: returns the needs of a task
Needs = Callable[[Name], Demand]


class Occupant(Protocol):
    """A job in a room: its number, its tasks and what they need."""

    number: int
    tasks: tuple[Name, ...]
    demand: Demand


@dataclass(frozen=True, slots=True)
class Reservation:
    """The room that a waiting task needs: from when it is expected to be free, and what is free beside it then."""

    task: Name
    start: float
    spare: Amounts

    def leaves(self, share: Amounts) -> bool:
        """Whether the reserved part stays free if this share is taken too."""
        return is_within(share, self.spare)


class Room:
    """The free part of all resources. A task that needs more than a total gets all of it, alone.

    A choice begins with `one_at_a_time`; then `fits` must be asked in the order of preference.

    >>> from collections import namedtuple
    >>> Job = namedtuple("Job", "number tasks demand")
    >>> needs = {"align": Demand(3.0), "sort": Demand(2.0), "huge": Demand(16.0), "list": Demand(1.0)}
    >>> room = Room(4.0, None, needs.__getitem__)
    >>> room.enter(Job(1, ("align",), needs["align"]))
    >>> room.fits("sort"), room.fits("list"), room.share(needs["huge"])["cores"]
    (False, True, 4.0)
    """

    def __init__(
        self,
        cores: float,
        memory: int | None = None,
        needs: Needs | None = None,
        resources: Amounts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cores, self.memory = float(cores), math.inf if memory is None else float(memory)
        self.total: Amounts = {**(resources or {}), CORES: self.cores, MEMORY: self.memory}
        self._free, self._clock = dict(self.total), clock
        self._inside: dict[int, tuple[Amounts, float, float | None]] = {}  # by job: its share, its start, its seconds
        self._reserved: Reservation | None = None
        self._held_back = 0  # tasks of this choice that may not overtake the one that waits
        self._overtaken: dict[Name, float] = {}  # the part of the totals that others took while a task waited
        self.heed(needs)

    def heed(self, needs: Needs | None) -> None:
        """Use new needs from now on."""
        self._needs = needs
        #: whether a task fits now; None if no task needs more than its slot
        self.admits: Callable[[Name], bool] | None = None if needs is None else self.fits

    def resize(self, cores: float) -> None:
        """Have this many cores from now on."""
        self._free[CORES] += cores - self.cores
        self.cores = float(cores)
        self.total = {**self.total, CORES: self.cores}

    @property
    def counts_others(self) -> bool:
        """Whether it counts more than cores and memory."""
        return len(self.total) > 2

    def one_at_a_time(self, asks: Sequence[Ask]) -> Sequence[Ask]:
        """Begin a choice; returns the asks to answer together: only the first one if tasks differ in their needs."""
        self._reserved, self._held_back = None, 0
        return asks if self.admits is None else asks[:1]

    def fits(self, task: Name) -> bool:
        """Whether a task fits now, beside the first task that was refused in this choice; raises `NothingFits`."""
        if self._needs is None:
            return True
        if self._free[CORES] <= ROUNDING or self._held_back >= LOOK:
            raise NothingFits
        demand = self._needs(task)
        share = self.share(demand)
        if is_within(share, self._free):
            return self._reserved is None or self._may_overtake(self._reserved, share, demand.seconds)
        if self._reserved is None:
            self._reserved = self._reserve(task, share)
        return False

    def share(self, demand: Demand) -> Amounts:
        """The resources that a task gets of those that are counted."""
        total = self.total
        return {what: min(amount, total[what]) for what, amount in demand.amounts.items() if what in total}

    def enter(self, job: Occupant) -> None:
        """Take the resources of a job."""
        share, waiting = ONE if job.demand is PLAIN else self.share(job.demand), self._reserved
        if waiting is not None and not waiting.leaves(share):
            part = max(amount / self.total[what] for what, amount in share.items() if amount)
            self._overtaken[waiting.task] = self._overtaken.get(waiting.task, 0.0) + part
        for task in job.tasks if self._overtaken else ():
            self._overtaken.pop(task, None)
        self._change(share, -1)
        self._inside[job.number] = share, self._clock(), job.demand.seconds

    def leave(self, job: Occupant) -> None:
        """Release the resources of a job."""
        self._change(self._inside.pop(job.number)[0], 1)

    def _change(self, share: Amounts, sign: int) -> None:
        for what, amount in share.items():
            self._free[what] += sign * amount

    def _may_overtake(self, waiting: Reservation, share: Amounts, seconds: float | None) -> bool:
        if waiting.leaves(share):
            return True
        overtaken = self._overtaken.get(waiting.task, 0.0)
        may = overtaken < ROUNDS if seconds is None else self._clock() + seconds <= waiting.start
        self._held_back += not may
        return may

    def _reserve(self, task: Name, share: Amounts) -> Reservation:
        """The reservation for a task: the jobs are expected to release its share one after another."""
        free, start = dict(self._free), self._clock()
        ends = ((self._end(*each), each[0]) for each in self._inside.values())
        for end, freed in sorted(ends, key=itemgetter(0)):
            if is_within(share, free):
                break
            start = end
            for what, amount in freed.items():
                free[what] += amount
        return Reservation(task, start, {what: amount - share.get(what, 0.0) for what, amount in free.items()})

    def _end(self, share: Amounts, began: float, seconds: float | None) -> float:
        """When a job is expected to end: now, if it takes longer than expected; one of unknown time is halfway."""
        now = self._clock()
        return 2 * now - began if seconds is None else max(now, began + seconds)


def is_within(share: Amounts, free: Amounts) -> bool:
    """Whether a share fits into what is free."""
    return all(amount <= free[what] + ROUNDING for what, amount in share.items())
