"""What a worker does with a job: task after task, on whatever machine it is. Nothing here needs more than Python itself."""

import os
import resource
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from eligo.engines.jobs import Command, Ending, Function, Job, Work

GRACE = 5.0  # seconds between the polite signal and the other one
NO_PROGRAM = 127  # as shells say it
KILOBYTE = 1024  # the unit in which the system tells the memory of a process that ended


class Performed(NamedTuple):
    """What became of one task, told by the worker; see `Ending`."""

    began: float
    ended: float
    failure: str | None = None
    value: Any = None
    code: int | None = None
    memory: int | None = None
    lost: bool = False


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


def said(code: int) -> str | None:
    """An exit code in words; None where all went well.

    >>> said(0), said(2), said(-9)
    (None, 'exit code 2', 'ended by SIGKILL')
    """
    if code == 0:
        return None
    return f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"


def _called(work: Function) -> Performed:
    began = time.time()
    try:
        value = work.function(*work.arguments)
    except Exception as error:  # whatever a user's function raises is told to the user
        return Performed(began, time.time(), f"{type(error).__name__}: {error}"[:1000], error)
    return Performed(began, time.time(), value=value)


def run_command(work: Command, timeout: float | None) -> Performed:
    """Run a command in a process group of its own, of which nothing is left when it ends."""
    began = time.time()
    environment = {**os.environ, **work.environment}
    with ExitStack() as stack:
        streams = [stack.enter_context(open(path, "wb")) for path in (work.out, work.err)]
        out, err = (stream.fileno() for stream in streams)
        try:
            child = subprocess.Popen(  # noqa: S603 - the words are the user's own
                work.argv,
                cwd=work.folder,
                env=environment,
                process_group=0,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        except OSError as error:
            return Performed(began, time.time(), f"cannot run {work.argv[0]!r}: {error.strerror}", code=NO_PROGRAM)
    failure = _ended(child, timeout)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KILOBYTE
    return Performed(began, time.time(), failure, None, child.returncode, memory)


def _ended(child: "subprocess.Popen[bytes]", timeout: float | None) -> str | None:
    """Wait for a process, and end it where it takes too long; why it failed, if it did."""
    late = None
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        late = f"took longer than {timeout:g} s"
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    return late or said(child.wait())
