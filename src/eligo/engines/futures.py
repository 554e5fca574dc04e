"""Engines built on futures: executors of the user, and the common part of Dask, Ray and Parsl."""

import math
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from eligo.allocating import Ask
from eligo.allocating.rooms import Needs, Room
from eligo.engines.job_run import GRACE, MARK, STOPPED, ResultPayload, endings, from_payload, lost_ending, perform
from eligo.engines.jobs import ALIKE, Ending, Job
from eligo.engines.sessions import signal_marked

SOON = 0.05  # seconds between two checks whether processes have ended
BRIEF = 0.02  # seconds: jobs shorter than this wait longer for their turn than they run
OLD = 0.8  # weight of the past in the moving average of job times
#: submits a job with the mark for its processes; returns the future of its results
Submit = Callable[[Job, str], "Future[ResultPayload]"]


class Out(NamedTuple):
    """A submitted job, with the mark of its processes."""

    job: Job
    mark: str
    future: "Future[ResultPayload]"


class FutureEngine:
    """Runs jobs as futures, a limited number at once. Late and cancelled commands on this machine are stopped.

    *room* limits the resources of tasks. No more jobs are submitted than can start, because a job in an engine's own queue
    would start before a better task that becomes ready meanwhile. *ahead* is the number of additional jobs if tasks are
    shorter than the time to submit one, several run at once, and none needs more than its slot; the engine must be able to
    `withdraw` them.
    """

    def __init__(
        self, submit: Submit, slots: int, name: str = "executor", room: Room | None = None, ahead: int = 0
    ) -> None:
        self.name = name
        #: sentences about requests of tasks that this engine ignores
        self.unheeded: tuple[str, ...] = ()
        #: memory of its largest worker in bytes, if known
        self.largest = math.inf
        self.room = Room(slots) if room is None else room
        #: maximum number of tasks that may start out of order
        self.slack = ahead if slots > 1 and self.room.admits is None else 0
        self._submit, self._slots = submit, slots
        self._usual = math.inf  # moving average of the seconds per job
        self._free = [f"{name} {number}" for number in range(slots + self.slack, 0, -1)]
        self._clients = tuple(self._free)
        self._asks = self._possible_asks()
        self._out: dict[int, Out] = {}
        self._done: SimpleQueue[int] = SimpleQueue()
        self._stopped: dict[int, float] = {}  # times of SIGKILL for cancelled jobs
        self._doubtful: list[str] = []  # marks of stopped and lost jobs, which an engine may start anyway
        run = secrets.token_hex(8)
        self._marks = (f"{run}.{number}" for number in count(1))

    def asks(self) -> Sequence[Ask]:
        """One ask per free slot; if tasks differ in their needs, only one."""
        most = self._slots - len(self._out) + (self.slack if self._usual < BRIEF else 0)
        free = [self._asks[client] for client in reversed(self._free[-most:])] if most > 0 else []
        return self.room.one_at_a_time(free)

    def _possible_asks(self) -> dict[str, Ask]:
        return {client: Ask(client, speed=ALIKE, fits=self.room.admits) for client in self._clients}

    def heed(self, needs: Needs) -> None:
        """See `Heeding`."""
        self.room.heed(needs)
        self._asks = self._possible_asks()

    def start(self, job: Job) -> None:
        """See `Engine`; a job that cannot be sent has failed."""
        self._free.remove(str(job.client))
        self.room.enter(job)
        mark = next(self._marks)
        try:
            future = self._submit(job, mark)
        except Exception as error:  # an engine may raise anything, for example because of the task's arguments
            future = Future()
            future.set_exception(error)
        number, done = job.number, self._done
        self._out[number] = Out(job, mark, future)
        future.add_done_callback(
            lambda _: done.put(number)
        )  # not the job: a future keeps its callbacks, and they its result

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        results: list[Ending] = []
        for out in self._ended_jobs(seconds):
            del self._out[out.job.number]
            self._free.append(str(out.job.client))
            self.room.leave(out.job)
            ended = self._endings_of(out)
            took = sum(max(0.0, each.attempt.ended - each.attempt.began) for each in ended)
            self._usual = min(self._usual, 1.0) * OLD + took * (1.0 - OLD)
            results += ended
        self._insist()
        return results

    def _ended_jobs(self, seconds: float | None) -> Iterator[Out]:
        with suppress(Empty):
            yield self._out[self._done.get(timeout=seconds)]
            while True:
                yield self._out[self._done.get_nowait()]

    def _endings_of(self, out: Out) -> list[Ending]:
        """The endings of a job; if it was cancelled, tasks that did not succeed before are lost."""
        job_endings = self._collect(out)
        if self._stopped.pop(out.job.number, None) is None:
            return job_endings
        return [each if each.attempt.failure is None else each.failed(STOPPED, lost=True) for each in job_endings]

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


class OwnExecutor(FutureEngine):
    """An executor made for the run; recreated if it breaks, since a process pool does not survive the death of a process."""

    def __init__(self, make: Callable[[], Executor], slots: int, name: str, room: Room | None = None) -> None:
        super().__init__(self._submit_job, slots, name, room)
        self._make, self._executor = make, make()

    def _submit_job(self, job: Job, mark: str) -> "Future[ResultPayload]":
        try:
            return self._executor.submit(perform, job.works, job.timeout, mark)
        except BrokenExecutor:
            self.free()
            self._executor = self._make()
            return self._executor.submit(perform, job.works, job.timeout, mark)

    def free(self) -> None:
        """Shut the executor down."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def threads(slots: int, room: Room | None = None) -> FutureEngine:
    """Threads of this process, for functions."""
    return OwnExecutor(lambda: ThreadPoolExecutor(slots, "eligo"), slots, "thread", room)
