"""Attempts at the tasks of a workflow: how often each was tried, and whether and when it is tried again.

This is the one place where a retry is decided, for runs and for servers.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random

from eligo.errors import InputError, is_amount

TOO_MANY_FAILURES, TOO_MANY_LOSSES = "it failed too often", "its clients were lost too often"


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How often a task is tried again after failures of its own, and after its worker was lost; and how soon.

    The waits double from *first* seconds up to *longest*, and a half of each is drawn at random, so that what failed
    together is not tried again together. The defaults hold for commands wherever they run: two more tries survive a machine
    that fails, and soon show a task that does. A loss says little of the task, so more of them are allowed.
    """

    most: int = 2
    lost: int = 10
    first: float = 1.0
    longest: float = 300.0

    def __post_init__(self) -> None:
        for name in ("most", "lost", "first", "longest"):
            if not is_amount(getattr(self, name)):
                raise InputError(f"retries: {name} cannot be {getattr(self, name)!r}")

    def wait(self, failures: int, random: Random) -> float:
        """How many seconds to wait after so many failures.

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
        #: how often each task was handed out, failed by its own doing, and was lost with whoever had it
        self.begun: Counter[int] = Counter()
        self.failures: Counter[int] = Counter()
        self.losses: Counter[int] = Counter()
        #: why tasks failed for good, and the tasks that failed for the same cause
        self.causes: dict[int, str] = {}
        self.failed_for: dict[str, dict[int, None]] = {}
        #: when tasks are tried again, a heap
        self.later: list[tuple[float, int]] = []

    def spent(self, task: int, retries: Retries) -> str | None:
        """Why a task is not tried again; None if it is."""
        if self.failures[task] > retries.most:
            return TOO_MANY_FAILURES
        return TOO_MANY_LOSSES if self.losses[task] > retries.lost else None

    def again_or_never(
        self, task: int, failure: str | None, now: float, retries: Retries, random: Random
    ) -> float | None:
        """Try a task again later: when. The more often it failed or was lost, the later.

        None if it is not tried again, because it was tried often enough; then *failure*, its last one, is noted as the cause.
        """
        spent = self.spent(task, retries)
        if spent is not None:
            self.give_up(task, failure or spent)
            return None
        until = now + retries.wait(max(1, self.failures[task], self.losses[task]), random)
        heappush(self.later, (until, task))
        return until

    def give_up(self, task: int, cause: str) -> None:
        """A task has failed for good."""
        self.take_up(task)
        self.causes[task] = cause
        self.failed_for.setdefault(cause, {})[task] = None

    def take_up(self, task: int) -> str | None:
        """A task has not failed for good: why it had, if it had."""
        cause = self.causes.pop(task, None)
        if cause is not None:
            del self.failed_for[cause][task]
            if not self.failed_for[cause]:
                del self.failed_for[cause]
        return cause

    @property
    def next_due(self) -> float:
        """When the next task is tried again; infinity if none waits for that."""
        return self.later[0][0] if self.later else float("inf")

    def due(self, now: float) -> list[int]:
        """The tasks that have waited long enough. They wait no longer."""
        ready = []
        while self.next_due <= now:
            ready.append(heappop(self.later)[1])
        return ready

    def wait_no_more(self, tasks: Set[int]) -> None:
        """Forget when tasks are tried again, or why they never are."""
        self.later = [entry for entry in self.later if entry[1] not in tasks]
        heapify(self.later)
        for task in tasks:
            self.take_up(task)

    def restart(self, tasks: Collection[int]) -> None:
        """Tasks that had failed may be tried again as often as at first."""
        self.wait_no_more(set(tasks))
        for task in tasks:
            self.failures[task] = self.losses[task] = 0

    def forget(self, tasks: Iterable[int]) -> None:
        """Tasks are done: how it went before does not matter."""
        counts = [each for each in (self.begun, self.failures, self.losses) if each]
        for task in tasks:
            for each in counts:
                each.pop(task, None)
            if self.causes:
                self.take_up(task)
