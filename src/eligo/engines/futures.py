"""Engines built on futures: executors of the user, and the common part of Dask, Ray and Parsl."""

import math
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any, NamedTuple

from eligo.allocating.rooms import Room
from eligo.engines.job_run import MARK, ResultPayload, endings, from_payload, lost_ending, perform
from eligo.engines.jobs import Ending, Job
from eligo.engines.sessions import signal_marked
from eligo.engines.slots import SlotEngine, arrivals, cancelled_endings
from eligo.engines.worker import GRACE

SOON = 0.05  # seconds between two checks whether processes have ended
#: submits a job with the mark for its processes; returns the future of its results
Submit = Callable[[Job, str], "Future[ResultPayload]"]


class Out(NamedTuple):
    """A submitted job, with the mark of its processes."""

    job: Job
    mark: str
    future: "Future[ResultPayload]"


class FutureEngine(SlotEngine):
    """Runs jobs as futures, a limited number at once. Late and cancelled commands on this machine are stopped.

    The engine must be able to `withdraw` jobs that it takes *ahead*.
    """

    def __init__(
        self, submit: Submit, slots: int, name: str = "executor", room: Room | None = None, ahead: int = 0
    ) -> None:
        super().__init__(slots, name, room, ahead)
        #: sentences about requests of tasks that this engine ignores
        self.unheeded: tuple[str, ...] = ()
        #: memory of its largest worker in bytes, if known
        self.largest = math.inf
        self._submit = submit
        self._out: dict[int, Out] = {}
        self._done: SimpleQueue[int] = SimpleQueue()
        self._stopped: dict[int, float] = {}  # times of SIGKILL for cancelled jobs
        self._doubtful: list[str] = []  # marks of stopped and lost jobs, which an engine may start anyway
        run = secrets.token_hex(8)
        self._marks = (f"{run}.{number}" for number in count(1))

    def start(self, job: Job) -> None:
        """See `Engine`; a job that cannot be sent has failed."""
        self.occupy(job)
        mark = next(self._marks)
        try:
            future = self._submit(job, mark)
        except Exception as error:  # an engine may raise anything, for example because of the task's arguments
            future = Future()
            future.set_exception(error)
        number, done = job.number, self._done
        self._out[number] = Out(job, mark, future)
        # not the job: a future keeps its callbacks, and they its result
        future.add_done_callback(lambda _: done.put(number))

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        results: list[Ending] = []
        for number in arrivals(self._done, seconds):
            out = self._out.pop(number)
            ended = self._endings_of(out)
            self.vacate(out.job, ended)
            results += ended
        self._insist()
        return results

    def _endings_of(self, out: Out) -> list[Ending]:
        """The endings of a job; if it was cancelled, tasks that did not succeed before are lost."""
        job_endings = self._collect(out)
        return job_endings if self._stopped.pop(out.job.number, None) is None else cancelled_endings(job_endings)

    def _collect(self, out: Out) -> list[Ending]:
        try:
            error = out.future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            return endings(out.job, from_payload(out.future.result()))
        is_lost, why = self.is_loss(error), f"{type(error).__name__}: {error}"[:1000]
        if is_lost:
            self._doubtful.append(out.mark)
            self.signal([out], signal.SIGKILL)  # processes that a lost worker left running
        return [lost_ending(out.job, why).failed(why, lost=is_lost)._replace(value=None if is_lost else error)]

    def is_loss(self, error: BaseException) -> bool:
        """Whether a future's error means that its worker was lost, rather than that the task failed."""
        return isinstance(error, (BrokenExecutor, CancelledError))

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Withdraw jobs that have not started, and stop commands; a function runs to its end."""
        outs = [self._out[job.number] for job in jobs if job.number in self._out.keys() - self._stopped.keys()]
        for out in outs:
            self._stopped[out.job.number] = time.monotonic() + GRACE
            self._doubtful.append(out.mark)
            self.withdraw(out)
        if outs:
            self.signal(outs, signal.SIGTERM)

    def withdraw(self, out: Out) -> None:
        """Prevent a job from starting; if that is uncertain, its future has the result later."""
        out.future.cancel()

    def _insist(self) -> None:
        """Kill jobs that did not stop in time."""
        now = time.monotonic()
        late = [number for number, when in self._stopped.items() if when <= now]
        if late:
            self._stopped.update(dict.fromkeys(late, now + 1.0))  # a job that waited in a queue may still start
            self.signal([self._out[number] for number in late], signal.SIGKILL)
            for number in late:
                with suppress(NotImplementedError):  # raised by Parsl's futures
                    self._out[number].future.cancel()  # a hanging worker does not answer

    def signal(self, outs: Sequence[Out], number: int) -> int:
        """Send a signal to all processes of some jobs on this machine; returns the number of processes."""
        return signal_marked(MARK, [out.mark for out in outs], number)

    def close(self) -> None:
        """Withdraw jobs that have not started, and stop commands."""
        outs = list(self._out.values())
        self.cancel([out.job for out in outs])
        deadline = time.monotonic() + GRACE
        while outs and self.signal(outs, 0) and time.monotonic() < deadline:
            time.sleep(SOON)
        self.free()
        signal_marked(MARK, self._doubtful, signal.SIGKILL)  # started after all, or ignoring signals

    def free(self) -> None:
        """Release the workers, if they belong to the engine."""


def on_executor(executor: Any, slots: int, room: Room | None = None) -> FutureEngine:
    """An engine for an executor of `concurrent.futures`, with *slots* tasks at once; if it breaks, later jobs are lost."""
    return FutureEngine(lambda job, mark: executor.submit(perform, job.works, job.timeout, mark), slots, room=room)
