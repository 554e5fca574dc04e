"""Endings of commands, held back until the outputs that their tasks declare are seen, and judged by them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from eligo.engines import Ending, Job
from eligo.errors import shorten
from eligo.names import Name

#: seconds that a file may take to be seen from here, once its writer on another machine has ended
LATENESS = 5.0
#: says which of its declared outputs a task has not made, as far as is seen from here
Absent = Callable[[Name], Sequence[str]]
#: says why a task has failed that ended well and made its outputs, or None
Refusal = Callable[[Ending], str | None]


class Inspection:
    """Turns the good ending of a task whose outputs are missing, or that is refused, into a failure.

    A job may go on with its next task before this one is looked at. Then the job is cancelled, what it still runs does not
    count, and the failure is reported once the job has ended, so that no task runs twice at the same time.
    """

    def __init__(
        self,
        absent: Absent,
        lateness: float,
        cancel: Callable[[list[Job]], object],
        refusal: Refusal = lambda ending: None,
    ) -> None:
        self._absent, self._lateness, self._cancel, self._refusal = absent, lateness, cancel, refusal
        self._waiting: dict[int, deque[Ending]] = {}  # by job, in order
        self._until: dict[int, float] = {}  # when the first of them has failed, by the monotonic clock
        self._spoiled: dict[int, Ending] = {}  # jobs that still run after a task without its outputs
        self._discarded: list[Ending] = []

    def settled(self, endings: Iterable[Ending]) -> Iterator[Ending]:
        """What is certain of these endings, and of those that were held back before."""
        for ending in endings:
            self._waiting.setdefault(ending.job.number, deque()).append(ending)
        for number in list(self._waiting):
            yield from self._of_job(number, self._waiting[number])
            if not self._waiting[number]:
                del self._waiting[number]

    def discarded(self) -> list[Ending]:
        """Endings that did not count, because an earlier task of the same job had failed after it ended well."""
        endings, self._discarded = self._discarded, []
        return [each.failed(each.attempt.failure or "stopped", lost=True) for each in endings]

    def _of_job(self, number: int, queue: "deque[Ending]") -> Iterator[Ending]:
        while queue:
            ending = queue[0]
            if number in self._spoiled:
                self._discarded.append(queue.popleft())
                if ending.last:
                    yield self._spoiled.pop(number)
                continue
            lacking = self._absent(ending.task) if ending.attempt.failure is None else ()
            if lacking and not self._overdue(number):
                return
            self._until.pop(number, None)
            why = (
                not_made(lacking) if lacking else None if ending.attempt.failure is not None else self._refusal(ending)
            )
            yield from self._judged(queue.popleft(), why)

    def _overdue(self, number: int) -> bool:
        now = time.monotonic()
        return now >= self._until.setdefault(number, now + self._lateness)

    def _judged(self, ending: Ending, why: str | None) -> Iterator[Ending]:
        """The ending itself, or its failure, now or once its job has ended."""
        if why is None:
            yield ending
        elif ending.last:
            yield ending.failed(why)
        else:
            self._spoiled[ending.job.number] = ending.failed(why)
            self._cancel([ending.job])


def not_made(files: Sequence[str]) -> str:
    """Why a task failed that did not make these outputs.

    >>> not_made(["a.txt"]), not_made(["a.txt", "b.txt", "c.txt"])
    ("the task did not create 'a.txt'", "the task did not create 'a.txt' and 2 other outputs")
    """
    more = len(files) - 1
    others = f" and {more:,} other output{'s' if more > 1 else ''}" if more else ""
    return f"the task did not create {shorten(files[0])!r}{others}"
