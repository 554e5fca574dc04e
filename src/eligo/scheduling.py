"""Schedules on steady pools: who runs what from when to when, by a list or a policy, and improved forward and backward.

Whoever is free gets the first ready task, the fastest worker first; where tasks share cores, the first that there are enough
for. Forward-backward improvement [1]_ lists the tasks anew by a schedule of the reversed dag, which lists them by when they
ended before, and so on while that gains: a task with time to spare gives way to those without.

Where workers differ in speed, a list may give a slow worker the longest task. So some schedules are also made for deadlines:
a slower worker leaves alone what it would end too late, while there is anything else to do. Listed in the order in which
tasks begin, each schedule comes out again, so that an order is all that needs to be followed.

.. [1] Li, Willis (1992): An iterative scheduling technique for resource-constrained project scheduling. EJOR 56.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.kernels.boards import Board
from eligo.kernels.pools import Crew
from eligo.kernels.windows import longest_after
from eligo.pools import Floats, Pool, cores_of
from eligo.rows import Ints, places
from eligo.workflow import Workflow, dag_of

Longs = NDArray[np.int64]

MOST_PLAYED = 41  # schedules that an improvement looks at
MOST_TASKS = 4_000_000  # in all of them together
DEADLINES = 8  # for which unequal workers are scheduled
MUCH = 0.05  # as a share of the time: what a schedule for a deadline must gain, for it rests on exact seconds
BY_RANK = 0  # ties, as the kernel numbers them
PARTS = 1_000  # of a core: a task's cores are counted in these, rounded up


class Schedule(NamedTuple):
    """When every task begins and ends, on which worker (0 is the fastest), and the sequence in which they begin."""

    begin: Floats
    end: Floats
    worker: Ints
    sequence: Ints

    @property
    def makespan(self) -> float:
        """When the last task ends."""
        return float(self.end.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Terms:
    """The seconds, and on a pool of cores the cores, of the tasks of a dag, and the pool."""

    dag: Dag
    seconds: Floats
    pool: Pool
    cores: Floats | None = None

    def __post_init__(self) -> None:
        amounts = (self.seconds,) if self.cores is None else (self.seconds, self.cores)
        for amount in amounts:
            if len(amount) != len(self.dag) or not (np.isfinite(amount).all() and (amount >= 0).all()):
                raise InputError(
                    f"each of the {len(self.dag):,} tasks must have a non-negative time, and cores if cores are scheduled"
                )
        if (self.cores is None) != (self.pool.cores is None):
            raise InputError(
                f"the cores of tasks must {'not ' if self.cores is not None else ''}be given for {self.pool}"
            )
        if self.cores is not None and self.cores.max(initial=0) > self.pool.size:
            raise InputError(f"a task needs {self.cores.max():g} cores, but only {self.pool.size:,} are available")

    @cached_property
    def _sorts(self) -> tuple[int, Longs, Ints, Ints]:
        """The room that there is, what the sorts of tasks need of it, each task's sort, and the tasks sort by sort."""
        if self.cores is None:
            none = np.zeros(len(self.dag), np.int32)
            return 0, np.zeros(1, np.int64), none, none
        needs = np.ceil(self.cores * PARTS - 1e-6).astype(np.int64)
        sizes, which = np.unique(needs, return_inverse=True)
        members = np.argsort(which, kind="stable").astype(np.int32)
        return self.pool.size * PARTS, sizes, which.astype(np.int32), members

    @cached_property
    def _speeds(self) -> Floats:
        """Of all who can ever be busy at once."""
        n, (room, sizes, _, _) = len(self.dag), self._sorts
        if self.cores is None:
            return np.array(self.pool.speeds[:n])
        return np.ones(min(n, room // int(sizes[0])) if sizes[0] else n)

    def crew(self, board: Board) -> Crew:
        """The pool, ready to play on a board of the dag."""
        room, sizes, sort, members = self._sorts
        return Crew(board, self._speeds, room, sizes, sort, members)

    def played(self, board: Board, seed: int = 0) -> Schedule:
        """The schedule in which a free worker gets the task that the board, for example of a policy, chooses."""
        n = len(self.dag)
        if board.n != n:
            raise InputError(f"the board has {board.n:,} tasks, but this dag has {n:,}")
        return self._scheduled(board, seed)

    def _scheduled(self, board: Board, seed: int, deadline: float = 0.0) -> Schedule:
        n = len(self.dag)
        schedule = Schedule(np.zeros(n), np.zeros(n), np.zeros(n, np.int32), np.zeros(n, np.int32))
        if n:
            crew = self.crew(board)
            crew.aim_at(deadline, self.tails / self.pool.fastest if deadline else self.seconds)
            crew.play(seed, self.seconds, *schedule)
        return schedule

    def dual(self) -> "Terms":
        """The same on the dag whose arcs are turned round."""
        return Terms(self.dag.dual(), self.seconds, self.pool, self.cores)

    def listed(self, sequence: Ints) -> Schedule:
        """The schedule in which a free worker gets the first ready task of a sequence."""
        return self.played(ranked_board(self.dag, places(len(self.dag), sequence)))

    @cached_property
    def tails(self) -> Floats:
        """The seconds on the longest path after every task, itself left out."""
        length = np.zeros(len(self.dag))
        longest_after(self.dag.child_ptr, self.dag.child, self.dag.order[::-1].copy(), self.seconds, length)
        return length

    @cached_property
    def least(self) -> float:
        """No schedule on workers ends before: the longest path on the fastest, or all work on all."""
        path = float((self.tails + self.seconds).max(initial=0.0)) / self.pool.fastest
        return max(path, math.fsum(self.seconds) / math.fsum(self.pool.speeds))

    def due(self, deadline: float) -> Schedule:
        """The schedule by longest paths where slower workers pass over what they would end too late for a deadline."""
        sequence = np.argsort(-(self.tails + self.seconds), kind="stable").astype(np.int32)
        return self._scheduled(ranked_board(self.dag, places(len(self.dag), sequence)), 0, deadline)


def terms_of(flow: Dag | Workflow, seconds: Sequence[float] | Floats, pool: object) -> Terms:
    """The terms of a workflow on a pool, with the cores that its tasks request."""
    meant, dag = Pool.of(pool), dag_of(flow)
    workflow = flow if isinstance(flow, Workflow) else Workflow(dag)
    return Terms(dag, np.ascontiguousarray(seconds, np.float64), meant, cores_of(workflow, meant))


def ranked_board(dag: Dag, rank: Ints) -> Board:
    """A board on which the ready task with the smallest rank runs first."""
    sources = np.flatnonzero(dag.indegree == 0).astype(np.int32)
    rows = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, sources)
    return Board(*rows, np.zeros(len(dag)), np.zeros(0), 0.0, BY_RANK, rank, np.zeros(0), False)


class Soonest(NamedTuple):
    """The earliest finishing schedule found, and the name of its start."""

    origin: str
    schedule: Schedule

    @property
    def makespan(self) -> float:
        """When its last task ends."""
        return self.schedule.makespan


#: what a schedule was made from that no start led to
PATHS = "longest paths"


def soonest(terms: Terms, starts: Mapping[str, Schedule]) -> Soonest:
    """The schedule that finishes earliest, never later than any of the starts; the first of equals.

    The first start is improved, and the others are taken as they are: to improve each and take the best would gain only
    where the seconds are exact. Likewise a schedule for a deadline is taken only where it gains much.
    """
    tried = [
        Soonest(name, start if place else improved_schedule(terms, start))
        for place, (name, start) in enumerate(starts.items())
    ]
    best = min(tried, key=lambda trial: trial.makespan)
    if terms.pool.equal:
        return best
    due = min((Soonest(PATHS, each) for each in _for_deadlines(terms, best.makespan)), key=lambda trial: trial.makespan)
    return due if due.makespan < best.makespan * (1 - MUCH) else best


def _for_deadlines(terms: Terms, latest: float) -> Iterator[Schedule]:
    """Schedules for deadlines spread evenly from the least conceivable one up to the latest, itself left out."""
    count = max(1, min(DEADLINES, MOST_TASKS // max(1, len(terms.dag))))
    for k in range(count):
        yield terms.due(terms.least + (latest - terms.least) * k / count)


def improved_schedule(terms: Terms, start: Schedule) -> Schedule:
    """The best schedule found by forward-backward improvement, as long as each round gains.

    Listed in the order in which its tasks begin it comes out again, so that this order is as good. More search would gain
    more where the seconds are exact, and lose it again where they are a tenth off.
    """
    plays = min(MOST_PLAYED, max(3, MOST_TASKS // max(1, len(terms.dag)))) - 1
    best, back = start, terms.dual()
    for _ in range(plays // 2):
        now = terms.listed(_latest_end_first(back.listed(_latest_end_first(best))))
        if now.makespan >= best.makespan:
            break
        best = now
    return best


def _latest_end_first(schedule: Schedule) -> Ints:
    """For the dag the other way round: time runs backward there, and who ended last begins first."""
    backward = schedule.sequence[::-1]
    return backward[np.argsort(-schedule.end[backward], kind="stable")]
