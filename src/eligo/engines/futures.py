"""Whoever takes a function and gives a future: an executor of the user's, and what Dask, Ray and Parsl are built on here."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from eligo.allocating import Ask
from eligo.engines.jobs import Ending, Job
from eligo.engines.performing import Performed, endings, lost, perform


class AnyFuture(Protocol):
    """What is asked of a future."""

    def add_done_callback(self, told: Callable[[Any], object]) -> object:
        """Function a function once it is done."""
        ...

    def result(self) -> Any:
        """What came of it, or raise why nothing did."""
        ...

    def cancel(self) -> object:
        """Stop it where that can be done."""
        ...


class FutureEngine:
    """Jobs as futures: *submit* takes a job and gives one that brings a list of `Performed`. So many are out at a time."""

    slack = 0

    def __init__(self, submit: Callable[[Job], AnyFuture], slots: int, name: str = "executor") -> None:
        self.name = name
        self._submit = submit
        self._free = [f"{name} {number}" for number in range(slots, 0, -1)]
        self._asks = {client: Ask(client) for client in self._free}
        self._out: dict[int, tuple[Job, AnyFuture]] = {}
        self._done: SimpleQueue[tuple[Job, AnyFuture]] = SimpleQueue()

    def asks(self) -> Sequence[Ask]:
        """One for every slot that is free."""
        return [self._asks[client] for client in reversed(self._free)]

    def start(self, job: Job) -> None:
        """See `Engine`."""
        self._free.remove(str(job.client))
        future = self._submit(job)
        self._out[job.number] = (job, future)
        future.add_done_callback(lambda done: self._done.put((job, done)))

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        found: list[Ending] = []
        for job, future in self._ended(seconds):
            if self._out.pop(job.number, None) is not None:
                self._free.append(str(job.client))
                found += self.ending(job, future)
        return found

    def _ended(self, seconds: float | None) -> Iterator[tuple[Job, AnyFuture]]:
        with suppress(Empty):
            yield self._done.get(timeout=seconds)
            while True:
                yield self._done.get_nowait()

    def ending(self, job: Job, future: AnyFuture) -> list[Ending]:
        """What came of a job; a future that brings nothing lost its worker."""
        try:
            performed: list[Performed] = future.result()
        except BaseException as error:  # whatever the engine's own futures raise: the task itself raises nothing
            return [lost(job, f"{type(error).__name__}: {error}"[:1000])]
        return endings(job, performed)

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Stop what has not begun; what runs goes on to its end."""
        for job in jobs:
            if job.number in self._out:
                self._out[job.number][1].cancel()

    def close(self) -> None:
        """Stop what has not begun."""
        self.cancel([job for job, _ in self._out.values()])


def on_executor(executor: Any, slots: int) -> FutureEngine:
    """An executor of `concurrent.futures`, with so many tasks at a time."""
    return FutureEngine(lambda job: executor.submit(perform, job.works, job.timeout), slots)
