"""Runs the tasks of a job one after another, on any machine."""

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
from eligo.engines.worker import STOPPED, Performed, describe_timeout, run_command
from eligo.work.attempts import Attempt, Lease, answer_to

MARK = "ELIGO_JOB"  # environment variable of the processes of a job


def perform(works: tuple[Work, ...], timeout: float | None, mark: str = "") -> list[Performed]:
    """Run the tasks of a job one after another, until one fails; the mark is in the environment of their processes.

    A late command is stopped. A late function has failed, but its thread continues, because Python cannot stop threads.
    """
    results = []
    for work in works:
        results.append(
            _call_function(work, timeout) if isinstance(work, Function) else run_command(_add_mark(work, mark), timeout)
        )
        if results[-1].failure is not None:
            break
    return results


#: the arguments of `perform`, possibly serialized
Payload = bytes | tuple[tuple[Work, ...], float | None, str]
#: the results of `perform`, possibly serialized
ResultPayload = bytes | list[Performed]


def to_payload(job: Job, mark: str) -> Payload:
    """The payload for a worker: commands as bytes, which engines pass on unchanged; the engine pickles functions.

    >>> from_payload(perform_sent(to_payload(Job(1, "ann", ("a",), (Command(("true",), "/"),)), "mark")))[0].code
    0
    """
    payload = job.works, job.timeout, mark
    return pickle.dumps(payload) if all(isinstance(work, Command) for work in job.works) else payload


def perform_sent(payload: Payload) -> ResultPayload:
    """Run `perform` on a payload; `from_payload` reads the result."""
    return pickle.dumps(perform(*pickle.loads(payload))) if isinstance(payload, bytes) else perform(*payload)  # noqa: S301 - ours


def from_payload(payload: ResultPayload) -> list[Performed]:
    """The results of `perform`, deserialized if necessary."""
    return pickle.loads(payload) if isinstance(payload, bytes) else payload  # noqa: S301 - ours


def _add_mark(work: Command, mark: str) -> Command:
    return replace(work, environment={**work.environment, MARK: mark}) if mark else work


def endings(job: Job, performed: list[Performed]) -> list[Ending]:
    """The endings of a job's tasks, from a worker's results."""
    return [ending_of(job, place, result) for place, result in enumerate(performed)]


def ending_of(job: Job, place: int, result: Performed) -> Ending:
    """The ending of one task, from a worker's result."""
    began, ended, failure, value, code, memory, lost = result
    lease = job.leases[place] if job.leases else Lease("", 0, place, 1, str(job.client), "", "", 0, began)
    attempt = Attempt(*lease[:6], began, ended, answer_to(failure, lost), failure, code, memory)
    return Ending(job, place, attempt, value.error if isinstance(value, Raised) else value)


def lost_ending(job: Job, why: str) -> Ending:
    """The ending of a job on which no worker reported: its worker or queue failed, or it could not be started."""
    now = time.time()
    return ending_of(job, 0, Performed(now, now, why, lost=True))


def withdrawn_result() -> Performed:
    """The result of a job that was withdrawn before it started."""
    now = time.time()
    return Performed(now, now, STOPPED, lost=True)


def _call_function(work: Function, timeout: float | None) -> Performed:
    """Call a function; with a timeout, in a thread that is abandoned when the time is over."""
    if timeout is None:
        return _call(work)
    began, answer = time.time(), Future[Performed]()
    Thread(target=copy_context().run, args=(_settle, answer, work), name="eligo function", daemon=True).start()
    try:
        return answer.result(min(timeout, TIMEOUT_MAX))
    except TimeoutError:
        late = describe_timeout(timeout)
        return Performed(began, time.time(), late, Raised(TimeoutError(late)))


def _settle(answer: "Future[Performed]", work: Function) -> None:
    try:
        answer.set_result(_call(work))
    except BaseException as error:  # the thread that waits for the answer raises it again
        answer.set_exception(error)


def _call(work: Function) -> Performed:
    began = time.time()
    try:
        value = work.function(*work.arguments)
        value = _run_coroutine(value) if isinstance(value, Coroutine) else value
    except (Exception, SystemExit) as error:  # a function may raise anything; the error becomes the result
        return result_of_error(error, began)
    return Performed(began, time.time(), value=value)


def result_of_error(error: BaseException, began: float) -> Performed:
    """The result of a function that raised this exception."""
    return Performed(began, time.time(), f"{type(error).__name__}: {error}"[:1000], Raised(error))


def _run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run an `async def` function to its end in a new event loop, and return its value."""
    import asyncio  # not at the top: most workers never need it

    return asyncio.run(coroutine)


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception of a function: the original in this process, a copy elsewhere, or its message if it cannot be copied."""

    error: BaseException

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (_pickle(self.error), f"{type(self.error).__name__}: {self.error}"[:1000])


def _pickle(error: BaseException) -> bytes:
    """The exception pickled, by cloudpickle if the engine imported it and pickle fails; empty if both fail."""
    for pickler in filter(None, map(sys.modules.get, ("pickle", "cloudpickle"))):
        with suppress(Exception):  # a pickler may raise anything
            packed: bytes = pickler.dumps(error)
            return packed
    return b""


def _rebuild(packed: bytes, words: str) -> Raised:
    """The exception unpickled; some cannot be, for example if their constructors take other arguments than they store."""
    try:
        return Raised(pickle.loads(packed))  # noqa: S301 - ours
    except Exception as why:
        reason = f"{type(why).__name__}: {why}" if packed else "cannot be pickled"
        return Raised(RuntimeError(f"{words} (in a worker; the exception itself could not be sent: {reason})"[:1000]))
