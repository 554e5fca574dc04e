"""Checks the outputs of commands that ended successfully, and waits for outputs that appear late."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from eligo.engines import Ending, Job
from eligo.errors import shorten
from eligo.names import Name

#: seconds until a file appears here after its writer on another machine has ended
LATENESS = 5.0
#: returns the declared outputs of a task that do not exist here
Absent = Callable[[Name], Sequence[str]]
#: returns why a successful task with all outputs has failed anyway, or None
Refusal = Callable[[Ending], str | None]


class Inspection:
    """Turns successful endings into failures if outputs are missing or the ending is refused.

    A job may continue with its next task before this one is checked. Then the job is cancelled, its later endings do not
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
        self._until: dict[int, float] = {}  # time when the first of them fails, by the monotonic clock
        self._spoiled: dict[int, Ending] = {}  # jobs that still run after a task without its outputs
        self._discarded: list[Ending] = []

    def settled(self, endings: Iterable[Ending]) -> Iterator[Ending]:
        """The checked endings among these and those that were held back before."""
        for ending in endings:
            self._waiting.setdefault(ending.job.number, deque()).append(ending)
        for number in list(self._waiting):
            yield from self._of_job(number, self._waiting[number])
            if not self._waiting[number]:
                del self._waiting[number]

    def discarded(self) -> list[Ending]:
        """Endings that did not count, because an earlier task of the same job was turned into a failure."""
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
            yield from self._judge(queue.popleft(), why)

    def _overdue(self, number: int) -> bool:
        now = time.monotonic()
        return now >= self._until.setdefault(number, now + self._lateness)

    def _judge(self, ending: Ending, why: str | None) -> Iterator[Ending]:
        """The ending, or its failure, now or once its job has ended."""
        if why is None:
            yield ending
        elif ending.last:
            yield ending.failed(why)
        else:
            self._spoiled[ending.job.number] = ending.failed(why)
            self._cancel([ending.job])


def not_made(files: Sequence[str]) -> str:
    """The message for a task that did not create these outputs.

    >>> not_made(["a.txt"]), not_made(["a.txt", "b.txt", "c.txt"])
    ("the task did not create 'a.txt'", "the task did not create 'a.txt' and 2 other outputs")
    """
    more = len(files) - 1
    others = f" and {more:,} other output{'s' if more > 1 else ''}" if more else ""
    return f"the task did not create {shorten(files[0])!r}{others}"
