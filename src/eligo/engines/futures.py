"""Whoever takes a function and gives a future: an executor of the user's, and what Dask, Ray and Parsl are built on here."""

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
from eligo.engines.job_run import GRACE, MARK, Brought, brought, endings, lost, perform
from eligo.engines.jobs import ALIKE, Ending, Job
from eligo.engines.room import Needs, Room
from eligo.engines.strays import signal_marked

SOON = 0.05  # seconds until it is looked again whether processes have ended
BRIEF = 0.02  # seconds: jobs that take less wait longer for their turn than they run
OLD = 0.8  # of what jobs usually take, the share that those before the last one have
#: takes a job, and the mark that its processes get, and gives a future that brings what became of its tasks
Submit = Callable[[Job, str], "Future[Brought]"]


class Out(NamedTuple):
    """A job under way, with the mark that its processes have."""

    job: Job
    mark: str
    future: "Future[Brought]"


class FutureEngine:
    """Jobs as futures, so many out at a time. What is late or cancelled is stopped if it is a command on this machine.

    *room* says what tasks may have together. No more jobs are out than can begin: what waits in an engine's own queue is
    begun before a better task that becomes ready meanwhile. *ahead* is how many more are where tasks take less than it takes
    to bring one, several run at a time, and none needs more than its slot; such an engine can `withdraw` them for certain.
    """

    def __init__(
        self, submit: Submit, slots: int, name: str = "executor", room: Room | None = None, ahead: int = 0
    ) -> None:
        self.name = name
        #: what tasks ask for and this engine does not honour, a sentence each
        self.unheeded: tuple[str, ...] = ()
        #: the bytes of memory of its largest worker, where that is known
        self.largest = math.inf
        self.room = Room(slots) if room is None else room
        self.slack = ahead if slots > 1 and self.room.admits is None else 0
        self._submit, self._slots = submit, slots
        self._usual = math.inf  # how many seconds jobs take
        self._free = [f"{name} {number}" for number in range(slots + self.slack, 0, -1)]
        self._clients = tuple(self._free)
        self._asks = self._possible_asks()
        self._out: dict[int, Out] = {}
        self._done: SimpleQueue[int] = SimpleQueue()
        self._stopped: dict[int, float] = {}  # when those that were told to stop are made to
        self._doubtful: list[str] = []  # the marks of all that were stopped or lost: an engine may begin them even so
        run = secrets.token_hex(8)
        self._marks = (f"{run}.{number}" for number in count(1))

    def asks(self) -> Sequence[Ask]:
        """One for every slot that is free; where tasks differ in what they need, one."""
        most = self._slots - len(self._out) + (self.slack if self._usual < BRIEF else 0)
        free = [self._asks[client] for client in reversed(self._free[-most:])] if most > 0 else []
        return free if self.room.admits is None else free[:1]

    def _possible_asks(self) -> dict[str, Ask]:
        return {client: Ask(client, speed=ALIKE, fits=self.room.admits) for client in self._clients}

    def heed(self, needs: Needs) -> None:
        """See `Heeding`."""
        self.room.heed(needs)
        self._asks = self._possible_asks()

    def start(self, job: Job) -> None:
        """See `Engine`; what cannot even be sent has failed."""
        self._free.remove(str(job.client))
        self.room.enter(job)
        mark = next(self._marks)
        try:
            future = self._submit(job, mark)
        except Exception as error:  # of whatever kind the engine raises: the task's arguments may be the reason
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
        for out in self._ended(seconds):
            del self._out[out.job.number]
            self._free.append(str(out.job.client))
            self.room.leave(out.job)
            ended = self._endings_of(out)
            took = sum(max(0.0, each.attempt.ended - each.attempt.began) for each in ended)
            self._usual = min(self._usual, 1.0) * OLD + took * (1.0 - OLD)
            results += ended
        self._insist()
        return results

    def _ended(self, seconds: float | None) -> Iterator[Out]:
        with suppress(Empty):
            yield self._out[self._done.get(timeout=seconds)]
            while True:
                yield self._out[self._done.get_nowait()]

    def _endings_of(self, out: Out) -> list[Ending]:
        """What came of a job; what was stopped is lost, if it did not end well before."""
        job_endings = self._came(out)
        if self._stopped.pop(out.job.number, None) is None:
            return job_endings
        return [each if each.attempt.failure is None else each.failed("stopped", lost=True) for each in job_endings]

    def _came(self, out: Out) -> list[Ending]:
        try:
            error = out.future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            return endings(out.job, brought(out.future.result()))
        is_lost, why = self.is_loss(error), f"{type(error).__name__}: {error}"[:1000]
        if is_lost:
            self._doubtful.append(out.mark)
            self.signal([out], signal.SIGKILL)  # what a worker that is gone has left behind
        return [lost(out.job, why).failed(why, lost=is_lost)._replace(value=None if is_lost else error)]

    def is_loss(self, error: BaseException) -> bool:
        """Whether a future's error tells that the worker went away, and not that something is wrong with the task."""
        return isinstance(error, (BrokenExecutor, CancelledError))

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Stop what has not begun, and commands; a function goes on to its end."""
        outs = [self._out[job.number] for job in jobs if job.number in self._out.keys() - self._stopped.keys()]
        for out in outs:
            self._stopped[out.job.number] = time.monotonic() + GRACE
            self._doubtful.append(out.mark)
            self.withdraw(out)
        if outs:
            self.signal(outs, signal.SIGTERM)

    def withdraw(self, out: Out) -> None:
        """Have a job not begin, if it has not; where that is not certain, its future says later what became of it."""
        out.future.cancel()

    def _insist(self) -> None:
        """Make those stop that were told to, and did not."""
        now = time.monotonic()
        late = [number for number, when in self._stopped.items() if when <= now]
        if late:
            self._stopped.update(dict.fromkeys(late, now + 1.0))  # one that waited in a queue may begin even then
            self.signal([self._out[number] for number in late], signal.SIGKILL)
            for number in late:
                with suppress(NotImplementedError):  # Parsl's say so
                    self._out[number].future.cancel()  # a worker that hangs tells nothing

    def signal(self, outs: Sequence[Out], number: int) -> int:
        """Send a signal to all processes of some jobs, on the machine where this runs; how many there are."""
        return signal_marked(MARK, [out.mark for out in outs], number)

    def close(self) -> None:
        """Stop what has not begun, and commands."""
        outs = list(self._out.values())
        self.cancel([out.job for out in outs])
        deadline = time.monotonic() + GRACE
        while outs and self.signal(outs, 0) and time.monotonic() < deadline:
            time.sleep(SOON)
        self.free()
        signal_marked(MARK, self._doubtful, signal.SIGKILL)  # begun after all, or deaf

    def free(self) -> None:
        """Let go of the workers, where they are the engine's own."""


def on_executor(executor: Any, slots: int, room: Room | None = None) -> FutureEngine:
    """An executor of `concurrent.futures`, with so many tasks at a time; once it is broken all that follows is lost."""
    return FutureEngine(lambda job, mark: executor.submit(perform, job.works, job.timeout, mark), slots, room=room)


class OwnExecutor(FutureEngine):
    """An executor made for the run: made anew where it breaks, since a process pool does not outlive one of its processes."""

    def __init__(self, make: Callable[[], Executor], slots: int, name: str, room: Room | None = None) -> None:
        super().__init__(self._sent, slots, name, room)
        self._make, self._executor = make, make()

    def _sent(self, job: Job, mark: str) -> "Future[Brought]":
        try:
            return self._executor.submit(perform, job.works, job.timeout, mark)
        except BrokenExecutor:
            self.free()
            self._executor = self._make()
            return self._executor.submit(perform, job.works, job.timeout, mark)

    def free(self) -> None:
        """Let go of the workers."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def threads(slots: int, room: Room | None = None) -> FutureEngine:
    """Threads of this process: for functions."""
    return OwnExecutor(lambda: ThreadPoolExecutor(slots, "eligo"), slots, "thread", room)
