"""What a worker does with a job: task after task, on whatever machine it is."""

import pickle
import sys
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from threading import TIMEOUT_MAX, Thread
from typing import Any

from eligo.engines.jobs import Command, Ending, Function, Job, Work
from eligo.engines.worker import GRACE, NO_PROGRAM, Performed, run_command, said, unable
from eligo.work.attempts import Attempt, Lease, answer_to

__all__ = ["GRACE", "MARK", "NO_PROGRAM", "Brought", "Performed", "Sent", "brought", "ending_of", "endings", "lost"]
__all__ += ["perform", "perform_sent", "said", "sent", "unable", "withdrawn"]

MARK = "ELIGO_JOB"  # in the environment of what a job starts


def perform(works: tuple[Work, ...], timeout: float | None, mark: str = "") -> list[Performed]:
    """Run the tasks of a job one after another, up to the first that fails; the processes have the mark in their environment.

    A command that is late is stopped. A function that is late has failed, but its thread goes on: Python can stop no thread.
    """
    results = []
    for work in works:
        results.append(
            _call_function(work, timeout) if isinstance(work, Function) else run_command(_marked(work, mark), timeout)
        )
        if results[-1].failure is not None:
            break
    return results


#: the arguments of `perform`, or what is made of them to be sent
Sent = bytes | tuple[tuple[Work, ...], float | None, str]
#: what `perform` found, or what was made of that
Brought = bytes | list[Performed]


def sent(job: Job, mark: str) -> Sent:
    """What a worker needs to know: commands as bytes, which others pass on as they are; functions are for their own packers.

    >>> brought(perform_sent(sent(Job(1, "ann", ("a",), (Command(("true",), "/"),)), "mark")))[0].code
    0
    """
    payload = job.works, job.timeout, mark
    return pickle.dumps(payload) if all(isinstance(work, Command) for work in job.works) else payload


def perform_sent(payload: Sent) -> Brought:
    """The same as `perform`; `brought` reads it."""
    return pickle.dumps(perform(*pickle.loads(payload))) if isinstance(payload, bytes) else perform(*payload)  # noqa: S301 - ours


def brought(payload: Brought) -> list[Performed]:
    """What `perform` found."""
    return pickle.loads(payload) if isinstance(payload, bytes) else payload  # noqa: S301 - ours


def _marked(work: Command, mark: str) -> Command:
    return replace(work, environment={**work.environment, MARK: mark}) if mark else work


def endings(job: Job, performed: list[Performed]) -> list[Ending]:
    """What a worker told, as the loop hears it."""
    return [ending_of(job, place, result) for place, result in enumerate(performed)]


def ending_of(job: Job, place: int, result: Performed) -> Ending:
    """The same of one task."""
    began, ended, failure, value, code, memory, lost = result
    lease = job.leases[place] if job.leases else Lease("", 0, place, 1, str(job.client), "", "", 0, began)
    attempt = Attempt(*lease[:6], began, ended, answer_to(failure, lost), failure, code, memory)
    return Ending(job, place, attempt, value.error if isinstance(value, Raised) else value)


def lost(job: Job, why: str) -> Ending:
    """A job whose worker, or whose queue, is gone."""
    now = time.time()
    return ending_of(job, 0, Performed(now, now, why, lost=True))


def withdrawn() -> Performed:
    """What a worker tells of a job that it did not begin, since nobody wants it any more."""
    now = time.time()
    return Performed(now, now, "stopped", lost=True)


def _call_function(work: Function, timeout: float | None) -> Performed:
    """What became of a function; where it has a timeout, it runs in a thread that nobody waits for any longer than that."""
    if timeout is None:
        return _call(work)
    began, answer = time.time(), Future[Performed]()
    Thread(target=copy_context().run, args=(_settle, answer, work), name="eligo function", daemon=True).start()
    try:
        return answer.result(min(timeout, TIMEOUT_MAX))
    except TimeoutError:
        late = f"took longer than {timeout:g} s"
        return Performed(began, time.time(), late, Raised(TimeoutError(late)))


def _settle(answer: "Future[Performed]", work: Function) -> None:
    try:
        answer.set_result(_call(work))
    except BaseException as error:  # which whoever waits for the answer raises again
        answer.set_exception(error)


def _call(work: Function) -> Performed:
    began = time.time()
    try:
        value = work.function(*work.arguments)
        value = _awaited(value) if isinstance(value, Coroutine) else value
    except (Exception, SystemExit) as error:  # whatever a user's function raises is told to the user
        return Performed(began, time.time(), f"{type(error).__name__}: {error}"[:1000], Raised(error))
    return Performed(began, time.time(), value=value)


def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What an `async def` function returns, run to its end in an event loop of its own."""
    import asyncio  # not at the top: most workers never need it

    return asyncio.run(coroutine)


@dataclass(frozen=True, slots=True)
class Raised:
    """What a function raised: the exception itself in this process, a copy in another, its words where none can be made."""

    error: BaseException

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (_packed(self.error), f"{type(self.error).__name__}: {self.error}"[:1000])


def _packed(error: BaseException) -> bytes:
    """The exception as bytes, by cloudpickle where the engine brought it and pickle is not able to; else none."""
    for pickler in filter(None, map(sys.modules.get, ("pickle", "cloudpickle"))):
        with suppress(Exception):  # a pickler may raise anything
            packed: bytes = pickler.dumps(error)
            return packed
    return b""


def _rebuilt(packed: bytes, words: str) -> Raised:
    """Some exceptions cannot be made again, such as those whose arguments are not the ones that they keep."""
    try:
        return Raised(pickle.loads(packed))  # noqa: S301 - ours
    except Exception as why:
        reason = f"{type(why).__name__}: {why}" if packed else "cannot be pickled"
        return Raised(RuntimeError(f"{words} (in a worker; the exception itself could not be sent: {reason})"[:1000]))
