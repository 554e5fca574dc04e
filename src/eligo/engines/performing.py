"""What a worker does with a job: task after task, on whatever machine it is."""

import pickle
import time
from dataclasses import replace
from typing import Any

from eligo.engines.jobs import Command, Ending, Function, Job, Work
from eligo.engines.worker import GRACE, NO_PROGRAM, Performed, run_command, said, unable

__all__ = ["GRACE", "MARK", "NO_PROGRAM", "Brought", "Performed", "Sent", "brought", "endings", "lost", "perform"]
__all__ += ["perform_sent", "said", "sent", "unable", "withdrawn"]

MARK = "ELIGO_JOB"  # in the environment of what a job starts


def perform(works: tuple[Work, ...], timeout: float | None, mark: str = "") -> list[Performed]:
    """Run the tasks of a job one after another, up to the first that fails; only commands are stopped when they are late.

    The processes have the mark in their environment.
    """
    found = []
    for work in works:
        found.append(_called(work) if isinstance(work, Function) else run_command(_marked(work, mark), timeout))
        if found[-1].failure is not None:
            break
    return found


#: the arguments of `perform`, or what is made of them to be sent
Sent = bytes | tuple[tuple[Work, ...], float | None, str]
#: what `perform` found, or what was made of that
Brought = bytes | list[Performed]


def sent(job: Job, mark: str) -> Sent:
    """What a worker needs to know: commands as bytes, which others pass on as they are; functions are for their own packers.

    >>> brought(perform_sent(sent(Job(1, "ann", ("a",), (Command(("true",), "/"),)), "mark")))[0].code
    0
    """
    told = job.works, job.timeout, mark
    return pickle.dumps(told) if all(isinstance(work, Command) for work in job.works) else told


def perform_sent(told: Sent) -> Brought:
    """The same as `perform`; `brought` reads it."""
    return pickle.dumps(perform(*pickle.loads(told))) if isinstance(told, bytes) else perform(*told)  # noqa: S301 - ours


def brought(found: Brought) -> list[Performed]:
    """What `perform` found."""
    return pickle.loads(found) if isinstance(found, bytes) else found  # noqa: S301 - ours


def _marked(work: Command, mark: str) -> Command:
    return replace(work, environment={**work.environment, MARK: mark}) if mark else work


def endings(job: Job, performed: list[Performed]) -> list[Ending]:
    """What a worker told, as the loop hears it."""
    return [Ending(job, place, *told) for place, told in enumerate(performed)]


def lost(job: Job, why: str) -> Ending:
    """A job whose worker, or whose queue, is gone."""
    now = time.time()
    return Ending(job, 0, now, now, why, lost=True)


def withdrawn() -> Performed:
    """What a worker tells of a job that it did not begin, since nobody wants it any more."""
    now = time.time()
    return Performed(now, now, "stopped", lost=True)


def _called(work: Function) -> Performed:
    began = time.time()
    try:
        value = work.function(*work.arguments)
    except (Exception, SystemExit) as error:  # whatever a user's function raises is told to the user
        return Performed(began, time.time(), f"{type(error).__name__}: {error}"[:1000], _sendable(error))
    return Performed(began, time.time(), value=value)


def _sendable(error: BaseException) -> BaseException:
    """The same exception, if it can be made again elsewhere; some cannot, and would take down whoever receives them."""
    try:
        parts: Any = error.__reduce__()
        parts[0](*parts[1])
    except Exception as why:
        return RuntimeError(f"{type(error).__name__}: {error} (cannot be sent: {why})"[:1000])
    return error
