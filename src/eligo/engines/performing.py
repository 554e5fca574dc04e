"""What a worker does with a job: task after task, on whatever machine it is."""

import time

from eligo.engines.jobs import Ending, Function, Job, Work
from eligo.engines.worker import GRACE, KILOBYTE, NO_PROGRAM, Performed, run_command, said

__all__ = ["GRACE", "KILOBYTE", "NO_PROGRAM", "Performed", "endings", "lost", "perform", "run_command", "said"]


def perform(works: tuple[Work, ...], timeout: float | None) -> list[Performed]:
    """Run the tasks of a job one after another, up to the first that fails."""
    found = []
    for work in works:
        found.append(_called(work) if isinstance(work, Function) else run_command(work, timeout))
        if found[-1].failure is not None:
            break
    return found


def endings(job: Job, performed: list[Performed]) -> list[Ending]:
    """What a worker told, as the loop hears it."""
    return [Ending(job, place, *told) for place, told in enumerate(performed)]


def lost(job: Job, why: str) -> Ending:
    """A job whose worker, or whose queue, is gone."""
    now = time.time()
    return Ending(job, 0, now, now, why, lost=True)


def _called(work: Function) -> Performed:
    began = time.time()
    try:
        value = work.function(*work.arguments)
    except Exception as error:  # whatever a user's function raises is told to the user
        return Performed(began, time.time(), f"{type(error).__name__}: {error}"[:1000], error)
    return Performed(began, time.time(), value=value)
