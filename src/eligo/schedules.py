"""Schedules on steady pools, by a list or a policy, and their forward-backward improvement.

A free worker gets the first ready task, the fastest worker first; on shared cores, the first task that fits.
Forward-backward improvement [1]_ reorders the list by a schedule of the reversed dag, whose own list is ordered by the
previous ends, and repeats that while it gains: tasks with slack give way to those without.

If workers differ in speed, a list may give a slow worker the longest task. So some schedules are also made for deadlines:
a slower worker skips a task that it would end too late, while there are other tasks. A list in the order in which tasks
begin reproduces each schedule, so that following an order is sufficient.

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
from eligo.pools import Floats, Pool, cores_of
from eligo.rows import Ints, places
from eligo.workflow import Workflow, dag_of

Longs = NDArray[np.int64]

MOST_PLAYED = 41  # maximum number of schedules in an improvement
MOST_TASKS = 4_000_000  # in all of them together
DEADLINES = 8  # number of deadlines tried for unequal workers
MUCH = 0.05  # relative gain required of a schedule for a deadline, since it relies on exact run times
BY_RANK = 0  # tie rule, by its number in the kernel
PARTS = 1_000  # of a core: cores are counted in these, rounded up


class Schedule(NamedTuple):
    """The start and end of every task, its worker (0 is the fastest), and the sequence in which tasks start."""

    begin: Floats
    end: Floats
    worker: Ints
    sequence: Ints

    @property
    def makespan(self) -> float:
        """The end of the last task."""
        return float(self.end.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Terms:
    """The run times of the tasks of a dag, their cores on a pool of cores, and the pool."""

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
        """The capacity, the distinct needs of tasks, the index of each task's need, and the tasks sorted by need."""
        if self.cores is None:
            none = np.zeros(len(self.dag), np.int32)
            return 0, np.zeros(1, np.int64), none, none
        needs = np.ceil(self.cores * PARTS - 1e-6).astype(np.int64)
        sizes, which = np.unique(needs, return_inverse=True)
        members = np.argsort(which, kind="stable").astype(np.int32)
        return self.pool.size * PARTS, sizes, which.astype(np.int32), members

    @cached_property
    def _speeds(self) -> Floats:
        """The speeds of all workers that can be busy at once."""
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
        """These terms for the reversed dag."""
        return Terms(self.dag.dual(), self.seconds, self.pool, self.cores)

    def listed(self, sequence: Ints) -> Schedule:
        """The schedule in which a free worker gets the first ready task of a sequence."""
        return self.played(ranked_board(self.dag, places(len(self.dag), sequence)))

    @cached_property
    def tails(self) -> Floats:
        """The seconds on the longest path after every task, excluding the task."""
        return self.dag.longest_paths(self.seconds)

    @cached_property
    def least(self) -> float:
        """A lower bound on any schedule: the longest path on the fastest worker, or all work on all workers."""
        path = float((self.tails + self.seconds).max(initial=0.0)) / self.pool.fastest
        return max(path, math.fsum(self.seconds) / math.fsum(self.pool.speeds))

    def due(self, deadline: float) -> Schedule:
        """The schedule by longest paths in which slower workers skip tasks that they would end too late for a deadline."""
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
        """The end of its last task."""
        return self.schedule.makespan


#: the origin of schedules for deadlines
PATHS = "longest paths"


def soonest(terms: Terms, starts: Mapping[str, Schedule]) -> Soonest:
    """The schedule that finishes earliest, never later than any of the starts; the first of equals.

    Only the first start is improved: improving each and taking the best would gain only if run times were exact. For the same
    reason a schedule for a deadline is used only if it gains much.
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
    """Schedules for deadlines spread evenly from the lower bound up to the latest, which is excluded."""
    count = max(1, min(DEADLINES, MOST_TASKS // max(1, len(terms.dag))))
    for k in range(count):
        yield terms.due(terms.least + (latest - terms.least) * k / count)


def improved_schedule(terms: Terms, start: Schedule) -> Schedule:
    """The best schedule found by forward-backward improvement, as long as each round gains.

    Listing tasks by their starts reproduces it, so that this order is as good. More search would gain more if run times were
    exact, and lose it again if they are off by a tenth.
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
    """The list for the reversed dag: time runs backward there, so the task that ended last starts first."""
    backward = schedule.sequence[::-1]
    return backward[np.argsort(-schedule.end[backward], kind="stable")]
