"""Threads of this process, for functions: queues instead of futures, and short functions are handed over many at a time."""

from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread
from time import time

from eligo.allocating.rooms import Room
from eligo.engines.job_run import endings, perform, result_of_error, withdrawn_result
from eligo.engines.jobs import Ending, Job
from eligo.engines.slots import SlotEngine, arrivals, cancelled_endings
from eligo.engines.worker import Performed

AHEAD = 32  # functions that wait for a thread, so that a thread need not wait for the next one
BRIEF = 0.001  # seconds: shorter functions take less time than to change threads twice

Results = tuple[Job, list[Performed]]


class ThreadEngine(SlotEngine):
    """Runs functions in threads. A started function runs to its end, but a program that ends does not wait for it."""

    def __init__(self, slots: int, room: Room | None = None) -> None:
        super().__init__(slots, "thread", room, AHEAD, BRIEF)
        self._waiting: SimpleQueue[Job | None] = SimpleQueue()  # None ends a thread
        self._done: SimpleQueue[Results] = SimpleQueue()
        self._out: dict[int, Job] = {}
        self._cancelled: set[int] = set()
        self._threads = 0

    def start(self, job: Job) -> None:
        """See `Engine`."""
        if self._threads < min(self.slots, len(self._out) + 1):
            arguments = self._waiting, self._done, self._cancelled
            Thread(target=_perform_all, args=arguments, name="eligo function", daemon=True).start()
            self._threads += 1
        self.occupy(job)
        self._out[job.number] = job
        self._waiting.put(job)

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        results: list[Ending] = []
        for job, performed in arrivals(self._done, seconds):
            ended = endings(job, performed)
            self.vacate(self._out.pop(job.number), ended)
            results += cancelled_endings(ended) if job.number in self._cancelled else ended
        return results

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Withdraw functions that have not started."""
        self._cancelled.update(job.number for job in jobs)

    def close(self) -> None:
        """Withdraw functions that have not started, and end the threads."""
        self.cancel(list(self._out.values()))
        for _ in range(self._threads):
            self._waiting.put(None)


def _perform_all(waiting: "SimpleQueue[Job | None]", done: "SimpleQueue[Results]", cancelled: set[int]) -> None:
    """Perform jobs until there is a None."""
    while (job := waiting.get()) is not None:
        done.put((job, [withdrawn_result()] if job.number in cancelled else _perform(job)))
        del job  # else its arguments would stay alive until the next one comes


def _perform(job: Job) -> list[Performed]:
    began = time()
    try:
        return perform(job.works, job.timeout)
    except BaseException as error:  # a function may raise even KeyboardInterrupt, which would end its thread
        return [result_of_error(error, began)]
