"""Attempts at the tasks of a workflow: their number, and whether and when a task is retried.

Retries are decided only here, for runs and for servers.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from eligo.errors import InputError, is_amount

SLACK = 64  # entries that are out of date, before they are dropped
MOST_CAUSES, OTHER = 1_000, "other causes"  # messages by which failed tasks are grouped, and the group of the rest
TOO_MANY_FAILURES, TOO_MANY_LOSSES = "it failed too often", "its clients were lost too often"


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


class Tries:
    """The attempts at the tasks of one workflow. Tasks are numbers; times are those of the caller's clock.

    >>> tries, once = Tries(), Retries(most=1)
    >>> tries.failures[7] += 1
    >>> 100.0 < tries.again_or_never(7, "exit code 1", 100.0, once, Random(0)) < 103.0
    True
    >>> tries.due(100.0), tries.due(103.0)
    ([], [7])
    >>> tries.failures[7] += 1
    >>> tries.again_or_never(7, "exit code 1", 110.0, once, Random(0)), tries.causes
    (None, {7: 'exit code 1'})
    """

    def __init__(self) -> None:
        #: for each task, the number of attempts, failures and lost workers
        self.begun: Counter[int] = Counter()
        self.failures: Counter[int] = Counter()
        self.losses: Counter[int] = Counter()
        #: the messages of permanently failed tasks, and those tasks by message; there may be a message for each
        self.causes: dict[int, str] = {}
        self.failed_for: dict[str, dict[int, None]] = {}
        #: the tasks that wait for a retry, each with its time
        self.waiting: dict[int, float] = {}
        self._due: list[tuple[float, int]] = []  # a heap; entries that differ from `waiting` are out of date

    def spent(self, task: int, retries: Retries) -> str | None:
        """Why a task is not retried; None if it is."""
        if self.failures[task] > retries.most:
            return TOO_MANY_FAILURES
        return TOO_MANY_LOSSES if self.losses[task] > retries.lost else None

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

    def restart(self, tasks: Collection[int]) -> None:
        """Give failed tasks all their retries again."""
        self.wait_no_more(tasks)
        for task in tasks:
            self.failures[task] = self.losses[task] = 0

    def forget(self, tasks: Iterable[int]) -> None:
        """Forget the attempts at tasks that are done."""
        counts = [each for each in (self.begun, self.failures, self.losses) if each]
        for task in tasks:
            for each in counts:
                each.pop(task, None)
            if self.causes:
                self.take_up(task)
