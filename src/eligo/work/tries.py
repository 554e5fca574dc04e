"""Retries: whether and when a task is retried, decided by its failures and losses, for runs and for servers.

No other module compares failures and losses with limits, or computes delays.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from eligo.errors import InputError, is_amount
from eligo.work.attempts import FAILED, LOSSES

SLACK = 64  # outdated entries that are kept before they are dropped
MOST_CAUSES, OTHER = 1_000, "other causes"  # messages by which failed tasks are grouped, and the group of the rest
TOO_MANY_FAILURES, TOO_MANY_LOSSES = "it failed too often", "its clients were lost too often"
DISPUTED = "no two clients agree on its result"


@dataclass(frozen=True, kw_only=True)
class Retries:
    """The number of retries after failures and after lost workers, and the delays.

    Delays double from *first* up to *longest* seconds. Half of each is random, so that tasks that failed together are not
    retried together. The defaults are for commands: two retries survive a faulty machine, and soon expose a faulty task. A
    lost worker says little about its task, so more losses are allowed.
    """

    most: int = 2
    lost: int = 10
    first: float = 1.0
    longest: float = 300.0

    def __post_init__(self) -> None:
        for name in ("most", "lost", "first", "longest"):
            if not is_amount(value := getattr(self, name)):
                raise InputError(f"retries{'' if name == 'most' else f': {name}'} must be at least 0, got {value!r}")

    def wait(self, failures: int, random: Random) -> float:
        """The delay in seconds after this number of failures.

        >>> [Retries(first=2.0).wait(failures, Random(1)) <= 2.0**failures for failures in (1, 2, 3)]
        [True, True, True]
        """
        longest = min(self.longest, self.first * 2.0 ** min(failures - 1, 60))
        return longest * (1 + random.random()) / 2


#: retries of a failed command, unless the user asks for another number
RETRIES = Retries.most


class Next(Enum):
    """What happens to a task after an attempt without a result: it is ready at once, retried later, or fails permanently."""

    READY = "ready"
    RETRY = "retry"
    FAIL = "fail"


class Tried(NamedTuple):
    """The attempts at a task so far, and its failures and losses since its last manual retry.

    >>> Tried().after("expired").after("failed").after("failed", counts=False)
    Tried(tries=3, failures=1, losses=1)
    """

    tries: int = 0
    failures: int = 0
    losses: int = 0

    def after(self, answer: str, counts: bool = True) -> "Tried":
        """The counts after one more attempt with this answer; *counts* is false if the task was retried manually since."""
        failed, lost = counts and answer == FAILED, counts and answer in LOSSES
        return Tried(self.tries + 1, self.failures + failed, self.losses + lost)


class Tries:
    """The attempts at the tasks of one workflow. Tasks are numbers; times are those of the caller's clock.

    >>> tries, once = Tries(), Retries(most=1)
    >>> tries.count(7, 1, "failed")
    >>> 100.0 < tries.again_or_never(7, "exit code 1", 100.0, once, Random(0)) < 103.0
    True
    >>> tries.due(100.0), tries.due(103.0)
    ([], [7])
    >>> tries.count(7, 2, "failed")
    >>> tries.again_or_never(7, "exit code 1", 110.0, once, Random(0)), tries.causes
    (None, {7: 'exit code 1'})
    """

    def __init__(self, own: Callable[[int], int | None] = lambda task: None) -> None:
        #: the number of retries that a task asks for itself; None: those of its workflow
        self.own = own
        #: for each task, the number of attempts, failures and lost workers
        self.begun: Counter[int] = Counter()
        self.failures: Counter[int] = Counter()
        self.losses: Counter[int] = Counter()
        #: for each task that was retried manually, the number of the last attempt before, up to which none counts
        self.retried: dict[int, int] = {}
        #: the messages of permanently failed tasks, and those tasks by message; there may be a message for each task
        self.causes: dict[int, str] = {}
        self.failed_for: dict[str, dict[int, None]] = {}
        #: whether too many results of a task disagree, so that it fails; a run accepts the first result
        self.is_disputed: Callable[[int], bool] = lambda task: False
        #: the tasks that wait for a retry, each with its time
        self.waiting: dict[int, float] = {}
        self._due: list[tuple[float, int]] = []  # a heap; entries that differ from `waiting` are outdated

    def restore(
        self,
        tallies: Mapping[int, Tried],
        retried: Mapping[int, int] | None = None,
        causes: Mapping[int, str] | None = None,
    ) -> None:
        """Restore the counts, manual retries and permanent failures of an earlier process.

        >>> tries = Tries()
        >>> tries.restore({7: Tried(3, 3, 0)}, causes={7: "exit code 1"})
        >>> tries.begun[7], tries.failures[7], tries.causes
        (3, 3, {7: 'exit code 1'})
        """
        for task, tally in tallies.items():
            self.begun[task], self.failures[task], self.losses[task] = tally
        self.retried.update(retried or {})
        for task, cause in (causes or {}).items():
            self.give_up(task, cause)

    # Counts

    def counts(self, task: int, number: int) -> bool:
        """Whether attempt *number* at a task counts; it does not if the task was retried manually since."""
        return number > self.retried.get(task, 0)

    def count(self, task: int, number: int, answer: str) -> None:
        """Count attempt *number* at a task by its answer: as a failure, as a loss, or as neither."""
        self._count(task, number, answer, 1)

    def uncount(self, task: int, number: int, answer: str) -> None:
        """Undo `count`, because the attempt has ended in another way after all."""
        self._count(task, number, answer, -1)

    def _count(self, task: int, number: int, answer: str, by: int) -> None:
        if answer in {FAILED, *LOSSES} and self.counts(task, number):
            (self.failures if answer == FAILED else self.losses)[task] += by

    # Decisions

    def spent(self, task: int, retries: Retries) -> str | None:
        """Why a task is not handed out again; None if it is."""
        if self.failures[task] and self.failures[task] > self._most(task, retries):
            return TOO_MANY_FAILURES
        if self.losses[task] > retries.lost:
            return TOO_MANY_LOSSES
        return DISPUTED if self.is_disputed(task) else None

    def _most(self, task: int, retries: Retries) -> int:
        return retries.most if (own := self.own(task)) is None else own

    def after(self, task: int, failure: str | None, retries: Retries) -> Next:
        """What happens to a task after an attempt without a result; *failure* is None if the task did not fail."""
        if self.spent(task, retries) is not None:
            return Next.FAIL
        return Next.READY if failure is None else Next.RETRY

    def again_or_never(
        self, task: int, failure: str | None, now: float, retries: Retries, random: Random
    ) -> float | None:
        """Schedule a retry, later after more failures; returns its time.

        Returns None if no retries remain; then *failure*, the last one, is recorded as the cause.
        """
        spent = self.spent(task, retries)
        if spent is not None:
            self.give_up(task, failure or spent)
            return None
        until = now + retries.wait(max(1, self.failures[task], self.losses[task]), random)
        self.waiting[task] = until
        heappush(self._due, (until, task))
        if len(self._due) > 2 * len(self.waiting) + SLACK:
            self._due = self.later
        return until

    def reconsider(self, task: int, failure: str | None, now: float, retries: Retries, random: Random) -> float | None:
        """The same as `again_or_never` for a failed task whose counts have changed; it replaces the earlier decision."""
        cause = self.causes.get(task)
        self.wait_no_more({task})
        return self.again_or_never(task, failure or cause, now, retries, random)

    def give_up(self, task: int, cause: str) -> None:
        """Record that a task has failed permanently."""
        self.take_up(task)
        self.causes[task] = cause
        group = cause if cause in self.failed_for or len(self.failed_for) < MOST_CAUSES else OTHER
        self.failed_for.setdefault(group, {})[task] = None

    def take_up(self, task: int) -> str | None:
        """Undo a permanent failure; returns its cause, or None if there was none."""
        cause = self.causes.pop(task, None)
        if cause is not None:
            group = cause if task in self.failed_for.get(cause, ()) else OTHER
            del self.failed_for[group][task]
            if not self.failed_for[group]:
                del self.failed_for[group]
        return cause

    @property
    def later(self) -> list[tuple[float, int]]:
        """The times of retries in order, each with its task."""
        return sorted((until, task) for task, until in self.waiting.items())

    @property
    def next_due(self) -> float:
        """The time of the next retry; infinity if there is none."""
        due = self._due
        while due and self.waiting.get(due[0][1]) != due[0][0]:
            heappop(due)
        return due[0][0] if due else float("inf")

    def recount(self, failed: Iterable[tuple[int, bool]], retries: Retries) -> None:
        """Count the failed attempts of an earlier process: the task of each, and whether its worker was lost.

        A task that had used up its retries gets all of them again.

        >>> tries = Tries()
        >>> tries.recount([(7, False), (8, False), (8, False)], Retries(most=1))
        >>> tries.failures[7], tries.failures[8]
        (1, 0)
        """
        for task, lost in failed:
            (self.losses if lost else self.failures)[task] += 1
            if self.spent(task, retries) is not None:
                self.failures[task] = self.losses[task] = 0

    def due(self, now: float) -> list[int]:
        """Remove and return the tasks whose retry is due."""
        ready = []
        while self.next_due <= now:
            ready.append(heappop(self._due)[1])
            del self.waiting[ready[-1]]
        return ready

    def wait_no_more(self, tasks: Iterable[int]) -> None:
        """Forget the retries and permanent failures of these tasks."""
        for task in tasks:
            self.waiting.pop(task, None)
            self.take_up(task)

    def restart(self, tasks: Collection[int], number: int) -> None:
        """Give failed tasks all their retries again; their attempts up to *number* no longer count."""
        self.wait_no_more(tasks)
        for task in tasks:
            self.failures[task] = self.losses[task] = 0
            self.retried[task] = number

    def forget(self, tasks: Iterable[int]) -> None:
        """Forget the attempts at tasks that are done."""
        counts = [each for each in (self.begun, self.failures, self.losses) if each]
        for task in tasks:
            for each in counts:
                each.pop(task, None)
            if self.causes:
                self.take_up(task)
